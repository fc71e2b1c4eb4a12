/* SPDX-License-Identifier: BSD-3-Clause */
#include "route.h"
#include "invariant.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
	bool via;
	const char *text;
} faults[ROUTE_FAULTS] = {
	[ROUTE_OK] = { false, "" },
	[ROUTE_HOST_BITS] = { false, "has bits behind its prefix length: they must be 0" },
	[ROUTE_OWN_NET] = { false, "is the port's own subnet: its hosts need no next hop" },
	[ROUTE_TWICE] = { false, "has a route by this next hop already" },
	[ROUTE_NONE] = { false, "has no route: route_list shows those that are there" },
	[ROUTE_FULL] = { false, "is one route too many: a port has at most 1024" },
	[ROUTE_NO_MEMORY] = { false, "cannot be taken: no memory" },
	[ROUTE_FAMILY] = { true, "must be an address of the same family as `to`" },
	[ROUTE_OFF_LINK] = { true, "is not on the link: a next hop must be in the port's subnet" },
	[ROUTE_OWN] = { true, "is the port's own address: a next hop is another host" },
	[ROUTE_NO_HOST] = { true, "is no host's address: a next hop is one host of the subnet" },
	[ROUTE_OTHER_VIA] = { true, "is not the next hop of that route" },
};

bool
route_fault_is_via(enum route_fault f)
{
	return (unsigned int)f < ROUTE_FAULTS && faults[f].via;
}

const char *
route_fault_text(enum route_fault f)
{
	return (unsigned int)f < ROUTE_FAULTS ? faults[f].text : "?";
}

/* ---- addresses ------------------------------------------------------------------------------ */

static uint8_t
bits_of(uint8_t family)
{
	ASSERT(family == 4 || family == 6);
	return family == 4 ? 32 : 128;
}

static bool
same_addr(const struct route_addr *a, const struct route_addr *b)
{
	return a->family == b->family && memcmp(a->addr, b->addr, sizeof(a->addr)) == 0;
}

static bool
same_prefix(const struct route_prefix *a, const struct route_prefix *b)
{
	return a->bits == b->bits && same_addr(&a->net, &b->net);
}

/** The bits that a byte of a prefix counts. */
static uint8_t
mask_at(uint8_t bits, unsigned int byte)
{
	if (bits >= 8 * (byte + 1))
		return 0xff;
	return bits <= 8 * byte ? 0 : (uint8_t)(0xff00u >> (bits - 8 * byte));
}

/** Bits of the host part: `wanted` of each? */
static bool
host_part_is(const struct route_prefix *p, const struct route_addr *a, uint8_t wanted)
{
	for (unsigned int i = 0; i < bits_of(p->net.family) / 8u; i++) {
		const uint8_t host = (uint8_t)~mask_at(p->bits, i);

		if ((a->addr[i] & host) != (wanted & host))
			return false;
	}
	return true;
}

bool
route_prefix_holds(const struct route_prefix *p, const struct route_addr *a)
{
	if (p->net.family != a->family)
		return false;
	ASSERT(p->bits <= bits_of(p->net.family));
	for (unsigned int i = 0; i < sizeof(a->addr) && 8 * i < p->bits; i++) {
		if (((p->net.addr[i] ^ a->addr[i]) & mask_at(p->bits, i)) != 0)
			return false;
	}
	return true;
}

int
route_prefix_parse(const char *text, struct route_prefix *out)
{
	const char *slash = strchr(text, '/');
	const size_t len = slash != NULL ? (size_t)(slash - text) : strlen(text);
	char addr[ROUTE_TEXT];
	unsigned int bits = 0, digits = 0;

	memset(out, 0, sizeof(*out));
	if (len >= sizeof(addr))
		return -EINVAL;
	memcpy(addr, text, len);
	addr[len] = '\0';
	if (inet_pton(AF_INET, addr, out->net.addr) == 1)
		out->net.family = 4;
	else if (inet_pton(AF_INET6, addr, out->net.addr) == 1)
		out->net.family = 6;
	else
		return -EINVAL;
	out->bits = bits_of(out->net.family);
	if (slash == NULL)
		return 0;
	for (slash++; *slash >= '0' && *slash <= '9' && digits < 3; slash++, digits++)
		bits = bits * 10 + (unsigned int)(*slash - '0');
	if (*slash != '\0' || digits == 0 || bits > out->bits)
		return -EINVAL;
	out->bits = (uint8_t)bits;
	return 0;
}

const char *
route_addr_text(const struct route_addr *a, char *buf)
{
	if (inet_ntop(a->family == 4 ? AF_INET : AF_INET6, a->addr, buf, ROUTE_TEXT) == NULL)
		buf[0] = '\0';
	return buf;
}

const char *
route_prefix_text(const struct route_prefix *p, char *buf)
{
	size_t at;

	route_addr_text(&p->net, buf);
	at = strlen(buf);
	snprintf(buf + at, ROUTE_TEXT - at, "/%u", p->bits);
	return buf;
}

/* ---- the table ------------------------------------------------------------------------------ */

static struct route *
find_to(const struct route_table *t, const struct route_prefix *to)
{
	for (uint32_t i = 0; i < t->n; i++) {
		if (same_prefix(&t->v[i].to, to))
			return &t->v[i];
	}
	return NULL;
}

const struct route *
route_find(const struct route_table *t, const struct route_addr *dest)
{
	for (uint32_t i = 0; i < t->n; i++) {
		if (route_prefix_holds(&t->v[i].to, dest))
			return &t->v[i];
	}
	return NULL;
}

/** Insert it after those with as long a prefix: no two of them overlap, so any order is right. */
static enum route_fault
insert(struct route_table *t, const struct route *r)
{
	uint32_t at = 0;

	ASSERT(t->n <= t->room && r->to.bits <= bits_of(r->to.net.family));
	if (t->n >= ROUTE_MAX)
		return ROUTE_FULL;
	if (t->n == t->room) {
		const uint32_t room = t->room == 0 ? 8 : 2 * t->room;
		struct route *v = realloc(t->v, room * sizeof(*v));

		if (v == NULL)
			return ROUTE_NO_MEMORY;
		t->v = v;
		t->room = room;
	}
	while (at < t->n && t->v[at].to.bits >= r->to.bits)
		at++;
	memmove(&t->v[at + 1], &t->v[at], (t->n - at) * sizeof(*t->v));
	t->v[at] = *r;
	t->n++;
	ASSERT(at == 0 || t->v[at - 1].to.bits >= r->to.bits);
	ASSERT(at == t->n - 1 || t->v[at + 1].to.bits < r->to.bits);
	return ROUTE_OK;
}

enum route_fault
route_connect(struct route_table *t, const struct route_addr *own, uint8_t bits)
{
	struct route r = { .to = { *own, bits }, .via = *own, .source = ROUTE_CONNECTED };

	for (unsigned int i = 0; i < sizeof(own->addr); i++)
		r.to.net.addr[i] &= mask_at(bits, i);
	return insert(t, &r);
}

/** Is it a subnet's first or (IPv4) last address? One of two addresses has none. */
static bool
is_edge(const struct route_prefix *net, const struct route_addr *a)
{
	if (bits_of(net->net.family) - net->bits < 2)
		return false;
	return host_part_is(net, a, 0) || (a->family == 4 && host_part_is(net, a, 0xff));
}

static bool
is_group(const struct route_addr *a)
{
	return a->family == 4 ? a->addr[0] >= 224 : a->addr[0] == 0xff;
}

static enum route_fault
check_via(const struct route_table *t, const struct route_addr *via)
{
	static const uint8_t none[16];
	enum route_fault f = ROUTE_OFF_LINK;

	if (memcmp(via->addr, none, sizeof(none)) == 0 || is_group(via))
		return ROUTE_NO_HOST;
	for (uint32_t i = 0; i < t->n; i++) {
		const struct route *r = &t->v[i];

		if (r->source != ROUTE_CONNECTED)
			continue;
		if (same_addr(&r->via, via))
			return ROUTE_OWN;
		if (f == ROUTE_OFF_LINK && route_prefix_holds(&r->to, via))
			f = is_edge(&r->to, via) ? ROUTE_NO_HOST : ROUTE_OK;
	}
	return f;
}

enum route_fault
route_add(struct route_table *t, const struct route *r, struct route *replaced)
{
	struct route *same = find_to(t, &r->to);
	enum route_fault f;

	if (replaced != NULL)
		memset(replaced, 0, sizeof(*replaced));
	if (!host_part_is(&r->to, &r->to.net, 0))
		return ROUTE_HOST_BITS;
	if (r->via.family != r->to.net.family)
		return ROUTE_FAMILY;
	if (same != NULL && same->source == ROUTE_CONNECTED)
		return ROUTE_OWN_NET;
	f = check_via(t, &r->via);
	if (f != ROUTE_OK)
		return f;
	if (same == NULL)
		return insert(t, r);
	if (same_addr(&same->via, &r->via))
		return ROUTE_TWICE;
	if (replaced != NULL)
		*replaced = *same;
	*same = *r;
	return ROUTE_OK;
}

enum route_fault
route_del(struct route_table *t, const struct route_prefix *to, const struct route_addr *via)
{
	struct route *r = find_to(t, to);

	if (r == NULL)
		return ROUTE_NONE;
	if (r->source == ROUTE_CONNECTED)
		return ROUTE_OWN_NET;
	if (via != NULL && !same_addr(via, &r->via))
		return ROUTE_OTHER_VIA;
	ASSERT(t->n != 0 && r >= t->v && r < t->v + t->n);
	t->n--;
	memmove(r, r + 1, (size_t)(t->v + t->n - r) * sizeof(*r));
	return ROUTE_OK;
}

void
route_fini(struct route_table *t)
{
	free(t->v);
	*t = (struct route_table){ 0 };
}
