/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A completion queue that is full at any place of a burst: who asks why gets the same answer by the
 * fast paths and by the full path, which takes packet by packet (CQ-05, REQ-CLS-F-01,
 * RESP-CLS-G-01). Bursts as in test_ways.c, but each of them, not some by chance.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rounds.h"
#include "stage_06_fast.h"
#include "ways.h"
#include "worker.h"

enum { EACH = 5, TURNS = 6, RQ_WRS = 16, SQ_WRS = 16, MOST = 3 * EACH };

/* ---- the two ways: see test_ways.c ----------------------------------------------------------- */

static bool all_take_the_full_path;
static uint32_t taken; /* packets, by the fast paths */

uint32_t __real_pipeline_fast_run(struct worker *w, struct burst *b, uint32_t i, struct fast *f);
uint32_t __wrap_pipeline_fast_run(struct worker *w, struct burst *b, uint32_t i, struct fast *f);

uint32_t
__wrap_pipeline_fast_run(struct worker *w, struct burst *b, uint32_t i, struct fast *f)
{
	const uint32_t end = all_take_the_full_path ? i : __real_pipeline_fast_run(w, b, i, f);

	taken += end - i;
	return end;
}

/* ---- what is played -------------------------------------------------------------------------- */

enum kind {
	ACKS,          /* of each SEND */
	ACKS_OF_TWO,   /* of every other one */
	ACKS_REPEATED, /* each twice */
	ACKS_AND_SENDS,
	READS,
	SENDS,
	SENDS_IMM,
	WRITES_IMM,
	SENDS_SHARED, /* of a shared receive queue */
	KINDS
};
static const char *const kind_name[KINDS] = { "ACKs", "ACKs of two", "repeated ACKs",
	"ACKs and SENDs", "READs", "SENDs", "SENDs with immediate", "WRITEs with immediate",
	"SENDs to a shared queue" };

struct scene {
	enum kind kind;
	uint32_t qps;
	uint32_t signalled; /* a bit each: which of the requests are */
	uint32_t room;      /* completions that have a place */
	uint32_t limit;     /* of the shared receive queue */
	bool alone;         /* no other worker adds to the completion queue */
	bool mixed;         /* packets of the queue pairs in turn */
	bool resized;       /* the queue is another ring since the requests were posted */
};

static bool
sends_first(enum kind k)
{
	return k <= READS;
}

static void
begin(struct world *w, struct bed *b, const struct scene *s)
{
	const struct qp_alloc_params params = { .type = QPT_RC,
		.max_recv_wr = RQ_WRS,
		.max_recv_sge = 4,
		.max_send_wr = SQ_WRS,
		.max_send_sge = 4,
		.max_dest_rd_atomic = 4 };

	memset(w, 0, sizeof(*w));
	w->b = b;
	w->keeps_records = true;
	b->conf.errbuf_entries = 256;
	b->conf.trace_entries = WAYS_TRACE;
	bed_worker_again(b);
	atomic_store(&b->cq.producer,
		s->alone ? (uint8_t)(1 + b->conf.index) : (uint8_t)CQ_PRODUCER_ANY);
	for (uint32_t i = 0; i < WAYS_QPS; i++) {
		struct qp *qp = w->q[i].qp =
			i == 0 ? b->qp : bed_qp_with(b, QPN + i, PEER_QPN + i, &params);

		ring_attach(&w->q[i].rq, qp->rq.sh, qp->rq.mask + 1, qp->rq.stride, false);
		ring_attach(&w->q[i].sq, qp->sq.ring.sh, qp->sq.ring.mask + 1, qp->sq.ring.stride,
			false);
		qp->req.max_rd_atomic = EACH;
		qp->flags &= ~(uint32_t)QPF_UNHEARD; /* the first request takes the full path */
		w->q[i].well = true;
	}
	assert_int_equal(
		mem_area_create(&w->srq.area, ring_size(WAYS_SRQ, ring_recv_stride(2)), -1, 0), 0);
	ring_srq_attach(&w->srq.ring, w->srq.area.base, WAYS_SRQ, ring_recv_stride(2));
	ring_srq_producer(&w->srq.ring, &w->srq_producer);
	w->srq.id = 5;
	w->srq.pd = PD;
	w->srq.max_sge = 2;
	for (uint32_t i = 0; s->kind == SENDS_SHARED && i < s->qps; i++) {
		w->q[i].qp->srq = &w->srq;
		w->q[i].qp->flags |= QPF_SRQ;
	}
	atomic_store(&w->srq.limit, s->limit);
}

static void
post_receive(struct world *w, struct ring *to, uint32_t limit, uint32_t num_sge)
{
	struct ring_recv_wqe *wqe = ring_produce_slot(to, limit);

	assert_non_null(wqe);
	wqe->wr_id = ++w->b->wr_id;
	wqe->num_sge = num_sge;
	wqe->sge[0] =
		(struct ring_sge){ .addr = RQ_VA + 64 * wqe->wr_id, .length = 64, .lkey = RQ_KEY };
	ring_produce_commit(to);
}

static void
post_send(struct world *w, uint32_t i, const struct scene *s, uint32_t n)
{
	struct ring_send_wqe *wqe = ring_produce_slot(&w->q[i].sq, SQ_WRS);

	assert_non_null(wqe);
	memset(wqe, 0, w->q[i].sq.stride);
	wqe->wr_id = ++w->b->wr_id;
	wqe->opcode = s->kind == READS ? WR_RDMA_READ : WR_SEND;
	wqe->flags = (s->signalled >> n & 1) != 0 ? SEND_SIGNALED : 0;
	wqe->remote_addr = 0x50000;
	wqe->rkey = 0x3003;
	wqe->num_sge = 1;
	wqe->sge[0] = (struct ring_sge){ MR_VA + 64 * n, 8, MR_KEY };
	ring_produce_commit(&w->q[i].sq);
}

static void
post(struct world *w, const struct scene *s)
{
	for (uint32_t i = 0; i < s->qps; i++) {
		struct mbox_msg m = { .type = MBOX_QP_POSTED };

		for (uint32_t n = 0; n < EACH; n++) {
			if (s->kind == SENDS_SHARED)
				post_receive(w, &w->srq_producer, WAYS_SRQ, 1);
			else if (!sends_first(s->kind) || s->kind == ACKS_AND_SENDS)
				post_receive(w, &w->q[i].rq, RQ_WRS, s->kind != WRITES_IMM);
			if (sends_first(s->kind))
				post_send(w, i, s, n);
		}
		m.qp.qp = w->q[i].qp;
		assert_int_equal(bed_tell(w->b, &m), 0);
	}
}

static void
put(struct world *w, uint32_t i, struct wire_fields f)
{
	f.dest_qpn = w->q[i].qp->qpn;
	bed_put(w->b, bed_frame(&f));
}

static void
put_ack(struct world *w, uint32_t i, uint32_t n)
{
	put(w, i,
		(struct wire_fields){
			.opcode = OP_RC_ACKNOWLEDGE, .psn = psn(S + n), .aeth = { 0x1f, n + 1 } });
}

/** What the peer of queue pair i sends as the n-th. */
static void
packet(struct world *w, const struct scene *s, uint32_t i, uint32_t n)
{
	struct wire_fields f = send_only(E + n, 8);

	switch (s->kind) {
	case ACKS_OF_TWO:
		if (n % 2 == 0 || n == EACH - 1)
			put_ack(w, i, n);
		return;
	case ACKS_REPEATED:
		put_ack(w, i, n);
		put_ack(w, i, n);
		return;
	case ACKS:
		put_ack(w, i, n);
		return;
	case ACKS_AND_SENDS:
		put_ack(w, i, n);
		if (n % 3 == 1)
			put(w, i, send_only(E + n / 3, 8));
		return;
	case READS:
		f.opcode = OP_RC_READ_RESPONSE_ONLY;
		f.psn = psn(S + n);
		f.flags = 0;
		f.aeth = (struct wire_aeth){ 0x1f, n + 1 };
		break;
	case SENDS_IMM:
		f.opcode = OP_RC_SEND_ONLY_IMM;
		f.imm = n;
		break;
	case WRITES_IMM:
		f = write_only(E + n, MR_VA + 64 * n, 8);
		f.opcode = OP_RC_WRITE_ONLY_IMM;
		f.imm = n;
		break;
	default:
		break;
	}
	put(w, i, f);
}

static void
burst(struct world *w, const struct scene *s)
{
	for (uint32_t k = 0; k < s->qps * EACH; k++)
		packet(w, s, s->mixed ? k % s->qps : k / EACH, s->mixed ? k / s->qps : k % EACH);
}

static struct ring_cq other; /* that takes the place of the queue's first ring */
static struct mem_area other_area;

/** From here on there is room for so many completions. */
static void
limit_begin(struct bed *b, const struct scene *s)
{
	const struct ring_cqe first = { .qp_num = QPN };
	struct ring_cq *q = &b->cq.ring;

	if (s->resized) {
		assert_int_equal(mem_area_create(&other_area, ring_size(64, 64), -1, 0), 0);
		ring_cq_attach(&other, other_area.base, 64, 64, true);
		ring_cq_follow(&other, q);
		atomic_store(&b->cq.moved, &other);
		q->limit = 0;
		q = &other;
	}
	/* One is there already: a limit of 0 is that of a ring that was left. */
	assert_int_equal(ring_cq_push(q, &first), 0);
	q->limit = s->room + 1;
}

/** What is in the other ring is seen as if it were in the first one. */
static void
limit_end(struct bed *b, const struct scene *s)
{
	struct ring_cqe c;

	if (!s->resized)
		return;
	b->cq.ring.limit = 64;
	while (ring_cq_poll(&other, &c, 1) == 1)
		assert_int_equal(ring_cq_push(&b->cq.ring, &c), 0);
	atomic_store(&b->cq.moved, NULL);
	mem_area_destroy(&other_area);
}

static void
play(void **state, const struct scene *s, bool full)
{
	static struct world w;

	all_take_the_full_path = full;
	begin(&w, *state, s);
	ways_log_open(full);
	post(&w, s);
	bed_turns(w.b);
	ways_look(&w, 0);
	limit_begin(w.b, s);
	burst(&w, s);
	for (uint32_t n = 0; n < TURNS; n++) {
		bed_turn(w.b);
		ways_look_at_frames(&w);
	}
	limit_end(w.b, s);
	ways_look(&w, 1);
	ways_look_at_memory(&w);
	for (uint32_t i = 1; i < WAYS_QPS; i++)
		bed_qp_gone(w.b, w.q[i].qp);
	mem_area_destroy(&w.srq.area);
	assert_int_equal(bed_teardown(state), 0);
	assert_int_equal(bed_setup(state), 0);
}

/* ---- the comparison -------------------------------------------------------------------------- */

static void
differ(const struct scene *s)
{
	fprintf(stderr,
		"%s, %u queue pairs%s, signalled %x, room %u, limit %u, %s\n---- fast\n%s---- full\n%s",
		kind_name[s->kind], s->qps, s->mixed ? " in turn" : "", s->signalled, s->room,
		s->limit,
		s->resized ? "resized"
		: s->alone ? "one worker"
			   : "any worker",
		ways_log(0), ways_log(1));
	fail_msg("%s: the fast paths do something else than the full path", kind_name[s->kind]);
}

static void
compare(void **state, const struct scene *s)
{
	play(state, s, false);
	play(state, s, true);
	if (strcmp(ways_log(0), ways_log(1)) != 0)
		differ(s);
	/* It is a full queue that is compared: there is an event of it, and nothing without. */
	assert_true((strstr(ways_log(1), "counter of worker 0 cq_overflow") != NULL) ||
		    s->room != 0 || s->signalled == 0);
}

/**
 * With room for none of the completions, for some, and for all. With sanitizers for some of those
 * only, other ones each time: what is compared is the same in both builds.
 */
static void
all_rooms(void **state, struct scene s)
{
	const uint32_t most = s.qps * EACH + (s.kind == ACKS_AND_SENDS ? 2 * s.qps : 0),
		       step = 4 / ROUNDS(4);
	static uint32_t first;

	for (s.room = first++ % step; s.room <= most; s.room += step)
		compare(state, &s);
}

static void
all_scenes(void **state, enum kind kind)
{
	static const uint32_t signalled[] = { 0x1f, 0x15, 0x0a, 0x10, 0 };
	const uint32_t kinds = sends_first(kind) ? ARRAY_LEN(signalled) : 1;

	taken = 0;
	for (uint32_t i = 0; i < kinds; i++)
		for (uint32_t qps = 1; qps <= 3; qps += 2)
			for (uint32_t k = 0; k < (qps == 1 ? 3 : 6); k++)
				all_rooms(state, (struct scene){ .kind = kind,
							 .qps = qps,
							 .signalled = signalled[i],
							 .alone = k % 3 != 0,
							 .resized = k % 3 == 2,
							 .mixed = k >= 3 });
	assert_true(taken != 0);
}

static void
REQ_CLS_F_01_acks(void **state)
{
	for (enum kind k = ACKS; k <= ACKS_REPEATED; k++)
		all_scenes(state, k);
}

static void
REQ_CLS_F_01_acks_and_sends(void **state)
{
	all_scenes(state, ACKS_AND_SENDS);
}

static void
REQ_CLS_F_01_reads(void **state)
{
	all_scenes(state, READS);
}

static void
RESP_CLS_G_01_receives(void **state)
{
	for (enum kind k = SENDS; k <= WRITES_IMM; k++)
		all_scenes(state, k);
}

/* SRQ-02, too: its limit is reached at any place. */
static void
RESP_CLS_G_01_shared_receives(void **state)
{
	for (uint32_t limit = 0; limit <= EACH + 1; limit++)
		for (uint32_t k = 0; k < 4; k++)
			all_rooms(state, (struct scene){ .kind = SENDS_SHARED,
						 .qps = 2,
						 .signalled = 1,
						 .limit = limit,
						 .alone = (k & 1) != 0,
						 .mixed = (k & 2) != 0 });
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(REQ_CLS_F_01_acks),
		TEST(REQ_CLS_F_01_acks_and_sends),
		TEST(REQ_CLS_F_01_reads),
		TEST(RESP_CLS_G_01_receives),
		TEST(RESP_CLS_G_01_shared_receives),
	};

	return cmocka_run_group_tests(tests, bed_group_setup, NULL);
}
