/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Flows with cc.algo=delay, all parameters as they are without knobs, through one link of 40 Gb/s
 * (CC-34): half of them from the beginning, the others from T0 on. There are no marks. The buffer
 * has room for the windows of delay_start packets of those who begin, on top of those of the others
 * or of the queue of the fixed point, whichever is more, and for two steps (below).
 *
 * Fixed point: each flow has a window w whose round trip is the one that it aims at, and the link
 * is full: n w F = C target(w), F being a frame. The left side rises with w, and the right falls
 * or stays, so there is one such w; the queue is what target(w) is longer than the round trip
 * through an idle link. Around it: a round trip that was too short by a little adds a step to each
 * window, n * delay_ai * F bytes in all, and it is known only a round trip later, so that a second
 * step may follow. So the mean queue lies between that of the fixed point, less 10 % for the
 * decreases, and one step more, and the 99th percentile is at most two steps above it.
 *
 * Jain's index is that of the second half of the time. The rows begin with 8 flows: with two, whose
 * windows are beyond the flow scale, nothing but a decrease of less than a packet sets one flow
 * apart from another, and in a simulation without any noise they can keep a ratio of 3 : 2.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "fair.h"

/** What a round trip adds to the windows of n flows, bytes. */
static double
step_of(uint32_t n, const struct cc_params *p)
{
	return n * p->delay.ai / 1000.0 * FAIR_FRAME;
}

static struct fair_row
delay_row(uint32_t n, uint32_t ms)
{
	struct fair_row r = {
		.flows = n, .by_delay = true, .ms = ms, .seed = 1, .link = fair_link(40)
	};
	struct cc_params p;
	double begins;

	fair_params(&r, &p);
	r.link.kmin = r.link.kmax = 0;
	begins = n / 2.0 * p.delay.start * FAIR_FRAME;
	r.link.buffer =
		(uint32_t)(begins + fmax(begins, fair_model_delay(&r)) + 2 * step_of(n, &p));
	return r;
}

static void
print_row(const struct fair_row *r, double model, double step, double took)
{
	const double us = (double)r->link.rate / 8e6;

	printf("%5u %9.0f %6.4f %8llu %8.1f %8.1f %8.1f %8.1f %8.1f %8.2f\n", r->flows, r->sum,
		r->jain, (unsigned long long)r->dropped, r->mean / us, r->p99 / us, model / us,
		step / us, r->longest / us, took);
}

/** @return is it as it must be? */
static bool
shares(uint32_t n, uint32_t ms)
{
	static uint64_t halves[2][FAIR_SLICES];
	struct fair_row r = delay_row(n, ms);
	const double model = fair_model_delay(&r);
	struct cc_params p;
	double step, took;
	uint64_t digest;
	bool good;

	fair_params(&r, &p);
	step = step_of(n, &p);
	memset(halves, 0, sizeof(halves));
	r.halves = halves;
	fair_play(&r);
	took = fair_settles(&r, 1);
	print_row(&r, model, step, took);
	good = fair_is_shared(&r) && took != 0 && r.mean >= 0.9 * model && r.mean <= model + step &&
	       r.p99 <= model + 2 * step;
	if (n != 8)
		return good;
	digest = r.digest;
	fair_play(&r);
	return good && r.digest == digest; /* the same flows: the same bytes */
}

/** All begin at once, with a buffer of all that they begin with. */
static bool
incast(uint32_t n)
{
	struct fair_row r = delay_row(n, 60);

	r.together = true;
	fair_play(&r);
	print_row(&r, fair_model_delay(&r), 0, 0);
	return fair_is_shared(&r);
}

uint32_t
fair_delays(bool all)
{
	uint32_t failed = 0;

	puts("\ndelay      Mb/s   Jain  dropped     mean      p99    model     step  longest us  "
	     "settled ms");
	for (uint32_t n = 8; n <= FAIR_MOST; n *= 2)
		failed += !shares(n, n < 512 ? 100 : 400);
	for (uint32_t n = 8; all && n <= FAIR_MOST; n *= 2)
		failed += !shares(n, 2000);
	puts("\nincast     Mb/s   Jain  dropped     mean      p99    model                 longest us");
	for (uint32_t n = 4; n <= 64; n *= 2)
		failed += !incast(n);
	puts("\nbeside           Mb/s   Jain  dropped    victim       due   loses: first half, second");
	failed += !fair_victim(VICTIM_HOST, true, "host");
	failed += !fair_victim(VICTIM_HOP, true, "hop");
	return failed;
}
