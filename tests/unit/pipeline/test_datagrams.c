/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Datagrams are sent in two ways: many at once, as most are, and one by one, as those are that are
 * traced. Random requests, each session in both: what comes out is the same.
 */
#include <string.h>

#include "bed.h"
#include "qp_ah.h"

#undef fail /* cmocka's; the pipeline has a function of that name */

enum { SESSIONS = 150, TURNS = 12, OWN_QPN = 0x12, QUEUE = 16 };

#define OWN_QKEY 0x11111111u

/** Handles that requests may name. */
enum handle { PLAIN, BY_QP, IPV6, TAGGED, BOTH, NOBODY, GROUP, STRANGER, GONE, HANDLES };

struct outcome {
	uint64_t frames;
	uint32_t frames_n;
	uint64_t completions;
	uint32_t completions_n, failed_n;
	uint64_t sent_pkts, no_neighbor;
	uint32_t next;
};

static uint32_t
next(uint32_t *seed)
{
	*seed = *seed * 1664525u + 1013904223u;
	return *seed >> 8;
}

static bool
one_in(uint32_t *seed, uint32_t n)
{
	return next(seed) % n == 0;
}

static uint64_t
mix(uint64_t h, const void *bytes, size_t n)
{
	for (size_t i = 0; i < n; i++)
		h = (h ^ ((const uint8_t *)bytes)[i]) * UINT64_C(0x100000001b3);
	return h;
}

static struct wire_path
path_to(uint8_t last)
{
	struct wire_path p = { .tos = 2, .ttl = 64, .sport = 0xc800, .smac = { 2, 0, 0, 0, 0, 1 } };

	memcpy(p.dmac, (const uint8_t[]){ 2, 0, 0, 0, 0, last }, 6);
	memcpy(p.src_ip, (const uint8_t[]){ 192, 0, 2, 1 }, 4);
	memcpy(p.dst_ip, (const uint8_t[]){ 192, 0, 2, last }, 4);
	return p;
}

static void
make_handles(struct bed *b, uint32_t h[HANDLES])
{
	const uint32_t port = bed_port();
	struct wire_path plain = path_to(2), other = path_to(3), wide = path_to(4),
			 group = path_to(5), tagged = path_to(6), both = path_to(7);

	wide.ipv6 = both.ipv6 = true;
	tagged.vlan = both.vlan = true;
	tagged.vlan_tci = 0x6000; /* of no VLAN */
	both.vlan_tci = 0x2007;
	group.dmac[0] = 1;
	h[PLAIN] = qp_ah_add(b->ahs, PD, port, &plain, 0, true);
	h[BY_QP] = qp_ah_add(b->ahs, PD, port, &other, 0x3fff, true);
	h[IPV6] = qp_ah_add(b->ahs, PD, port, &wide, 0, true);
	h[TAGGED] = qp_ah_add(b->ahs, PD, port, &tagged, 0, true);
	h[BOTH] = qp_ah_add(b->ahs, PD, port, &both, 0x3fff, true);
	h[NOBODY] = qp_ah_add(b->ahs, PD, port, &plain, 0, false);
	h[GROUP] = qp_ah_add(b->ahs, PD, port, &group, 0, true);
	h[STRANGER] = qp_ah_add(b->ahs, PD + 1, port, &plain, 0, true);
	h[GONE] = qp_ah_add(b->ahs, PD, port, &plain, 0, true);
	qp_ah_remove(b->ahs, h[GONE]);
}

static struct qp *
make_qp(struct bed *b)
{
	const struct qp_alloc_params params = { .type = QPT_UD,
		.max_recv_wr = 1,
		.max_recv_sge = 1,
		.max_send_wr = QUEUE,
		.max_send_sge = 2,
		.max_inline = 64 };
	struct qp *qp = bed_qp_with(b, OWN_QPN, 0, &params);

	qp->qkey = OWN_QKEY;
	return qp;
}

/** Mostly what the short way takes; now and then what it must leave. */
static void
post(struct ring *sq, uint32_t *seed, const uint32_t h[HANDLES])
{
	static const uint32_t qkeys[] = { OWN_QKEY, 0x12345678, 0x80010000 };
	struct ring_send_wqe *w = ring_produce_slot(sq, QUEUE);
	uint32_t len = one_in(seed, 4) ? PMTU : next(seed) % PMTU;
	uint32_t to = one_in(seed, 30) ? next(seed) % HANDLES : next(seed) % NOBODY;

	if (w == NULL)
		return;
	if (one_in(seed, 200))
		len = PMTU + 1; /* UD-12 */
	memset(w, 0, sq->stride);
	w->wr_id = next(seed);
	w->opcode = one_in(seed, 200)  ? WR_RDMA_WRITE /* UD-25 */
		    : one_in(seed, 10) ? WR_SEND_WITH_IMM
				       : WR_SEND;
	w->flags = (one_in(seed, 2) ? SEND_SIGNALED : 0) | (one_in(seed, 4) ? SEND_SOLICITED : 0) |
		   (one_in(seed, 50) ? SEND_FENCE : 0);
	w->remote_addr = (uint64_t)qkeys[next(seed) % 3] << 32 | (next(seed) & 0xffffff);
	w->rkey = h[to];
	w->imm = 0x11223344;
	w->num_sge = one_in(seed, 20) ? 2 : len != 0;
	for (uint32_t i = 0; i < w->num_sge; i++)
		w->sge[i] = (struct ring_sge){ MR_VA + next(seed) % 1000,
			w->num_sge == 2 ? 30 : len, one_in(seed, 200) ? 0xdead00 : MR_KEY };
	if (one_in(seed, 8)) { /* more than the queue pair takes, now and then */
		w->flags |= SEND_INLINE;
		w->inline_len = next(seed) % 66;
		for (uint32_t i = 0; i < 64; i++)
			((uint8_t *)w->sge)[i] = (uint8_t)next(seed);
	}
	ring_produce_commit(sq);
}

static void
look(struct bed *b, struct outcome *o)
{
	struct ring_cqe c[32];
	uint32_t n;

	for (uint32_t i = 0; i < b->out_n; i++)
		o->frames = mix(o->frames, rte_pktmbuf_mtod(b->out[i], void *), b->out[i]->pkt_len);
	o->frames_n += b->out_n;
	while ((n = ring_cq_poll(&b->cq.ring, c, 32)) != 0)
		for (uint32_t i = 0; i < n; i++) {
			o->completions =
				mix(o->completions, &c[i], offsetof(struct ring_cqe, reserved));
			o->completions_n++;
			o->failed_n += c[i].status != WC_SUCCESS;
		}
}

static void
session(uint32_t seed, bool traced, struct outcome *o)
{
	struct mbox_msg posted = { .type = MBOX_QP_POSTED };
	uint32_t h[HANDLES];
	void *state = NULL;
	struct ring sq;
	struct bed *b;
	struct qp *qp;

	assert_int_equal(bed_setup(&state), 0);
	b = state;
	memset(o, 0, sizeof(*o));
	for (uint32_t i = 0; i < MR_LEN; i++)
		b->memory[i] = (uint8_t)(i * 7 + 1);
	make_handles(b, h);
	qp = make_qp(b);
	qp->flags |= traced ? QPF_TRACE : 0;
	ring_attach(&sq, qp->sq.ring.sh, qp->sq.ring.mask + 1, qp->sq.ring.stride, false);
	posted.qp.qp = qp;
	bed_forget_output(b);
	for (uint32_t turn = 0; turn < TURNS; turn++) {
		for (uint32_t i = next(&seed) % 8; i != 0; i--)
			post(&sq, &seed, h);
		assert_int_equal(bed_tell(b, &posted), 0);
		bed_turn(b);
		look(b, o);
		b->now += 1000;
	}
	o->sent_pkts = qp_stat(qp, STAT_sent_pkts);
	o->no_neighbor = qp_stat(qp, STAT_tx_no_neighbor);
	o->next = qp->req.next.v;
	bed_qp_gone(b, qp);
	bed_teardown(&state);
}

/* UD-05, UD-07, UD-12, UD-16: bytes, completions, counts. */
static void
UD_05_both_ways_agree(void **state UNUSED)
{
	uint32_t frames = 0, failed = 0, completions = 0;

	for (uint32_t seed = 1; seed <= SESSIONS; seed++) {
		struct outcome a, b;

		session(seed * 2654435761u, false, &a);
		session(seed * 2654435761u, true, &b);
		if (memcmp(&a, &b, sizeof(a)) != 0)
			print_message("# session %u\n", seed);
		assert_int_equal(a.frames_n, b.frames_n);
		assert_int_equal(a.completions_n, b.completions_n);
		assert_int_equal(a.failed_n, b.failed_n);
		assert_int_equal(a.sent_pkts, b.sent_pkts);
		assert_int_equal(a.no_neighbor, b.no_neighbor);
		assert_int_equal(a.next, b.next);
		assert_true(a.completions == b.completions);
		assert_true(a.frames == b.frames);
		frames += a.frames_n;
		completions += a.completions_n;
		failed += a.failed_n;
	}
	assert_true(frames > SESSIONS * 8 && failed > SESSIONS / 4 &&
		    completions > failed + SESSIONS * 4);
}

/** One QP, and datagrams of eight bytes that are posted to it together. */
struct few {
	struct bed *b;
	struct qp *qp;
	uint32_t h[HANDLES];
	struct ring sq;
};

static void
few_begin(struct few *f)
{
	void *bed = NULL;

	assert_int_equal(bed_setup(&bed), 0);
	f->b = bed;
	make_handles(f->b, f->h);
	f->qp = make_qp(f->b);
	ring_attach(
		&f->sq, f->qp->sq.ring.sh, f->qp->sq.ring.mask + 1, f->qp->sq.ring.stride, false);
}

static void
few_post(struct few *f, uint32_t handle, uint32_t lkey)
{
	struct ring_send_wqe *w = ring_produce_slot(&f->sq, QUEUE);

	memset(w, 0, f->sq.stride);
	w->opcode = WR_SEND;
	w->flags = SEND_SIGNALED;
	w->rkey = handle;
	w->num_sge = 1;
	w->sge[0] = (struct ring_sge){ MR_VA, 8, lkey };
	ring_produce_commit(&f->sq);
}

static void
few_send(struct few *f)
{
	struct mbox_msg posted = { .type = MBOX_QP_POSTED, .qp.qp = f->qp };

	assert_int_equal(bed_tell(f->b, &posted), 0);
	bed_turn(f->b);
	expect_silence(f->b);
}

static void
few_end(struct few *f)
{
	void *bed = f->b;

	bed_qp_gone(f->b, f->qp);
	bed_teardown(&bed);
}

/*
 * RT-05, UD-16: the neighbour's MAC is not known any more. What goes to it is sent as if lost, and
 * a bad list is one, also where there is nobody to send to.
 */
static void
RT_05_UD_16_nobody(void **state UNUSED)
{
	struct few f;

	few_begin(&f);
	few_post(&f, f.h[NOBODY], MR_KEY);
	few_post(&f, f.h[NOBODY], 0xdead00);
	few_send(&f);
	assert_int_equal(bed_cqe(f.b).status, WC_SUCCESS);
	assert_int_equal(bed_cqe(f.b).status, WC_LOC_PROT_ERR);
	assert_int_equal(atomic_load(&f.qp->state), QPS_SQE);
	assert_int_equal(qp_stat(f.qp, STAT_tx_no_neighbor), 1);
	few_end(&f);
}

/* UD-05: a client may write any number for a handle: one that was never made leads nowhere. */
static void
UD_05_never_made(void **state UNUSED)
{
	for (uint32_t handle = 0; handle < 4; handle++) {
		struct few f;

		few_begin(&f);
		few_post(&f, handle, MR_KEY);
		few_send(&f);
		assert_int_not_equal(bed_cqe(f.b).status, WC_SUCCESS);
		assert_int_equal(qp_stat(f.qp, STAT_sent_pkts), 0);
		few_end(&f);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(UD_05_both_ways_agree),
		cmocka_unit_test(RT_05_UD_16_nobody),
		cmocka_unit_test(UD_05_never_made),
	};

	return cmocka_run_group_tests(tests, bed_group_setup, NULL);
}
