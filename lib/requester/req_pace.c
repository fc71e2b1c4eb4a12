/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How many packets are in flight on a link that loses some. A peer throws away what follows a lost
 * packet, so each loss costs what was in flight behind it, and a resend costs as much again when it
 * meets the same full queue. Up to the first loss the window is the configured one; then
 *
 * - a NAK leaves what the link itself holds: of what was in flight, the part that the shortest
 *   round trip is of the newest, and a quarter more. Where nothing queues, that is all of it.
 *   Fewer than some dozens do not keep a worker busy; more stay where what follows a lost packet
 *   is kept (req_gap.c);
 * - a timeout leaves a few packets; what is acknowledged of them doubles them in a round trip, up
 *   to what a NAK would have left. The oldest come first (TMR-07); with no more than those few in
 *   flight, nothing is different from before;
 * - each round trip without a loss adds one packet, until the window is the configured one again.
 */
#include "requester_priv.h"

#define OPEN_MIN     40u  /* packets: what a NAK leaves at least: a worker's turn, and a quarter */
#define OPEN_KEPT    56u  /* ... where what follows a lost packet is kept: it costs less */
#define OPEN_PATCHED 128u /* ... where the peer keeps it: half of what it has places for */
#define PROBE        8u   /* packets of the first resend after a timeout */

/** Packets that the link holds without a queue. */
static uint32_t
link_holds(const struct requester *r, uint32_t flying)
{
	if (r->rtt == 0 || r->rtt_min == 0)
		return flying / 2;
	return (uint32_t)((uint64_t)flying * 5 * r->rtt_min / 4 / r->rtt);
}

void
req_pace_lost(struct requester *r, bool timeout)
{
	const uint32_t least = req_peer_keeps(r) ? OPEN_PATCHED : r->holes ? OPEN_KEPT : OPEN_MIN;
	uint32_t flying = req_flying(r), holds;

	r->timed_at = 0; /* which copy a response will answer cannot be told */
	if (!timeout && r->rtt == 0 && !requester_is_free(r))
		return;                     /* of the same round trip as a loss before */
	if (timeout && r->open < r->knee) { /* of the few, or of what they have grown to */
		r->open = r->open < PROBE ? r->open : PROBE;
		return;
	}
	holds = link_holds(r, flying);
	if (holds < least)
		holds = least;
	if (holds > r->open)
		holds = r->open;
	r->rtt = 0;
	r->knee = holds;
	r->open = holds;
	ASSERT(holds != 0);
	if (timeout) {
		r->knee = holds < least ? least : holds;
		r->open = holds < PROBE ? holds : PROBE;
	}
}

void
req_pace_round(struct requester *r, ns_t now, struct requester_verdict *v)
{
	requester_round_take(r, now);
	v->act |= r->rounds ? REQACT_ROUND : 0;
	if (requester_is_free(r) || r->open < r->knee)
		return;
	r->open++;
	if (r->open >= r->window)
		r->open = REQ_OPEN_ALL;
}

void
req_pace_progress(struct requester *r, uint32_t psns)
{
	if (r->open < r->knee)
		r->open = r->knee - r->open < psns ? r->knee : r->open + psns;
}
