/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TEST_PIPELINE_RECORD_H
#define TEST_PIPELINE_RECORD_H
/** @file record.h  What leaves in which turn, compared with what left the first time. */
#include <string.h>

#include "bed.h"
#include "compiler.h"

#define PAUSE (10 * TIME_NS_PER_MS)

enum { MOST_SENT = 8192 };

/** For each turn its packets' destinations, and a mark. */
struct record {
	uint32_t n;
	uint16_t to[MOST_SENT];
};

static UNUSED struct record record_first, record_now;

static UNUSED void
record_note(const struct bed *b)
{
	struct record *r = &record_now;

	assert_true(r->n + b->out_n < MOST_SENT);
	for (uint32_t i = 0; i < b->out_n; i++)
		r->to[r->n++] = (uint16_t)b->pkt[i].dest_qpn;
	r->to[r->n++] = UINT16_MAX;
}

/** Is it as the first time? What is noted from now on is the next record. */
static UNUSED void
record_compare(uint32_t round)
{
	if (round == 0)
		record_first = record_now;
	for (uint32_t i = 0; i < RTE_MIN(record_first.n, record_now.n); i++)
		if (record_first.to[i] != record_now.to[i])
			fail_msg("round %u: packet %u is 0x%x's, and was 0x%x's", round, i,
				record_now.to[i], record_first.to[i]);
	assert_int_equal(record_first.n, record_now.n);
	record_now.n = 0;
}

/** Nobody wants anything for a while. A worker that sleeps has few turns meanwhile. */
static UNUSED void
record_pause(struct bed *b)
{
	bed_turns(b);
	b->now += PAUSE;
	bed_turn(b);
}

#endif
