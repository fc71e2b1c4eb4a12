/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Flows with DCQCN that begin all at once, and a flow beside them (CC-27).
 *
 * Incast without windows: n flows begin together at the link's rate, and nothing but CNPs stops
 * them. The queue that this makes, before the first CNPs are back and while the rates halve, has a
 * model, fair_model_incast.c. The mean of the longest queues of some seeds is within 5 % of it: of
 * so many that 256 flows are played in all, for chance is in each flow's first mark. With the
 * buffer that the model asks for nothing may be lost, with half of the model something must be.
 * Jain's index is that of the second half of 60 ms; the sum is printed, not judged: after an incast
 * of 64 the rates are so low that it takes longer than that to use all of the link again.
 *
 * Incast with windows, as the requester has them: what is not acknowledged is in the queue or on
 * its way, so a buffer of n windows loses nothing, whatever the rates are.
 *
 * Victim: a flow beside an incast of 7, which is not for the bottleneck, and begins with it. Either
 * it shares its host's link with one of them: then its due is what that one's share of the
 * bottleneck leaves, 40 - 40 / 7 Gb/s. Or it shares a first switch's way out with all of them, 100
 * Gb/s with marks of its own: then its due is its host's 40 Gb/s. It may have 5 % less than its
 * due, in each half of the 200 ms; but with DCQCN at a shared switch only in the second half. All
 * eight begin at 40 Gb/s there, 320 for a link of 100: until the incast is down the victim is to
 * blame for as much as each of the others, the way out marks everybody, and no scheme of marks can
 * tell them apart. What it is about 25 % short of in the first half is the way back up, 40 Mb/s
 * each 55 us from a few Gb/s: that is DCQCN's, with the paper's step, and tens of milliseconds
 * long. With cc.algo=delay (fair_delay.c) the victim has its due from the beginning: only the
 * incast's round trips are long, since the queue of the bottleneck is in theirs and not in the
 * victim's.
 */
#include <math.h>
#include <stdio.h>

#include "fair.h"

#define TOGETHER   256u /* flows that are played in all, at least */
#define FIRST_MS   4    /* the queue is longest in the first of them */
#define NEAR_MODEL 0.05
#define VICTIM_DUE 0.95

static struct fair_row
incast_of(uint32_t n, uint64_t seed)
{
	return (struct fair_row){ .flows = n,
		.preset = CC_PAPER,
		.ms = 60,
		.ai = n > 32 ? 10 : 0,
		.seed = seed,
		.together = true,
		.link = fair_link(40) };
}

/** @return nothing, or with half of what the model has something, is lost. */
static bool
first_cnps(uint32_t n, uint64_t seed)
{
	const uint32_t runs = n < TOGETHER ? TOGETHER / n : 1;
	struct fair_row r = incast_of(n, seed);
	const double model = fair_model_incast(&r), asked = model * (1 + 1 / sqrt(n));
	double longest = 0, jain, sum;
	bool good;

	r.link.buffer = (uint32_t)asked;
	fair_play(&r);
	good = r.dropped == 0 && r.jain >= 0.95;
	jain = r.jain;
	sum = r.sum;
	r.ms = FIRST_MS;
	for (uint32_t i = 0; i < runs; i++) {
		r.seed = seed + i;
		fair_play(&r);
		good &= r.dropped == 0;
		longest += (double)r.longest / runs;
	}
	r.link.buffer = (uint32_t)(model / 2);
	fair_play(&r);
	printf("%5u %4u %9.0f %6.4f %11.0f %11.0f %+6.1f%% %11.0f %8llu\n", n, runs, sum, jain,
		longest, model, 100 * (longest / model - 1), asked, (unsigned long long)r.dropped);
	return good && r.dropped != 0 && fabs(longest / model - 1) <= NEAR_MODEL;
}

static bool
windows(uint32_t n)
{
	struct fair_row r = incast_of(n, 1);

	r.window = FAIR_WINDOW;
	r.link.buffer = n * FAIR_WINDOW * FAIR_FRAME;
	fair_play(&r);
	printf("%5u %9.0f %6.4f %9llu %8llu %10.0f %10.0f %10u %10u\n", n, r.sum, r.jain,
		(unsigned long long)r.cnps, (unsigned long long)r.dropped, r.mean, r.p99, r.longest,
		r.link.buffer);
	return r.dropped == 0 && r.sum >= 0.95 * (double)r.link.rate / 1e6 && r.jain >= 0.98;
}

bool
fair_victim(enum fair_victim kind, bool by_delay, const char *name)
{
	struct fair_row r = { .flows = 7,
		.preset = CC_PAPER,
		.by_delay = by_delay,
		.ms = 200,
		.seed = 1,
		.together = true,
		.victim = kind,
		.link = fair_link(40),
		.hop = fair_link(100) };
	const double line = (double)r.link.rate / 1e6;
	const double due = kind == VICTIM_HOST ? line - line / r.flows : line;

	if (by_delay)
		r.link.kmin = r.link.kmax = r.hop.kmin = r.hop.kmax = 0;
	fair_play(&r);
	printf("%-5s %2u:1 %9.0f %6.4f %8llu %9.0f %9.0f %7.1f%% %7.1f%%\n", name, r.flows, r.sum,
		r.jain, (unsigned long long)r.dropped, r.beside[1], due,
		100 * (1 - r.beside[0] / due), 100 * (1 - r.beside[1] / due));
	return r.dropped == 0 && r.beside[1] >= VICTIM_DUE * due && r.sum >= 0.95 * line &&
	       ((kind == VICTIM_HOP && !by_delay) || r.beside[0] >= VICTIM_DUE * due);
}

uint32_t
fair_incasts(bool all)
{
	uint32_t failed = 0;

	puts("\nincast runs   Mb/s   Jain     longest       model           asked for    lost with half");
	for (uint64_t seed = 1; seed <= (all ? 5 : 1); seed++)
		for (uint32_t n = 2; n <= 64; n *= 2)
			failed += !first_cnps(n, 100 * seed);
	puts("\nwindows    Mb/s   Jain      CNPs  dropped       mean        p99    longest     buffer");
	for (uint32_t n = 2; n <= 64; n *= 2)
		failed += !windows(n);
	puts("\nbeside           Mb/s   Jain  dropped    victim       due   loses: first half, second");
	failed += !fair_victim(VICTIM_HOST, false, "host");
	failed += !fair_victim(VICTIM_HOP, false, "hop");
	return failed;
}
