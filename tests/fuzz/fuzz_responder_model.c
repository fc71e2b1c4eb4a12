/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the packets of a turn do to their QPs and to memory, as fuzz_responder_oracle.c decides, and
 * the worker held against it.
 */
#include "fuzz_responder.h"

static uint8_t *
shadow_at(const struct region *m, uint64_t va)
{
	return fb.shadow + m->at + (va - m->va);
}
/* ---- what an accepted request does ----------------------------------------------------------- */

static void
scatter(const struct qp_bed *q, const struct wqe *w, uint64_t offset, const struct wire_pkt *p)
{
	const uint8_t *from = wire_payload(p);
	uint32_t left = p->payload_len;

	for (uint32_t i = 0; i < w->num_sge && left != 0; i++) {
		const struct ring_sge *g = &w->sge[i];
		const struct region *m;
		uint32_t n;

		if (offset >= g->length) {
			offset -= g->length;
			continue;
		}
		n = g->length - (uint32_t)offset < left ? g->length - (uint32_t)offset : left;
		m = granted(g->lkey, q->plan->pd, g->addr + offset, n, ACCESS_LOCAL_WRITE);
		memcpy(shadow_at(m, g->addr + offset), from, n);
		from += n;
		left -= n;
		offset = 0;
	}
}

static struct record *
remember(struct qp_bed *q, const struct model *m, uint32_t psns)
{
	struct record *r = &q->record[q->records++ % RECORDS];

	*r = (struct record){ .first = m->r.epsn, .last = psn_add(m->r.epsn, psns - 1) };
	return r;
}

static uint32_t
accept_read(struct qp_bed *q, struct model *m, const struct wire_pkt *p)
{
	struct wire_reth h = wire_reth(p);
	uint32_t psns = h.dma_len == 0 ? 1 : (h.dma_len + m->r.pmtu - 1) / m->r.pmtu;
	struct record *r = remember(q, m, psns);

	r->read = true;
	r->rkey = h.rkey;
	r->va = h.va;
	r->len = h.dma_len;
	if (h.dma_len != 0 && psns == 1) {
		const struct region *reg =
			granted(h.rkey, q->plan->pd, h.va, h.dma_len, ACCESS_REMOTE_READ);

		r->turn = fb.turn;
		r->taken = fb.taken_n++;
		memcpy(fb.taken[r->taken], shadow_at(reg, h.va), h.dma_len);
	}
	m->r.unfinished++;
	m->reads = true;
	return psns;
}

static void
accept_atomic(struct qp_bed *q, struct model *m, const struct wire_pkt *p)
{
	struct wire_atomiceth a = wire_atomiceth(p);
	const struct region *reg = granted(a.rkey, q->plan->pd, a.va, 8, ACCESS_REMOTE_ATOMIC);
	struct record *r = remember(q, m, 1);
	uint64_t v;

	memcpy(&v, shadow_at(reg, a.va), 8);
	r->original = v;
	if (p->opcode == OP_RC_FETCH_ADD)
		v += a.swap_add;
	else if (v == a.compare)
		v = a.swap_add;
	memcpy(shadow_at(reg, a.va), &v, 8);
	m->r.unfinished++;
	m->reads = true;
}

static void
accept_write(struct qp_bed *q, struct model *m, const struct wire_pkt *p)
{
	const struct region *reg;

	if (has_reth(p->opcode)) {
		struct wire_reth h = wire_reth(p);

		m->r.va = h.va;
		m->r.rkey = h.rkey;
		m->r.dma_len = h.dma_len;
		m->r.received = 0;
	}
	if (p->payload_len != 0) {
		reg = granted(m->r.rkey, q->plan->pd, m->r.va + m->r.received, p->payload_len,
			ACCESS_REMOTE_WRITE);
		memcpy(shadow_at(reg, m->r.va + m->r.received), wire_payload(p), p->payload_len);
	}
}

static void
accept_send(struct qp_bed *q, struct model *m, const struct wire_pkt *p)
{
	const struct wqe *w;

	if (!m->r.wqe_active) {
		m->r.wqe_active = true;
		m->r.received = 0;
		queue_take(q);
	}
	w = queue_active(q);
	scatter(q, w, m->r.received, p);
	if (p->opcode == 0x16 || p->opcode == 0x17) {
		uint32_t key = be32_load(p->frame + p->bth_off + 12);

		for (uint32_t i = 0; i < MRS; i++)
			if (fb.mr[i].present && fb.mr[i].key == key)
				fb.mr[i].valid = false;
	}
}

/** The oldest WQE is completed: look_completions() expects it. */
static void
completes(struct qp_bed *q, struct model *m, uint32_t bytes)
{
	uint64_t wr_id = queue_complete(q);

	m->r.wqe_active = false;
	if (q->fed)
		return; /* nobody hears of it */
	if (fb.cq_bad[q->plan->cq]) {
		m->state = QPS_ERR; /* class G */
		return;
	}
	FUZZ_CHECK(q->due_n < BURST_MAX);
	q->due[q->due_n].wr_id = wr_id;
	q->due[q->due_n++].bytes = bytes;
}

static void
accept(struct qp_bed *q, struct model *m, const struct wire_pkt *p)
{
	uint8_t op = p->opcode;
	uint32_t psns = 1;

	m->r.latched = false;
	m->r.rnr_until = 0;
	if (op == OP_RC_READ_REQUEST)
		psns = accept_read(q, m, p);
	else if (is_atomic(op))
		accept_atomic(q, m, p);
	else if (is_write(op))
		accept_write(q, m, p);
	else
		accept_send(q, m, p);
	if (is_write_imm(op))
		queue_take(q);
	m->r.epsn = psn_add(m->r.epsn, psns);
	if (is_part(op)) {
		m->r.open = is_send(op) ? OPEN_SEND : OPEN_WRITE;
		m->r.received += p->payload_len;
		return;
	}
	m->r.msn = (m->r.msn + 1) & PSN_MASK;
	m->r.open = OPEN_NONE;
	if (is_send(op) || is_write_imm(op))
		completes(q, m, m->r.received + p->payload_len);
	m->r.received = 0;
}

/* ---- a turn ---------------------------------------------------------------------------------- */

void
model_begin(void)
{
	for (uint32_t i = 0; i < QPS; i++) {
		struct qp_bed *q = &fb.q[i];
		struct model *m = &fb.model[i];

		q->due_n = q->due_seen = 0;
		if (!bed_attached(i))
			continue;
		*m = (struct model){ .r = q->qp->resp, .state = state_of(i) };
		m->steered = m->state;
		m->reads = q->qp->answers.count != 0;
		m->rcvd = qp_stat(q->qp, STAT_rcvd_pkts);
		paths_begin(i, m);
	}
	for (uint32_t i = 0; i < CQS; i++)
		fb.cq_bad[i] = atomic_load(&fb.cq[i].error);
}

static void
one(const struct sent *t)
{
	struct qp_bed *q = &fb.q[t->qp];
	struct model *m = &fb.model[t->qp];

	if (!for_this_qp(q, m, &t->p) || m->state == QPS_ERR)
		return;
	m->rcvd++;
	switch (oracle(q, m, &t->p)) {
	case ACCEPT:
		accept(q, m, &t->p);
		break;
	case REFUSE_RNR:
		m->r.latched = true;
		m->r.rnr_until = fb.now + 1; /* not over in this turn */
		break;
	case REFUSE_NAK:
		m->r.latched = true;
		break;
	case FATAL_TAKES:
		queue_take(q);
		m->state = QPS_ERR;
		break;
	case FATAL:
		m->state = QPS_ERR;
		break;
	default:
		break;
	}
}

void
model_run(void)
{
	for (uint32_t i = 0; i < fb.sent_n; i++)
		if (fb.sent[i].qp >= 0)
			one(&fb.sent[i]);
}

static void
compare_qp(uint32_t i)
{
	const struct qp_bed *q = &fb.q[i];
	const struct model *m = &fb.model[i];
	const struct responder *r = &q->qp->resp;
	uint8_t state = state_of(i);

	FUZZ_CHECK(qp_stat(q->qp, STAT_rcvd_pkts) == m->rcvd);
	FUZZ_CHECK(r->epsn.v == m->r.epsn.v);
	FUZZ_CHECK(r->msn == m->r.msn);
	FUZZ_CHECK(r->unfinished <= m->r.unfinished && r->unfinished <= q->plan->rd);
	FUZZ_CHECK(q->qp->answers.count <= q->qp->answers.cap);
	paths_compare(i);
	/* A READ whose region is gone may end the QP behind the model's back. */
	if (state == QPS_ERR && m->state != QPS_ERR) {
		FUZZ_CHECK(m->reads);
		return;
	}
	FUZZ_CHECK(state == m->state);
	if (state == QPS_ERR)
		return;
	FUZZ_CHECK(r->open == m->r.open && r->latched == m->r.latched);
	FUZZ_CHECK(r->wqe_active == m->r.wqe_active);
	if (r->open != OPEN_NONE)
		FUZZ_CHECK(r->received == m->r.received);
}

/** The queue ran over in this turn: which of its QPs met that first is not modelled. */
static bool
is_unsure(void)
{
	for (uint32_t i = 0; i < CQS; i++)
		if (!fb.cq_bad[i] && atomic_load(&fb.cq[i].error))
			return true;
	return false;
}

static bool
in_some_region(uint32_t at)
{
	const uint8_t any = ACCESS_LOCAL_WRITE | ACCESS_REMOTE_WRITE | ACCESS_REMOTE_ATOMIC;

	for (uint32_t i = 0; i < MRS; i++) {
		const struct region *m = &fb.mr[i];

		if (m->present && (m->access & any) != 0 && at >= m->at && at < m->at + m->len)
			return true;
	}
	return false;
}

static void
resync(void)
{
	for (uint32_t at = 0; at < ARENA; at++)
		FUZZ_CHECK(fb.arena[at] == fb.shadow[at] || in_some_region(at));
	memcpy(fb.shadow, fb.arena, ARENA);
	queue_resync();
	for (uint32_t i = 0; i < QPS; i++)
		if (bed_attached(i) && state_of(i) == QPS_ERR)
			fb.q[i].vague = true;
	for (uint32_t i = 0; i < MRS; i++)
		if (fb.mr[i].present)
			fb.mr[i].valid = atomic_load(&fb.mr[i].r->valid);
}

void
model_compare(void)
{
	if (is_unsure()) {
		resync();
		return;
	}
	for (uint32_t i = 0; i < QPS; i++)
		if (bed_attached(i) && (int)i != fb.modifying)
			compare_qp(i);
	queue_compare();
	if (fb.sent_n != 0)
		FUZZ_CHECK(memcmp(fb.arena, fb.shadow, ARENA) == 0);
	for (uint32_t i = 0; i < MRS; i++)
		if (fb.mr[i].present)
			FUZZ_CHECK(fb.mr[i].valid == atomic_load(&fb.mr[i].r->valid));
}
