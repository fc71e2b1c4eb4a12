/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Requests on their way out, READs, what is inline and lists of SGEs above all. Sessions of random
 * ones are played by the short way and by the full one (of a traced QP): the same frames,
 * completions and counts come of both.
 */
#include <string.h>

#include "bed.h"

enum { SESSIONS = 60, TURNS = 60, QUEUE = 64 };
enum { DEPTH = 4 /* max_rd_atomic of the bed's QP */, INLINE = 64 /* max_inline_data */ };

#define RO_KEY 0x3003u /* a region that nothing may be written to */
#define RO_VA  0x900000u

struct outcome {
	uint64_t frames; /* hash */
	uint64_t completions;
	uint32_t frames_n;
	uint32_t completions_n;
	uint32_t failed_n;
	uint32_t reads_n;
	uint32_t next; /* PSN */
	uint32_t reads;
	uint64_t sent_pkts;
};

/** What the peer has to answer. */
struct asked {
	uint8_t opcode;
	uint32_t psn;
	uint32_t len;
};

struct session {
	struct bed *b;
	struct ring sq;
	struct asked asked[QUEUE];
	uint32_t head;
	uint32_t tail;
	uint32_t seed;
	uint64_t posted;
	struct outcome *o;
};

static uint32_t
next(struct session *s)
{
	s->seed = s->seed * 1664525u + 1013904223u;
	return s->seed >> 8;
}

static void
hash(uint64_t *h, const void *bytes, size_t n)
{
	for (size_t i = 0; i < n; i++)
		*h = (*h ^ ((const uint8_t *)bytes)[i]) * UINT64_C(0x100000001b3);
}

static struct ring_send_wqe *
post(struct session *s, uint8_t opcode, uint32_t len, uint32_t key, uint8_t flags)
{
	struct ring_send_wqe *wqe = ring_produce_slot(&s->sq, s->sq.mask + 1);

	if (wqe == NULL)
		return NULL;
	memset(wqe, 0, s->sq.stride);
	wqe->wr_id = s->posted++;
	wqe->opcode = opcode;
	wqe->flags = flags;
	wqe->num_sge = 1;
	wqe->sge[0] = (struct ring_sge){ .addr = key == RQ_KEY   ? RQ_VA
						 : key == RO_KEY ? RO_VA
								 : MR_VA,
		.length = len,
		.lkey = key };
	if ((flags & SEND_INLINE) != 0) {
		wqe->inline_len = len;
		for (uint32_t i = 0; i < INLINE; i++)
			((uint8_t *)wqe->sge)[i] = (uint8_t)(wqe->wr_id * 3 + i);
	}
	wqe->remote_addr = UINT64_C(0x7f0012345600) + s->posted;
	wqe->rkey = 0x77;
	wqe->imm = (uint32_t)wqe->wr_id * 0x01010101u;
	ring_produce_commit(&s->sq);
	return wqe;
}

/** Its bytes are those of two SGEs; the worker has not looked yet. */
static void
cut_in_two(struct ring_send_wqe *wqe, uint32_t first)
{
	wqe->num_sge = 2;
	wqe->sge[1] = wqe->sge[0];
	wqe->sge[0].length = first;
	wqe->sge[1].addr += first;
	wqe->sge[1].length -= first;
}

static void
post_some(struct session *s)
{
	static const uint8_t opcodes[] = { WR_RDMA_READ, WR_RDMA_READ, WR_RDMA_READ, WR_RDMA_READ,
		WR_RDMA_WRITE, WR_SEND, WR_RDMA_WRITE_WITH_IMM, WR_SEND_WITH_IMM };
	static const uint32_t keys[] = { MR_KEY, RQ_KEY };
	struct mbox_msg m = { .type = MBOX_QP_POSTED };

	for (uint32_t n = next(s) % 8; n != 0; n--) {
		const uint8_t opcode = opcodes[next(s) % ARRAY_LEN(opcodes)];
		const bool read = opcode == WR_RDMA_READ, odd = next(s) % 100 == 0;
		const bool in_entry = !read && next(s) % 3 == 0;
		const uint32_t most = read ? 2 * PMTU : PMTU, few = next(s) % 2 ? 64 : most;
		const uint8_t fence = next(s) % 16 == 0 ? SEND_FENCE : 0;
		const uint8_t se = next(s) % 4 == 0 ? SEND_SOLICITED : 0;
		const uint32_t len = next(s) % ((in_entry ? INLINE : few) + 1);
		const uint32_t key = keys[next(s) % 2];
		struct ring_send_wqe *wqe;

		/* A WRITE may be made of what a READ may not be placed in. */
		wqe = post(s, opcode, len,
			!read && next(s) % 2 ? RO_KEY
			: odd                ? RO_KEY
					     : key,
			SEND_SIGNALED | fence | se | (in_entry ? SEND_INLINE : 0));
		if (wqe != NULL && !in_entry && next(s) % 4 == 0) {
			cut_in_two(wqe, next(s) % (len + 1));
			wqe->sge[1].lkey ^= odd && !read ? 0xbad : 0;
		}
	}
	m.qp.qp = s->b->qp;
	assert_int_equal(bed_tell(s->b, &m), 0);
}

/** Note what left. */
static void
look(struct session *s)
{
	for (struct bed *b = s->b; b->out_at < b->out_n; b->out_at++) {
		const struct wire_pkt *k = &b->pkt[b->out_at];
		struct asked *a = &s->asked[s->tail % QUEUE];

		hash(&s->o->frames, k->frame, k->frame_len);
		s->o->frames_n++;
		s->o->reads_n += k->opcode == OP_RC_READ_REQUEST;
		assert_true(s->tail - s->head < QUEUE);
		if (k->opcode != OP_RC_READ_REQUEST && (k->flags & PKT_ACKREQ) == 0)
			continue;
		*a = (struct asked){ k->opcode, k->psn.v,
			k->opcode == OP_RC_READ_REQUEST ? wire_reth(k).dma_len : 0 };
		s->tail++;
	}
}

/** The oldest is answered. */
static void
answer(struct session *s)
{
	const struct asked *a = &s->asked[s->head++ % QUEUE];
	struct wire_fields f = send_only(a->psn, (uint16_t)(a->len < PMTU ? a->len : PMTU));

	f.flags = 0;
	f.aeth.syndrome = AETH_CREDIT_NONE;
	f.opcode = OP_RC_READ_RESPONSE_ONLY;
	if (a->opcode != OP_RC_READ_REQUEST) {
		f.opcode = OP_RC_ACKNOWLEDGE;
		f.payload_len = 0;
	} else if (a->len > PMTU) {
		f.opcode = OP_RC_READ_RESPONSE_FIRST;
		bed_send(s->b, &f);
		f = send_only(a->psn + 1, (uint16_t)(a->len - PMTU));
		f.flags = 0;
		f.aeth.syndrome = AETH_CREDIT_NONE;
		f.opcode = OP_RC_READ_RESPONSE_LAST;
	}
	bed_send(s->b, &f);
}

static void
reap(struct session *s)
{
	struct ring_cqe c;

	while (ring_cq_poll(&s->b->cq.ring, &c, 1) == 1) {
		hash(&s->o->completions, &c.wr_id, sizeof(c.wr_id));
		hash(&s->o->completions, &c.status, sizeof(c.status));
		hash(&s->o->completions, &c.byte_len, sizeof(c.byte_len));
		s->o->completions_n++;
		s->o->failed_n += c.status == 4 /* LOC_PROT_ERR */;
	}
}

static void
play(uint32_t seed, bool traced, struct outcome *o)
{
	void *state = NULL;
	struct session s = { .seed = seed, .o = o };
	struct mem_region *ro = mem_region_alloc();
	struct bed *b;

	assert_int_equal(bed_setup(&state), 0);
	memset(o, 0, sizeof(*o));
	s.b = b = state;
	assert_non_null(ro);
	ro->va = RO_VA;
	ro->length = MR_LEN;
	ro->host = b->memory;
	ro->key = RO_KEY;
	ro->pd = PD;
	assert_int_equal(mem_table_add(b->mem, ro), 0);
	for (uint32_t i = 0; i < MR_LEN; i++)
		b->memory[i] = (uint8_t)(i * 7 + 1);
	b->qp->flags |= traced ? QPF_TRACE : 0;
	ring_attach(
		&s.sq, b->qp->sq.ring.sh, b->qp->sq.ring.mask + 1, b->qp->sq.ring.stride, false);
	bed_forget_output(b);
	for (uint32_t turn = 0; turn < TURNS; turn++) {
		post_some(&s);
		for (uint32_t n = next(&s) % 6; n != 0 && s.head != s.tail; n--)
			answer(&s);
		bed_turn(b);
		look(&s);
		reap(&s);
		assert_true(b->qp->req.reads <= DEPTH);
		b->now += 1000;
	}
	o->sent_pkts = qp_stat(b->qp, STAT_sent_pkts);
	o->next = b->qp->req.next.v;
	o->reads = b->qp->req.reads;
	mem_table_remove(b->mem, RO_KEY);
	bed_teardown(&state);
	mem_region_free(ro);
}

/* REQ-01, REQ-10, REQ-11, REQ-CLS-B-05: READs wait for each other, and for a place. */
static void
REQ_10_both_ways_agree(void **state UNUSED)
{
	uint32_t reads = 0, failed = 0, done = 0;

	for (uint32_t seed = 1; seed <= SESSIONS; seed++) {
		struct outcome a, b;

		play(seed * 2654435761u, false, &a);
		play(seed * 2654435761u, true, &b);
		if (memcmp(&a, &b, sizeof(a)) != 0)
			print_message("# session %u\n", seed);
		assert_int_equal(a.frames_n, b.frames_n);
		assert_int_equal(a.completions_n, b.completions_n);
		assert_int_equal(a.failed_n, b.failed_n);
		assert_int_equal(a.next, b.next);
		assert_int_equal(a.reads, b.reads);
		assert_int_equal(a.sent_pkts, b.sent_pkts);
		assert_true(a.frames == b.frames);
		assert_true(a.completions == b.completions);
		reads += a.reads_n;
		failed += a.failed_n;
		done += a.completions_n;
	}
	assert_in_range(failed, SESSIONS / 4, SESSIONS);
	assert_true(reads > SESSIONS * 8 && done > reads);
}

/** A bed whose QP is traced, and so takes the full path, or not. */
static struct bed *
begin(struct session *one, void **state, bool traced)
{
	struct qp *qp;

	assert_int_equal(bed_setup(state), 0);
	one->b = *state;
	qp = one->b->qp;
	qp->flags |= traced ? QPF_TRACE : 0;
	ring_attach(&one->sq, qp->sq.ring.sh, qp->sq.ring.mask + 1, qp->sq.ring.stride, false);
	return one->b;
}

/* REQ-CLS-B-05: the key of a READ's place has to allow writing, a WRITE's source has not. */
static void
REQ_CLS_B_05_place_of_a_read(void **state UNUSED)
{
	for (uint32_t traced = 0; traced < 2; traced++) {
		struct outcome o;
		void *s = NULL;
		struct bed *b;
		struct session one = { .o = &o };
		struct mbox_msg m = { .type = MBOX_QP_POSTED };

		b = begin(&one, &s, traced != 0);
		b->mr->access = ACCESS_REMOTE_READ;
		post(&one, WR_RDMA_READ, 64, RQ_KEY, SEND_SIGNALED);
		post(&one, WR_RDMA_WRITE, 64, MR_KEY, SEND_SIGNALED);
		post(&one, WR_RDMA_READ, 64, MR_KEY, SEND_SIGNALED);
		m.qp.qp = b->qp;
		assert_int_equal(bed_tell(b, &m), 0);
		bed_turns(b);
		expect_packet(b, OP_RC_READ_REQUEST, S, 0);
		expect_packet(b, OP_RC_WRITE_ONLY, S + 1, 64);
		if (b->out_at != b->out_n) /* once more, to be told about it */
			expect_packet(b, OP_RC_WRITE_ONLY, S + 1, 64);
		expect_silence(b);
		bed_teardown(&s);
	}
}

/*
 * REQ-CLS-B-01: one of several requests has a bad key in the last of its SGEs. Those before it
 * leave whole and may finish, nothing behind it leaves.
 */
static void
REQ_CLS_B_01_bad_key_in_a_list(void **state UNUSED)
{
	static const uint8_t status[] = { WC_SUCCESS, WC_SUCCESS, WC_SUCCESS, WC_LOC_PROT_ERR,
		WC_WR_FLUSH_ERR };

	for (uint32_t traced = 0; traced < 2; traced++) {
		struct outcome o;
		void *s = NULL;
		struct bed *b;
		struct session one = { .o = &o };
		struct mbox_msg m = { .type = MBOX_QP_POSTED };
		struct wire_fields ack = send_only(S + 2, 0);

		b = begin(&one, &s, traced != 0);
		for (uint32_t i = 0; i < 5; i++) {
			struct ring_send_wqe *wqe = post(&one, WR_SEND, 96, MR_KEY, SEND_SIGNALED);

			cut_in_two(wqe, 40);
			wqe->sge[1].lkey ^= i == 3 ? 0xbad : 0;
		}
		m.qp.qp = b->qp;
		assert_int_equal(bed_tell(b, &m), 0);
		bed_turns(b);
		for (uint32_t i = 0; i < 3; i++)
			expect_packet(b, OP_RC_SEND_ONLY, S + i, 96);
		if (b->out_at != b->out_n) /* once more, to be told about it */
			expect_packet(b, OP_RC_SEND_ONLY, S + 2, 96);
		expect_silence(b);
		bed_no_cqe(b);
		ack.opcode = OP_RC_ACKNOWLEDGE;
		ack.flags = 0;
		ack.aeth.syndrome = AETH_CREDIT_NONE;
		bed_send(b, &ack);
		bed_turns(b);
		expect_silence(b);
		for (uint32_t i = 0; i < ARRAY_LEN(status); i++) {
			const struct ring_cqe c = bed_cqe(b);

			assert_int_equal(c.wr_id, i);
			assert_int_equal(c.status, status[i]);
		}
		bed_teardown(&s);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(REQ_10_both_ways_agree),
		cmocka_unit_test(REQ_CLS_B_05_place_of_a_read),
		cmocka_unit_test(REQ_CLS_B_01_bad_key_in_a_list),
	};

	return cmocka_run_group_tests(tests, bed_group_setup, NULL);
}
