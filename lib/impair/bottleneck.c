/* SPDX-License-Identifier: BSD-3-Clause */
#include "bottleneck.h"

#include <stddef.h>

#include "impair_rng.h"
#include "invariant.h"

const char *
impair_bottleneck_fault(const struct bottleneck_conf *conf)
{
	if (conf->rate < BOTTLENECK_RATE_MIN || conf->rate > BOTTLENECK_RATE_MAX)
		return "rate must be from 1M to 1000G";
	if (conf->buffer == 0 || conf->buffer > BOTTLENECK_BUFFER_MAX)
		return "buffer must be from 1 to 1G";
	if (conf->kmax < conf->kmin)
		return "kmax must not be less than kmin";
	if (!(conf->pmax >= 0.0 && conf->pmax <= 1.0))
		return "pmax must be from 0.0 to 1.0";
	return NULL;
}

void
impair_bottleneck_init(struct bottleneck *b, const struct bottleneck_conf *conf)
{
	ASSERT(impair_bottleneck_fault(conf) == NULL);
	*b = (struct bottleneck){ .conf = *conf,
		.random = impair_rng_stream(conf->seed, IMPAIR_RNG_BOTTLENECK) };
}

uint32_t
impair_bottleneck_queue(const struct bottleneck *b, ns_t now)
{
	if (now >= b->empty_at)
		return 0;
	return (uint32_t)((double)(b->empty_at - now) * (double)b->conf.rate / 8e9);
}

/** RED by the queue as it is, without an average: as DCQCN wants it. */
static bool
is_marked(struct bottleneck *b, uint32_t queue)
{
	const struct bottleneck_conf *c = &b->conf;

	if (c->kmax == 0 || queue < c->kmin)
		return false;
	if (queue >= c->kmax)
		return true;
	return impair_rng_chance(&b->random,
		impair_rng_threshold(c->pmax * (queue - c->kmin) / (c->kmax - c->kmin)));
}

struct bottleneck_verdict
impair_bottleneck_offer(struct bottleneck *b, uint32_t len, bool ect, ns_t now)
{
	struct bottleneck_verdict v = { .queue = impair_bottleneck_queue(b, now) };
	uint64_t bits = (uint64_t)len * 8 * TIME_NS_PER_S;

	b->frames++;
	if (v.queue > b->longest)
		b->longest = v.queue;
	if ((uint64_t)v.queue + len > b->conf.buffer) {
		b->dropped++;
		v.dropped = true;
		return v;
	}
	v.marked = ect && is_marked(b, v.queue);
	b->marked += v.marked;
	if (now > b->empty_at) {
		b->empty_at = now;
		b->carry = 0;
	}
	bits += b->carry;
	b->empty_at += bits / b->conf.rate;
	b->carry = bits % b->conf.rate;
	v.leaves = b->empty_at;
	return v;
}
