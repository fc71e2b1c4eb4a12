/* SPDX-License-Identifier: BSD-3-Clause */
/* Events, as librdmacm reads them. */
#include <string.h>

#include "ucm.h"

/* @return false: it is not told, for nobody knows its id yet, or any more. */
static bool
take(const struct rl_cm_event *e, struct rdma_ucm_event_resp *resp)
{
	struct ucm_id *id = e->id->id_context, *of = id;
	struct rdma_ucm_conn_param *conn = &resp->param.conn;

	if (e->event == RL_CM_EVENT_CONNECT_REQUEST) {
		/* It counts for the listener, under whose name the new id comes. */
		of = e->listen_id != NULL ? e->listen_id->id_context : NULL;
		id = of != NULL ? ucm_id_new(e->id) : NULL;
		if (id == NULL) {
			rl_cm_reject(e->id, NULL, 0);
			rl_cm_destroy_id(e->id);
			return false;
		}
		id->routed = true;
	}
	if (of->uid == 0)
		return false;
	*resp = (struct rdma_ucm_event_resp){ .uid = of->uid,
		.id = id->number,
		.event = (uint32_t)e->event,
		.status = (uint32_t)e->status };
	if (e->event == RL_CM_EVENT_MULTICAST_JOIN)
		return ucm_joined(id, resp);
	of->events++;
	conn->qp_num = e->conn.qp_num;
	conn->private_data_len = e->conn.private_data_len;
	if (e->conn.private_data_len != 0)
		memcpy(conn->private_data, e->conn.private_data, e->conn.private_data_len);
	conn->srq = e->conn.srq;
	conn->responder_resources = e->conn.responder_resources;
	conn->initiator_depth = e->conn.initiator_depth;
	conn->flow_control = e->conn.flow_control;
	conn->retry_count = e->conn.retry_count;
	conn->rnr_retry_count = e->conn.rnr_retry_count;
	return true;
}

int
ucm_get_event(const struct ucm_call *call)
{
	struct rdma_ucm_event_resp resp;
	struct rl_cm_event *e;
	bool told = false;
	int rc = 0;

	pthread_mutex_lock(&call->file->getting);
	while (rc == 0 && !told) {
		rc = rl_cm_get_event(call->file->channel, &e);
		if (rc != 0)
			break;
		told = take(e, &resp);
		rl_cm_ack_event(e);
	}
	pthread_mutex_unlock(&call->file->getting);
	if (rc == 0)
		ucm_answer(call, call->in->get_event.response, &resp, sizeof(resp));
	return rc;
}
