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
 * - losses in a row, each before what the one before cost has come through, are of a switch's
 *   buffer that holds less than those dozens: each resend meets what the one before has left
 *   there. So after some of them the window is halved, and with it what a NAK leaves at least,
 *   down to an eighth. Where a window that has come through as it is loses something all the same,
 *   again and again, it was chance, and it opens;
 * - each round trip without a loss adds one packet, until the window is the configured one again.
 *   After as many round trips more as OPEN_ROUNDS all is as if nothing had been lost.
 */
#include "requester_priv.h"

#define OPEN_MIN     48u  /* packets: what a NAK leaves at least: three turns of a worker */
#define OPEN_READS   40u  /* ... where the peer answers READs: a request brings several */
#define OPEN_KEPT    56u  /* ... where what follows a lost packet is kept: it costs less */
#define OPEN_PATCHED 128u /* ... where the peer keeps it: half of what it has places for */
#define OPEN_ROUNDS  256u
#define FALLS_MOST   3u  /* times that the window halves, and with it what a NAK leaves */
#define FALL_AFTER   6u  /* losses in a row until it does, with no more open than a NAK leaves */
#define FALL_OPEN    15u /* ... with more: they are less rare there */
#define HARD_MOST    15u
#define FALL_KEPT    10u /* ... where what follows a lost packet is kept */
#define LUCK_AFTER   3u  /* losses of a window that had come through until it opens again */
#define FEW_PROBE    24u /* packets of the first resend of a probe */
#define FEW_TIMEOUT  8u  /* ... after a timeout */

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

/** As much as `knee` takes. */
static uint16_t
knee_at(uint32_t packets)
{
	return packets < UINT16_MAX ? (uint16_t)packets : UINT16_MAX;
}

/** What the window lets out, or grows to as soon as something is acknowledged. */
static uint32_t
room_of(const struct requester *r)
{
	return r->open > r->knee ? r->open : r->knee;
}

/** Is what follows a lost packet kept, so that losses are told one after another? */
static bool
is_kept(const struct requester *r)
{
	return r->holes || req_peer_keeps(r);
}

/** Did the one before cost more than has come through since? */
static bool
is_in_a_row(const struct requester *r)
{
	if (r->got == UINT8_MAX)
		return r->anew && !is_kept(r);
	if (is_kept(r))
		return 4u * r->got < room_of(r);
	return r->anew || (r->reads == 0 && r->got < room_of(r));
}

/** Losses in a row that chance hardly brings. */
static uint32_t
falls_after(const struct requester *r)
{
	if (is_kept(r))
		return FALL_KEPT;
	if (room_of(r) <= open_least(r))
		return FALL_AFTER;
	return r->reads != 0 ? UINT32_MAX : FALL_OPEN;
}

/** A window that has come through and loses all the same, without growing, is not too large. */
static void
count_luck(struct requester *r)
{
	if (r->falls == 0 || r->got < r->open || r->open > r->knee + 2u || ++r->eased < LUCK_AFTER)
		return;
	r->eased = 0;
	r->falls = 0;
	r->open = 2 * room_of(r);
	r->knee = knee_at(r->open);
}

/** One more loss, while losses limit. @return the window is too much for a buffer on the way */
static bool
is_too_much(struct requester *r)
{
	bool fall = false;

	/* With more in flight than the peer has places for, one loss is told as several. */
	if (req_peer_keeps(r) && r->rtt == 0)
		return false;
	if (is_in_a_row(r)) {
		r->hard += r->hard != HARD_MOST;
		fall = r->hard >= falls_after(r);
	} else {
		r->hard = 4u * r->got < 5u * room_of(r) ? r->hard : 0;
		count_luck(r);
	}
	r->got = 0;
	if (fall)
		r->hard = r->eased = 0;
	return fall;
}

/** Half of it, and half of what a NAK leaves. */
static void
fall(struct requester *r)
{
	uint32_t half = room_of(r) / 2, least;

	r->falls += r->falls != FALLS_MOST;
	least = open_least(r) >> r->falls;
	half = half < least ? least : half;
	r->open = half < r->open ? half : r->open;
	r->knee = knee_at(r->open);
}

void
req_pace_lost(struct requester *r, enum req_lost how)
{
	const uint32_t few = how == REQ_LOST_TIMEOUT ? FEW_TIMEOUT : FEW_PROBE >> r->falls;
	const bool silent = how != REQ_LOST_TOLD;
	uint32_t flying = req_flying(r), holds, least;

	r->timed_at = 0; /* which copy a response will answer cannot be told */
	if (!silent && !requester_is_free(r) && is_too_much(r)) {
		fall(r);
		return;
	}
	if (!silent && r->rtt == 0 && !requester_is_free(r))
		return;                    /* of the same round trip as a loss before */
	if (silent && r->open < r->knee) { /* of the few, or of what they have grown to */
		r->open = r->open < few ? r->open : few;
		return;
	}
	if (!requester_is_free(r) && (r->reads == 0 || r->holes) && flying < req_room(r))
		flying = req_room(r);
	holds = link_holds(r, flying);
	least = open_least(r) >> r->falls;
	if (holds < least)
		holds = least;
	if (holds > r->open)
		holds = r->open;
	r->rtt = 0;
	r->knee = knee_at(holds);
	r->open = holds;
	ASSERT(holds != 0);
	if (silent) {
		r->knee = knee_at(holds < least ? least : holds);
		r->open = holds < few ? holds : few;
	}
}

const struct requester_wr *
req_answered(const struct requester *r, psn_t p)
{
	uint32_t first = r->head, end = r->fresh - 1;

	if (psn_cmp(p, r->una) < 0) {
		const struct requester_wr *w = requester_slot(r, r->head);

		ASSERT(psn_eq(psn_add(p, 1), r->una));
		return r->head != r->fresh && psn_between(p, w->first, w->last)
			       ? w
			       : requester_slot(r, r->head - 1); /* it has just ended */
	}
	ASSERT(r->head != r->fresh);
	while (first != end) { /* the PSNs of work requests rise */
		const uint32_t mid = first + (end - first) / 2;

		if (psn_cmp(requester_slot(r, mid)->last, p) < 0)
			first = mid + 1;
		else
			end = mid;
	}
	return requester_slot(r, first);
}

uint32_t
requester_round_of(const struct requester *r, psn_t p, uint32_t passed, ns_t now)
{
	const struct requester_wr *w = req_answered(r, p);
	const uint32_t age = requester_age(w->sent_at, now + 64); /* no less than it is */

	if (age >= passed)
		return passed;
	/* Of a copy it may be much too short: what is answered may have been sent before that. */
	return req_is_copied(w) && age < passed / 2 ? 0 : age;
}

void
req_pace_round(struct requester *r, psn_t p, ns_t now, struct requester_verdict *v)
{
	if (requester_round_take(r, p, now))
		v->act |= r->rounds ? REQACT_ROUND : 0;
	if (requester_is_free(r) || r->open < r->knee)
		return;
	r->open++;
	if (r->open >= r->window && r->open - r->window >= OPEN_ROUNDS)
		req_pace_forget(r);
}

void
req_pace_forget(struct requester *r)
{
	r->open = REQ_OPEN_ALL;
	r->knee = 0;
	r->got = r->falls = r->hard = r->eased = 0;
}

void
req_path_forget(struct requester *r)
{
	req_pace_forget(r);
	r->timed_at = 0;
	r->rtt = 0;
	r->rtt_min = 0;
	r->longer = 0;
}
