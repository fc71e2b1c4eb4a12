/* SPDX-License-Identifier: BSD-3-Clause */
/* Methods that post work and take completions. */
#include <errno.h>
#include <string.h>

#include "methods.h"
#include "method_sge.h"
#include "wall.h"

/* ---- post_recv --------------------------------------------------------------------------- */

enum { SGE_MR = 1, SGE_OFFSET = 2, SGE_LKEY = 4, SGE_ADDR = 8 };

static void
check_sge(void *obj, enum conf_mode mode UNUSED, struct conf_errors *err)
{
	const struct p_sge *s = obj;
	const bool by_name = (s->given & SGE_MR) != 0;

	if (by_name && (s->given & (SGE_LKEY | SGE_ADDR)) != 0)
		conf_fault(err, NULL, "must be {mr, offset, length} or {lkey, addr, length}");
	else if (!by_name && (s->given & (SGE_LKEY | SGE_ADDR)) != (SGE_LKEY | SGE_ADDR))
		conf_fault(err, NULL, "must be {mr, offset, length} or {lkey, addr, length}");
	else if (!by_name && (s->given & SGE_OFFSET) != 0)
		conf_fault(err, "offset", "goes with mr; with lkey it is addr");
}

static const struct conf_field sge_rows[] = {
	P_NAME(p_sge, mr, P_OPTIONAL, .given = SGE_MR),
	P_SIZE64(p_sge, offset, P_OPTIONAL, .given = SGE_OFFSET),
	P_U32(p_sge, lkey, 0, UINT32_MAX, P_OPTIONAL, .given = SGE_LKEY),
	P_U64(p_sge, addr, P_OPTIONAL, .given = SGE_ADDR),
	P_SIZE32(p_sge, length, UINT32_MAX, P_REQUIRED),
};
const struct conf_table method_sge_table = { .name = "sge",
	.fields = sge_rows,
	.n_fields = ARRAY_LEN(sge_rows),
	.size = sizeof(struct p_sge),
	.given_offset = offsetof(struct p_sge, given),
	.check = check_sge };

static const struct conf_field recv_wr_rows[] = {
	P_U64(p_recv_wr, wr_id, P_DEFAULT(0)),
	P_ARRAY(p_recv_wr, sg_list, n_sge, &method_sge_table, 1024),
};
const struct conf_table method_recv_wr_table = P_TABLE(p_recv_wr, recv_wr_rows, "wr");

struct p_post_recv {
	uint32_t qp_num;
	uint32_t n_wrs;
	struct p_recv_wr *wrs;
};

static const struct conf_field post_recv_rows[] = {
	P_QPN(p_post_recv, qp_num, P_REQUIRED),
	P_ARRAY(p_post_recv, wrs, n_wrs, &method_recv_wr_table, 65536, P_REQUIRED),
};
static const struct conf_table post_recv_table = P_TABLE(p_post_recv, post_recv_rows, "params");

/* QP-06, QP-13: from INIT on, ERR included. */
static int
may_receive(const struct admin_qp *rec, struct refusal *r)
{
	if (rec->shared->owner != NULL)
		return refuse(r, EPERM, "QP %u is an application's, which posts to it", rec->qpn);
	if (rec->feed != NULL)
		return refuse(r, EINVAL, "QP %u has a recv_feed: the dataplane fills its queue",
			rec->qpn);
	if (admin_qp_type(rec) == QPT_XRC_SEND || admin_qp_type(rec) == QPT_XRC_RECV)
		return refuse(r, EINVAL,
			"QP %u is %s, which has no receive queue: post_srq_recv to an SRQ of type "
			"XRC",
			rec->qpn, verbs_qp_type_name(admin_qp_type(rec)));
	if (rec->srq != NULL)
		return refuse(r, EINVAL, "QP %u receives from srq \"%s\": post_srq_recv", rec->qpn,
			rec->srq->n.name);
	if (admin_state(rec) == QPS_RESET)
		return refuse(r, EINVAL, "QP %u is in RESET", rec->qpn);
	return 0;
}

int
method_sge_translate(
	struct rpc_call *call, const struct p_sge *from, struct ring_sge *to, struct refusal *r)
{
	const struct object_mr *mr;

	*to = (struct ring_sge){ .addr = from->addr, .length = from->length, .lkey = from->lkey };
	if ((from->given & SGE_MR) == 0)
		return 0;
	mr = object_mr_find(call->m->objects, from->mr, r);
	if (mr == NULL)
		return -ENOENT;
	to->addr = mr->region->va + from->offset; /* checked when the request runs */
	to->lkey = mr->region->key;
	return 0;
}

int
method_recv_put(struct rpc_call *call, const struct p_recv_wr *wr, struct ring *rq,
	const struct method_recv_limits *most, struct refusal *r)
{
	struct ring_sge sge[RING_MAX_SGE];
	struct ring_recv_wqe *wqe;
	int rc = 0;

	if (wr->n_sge > most->max_sge || wr->n_sge > RING_MAX_SGE)
		rc = refuse(r, EINVAL, "sg_list has %u entries, and %s is %u", wr->n_sge,
			most->sge_name, most->max_sge);
	for (uint32_t i = 0; i < wr->n_sge && rc == 0; i++)
		rc = method_sge_translate(call, &wr->sg_list[i], &sge[i], r);
	if (rc != 0)
		return rc;
	wqe = ring_produce_slot(rq, most->max_wr);
	if (wqe == NULL)
		return refuse(r, ENOMEM, "%s is %u", most->full, most->max_wr);
	ring_recv_fill(wqe, wr->wr_id, sge, wr->n_sge);
	ring_produce_commit(rq);
	return 0;
}

static int
post_one(struct rpc_call *call, void *queue, const void *wr, struct refusal *r)
{
	struct admin_qp *rec = queue;
	const struct conf_cap *cap = &rec->shared->conf.cap;
	const struct method_recv_limits most = { .max_sge = cap->max_recv_sge,
		.sge_name = "max_recv_sge",
		.max_wr = cap->max_recv_wr,
		.full = "the receive queue is full: max_recv_wr" };
	int rc = may_receive(rec, r);

	if (rc == 0)
		rc = admin_work_attach(call->m->admin, rec, r);
	return rc != 0 ? rc : method_recv_put(call, wr, &rec->rq, &most, r);
}

/*
 * QP-13, QP-17: a worker that moves the QP to ERR flushes what it sees posted. Either it sees our
 * last index, or we see its ERR here: the fences on both sides leave no third way. With credits a
 * peer may be waiting for them (FLOW-07).
 */
static void
tell_receives(struct methods *ctx, void *queue)
{
	struct admin_qp *rec = queue;

	atomic_thread_fence(memory_order_seq_cst);
	if (admin_state(rec) == QPS_ERR || rec->shared->knobs.resp_credits != 0)
		admin_ring(ctx->admin, rec, ADMIN_OWED_RECEIVES);
}

static json_t *
refused_wr(uint64_t wr_id, uint32_t index, const struct refusal *r)
{
	return json_pack("{s:I, s:o, s:i, s:s}", "index", (json_int_t)index, "wr_id",
		conf_json_u64(wr_id), "errno", r->err, "reason", r->text);
}

int
method_post_all(struct rpc_call *call, const struct method_posting *p)
{
	const uint8_t *wr = p->wrs;
	json_t *refused = NULL;
	struct refusal r;
	uint64_t wr_id;
	uint32_t n;

	for (n = 0; n < p->n_wrs; n++, wr += p->wr_size) {
		if (p->post(call, p->queue, wr, &r) != 0) {
			memcpy(&wr_id, wr, sizeof(wr_id));
			refused = refused_wr(wr_id, n, &r);
			break;
		}
	}
	if (n > 0 && p->tell != NULL)
		p->tell(call->m, p->queue);
	return rpc_result(call, json_pack("{s:I, s:o}", "posted", (json_int_t)n, "refused",
					refused != NULL ? refused : json_null()));
}

int
method_post_to_qp(struct rpc_call *call, uint32_t qp_num, struct method_posting *p)
{
	struct refusal r;

	p->queue = admin_get(call->m->admin, qp_num, &r);
	return p->queue != NULL ? method_post_all(call, p) : rpc_refused(call, &r);
}

static int
post_recv(struct rpc_call *call)
{
	const struct p_post_recv *p = call->params;
	struct method_posting to = { .post = post_one,
		.tell = tell_receives,
		.wrs = p->wrs,
		.wr_size = sizeof(p->wrs[0]),
		.n_wrs = p->n_wrs };

	return method_post_to_qp(call, p->qp_num, &to);
}

/* ---- poll_cq ------------------------------------------------------------------------------- */

#define POLL_MAX 2048 /* a reply fits a line */

struct p_poll {
	char cq[CONF_NAME_MAX];
	uint32_t max;
};

static const struct conf_field poll_rows[] = {
	P_NAME(p_poll, cq, P_REQUIRED),
	P_U32(p_poll, max, 1, POLL_MAX, P_DEFAULT(256)),
};
static const struct conf_table poll_table = P_TABLE(p_poll, poll_rows, "params");

static json_t *
flags_json(uint8_t flags)
{
	json_t *list = json_array();

	if ((flags & WC_GRH) != 0)
		json_array_append_new(list, json_string("GRH"));
	if ((flags & WC_WITH_IMM) != 0)
		json_array_append_new(list, json_string("WITH_IMM"));
	if ((flags & WC_WITH_INV) != 0)
		json_array_append_new(list, json_string("WITH_INV"));
	return list;
}

static json_t *
cause_json(const struct ring_cqe *e)
{
	const char *peer = wire_opcodes[e->peer_opcode].name;

	return json_pack("{s:s, s:s, s:I, s:s}", "rule", qp_rule_id(e->cause), "text",
		qp_rule_text(e->cause), "psn", (json_int_t)e->psn, "opcode",
		peer != NULL ? peer : "");
}

static json_t *
cqe_json(struct methods *ctx, const struct ring_cqe *e)
{
	json_t *o = json_object();

	if (o == NULL)
		return NULL;
	json_object_set_new(o, "wr_id", conf_json_u64(e->wr_id));
	json_object_set_new(o, "status", json_string(verbs_wc_status_name(e->status)));
	json_object_set_new(o, "opcode", json_string(verbs_wc_opcode_name(e->opcode)));
	json_object_set_new(o, "byte_len", json_integer(e->byte_len));
	json_object_set_new(o, "imm_data",
		(e->wc_flags & WC_WITH_IMM) != 0 ? json_integer(e->imm_data) : json_null());
	json_object_set_new(o, "qp_num", json_integer(e->qp_num));
	json_object_set_new(o, "wc_flags", flags_json(e->wc_flags));
	if ((e->wc_flags & WC_GRH) != 0)
		json_object_set_new(o, "src_qp", json_integer(e->src_qp));
	json_object_set_new(o, "vendor_err", json_integer(e->vendor_err));
	if ((e->wc_flags & WC_WITH_INV) != 0)
		json_object_set_new(o, "invalidated_rkey", conf_json_hex(e->imm_data));
	json_object_set_new(o, "solicited", json_boolean(e->solicited != 0));
	wall_set(ctx->env, o, e->time_ns);
	if (e->status != 0 && e->cause != 0)
		json_object_set_new(o, "cause", cause_json(e));
	return o;
}

static int
poll_cq(struct rpc_call *call)
{
	const struct p_poll *p = call->params;
	struct refusal r;
	struct object_cq *cq = object_cq_find(call->m->objects, p->cq, &r);
	json_t *list = json_array();
	struct ring_cqe e;

	if (cq == NULL) {
		json_decref(list);
		return rpc_refused(call, &r);
	}
	for (uint32_t n = 0; n < p->max && list != NULL; n++) {
		if (ring_cq_poll(qp_cq_ring(&cq->q), &e, 1) == 0)
			break;
		list = conf_json_append(list, cqe_json(call->m, &e));
	}
	/* RX-ERR-04: a fatal status is known before its completion is. */
	env_drain(call->m->env);
	return rpc_result(call, list);
}

const struct rpc_method methods_work[] = {
	{ "post_recv", post_recv, &post_recv_table },
	{ "poll_cq", poll_cq, &poll_table },
	{ NULL, NULL, NULL },
};
