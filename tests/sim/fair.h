/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef FAIR_H
#define FAIR_H
/**
 * @file fair.h  Flows with a rate that share queues, in virtual time, and models of them.
 *
 * Owner:   tests only: fair.c, fair_incast.c and fair_delay.c have the rows and judge, fair_play.c
 *          plays, fair_model.c, fair_model_cuts.c and fair_model_incast.c foretell.
 * Memory:  static; one row at a time.
 * Depends: cc, impair (bottleneck.h).
 * Spec:    CC-27, CC-34.
 */
#include <stdbool.h>
#include <stdint.h>

#include "bottleneck.h"
#include "cc_delay.h"

#define FAIR_MOST   512u
#define FAIR_FRAME  1000u
#define FAIR_WINDOW 128u                   /* packets, where a flow has a window */
#define FAIR_DELAY  (4 * TIME_NS_PER_US)   /* from the queue to the notified; the CNP's way back */
#define FAIR_SLICE  (250 * TIME_NS_PER_US) /* in which the halves' rates are looked at */
#define FAIR_SLICES 4096u
#define FAIR_CNP    (50 * TIME_NS_PER_US) /* a CNP at most in so long, for each flow */

/** One more flow that is not for the bottleneck: its number is that of the flows. */
enum fair_victim {
	VICTIM_NONE,
	VICTIM_HOST, /* shares its host's link with flow 0, and nothing else with anybody */
	VICTIM_HOP,  /* shares the first switch's way out with all flows; its own host */
};

struct fair_row {
	uint32_t flows; /* half of them at T0, a quarter of the time */
	enum cc_preset preset;
	bool by_delay; /* cc.algo=delay instead, with its window and without CNPs */
	uint32_t ms;
	uint32_t ai;   /* rpg_ai_rate instead of the preset's; 0: the preset's */
	uint32_t line; /* of each host, Mb/s; 0: the bottleneck's */
	uint64_t seed;
	uint32_t window; /* packets; 0: no end */
	bool together;   /* all begin at once */
	bool csv;        /* a line each millisecond, to standard error */
	enum fair_victim victim;
	struct bottleneck_conf link;
	struct bottleneck_conf hop;      /* VICTIM_HOP */
	uint64_t (*halves)[FAIR_SLICES]; /* bytes of each half in each slice are added; or NULL */
	/* results: Mb/s, bytes */
	double sum, jain, mean, p99;
	double beside[2]; /* the victim's, in each half of the time */
	uint32_t longest;
	uint64_t cnps, dropped, digest;
};

/** A link of so many Gb/s. At 40 RED is chosen: a published one for another rate, scaled. */
static inline struct bottleneck_conf
fair_link(double gbps)
{
	return (struct bottleneck_conf){ .rate = (uint64_t)(gbps * 1e9),
		.buffer = BOTTLENECK_BUFFER_MAX,
		.kmin = (uint32_t)(gbps / 40 * 160000),
		.kmax = (uint32_t)(gbps / 40 * 640000),
		.pmax = 0.2 };
}

/** When the second half begins. */
static inline ns_t
fair_t0(const struct fair_row *r)
{
	return r->ms * TIME_NS_PER_MS / 4;
}

void fair_params(const struct fair_row *r, struct cc_params *p);
void fair_play(struct fair_row *r);
/** The part of packets that RED marks at such a queue, bytes. */
double fair_red(const struct bottleneck_conf *b, double queue);
/** The queue at the model's fixed point, bytes. @param mark the part of packets that is marked. */
double fair_model_queue(const struct fair_row *r, double *mark);
/** The 99th percentile of the queue where cuts are whole ones, bytes. No drops, preset paper. */
double fair_model_p99(const struct fair_row *r);
/** The time after T0 until both halves are, in the model, as fair_is_settled() wants it; ms. */
double fair_model_settles(const struct fair_row *r);
/**
 * Both halves within a tenth of the fair share, for a millisecond. @param rate of each half, of one
 * flow of it, by that share. @param slices for so long, so far. @return is it so now?
 */
bool fair_is_settled(const double rate[2], uint32_t *slices);
/** ms after T0, of the halves' bytes in so many runs; 0: never. */
double fair_settles(const struct fair_row *r, uint32_t runs);
/** The sum, Jain's index and losses are as they must be. */
bool fair_is_shared(const struct fair_row *r);
/** The longest queue when flows begin together at their hosts' rate, bytes. */
double fair_model_incast(const struct fair_row *r);
/** cc.algo=delay: the queue where all windows have the round trip that they aim at, bytes. */
double fair_model_delay(const struct fair_row *r);

/* Rows; how many are not as they must be. @param all the long list. */
uint32_t fair_incasts(bool all);
uint32_t fair_delays(bool all);
/** A victim has its due. */
bool fair_victim(enum fair_victim kind, bool by_delay, const char *name);

#endif
