/* SPDX-License-Identifier: BSD-3-Clause */
#include "mem_window.h"
#include "invariant.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/*
 * Open addressing with linear probing, never more than half full. One writer; readers take no
 * lock and never wait. Removal closes the gap by moving later entries up, so that no tombstones
 * pile up over the years: each entry is in its new slot before it leaves the old one, and `moves`
 * is counted in between. A reader that finds its key is right; one that does not may have been
 * overtaken by a move, and searches again if `moves` has changed.
 *
 * The key next to the pointer only saves a look at the region: a reader that meets the pointer of
 * one entry with the key of another finds that the region's own key is different, and goes on.
 */

struct mem_region *
mem_region_alloc(void)
{
	size_t bytes = (sizeof(struct mem_region) + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE;
	struct mem_region *r = aligned_alloc(CACHE_LINE, bytes);

	if (r != NULL)
		memset(r, 0, bytes);
	return r;
}

void
mem_region_free(struct mem_region *r)
{
	if (r == NULL)
		return;
	ASSERT(!atomic_load_explicit(&r->valid, memory_order_relaxed)); /* no key leads here */
	mem_area_destroy(&r->area);
	free(r);
}

struct mem_table *
mem_table_create(uint32_t capacity)
{
	uint32_t bits = 3;
	struct mem_table *t;
	size_t bytes;

	if (capacity == 0 || capacity > BIT32(28))
		return NULL;
	while (BIT32(bits) < 2 * capacity)
		bits++;
	bytes = sizeof(*t) + ((size_t)1 << bits) * sizeof(struct mem_slot);
	t = aligned_alloc(CACHE_LINE, (bytes + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE);
	if (t == NULL)
		return NULL;
	memset(t, 0, bytes);
	t->windows = calloc((size_t)1 << bits, sizeof(t->windows[0]));
	if (t->windows == NULL || mem_table_readers(t, 1) != 0) {
		mem_table_destroy(t);
		return NULL;
	}
	t->mask = BIT32(bits) - 1;
	t->shift = 32 - bits;
	t->capacity = capacity;
	ASSERT(capacity <= (t->mask + 1) / 2); /* an empty slot ends each search */
	return t;
}

uint32_t
mem_table_room(const struct mem_table *t)
{
	return t->capacity - t->used;
}

void
mem_table_destroy(struct mem_table *t)
{
	if (t == NULL)
		return;
	free((void *)t->windows);
	free(t->readers);
	free(t);
}

static struct mem_region *
region_at(const struct mem_table *t, uint32_t i)
{
	return atomic_load_explicit(&t->s[i & t->mask].region, memory_order_acquire);
}

/* Slot where the search for a key ends: its own, or an empty one. */
static inline uint32_t
probe(const struct mem_table *t, uint32_t key, struct mem_region **region)
{
	uint32_t i = mem_home(t, key);

	for (;; i++) {
		const struct mem_slot *s = &t->s[i & t->mask];

		*region = region_at(t, i);
		if (*region == NULL)
			break;
		if (atomic_load_explicit(&s->key, memory_order_acquire) == key &&
			(*region)->key == key)
			break;
	}
	return i & t->mask;
}

struct mem_region *
mem_table_region(const struct mem_table *t, uint32_t key)
{
	uint32_t moves = atomic_load_explicit(&t->moves, memory_order_acquire);
	struct mem_region *r;

	for (;;) {
		uint32_t before = moves;

		probe(t, key, &r);
		if (LIKELY(r != NULL))
			return r;
		moves = atomic_load_explicit(&t->moves, memory_order_acquire);
		if (LIKELY(moves == before))
			return NULL;
	}
}

struct mem_region *
mem_table_find(const struct mem_table *t, uint32_t key)
{
	struct mem_region *r = mem_table_region(t, key);
	struct mem_window *w = r == NULL ? mem_window_at(t, key) : NULL;

	return w != NULL && w->r.key == key ? &w->r : r;
}

static void
fill(struct mem_table *t, uint32_t i, struct mem_region *r)
{
	ASSERT(i <= t->mask);
	atomic_store_explicit(&t->s[i].key, r->key, memory_order_release);
	atomic_store_explicit(&t->s[i].region, r, memory_order_release);
}

int
mem_table_add(struct mem_table *t, struct mem_region *r)
{
	struct mem_region *other;
	uint32_t i;

	if (r->va + r->length < r->va || (r->host == NULL && r->length != 0))
		return -EINVAL;
	i = probe(t, r->key, &other);
	if (other != NULL || mem_window_at(t, r->key) != NULL)
		return -EEXIST;
	if (t->used >= t->capacity)
		return -ENOSPC;
	atomic_store_explicit(&r->windows, 0, memory_order_relaxed);
	atomic_store_explicit(&r->valid, true, memory_order_relaxed);
	fill(t, i, r);
	t->used++;
	ASSERT(t->used <= t->capacity);
	ASSERT(mem_table_find(t, r->key) == r);
	return 0;
}

/* A reader that sees the new count sees everything written before it; then slots may change. */
static void
count_move(struct mem_table *t)
{
	uint32_t moves = atomic_load_explicit(&t->moves, memory_order_relaxed);

	atomic_store_explicit(&t->moves, moves + 1, memory_order_release);
}

int
mem_table_remove(struct mem_table *t, uint32_t key)
{
	struct mem_region *r;
	uint32_t gap = probe(t, key, &r);

	if (r == NULL)
		return -ENOENT;
	atomic_store_explicit(&r->valid, false, memory_order_relaxed);
	for (uint32_t i = gap + 1; (r = region_at(t, i)) != NULL; i++) {
		/* Where a search for it starts: behind the gap, it would not be found there. */
		uint32_t from_home = (i - mem_home(t, r->key)) & t->mask;

		if (from_home < ((i - gap) & t->mask))
			continue;
		count_move(t);
		fill(t, gap, r);
		gap = i & t->mask;
	}
	count_move(t);
	atomic_store_explicit(&t->s[gap].region, NULL, memory_order_release);
	ASSERT(t->used != 0);
	t->used--;
	ASSERT(mem_table_find(t, key) == NULL);
	return 0;
}

/* The region behind a key that is still good for `pd`. */
static inline enum mem_fault
resolve(const struct mem_table *t, uint32_t key, uint64_t user, struct mem_region **region)
{
	struct mem_region *r = mem_table_find(t, key);

	/* A window's other fields may be read once it is valid, its key among them. */
	if (UNLIKELY(r == NULL || !atomic_load_explicit(&r->valid, memory_order_acquire)) ||
		UNLIKELY(r->key != key))
		return MEM_BAD_KEY;
	if (r->pd != (uint32_t)user && r->pd != mem_pd_of_qp((uint32_t)(user >> 32)))
		return MEM_BAD_PD;
	*region = r;
	return MEM_OK;
}

enum mem_fault
mem_check(const struct mem_table *t, uint32_t key, uint64_t user, uint64_t va, uint64_t len,
	access_t access, uint8_t **host)
{
	struct mem_region *r;
	enum mem_fault fault = resolve(t, key, user, &r);
	uint64_t offset;

	if (UNLIKELY(fault != MEM_OK))
		return fault;
	if (UNLIKELY(r->kind != MEM_REGION) && r->kind != MEM_FAST && (access & MEM_REMOTE) == 0)
		return MEM_BAD_KEY; /* a window has no L_Key */
	/* Below the region the difference wraps, and is larger than any region's length. */
	offset = va - r->va;
	if (UNLIKELY(offset > r->length || len > r->length - offset))
		return MEM_BAD_RANGE;
	if (UNLIKELY((access & ~r->access) != 0))
		return MEM_BAD_ACCESS;
	ASSERT(r->host != NULL || len == 0);
	*host = r->host + offset;
	return MEM_OK;
}

enum mem_fault
mem_check_invalidate(const struct mem_table *t, uint32_t key, uint64_t user)
{
	struct mem_region *r;
	enum mem_fault fault = resolve(t, key, user, &r);

	if (fault == MEM_OK && (!r->remote_invalidate ||
				       atomic_load_explicit(&r->windows, memory_order_relaxed) > 0))
		fault = MEM_BAD_ACCESS;
	return fault;
}

void
mem_invalidate(const struct mem_table *t, uint32_t key)
{
	struct mem_region *r = mem_table_find(t, key);

	if (r != NULL && r->kind != MEM_REGION)
		mem_window_take_back((struct mem_window *)(void *)r);
	else if (r != NULL)
		atomic_store_explicit(&r->valid, false, memory_order_relaxed);
}
