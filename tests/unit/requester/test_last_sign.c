/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * READs of which responses are kept (req.read_gap), of queue pairs without a transport timer: the
 * last response that comes has to lead to another retry where something is still missing.
 */
#include "req.h"

#define RTT UINT64_C(10000)

/*
 * A READ has two gaps, and what is asked for of the first is lost once more. No more comes than the
 * rest of the first answer, which alone shows that the READ is not over.
 */
static void
two_gaps(uint16_t knobs)
{
	struct bed bed, *s = &bed;

	bed_init(s);
	s->r.timeout = 0;
	s->r.knobs = knobs;
	POST(s, READ(6 * PMTU));
	pump(s);
	s->now += RTT;
	MIDDLE(s, S + 1);
	assert_int_equal(s->v.cause, QC_IMPLIED_NAK);
	pump(s);
	expect_psns(s, S);
	for (uint32_t at = 3; at < 5; at++) {
		s->now += RTT / 10;
		MIDDLE(s, S + at);
	}
	LAST(s, S + 5, PMTU);
	assert_true(s->r.timing);
	assert_in_range(s->r.deadline - s->now, RTT, 8 * RTT);
	expire(s);
	expect_resend(s, QC_IMPLIED_NAK, "REQ-IMPL-01");
	pump(s);
	expect_psns(s, S);
	assert_int_equal(s->out[0].dma_len, PMTU);
}

static void
REQ_IMPL_01_two_gaps(void **state)
{
	(void)state;
	two_gaps(REQ_KNOB_READ_FILL);
	two_gaps(REQ_KNOB_READ_FILL | REQ_KNOB_READ_KEEP);
}

/*
 * req.read_gap=keep, req.reorder: a response of a later READ has come, then late the first one that
 * it had overtaken. Of those between the next one is missing from then on.
 */
static void
REQ_IMPL_01_late_and_lost(void **state)
{
	struct bed bed, *s = &bed;

	(void)state;
	bed_init(s);
	s->r.timeout = 0;
	s->r.knobs = REQ_KNOB_READ_FILL | REQ_KNOB_READ_KEEP | 3 << REQ_KNOB_REORDER_SHIFT;
	POST(s, READ(2 * PMTU));
	POST(s, READ(64));
	pump(s);
	s->now += RTT;
	ONLY(s, S + 2, 64);
	assert_true(s->r.timing);
	s->now += RTT / 10;
	FIRST(s, S);
	assert_int_equal(s->r.una.v, S + 1);
	assert_true(s->r.timing);
	assert_in_range(s->r.deadline - s->now, RTT, 8 * RTT);
	expire(s);
	assert_int_equal(s->v.cause, QC_IMPLIED_NAK);
	pump(s);
	expect_psns(s, S + 1);
	ONLY(s, S + 1, PMTU);
	expect_done(s, 2);
}

/*
 * A READ has a gap, and of what is asked for of it the last `lost` responses are lost once more.
 * Behind that the rest of the first answer comes, and is kept. No more comes.
 */
static void
part_is_lost(uint16_t knobs, uint32_t lost)
{
	struct bed bed, *s = &bed;

	bed_init(s);
	s->r.timeout = 0;
	s->r.knobs = knobs;
	POST(s, READ(6 * PMTU));
	pump(s);
	s->now += RTT;
	MIDDLE(s, S + 3);
	assert_int_equal(s->v.cause, QC_IMPLIED_NAK);
	pump(s);
	expect_psns(s, S);
	s->now += RTT / 10;
	MIDDLE(s, S + 4);
	s->now += RTT;
	for (uint32_t at = 0; at < 3 - lost; at++)
		if (at == 0)
			FIRST(s, S);
		else
			MIDDLE(s, S + at);
	LAST(s, S + 5, PMTU);
	assert_true(s->r.timing);
	assert_in_range(s->r.deadline - s->now, 0, 8 * RTT);
	expire(s);
	expect_resend(s, QC_IMPLIED_NAK, "REQ-IMPL-01");
	pump(s);
	expect_psns(s, S + 3 - lost);
	assert_int_equal(s->out[0].dma_len, lost * PMTU);
}

static void
REQ_IMPL_01_part_is_lost(void **state)
{
	(void)state;
	for (uint32_t lost = 1; lost <= 3; lost++) {
		part_is_lost(REQ_KNOB_READ_FILL, lost);
		part_is_lost(REQ_KNOB_READ_FILL | REQ_KNOB_READ_KEEP, lost);
	}
}

RUN(T(REQ_IMPL_01_two_gaps), T(REQ_IMPL_01_part_is_lost), T(REQ_IMPL_01_late_and_lost))
