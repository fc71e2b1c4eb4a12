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
	uint64_t trace_at; /* of the next entry */
	uint32_t frames_n;
	uint32_t completions_n;
	uint32_t traced;
	uint32_t epsn;
	uint32_t other_epsn;
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
	SHARED, /* one that two QPs share; the same, to both of them */
	EMPTY,  /* the QP's, mostly without a buffer; WRITEs, mostly with an immediate */
	PARTS,  /* the QP's; long packets, as put_long() has them */
};

/** A receive WQE, good or not. */
static void
post(struct bed *b, struct ring *to, enum mode mode, uint32_t *seed)
{
	struct ring_recv_wqe *wqe = ring_produce_slot(to, 16);
	const uint32_t rarely = mode == SHARED ? 5 : 1;
	uint32_t at = next(seed) % 8192;

	if (wqe == NULL)
		return;
	wqe->wr_id = ++b->wr_id;
	wqe->num_sge = one_in(seed, 6 * rarely) ? 1 + next(seed) % 4 : 1;
	if (one_in(seed, 100 * rarely))
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

/** A queue that the bed's QP shares with another one. @return that */
static struct qp *
share(struct bed *b, struct qp_srq *srq, struct ring *producer)
{
	struct qp *other = bed_qp(b, QPN + 1, PEER_QPN);
	const uint32_t stride = ring_recv_stride(4);

	memset(srq, 0, sizeof(*srq));
	assert_int_equal(mem_area_create(&srq->area, ring_size(16, stride), -1, 0), 0);
	ring_srq_attach(&srq->ring, srq->area.base, 16, stride);
	ring_srq_producer(&srq->ring, producer);
	srq->pd = PD;
	srq->max_sge = 4;
	atomic_store(&srq->limit, 3);
	b->qp->srq = other->srq = srq;
	b->qp->flags |= QPF_SRQ;
	other->flags |= QPF_SRQ;
	return other;
}

/** A request around where the QP stands, of which a few say what cannot be. */
static struct wire_fields
request(enum mode mode, uint32_t *seed, uint32_t *p)
{
	uint16_t len = (uint16_t)(one_in(seed, 4) ? next(seed) % (PMTU + 40) : next(seed) % 70);
	const bool sends = mode == SHARED ? !one_in(seed, 6) : one_in(seed, mode == EMPTY ? 60 : 2);
	const uint32_t rarely = mode == SHARED ? 5 : 1; /* runs of SENDs that take entries */
	struct wire_fields f = sends ? send_only(*p, len)
				     : write_only(*p, MR_VA + next(seed) % (MR_LEN - 2048), len);

	f.imm = next(seed);
	if (mode == EMPTY ? !one_in(seed, 4) : mode != PARTS && one_in(seed, 6 * rarely))
		f.opcode = sends ? OP_RC_SEND_ONLY_IMM : OP_RC_WRITE_ONLY_IMM;

	f.flags = (uint8_t)((one_in(seed, 3) ? 0 : PKT_ACKREQ) | (one_in(seed, 3) ? PKT_SE : 0));
	if (one_in(seed, mode == SHARED ? 4 : 10))
		f.psn = psn((*p - 1 - next(seed) % 4) & PSN_MASK); /* again, perhaps */
	else if (one_in(seed, 80 * rarely))
		f.psn = psn(*p + 2); /* a gap */
	else
		*p += 1;
	if (one_in(seed, 60 * rarely))
		f.opcode = (uint8_t)(next(seed) % 0x0d);
	if (one_in(seed, 150))
		f.reth.rkey = RQ_KEY;
	if (one_in(seed, 150))
		f.reth.va = MR_VA + MR_LEN - 8;
	if (one_in(seed, 150))
		f.reth.dma_len++;
	return f;
}

/** @param parts where they begin may differ: their packets are examined before they are served. */
static void
look(struct bed *b, bool parts, struct outcome *o)
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
	n = trace_after(worker_trace(b->w), QPN, o->trace_at, e, TRACED);
	o->trace_at = trace_head(worker_trace(b->w));
	for (uint32_t i = 0; i < n; i++)
		if (!parts || e[i].kind != TRACE_drop)
			o->trace = mix(o->trace, &e[i], offsetof(struct trace_entry, reserved));
	o->traced += n;
}

/** Most of a turn's packets are long, so they are delivered in parts; an ICRC may be wrong. */
static void
put_long(struct bed *b, const struct wire_path *path, uint32_t *seed, uint32_t *next_psn)
{
	for (uint32_t i = next(seed) % 24; i != 0; i--)
		post(b, &b->rq_producer, PARTS, seed);
	for (uint32_t n = 1 + next(seed) % PIPELINE_BURST; n != 0; n--) {
		struct wire_fields f = request(PARTS, seed, next_psn);
		struct rte_mbuf *m;

		if (!one_in(seed, 16))
			f.reth.dma_len = f.payload_len =
				(uint16_t)(600 + next(seed) % (PMTU - 600));
		if (!one_in(seed, 30) && f.opcode == OP_RC_SEND_ONLY)
			f.opcode = OP_RC_WRITE_ONLY;
		if (f.reth.rkey == 0)
			f.reth = (struct wire_reth){ MR_VA + next(seed) % (MR_LEN - 2048), MR_KEY,
				f.payload_len };
		m = bed_frame_on(path, &f);
		if (one_in(seed, 200))
			rte_pktmbuf_mtod(m, uint8_t *)[m->data_len - 1] ^= 1;
		bed_put(b, m);
	}
}

/** @param again a packet that is not plain: all of them have the CE mark. */
static void
session(uint32_t seed, enum mode mode, bool again, struct outcome *o)
{
	const bool shared = mode == SHARED;
	struct wire_path path = bed_path();
	struct ring producer;
	struct qp_srq srq;
	uint32_t next_psn = one_in(&seed, 3) ? PSN_MASK - 3 : E, other_psn = E;
	struct qp *other = NULL;
	void *state = NULL;
	bool rtr;
	struct bed *b;

	assert_int_equal(bed_setup(&state), 0);
	b = state;
	memset(o, 0, sizeof(*o));
	b->qp->resp.epsn = psn(next_psn);
	b->qp->flags |= one_in(&seed, 2) ? QPF_TRACE : 0;
	if ((rtr = one_in(&seed, 3)))
		bed_in_rtr(b);
	if (shared)
		other = share(b, &srq, &producer);
	atomic_store(&b->cq.producer, one_in(&seed, 2) ? 1 + b->conf.index : CQ_PRODUCER_ANY);
	path.tos = again ? 3 : 2;
	for (uint32_t turn = 0; turn < TURNS; turn++) {
		uint32_t n = mode == PARTS ? 0 : 1 + next(&seed) % 8;

		if (mode == PARTS)
			put_long(b, &path, &seed, &next_psn);
		for (uint32_t i = mode == PARTS ? 0 : next(&seed) % (shared ? 12 : 5); i != 0; i--)
			post(b, shared ? &producer : &b->rq_producer, mode, &seed);
		while (n-- != 0) {
			const bool own = !shared || one_in(&seed, 2);
			struct wire_fields f = request(mode, &seed, own ? &next_psn : &other_psn);

			f.dest_qpn = own ? b->qp->qpn : other->qpn;
			bed_put(b, bed_frame_on(&path, &f));
		}
		bed_turn(b);
		look(b, mode == PARTS, o);
		b->now += 1000;
	}
	o->told = rtr && (b->qp->flags & QPF_UNHEARD) == 0;
	o->memory = mix(mix(0, b->memory, MR_LEN), b->rq_memory, 16384);
	o->epsn = b->qp->resp.epsn.v;
	o->other_epsn = shared ? other->resp.epsn.v : 0;
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
	if (shared)
		bed_qp_gone(b, other);
	bed_teardown(&state);
	if (shared)
		mem_area_destroy(&srq.area);
}

/** What all sessions have left behind. */
struct sums {
	uint32_t frames, completions, traced, alive, told, wrong, taken, low;
};

static struct sums
both_ways(enum mode mode)
{
	struct sums sum = { 0 };

	for (uint32_t seed = 1; seed <= SESSIONS; seed++) {
		static struct outcome a, b;

		session(seed * 2654435761u, mode, false, &a);
		session(seed * 2654435761u, mode, true, &b);
		if (memcmp(&a, &b, sizeof(a)) != 0)
			print_message("# session %u\n", seed);
		assert_int_equal(a.epsn, b.epsn);
		assert_int_equal(a.other_epsn, b.other_epsn);
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
		assert_true(a.trace == b.trace && a.trace_at == b.trace_at);
		sum.frames += a.frames_n;
		sum.completions += a.completions_n;
		sum.traced += a.traced;
		sum.alive += a.state == QPS_RTS || a.state == QPS_RTR;
		sum.told += a.told;
		sum.wrong += (uint32_t)a.at_worker[STAT_rx_syndrome_30];
		sum.taken += (uint32_t)a.at_qp[STAT_rx_write_requests];
		sum.low += a.limit == 0;
	}
	assert_true(sum.frames > SESSIONS * 3 && sum.completions > SESSIONS &&
		    sum.traced > SESSIONS * 4);
	return sum;
}

/* RESP-01, RESP-05, RESP-DUP-01, RESP-DUP-02: plain or not, the outcome is one. */
static void
RESP_01_both_ways_agree(void **state)
{
	const struct sums sum = both_ways(OWN);

	(void)state;
	assert_true(sum.completions > SESSIONS * 4);
	assert_true(sum.alive > SESSIONS / 8 && sum.alive < SESSIONS);
	assert_true(sum.told > SESSIONS / 8 && sum.told < SESSIONS / 2);
}

/* RESP-03, RESP-RNR-02: the same with receives that an immediate needs alone. */
static void
RESP_03_both_ways_agree(void **state)
{
	const struct sums sum = both_ways(EMPTY);

	(void)state;
	assert_true(sum.completions > SESSIONS * 4 && sum.taken > SESSIONS * 8);
}

/* SRQ-01, SRQ-02, SRQ-04: the same with a shared receive queue. */
static void
SRQ_01_both_ways_agree(void **state)
{
	const struct sums sum = both_ways(SHARED);

	(void)state;
	assert_true(sum.completions > SESSIONS * 4);
	assert_true(sum.low > SESSIONS / 8 && sum.low < SESSIONS);
}

/* RESP-01, RX-PREC-09: the same of long packets, which come by parts; ICRCs are wrong in them. */
static void
RESP_01_both_ways_agree_in_parts(void **state)
{
	const struct sums sum = both_ways(PARTS);

	(void)state;
	assert_true(sum.wrong > SESSIONS / 2 && sum.taken > SESSIONS * 32);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(RESP_01_both_ways_agree),
		cmocka_unit_test(RESP_03_both_ways_agree),
		cmocka_unit_test(SRQ_01_both_ways_agree),
		cmocka_unit_test(RESP_01_both_ways_agree_in_parts),
	};

	return cmocka_run_group_tests_name("pipeline_plain", tests, bed_group_setup, NULL);
}
