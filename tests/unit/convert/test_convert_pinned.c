/* SPDX-License-Identifier: BSD-3-Clause */
/* Pages that an io_uring holds stay where they are. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <sys/resource.h>

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

static _Atomic bool over;

static void *
submits(void *ring)
{
	while (!over)
		assert_int_equal(0, uring_nop(ring));
	return NULL;
}

/* While a thread is in the ring, the kernel does not say all of it. */
static void
known_while_a_thread_is_in_the_ring(void **state)
{
	uint8_t *p = map(4 * PAGE);
	pthread_t thread;
	struct uring u;

	(void)state;
	if (!ring_of(&u, p + PAGE, PAGE))
		return;
	assert_int_equal(0, pthread_create(&thread, NULL, submits, &u));
	for (int i = 0; i < 1000; i++) {
		assert_true(convert_pinned((uintptr_t)p, 2 * PAGE));
		assert_false(convert_pinned((uintptr_t)p + 2 * PAGE, 2 * PAGE));
	}
	over = true;
	assert_int_equal(0, pthread_join(thread, NULL));
	uring_close(&u);
}

/* Who cannot look moves nothing. */
static void
no_descriptor_to_look_by(void **state)
{
	uint8_t *p = map(PAGE);
	struct rlimit before, few;
	struct uring u;

	(void)state;
	if (!ring_of(&u, p, PAGE))
		return;
	assert_int_equal(0, getrlimit(RLIMIT_NOFILE, &before));
	few = before;
	for (int is = -EMFILE, n = 1; is != 1; n++) {
		few.rlim_cur = (rlim_t)u.fd + (rlim_t)n;
		assert_int_equal(0, setrlimit(RLIMIT_NOFILE, &few));
		is = convert_pinned((uintptr_t)p, PAGE);
		assert_true(is == -EMFILE || (is == 1 && n > 2));
		assert_int_equal(0, setrlimit(RLIMIT_NOFILE, &before));
	}
	uring_close(&u);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bytes_before_and_behind_a_buffer),
		cmocka_unit_test(moved_when_the_ring_lets_go),
		cmocka_unit_test(known_while_a_thread_is_in_the_ring),
		cmocka_unit_test(no_descriptor_to_look_by),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
