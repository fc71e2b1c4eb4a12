/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a second worker brings, and what it costs to hand a packet over to it. WRITE ONLY requests
 * on in-memory ports, each worker pinned to a CPU, packets made on the CPU that receives them and
 * outside the timed part:
 *
 *   one       cycles a packet of the only worker there is
 *   alone     of one of two, while the other does nothing
 *   two       of two that run at the same time, each with a port and QPs of its own
 *   speedup   packets a second of those to those of `one`
 *   at_first, at_owner  packets that the first worker receives for QPs of the second: cycles at
 *             either, one after the other
 *   handoff   what both take together more than `alone`
 *   crossed   of two that run at the same time, each with packets for QPs of the other
 *
 * A handed packet's lines come out of the other CPU's cache, so that at_owner is mostly how far
 * apart the two CPUs are, which on a virtual machine may change by the minute. `crossed` has what
 * that does not show: what two workers do to each other's caches while they run.
 * Then more workers than there are CPUs, by simulation (bench_workers_many.h): one thread plays all
 * of them, and each hands all over but an even part; `cycles` of a packet at all workers together.
 *   half      a worker that is alone, two of which each has packets of the other's QPs for half of
 *             those that it receives, and what the second one brings
 * Samples are interleaved; one in which a thread had less than 95 % of its time is measured again.
 * No figure passes or fails here; a lane that does not have an answer to each request fails.
 *
 *   bench_workers [--json FILE] [--repeats N]
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <rte_cycles.h>
#include <rte_launch.h>
#include <rte_lcore.h>
#include <rte_pause.h>
#include <rte_ring.h>

#include "bench_rig.h"
#include "bench_stat.h"
#include "bench_workers_many.h"
#include "net_pair.h"

enum { MAX_REPEATS = 2001, WARM_UP = 10, TRIES = 5, LANES = 2 };
enum { FIRST = 64 };                /* packets of a sample before those that are timed */
enum { IDLE = 100u * 1000 * 1000 }; /* turns, of a worker that waits for a lost packet */

/** A worker with its link, on a CPU. */
struct lane {
	struct bench_rig rig; /* to, from: this lane's */
	const struct bench_case *c;
	struct worker *w;
	struct rte_ring *until; /* it runs until this is empty ... */
	struct rte_ring *out;   /* ... and, where this is not NULL, until all answers are in it */
	uint32_t lcore;
	uint32_t first; /* QP */
	uint32_t n;
	uint64_t began;
	uint64_t ended;
	bool counts;
};

static const struct bench_case cases[] = {
	{ .name = "write_64", .opcode = OP_RC_WRITE_ONLY, .len = 64, .pmtu = 1024, .qps = 32 },
	{ .name = "write_1024", .opcode = OP_RC_WRITE_ONLY, .len = 1024, .pmtu = 1024, .qps = 32 },
};

static struct bench_rig rig;
static struct lane lane[LANES];
static struct rte_ring *handoff[LANES];
static _Atomic uint32_t ready;
static uint32_t running;

/* ---- a lane ---------------------------------------------------------------------------------- */

static int
lane_prepare(void *arg)
{
	struct lane *l = arg;

	rig_choose(l->first, l->first != 0);
	for (uint32_t left = l->n + FIRST; left != 0;) {
		uint32_t n = RTE_MIN(left, (uint32_t)MAX_PACKETS);

		rig_prepare(&l->rig, l->c, n, true);
		left -= n;
	}
	return 0;
}

static int
lane_clear(void *arg)
{
	struct lane *l = arg;
	uint32_t frames = rig_clear(&l->rig);

	if (frames == l->n + FIRST)
		return 0;
	fprintf(stderr, "%s: %" PRIu32 " of %" PRIu32 " frames came back\n", l->c->name, frames,
		l->n + FIRST);
	exit(1);
}

static uint64_t
cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/** Until no more than so many packets of the lane are left. */
static inline void
lane_serve(const struct lane *l, uint32_t n)
{
	uint32_t idle = 0;

	if (l->out == NULL) {
		while (rte_ring_count(l->until) > n)
			worker_poll(l->w, 1);
		return;
	}
	while ((rte_ring_count(l->out) < l->n + FIRST - n || rte_ring_count(l->until) > n) &&
		idle < IDLE)
		idle = worker_poll(l->w, 1) != 0 ? 0 : idle + 1;
}

static int
lane_run(void *arg)
{
	struct lane *l = arg;
	uint64_t cpu;

	lane_serve(l, l->n);
	atomic_fetch_add(&ready, 1);
	while (atomic_load(&ready) < running)
		rte_pause();
	cpu = cpu_ns();
	l->began = rte_rdtsc_precise();
	lane_serve(l, 0);
	l->ended = rte_rdtsc_precise();
	cpu = cpu_ns() - cpu;
	l->counts = (double)cpu * (double)rte_get_tsc_hz() * 1e-9 >=
		    0.95 * (double)(l->ended - l->began);
	return 0;
}

/** Each on its CPU, all at the same time, and wait for the end. */
static void
on_all(int (*what)(void *))
{
	for (uint32_t i = 1; i < LANES; i++)
		rte_eal_remote_launch(what, &lane[i], lane[i].lcore);
	what(&lane[0]);
	rte_eal_mp_wait_lcore();
}

/** On its CPU, and wait for the end. */
static void
on(struct lane *l, int (*what)(void *))
{
	if (l->lcore == rte_lcore_id()) {
		what(l);
		return;
	}
	rte_eal_remote_launch(what, l, l->lcore);
	rte_eal_wait_lcore(l->lcore);
}

/** Lanes 0 to n - 1 at the same time. @return cycles from the first start to the last end. */
static double
race(uint32_t n)
{
	uint64_t began, ended;

	atomic_store(&ready, 0);
	running = n;
	for (uint32_t i = 1; i < n; i++)
		rte_eal_remote_launch(lane_run, &lane[i], lane[i].lcore);
	lane_run(&lane[0]);
	rte_eal_mp_wait_lcore();
	began = lane[0].began;
	ended = lane[0].ended;
	for (uint32_t i = 1; i < n; i++) {
		began = RTE_MIN(began, lane[i].began);
		ended = RTE_MAX(ended, lane[i].ended);
	}
	return (double)(ended - began);
}

/* ---- samples --------------------------------------------------------------------------------- */

/** QPs from `first` on belong to this worker; their packets and answers are this port's. */
static void
give(const struct bench_case *c, uint32_t first, uint8_t worker, uint16_t port)
{
	for (uint32_t i = first; i < first + c->qps; i++) {
		struct qp *qp = qp_lookup(rig.conf.qps, MAX_QPS + i);

		qp_table_give(rig.conf.qps, qp, worker);
		qp->port = qp->out = (uint8_t)port;
	}
}

static double
sample_one(struct worker *w)
{
	lane[0].w = w;
	lane[0].until = lane[0].rig.to;
	on(&lane[0], lane_prepare);
	running = 1;
	atomic_store(&ready, 0);
	on(&lane[0], lane_run);
	on(&lane[0], lane_clear);
	return lane[0].counts ? (double)(lane[0].ended - lane[0].began) / lane[0].n : -1;
}

static double
sample_two(struct worker *const *w)
{
	double cycles;

	for (uint32_t i = 0; i < LANES; i++) {
		lane[i].w = w[i];
		lane[i].until = lane[i].rig.to;
	}
	on_all(lane_prepare);
	cycles = race(LANES);
	for (uint32_t i = 0; i < LANES; i++)
		on(&lane[i], lane_clear);
	return lane[0].counts && lane[1].counts ? cycles / (2.0 * lane[0].n) : -1;
}

/** Packets on each lane for the other worker's QPs: a worker answers on the other one's port. */
static double
sample_crossed(struct worker *const *w)
{
	double cycles;

	for (uint32_t i = 0; i < LANES; i++) {
		give(lane[0].c, i * RING_QPS, (uint8_t)i, lane[1 - i].rig.port);
		lane[i].w = w[i];
		lane[i].until = lane[i].rig.to;
		lane[i].out = lane[1 - i].rig.from;
		lane[i].first = (1 - i) * RING_QPS;
	}
	on_all(lane_prepare);
	cycles = race(LANES);
	on_all(lane_clear);
	for (uint32_t i = 0; i < LANES; i++) {
		give(lane[0].c, i * RING_QPS, (uint8_t)i, lane[i].rig.port);
		lane[i].out = NULL;
		lane[i].first = i * RING_QPS;
	}
	return lane[0].counts && lane[1].counts ? cycles / (2.0 * lane[0].n) : -1;
}

/** Packets on the first lane for the second worker's QPs; one after the other, each on its CPU. */
static bool
sample_handed(struct worker *const *w, double *at_first, double *at_owner)
{
	struct lane owner = lane[1];

	give(lane[0].c, RING_QPS, 1, rig.port);
	lane[0].w = w[0];
	lane[0].until = lane[0].rig.to;
	lane[0].first = RING_QPS;
	owner.w = w[1];
	owner.n = lane[0].n;
	owner.until = handoff[1];
	owner.rig.from = lane[0].rig.from;
	on(&lane[0], lane_prepare);
	running = 1;
	atomic_store(&ready, 0);
	on(&lane[0], lane_run);
	atomic_store(&ready, 0);
	on(&owner, lane_run);
	on(&owner, lane_clear);
	lane[0].first = 0;
	give(lane[0].c, RING_QPS, 1, lane[1].rig.port);
	*at_first = (double)(lane[0].ended - lane[0].began) / lane[0].n;
	*at_owner = (double)(owner.ended - owner.began) / owner.n;
	return lane[0].counts && owner.counts;
}

/* ---- figures --------------------------------------------------------------------------------- */

enum { ONE, ALONE, TWO, SPEEDUP, AT_FIRST, AT_OWNER, HANDOFF, CROSSED, COLUMNS };
static const char *const columns[COLUMNS] = { "one", "alone", "two", "speedup", "at_first",
	"at_owner", "handoff", "crossed" };

static uint32_t
measure(const struct bench_case *c, struct worker *const *w, uint32_t repeats, double out[COLUMNS])
{
	static double v[COLUMNS][MAX_REPEATS];
	uint32_t good = 0, n;

	rig_choose(0, 0);
	n = rig_begin(&rig, c);
	rig_choose(RING_QPS, 1);
	rig_begin(&rig, c);
	give(c, RING_QPS, 1, lane[1].rig.port);
	for (uint32_t i = 0; i < LANES; i++) {
		lane[i].c = c;
		lane[i].n = c->len <= 64 ? 4 * n : n;
	}
	for (uint32_t i = 0; i < repeats * TRIES + WARM_UP && good < repeats; i++) {
		double one = sample_one(rig.timed), alone = sample_one(w[0]);
		double two = sample_two(w), crossed = sample_crossed(w), first, owner;
		bool counts = sample_handed(w, &first, &owner);

		if (!counts || one < 0 || alone < 0 || two < 0 || crossed < 0 || i < WARM_UP)
			continue;
		v[ONE][good] = one;
		v[ALONE][good] = alone;
		v[TWO][good] = two;
		v[SPEEDUP][good] = one / two;
		v[AT_FIRST][good] = first;
		v[AT_OWNER][good] = owner;
		v[HANDOFF][good] = first + owner - alone;
		v[CROSSED][good] = crossed;
		good++;
	}
	for (uint32_t k = 0; k < COLUMNS; k++)
		out[k] = good != 0 ? median(v[k], good) : 0;
	return good;
}

static void
set_up(struct worker **w)
{
	struct worker_conf conf;

	rig_set_up(&rig, MANY_QPS);
	if (rte_lcore_count() < LANES)
		die("it takes two CPUs");
	for (uint32_t i = 0; i < LANES; i++) {
		lane[i].rig = rig;
		lane[i].first = i * RING_QPS;
		lane[i].lcore = i == 0 ? rte_get_main_lcore()
				       : rte_get_next_lcore(rte_get_main_lcore(), 1, 0);
		handoff[i] = rte_ring_create(
			i == 0 ? "handoff0" : "handoff1", 4096, rig.conf.socket, RING_F_SC_DEQ);
		if (handoff[i] == NULL)
			die("no ring");
	}
	if (net_pair_create_open("second", 2048, 0, &lane[1].rig.port, &lane[1].rig.to,
		    &lane[1].rig.from) != 0 ||
		net_pair_start(lane[1].rig.port, rig.pool) != 0)
		die("no second port");
	conf = rig.conf;
	conf.workers_n = conf.ports_n = LANES;
	conf.ports[1] = conf.ports[0];
	conf.ports[1].id = lane[1].rig.port;
	memcpy(conf.handoff, handoff, sizeof(handoff));
	for (uint16_t i = 0; i < LANES; i++) {
		conf.index = i;
		conf.handoff_in = handoff[i];
		conf.ports[0].polls_rx = i == 0;
		conf.ports[1].polls_rx = i == 1;
		w[i] = worker_create(&conf);
		if (w[i] == NULL)
			die("no worker");
	}
}

static uint32_t
options(int argc, char **argv, FILE **json)
{
	uint32_t repeats = 301;

	for (int i = 1; i < argc; i += 2) {
		if (i + 1 < argc && strcmp(argv[i], "--json") == 0) {
			*json = fopen(argv[i + 1], "w");
			if (*json == NULL)
				die("cannot write the JSON file");
		} else if (i + 1 < argc && strcmp(argv[i], "--repeats") == 0) {
			repeats = (uint32_t)strtoul(argv[i + 1], NULL, 10);
		} else {
			repeats = 0;
		}
	}
	if (repeats == 0 || repeats > MAX_REPEATS) {
		fprintf(stderr, "usage: bench_workers [--json FILE] [--repeats 1..2001]\n");
		exit(2);
	}
	return repeats;
}

/** Two workers on two CPUs, of which each hands over half of what it receives. */
static void
print_half(FILE *json, uint32_t repeats)
{
	printf("\nhalf         %8s %9s %9s %9s\n", "samples", "one", "two", "speedup");
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		const struct many_half h = many_half(&cases[i], lane[1].lcore, repeats);

		printf("%-12s %8" PRIu32 " %9.1f %9.1f %9.2f\n", cases[i].name, h.samples, h.one,
			h.two, h.speedup);
		if (json != NULL)
			fprintf(json,
				"%s\n    {\"case\": \"%s\", \"samples\": %" PRIu32
				", \"one\": %.2f, \"two\": %.2f, \"speedup\": %.3f}",
				i == 0 ? "" : ",", cases[i].name, h.samples, h.one, h.two,
				h.speedup);
	}
}

/** More workers than CPUs, by simulation. */
static void
print_many(FILE *json, uint32_t repeats)
{
	static const uint32_t counts[] = { 1, 2, 4, 8, MANY_MOST };

	printf("\nsimulated    %8s %9s %9s %9s\n", "workers", "handed", "cycles", "speedup");
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		double one = 0;

		for (size_t k = 0; k < ARRAY_LEN(counts); k++) {
			const struct many m = many_measure(&cases[i], counts[k], repeats);

			one = k == 0 ? m.busiest : one;
			printf("%-12s %8" PRIu32 " %9.2f %9.1f %9.2f\n", cases[i].name, counts[k],
				m.handed, m.cycles, one / m.busiest);
			if (json != NULL)
				fprintf(json,
					"%s\n    {\"case\": \"%s\", \"workers\": %" PRIu32
					", \"handed\": %.3f, \"cycles\": %.2f, "
					"\"speedup\": %.3f}",
					i + k == 0 ? "" : ",", cases[i].name, counts[k], m.handed,
					m.cycles, one / m.busiest);
		}
	}
}

int
main(int argc, char **argv)
{
	FILE *json = NULL;
	uint32_t repeats = options(argc, argv, &json);
	struct worker *w[LANES];

	set_up(w);
	printf("TSC cycles per packet (%.0f MHz), median of %" PRIu32 " samples\n%-12s %8s",
		(double)rte_get_tsc_hz() / 1e6, repeats, "case", "samples");
	for (uint32_t k = 0; k < COLUMNS; k++)
		printf(" %9s", columns[k]);
	printf("\n");
	if (json != NULL)
		fprintf(json, "{\n  \"unit\": \"TSC cycles per packet, median\",\n  \"cases\": [");
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		double v[COLUMNS];
		uint32_t good = measure(&cases[i], w, repeats, v);

		printf("%-12s %8" PRIu32, cases[i].name, good);
		for (uint32_t k = 0; k < COLUMNS; k++)
			printf(" %9.*f", k == SPEEDUP ? 2 : 1, v[k]);
		printf("\n");
		if (json == NULL)
			continue;
		fprintf(json, "%s\n    {\"case\": \"%s\", \"samples\": %" PRIu32, i == 0 ? "" : ",",
			cases[i].name, good);
		for (uint32_t k = 0; k < COLUMNS; k++)
			fprintf(json, ", \"%s\": %.2f", columns[k], v[k]);
		fprintf(json, "}");
	}
	if (json != NULL)
		fprintf(json, "\n  ],\n  \"half\": [");
	many_set_up(&rig);
	print_half(json, repeats);
	if (json != NULL)
		fprintf(json, "\n  ],\n  \"simulated\": [");
	print_many(json, repeats);
	if (json != NULL) {
		fprintf(json, "\n  ]\n}\n");
		fclose(json);
	}
	worker_destroy(w[0]);
	worker_destroy(w[1]);
	rig_tear_down(&rig);
	return 0;
}
