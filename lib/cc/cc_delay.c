/* SPDX-License-Identifier: BSD-3-Clause */
/* What round trips and losses do to a window, and the rate that follows from it. */
#include "cc_delay.h"

#define ROOT_ONE_LOG 40 /* 2^40 / sqrt(window * 2^32) is 1 / sqrt(packets) in CC_PACKET's parts */

void
cc_delay_preset(struct cc_params *out)
{
	*out = (struct cc_params){
		.by_delay = true,
		.rpg_min_rate = 1,
		.line_rate = CC_LINE_UNKNOWN,
#define CC_DELAY_PARAM(name, value) .delay.name = value,
#include "tables/cc_delay_params.def"
#undef CC_DELAY_PARAM
	};
}

uint32_t
cc_delay_hops(uint8_t left)
{
	const uint32_t first = left <= 64 ? 64 : left <= 128 ? 128 : 255;

	return first - left <= CC_HOPS_MOST ? first - left : 0;
}

/* ---- the target ------------------------------------------------------------------------------ */

static uint32_t
square_root(uint64_t n)
{
	uint64_t root = 0;

	for (uint64_t bit = UINT64_C(1) << 31; bit != 0; bit >>= 1)
		if ((root + bit) * (root + bit) <= n)
			root += bit;
	return (uint32_t)root;
}

/** 1 / sqrt(packets), in parts of 1 / CC_PACKET. */
static uint32_t
inverse_root(uint32_t window)
{
	return (uint32_t)((UINT64_C(1) << ROOT_ONE_LOG) / square_root((uint64_t)window << 32));
}

/** Thousandths of a packet as a window. */
static uint32_t
window_of(uint32_t thousandths)
{
	const uint64_t w = (uint64_t)thousandths * CC_PACKET / 1000;

	return w != 0 ? (uint32_t)w : 1;
}

/** Many flows leave each a small window, and need a longer queue: ns (CC-29). */
static uint64_t
flow_scale(const struct cc *c)
{
	const struct cc_delay_params *p = &c->p.delay;
	const uint32_t low = inverse_root(window_of(p->fs_max));
	const uint32_t high = inverse_root(window_of(p->fs_min));
	const uint32_t here = inverse_root(c->delay.window);
	const uint64_t range = p->fs_range * TIME_NS_PER_US;

	if (here <= low)
		return 0;
	return here >= high ? range : range * (here - low) / (high - low);
}

static uint32_t
target_of(const struct cc *c, uint32_t hops)
{
	const struct cc_delay_params *p = &c->p.delay;
	const uint64_t ns = (p->target + (uint64_t)p->hop * hops) * TIME_NS_PER_US + flow_scale(c);

	return ns < UINT32_MAX ? (uint32_t)ns : UINT32_MAX;
}

/* ---- the window ------------------------------------------------------------------------------ */

static void
set_window(struct cc *c, uint64_t window)
{
	const uint64_t least = window_of(c->p.delay.min_window);
	const uint64_t most = c->p.delay.max_window * (uint64_t)CC_PACKET;

	window = window < least ? least : window;
	c->delay.window = (uint32_t)(window < most ? window : most);
}

/** The window in a round trip, from the least rate to that of the port (CC-33). */
static void
set_rate(struct cc *c, enum cc_stage stage)
{
	const uint32_t top = cc_top(c), least = cc_floor(c);
	uint64_t kbps;

	if (c->delay.rtt == 0)
		return;
	kbps = (uint64_t)c->delay.window * c->delay.frame * 8000 / CC_PACKET * 1000 / c->delay.rtt;
	c->rate = kbps < least ? least : kbps < top ? (uint32_t)kbps : top;
	c->target = c->rate;
	c->stage = (uint8_t)(c->rate < top ? stage : CC_FULL);
}

/** A decrease, one in a round trip. @param keeps of 2^16 parts of the window. */
static bool
decrease(struct cc *c, uint64_t keeps, ns_t now)
{
	if (c->has_cut && now < c->cut_at + c->delay.rtt)
		return false;
	c->has_cut = true;
	c->cut_at = now;
	set_window(c, c->delay.window * keeps >> 16);
	return true;
}

/** max_mdf: what one decrease leaves at least, of 2^16 parts. */
static uint64_t
least_kept(const struct cc *c)
{
	return UINT64_C(65536) * (100 - c->p.delay.max_mdf) / 100;
}

void
cc_delay_round(struct cc *c, const struct cc_round *s, ns_t now)
{
	const uint32_t target = target_of(c, s->hops);
	uint64_t less;

	ASSERT(c->p.by_delay && s->rtt != 0 && s->frame != 0);
	c->delay.rtt = s->rtt;
	c->delay.target = target;
	c->delay.frame = s->frame;
	c->delay.timeouts = 0;
	if (s->rtt < target) {
		set_window(c, (uint64_t)c->delay.window + window_of(c->p.delay.ai));
		set_rate(c, CC_ADDITIVE);
		return;
	}
	less = (UINT64_C(65536) * c->p.delay.beta / 100) * (s->rtt - target) / s->rtt;
	less = less < 65536 - least_kept(c) ? less : 65536 - least_kept(c);
	decrease(c, 65536 - less, now);
	set_rate(c, CC_DECREASE);
}

void
cc_delay_lost(struct cc *c, bool timeout, ns_t now)
{
	ASSERT(c->p.by_delay);
	c->delay.timeouts = timeout ? c->delay.timeouts + (c->delay.timeouts != UINT8_MAX) : 0;
	if (c->delay.timeouts >= c->p.delay.timeouts)
		set_window(c, 0);
	else
		decrease(c, least_kept(c), now);
	set_rate(c, CC_DECREASE);
}
