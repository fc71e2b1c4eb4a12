/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PERF_CM_H
#define PERF_CM_H
/**
 * @file cm.h  -R inside: connections of rocelane-perf by the connection manager.
 *
 * Owner:   one thread; another one has the conversation's queue pair from cm_talk_start() on.
 * Memory:  cm_free() gives all of it back.
 * Depends: perf.h, rocelane_cm.h.
 */
#include <pthread.h>

#include "perf.h"
#include "rocelane_cm.h"

struct perf_cm {
	struct rl_cm_event_channel *channel; /* of listeners, and of the test's connections */
	struct rl_cm_event_channel *talks;   /* of the conversation's */
	struct rl_cm_id *listener, *data_listener;
	struct rl_cm_id *talk;
	struct rl_cm_id **id;         /* by QP */
	struct sockaddr_storage peer; /* where the test's connections go */
	struct rl_pd *pd;
	struct rl_comp_channel *comp;
	struct rl_cq *send_cq, *recv_cq;
	struct rl_mr *mr; /* TALK_DEPTH buffers that receive, and one that sends */
	int sock;         /* the thread's end */
	pthread_t thread;
	bool runs;
};

/** Say what failed, and why. @return -1. */
int cm_refused(const char *what, int rc);
/** The conversation's queue pair, on an id that has a port. @return 0 or -1 with a message. */
int cm_talk_make(struct perf *p, struct rl_cm_id *id);
/** Its connection stands: p->sock is its end. @return 0 or -1 with a message. */
int cm_talk_start(struct perf *p);
/** Wait until the thread has said all; p->sock is closed. */
void cm_talk_end(struct perf_cm *cm);
/** Its objects, before another attempt or at the end. */
void cm_talk_free(struct perf_cm *cm);

#endif
