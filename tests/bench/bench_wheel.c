/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Cost of the timing wheel's operations, in nanoseconds each, with 1, 1000 and a million nodes.
 * To be compared with another run on the same machine; nothing passes or fails here.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "wheel.h"

#define ROUNDS 1000000 /* at least so many operations a figure */

static struct wheel w;
static uint64_t rng = 88172645463325252;

static uint64_t
next_random(void)
{
	rng ^= rng << 13;
	rng ^= rng >> 7;
	rng ^= rng << 17;
	return rng;
}

static double
now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec * 1e9 + (double)ts.tv_nsec;
}

static void
arm_all(struct wheel_node *node, uint32_t n, tick_t from)
{
	for (uint32_t i = 0; i < n; i++)
		wheel_arm(&w, &node[i], from + 1 + (next_random() & 16383));
}

static void
bench(struct wheel_node *node, uint32_t n)
{
	double arm = 0, push = 0, cancel = 0, fire = 0, idle, t;
	uint32_t rounds = (ROUNDS + n - 1) / n;
	struct wheel_node *out[32];
	uint64_t found = 0;
	tick_t at = 0;

	wheel_init(&w, 0);
	for (uint32_t r = 0; r < rounds; r++) {
		t = now_ns();
		arm_all(node, n, at);
		arm += now_ns() - t;
		t = now_ns();
		for (uint32_t i = 0; i < n; i++)
			wheel_arm(&w, &node[i], node[i].deadline + 1);
		push += now_ns() - t;
		t = now_ns();
		for (uint32_t i = 0; i < n; i++)
			wheel_cancel(&w, &node[i]);
		cancel += now_ns() - t;

		arm_all(node, n, at);
		t = now_ns();
		while (wheel_next(&w) != WHEEL_NEVER) {
			at = wheel_next(&w) > at ? wheel_next(&w) : at;
			found += wheel_advance(&w, at, out, 32);
		}
		fire += now_ns() - t;
	}

	wheel_arm(&w, &node[0], at + 1000 * (tick_t)ROUNDS);
	t = now_ns();
	for (uint32_t i = 0; i < ROUNDS; i++)
		found += wheel_advance(&w, at + i / 64, out, 32);
	idle = now_ns() - t;
	wheel_cancel(&w, &node[0]);

	t = (double)rounds * n;
	printf("%8" PRIu32
	       " nodes: arm %6.1f  re-arm later %6.1f  cancel %6.1f  move and fire %6.1f"
	       "  advance, nothing due %5.1f  (%" PRIu64 " fired)\n",
		n, arm / t, push / t, cancel / t, fire / t, idle / ROUNDS, found);
}

int
main(void)
{
	static const uint32_t sizes[] = { 1, 1000, 1000000 };
	struct wheel_node *node = calloc(1000000, sizeof(*node));

	if (node == NULL)
		return 1;
	for (size_t i = 0; i < ARRAY_LEN(sizes); i++)
		bench(node, sizes[i]);
	free(node);
	return 0;
}
