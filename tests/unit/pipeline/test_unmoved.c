/* SPDX-License-Identifier: BSD-3-Clause */
/* What must leave a QP as it was, whichever way it takes through the loop; and what must not. */
#include <errno.h>

#include "bed.h"
#include "count.h"

#include <string.h>

#undef fail /* cmocka's; the pipeline has a function of that name */

enum { PLAIN, TRACED, NO_RECORDS, WAYS };

/** Make packets go another way: traced ones in full, without records many at once. */
static void
take_way(struct bed *b, uint32_t way)
{
	if (way == TRACED)
		b->qp->flags |= QPF_TRACE;
	if (way == NO_RECORDS) {
		b->conf.errbuf_entries = 0;
		bed_worker_again(b);
	}
}

static void
again(void **state)
{
	assert_int_equal(bed_teardown(state), 0);
	assert_int_equal(bed_setup(state), 0);
}

static void
request(struct bed *b, uint32_t p, bool bad)
{
	const struct wire_fields f = send_only(p, 8);
	struct rte_mbuf *m = bed_frame(&f);

	if (bad)
		rte_pktmbuf_mtod(m, uint8_t *)[m->data_len - 1] ^= 1;
	bed_put(b, m);
}

/* RESP-SEQ-13: a packet at ePSN that is not good does not let a second sequence NAK out. */
static void
RESP_SEQ_13_bad_icrc_keeps_the_latch(void **state)
{
	for (uint32_t way = 0; way < WAYS; way++) {
		for (uint32_t bad = 1; bad <= 9; bad += 4) {
			struct bed *b = *state;
			struct responder before;

			take_way(b, way);
			request(b, E + 1, false);
			bed_turn(b);
			expect_ack(b, 0x60, E, 0);
			before = b->qp->resp;
			for (uint32_t i = 0; i < bad; i++)
				request(b, E, true);
			bed_turn(b);
			expect_silence(b);
			assert_memory_equal(&b->qp->resp, &before, sizeof(before));
			assert_int_equal(bed_stat(b, STAT_rx_syndrome_30), bad);
			/* In one burst with good ones, too. */
			request(b, E, true);
			request(b, E + 1, false);
			request(b, E, true);
			request(b, E + 2, false);
			bed_turn(b);
			expect_silence(b);
			request(b, E, false);
			request(b, E + 2, false); /* a new gap, and a new NAK */
			bed_turn(b);
			expect_ack(b, 0x1f, E, 1);
			expect_ack(b, 0x60, E + 1, 1);
			again(state);
		}
	}
}

/** SENDs of eight bytes, PSNs S and on, all of them sent. */
static void
sends(struct bed *b, uint32_t n)
{
	const struct ring_sge sge = { .addr = MR_VA, .length = 8, .lkey = MR_KEY };
	struct mbox_msg m = { .type = MBOX_QP_POSTED };
	struct ring producer;

	ring_attach(&producer, b->qp->sq.ring.sh, b->qp->sq.ring.mask + 1, b->qp->sq.ring.stride,
		false);
	for (uint32_t i = 0; i < n; i++) {
		struct ring_send_wqe *wqe = ring_produce_slot(&producer, 16);

		assert_non_null(wqe);
		memset(wqe, 0, producer.stride);
		wqe->wr_id = i + 1;
		wqe->opcode = WR_SEND;
		wqe->flags = SEND_SIGNALED;
		wqe->num_sge = 1;
		wqe->sge[0] = sge;
		ring_produce_commit(&producer);
	}
	m.qp.qp = b->qp;
	assert_int_equal(bed_tell(b, &m), 0);
	bed_turns(b);
	bed_forget_output(b);
}

static void
ghosts(struct bed *b, uint32_t n, bool marked)
{
	const struct wire_fields f = {
		.opcode = OP_RC_ACKNOWLEDGE, .psn = psn(S - 1), .aeth = { 0x1f, 1 }
	};
	struct wire_path path = bed_path();

	path.tos = (uint8_t)(path.tos | (marked ? 3 : 0));
	while (n-- != 0)
		bed_put(b, bed_frame_on(&path, &f));
	bed_turn(b);
}

/* REQ-RETRY-05, TMR-12: ACKs of nothing reload no counter and feed no timer. */
static void
REQ_RETRY_05_ghosts_change_nothing(void **state)
{
	for (uint32_t way = 0; way < WAYS; way++) {
		for (uint32_t marked = 0; marked < 2; marked++) {
			struct bed *b = *state;
			struct requester before;

			take_way(b, way);
			sends(b, 1);
			b->qp->req.retry_left = 1;
			b->qp->req.rnr_left = 1;
			before = b->qp->req;
			b->now += 1000;
			ghosts(b, 1, marked != 0);
			assert_memory_equal(&b->qp->req, &before, sizeof(before));
			ghosts(b, 5, marked != 0);
			assert_memory_equal(&b->qp->req, &before, sizeof(before));
			assert_int_equal(bed_stat(b, STAT_rx_responses_unmatched), 6);
			again(state);
		}
	}
}

/*
 * REQ-CLS-F-01, AE-04: the completion queue is full when a NAK both completes and fails: QP_FATAL
 * all the same, once, beside one CQ_ERR.
 */
static void
REQ_CLS_F_01_full_when_it_fails(void **state)
{
	static const uint8_t syndromes[] = { 0x1f, 0x61, 0x62, 0x63 };

	for (size_t i = 0; i < ARRAY_LEN(syndromes); i++) {
		struct bed *b = *state;
		struct mbox_msg m;
		const struct wire_fields f = { .opcode = OP_RC_ACKNOWLEDGE,
			.psn = psn(S + 2),
			.aeth = { .syndrome = syndromes[i] } };

		sends(b, 3);
		b->cq.ring.limit = 1;
		bed_send(b, &f);
		bed_turns(b);
		assert_int_equal(qp_state_of(b->qp), QPS_ERR);
		m = bed_up(b, MBOX_EVENT);
		assert_int_equal(m.ev.event, 0); /* EVENT_CQ_ERR */
		assert_int_equal(m.ev.source, SOURCE_CQ);
		m = bed_up(b, MBOX_EVENT);
		assert_int_equal(m.ev.event, 1); /* IBV_EVENT_QP_FATAL */
		assert_int_equal(m.ev.qpn, QPN);
		assert_int_equal(m.ev.source, SOURCE_CQ);
		bed_up(b, MBOX_FATAL);
		bed_no_up(b);
		again(state);
	}
}

/*
 * REQ-CLS-F-01, QP-11: the same of a request at fault on a service without ACKs. Its error is lost,
 * so the send queue does not just stop, as it would in SQE.
 */
static void
REQ_CLS_F_01_full_for_a_fault(void **state)
{
	const struct qp_alloc_params params = { .type = QPT_UC,
		.max_recv_wr = 1,
		.max_recv_sge = 1,
		.max_send_wr = 2,
		.max_send_sge = 1 };

	for (uint32_t full = 0; full < 2; full++) {
		struct bed *b = *state;
		struct qp *qp = bed_qp_with(b, QPN + 1, PEER_QPN + 1, &params);
		struct mbox_msg m = { .type = MBOX_QP_POSTED, .qp.qp = qp };
		struct ring producer;

		ring_attach(
			&producer, qp->sq.ring.sh, qp->sq.ring.mask + 1, qp->sq.ring.stride, false);
		for (uint32_t i = 0; i < 2; i++) {
			struct ring_send_wqe *wqe = ring_produce_slot(&producer, 2);

			memset(wqe, 0, producer.stride);
			wqe->opcode = WR_RDMA_WRITE;
			wqe->flags = SEND_SIGNALED;
			wqe->num_sge = 1;
			wqe->sge[0] = (struct ring_sge){ MR_VA, 8, i == 0 ? MR_KEY : 0xbad };
			ring_produce_commit(&producer);
		}
		b->cq.ring.limit = 2 - full;
		assert_int_equal(bed_tell(b, &m), 0);
		bed_turns(b);
		assert_int_equal(bed_cqe(b).status, WC_SUCCESS);
		bed_up(b, MBOX_FATAL);
		assert_int_equal(qp_state_of(qp), full != 0 ? QPS_ERR : QPS_SQE);
		if (full != 0) {
			assert_int_equal(bed_up(b, MBOX_EVENT).ev.event, EVENT_CQ_ERR);
			assert_int_equal(bed_up(b, MBOX_EVENT).ev.event, EVENT_QP_FATAL);
		} else {
			assert_int_equal(bed_cqe(b).status, WC_LOC_PROT_ERR);
		}
		bed_no_cqe(b);
		bed_no_up(b);
		bed_qp_gone(b, qp);
		again(state);
	}
}

/* AE-12: the flight recorder has the packet that armed the path, once. */
static void
AE_12_traced_path(void **state)
{
	struct bed *b = *state;
	struct trace_entry e[16];
	uint32_t n, armed = 0;

	b->qp->flags |= QPF_TRACE;
	qp_migration_set(b->qp, MIG_REARM);
	for (uint32_t i = 0; i < 3; i++) {
		struct wire_fields f = write_only(E + i, MR_VA, 8);

		f.flags |= i == 0 ? PKT_MIGREQ : 0; /* the peer is not ready yet */
		bed_send(b, &f);
		bed_turn(b);
		expect_ack(b, 0x1f, E + i, i + 1);
	}
	n = trace_read(worker_trace(b->w), QPN, e, ARRAY_LEN(e));
	for (uint32_t i = 0; i < n; i++) {
		if (e[i].kind != TRACE_path)
			continue;
		armed++;
		assert_int_equal(e[i].detail, MIG_ARMED);
		assert_int_equal(e[i].psn, E + 1);
	}
	assert_int_equal(armed, 1);
}

/*
 * QP-11, QP-15: a request met a fault while the order for another state was on its way. SQE is left
 * by who knows of it: what was posted before has been flushed.
 */
static void
QP_11_SQE_is_not_left_unknowingly(void **state)
{
	const struct qp_alloc_params params = { .type = QPT_UC,
		.max_recv_wr = 1,
		.max_recv_sge = 1,
		.max_send_wr = 1,
		.max_send_sge = 1 };
	struct bed *b = *state;
	struct qp *qp = bed_qp_with(b, QPN + 1, PEER_QPN + 1, &params);
	struct qp_attr attr = qp->attr;

	atomic_store(&qp->state, QPS_SQE);
	attr.cur_qp_state = QPS_RTS;
	for (int to = QPS_RTS; to <= QPS_SQD; to++) {
		attr.qp_state = (uint8_t)to;
		assert_int_equal(bed_modify(b, qp, &attr, QP_ATTR_STATE), -EINVAL);
		assert_int_equal(atomic_load(&qp->state), QPS_SQE);
	}
	attr.cur_qp_state = QPS_SQE;
	attr.qp_state = QPS_RTS;
	assert_int_equal(bed_modify(b, qp, &attr, QP_ATTR_STATE), 0);
	assert_int_equal(atomic_load(&qp->state), QPS_RTS);
	bed_qp_gone(b, qp);
}

/* A worker that keeps another QP's packets aside lets go of none: this one's timer goes on. */
static void
a_release_that_is_refused(void **state)
{
	struct bed *b = *state;
	struct qp *other = bed_qp(b, 0x20, 0x21);
	struct mbox_msg m = { .type = MBOX_QP_PARK, .move = { other, 1 } };

	assert_int_equal(bed_tell(b, &m), 0);
	sends(b, 1);
	m = (struct mbox_msg){ .type = MBOX_QP_RELEASE, .move = { b->qp, 1 } };
	assert_int_equal(bed_tell(b, &m), -EBUSY);
	expect_silence(b);
	b->now += 10 * TIME_NS_PER_S;
	bed_turns(b);
	expect_packet(b, OP_RC_SEND_ONLY, S, 8);
	m = (struct mbox_msg){ .type = MBOX_QP_UNPARK, .qp.qp = other };
	assert_int_equal(bed_tell(b, &m), 0);
	bed_qp_gone(b, other);
}

/*
 * QP-18: a QP that was detached or released is on no list of this worker. What the control lcore
 * asks for before it hears of that puts it on none.
 */
static void
QP_18_asked_too_late(void **state)
{
	static const uint8_t leaves[] = { MBOX_QP_RELEASE, MBOX_QP_DETACH };
	static const uint8_t asked[] = { MBOX_QP_POSTED, MBOX_QP_RECEIVES };
	const struct qp_attr attr = { .trace = true };
	struct bed *b = *state;

	for (uint32_t i = 0; i < ARRAY_LEN(leaves); i++) {
		struct qp *qp = bed_qp(b, 0x20, 0x21);
		struct mbox_msg m = { .type = leaves[i], .move = { qp, 1 } };
		struct ring sends;

		if (leaves[i] == MBOX_QP_DETACH)
			m.qp = (struct mbox_qp){ .qp = qp };
		ring_attach(&sends, qp->sq.ring.sh, 16, qp->sq.ring.stride, false);
		memset(ring_produce_slot(&sends, 16), 0, sends.stride);
		ring_produce_commit(&sends);
		assert_int_equal(bed_tell(b, &m), 0);
		for (uint32_t k = 0; k < ARRAY_LEN(asked); k++) {
			m = (struct mbox_msg){ .type = asked[k], .qp.qp = qp };
			assert_int_equal(bed_tell(b, &m), -ENOENT);
		}
		assert_int_equal(bed_modify(b, qp, &attr, QP_ATTR_TRACE), -ENOENT);
		m = (struct mbox_msg){ .type = MBOX_QP_FAIL, .fail.qp = qp };
		assert_int_equal(bed_tell(b, &m), -ENOENT);
		assert_int_equal(qp->flags & (QPF_SENDING | QPF_FLUSHING), 0);
		bed_turns(b);
		expect_silence(b);
		if (leaves[i] == MBOX_QP_DETACH) {
			qp_free(qp);
			continue;
		}
		m = (struct mbox_msg){ .type = MBOX_QP_ADOPT, .qp.qp = qp };
		assert_int_equal(bed_tell(b, &m), 0);
		bed_turns(b);
		expect_packet(b, OP_RC_WRITE_ONLY, S, 0);
		bed_qp_gone(b, qp);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(RESP_SEQ_13_bad_icrc_keeps_the_latch),
		TEST(REQ_RETRY_05_ghosts_change_nothing),
		TEST(REQ_CLS_F_01_full_when_it_fails),
		TEST(REQ_CLS_F_01_full_for_a_fault),
		TEST(AE_12_traced_path),
		TEST(QP_11_SQE_is_not_left_unknowingly),
		TEST(a_release_that_is_refused),
		TEST(QP_18_asked_too_late),
	};

	return cmocka_run_group_tests(tests, bed_group_setup, NULL);
}
