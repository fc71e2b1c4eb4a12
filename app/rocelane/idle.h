/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef IDLE_H
#define IDLE_H
/**
 * @file idle.h  What a worker does between turns that found nothing to do: lcores.idle.
 *
 * Owner:   the worker's lcore.
 * Memory:  the caller's.
 * Time:    timebase_now(), in idle turns of `yield` and `sleep`.
 * Depends: dataplane.h; Linux.
 */
#include <poll.h>

#include "crowd.h"
#include "dataplane.h"
#include "wakes.h"

struct idle {
	const struct dataplane *dp;
	uint32_t worker;
	uint32_t vain;      /* a port woke it for nothing, since it had work */
	struct wakes wakes; /* by clients */
	ns_t since;         /* it has nothing to do */
	uint32_t cpu;       /* where it was when it said so last */
	struct crowd crowd;
	_Atomic uint32_t looked;        /* see crowd.h */
	struct ring_presence *presence; /* or NULL */
	uint32_t fds_n;
	struct pollfd fds[CONF_MAX_PORTS + 1]; /* what wakes it: clients; ports it alone polls */
};

/** Find the descriptors of the worker's ports, with their drivers (af_packet, tap) open. */
void idle_init(struct idle *i, const struct dataplane *dp, uint32_t worker);
/**
 * idle: poll. As the others, it says on which CPU it is: whoever waits there for a completion
 * leaves the CPU to the worker, which may be moved to another one at any time.
 * @param turns as worker_run() says.
 */
void idle_poll(void *ctx, uint32_t turns);
/** idle: pause. */
void idle_pause(void *ctx, uint32_t turns);
/** idle: yield. It stays awake, and leaves its CPU to others that want it. */
void idle_yield(void *ctx, uint32_t turns);
/**
 * idle: sleep. A thousand turns it stays awake, and leaves its CPU to others that want it. Then it
 * sleeps until its next timer, until a client rings a doorbell, until a frame arrives at a port
 * with a descriptor, but no longer than an eighth of the time that nothing came, and 1 ms: mailbox
 * and hand-off wake nobody.
 */
void idle_sleep(void *ctx, uint32_t turns);

#endif
