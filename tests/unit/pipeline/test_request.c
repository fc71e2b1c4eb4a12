/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The requester in the loop: what only a look inside can provoke. Fixture F-REQ: first PSN 0x200,
 * timeout 14, three retries; what goes over the wire in peace is tested with Scapy (tests/stepped).
 */
#include "bed.h"
#include "count.h"

#include <string.h>

#undef fail /* cmocka's; the pipeline has a function of that name */

#define TTR (UINT64_C(4096) << 14) /* ns */

static struct ring producer; /* of the QP's send ring */

static int
setup(void **state)
{
	struct bed *b;

	assert_int_equal(bed_setup(state), 0);
	b = *state;
	ring_attach(&producer, b->qp->sq.ring.sh, b->qp->sq.ring.mask + 1, b->qp->sq.ring.stride,
		false);
	return 0;
}

/** Publish one WQE; `edit` may spoil it first. The worker is not told. */
static struct ring_send_wqe *
put(uint64_t wr_id, uint8_t opcode, uint32_t len)
{
	struct ring_send_wqe *wqe = ring_produce_slot(&producer, 16);

	assert_non_null(wqe);
	memset(wqe, 0, producer.stride);
	wqe->wr_id = wr_id;
	wqe->opcode = opcode;
	wqe->flags = SEND_SIGNALED;
	wqe->remote_addr = 0x700000;
	wqe->rkey = 0x77;
	wqe->num_sge = len != 0;
	wqe->sge[0] = (struct ring_sge){ .addr = MR_VA, .length = len, .lkey = MR_KEY };
	ring_produce_commit(&producer);
	return wqe;
}

static void
doorbell_of(struct bed *b, struct qp *qp)
{
	struct mbox_msg m = { .type = MBOX_QP_POSTED };

	m.qp.qp = qp;
	assert_int_equal(bed_tell(b, &m), 0);
}

static void
doorbell(struct bed *b)
{
	doorbell_of(b, b->qp);
}

static void
answer(struct bed *b, uint32_t p, uint8_t syndrome)
{
	const struct wire_fields f = {
		.opcode = OP_RC_ACKNOWLEDGE, .psn = psn(p), .aeth = { .syndrome = syndrome }
	};

	bed_send(b, &f);
	bed_turns(b);
}

static void
expect_cqe(struct bed *b, uint64_t wr_id, uint8_t status)
{
	struct ring_cqe c = bed_cqe(b);

	assert_int_equal(c.wr_id, wr_id);
	assert_int_equal(c.status, status);
	assert_int_equal(c.qp_num, QPN);
}

enum { SUCCESS = 0, LOC_LEN = 1, LOC_QP_OP = 2, LOC_PROT = 4, FLUSH = 5 };

static void
REQ_03_write_and_its_completion(void **state)
{
	struct bed *b = *state;
	const struct wire_pkt *k;

	memcpy(b->memory, "payload!", 8);
	put(1, WR_RDMA_WRITE, 1500);
	doorbell(b);
	bed_turns(b);
	k = expect_packet(b, OP_RC_WRITE_FIRST, S, 1024);
	assert_memory_equal(wire_payload(k), "payload!", 8);
	assert_int_equal(wire_reth(k).va, 0x700000);
	assert_int_equal(wire_reth(k).rkey, 0x77);
	assert_int_equal(wire_reth(k).dma_len, 1500);
	k = expect_packet(b, OP_RC_WRITE_LAST, S + 1, 476);
	assert_true((k->flags & PKT_ACKREQ) != 0);
	assert_true((k->flags & PKT_MIGREQ) != 0);
	expect_silence(b);
	bed_no_cqe(b);
	answer(b, S + 1, AETH_CREDIT_NONE);
	expect_silence(b);
	expect_cqe(b, 1, SUCCESS);
	/* The ring's entry is the host's again. */
	assert_int_equal(atomic_load(&b->qp->sq.ring.sh->cons), 1);

	/* ICRC-05, WIRE-13: long ones are copied and summed at once; the bed checks each ICRC. */
	for (uint32_t i = 0; i < 1024; i++)
		b->memory[i] = (uint8_t)(i * 7 >> 2);
	for (uint32_t i = 0; i < 4; i++) {
		put(2 + i, WR_RDMA_WRITE, 1024 - i);
		doorbell(b);
		bed_turns(b);
		k = expect_packet(b, OP_RC_WRITE_ONLY, S + 2 + i, 1024 - i);
		assert_memory_equal(wire_payload(k), b->memory, 1024 - i);
	}
}

/* REQ-CLS-B-05, REQ-18: what a host may write into its ring. */
static void
REQ_CLS_B_05_malformed_requests(void **state)
{
	static const struct {
		uint8_t opcode;
		uint8_t flags;
		uint32_t num_sge;
		uint32_t len;
		uint32_t inline_len;
		uint8_t status;
	} rows[] = {
		{ 7, 0, 1, 8, 0, LOC_QP_OP },
		{ 8, 0, 1, 8, 0, LOC_QP_OP },
		{ 10, 0, 1, 8, 0, LOC_QP_OP },
		{ 255, 0, 1, 8, 0, LOC_QP_OP },
		{ WR_SEND, 0, 5, 8, 0, LOC_QP_OP },
		{ WR_SEND, 0, UINT32_MAX, 8, 0, LOC_QP_OP },
		{ WR_SEND, SEND_INLINE, 0, 0, 65, LOC_QP_OP },
		{ WR_SEND, SEND_INLINE, 0, 0, UINT32_MAX, LOC_QP_OP },
		{ WR_RDMA_READ, SEND_INLINE, 0, 0, 8, LOC_QP_OP },
		{ WR_ATOMIC_FETCH_AND_ADD, SEND_INLINE, 0, 0, 8, LOC_QP_OP },
		{ WR_ATOMIC_FETCH_AND_ADD, 0, 1, 7, 0, LOC_LEN },
		{ WR_SEND, 0, 1, UINT32_C(0x80000001), 0, LOC_LEN },
		{ WR_RDMA_WRITE, 0, 4, UINT32_MAX, 0, LOC_LEN },
		{ WR_SEND, 0, 1, UINT32_C(0x80000000), 0, LOC_PROT },
		/* ops.placement=off; with it on, too: a FLUSH of no type */
		{ WR_ATOMIC_WRITE, 0, 1, 8, 0, LOC_QP_OP },
		{ WR_FLUSH, 0, 0, 0, 0, LOC_QP_OP },
		{ WR_FLUSH, 0, 0, 0, 0, LOC_QP_OP },
	};
	struct bed *b = *state;

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct ring_send_wqe *wqe = put(10, rows[i].opcode, rows[i].len);

		b->qp->req.knobs = i + 1 == ARRAY_LEN(rows) ? REQ_KNOB_PLACEMENT : 0;
		wqe->num_sge = rows[i].num_sge;
		for (uint32_t k = 1; k < 4; k++)
			wqe->sge[k] = wqe->sge[0];
		wqe->flags = rows[i].flags; /* not signalled: an error completes all the same */
		wqe->inline_len = rows[i].inline_len;
		put(11, WR_SEND, 8);
		doorbell(b);
		bed_turns(b);
		expect_silence(b);
		expect_cqe(b, 10, rows[i].status);
		expect_cqe(b, 11, FLUSH);
		for (int k = 0; k < 4 && i == 0; k++)
			assert_int_equal(bed_cqe(b).status, FLUSH); /* receives of the fixture */
		bed_no_cqe(b);
		bed_up(b, MBOX_FATAL);
		bed_qp_gone(b, b->qp);
		b->qp = bed_qp(b, QPN, PEER_QPN);
		ring_attach(&producer, b->qp->sq.ring.sh, 16, b->qp->sq.ring.stride, false);
	}
}

/* REQ-01: SEND_INLINE alone says that the bytes stand in the entry. */
static void
REQ_01_inline_whatever_num_sge(void **state)
{
	struct bed *b = *state;

	for (uint32_t i = 0; i < 4; i++) {
		struct ring_send_wqe *wqe = put(i, WR_SEND, 0);

		wqe->flags = SEND_SIGNALED | SEND_INLINE;
		wqe->num_sge = i;
		wqe->inline_len = 20;
		memcpy(wqe->sge, "bytes in their entry", 20);
		doorbell(b);
		bed_turns(b);
		assert_memory_equal(wire_payload(expect_packet(b, OP_RC_SEND_ONLY, S + i, 20)),
			"bytes in their entry", 20);
		answer(b, S + i, AETH_CREDIT_NONE);
		expect_cqe(b, i, SUCCESS);
	}
}

/* REQ-01: each request has its own list, wherever in the ring it stands. */
static void
REQ_01_lists(void **state)
{
	struct bed *b = *state;
	const struct wire_pkt *k;

	for (uint32_t i = 0; i < 1024; i++)
		b->memory[i] = (uint8_t)(i * 7 + i / 64);
	for (uint32_t i = 0; i < 12; i++) {
		struct ring_send_wqe *wqe = put(i, WR_SEND, 8);

		wqe->num_sge = 2;
		wqe->sge[0].addr = MR_VA + 64 * i;
		wqe->sge[1] = wqe->sge[0];
		wqe->sge[1].addr += 32;
	}
	doorbell(b);
	bed_turns(b);
	for (uint32_t i = 0; i < 12; i++) {
		k = expect_packet(b, OP_RC_SEND_ONLY, S + i, 16);
		assert_memory_equal(wire_payload(k), b->memory + 64 * i, 8);
		assert_memory_equal(wire_payload(k) + 8, b->memory + 64 * i + 32, 8);
	}
	answer(b, S + 11, AETH_CREDIT_NONE);
	for (uint32_t i = 0; i < 12; i++)
		expect_cqe(b, i, SUCCESS);
}

/* A host that goes on writing after it posted: the worker has its own copy. */
static void
copy_then_check(void **state)
{
	struct bed *b = *state;
	struct ring_send_wqe *wqe = put(1, WR_SEND, 100);

	doorbell(b);
	bed_turns(b);
	expect_packet(b, OP_RC_SEND_ONLY, S, 100);
	wqe->num_sge = 1000;
	wqe->opcode = 99;
	wqe->wr_id = 77;
	wqe->sge[0].lkey = 0xbad;
	wqe->sge[0].length = UINT32_MAX;
	b->now += 2 * TTR;
	bed_turns(b);
	expect_packet(b, OP_RC_SEND_ONLY, S, 100);
	answer(b, S, AETH_CREDIT_NONE);
	expect_cqe(b, 1, SUCCESS);
}

/* Indices that no honest producer writes: nothing is read beyond the ring, nothing hangs. */
static void
hostile_indices(void **state)
{
	static const uint32_t values[] = { 0x80000000u, 17, UINT32_MAX, 1000, 0, 3, 2 };
	struct bed *b = *state;

	for (uint32_t i = 0; i < 4; i++)
		put(i, WR_SEND, 10);
	doorbell(b);
	bed_turns(b);
	for (size_t i = 0; i < ARRAY_LEN(values); i++) {
		atomic_store(&b->qp->sq.ring.sh->prod, values[i]);
		atomic_store(&b->qp->sq.ring.sh->cons, ~values[i]);
		doorbell(b);
		bed_turns(b);
	}
	answer(b, S + 3, AETH_CREDIT_NONE);
	for (uint32_t i = 0; i < 4; i++)
		expect_cqe(b, i, SUCCESS);
	for (size_t i = 0; i < ARRAY_LEN(values); i++) {
		atomic_store(&b->qp->sq.ring.sh->prod, values[i]);
		doorbell(b);
		bed_turns(b);
	}
	assert_int_equal(bed_state(b, b->qp, QPS_ERR), 0);
	doorbell(b);
	bed_turns(b);
	expect_silence(b);
}

/* REQ-CLS-C-01: positions that cannot be. */
static void
REQ_CLS_C_01_corrupt_context(void **state)
{
	struct bed *b = *state;
	struct mbox_msg m;

	put(1, WR_SEND, 10);
	doorbell(b);
	bed_turns(b);
	expect_packet(b, OP_RC_SEND_ONLY, S, 10);
	b->qp->req.head += 1000;
	put(2, WR_SEND, 10);
	doorbell(b);
	bed_turns(b);
	expect_silence(b);
	assert_int_equal(qp_state_of(b->qp), QPS_ERR);
	m = bed_up(b, MBOX_FATAL);
	assert_ptr_equal(m.ev.object, b->qp);
	m = bed_up(b, MBOX_EVENT);
	assert_int_equal(m.ev.event, EVENT_QP_FATAL);
	assert_int_equal(m.ev.code, AEQ_CONTEXT_CATASTROPHIC);
	assert_int_equal(m.ev.source, SOURCE_SQ);
	assert_ptr_equal(m.ev.object, b->qp); /* AE-09: not another QP of that number, later */
	for (uint64_t i = 1; i <= 2; i++)
		assert_int_equal(bed_cqe(b).status, FLUSH);
}

/* A request that finds no buffer is not lost: it leaves when there are buffers again. */
static void
no_mbuf(void **state)
{
	struct bed *b = *state;
	struct rte_mempool *pool = b->conf.ports[0].pool;
	static struct rte_mbuf *held[8192];
	uint32_t n = 0;

	put(1, WR_SEND, 100);
	doorbell(b);
	bed_turns(b);
	expect_packet(b, OP_RC_SEND_ONLY, S, 100);
	bed_turns(b); /* gives what was sent back */
	while (n < ARRAY_LEN(held) && (held[n] = rte_pktmbuf_alloc(pool)) != NULL)
		n++;
	put(2, WR_SEND, 100);
	doorbell(b);
	bed_turns(b);
	expect_silence(b);
	assert_true(bed_stat(b, STAT_tx_no_mbuf) != 0);
	rte_pktmbuf_free_bulk(held, n);
	bed_turns(b);
	expect_packet(b, OP_RC_SEND_ONLY, S + 1, 100);
}

/* TMR-06: progress moves the deadline only; the node that fires early is armed again. */
static void
TMR_06_lazy_rearm(void **state)
{
	struct bed *b = *state;

	put(1, WR_SEND, 10);
	put(2, WR_SEND, 10);
	doorbell(b);
	bed_turns(b);
	b->now += TTR * 8 / 10;
	answer(b, S, AETH_CREDIT_NONE);
	expect_silence(b);
	b->now += TTR * 9 / 10; /* past the first deadline */
	bed_turns(b);
	expect_silence(b);
	assert_true(wheel_is_armed(&b->qp->sq.timer));
	b->now += TTR * 2 / 10;
	bed_turns(b);
	expect_packet(b, OP_RC_SEND_ONLY, S + 1, 10);
	assert_int_equal(bed_stat(b, STAT_local_ack_timeout_err), 1);
}

/* An idle QP is on no list and has no timer. */
static void
idle_costs_nothing(void **state)
{
	struct bed *b = *state;

	assert_int_equal(b->w->senders_n, 0);
	put(1, WR_SEND, 10);
	doorbell(b);
	bed_turns(b);
	answer(b, S, AETH_CREDIT_NONE);
	bed_turns(b);
	assert_int_equal(b->w->senders_n, 0);
	b->now += 3 * TTR;
	bed_turns(b);
	bed_turns(b);
	assert_false(wheel_is_armed(&b->qp->sq.timer));
	assert_int_equal(bed_stat(b, STAT_local_ack_timeout_err), 0);
}

/*
 * TMR-02: a worker that was away too long finds the answer behind other frames. It is no timeout,
 * unless frames keep coming for ever.
 */
static void
TMR_02_frames_before_timers(void **state)
{
	struct bed *b = *state;
	struct wire_fields other = send_only(E, 4);

	other.dest_qpn = 0x99; /* nobody's */
	put(1, WR_SEND, 10);
	doorbell(b);
	bed_turns(b);
	expect_packet(b, OP_RC_SEND_ONLY, S, 10);
	b->now += 2 * TTR;
	for (uint32_t i = 0; i < 40; i++)
		bed_send(b, &other);
	answer(b, S, AETH_CREDIT_NONE);
	expect_silence(b);
	expect_cqe(b, 1, SUCCESS);
	assert_int_equal(bed_stat(b, STAT_local_ack_timeout_err), 0);

	put(2, WR_SEND, 10);
	doorbell(b);
	bed_turns(b);
	b->now += 2 * TTR;
	for (uint32_t turn = 0; turn < 16; turn++) {
		assert_int_equal(bed_stat(b, STAT_local_ack_timeout_err), 0);
		for (uint32_t i = 0; i < 32; i++)
			bed_send(b, &other);
		bed_turn(b);
	}
	assert_int_equal(bed_stat(b, STAT_local_ack_timeout_err), 1);
}

/* TMR-10: detached with a timer running and packets to send; nothing of it is touched again. */
static void
TMR_10_detach(void **state)
{
	struct bed *b = *state;
	struct qp *qp = bed_qp(b, 0x12, 0x23);

	ring_attach(&producer, qp->sq.ring.sh, 16, qp->sq.ring.stride, false);
	for (uint64_t i = 0; i < 8; i++)
		put(i, WR_SEND, 4000);
	doorbell_of(b, qp);
	worker_poll(b->w, b->now);
	assert_true(wheel_is_armed(&qp->sq.timer));
	bed_qp_gone(b, qp);
	b->now += 10 * TTR;
	bed_turns(b);
	bed_turns(b);
	assert_int_equal(b->w->senders_n, 0);
	bed_no_cqe(b);
}

/* A port that takes nothing: requests wait in their queue, not in the backlog. */
static void
full_port(void **state)
{
	struct bed *b = *state;
	struct rte_mbuf *m = rte_pktmbuf_alloc(b->conf.ports[0].pool);
	uint32_t n = 0;
	void *taken;

	assert_non_null(m);
	while (rte_ring_enqueue(bed_far_end(), m) == 0)
		n++;
	for (uint64_t i = 0; i < 16; i++)
		put(i, WR_RDMA_WRITE, 64000);
	doorbell(b);
	b->qp->req.window = 10000;
	for (int i = 0; i < 100; i++)
		worker_poll(b->w, b->now);
	assert_true(b->w->tx[0].tail - b->w->tx[0].head <= TX_HIGH + REQUEST_TURN);
	assert_int_equal(bed_stat(b, STAT_tx_backlog_drop), 0);
	while (n-- != 0)
		assert_int_equal(rte_ring_dequeue(bed_far_end(), &taken), 0);
	rte_pktmbuf_free(m);
	bed_turns(b);
	expect_packet(b, OP_RC_WRITE_FIRST, S, 1024);
}

int
main(void)
{
#define WITH_BED(f) cmocka_unit_test_setup_teardown(f, setup, bed_teardown)
	const struct CMUnitTest tests[] = {
		WITH_BED(REQ_03_write_and_its_completion),
		WITH_BED(REQ_CLS_B_05_malformed_requests),
		WITH_BED(REQ_01_inline_whatever_num_sge),
		WITH_BED(REQ_01_lists),
		WITH_BED(copy_then_check),
		WITH_BED(hostile_indices),
		WITH_BED(REQ_CLS_C_01_corrupt_context),
		WITH_BED(no_mbuf),
		WITH_BED(TMR_06_lazy_rearm),
		WITH_BED(TMR_02_frames_before_timers),
		WITH_BED(idle_costs_nothing),
		WITH_BED(TMR_10_detach),
		WITH_BED(full_port),
	};

	return cmocka_run_group_tests_name("pipeline request", tests, bed_group_setup, NULL);
}
