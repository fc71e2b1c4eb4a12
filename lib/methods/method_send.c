/* SPDX-License-Identifier: BSD-3-Clause */
/* post_send: what the posting side can know is refused here (CQ-09); memory is the worker's. */
#include <errno.h>
#include <string.h>

#include "admin_ah.h"
#include "methods.h"
#include "method_mw.h"
#include "method_sge.h"
#include "ring_send.h"
#include "verbs_wr.h"

#define INLINE_MAX 65536 /* bytes that are decoded, if only to be refused */
#define OPCODE_MAX 63

enum {
	WR_GIVEN_INLINE = 1,
	WR_GIVEN_UD = 2,
	WR_GIVEN_BIND = 4,
	WR_GIVEN_SRQN = 8,
	WR_GIVEN_FLUSH = 16
};

/** Where a request of a UD QP goes. */
struct p_ud {
	struct conf_ah ah_attr;
	uint32_t remote_qpn;
	uint32_t remote_qkey;
};

static const struct conf_field ud_rows[] = {
	{ .name = "ah_attr",
		.type = CONF_T_OBJECT,
		.offset = offsetof(struct p_ud, ah_attr),
		.sub = &conf_table_ah,
		P_REQUIRED },
	P_QPN(p_ud, remote_qpn, P_REQUIRED),
	P_U32(p_ud, remote_qkey, 0, UINT32_MAX, P_REQUIRED),
};
static const struct conf_table ud_table = P_TABLE(p_ud, ud_rows, "ud");

/** What a FLUSH waits for, and of how much. */
struct p_flush {
	uint32_t type;
	uint32_t level;
	uint64_t length;
};

static const struct conf_name flush_types[] = { { "GLOBAL", FLUSH_GLOBAL },
	{ "PERSISTENT", FLUSH_PERSISTENT }, { NULL, 0 } };
static const struct conf_name flush_levels[] = { { "RANGE", 0 }, { "MR", FLUSH_MR }, { NULL, 0 } };

static const struct conf_field flush_rows[] = {
	{ .name = "type",
		.type = CONF_T_FLAGS,
		.offset = offsetof(struct p_flush, type),
		.names = flush_types,
		P_REQUIRED },
	{ .name = "level",
		.type = CONF_T_ENUM,
		.offset = offsetof(struct p_flush, level),
		.names = flush_levels,
		P_DEFAULT(0) },
	P_SIZE64(p_flush, length, P_DEFAULT(0)),
};
static const struct conf_table flush_table = P_TABLE(p_flush, flush_rows, "flush");

struct p_send_wr {
	uint64_t wr_id; /* first: struct method_posting */
	uint64_t given;
	char opcode[OPCODE_MAX + 1];
	struct p_sge *sg_list;
	uint32_t n_sge;
	uint32_t send_flags;
	struct conf_bytes data;
	uint64_t remote_addr;
	uint64_t compare_add;
	uint64_t swap;
	uint32_t rkey;
	uint32_t imm_data;
	uint32_t invalidate_rkey;
	struct p_ud ud;
	struct p_bind_mw bind_mw;
	struct p_flush flush;
	uint32_t xrc_remote_srqn;
};

static const struct conf_name flag_names[] = {
#define SEND_FLAG(bit, name) { #name, SEND_##name },
#include "tables/send_flags.def"
#undef SEND_FLAG
	{ NULL, 0 },
};

static const struct conf_field wr_rows[] = {
	P_U64(p_send_wr, wr_id, P_DEFAULT(0)),
	P_NUMBER(p_send_wr, opcode, CONF_T_STR, 1, OPCODE_MAX, P_REQUIRED),
	P_ARRAY(p_send_wr, sg_list, n_sge, &method_sge_table, 1024),
	{ .name = "inline",
		.type = CONF_T_HEX,
		.offset = offsetof(struct p_send_wr, data),
		.max = INLINE_MAX,
		.flags = CONF_F_NULL,
		.given = WR_GIVEN_INLINE },
	P_U64(p_send_wr, remote_addr, P_DEFAULT(0)),
	P_U32(p_send_wr, rkey, 0, UINT32_MAX, P_DEFAULT(0)),
	P_U32(p_send_wr, imm_data, 0, UINT32_MAX, P_DEFAULT(0)),
	P_U32(p_send_wr, invalidate_rkey, 0, UINT32_MAX, P_DEFAULT(0)),
	{ .name = "ud",
		.type = CONF_T_OBJECT,
		.offset = offsetof(struct p_send_wr, ud),
		.sub = &ud_table,
		.flags = CONF_F_NULL,
		.given = WR_GIVEN_UD },
	P_U32(p_send_wr, xrc_remote_srqn, 0, PSN_MASK, P_OPTIONAL, .given = WR_GIVEN_SRQN),
	P_U64(p_send_wr, compare_add, P_DEFAULT(0)),
	P_U64(p_send_wr, swap, P_DEFAULT(0)),
	{ .name = "bind_mw",
		.type = CONF_T_OBJECT,
		.offset = offsetof(struct p_send_wr, bind_mw),
		.sub = &method_bind_table,
		.given = WR_GIVEN_BIND,
		.flags = CONF_F_NULL },
	{ .name = "flush",
		.type = CONF_T_OBJECT,
		.offset = offsetof(struct p_send_wr, flush),
		.sub = &flush_table,
		.given = WR_GIVEN_FLUSH,
		.flags = CONF_F_NULL },
	{ .name = "send_flags",
		.type = CONF_T_FLAGS,
		.offset = offsetof(struct p_send_wr, send_flags),
		.names = flag_names,
		.flags = CONF_F_NULL },
};

static void
check_wr(void *obj, enum conf_mode mode UNUSED, struct conf_errors *err)
{
	const struct p_send_wr *wr = obj;

	if ((wr->given & WR_GIVEN_INLINE) != 0 && wr->n_sge != 0)
		conf_fault(err, "inline", "goes without sg_list");
	if ((strcmp(wr->opcode, "BIND_MW") == 0) != ((wr->given & WR_GIVEN_BIND) != 0))
		conf_fault(err, "bind_mw", "is that of the opcode BIND_MW, which needs it");
	if ((strcmp(wr->opcode, "FLUSH") == 0) != ((wr->given & WR_GIVEN_FLUSH) != 0))
		conf_fault(err, "flush", "is that of the opcode FLUSH, which needs it");
	else if ((wr->given & WR_GIVEN_FLUSH) != 0 && wr->flush.type == 0)
		conf_fault(err, "flush.type", "needs GLOBAL, PERSISTENT or both");
}

static const struct conf_table wr_table = { .name = "wr",
	.fields = wr_rows,
	.n_fields = ARRAY_LEN(wr_rows),
	.size = sizeof(struct p_send_wr),
	.given_offset = offsetof(struct p_send_wr, given),
	.check = check_wr };

struct p_post_send {
	uint32_t qp_num;
	uint32_t n_wrs;
	struct p_send_wr *wrs;
};

static const struct conf_field post_rows[] = {
	P_QPN(p_post_send, qp_num, P_REQUIRED),
	P_ARRAY(p_post_send, wrs, n_wrs, &wr_table, 65536, P_REQUIRED),
};
static const struct conf_table post_table = P_TABLE(p_post_send, post_rows, "params");

/* One request on its way to the ring. */
struct request {
	const struct p_send_wr *wr;
	struct verbs_wr_limits limits;
	uint32_t opcode; /* enum wr_opcode */
	uint32_t flags;  /* SEND_* */
	bool is_inline;
	uint32_t ah; /* handle, of a UD QP's */
	uint64_t bytes;
	struct ring_sge sge[RING_MAX_SGE];
	uint8_t data[RING_MAX_INLINE];
};

/* QP-06, QP-07, QP-10, QP-13: from RTS on, ERR included. */
static int
may_send(const struct admin_qp *rec, struct refusal *r)
{
	const enum qp_state state = admin_state(rec);

	if (rec->shared->owner != NULL)
		return refuse(r, EPERM, "QP %u is an application's, which posts to it", rec->qpn);
	if (qp_limits(rec->qp).send_feed)
		return refuse(r, EINVAL, "QP %u has a send_feed: the dataplane posts to its queue",
			rec->qpn);
	if (admin_qp_type(rec) == QPT_XRC_RECV)
		return refuse(r, EINVAL, "QP %u is XRC_RECV, which has no send queue", rec->qpn);
	if (!verbs_wr_may_post(state))
		return refuse(r, EINVAL, "QP %u is in %s: send requests need RTS", rec->qpn,
			verbs_qp_state_name(state));
	if (qp_limits(rec->qp).max_send_wr == 0)
		return refuse(r, ENOMEM, "QP %u has no send queue: max_send_wr is 0", rec->qpn);
	return 0;
}

static int
find_opcode(const struct admin_qp *rec, struct request *q, struct refusal *r)
{
	const struct qp_limits limits = qp_limits(rec->qp);
	const struct conf_name *n = conf_names_wr_opcode;

	while (n->name != NULL && strcmp(n->name, q->wr->opcode) != 0)
		n++;
	if (n->name == NULL)
		return refuse(r, EINVAL, "opcode \"%s\" does not exist", q->wr->opcode);
	q->opcode = n->value;
	if (verbs_wr_has(q->opcode, WR_HAS_ANSWER) && rec->shared->knobs.ops_placement == 0)
		return refuse(r, EINVAL, "%s: knob ops.placement of QP %u is off", q->wr->opcode,
			rec->qpn);
	q->is_inline =
		(q->wr->given & WR_GIVEN_INLINE) != 0 || (q->wr->send_flags & SEND_INLINE) != 0;
	q->flags = q->wr->send_flags | (q->is_inline ? SEND_INLINE : 0);
	q->limits = (struct verbs_wr_limits){ limits.max_send_sge, limits.max_inline,
		rec->attr.max_rd_atomic, admin_qp_type(rec),
		verbs_wr_longest(admin_qp_type(rec), rec->attr.path_mtu) };
	return 0;
}

static int
refuse_form(const struct admin_qp *rec, const struct request *q, enum verbs_wr_fault fault,
	struct refusal *r)
{
	const unsigned long long bytes = q->bytes;

	switch (fault) {
	case VERBS_WR_GOOD:
		return 0;
	case VERBS_WR_NO_SERVICE:
		return refuse(r, EINVAL, "%s: QP %u is %s, which has no such operation",
			q->wr->opcode, rec->qpn, verbs_qp_type_name(admin_qp_type(rec)));
	case VERBS_WR_NO_READS:
		return refuse(
			r, EINVAL, "%s: max_rd_atomic of QP %u is 0", q->wr->opcode, rec->qpn);
	case VERBS_WR_SGES:
		return refuse(r, EINVAL, "sg_list has %u entries, and max_send_sge is %u",
			q->wr->n_sge, q->limits.max_sge);
	case VERBS_WR_NO_LIST:
		return refuse(r, EINVAL, "%s has no sg_list", q->wr->opcode);
	case VERBS_WR_NOT_INLINE:
		return refuse(r, EINVAL, "%s cannot be inline", q->wr->opcode);
	case VERBS_WR_INLINE_LENGTH:
		return refuse(r, EINVAL, "%llu bytes inline, and max_inline_data is %u", bytes,
			q->limits.max_inline);
	case VERBS_WR_LENGTH:
		return admin_qp_type(rec) == QPT_UD
			       ? refuse(r, EMSGSIZE,
					 "a message of %llu bytes, and a datagram of QP %u has %u at "
					 "most: its path_mtu, or what fits the port's mtu",
					 bytes, rec->qpn, q->limits.max_bytes)
			       : refuse(r, EINVAL, "a message of %llu bytes is longer than 2^31",
					 bytes);
	default:
		return refuse(
			r, EINVAL, "an ATOMIC needs an sg_list of 8 bytes, not of %llu", bytes);
	}
}

static int
take_sges(struct rpc_call *call, const struct admin_qp *rec, struct request *q, struct refusal *r)
{
	const struct p_send_wr *wr = q->wr;
	int rc = refuse_form(rec, q, verbs_wr_form(&q->limits, q->opcode, q->flags, wr->n_sge), r);

	for (uint32_t i = 0; i < wr->n_sge && rc == 0; i++)
		rc = method_sge_translate(call, &wr->sg_list[i], &q->sge[i], r);
	if (rc != 0)
		return rc;
	q->bytes = (wr->given & WR_GIVEN_INLINE) != 0 ? wr->data.len
						      : mem_sge_bytes(q->sge, wr->n_sge);
	if (q->opcode == WR_FLUSH)
		q->bytes = wr->flush.length;
	return refuse_form(rec, q, verbs_wr_length(&q->limits, q->opcode, q->flags, q->bytes), r);
}

/* Inline bytes are taken when the request is posted, as verbs do: given, or out of the sg_list. */
static int
take_inline(struct rpc_call *call, const struct admin_qp *rec, struct request *q, struct refusal *r)
{
	const struct p_send_wr *wr = q->wr;
	const bool given = (wr->given & WR_GIVEN_INLINE) != 0;

	if (!q->is_inline)
		return 0;
	if (given) {
		if (q->bytes != 0)
			memcpy(q->data, wr->data.data, q->bytes);
		return 0;
	}
	if (mem_gather(call->m->env->w.mem, q->sge, wr->n_sge, rec->pd->id, 0, q->data,
		    (uint32_t)q->bytes) != MEM_OK)
		return refuse(r, EFAULT, "the inline data cannot be read from the sg_list");
	return 0;
}

/* UD-05, XRC-09: each request says where it goes. */
static int
take_address(struct rpc_call *call, struct admin_qp *rec, struct request *q, struct refusal *r)
{
	const bool given = (q->wr->given & WR_GIVEN_UD) != 0;
	const bool numbered = (q->wr->given & WR_GIVEN_SRQN) != 0;

	if (numbered != (admin_qp_type(rec) == QPT_XRC_SEND))
		return numbered ? refuse(r, EINVAL,
					  "xrc_remote_srqn: QP %u is %s: its peer has no such SRQs",
					  rec->qpn, verbs_qp_type_name(admin_qp_type(rec)))
				: refuse(r, EINVAL,
					  "xrc_remote_srqn is missing: QP %u is XRC_SEND, and each "
					  "request names an SRQ of its peer",
					  rec->qpn);
	if (admin_qp_type(rec) != QPT_UD)
		return given ? refuse(r, EINVAL,
				       "ud: QP %u is %s: its packets go to its own ah_attr",
				       rec->qpn, verbs_qp_type_name(admin_qp_type(rec)))
			     : 0;
	if (!given)
		return refuse(r, EINVAL,
			"QP %u is UD: each request needs \"ud\": {ah_attr, remote_qpn, "
			"remote_qkey}",
			rec->qpn);
	return admin_ah_of_qp(call->m->admin, rec, &q->wr->ud.ah_attr, &q->ah, r);
}

static int
fill(struct rpc_call *call, struct ring_send_wqe *wqe, const struct request *q, struct refusal *r)
{
	const struct p_send_wr *wr = q->wr;

	*wqe = (struct ring_send_wqe){ .wr_id = wr->wr_id,
		.remote_addr = wr->remote_addr,
		.compare_add = wr->compare_add,
		.swap = wr->swap,
		.rkey = wr->rkey,
		.imm = verbs_wr_has(q->opcode, WR_HAS_INV) ? wr->invalidate_rkey : wr->imm_data,
		.opcode = (uint8_t)q->opcode,
		.flags = (uint8_t)wr->send_flags,
		.xrc_srqn = wr->xrc_remote_srqn };
	if (q->opcode == WR_FLUSH) {
		wqe->compare_add = q->bytes;
		wqe->swap = wr->flush.type | wr->flush.level;
	}
	if (q->ah != 0) {
		wqe->rkey = q->ah;
		wqe->remote_addr = ring_send_to(wr->ud.remote_qpn, wr->ud.remote_qkey);
	}
	if (q->is_inline) {
		wqe->flags |= SEND_INLINE;
		wqe->inline_len = (uint32_t)q->bytes;
		memcpy(wqe->sge, q->data, q->bytes);
	} else {
		wqe->num_sge = wr->n_sge;
		memcpy(wqe->sge, q->sge, wr->n_sge * sizeof(q->sge[0]));
	}
	return verbs_wr_has(q->opcode, WR_HAS_BIND) ? method_bind_fill(call, &wr->bind_mw, wqe, r)
						    : 0;
}

static int
post_one(struct rpc_call *call, void *queue, const void *wr, struct refusal *r)
{
	struct admin_qp *rec = queue;
	struct request q = { .wr = wr };
	struct ring_send_wqe *wqe;
	int rc = may_send(rec, r);

	if (rc == 0)
		rc = find_opcode(rec, &q, r);
	if (rc == 0)
		rc = take_sges(call, rec, &q, r);
	if (rc == 0)
		rc = take_inline(call, rec, &q, r);
	if (rc == 0)
		rc = admin_work_attach(call->m->admin, rec, r);
	if (rc != 0)
		return rc;
	wqe = ring_produce_slot(&rec->sq, qp_limits(rec->qp).max_send_wr);
	if (wqe != NULL && take_address(call, rec, &q, r) != 0)
		return -r->err;
	if (wqe == NULL)
		return refuse(r, ENOMEM, "the send queue is full: max_send_wr is %u",
			qp_limits(rec->qp).max_send_wr);
	rc = fill(call, wqe, &q, r);
	if (rc == 0)
		ring_produce_commit(&rec->sq);
	return rc;
}

/* The worker looks at the ring; in ERR it flushes what it finds there (QP-13, QP-17). */
static void
ring_doorbell(struct methods *ctx, void *queue)
{
	admin_ring(ctx->admin, queue, ADMIN_OWED_POSTED);
}

static int
post_send(struct rpc_call *call)
{
	const struct p_post_send *p = call->params;
	struct method_posting to = { .post = post_one,
		.tell = ring_doorbell,
		.wrs = p->wrs,
		.wr_size = sizeof(p->wrs[0]),
		.n_wrs = p->n_wrs };

	return method_post_to_qp(call, p->qp_num, &to);
}

const struct rpc_method methods_send[] = {
	{ "post_send", post_send, &post_table },
	{ NULL, NULL, NULL },
};
