/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * -R: the handshake over a connection of its own. A thread moves its bytes between a socket pair,
 * whose other end is p->sock, and SENDs.
 */
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cm.h"

#define TALK_BYTES 256 /* of a SEND */
#define TALK_DEPTH 32  /* receives */

int
cm_refused(const char *what, int rc)
{
	fprintf(stderr, "rocelane-perf: %s: %s: %s\n", what, strerror(-rc), rl_last_error());
	return -1;
}

static void
talk_receive(struct perf_cm *cm, uint64_t slot)
{
	struct rl_sge sge = { (uintptr_t)cm->mr->addr + slot * TALK_BYTES, TALK_BYTES,
		cm->mr->lkey };
	struct rl_recv_wr wr = { .wr_id = slot, .sg_list = &sge, .num_sge = 1 };

	rl_post_recv(cm->talk->qp, &wr, NULL);
}

/* What was received, to the socket. @return false: the peer is gone. */
static bool
drain(struct perf_cm *cm)
{
	struct rl_wc wc;
	int n;

	while ((n = rl_poll_cq(cm->recv_cq, 1, &wc)) > 0) {
		const uint8_t *at = (uint8_t *)cm->mr->addr + wc.wr_id * TALK_BYTES;

		if (wc.status != RL_WC_SUCCESS ||
			send(cm->sock, at, wc.byte_len, MSG_NOSIGNAL) != (ssize_t)wc.byte_len)
			return false;
		talk_receive(cm, wc.wr_id);
	}
	return n == 0;
}

/* What this side says, to the peer. @return false: there is no more, or the peer is gone. */
static bool
forward(struct perf_cm *cm)
{
	uint8_t *at = (uint8_t *)cm->mr->addr + TALK_DEPTH * TALK_BYTES;
	const ssize_t n = recv(cm->sock, at, TALK_BYTES, 0);
	struct rl_sge sge = { (uintptr_t)at, n > 0 ? (uint32_t)n : 0, cm->mr->lkey };
	struct rl_send_wr wr = {
		.sg_list = &sge, .num_sge = 1, .opcode = RL_WR_SEND, .send_flags = RL_SEND_SIGNALED
	};
	struct rl_wc wc;
	int got;

	if (n <= 0 || rl_post_send(cm->talk->qp, &wr, NULL) != 0)
		return false;
	while ((got = rl_poll_cq(cm->send_cq, 1, &wc)) == 0)
		sched_yield();
	return got > 0 && wc.status == RL_WC_SUCCESS;
}

static void *
pump(void *arg)
{
	struct perf_cm *cm = arg;
	struct pollfd p[3] = { { .fd = cm->sock, .events = POLLIN },
		{ .fd = cm->comp->fd, .events = POLLIN },
		{ .fd = cm->talks->fd, .events = POLLIN } };
	struct rl_cq *cq;

	for (;;) {
		rl_req_notify_cq(cm->recv_cq, 0);
		if (!drain(cm))
			break;
		if (poll(p, 3, -1) < 0 && errno != EINTR)
			break;
		if ((p[1].revents & POLLIN) != 0) {
			if (rl_get_cq_event(cm->comp, &cq, NULL) != 0)
				break;
			rl_ack_cq_events(cq, 1);
			continue; /* before what tells of the peer's end */
		}
		if ((p[2].revents & POLLIN) != 0) {
			drain(cm);
			break;
		}
		if (p[0].revents != 0 && !forward(cm))
			break;
	}
	rl_cm_disconnect(cm->talk);
	shutdown(cm->sock, SHUT_RDWR);
	return NULL;
}

int
cm_talk_start(struct perf *p)
{
	struct perf_cm *cm = p->cm;
	sigset_t all, old;
	int pair[2], rc;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
		return cm_refused("a pair of sockets", -errno);
	p->sock = pair[0];
	cm->sock = pair[1];
	sigfillset(&all); /* signals are for the other thread */
	pthread_sigmask(SIG_BLOCK, &all, &old);
	rc = pthread_create(&cm->thread, NULL, pump, cm);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	cm->runs = rc == 0;
	return rc == 0 ? 0 : cm_refused("a thread", -rc);
}

int
cm_talk_make(struct perf *p, struct rl_cm_id *id)
{
	struct perf_cm *cm = p->cm;
	struct rl_qp_init_attr init = { .qp_type = RL_QPT_RC,
		.cap = { .max_send_wr = 4,
			.max_recv_wr = TALK_DEPTH,
			.max_send_sge = 1,
			.max_recv_sge = 1 } };
	int rc = rl_cm_migrate_id(id, cm->talks);

	cm->talk = id;
	if (rc == 0)
		rc = rl_alloc_pd(p->ctx, &cm->pd);
	if (rc == 0)
		rc = rl_create_comp_channel(p->ctx, &cm->comp);
	if (rc == 0)
		rc = rl_create_cq(p->ctx, 8, NULL, NULL, &cm->send_cq);
	if (rc == 0)
		rc = rl_create_cq(p->ctx, 2 * TALK_DEPTH, NULL, cm->comp, &cm->recv_cq);
	if (rc == 0)
		rc = rl_reg_mr(cm->pd, NULL, (size_t)(TALK_DEPTH + 1) * TALK_BYTES,
			RL_ACCESS_LOCAL_WRITE, &cm->mr);
	init.send_cq = cm->send_cq;
	init.recv_cq = cm->recv_cq;
	if (rc == 0)
		rc = rl_cm_create_qp(id, cm->pd, &init);
	for (uint64_t i = 0; rc == 0 && i < TALK_DEPTH; i++)
		talk_receive(cm, i);
	return rc == 0 ? 0 : cm_refused("the conversation's queue pair", rc);
}

void
cm_talk_end(struct perf_cm *cm)
{
	if (cm->runs)
		pthread_join(cm->thread, NULL);
	if (cm->sock >= 0)
		close(cm->sock);
	cm->runs = false;
	cm->sock = -1;
}

void
cm_talk_free(struct perf_cm *cm)
{
	if (cm->talk != NULL) {
		rl_cm_destroy_qp(cm->talk);
		rl_cm_destroy_id(cm->talk);
	}
	if (cm->send_cq != NULL)
		rl_destroy_cq(cm->send_cq);
	if (cm->recv_cq != NULL)
		rl_destroy_cq(cm->recv_cq);
	if (cm->comp != NULL)
		rl_destroy_comp_channel(cm->comp);
	if (cm->mr != NULL)
		rl_dereg_mr(cm->mr);
	if (cm->pd != NULL)
		rl_dealloc_pd(cm->pd);
	cm->talk = NULL;
	cm->send_cq = NULL;
	cm->recv_cq = NULL;
	cm->comp = NULL;
	cm->mr = NULL;
	cm->pd = NULL;
}
