/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "ask.h"
#include "conf_json.h"
#include "conf_json_value.h"
#include "admin.h"
#include "admin_mcast.h"
#include "cc.h"
#include "wall.h"

/* The alternate path, as far as there is one. */
static void
alternate_of(struct admin *adm, const struct admin_qp *rec, struct conf_qp *q)
{
	const struct qp_attr *a = &rec->attr;
	const int16_t port = rec->alt_port >= 0 ? rec->alt_port : rec->port;

	/* ARMED is a live state: admin_json_live() puts it in. */
	q->path_mig_state = a->path_mig_state == MIG_MIGRATED ? MIG_MIGRATED : MIG_REARM;
	q->given &= ~(CONF_QP_ALT_PORT | CONF_QP_ALT_TIMEOUT | CONF_QP_ALT_PKEY);
	if ((rec->given & QP_ATTR_ALT_PATH) == 0)
		return;
	q->alt_ah_attr = rec->alt_ah;
	q->given |= rec->alt_given;
	if (rec->alt_loaded && port >= 0) {
		q->given |= CONF_QP_ALT_PORT;
		memcpy(q->alt_port, adm->env->w.conf->ports[port].name, sizeof(q->alt_port));
	}
	if (rec->alt_loaded) {
		q->alt_timeout = a->alt_timeout;
		q->alt_pkey = a->alt_pkey;
	}
}

void
admin_conf(struct admin *adm, struct admin_qp *rec, struct conf_qp *q)
{
	const struct qp_attr *a = &rec->attr;

	admin_alternate_sync(adm, rec);
	memcpy(q, &rec->shared->conf, sizeof(*q)); /* with its padding: qp_save() compares */
	q->given = (q->given & ~CONF_QP_ATTR_MASK) | rec->given | CONF_QP_QP_NUM | QP_ATTR_STATE;
	q->qp_num = rec->qpn;
	q->count = 1;
	if ((q->given & CONF_QP_WORKER) != 0)
		q->worker = rec->worker;
	q->rq_limit = qp_rq_limit(rec->qp);
	q->qp_state = QPS_RESET;
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
	q->qkey = a->qkey;
	q->ah_attr = rec->ah;
	alternate_of(adm, rec, q);
	if (rec->port >= 0)
		memcpy(q->port, adm->env->w.conf->ports[rec->port].name, sizeof(q->port));
	if ((q->given & CONF_QP_SEND_FEED) != 0)
		q->send_feed.remote_addr += rec->nth * q->send_feed.stride;
}

json_t *
admin_json(struct admin *adm, struct admin_qp *rec)
{
	const enum qp_state state = admin_state(rec);
	struct conf_qp q;
	json_t *o;

	admin_conf(adm, rec, &q);
	q.worker = rec->worker;
	q.given |= CONF_QP_WORKER;
	if (rec->attr.path_resolved && (rec->given & QP_ATTR_AV) != 0) {
		memcpy(q.ah_attr.dest_mac, rec->attr.path.dmac, sizeof(q.ah_attr.dest_mac));
		q.ah_attr.given |= CONF_AH_DEST_MAC;
	}
	if (rec->attr.alt_resolved && rec->alt_loaded) {
		memcpy(q.alt_ah_attr.dest_mac, rec->attr.alt_path.dmac,
			sizeof(q.alt_ah_attr.dest_mac));
		q.alt_ah_attr.given |= CONF_AH_DEST_MAC;
	}
	o = conf_encode_qp(&q);
	if (o == NULL)
		return NULL;
	/* The configuration knows no SQD and ERR: the state's name is set here. */
	json_object_set_new(o, "qp_state", json_string(verbs_qp_state_name(state)));
	json_object_set_new(o, "cur_qp_state", json_string(verbs_qp_state_name(state)));
	json_object_set_new(o, "path_resolved", json_boolean(rec->attr.path_resolved));
	if (admin_qp_type(rec) == QPT_UD)
		json_object_set_new(o, "mcasts", admin_mcast_json(adm, rec->qpn));
	if (rec->alt_loaded)
		json_object_set_new(o, "alt_path_resolved", json_boolean(rec->attr.alt_resolved));
	return o;
}

static json_t *
fatal_json(struct admin *adm, const struct admin_qp *rec)
{
	const struct admin_fatal *f = &rec->fatal;
	const char *text = wire_fatal_text(f->code);
	const char *opcode = wire_opcodes[f->opcode].name;
	json_t *o;

	if (f->time_ns == 0 && f->code == 0)
		return json_null();
	o = json_pack("{s:i, s:s, s:I, s:s, s:s, s:i}", "fatal_code", f->code, "text",
		text != NULL ? text : "", "psn", (json_int_t)f->psn, "rule", qp_rule_id(f->rule),
		"opcode", opcode != NULL ? opcode : "", "syndrome", f->syndrome);
	wall_set(adm->env, o, f->time_ns);
	return o;
}

/* AEQ-12 */
static json_t *
last_event_json(struct admin *adm, const struct admin_qp *rec)
{
	const struct event_last *e = &rec->last_event;
	const bool abnormal = ring_aeq_code_class(e->code) == AEQ_CLASS_ABNORMAL;
	json_t *o;

	if (e->code == 0)
		return json_null();
	o = json_pack("{s:i, s:s, s:s, s:s, s:i}", "code", e->code, "text",
		ring_aeq_code_text(e->code), "event_type",
		abnormal ? verbs_event_name(
				   e->event != 0 ? e->event : ring_aeq_flush_of(e->code).event)
		: e->code == AEQ_QP_REPORT ? verbs_event_name(e->event)
					   : "",
		"source", ring_aeq_source_name(e->source), "wqe_index", e->wqe_index);
	wall_set(adm->env, o, e->time_ns);
	return o;
}

/* Microseconds left of a timer that runs, or null. */
static json_t *
timer_json(const struct admin *adm, bool runs, ns_t deadline)
{
	const ns_t now = adm->env->w.clock();

	if (!runs)
		return json_null();
	return json_real(deadline > now ? (double)(deadline - now) / TIME_NS_PER_US : 0.0);
}

/* Where the receive WQEs are: in the QP's own queue, or in one that it shares. */
static void
set_receive(json_t *o, const struct admin_qp *rec, const struct qp_snapshot *s)
{
	if (rec->srq == NULL) {
		json_object_set_new(o, "rq_posted", json_integer(s->rq_posted));
		return;
	}
	json_object_set_new(o, "srq_attr", object_srq_json(rec->srq));
}

static json_t *
delay_json(const struct qp_rate *r)
{
	return json_pack("{s:f, s:f, s:f, s:f, s:s, s:I}", "rate_current", r->current / 1000.0,
		"window", r->window, "rtt", r->rtt_ns / 1000.0, "rtt_target",
		r->rtt_target_ns / 1000.0, "stage", cc_stage_name(r->stage), "cnps",
		(json_int_t)r->cnps);
}

/* CC-09, CC-33: rates in Mb/s, times in microseconds. */
static json_t *
rate_json(const struct qp_rate *r)
{
	if (r->by_delay)
		return delay_json(r);
	return json_pack("{s:f, s:f, s:f, s:s, s:I}", "rate_current", r->current / 1000.0,
		"rate_target", r->target / 1000.0, "alpha", r->alpha, "stage",
		cc_stage_name(r->stage), "cnps", (json_int_t)r->cnps);
}

static void
set_requester(struct admin *adm, json_t *o, const struct admin_qp *rec, const struct qp_snapshot *s)
{
	const struct qp_attr *a = &rec->attr;
	const bool live = s->state >= QPS_RTS;
	const uint32_t next = live ? s->next_psn : a->sq_psn;
	const uint32_t una = live ? s->una_psn : a->sq_psn;
	json_t *timers = json_object();

	/* QP-19: the next PSN to send, as verbs' query gives it. */
	if ((rec->given & QP_ATTR_SQ_PSN) != 0)
		json_object_set_new(o, "sq_psn", json_integer(next));
	json_object_set_new(o, "next_psn", json_integer(next));
	json_object_set_new(o, "last_acked_psn", json_integer((una - 1) & PSN_MASK));
	json_object_set_new(o, "retry_cnt_left", json_integer(live ? s->retry_left : a->retry_cnt));
	json_object_set_new(o, "rnr_retry_left", json_integer(live ? s->rnr_left : a->rnr_retry));
	json_object_set_new(o, "outstanding", json_integer(s->outstanding));
	json_object_set_new(
		o, "sq_draining", json_boolean(s->state == QPS_SQD && s->waiting.started != 0));
	json_object_set_new(o, "window", json_integer(s->window));
	json_object_set_new(timers, "transport_us", timer_json(adm, s->timing, s->deadline));
	json_object_set_new(timers, "rnr_us", timer_json(adm, s->waiting_rnr, s->deadline));
	json_object_set_new(o, "timers", timers);
	if (s->rate.has)
		json_object_set_new(o, "cc", rate_json(&s->rate));
	if (qp_limits(rec->qp).send_feed)
		json_object_set_new(o, "feed",
			json_pack("{s:I, s:I}", "posted", (json_int_t)s->feed_posted, "completed",
				(json_int_t)s->feed_completed));
}

/* LB-01: whose address a path leads to; null: nobody's in this dataplane. */
static json_t *
local_port_json(const struct admin *adm, int16_t from, const struct wire_path *path)
{
	const int to = path->local
			       ? env_port_with(adm->env, (uint32_t)from, path->ipv6, path->dst_ip)
			       : -1;

	return to >= 0 ? json_string(adm->env->w.conf->ports[to].name) : json_null();
}

json_t *
admin_json_live(struct admin *adm, struct admin_qp *rec, const struct qp_snapshot *s)
{
	json_t *o = admin_json(adm, rec);
	const struct qp_attr *a = &rec->attr;
	const bool live = s->state >= QPS_RTR;
	const uint32_t epsn = live ? s->epsn : a->rq_psn;

	if (o == NULL)
		return NULL;
	json_object_set_new(o, "neighbor", neigh_json(adm->net, &rec->link));
	json_object_set_new(o, "local_port", local_port_json(adm, rec->port, &a->path));
	if (rec->alt_loaded)
		json_object_set_new(o, "alt_local_port",
			local_port_json(
				adm, rec->alt_port >= 0 ? rec->alt_port : rec->port, &a->alt_path));
	if (rec->alt_loaded)
		json_object_set_new(o, "alt_neighbor", neigh_json(adm->net, &rec->alt_link));
	json_object_set_new(o, "path_mig_state",
		json_string(verbs_mig_state_name((enum mig_state)s->attr.path_mig_state)));
	json_object_set_new(o, "migrations", json_integer(s->migrations));
	json_object_set_new(o, "qp_state", json_string(verbs_qp_state_name(s->state)));
	json_object_set_new(o, "cur_qp_state", json_string(verbs_qp_state_name(s->state)));
	if ((rec->given & QP_ATTR_RQ_PSN) != 0)
		json_object_set_new(o, "rq_psn", json_integer(epsn));
	json_object_set_new(o, "epsn", json_integer(epsn));
	json_object_set_new(o, "msn", json_integer(s->msn));
	set_requester(adm, o, rec, s);
	json_object_set_new(o, "timeout_us",
		a->timeout == 0 ? json_null() : json_real(4.096 * (double)(1ull << a->timeout)));
	json_object_set_new(o, "min_rnr_timer_us", json_integer(wire_rnr_us(a->min_rnr_timer)));
	set_receive(o, rec, s);
	json_object_set_new(o, "answers_pending", json_integer(s->answers));
	json_object_set_new(o, "nak_latched", json_boolean(s->latched));
	json_object_set_new(o, "fatal_code", json_integer(s->fatal));
	json_object_set_new(o, "fatal", fatal_json(adm, rec));
	json_object_set_new(o, "last_event", last_event_json(adm, rec));
	json_object_set_new(o, "trace", json_boolean(rec->trace));
	return o;
}
