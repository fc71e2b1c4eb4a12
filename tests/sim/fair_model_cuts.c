/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How far the queue swings around the fluid model's fixed point. The equations in fair_model.c have
 * means: the part of the intervals that have a CNP, the events in a second. A flow has whole ones.
 * What it does between them is still as in the model: it sends R packets a second, the queue is the
 * integral of what is too much, RED makes a part p of it. But
 *
 * - in a step dt a flow has a marked packet with chance 1 - (1 - p)^(R dt); that one leaves when
 *   the queue before it has, and its CNP comes two ways later, if the one before is tau old;
 * - a CNP cuts R by alpha / 2 and makes it the target before, and alpha goes up by 1 - g in the
 *   next tau' in which it is updated, and down in each that has none;
 * - each T_reset after that, and each B packets, R goes half of the way to the target, which from
 *   the F-th on has gone up by R_AI, and by the hyper step where both kinds are beyond it.
 *
 * So the swing is that of cuts which come at once for some flows and late for others, of tau that
 * all wait, and of the time until the queue tells of it: nothing in here is fitted. What it leaves
 * out is the packets' grain, and the time between two packets of a flow.
 *
 * The 99th percentile is that of the last half of the time, as of the flows that are played; where
 * few flows are, chance is in it, so it is the mean of several seeds.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "fair.h"

#define STEP    1e-6
#define EACH    20 /* steps: from one look at the queue to the next */
#define LOOKS   10000u
#define SEEDS   4u
#define PENDING 4096u /* CNPs of a flow on their way */

struct consts {
	double tau_alpha, g, ai, hyper, bytes, timer, monitor, least, line, capacity;
	uint32_t threshold;
};

struct flow {
	double rate, target, alpha;
	double bytes, timer_at, alpha_at, cut_at, cnp_next;
	uint32_t timers, counters; /* events since the last CNP */
	bool full, cut, came; /* at the line's rate; has been cut, has had a CNP since alpha_at */
	double cnp[PENDING];  /* when they come */
	uint32_t first, last;
};

static struct flow flow[FAIR_MOST];
static double looks[LOOKS];
static uint64_t seed;

/** 0 to 1, by xorshift. */
static double
chance(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return (double)(seed >> 11) / 9007199254740992.0;
}

static struct consts
consts(const struct fair_row *r)
{
	const double packets = 1e6 / 8 / FAIR_FRAME; /* a second, of 1 Mb/s */
	struct cc_params c;

	fair_params(r, &c);
	return (struct consts){ .tau_alpha = c.dce_tcp_rtt * 1e-6,
		.g = c.dce_tcp_g / 1024.0,
		.ai = c.rpg_ai_rate * packets,
		.hyper = c.rpg_hai_rate * packets,
		.bytes = (double)c.rpg_byte_reset / FAIR_FRAME,
		.timer = c.rpg_time_reset * 1e-6,
		.monitor = c.rate_reduce_monitor_period * 1e-6,
		.least = c.rpg_min_rate * packets,
		.line = c.line_rate * packets,
		.capacity = (double)r->link.rate / 8 / FAIR_FRAME,
		.threshold = c.rpg_threshold };
}

static void
notified(const struct consts *c, struct flow *f, double now)
{
	if (!f->cut)
		f->alpha_at = now;
	if (!f->cut || now >= f->cut_at + c->monitor - STEP / 2) {
		f->target = f->rate;
		f->rate = fmax(f->rate * (1 - f->alpha / 2), c->least);
		f->cut_at = now;
	}
	f->cut = f->came = true;
	f->full = false;
	f->timers = f->counters = 0;
	f->bytes = 0;
	f->timer_at = now + c->timer;
}

static void
increase(const struct consts *c, struct flow *f)
{
	const uint32_t most = f->timers > f->counters ? f->timers : f->counters;
	const uint32_t least = f->timers + f->counters - most;

	if (least > c->threshold)
		f->target += c->hyper;
	else if (most > c->threshold)
		f->target += c->ai;
	f->target = fmin(f->target, c->line);
	f->rate = (f->rate + f->target) / 2;
	f->full = f->rate >= c->line * (1 - 1e-9);
}

/** A step of a flow that sends. @param pass ln(1 - p). @param wait in the queue, from now on. */
static void
follow(const struct consts *c, struct flow *f, double now, double pass, double wait)
{
	const double leaves = now + wait;

	if (f->first != f->last && now >= f->cnp[f->first % PENDING]) {
		f->first++;
		notified(c, f, now);
	}
	if (f->cut && now >= f->alpha_at + c->tau_alpha) {
		f->alpha_at += c->tau_alpha;
		f->alpha = f->alpha * c->g + (f->came ? 1 - c->g : 0);
		f->came = false;
	}
	if (!f->full && now >= f->timer_at) {
		f->timer_at += c->timer;
		f->timers++;
		increase(c, f);
	}
	f->bytes += f->full ? 0 : f->rate * STEP;
	if (f->bytes >= c->bytes) {
		f->bytes -= c->bytes;
		f->counters++;
		increase(c, f);
	}
	if (pass == 0 || chance() >= -expm1(pass * f->rate * STEP) || leaves < f->cnp_next)
		return;
	f->cnp_next = leaves + FAIR_CNP * 1e-9;
	if (f->last - f->first == PENDING)
		abort();
	f->cnp[f->last++ % PENDING] = leaves + 2 * FAIR_DELAY * 1e-9;
}

static int
by_size(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/** Packets. */
static double
p99_of(const struct fair_row *r, const struct consts *c)
{
	const uint32_t steps = r->ms * 1000, begin = (uint32_t)(fair_t0(r) / TIME_NS_PER_US);
	double queue = 0;
	uint32_t n = 0;

	memset(flow, 0, sizeof(flow));
	for (uint32_t i = 0; i < r->flows; i++) {
		flow[i].rate = flow[i].target = c->line;
		flow[i].alpha = 1;
		flow[i].full = true;
	}
	for (uint32_t t = 0; t < steps; t++) {
		const double pass = log1p(-fair_red(&r->link, queue * FAIR_FRAME));
		const double wait = queue / c->capacity;
		double all = 0;

		for (uint32_t i = 0; i < (t < begin ? r->flows / 2 : r->flows); i++) {
			follow(c, &flow[i], t * STEP, pass, wait);
			all += flow[i].rate;
		}
		queue = fmax(0, queue + (all - c->capacity) * STEP);
		if (t >= steps / 2 && t % EACH == 0 && n < LOOKS)
			looks[n++] = queue;
	}
	qsort(looks, n, sizeof(looks[0]), by_size);
	return looks[n / 100 * 99];
}

double
fair_model_p99(const struct fair_row *r)
{
	const struct consts c = consts(r);
	double sum = 0;

	for (uint32_t i = 1; i <= SEEDS; i++) {
		seed = i * 0x9e3779b97f4a7c15u;
		sum += p99_of(r, &c) * FAIR_FRAME;
	}
	return sum / SEEDS;
}
