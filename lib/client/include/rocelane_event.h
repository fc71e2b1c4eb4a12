/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ROCELANE_EVENT_H
#define ROCELANE_EVENT_H
/**
 * @file rocelane_event.h  librocelane's asynchronous events. Include rocelane.h.
 *
 * Owner:   any thread.
 * Memory:  none.
 * Depends: rocelane.h.
 */
#include "rocelane.h"

struct rl_async_event {
	union {
		struct rl_cq *cq;
		struct rl_qp *qp;
		struct rl_srq *srq;
		int port_num;
	} element;
	enum rl_event_type event_type;
	/* Not of libibverbs. */
	uint8_t fatal_code; /* of the dataplane, 0: none */
	uint32_t psn;       /* of the packet that caused it */
	uint64_t lost;      /* events lost since the last one: too many at once, or not fetched */
	char detail[256];   /* the rule behind it and what it says, or "" */
};

/**
 * Wait for an event (set O_NONBLOCK on ctx->async_fd for -EAGAIN). When the dataplane is gone, the
 * event is RL_EVENT_DEVICE_FATAL, once. Then the descriptor is no longer readable, and this -EIO.
 */
int rl_get_async_event(struct rl_context *ctx, struct rl_async_event *event);
/** Say that an event was dealt with: destroying its object waits for that. */
void rl_ack_async_event(struct rl_async_event *event);
/**
 * Hear of this port alone: no event of another one comes, and `ctx->async_fd` is not readable for
 * it. Without this call, the events of all ports come. @return -EINVAL: there is no such port.
 */
int rl_watch_port(struct rl_context *ctx, uint8_t port_num);

#endif
