/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The details of a failure, for explanations: which memory was refused, and which work request
 * failed. Nothing here runs on a good path. The check that failed runs again and gives its numbers.
 */
#include "count.h"
#include "failure.h"
#include "send_feed.h"
#include "sending.h"
#include "verdict.h"

/** Cleared. NULL: the worker's stock of sides is empty, and nobody will know. */
static struct qp_failure *
begin(struct worker *w, struct qp *qp, uint16_t rule)
{
	struct qp_failure *f = has_side(w, qp) ? qp->failure : NULL;

	if (f != NULL)
		*f = (struct qp_failure){ .rule = rule };
	return f;
}

/** The right that a request needs. */
static access_t
right_of(const struct wire_pkt *p)
{
	const opflags_t op = p->op;

	if (op_has(op, OPF_ATOMIC))
		return ACCESS_REMOTE_ATOMIC;
	if (op_has(op, OPF_READ))
		return ACCESS_REMOTE_READ;
	if (op_has(op, OPF_FLUSH))
		return verbs_flush_access(wire_feth(p));
	return op_has(op, OPF_WRITE | OPF_ATOMIC_WRITE) ? ACCESS_REMOTE_WRITE : 0;
}

/** What the packet asks for: its own header, or that of the open WRITE it goes on with. */
static void
ask_of(const struct context *c, const struct responder_verdict *v, struct mem_refusal *m)
{
	const struct responder *r = &c->qp->resp;
	const struct wire_pkt *p = c->p;

	m->pd = c->qp->pd;
	m->by = MEM_BY_PEER;
	if (p == NULL) {
		m->need = ACCESS_REMOTE_READ;
		m->va = c->va;
		m->length = c->len;
		m->key = c->key;
		return;
	}
	m->need = right_of(p);
	if (op_has(p->op, OPF_ATOMICETH)) {
		m->va = wire_atomiceth(p).va;
		m->key = wire_atomiceth(p).rkey;
		m->length = sizeof(uint64_t);
	} else if (op_has(p->op, OPF_RETH)) {
		m->va = wire_reth_any(p).va;
		m->key = wire_reth_any(p).rkey;
		m->length = wire_reth_any(p).dma_len;
	} else if (op_has(p->op, OPF_WRITE)) {
		m->va = r->va + v->offset;
		m->key = r->rkey;
		m->length = p->payload_len;
	}
}

/** Refused for what it asks, not for where: the region is looked up all the same. */
static void
refused_as(const struct worker *w, const struct qp *qp, enum mem_why why, struct mem_refusal *m)
{
	mem_refusal_look(w->mem, qp->qpn, m);
	m->why = (uint8_t)why;
}

static void
refused_key(const struct worker *w, const struct qp *qp, struct mem_refusal *m)
{
	const enum mem_why why = mem_refusal_look(w->mem, qp->qpn, m);

	m->why = why != MEM_WHY_NONE ? (uint8_t)why : MEM_WHY_GONE;
}

static void
refused_invalidate(const struct worker *w, const struct context *c, struct mem_refusal *m)
{
	enum mem_why why;

	m->key = wire_imm_or_inv(c->p);
	why = mem_refusal_look_invalidate(w->mem, c->qp->qpn, m);
	m->why = why != MEM_WHY_NONE ? (uint8_t)why : MEM_WHY_GONE;
}

/** The receive request itself: qp->copy, taken or not. */
static void
refused_receive(const struct worker *w, const struct context *c, const struct responder_verdict *v,
	struct mem_refusal *m)
{
	const struct ring_recv_copy *copy = c->qp->copy;

	if (copy == NULL)
		return;
	*m = (struct mem_refusal){ .pd = qp_recv_pd(c->qp), .by = MEM_BY_RECEIVE };
	m->need = ACCESS_LOCAL_WRITE;
	if (v->rule == RULE_WQE) {
		/* What is malformed was given no list: wqe_facts(). */
		mem_refusal_of_list(w->mem, copy->sge, copy->num_sge, m);
		if (copy->num_sge == 0)
			m->why = MEM_WHY_LIST_TOO_LONG;
		return;
	}
	m->sges = (uint8_t)copy->num_sge;
	m->region_length = mem_sge_bytes(copy->sge, copy->num_sge);
	m->length = v->offset + c->p->payload_len;
	m->why = MEM_WHY_LIST_TOO_SHORT;
}

static void
refused_memory(const struct worker *w, const struct context *c, const struct responder_verdict *v,
	struct mem_refusal *m)
{
	ask_of(c, v, m);
	switch (v->rule) {
	case RULE_KEY:
	case RULE_KEY_IMMEDIATE:
	case RULE_KEY_REVOKED:
	case RULE_READ_REVOKED:
		refused_key(w, c->qp, m);
		return;
	case RULE_INVALIDATE_KEY:
		refused_invalidate(w, c, m);
		return;
	case RULE_INV_NOT_ENABLED:
		refused_as(w, c->qp, MEM_WHY_QP_NO_RIGHT, m);
		m->have = c->qp->resp.access;
		return;
	case RULE_INV_MISALIGNED:
		refused_as(w, c->qp, MEM_WHY_MISALIGNED, m);
		return;
	case RULE_INV_READ_LIMIT:
	case RULE_INV_WRITE_LIMIT:
		refused_as(w, c->qp, MEM_WHY_MESSAGE_LIMIT, m);
		return;
	case RULE_INV_TOO_LONG:
	case RULE_WQE:
		refused_receive(w, c, v, m);
		return;
	default:
		*m = (struct mem_refusal){ .why = MEM_WHY_NONE };
		return;
	}
}

void
pipeline_failure_of_request(
	struct worker *w, const struct context *c, const struct responder_verdict *v)
{
	struct qp_failure *f = begin(w, c->qp, v->rule);

	if (f == NULL)
		return;
	refused_memory(w, c, v, &f->mem);
	if ((v->act & ACT_COMPLETE) == 0 || c->qp->copy == NULL)
		return;
	f->work = QP_FAILED_RECEIVE;
	f->wr_id = c->qp->copy->wr_id;
	f->length = (uint32_t)mem_sge_bytes(c->qp->copy->sge, c->qp->copy->num_sge);
	f->fed = (c->qp->flags & QPF_RECV_FEED) != 0;
}

void
pipeline_failure_of_list(struct worker *w, struct qp *qp, uint32_t position)
{
	const struct requester_wr *wr = &qp->req.wr[position & qp->req.wr_mask];
	struct qp_failure *f = begin(w, qp, 0);

	if (f == NULL)
		return;
	f->position = position;
	f->mem.pd = qp->pd;
	f->mem.by = MEM_BY_SEND;
	f->mem.need = wr->opcode == WR_RDMA_READ || verbs_wr_is_atomic(wr->opcode)
			      ? ACCESS_LOCAL_WRITE
			      : 0;
	mem_refusal_of_list(w->mem, request_sges(qp, position), wr->num_sge, &f->mem);
}

void
pipeline_failure_of_local(
	struct worker *w, struct qp *qp, uint32_t position, const struct mem_refusal *m)
{
	struct qp_failure *f = begin(w, qp, 0);

	if (f == NULL)
		return;
	f->position = position;
	f->mem = *m;
}

/** Where a datagram was to go, as long as its address handle says so. */
static void
destination_of(const struct worker *w, const struct qp *qp, const struct requester_wr *wr,
	struct qp_failure *f)
{
	struct qp_ah_dest to;
	const uint8_t *l3;

	f->datagram = true;
	f->remote_qpn = (uint32_t)wr->remote_addr & PSN_MASK;
	if (!qp_ah_copy(w->ahs, wr->rkey, qp->pd, qp->port, &to))
		return;
	l3 = to.tmpl.bytes + to.tmpl.l3_off;
	f->dest_family = to.tmpl.ipv6 != 0 ? 6 : 4;
	if (f->dest_family == 6)
		memcpy(f->dest_ip, l3 + 24, 16);
	else
		memcpy(f->dest_ip, l3 + 16, 4);
}

void
pipeline_failure_of_send(struct worker *w, struct qp *qp, const struct requester_verdict *v)
{
	const struct requester_wr *wr = &qp->req.wr[v->failed & qp->req.wr_mask];
	const bool by_list = v->rule == REQRULE_LOCAL_PROT || v->rule == REQRULE_LOCAL_GONE ||
			     v->rule == REQRULE_LOCAL_BIND || v->rule == REQRULE_LOCAL_KEY;
	struct mem_refusal mem = { .why = MEM_WHY_NONE };
	struct qp_failure *f;

	if (by_list && qp->failure != NULL && qp->failure->position == v->failed)
		mem = qp->failure->mem;
	f = begin(w, qp, send_rule(v));
	if (f == NULL)
		return;
	f->mem = mem;
	if ((v->act & REQACT_ERROR) == 0)
		return;
	f->work = QP_FAILED_SEND;
	f->position = v->failed;
	f->wr_id = wr->wr_id;
	f->opcode = wr->opcode;
	f->length = wr->len;
	f->fed = is_fed(qp);
	if ((qp->flags & QPF_DATAGRAM) != 0) {
		destination_of(w, qp, wr, f);
	} else if (verbs_wr_has(wr->opcode, WR_HAS_REMOTE)) {
		f->remote_addr = wr->remote_addr;
		f->rkey = wr->rkey;
	}
}

void
pipeline_failure_trace(struct worker *w, const struct qp *qp)
{
	const struct qp_failure *f = qp->failure;

	if (!traced(w, qp) || f == NULL || f->mem.why == MEM_WHY_NONE ||
		f->rule != qp->last_error.rule)
		return;
	trace_put_memory(w->trace, &(struct trace_entry){ .time_ns = w->now,
					   .qpn = qp->qpn,
					   .key = f->mem.key,
					   .va = f->mem.va,
					   .kind = TRACE_memory,
					   .opcode = (qp->last_error.flags & QP_ERROR_PACKET) != 0
							     ? qp->last_error.opcode
							     : TRACE_NO_PACKET,
					   .state = qp_state_of(qp),
					   .detail = f->mem.why,
					   .length = (uint32_t)RTE_MIN(f->mem.length,
						   (uint64_t)UINT32_MAX) });
}
