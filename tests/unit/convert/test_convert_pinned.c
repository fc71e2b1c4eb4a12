/* SPDX-License-Identifier: BSD-3-Clause */
/* Pages that an io_uring holds stay where they are. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>

#include "convert_pinned.h"
#include "onto_memfd.h"
#include "../../clib/uring.h"

/* @return false: there are no rings here, so none can hold anything. */
static bool
ring_of(struct uring *u, void *at, size_t len)
{
	if (uring_open(u) != 0) {
		assert_false(convert_pinned((uintptr_t)at, len));
		return false;
	}
	assert_int_equal(0, uring_fix(u, at, len));
	return true;
}

static void
bytes_before_and_behind_a_buffer(void **state)
{
	uint8_t *p = map(8 * PAGE);
	const uintptr_t at = (uintptr_t)p;
	struct uring u, other;

	(void)state;
	if (!ring_of(&u, p + 2 * PAGE + 100, PAGE))
		return;
	assert_false(convert_pinned(at, 2 * PAGE));
	assert_true(convert_pinned(at, 3 * PAGE));
	assert_true(convert_pinned(at + 2 * PAGE, PAGE));
	assert_true(convert_pinned(at + 3 * PAGE, PAGE)); /* its last 100 bytes */
	assert_false(convert_pinned(at + 4 * PAGE, 4 * PAGE));
	assert_true(ring_of(&other, p + 5 * PAGE, 1)); /* of the second ring, too */
	assert_true(convert_pinned(at + 4 * PAGE, 4 * PAGE));
	uring_close(&other);
	assert_int_equal(0, uring_unfix(&u));
	assert_false(convert_pinned(at, 8 * PAGE));
	uring_close(&u);
}

/* Refused in both directions while it is so, and what others have is not. */
static void
moved_when_the_ring_lets_go(void **state)
{
	uint8_t *p = map(4 * PAGE), *free_of_it = map(4 * PAGE);
	struct convert_part part;
	struct uring u;
	int fd;

	(void)state;
	if (!ring_of(&u, p, PAGE))
		return;
	p[1] = 1;
	assert_int_equal(-EBUSY, convert(p, 4 * PAGE));
	assert_true(convert(free_of_it, 4 * PAGE) >= 0);
	assert_int_equal(0, uring_unfix(&u));
	fd = convert(p, 4 * PAGE);
	assert_true(fd >= 0);
	assert_int_equal(0, uring_fix(&u, p + PAGE, PAGE));
	assert_int_equal(1, convert_look((uintptr_t)p, 4 * PAGE, &part));
	assert_int_equal(-EBUSY, convert_to_private(&part, part.len));
	assert_int_equal(1, convert_look((uintptr_t)p, 4 * PAGE, &part));
	assert_int_equal(CONVERT_SHARED, part.kind);
	assert_int_equal(0, uring_unfix(&u));
	convert_back(p, 4 * PAGE);
	assert_int_equal(1, p[1]);
	uring_close(&u);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bytes_before_and_behind_a_buffer),
		cmocka_unit_test(moved_when_the_ring_lets_go),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
