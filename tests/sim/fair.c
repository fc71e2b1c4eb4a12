/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Flows with DCQCN through one bottleneck, in virtual time (CC-27): M from the beginning, M more
 * at T0. Each flow always has something to send; what is marked draws a CNP, at most one in an
 * interval and flow. Without arguments small tables are made and judged; `fair M PRESET|delay MS
 * [SEED]` plays one row, and prints queue and rates over time to standard error, as CSV; its
 * flows have a window each, and the buffer holds all windows. Without one, many flows that all
 * begin at the link's rate fill any buffer before the first CNP is back, and who is dropped is not
 * marked.
 *
 * Judged are, over the last half of the time: the sum of the rates, Jain's index (sum of
 * rates)^2 / (n * sum of squares), losses, and the queue, against the fixed point of the fluid
 * model, whose derivation is in fair_model.c.
 *
 * First table: one link of 40 Gb/s, the paper's rate, whatever the number of flows. The model has
 * neither the packets' grain nor the oscillation around its fixed point, so the mean queue may be
 * 30 % off (up to 26 % was seen), and the queue's 99th percentile is far from that point. It has to
 * be within 10 % of what the model's flows come to where their cuts are whole ones, each at its own
 * time: fair_model_cuts.c (up to 4 % was seen). With 64 flows and the paper's step of 40 Mb/s the
 * queue runs empty at times (0.87 of the link), so that row has a smaller step.
 *
 * Second table, M = 4, 16, 64, 256: the model is a mean field. It becomes exact when many flows,
 * each of which has many packets between two cuts, share a link that grows with them; a flow's
 * step is small against its share. There the queue's 99th percentile has to be within 10 % of the
 * fixed point, and the time until the newcomers have their share within 10 % of the model's. What
 * settles is the mean of each half, as in the model: one flow alone swings around its share for
 * ever, by about 5 % at an index of 0.997, so "all flows within 10 % in one millisecond" never
 * comes with 512 of them, or by chance. With four newcomers chance is in their mean, too, so the
 * halves' rates are those of several seeds: 64 newcomers together where there are less. A limit
 * is that of the way there: 64 + 64 hosts of 10 Gb/s with a share of 5, instead of those of 40
 * in the table, come to rest in a third of the model's time. What happens before the first CNP,
 * and in a few round trips after it, is not in the equations.
 *
 * Incast and victims are in fair_incast.c, cc.algo=delay in fair_delay.c; --long plays more seeds
 * of the first, and longer rows of the second.
 *
 * What the rows do not show: the buffer is so large that no flow is ever dropped, larger than
 * any switch's, as the first CNP comes only when all flows have sent for a while at the link's
 * rate. At 10 Gb/s with the paper's RED the sum stays below 0.95 of the link.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "args.h"
#include "fair.h"

#define USAGE "sim-fair [--long | SEED | M PRESET|delay MS [SEED]]"

#define TOGETHER   64u /* newcomers whose mean is looked at, at least */
#define NEAR_MODEL 0.1

static bool
is_near(double x, double model, double part)
{
	return fabs(x - model) <= part * model;
}

bool
fair_is_shared(const struct fair_row *r)
{
	const double mbps = (double)r->link.rate / 1e6;

	return r->sum >= 0.95 * mbps && r->sum <= 1.001 * mbps && r->jain >= 0.98 &&
	       r->dropped == 0;
}

/* ---- one link -------------------------------------------------------------------------------- */

static void
print_row(const struct fair_row *r, double model, double p99, double mark)
{
	printf("%5u %9.0f %6.4f %9llu %8llu %10.0f %10.0f %10.0f %10.0f %+6.1f%% %8.5f\n", r->flows,
		r->sum, r->jain, (unsigned long long)r->cnps, (unsigned long long)r->dropped,
		r->mean, model, r->p99, p99, p99 != 0 ? 100 * (r->p99 / p99 - 1) : 0, mark);
}

/** @return is it as it must be? */
static bool
one_link(uint32_t flows, uint32_t ai)
{
	struct fair_row r = { .flows = flows,
		.preset = CC_PAPER,
		.ms = 200,
		.ai = ai,
		.seed = 1,
		.link = fair_link(40) };
	double mark, model = fair_model_queue(&r, &mark);
	const double p99 = fair_model_p99(&r);
	uint64_t digest;
	bool good;

	fair_play(&r);
	print_row(&r, model, p99, mark);
	good = fair_is_shared(&r) && is_near(r.mean, model, 0.3) && is_near(r.p99, p99, NEAR_MODEL);
	if (flows != 2)
		return good;
	digest = r.digest;
	fair_play(&r);
	return good && r.digest == digest; /* the same seed: the same bytes */
}

/* ---- M flows, and M more --------------------------------------------------------------------- */

struct growth {
	uint32_t m;
	double share;  /* of the link, for each flow, Gb/s */
	uint32_t line; /* of a host, Mb/s */
	uint32_t ai;
	uint32_t ms;
};

bool
fair_is_settled(const double rate[2], uint32_t *slices)
{
	if (fabs(rate[0] - 1) <= NEAR_MODEL && fabs(rate[1] - 1) <= NEAR_MODEL)
		++*slices;
	else
		*slices = 0;
	return *slices >= TIME_NS_PER_MS / FAIR_SLICE;
}

double
fair_settles(const struct fair_row *r, uint32_t runs)
{
	const double fair =
		(double)r->link.rate / 8e9 / 2 * (double)FAIR_SLICE * runs; /* of a half */
	uint32_t slices = 0;

	for (uint32_t i = 0; i < r->ms * TIME_NS_PER_MS / FAIR_SLICE; i++) {
		const double rate[2] = { (double)r->halves[0][i] / fair,
			(double)r->halves[1][i] / fair };

		if (fair_is_settled(rate, &slices) && i * FAIR_SLICE >= fair_t0(r))
			return (double)((i + 1) * FAIR_SLICE - fair_t0(r)) / 1e6;
	}
	return 0;
}

static bool
grows(const struct growth *g, uint64_t seed)
{
	static uint64_t halves[2][FAIR_SLICES];
	struct fair_row r = { .flows = 2 * g->m,
		.preset = CC_PAPER,
		.ms = g->ms,
		.ai = g->ai,
		.line = g->line,
		.halves = halves,
		.link = fair_link(g->share * 2 * g->m) };
	const uint32_t runs = g->m < TOGETHER ? TOGETHER / g->m : 1;
	const double model_settles = fair_model_settles(&r);
	double mark, model = fair_model_queue(&r, &mark), jain = 1, p99 = 0, took;
	bool good = true;

	memset(halves, 0, sizeof(halves));
	for (uint32_t i = 0; i < runs; i++) {
		r.seed = seed + i;
		fair_play(&r);
		good &= fair_is_shared(&r);
		jain = fmin(jain, r.jain);
		p99 += r.p99 / runs;
	}
	took = fair_settles(&r, runs);
	printf("%5u %6.0f %5.2f %4u %9.0f %6.4f %10.0f %10.0f %+6.1f%% %8.2f %8.2f %+6.1f%%\n",
		g->m, (double)r.link.rate / 1e9, g->share, runs, r.sum, jain, p99, model,
		100 * (p99 / model - 1), took, model_settles, 100 * (took / model_settles - 1));
	return good && is_near(p99, model, NEAR_MODEL) && is_near(took, model_settles, NEAR_MODEL);
}

static uint32_t
all_grow(uint64_t seed)
{
	static const struct growth rows[] = {
		{ 4, 15, 48000, 45, 240 },
		{ 16, 12.5, 40000, 35, 240 },
		{ 64, 5, 40000, 10, 240 },
		{ 256, 1.9, 10000, 5, 160 },
	};
	uint32_t failed = 0;

	puts("\n    M   Gb/s share runs      Mb/s   Jain        p99      model         settled   "
	     "model ms");
	for (uint32_t i = 0; i < ARRAY_LEN(rows); i++)
		failed += !grows(&rows[i], seed);
	return failed;
}

/* ---- all ------------------------------------------------------------------------------------- */

static int
one_row(int argc, char **argv)
{
	static const char *const presets[] = {
		[CC_MLX5] = "mlx5", [CC_PAPER] = "paper", [CC_HPCC] = "hpcc"
	};
	const uint64_t flows = args_number(argv[1], USAGE), ms = args_number(argv[3], USAGE);
	struct fair_row r = { .flows = flows <= FAIR_MOST ? 2 * (uint32_t)flows : 0,
		.preset = CC_PAPER,
		.by_delay = strcmp(argv[2], "delay") == 0,
		.ms = ms <= 4000 ? (uint32_t)ms : 0,
		.seed = argc > 4 ? args_number(argv[4], USAGE) : 1,
		.csv = true,
		.window = FAIR_WINDOW,
		.link = fair_link(40) };
	double mark = 0, model;
	uint32_t preset = 0;

	while (preset < CC_PRESETS && strcmp(argv[2], presets[preset]) != 0)
		preset++;
	if (argc > 5 || (preset == CC_PRESETS && !r.by_delay))
		args_bad(USAGE);
	if (!r.by_delay)
		r.preset = (enum cc_preset)preset;
	if (r.flows == 0 || r.flows > FAIR_MOST || r.ms < 8 || r.ms > 4000) {
		fprintf(stderr, "fair: 1 to %u flows, 8 to 4000 ms\n", FAIR_MOST / 2);
		return 2;
	}
	r.link.buffer = r.flows * FAIR_WINDOW * FAIR_FRAME;
	if (r.by_delay)
		r.link.kmin = r.link.kmax = 0;
	fair_play(&r);
	model = r.by_delay ? fair_model_delay(&r) : fair_model_queue(&r, &mark);
	print_row(&r, model, 0, mark);
	return 0;
}

int
main(int argc, char **argv)
{
	static const struct {
		uint32_t flows, ai;
	} rows[] = { { 2, 0 }, { 8, 0 }, { 16, 0 }, { 32, 0 }, { 32, 10 }, { 64, 10 } };
	const bool all = argc == 2 && strcmp(argv[1], "--long") == 0;
	const uint64_t seed = argc == 2 && !all ? args_number(argv[1], USAGE) : 1;
	uint32_t failed = 0;

	if (argc >= 4)
		return one_row(argc, argv);
	if (argc == 3)
		args_bad(USAGE);
	puts("flows      Mb/s   Jain      CNPs  dropped       mean      model        p99      model "
	     "                p");
	for (uint32_t i = 0; i < ARRAY_LEN(rows); i++)
		failed += !one_link(rows[i].flows, rows[i].ai);
	failed += all_grow(seed);
	failed += fair_incasts(all) + fair_delays(all);
	printf("%s\n", failed == 0 ? "ok" : "FAILED");
	return failed != 0;
}
