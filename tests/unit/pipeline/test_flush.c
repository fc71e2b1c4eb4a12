/* SPDX-License-Identifier: BSD-3-Clause */
/* Deep queues are flushed some of it in a turn: in order, each request once, and nobody waits. */
#include "bed.h"

#include <errno.h>

#include <rte_malloc.h>

#define DEPTH 32768u
#define TURN  256u /* requests that a turn may flush, of all QPs */
/* A busy worker looks at its mailbox every 64 turns: so much is flushed between two messages. */
#define BETWEEN (64u * TURN)

static struct qp_cq cqs[4];
static struct ring receives[4], sends[4];

/* A CQ with room for both queues, and producers of them. */
static struct qp *
deep_of(struct bed *b, uint32_t i, uint8_t type)
{
	struct qp *qp = bed_qp_with(b, 0x100 + i, PEER_QPN,
		&(const struct qp_alloc_params){ .type = type,
			.max_recv_wr = DEPTH,
			.max_recv_sge = 1,
			.max_send_wr = DEPTH,
			.max_send_sge = 1,
			.max_dest_rd_atomic = 4 });
	const size_t bytes = ring_size(2 * DEPTH, sizeof(struct ring_cqe));

	cqs[i] = (struct qp_cq){ .id = i };
	assert_int_equal(mem_area_create(&cqs[i].area, bytes, -1, 0), 0);
	ring_cq_attach(&cqs[i].ring, cqs[i].area.base, 2 * DEPTH, 2 * DEPTH, true);
	qp->recv_cq = qp->send_cq = &cqs[i];
	ring_attach(&receives[i], qp->rq.sh, DEPTH, qp->rq.stride, false);
	ring_attach(&sends[i], qp->sq.ring.sh, DEPTH, qp->sq.ring.stride, false);
	return qp;
}

static struct qp *
deep(struct bed *b, uint32_t i)
{
	return deep_of(b, i, QPT_RC);
}

static void
gone(struct bed *b, struct qp *qp, uint32_t i)
{
	bed_qp_gone(b, qp);
	mem_area_destroy(&cqs[i].area);
}

/* Numbers of receives are even, those of sends odd. */
static void
post(uint32_t i, uint32_t first, uint32_t n)
{
	for (uint32_t k = first; k < first + n; k++) {
		struct ring_recv_wqe *recv = ring_produce_slot(&receives[i], DEPTH);
		struct ring_send_wqe *send = ring_produce_slot(&sends[i], DEPTH);

		assert_non_null(recv);
		assert_non_null(send);
		ring_recv_fill(recv, 2 * k, NULL, 0);
		*send = (struct ring_send_wqe){ .wr_id = 2 * k + 1, .opcode = WR_SEND };
		ring_produce_commit(&receives[i]);
		ring_produce_commit(&sends[i]);
	}
}

struct seen {
	uint32_t receives, sends;
};

/* What is there: each queue in order, nothing twice, all WR_FLUSH_ERR (CQ-02). */
static uint32_t
look(uint32_t i, struct seen *s)
{
	struct ring_cqe c;
	uint32_t n = 0;

	for (; ring_cq_poll(&cqs[i].ring, &c, 1) == 1; n++) {
		uint32_t *next = (c.wr_id & 1) != 0 ? &s->sends : &s->receives;

		assert_int_equal(c.status, WC_WR_FLUSH_ERR);
		assert_int_equal(c.wr_id / 2, *next);
		assert_int_equal(c.opcode, (c.wr_id & 1) != 0 ? WC_SEND : WC_RECV);
		++*next;
	}
	return n;
}

/* QP-12, CQ-02: a message makes a worker do no more than a turn's worth, the rest follows. */
static void
QP_12_a_flush_is_spread_over_turns(void **state)
{
	struct bed *b = *state;
	struct qp *qp = deep(b, 0);
	struct seen s = { 0 };
	uint32_t turns = 0;

	atomic_store(&qp->state, QPS_INIT); /* it takes none of them */
	post(0, 0, DEPTH);
	atomic_store(&qp->state, QPS_RTS);
	assert_int_equal(bed_state(b, qp, QPS_ERR), 0);
	assert_in_range(look(0, &s), 1, TURN);
	while (s.sends + s.receives < 2 * DEPTH) {
		assert_int_not_equal(worker_poll(b->w, b->now), 0); /* it does not go to sleep */
		assert_in_range(look(0, &s), 1, TURN);
		turns++;
	}
	assert_in_range(turns, 2 * DEPTH / TURN - 2, 2 * DEPTH / TURN + 2);
	assert_int_equal(qp->flags & QPF_FLUSHING, 0);
	worker_poll(b->w, b->now);
	assert_int_equal(look(0, &s), 0);
	assert_int_equal(bed_stat(b, STAT_req_cqe_flush_error), DEPTH);
	assert_int_equal(bed_stat(b, STAT_resp_cqe_flush_error), DEPTH);
	bed_no_up(b);
	gone(b, qp, 0);
}

static int
tell(struct bed *b, enum mbox_type type, struct qp *qp, bool drop)
{
	struct mbox_msg m = { .type = (uint8_t)type };

	m.qp.qp = qp;
	m.qp.drop = drop;
	return bed_tell(b, &m);
}

/* QP-12, QP-17: neither detach nor RESET comes before the last completion. */
static void
QP_17_who_takes_the_QP_waits_for_its_flush(void **state)
{
	struct bed *b = *state;

	for (uint32_t how = 0; how < 2; how++) {
		struct qp *qp = deep(b, 0);
		struct seen s = { 0 };
		uint32_t asked = 0;
		int rc;

		post(0, 0, DEPTH);
		assert_int_equal(bed_state(b, qp, QPS_ERR), 0);
		do {
			rc = how == 0 ? tell(b, MBOX_QP_DETACH, qp, false)
				      : bed_state(b, qp, QPS_RESET);
			assert_true(rc == 0 || rc == -EINPROGRESS);
			asked++;
		} while (rc != 0);
		assert_true(asked > 1);
		look(0, &s);
		assert_int_equal(s.sends, DEPTH);
		assert_int_equal(s.receives, DEPTH);
		for (uint32_t i = 0; i < 4; i++)
			worker_poll(b->w, b->now);
		assert_int_equal(look(0, &s), 0);
		if (how == 0) {
			qp_free(qp);
			mem_area_destroy(&cqs[0].area);
		} else {
			gone(b, qp, 0);
		}
	}
}

/* QP-18: whose client is gone is detached at once, and nothing of it is touched later. */
static void
QP_18_a_detach_that_drops(void **state)
{
	struct bed *b = *state;
	struct qp *qp = deep(b, 0), *other = deep(b, 1);
	struct seen s = { 0 }, of_other = { 0 };

	assert_true(BETWEEN < DEPTH); /* or nothing of this is tested */

	post(0, 0, DEPTH);
	post(1, 0, DEPTH);
	assert_int_equal(bed_state(b, qp, QPS_ERR), 0);
	assert_int_equal(bed_state(b, other, QPS_ERR), 0);
	assert_int_equal(tell(b, MBOX_QP_DETACH, qp, true), 0);
	assert_true(look(0, &s) < 2 * DEPTH);
	memset(qp, 0xa5, sizeof(*qp));
	for (uint32_t i = 0; i < 3 * DEPTH / TURN; i++)
		worker_poll(b->w, b->now);
	assert_int_equal(look(0, &s), 0);
	look(1, &of_other);
	assert_int_equal(of_other.sends + of_other.receives, 2 * DEPTH);
	rte_free(qp);
	mem_area_destroy(&cqs[0].area);
	gone(b, other, 1);
}

/* QP-13: what is posted while the flush is under way comes behind it; rung once, completed once. */
static void
QP_13_posted_in_the_middle(void **state)
{
	struct bed *b = *state;
	struct qp *qp = deep(b, 0);
	struct seen s = { 0 };
	uint32_t posted = DEPTH;

	post(0, 0, posted);
	assert_int_equal(bed_state(b, qp, QPS_ERR), 0);
	for (uint32_t i = 0; i < 3 * DEPTH / TURN; i++) {
		look(0, &s);
		worker_poll(b->w, b->now);
		/* Room comes back in the order of the queues: sends first. */
		if (s.sends < posted || s.receives + DEPTH < posted + 64)
			continue;
		post(0, posted, 64);
		posted += 64;
		tell(b, MBOX_QP_POSTED, qp, false);
		tell(b, MBOX_QP_RECEIVES, qp, false);
	}
	for (uint32_t i = 0; i < 3 * DEPTH / TURN; i++) {
		worker_poll(b->w, b->now);
		look(0, &s);
	}
	assert_true(posted > DEPTH);
	assert_int_equal(s.sends, posted);
	assert_int_equal(s.receives, posted);
	gone(b, qp, 0);
}

/* QP-13: in ERR, and until RESET, the ring tells its host that what it posts needs a bell. */
static void
QP_13_the_host_is_told(void **state)
{
	struct bed *b = *state;
	struct qp *qp = deep(b, 0);
	_Atomic uint32_t *told = &qp->rq.sh->alert;

	assert_int_equal(atomic_load(told), 0);
	assert_int_equal(bed_state(b, qp, QPS_ERR), 0);
	assert_int_equal(atomic_load(told), 1);
	assert_int_equal(bed_state(b, qp, QPS_RESET), 0);
	assert_int_equal(atomic_load(told), 0);
	gone(b, qp, 0);
}

/* A host that goes on posting and ringing keeps neither a worker nor whoever wants the QP. */
static void
a_host_that_never_stops(void **state)
{
	struct bed *b = *state;
	struct qp *qp = deep(b, 0);
	struct seen s = { 0 };
	uint32_t posted = DEPTH, turns = 0;

	post(0, 0, posted);
	assert_int_equal(bed_state(b, qp, QPS_ERR), 0);
	while (tell(b, MBOX_QP_DETACH, qp, false) != 0) {
		const uint32_t room = DEPTH - (posted - RTE_MIN(s.sends, s.receives));

		look(0, &s);
		post(0, posted, RTE_MIN(room, 32u)); /* it does not ring: the flush ends */
		posted += RTE_MIN(room, 32u);
		assert_true(turns++ < 1000);
	}
	qp_free(qp);
	mem_area_destroy(&cqs[0].area);
}

/* QP-11: in SQE the sends alone are flushed, and RTS comes behind the last of them. */
static void
QP_11_sends_alone_in_SQE(void **state)
{
	struct bed *b = *state;
	struct qp *qp = deep_of(b, 0, QPT_UC);
	const struct qp_attr attr = { .cur_qp_state = QPS_SQE, .qp_state = QPS_RTS };
	struct seen s = { 0 };
	uint32_t asked = 0;
	int rc;

	post(0, 0, DEPTH - 1); /* the last of its turns has room for more */
	atomic_store(&qp->state, QPS_SQE);
	ring_consume_count(&qp->rq); /* the worker knows of the receives */
	assert_int_equal(tell(b, MBOX_QP_POSTED, qp, false), 0);
	do {
		rc = bed_modify(b, qp, &attr, QP_ATTR_STATE | QP_ATTR_CUR_STATE);
		asked++;
	} while (rc == -EINPROGRESS);
	assert_int_equal(rc, 0);
	assert_true(asked > 1);
	look(0, &s);
	assert_int_equal(s.sends, DEPTH - 1);
	assert_int_equal(s.receives, 0);
	assert_int_equal(tell(b, MBOX_QP_DETACH, qp, true), 0);
	qp_free(qp);
	mem_area_destroy(&cqs[0].area);
}

/* One client's QPs take turns with the other's: 3 deep ones do not keep a shallow one waiting. */
static void
clients_take_turns(void **state)
{
	struct bed *b = *state;
	struct qp_client client[2] = { { .id = 1 }, { .id = 2 } };
	struct seen s[4] = { { 0 } };
	struct mbox_msg done[4];
	struct qp *qp[4];
	uint8_t bells[2][1024] __attribute__((aligned(64))) = { 0 };

	for (uint32_t c = 0; c < 2; c++) {
		struct mbox_msg m = { .type = MBOX_CLIENT_ATTACH };

		ring_bells_attach(&client[c].bells, bells[c], 64);
		m.client.client = &client[c];
		assert_int_equal(bed_tell(b, &m), 0);
	}
	for (uint32_t i = 0; i < 4; i++) {
		qp[i] = deep(b, i);
		qp[i]->sq.share = &client[i == 3].share;
		post(i, 0, i == 3 ? 100 : DEPTH);
	}
	/* In one turn, the other client's last. */
	for (uint32_t i = 0; i < 4; i++) {
		static const struct qp_attr attr = { .qp_state = QPS_ERR };
		struct mbox_msg m = { .type = MBOX_QP_MODIFY };

		m.modify = (struct mbox_modify){ qp[i], &attr, QP_ATTR_STATE };
		assert_int_equal(mbox_send_down(&b->mbox, &m), 0);
	}
	worker_poll(b->w, b->now);
	assert_int_equal(mbox_recv_done(&b->mbox, done, 4), 4);
	look(0, &s[0]);
	assert_int_equal(s[0].sends, TURN);
	/* 256 a turn, 64 to each in turn: half of them are the other client's. */
	for (uint32_t i = 0; i < 2; i++)
		worker_poll(b->w, b->now);
	for (uint32_t i = 0; i < 4; i++)
		look(i, &s[i]);
	assert_int_equal(s[3].sends + s[3].receives, 200);
	assert_int_equal(s[0].sends + s[1].sends + s[2].sends, 3 * TURN - 200);
	assert_true(s[1].sends != 0 && s[2].sends != 0);
	for (uint32_t i = 0; i < 6 * DEPTH / TURN + 2; i++)
		worker_poll(b->w, b->now);
	for (uint32_t i = 0; i < 4; i++) {
		look(i, &s[i]);
		assert_int_equal(s[i].sends + s[i].receives, i == 3 ? 200 : 2 * DEPTH);
		gone(b, qp[i], i);
	}
	for (uint32_t c = 0; c < 2; c++) {
		struct mbox_msg m = { .type = MBOX_CLIENT_DETACH };

		m.client.client = &client[c];
		assert_int_equal(bed_tell(b, &m), 0);
	}
}

/* AE-08: the event of the last WQE does not wait for flushes of other QPs. */
static void
AE_08_the_last_wqe_is_told_while_others_flush(void **state)
{
	struct bed *b = *state;
	struct qp *qp = deep(b, 0);
	struct qp_srq srq = { .max_sge = 1, .pd = PD };
	struct seen s = { 0 };
	uint8_t mem[4096] __attribute__((aligned(64)));

	ring_srq_attach(&srq.ring, mem, 16, ring_recv_stride(1));
	post(0, 0, DEPTH);
	assert_int_equal(bed_state(b, qp, QPS_ERR), 0);
	b->qp->srq = &srq;
	b->qp->flags |= QPF_SRQ;
	assert_int_equal(bed_state(b, b->qp, QPS_ERR), 0);
	assert_int_equal(bed_up(b, MBOX_EVENT).ev.event, EVENT_QP_LAST_WQE_REACHED);
	assert_true(look(0, &s) < 2 * DEPTH);
	tell(b, MBOX_QP_DETACH, qp, true);
	qp_free(qp);
	mem_area_destroy(&cqs[0].area);
	b->qp->flags &= ~(uint32_t)QPF_SRQ;
	tell(b, MBOX_QP_DETACH, b->qp, true);
}

/* AEQ-11: the request that an abnormal event names has its status, however deep it lies. */
static void
AEQ_11_the_last_request_takes_the_status(void **state)
{
	struct bed *b = *state;
	struct qp *qp = deep(b, 0);
	struct mbox_msg m = { .type = MBOX_QP_FAIL };
	struct ring_cqe c;
	uint32_t n = 0, others = 0;

	post(0, 0, DEPTH);
	m.fail = (struct mbox_fail){ qp, DEPTH - 1, AEQ_RQ, WC_LOC_PROT_ERR };
	assert_int_equal(bed_tell(b, &m), 0);
	assert_true(b->done.carried);
	while (ring_cq_poll(&cqs[0].ring, &c, 1) == 1) {
		n++;
		if (c.status == WC_WR_FLUSH_ERR)
			continue;
		others++;
		assert_int_equal(c.status, WC_LOC_PROT_ERR);
		assert_int_equal(c.wr_id, 2 * (DEPTH - 1));
	}
	assert_int_equal(n, 2 * DEPTH);
	assert_int_equal(others, 1);
	gone(b, qp, 0);
}

/*
 * REQ-NAK-10, REQ-09: nobody knows what the peer has done of what stood behind the request that it
 * refused. All of that is flushed, signalled or not, sent or not.
 */
static void
REQ_NAK_10_unsignalled_requests(void **state)
{
	enum { SENT = 6, POSTED = 8 };
	static const uint8_t flags[] = { 0, SEND_SIGNALED };
	struct bed *b = *state;

	for (uint32_t k = 0; k < ARRAY_LEN(flags); k++) {
		struct mbox_msg m = { .type = MBOX_QP_POSTED };
		struct qp *qp = deep(b, 0);
		struct ring_cqe c;

		qp->window = qp->req.window = SENT;
		for (uint32_t i = 0; i < POSTED; i++) {
			struct ring_send_wqe *send = ring_produce_slot(&sends[0], DEPTH);

			*send = (struct ring_send_wqe){
				.wr_id = 40 + i, .opcode = WR_SEND, .flags = flags[k]
			};
			ring_produce_commit(&sends[0]);
		}
		m.qp.qp = qp;
		assert_int_equal(bed_tell(b, &m), 0);
		bed_turns(b);
		for (uint32_t i = 0; i < SENT; i++)
			expect_packet(b, OP_RC_SEND_ONLY, S + i, 0);
		expect_silence(b);
		bed_send(b, &(const struct wire_fields){ .opcode = OP_RC_ACKNOWLEDGE,
				    .dest_qpn = qp->qpn,
				    .psn = psn(S + 1),
				    .aeth = { .syndrome = AETH_NAK | NAK_INV_REQ } });
		bed_turns(b);
		expect_silence(b);
		if (flags[k] != 0) {
			assert_int_equal(ring_cq_poll(&cqs[0].ring, &c, 1), 1);
			assert_int_equal(c.wr_id, 40);
			assert_int_equal(c.status, WC_SUCCESS);
		}
		for (uint32_t i = 1; i < POSTED; i++) {
			assert_int_equal(ring_cq_poll(&cqs[0].ring, &c, 1), 1);
			assert_int_equal(c.wr_id, 40 + i);
			assert_int_equal(c.status, i == 1 ? WC_REM_INV_REQ_ERR : WC_WR_FLUSH_ERR);
		}
		assert_int_equal(ring_cq_poll(&cqs[0].ring, &c, 1), 0);
		bed_up(b, MBOX_FATAL);
		bed_no_up(b);
		gone(b, qp, 0);
	}
}

/* REQ-CLS-B-01: nothing can be sent of the oldest of more than a turn flushes. That flush ends. */
static void
REQ_CLS_B_01_before_a_long_flush(void **state)
{
	struct bed *b = *state;
	struct qp *qp = deep(b, 0);
	struct ring_send_wqe *oldest = (void *)qp->sq.ring.sh->slots;
	struct seen s = { .sends = 1 };
	struct ring_cqe c;

	post(0, 0, 4 * TURN);
	oldest->num_sge = 1;
	oldest->sge[0] = (struct ring_sge){ MR_VA, 64, MR_KEY + 1 };
	assert_int_equal(tell(b, MBOX_QP_POSTED, qp, false), 0);
	for (uint32_t i = 0; i < 16; i++)
		worker_poll(b->w, b->now);
	assert_int_equal(ring_cq_poll(&cqs[0].ring, &c, 1), 1);
	assert_int_equal(c.status, WC_LOC_PROT_ERR);
	assert_int_equal(look(0, &s), 8 * TURN - 1);
	bed_up(b, MBOX_FATAL);
	gone(b, qp, 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(QP_12_a_flush_is_spread_over_turns),
		TEST(QP_17_who_takes_the_QP_waits_for_its_flush),
		TEST(QP_18_a_detach_that_drops),
		TEST(QP_13_posted_in_the_middle),
		TEST(QP_13_the_host_is_told),
		TEST(a_host_that_never_stops),
		TEST(QP_11_sends_alone_in_SQE),
		TEST(clients_take_turns),
		TEST(AE_08_the_last_wqe_is_told_while_others_flush),
		TEST(AEQ_11_the_last_request_takes_the_status),
		TEST(REQ_NAK_10_unsignalled_requests),
		TEST(REQ_CLS_B_01_before_a_long_flush),
	};

	return cmocka_run_group_tests(tests, bed_group_setup, NULL);
}
