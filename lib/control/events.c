/* SPDX-License-Identifier: BSD-3-Clause */
#include "events.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "internal.h"
#include "log.h"
#include "rpc.h"

enum { IBV_EVENT_CQ_ERR = 0, IBV_EVENT_PORT_ACTIVE = 9, IBV_EVENT_PORT_ERR = 10 };

const char *
events_name(uint8_t event)
{
	/* clang-format off */
	static const char *const names[] = {
		"CQ_ERR", "QP_FATAL", "QP_REQ_ERR", "QP_ACCESS_ERR", "COMM_EST", "SQ_DRAINED",
		"PATH_MIG", "PATH_MIG_ERR", "DEVICE_FATAL", "PORT_ACTIVE", "PORT_ERR", "LID_CHANGE",
		"PKEY_CHANGE", "SM_CHANGE", "SRQ_ERR", "SRQ_LIMIT_REACHED", "QP_LAST_WQE_REACHED",
		"CLIENT_REREGISTER", "GID_CHANGE", "WQ_FATAL",
	};
	/* clang-format on */

	if (event == EVENT_OVERFLOW)
		return "AEQ_OVERFLOW";
	return event < ARRAY_LEN(names) ? names[event] : "UNKNOWN";
}

static const char *
source_name(uint8_t source)
{
	static const char *const names[] = { [SOURCE_RQ] = "RQ", [SOURCE_SQ] = "SQ",
		[SOURCE_CQ] = "CQ", [SOURCE_READ_RESPONSE] = "READ_RESPONSE",
		[SOURCE_PORT] = "PORT" };

	return source < ARRAY_LEN(names) ? names[source] : "RQ";
}

/* Who the event is about: {"qp_num": 17}, {"cq": "cq0"}, {"port": "p0"}. */
static void
set_object(struct control *c, json_t *o, const struct event *e)
{
	const struct object_cq *cq;

	switch ((enum event_of)e->of) {
	case EVENT_OF_QP:
		json_object_set_new(o, "qp_num", json_integer(e->number));
		break;
	case EVENT_OF_CQ:
		cq = object_cq_by_id(c, e->number);
		json_object_set_new(o, "cq", json_string(cq != NULL ? cq->n.name : ""));
		break;
	case EVENT_OF_PORT:
		json_object_set_new(o, "port", json_string(c->env.conf->ports[e->number].name));
		break;
	case EVENT_OF_NOTHING:
		break;
	}
}

static json_t *
detail_of(const struct event *e)
{
	if (e->event == EVENT_OVERFLOW)
		return json_sprintf("%" PRIu64 " events were lost: the queue was full", e->lost);
	if (e->rule != 0)
		return json_sprintf("%s: %s", responder_rule_id(e->rule),
			responder_rule_text(e->rule));
	return json_string("");
}

static json_t *
event_json(struct control *c, const struct event *e)
{
	json_t *o = json_object();
	const char *opcode = wire_opcodes[e->opcode].name;

	if (o == NULL)
		return NULL;
	json_object_set_new(o, "event_type", json_string(events_name(e->event)));
	set_object(c, o, e);
	json_object_set_new(o, "source", json_string(source_name(e->source)));
	json_object_set_new(o, "fatal_code", json_integer(e->fatal));
	json_object_set_new(o, "psn", json_integer(e->psn));
	json_object_set_new(o, "time_ns", rpc_u64(e->time_ns));
	json_object_set_new(o, "detail", detail_of(e));
	if (e->rule != 0) {
		json_object_set_new(o, "rule", json_string(responder_rule_id(e->rule)));
		json_object_set_new(o, "opcode", json_string(opcode != NULL ? opcode : ""));
		json_object_set_new(o, "syndrome", json_integer(e->syndrome));
	}
	if (e->event == EVENT_OVERFLOW)
		json_object_set_new(o, "lost", rpc_u64(e->lost));
	return o;
}

/* To every client that follows. @return how many got it. */
static uint32_t
broadcast(struct control *c, const struct event *e)
{
	uint32_t n = 0;
	json_t *msg;
	char *line;

	if (c->server.followers == 0)
		return 0;
	msg = json_pack("{s:s, s:s, s:o}", "jsonrpc", "2.0", "method", "async_event", "params",
		event_json(c, e));
	line = msg != NULL ? json_dumps(msg, JSON_COMPACT) : NULL;
	if (line != NULL)
		n = rpc_server_notify(c, line, strlen(line));
	free(line);
	json_decref(msg);
	return n;
}

static struct event *
event_at(struct events *q, uint32_t i)
{
	return &q->ring[(q->head + i) % EVENTS_MAX];
}

/* The last slot of the ring is for the entry that tells of the loss. */
static void
note_lost(struct control *c, uint64_t lost)
{
	struct events *q = &c->events;
	struct event *last = q->n > 0 ? event_at(q, q->n - 1) : NULL;
	struct event e = { .of = EVENT_OF_NOTHING, .event = EVENT_OVERFLOW, .source = SOURCE_PORT,
		.time_ns = c->now, .lost = lost };

	q->overflow += lost;
	if (last != NULL && last->event == EVENT_OVERFLOW) {
		last->lost += lost;
		return;
	}
	if (q->n < EVENTS_MAX)
		*event_at(q, q->n++) = e;
}

static void
add(struct control *c, const struct event *e)
{
	struct events *q = &c->events;
	const uint32_t told = broadcast(c, e);

	if (q->n < EVENTS_MAX - 1)
		*event_at(q, q->n++) = *e;
	else if (told == 0)
		note_lost(c, 1);
}

static void
record_fatal(struct control *c, const struct mbox_msg *m)
{
	struct qp_rec *rec = qp_admin_find(c, m->ev.qpn);

	if (rec == NULL)
		return;
	rec->fatal = (struct qp_fatal){ .time_ns = m->ev.time_ns, .psn = m->ev.psn,
		.rule = m->ev.rule, .code = m->ev.fatal, .opcode = m->ev.opcode,
		.syndrome = m->ev.syndrome };
}

void
events_message(struct control *c, const struct mbox_msg *m, uint16_t worker)
{
	struct event e = { .time_ns = m->ev.time_ns, .number = m->ev.qpn, .psn = m->ev.psn,
		.rule = m->ev.rule, .event = m->ev.event, .source = m->source,
		.fatal = m->ev.fatal, .opcode = m->ev.opcode, .syndrome = m->ev.syndrome };
	const struct object_cq *cq;
	const struct qp_rec *rec;

	if (m->type == MBOX_FATAL) {
		record_fatal(c, m);
		return;
	}
	/* The source alone does not say it: a QP's own event may come from its CQ (class G). */
	if (m->ev.event == IBV_EVENT_CQ_ERR) {
		cq = object_cq_by_id(c, m->ev.qpn);
		if (cq == NULL || (m->ev.object != NULL && m->ev.object != &cq->q))
			return;
		e.of = EVENT_OF_CQ;
	} else {
		/* A number that is used again is another QP: this one may only be passed over. */
		rec = qp_admin_find(c, m->ev.qpn);
		if (rec == NULL || !rec->attached || rec->qp->worker != worker ||
			(m->ev.object != NULL && m->ev.object != rec->qp))
			return;
		e.of = EVENT_OF_QP;
	}
	add(c, &e);
}

void
events_port(struct control *c, uint32_t port, bool up)
{
	const struct event e = { .time_ns = c->now, .of = EVENT_OF_PORT, .number = port,
		.source = SOURCE_PORT,
		.event = up ? IBV_EVENT_PORT_ACTIVE : IBV_EVENT_PORT_ERR };

	log_info("port %s: link %s", c->env.conf->ports[port].name, up ? "up" : "down");
	add(c, &e);
}

void
events_check_lost(struct control *c)
{
	for (uint32_t w = 0; w < c->env.workers_n; w++) {
		const uint64_t lost = atomic_load_explicit(&c->env.workers[w].mbox->up_lost,
			memory_order_relaxed);

		if (lost != c->events.seen_lost[w])
			note_lost(c, lost - c->events.seen_lost[w]);
		c->events.seen_lost[w] = lost;
	}
}

void
events_forget(struct control *c, enum event_of of, uint32_t number)
{
	struct events *q = &c->events;
	uint32_t kept = 0;

	for (uint32_t i = 0; i < q->n; i++) {
		const struct event e = *event_at(q, i);

		if (e.of != of || e.number != number)
			*event_at(q, kept++) = e;
	}
	q->n = kept;
}

json_t *
events_take(struct control *c)
{
	struct events *q = &c->events;
	json_t *o;

	if (q->n == 0)
		return NULL;
	o = event_json(c, event_at(q, 0));
	if (o != NULL) {
		q->head++;
		q->n--;
	}
	return o;
}
