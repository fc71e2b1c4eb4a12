/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef FAIR_H
#define FAIR_H
/**
 * @file fair.h  Flows with DCQCN that share queues, in virtual time, and the fluid model of them.
 *
 * Owner:   tests only: fair.c has the rows and judges, fair_play.c plays, fair_model.c foretells.
 * Memory:  static; one row at a time.
 * Depends: cc, impair (bottleneck.h).
 * Spec:    CC-27.
 */
#include <stdbool.h>
#include <stdint.h>

#include "bottleneck.h"
#include "cc.h"

#define FAIR_MOST   512u
#define FAIR_FRAME  1000u
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

/** When the second half begins. */
static inline ns_t
fair_t0(const struct fair_row *r)
{
	return r->ms * TIME_NS_PER_MS / 4;
}

void fair_params(const struct fair_row *r, struct cc_params *p);
void fair_play(struct fair_row *r);
/** The queue at the model's fixed point, bytes. @param mark the part of packets that is marked. */
double fair_model_queue(const struct fair_row *r, double *mark);
/** The time after T0 until both halves are, in the model, as fair_is_settled() wants it; ms. */
double fair_model_settles(const struct fair_row *r);
/**
 * Both halves within a tenth of the fair share, for a millisecond. @param rate of each half, of one
 * flow of it, by that share. @param slices for so long, so far. @return is it so now?
 */
bool fair_is_settled(const double rate[2], uint32_t *slices);

#endif
