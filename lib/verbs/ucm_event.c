/* SPDX-License-Identifier: BSD-3-Clause */
/* Events, as librdmacm reads them. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <time.h>

#include "ucm.h"

#define MOMENT_NS 100000000
#define SECOND_NS 1000000000

/*
 * Linux tells what a REQ or REP says with the event of that message alone, and of a REJ its private
 * data. Programs keep the private data of whichever event has some: later events must have none, or
 * what the peer said first is lost.
 */
static void
take_connection(const struct rl_cm_event *e, struct rdma_ucm_conn_param *to)
{
	const struct rl_cm_conn_param *from = &e->conn;
	const bool is_offer =
		e->event == RL_CM_EVENT_CONNECT_REQUEST || e->event == RL_CM_EVENT_CONNECT_RESPONSE;

	if (!is_offer && e->event != RL_CM_EVENT_REJECTED)
		return;
	to->private_data_len = from->private_data_len;
	if (from->private_data_len != 0)
		memcpy(to->private_data, from->private_data, from->private_data_len);
	if (!is_offer)
		return;
	to->qp_num = from->qp_num;
	to->srq = from->srq;
	to->responder_resources = from->responder_resources;
	to->initiator_depth = from->initiator_depth;
	to->flow_control = from->flow_control;
	to->retry_count = from->retry_count;
	to->rnr_retry_count = from->rnr_retry_count;
}

/* CM-41: what a SIDR_REQ or its answer said. */
static void
take_datagrams(struct rl_cm_id *id, const struct rl_cm_ud_param *from, struct rdma_ucm_ud_param *to)
{
	to->qp_num = from->qp_num;
	to->qkey = from->qkey;
	to->private_data_len = from->private_data_len;
	if (from->private_data_len != 0)
		memcpy(to->private_data, from->private_data, from->private_data_len);
	if (from->ah_attr.is_global != 0)
		ucm_path_to(id, &from->ah_attr, &to->ah_attr);
}

/* @return false: it is not told, for nobody knows its id yet, or any more. */
static bool
take(const struct rl_cm_event *e, struct rdma_ucm_event_resp *resp)
{
	struct ucm_id *id = e->id->id_context, *of = id;

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
	/* As the kernel says it: nobody has answered in time. */
	if (e->event == RL_CM_EVENT_ADDR_ERROR)
		resp->status = (uint32_t)-ETIMEDOUT;
	if (e->event == RL_CM_EVENT_CONNECT_ERROR && e->status == -ETIMEDOUT)
		resp->event = RL_CM_EVENT_UNREACHABLE;
	if (e->event == RL_CM_EVENT_MULTICAST_JOIN)
		return ucm_joined(id, resp);
	of->events++;
	if (e->id->qp_type == RL_QPT_UD)
		take_datagrams(e->id, &e->ud, &resp->param.ud);
	else
		take_connection(e, &resp->param.conn);
	return true;
}

static void
unlock(void *mutex)
{
	pthread_mutex_unlock(mutex);
}

/* Wait for one that the program is told of. */
static int
next_event(struct ucm_file *f, struct rdma_ucm_event_resp *resp)
{
	struct rl_cm_event *e;
	bool told = false;
	int rc;

	while (!told) {
		rc = rl_cm_get_event(f->channel, &e);
		if (rc != 0)
			return rc;
		told = take(e, resp);
		rl_cm_ack_event(e);
	}
	return 0;
}

/*
 * Another thread may be waiting in there: then there is no event for one that does not wait. What
 * takes an event takes much less than a moment.
 */
static int
begin(struct ucm_file *f)
{
	struct timespec end;

	if ((fcntl(f->channel->fd, F_GETFL) & O_NONBLOCK) == 0)
		return -pthread_mutex_lock(&f->getting);
	clock_gettime(CLOCK_MONOTONIC, &end);
	end.tv_nsec += MOMENT_NS;
	if (end.tv_nsec >= SECOND_NS) {
		end.tv_sec++;
		end.tv_nsec -= SECOND_NS;
	}
	return pthread_mutex_clocklock(&f->getting, CLOCK_MONOTONIC, &end) == 0 ? 0 : -EAGAIN;
}

/* Its thread may be cancelled while it waits. */
int
ucm_get_event(const struct ucm_call *call)
{
	struct rdma_ucm_event_resp resp;
	int rc = begin(call->file);

	if (rc != 0)
		return rc;
	pthread_cleanup_push(unlock, &call->file->getting);
	rc = next_event(call->file, &resp);
	pthread_cleanup_pop(1);
	if (rc == 0)
		ucm_answer(call, call->in->get_event.response, &resp, sizeof(resp));
	return rc;
}
