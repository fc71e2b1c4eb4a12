/* SPDX-License-Identifier: BSD-3-Clause */
/* Asynchronous events: an eventfd counts them, the dataplane keeps them until they are fetched. */
#include <stdio.h>
#include <string.h>

#include "client_priv.h"

static struct cq *
cq_by_handle(struct context *ctx, uint32_t handle)
{
	struct cq *cq;

	TAILQ_FOREACH (cq, &ctx->cqs, all) {
		if (cq->handle == handle)
			return cq;
	}
	return NULL;
}

static struct srq *
srq_by_handle(struct context *ctx, uint32_t handle)
{
	struct srq *srq;

	TAILQ_FOREACH (srq, &ctx->srqs, all) {
		if (srq->handle == handle)
			return srq;
	}
	return NULL;
}

/* Lock held. @return false: of an object that is gone. */
static bool
take_event(struct context *ctx, const json_t *o, struct rl_async_event *e)
{
	const json_t *qpn = json_object_get(o, "qp_num"), *handle = json_object_get(o, "cq");
	const json_t *shared = json_object_get(o, "srq");
	const char *detail = json_string_value(json_object_get(o, "detail"));
	struct srq *srq;
	struct qp *qp;
	struct cq *cq;

	*e = (struct rl_async_event){ .event_type = (enum rl_event_type)json_integer_value(
					      json_object_get(o, "event_type")),
		.fatal_code = (uint8_t)json_integer_value(json_object_get(o, "fatal_code")),
		.psn = (uint32_t)json_integer_value(json_object_get(o, "psn")),
		.lost = (uint64_t)json_integer_value(json_object_get(o, "lost")) };
	snprintf(e->detail, sizeof(e->detail), "%s", detail != NULL ? detail : "");
	if (qpn != NULL) {
		qp = client_qp_by_number(ctx, (uint32_t)json_integer_value(qpn));
		if (qp == NULL)
			return false;
		qp->async.given++;
		e->element.qp = &qp->pub;
	} else if (handle != NULL) {
		cq = cq_by_handle(ctx, (uint32_t)json_integer_value(handle));
		if (cq == NULL)
			return false;
		cq->async.given++;
		e->element.cq = &cq->pub;
	} else if (shared != NULL) {
		srq = srq_by_handle(ctx, (uint32_t)json_integer_value(shared));
		if (srq == NULL)
			return false;
		srq->async.given++;
		e->element.srq = &srq->pub;
	} else {
		e->element.port_num = (int)json_integer_value(json_object_get(o, "port_num"));
	}
	return true;
}

/* Told once. Who polls the descriptor would be told of it for ever: nothing comes any more. */
static int
device_fatal(struct context *ctx, struct rl_async_event *e)
{
	if (ctx->gone_told)
		return client_no_dataplane();
	ctx->gone_told = true;
	client_set_ctl(ctx->pub.async_fd, EPOLL_CTL_DEL, ctx->line.fd, NULL);
	client_set_ctl(ctx->pub.async_fd, EPOLL_CTL_DEL, ctx->event_fd, NULL);
	*e = (struct rl_async_event){ .event_type = RL_EVENT_DEVICE_FATAL };
	snprintf(e->detail, sizeof(e->detail), "the dataplane closed the connection");
	return 0;
}

int
rl_get_async_event(struct rl_context *pub, struct rl_async_event *event)
{
	struct context *ctx = context_of(pub);
	json_t *list = NULL;
	bool got = false;
	int rc;

	do {
		rc = client_fd_wait(ctx, ctx->event_fd, ctx->pub.async_fd);
		client_lock(ctx);
		if (rc == 0)
			rc = client_call(ctx, "client_events", NULL, -1, &list);
		if (rc != 0) {
			if (client_is_gone(ctx))
				rc = device_fatal(ctx, event);
			client_unlock(ctx);
			return rc;
		}
		/* Empty: the event was of an object that is destroyed meanwhile. */
		if (json_array_size(list) > 0)
			got = take_event(ctx, json_array_get(list, 0), event);
		json_decref(list);
		client_unlock(ctx);
	} while (!got);
	return 0;
}

int
rl_watch_port(struct rl_context *pub, uint8_t port_num)
{
	struct context *ctx = context_of(pub);
	int rc = client_check_port(ctx, port_num);

	if (rc != 0)
		return rc;
	client_lock(ctx);
	rc = client_call(
		ctx, "client_watch", json_pack("{s:i}", "port_num", (int)port_num), -1, NULL);
	client_unlock(ctx);
	return rc;
}

void
rl_ack_async_event(struct rl_async_event *event)
{
	struct context *ctx;
	struct acks *a;

	switch (event->event_type) {
	case RL_EVENT_CQ_ERR:
		ctx = context_of(event->element.cq->context);
		a = &((struct cq *)event->element.cq)->async;
		break;
	case RL_EVENT_SRQ_ERR:
	case RL_EVENT_SRQ_LIMIT_REACHED:
		ctx = context_of(event->element.srq->context);
		a = &srq_of(event->element.srq)->async;
		break;
	case RL_EVENT_QP_FATAL:
	case RL_EVENT_QP_REQ_ERR:
	case RL_EVENT_QP_ACCESS_ERR:
	case RL_EVENT_COMM_EST:
	case RL_EVENT_SQ_DRAINED:
	case RL_EVENT_PATH_MIG:
	case RL_EVENT_PATH_MIG_ERR:
	case RL_EVENT_QP_LAST_WQE_REACHED:
	case RL_EVENT_RQ_LIMIT_REACHED:
		ctx = context_of(event->element.qp->context);
		a = &qp_of(event->element.qp)->async;
		break;
	default: /* of a port, or of all */
		return;
	}
	client_lock(ctx);
	a->acked++;
	pthread_cond_broadcast(&ctx->acked);
	client_unlock(ctx);
}
