/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two ways through stage 6: a packet with the CE mark is never plain, so the same packets without
 * and with it have to leave the same memory, completions, answers, counters and recorder lines.
 */
#include <string.h>

#include "bed.h"

enum { SESSIONS = 150, TURNS = 12, TRACED = 64 };

static uint32_t
next(uint32_t *seed)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 17;
	*seed ^= *seed << 5;
	return *seed;
}

/** One in n? */
static bool
one_in(uint32_t *seed, uint32_t n)
{
	return next(seed) % n == 0;
}

static uint64_t
mix(uint64_t h, const void *bytes, size_t n)
{
	const uint8_t *p = bytes;

	for (size_t i = 0; i < n; i++)
		h = (h ^ p[i]) * UINT64_C(0x100000001b3);
	return h;
}

/** What a session leaves behind. */
struct outcome {
	uint64_t frames; /* what was sent, in order */
	uint64_t completions;
	uint64_t memory;
	uint64_t trace;
	uint32_t frames_n;
	uint32_t completions_n;
	uint32_t traced;
	uint32_t epsn;
	uint32_t msn;
	uint32_t state;
	uint32_t told; /* of the peer's first request, in RTR */
	uint32_t posted;
	uint32_t limit; /* of a shared queue; 0: it has told */
	uint64_t at_qp[STAT_MAX];
	uint64_t at_worker[STAT_MAX];
	uint64_t at_port[STAT_MAX];
};

/** Where receives come from, and what arrives. */
enum mode {
	OWN,    /* the QP's queue; SENDs and WRITEs */
	SHARED, /* a shared one; the same */
	EMPTY,  /* the QP's, mostly without a buffer; WRITEs, mostly with an immediate */
};

/** A receive WQE, good or not. */
static void
post(struct bed *b, struct ring *to, enum mode mode, uint32_t *seed)
{
	struct ring_recv_wqe *wqe = ring_produce_slot(to, 16);
	uint32_t at = next(seed) % 8192;

	if (wqe == NULL)
		return;
	wqe->wr_id = ++b->wr_id;
	wqe->num_sge = one_in(seed, 6) ? 1 + next(seed) % 4 : 1;
	if (one_in(seed, 100))
		wqe->num_sge = one_in(seed, 2) ? 0 : 5;
	if (mode == EMPTY)
		wqe->num_sge = one_in(seed, 12) ? next(seed) % 6 : 0;
	for (uint32_t i = 0; i < 4; i++)
		wqe->sge[i] = (struct ring_sge){ RQ_VA + at, 1500, RQ_KEY };
	if (one_in(seed, 60))
		wqe->sge[0].length = next(seed) % 64;
	if (one_in(seed, mode == EMPTY ? 3 : 80))
		wqe->sge[0].lkey = one_in(seed, 2) ? MR_KEY : 0x77;
	if (one_in(seed, 100))
		wqe->sge[0].addr = one_in(seed, 2) ? 0 : UINT64_MAX - 10;
	ring_produce_commit(to);
}

/** A queue that the bed's QP shares with nobody, with entries as its own one has. */
static void
share(struct bed *b, struct qp_srq *srq, struct ring *producer)
{
	const uint32_t stride = ring_recv_stride(4);

	memset(srq, 0, sizeof(*srq));
	assert_int_equal(mem_area_create(&srq->area, ring_size(16, stride), -1, 0), 0);
	ring_srq_attach(&srq->ring, srq->area.base, 16, stride);
	ring_srq_producer(&srq->ring, producer);
	srq->pd = PD;
	srq->max_sge = 4;
	atomic_store(&srq->limit, 3);
	b->qp->srq = srq;
	b->qp->flags |= QPF_SRQ;
}

/** A request around where the QP stands, of which a few say what cannot be. */
static struct wire_fields
request(enum mode mode, uint32_t *seed, uint32_t *p)
{
	uint16_t len = (uint16_t)(one_in(seed, 4) ? next(seed) % (PMTU + 40) : next(seed) % 70);
	const bool sends = one_in(seed, mode == EMPTY ? 60 : 2);
	struct wire_fields f = sends ? send_only(*p, len)
				     : write_only(*p, MR_VA + next(seed) % (MR_LEN - 2048), len);

	f.imm = next(seed);
	if (mode == EMPTY ? !one_in(seed, 4) : one_in(seed, 6))
		f.opcode = sends ? OP_RC_SEND_ONLY_IMM : OP_RC_WRITE_ONLY_IMM;

	f.flags = (uint8_t)((one_in(seed, 3) ? 0 : PKT_ACKREQ) | (one_in(seed, 3) ? PKT_SE : 0));
	if (one_in(seed, 10))
		f.psn = psn((*p - 1 - next(seed) % 4) & PSN_MASK); /* again, perhaps */
	else if (one_in(seed, 80))
		f.psn = psn(*p + 2); /* a gap */
	else
		*p += 1;
	if (one_in(seed, 60))
		f.opcode = (uint8_t)(next(seed) % 0x0d);
	if (one_in(seed, 150))
		f.reth.rkey = RQ_KEY;
	if (one_in(seed, 150))
		f.reth.va = MR_VA + MR_LEN - 8;
	if (one_in(seed, 150))
		f.reth.dma_len++;
	return f;
}

static void
look(struct bed *b, struct outcome *o)
{
	struct trace_entry e[TRACED];
	struct ring_cqe c[64];
	uint32_t n;

	for (uint32_t i = 0; i < b->out_n; i++)
		o->frames = mix(o->frames, rte_pktmbuf_mtod(b->out[i], void *), b->out[i]->pkt_len);
	o->frames_n += b->out_n;
	while ((n = ring_cq_poll(&b->cq.ring, c, 64)) != 0) {
		for (uint32_t i = 0; i < n; i++)
			o->completions =
				mix(o->completions, &c[i], offsetof(struct ring_cqe, reserved));
		o->completions_n += n;
	}
	n = trace_read(worker_trace(b->w), QPN, e, TRACED);
	for (uint32_t i = 0; i < n; i++)
		o->trace = mix(o->trace, &e[i], offsetof(struct trace_entry, reserved));
	o->traced += n;
}

/**
 * @param again a packet that is not plain: all of them have the CE mark.
 */
static void
session(uint32_t seed, enum mode mode, bool again, struct outcome *o)
{
	const bool shared = mode == SHARED;
	struct wire_path path = bed_path();
	struct ring producer;
	struct qp_srq srq;
	uint32_t next_psn = one_in(&seed, 3) ? PSN_MASK - 3 : E;
	bool rtr;
	void *state = NULL;
	struct bed *b;

	assert_int_equal(bed_setup(&state), 0);
	b = state;
	memset(o, 0, sizeof(*o));
	b->qp->resp.epsn = psn(next_psn);
	b->qp->flags |= one_in(&seed, 2) ? QPF_TRACE : 0;
	if ((rtr = one_in(&seed, 3)))
		bed_in_rtr(b);
	if (shared)
		share(b, &srq, &producer);
	atomic_store(&b->cq.producer, one_in(&seed, 2) ? 1 + b->conf.index : CQ_PRODUCER_ANY);
	path.tos = again ? 3 : 2;
	for (uint32_t turn = 0; turn < TURNS; turn++) {
		uint32_t n = 1 + next(&seed) % 8;

		for (uint32_t i = next(&seed) % 5; i != 0; i--)
			post(b, shared ? &producer : &b->rq_producer, mode, &seed);
		while (n-- != 0) {
			struct wire_fields f = request(mode, &seed, &next_psn);

			bed_put(b, bed_frame_on(&path, &f));
		}
		bed_turn(b);
		look(b, o);
		b->now += 1000;
	}
	o->told = rtr && (b->qp->flags & QPF_UNHEARD) == 0;
	o->memory = mix(mix(0, b->memory, MR_LEN), b->rq_memory, 16384);
	o->epsn = b->qp->resp.epsn.v;
	o->msn = b->qp->resp.msn;
	o->state = b->qp->state;
	o->posted = shared ? ring_srq_count(&srq.ring) : ring_consume_count(&b->qp->rq);
	o->limit = shared ? atomic_load(&srq.limit) : 0;
	for (uint32_t i = 0; i < STAT_MAX; i++) {
		o->at_qp[i] = qp_stat(b->qp, (enum stats_counter)i);
		o->at_worker[i] = worker_stats(b->w)->c[i];
		o->at_port[i] = worker_port_stats(b->w, 0)->c[i];
	}
	o->at_qp[STAT_np_ecn_marked_roce_packets] = 0;
	o->at_worker[STAT_np_ecn_marked_roce_packets] = 0;
	o->at_port[STAT_np_ecn_marked_roce_packets] = 0;
	bed_teardown(&state);
	if (shared)
		mem_area_destroy(&srq.area);
}

static void
both_ways(enum mode mode)
{
	uint32_t frames = 0, completions = 0, traced = 0, alive = 0, told = 0, low = 0;

	for (uint32_t seed = 1; seed <= SESSIONS; seed++) {
		static struct outcome a, b;

		session(seed * 2654435761u, mode, false, &a);
		session(seed * 2654435761u, mode, true, &b);
		if (memcmp(&a, &b, sizeof(a)) != 0)
			print_message("# session %u\n", seed);
		assert_int_equal(a.epsn, b.epsn);
		assert_int_equal(a.msn, b.msn);
		assert_int_equal(a.state, b.state);
		assert_int_equal(a.told, b.told);
		assert_int_equal(a.frames_n, b.frames_n);
		assert_int_equal(a.completions_n, b.completions_n);
		assert_int_equal(a.traced, b.traced);
		assert_int_equal(a.posted, b.posted);
		assert_int_equal(a.limit, b.limit);
		for (uint32_t i = 0; i < STAT_MAX; i++) {
			if (a.at_qp[i] != b.at_qp[i] || a.at_worker[i] != b.at_worker[i] ||
				a.at_port[i] != b.at_port[i])
				fail_msg("%s", stats_info[i].name);
		}
		assert_true(a.memory == b.memory);
		assert_true(a.completions == b.completions);
		assert_true(a.frames == b.frames);
		assert_true(a.trace == b.trace);
		frames += a.frames_n;
		completions += a.completions_n;
		traced += a.traced;
		alive += a.state == QPS_RTS || a.state == QPS_RTR;
		told += a.told;
		low += a.limit == 0;
	}
	assert_true(frames > SESSIONS * 3 && completions > SESSIONS * 4 && traced > SESSIONS * 4);
	assert_true(alive > SESSIONS / 8 && alive < SESSIONS);
	assert_true(told > SESSIONS / 8 && told < SESSIONS / 2);
	assert_true(mode != SHARED || (low > SESSIONS / 8 && low < SESSIONS));
}

/* RESP-01, RESP-05, RESP-DUP-01, RESP-DUP-02: plain or not, the outcome is one. */
static void
RESP_01_both_ways_agree(void **state)
{
	(void)state;
	both_ways(OWN);
}

/* RESP-03, RESP-RNR-02: the same with receives that an immediate needs alone. */
static void
RESP_03_both_ways_agree(void **state)
{
	(void)state;
	both_ways(EMPTY);
}

/* SRQ-01, SRQ-02, SRQ-04: the same with a shared receive queue. */
static void
SRQ_01_both_ways_agree(void **state)
{
	(void)state;
	both_ways(SHARED);
}

/* RESP-04: the place of a WRITE was looked up before a SEND of its burst revoked the key. */
static void
RESP_04_invalidated_in_a_burst(void **state)
{
	struct bed *b = *state;
	struct wire_fields f = write_only(E, MR_VA, 64);

	b->mr->remote_invalidate = true;
	bed_send(b, &f);
	f = send_only(E + 1, 8);
	f.opcode = OP_RC_SEND_ONLY_INV;
	f.ieth = MR_KEY;
	bed_send(b, &f);
	f = write_only(E + 2, MR_VA + 256, 64);
	bed_send(b, &f);
	bed_turn(b);
	expect_ack(b, 0x1f, E + 1, 2);
	expect_ack(b, 0x62, E + 2, 2);
	assert_memory_equal(b->memory, f.payload, 64);
	assert_int_equal(b->memory[256], 0);
	assert_int_equal(bed_cqe(b).wc_flags, WC_WITH_INV);
}

/* RESP-05: WRITEs of one packet, their frames, and their ACKs are counted at the QP as well. */
static void
RESP_05_writes_counted_at_qp(void **state)
{
	struct bed *b = *state;
	const uint64_t sent = qp_stat(b->qp, STAT_sent_pkts);
	struct wire_fields f;

	for (uint32_t i = 0; i < 3; i++) {
		f = write_only(E + i, MR_VA, 64);
		bed_send(b, &f);
		bed_turn(b);
		expect_ack(b, 0x1f, E + i, i + 1);
		assert_int_equal(qp_stat(b->qp, STAT_rcvd_pkts), i + 1);
		assert_int_equal(qp_stat(b->qp, STAT_rx_packets), i + 1);
		assert_int_equal(qp_stat(b->qp, STAT_rx_write_requests), i + 1);
		/* Ethernet, IPv4, UDP, BTH, RETH, payload, ICRC */
		assert_int_equal(
			qp_stat(b->qp, STAT_rx_bytes), (i + 1) * (14 + 20 + 8 + 12 + 16 + 64 + 4));
		assert_int_equal(qp_stat(b->qp, STAT_acks_sent), i + 1);
		assert_int_equal(qp_stat(b->qp, STAT_sent_pkts), sent + i + 1);
	}
	expect_silence(b);
}

/*
 * RESP-01, CQ-06: SENDs of one QP in a burst take its WQEs in order, and their completions are
 * there before the event, which is for the newest one that is solicited.
 */
static void
sends_of_a_burst(struct bed *b, uint8_t producer)
{
	enum { SENDS = 5, SOLICITED = 2 };
	const uint32_t len[SENDS] = { 8, 64, 0, 33, 1 };
	struct wire_fields f;
	uint64_t bytes = 0;
	uint32_t first;

	atomic_store(&b->cq.producer, producer);
	bed_post(b, SENDS);
	first = atomic_load(&b->cq.ring.tail);
	atomic_store(&b->cq.notify, CQ_NOTIFY_SOLICITED);
	for (uint32_t i = 0; i < SENDS; i++) {
		f = send_only(E + i, (uint16_t)len[i]);
		f.flags = i == SOLICITED ? PKT_SE | PKT_ACKREQ : PKT_ACKREQ;
		bytes += 14 + 20 + 8 + 12 + (len[i] + 3) / 4 * 4 + 4;
		bed_send(b, &f);
	}
	bed_turn(b);
	expect_ack(b, 0x1f, E + SENDS - 1, SENDS);
	expect_silence(b);
	assert_int_equal(atomic_load(&b->cq.notify), CQ_NOTIFY_FIRED);
	assert_int_equal(atomic_load(&b->cq.solicited), first + SOLICITED + 1);
	assert_int_equal(atomic_load(&b->cq.ring.tail), first + SENDS);
	for (uint32_t i = 0; i < SENDS; i++) {
		const struct ring_cqe c = bed_cqe(b);

		assert_int_equal(c.wr_id, i + 1);
		assert_int_equal(c.byte_len, len[i]);
		assert_int_equal(c.solicited, i == SOLICITED);
	}
	bed_no_cqe(b);
	assert_int_equal(qp_stat(b->qp, STAT_rx_send_requests), SENDS);
	assert_int_equal(qp_stat(b->qp, STAT_rx_write_requests), 0);
	assert_int_equal(qp_stat(b->qp, STAT_rcvd_pkts), SENDS);
	assert_int_equal(qp_stat(b->qp, STAT_rx_packets), SENDS);
	assert_int_equal(qp_stat(b->qp, STAT_rx_bytes), bytes);
	assert_int_equal(b->qp->hot[STAT_rx_send_requests], 0); /* none took the full path */
}

/** The worker is the only one that adds to the queue. */
static void
CQ_06_sends_of_a_burst(void **state)
{
	struct bed *b = *state;

	sends_of_a_burst(b, (uint8_t)(1 + b->conf.index));
}

static void
CQ_06_sends_of_a_burst_beside_others(void **state)
{
	sends_of_a_burst(*state, CQ_PRODUCER_ANY);
}

/*
 * AE-05: a QP may stay in RTR for good, as the passive end of a one-sided program does. What comes
 * behind the request that was told of takes the fast path.
 */
static void
AE_05_fast_in_RTR(void **state)
{
	struct bed *b = *state;
	struct wire_fields f;

	bed_in_rtr(b);
	bed_post(b, 4);
	for (uint32_t turn = 0; turn < 3; turn++) {
		for (uint32_t i = 0; i < 2; i++) {
			const uint32_t at = E + turn * 2 + i;

			f = i == 0 ? send_only(at, 64) : write_only(at, MR_VA + 64 * turn, 64);
			bed_send(b, &f);
		}
		bed_turn(b);
		expect_ack(b, 0x1f, E + turn * 2 + 1, turn * 2 + 2);
		assert_memory_equal(b->memory + 64 * turn, f.payload, 64);
		bed_cqe(b);
	}
	assert_int_equal(bed_up(b, MBOX_EVENT).ev.event, EVENT_COMM_EST);
	bed_no_up(b);
	assert_int_equal(qp_stat(b->qp, STAT_rx_send_requests), 3);
	assert_int_equal(qp_stat(b->qp, STAT_rx_write_requests), 3);
	assert_int_equal(b->qp->hot[STAT_rx_send_requests], 1);  /* by the full path: the first */
	assert_int_equal(b->qp->hot[STAT_rx_write_requests], 1); /* ... and the rest of its burst */
}

/* CQ-06: none of a burst is solicited, so there is no event. */
static void
CQ_06_no_event_of_a_burst(void **state)
{
	struct bed *b = *state;
	struct wire_fields f;

	atomic_store(&b->cq.producer, 1 + b->conf.index);
	bed_post(b, 2);
	atomic_store(&b->cq.notify, CQ_NOTIFY_SOLICITED);
	for (uint32_t i = 0; i < 2; i++) {
		f = send_only(E + i, 16);
		bed_send(b, &f);
	}
	bed_turn(b);
	bed_cqe(b);
	bed_cqe(b);
	assert_int_equal(atomic_load(&b->cq.notify), CQ_NOTIFY_SOLICITED);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(RESP_01_both_ways_agree),
		cmocka_unit_test(RESP_03_both_ways_agree),
		cmocka_unit_test(SRQ_01_both_ways_agree),
		cmocka_unit_test_setup_teardown(AE_05_fast_in_RTR, bed_setup, bed_teardown),
		cmocka_unit_test_setup_teardown(
			RESP_04_invalidated_in_a_burst, bed_setup, bed_teardown),
		cmocka_unit_test_setup_teardown(
			RESP_05_writes_counted_at_qp, bed_setup, bed_teardown),
		cmocka_unit_test_setup_teardown(CQ_06_sends_of_a_burst, bed_setup, bed_teardown),
		cmocka_unit_test_setup_teardown(
			CQ_06_sends_of_a_burst_beside_others, bed_setup, bed_teardown),
		cmocka_unit_test_setup_teardown(CQ_06_no_event_of_a_burst, bed_setup, bed_teardown),
	};

	return cmocka_run_group_tests_name("pipeline_plain", tests, bed_group_setup, NULL);
}
