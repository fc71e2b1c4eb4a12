/* SPDX-License-Identifier: BSD-3-Clause */
/* Timing wheel: IBTA vol. 1, 9.7.6.1.3 (TMR-01, TMR-02, TMR-03, TMR-10). */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "wheel.h"

static struct wheel w;

/* TMR-01 and TMR-03: 4.096 us * 2^n for every exponent, in ns; 0 is no timer. */
static void
TMR_01_timeout_value(void **state UNUSED)
{
	static const uint64_t ttr_ns[32] = { 0, 8192, 16384, 32768, 65536, 131072, 262144, 524288,
		1048576, 2097152, 4194304, 8388608, 16777216, 33554432, 67108864, 134217728,
		268435456, 536870912, 1073741824, 2147483648, 4294967296, 8589934592, 17179869184,
		34359738368, 68719476736, 137438953472, 274877906944, 549755813888, 1099511627776,
		2199023255552, 4398046511104, 8796093022208 };

	for (unsigned int n = 0; n < 32; n++)
		assert_int_equal(wheel_timeout_ticks(n) * 4096, ttr_ns[n]);
}

/* All that is due, as a caller that comes back until nothing is. */
static uint32_t
drain(tick_t now, struct wheel_node **out, uint32_t max)
{
	uint32_t n = 0;

	do {
		n += wheel_advance(&w, now, out + n, max - n);
	} while (wheel_next(&w) <= now && n < max);
	return n;
}

/* TMR-02: not before its tick, at every distance and at every wheel position that matters. */
static void
TMR_02_exact_tick(void **state UNUSED)
{
	static const tick_t starts[] = { 0, 1, 63, 64, 4095, 4096, 262143, (1ull << 36) - 1,
		1ull << 63, UINT64_MAX - (1ull << 35) };

	for (size_t s = 0; s < ARRAY_LEN(starts); s++) {
		for (unsigned int bit = 0; bit <= 34; bit++) {
			for (int off = -1; off <= 1; off++) {
				tick_t at = starts[s] + (1ull << bit) + (tick_t)off;
				struct wheel_node n = { 0 }, *out[2];

				wheel_init(&w, starts[s]);
				wheel_arm(&w, &n, at);
				assert_true(wheel_next(&w) <= at);
				if (at > starts[s])
					assert_int_equal(drain(at - 1, out, 2), 0);
				assert_true(wheel_is_armed(&n));
				assert_int_equal(drain(at, out, 2), 1);
				assert_ptr_equal(out[0], &n);
				assert_false(wheel_is_armed(&n));
				assert_true(wheel_next(&w) == WHEEL_NEVER);
				assert_int_equal(drain(at + 1000000, out, 2), 0);
			}
		}
	}
}

/* TMR-02 in nanoseconds: from any instant within a tick, in [Ttr, 4 * Ttr], polled finely. */
static void
TMR_02_bounds_in_ns(void **state UNUSED)
{
	uint64_t x = 77;

	for (unsigned int n = 1; n < 32; n++) {
		uint64_t ttr = 8192ull << (n - 1);

		for (unsigned int k = 0; k < 50; k++) {
			struct wheel_node node = { 0 }, *out[1];
			ns_t t0, now;

			x = x * 6364136223846793005 + 1442695040888963407;
			t0 = x >> 20;
			wheel_init(&w, tick_of(t0));
			wheel_arm(&w, &node, tick_after(t0 + ttr));
			for (now = t0; wheel_advance(&w, tick_of(now), out, 1) == 0;)
				now += 1 + ttr / 50;
			assert_true(now - t0 >= ttr);
			assert_true(now - t0 <= 4 * ttr);
		}
	}
}

/* A sleeper that always wakes at wheel_next() gets there in a few steps, however far it is. */
static void
sleeping_by_next(void **state UNUSED)
{
	const tick_t longest = 4 * (1ull << 31);
	struct wheel_node n = { 0 }, *out[1];
	unsigned int steps = 0;

	wheel_init(&w, 12345);
	assert_true(wheel_next(&w) == WHEEL_NEVER);
	wheel_arm(&w, &n, 12345 + longest);
	while (wheel_advance(&w, wheel_next(&w), out, 1) == 0)
		assert_true(++steps < WHEEL_LEVELS + 1);
	assert_int_equal(w.cur, 12345 + longest);
}

static void
earliest_first(void **state UNUSED)
{
	enum { N = 500 };
	static struct wheel_node n[N], *out[N];
	uint64_t x = 3;

	memset(n, 0, sizeof(n));
	wheel_init(&w, 1000);
	for (unsigned int i = 0; i < N; i++) {
		x = x * 6364136223846793005 + 1442695040888963407;
		wheel_arm(&w, &n[i], 1000 + (x >> 30) % 300000);
	}
	assert_int_equal(drain(400000, out, N), N);
	for (unsigned int i = 1; i < N; i++)
		assert_true(out[i - 1]->deadline <= out[i]->deadline);
}

static void
past_fires_at_once(void **state UNUSED)
{
	struct wheel_node n[3] = { 0 }, *out[4];

	wheel_init(&w, 5000);
	wheel_arm(&w, &n[0], 0);
	wheel_arm(&w, &n[1], 4999);
	wheel_arm(&w, &n[2], 5000);
	assert_true(wheel_next(&w) <= 5000);
	assert_int_equal(wheel_advance(&w, 5000, out, 4), 3);
	wheel_arm(&w, &n[0], 5000); /* and again, without time going on */
	assert_int_equal(wheel_advance(&w, 5000, out, 4), 1);
	assert_int_equal(wheel_advance(&w, 5000, out, 4), 0);
}

/* A clock that goes back does nothing, and the wheel goes on afterwards. */
static void
clock_going_back(void **state UNUSED)
{
	struct wheel_node n[2] = { 0 }, *out[2];

	wheel_init(&w, 5000);
	wheel_arm(&w, &n[0], 5000);
	wheel_arm(&w, &n[1], 5001);
	assert_int_equal(wheel_advance(&w, 4000, out, 2), 0);
	assert_int_equal(wheel_advance(&w, 0, out, 2), 0);
	assert_int_equal(wheel_advance(&w, 5000, out, 2), 1);
	assert_int_equal(wheel_advance(&w, 4999, out, 2), 0);
	assert_int_equal(wheel_advance(&w, 5001, out, 2), 1);
}

/* Progress moves the deadline; the node stays where it is until its slot is due. */
static void
lazy_rearm(void **state UNUSED)
{
	struct wheel_node n = { 0 }, *out[1];
	uint32_t slot;

	wheel_init(&w, 0);
	wheel_arm(&w, &n, 100);
	slot = n.slot;
	for (tick_t now = 1; now < 500; now++) {
		wheel_arm(&w, &n, now + 100);
		if (now < 64) /* where the slot of 64 .. 127 is due */
			assert_int_equal(n.slot, slot);
		assert_int_equal(wheel_advance(&w, now, out, 1), 0);
		assert_true(wheel_is_armed(&n));
	}
	assert_int_equal(wheel_advance(&w, 598, out, 1), 0);
	assert_int_equal(wheel_advance(&w, 599, out, 1), 1);

	wheel_arm(&w, &n, 602); /* moved away in the lowest level, from one tick to a later one */
	wheel_arm(&w, &n, 605);
	assert_int_equal(wheel_advance(&w, 602, out, 1), 0);
	assert_int_equal(wheel_advance(&w, 604, out, 1), 0);
	assert_int_equal(wheel_advance(&w, 605, out, 1), 1);
}

/* Armed for an earlier tick, after having been moved away: the earlier one counts. */
static void
rearm_earlier(void **state UNUSED)
{
	struct wheel_node n = { 0 }, *out[1];

	wheel_init(&w, 0);
	wheel_arm(&w, &n, 1000);
	wheel_arm(&w, &n, 100000);
	wheel_arm(&w, &n, 50);
	assert_true(wheel_next(&w) <= 50);
	assert_int_equal(drain(49, out, 1), 0);
	assert_int_equal(drain(50, out, 1), 1);
	assert_int_equal(drain(200000, out, 1), 0);
	assert_true(wheel_next(&w) == WHEEL_NEVER);
}

/* TMR-10: after a cancel nothing fires, from whichever level and place in the list. */
static void
TMR_10_cancel(void **state UNUSED)
{
	struct wheel_node n[3], *out[3];

	for (unsigned int bit = 0; bit < 64; bit++) {
		for (unsigned int victim = 0; victim < 3; victim++) {
			memset(n, 0, sizeof(n));
			wheel_init(&w, 0);
			for (unsigned int i = 0; i < 3; i++)
				wheel_arm(&w, &n[i], 1ull << bit);
			wheel_cancel(&w, &n[victim]);
			assert_false(wheel_is_armed(&n[victim]));
			wheel_cancel(&w, &n[victim]); /* twice is nothing */
			assert_int_equal(drain(UINT64_MAX - 1, out, 3), 2);
			assert_ptr_not_equal(out[0], &n[victim]);
			assert_ptr_not_equal(out[1], &n[victim]);
			assert_ptr_not_equal(out[0], out[1]);
		}
		memset(n, 0, sizeof(n));
		wheel_init(&w, 0);
		wheel_arm(&w, &n[0], 1ull << bit);
		wheel_cancel(&w, &n[0]);
		assert_int_equal(drain(1ull << bit, out, 3), 0);
		assert_true(wheel_next(&w) == WHEEL_NEVER);
		for (unsigned int level = 0; level < WHEEL_LEVELS; level++)
			assert_int_equal(w.used[level], 0);
	}
}

/* TMR-10: cancelled between two batches of one tick, and armed again meanwhile. */
static void
TMR_10_cancel_between_batches(void **state UNUSED)
{
	struct wheel_node n[10] = { 0 }, *out[10];
	uint32_t got;

	wheel_init(&w, 0);
	for (unsigned int i = 0; i < 10; i++)
		wheel_arm(&w, &n[i], 77);
	assert_int_equal(wheel_advance(&w, 80, out, 0), 0);
	got = drain(80, out, 4);
	assert_int_equal(got, 4);
	assert_true(wheel_next(&w) <= 80);
	for (unsigned int i = 0; i < 10; i++) {
		if (wheel_is_armed(&n[i]) && got < 6) {
			wheel_cancel(&w, &n[i]);
			got++;
		}
	}
	wheel_arm(&w, out[0], 81);
	assert_int_equal(drain(80, out + 1, 9), 4);
	assert_int_equal(drain(81, out + 1, 9), 1);
	assert_ptr_equal(out[1], out[0]);
}

/*
 * Very many nodes in one slot: a call moves a bounded number, says that it is behind, and goes on;
 * meanwhile nodes are cancelled, moved away and added.
 */
static void
bounded_work(void **state UNUSED)
{
	enum { N = 20 * WHEEL_MOVES, EXTRA = 3 };
	struct wheel_node *n = calloc(N + EXTRA, sizeof(*n));
	struct wheel_node *out[64];
	unsigned int calls = 0, fired = 0, most = 0;
	unsigned char *seen = calloc(N + EXTRA, 1);

	assert_true(n != NULL && seen != NULL);
	wheel_init(&w, 0);
	for (unsigned int i = 0; i < N; i++)
		wheel_arm(&w, &n[i], 16384 + i % 4000);
	do {
		uint32_t got = wheel_advance(&w, 30000, out, 64);

		most = got > most ? got : most;
		for (uint32_t i = 0; i < got; i++) {
			assert_true(out[i]->deadline <= 30000);
			assert_int_equal(seen[out[i] - n]++, 0);
		}
		fired += got;
		if (++calls == 3) {
			assert_int_not_equal(w.pending, WHEEL_NO_SLOT);
			for (unsigned int i = 0; i < 1000; i++) /* the list's last ones */
				wheel_cancel(&w, &n[i]);
			for (unsigned int i = 1000; i < 2000; i++)
				wheel_arm(&w, &n[i], 40000);
			wheel_arm(&w, &n[N], 1); /* past */
			wheel_arm(&w, &n[N + 1], 16384);
			wheel_arm(&w, &n[N + 2], 40000);
			/* A clock that goes back does nothing here, either. */
			assert_int_equal(wheel_advance(&w, 1, out, 64), 0);
			assert_int_not_equal(w.pending, WHEEL_NO_SLOT);
		}
	} while (wheel_next(&w) <= 30000);
	assert_true(calls >= N / WHEEL_MOVES);
	assert_int_equal(most, 64);
	assert_int_equal(fired, N - 2000 + 2);
	for (unsigned int i = 0; i < 2000; i++)
		assert_int_equal(seen[i], 0);
	fired = 0;
	for (uint32_t got; wheel_next(&w) <= 40000; fired += got)
		got = wheel_advance(&w, 40000, out, 64);
	assert_int_equal(fired, 1001);
	assert_true(wheel_next(&w) == WHEEL_NEVER);
	free(seen);
	free(n);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(TMR_01_timeout_value),
		cmocka_unit_test(TMR_02_exact_tick),
		cmocka_unit_test(TMR_02_bounds_in_ns),
		cmocka_unit_test(sleeping_by_next),
		cmocka_unit_test(earliest_first),
		cmocka_unit_test(past_fires_at_once),
		cmocka_unit_test(clock_going_back),
		cmocka_unit_test(lazy_rearm),
		cmocka_unit_test(rearm_earlier),
		cmocka_unit_test(TMR_10_cancel),
		cmocka_unit_test(TMR_10_cancel_between_batches),
		cmocka_unit_test(bounded_work),
	};

	return cmocka_run_group_tests_name("wheel", tests, NULL, NULL);
}
