/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One behaviour, two ways: what the fast paths take, the full path would have taken, and nobody can
 * see which it was. Random sessions, each played twice: in one world packets and requests take the
 * fast paths where they can, in the other one none does, and no vector instruction of ours is used.
 * What leaves is the same, turn by turn.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cpu.h"
#include "qp_ah.h"
#include "stage_06_fast.h"
#include "ways.h"
#include "worker.h"

enum { SESSIONS = 100, STEPS = 40, TURNS = 16, RQ_WRS = 16, SQ_WRS = 16 };

/* ---- the two ways: the linker sends all calls of the fast paths here ------------------------- */

static bool all_take_the_full_path;

uint32_t __real_pipeline_fast_run(struct worker *w, struct burst *b, uint32_t i, struct fast *f);
uint32_t __wrap_pipeline_fast_run(struct worker *w, struct burst *b, uint32_t i, struct fast *f);
uint32_t __real_pipeline_fast_requests(
	struct worker *w, struct qp *qp, uint8_t port, struct rte_mbuf **m, uint32_t *n);
uint32_t __wrap_pipeline_fast_requests(
	struct worker *w, struct qp *qp, uint8_t port, struct rte_mbuf **m, uint32_t *n);

uint32_t
__wrap_pipeline_fast_run(struct worker *w, struct burst *b, uint32_t i, struct fast *f)
{
	return all_take_the_full_path ? i : __real_pipeline_fast_run(w, b, i, f);
}

uint32_t
__wrap_pipeline_fast_requests(
	struct worker *w, struct qp *qp, uint8_t port, struct rte_mbuf **m, uint32_t *n)
{
	return all_take_the_full_path ? 0 : __real_pipeline_fast_requests(w, qp, port, m, n);
}

/* ---- chance ---------------------------------------------------------------------------------- */

uint32_t
ways_next(struct world *w)
{
	w->seed = w->seed * 1664525u + 1013904223u;
	return w->seed >> 8;
}

bool
ways_one_in(struct world *w, uint32_t n)
{
	return ways_next(w) % n == 0;
}

/* ---- a world --------------------------------------------------------------------------------- */

static struct qp *
make_qp(struct world *w, uint32_t i)
{
	static const uint8_t types[WAYS_QPS] = { QPT_RC, QPT_RC, QPT_RC, QPT_UC, QPT_UD, QPT_RC };
	const struct qp_alloc_params params = { .type = types[i],
		.max_recv_wr = RQ_WRS,
		.max_recv_sge = 4,
		.max_send_wr = SQ_WRS,
		.max_send_sge = 4,
		.max_inline = 64,
		.max_dest_rd_atomic = types[i] == QPT_RC ? 4 : 0,
		.rq_limit = ways_one_in(w, 8) ? 2 : 0 };

	return bed_qp_with(w->b, QPN + i, types[i] == QPT_UD ? 0 : PEER_QPN + i, &params);
}

static void
make_shared(struct world *w)
{
	const uint32_t stride = ring_recv_stride(2);

	assert_int_equal(mem_area_create(&w->srq.area, ring_size(WAYS_SRQ, stride), -1, 0), 0);
	ring_srq_attach(&w->srq.ring, w->srq.area.base, WAYS_SRQ, stride);
	ring_srq_producer(&w->srq.ring, &w->srq_producer);
	w->srq.id = 5;
	w->srq.pd = PD;
	w->srq.max_sge = 2;
	for (uint32_t i = 1; i <= 2; i++) {
		w->q[i].qp->srq = &w->srq;
		w->q[i].qp->flags |= QPF_SRQ;
	}
}

/** What may be chosen of a queue pair, and changes what it does. */
static void
choose(struct world *w, struct qp *qp)
{
	static const uint16_t knobs[] = { RESP_KNOB_LEN_PAD_DROP, RESP_KNOB_RNR_FIRST,
		RESP_KNOB_EARLY_DROP, RESP_KNOB_HALF_DUP, RESP_KNOB_J_ACK, RESP_KNOB_IMM_LOC,
		RESP_KNOB_CREDITS, RESP_KNOB_EVENT_WITH_CQE, RESP_KNOB_KEEP };
	static const uint16_t req_knobs[] = { REQ_KNOB_BAD_AETH_DROP, REQ_KNOB_ACK_FOR_READ_FATAL,
		REQ_KNOB_CREDITS, REQ_KNOB_LEN_PAD_DROP, REQ_KNOB_READ_FILL, REQ_KNOB_READ_KEEP,
		REQ_KNOB_PATCH, REQ_KNOB_PROBE };
	struct requester *r = &qp->req;

	if (ways_one_in(w, 3) && qp->type == QPT_RC)
		for (uint32_t i = 0; i < 9; i++)
			qp->resp.knobs |= ways_one_in(w, 8) ? knobs[i] : 0;
	if (ways_one_in(w, 4) && qp->type == QPT_RC) {
		for (uint32_t i = 0; i < ARRAY_LEN(req_knobs); i++)
			r->knobs |= ways_one_in(w, 3) ? req_knobs[i] : 0;
		r->knobs |= (uint16_t)(ways_next(w) % 4 << REQ_KNOB_REORDER_SHIFT);
	}
	r->knobs |= (r->knobs & REQ_KNOB_READ_KEEP) != 0 ? REQ_KNOB_READ_FILL : 0;
	if (ways_one_in(w, 3) && qp->type != QPT_UD)
		r->pmtu = (uint16_t)(256 << ways_next(w) % 3);
	r->knobs |= ways_one_in(w, 2) ? REQ_KNOB_PLACEMENT : 0;
	if (ways_one_in(w, 4))
		r->window = 1 + ways_next(w) % 9;
	r->ackreq_interval =
		ways_one_in(w, 4) ? (uint8_t)(1 + ways_next(w) % 5) : r->ackreq_interval;
	r->max_rd_atomic = ways_one_in(w, 4) ? (uint8_t)(1 + ways_next(w) % 4) : r->max_rd_atomic;
	r->rounds = ways_one_in(w, 6);
	qp->flags |= ways_one_in(w, 4) ? QPF_TRACE : 0;
	qp->flags |= ways_one_in(w, 4) ? QPF_CNP : 0;
	qp->flags |= ways_one_in(w, 4) ? QPF_SIG_ALL : 0;
	if (ways_one_in(w, 8))
		qp->resp.access &= (access_t)ways_next(w);
	if (ways_one_in(w, 4))
		qp->resp.min_rnr_timer = (uint8_t)(ways_next(w) % 32);
	if (ways_one_in(w, 4) && qp->type == QPT_RC)
		qp->resp.max_dest_rd_atomic = (uint8_t)(ways_next(w) % 5);
	if (ways_one_in(w, 4))
		qp->req.rnr_retry = qp->req.rnr_left = 7;
}

/** Some queue pairs are soon where PSNs and MSNs begin anew. */
static void
wrap(struct world *w, struct qp *qp)
{
	if (!ways_one_in(w, 3))
		return;
	requester_reset(&qp->req, psn(PSN_MASK - ways_next(w) % 30));
	qp->resp.epsn = psn(PSN_MASK - ways_next(w) % 30);
	qp->resp.msn = PSN_MASK - ways_next(w) % 30;
	if (ways_one_in(w, 2))
		qp->req.head = qp->req.sending = qp->req.fresh = qp->req.tail = 0u - SQ_WRS;
}

/** Some have another kind of frames: IPv6, a tag, both. @param back what the peer has. */
static void
divert(struct world *w, struct wire_path *path, struct wire_path *back)
{
	if (!ways_one_in(w, 4))
		return;
	if (ways_one_in(w, 2)) {
		back->ipv6 = path->ipv6 = true;
		memset(back->src_ip, 0, 16);
		memset(back->dst_ip, 0, 16);
		back->src_ip[0] = back->dst_ip[0] = 0xfd;
		back->src_ip[15] = 2;
		back->dst_ip[15] = 1;
		memcpy(path->src_ip, back->dst_ip, 16);
		memcpy(path->dst_ip, back->src_ip, 16);
	}
	if (!back->ipv6 || ways_one_in(w, 2)) {
		back->vlan = path->vlan = true;
		back->vlan_tci = path->vlan_tci = ways_one_in(w, 2) ? 5 : 6 << 13;
	}
}

static void
route(struct world *w, struct ways_qp *q)
{
	struct qp_attr a = q->qp->attr;

	q->path = bed_path();
	if (q->qp->type == QPT_UD)
		return;
	divert(w, &a.path, &q->path);
	assert_int_equal(bed_modify(w->b, q->qp, &a, QP_ATTR_AV), 0);
}

static void
begin(struct world *w, struct bed *b, uint32_t seed)
{
	static const uint32_t tame[] = { 60, 300, 1000, 5000 };
	struct wire_path path = b->qp->attr.path, back = bed_path();

	memset(w, 0, sizeof(*w));
	w->b = b;
	w->seed = seed;
	w->tame = tame[ways_next(w) % 4];
	w->posts = ways_one_in(w, 2) ? 16 : 4;
	w->bare = ways_one_in(w, 4);
	w->keeps_records = !ways_one_in(w, 3);
	b->conf.errbuf_entries = w->keeps_records ? 256 : 0;
	b->conf.trace_entries = WAYS_TRACE;
	bed_worker_again(b);
	atomic_store(&b->cq.producer,
		ways_one_in(w, 2) ? (uint8_t)(1 + b->conf.index) : (uint8_t)CQ_PRODUCER_ANY);
	for (uint32_t i = 0; i < WAYS_QPS; i++) {
		struct qp *qp = w->q[i].qp = i == 0 ? b->qp : make_qp(w, i);

		ring_attach(&w->q[i].rq, qp->rq.sh, qp->rq.mask + 1, qp->rq.stride, false);
		ring_attach(&w->q[i].sq, qp->sq.ring.sh, qp->sq.ring.mask + 1, qp->sq.ring.stride,
			false);
	}
	w->q[OF_UD].qp->qkey = WAYS_QKEY;
	divert(w, &path, &back);
	w->handle = qp_ah_add(b->ahs, PD, bed_port(), &path, 0, true);
	make_shared(w);
	for (uint32_t i = 0; i < WAYS_QPS; i++) {
		choose(w, w->q[i].qp);
		wrap(w, w->q[i].qp);
		route(w, &w->q[i]);
	}
	mem_pattern_fill(b->memory, MR_LEN, 9, 0);
}

/* ---- what its application does --------------------------------------------------------------- */

static void
post_receive(struct world *w, struct ring *to, uint32_t limit, uint32_t max_sge)
{
	struct ring_recv_wqe *wqe = ring_produce_slot(to, limit);
	const uint32_t len = ways_one_in(w, w->tame) ? ways_next(w) % 64 : 12000;

	if (wqe == NULL)
		return;
	wqe->wr_id = ++w->b->wr_id;
	wqe->num_sge = ways_one_in(w, 4) ? 1 + ways_next(w) % max_sge : 1;
	if (ways_one_in(w, w->bare ? 2 : w->tame))
		wqe->num_sge = 0;
	if (ways_one_in(w, w->tame / 3)) /* more than there is room for: none may be used */
		wqe->num_sge = 17;
	for (uint32_t i = 0; i < max_sge; i++)
		wqe->sge[i] = (struct ring_sge){ .addr = RQ_VA + ways_next(w) % 40000,
			.length = wqe->num_sge > 1 && !ways_one_in(w, 3) ? len / 2 : len,
			.lkey = ways_one_in(w, w->tame) ? 0xbad : RQ_KEY };
	ring_produce_commit(to);
}

static void
post_send(struct world *w, uint32_t i)
{
	static const uint8_t opcodes[] = { WR_SEND, WR_SEND, WR_RDMA_WRITE, WR_RDMA_WRITE,
		WR_SEND_WITH_IMM, WR_RDMA_WRITE_WITH_IMM, WR_RDMA_READ, WR_RDMA_READ,
		WR_ATOMIC_FETCH_AND_ADD, WR_ATOMIC_CMP_AND_SWP };
	static const uint8_t rare[] = { WR_SEND_WITH_INV, WR_SEND_WITH_INV, WR_ATOMIC_WRITE,
		WR_FLUSH, WR_LOCAL_INV, WR_BIND_MW };
	struct ring_send_wqe *s = ring_produce_slot(&w->q[i].sq, SQ_WRS);
	const uint32_t len =
		ways_one_in(w, 4) && i != OF_UD ? ways_next(w) % 5000 : ways_next(w) % (PMTU + 1);

	if (s == NULL)
		return;
	memset(s, 0, w->q[i].sq.stride);
	s->wr_id = ++w->b->wr_id;
	s->opcode = opcodes[ways_next(w) % (i == OF_UD ? 2 : i == OF_UC ? 6 : 10)];
	if (i != OF_UD && i != OF_UC && ways_one_in(w, w->tame / 5))
		s->opcode = rare[ways_next(w) % 6];
	s->flags = (uint8_t)((ways_one_in(w, 2) ? SEND_SIGNALED : 0) |
			     (ways_one_in(w, 4) ? SEND_SOLICITED : 0) |
			     (ways_one_in(w, 20) ? SEND_FENCE : 0));
	s->remote_addr = 0x50000 + ways_next(w) % 999 * 8;
	s->rkey = 0x3003;
	if (i == OF_UD) {
		s->remote_addr = (uint64_t)WAYS_QKEY << 32 | (PEER_QPN + OF_UD);
		s->rkey = w->handle;
	}
	s->imm = ways_next(w);
	s->compare_add = ways_next(w);
	s->num_sge = ways_one_in(w, 4) ? ways_next(w) % 4 : 1;
	for (uint32_t k = 0; k < s->num_sge; k++)
		s->sge[k] = (struct ring_sge){ MR_VA + ways_next(w) % 5000 +
						       (s->opcode == WR_RDMA_READ ? 0 : WAYS_STILL),
			len / s->num_sge, ways_one_in(w, w->tame) ? 0xbad : MR_KEY };
	if (s->num_sge != 0 && ways_one_in(w, w->tame / 3)) /* it ends in the middle of the bytes */
		s->sge[s->num_sge - 1].addr = MR_VA + MR_LEN - 1 - ways_next(w) % 99;
	if (s->num_sge > 1 && ways_one_in(w, 4))
		s->sge[ways_next(w) % s->num_sge].length = ways_next(w) % 3;
	if (s->num_sge > 1 && ways_one_in(w, 8))
		s->sge[ways_next(w) % s->num_sge] = (struct ring_sge){ 0, 0, 0xbad };
	if (s->opcode >= WR_ATOMIC_CMP_AND_SWP && s->opcode <= WR_ATOMIC_FETCH_AND_ADD) {
		s->num_sge = 1;
		s->sge[0] = (struct ring_sge){ MR_VA + 8, 8, MR_KEY };
	} else if (s->opcode == WR_FLUSH) {
		s->num_sge = 0;
		s->compare_add = 4096;
		s->swap = FLUSH_GLOBAL;
	} else if (s->opcode == WR_ATOMIC_WRITE) {
		s->num_sge = 1;
		s->sge[0] = (struct ring_sge){ MR_VA + 8 + WAYS_STILL, 8, MR_KEY };
	} else if (ways_one_in(w, 8) && s->opcode != WR_RDMA_READ) {
		s->flags |= SEND_INLINE;
		s->inline_len = ways_next(w) % 65;
	}
	ring_produce_commit(&w->q[i].sq);
}

static void
application(struct world *w)
{
	for (uint32_t i = 0; i < WAYS_QPS; i++) {
		const bool shared = i == 1 || i == 2;

		for (uint32_t n = ways_one_in(w, w->posts) ? ways_next(w) % 6 : 0; n != 0; n--)
			post_receive(w, shared ? &w->srq_producer : &w->q[i].rq,
				shared ? WAYS_SRQ : RQ_WRS, shared ? 2 : 4);
	}
	for (uint32_t n = ways_next(w) % (ways_one_in(w, 10) ? 24 : 6); n != 0; n--) {
		const uint32_t i = ways_one_in(w, 2) ? ways_next(w) % WAYS_QPS : w->at;
		struct mbox_msg m = { .type = MBOX_QP_POSTED };

		post_send(w, i);
		m.qp.qp = w->q[i].qp;
		assert_int_equal(mbox_send_down(&w->b->mbox, &m), 0);
	}
	if (ways_one_in(w, 100))
		atomic_store(&w->b->mr->valid, !atomic_load(&w->b->mr->valid));
}

/** Through RESET: the same number, other PSNs. */
static void
begin_anew(struct world *w, struct qp *qp)
{
	static const uint8_t states[] = { QPS_RESET, QPS_INIT, QPS_RTR, QPS_RTS };
	static const uint32_t masks[] = { 0, 0, QP_ATTR_RQ_PSN, QP_ATTR_SQ_PSN };
	static struct qp_attr a[4];

	w->q[qp->qpn - QPN].anew = true;
	for (uint32_t i = 0; i < 4; i++) {
		struct mbox_msg m = { .type = MBOX_QP_MODIFY,
			.modify = { qp, &a[i], QP_ATTR_STATE | masks[i] } };

		a[i].qp_state = states[i];
		a[i].rq_psn = qp->resp.epsn.v - ways_next(w) % 5;
		a[i].sq_psn = qp->req.next.v - ways_next(w) % 5;
		assert_int_equal(mbox_send_down(&w->b->mbox, &m), 0);
	}
}

/** To another state, with whatever is under way. */
static void
modify(struct world *w)
{
	static struct qp_attr a;
	struct qp *qp = w->q[ways_next(w) % WAYS_QPS].qp;
	const uint8_t is = atomic_load(&qp->state);
	struct mbox_msg m = { .type = MBOX_QP_MODIFY, .modify = { qp, &a, QP_ATTR_STATE } };

	if (ways_one_in(w, 2) && qp->type == QPT_RC) {
		begin_anew(w, qp);
		return;
	}
	if (is != QPS_RTS && is != QPS_SQD)
		return;
	a.qp_state = ways_one_in(w, 4) ? QPS_ERR : is == QPS_RTS ? QPS_SQD : QPS_RTS;
	assert_int_equal(mbox_send_down(&w->b->mbox, &m), 0);
}

static void
time_passes(struct world *w)
{
	static const ns_t steps[] = { 0, 0, 1000, 10 * TIME_NS_PER_US, 100 * TIME_NS_PER_US,
		700 * TIME_NS_PER_US, 10 * TIME_NS_PER_MS, 80 * TIME_NS_PER_MS };

	w->b->now += steps[ways_next(w) % (ways_one_in(w, 2) ? 8 : 5)];
}

/** The answers to what the worker was told. */
static void
forget_answers(struct world *w)
{
	struct mbox_msg done;

	while (mbox_recv_done(&w->b->mbox, &done, 1) == 1)
		;
}

/** With so many turns that all is sent that may be: what of it leaves in which is not compared. */
static void
step(struct world *w, uint32_t number)
{
	for (uint32_t i = 0; i < WAYS_QPS; i++) {
		w->q[i].next = w->q[i].qp->resp.epsn.v;
		w->q[i].open = w->q[i].qp->resp.open;
		w->q[i].left = w->q[i].qp->resp.dma_len - w->q[i].qp->resp.received;
		w->q[i].responses = w->q[i].asks = 0;
		w->q[i].well = atomic_load(&w->q[i].qp->state) != QPS_ERR;
	}
	time_passes(w);
	application(w);
	if (ways_one_in(w, 8))
		w->at = ways_next(w) % WAYS_QPS;
	/* One burst: an ACK of the next one is another ACK, unless a READ waits before it. */
	for (uint32_t n = ways_next(w) % (ways_one_in(w, 3) ? PIPELINE_BURST - 2 : 12); n != 0;)
		n -= RTE_MIN(n, ways_packet(w));
	if (ways_one_in(w, w->tame / 5))
		modify(w);
	for (uint32_t n = 0; n < TURNS; n++) {
		bed_turn(w->b);
		ways_look_at_frames(w);
	}
	forget_answers(w);
	ways_look(w, number);
}

static void
end(struct world *w)
{
	for (uint32_t i = 0; i < 3; i++) {
		bed_turns(w->b);
		forget_answers(w);
	}
	for (uint32_t i = 1; i < WAYS_QPS; i++)
		bed_qp_gone(w->b, w->q[i].qp);
	mem_area_destroy(&w->srq.area);
}

static uint32_t bits; /* of registers: none are wider */

static void
play(void **state, uint32_t seed, bool full)
{
	static struct world w;

	all_take_the_full_path = full;
	cpu_limit(full ? 64 : bits);
	begin(&w, *state, seed);
	ways_log_open(full);
	for (uint32_t n = 0; n < STEPS; n++)
		step(&w, n);
	ways_look_at_memory(&w);
	end(&w);
	assert_int_equal(bed_teardown(state), 0);
	assert_int_equal(bed_setup(state), 0);
}

/* ---- the comparison -------------------------------------------------------------------------- */

static size_t
line_len(const char *s)
{
	return strcspn(s, "\n");
}

/** Both from the turn before the first difference on. */
static void
show(uint32_t seed)
{
	const char *a = ways_log(0), *b = ways_log(1), *from_a = a, *from_b = b;

	while (line_len(a) == line_len(b) && memcmp(a, b, line_len(a)) == 0 && *a != 0) {
		if (strncmp(a, "step ", 5) == 0) {
			from_a = a;
			from_b = b;
		}
		a += line_len(a) + 1;
		b += line_len(b) + 1;
	}
	fprintf(stderr, "seed %u\nfast: %.*s\nfull: %.*s\n---- fast\n%.*s\n---- full\n%.*s\n", seed,
		(int)line_len(a), a, (int)line_len(b), b, (int)(a - from_a) + 9000, from_a,
		(int)(b - from_b) + 9000, from_b);
}

static void
compare(uint32_t seed)
{
	if (strcmp(ways_log(0), ways_log(1)) == 0)
		return;
	show(seed);
	fail_msg("seed %u: the fast paths do something else than the full path", seed);
}

/* RESP-01, RESP-RNR-08, RESP-SEQ-02, RESP-DUP-01, REQ-CLS-E-01: the ways differ in nothing. */
static void
RESP_01_both_ways_the_same(void **state)
{
	const char *first = getenv("WAYS_SEED"), *many = getenv("WAYS_SESSIONS");
	const uint32_t from = first != NULL ? (uint32_t)strtoul(first, NULL, 10) : 1;
	const char *limit = getenv("UNIT_SIMD_BITS");
	const uint32_t n = many != NULL ? (uint32_t)strtoul(many, NULL, 10) : SESSIONS;

	bits = limit != NULL ? (uint32_t)strtoul(limit, NULL, 10) : UINT32_MAX;
	for (uint32_t seed = from; seed < from + n; seed++) {
		play(state, seed * 2654435761u, false);
		play(state, seed * 2654435761u, true);
		compare(seed);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = { TEST(RESP_01_both_ways_the_same) };

	return cmocka_run_group_tests(tests, bed_group_setup, NULL);
}
