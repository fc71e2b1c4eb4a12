/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Every packet judged a second time, written from the rules and not from the responder: is it for
 * this QP (RX-HDR, RX-SYN), is it the next one, and does it pass the checks in the order of
 * RX-PREC-03?
 */
#include "fuzz_responder.h"

#define TWO_GIB 0x80000000u

/* ---- regions --------------------------------------------------------------------------------- */

const struct region *
granted(uint32_t key, uint32_t pd, uint64_t va, uint64_t len, uint8_t access)
{
	for (uint32_t i = 0; i < MRS; i++) {
		const struct region *m = &fb.mr[i];
		uint64_t off = va - m->va;

		if (!m->present || m->key != key)
			continue;
		if (!m->valid || m->pd != pd || (m->access & access) != access)
			return NULL;
		if (va < m->va || off > m->len || len > m->len - off)
			return NULL;
		return m;
	}
	return NULL;
}

/* ---- the packet's header against the QP ------------------------------------------------------ */

static bool
receives(uint8_t state)
{
	return state == QPS_RTR || state == QPS_RTS || state == QPS_SQD;
}

/** What neither the path nor the request itself says. */
static bool
kind_is_good(uint8_t state, const struct wire_pkt *p)
{
	if (p->opcode == OP_CNP)
		return (p->frame[p->bth_off + 4] & 0x40) != 0 && p->payload_len == 16 &&
		       p->pad == 0;
	if (p->opcode >= 0x20)
		return false;
	return !(p->opcode >= 0x0d && p->opcode <= 0x12) || state != QPS_RTR;
}

bool
for_this_qp(struct qp_bed *q, struct model *m, const struct wire_pkt *p)
{
	if (!receives(m->steered))
		return false;
	if (!paths_allow(q, m, p)) {
		paths_refuse(q, m, p);
		return false;
	}
	if (!kind_is_good(m->steered, p))
		return false;
	paths_accept(q, m, p);
	return true;
}

/* ---- the request itself ---------------------------------------------------------------------- */

static const struct wqe *
due_wqe(const struct qp_bed *q, const struct model *m)
{
	return queue_next(q, m->r.wqe_active);
}

static bool
is_last(uint8_t op)
{
	return op == 0x02 || op == 0x03 || op == 0x08 || op == 0x09 || op == 0x16;
}

static bool
goes_on(uint8_t op)
{
	return op == 0x01 || op == 0x07 || is_last(op);
}

/** 14, 18..1f: reserved but for those listed. */
static bool
is_known(uint8_t op)
{
	return is_send(op) || is_write(op) || op == OP_RC_READ_REQUEST || is_atomic(op);
}

static bool
order_is_bad(const struct model *m, uint8_t op)
{
	if (!is_known(op))
		return false;
	if (!goes_on(op))
		return m->r.open != OPEN_NONE;
	return m->r.open != (is_send(op) ? OPEN_SEND : OPEN_WRITE);
}

static bool
length_is_bad(const struct model *m, const struct wire_pkt *p)
{
	uint32_t len = p->payload_len;

	if (is_part(p->opcode))
		return len != m->r.pmtu;
	if (!is_send(p->opcode) && !is_write(p->opcode))
		return len != 0;
	return len > m->r.pmtu || (len == 0 && is_last(p->opcode));
}

static bool
pad_is_bad(const struct wire_pkt *p)
{
	return p->pad != 0 && (is_part(p->opcode) || !(is_send(p->opcode) || is_write(p->opcode)));
}

static bool
dma_len_is_bad(const struct model *m, const struct wire_pkt *p)
{
	uint8_t op = p->opcode;
	uint64_t sum, len = m->r.dma_len;

	if (!is_write(op) && op != OP_RC_READ_REQUEST)
		return false;
	sum = (uint64_t)(has_reth(op) ? 0 : m->r.received) + p->payload_len;
	if (has_reth(op)) {
		len = wire_reth(p).dma_len;
		if (len > TWO_GIB)
			return true;
	}
	if (op == OP_RC_READ_REQUEST)
		return false;
	return is_part(op) ? sum > len : sum != len;
}

static bool
key_is_bad(const struct qp_bed *q, const struct model *m, const struct wire_pkt *p)
{
	uint32_t pd = q->plan->pd;
	struct wire_reth h;

	if (is_atomic(p->opcode)) {
		struct wire_atomiceth a = wire_atomiceth(p);

		return granted(a.rkey, pd, a.va, 8, ACCESS_REMOTE_ATOMIC) == NULL;
	}
	if (is_write(p->opcode) && !has_reth(p->opcode))
		return granted(m->r.rkey, pd, m->r.va + m->r.received, p->payload_len,
			       ACCESS_REMOTE_WRITE) == NULL;
	if (!has_reth(p->opcode))
		return false;
	h = wire_reth(p);
	return h.dma_len != 0 &&
	       granted(h.rkey, pd, h.va, h.dma_len,
		       is_write(p->opcode) ? ACCESS_REMOTE_WRITE : ACCESS_REMOTE_READ) == NULL;
}

static uint64_t
wqe_bytes(const struct wqe *w)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < w->num_sge; i++)
		sum += w->sge[i].length;
	return sum;
}

static bool
wqe_memory_is_bad(const struct qp_bed *q, const struct wqe *w)
{
	for (uint32_t i = 0; i < w->num_sge; i++)
		if (w->sge[i].length != 0 && granted(w->sge[i].lkey, q->plan->pd, w->sge[i].addr,
						     w->sge[i].length, ACCESS_LOCAL_WRITE) == NULL)
			return true;
	return false;
}

/** A SEND that goes on has its WQE; an immediate's is always one of its own. */
static bool
needs_wqe(const struct model *m, uint8_t op)
{
	return is_write_imm(op) || (is_send(op) && !m->r.wqe_active);
}

/** Orders 9 and 10, and class J. */
static bool
receive_is_bad(const struct qp_bed *q, const struct model *m, const struct wire_pkt *p)
{
	uint8_t op = p->opcode;
	const struct wqe *w = m->r.wqe_active ? queue_active(q) : due_wqe(q, m);
	bool malformed = w != NULL && w->num_sge > MAX_SGE;

	if (is_write_imm(op))
		return due_wqe(q, m)->num_sge > MAX_SGE;
	if (is_atomic(op)) {
		struct wire_atomiceth a = wire_atomiceth(p);
		const struct region *r =
			granted(a.rkey, q->plan->pd, a.va, 8, ACCESS_REMOTE_ATOMIC);

		return ((uintptr_t)(fb.arena + r->at + (a.va - r->va)) & 7) != 0;
	}
	if (!is_send(op))
		return false;
	if (malformed || (uint64_t)m->r.received + p->payload_len > wqe_bytes(w) ||
		wqe_memory_is_bad(q, w))
		return true;
	if (op == 0x16 || op == 0x17) {
		uint32_t key = be32_load(p->frame + p->bth_off + 12);

		for (uint32_t i = 0; i < MRS; i++)
			if (fb.mr[i].present && fb.mr[i].key == key)
				return !fb.mr[i].valid || fb.mr[i].pd != q->plan->pd ||
				       !fb.mr[i].invalidatable;
		return true;
	}
	return false;
}

static bool
access_is_bad(const struct qp_bed *q, uint8_t op)
{
	uint8_t need = is_write(op)               ? ACCESS_REMOTE_WRITE
		       : op == OP_RC_READ_REQUEST ? ACCESS_REMOTE_READ
		       : is_atomic(op)            ? ACCESS_REMOTE_ATOMIC
						  : 0;

	return (q->access & need) != need;
}

static enum verdict
at_epsn(const struct qp_bed *q, const struct model *m, const struct wire_pkt *p)
{
	bool dead = needs_wqe(m, p->opcode) && queue_in_error(q); /* RESP-CLS-A-04 */
	bool no_wqe = needs_wqe(m, p->opcode) && due_wqe(q, m) == NULL && !dead;
	/* From order 6 on, what takes a WQE and finds one reports with it (AMB-20). */
	enum verdict late = needs_wqe(m, p->opcode) && !m->r.wqe_active && due_wqe(q, m) != NULL
				    ? FATAL_TAKES
				    : FATAL;
	bool reads = p->opcode == OP_RC_READ_REQUEST || is_atomic(p->opcode);

	if ((m->r.knobs & RESP_KNOB_EARLY_DROP) != 0 && m->r.latched && fb.now < m->r.rnr_until)
		return NOTHING;
	if ((m->r.knobs & RESP_KNOB_RNR_FIRST) != 0 && no_wqe)
		return REFUSE_RNR;
	if (order_is_bad(m, p->opcode) || !is_known(p->opcode) || access_is_bad(q, p->opcode))
		return FATAL;
	if (pad_is_bad(p) || length_is_bad(m, p))
		return (m->r.knobs & RESP_KNOB_LEN_PAD_DROP) != 0 ? NOTHING : FATAL;
	if (reads && m->r.unfinished >= m->r.max_dest_rd_atomic)
		return FATAL;
	if (dma_len_is_bad(m, p) || (is_atomic(p->opcode) && wire_atomiceth(p).va % 8 != 0))
		return late;
	if (dead)
		return FATAL;
	if (no_wqe)
		return REFUSE_RNR;
	if (key_is_bad(q, m, p) || receive_is_bad(q, m, p))
		return late;
	return ACCEPT;
}

/** A READ may be repeated in part, so its answers may be shorter from now on. */
static void
repeated(struct qp_bed *q, const struct wire_pkt *p)
{
	for (uint32_t i = 0; p->opcode == OP_RC_READ_REQUEST && i < q->records && i < RECORDS; i++)
		if (psn_between(p->psn, q->record[i].first, q->record[i].last))
			q->record[i].repeated = true;
}

enum verdict
oracle(struct qp_bed *q, const struct model *m, const struct wire_pkt *p)
{
	uint32_t ahead = psn_distance(p->psn, m->r.epsn);

	if (p->opcode == OP_CNP || (p->opcode >= 0x0d && p->opcode <= 0x12))
		return NOTHING;
	if (ahead == 0)
		return at_epsn(q, m, p);
	if (ahead > PSN_HALF || (ahead == PSN_HALF && (m->r.knobs & RESP_KNOB_HALF_DUP) != 0)) {
		repeated(q, p);
		return NOTHING;
	}
	return m->r.latched ? NOTHING : REFUSE_NAK;
}
