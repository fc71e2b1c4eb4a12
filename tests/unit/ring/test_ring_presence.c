/* SPDX-License-Identifier: BSD-3-Clause */
/* Where workers are, and who sleeps: no doorbell is slept over. */
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cmocka.h>

#include "../../clib/rounds.h"
#include "ring_bell.h"
#include "ring_presence.h"

#define BELLS      64
#define RUNG       ROUNDS(5000u)
#define SLEPT_OVER 10000 /* ms */

static void *
zeroed(size_t bytes)
{
	const size_t lines = (bytes + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE;
	void *mem = aligned_alloc(CACHE_LINE, lines);

	assert_non_null(mem);
	memset(mem, 0, lines);
	return mem;
}

static void
cpus(void **state UNUSED)
{
	struct ring_presence *p = zeroed(ring_presence_size(2));

	assert_false(ring_presence_is_on(p, 0));
	ring_presence_move(p, UINT32_MAX, 0);
	ring_presence_move(p, UINT32_MAX, RING_PRESENCE_CPUS - 1);
	assert_true(ring_presence_is_on(p, 0));
	assert_true(ring_presence_is_on(p, RING_PRESENCE_CPUS - 1));
	assert_false(ring_presence_is_on(p, 1));
	ring_presence_move(p, 0, 1);
	assert_false(ring_presence_is_on(p, 0));
	assert_true(ring_presence_is_on(p, 1));
	/* CPUs that have no bit, and one whose number is not known. */
	ring_presence_move(p, 1, RING_PRESENCE_CPUS);
	assert_false(ring_presence_is_on(p, 1));
	assert_false(ring_presence_is_on(p, RING_PRESENCE_CPUS));
	assert_false(ring_presence_is_on(p, UINT32_MAX));
	free(p);
}

/* Two workers on one CPU: the one that stays says so again after the other has left. */
static void
two_on_one_cpu(void **state UNUSED)
{
	struct ring_presence *p = zeroed(ring_presence_size(2));

	ring_presence_move(p, UINT32_MAX, 5);
	ring_presence_move(p, UINT32_MAX, 5);
	ring_presence_move(p, 5, 6);
	ring_presence_move(p, 5, 5);
	assert_true(ring_presence_is_on(p, 5));
	assert_true(ring_presence_is_on(p, 6));
	free(p);
}

/* One of the two sees the other, whoever is first. */
static void
one_sees_the_other(void **state UNUSED)
{
	void *mem = zeroed(ring_bells_size(BELLS));
	struct ring_presence *p = zeroed(ring_presence_size(2));
	struct ring_bells client, worker;

	ring_bells_attach(&client, mem, BELLS);
	ring_bells_attach(&worker, mem, BELLS);
	assert_int_equal(ring_bells_take(&worker), 0);
	assert_int_equal(ring_bells_put(&client, 1), 0);
	assert_false(ring_presence_is_asleep(p, 1));
	ring_presence_sleeps(p, 1);
	assert_true(ring_bells_ring(&worker));
	ring_presence_wakes(p, 1);
	assert_int_equal(ring_bells_take(&worker), 1);

	ring_presence_sleeps(p, 1);
	assert_false(ring_bells_ring(&worker));
	assert_int_equal(ring_bells_put(&client, 2), 0);
	assert_true(ring_presence_is_asleep(p, 1));
	assert_false(ring_presence_is_asleep(p, 0));
	ring_presence_wakes(p, 1);
	assert_false(ring_presence_is_asleep(p, 1));
	free(p);
	free(mem);
}

struct client {
	struct ring_bells bells;
	const struct ring_presence *presence;
	int wake;
	_Atomic uint32_t heard; /* by the worker */
	_Atomic bool over;
	int rc;
};

static void *
client_main(void *arg)
{
	struct client *c = arg;
	const uint64_t one = 1;

	for (uint32_t i = 1; i <= RUNG && c->rc == 0; i++) {
		/* Now before it sleeps, now while it goes to sleep, now when it does. */
		for (volatile uint32_t k = i * 7 % 256; k != 0; k--)
			;
		c->rc = ring_bells_put(&c->bells, i);
		if (c->rc == 0 && ring_presence_is_asleep(c->presence, 1) &&
			write(c->wake, &one, sizeof(one)) != (ssize_t)sizeof(one))
			c->rc = -1;
		for (uint32_t k = 0; atomic_load(&c->heard) != i && !atomic_load(&c->over); k++)
			if (k > 100)
				sched_yield();
	}
	return NULL;
}

/*
 * A worker that sleeps whenever there is nothing, with nothing but its descriptor to wake it: a
 * doorbell that was rung while it went to sleep would leave it there.
 */
static void
nothing_is_slept_over(void **state UNUSED)
{
	void *mem = zeroed(ring_bells_size(BELLS));
	struct ring_presence *p = zeroed(ring_presence_size(2));
	struct client c = { .presence = p, .wake = eventfd(0, 0) };
	struct pollfd fd = { .fd = c.wake, .events = POLLIN };
	uint32_t next = 1, missed = 0;
	struct ring_bells worker;
	pthread_t thread;
	uint64_t n;

	assert_true(c.wake >= 0);
	ring_bells_attach(&c.bells, mem, BELLS);
	ring_bells_attach(&worker, mem, BELLS);
	assert_int_equal(pthread_create(&thread, NULL, client_main, &c), 0);
	while (next <= RUNG && missed == 0) {
		const uint32_t number = ring_bells_take(&worker);

		if (number != 0) {
			assert_int_equal(number, next++);
			atomic_store(&c.heard, number);
			continue;
		}
		ring_presence_sleeps(p, 1);
		if (!ring_bells_ring(&worker)) {
			missed += poll(&fd, 1, SLEPT_OVER) != 1;
			missed += missed == 0 && read(c.wake, &n, sizeof(n)) != (ssize_t)sizeof(n);
		}
		ring_presence_wakes(p, 1);
	}
	atomic_store(&c.over, true);
	pthread_join(thread, NULL);
	assert_int_equal(missed, 0);
	assert_int_equal(c.rc, 0);
	close(c.wake);
	free(p);
	free(mem);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cpus),
		cmocka_unit_test(two_on_one_cpu),
		cmocka_unit_test(one_sees_the_other),
		cmocka_unit_test(nothing_is_slept_over),
	};

	return cmocka_run_group_tests_name("ring_presence", tests, NULL, NULL);
}
