/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CC_H
#define CC_H
/**
 * @file cc.h  A QP's rate: (state, event, now) -> rate, and packets at that rate. The events here
 *             are CNPs, and the reaction is DCQCN; cc_delay.h has that to round trips.
 *
 * Owner:   the QP's worker, or whoever simulates one.
 * Memory:  the caller's; one struct cc a QP, all of it in there.
 * Depends: base.
 * Spec:    CC-09 .. CC-20, CC-26; Zhu et al., "Congestion Control for Large-Scale RDMA
 *          Deployments", SIGCOMM 2015.
 *
 * Nothing here reads a clock or draws a random number. Time may pass in steps of any size: what the
 * timers have done meanwhile is made up for at the next call. Rates are in kb/s, alpha is a fixed
 * point number of 30 bits.
 *
 * An increase event is rpg_time_reset without a CNP, or rpg_byte_reset bytes. Where there is no
 * byte counter the timer stands for both. The step of the hyper increase is a constant, as with
 * mlx5; preset paper multiplies it by the number of hyper events (CC-18: both are published).
 */
#include <stdbool.h>
#include <stdint.h>

#include "clock.h"
#include "compiler.h"
#include "invariant.h"

#define CC_ALPHA_ONE    BIT32(30)
#define CC_BURST_NS     (16 * TIME_NS_PER_US) /* what a late wakeup may make up for, ... */
#define CC_BURST_BYTES  65536u                /* ... and no more than this */
#define CC_BURST_PKTS   16u
#define CC_LINE_UNKNOWN 100000u /* Mb/s, of a port that does not know its speed */

enum cc_preset { CC_MLX5, CC_PAPER, CC_HPCC, CC_PRESETS };
enum cc_stage { CC_FULL, CC_FAST_RECOVERY, CC_ADDITIVE, CC_HYPER, CC_DECREASE };

/** Parameters of cc.algo=delay; knobs.def has their units. */
struct cc_delay_params {
#define CC_DELAY_PARAM(name, value) uint32_t name;
#include "tables/cc_delay_params.def"
#undef CC_DELAY_PARAM
};

/** Parameters as users have them: knobs.def has their units. */
struct cc_params {
#define CC_PARAM(name, mlx5, paper, hpcc) uint32_t name;
#include "tables/cc_params.def"
#undef CC_PARAM
	uint32_t line_rate; /* Mb/s, of the port */
	bool hai_grows;     /* preset paper */
	bool by_delay;      /* cc.algo=delay; it has rpg_min_rate, and none of the others above */
	struct cc_delay_params delay;
};

/** With `by_delay`. */
struct cc_delay {
	uint32_t window;  /* packets, in parts of 1 / CC_PACKET */
	uint32_t rtt;     /* newest round trip, ns; 0: none */
	uint32_t target;  /* what it was compared with, ns */
	uint32_t frame;   /* bytes */
	uint8_t timeouts; /* in a row */
};

struct cc {
	/* pacing: what each packet looks at */
	ns_t due;        /* no packet leaves before */
	uint32_t carry;  /* fractions of the nanosecond at `due`, in kb/s */
	uint32_t rate;   /* kb/s */
	uint32_t target; /* kb/s */
	uint8_t stage;   /* enum cc_stage */
	bool increased;  /* since the last cut */
	bool cnp_came;   /* since alpha's last update */
	bool has_cut;
	uint32_t bytes; /* since the byte counter's last event, or the last CNP */
	uint16_t byte_events;
	uint16_t timer_events;
	ns_t timer_at;   /* next event of the timer; not with CC_FULL */
	ns_t alpha_from; /* alpha is that of this time */
	ns_t cut_at;
	uint32_t alpha;
	uint32_t cnps;
	struct cc_delay delay;
	struct cc_params p;
};

/** The parameters of a preset; the line rate is not known. */
void cc_preset(enum cc_preset preset, struct cc_params *out);
/** "line", "fast_recovery" ... */
const char *cc_stage_name(uint8_t stage);
/** A QP at its full rate that has never had a CNP. */
void cc_start(struct cc *c, const struct cc_params *p);
/** The port's rate is another one now, Mb/s; 0: not known, which changes nothing. */
void cc_line(struct cc *c, uint32_t mbps);
/** A CNP came. */
void cc_notified(struct cc *c, ns_t now);
/** Make up for what the timers have done until `now`. A `now` that went back does nothing. */
void cc_advance(struct cc *c, ns_t now);
/** kb/s: the most that the QP ever has. */
uint32_t cc_top(const struct cc *c);
/** kb/s: the least (CC-13). */
uint32_t cc_floor(const struct cc *c);
/** The byte counter has come around. */
void cc_byte_event(struct cc *c);

/** Do packets have to wait for their turn? Otherwise nothing needs to be called for them. */
static inline bool
cc_is_paced(const struct cc *c)
{
	return c->stage != CC_FULL || c->rate < c->p.line_rate * 1000;
}

/**
 * How many packets of at most so many bytes may leave now; 0: none before c->due. Time that the QP
 * could not use, because it was woken up late, is made up for by a burst of CC_BURST_*.
 */
uint32_t cc_packets(struct cc *c, uint32_t len, ns_t now);

/** Packets of so many bytes in all leave. Cost: a division. */
static inline void
cc_sent(struct cc *c, uint32_t bytes)
{
	const uint64_t t = (uint64_t)bytes * 8000000 + c->carry;

	ASSERT(c->rate != 0);
	c->due += t / c->rate;
	c->carry = (uint32_t)(t % c->rate);
	if (c->stage == CC_FULL || c->p.rpg_byte_reset == 0)
		return;
	c->bytes += bytes;
	if (UNLIKELY(c->bytes >= c->p.rpg_byte_reset))
		cc_byte_event(c);
}

#endif
