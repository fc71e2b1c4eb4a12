/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef NEIGH_H
#define NEIGH_H
/**
 * @file neigh.h  Neighbours: which MAC an IP address has, and the QPs that wait for it.
 *
 * Owner:   control lcore.
 * Memory:  entries are allocated and bounded by NEIGH_MAX, those for one user's applications by
 *          NEIGH_USER, and a part is the operator's (quota.h); paths of QPs are linked into them.
 * Time:    `now` from the control's turn. Requests go out at once, after 100 ms, 300 ms, then each
 *          second for as long as a QP wants the address. What was heard is believed for NEIGH_OLD:
 *          then an address that a QP wants is asked for anew, and its MAC is used meanwhile; five
 *          times, then each NEIGH_OLD.
 * Depends: conf wire.
 * Spec:    RT-01, RT-05..07.
 */
#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "clock.h"
#include "conf.h"
#include "quota.h"

#define NEIGH_MAX  65536
#define NEIGH_USER 16384 /* of these, entries for applications of one user */
#define NEIGH_LEARNED \
	4096 /* entries that no path uses: strangers asked for us, or paths are gone */
#define NEIGH_BUCKETS 4096
#define NEIGH_OLD     (30 * TIME_NS_PER_S) /* RFC 4861, 10: as long as a neighbour is reachable */
#define NEIGH_SILENT  3 /* requests without an answer: the MAC that was known is doubtful */
#define NEIGH_FAILED  5 /* requests without an answer: still asked, but said to have failed */

struct net;

/** One path of a QP, and who is at its end. */
struct neigh_link {
	struct neigh *neigh; /* NULL: none, or its MAC was given */
	TAILQ_ENTRY(neigh_link) on;
	const struct conf_ah *ah; /* where the path leads to */
	void *user;               /* whose path it is: struct net_up */
	bool of_handle;           /* ... an address handle; else a QP */
	bool of_user;             /* it is an application's, of user `uid`; else the operator's */
	uint32_t uid;
	uint32_t qpn;  /* the QP, for the log */
	uint32_t turn; /* of neigh->turn, as the worker has it */
};

enum neigh_state {
	NEIGH_INCOMPLETE, /* asked for, no answer yet */
	NEIGH_REACHABLE,
	NEIGH_STALE,    /* it had this MAC, which is used; asked for again */
	NEIGH_STATIC,   /* given by configuration or operator */
	NEIGH_NO_ROUTE, /* no next hop at all: `ip` is the destination, and nobody is asked */
};

/** A user whose applications have paths. */
struct neigh_maker {
	TAILQ_ENTRY(neigh_maker) all;
	uint32_t uid;
	uint32_t has; /* entries */
};

struct neigh {
	struct neigh *chain;
	struct neigh_maker *maker; /* whose it is; NULL: the operator's, or learned */
	TAILQ_ENTRY(neigh) all;
	TAILQ_ENTRY(neigh) waits;   /* on `waiting`, with `is_waiting` */
	TAILQ_ENTRY(neigh) changes; /* on `changed`, with `is_changed` */
	TAILQ_ENTRY(neigh) ages;    /* on `young`, with `is_young` */
	TAILQ_HEAD(neigh_links, neigh_link) links;
	struct conf_ip ip;
	uint16_t port; /* index in conf->ports */
	uint16_t vlan; /* 0: untagged */
	uint8_t mac[6];
	uint8_t state; /* enum neigh_state */
	bool is_waiting;
	bool is_changed;
	bool is_learned; /* counted in table->learned */
	bool is_young;   /* heard of within NEIGH_OLD */
	uint32_t turn;   /* goes up when the MAC changes; QPs remember what they have */
	uint32_t links_n;
	uint32_t tries; /* requests since the last answer */
	uint64_t asked; /* requests in all */
	ns_t next;      /* next request */
	ns_t first_try; /* time of the first of `tries` */
	ns_t last_try;
	ns_t heard; /* when it said its MAC, 0: never */
};

TAILQ_HEAD(neigh_list, neigh);

struct neigh_table {
	struct neigh *bucket[NEIGH_BUCKETS];
	struct neigh_list all;
	struct neigh_list waiting;
	struct neigh_list changed;
	struct neigh_list young;          /* the one heard of longest ago first */
	TAILQ_HEAD(, neigh_maker) makers; /* of at least one entry */
	struct quota quota;               /* of entries */
	uint32_t n;
	uint32_t learned;
	uint64_t secret; /* of the buckets: addresses are chosen by others */
};

struct neigh_key {
	struct conf_ip ip;
	uint16_t port;
	uint16_t vlan;
	bool no_route; /* the entry that stands for NEIGH_NO_ROUTE */
};

/** An empty table. */
void neigh_init(struct neigh_table *t);
/** Every entry goes; paths must not be linked into them any more. */
void neigh_fini(struct neigh_table *t);
/** Static entries of the configuration. @return 0 or -ENOMEM. */
int neigh_configure(struct net *net);
/**
 * The path goes there: find or make the entry and link it. @return 0, -ENOMEM, -ENOSPC, or -EDQUOT:
 * its user has as many entries as one may have.
 */
int neigh_use(struct net *net, const struct neigh_key *key, struct neigh_link *link);
/** The path does not go there any more. */
void neigh_leave(struct net *net, struct neigh_link *link);
/** Its path is to be told of the MAC once more, in turn. @param link of no neighbour: nothing. */
void neigh_tell(struct net *net, struct neigh_link *link);
/** `link` goes where `other` goes. */
void neigh_join(struct net *net, struct neigh_link *link, const struct neigh_link *other);
/**
 * Point the path of a running QP to another neighbour: as neigh_use(), and the worker is told the
 * new MAC, or that it is not known yet. @return 1 if it went elsewhere before; else as neigh_use().
 */
int neigh_reroute(struct net *net, const struct neigh_key *key, struct neigh_link *link);
/**
 * Somebody said where they are. Static entries stay; others change when known, or when
 * `for_us` (they asked for one of our addresses, or answered us).
 */
void neigh_learn(struct net *net, const struct neigh_key *key, const uint8_t mac[6], bool for_us);
/**
 * Somebody said where they are, but does not insist (RFC 4861, 7.2.5: override is not set). @return
 * true: another MAC is known, and stays; whoever has that one is asked. Not so once it is silent.
 */
bool neigh_doubted(struct net *net, const struct neigh_key *key, const uint8_t mac[6]);
/** Somebody else says that an address of the port is theirs. */
void neigh_claimed(struct net *net, const struct neigh_key *key, const uint8_t mac[6]);
/** Does a fixed entry say that this address is on the port's link? */
bool neigh_is_static(const struct net *net, uint16_t port, const struct conf_ip *ip);
/** Is there a MAC to send to? */
static inline bool
neigh_has_mac(const struct neigh *n)
{
	return n->state == NEIGH_REACHABLE || n->state == NEIGH_STALE || n->state == NEIGH_STATIC;
}
/**
 * Entries that are too old, requests that are due, and updates of QPs whose neighbour changed.
 * @return pieces of work.
 */
uint32_t neigh_poll(struct net *net);

/* neigh_admin.c: what an operator does to the table */
/** A fixed entry, in place of what is known of the address. @return 0, -ENOMEM, -ENOSPC. */
int neigh_fix(struct net *net, uint16_t port, const struct conf_ip *ip, const uint8_t mac[6]);
/**
 * Forget an address, fixed or not; one that QPs use is asked for anew, and they keep the MAC until
 * there is an answer. @return how many entries it had.
 */
uint32_t neigh_forget(struct net *net, uint16_t port, const struct conf_ip *ip);
/** The same with all that are not fixed. @param port -1: every port. @return how many. */
uint32_t neigh_flush(struct net *net, int port);

/* neigh_view.c: what there is to say of them */
/** "INCOMPLETE"; "FAILED" after so many requests in vain. */
const char *neigh_state_name(enum neigh_state state, uint32_t tries);
/** All entries as an array; a new reference, NULL: no memory. */
json_t *neigh_list_json(struct net *net);
/**
 * Who is at the end of a path, for qp_query and explanations: ip, state, mac, how often and when it
 * was asked. null: the MAC was given with the path, or there is no path.
 */
json_t *neigh_json(const struct net *net, const struct neigh_link *link);
/** The same as a sentence; false: there is nothing to say. */
bool neigh_text(const struct net *net, const struct neigh_link *link, char *buf, size_t room);

#endif
