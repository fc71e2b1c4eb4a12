/* SPDX-License-Identifier: BSD-3-Clause */
#include "explain_timer.h"

#include <stdio.h>

#include "requester.h"

#define ROUNDS      4 /* round trips that a timeout is long, at least */
#define TIMEOUT_MAX 31

/** The least timeout of so many round trips; 0: the one in effect is. */
static uint8_t
advised(uint8_t timeout, ns_t round)
{
	uint8_t n = timeout;

	while (n < TIMEOUT_MAX && requester_timeout_ns(n) < ROUNDS * round)
		n++;
	return n > timeout ? n : 0;
}

static unsigned long long
us_of(ns_t t)
{
	return t / TIME_NS_PER_US;
}

/** What to do: the counters are of all timeouts that the QP has had, not of this one alone. */
static void
advice_of(char *out, size_t room, uint8_t timeout, ns_t round)
{
	const uint8_t advice = advised(timeout, round);

	if (timeout == 0)
		snprintf(out, room, "it is 0 now: no timer runs");
	else if (advice != 0)
		snprintf(out, room,
			"it is %u (%llu us) now, a round trip takes %llu us, so take %u", timeout,
			us_of(requester_timeout_ns(timeout)), us_of(round), advice);
	else
		snprintf(out, room, "it is %u (%llu us) now: if more end early, take a longer one",
			timeout, us_of(requester_timeout_ns(timeout)));
}

static json_t *
text_of(uint64_t count, uint64_t early, uint8_t timeout, ns_t round)
{
	const unsigned long long all = count, few = early;
	char take[128];

	if (early == 0)
		return json_sprintf("transport timers that have ended: %llu", all);
	advice_of(take, sizeof(take), timeout, round);
	return json_sprintf(
		"at least %llu of %llu transport timers ended while answers were on their way: the "
		"timeout was shorter than what the queue pair itself has under way takes; %s",
		few, all, take);
}

json_t *
explain_timeouts(const struct qp_snapshot *s)
{
	const uint64_t count = s->stats.c[STAT_local_ack_timeout_err];
	const uint64_t early = s->stats.c[STAT_local_ack_timeout_early];
	const uint8_t timeout = s->waiting.timeout != 0 ? s->waiting.timeout : s->attr.timeout;
	const ns_t round = s->waiting.round_ns;

	return json_pack("{s:I, s:I, s:i, s:o, s:o}", "count", (json_int_t)count, "early",
		(json_int_t)early, "timeout", timeout, "round_trip_us",
		round != 0 ? json_integer((json_int_t)us_of(round)) : json_null(), "text",
		text_of(count, early, timeout, round));
}
