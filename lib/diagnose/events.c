/* SPDX-License-Identifier: BSD-3-Clause */
#include "events.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conf_json_value.h"
#include "diagnose.h"
#include "log.h"
#include "wall.h"
#include "why.h"

const char *
events_name(uint8_t event)
{
	if (event == EVENT_OVERFLOW)
		return "AEQ_OVERFLOW";
	return verbs_event_name(event);
}

/* Who the event is about: {"qp_num": 17}, {"cq": "cq0"}, {"port": "p0"}. */
static void
set_object(struct diagnose *dg, json_t *o, const struct event *e)
{
	const struct object_cq *cq;
	const struct object_srq *srq;

	switch ((enum object_kind)e->of) {
	case OBJECT_QP:
		json_object_set_new(o, "qp_num", json_integer(e->number));
		break;
	case OBJECT_CQ:
		cq = object_cq_by_id(dg->objects, e->number);
		json_object_set_new(o, "cq", json_string(cq != NULL ? cq->n.name : ""));
		break;
	case OBJECT_SRQ:
		srq = object_srq_by_id(dg->objects, e->number);
		json_object_set_new(o, "srq", json_string(srq != NULL ? srq->n.name : ""));
		break;
	case OBJECT_PORT:
		json_object_set_new(o, "port", json_string(dg->env->w.conf->ports[e->number].name));
		break;
	case OBJECT_NONE:
		break;
	}
}

/* "RESP-NAK-RAE-01: R_Key, range or access right refused: ..." */
static json_t *
rule_detail(struct diagnose *dg, const struct owner *viewer, const struct event *e)
{
	const struct why_view view = { .owner = viewer, .time_ns = e->time_ns };
	json_t *why = why_text(dg, &view, &e->about.mem);
	const char *text = json_string_value(why);
	char request[48] = "";
	json_t *v;

	if (e->about.work != QP_FAILED_NONE && !e->about.fed)
		snprintf(request, sizeof(request), "; wr_id %" PRIu64, e->about.wr_id);
	v = json_sprintf("%s: %s%s%s%s", qp_rule_id(e->rule), qp_rule_text(e->rule),
		text != NULL ? ": " : "", text != NULL ? text : "", request);

	json_decref(why);
	return v;
}

json_t *
events_detail(struct diagnose *dg, const struct owner *viewer, const struct event *e)
{
	if (e->event == EVENT_OVERFLOW)
		return json_sprintf("%" PRIu64 " events were lost: the queue was full", e->lost);
	if (e->rule != 0)
		return rule_detail(dg, viewer, e);
	if (e->code != 0 && e->code != AEQ_QP_REPORT)
		return json_string(ring_aeq_code_text(e->code));
	switch (e->event) {
	case EVENT_SRQ_ERR:
		return json_string("the ring or one of its entries is malformed");
	case EVENT_SRQ_LIMIT_REACHED:
		return json_string("fewer are posted than srq_limit, which is disarmed now");
	case EVENT_RQ_LIMIT_REACHED:
		return json_string("fewer are posted than rq_limit, which is disarmed now");
	case EVENT_QP_LAST_WQE_REACHED:
		return json_string("the QP takes no more from its shared receive queue");
	default:
		return json_string("");
	}
}

/* Only where there is something: most events are of something else. */
static void
set_about(struct diagnose *dg, json_t *o, const struct event *e)
{
	const struct why_view view = { .time_ns = e->time_ns };

	if (e->about.mem.why != MEM_WHY_NONE)
		json_object_set_new(o, "memory", why_memory(dg, &view, &e->about.mem));
	if (e->about.work != QP_FAILED_NONE)
		json_object_set_new(o, "request", why_request(&e->about));
}

json_t *
events_json(struct diagnose *dg, const struct event *e)
{
	json_t *o = json_object();
	const char *opcode = wire_opcodes[e->opcode].name;

	if (o == NULL)
		return NULL;
	json_object_set_new(o, "event_type", json_string(events_name(e->event)));
	set_object(dg, o, e);
	json_object_set_new(o, "source", json_string(e->source));
	if (e->code != 0)
		json_object_set_new(o, "code", json_integer(e->code));
	json_object_set_new(o, "fatal_code", json_integer(e->fatal));
	json_object_set_new(o, "psn", json_integer(e->psn));
	wall_set(dg->env, o, e->time_ns);
	json_object_set_new(o, "detail", events_detail(dg, NULL, e));
	if (e->rule != 0) {
		json_object_set_new(o, "rule", json_string(qp_rule_id(e->rule)));
		json_object_set_new(o, "opcode", json_string(opcode != NULL ? opcode : ""));
		json_object_set_new(o, "syndrome", json_integer(e->syndrome));
	}
	set_about(dg, o, e);
	if (e->event == EVENT_OVERFLOW)
		json_object_set_new(o, "lost", conf_json_u64(e->lost));
	return o;
}

static struct event *
event_at(struct events *q, uint32_t i)
{
	return &q->ring[(q->head + i) % EVENTS_MAX];
}

/* The last slot of the ring is for the entry that tells of the loss. */
static void
note_lost(struct diagnose *dg, uint64_t lost)
{
	struct events *q = &dg->events;
	struct event *last = q->n > 0 ? event_at(q, q->n - 1) : NULL;
	struct event e = { .of = OBJECT_NONE,
		.event = EVENT_OVERFLOW,
		.source = "PORT",
		.time_ns = dg->env->now,
		.lost = lost };

	q->overflow += lost;
	if (last != NULL && last->event == EVENT_OVERFLOW) {
		last->lost += lost;
		return;
	}
	if (q->n < EVENTS_MAX)
		*event_at(q, q->n++) = e;
}

static void
add(struct diagnose *dg, const struct event *e)
{
	struct events *q = &dg->events;

	if (dg->up.event(dg->up.ctx, e) != 0)
		return; /* it is taken */
	if (q->n < EVENTS_MAX - 1)
		*event_at(q, q->n++) = *e;
	else
		note_lost(dg, 1);
}

/* ---- what workers say ---------------------------------------------------------------------- */

/*
 * The QP that a number stands for now. A number that is used again is another QP: what was said of
 * the one before is passed over.
 */
static struct admin_qp *
qp_of(struct diagnose *dg, uint32_t qpn, uint64_t context, uint16_t worker)
{
	struct admin_qp *rec = admin_find(dg->admin, qpn);

	if (rec == NULL || !rec->attached || rec->worker != worker ||
		(context != 0 && context != (uintptr_t)rec->qp))
		return NULL;
	return rec;
}

void
events_fatal(struct diagnose *dg, const struct mbox_msg *m, uint16_t worker)
{
	struct admin_qp *rec = qp_of(dg, m->ev.qpn, (uintptr_t)m->ev.object, worker);

	if (rec == NULL)
		return;
	explain_keep(dg, rec, m->ev.trace_at, m->ev.time_ns);
	post_mortem_add(dg, rec, m);
	if (m->ev.fatal == 0)
		return;
	rec->fatal = (struct admin_fatal){ .time_ns = m->ev.time_ns,
		.psn = m->ev.psn,
		.rule = m->ev.rule,
		.code = m->ev.fatal,
		.opcode = m->ev.opcode,
		.syndrome = m->ev.syndrome };
}

static struct event
event_of(const struct ring_aeq_event *e, enum object_kind of)
{
	return (struct event){ .time_ns = e->time_ns,
		.number = e->id,
		.psn = e->psn,
		.rule = e->rule,
		.of = (uint8_t)of,
		.event = e->event,
		.code = e->code,
		.source = ring_aeq_source_name(e->source),
		.fatal = e->fatal,
		.opcode = e->opcode,
		.syndrome = e->syndrome };
}

/* AEQ-08 */
static void
cq_operation(struct diagnose *dg, const struct ring_aeq_event *e)
{
	const struct object_cq *cq = object_cq_by_id(dg->objects, e->id);
	struct event out;

	if (cq == NULL || cq->quiet || (e->context != 0 && e->context != (uintptr_t)&cq->q))
		return;
	out = event_of(e, OBJECT_CQ);
	out.event = EVENT_CQ_ERR;
	out.code = 0;
	add(dg, &out);
}

/* SRQ-02, SRQ-04 */
static void
srq_report(struct diagnose *dg, const struct ring_aeq_event *e)
{
	const struct object_srq *srq = object_srq_by_id(dg->objects, e->id);
	struct event out;

	if (srq == NULL || (e->context != 0 && e->context != (uintptr_t)&srq->q) ||
		(e->event != EVENT_SRQ_ERR && e->event != EVENT_SRQ_LIMIT_REACHED))
		return;
	out = event_of(e, OBJECT_SRQ);
	out.code = 0;
	add(dg, &out);
}

/*
 * AEQ-10, AEQ-11: the worker brings the QP to ERR; the failing request of the queue that the source
 * names takes the status. Where there is none, the event tells.
 */
static void
abnormal(struct diagnose *dg, struct admin_qp *rec, const struct ring_aeq_event *e)
{
	const struct aeq_flush flush = ring_aeq_flush_of(e->code);
	const struct ask_request q = { .worker = rec->worker,
		.msg = { .type = MBOX_QP_FAIL,
			.fail = { .qp = rec->qp,
				.wqe_index = e->wqe_index,
				.queue = e->flags & (AEQ_RQ | AEQ_SQ),
				.status = flush.status } } };
	struct event out = event_of(e, OBJECT_QP);
	struct mbox_done done = { 0 };
	int rc;

	log_warn("QP %u: %s (source %s): flushed, %s", rec->qpn, ring_aeq_code_text(e->code),
		ring_aeq_source_name(e->source), flush.name);
	rc = ask_and_answer(dg->env, &q, &done);
	if (rc == -EALREADY)
		return; /* it was told of before */
	if (rc != 0)
		log_error("QP %u: worker %u does not bring it to ERR: %s", rec->qpn, rec->worker,
			strerror(-rc));
	if (done.carried && rec->shared->knobs.ae_with_cqe == 0)
		return;
	out.event = flush.event;
	add(dg, &out);
}

static void
qp_event(struct diagnose *dg, struct admin_qp *rec, const struct ring_aeq_event *e)
{
	const struct qp_failure *about = qp_failure(rec->qp);
	struct event out = event_of(e, OBJECT_QP);

	if (about != NULL && e->rule != 0 && about->rule == e->rule)
		out.about = *about;
	admin_alternate_sync(dg->admin, rec);
	rec->last_event = (struct event_last){ .time_ns = e->time_ns,
		.code = e->code,
		.wqe_index = (e->flags & AEQ_RQ) != 0 ? e->wqe_index : 0,
		.source = e->source,
		.event = e->event };
	switch (ring_aeq_code_class(e->code)) {
	case AEQ_CLASS_REPORT:
		add(dg, &out);
		break;
	case AEQ_CLASS_ABNORMAL:
		/* Has its worker carried it out? UC's and UD's may lead to SQE (QP-11). */
		if (e->state == QPS_ERR || e->state == QPS_SQE)
			add(dg, &out);
		else
			abnormal(dg, rec, e);
		break;
	case AEQ_CLASS_INFO: /* AEQ-09 */
		log_debug("QP %u: %s", rec->qpn, ring_aeq_code_text(e->code));
		break;
	case AEQ_CLASS_CQ_ERROR:
	case AEQ_CLASS_SUSPEND:
		break;
	}
}

static void
consume(struct diagnose *dg, const struct ring_aeq_event *e, uint16_t worker)
{
	struct admin_qp *rec;

	if (ring_aeq_code_class(e->code) == AEQ_CLASS_CQ_ERROR) {
		cq_operation(dg, e);
		return;
	}
	if ((e->flags & AEQ_SRQ) != 0) {
		srq_report(dg, e);
		return;
	}
	if ((e->flags & AEQ_QP) == 0)
		return; /* AEQ-07 */
	if (ring_aeq_code_class(e->code) == AEQ_CLASS_SUSPEND) {
		admin_quiet_end(dg->admin);
		return;
	}
	rec = qp_of(dg, e->id, e->context, worker);
	if (rec == NULL)
		return;
	admin_hold(rec); /* AEQ-06 */
	qp_event(dg, rec, e);
	admin_put(dg->admin, rec);
}

uint32_t
events_drain(struct diagnose *dg, uint16_t worker)
{
	struct mbox *b = dg->env->w.workers[worker].mbox;
	struct ring_aeq_event e;

	while (mbox_next_event(b, &e)) {
		if (e.overflow)
			events_check_lost(dg);
		consume(dg, &e, worker);
	}
	return mbox_events_done(b);
}

void
events_device(struct diagnose *dg, uint32_t port)
{
	const struct event e = { .time_ns = dg->env->now,
		.of = OBJECT_PORT,
		.number = port,
		.source = "PORT",
		.event = EVENT_DEVICE_FATAL };

	log_error("port %s: the device failed", dg->env->w.conf->ports[port].name);
	add(dg, &e);
}

void
events_port(struct diagnose *dg, uint32_t port, bool up)
{
	const struct event e = { .time_ns = dg->env->now,
		.of = OBJECT_PORT,
		.number = port,
		.source = "PORT",
		.event = up ? EVENT_PORT_ACTIVE : EVENT_PORT_ERR };

	log_info("port %s: link %s", dg->env->w.conf->ports[port].name, up ? "up" : "down");
	add(dg, &e);
}

void
events_check_lost(struct diagnose *dg)
{
	for (uint32_t w = 0; w < dg->env->w.workers_n; w++) {
		const uint64_t lost = mbox_events_lost(dg->env->w.workers[w].mbox);

		if (lost != dg->events.seen_lost[w])
			note_lost(dg, lost - dg->events.seen_lost[w]);
		dg->events.seen_lost[w] = lost;
	}
}

static bool
is_of(const struct event *e, enum object_kind of, uint32_t number)
{
	return e->of == of && e->number == number;
}

void
events_forget(struct diagnose *dg, enum object_kind of, uint32_t number)
{
	struct events *q = &dg->events;
	uint32_t kept = 0;

	while (kept < q->n && !is_of(event_at(q, kept), of, number))
		kept++;
	for (uint32_t i = kept; i < q->n; i++) {
		const struct event e = *event_at(q, i);

		if (!is_of(&e, of, number))
			*event_at(q, kept++) = e;
	}
	q->n = kept;
}

json_t *
events_take(struct diagnose *dg)
{
	struct events *q = &dg->events;
	json_t *o;

	if (q->n == 0)
		return NULL;
	o = events_json(dg, event_at(q, 0));
	if (o != NULL) {
		q->head++;
		q->n--;
	}
	return o;
}

uint32_t
events_waiting(const struct diagnose *dg)
{
	return dg->events.n;
}

json_t *
events_look(struct diagnose *dg, uint32_t i)
{
	return events_json(dg, event_at(&dg->events, i));
}
