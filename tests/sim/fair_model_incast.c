/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How long a queue becomes when n flows begin together, each at its host's rate L, before DCQCN has
 * them down to the link's rate C: the buffer that loses nothing.
 *
 * RED looks at a frame that comes at t and finds the queue q(t). The frame, marked or not, is with
 * the notified side at l(t) = t + (q(t) + F) / C + one way, F being a frame, and a CNP for it is
 * back one way later. Until then its flow sends as before. There alpha is 1, so each CNP halves the
 * rate, and has no time to fall; T_reset after the newest CNP the rate goes half of the way back.
 *
 * The notified side sends the next CNP for the first marked frame that comes an interval after the
 * one before. While the queue grows with (n - 1) C, frames come n times as far apart as they were
 * sent: what comes an interval later was sent an n-th of it later. So that frame may have found a
 * queue shorter than kmax, and the second CNP is not sure to follow the first one at once.
 *
 * A frame passes without a mark with a probability of 1 - p(q), so a flow of rate R is without one
 * for a time t with that of exp(-H), H being the sum of -ln(1 - p(q)) R dt / F. The flows are split
 * into equal parts by when they have their first mark: the i-th of m has it at H = -ln(1 - (i +
 * 1/2) / m); later ones come to each at the mean, H = 1. All parts are followed together, with the
 * sum of their rates R and q(t + dt) = q(t) + (R(t) - C) dt.
 *
 * That is a mean. When a flow meets its first mark is chance, and n of them have a mean that is off
 * by 1 / sqrt(n) of one flow's; a flow's own time is off by no more than itself, as it cannot be
 * less than nothing, and ends at the latest when the queue is at kmax. So a buffer of the mean and
 * 1 / sqrt(n) of it is asked for.
 */
#include <math.h>
#include <string.h>

#include "fair.h"

#define STEP  100.0 /* ns */
#define STEPS 20000u
#define PARTS 100u
#define NEVER 1e18

static struct part {
	double rate, target; /* bytes a ns */
	double hazard;       /* H since a CNP might be sent */
	double due;          /* what it has to be */
	double may;          /* when the notified side may send the next CNP */
	double back;         /* the timer; NEVER */
	bool cnp[STEPS + 1]; /* one comes then */
} part[PARTS];

/** -ln(1 - p) */
static double
marks(const struct bottleneck_conf *b, double queue)
{
	if (queue < b->kmin)
		return 0;
	return queue >= b->kmax ? NEVER
				: -log1p(-b->pmax * (queue - b->kmin) / (b->kmax - b->kmin));
}

static void
begin(double line)
{
	memset(part, 0, sizeof(part));
	for (uint32_t i = 0; i < PARTS; i++) {
		part[i].rate = part[i].target = line;
		part[i].due = -log1p(-(i + 0.5) / PARTS);
		part[i].back = NEVER;
	}
}

/** It is step t: a CNP comes, or the timer ends. */
static void
react(struct part *k, double reset, uint32_t t)
{
	const double now = t * STEP;

	if (k->cnp[t]) {
		k->target = k->rate;
		k->rate /= 2;
		k->back = now + reset;
	} else if (now >= k->back) {
		k->rate = (k->rate + k->target) / 2;
		k->back += reset;
	}
}

/** Its frames of one step find a queue. @param leaves when they are with the notified side. */
static void
meet(struct part *k, double hazard, double leaves)
{
	const double back = (leaves + (double)FAIR_DELAY) / STEP;

	if (leaves < k->may)
		return;
	k->hazard += hazard * k->rate * STEP / FAIR_FRAME;
	if (k->hazard < k->due)
		return;
	k->hazard = 0;
	k->due = 1;
	k->may = leaves + (double)FAIR_CNP;
	if (back < STEPS)
		k->cnp[(uint32_t)back + 1] = true;
}

double
fair_model_incast(const struct fair_row *r)
{
	const double capacity = (double)r->link.rate / 8e9;
	double queue = 0, longest = 0;
	struct cc_params p;

	fair_params(r, &p);
	begin(p.line_rate / 8000.0);
	for (uint32_t t = 0; t < STEPS; t++) {
		const double now = t * STEP, hazard = marks(&r->link, queue);
		const double leaves = now + (queue + FAIR_FRAME) / capacity + (double)FAIR_DELAY;
		double sum = 0;

		for (uint32_t i = 0; i < PARTS; i++) {
			react(&part[i], p.rpg_time_reset * 1e3, t);
			meet(&part[i], hazard, leaves);
			sum += part[i].rate / PARTS * r->flows;
		}
		queue = fmax(0, queue + (sum - capacity) * STEP);
		longest = fmax(longest, queue);
	}
	return longest;
}
