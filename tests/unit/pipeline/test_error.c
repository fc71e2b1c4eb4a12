/* SPDX-License-Identifier: BSD-3-Clause */
/* QPs that fail: one report, flushes in order, silence afterwards; full completion queues; ECN. */
#include <string.h>

#include "bed.h"

/*
 * RESP-NAK-05, RESP-NAK-RAE-07, QP-14, QP-16, AE-11: one NAK, one event, four flushes, then
 * nothing. The first report says ERR already.
 */
static void
RESP_NAK_05_fatal(void **state)
{
	struct bed *b = *state;
	struct wire_fields f = write_only(E, MR_VA, 64);
	struct mbox_msg m;

	f.reth.rkey = 0xbad;
	bed_send(b, &f);
	f = send_only(E, 8); /* in the same burst already */
	bed_send(b, &f);
	bed_turn(b);
	expect_ack(b, 0x62, E, 0);
	for (uint32_t p = E - 1; p <= E + 1; p++) {
		f = send_only(p, 8);
		bed_send(b, &f);
	}
	bed_turn(b);
	expect_silence(b);
	assert_int_equal(bed_stat(b, STAT_rx_syndrome_15), 4);
	assert_int_equal(b->qp->resp.epsn.v, E);
	assert_int_equal(atomic_load(&b->qp->state), QPS_ERR);
	assert_int_equal(bed_up(b, MBOX_FATAL).ev.state, QPS_ERR); /* QP-16 */
	m = bed_up(b, MBOX_EVENT);
	assert_int_equal(m.ev.event, 3);
	assert_int_equal(m.ev.state, QPS_ERR);
	assert_int_equal(m.ev.psn, E);
	bed_no_up(b);
	for (uint32_t i = 1; i <= 4; i++) {
		struct ring_cqe c = bed_cqe(b);

		assert_int_equal(c.status, 5);
		assert_int_equal(c.wr_id, i);
		assert_int_equal(c.qp_num, QPN);
	}
	bed_no_cqe(b);
	assert_int_equal(b->qp->last_error.fatal, 21);
	assert_int_equal(b->qp->last_error.syndrome, 0x62);
	assert_int_equal(b->qp->last_error.opcode, OP_RC_WRITE_ONLY);
	assert_int_equal(b->qp->last_error.psn, E);
	assert_int_equal(b->qp->last_error.time_ns, b->now);
	assert_int_equal(bed_stat(b, STAT_resp_cqe_flush_error), 4);
	assert_int_equal(bed_stat(b, STAT_resp_remote_access_errors), 1);
}

/* CQ-02, CQ-03, AE-10: an error on a WQE completes first, flushes follow, no event. */
static void
CQ_02_error_then_flushes(void **state)
{
	struct bed *b = *state;
	struct wire_fields f = send_only(E, 1024);
	struct ring_cqe c;

	f.opcode = OP_RC_SEND_FIRST;
	bed_send(b, &f);
	f.opcode = OP_RC_SEND_MIDDLE;
	f.psn = psn(E + 1);
	f.payload_len = 1000; /* RESP-NAK-INV-15: not the path MTU */
	bed_send(b, &f);
	bed_turn(b);
	expect_ack(b, 0x1f, E, 0);
	expect_ack(b, 0x61, E + 1, 0);
	c = bed_cqe(b);
	assert_int_equal(c.wr_id, 1);
	assert_int_equal(c.status, 9); /* IBV_WC_REM_INV_REQ_ERR */
	assert_int_equal(c.vendor_err, 2);
	assert_int_equal(c.psn, E + 1);
	assert_int_equal(c.solicited, 1); /* CQ-06: an error always is */
	for (uint32_t i = 2; i <= 4; i++) {
		c = bed_cqe(b);
		assert_int_equal(c.status, 5);
		assert_int_equal(c.wr_id, i);
	}
	bed_no_cqe(b);
	bed_up(b, MBOX_FATAL);
	bed_no_up(b);
	assert_int_equal(bed_stat(b, STAT_resp_cqe_error), 1);
}

/* AEQ-14: what the control lcore's queue has no room for is counted, and nobody waits for it. */
static void
AEQ_14_no_room_for_a_report(void **state)
{
	struct bed *b = *state;
	struct mbox_msg m = { .type = MBOX_CNP };
	struct wire_fields f = send_only(E, 64);

	while (mbox_send_up(&b->mbox, &m) == 0)
		continue;
	f.opcode = OP_RC_SEND_MIDDLE;
	bed_send(b, &f);
	bed_turn(b);
	expect_ack(b, 0x61, E, 0);
	assert_int_equal(bed_stat(b, STAT_aeq_overflow), 1);
	while (mbox_recv_up(&b->mbox, &m, 1) == 1)
		assert_int_equal(m.type, MBOX_CNP);
}

/* RESP-NAK-ROE-01: a WQE with too many SGEs, and one with a bad lkey. */
static void
RESP_NAK_ROE_01_bad_wqe(void **state)
{
	struct bed *b = *state;
	struct wire_fields f = send_only(E, 8);
	struct ring_recv_wqe *wqe = (void *)b->qp->rq.sh->slots;
	struct qp *second;
	struct ring producer;

	wqe->num_sge = 1000000;
	bed_send(b, &f);
	bed_turn(b);
	expect_ack(b, 0x63, E, 0);
	assert_int_equal(bed_cqe(b).status, 2); /* LOC_QP_OP_ERR */
	for (int i = 0; i < 3; i++)
		assert_int_equal(bed_cqe(b).status, 5);

	second = bed_qp(b, 0x12, PEER_QPN);
	ring_attach(&producer, second->rq.sh, second->rq.mask + 1, second->rq.stride, false);
	wqe = ring_produce_slot(&producer, 16);
	wqe->num_sge = 1;
	wqe->sge[0] = (struct ring_sge){ RQ_VA, 4096, 0x999 };
	ring_produce_commit(&producer);
	f.dest_qpn = 0x12;
	bed_send(b, &f);
	bed_turn(b);
	expect_ack(b, 0x63, E, 0);
	assert_int_equal(bed_cqe(b).status, 4); /* LOC_PROT_ERR */
	bed_no_cqe(b);
	bed_qp_gone(b, second);
}

/* RESP-NAK-ROE-02: an ATOMIC that no unit can do, in a region that registration would not make. */
static void
RESP_NAK_ROE_02_atomic(void **state)
{
	struct bed *b = *state;
	struct wire_fields f = fetch_add(E, MR_VA + 8, 1);

	b->mr->host += 4;
	bed_send(b, &f);
	bed_turn(b);
	expect_ack(b, 0x63, E, 0);
	assert_int_equal(b->memory[12], 0);
	assert_int_equal(atomic_load(&b->qp->state), QPS_ERR);
	bed_up(b, MBOX_FATAL);
	assert_int_equal(bed_up(b, MBOX_EVENT).ev.event, 1); /* IBV_EVENT_QP_FATAL */
	b->mr->host -= 4;
}

/* RESP-CLS-G-01, CQ-05, AE-03, AE-04: full queue: one CQ_ERR, QP_FATAL, unread entries stay. */
/* AEQ-10, AEQ-11: what an abnormal event asks of the worker. */
static void
AEQ_11_flush_codes(void **state)
{
	struct bed *b = *state;
	struct mbox_msg m = { .type = MBOX_QP_FAIL };
	struct ring_cqe c;

	/* LOC_PROT_ERR for the second receive */
	m.fail = (struct mbox_fail){ .qp = b->qp, .wqe_index = 1, .queue = AEQ_RQ, .status = 4 };
	assert_int_equal(bed_tell(b, &m), 0);
	assert_true(b->done.carried);
	assert_int_equal(atomic_load(&b->qp->state), QPS_ERR);
	for (uint64_t i = 0; i < 4; i++) {
		c = bed_cqe(b);
		assert_int_equal(c.wr_id, i + 1);
		assert_int_equal(c.status, i == 1 ? 4 : 5);
	}
	assert_int_equal(bed_up(b, MBOX_FATAL).ev.fatal, 0);
	bed_no_up(b);
	/* Once. */
	assert_int_equal(bed_tell(b, &m), -EALREADY);
	bed_no_cqe(b);
}

/* QP-15, QP-17: a modify that was sent before the QP failed does not revive it. */
static void
QP_17_a_late_modify_is_refused(void **state)
{
	struct bed *b = *state;
	struct qp_attr attr = b->qp->attr;

	atomic_store(&b->qp->state, QPS_ERR);
	attr.cur_qp_state = QPS_RTR;
	for (int to = QPS_INIT; to < QPS_ERR; to++) {
		attr.qp_state = (uint8_t)to;
		assert_int_equal(bed_modify(b, b->qp, &attr, QP_ATTR_STATE), -EINVAL);
		assert_int_equal(atomic_load(&b->qp->state), QPS_ERR);
	}
	/* Attributes alone are no revival, and ERR and RESET are allowed. */
	assert_int_equal(bed_modify(b, b->qp, &attr, QP_ATTR_MIN_RNR_TIMER), 0);
	assert_int_equal(atomic_load(&b->qp->state), QPS_ERR);
	attr.qp_state = QPS_ERR;
	assert_int_equal(bed_modify(b, b->qp, &attr, QP_ATTR_STATE), 0);
	attr.qp_state = QPS_RESET;
	assert_int_equal(bed_modify(b, b->qp, &attr, QP_ATTR_STATE), 0);
	assert_int_equal(atomic_load(&b->qp->state), QPS_RESET);
}

static void
RESP_CLS_G_01_cq_full(void **state)
{
	struct bed *b = *state;
	struct wire_fields f;
	struct mbox_msg m;

	b->cq.ring.limit = 2;
	for (uint32_t i = 0; i < 4; i++) {
		f = send_only(E + i, (uint16_t)(8 + i));
		bed_send(b, &f);
	}
	bed_turn(b);
	expect_ack(b, 0x1f, E + 1, 2); /* the third was not completed, so not acknowledged */
	expect_silence(b);
	m = bed_up(b, MBOX_EVENT);
	assert_int_equal(m.ev.event, 0); /* EVENT_CQ_ERR */
	assert_int_equal(m.ev.source, SOURCE_CQ);
	assert_int_equal(m.ev.qpn, 99);
	assert_ptr_equal(m.ev.object, &b->cq);
	m = bed_up(b, MBOX_EVENT);
	assert_int_equal(m.ev.event, 1); /* IBV_EVENT_QP_FATAL */
	assert_int_equal(m.ev.qpn, QPN);
	assert_int_equal(m.ev.state, QPS_ERR);
	assert_int_equal(bed_up(b, MBOX_FATAL).ev.fatal, 0); /* not by a packet (RX-ERR-04) */
	bed_no_up(b);
	assert_int_equal(bed_cqe(b).byte_len, 8);
	assert_int_equal(bed_cqe(b).byte_len, 9);
	bed_no_cqe(b);
	assert_int_equal(atomic_load(&b->qp->state), QPS_ERR);
	assert_true(atomic_load(&b->cq.error));
	assert_true(bed_stat(b, STAT_cq_overflow) >= 1);
}

/* QP-12: ERR on request, in the middle of a message: everything flushed in order, no event. */
static void
QP_12_err_on_request(void **state)
{
	struct bed *b = *state;
	struct wire_fields f = send_only(E, 1024);

	f.opcode = OP_RC_SEND_FIRST;
	f.flags = 0;
	bed_send(b, &f);
	f = read_request(E + 5, MR_VA, 4096); /* a gap */
	bed_send(b, &f);
	bed_turn(b);
	expect_ack(b, 0x60, E + 1, 0);
	assert_int_equal(bed_state(b, b->qp, QPS_ERR), 0);
	for (uint32_t i = 1; i <= 4; i++) {
		struct ring_cqe c = bed_cqe(b);

		assert_int_equal(c.status, 5);
		assert_int_equal(c.wr_id, i);
	}
	bed_no_cqe(b);
	bed_no_up(b);
}

/* QP-13: work posted in ERR completes as flushed, once the worker is told. */
static void
QP_13_post_in_err(void **state)
{
	struct bed *b = *state;
	struct mbox_msg m = { .type = MBOX_QP_RECEIVES };

	assert_int_equal(bed_state(b, b->qp, QPS_ERR), 0);
	for (int i = 0; i < 4; i++)
		bed_cqe(b);
	bed_post(b, 2);
	m.qp.qp = b->qp;
	assert_int_equal(bed_tell(b, &m), 0);
	assert_int_equal(bed_cqe(b).wr_id, 5);
	assert_int_equal(bed_cqe(b).wr_id, 6);
	bed_no_cqe(b);
	/* In RTS the message does nothing: the work is good. */
	assert_int_equal(bed_state(b, b->qp, QPS_RESET), 0);
	atomic_store(&b->qp->state, QPS_RTS);
	bed_post(b, 1);
	assert_int_equal(bed_tell(b, &m), 0);
	bed_no_cqe(b);
	assert_int_equal(ring_consume_count(&b->qp->rq), 1);
}

/* QP-05: RESET forgets work and answers without a completion; the QP comes up again afresh. */
static void
QP_05_reset(void **state)
{
	struct bed *b = *state;
	struct wire_fields f = read_request(E, MR_VA, 65536);
	struct qp_attr attr = b->qp->attr;

	bed_send(b, &f);
	f = send_only(E + 70, 8);
	bed_send(b, &f);
	bed_turn(b);
	assert_true(b->qp->answers.count > 0);
	assert_int_equal(bed_state(b, b->qp, QPS_RESET), 0);
	bed_turns(b);
	bed_turns(b);
	expect_silence(b);
	bed_no_cqe(b);
	assert_int_equal(ring_consume_count(&b->qp->rq), 0);
	assert_false(b->qp->resp.latched);

	attr.qp_state = QPS_INIT;
	bed_modify(b, b->qp, &attr, QP_ATTR_STATE | QP_ATTR_PKEY_INDEX | QP_ATTR_ACCESS_FLAGS);
	attr.qp_state = QPS_RTR;
	attr.rq_psn = 0x500;
	bed_modify(b, b->qp, &attr,
		QP_ATTR_STATE | QP_ATTR_AV | QP_ATTR_PATH_MTU | QP_ATTR_DEST_QPN | QP_ATTR_RQ_PSN |
			QP_ATTR_MAX_DEST_RD_ATOMIC | QP_ATTR_MIN_RNR_TIMER);
	f = write_only(0x500, MR_VA, 8);
	bed_send(b, &f);
	bed_turn(b);
	expect_ack(b, 0x1f, 0x500, 1);
}

/* ---- congestion ------------------------------------------------------------------------------ */

static void
send_marked(struct bed *b, const struct wire_fields *f)
{
	struct wire_path path = bed_path();

	path.tos = 3;
	bed_put(b, bed_frame_on(&path, f));
}

/* CC-01, CC-02: a CE-marked request is served, noted, and answered with a CNP of this very form. */
static void
CC_01_cnp_format(void **state)
{
	struct bed *b = *state;
	struct wire_fields f = write_only(E, MR_VA, 64);
	static const uint8_t zeros[16];
	const struct wire_pkt *p;
	const uint8_t *bth;

	b->qp->flags |= QPF_CNP;
	b->qp->cnp_interval_ns = 50 * TIME_NS_PER_US;
	send_marked(b, &f);
	bed_turn(b);
	p = expect_packet(b, OP_CNP, 0, 16);
	bth = p->frame + p->bth_off;
	assert_int_equal(bth[1], 0);    /* SE, MigReq, PadCnt, TVer */
	assert_int_equal(bth[4], 0x40); /* BECN */
	assert_int_equal(p->dest_qpn, PEER_QPN);
	assert_int_equal(be32_load(bth + 8), 0);
	assert_memory_equal(wire_payload(p), zeros, 16);
	assert_int_equal(be16_load(bth - 4), 40); /* UDP length */
	expect_ack(b, 0x1f, E, 1);
	assert_int_equal(bed_stat(b, STAT_np_ecn_marked_roce_packets), 1);
	assert_int_equal(bed_stat(b, STAT_np_cnp_sent), 1);
}

/* CC-03: at most one CNP in an interval, for each QP. */
static void
CC_03_cnp_interval(void **state)
{
	struct bed *b = *state;

	b->qp->flags |= QPF_CNP;
	b->qp->cnp_interval_ns = 50 * TIME_NS_PER_US;
	for (uint32_t i = 0; i < 1000; i++) { /* 1 ms */
		struct wire_fields f = write_only(E + i, MR_VA, 4);

		send_marked(b, &f);
		bed_turn(b);
		b->now += TIME_NS_PER_US;
	}
	assert_int_equal(bed_stat(b, STAT_np_ecn_marked_roce_packets), 1000);
	assert_int_equal(bed_stat(b, STAT_np_cnp_sent), 20);
}

/**
 * CC-04: one request to the control lcore at a time. One that was never answered counts as lost a
 * second after its interval, and not before; the worker itself sends nothing.
 */
static void
CC_04_a_lost_request_is_made_again(void **state)
{
	const ns_t interval = 50 * TIME_NS_PER_US;
	const struct {
		ns_t later;
		bool asks;
	} rows[] = { { 0, true }, { interval, false }, { TIME_NS_PER_S / 2, false },
		{ TIME_NS_PER_S / 2 - 1, false }, { 1, true }, { interval, false },
		{ TIME_NS_PER_S - 1, false }, { 1, true } };
	struct bed *b = *state;
	struct mbox_msg m;

	b->qp->flags |= QPF_CNP | QPF_CNP_CONTROL;
	b->qp->cnp_interval_ns = interval;
	for (uint32_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct wire_fields f = write_only(E + i, MR_VA, 4);

		b->now += rows[i].later;
		send_marked(b, &f);
		bed_turn(b);
		expect_ack(b, 0x1f, E + i, i + 1);
		expect_silence(b);
		assert_int_equal(mbox_recv_up(&b->mbox, &m, 1), rows[i].asks ? 1 : 0);
		if (rows[i].asks)
			assert_int_equal(m.type, MBOX_CNP);
	}
	assert_int_equal(bed_stat(b, STAT_np_cnp_sent), 0);
}

/* CC-02 with cc.cnp=off: noted, but nothing sent. */
static void
CC_02_no_cnp_when_off(void **state)
{
	struct bed *b = *state;
	struct wire_fields f = write_only(E, MR_VA, 64);

	send_marked(b, &f);
	bed_turn(b);
	expect_ack(b, 0x1f, E, 1);
	expect_silence(b);
	assert_int_equal(bed_stat(b, STAT_np_ecn_marked_roce_packets), 1);
}

/* CC-05, CC-08: a good CNP is counted and never answered; one without BECN is dropped. */
static void
CC_08_cnp_received(void **state)
{
	struct bed *b = *state;
	static const uint8_t zeros[16];
	struct wire_fields f = {
		.opcode = OP_CNP, .flags = PKT_BECN, .payload = zeros, .payload_len = 16
	};

	bed_send(b, &f);
	bed_turn(b);
	expect_silence(b);
	assert_int_equal(bed_stat(b, STAT_rp_cnp_handled), 1);
	f.flags = 0;
	bed_send(b, &f);
	f.flags = PKT_BECN;
	f.payload_len = 12;
	bed_send(b, &f);
	f.payload_len = 16;
	f.dest_qpn = 0x99;
	bed_send(b, &f);
	bed_turn(b);
	expect_silence(b);
	assert_int_equal(bed_stat(b, STAT_rx_bad_cnp), 2);
	assert_int_equal(bed_stat(b, STAT_rp_cnp_ignored), 2);
	assert_int_equal(bed_stat(b, STAT_rx_syndrome_15), 1);
	assert_int_equal(b->qp->resp.epsn.v, E);
	assert_int_equal(atomic_load(&b->qp->state), QPS_RTS);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(RESP_NAK_05_fatal),
		TEST(CQ_02_error_then_flushes),
		TEST(AEQ_14_no_room_for_a_report),
		TEST(RESP_NAK_ROE_01_bad_wqe),
		TEST(AEQ_11_flush_codes),
		TEST(QP_17_a_late_modify_is_refused),
		TEST(RESP_NAK_ROE_02_atomic),
		TEST(RESP_CLS_G_01_cq_full),
		TEST(QP_12_err_on_request),
		TEST(QP_13_post_in_err),
		TEST(QP_05_reset),
		TEST(CC_01_cnp_format),
		TEST(CC_03_cnp_interval),
		TEST(CC_04_a_lost_request_is_made_again),
		TEST(CC_02_no_cnp_when_off),
		TEST(CC_08_cnp_received),
	};

	return cmocka_run_group_tests(tests, bed_group_setup, NULL);
}
