/* SPDX-License-Identifier: BSD-3-Clause */
#include "explain.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "admin_mcast.h"
#include "conf_json_value.h"
#include "diagnose.h"
#include "explain_net.h"
#include "explain_timer.h"
#include "explain_wait.h"
#include "wall.h"
#include "why.h"

/* ---- the flight recorder's share ------------------------------------------------------------ */

/* What follows an error says how it ended; drops and flushes in number say nothing more. */
void
story_go_on(struct story *s, const struct trace *t, uint32_t qpn)
{
	struct trace_entry e[256];
	const uint32_t got = trace_after(t, qpn, s->trace_at, e, ARRAY_LEN(e));
	uint32_t n = s->before, flushed = 0;

	if (got == 0)
		return;
	for (uint32_t i = 0; i < got; i++) {
		if (e[i].kind == TRACE_cqe && e[i].detail == WC_WR_FLUSH_ERR)
			flushed++;
		else if (e[i].kind != TRACE_drop && n < ARRAY_LEN(s->e))
			s->e[n++] = e[i];
	}
	s->n = n;
	s->flushed = flushed;
}

void
explain_keep(struct diagnose *dg, struct admin_qp *rec, uint64_t trace_at, ns_t time_ns)
{
	const struct trace *t = dg->env->w.workers[rec->worker].trace;
	const uint32_t qpn = rec->qpn;
	struct story *s;

	explain_forget(dg, rec);
	if (!rec->trace || t == NULL || dg->stories >= STORIES_MAX)
		return;
	s = calloc(1, sizeof(*s));
	if (s == NULL)
		return;
	s->time_ns = time_ns;
	s->trace_at = trace_at;
	s->before = trace_before(t, qpn, trace_at, s->e, STORY_BEFORE);
	s->n = s->before;
	story_go_on(s, t, qpn);
	rec->story = s;
	dg->stories++;
}

void
explain_forget(struct diagnose *dg, struct admin_qp *rec)
{
	if (rec->story == NULL)
		return;
	free(rec->story);
	rec->story = NULL;
	dg->stories--;
}

void
story_set(struct diagnose *dg, json_t *o, const struct story *s, uint32_t worker)
{
	json_t *list = json_array();

	for (uint32_t i = 0; s != NULL && i < s->n && list != NULL; i++)
		list = conf_json_append(list, explain_trace_entry(dg, &s->e[i], worker));
	json_object_set_new(o, "before", json_integer(s != NULL ? (json_int_t)s->before : 0));
	json_object_set_new(o, "trace", list);
}

/* ---- words ---------------------------------------------------------------------------------- */

static const char *
opcode_text(uint8_t opcode)
{
	const char *name = wire_opcodes[opcode].name;

	return name != NULL ? name : "reserved opcode";
}

/* "NAK 0x62 (remote access error)" */
static json_t *
syndrome_text(const struct qp_error *e)
{
	const uint8_t syndrome = e->syndrome;
	const char *text = wire_nak_text(wire_transport_of(e->opcode), syndrome & AETH_CODE_MASK);

	switch (syndrome & AETH_KIND_MASK) {
	case AETH_ACK:
		return json_sprintf("ACK 0x%02x", syndrome);
	case AETH_RNR:
		return json_sprintf(
			"RNR NAK 0x%02x (%u us)", syndrome, wire_rnr_us(syndrome & AETH_CODE_MASK));
	case AETH_NAK:
		return json_sprintf(
			"NAK 0x%02x (%s)", syndrome, text != NULL ? text : "reserved code");
	default:
		return json_sprintf("reserved syndrome 0x%02x", syndrome);
	}
}

static json_t *
peer_json(const struct failure *f)
{
	const struct wire_path *path = &f->path;
	const uint8_t *m = path->dmac;
	char ip[INET6_ADDRSTRLEN] = "";

	if (!f->connected)
		return json_null();
	inet_ntop(path->ipv6 ? AF_INET6 : AF_INET, path->dst_ip, ip, sizeof(ip));
	return json_pack("{s:s, s:o, s:i}", "ip", ip, "mac",
		f->resolved ? conf_json_mac(m) : json_null(), "qp_num", (int)f->peer_qpn);
}

static json_t *
packet_json(const struct qp_error *e)
{
	if ((e->flags & QP_ERROR_PACKET) == 0)
		return json_null();
	return json_pack("{s:I, s:i, s:s, s:i}", "psn", (json_int_t)e->psn, "opcode", e->opcode,
		"opcode_name", opcode_text(e->opcode), "length", e->len);
}

static json_t *
fault_json(const struct qp_error *e)
{
	const struct wire_fault_info *f;

	if (e->fault >= FAULT_MAX || wire_faults[e->fault].name == NULL)
		return json_null();
	f = &wire_faults[e->fault];
	return json_pack("{s:s, s:s, s:s, s:I}", "name", f->name, "text", f->text, "rule",
		f->clause, "syndrome", (json_int_t)(e->fault < 32 ? UINT32_C(1) << e->fault : 0));
}

static json_t *
answer_json(const struct qp_error *e)
{
	if ((e->flags & (QP_ERROR_NAK | QP_ERROR_ACK)) == 0)
		return json_null();
	return json_pack("{s:i, s:o}", "syndrome", e->syndrome, "text", syndrome_text(e));
}

void
failure_set_reports(json_t *o, const struct qp_error *e)
{
	json_object_set_new(o, "completion",
		(e->flags & QP_ERROR_COMPLETED) != 0
			? json_string(verbs_wc_status_name(e->wc_status))
			: json_null());
	json_object_set_new(o, "event",
		(e->flags & QP_ERROR_EVENT) != 0 ? json_string(verbs_event_name(e->event))
						 : json_null());
}

json_t *
failure_json(struct diagnose *dg, const struct failure *f)
{
	const struct qp_error *e = &f->error;
	const struct why_view view = { .time_ns = e->time_ns };
	const char *fatal = wire_fatal_text(e->fatal);
	const bool told = (e->flags & QP_ERROR_SEND) != 0;
	json_t *o = json_object();

	json_object_set_new(o, "rule", json_string(qp_rule_id(e->rule)));
	json_object_set_new(o, "text", json_string(qp_rule_text(e->rule)));
	json_object_set_new(o, "side", json_string(told ? "requester" : "responder"));
	wall_set(dg->env, o, e->time_ns);
	json_object_set_new(o, "psn", json_integer(e->psn));
	json_object_set_new(o, "packet", packet_json(e));
	json_object_set_new(o, "peer", peer_json(f));
	json_object_set_new(o, "fault", fault_json(e));
	json_object_set_new(
		o, "received_syndrome", told && e->syndrome != 0 ? syndrome_text(e) : json_null());
	json_object_set_new(o, "answer", answer_json(e));
	failure_set_reports(o, e);
	json_object_set_new(o, "memory", why_memory(dg, &view, &f->about.mem));
	json_object_set_new(o, "request", why_request(&f->about));
	json_object_set_new(o, "fatal_code", json_integer(e->fatal));
	json_object_set_new(
		o, "fatal_text", e->fatal != 0 && fatal != NULL ? json_string(fatal) : json_null());
	return o;
}

struct failure
failure_of(const struct admin_qp *rec, const struct qp_error *e)
{
	const uint16_t code = rec->last_event.code;
	const struct qp_failure *about = qp_failure(rec->qp);
	struct failure f = { .qpn = rec->qpn,
		.peer_qpn = rec->attr.dest_qp_num,
		.connected = admin_qp_type(rec) != QPT_UD,
		.path = rec->attr.path,
		.resolved = rec->attr.path_resolved,
		.reported = code != 0 && ring_aeq_code_class(code) == AEQ_CLASS_ABNORMAL ? code : 0,
		.error = *e };

	if (about != NULL && e->rule != 0 && about->rule == e->rule)
		f.about = *about;
	return f;
}

void
failure_text(struct diagnose *dg, const struct failure *f, char *text, size_t room)
{
	const struct qp_error *e = &f->error;
	const struct why_view view = { .time_ns = e->time_ns };
	json_t *why = why_text(dg, &view, &f->about.mem);
	size_t len;

	if (e->rule == 0 && f->reported != 0)
		snprintf(text, room, "abnormal event: %s", ring_aeq_code_text(f->reported));
	else if ((e->flags & QP_ERROR_PACKET) != 0)
		snprintf(text, room, "%s PSN %u: %s (%s)", opcode_text(e->opcode), e->psn,
			qp_rule_text(e->rule), qp_rule_id(e->rule));
	else
		snprintf(text, room, "at PSN %u: %s (%s)", e->psn, qp_rule_text(e->rule),
			qp_rule_id(e->rule));
	len = strlen(text);
	if (json_is_string(why))
		snprintf(text + len, room - len, ": %s", json_string_value(why));
	json_decref(why);
}

json_t *
failure_summary(struct diagnose *dg, const struct failure *f)
{
	char text[FAILURE_TEXT];

	failure_text(dg, f, text, sizeof(text));
	return json_string(text);
}

/* Of the QP, whether it has failed or not. */
static json_t *
summary(struct diagnose *dg, const struct failure *f, const struct qp_snapshot *s)
{
	if (f->error.time_ns != 0)
		return failure_summary(dg, f);
	return s->state == QPS_ERR ? json_string("no error since RESET: qp_modify moved the QP "
						 "to ERR")
				   : json_string("no error since RESET");
}

/* Where the QP is on its two paths, and what brought it there. */
static json_t *
path_json(struct diagnose *dg, const struct qp_snapshot *s)
{
	json_t *last = json_null();

	if (s->migrations != 0)
		last = json_pack("{s:s, s:s}", "rule", qp_rule_id(s->migration_rule), "text",
			qp_rule_text(s->migration_rule));
	if (s->migrations != 0)
		wall_set(dg->env, last, s->migration_ns);
	return json_pack("{s:s, s:I, s:o}", "path_mig_state",
		verbs_mig_state_name((enum mig_state)s->attr.path_mig_state), "migrations",
		(json_int_t)s->migrations, "last", last);
}

json_t *
explain_json(struct diagnose *dg, struct admin_qp *rec, const struct qp_snapshot *s)
{
	const struct failure f = failure_of(rec, &s->error);
	const bool failed = s->error.time_ns != 0;
	json_t *o = json_object();

	if (o == NULL)
		return NULL;
	json_object_set_new(o, "qp_num", json_integer(rec->qpn));
	json_object_set_new(o, "qp_state", json_string(verbs_qp_state_name(s->state)));
	json_object_set_new(o, "summary", explain_net_add(dg, rec, s, summary(dg, &f, s)));
	json_object_set_new(o, "error", failed ? failure_json(dg, &f) : json_null());
	json_object_set_new(o, "waits", explain_waits(dg, rec, s));
	json_object_set_new(o, "network", explain_net_json(dg, rec, s));
	if (s->stats.c[STAT_local_ack_timeout_err] != 0)
		json_object_set_new(o, "timeouts", explain_timeouts(s));
	if (s->migrations != 0 || s->attr.path_mig_state != MIG_MIGRATED)
		json_object_set_new(o, "path", path_json(dg, s));
	if (rec->mcasts_n != 0)
		json_object_set_new(o, "mcasts", admin_mcast_json(dg->admin, rec->qpn));
	json_object_set_new(o, "recorder", json_boolean(rec->trace));
	json_object_set_new(o, "flushed",
		json_integer((json_int_t)(s->stats.c[STAT_resp_cqe_flush_error] +
					  s->stats.c[STAT_req_cqe_flush_error])));
	if (failed) {
		/* The worker may have gone on a little since: the answer, the completions. */
		if (rec->story != NULL)
			story_go_on(rec->story, dg->env->w.workers[rec->worker].trace, rec->qpn);
		story_set(dg, o, rec->story, rec->worker);
	}
	return o;
}
