/* SPDX-License-Identifier: BSD-3-Clause */
/* Methods of connections. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "methods.h"

#define REPLY_BYTES (RPC_LINE_MAX - 65536)

enum { TIMEOUT_MS = 30000, TIMEOUT_MS_MAX = 600000, REASON_CONSUMER = 28 };
enum {
	GIVEN_RESPONDER = 1,
	GIVEN_INITIATOR = 2,
	GIVEN_RETRY = 4,
	GIVEN_RNR = 8,
	GIVEN_QP = 16,
};

struct p_id {
	uint32_t id;
};

struct p_connect {
	uint64_t given;
	char port[CONF_NAME_MAX];
	struct conf_ip dest_ip;
	uint32_t ps;
	uint32_t service_port;
	uint32_t responder_resources, initiator_depth;
	uint32_t retry_count, rnr_retry_count;
	uint32_t timeout_ms;
	uint32_t traffic_class;
	struct conf_bytes private_data;
	const json_t *qp;
};

struct p_answer {
	uint64_t given;
	uint32_t id;
	uint32_t reason;
	struct conf_bytes private_data;
	const json_t *qp;
};

struct p_cm_events {
	uint32_t max;
	bool follow;
};

/* clang-format off */
#define P_HEX(S, m) \
	{ .name = #m, .type = CONF_T_HEX, .offset = offsetof(struct S, m), .max = CM_PRIVATE_MAX, P_OPTIONAL }
#define P_JSON(S, m, ...) \
	{ .name = #m, .type = CONF_T_JSON, .offset = offsetof(struct S, m), __VA_ARGS__ }
#define P_IP(S, m) \
	{ .name = #m, .type = CONF_T_IP, .offset = offsetof(struct S, m), .min = 4, .max = 6, P_REQUIRED }

static const struct conf_field connect_rows[] = {
	P_NAME(p_connect, port, P_REQUIRED),
	P_IP(p_connect, dest_ip),
	P_ENUM(p_connect, ps, conf_names_cm_ps, P_DEFAULT(CONF_PS_TCP)),
	P_U32(p_connect, service_port, 1, UINT16_MAX, P_REQUIRED),
	P_U32(p_connect, responder_resources, 0, 255, P_OPTIONAL, .given = GIVEN_RESPONDER),
	P_U32(p_connect, initiator_depth, 0, 255, P_OPTIONAL, .given = GIVEN_INITIATOR),
	P_U32(p_connect, retry_count, 0, 7, P_OPTIONAL, .given = GIVEN_RETRY),
	P_U32(p_connect, rnr_retry_count, 0, 7, P_OPTIONAL, .given = GIVEN_RNR),
	P_U32(p_connect, timeout_ms, 1, TIMEOUT_MS_MAX, P_DEFAULT(TIMEOUT_MS)),
	P_U32(p_connect, traffic_class, 0, 255, P_DEFAULT(0)),
	P_HEX(p_connect, private_data),
	P_JSON(p_connect, qp, P_REQUIRED),
};
static const struct conf_table connect_table = P_TABLE_GIVEN(p_connect, connect_rows, "params");

static const struct conf_field accept_rows[] = {
	P_U32(p_answer, id, 0, UINT32_MAX, P_REQUIRED),
	P_HEX(p_answer, private_data),
	P_JSON(p_answer, qp, P_OPTIONAL, .given = GIVEN_QP),
};
static const struct conf_table accept_table = P_TABLE_GIVEN(p_answer, accept_rows, "params");

static const struct conf_field reject_rows[] = {
	P_U32(p_answer, id, 0, UINT32_MAX, P_REQUIRED),
	P_HEX(p_answer, private_data),
	P_U32(p_answer, reason, 1, UINT16_MAX, P_DEFAULT(REASON_CONSUMER)),
};
static const struct conf_table reject_table = P_TABLE_GIVEN(p_answer, reject_rows, "params");

static const struct conf_field id_rows[] = {
	P_U32(p_id, id, 0, UINT32_MAX, P_REQUIRED),
};
static const struct conf_table id_table = P_TABLE(p_id, id_rows, "params");

static const struct conf_field events_rows[] = {
	P_U32(p_cm_events, max, 1, CONNECT_EVENTS, P_DEFAULT(CONNECT_EVENTS)),
	P_BOOL(p_cm_events, follow, P_DEFAULT(0)),
};
static const struct conf_table events_table = P_TABLE(p_cm_events, events_rows, "params");
/* clang-format on */

/* What each connection's QP is made from. @return false: the error is in the call. */
static bool
decode_qp(struct rpc_call *call, const json_t *from, const char *port, struct conf_qp *qp)
{
	struct conf_errors err;
	bool good;

	conf_errors_init(&err);
	conf_enter(&err, "qp");
	good = conf_decode_qp(from, qp, &err) == 0;
	if (good && (qp->qp_num != 0 || qp->count != 1 || qp->qp_state != QPS_RESET)) {
		conf_fault(&err, NULL,
			"goes without qp_num, qp_state and count: the connection says them");
		good = false;
	}
	if (good && (qp->given & QP_ATTR_PORT) != 0 && strcmp(qp->port, port) != 0) {
		conf_fault(&err, "port", "is the connection's, \"%s\": leave it out", port);
		good = false;
	}
	if (!good)
		rpc_faults(call, RPC_INVALID_PARAMS, &err);
	conf_errors_free(&err);
	return good;
}

/* The listener as it is, and where its datagrams go. */
static int
listening(struct rpc_call *call, const struct conf_cm_listen *conf)
{
	const uint32_t qpn = connect_listener_qpn(call->m->connect, conf->name);
	json_t *o = conf_encode(&conf_table_cm_listen, conf);

	if (qpn != 0)
		json_object_set_new(o, "qp_num", json_integer(qpn));
	return rpc_result(call, o);
}

static int
cm_listen_method(struct rpc_call *call)
{
	struct conf_cm_listen *conf = calloc(1, sizeof(*conf));
	struct conf_errors err;
	struct refusal r;
	int rc;

	if (conf == NULL)
		return rpc_result(call, NULL);
	conf_errors_init(&err);
	if (conf_decode(&conf_table_cm_listen, call->raw, CONF_CREATE, conf, &err) != 0)
		rc = rpc_faults(call, RPC_INVALID_PARAMS, &err);
	else if (connect_listen(call->m->connect, conf, &r) != 0)
		rc = rpc_refused(call, &r);
	else
		rc = listening(call, conf);
	conf_errors_free(&err);
	free(conf);
	return rc;
}

static int
cm_unlisten_method(struct rpc_call *call)
{
	const struct p_name *p = call->params;
	struct refusal r;

	if (connect_unlisten(call->m->connect, p->name, &r) != 0)
		return rpc_refused(call, &r);
	return rpc_result(call, json_object());
}

static uint8_t
pick(uint64_t given, uint64_t bit, uint32_t value, uint8_t otherwise)
{
	return (given & bit) != 0 ? (uint8_t)value : otherwise;
}

static int
cm_connect_method(struct rpc_call *call)
{
	const struct p_connect *p = call->params;
	struct connect_request q = { .ps = p->ps,
		.service_port = (uint16_t)p->service_port,
		.private = p->private_data.data,
		.private_len = p->private_data.len,
		.time = p->timeout_ms * TIME_NS_PER_MS };
	struct connect_conn *cc;
	struct refusal r;

	q.port = env_port_named(call->m->env, p->port);
	if (q.port < 0)
		return rpc_invalid(call, "port: there is no port \"%s\"", p->port);
	if (!decode_qp(call, p->qp, p->port, &q.qp))
		return -1;
	if ((q.qp.given & QP_ATTR_AV) != 0)
		q.ah = q.qp.ah_attr;
	else
		q.ah.hop_limit = 64;
	q.ah.dest_ip = p->dest_ip;
	if (p->traffic_class != 0)
		q.ah.traffic_class = (uint8_t)p->traffic_class;
	q.qp.ah_attr = q.ah;
	q.qp.given |= QP_ATTR_AV;
	q.responder_resources =
		pick(p->given, GIVEN_RESPONDER, p->responder_resources, q.qp.max_dest_rd_atomic);
	q.initiator_depth = pick(p->given, GIVEN_INITIATOR, p->initiator_depth, q.qp.max_rd_atomic);
	q.retry_count = pick(p->given, GIVEN_RETRY, p->retry_count, q.qp.retry_cnt);
	q.rnr_retry_count = pick(p->given, GIVEN_RNR, p->rnr_retry_count, q.qp.rnr_retry);
	if (q.responder_resources > CONF_MAX_RD_ATOMIC)
		q.responder_resources = CONF_MAX_RD_ATOMIC;
	if (q.initiator_depth > CONF_MAX_RD_ATOMIC)
		q.initiator_depth = CONF_MAX_RD_ATOMIC;
	if (connect_ask(call->m->connect, &q, &cc, &r) != 0)
		return rpc_refused(call, &r);
	return rpc_result(call,
		json_pack("{s:I, s:I}", "id", (json_int_t)cc->id, "qp_num", (json_int_t)cc->qpn));
}

static int
cm_accept_method(struct rpc_call *call)
{
	const struct p_answer *p = call->params;
	struct connect_conn *cc;
	struct conf_qp qp;
	struct refusal r;

	cc = connect_find(call->m->connect, p->id, &r);
	if (cc != NULL && (p->given & GIVEN_QP) != 0 &&
		!decode_qp(call, p->qp, call->m->env->w.conf->ports[cc->port].name, &qp))
		return -1;
	if (cc == NULL ||
		connect_accept(call->m->connect, cc, (p->given & GIVEN_QP) != 0 ? &qp : NULL,
			p->private_data.data, p->private_data.len, &r) != 0)
		return rpc_refused(call, &r);
	return rpc_result(call, json_pack("{s:I}", "qp_num", (json_int_t)cc->qpn));
}

static int
cm_reject_method(struct rpc_call *call)
{
	const struct p_answer *p = call->params;
	struct refusal r;
	struct connect_conn *cc = connect_find(call->m->connect, p->id, &r);

	if (cc == NULL || connect_reject(call->m->connect, cc, (uint16_t)p->reason,
				  p->private_data.data, p->private_data.len, &r) != 0)
		return rpc_refused(call, &r);
	return rpc_result(call, json_object());
}

static int
cm_disconnect_method(struct rpc_call *call)
{
	const struct p_id *p = call->params;
	struct refusal r;
	struct connect_conn *cc = connect_find(call->m->connect, p->id, &r);

	if (cc == NULL || connect_disconnect(call->m->connect, cc, &r) != 0)
		return rpc_refused(call, &r);
	return rpc_result(call, json_object());
}

static int
cm_list_method(struct rpc_call *call)
{
	return rpc_result(call, connect_list_json(call->m->connect));
}

static int
cm_explain_method(struct rpc_call *call)
{
	const struct p_id *p = call->params;
	struct refusal r;
	struct connect_conn *cc = connect_find(call->m->connect, p->id, &r);

	if (cc == NULL)
		return rpc_refused(call, &r);
	return rpc_result(call, connect_explain(call->m->connect, cc));
}

static int
cm_events_method(struct rpc_call *call)
{
	const struct p_cm_events *p = call->params;
	json_t *list = json_array();
	size_t bytes = 0;

	if (p->follow && call->client == NULL) {
		json_decref(list);
		return rpc_invalid(call, "follow: there is no connection to carry notifications");
	}
	for (uint32_t n = 0; n < p->max && bytes < REPLY_BYTES && list != NULL; n++) {
		json_t *e = connect_event_take(call->m->connect);

		if (e == NULL)
			break;
		bytes += conf_json_size(e) + 1;
		list = conf_json_append(list, e);
	}
	if (p->follow)
		rpc_server_follow(call->m->rpc, call->client, RPC_CM_EVENTS);
	return rpc_result(call, list);
}

const struct rpc_method methods_cm[] = {
	{ "cm_listen", cm_listen_method, NULL },
	{ "cm_unlisten", cm_unlisten_method, &method_name_table },
	{ "cm_connect", cm_connect_method, &connect_table },
	{ "cm_accept", cm_accept_method, &accept_table },
	{ "cm_reject", cm_reject_method, &reject_table },
	{ "cm_disconnect", cm_disconnect_method, &id_table },
	{ "cm_list", cm_list_method, &method_no_params },
	{ "cm_explain", cm_explain_method, &id_table },
	{ "cm_events", cm_events_method, &events_table },
	{ NULL, NULL, NULL },
};
