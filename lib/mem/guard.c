/* SPDX-License-Identifier: BSD-3-Clause */
#include "mem_guard.h"
#include "invariant.h"

#include <errno.h>
#include <sys/mman.h>

#define GUARDS 65536u /* as many mappings as Linux allows a process by default */

/* Zeros are a mapping: one for each page would be too many where a file was made shorter. */
#define PIECE ((size_t)4 << 20)

/* An entry is in use while `len` is not 0. Threads of connections add and remove, each in an entry
 * that it has claimed. Who looks meanwhile must not have the base of one area and the length of the
 * next: `version` is odd while they change. */
static struct guard {
	_Atomic bool taken;
	_Atomic uint32_t version;
	_Atomic uintptr_t base;
	_Atomic size_t len;
	_Atomic size_t page;
	_Atomic bool hit;
} guards[GUARDS];
static _Atomic uint32_t guards_high; /* entries ever used: those behind are empty */
static _Atomic unsigned int faults;

static void
set(struct guard *g, const struct mem_area *a)
{
	const uint32_t version = atomic_load_explicit(&g->version, memory_order_relaxed);

	atomic_store_explicit(&g->version, version + 1, memory_order_relaxed);
	atomic_store_explicit(&g->base, (uintptr_t)a->base, memory_order_release);
	atomic_store_explicit(&g->page, a->page_size, memory_order_release);
	atomic_store_explicit(&g->hit, false, memory_order_release);
	atomic_store_explicit(&g->len, a->len, memory_order_release);
	atomic_store_explicit(&g->version, version + 2, memory_order_release);
}

/* @return false: it changes, so that it is no area which is in use. */
static bool
get(struct guard *g, struct mem_area *a)
{
	const uint32_t version = atomic_load_explicit(&g->version, memory_order_acquire);

	a->base = (uint8_t *)atomic_load_explicit(&g->base, memory_order_acquire);
	a->page_size = atomic_load_explicit(&g->page, memory_order_acquire);
	a->len = atomic_load_explicit(&g->len, memory_order_acquire);
	return version % 2 == 0 &&
	       version == atomic_load_explicit(&g->version, memory_order_relaxed);
}

int
mem_guard_add(struct mem_area *a)
{
	ASSERT(a->guard == 0);
	ASSERT(a->len != 0 && (a->page_size & (a->page_size - 1)) == 0);
	for (uint32_t i = 0; i < GUARDS; i++) {
		struct guard *g = &guards[i];
		uint32_t high;

		if (atomic_load_explicit(&g->taken, memory_order_relaxed) ||
			atomic_exchange_explicit(&g->taken, true, memory_order_acquire))
			continue;
		set(g, a);
		high = atomic_load_explicit(&guards_high, memory_order_relaxed);
		while (i >= high && !atomic_compare_exchange_weak_explicit(&guards_high, &high,
					    i + 1, memory_order_release, memory_order_relaxed))
			;
		a->guard = i + 1;
		return 0;
	}
	return -ENOSPC;
}

void
mem_guard_remove(struct mem_area *a)
{
	ASSERT(a->guard <= GUARDS);
	if (a->guard != 0) {
		set(&guards[a->guard - 1], &(const struct mem_area){ 0 });
		atomic_store_explicit(&guards[a->guard - 1].taken, false, memory_order_release);
	}
	a->guard = 0;
}

static bool
map_zeros(uint8_t *at, size_t len)
{
	return mmap(at, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
		       0) != MAP_FAILED;
}

/*
 * Zeros in place of the piece of the area with this byte: whole pages. Where the process has as
 * many mappings as it may, in place of all of it: that is none more.
 */
static bool
put_zeros(const struct mem_area *a, size_t at)
{
	const size_t page = a->page_size, piece = page > PIECE ? page : PIECE;
	const size_t from = at & ~(piece - 1), all = (a->len + page - 1) / page * page;
	const size_t left = all - from;

	return map_zeros(a->base + from, left < piece ? left : piece) || map_zeros(a->base, all);
}

/* Async-signal-safe: mmap() is a bare system call. */
bool
mem_guard_fault(void *address)
{
	const uintptr_t at = (uintptr_t)address;
	const uint32_t high = atomic_load_explicit(&guards_high, memory_order_acquire);

	for (uint32_t i = 0; i < high; i++) {
		struct guard *g = &guards[i];
		struct mem_area a;

		if (!get(g, &a) || at - (uintptr_t)a.base >= a.len)
			continue;
		if (!put_zeros(&a, at - (uintptr_t)a.base))
			return false;
		atomic_store_explicit(&g->hit, true, memory_order_relaxed);
		atomic_fetch_add_explicit(&faults, 1, memory_order_release);
		return true;
	}
	return false;
}

unsigned int
mem_guard_faults(void)
{
	return atomic_load_explicit(&faults, memory_order_acquire);
}

bool
mem_guard_is_hit(const struct mem_area *a)
{
	return a->guard != 0 &&
	       atomic_load_explicit(&guards[a->guard - 1].hit, memory_order_relaxed);
}
