/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ROUTE_H
#define ROUTE_H
/**
 * @file route.h  Routes of one port: which next hop an address has.
 *
 * Owner:   the caller.
 * Memory:  the table grows by realloc(), up to ROUTE_MAX; route_fini() gives it back.
 * Depends: base.
 * Spec:    RT-01..04, RT-08..10.
 *
 * The port's own subnets are routes too, with the port's own address in place of a next hop. The
 * table is sorted by prefix length, so the first route that matches is the most specific one.
 */
#include <stdbool.h>
#include <stdint.h>

#define ROUTE_MAX  1024
#define ROUTE_TEXT 64 /* bytes of a prefix or an address as text, with its NUL */

/** Addresses are in network byte order; IPv4 has the first four bytes, the rest is 0. */
struct route_addr {
	uint8_t family; /* 4 or 6 */
	uint8_t addr[16];
};

struct route_prefix {
	struct route_addr net;
	uint8_t bits;
};

enum route_source {
	ROUTE_CONNECTED,  /* the port's own subnet: `via` is the port's own address */
	ROUTE_CONFIGURED, /* of the configuration */
	ROUTE_ADDED,      /* later */
};

struct route {
	struct route_prefix to;
	struct route_addr via;
	uint8_t source; /* enum route_source */
};

struct route_table {
	struct route *v; /* longest prefixes first */
	uint32_t n;
	uint32_t room;
};

enum route_fault {
	ROUTE_OK,
	/* of `to` */
	ROUTE_HOST_BITS, /* there are bits behind the prefix */
	ROUTE_OWN_NET,   /* it is the port's own subnet */
	ROUTE_TWICE,     /* that route is there */
	ROUTE_NONE,      /* ... or is not there (route_del) */
	ROUTE_FULL,
	ROUTE_NO_MEMORY,
	/* of `via` */
	ROUTE_FAMILY,    /* not of the family of `to` */
	ROUTE_OFF_LINK,  /* in none of the port's subnets */
	ROUTE_OWN,       /* the port's own address */
	ROUTE_NO_HOST,   /* unspecified, multicast, or a subnet's network or broadcast address */
	ROUTE_OTHER_VIA, /* the route is there, by another next hop (route_del) */
	ROUTE_FAULTS
};

/** Is the next hop wrong? Otherwise the destination is. */
bool route_fault_is_via(enum route_fault f);
/** What is wrong and what is allowed, as the end of a sentence that begins with the value. */
const char *route_fault_text(enum route_fault f);

/**
 * "10.80.0.0/16", "::/0", or an address, which stands for itself alone.
 * @return 0 or -EINVAL. Bits behind the prefix are kept: route_add() refuses them.
 */
int route_prefix_parse(const char *text, struct route_prefix *out);
/** @return buf, of ROUTE_TEXT bytes. */
const char *route_prefix_text(const struct route_prefix *p, char *buf);
/** The address without a prefix length. @return buf, of ROUTE_TEXT bytes. */
const char *route_addr_text(const struct route_addr *a, char *buf);
/** Is the address one of the prefix? */
bool route_prefix_holds(const struct route_prefix *p, const struct route_addr *a);
/** Does the route match every address? "0.0.0.0/0", "::/0". */
static inline bool
route_is_default(const struct route *r)
{
	return r->to.bits == 0;
}

/** Add the subnet of a port's own address. @param bits of its prefix, at most 32 or 128. */
enum route_fault route_connect(struct route_table *t, const struct route_addr *own, uint8_t bits);
/**
 * A route by a next hop. One to the same prefix by another next hop is replaced.
 * @param replaced out: that one; its `to.net.family` is 0 if there was none. May be NULL.
 * Nothing changes on a fault.
 */
enum route_fault route_add(struct route_table *t, const struct route *r, struct route *replaced);
/** @param via the next hop that it must have, or NULL. Nothing changes on a fault. */
enum route_fault route_del(
	struct route_table *t, const struct route_prefix *to, const struct route_addr *via);
/** The most specific route to an address, or NULL. Valid until the table changes. */
const struct route *route_find(const struct route_table *t, const struct route_addr *dest);
/** Give the memory back; the table is empty then, and may be used again. */
void route_fini(struct route_table *t);

#endif
