/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Programs for two workers and a client of theirs. Input: steps of eight bytes, the first of which
 * says what it is, and with its highest bit that no turn follows. One or two bytes behind the last
 * step: narrow registers, or none.
 *
 *   0..2  post a send: 1 QP, 2 opcode, 3 flags, 4 lengths, 5 keys, 6 handle, window, SRQ, 7 number
 *   3     post a receive: 1 QP or SRQ, 2 how many, 4 lengths, 5 keys
 *   4, 5  a packet: fuzz_worker_packet.c
 *   6     the client writes to its areas: 1 queue, 2 and 3 where, 4 to 7 what
 *   7     the control lcore: 1 what, 2 which, 3 how
 *   8     time: 1 unit, 2 how much, 3 turns
 *   9     1 bit 0: the ports take no frames; bit 1: the client polls no completions;
 *         bit 2: there are few buffers, 2; bit 3: a PAUSE frame of priorities 3, quanta 4
 *   10    a flood: fuzz_worker_packet.c
 */
#include "cpu.h"
#include "fuzz_worker.h"
#include "verbs_wr.h"

enum { STEPS_MAX = 256 };

int LLVMFuzzerInitialize(int *argc, char ***argv);

/* ---- the client ------------------------------------------------------------------------------ */

static void
sges(struct ring_sge *sge, uint32_t n, const uint8_t *s)
{
	static const uint32_t lens[] = { 0, 1, 8, 40, 64, 100, 256, 257, 700, 1100, 2048 };

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
	if ((fuzz_plans[i].how & PLAN_OWN) != 0) {
		bed_posted(i, (number_of_qp & RING_BELL_RECV) != 0);
		return;
	}
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
	else if (q->qp == NULL || atomic_load(&q->qp->state) == QPS_RESET ||
		 (q->plan->how & PLAN_FEED) != 0 ||
		 ((q->plan->how & PLAN_COMPACT) != 0 && q->qp->work == NULL))
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
	/* As the library does: the worker asks for it in ERR, and where credits are few. */
	if (ring == &q->rq.ring && atomic_load(&ring->sh->alert) != 0)
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
		len = ring_size(bed_cqes(s[1] % CQS), 64);
	}
	fw.scribbled = true;
	/* The words that both sides share are more than one in so many. */
	memcpy(mem + ((s[3] & 0x80) != 0 ? s[2] % 192u & ~3u : at % (len - 3) & ~3u), s + 4, 4);
	ring_bells_put(&fw.w[fuzz_plans[i].worker].bells, bed_qpn(i));
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
		control_step(s);
		break;
	case K_TIME:
		fw.now += units[s[1] % 3] * s[2];
		turns = s[3] % 16;
		break;
	case K_PORT:
		fw.stuck = (s[1] & 1) != 0;
		fw.away = (s[1] & 2) != 0;
		ports_hoard((s[1] & 4) != 0 ? 1 + s[2] % 64u : 0);
		if ((s[1] & 8) != 0)
			ports_pause(s[3], s[4]);
		break;
	case K_FLOOD:
		packet_flood(s);
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

/** Of the registers that may be used: what is left behind the last step says it. */
static uint32_t
width_of(size_t size)
{
	switch (size % STEP) {
	case 1:
		return 256;
	case 2:
		return 64;
	default:
		return UINT32_MAX;
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < STEP)
		return 0;
	bed_start();
	cpu_limit(width_of(size));
	bed_open();
	for (uint32_t i = 0; i < size / STEP && i < STEPS_MAX; i++)
		step(data + (size_t)i * STEP);
	bed_close();
	return 0;
}
