/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TEST_GUARD_H
#define TEST_GUARD_H
/**
 * @file guard.h  Memory between two pages that cannot be touched: whatever reads or writes beyond
 *                either end dies, in every build and with every instruction.
 *
 * Owner:   unit tests.
 * Memory:  mapped once for each struct guard, and never unmapped.
 * Depends: cmocka.
 *
 * A sanitizer looks at what the compiler knows of. It misses masked vector loads, for one.
 */
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#include "compiler.h"

enum { GUARD_PAGE = 4096, GUARD_ROOM = 4 * GUARD_PAGE };

struct guard {
	uint8_t *room; /* GUARD_ROOM bytes */
};

/** The room's `len` bytes before its end. */
static inline uint8_t *
guard_tail(struct guard *g, size_t len)
{
	assert_in_range(len, 0, GUARD_ROOM);
	if (g->room == NULL) {
		uint8_t *all = mmap(NULL, GUARD_ROOM + 2 * GUARD_PAGE, PROT_NONE,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		assert_ptr_not_equal(all, MAP_FAILED);
		g->room = all + GUARD_PAGE;
		assert_int_equal(mprotect(g->room, GUARD_ROOM, PROT_READ | PROT_WRITE), 0);
	}
	return g->room + GUARD_ROOM - len;
}

/** A copy of `len` bytes; nothing lies behind them. */
static inline uint8_t *
guard_before_end(struct guard *g, const void *from, size_t len)
{
	uint8_t *at = guard_tail(g, len);

	if (len != 0)
		memcpy(at, from, len);
	return at;
}

/** A copy of `len` bytes; nothing lies before them. */
static UNUSED uint8_t *
guard_from_start(struct guard *g, const void *from, size_t len)
{
	uint8_t *at = guard_tail(g, GUARD_ROOM);

	assert_in_range(len, 0, GUARD_ROOM);
	memcpy(at, from, len);
	return at;
}

#endif
