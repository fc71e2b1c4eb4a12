/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The fluid model in Zhu et al., SIGCOMM 2015, section 5. With R the rate of a flow in packets a
 * second, T its target, p the part of packets that is marked, tau the time between two CNPs of a
 * flow, tau' that between two updates of alpha, B the packets of the byte counter and P = T_reset R
 * those of the timer:
 *
 *   dq/dt     = sum of R - C
 *   dalpha/dt = (1 - g) / tau' * ((1 - (1 - p)^(tau' R)) - alpha)
 *   dT/dt     = -(T - R) / tau * cut + R_AI * (events beyond the F-th, of both kinds)
 *   dR/dt     = -R * alpha / (2 tau) * cut + (T - R) / 2 * (events of both kinds)
 *
 * where cut = 1 - (1 - p)^(tau R) is the part of the intervals tau that have a CNP, events in a
 * second are R p / ((1 - p)^-B - 1) for the byte counter, and the same with P in place of B for the
 * timer; those beyond the F-th are (1 - p)^(F B), (1 - p)^(F P) of them. p, and the R that meets
 * it, are those of a fixed time ago, two ways here. The time in the queue, up to 32 us here, is not
 * in it, as in the paper: with it the equations swing where the simulated flows do not.
 *
 * Fixed point: all derivatives are 0, R = C / n. The second equation gives alpha, the third T - R,
 * and the fourth is then one in p alone, whose left side rises with p and whose right side falls.
 * RED turns p into the queue: kmin + p / pmax * (kmax - kmin), and kmax if p is greater than pmax.
 *
 * On the way there the equations are followed in steps of a microsecond: two kinds of flows, those
 * from the beginning and those from T0, each n / 2 times.
 */
#include <math.h>

#include "fair.h"

#define TAU     ((double)FAIR_CNP * 1e-9)
#define STEP    1e-6
#define HISTORY 64u /* steps */

struct consts {
	double tau_alpha, g, ai, bytes, timer, threshold, capacity, line;
};

/** What marks of a part p lead to, at a rate. */
struct effect {
	double alpha, cut, events, beyond;
};

static struct consts
consts(const struct fair_row *r)
{
	struct cc_params c;

	fair_params(r, &c);
	return (struct consts){ .tau_alpha = c.dce_tcp_rtt * 1e-6,
		.g = 1 - c.dce_tcp_g / 1024.0,
		.ai = c.rpg_ai_rate * 1e6 / 8 / FAIR_FRAME,
		.bytes = (double)c.rpg_byte_reset / FAIR_FRAME,
		.timer = c.rpg_time_reset * 1e-6,
		.threshold = c.rpg_threshold,
		.capacity = (double)r->link.rate / 8 / FAIR_FRAME,
		.line = c.line_rate * 1e6 / 8 / FAIR_FRAME };
}

/** Events in a second that come every n packets without a mark. @param pass ln(1 - p). */
static double
events(double rate, double p, double pass, double n)
{
	return rate * p / expm1(-pass * n);
}

static struct effect
effect(const struct consts *c, double rate, double p)
{
	const double pass = log1p(-p), timer = c->timer * rate;
	const double e[2] = { events(rate, p, pass, c->bytes), events(rate, p, pass, timer) };

	return (struct effect){ .alpha = -expm1(pass * c->tau_alpha * rate),
		.cut = -expm1(pass * TAU * rate),
		.events = e[0] + e[1],
		.beyond = e[0] * exp(pass * c->threshold * c->bytes) +
			  e[1] * exp(pass * c->threshold * timer) };
}

/* ---- the fixed point ------------------------------------------------------------------------- */

/** What the fourth equation takes from the rate minus what it adds. */
static double
balance(const struct consts *c, double rate, double p)
{
	const struct effect e = effect(c, rate, p);
	const double gap = c->ai * e.beyond * TAU / e.cut;

	return rate * e.alpha / (2 * TAU) * e.cut - gap / 2 * e.events;
}

double
fair_model_queue(const struct fair_row *r, double *mark)
{
	const struct consts c = consts(r);
	double low = 1e-7, high = 0.5;

	for (uint32_t i = 0; i < 100; i++) {
		*mark = (low + high) / 2;
		if (balance(&c, c.capacity / r->flows, *mark) < 0)
			low = *mark;
		else
			high = *mark;
	}
	if (*mark >= r->link.pmax)
		return r->link.kmax;
	return r->link.kmin + *mark / r->link.pmax * (r->link.kmax - r->link.kmin);
}

/* ---- the way there --------------------------------------------------------------------------- */

struct kind {
	double rate, target, alpha;
};

/** p and the rates, as they were. */
static struct moment {
	double p, rate[2];
} past[HISTORY];

double
fair_red(const struct bottleneck_conf *b, double queue)
{
	if (queue < b->kmin)
		return 0;
	return queue >= b->kmax ? 1 : b->pmax * (queue - b->kmin) / (b->kmax - b->kmin);
}

static double
within(double x, double low, double high)
{
	return x < low ? low : x > high ? high : x;
}

static void
follow(const struct consts *c, struct kind *k, double then, double p)
{
	const struct effect e = effect(c, then, within(p, 1e-9, 1 - 1e-9));
	const double gap = k->target - k->rate;
	const double target = k->target + STEP * (c->ai * e.beyond - gap / TAU * e.cut);
	const double rate =
		k->rate + STEP * (gap / 2 * e.events - k->rate * k->alpha / (2 * TAU) * e.cut);

	k->alpha += STEP * c->g / c->tau_alpha * (e.alpha - k->alpha);
	k->target = within(target, 1, c->line);
	k->rate = within(rate, 1, c->line);
}

double
fair_model_settles(const struct fair_row *r)
{
	const struct consts c = consts(r);
	const uint32_t steps = r->ms * 1000, begin = (uint32_t)(fair_t0(r) / TIME_NS_PER_US);
	const uint32_t slice = FAIR_SLICE / TIME_NS_PER_US;
	const uint32_t back = (uint32_t)(2 * FAIR_DELAY / TIME_NS_PER_US);
	const double fair = c.capacity / r->flows;
	struct kind kind[2] = { { c.line, c.line, 1 }, { c.line, c.line, 1 } };
	double queue = 0, sum[2] = { 0, 0 };
	uint32_t settled = 0;

	for (uint32_t t = 0; t < steps; t++) {
		const struct moment *then = &past[(t < back ? 0 : t - back) % HISTORY];
		double all = 0;

		past[t % HISTORY].p = fair_red(&r->link, queue * FAIR_FRAME);
		for (uint32_t i = 0; i < 2; i++) {
			past[t % HISTORY].rate[i] = kind[i].rate;
			if (i == 1 && t < begin)
				continue;
			all += kind[i].rate * r->flows / 2;
			sum[i] += kind[i].rate;
			follow(&c, &kind[i], then->rate[i],
				i == 1 && t < begin + back ? 0 : then->p);
		}
		queue = fmax(0, queue + (all - c.capacity) * STEP);
		if ((t + 1) % slice != 0)
			continue;
		for (uint32_t i = 0; i < 2; i++)
			sum[i] /= fair * slice;
		if (fair_is_settled(sum, &settled) && t >= begin)
			return (t + 1 - begin) * 1e-3;
		sum[0] = sum[1] = 0;
	}
	return 0;
}

/* ---- cc.algo=delay --------------------------------------------------------------------------- */

/** The round trip that a window of w packets aims at, ns (CC-29). */
static double
aim(const struct cc_delay_params *p, double w)
{
	const double low = 1 / sqrt(p->fs_max / 1000.0), high = 1 / sqrt(p->fs_min / 1000.0);
	const double part = (1 / sqrt(w) - low) / (high - low);

	return 1000 * (p->target + p->fs_range * within(part, 0, 1));
}

double
fair_model_delay(const struct fair_row *r)
{
	const double capacity = (double)r->link.rate / 8e9; /* bytes a ns */
	double low = 1e-3, high = 1e5, w = 1;
	struct cc_params p;

	fair_params(r, &p);
	for (uint32_t i = 0; i < 100; i++) {
		w = sqrt(low * high);
		if (r->flows * w * FAIR_FRAME < capacity * aim(&p.delay, w))
			low = w;
		else
			high = w;
	}
	return capacity * (aim(&p.delay, w) - 2 * (double)FAIR_DELAY) - FAIR_FRAME;
}
