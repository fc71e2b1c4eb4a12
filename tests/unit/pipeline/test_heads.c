/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Requests of each kind on each kind of path, IPv4 and IPv6, with a tag, without, and with one that
 * has no VLAN, to others and to a QP of the same port: the fast path makes them, and each byte is
 * what the full path makes.
 */
#include <string.h>

#include "bed.h"
#include "local.h"
#include "qp_ah.h"
#include "stage.h"

#undef fail /* cmocka's; the pipeline has a function of that name */

enum { PATHS = 6, POSTS = 14, READS = 4, UD_POSTS = 16, ROUNDS = 2, MOST = 512, ROOM = 1200 };

/* ---- what is made: the linker sends the calls here ------------------------------------------- */

static struct {
	uint32_t len;
	uint8_t bytes[ROOM];
} seen[2][MOST];
static uint32_t seen_n[2], made_fast;
static bool full; /* all take the full path */

uint32_t __real_pipeline_fast_requests(
	struct worker *w, struct qp *qp, uint8_t port, struct rte_mbuf **m, uint32_t *n);
uint32_t __wrap_pipeline_fast_requests(
	struct worker *w, struct qp *qp, uint8_t port, struct rte_mbuf **m, uint32_t *n);
uint32_t __real_stage_request(struct worker *w);
uint32_t __wrap_stage_request(struct worker *w);

uint32_t
__wrap_pipeline_fast_requests(
	struct worker *w, struct qp *qp, uint8_t port, struct rte_mbuf **m, uint32_t *n)
{
	const uint32_t made = full ? 0 : __real_pipeline_fast_requests(w, qp, port, m, n);

	made_fast += made;
	return made;
}

/** A frame, with its payload where that is lent. A local one's ICRC is nobody's to look at. */
static void
note(const struct worker *w, const struct rte_mbuf *m, bool local)
{
	uint8_t *frame = rte_pktmbuf_mtod(m, uint8_t *), *bytes = seen[full][seen_n[full]].bytes;
	const uint32_t len = m->pkt_len;

	assert_in_range(seen_n[full], 0, MOST - 1);
	assert_in_range(len, 60, ROOM);
	assert_int_equal(m->data_len, len);
	memcpy(bytes, frame, len);
	if (local_is_lent(w, m))
		memcpy(bytes + local_loan(frame)->at, local_loan(frame)->from,
			local_loan(frame)->len);
	if (local)
		memset(bytes + len - WIRE_ICRC_LEN, 0, WIRE_ICRC_LEN);
	seen[full][seen_n[full]++].len = len;
}

uint32_t
__wrap_stage_request(struct worker *w)
{
	uint32_t from[PIPELINE_MAX_OUTS], made;

	for (uint32_t out = 0; out < PIPELINE_MAX_OUTS; out++)
		from[out] = w->tx[out].tail;
	made = __real_stage_request(w);
	for (uint32_t out = 0; out < w->outs_n; out++)
		for (uint32_t i = from[out]; i < w->tx[out].tail; i++)
			note(w, w->tx[out].m[i], out >= w->wires_n);
	return made;
}

/* ---- paths and requests ---------------------------------------------------------------------- */

static struct wire_path
path_of(uint32_t kind, bool local)
{
	static const uint16_t tci[] = { 0x4007, 0xa000 }; /* the second one is a priority tag */
	static const uint8_t ipv6[2][16] = { { 0xfd, [15] = 1 }, { 0xfd, [15] = 2 } };
	static const uint8_t ipv4[2][4] = { { 192, 0, 2, 1 }, { 192, 0, 2, 2 } };
	const uint8_t to = local ? 0 : 1;
	struct wire_path p = { .tos = (uint8_t)(2 + kind * 4),
		.ttl = (uint8_t)(60 + kind),
		.sport = (uint16_t)(0xc100 + kind),
		.flow_label = 0x12345,
		.local = local,
		.smac = { 2, 0, 0, 0, 0, 1 },
		.dmac = { 2, 0, 0, 0, 0, (uint8_t)(1 + to) } };

	p.ipv6 = kind % 2 != 0;
	memcpy(p.src_ip, p.ipv6 ? ipv6[0] : ipv4[0], p.ipv6 ? 16 : 4);
	memcpy(p.dst_ip, p.ipv6 ? ipv6[to] : ipv4[to], p.ipv6 ? 16 : 4);
	p.vlan = kind >= 2;
	p.vlan_tci = tci[kind >= 4];
	return p;
}

/** All that one packet carries; each pad, and lengths around those that are summed while copied. */
static const struct {
	uint8_t opcode, flags, sges;
	uint16_t len;
} posts[POSTS] = {
	{ WR_SEND, 0, 1, 64 },
	{ WR_RDMA_WRITE, 0, 1, 64 },
	{ WR_SEND, SEND_SOLICITED, 1, 1 },
	{ WR_RDMA_WRITE, SEND_SIGNALED, 1, 2 },
	{ WR_RDMA_WRITE, 0, 1, 767 },
	{ WR_SEND, 0, 1, 768 },
	{ WR_RDMA_WRITE, 0, 1, PMTU },
	{ WR_SEND_WITH_IMM, SEND_SOLICITED, 1, 3 },
	{ WR_RDMA_WRITE_WITH_IMM, 0, 1, PMTU },
	{ WR_RDMA_WRITE_WITH_IMM, SEND_SOLICITED, 1, PMTU - 2 },
	{ WR_SEND, 0, 2, 101 },
	{ WR_RDMA_WRITE_WITH_IMM, 0, 3, 60 },
	{ WR_SEND, SEND_INLINE, 0, 20 },
	{ WR_RDMA_WRITE, SEND_INLINE, 0, 33 },
};
static const uint16_t reads[READS] = { 64, 1, PMTU, 65 };

static struct ring_send_wqe *
post(struct ring *sq, uint8_t opcode, uint8_t flags, uint32_t sges, uint32_t len)
{
	struct ring_send_wqe *s = ring_produce_slot(sq, 16);

	assert_non_null(s);
	memset(s, 0, sq->stride);
	s->opcode = opcode;
	s->flags = flags;
	s->remote_addr = UINT64_C(0x1122334455667788);
	s->rkey = 0x99aabbcc;
	s->imm = 0xddeeff00;
	s->num_sge = sges;
	for (uint32_t i = 0; i < sges; i++)
		s->sge[i] = (struct ring_sge){ MR_VA + 5000 * i + 3,
			i + 1 < sges ? len / sges : len - i * (len / sges), MR_KEY };
	if ((flags & SEND_INLINE) != 0) {
		s->inline_len = len;
		memset(s->sge, 0x77, len);
	}
	ring_produce_commit(sq);
	return s;
}

static void
turns_of(struct bed *b, struct qp *qp)
{
	struct mbox_msg m = { .type = MBOX_QP_POSTED, .qp.qp = qp };

	assert_int_equal(bed_tell(b, &m), 0);
	bed_turns(b);
}

static struct qp *
qp_of(struct bed *b, uint8_t type, struct ring *sq)
{
	const struct qp_alloc_params params = { .type = type,
		.max_recv_wr = 1,
		.max_recv_sge = 1,
		.max_send_wr = 16,
		.max_send_sge = 4,
		.max_inline = 64 };
	struct qp *qp = bed_qp_with(b, QPN + 1, type == QPT_UD ? 0 : PEER_QPN + 1, &params);

	ring_attach(sq, qp->sq.ring.sh, qp->sq.ring.mask + 1, qp->sq.ring.stride, false);
	return qp;
}

static void
go(struct bed *b, struct qp *qp, uint32_t kind, bool local)
{
	struct qp_attr a = qp->attr;

	a.path = path_of(kind, local);
	a.path_resolved = true;
	assert_int_equal(bed_modify(b, qp, &a, QP_ATTR_AV), 0);
	assert_int_equal((qp->flags & QPF_LOCAL) != 0, local);
}

/**
 * Half of the requests on one kind of path, and half of them on the next: as after a migration, the
 * headers are of the path that is now.
 */
static void
requests(struct bed *b, uint8_t type, uint32_t kind, bool local)
{
	struct ring sq;
	struct qp *qp = qp_of(b, type, &sq);

	for (uint32_t i = 0; i < POSTS; i++) {
		if (i % (POSTS / ROUNDS) == 0)
			go(b, qp, (kind + i / (POSTS / ROUNDS)) % PATHS, local);
		post(&sq, posts[i].opcode, posts[i].flags, posts[i].sges, posts[i].len);
		if (i % (POSTS / ROUNDS) == POSTS / ROUNDS - 1)
			turns_of(b, qp);
	}
	bed_qp_gone(b, qp);
	if (type != QPT_RC)
		return;
	qp = qp_of(b, type, &sq);
	go(b, qp, kind, local);
	for (uint32_t i = 0; i < READS; i++)
		post(&sq, WR_RDMA_READ, 0, 1, reads[i]);
	turns_of(b, qp);
	bed_qp_gone(b, qp);
}

static void
datagrams(struct bed *b)
{
	struct ring sq;
	struct qp *qp = qp_of(b, QPT_UD, &sq);
	uint32_t handle[PATHS];

	qp->qkey = 0x11111111;
	for (uint32_t i = 0; i < PATHS; i++) {
		const struct wire_path path = path_of(i, false);

		handle[i] = qp_ah_add(b->ahs, PD, bed_port(), &path, i < 3 ? 0x3fff : 0, true);
	}
	for (uint32_t i = 0; i < UD_POSTS; i++) /* each two times, and then in turn */
		post(&sq, WR_SEND, posts[i % 7].flags, 1, posts[i % 7].len)->rkey =
			handle[(i < 2 * PATHS ? i / 2 : i) % PATHS];
	turns_of(b, qp);
	bed_qp_gone(b, qp);
}

/* ---- the comparison -------------------------------------------------------------------------- */

/** @return how many the fast path has made. */
static uint32_t
play(void (*f)(struct bed *b, uint8_t type, uint32_t kind, bool local), uint8_t type, uint32_t kind,
	bool local, bool all_full)
{
	void *state = NULL;
	struct bed *b;

	assert_int_equal(bed_setup(&state), 0);
	b = state;
	for (uint32_t i = 0; i < MR_LEN; i++)
		b->memory[i] = (uint8_t)(i * 7 + (i >> 8));
	full = all_full;
	seen_n[full] = made_fast = 0;
	if (f != NULL)
		f(b, type, kind, local);
	else
		datagrams(b);
	assert_int_equal(bed_teardown(&state), 0);
	return made_fast;
}

static void
compare(uint32_t want)
{
	assert_int_equal(seen_n[0], want);
	assert_int_equal(seen_n[1], want);
	for (uint32_t i = 0; i < want; i++) {
		assert_int_equal(seen[0][i].len, seen[1][i].len);
		assert_memory_equal(seen[0][i].bytes, seen[1][i].bytes, seen[0][i].len);
	}
}

/* WIRE-13, WIRE-14, WIRE-15, REQ-03, LB-01: headers, payloads and ICRCs. */
static void
WIRE_14_each_path(void **state UNUSED)
{
	static const uint8_t types[] = { QPT_RC, QPT_UC };

	for (uint32_t i = 0; i < 2 * 2 * PATHS; i++) {
		const uint8_t type = types[i % 2];
		const uint32_t kind = i / 4, n = POSTS + (type == QPT_RC ? READS : 0);
		const bool local = i / 2 % 2 != 0;
		const uint32_t fast = play(requests, type, kind, local, false);

		/* The loop of IPv4 without a tag, the first kind, leaves what is rare. */
		if (kind == 0 || kind == PATHS - 1)
			assert_in_range(fast, POSTS / ROUNDS, n);
		else
			assert_int_equal(fast, n);
		assert_int_equal(play(requests, type, kind, local, true), 0);
		compare(n);
	}
}

/* UD-05, UD-07, WIRE-15: likewise of address handles, one after another. */
static void
UD_05_each_path(void **state UNUSED)
{
	assert_int_equal(play(NULL, QPT_UD, 0, false, false), UD_POSTS);
	assert_int_equal(play(NULL, QPT_UD, 0, false, true), 0);
	compare(UD_POSTS);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(WIRE_14_each_path),
		cmocka_unit_test(UD_05_each_path),
	};

	return cmocka_run_group_tests(tests, bed_group_setup, NULL);
}
