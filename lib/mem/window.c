/* SPDX-License-Identifier: BSD-3-Clause */
#include "mem_window.h"
#include "invariant.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

/* mem_region.windows: being deregistered. */
#define CLAIMED (-1)

int
mem_table_readers(struct mem_table *t, uint32_t n)
{
	const size_t bytes = sizeof(struct mem_readers) + n * sizeof(struct mem_reader);
	struct mem_readers *all =
		aligned_alloc(CACHE_LINE, (bytes + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE);

	ASSERT(n <= MEM_READERS_MAX && t->windows_n == 0);
	if (all == NULL)
		return -ENOMEM;
	memset(all, 0, bytes);
	all->n = n;
	free(t->readers);
	t->readers = all;
	return 0;
}

/* ---- regions under windows ------------------------------------------------------------------- */

uint32_t
mem_region_claim(struct mem_region *r)
{
	int32_t none = 0;

	if (atomic_compare_exchange_strong(&r->windows, &none, CLAIMED) || none == CLAIMED)
		return 0;
	return (uint32_t)none;
}

void
mem_region_release(struct mem_region *r)
{
	atomic_store(&r->windows, 0);
}

/* One window more, unless the region is on its way out. */
static bool
use(struct mem_region *r)
{
	int32_t n = atomic_load(&r->windows);

	while (n != CLAIMED) {
		if (atomic_compare_exchange_weak(&r->windows, &n, n + 1))
			return true;
	}
	return false;
}

/* ---- control lcore --------------------------------------------------------------------------- */

struct mem_window *
mem_window_alloc(void)
{
	const size_t bytes = (sizeof(struct mem_window) + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE;
	struct mem_window *w = aligned_alloc(CACHE_LINE, bytes);

	if (w != NULL)
		memset(w, 0, bytes);
	return w;
}

void
mem_window_free(struct mem_window *w)
{
	free(w);
}

uint32_t
mem_windows(const struct mem_table *t)
{
	return t->windows_n;
}

/* Does a region have any key of this index? */
static bool
is_a_regions(const struct mem_table *t, uint32_t key)
{
	for (uint32_t byte = 0; byte <= UINT8_MAX; byte++) {
		if (mem_table_region(t, (key & ~(uint32_t)UINT8_MAX) | byte) != NULL)
			return true;
	}
	return false;
}

int
mem_window_add(struct mem_table *t, struct mem_window *w, uint32_t key)
{
	_Atomic(struct mem_window *) *slot = &t->windows[mem_index(key) & t->mask];

	ASSERT(w->r.kind != MEM_REGION && !mem_is_valid(&w->r));
	if (t->windows_n == t->capacity)
		return -ENOSPC;
	if (mem_index(key) == 0 || atomic_load(slot) != NULL || is_a_regions(t, key))
		return -EEXIST;
	w->r.key = key;
	w->r.pd = w->home_pd;
	atomic_store_explicit(slot, w, memory_order_release);
	t->windows_n++;
	return 0;
}

/* Workers hold it for some hundred instructions, and come again where they do not get it. */
static void
seize(struct mem_window *w)
{
	while (atomic_exchange_explicit(&w->busy, true, memory_order_acquire))
		sched_yield();
}

static void
let_go(struct mem_window *w)
{
	atomic_store_explicit(&w->busy, false, memory_order_release);
}

void
mem_window_take_back(struct mem_window *w)
{
	if (atomic_exchange(&w->r.valid, false))
		atomic_fetch_sub(&w->on->windows, 1);
}

void
mem_window_remove(struct mem_table *t, struct mem_window *w)
{
	seize(w);
	w->gone = true;
	atomic_store_explicit(
		&t->windows[mem_index(w->r.key) & t->mask], NULL, memory_order_release);
	mem_window_take_back(w);
	t->windows_n--;
	let_go(w);
}

void
mem_window_leave(struct mem_window *w, uint32_t qpn)
{
	seize(w);
	if (mem_is_valid(&w->r) && w->r.pd == mem_pd_of_qp(qpn))
		mem_window_take_back(w);
	let_go(w);
}

/* ---- workers --------------------------------------------------------------------------------- */

const struct mem_region *
mem_window_bound(const struct mem_table *t, uint32_t key)
{
	const struct mem_window *w = mem_window_at(t, key);

	/* In this order: what is read behind `valid` belongs to it. */
	if (w == NULL || !atomic_load_explicit(&w->r.valid, memory_order_acquire) ||
		w->r.key != key)
		return NULL;
	return &w->r;
}

uint8_t *
mem_reach_window(const struct mem_table *t, uint32_t key, uint64_t user, uint64_t va, uint64_t len,
	access_t access, const struct mem_region **region)
{
	const struct mem_region *r = mem_window_bound(t, key);

	if (r == NULL || ((access & MEM_REMOTE) == 0 && r->kind != MEM_FAST) ||
		(access & ~r->access) != 0 || !mem_reach_in(r, va, len))
		return NULL;
	if (r->pd != (uint32_t)user && r->pd != mem_pd_of_qp((uint32_t)(user >> 32)))
		return NULL;
	*region = r;
	return r->host + (va - r->va);
}

/* Nobody looks at the window as it was when it was found not valid: every other worker has begun
 * another turn since. */
static bool
is_settled(const struct mem_table *t, uint32_t worker, struct mem_window *w)
{
	struct mem_readers *all = t->readers;

	if (all->n <= 1)
		return true;
	while (w->settling == 0)
		w->settling = atomic_fetch_add(&all->revocations, 1) + 1;
	for (uint32_t i = 0; i < all->n; i++) {
		const uint32_t seen = atomic_load_explicit(&all->of[i].seen, memory_order_acquire);

		if (i != worker && (int32_t)(seen - w->settling) < 0)
			return false;
	}
	return true;
}

static enum mem_why
judge_region(const struct mem_region *on, const struct mem_bind *b, bool fast)
{
	const access_t writes = fast ? ACCESS_LOCAL_WRITE : 0;
	uint64_t offset;

	if (on == NULL)
		return MEM_WHY_UNKNOWN_KEY;
	if (!mem_is_valid(on))
		return MEM_WHY_REVOKED;
	if (on->pd != b->pd)
		return MEM_WHY_OTHER_PD;
	if (!fast && (on->access & ACCESS_MW_BIND) == 0)
		return MEM_WHY_NO_MW_BIND;
	if ((b->access & (writes | ACCESS_REMOTE_WRITE | ACCESS_REMOTE_ATOMIC)) != 0 &&
		(on->access & ACCESS_LOCAL_WRITE) == 0)
		return MEM_WHY_NO_LOCAL_WRITE;
	if (b->addr < on->va)
		return MEM_WHY_BELOW;
	offset = b->addr - on->va;
	if (offset >= on->length)
		return MEM_WHY_BEYOND;
	if (b->length > on->length - offset)
		return MEM_WHY_TOO_LONG;
	/* No processor does an ATOMIC on bytes that lie otherwise (RESP-07). */
	if ((b->access & ACCESS_ZERO_BASED) != 0 && (b->access & ACCESS_REMOTE_ATOMIC) != 0 &&
		((uintptr_t)(on->host + offset) & 7) != 0)
		return MEM_WHY_MISALIGNED;
	return MEM_WHY_NONE;
}

static enum mem_why
judge_window(const struct mem_window *w, const struct mem_bind *b)
{
	const bool fast = w->r.kind == MEM_FAST, two = fast || w->r.kind == MEM_WINDOW_2;
	const access_t allowed = (MEM_REMOTE & ~ACCESS_FLUSH_PERSISTENT) |
				 (two ? ACCESS_ZERO_BASED : 0) | (fast ? ACCESS_LOCAL_WRITE : 0);

	if (w->gone || w->home_pd != b->pd)
		return MEM_WHY_NO_WINDOW;
	if ((b->access & ~allowed) != 0)
		return MEM_WHY_WINDOW_ACCESS;
	/* As with a region that is registered otherwise. */
	if (fast && (b->access & (ACCESS_REMOTE_WRITE | ACCESS_REMOTE_ATOMIC)) != 0 &&
		(b->access & ACCESS_LOCAL_WRITE) == 0)
		return MEM_WHY_NO_LOCAL_WRITE;
	if ((two || b->key != 0) &&
		(mem_index(b->key) != mem_index(w->r.key) || (!fast && b->key == w->r.key)))
		return MEM_WHY_NEW_KEY;
	if (two && mem_is_valid(&w->r))
		return MEM_WHY_BOUND;
	return two && b->length == 0 ? MEM_WHY_NO_LENGTH : MEM_WHY_NONE;
}

/* The one after it, of the same index. */
static uint32_t
next_key(uint32_t key)
{
	return (key & ~(uint32_t)UINT8_MAX) | ((key + 1) & UINT8_MAX);
}

/* Nobody reads it now, but for `valid`, which comes last. */
static void
put(struct mem_window *w, struct mem_region *on, const struct mem_bind *b)
{
	w->on = on;
	w->r.va = (b->access & ACCESS_ZERO_BASED) != 0 ? 0 : b->addr;
	w->r.length = b->length;
	w->r.host = on->host + (b->addr - on->va);
	w->r.pd = w->r.kind == MEM_WINDOW_2 ? mem_pd_of_qp(b->qpn) : w->home_pd;
	w->r.access = b->access;
	w->r.remote_invalidate = w->r.kind != MEM_WINDOW_1;
	w->settling = 0;
	ASSERT(w->r.va + w->r.length >= w->r.va);
	atomic_store_explicit(&w->r.valid, true, memory_order_release);
}

static enum mem_turn
bind(struct mem_table *t, uint32_t worker, struct mem_window *w, const struct mem_bind *b,
	enum mem_why *why)
{
	struct mem_region *on = NULL;

	*why = judge_window(w, b);
	if (*why == MEM_WHY_NONE && b->length != 0) {
		on = mem_table_region(t, b->lkey);
		*why = judge_region(on, b, w->r.kind == MEM_FAST);
	}
	if (*why != MEM_WHY_NONE)
		return MEM_TURN_REFUSED;
	mem_window_take_back(w);
	if (!is_settled(t, worker, w))
		return MEM_TURN_LATER;
	if (on != NULL && !use(on)) {
		*why = MEM_WHY_GONE;
		return MEM_TURN_REFUSED;
	}
	w->r.key = b->key != 0 ? b->key : next_key(w->r.key);
	if (on != NULL)
		put(w, on, b);
	return MEM_TURN_DONE;
}

enum mem_turn
mem_window_bind(struct mem_table *t, uint32_t worker, const struct mem_bind *b, enum mem_why *why)
{
	struct mem_window *w = mem_window_at(t, b->window);
	enum mem_turn turn;

	*why = MEM_WHY_NO_WINDOW;
	if (w == NULL)
		return MEM_TURN_REFUSED;
	if (atomic_exchange_explicit(&w->busy, true, memory_order_acquire))
		return MEM_TURN_LATER;
	turn = bind(t, worker, w, b, why);
	let_go(w);
	return turn;
}

static enum mem_why
judge_invalidate(const struct mem_window *w, uint32_t key, uint64_t user)
{
	if (w->home_pd != (uint32_t)user)
		return MEM_WHY_UNKNOWN_KEY;
	if (w->r.kind == MEM_WINDOW_1)
		return MEM_WHY_NOT_OF_TYPE_2;
	if (w->gone || !mem_is_valid(&w->r) || w->r.key != key)
		return MEM_WHY_UNBOUND;
	if (w->r.kind == MEM_FAST)
		return MEM_WHY_NONE;
	return w->r.pd == mem_pd_of_qp((uint32_t)(user >> 32)) ? MEM_WHY_NONE : MEM_WHY_OTHER_QP;
}

enum mem_turn
mem_window_invalidate(struct mem_table *t, uint32_t worker, uint32_t key, uint64_t user,
	bool *begun, enum mem_why *why)
{
	struct mem_window *w = mem_window_at(t, key);
	bool settled;

	*why = MEM_WHY_NONE;
	if (w == NULL && *begun)
		return MEM_TURN_DONE; /* it was removed meanwhile */
	if (w == NULL) {
		*why = mem_table_region(t, key) != NULL ? MEM_WHY_NOT_OF_TYPE_2
							: MEM_WHY_UNKNOWN_KEY;
		return MEM_TURN_REFUSED;
	}
	if (atomic_exchange_explicit(&w->busy, true, memory_order_acquire))
		return MEM_TURN_LATER;
	if (!*begun) {
		*why = judge_invalidate(w, key, user);
		if (*why == MEM_WHY_NONE)
			mem_window_take_back(w);
	}
	/* Bound again by now: whoever did that has waited. */
	settled = *why != MEM_WHY_NONE || mem_is_valid(&w->r) || is_settled(t, worker, w);
	*begun = true;
	let_go(w);
	if (*why != MEM_WHY_NONE)
		return MEM_TURN_REFUSED;
	return settled ? MEM_TURN_DONE : MEM_TURN_LATER;
}
