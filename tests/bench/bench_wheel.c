/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Cost of the timing wheel's operations, in nanoseconds each, with 1, 1000 and a million nodes.
 * To be compared with another run on the same machine; nothing passes or fails here.
 *
 *   bench_wheel [--json FILE]
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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

enum { ARM, LATER, CANCEL, FIRE, IDLE, COLUMNS };

static const char *const columns[COLUMNS] = { "arm", "re-arm later", "cancel", "move and fire",
	"nothing due" };

/** @return nodes that fired. */
static uint64_t
bench(struct wheel_node *node, uint32_t n, double v[COLUMNS])
{
	double t;
	uint32_t rounds = (ROUNDS + n - 1) / n;
	struct wheel_node *out[32];
	uint64_t found = 0;
	tick_t at = 0;

	wheel_init(&w, 0);
	for (uint32_t r = 0; r < rounds; r++) {
		t = now_ns();
		arm_all(node, n, at);
		v[ARM] += now_ns() - t;
		t = now_ns();
		for (uint32_t i = 0; i < n; i++)
			wheel_arm(&w, &node[i], node[i].deadline + 1);
		v[LATER] += now_ns() - t;
		t = now_ns();
		for (uint32_t i = 0; i < n; i++)
			wheel_cancel(&w, &node[i]);
		v[CANCEL] += now_ns() - t;

		arm_all(node, n, at);
		t = now_ns();
		while (wheel_next(&w) != WHEEL_NEVER) {
			at = wheel_next(&w) > at ? wheel_next(&w) : at;
			found += wheel_advance(&w, at, out, 32);
		}
		v[FIRE] += now_ns() - t;
	}

	wheel_arm(&w, &node[0], at + 1000 * (tick_t)ROUNDS);
	t = now_ns();
	for (uint32_t i = 0; i < ROUNDS; i++)
		found += wheel_advance(&w, at + i / 64, out, 32);
	v[IDLE] = now_ns() - t;
	wheel_cancel(&w, &node[0]);

	for (uint32_t k = 0; k < IDLE; k++)
		v[k] /= (double)rounds * n;
	v[IDLE] /= ROUNDS;
	return found;
}

static void
print_json(FILE *f, uint32_t n, const double v[COLUMNS], bool first)
{
	fprintf(f, "%s\n    {\"nodes\": %" PRIu32, first ? "" : ",", n);
	for (uint32_t k = 0; k < COLUMNS; k++)
		fprintf(f, ", \"%s\": %.2f", columns[k], v[k]);
	fprintf(f, "}");
}

int
main(int argc, char **argv)
{
	static const uint32_t sizes[] = { 1, 1000, 1000000 };
	struct wheel_node *node = calloc(1000000, sizeof(*node));
	FILE *json = NULL;

	if (argc == 3 && strcmp(argv[1], "--json") == 0)
		json = fopen(argv[2], "w");
	if (node == NULL || (argc != 1 && json == NULL)) {
		fprintf(stderr, "bench_wheel: [--json FILE]\n");
		free(node);
		return 1;
	}
	if (json != NULL)
		fprintf(json, "{\n  \"unit\": \"nanoseconds per operation\",\n  \"rows\": [");
	printf("nanoseconds per operation\n%8s", "nodes");
	for (uint32_t k = 0; k < COLUMNS; k++)
		printf(" %14s", columns[k]);
	printf("\n");
	for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
		double v[COLUMNS] = { 0 };

		if (bench(node, sizes[i], v) == 0)
			fprintf(stderr, "bench_wheel: nothing fired\n");
		printf("%8" PRIu32, sizes[i]);
		for (uint32_t k = 0; k < COLUMNS; k++)
			printf(" %14.1f", v[k]);
		printf("\n");
		fflush(stdout);
		if (json != NULL)
			print_json(json, sizes[i], v, i == 0);
	}
	if (json != NULL) {
		fprintf(json, "\n  ]\n}\n");
		fclose(json);
	}
	free(node);
	return 0;
}
