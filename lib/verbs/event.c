/* SPDX-License-Identifier: BSD-3-Clause */
/* Asynchronous events: the objects are the program's, librocelane's point back to them. */
#include "vl.h"

enum element { OF_CQ, OF_QP, OF_SRQ, OF_PORT };

static enum element
element_of(enum ibv_event_type type)
{
	switch (type) {
	case IBV_EVENT_CQ_ERR:
		return OF_CQ;
	case IBV_EVENT_SRQ_ERR:
	case IBV_EVENT_SRQ_LIMIT_REACHED:
		return OF_SRQ;
	case IBV_EVENT_QP_FATAL:
	case IBV_EVENT_QP_REQ_ERR:
	case IBV_EVENT_QP_ACCESS_ERR:
	case IBV_EVENT_COMM_EST:
	case IBV_EVENT_SQ_DRAINED:
	case IBV_EVENT_PATH_MIG:
	case IBV_EVENT_PATH_MIG_ERR:
	case IBV_EVENT_QP_LAST_WQE_REACHED:
		return OF_QP;
	default:
		return OF_PORT;
	}
}

int
ibv_get_async_event(struct ibv_context *ctx, struct ibv_async_event *event)
{
	const struct vl_context *c = vl_context_of(ctx);
	struct rl_async_event e;
	int rc;

	do {
		rc = rl_get_async_event(c->rl, &e);
		if (rc != 0) {
			errno = -rc;
			return -1;
		}
		if (e.event_type == RL_EVENT_RQ_LIMIT_REACHED) /* an operator's wish */
			rl_ack_async_event(&e);
	} while (e.event_type == RL_EVENT_RQ_LIMIT_REACHED);
	event->event_type = (enum ibv_event_type)e.event_type;
	switch (element_of(event->event_type)) {
	case OF_CQ:
		event->element.cq = e.element.cq->cq_context;
		break;
	case OF_QP:
		event->element.qp = e.element.qp->qp_context;
		break;
	case OF_SRQ:
		event->element.srq = e.element.srq->srq_context;
		break;
	case OF_PORT:
		event->element.port_num = 1;
		break;
	}
	return 0;
}

void
ibv_ack_async_event(struct ibv_async_event *event)
{
	struct rl_async_event e = { .event_type = (enum rl_event_type)event->event_type };

	switch (element_of(event->event_type)) {
	case OF_CQ:
		e.element.cq = ((struct vl_cq *)event->element.cq)->rl;
		break;
	case OF_QP:
		e.element.qp = ((struct vl_qp *)event->element.qp)->rl;
		break;
	case OF_SRQ:
		e.element.srq = ((struct vl_srq *)event->element.srq)->rl;
		break;
	case OF_PORT:
		return;
	}
	rl_ack_async_event(&e);
}
