/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "conf_json.h"
#include "internal.h"
#include "rpc.h"

/* The record as the configuration would have it. */
static void
conf_of(struct control *c, const struct qp_rec *rec, struct conf_qp *q)
{
	const struct qp_attr *a = &rec->attr;

	*q = rec->shared->conf;
	q->given = (q->given & ~CONF_QP_ATTR_MASK) | rec->given | CONF_QP_QP_NUM | CONF_QP_WORKER |
		CONF_QP_STATE;
	q->qp_num = rec->qp->qpn;
	q->worker = rec->qp->worker;
	q->count = 1;
	/* conf_encode_qp() names the states a QP is created in; qp_json() puts in the real one. */
	q->qp_state = CONF_QPS_RESET;
	q->qp_access_flags = a->qp_access_flags;
	q->pkey = a->pkey;
	q->path_mtu = a->path_mtu;
	q->timeout = a->timeout;
	q->retry_cnt = a->retry_cnt;
	q->rnr_retry = a->rnr_retry;
	q->min_rnr_timer = a->min_rnr_timer;
	q->max_rd_atomic = a->max_rd_atomic;
	q->max_dest_rd_atomic = a->max_dest_rd_atomic;
	q->dest_qp_num = a->dest_qp_num;
	q->rq_psn = a->rq_psn;
	q->sq_psn = a->sq_psn;
	q->ah_attr = rec->ah;
	if (a->path_resolved && (rec->given & QP_ATTR_AV) != 0) {
		memcpy(q->ah_attr.dest_mac, a->path.dmac, sizeof(q->ah_attr.dest_mac));
		q->ah_attr.given |= CONF_AH_DEST_MAC;
	}
	if (rec->port >= 0)
		memcpy(q->port, c->env.conf->ports[rec->port].name, sizeof(q->port));
	if ((q->given & CONF_QP_SEND_FEED) != 0)
		q->send_feed.remote_addr += rec->nth * q->send_feed.stride;
}

json_t *
qp_json(struct control *c, struct qp_rec *rec)
{
	const enum qp_state state = qp_admin_state(rec);
	struct conf_qp q;
	json_t *o;

	conf_of(c, rec, &q);
	o = conf_encode_qp(&q);
	if (o == NULL)
		return NULL;
	/* The configuration knows no SQD and ERR: the state's name is set here. */
	json_object_set_new(o, "qp_state", json_string(qp_state_name(state)));
	json_object_set_new(o, "cur_qp_state", json_string(qp_state_name(state)));
	json_object_set_new(o, "path_resolved", json_boolean(rec->attr.path_resolved));
	return o;
}

static json_t *
fatal_json(const struct qp_rec *rec)
{
	const struct qp_fatal *f = &rec->fatal;
	const char *text = wire_fatal_text(f->code);
	const char *opcode = wire_opcodes[f->opcode].name;

	if (f->time_ns == 0 && f->code == 0)
		return json_null();
	return json_pack("{s:i, s:s, s:I, s:s, s:s, s:i, s:I}", "fatal_code", f->code, "text",
		text != NULL ? text : "", "psn", (json_int_t)f->psn, "rule",
		responder_rule_id(f->rule), "opcode", opcode != NULL ? opcode : "", "syndrome",
		f->syndrome, "time_ns", (json_int_t)f->time_ns);
}

json_t *
qp_json_live(struct control *c, struct qp_rec *rec, const struct qp_snapshot *s)
{
	json_t *o = qp_json(c, rec);
	const struct qp_attr *a = &rec->attr;
	const bool live = s->state >= QPS_RTR;
	const uint32_t epsn = live ? s->epsn : a->rq_psn;

	if (o == NULL)
		return NULL;
	json_object_set_new(o, "qp_state", json_string(qp_state_name(s->state)));
	json_object_set_new(o, "cur_qp_state", json_string(qp_state_name(s->state)));
	if ((rec->given & QP_ATTR_RQ_PSN) != 0)
		json_object_set_new(o, "rq_psn", json_integer(epsn));
	json_object_set_new(o, "epsn", json_integer(epsn));
	json_object_set_new(o, "msn", json_integer(s->msn));
	/* Nothing has been sent as long as there is no requester. */
	json_object_set_new(o, "next_psn", json_integer(a->sq_psn));
	json_object_set_new(o, "last_acked_psn", json_integer((a->sq_psn - 1) & PSN_MASK));
	json_object_set_new(o, "retry_cnt_left", json_integer(a->retry_cnt));
	json_object_set_new(o, "rnr_retry_left", json_integer(a->rnr_retry));
	json_object_set_new(o, "outstanding", json_integer(0));
	json_object_set_new(o, "timers", json_object());
	json_object_set_new(o, "timeout_us",
		a->timeout == 0 ? json_null() : json_real(4.096 * (double)(1ull << a->timeout)));
	json_object_set_new(o, "min_rnr_timer_us", json_integer(wire_rnr_us(a->min_rnr_timer)));
	json_object_set_new(o, "rq_posted", json_integer(s->rq_posted));
	json_object_set_new(o, "answers_pending", json_integer(s->answers));
	json_object_set_new(o, "nak_latched", json_boolean(s->latched));
	json_object_set_new(o, "fatal_code", json_integer(s->fatal));
	json_object_set_new(o, "fatal", fatal_json(rec));
	json_object_set_new(o, "trace", json_boolean(rec->trace));
	return o;
}
