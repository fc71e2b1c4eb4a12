/* SPDX-License-Identifier: BSD-3-Clause */
#include "exchange.h"
#include "tcp.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LOOK_POLLS 1024 /* empty polls before the peer is looked at */
#define PATIENCE_S 30   /* for what the peer says of itself */

void
must(int rc, const char *what)
{
	if (rc >= 0)
		return;
	fprintf(stderr, "%s: %s (%s)\n", what, rl_last_error(), strerror(-rc));
	exit(1);
}

static void
connect_qp(struct end *e, uint8_t port)
{
	struct rl_qp_attr a = { .qp_state = RL_QPS_INIT,
		.port_num = port,
		.qp_access_flags = RL_ACCESS_REMOTE_WRITE | RL_ACCESS_REMOTE_READ,
		.path_mtu = RL_MTU_1024,
		.dest_qp_num = e->peer.qp_num,
		.rq_psn = e->peer.psn,
		.sq_psn = e->mine.psn,
		.max_rd_atomic = 16,
		.max_dest_rd_atomic = 16,
		.min_rnr_timer = 12,
		.timeout = 14,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.ah_attr = { .is_global = 1, .port_num = port, .grh.dgid = e->peer.gid } };

	must(rl_modify_qp(
		     e->qp, &a, RL_QP_STATE | RL_QP_PKEY_INDEX | RL_QP_PORT | RL_QP_ACCESS_FLAGS),
		"to INIT");
	a.qp_state = RL_QPS_RTR;
	must(rl_modify_qp(e->qp, &a,
		     RL_QP_STATE | RL_QP_AV | RL_QP_PATH_MTU | RL_QP_DEST_QPN | RL_QP_RQ_PSN |
			     RL_QP_MAX_DEST_RD_ATOMIC | RL_QP_MIN_RNR_TIMER),
		"to RTR");
	a.qp_state = RL_QPS_RTS;
	must(rl_modify_qp(e->qp, &a,
		     RL_QP_STATE | RL_QP_TIMEOUT | RL_QP_RETRY_CNT | RL_QP_RNR_RETRY |
			     RL_QP_SQ_PSN | RL_QP_MAX_QP_RD_ATOMIC),
		"to RTS");
}

static void
address_peer(struct end *e, uint8_t port)
{
	struct rl_qp_attr a = {
		.qp_state = RL_QPS_INIT, .port_num = port, .qkey = END_QKEY, .sq_psn = e->mine.psn
	};
	struct rl_ah_attr to = { .is_global = 1, .port_num = port, .grh.dgid = e->peer.gid };

	must(rl_modify_qp(e->qp, &a, RL_QP_STATE | RL_QP_PKEY_INDEX | RL_QP_PORT | RL_QP_QKEY),
		"to INIT");
	a.qp_state = RL_QPS_RTR;
	must(rl_modify_qp(e->qp, &a, RL_QP_STATE), "to RTR");
	a.qp_state = RL_QPS_RTS;
	must(rl_modify_qp(e->qp, &a, RL_QP_STATE | RL_QP_SQ_PSN), "to RTS");
	must(rl_create_ah(e->pd, &to, &e->to), "rl_create_ah");
}

static void
open_as(struct end *e, enum rl_qp_type type, int argc, char **argv, size_t bytes)
{
	struct rl_qp_init_attr init = { .qp_type = type,
		.cap = { .max_send_wr = 16,
			.max_recv_wr = 16,
			.max_send_sge = 1,
			.max_recv_sge = 1 } };
	const bool serves = argc > 2 && strcmp(argv[1], "serve") == 0;
	const int rest = serves ? 3 : 4;
	const uint8_t port = argc > rest ? (uint8_t)strtoul(argv[rest], NULL, 0) : serves ? 2 : 1;

	if (!serves && (argc < 4 || strcmp(argv[1], "ask") != 0)) {
		fprintf(stderr, "usage: %s serve PORT [RDMA_PORT] | ask HOST PORT [RDMA_PORT]\n",
			argv[0]);
		exit(2);
	}
	*e = (struct end){ .serves = serves };
	must(rl_open(NULL, &e->ctx), "rl_open");
	must(rl_alloc_pd(e->ctx, &e->pd), "rl_alloc_pd");
	must(rl_create_comp_channel(e->ctx, &e->channel), "rl_create_comp_channel");
	must(rl_create_cq(e->ctx, 64, NULL, e->channel, &e->cq), "rl_create_cq");
	must(rl_reg_mr(e->pd, NULL, bytes,
		     RL_ACCESS_LOCAL_WRITE | RL_ACCESS_REMOTE_WRITE | RL_ACCESS_REMOTE_READ,
		     &e->mr),
		"rl_reg_mr");
	init.send_cq = e->cq;
	init.recv_cq = e->cq;
	must(rl_create_qp(e->pd, &init, &e->qp), "rl_create_qp");
	must(rl_query_gid(e->ctx, port, 0, &e->mine.gid), "rl_query_gid");
	e->mine.qp_num = e->qp->qp_num;
	e->mine.psn = (uint32_t)getpid() & 0xffffff;
	e->mine.rkey = e->mr->rkey;
	e->mine.addr = (uintptr_t)e->mr->addr;
	e->tcp = tcp_open(serves ? NULL : argv[2], argv[serves ? 2 : 3]);
	tcp_patience(e->tcp, PATIENCE_S);
	tcp_swap(e->tcp, &e->mine, &e->peer, sizeof(e->mine));
	if (type == RL_QPT_UD)
		address_peer(e, port);
	else
		connect_qp(e, port);
	end_meet(e);
	tcp_patience(e->tcp, 0);
}

void
end_open(struct end *e, int argc, char **argv, size_t bytes)
{
	open_as(e, RL_QPT_RC, argc, argv, bytes);
}

void
end_open_datagrams(struct end *e, int argc, char **argv, size_t bytes)
{
	open_as(e, RL_QPT_UD, argc, argv, bytes);
}

void
end_close(struct end *e)
{
	close(e->tcp);
	rl_close(e->ctx); /* takes the rest along */
}

static struct rl_wc
check(struct rl_wc wc)
{
	if (wc.status == RL_WC_SUCCESS)
		return wc;
	fprintf(stderr, "work request %llu: %s%s\n", (unsigned long long)wc.wr_id,
		rl_wc_status_str(wc.status),
		wc.status == RL_WC_WR_FLUSH_ERR ? " (the queue pair failed: is the dataplane gone?)"
						: "");
	exit(1);
}

/* @return 1, or 0: there is none. The dataplane may end while we wait for it. */
static int
poll_one(struct end *e, struct rl_wc *wc)
{
	const int n = rl_poll_cq(e->cq, 1, wc);

	must(n, "rl_poll_cq");
	return n;
}

bool
end_poll(struct end *e, struct rl_wc *wc)
{
	if (poll_one(e, wc) == 0)
		return false;
	check(*wc);
	return true;
}

struct rl_wc
end_wait_any(struct end *e)
{
	struct rl_wc wc;

	for (uint32_t i = 1; poll_one(e, &wc) == 0; i++) {
		sched_yield(); /* the peer may need this CPU to answer */
		if (i % LOOK_POLLS == 0)
			tcp_check(e->tcp);
	}
	return wc;
}

struct rl_wc
end_wait(struct end *e)
{
	return check(end_wait_any(e));
}

struct rl_wc
end_sleep(struct end *e)
{
	struct rl_cq *cq;
	struct rl_wc wc;

	while (poll_one(e, &wc) == 0) {
		/* Asked for before the last look: what comes in between is an event, too. */
		must(rl_req_notify_cq(e->cq, 0), "rl_req_notify_cq");
		if (poll_one(e, &wc) != 0)
			break;
		if (!tcp_sleep(e->tcp, e->channel->fd))
			continue;
		must(rl_get_cq_event(e->channel, &cq, NULL), "rl_get_cq_event");
		rl_ack_cq_events(cq, 1);
	}
	return check(wc);
}

void
end_meet(struct end *e)
{
	char byte = 0;

	tcp_swap(e->tcp, &byte, &byte, 1);
}
