/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef NEIGH_H
#define NEIGH_H
/**
 * @file neigh.h  Neighbours: which MAC an IP address has, and the QPs that wait for it.
 *
 * Owner:   control lcore.
 * Memory:  entries are allocated and bounded by NEIGH_MAX; paths of QPs are linked into them.
 * Time:    `now` from the control's turn. Requests go out at once, after 100 ms, 300 ms, then each
 *          second for as long as a QP wants the address.
 * Depends: conf wire.
 */
#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "clock.h"
#include "conf.h"

#define NEIGH_MAX     65536
#define NEIGH_LEARNED 4096 /* entries made for strangers that asked for us */
#define NEIGH_BUCKETS 4096

struct control;
struct qp_rec;

/** One path of a QP, and who is at its end. */
struct neigh_link {
	struct neigh *neigh; /* NULL: none, or its MAC was given */
	TAILQ_ENTRY(neigh_link) on;
	struct qp_rec *rec;
	uint32_t turn; /* of neigh->turn, as the worker has it */
};

/** INCOMPLETE, REACHABLE, PERMANENT (configured). */
enum neigh_state { NEIGH_INCOMPLETE, NEIGH_REACHABLE, NEIGH_STATIC };

struct neigh {
	struct neigh *chain;
	TAILQ_ENTRY(neigh) all;
	TAILQ_ENTRY(neigh) work; /* on `waiting` or on `changed` */
	TAILQ_HEAD(neigh_links, neigh_link) links;
	struct conf_ip ip;
	uint16_t port; /* index in conf->ports */
	uint16_t vlan; /* 0: untagged */
	uint8_t mac[6];
	uint8_t state; /* enum neigh_state */
	uint8_t on;    /* 0: no list, 1: waiting, 2: changed */
	uint32_t tries;
	uint32_t turn; /* goes up when the MAC changes; QPs remember what they have */
	ns_t next;     /* next request */
};

TAILQ_HEAD(neigh_list, neigh);

struct neigh_table {
	struct neigh *bucket[NEIGH_BUCKETS];
	struct neigh_list all;
	struct neigh_list waiting;
	struct neigh_list changed;
	uint32_t n;
	uint32_t learned;
};

struct neigh_key {
	struct conf_ip ip;
	uint16_t port;
	uint16_t vlan;
};

void neigh_init(struct neigh_table *t);
void neigh_fini(struct neigh_table *t);
/** Static entries of the configuration. @return 0 or -ENOMEM. */
int neigh_configure(struct control *c);
/** The path goes there: find or make the entry and link it. @return 0, -ENOMEM, -ENOSPC. */
int neigh_use(struct control *c, const struct neigh_key *key, struct neigh_link *link);
/** The path does not go there any more. */
void neigh_leave(struct control *c, struct neigh_link *link);
/** `link` goes where `other` goes. */
void neigh_join(struct control *c, struct neigh_link *link, const struct neigh_link *other);
/**
 * Somebody said where they are. Static entries stay; others change when known, or when
 * `for_us` (they asked for one of our addresses, or answered us).
 */
void neigh_learn(struct control *c, const struct neigh_key *key, const uint8_t mac[6], bool for_us);
/** Requests that are due, and updates of QPs whose neighbour changed. @return pieces of work. */
uint32_t neigh_poll(struct control *c);
/** "REACHABLE" */
const char *neigh_state_name(enum neigh_state s);
json_t *neigh_list_json(struct control *c);

#endif
