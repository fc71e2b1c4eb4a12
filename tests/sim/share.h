/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SIM_SHARE_H
#define SIM_SHARE_H
/**
 * @file share.h  A queue that all pairs share in each direction, and ends that go by cc.algo.
 *
 * Owner:   one process; no threads.
 * Memory:  in struct sim and struct end.
 * Depends: cc, impair (bottleneck.h).
 */
#include "bottleneck.h"
#include "cc_delay.h"

struct end;
struct packet;
struct requester_verdict;
struct sim;
struct wire_pkt;

/** In struct sim. */
struct share {
	bool all; /* --shared: every run that may lose packets has it, with req.read_gap=fill */
	bool on;
	struct bottleneck neck[2];
};

/** In struct end. */
struct end_share {
	struct cc cc;
	uint32_t window; /* of the requester, before any round trip */
	ns_t cnp_next;   /* it may send one */
	ns_t wakes_at;   /* packets wait for their turn; 0: none do */
	bool answers_wait;
};

/** Before the links of a seed are chosen. */
void share_choose(struct sim *s);
/** The attributes of an end are chosen. */
void share_begin(struct sim *s, struct end *e);
/** A packet comes to the queue. @return when it leaves; 0: never. */
ns_t share_queue(struct sim *s, const struct end *e, struct packet *p);
/** It has arrived at `e`. @return it was a CNP. */
bool share_arrived(struct sim *s, struct end *e, const struct wire_pkt *p, bool corrupt);
/** May a request, or a READ response, leave now? */
bool share_may(struct sim *s, struct end *e);
/** It has left. */
void share_sent(struct sim *s, struct end *e, uint32_t len);
/** What the requester says. */
void share_heard(struct sim *s, struct end *e, const struct requester_verdict *v);

#endif
