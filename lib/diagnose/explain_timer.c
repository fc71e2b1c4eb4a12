/* SPDX-License-Identifier: BSD-3-Clause */
#include "explain_timer.h"

#include "requester.h"

#define TIMEOUT_MAX 31
#define STEP        3 /* 2^3: a timeout that is eight times as long */

/*
 * How long the answers took nobody knows: after a timeout the requester keeps few packets in
 * flight, and the round trips of those are short. So the advice is a step, and the counter to look
 * at: what it has may be of a timeout that the QP had before.
 */
static uint8_t
advised(uint8_t timeout)
{
	return timeout + STEP < TIMEOUT_MAX ? timeout + STEP : TIMEOUT_MAX;
}

static unsigned long long
us_of(uint8_t timeout)
{
	return requester_timeout_ns(timeout) / TIME_NS_PER_US;
}

static json_t *
text_of(uint64_t count, uint64_t early, uint8_t timeout)
{
	const unsigned long long all = count, few = early;
	uint8_t advice;

	if (early == 0)
		return json_sprintf("transport timers that have ended: %llu", all);
	if (timeout == 0)
		return json_sprintf(
			"at least %llu of %llu transport timers ended too early: the answers were "
			"on their way. timeout is 0 now: no timer runs",
			few, all);
	if (timeout >= TIMEOUT_MAX)
		return json_sprintf(
			"at least %llu of %llu transport timers ended too early: the answers were "
			"on their way. timeout is %u (%llu us) now: there is no longer one, and 0 "
			"runs no timer",
			few, all, timeout, us_of(timeout));
	advice = advised(timeout);
	return json_sprintf(
		"at least %llu of %llu transport timers ended too early: the answers were on their "
		"way. If local_ack_timeout_early still grows, timeout %u (%llu us) is shorter than "
		"the queues, the link or the peer take: try timeout %u (%llu us). It is changed in "
		"state SQD",
		few, all, timeout, us_of(timeout), advice, us_of(advice));
}

json_t *
explain_timeouts(const struct qp_snapshot *s)
{
	const uint64_t count = s->stats.c[STAT_local_ack_timeout_err];
	const uint64_t early = s->stats.c[STAT_local_ack_timeout_early];
	const uint8_t timeout = s->waiting.timeout != 0 ? s->waiting.timeout : s->attr.timeout;

	return json_pack("{s:I, s:I, s:i, s:o}", "count", (json_int_t)count, "early",
		(json_int_t)early, "timeout", timeout, "text", text_of(count, early, timeout));
}
