/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef FAST_H
#define FAST_H
/**
 * @file fast.h  Fast-register regions of an end, and the work requests that change them.
 *
 * The owner registers one by a work request (REG_MR: a BIND_MW of its kind), and tells its peer of
 * it; the peer uses it, and one of both invalidates it. Then it is registered anew, with another
 * key. Who is polite waits until nobody uses it.
 *
 * Owner:   one process; no threads.
 * Memory:  an end's, from pair_connect() until the next one.
 * Depends: mem, requester.
 */
#include <stdbool.h>
#include <stdint.h>

#include "mem_window.h"
#include "requester.h"

enum { FASTS = 3 };

enum fast_state {
	FAST_FREE,
	FAST_POSTED, /* REG_MR is posted */
	FAST_VALID,
	FAST_LEAVING, /* whoever invalidates it has posted that */
};

struct fast {
	struct mem_window *w;
	uint64_t va;
	uint32_t key;    /* newest; it names something while it is VALID, and until it has left */
	uint32_t old;    /* the one before it; 0: none */
	uint32_t target; /* offset in target memory */
	uint32_t bytes;
	access_t access;
	uint8_t state; /* enum fast_state */
};

struct sim;
struct end;
struct work;

void fast_create(struct sim *s, struct end *e);
void fast_destroy(struct end *e);

/** Post a request without a packet to `e`, if there is one to post. */
bool fast_post(struct sim *s, struct end *e);
/** A request that needs a key of the peer takes that of a fast-register region, if one fits. */
bool fast_aim(struct sim *s, struct end *e, struct requester_wr *w, struct work *k);
/** A key that is good no more, or not for this. @return was there one? */
bool fast_spoil(struct sim *s, struct end *e, struct requester_wr *w, struct work *k);
/** A SEND with Invalidate for a region of the peer. */
bool fast_choose_inv(struct sim *s, struct end *e, struct requester_wr *w, struct work *k);
/** That SEND will not come. */
void fast_keep(struct end *peer, const struct work *k);
/** It has come. */
void fast_invalidated(struct sim *s, struct end *e, uint32_t key);

/** A request without a packet is next: try it. */
enum mem_turn fast_work(struct sim *s, struct end *e, enum requester_fault *fault);

#endif
