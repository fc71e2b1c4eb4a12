/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How many packets are in flight on a link that loses some. A peer throws away what follows a lost
 * packet, so each loss costs what was in flight behind it, and a resend costs as much again when it
 * meets the same full queue. Up to the first loss the window is the configured one; then
 *
 * - a NAK leaves what the link itself holds: of what was in flight, the part that the shortest
 *   round trip is of the newest, and a quarter more. Where nothing queues, that is all of it. From
 *   then on it is the same part of what may be in flight: how many are behind a lost packet tells
 *   how long ago the last resend was, not what the link holds. READs that go back count as
 *   before, for the queue of their answers is never empty, and their shortest round trip has it.
 *   Fewer than some dozens do not keep a worker busy; more stay where what follows a lost packet
 *   is kept (req_gap.c);
 * - a timeout leaves a few packets, a probe some more, as it comes when the link has been empty for
 *   a round trip; what is acknowledged of them doubles them in a round trip, up to what a NAK would
 *   have left. The oldest come first (TMR-07); with no more than those few in flight, nothing is
 *   different from before;
 * - each round trip without a loss adds one packet, until the window is the configured one again.
 *   After as many round trips more as OPEN_ROUNDS all is as if nothing had been lost.
 */
#include "requester_priv.h"

#define OPEN_MIN     48u  /* packets: what a NAK leaves at least: three turns of a worker */
#define OPEN_READS   40u  /* ... where the peer answers READs: a request brings several */
#define OPEN_KEPT    56u  /* ... where what follows a lost packet is kept: it costs less */
#define OPEN_PATCHED 128u /* ... where the peer keeps it: half of what it has places for */
#define OPEN_ROUNDS  256u
#define FEW_PROBE    24u  /* packets of the first resend of a probe */
#define FEW_TIMEOUT  8u   /* ... after a timeout */

/** Packets that the link holds without a queue. */
static uint32_t
link_holds(const struct requester *r, uint32_t flying)
{
	if (r->rtt == 0 || r->rtt_min == 0)
		return flying / 2;
	return (uint32_t)((uint64_t)flying * 5 * r->rtt_min / 4 / r->rtt);
}

/** What a NAK leaves at least. */
static uint32_t
open_least(const struct requester *r)
{
	if (req_peer_keeps(r))
		return OPEN_PATCHED;
	if (r->holes)
		return OPEN_KEPT;
	return r->reads != 0 ? OPEN_READS : OPEN_MIN;
}

void
req_pace_lost(struct requester *r, enum req_lost how)
{
	const uint32_t few = how == REQ_LOST_TIMEOUT ? FEW_TIMEOUT : FEW_PROBE;
	const uint32_t least = open_least(r);
	const bool silent = how != REQ_LOST_TOLD;
	uint32_t flying = req_flying(r), holds;

	r->timed_at = 0; /* which copy a response will answer cannot be told */
	if (!silent && r->rtt == 0 && !requester_is_free(r))
		return;                    /* of the same round trip as a loss before */
	if (silent && r->open < r->knee) { /* of the few, or of what they have grown to */
		r->open = r->open < few ? r->open : few;
		return;
	}
	if (!requester_is_free(r) && (r->reads == 0 || r->holes) && flying < req_room(r))
		flying = req_room(r);
	holds = link_holds(r, flying);
	if (holds < least)
		holds = least;
	if (holds > r->open)
		holds = r->open;
	r->rtt = 0;
	r->knee = holds;
	r->open = holds;
	ASSERT(holds != 0);
	if (silent) {
		r->knee = holds < least ? least : holds;
		r->open = holds < few ? holds : few;
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
	if (r->open >= r->window && r->open - r->window >= OPEN_ROUNDS)
		r->open = REQ_OPEN_ALL;
}

void
req_pace_progress(struct requester *r, uint32_t psns)
{
	if (r->open < r->knee)
		r->open = r->knee - r->open < psns ? r->knee : r->open + psns;
}
