/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a client keeps of its share of a worker beside a client that takes all it can. The yardstick
 * is a neighbour that does as the victim does: one QP, as many WRITEs of 64 bytes as it gets.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_cycles.h>

#include "bench_fair_rig.h"
#include "bench_stat.h"

enum { MAX_REPEATS = 1001 };

#define SAMPLE_NS (4 * TIME_NS_PER_MS)

static const struct fair_case neighbour = { .name = "neighbour",
	.act = ACT_POST,
	.opcode = WR_RDMA_WRITE,
	.qps = 1,
	.depth = VICTIM_DEPTH,
	.len = VICTIM_LEN };

static const struct fair_case cases[] = {
	{ "alone", ACT_NOTHING, 0, 0, 0, 0, 0 },
	{ "neighbour", ACT_POST, WR_RDMA_WRITE, 1, 1, VICTIM_DEPTH, VICTIM_LEN },
	{ "write_64", ACT_POST, WR_RDMA_WRITE, 1, OTHER_QPS, 32, 64 },
	{ "write_lists", ACT_POST, WR_RDMA_WRITE, SGES, OTHER_QPS, 32, 64 },
	{ "write_1m", ACT_POST, WR_RDMA_WRITE, 1, 16, 4, 1 << 20 },
	{ "read_8", ACT_POST, WR_RDMA_READ, 1, OTHER_QPS, 32, 8 },
	{ "read_1m", ACT_POST, WR_RDMA_READ, 1, OTHER_QPS, 4, 1 << 20 },
	{ "atomic", ACT_POST, WR_ATOMIC_FETCH_AND_ADD, 1, OTHER_QPS, 32, 8 },
	{ "rnr_storm", ACT_POST, WR_SEND, 1, OTHER_QPS, 32, 64 },
	{ "flush", ACT_FLUSH, WR_SEND, 1, DEEP_QPS, DEEP, 64 },
	{ "malformed", ACT_MALFORMED, WR_SEND, 1, OTHER_QPS, 32, 64 },
	{ "bells", ACT_BELLS, 0, 0, OTHER_QPS, 0, 0 },
	{ "garbage", ACT_GARBAGE, 0, 0, 0, 0, 0 },
};

struct figures {
	double rate; /* medians */
	double p99;
	double turn;
	double kept;  /* rate, to that beside the neighbour in the sample before */
	double later; /* p99, likewise */
};

static struct figures
measure(const struct fair_case *c, uint32_t repeats, ns_t ns)
{
	static double rate[MAX_REPEATS], p99[MAX_REPEATS], turn[MAX_REPEATS];
	static double kept[MAX_REPEATS], later[MAX_REPEATS];

	for (uint32_t i = 0; i < repeats; i++) {
		const struct fair_sample good = fair_run(&neighbour, ns), s = fair_run(c, ns);

		rate[i] = s.rate;
		p99[i] = s.p99;
		turn[i] = s.turn;
		kept[i] = s.rate / good.rate;
		later[i] = s.p99 != 0 ? s.p99 / good.p99 : 0;
	}
	return (struct figures){ median(rate, repeats), median(p99, repeats),
		median(turn, repeats), median(kept, repeats), median(later, repeats) };
}

static void
print_row(const struct fair_case *c, const struct figures *f)
{
	printf("%-12s %5u %8u %10.0f %9.2f %9.1f %9.1f %7.2f\n", c->name, c->qps, c->len,
		f->rate / 1e3, f->kept, f->p99 / 1e3, f->turn / 1e3, f->later);
	fflush(stdout);
}

static void
print_json(FILE *out, const struct fair_case *c, const struct figures *f, bool first)
{
	fprintf(out,
		"%s\n    {\"case\": \"%s\", \"qps\": %u, \"bytes\": %u, \"rate\": %.6g, "
		"\"kept\": %.4g, \"p99_ns\": %.6g, \"turn_ns\": %.6g, \"later\": %.4g}",
		first ? "" : ",", c->name, c->qps, c->len, f->rate, f->kept, f->p99, f->turn,
		f->later);
}

static void
run(uint32_t repeats, ns_t ns, FILE *json, int argc, char **argv, int at)
{
	bool first = true;

	printf("A client with one QP and %d WRITEs of %d bytes under way, beside another client.\n"
	       "Time is the worker's. kept, later: rate and 99th percentile, to those beside the\n"
	       "neighbour, who does the same; median of %u samples of each in turn, %.1f ms long.\n\n",
		VICTIM_DEPTH, VICTIM_LEN, repeats, (double)ns / 1e6);
	printf("%-12s %5s %8s %10s %9s %9s %9s %7s\n", "other", "QPs", "bytes", "1000/s", "kept",
		"p99 us", "turn us", "later");
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct figures f;

		if (!is_chosen(cases[i].name, argc, argv, at))
			continue;
		f = measure(&cases[i], repeats, ns);
		print_row(&cases[i], &f);
		if (json != NULL)
			print_json(json, &cases[i], &f, first);
		first = false;
	}
}

int
main(int argc, char **argv)
{
	uint32_t repeats = 15;
	ns_t ns = SAMPLE_NS;
	FILE *json = NULL;
	int at = 1;

	for (; at + 1 < argc && strncmp(argv[at], "--", 2) == 0; at += 2) {
		if (strcmp(argv[at], "--json") == 0) {
			json = fopen(argv[at + 1], "w");
			if (json == NULL)
				die("cannot write the JSON file");
		} else if (strcmp(argv[at], "--repeats") == 0) {
			repeats = (uint32_t)strtoul(argv[at + 1], NULL, 10);
		} else if (strcmp(argv[at], "--ms") == 0) {
			ns = strtoul(argv[at + 1], NULL, 10) * TIME_NS_PER_MS;
		} else {
			die("unknown option");
		}
	}
	if (repeats == 0 || repeats > MAX_REPEATS || ns == 0 || ns > TIME_NS_PER_S)
		die("--repeats is 1 to 1001, --ms 1 to 1000");
	fair_set_up();
	if (json != NULL)
		fprintf(json,
			"{\n  \"unit\": \"requests a second of the worker's time, median\",\n"
			"  \"repeats\": %u,\n  \"cases\": [",
			repeats);
	run(repeats, ns, json, argc, argv, at);
	if (json != NULL) {
		fprintf(json, "\n  ]\n}\n");
		fclose(json);
	}
	fair_tear_down();
	return 0;
}
