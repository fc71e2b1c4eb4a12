/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef WINDOWS_H
#define WINDOWS_H
/**
 * @file windows.h  Memory windows and fast-register regions of an end, and the work requests that
 *                  change them.
 *
 * The owner binds one by a work request (REG_MR is a BIND_MW of its kind), and tells its peer of
 * it; the peer uses it, and one of both invalidates it. A window of type 1 is bound again, or to
 * nothing, while it is bound. Every bind has another key. Who is polite waits until nobody uses it.
 * One window of type 2 is another queue pair's: nobody here may use or change it.
 *
 * Owner:   one process; no threads.
 * Memory:  an end's, from pair_connect() until the next one.
 * Depends: mem, requester.
 */
#include <stdbool.h>
#include <stdint.h>

#include "mem_window.h"
#include "requester.h"

enum { WINDOWS = 7 };

enum window_state {
	WINDOW_FREE,
	WINDOW_POSTED, /* a bind is posted */
	WINDOW_VALID,
	WINDOW_LEAVING, /* whoever invalidates it has posted that */
};

struct mr;

/** What a key leads to. */
struct binding {
	struct mr *on;
	uint64_t va;
	uint32_t key;
	uint32_t target; /* offset in target memory */
	uint32_t bytes;
	access_t access;
};

struct window {
	struct mem_window *w;
	struct binding now; /* newest; good while it is VALID, and until it has left */
	struct binding was; /* the one before it; good until it is replaced */
	uint8_t state;      /* enum window_state */
	bool bound;         /* one of them is good */
	bool foreign;       /* another queue pair's */
};

struct sim;
struct end;
struct work;

void window_create(struct sim *s, struct end *e);
void window_destroy(struct sim *s, struct end *e);

/** Post a request without a packet to `e`, if there is one to post. */
bool window_post(struct sim *s, struct end *e);
/** A request without a packet is next: try it. */
enum mem_turn window_work(struct sim *s, struct end *e, enum requester_fault *fault);

/** Number of a window, for work.window and work.own. */
uint8_t window_place(const struct end *e, const struct window *win);

/* ---- oracle_window.c */

/** A protection domain that no queue pair here has. */
#define WINDOW_OTHER_PD 2
/** Whose keys the peer of an end names. */
uint64_t user_of(const struct end *e);
/** Another queue pair of this end. */
uint32_t window_other_qpn(const struct end *e);

/** The keys of a window lead where they must, and nowhere else. */
void window_check(struct sim *s, const struct end *e, const struct window *win);
/** MW-10: regions stay as long as something is bound to them. */
void window_check_regions(struct sim *s, struct end *e);

/* ---- windows_peer.c */

/** A request that needs a key of the peer takes that of a window, if one fits. */
bool window_aim(struct sim *s, struct end *e, struct requester_wr *w, struct work *k);
/** A key that is good no more, or not for this. @return was there one? */
bool window_spoil(struct sim *s, struct end *e, struct requester_wr *w, struct work *k);
/** A SEND with Invalidate for a window of the peer. */
bool window_choose_inv(struct sim *s, struct end *e, struct requester_wr *w, struct work *k);
/** That SEND names a key that it may not take back, or none. */
void window_spoil_inv(struct sim *s, struct end *e, struct requester_wr *w, const struct work *k);
/** It has come. */
void window_invalidated(struct sim *s, struct end *e, uint32_t key);

#endif
