/* SPDX-License-Identifier: BSD-3-Clause */
/* DCQCN: what a CNP, time and bytes do to a rate; and pacing, for any rate. */
#include "cc.h"

#define KB(mbps) ((mbps)*1000u)

static uint32_t
min_u32(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

static uint32_t
min_u64(uint64_t a, uint32_t b)
{
	return a < b ? (uint32_t)a : b;
}

static uint32_t
max_u32(uint32_t a, uint32_t b)
{
	return a > b ? a : b;
}

uint32_t
cc_top(const struct cc *c)
{
	const uint32_t most = c->p.rpg_max_rate;

	return KB(most != 0 ? min_u32(most, c->p.line_rate) : c->p.line_rate);
}

uint32_t
cc_floor(const struct cc *c)
{
	return min_u32(KB(c->p.rpg_min_rate), cc_top(c));
}

void
cc_start(struct cc *c, const struct cc_params *p)
{
	*c = (struct cc){ .p = *p, .increased = true, .alpha = p->initial_alpha_value << 20 };
	ASSERT(p->line_rate != 0);
	ASSERT(p->by_delay || (p->rpg_time_reset != 0 && p->dce_tcp_rtt != 0));
	c->rate = c->target = cc_top(c);
	c->delay.window = min_u32(p->delay.start, p->delay.max_window) << 16;
}

void
cc_line(struct cc *c, uint32_t mbps)
{
	uint32_t top;

	if (mbps == 0 || mbps == c->p.line_rate)
		return;
	c->p.line_rate = mbps;
	top = cc_top(c);
	if (c->stage == CC_FULL) {
		c->rate = c->target = top;
	} else {
		c->rate = min_u32(c->rate, top);
		c->target = min_u32(c->target, top);
	}
}

/* ---- alpha ----------------------------------------------------------------------------------- */

/** (g / 1024)^n, 30 bits. */
static uint64_t
power(uint32_t g, uint64_t n)
{
	const uint64_t half = CC_ALPHA_ONE / 2;
	uint64_t square = (uint64_t)g << 20, out = CC_ALPHA_ONE;

	for (; n != 0 && out != 0; n >>= 1) {
		if ((n & 1) != 0)
			out = (out * square + half) >> 30;
		square = (square * square + half) >> 30;
	}
	return out;
}

/** CC-14: it is updated every dce_tcp_rtt; a time with a CNP is the first since the last update. */
static void
alpha_advance(struct cc *c, ns_t now)
{
	const ns_t period = c->p.dce_tcp_rtt * TIME_NS_PER_US;
	const uint32_t g = c->p.dce_tcp_g;
	uint64_t n;

	if (c->cnps == 0 || now < c->alpha_from + period)
		return;
	n = (now - c->alpha_from) / period;
	c->alpha_from += n * period;
	if (c->cnp_came) {
		c->alpha = (uint32_t)((uint64_t)c->alpha * g >> 10) + ((1024 - g) << 20);
		c->cnp_came = false;
		n--;
	}
	if (n != 0)
		c->alpha = (uint32_t)((c->alpha * power(g, n)) >> 30);
	ASSERT(c->alpha <= CC_ALPHA_ONE);
}

/* ---- increase -------------------------------------------------------------------------------- */

static void
increase(struct cc *c)
{
	const uint32_t timer = c->timer_events, top = cc_top(c), f = c->p.rpg_threshold;
	const uint32_t bytes = c->p.rpg_byte_reset != 0 ? c->byte_events : timer;
	const uint32_t most = max_u32(bytes, timer), least = min_u32(bytes, timer);
	uint64_t step = 0;

	if (most <= f) {
		c->stage = CC_FAST_RECOVERY; /* CC-16 */
	} else if (least <= f) {
		c->stage = CC_ADDITIVE; /* CC-17 */
		step = KB((uint64_t)c->p.rpg_ai_rate);
	} else {
		c->stage = CC_HYPER; /* CC-18 */
		step = KB((uint64_t)c->p.rpg_hai_rate) * (c->p.hai_grows ? least - f : 1);
	}
	c->target = c->target + step < top ? c->target + (uint32_t)step : top;
	c->rate = (uint32_t)(((uint64_t)c->rate + c->target + 1) / 2);
	c->increased = true;
	if (c->rate >= top) /* CC-20 */
		c->stage = CC_FULL;
}

static void
bump(uint16_t *events)
{
	*events += *events != UINT16_MAX;
}

void
cc_byte_event(struct cc *c)
{
	while (c->bytes >= c->p.rpg_byte_reset && c->stage != CC_FULL) {
		c->bytes -= c->p.rpg_byte_reset;
		bump(&c->byte_events);
		increase(c);
	}
}

/** So many events in one call are carried out one by one, and bring the rate to its target. */
#define EVENTS_EACH 64

/**
 * A long silence: events of the timer alone, whose steps are all the same, are added up. The rate
 * follows with the last ones.
 */
static void
skip(struct cc *c, uint64_t events)
{
	const uint32_t top = cc_top(c);
	const uint64_t step =
		KB((uint64_t)(c->stage == CC_HYPER ? c->p.rpg_hai_rate : c->p.rpg_ai_rate));

	if (events == 0 || c->stage < CC_ADDITIVE || (c->stage == CC_HYPER && c->p.hai_grows))
		return;
	c->target = events < top / step ? min_u32(c->target + (uint32_t)(events * step), top) : top;
	c->timer_events =
		(uint16_t)min_u32(c->timer_events + min_u64(events, UINT16_MAX), UINT16_MAX);
	c->timer_at += events * c->p.rpg_time_reset * TIME_NS_PER_US;
}

void
cc_advance(struct cc *c, ns_t now)
{
	const ns_t period = c->p.rpg_time_reset * TIME_NS_PER_US;

	if (c->p.by_delay)
		return;
	alpha_advance(c, now);
	while (c->stage != CC_FULL && now >= c->timer_at) {
		c->timer_at += period;
		bump(&c->timer_events);
		increase(c);
		if (UNLIKELY(now >= c->timer_at + EVENTS_EACH * period))
			skip(c, (now - c->timer_at) / period - EVENTS_EACH + 1);
	}
}

/* ---- decrease -------------------------------------------------------------------------------- */

static void
cut(struct cc *c)
{
	const uint64_t off = (uint64_t)c->rate * c->alpha >> (20 + c->p.rpg_gd);
	const uint64_t least = (uint64_t)c->rate * c->p.rpg_min_dec_fac / 100;
	uint32_t to;

	if (c->p.clamp_tgt_rate != 0 || c->increased) /* CC-15 */
		c->target = c->rate;
	to = off < c->rate ? c->rate - (uint32_t)off : 0;
	to = max_u32(to, (uint32_t)least);
	c->rate = max_u32(to, cc_floor(c));
	c->increased = false;
}

/** CC-10: a rate for a QP that had its full one. @return false: there is none. */
static bool
set_first(struct cc *c)
{
	const uint32_t to = c->p.rate_to_set_on_first_cnp;

	if (c->stage != CC_FULL || to == 0)
		return false;
	c->rate = c->target = min_u32(max_u32(KB(to), cc_floor(c)), cc_top(c));
	c->increased = false;
	return true;
}

void
cc_notified(struct cc *c, ns_t now)
{
	if (c->p.by_delay) {
		c->cnps++;
		return;
	}
	cc_advance(c, now);
	if (c->cnps == 0)
		c->alpha_from = now;
	/* CC-12 */
	if (!c->has_cut || now >= c->cut_at + c->p.rate_reduce_monitor_period * TIME_NS_PER_US) {
		if (!set_first(c))
			cut(c);
		c->has_cut = true;
		c->cut_at = now;
	}
	c->cnps++;
	c->cnp_came = true;
	c->stage = CC_FAST_RECOVERY;
	c->bytes = 0; /* CC-19 */
	c->byte_events = c->timer_events = 0;
	c->timer_at = now + c->p.rpg_time_reset * TIME_NS_PER_US;
}

/* ---- pacing ---------------------------------------------------------------------------------- */

uint32_t
cc_packets(struct cc *c, uint32_t len, ns_t now)
{
	ns_t late, most = (uint64_t)CC_BURST_BYTES * 8000000 / c->rate;
	uint64_t n;

	if (now < c->due)
		return 0;
	if (most > CC_BURST_NS)
		most = CC_BURST_NS;
	late = now - c->due;
	if (late > most) {
		late = most;
		c->due = now - most;
		c->carry = 0;
	}
	n = 1 + late * c->rate / ((uint64_t)len * 8000000);
	return n < CC_BURST_PKTS ? (uint32_t)n : CC_BURST_PKTS;
}
