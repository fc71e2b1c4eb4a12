/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef MEM_WINDOW_H
#define MEM_WINDOW_H
/**
 * @file mem_window.h  Memory windows: keys that workers bind to a part of a region, and take back.
 *
 * Owner:   the control lcore makes and removes windows; any worker binds and invalidates, without
 *          a lock: who changes a window holds its `busy` for the moment, others come again later.
 * Memory:  mem_window_alloc(). A window is freed after a round trip to every worker.
 * Depends: mem.h, mem_refusal.h.
 * Spec:    IBTA vol. 1, 10.6.7 (windows); MW-01..12.
 *
 * To a check of keys a window is a region (its first member) with a range, rights and a host
 * address of its own. Its key is an index (24 bits), which stays, and a byte, which every bind
 * changes; the table finds it by the index alone, so a bind moves nothing there.
 *
 * A reader looks at `valid` first and at all else behind it, within one turn of its worker. What is
 * taken back is first not valid; the rest changes once every other worker has begun another turn
 * since (mem_reader_turn()). So nobody reads a mixture of two bindings, and nobody writes through
 * a key whose invalidation has completed.
 */
#include "mem_reach.h"
#include "mem_refusal.h"

#define MEM_READERS_MAX 64 /* workers */

struct mem_window {
	struct mem_region r;   /* first; r.valid: bound */
	struct mem_region *on; /* bound to; nobody's unless r.valid */
	uint32_t home_pd;      /* r.pd is another number while it is a QP's */
	uint32_t settling;     /* revocation that was made when it was not valid; 0: none */
	_Atomic bool busy;     /* somebody changes it */
	bool gone;             /* it is being removed */
};

/** What a bind asks for. */
struct mem_bind {
	uint32_t window; /* any key of its index */
	uint32_t key;    /* the new one; 0 with type 1: the next */
	uint32_t lkey;   /* of the region */
	uint32_t pd;     /* of the queue pair */
	uint32_t qpn;
	access_t access; /* ZERO_BASED among them */
	uint64_t addr;   /* in the region */
	uint64_t length;
};

enum mem_turn {
	MEM_TURN_DONE,
	MEM_TURN_LATER,   /* nothing is wrong: again in the next turn */
	MEM_TURN_REFUSED, /* nothing was changed; *why says why */
};

/**
 * So many workers read the table and call mem_reader_turn(). Before the first window.
 * @return 0 or -ENOMEM.
 */
int mem_table_readers(struct mem_table *t, uint32_t n);

/** A zeroed window, or NULL. Control lcore. */
struct mem_window *mem_window_alloc(void);
/** Gives it back, once every worker has begun another turn since mem_window_remove(). */
void mem_window_free(struct mem_window *w);
/**
 * Control lcore: the window has this key's index from now on, unbound. Set r.kind and home_pd
 * first.
 * @return 0, -EEXIST: the index is taken, or a region has one of its keys; -ENOSPC.
 */
int mem_window_add(struct mem_table *t, struct mem_window *w, uint32_t key);
/** Control lcore: bound or not, its keys are no key's any more. */
void mem_window_remove(struct mem_table *t, struct mem_window *w);
/** Control lcore: unbind it if it is bound through this queue pair, which is detached. */
void mem_window_leave(struct mem_window *w, uint32_t qpn);
/** Indices that are in use. Control lcore. */
uint32_t mem_windows(const struct mem_table *t);

/** Any lcore: the window whose index this key has, bound or not; NULL: none. */
static inline struct mem_window *
mem_window_at(const struct mem_table *t, uint32_t key)
{
	struct mem_window *w =
		atomic_load_explicit(&t->windows[mem_index(key) & t->mask], memory_order_acquire);

	return w != NULL && mem_index(w->r.key) == mem_index(key) ? w : NULL;
}

/** Not valid any more, and the region has one window less; nothing if it was not. Any lcore. */
void mem_window_take_back(struct mem_window *w);
/** Any lcore: region of a key, no window; or NULL. */
struct mem_region *mem_table_region(const struct mem_table *t, uint32_t key);

/** A worker's: bind. @param why of a refusal. */
enum mem_turn mem_window_bind(
	struct mem_table *t, uint32_t worker, const struct mem_bind *b, enum mem_why *why);
/**
 * A worker's: LOCAL_INV of `key` by this queue pair.
 * @param begun in and out: an earlier call for the same request has revoked the key already.
 */
enum mem_turn mem_window_invalidate(struct mem_table *t, uint32_t worker, uint32_t key,
	uint64_t user, bool *begun, enum mem_why *why);

/** A bind was refused: the key that it is about, and the region if it is about that. */
void mem_refusal_of_bind(const struct mem_table *t, const struct mem_bind *b, enum mem_why why,
	struct mem_refusal *r);

/**
 * Is a region bound to, or being deregistered? Control lcore: claim it for good, so that no bind
 * succeeds from then on. @return 0, or how many windows are bound to it.
 */
uint32_t mem_region_claim(struct mem_region *r);
/** It stays after all. */
void mem_region_release(struct mem_region *r);

#endif
