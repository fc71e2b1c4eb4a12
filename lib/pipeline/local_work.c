/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Requests without a packet: windows are bound, and keys invalidated, when all that is older has
 * completed (MW-12).
 */
#include "failure.h"
#include "local.h"
#include "mem_window.h"
#include "sending.h"

/** What was looked up ahead may be of a key that is not good any more. */
static void
forget_sources(struct worker *w)
{
	for (size_t i = 0; i < ARRAY_LEN(w->sources); i++) {
		w->sources[i].qp = NULL;
		w->sources[i].n = 0;
	}
}

static void
refuse(struct worker *w, struct qp *qp, enum requester_fault fault, const struct mem_refusal *m)
{
	struct requester_verdict v = { 0 };

	pipeline_failure_of_local(w, qp, qp->req.head, m);
	requester_local_fault(&qp->req, qp->req.head, fault, &v);
	pipeline_act_requester(w, qp, NULL, &v);
}

static enum mem_turn
bind_window(
	struct worker *w, const struct qp *qp, const struct requester_wr *wr, struct mem_refusal *m)
{
	const struct mem_bind b = { .window = wr->rkey,
		.key = wr->imm,
		.lkey = (uint32_t)wr->swap,
		.pd = qp->pd,
		.qpn = qp->qpn,
		.access = RING_BIND_ACCESS(wr->swap),
		.addr = wr->remote_addr,
		.length = wr->compare_add };
	enum mem_why why;
	const enum mem_turn turn = mem_window_bind(w->mem, w->index, &b, &why);

	if (turn != MEM_TURN_REFUSED)
		return turn;
	m->va = b.addr;
	m->length = b.length;
	m->need = b.access & MEM_REMOTE;
	m->key = b.lkey;
	mem_refusal_of_bind(w->mem, &b, why, m);
	return turn;
}

void
pipeline_local_work(struct worker *w, struct qp *qp)
{
	struct requester_wr *wr = &qp->req.wr[qp->req.head & qp->req.wr_mask];
	struct mem_refusal m = { .pd = qp->pd, .by = MEM_BY_BIND };
	enum requester_fault fault = WR_FAULT_BIND;
	struct requester_verdict v;
	bool begun = wr->resumed != 0;
	enum mem_turn turn;
	enum mem_why why;

	ASSERT(verbs_wr_is_local(wr->opcode));
	pipeline_local_own_all(w); /* READ responses that a key has allowed */
	if (wr->opcode == WR_BIND_MW) {
		turn = bind_window(w, qp, wr, &m);
	} else {
		fault = WR_FAULT_KEY;
		m.key = wr->imm;
		turn = mem_window_invalidate(
			w->mem, w->index, wr->imm, mem_user(qp->pd, qp->qpn), &begun, &why);
		wr->resumed = begun;
		m.why = (uint8_t)why;
	}
	forget_sources(w);
	if (turn == MEM_TURN_LATER)
		return;
	if (turn == MEM_TURN_REFUSED) {
		refuse(w, qp, fault, &m);
		return;
	}
	requester_local_done(&qp->req, &v);
	pipeline_act_requester(w, qp, NULL, &v);
}
