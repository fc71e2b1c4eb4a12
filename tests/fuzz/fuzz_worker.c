/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Programs for two workers and a client of theirs. Input: steps of eight bytes, the first of which
 * says what it is, and with its highest bit that no turn follows.
 *
 *   0..2  post a send: 1 QP, 2 opcode, 3 flags, 4 lengths, 5 keys, 6 handle, window, SRQ, 7 number
 *   3     post a receive: 1 QP or SRQ, 2 how many, 4 lengths, 5 keys
 *   4, 5  a packet: fuzz_worker_packet.c
 *   6     the client writes to its areas: 1 queue, 2 and 3 where, 4 to 7 what
 *   7     the control lcore: 1 what, 2 which, 3 how
 *   8     time: 1 unit, 2 how much, 3 turns
 *   9     the port takes frames or not: 1
 */
#include "fuzz_worker.h"
#include "qp_snapshot.h"
#include "verbs_wr.h"

enum { STEPS_MAX = 256, LATER = 0x80, KINDS = 10, POST_SRQ = 16 };
enum {
	K_SEND = 0,
	K_RECV = 3,
	K_PACKET = 4,
	K_SCRIBBLE = 6,
	K_CONTROL = 7,
	K_TIME = 8,
	K_PORT = 9
};
enum {
	C_STATE,
	C_ATTACH,
	C_DETACH,
	C_REGION,
	C_WINDOW,
	C_HANDLE,
	C_GROUP,
	C_SRQ,
	C_QUERY,
	C_CLIENT,
	C_N
};

int LLVMFuzzerInitialize(int *argc, char ***argv);

/* ---- the client ------------------------------------------------------------------------------ */

static void
sges(struct ring_sge *sge, uint32_t n, const uint8_t *s)
{
	static const uint32_t lens[] = { 0, 1, 8, 40, 64, 100, 256, 257, 700, 1024, 2048 };

	for (uint32_t i = 0; i < n; i++) {
		const struct region_plan *r = &fuzz_regions[(s[5] >> i) % REGIONS];
		const uint32_t len = lens[(s[4] + i) % 11];

		sge[i] = (struct ring_sge){ r->va + (s[7] & 15) * 96u, len, r->key };
	}
}

static uint64_t
number(void)
{
	fw.fate[fw.serial] = FATE_POSTED;
	return fw.serial++;
}

static uint32_t
window_key(uint8_t sel)
{
	return ((0x6000u + sel % WINDOWS) << 8) | (sel >= 0x80 ? sel >> 4 & 7 : 1);
}

/** What the opcode needs beyond its list. */
static void
operands(struct ring_send_wqe *w, const struct plan *p, const uint8_t *s)
{
	const struct region_plan *r = &fuzz_regions[s[6] % REGIONS];

	w->rkey = (s[6] & 0x40) != 0 ? window_key(s[6]) : r->key;
	w->remote_addr = r->va + (s[6] >> 4 & 3) * 64u;
	w->compare_add = s[7];
	w->swap = w->opcode == WR_FLUSH ? s[5] + 1u : s[6];
	w->imm = s[7];
	w->xrc_srqn = s[6] % 4;
	if (w->opcode == WR_SEND_WITH_INV || w->opcode == WR_LOCAL_INV)
		w->imm = (s[6] & 0x40) != 0 ? window_key(s[6]) : r->key;
	if (w->opcode == WR_BIND_MW) {
		w->rkey = window_key(s[6]);
		w->imm = s[6] % WINDOWS == 0 ? 0 : window_key(s[6] % WINDOWS) + (s[7] & 3);
		w->remote_addr = fuzz_regions[s[5] % REGIONS].va;
		w->compare_add = (uint64_t)s[4] * 16;
		w->swap = RING_BIND(fuzz_regions[s[5] % REGIONS].key, s[7] >> 2);
	}
	if (p->type == QPT_UD) {
		w->rkey = fw.ah[s[6] % HANDLES] + (s[6] >= 0xf8);
		w->remote_addr = ring_send_to(s[6] % 3 == 0   ? bed_qpn(6 + s[7] % 2)
					      : s[6] % 3 == 1 ? QP_MCAST_QPN
							      : s[7],
			s[7] >= 0xf0 ? 0x80000000 : QKEY);
	}
}

static void
ring_bell(uint32_t i, struct ring *r, uint32_t number_of_qp)
{
	if (ring_bell_is_due(r))
		ring_bells_put(&fw.w[fuzz_plans[i].worker].bells, number_of_qp);
}

static void
post_send(const uint8_t *s)
{
	const uint32_t i = s[1] % QPS;
	struct qp_bed *q = &fw.q[i];
	struct ring_send_wqe *w;
	uint32_t n = s[4] >> 4 & 3;

	if (q->qp == NULL || q->qp->sq.ring.sh == NULL || fw.serial == SERIALS ||
		!verbs_wr_may_post(atomic_load(&q->qp->state)))
		return;
	w = ring_produce_slot(&q->sq.ring, ENTRIES);
	if (w == NULL)
		return;
	memset(w, 0, q->sq.ring.stride);
	w->wr_id = number();
	w->opcode = s[2] < 0xe0 ? s[2] % 12 : WR_FLUSH + (s[2] & 1); /* 10 and 11 are none */
	w->flags = s[3] & 31;
	if (w->opcode == WR_BIND_MW || w->opcode == WR_LOCAL_INV || w->opcode == WR_FLUSH)
		n = s[4] == 0xff; /* rightly none */
	if ((w->flags & SEND_INLINE) != 0)
		w->inline_len = s[4] % (INLINE + 2);
	else
		sges(w->sge, w->num_sge = n, s);
	operands(w, q->plan, s);
	ring_produce_commit(&q->sq.ring);
	ring_bell(i, &q->sq.ring, bed_qpn(i));
}

static void
post_recv(const uint8_t *s)
{
	const uint32_t srq = s[1] % POST_SRQ - QPS, i = s[1] % QPS;
	struct qp_bed *q = &fw.q[i];
	struct ring *ring = &q->rq.ring;

	if (s[1] % POST_SRQ >= QPS)
		ring = &fw.srq[srq % SRQS].post.ring;
	else if (q->plan->type == QPT_XRC_RECV || q->plan->type == QPT_XRC_SEND)
		ring = &fw.srq[1 + i % 2].post.ring;
	else if (q->plan->srq >= 0)
		ring = &fw.srq[q->plan->srq].post.ring;
	else if (q->qp == NULL || atomic_load(&q->qp->state) == QPS_RESET)
		return;
	for (uint32_t k = 0; k <= s[2] % ENTRIES && fw.serial < SERIALS; k++) {
		struct ring_recv_wqe *w = ring_produce_slot(ring, ENTRIES);
		const uint32_t n = 1 + (s[4] >> 4) % SGES;
		struct ring_sge sge[SGES];

		if (w == NULL)
			break;
		sges(sge, n, s);
		ring_recv_fill(w, number(), sge, n);
		ring_produce_commit(ring);
	}
	if (ring == &q->rq.ring && atomic_load(&q->qp->state) == QPS_ERR)
		ring_bell(i, ring, bed_qpn(i) | RING_BELL_RECV);
}

static void
scribble(const uint8_t *s)
{
	const uint32_t i = s[1] % QPS, at = s[2] | (uint32_t)s[3] << 8;
	struct queue *q = s[1] / QPS % 2 == 0 ? &fw.q[i].sq : &fw.q[i].rq;
	uint8_t *mem = q->mem;
	size_t len = q->len;

	if (s[1] >= 0xf0) {
		mem = fw.w[s[1] % WORKERS].bells_mem;
		len = ring_bells_size(BELLS);
	} else if (s[1] >= 0xe0) {
		mem = fw.srq[s[1] % SRQS].post.mem;
		len = fw.srq[s[1] % SRQS].post.len;
	} else if (s[1] >= 0xd8) {
		mem = fw.cq[s[1] % CQS].cq.area.base;
		len = ring_size(CQES, 64);
	}
	fw.scribbled = true;
	/* The words that both sides share are more than one in so many. */
	memcpy(mem + ((s[3] & 0x80) != 0 ? s[2] % 192u & ~3u : at % (len - 3) & ~3u), s + 4, 4);
	ring_bells_put(&fw.w[fuzz_plans[i].worker].bells, bed_qpn(i));
}

/* ---- the control lcore ----------------------------------------------------------------------- */

static void
set_client(const uint8_t *s)
{
	struct mbox_msg m = { .type = MBOX_CLIENT_SET };
	const uint32_t w = s[2] % WORKERS;

	m.client = (struct mbox_client){
		.client = &fw.w[w].client, .rate = (uint64_t)s[3] << 16, .weight = 1 + s[4] % 100
	};
	FUZZ_CHECK(bed_tell(w, &m) == 0);
}

static void
query(uint32_t i)
{
	static struct qp_snapshot snap;
	struct mbox_msg m = { .type = MBOX_QP_QUERY };

	m.query = (struct mbox_query){ fw.q[i].qp, &snap };
	if (fw.q[i].qp != NULL)
		FUZZ_CHECK(bed_tell(fuzz_plans[i].worker, &m) == 0);
}

static void
control(const uint8_t *s)
{
	switch (s[1] % C_N) {
	case C_STATE:
		bed_state(s[2] % QPS, s[3] % 7);
		break;
	case C_ATTACH:
		bed_attach(s[2] % QPS);
		for (uint8_t to = QPS_INIT; to <= QPS_RTS; to++)
			bed_state(s[2] % QPS, to);
		break;
	case C_DETACH:
		bed_detach(s[2] % QPS);
		break;
	case C_REGION:
		bed_region(s[2] % REGIONS, s[3] % 2);
		break;
	case C_WINDOW:
		bed_window(s[2] % WINDOWS, s[3] % 2);
		break;
	case C_HANDLE:
		bed_handle(s[2] % HANDLES, s[3]);
		break;
	case C_GROUP:
		bed_group(s[2] % GROUPS, s[3] % QPS, s[4] % 2);
		break;
	case C_SRQ:
		atomic_store(&fw.srq[s[2] % SRQS].q.limit, s[4] % ENTRIES);
		bed_srq(s[2] % SRQS, s[3] % 2);
		break;
	case C_QUERY:
		query(s[2] % QPS);
		break;
	default:
		set_client(s);
		break;
	}
}

static void
step(const uint8_t *s)
{
	static const ns_t units[] = { TIME_NS_PER_US, TIME_NS_PER_MS, 64 * TIME_NS_PER_MS };
	uint32_t turns = (s[0] & LATER) != 0 ? 0 : 2;

	switch ((s[0] & ~LATER) % KINDS) {
	case K_RECV:
		post_recv(s);
		break;
	case K_PACKET:
	case K_PACKET + 1:
		packet_step(s);
		break;
	case K_SCRIBBLE:
		scribble(s);
		break;
	case K_CONTROL:
		control(s);
		break;
	case K_TIME:
		fw.now += units[s[1] % 3] * s[2];
		turns = s[3] % 16;
		break;
	case K_PORT:
		fw.stuck = s[1] % 2 != 0;
		break;
	default:
		post_send(s);
		break;
	}
	while (turns-- != 0)
		bed_turn();
}

int
LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	bed_start();
	return 0;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < STEP)
		return 0;
	bed_start();
	bed_open();
	for (uint32_t i = 0; i < size / STEP && i < STEPS_MAX; i++)
		step(data + (size_t)i * STEP);
	bed_close();
	return 0;
}

/* ---- built-in programs ----------------------------------------------------------------------- */

struct program {
	uint8_t *at, *end;
};

enum { FIRST = 5 /* byte 6 of a send: the first region, an SRQ of type XRC */ };

#define PUT(p, ...) put(p, (const uint8_t[STEP]){ __VA_ARGS__ })

static void
put(struct program *p, const uint8_t *s)
{
	if (p->at + STEP > p->end)
		return;
	memcpy(p->at, s, STEP);
	p->at += STEP;
}

/** Every request that there is, to the other end, which has receives. */
static void
all_requests(struct program *p, uint8_t from, uint8_t to)
{
	/* Those that end the QP come last. */
	static const uint8_t ops[] = { WR_SEND, WR_SEND_WITH_IMM, WR_RDMA_WRITE,
		WR_RDMA_WRITE_WITH_IMM, WR_RDMA_READ, WR_ATOMIC_CMP_AND_SWP,
		WR_ATOMIC_FETCH_AND_ADD, WR_SEND, WR_BIND_MW, WR_SEND_WITH_INV, WR_LOCAL_INV, 10 };

	PUT(p, K_RECV, to, 15, 0, 9, 0);
	PUT(p, K_RECV, POST_SRQ - 1, 15, 0, 9, 0);
	PUT(p, K_SEND, from, WR_SEND, SEND_INLINE | SEND_SIGNALED, 40, 0, FIRST, 1);
	for (uint8_t i = 0; i < sizeof(ops); i++) {
		const bool atomic =
			ops[i] == WR_ATOMIC_CMP_AND_SWP || ops[i] == WR_ATOMIC_FETCH_AND_ADD;
		const uint8_t len = atomic ? 2 : (uint8_t)(6 + i % 5);

		PUT(p, K_SEND, from, ops[i], SEND_SIGNALED, 0x10 | len, 0, FIRST, 1);
		PUT(p, K_TIME, 0, 9, 6);
		if (i == 7)
			for (uint8_t n = 0; n < 24; n++)
				PUT(p, K_SEND | (n % 8 == 7 ? 0 : LATER), from, ops[n % 7], n % 2,
					n % 7 >= 5 ? 0x12 : 0x14, 0, FIRST, 1);
	}
	PUT(p, K_TIME, 1, 200, 15);
	PUT(p, K_TIME, 2, 200, 15);
}

/** Datagrams by every handle, to QPs of this process, a group and others; handles go and change. */
static void
datagrams(struct program *p, uint8_t from)
{
	for (uint8_t i = 6; i < 8; i++)
		PUT(p, K_RECV, i, 15, 0, 9, 0);
	for (uint8_t h = 0; h < 3 * HANDLES; h++) {
		PUT(p, K_SEND, from, h % 4 == 3 ? WR_SEND_WITH_IMM : WR_SEND, SEND_SIGNALED,
			0x10 | (h % 8), 0, h, h % 2);
		if (h >= 2 * HANDLES)
			PUT(p, K_CONTROL, C_HANDLE, h % HANDLES, h % 5);
	}
	for (uint8_t i = 0; i < 12; i++) {
		PUT(p, K_PACKET, from, i, 0, i, 0, i < 10 ? i : 0xff, (i % 2) * 0x10 | i % 4);
		PUT(p, K_PACKET, from, i, 0, i, 0, i, 0x50);
	}
	PUT(p, K_CONTROL, C_GROUP, 0, from, 0);
	PUT(p, K_PACKET, from, 0, 0, 7, 0, 0, 0x10);
	PUT(p, K_CONTROL, C_GROUP, 1, 4, 1);
	PUT(p, K_PACKET, from, 0, 0, 7, 0, 0, 0x50);
	for (uint8_t i = 0; i < 24;
		i++) /* into memory that it may only read, behind what is left */
		PUT(p, i % 2 == 0 ? K_RECV : K_PACKET, from, 0, 0, 7, 1, 0, 1);
}

/** Bound, used from the other end, invalidated by either; then region and window go. */
static void
windows(struct program *p, uint8_t from, uint8_t to)
{
	/* Byte 6 of a send: each window, at the first region's address. */
	static const uint8_t keys[WINDOWS] = { 75, 70, 65 };

	PUT(p, K_RECV, to, 15, 0, 9, 0);
	for (uint8_t w = 0; w < WINDOWS; w++) {
		PUT(p, K_SEND, to, WR_BIND_MW, SEND_SIGNALED, 200, 0, keys[w], 14 << 2);
		PUT(p, K_SEND, from, WR_RDMA_WRITE, SEND_SIGNALED, 0x14, 0, keys[w], 1);
		PUT(p, K_SEND, from, WR_RDMA_READ, SEND_SIGNALED, 0x14, 0, keys[w], 1);
		PUT(p, K_PACKET, to, 10, 0, 4, 5 + w, 0, 1);
		PUT(p, K_CONTROL, C_REGION, 0, 0);
		if (w != 0)
			PUT(p, K_SEND, from, WR_SEND_WITH_INV, SEND_SIGNALED, 0x14, 0, keys[w], 1);
		PUT(p, K_SEND, to, WR_BIND_MW, SEND_SIGNALED, 100, 1, keys[w], 1 | 4 << 2);
		PUT(p, K_SEND | LATER, to, WR_LOCAL_INV, SEND_SIGNALED, 0, 0, keys[w], 1);
		PUT(p, K_SEND, to, WR_RDMA_WRITE, SEND_SIGNALED | SEND_FENCE, 0x14, 0, FIRST, 1);
		PUT(p, K_CONTROL, C_STATE, to, QPS_RESET);
		PUT(p, K_CONTROL, C_ATTACH, to);
		PUT(p, K_CONTROL, C_STATE, from, QPS_RESET);
		PUT(p, K_CONTROL, C_ATTACH, from);
	}
	PUT(p, K_SEND, to, WR_BIND_MW, SEND_SIGNALED, 200, 0, keys[1], 14 << 2);
	PUT(p, K_CONTROL, C_WINDOW, 2, 0);
	PUT(p, K_CONTROL, C_DETACH, to, 0);
	PUT(p, K_SEND, from, WR_RDMA_WRITE, SEND_SIGNALED, 0x14, 0, keys[1], 1);
	PUT(p, K_CONTROL, C_REGION, 0, 0);
	PUT(p, K_CONTROL, C_ATTACH, to);
	PUT(p, K_CONTROL, C_REGION, 0, 1);
}

/** A message of each kind from the wire, and answers to what the QP asks. */
static void
from_the_wire(struct program *p, uint8_t qp)
{
	static const uint8_t whole[] = { OP_RC_SEND_ONLY, OP_RC_WRITE_ONLY, OP_RC_READ_REQUEST,
		OP_RC_COMPARE_SWAP, OP_RC_FETCH_ADD };

	PUT(p, K_RECV, qp, 15, 0, 9, 0);
	PUT(p, K_RECV, POST_SRQ - 1, 15, 0, 9, 0);
	for (uint8_t op = 0; op < 0x18; op++)
		PUT(p, op % 5 == 4 ? K_PACKET | LATER : K_PACKET, qp, op, 0, op % 4 < 2 ? 9 : 4, 0,
			op % 4, op % 7 == 3 ? 9 : 1);
	PUT(p, K_CONTROL, C_STATE, qp, QPS_RESET);
	PUT(p, K_CONTROL, C_ATTACH, qp);
	for (uint8_t i = 0; i < 15; i++) /* good ones, then the same again, and marked */
		PUT(p, K_PACKET | (i % 2 != 0 ? LATER : 0), qp, whole[i % sizeof(whole)],
			i < 5 ? 0 : 0xff - i % 5, 4, 0, 1, i % 2 != 0 ? 9 : 1);
	PUT(p, K_PACKET, qp, 0x7f, 0, 5, 0, 0, 0);
	PUT(p, K_PACKET, 6, 0, 0, 8, 0, 0, 4);
	PUT(p, K_CONTROL, C_QUERY, qp);
	for (uint8_t n = 0; n < 16; n++) {
		PUT(p, K_SEND, qp, n % 7, SEND_SIGNALED, 0x10 | (n % 7 < 5 ? 7 : 2), 0, FIRST, 1);
		PUT(p, K_PACKET, qp, 0x0d + n % 6, n % 3 == 0 ? 0x70 : 0, n % 2 == 0 ? 9 : 0, 1,
			n < 10 ? 0x1f : 0x20 + n * 8, 0);
		PUT(p, K_TIME, 1, n * 16, 3);
	}
	for (uint8_t n = 0; n < 4; n++) { /* FLUSH and ATOMIC WRITE, at both ends */
		PUT(p, K_SEND, qp, 0xe0 + n, SEND_SIGNALED, 0x12, 0, FIRST, 1);
		PUT(p, K_PACKET, qp, 0x10, 0, 0, 1, 0x1f, 0);
		PUT(p, K_PACKET, qp, 0x7d + n % 2, 0, n % 2 * 4, 0, 1, 1);
	}
	PUT(p, K_PACKET, qp, 4, 0, 5, 0, 3, 1 | 0x20);
	PUT(p, K_PACKET, qp, 0x81, 0, 4, 0, 0, 0);
}

/** All at once while the port takes nothing, then states and ends in the middle of it. */
static void
trouble(struct program *p, uint8_t n)
{
	PUT(p, K_PORT, 1);
	for (uint8_t i = 0; i < QPS; i++) {
		PUT(p, K_RECV | LATER, i, 15, 0, 9, 0);
		PUT(p, K_SEND | LATER, i, n % 3 == 0 ? WR_RDMA_READ : WR_SEND, SEND_SIGNALED, 0x19,
			0, FIRST, 1);
		PUT(p, K_SEND | LATER, i, WR_RDMA_WRITE, SEND_SIGNALED, 0x3a, 0, FIRST, 1);
	}
	for (uint8_t i = 0; i < QPS; i++)
		PUT(p, K_CONTROL, n % C_N, i, n < C_N ? QPS_ERR : QPS_SQD, 1);
	PUT(p, K_CONTROL, C_SRQ, 1, 0, 3);
	PUT(p, K_CONTROL, C_CLIENT, 0, n, 3);
	PUT(p, K_TIME, 1, 100, 15);
	PUT(p, K_PORT, 0);
	PUT(p, K_TIME, 2, 100, 15);
	if (n % 2 != 0)
		for (uint8_t i = 0; i < 28; i++)
			PUT(p, K_SCRIBBLE, i * 9, i * 8, (i & 1) << 7, n, i % 4, 0, (i % 3) * 0x7f);
}

size_t
fuzz_seed(unsigned int index, uint8_t *buf, size_t room)
{
	static const uint8_t pairs[][2] = { { 1, 2 }, { 2, 1 }, { 4, 5 }, { 5, 4 }, { 8, 9 },
		{ 12, 12 }, { 0, 0 }, { 3, 3 }, { 10, 11 }, { 13, 13 } };
	struct program p = { buf, buf + room };

	if (index < 10)
		all_requests(&p, pairs[index][0], pairs[index][1]);
	else if (index < 12)
		datagrams(&p, (uint8_t)(6 + index % 2));
	else if (index < 16)
		windows(&p, pairs[index - 12][0], pairs[index - 12][1]);
	else if (index < 16 + QPS)
		from_the_wire(&p, (uint8_t)(index - 16));
	else if (index < 16 + QPS + 2 * C_N)
		trouble(&p, (uint8_t)(index - 16 - QPS));
	return (size_t)(p.at - buf);
}
