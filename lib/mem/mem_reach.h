/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef MEM_REACH_H
#define MEM_REACH_H
/**
 * @file mem_reach.h  The key table's layout, and the check of a good key without a call.
 *
 * Owner:   table.c; the data path reads through mem_reach() alone.
 * Memory:  mem_table_create().
 * Depends: mem.h.
 */
#include <string.h>

#include "invariant.h"
#include "mem.h"

struct mem_slot {
	_Atomic(struct mem_region *) region; /* NULL ends a search */
	_Atomic uint32_t key;
};

struct mem_window;

/** How far workers have come: see mem_window.h. A line for each, which it alone writes. */
struct mem_reader {
	_Atomic uint32_t seen; /* revocations there were when it began its turn */
} CACHE_ALIGNED;

struct mem_readers {
	_Atomic uint32_t revocations;
	uint32_t n;
	struct mem_reader of[];
};

struct mem_table {
	uint32_t mask;
	uint32_t shift; /* of the hash */
	_Atomic uint32_t moves;
	uint32_t used; /* (control) */
	uint32_t capacity;
	uint32_t windows_n;                    /* (control) at most `capacity` */
	_Atomic(struct mem_window *) *windows; /* by the low bits of a key's index */
	struct mem_readers *readers;
	struct mem_slot s[] CACHE_ALIGNED;
};

/** Slot where the search for a key begins. */
static inline uint32_t
mem_home(const struct mem_table *t, uint32_t key)
{
	const uint32_t slot = (key * 0x9E3779B1u) >> t->shift;

	ASSERT(slot <= t->mask);
	return slot;
}

/** A key but for the byte that a bind changes. */
static inline uint32_t
mem_index(uint32_t key)
{
	return key >> 8;
}

/** The worker begins a turn: what was revoked before, it does not use any more. */
static ALWAYS_INLINE void
mem_reader_turn(struct mem_table *t, uint32_t worker)
{
	struct mem_readers *all = t->readers;
	uint32_t n;

	if (all->n <= 1)
		return;
	n = atomic_load_explicit(&all->revocations, memory_order_acquire);
	if (UNLIKELY(atomic_load_explicit(&all->of[worker].seen, memory_order_relaxed) != n))
		atomic_store_explicit(&all->of[worker].seen, n, memory_order_release);
}

/** The window that is bound to this key, as a region; NULL: none is. */
const struct mem_region *mem_window_bound(const struct mem_table *t, uint32_t key);

/** Does the key still hold? A worker may have revoked it a moment ago. Cost: one load. */
static ALWAYS_INLINE bool
mem_is_valid(const struct mem_region *r)
{
	return atomic_load_explicit(&r->valid, memory_order_relaxed);
}

/** Of a region whose key, protection domain and access are good: where `va` is; NULL: not in it. */
static ALWAYS_INLINE uint8_t *
mem_reach_in(const struct mem_region *r, uint64_t va, uint64_t len)
{
	const uint64_t offset = va - r->va; /* wraps below the region: larger than any length */

	ASSERT(r->va + r->length >= r->va);
	if (UNLIKELY(!mem_is_valid(r)) || UNLIKELY(offset > r->length) ||
		UNLIKELY(len > r->length - offset))
		return NULL;
	return r->host + offset;
}

/**
 * mem_check() where the key is a region's, in its first slot, and all is good.
 * @param region out: that the key named; while it is `valid` the answer stands, for this worker.
 * @return where `va` is; NULL: ask mem_check(). Cost: about 20 instructions.
 */
static ALWAYS_INLINE uint8_t *
mem_reach(const struct mem_table *t, uint32_t key, uint32_t pd, uint64_t va, uint64_t len,
	access_t access, const struct mem_region **region)
{
	const size_t home = mem_home(t, key);
	const struct mem_region *r =
		atomic_load_explicit(&t->s[home].region, memory_order_acquire);
	uint64_t offset, room;

	if (UNLIKELY(r == NULL))
		return NULL;
	offset = va - r->va;
	/* One test of all, and not mem_reach_in(): a SEND takes 15 cycles less. */
	if (UNLIKELY(r->key != key || r->pd != pd || (access & ~r->access) != 0 ||
		     !mem_is_valid(r) || __builtin_sub_overflow(r->length, len, &room) ||
		     offset > room))
		return NULL;
	*region = r;
	return r->host + offset;
}

/** The same of a key that is a window's: for remote access alone. */
uint8_t *mem_reach_window(const struct mem_table *t, uint32_t key, uint64_t user, uint64_t va,
	uint64_t len, access_t access, const struct mem_region **region);

/** The same of a key that a peer names, of either. @param user mem_user(). */
static ALWAYS_INLINE uint8_t *
mem_reach_remote(const struct mem_table *t, uint32_t key, uint64_t user, uint64_t va, uint64_t len,
	access_t access, const struct mem_region **region)
{
	uint8_t *host = mem_reach(t, key, (uint32_t)user, va, len, access, region);

	return LIKELY(host != NULL) ? host
				    : mem_reach_window(t, key, user, va, len, access, region);
}

#endif
