/* SPDX-License-Identifier: BSD-3-Clause */
#include "mem.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/*
 * Open addressing with linear probing, never more than half full. One writer; readers take no
 * lock. A slot's region pointer is what counts: NULL ends a search, &gone is passed over. The key
 * next to it only saves a look at the region: a reader that meets an old pointer with a new key,
 * or the other way round, finds that the region's own key is different and goes on.
 */
struct slot {
	_Atomic(struct mem_region *) region;
	_Atomic uint32_t key;
};

struct mem_table {
	uint32_t mask;
	uint32_t shift; /* of the hash */
	uint32_t used;  /* (control) */
	uint32_t capacity;
	struct slot s[] CACHE_ALIGNED;
};

static struct mem_region gone; /* where a region was removed */

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
	bytes = sizeof(*t) + ((size_t)1 << bits) * sizeof(struct slot);
	t = aligned_alloc(CACHE_LINE, (bytes + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE);
	if (t == NULL)
		return NULL;
	memset(t, 0, bytes);
	t->mask = BIT32(bits) - 1;
	t->shift = 32 - bits;
	t->capacity = capacity;
	return t;
}

void
mem_table_destroy(struct mem_table *t)
{
	free(t);
}

static inline uint32_t
home_of(const struct mem_table *t, uint32_t key)
{
	return (key * 0x9E3779B1u) >> t->shift;
}

static struct mem_region *
region_at(const struct mem_table *t, uint32_t i)
{
	return atomic_load_explicit(&t->s[i & t->mask].region, memory_order_acquire);
}

/* Slot of a key, or -1. A table of nothing but tombstones must end the search as well. */
static inline int64_t
slot_of(const struct mem_table *t, uint32_t key, struct mem_region **region)
{
	uint32_t i = home_of(t, key);

	for (uint32_t n = 0; n <= t->mask; n++, i++) {
		const struct slot *s = &t->s[i & t->mask];
		struct mem_region *r = region_at(t, i);

		if (r == NULL)
			return -1;
		if (atomic_load_explicit(&s->key, memory_order_relaxed) == key && r != &gone &&
			r->key == key) {
			*region = r;
			return i & t->mask;
		}
	}
	return -1;
}

int
mem_table_add(struct mem_table *t, struct mem_region *r)
{
	struct mem_region *other;
	uint32_t i = home_of(t, r->key);
	struct slot *s;

	if (r->va + r->length < r->va || (r->host == NULL && r->length != 0))
		return -EINVAL;
	if (slot_of(t, r->key, &other) >= 0)
		return -EEXIST;
	if (t->used >= t->capacity)
		return -ENOSPC;
	for (;; i++) { /* at most half of the slots are taken */
		other = region_at(t, i);
		if (other == NULL || other == &gone)
			break;
	}
	s = &t->s[i & t->mask];
	atomic_store_explicit(&r->valid, true, memory_order_relaxed);
	atomic_store_explicit(&s->key, r->key, memory_order_relaxed);
	atomic_store_explicit(&s->region, r, memory_order_release);
	t->used++;
	return 0;
}

int
mem_table_remove(struct mem_table *t, uint32_t key)
{
	struct mem_region *r;
	int64_t at = slot_of(t, key, &r);
	uint32_t i = (uint32_t)at;

	if (at < 0)
		return -ENOENT;
	atomic_store_explicit(&r->valid, false, memory_order_relaxed);
	atomic_store_explicit(&t->s[i].region, &gone, memory_order_release);
	t->used--;

	/* Before an empty slot no search needs a tombstone. */
	if (region_at(t, i + 1) != NULL)
		return 0;
	while (region_at(t, i) == &gone) {
		atomic_store_explicit(&t->s[i & t->mask].region, NULL, memory_order_release);
		i--;
	}
	return 0;
}

struct mem_region *
mem_table_find(const struct mem_table *t, uint32_t key)
{
	struct mem_region *r;

	return slot_of(t, key, &r) >= 0 ? r : NULL;
}

/* The region behind a key that is still good for `pd`. */
static inline enum mem_fault
resolve(const struct mem_table *t, uint32_t key, uint32_t pd, struct mem_region **region)
{
	struct mem_region *r;

	if (slot_of(t, key, &r) < 0 || !atomic_load_explicit(&r->valid, memory_order_relaxed))
		return MEM_BAD_KEY;
	if (r->pd != pd)
		return MEM_BAD_PD;
	*region = r;
	return MEM_OK;
}

enum mem_fault
mem_check(const struct mem_table *t, uint32_t key, uint32_t pd, uint64_t va, uint64_t len,
	uint8_t access, uint8_t **host)
{
	struct mem_region *r;
	enum mem_fault fault = resolve(t, key, pd, &r);
	uint64_t offset;

	if (UNLIKELY(fault != MEM_OK))
		return fault;
	/* Below the region the difference wraps, and is larger than any region's length. */
	offset = va - r->va;
	if (UNLIKELY(offset > r->length || len > r->length - offset))
		return MEM_BAD_RANGE;
	if (UNLIKELY((access & ~r->access) != 0))
		return MEM_BAD_ACCESS;
	*host = r->host + offset;
	return MEM_OK;
}

enum mem_fault
mem_check_invalidate(const struct mem_table *t, uint32_t key, uint32_t pd)
{
	struct mem_region *r;
	enum mem_fault fault = resolve(t, key, pd, &r);

	if (fault == MEM_OK && !r->remote_invalidate)
		fault = MEM_BAD_ACCESS;
	return fault;
}

void
mem_invalidate(const struct mem_table *t, uint32_t key)
{
	struct mem_region *r;

	if (slot_of(t, key, &r) >= 0)
		atomic_store_explicit(&r->valid, false, memory_order_relaxed);
}
