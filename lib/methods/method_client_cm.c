/* SPDX-License-Identifier: BSD-3-Clause */
/* Methods of applications (librocelane): ids of connections. */
#include <errno.h>
#include <string.h>

#include "connect_client.h"
#include "method_client.h"
#include "method_client_cm.h"

enum {
	TIME_MS_MAX = 600000,
	LIFE_DEFAULT = 13, /* of a packet: 34 ms, which makes a timeout of 67 ms */
	RNR_DEFAULT = 12,  /* 640 us */
	TIMEOUT_MAX = 31,
	RNR_MAX = 31,
};

struct p_cm_resolve {
	uint32_t channel;
	struct conf_ip dest_ip, source_ip;
	uint32_t traffic_class;
	uint32_t timeout_ms;
};

struct p_cm_listen {
	uint32_t channel;
	struct conf_ip ip;
	uint32_t ip_version, ps, service_port, backlog, qp_type;
	uint32_t bound; /* handle of client_cm_bind; 0: it is not bound yet */
	bool reuse;
};

struct p_cm_terms {
	uint32_t handle;
	uint32_t qp_num;
	uint32_t ps, service_port, source_port;
	uint32_t responder_resources, initiator_depth, retry_count, rnr_retry_count;
	uint32_t qkey;    /* of a UD QP that accepts */
	uint32_t timeout; /* of the QP; 0: as it is usual */
	uint32_t timeout_ms;
	bool srq;
	bool flow_control;
	bool walk; /* the QP is walked here */
	uint32_t min_rnr_timer;
	struct conf_bytes private_data;
};

struct p_cm_disconnect {
	uint32_t handle;
	uint32_t qp_num; /* it goes to ERR first; 0: none */
};

struct p_cm_reject {
	uint32_t handle;
	uint32_t reason;
	struct conf_bytes private_data;
};

struct p_cm_channel {
	uint32_t handle;
	uint32_t channel;
};

/* clang-format off */
#define P_IP(S, m, ...) \
	{ .name = #m, .type = CONF_T_IP, .offset = offsetof(struct S, m), .min = 4, .max = 6, __VA_ARGS__ }
#define P_HEX(S, m) \
	{ .name = #m, .type = CONF_T_HEX, .offset = offsetof(struct S, m), .max = CM_PRIVATE_MAX, P_OPTIONAL }

static const struct conf_field resolve_rows[] = {
	P_U32(p_cm_resolve, channel, 1, UINT32_MAX, P_REQUIRED),
	P_IP(p_cm_resolve, dest_ip, P_REQUIRED),
	P_IP(p_cm_resolve, source_ip, P_OPTIONAL),
	P_U32(p_cm_resolve, traffic_class, 0, 255, P_DEFAULT(0)),
	P_U32(p_cm_resolve, timeout_ms, 0, TIME_MS_MAX, P_DEFAULT(2000)),
};
static const struct conf_table resolve_table = P_TABLE(p_cm_resolve, resolve_rows, "params");

static const struct conf_field listen_rows[] = {
	P_U32(p_cm_listen, channel, 1, UINT32_MAX, P_REQUIRED),
	P_IP(p_cm_listen, ip, P_OPTIONAL),
	P_U32(p_cm_listen, ip_version, 0, 6, P_DEFAULT(0)),
	P_ENUM(p_cm_listen, ps, conf_names_cm_ps, P_DEFAULT(CONF_PS_TCP)),
	P_U32(p_cm_listen, service_port, 0, UINT16_MAX, P_DEFAULT(0)),
	P_U32(p_cm_listen, backlog, 0, UINT32_MAX, P_DEFAULT(0)),
	P_ENUM(p_cm_listen, qp_type, conf_names_qp_type, P_DEFAULT(QPT_RC)),
	P_U32(p_cm_listen, bound, 0, UINT32_MAX, P_DEFAULT(0)),
	P_BOOL(p_cm_listen, reuse, P_DEFAULT(0)),
};
static const struct conf_table listen_table = P_TABLE(p_cm_listen, listen_rows, "params");

static const struct conf_field terms_rows[] = {
	P_U32(p_cm_terms, handle, 1, UINT32_MAX, P_REQUIRED),
	P_QPN(p_cm_terms, qp_num, P_REQUIRED),
	P_ENUM(p_cm_terms, ps, conf_names_cm_ps, P_DEFAULT(CONF_PS_TCP)),
	P_U32(p_cm_terms, service_port, 0, UINT16_MAX, P_DEFAULT(0)),
	P_U32(p_cm_terms, source_port, 0, UINT16_MAX, P_DEFAULT(0)),
	P_U32(p_cm_terms, responder_resources, 0, 255, P_DEFAULT(0)),
	P_U32(p_cm_terms, initiator_depth, 0, 255, P_DEFAULT(0)),
	P_U32(p_cm_terms, retry_count, 0, 7, P_DEFAULT(7)),
	P_U32(p_cm_terms, rnr_retry_count, 0, 7, P_DEFAULT(7)),
	P_U32(p_cm_terms, qkey, 0, UINT32_MAX, P_DEFAULT(CM_UD_QKEY)),
	P_U32(p_cm_terms, timeout, 0, TIMEOUT_MAX, P_DEFAULT(0)),
	P_U32(p_cm_terms, timeout_ms, 1, TIME_MS_MAX, P_DEFAULT(30000)),
	P_BOOL(p_cm_terms, srq, P_DEFAULT(0)),
	P_BOOL(p_cm_terms, flow_control, P_DEFAULT(1)),
	P_BOOL(p_cm_terms, walk, P_DEFAULT(0)),
	P_U32(p_cm_terms, min_rnr_timer, 0, RNR_MAX, P_DEFAULT(RNR_DEFAULT)),
	P_HEX(p_cm_terms, private_data),
};
static const struct conf_table terms_table = P_TABLE(p_cm_terms, terms_rows, "params");

static const struct conf_field disconnect_rows[] = {
	P_U32(p_cm_disconnect, handle, 1, UINT32_MAX, P_REQUIRED),
	P_QPN(p_cm_disconnect, qp_num, P_DEFAULT(0)),
};
static const struct conf_table disconnect_table =
	P_TABLE(p_cm_disconnect, disconnect_rows, "params");

static const struct conf_field reject_rows[] = {
	P_U32(p_cm_reject, handle, 1, UINT32_MAX, P_REQUIRED),
	P_U32(p_cm_reject, reason, CM_REJ_CONSUMER_DEFINED, CM_REJ_VENDOR_OPTION,
		P_DEFAULT(CM_REJ_CONSUMER_DEFINED)),
	P_HEX(p_cm_reject, private_data),
};
static const struct conf_table reject_table = P_TABLE(p_cm_reject, reject_rows, "params");

static const struct conf_field migrate_rows[] = {
	P_U32(p_cm_channel, handle, 1, UINT32_MAX, P_REQUIRED),
	P_U32(p_cm_channel, channel, 1, UINT32_MAX, P_REQUIRED),
};
static const struct conf_table migrate_table = P_TABLE(p_cm_channel, migrate_rows, "params");
/* clang-format on */

static json_t *
own_ip(const struct methods *m, const struct connect_id *id)
{
	const struct wire_port *us = m->env->w.ports[id->port].addr;
	const bool ipv6 = id->way.dest_ip.family == 6;
	struct conf_ip ip = { .family = id->way.dest_ip.family };
	char text[64];
	uint8_t gid[16];

	memcpy(ip.addr, ipv6 ? us->ipv6 : us->ipv4, ipv6 ? 16 : 4);
	connect_gid(&ip, gid);
	connect_gid_text(gid, text, sizeof(text));
	return json_string(text);
}

static int
id_resolve(struct rpc_call *call)
{
	const struct p_cm_resolve *p = call->params;
	const struct connect_resolve q = { .dest = p->dest_ip,
		.source = p->source_ip,
		.traffic_class = (uint8_t)p->traffic_class,
		.time = p->timeout_ms * TIME_NS_PER_MS };
	struct connect_client *cl = method_cm_client(call);
	struct connect_channel *ch;
	struct connect_id *id;
	struct refusal r;

	if (cl == NULL)
		return -1;
	ch = connect_channel_find(cl, p->channel, &r);
	if (ch == NULL || connect_client_resolve(call->m->connect, ch, cl, &q, &id, &r) != 0)
		return rpc_refused(call, &r);
	return rpc_result(call,
		json_pack("{s:I, s:i, s:o, s:b}", "handle", (json_int_t)id->handle, "port_num",
			id->port + 1, "own_ip", own_ip(call->m, id), "known", id->ah->known));
}

static struct connect_listen_for
listen_for(const struct p_cm_listen *p)
{
	return (struct connect_listen_for){ .ip = p->ip,
		.ip_version = (uint8_t)p->ip_version,
		.ps = p->ps,
		.service_port = (uint16_t)p->service_port,
		.backlog = p->backlog,
		.qp_type = p->qp_type,
		.reuse = p->reuse };
}

static int
id_listen(struct rpc_call *call)
{
	const struct p_cm_listen *p = call->params;
	struct connect_listen_for q = listen_for(p);
	struct connect_client *cl = method_cm_client(call);
	struct connect_channel *ch;
	struct connect_id *id = NULL;
	struct refusal r;
	uint32_t most;

	if (cl == NULL)
		return -1;
	most = connect_client_backlog(cl->owner);
	if (p->qp_type == QPT_UD && p->ps == CONF_PS_TCP)
		return rpc_invalid(call, "qp_type: UD goes with port space UDP");
	if (p->ip_version != 0 && p->ip_version != 4 && p->ip_version != 6)
		return rpc_invalid(call, "ip_version: 4, 6, or 0 for both");
	if (q.backlog == 0 || q.backlog > most)
		q.backlog = most;
	ch = connect_channel_find(cl, p->channel, &r);
	if (p->bound != 0)
		id = connect_id_find(cl, p->bound, &r);
	if (ch == NULL || (p->bound != 0 && id == NULL) ||
		connect_client_listen(call->m->connect, ch, cl, &q, &id, &r) != 0)
		return rpc_refused(call, &r);
	return rpc_result(call, json_pack("{s:I, s:i}", "handle", (json_int_t)id->handle,
					"service_port", q.service_port));
}

/* An id has its port before it listens. */
static int
id_bind(struct rpc_call *call)
{
	const struct p_cm_listen *p = call->params;
	struct connect_listen_for q = listen_for(p);
	struct connect_client *cl = method_cm_client(call);
	struct connect_channel *ch;
	struct connect_id *id;
	struct refusal r;

	if (cl == NULL)
		return -1;
	ch = connect_channel_find(cl, p->channel, &r);
	if (ch == NULL || connect_client_bind(call->m->connect, ch, cl, &q, &id, &r) != 0)
		return rpc_refused(call, &r);
	return rpc_result(call, json_pack("{s:I, s:i}", "handle", (json_int_t)id->handle,
					"service_port", q.service_port));
}

static int
id_connect(struct rpc_call *call)
{
	const struct p_cm_terms *p = call->params;
	struct connect_request q = { .ps = p->ps,
		.service_port = (uint16_t)p->service_port,
		.source_port = (uint16_t)p->source_port,
		.private = p->private_data.data,
		.private_len = p->private_data.len,
		.responder_resources = (uint8_t)p->responder_resources,
		.initiator_depth = (uint8_t)p->initiator_depth,
		.retry_count = (uint8_t)p->retry_count,
		.rnr_retry_count = (uint8_t)p->rnr_retry_count,
		.qpn = p->qp_num,
		.srq = p->srq,
		.no_credits = !p->flow_control,
		.walks = p->walk,
		.time = p->timeout_ms * TIME_NS_PER_MS };
	struct refusal r;
	struct connect_id *id = method_cm_id(call, p->handle, &r);

	q.qp.min_rnr_timer = (uint8_t)p->min_rnr_timer;
	q.qp.timeout = (uint8_t)(p->timeout != 0 ? p->timeout : LIFE_DEFAULT + 1);
	if (q.responder_resources > CONF_MAX_RD_ATOMIC)
		q.responder_resources = CONF_MAX_RD_ATOMIC;
	if (q.initiator_depth > CONF_MAX_RD_ATOMIC)
		q.initiator_depth = CONF_MAX_RD_ATOMIC;
	if (id == NULL ||
		connect_client_qp(call->m->connect, id->client, p->qp_num, p->walk, &r) != 0 ||
		connect_client_ask(call->m->connect, id, &q, &r) != 0)
		return rpc_refused(call, &r);
	return rpc_result(call, json_object());
}

static int
id_accept(struct rpc_call *call)
{
	const struct p_cm_terms *p = call->params;
	const struct connect_answer a = { .own = { .qpn = p->qp_num,
						  .responder_resources =
							  (uint8_t)p->responder_resources,
						  .initiator_depth = (uint8_t)p->initiator_depth,
						  .rnr_retry_count = (uint8_t)p->rnr_retry_count,
						  .qkey = p->qkey,
						  .srq = p->srq,
						  .no_credits = !p->flow_control },
		.private = p->private_data.data,
		.private_len = p->private_data.len,
		.walk = p->walk,
		.min_rnr_timer = (uint8_t)p->min_rnr_timer };
	struct refusal r;
	struct connect_id *id = method_cm_id(call, p->handle, &r);

	if (id == NULL ||
		connect_client_qp(call->m->connect, id->client, p->qp_num, p->walk, &r) != 0 ||
		connect_client_accept(call->m->connect, id, &a, &r) != 0)
		return rpc_refused(call, &r);
	return rpc_result(call, json_object());
}

static int
with_id(struct rpc_call *call,
	int (*what)(struct connect *cx, struct connect_id *id, struct refusal *r))
{
	const struct p_handle *p = call->params;
	struct refusal r;
	struct connect_id *id = method_cm_id(call, p->handle, &r);

	if (id == NULL || what(call->m->connect, id, &r) != 0)
		return rpc_refused(call, &r);
	return rpc_result(call, json_object());
}

static int
id_establish(struct rpc_call *call)
{
	return with_id(call, connect_client_establish);
}

static int
id_disconnect(struct rpc_call *call)
{
	const struct p_cm_disconnect *p = call->params;
	struct refusal r;
	struct connect_id *id = method_cm_id(call, p->handle, &r);

	if (id == NULL || connect_client_disconnect(call->m->connect, id, p->qp_num, &r) != 0)
		return rpc_refused(call, &r);
	return rpc_result(call, json_object());
}

static int
id_reject(struct rpc_call *call)
{
	const struct p_cm_reject *p = call->params;
	struct refusal r;
	struct connect_id *id;

	if (p->reason != CM_REJ_CONSUMER_DEFINED && p->reason != CM_REJ_VENDOR_OPTION)
		return rpc_invalid(call, "reason: 28 or 35");
	id = method_cm_id(call, p->handle, &r);
	if (id == NULL || connect_client_reject(call->m->connect, id, (uint16_t)p->reason,
				  p->private_data.data, p->private_data.len, &r) != 0)
		return rpc_refused(call, &r);
	return rpc_result(call, json_object());
}

static int
id_reuse(struct rpc_call *call)
{
	return with_id(call, connect_client_reuse);
}

static int
destroy(struct connect *cx, struct connect_id *id, struct refusal *r UNUSED)
{
	connect_id_destroy(cx, id);
	return 0;
}

static int
id_destroy(struct rpc_call *call)
{
	return with_id(call, destroy);
}

static int
id_migrate(struct rpc_call *call)
{
	const struct p_cm_channel *p = call->params;
	struct refusal r;
	struct connect_id *id = method_cm_id(call, p->handle, &r);
	struct connect_channel *to =
		id != NULL ? connect_channel_find(id->client, p->channel, &r) : NULL;

	if (to == NULL)
		return rpc_refused(call, &r);
	connect_id_migrate(id, to);
	return rpc_result(call, json_object());
}

const struct rpc_method methods_client_cm[] = {
	{ "client_cm_resolve", id_resolve, &resolve_table },
	{ "client_cm_listen", id_listen, &listen_table },
	{ "client_cm_bind", id_bind, &listen_table },
	{ "client_cm_reuse", id_reuse, &method_handle_table },
	{ "client_cm_connect", id_connect, &terms_table },
	{ "client_cm_accept", id_accept, &terms_table },
	{ "client_cm_establish", id_establish, &method_handle_table },
	{ "client_cm_reject", id_reject, &reject_table },
	{ "client_cm_disconnect", id_disconnect, &disconnect_table },
	{ "client_cm_destroy", id_destroy, &method_handle_table },
	{ "client_cm_migrate", id_migrate, &migrate_table },
	{ NULL, NULL, NULL },
};
