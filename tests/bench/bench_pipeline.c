/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a packet costs in a worker, in TSC cycles: in all, by stage, and next to two loops on the
 * same in-memory port and the same packets. `bare` answers WRITEs without any protocol
 * (bench_bare.h), `empty` only receives and sends. `ratio` is total to bare: the figure that may be
 * compared between machines. Packets are made outside the timed part, the samples of the loops are
 * interleaved, and a sample whose process had less than 95 % of its time is measured again.
 * Nothing passes or fails here.
 *
 *   bench_pipeline [--json FILE] [--repeats N] [CASE...]
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <rte_cycles.h>
#include <rte_ethdev.h>
#include <rte_ring.h>

#include "bench_rig.h"

enum { MAX_REPEATS = 2001, WARM_UP = 10, TRIES = 5 };
enum { TOTAL, RATIO, BARE, EMPTY, STAGES, COLUMNS = STAGES + STAGE_MAX };

static const char *const columns[COLUMNS] = {
	[TOTAL] = "total",
	[RATIO] = "ratio",
	[BARE] = "bare",
	[EMPTY] = "empty",
	[STAGES + STAGE_RX] = "rx",
	[STAGES + STAGE_PARSE] = "parse",
	[STAGES + STAGE_ICRC] = "icrc",
	[STAGES + STAGE_STEER] = "steer",
	[STAGES + STAGE_RESPOND] = "respond",
	[STAGES + STAGE_REQUEST] = "request",
	[STAGES + STAGE_TX] = "tx",
};

/* clang-format off */
static const struct bench_case cases[] = {
	/* name, opcode, kind, bytes, path MTU, QPs, in random order, traced */
	{ "write_8", OP_RC_WRITE_ONLY, KIND_GOOD, 8, 1024, 32, false, false },
	{ "write_64", OP_RC_WRITE_ONLY, KIND_GOOD, 64, 1024, 32, false, false },
	{ "write_64_coalesced", OP_RC_WRITE_ONLY, KIND_GOOD, 64, 1024, 1, false, false },
	{ "write_64_traced", OP_RC_WRITE_ONLY, KIND_GOOD, 64, 1024, 32, false, true },
	{ "write_1024", OP_RC_WRITE_ONLY, KIND_GOOD, 1024, 1024, 32, false, false },
	{ "write_4096", OP_RC_WRITE_ONLY, KIND_GOOD, 4096, 4096, 32, false, false },
	{ "send_64", OP_RC_SEND_ONLY, KIND_GOOD, 64, 1024, 32, false, false },
	{ "read_64", OP_RC_READ_REQUEST, KIND_GOOD, 64, 1024, 32, false, false },
	{ "read_4096", OP_RC_READ_REQUEST, KIND_GOOD, 4096, 4096, 32, false, false },
	{ "duplicate_64", OP_RC_WRITE_ONLY, KIND_DUPLICATE, 64, 1024, 32, false, false },
	{ "ahead_64", OP_RC_WRITE_ONLY, KIND_AHEAD, 64, 1024, 32, false, false },
	{ "bad_icrc_64", OP_RC_WRITE_ONLY, KIND_BAD_ICRC, 64, 1024, 32, false, false },
	{ "no_qp_64", OP_RC_WRITE_ONLY, KIND_NO_QP, 64, 1024, 32, false, false },
	{ "not_roce_64", OP_RC_WRITE_ONLY, KIND_NOT_ROCE, 64, 1024, 32, false, false },
	{ "write_64_1k_qps", OP_RC_WRITE_ONLY, KIND_GOOD, 64, 1024, 1024, true, false },
	{ "write_64_64k_qps", OP_RC_WRITE_ONLY, KIND_GOOD, 64, 1024, MAX_QPS, true, false },
};
/* clang-format on */

/* ---- samples --------------------------------------------------------------------------------- */

static uint64_t
cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void
turn_worker(struct bench_rig *r)
{
	worker_poll(r->timed, 1);
}

static void
turn_lapped(struct bench_rig *r)
{
	worker_poll(r->lapped, 1);
}

static void
turn_bare(struct bench_rig *r)
{
	bare_poll(&r->bare);
}

static void
turn_empty(struct bench_rig *r)
{
	struct rte_mbuf *m[PIPELINE_BURST];
	uint16_t n = rte_eth_rx_burst(r->port, 0, m, PIPELINE_BURST);

	rte_eth_tx_burst(r->port, 0, m, n);
}

/**
 * One sample: n packets of the case through this loop.
 * @return cycles a packet, or a negative number if too much of the time went to other processes.
 */
static double
sample(struct bench_rig *r, const struct bench_case *c, uint32_t n,
	void (*turn)(struct bench_rig *), uint32_t *frames)
{
	bool worker = turn == turn_worker || turn == turn_lapped;
	uint64_t cpu, start, cycles, wall;

	rig_prepare(r, c, n, worker);
	wall = rte_rdtsc_precise();
	cpu = cpu_ns();
	start = rte_rdtsc_precise();
	while (rte_ring_count(r->to) != 0)
		turn(r);
	cycles = rte_rdtsc_precise() - start;
	cpu = cpu_ns() - cpu;
	wall = rte_rdtsc_precise() - wall;
	*frames = rig_clear(r);
	if (!worker)
		rig_unpost(r, c);
	if ((double)cpu * (double)rte_get_tsc_hz() * 1e-9 < 0.95 * (double)cycles ||
		wall > 4 * cycles + 20000)
		return -1;
	return (double)cycles / n;
}

static int
compare(const void *x, const void *y)
{
	double a = *(const double *)x, c = *(const double *)y;

	return (a > c) - (a < c);
}

static double
median(double *v, uint32_t n)
{
	qsort(v, n, sizeof(*v), compare);
	return v[n / 2];
}

static uint32_t
frames_wanted(const struct bench_case *c, uint32_t n)
{
	if (c->random)
		return 0; /* QPs may meet twice in a burst */
	return c->kind == KIND_GOOD || c->kind == KIND_DUPLICATE
		       ? (c->qps < PIPELINE_BURST ? n / PIPELINE_BURST * c->qps : n)
		       : 0;
}

/** One round over all loops. @return false: it does not count. */
static bool
one_round(struct bench_rig *r, const struct bench_case *c, uint32_t n, double v[COLUMNS])
{
	bool bare = c->opcode == OP_RC_WRITE_ONLY && c->kind == KIND_GOOD;
	uint64_t before[STAGE_MAX];
	uint32_t frames, any;

	v[TOTAL] = sample(r, c, n, turn_worker, &frames);
	v[BARE] = bare ? sample(r, c, n, turn_bare, &any) : 0;
	v[EMPTY] = sample(r, c, n, turn_empty, &any);
	if (frames < frames_wanted(c, n))
		fprintf(stderr, "%s: %" PRIu32 " frames came back\n", c->name, frames);
	v[RATIO] = bare ? v[TOTAL] / v[BARE] : 0;
	memcpy(before, worker_load(r->lapped)->cycles, sizeof(before));
	if (sample(r, c, n, turn_lapped, &any) < 0)
		return false;
	for (uint32_t s = 0; s < STAGE_MAX; s++)
		v[STAGES + s] = (double)(worker_load(r->lapped)->cycles[s] - before[s]) / n;
	return v[TOTAL] >= 0 && v[BARE] >= 0 && v[EMPTY] >= 0;
}

/** Medians of all columns. @return rounds that counted. */
static uint32_t
measure(struct bench_rig *r, const struct bench_case *c, uint32_t repeats, double out[COLUMNS])
{
	static double v[COLUMNS][MAX_REPEATS];
	uint32_t n = rig_begin(r, c), good = 0;

	for (uint32_t i = 0; i < repeats * TRIES + WARM_UP && good < repeats; i++) {
		double one[COLUMNS];

		if (!one_round(r, c, n, one) || i < WARM_UP)
			continue;
		for (uint32_t k = 0; k < COLUMNS; k++)
			v[k][good] = one[k];
		good++;
	}
	for (uint32_t k = 0; k < COLUMNS; k++)
		out[k] = good != 0 ? median(v[k], good) : 0;
	return good;
}

/* ---- figures --------------------------------------------------------------------------------- */

static void
print_json(FILE *f, const struct bench_case *c, const double *v, uint32_t good, bool first)
{
	fprintf(f,
		"%s\n    {\"case\": \"%s\", \"bytes\": %u, \"qps\": %" PRIu32
		", \"samples\": %" PRIu32,
		first ? "" : ",", c->name, c->len, c->qps, good);
	for (uint32_t i = 0; i < COLUMNS; i++)
		if (v[i] != 0)
			fprintf(f, ", \"%s\": %.2f", columns[i], v[i]);
	fprintf(f, "}");
}

static void
print_row(const struct bench_case *c, const double *v)
{
	printf("%-20s", c->name);
	for (uint32_t k = 0; k < COLUMNS; k++)
		if (k == RATIO || k == BARE)
			v[k] != 0 ? printf(" %8.*f", k == RATIO ? 2 : 1, v[k])
				  : printf(" %8s", "-");
		else
			printf(" %8.1f", v[k]);
	printf("\n");
	fflush(stdout);
}

static bool
is_chosen(const char *name, int argc, char **argv, int from)
{
	if (from >= argc)
		return true;
	for (int i = from; i < argc; i++)
		if (strcmp(argv[i], name) == 0)
			return true;
	return false;
}

struct options {
	uint32_t repeats;
	FILE *json;
	int cases_at;
};

static struct options
options(int argc, char **argv)
{
	struct options o = { .repeats = 301, .cases_at = 1 };

	for (; o.cases_at + 1 < argc && strncmp(argv[o.cases_at], "--", 2) == 0; o.cases_at += 2) {
		const char *value = argv[o.cases_at + 1];

		if (strcmp(argv[o.cases_at], "--json") == 0) {
			o.json = fopen(value, "w");
			if (o.json == NULL)
				die("cannot write the JSON file");
		} else if (strcmp(argv[o.cases_at], "--repeats") == 0) {
			o.repeats = (uint32_t)strtoul(value, NULL, 10);
		} else {
			die("unknown option");
		}
	}
	if (o.repeats == 0 || o.repeats > MAX_REPEATS)
		die("--repeats is 1 to 2001");
	return o;
}

int
main(int argc, char **argv)
{
	static struct bench_rig r;
	struct options o = options(argc, argv);
	uint32_t qps = RING_QPS;
	bool first = true;

	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		if (is_chosen(cases[i].name, argc, argv, o.cases_at) && cases[i].qps > qps)
			qps = cases[i].qps;
	rig_set_up(&r, qps);
	if (o.json != NULL)
		fprintf(o.json,
			"{\n  \"unit\": \"TSC cycles per packet, median\",\n"
			"  \"tsc_hz\": %" PRIu64 ",\n  \"crc\": \"%s\",\n  \"cases\": [",
			rte_get_tsc_hz(), r.conf.crc->name);
	printf("TSC cycles per packet (%.0f MHz), median of %" PRIu32 " samples\n%-20s",
		(double)rte_get_tsc_hz() / 1e6, o.repeats, "case");
	for (uint32_t i = 0; i < COLUMNS; i++)
		printf(" %8s", columns[i]);
	printf("\n");
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		double v[COLUMNS];
		uint32_t good;

		if (!is_chosen(cases[i].name, argc, argv, o.cases_at))
			continue;
		good = measure(&r, &cases[i], o.repeats, v);
		print_row(&cases[i], v);
		if (o.json != NULL)
			print_json(o.json, &cases[i], v, good, first);
		first = false;
	}
	if (o.json != NULL) {
		fprintf(o.json, "\n  ]\n}\n");
		fclose(o.json);
	}
	rig_tear_down(&r);
	return 0;
}
