/* SPDX-License-Identifier: BSD-3-Clause */
/* Connections: queue pairs, and what peers are asked and answered. */
#include <errno.h>
#include <string.h>

#include "cm.h"

#define TIMEOUT_MAX     31
#define RETRIES         7 /* as many as a message can say */
#define REASON_PROGRAM  28
#define RNR_TIMER       12 /* 640 us */
#define CONNECT_WAIT_MS 60000

/* ---- queue pairs ----------------------------------------------------------------------------- */

int
rl_cm_init_qp_attr(struct rl_cm_id *pub, struct rl_qp_attr *attr, int *mask)
{
	const struct cm_id *id = cm_id_of(pub);
	const enum rl_qp_state to = attr->qp_state;
	const bool rc = pub->qp_type == RL_QPT_RC, ud = pub->qp_type == RL_QPT_UD;
	const bool asks = rc || pub->qp_type == RL_QPT_XRC_SEND;
	const bool answers = rc || pub->qp_type == RL_QPT_XRC_RECV;

	if (to != RL_QPS_INIT && !ud && !id->has_attr)
		return client_fail(EINVAL, "the peer has said nothing yet");
	*attr = id->attr;
	attr->qp_state = to;
	*mask = RL_QP_STATE;
	if (to == RL_QPS_INIT) {
		attr->port_num = pub->port_num;
		attr->pkey_index = 0;
		attr->qp_access_flags =
			RL_ACCESS_REMOTE_WRITE | RL_ACCESS_REMOTE_READ | RL_ACCESS_REMOTE_ATOMIC;
		attr->qkey = RL_UDP_QKEY;
		*mask |= RL_QP_PORT | RL_QP_PKEY_INDEX | (ud ? RL_QP_QKEY : RL_QP_ACCESS_FLAGS);
		if (pub->port_num == 0)
			return client_fail(EINVAL, "the id has no port yet");
	} else if (to == RL_QPS_RTR && !ud) {
		attr->min_rnr_timer = RNR_TIMER;
		*mask |= RL_QP_AV | RL_QP_PATH_MTU | RL_QP_DEST_QPN | RL_QP_RQ_PSN;
		if (answers)
			*mask |= RL_QP_MAX_DEST_RD_ATOMIC | RL_QP_MIN_RNR_TIMER;
	} else if (to == RL_QPS_RTS) {
		*mask |= RL_QP_SQ_PSN;
		if (asks || answers)
			*mask |= RL_QP_TIMEOUT;
		if (asks)
			*mask |= RL_QP_RETRY_CNT | RL_QP_RNR_RETRY | RL_QP_MAX_QP_RD_ATOMIC;
	}
	return 0;
}

static uint8_t
least(uint8_t a, uint8_t b)
{
	return a < b ? a : b;
}

int
rl_cm_create_qp(struct rl_cm_id *pub, struct rl_pd *pd, struct rl_qp_init_attr *init)
{
	if (pub->qp != NULL || pd->context != pub->context)
		return client_fail(EINVAL, "the id has a QP, or the PD is of another context");
	if (pub->port_num == 0)
		return client_fail(EINVAL, "the id has no port yet");
	if (init->qp_type == RL_QPT_UD && pub->ps == RL_PS_TCP)
		return client_fail(EINVAL, "UD goes with port space UDP");
	pub->qp_type = init->qp_type;
	return client_create_qp(pd, init, pub->port_num, &pub->qp);
}

int
rl_cm_destroy_qp(struct rl_cm_id *pub)
{
	const int rc = pub->qp != NULL ? rl_destroy_qp(pub->qp) : 0;

	if (rc == 0)
		pub->qp = NULL;
	return rc;
}

int
rl_cm_set_timeout(struct rl_cm_id *pub, uint8_t timeout)
{
	if (timeout > TIMEOUT_MAX)
		return client_fail(EINVAL, "timeout %u: 31 at most", timeout);
	cm_id_of(pub)->timeout = timeout;
	return 0;
}

/*
 * Programs say it between ADDR_RESOLVED and rdma_resolve_route(), where Linux reads it: the way to
 * the peer is there by then. Of a listener or a peer's id nothing is asked by it.
 */
int
rl_cm_set_tos(struct rl_cm_id *pub, uint8_t tos)
{
	struct context *ctx = context_of(pub->context);
	struct cm_id *id = cm_id_of(pub);
	int rc = 0;

	client_lock(ctx);
	if (id->handle != 0 && tos != id->tos)
		rc = client_call(ctx, "client_cm_class",
			json_pack("{s:I, s:i}", "handle", (json_int_t)id->handle, "traffic_class",
				(int)tos),
			-1, NULL);
	if (rc == 0)
		id->tos = tos;
	client_unlock(ctx);
	return rc;
}

/* ---- connect and answer ---------------------------------------------------------------------- */

static const struct rl_cm_conn_param usual = { .responder_resources = RL_CM_MAX_RESP_RES,
	.initiator_depth = RL_CM_MAX_INIT_DEPTH,
	.flow_control = 1,
	.retry_count = RETRIES,
	.rnr_retry_count = RETRIES };

static json_t *
private_json(const void *data, uint32_t len)
{
	static const char digits[] = "0123456789abcdef";
	const uint8_t *bytes = data;
	char text[2 * 256];

	for (uint32_t i = 0; i < len; i++) {
		text[2 * i] = digits[bytes[i] >> 4];
		text[2 * i + 1] = digits[bytes[i] & 15];
	}
	return json_stringn(text, 2 * (size_t)len);
}

/* What both calls say. */
static json_t *
terms_json(const struct cm_id *id, const struct rl_cm_conn_param *p)
{
	const struct rl_qp *qp = id->pub.qp;
	json_t *o = json_pack("{s:I, s:I, s:i, s:i, s:i, s:i, s:b, s:b}", "handle",
		(json_int_t)id->handle, "qp_num", (json_int_t)(qp != NULL ? qp->qp_num : p->qp_num),
		"responder_resources", id->responder_resources, "initiator_depth",
		id->initiator_depth, "retry_count", least(p->retry_count, RETRIES),
		"rnr_retry_count", least(p->rnr_retry_count, RETRIES), "srq",
		qp != NULL ? qp->srq != NULL : p->srq != 0, "flow_control", p->flow_control != 0);

	if (client_cm_walks(id)) {
		json_object_set_new(o, "walk", json_true());
		json_object_set_new(o, "min_rnr_timer", json_integer(RNR_TIMER));
	}
	if (id->pub.qp_type == RL_QPT_UD && qp == NULL && p->qkey != 0)
		json_object_set_new(o, "qkey", json_integer(p->qkey));
	if (p->private_data_len != 0)
		json_object_set_new(
			o, "private_data", private_json(p->private_data, p->private_data_len));
	return o;
}

int
rl_cm_connect(struct rl_cm_id *pub, const struct rl_cm_conn_param *param)
{
	const struct rl_cm_conn_param *p = param != NULL ? param : &usual;
	struct context *ctx = context_of(pub->context);
	struct cm_id *id = cm_id_of(pub);
	json_t *params;
	int rc;

	if (id->handle == 0 || id->peers)
		return client_fail(EINVAL, "the peer's address is not resolved");
	id->responder_resources = p->responder_resources;
	id->initiator_depth = p->initiator_depth;
	params = terms_json(id, p);
	json_object_set_new(params, "ps", json_string(client_cm_space(pub->ps)));
	json_object_set_new(params, "service_port", json_integer(client_cm_port(&id->peer)));
	json_object_set_new(params, "source_port", json_integer(client_cm_port(&id->local)));
	json_object_set_new(params, "timeout", json_integer(id->timeout));
	json_object_set_new(params, "timeout_ms", json_integer(CONNECT_WAIT_MS));
	client_lock(ctx);
	rc = client_call(ctx, "client_cm_connect", params, -1, NULL);
	client_unlock(ctx);
	return rc;
}

int
rl_cm_accept(struct rl_cm_id *pub, const struct rl_cm_conn_param *param)
{
	const struct rl_cm_conn_param *p = param != NULL ? param : &usual;
	struct context *ctx = context_of(pub->context);
	struct cm_id *id = cm_id_of(pub);
	int rc;

	if (!id->peers || id->answered)
		return client_fail(EINVAL, "no peer waits for an answer");
	id->responder_resources = least(p->responder_resources, id->attr.max_dest_rd_atomic);
	id->initiator_depth = least(p->initiator_depth, id->attr.max_rd_atomic);
	client_lock(ctx);
	rc = client_call(ctx, "client_cm_accept", terms_json(id, p), -1, NULL);
	id->answered = rc == 0;
	if (rc == 0 && client_cm_walks(id))
		client_qp_is(qp_of(pub->qp), RL_QPS_RTS);
	client_unlock(ctx);
	return rc;
}

static int
call_locked(struct rl_cm_id *pub, const char *method)
{
	struct context *ctx = context_of(pub->context);
	const struct cm_id *id = cm_id_of(pub);
	int rc;

	if (id->handle == 0)
		return client_fail(EINVAL, "the id has no connection");
	client_lock(ctx);
	rc = client_cm_call(ctx, id, method);
	client_unlock(ctx);
	return rc;
}

int
rl_cm_establish(struct rl_cm_id *pub)
{
	return call_locked(pub, "client_cm_establish");
}

int
rl_cm_reject(struct rl_cm_id *pub, const void *private_data, uint8_t private_data_len)
{
	return rl_cm_reject_because(pub, REASON_PROGRAM, private_data, private_data_len);
}

int
rl_cm_reject_because(
	struct rl_cm_id *pub, uint8_t reason, const void *private_data, uint8_t private_data_len)
{
	struct context *ctx = context_of(pub->context);
	const struct cm_id *id = cm_id_of(pub);
	json_t *params;
	int rc;

	if (id->handle == 0)
		return client_fail(EINVAL, "the id has no connection");
	params = json_pack("{s:I, s:i}", "handle", (json_int_t)id->handle, "reason", (int)reason);
	if (private_data_len != 0)
		json_object_set_new(
			params, "private_data", private_json(private_data, private_data_len));
	client_lock(ctx);
	rc = client_call(ctx, "client_cm_reject", params, -1, NULL);
	client_unlock(ctx);
	return rc;
}

int
rl_cm_disconnect(struct rl_cm_id *pub)
{
	struct rl_qp_attr attr = { .qp_state = RL_QPS_ERR };
	struct context *ctx = context_of(pub->context);
	const struct cm_id *id = cm_id_of(pub);
	int rc;

	if (id->handle == 0) {
		if (pub->qp != NULL)
			rl_modify_qp(pub->qp, &attr, RL_QP_STATE);
		return client_fail(EINVAL, "the id has no connection");
	}
	client_lock(ctx);
	rc = client_call(ctx, "client_cm_disconnect",
		json_pack("{s:I, s:I}", "handle", (json_int_t)id->handle, "qp_num",
			(json_int_t)(pub->qp != NULL ? pub->qp->qp_num : 0)),
		-1, NULL);
	if (pub->qp != NULL)
		client_qp_is(qp_of(pub->qp), RL_QPS_ERR);
	client_unlock(ctx);
	return rc;
}
