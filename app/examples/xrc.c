/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * XRC: two applications share one target queue pair, so whoever sends to both needs one connection.
 *
 *     xrc serve PORT [RDMA_PORT]             has the target, and a receive queue of its own
 *     xrc join PORT [RDMA_PORT]              has a receive queue at the same target
 *     xrc ask HOST PORT PORT2 [RDMA_PORT]    sends to both; PORT is serve's, PORT2 is join's
 *
 * serve and join run on one machine, as one user. RDMA_PORT is 2, or 1 of ask, if not given.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exchange.h"
#include "tcp.h"

#define DOMAIN   "example" /* applications that open this name share what is in it */
#define MESSAGES 8         /* for each of the two */
#define SIZE     64
#define PSN      1

/** What one side tells the other. */
struct hello {
	union rl_gid gid;
	uint32_t qp_num;  /* join: 0, it has none */
	uint32_t srq_num; /* ask: 0 */
};

static struct end e;
static uint8_t port;
static struct hello mine;

static void
begin(void)
{
	must(rl_open(NULL, &e.ctx), "rl_open");
	must(rl_alloc_pd(e.ctx, &e.pd), "rl_alloc_pd");
	must(rl_create_cq(e.ctx, 2 * MESSAGES, NULL, NULL, &e.cq), "rl_create_cq");
	must(rl_reg_mr(e.pd, NULL, MESSAGES * SIZE, RL_ACCESS_LOCAL_WRITE, &e.mr), "rl_reg_mr");
	must(rl_query_gid(e.ctx, port, 0, &mine.gid), "rl_query_gid");
}

/* The states of a connected queue pair; a target has no more to do in RTS than in RTR. */
static void
connect_qp(struct rl_qp *qp, const struct hello *peer)
{
	const bool target = qp->qp_type == RL_QPT_XRC_RECV;
	struct rl_qp_attr a = { .qp_state = RL_QPS_INIT,
		.port_num = port,
		.path_mtu = RL_MTU_1024,
		.dest_qp_num = peer->qp_num,
		.rq_psn = PSN,
		.sq_psn = PSN,
		.max_dest_rd_atomic = 1,
		.max_rd_atomic = 1,
		.min_rnr_timer = 12,
		.timeout = 14,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.ah_attr = { .is_global = 1, .port_num = port, .grh.dgid = peer->gid } };

	must(rl_modify_qp(qp, &a, RL_QP_STATE | RL_QP_PKEY_INDEX | RL_QP_PORT | RL_QP_ACCESS_FLAGS),
		"to INIT");
	a.qp_state = RL_QPS_RTR;
	must(rl_modify_qp(qp, &a,
		     RL_QP_STATE | RL_QP_AV | RL_QP_PATH_MTU | RL_QP_DEST_QPN | RL_QP_RQ_PSN |
			     (target ? RL_QP_MAX_DEST_RD_ATOMIC | RL_QP_MIN_RNR_TIMER : 0)),
		"to RTR");
	if (target)
		return;
	a.qp_state = RL_QPS_RTS;
	must(rl_modify_qp(qp, &a,
		     RL_QP_STATE | RL_QP_TIMEOUT | RL_QP_RETRY_CNT | RL_QP_RNR_RETRY |
			     RL_QP_SQ_PSN | RL_QP_MAX_QP_RD_ATOMIC),
		"to RTS");
}

/* serve and join: what comes for this application's receive queue, through whosever target. */
static void
receive(const char *tcp_port, bool has_target)
{
	struct rl_srq_init_attr srq_init = {
		.attr = { .max_wr = MESSAGES, .max_sge = 1 }, .srq_type = RL_SRQT_XRC, .cq = e.cq
	};
	struct rl_qp_init_attr qp_init = { .qp_type = RL_QPT_XRC_RECV };
	struct rl_qp *qp = NULL;
	struct hello peer;
	struct rl_srq *srq;

	must(rl_open_xrcd(e.ctx, DOMAIN, O_CREAT, &srq_init.xrcd), "rl_open_xrcd");
	must(rl_create_srq(e.pd, &srq_init, &srq), "rl_create_srq");
	must(rl_get_srq_num(srq, &mine.srq_num), "rl_get_srq_num");
	for (uint64_t i = 0; i < MESSAGES; i++) {
		struct rl_sge sge = { (uintptr_t)e.mr->addr + i * SIZE, SIZE, e.mr->lkey };
		struct rl_recv_wr wr = { .wr_id = i, .sg_list = &sge, .num_sge = 1 };

		must(rl_post_srq_recv(srq, &wr, NULL), "rl_post_srq_recv");
	}
	if (has_target) {
		qp_init.xrcd = srq_init.xrcd;
		must(rl_create_qp(e.pd, &qp_init, &qp), "rl_create_qp");
		mine.qp_num = qp->qp_num;
	}
	e.tcp = tcp_open(NULL, tcp_port);
	tcp_swap(e.tcp, &mine, &peer, sizeof(mine));
	if (has_target)
		connect_qp(qp, &peer);
	tcp_swap(e.tcp, &mine, &peer, sizeof(mine)); /* ready */
	for (int i = 0; i < MESSAGES; i++) {
		const struct rl_wc wc = end_wait(&e);

		printf("%s, by target %u\n", (char *)e.mr->addr + wc.wr_id * SIZE, wc.qp_num);
	}
	tcp_swap(e.tcp, &mine, &peer, sizeof(mine)); /* the other one may still need our target */
}

static void
ask(const char *host, const char *const ports[2])
{
	static const char *const names[] = { "serve", "join" };
	struct rl_qp_init_attr init = { .qp_type = RL_QPT_XRC_SEND,
		.send_cq = e.cq,
		.cap = {
			.max_send_wr = 2 * MESSAGES, .max_send_sge = 1, .max_inline_data = SIZE } };
	struct hello peer[2], done;
	struct rl_qp *qp;
	int tcp[2];

	must(rl_create_qp(e.pd, &init, &qp), "rl_create_qp");
	mine.qp_num = qp->qp_num;
	for (int i = 0; i < 2; i++) {
		tcp[i] = tcp_open(host, ports[i]);
		tcp_swap(tcp[i], &mine, &peer[i], sizeof(mine));
	}
	e.tcp = tcp[0];
	connect_qp(qp, &peer[0]);
	for (int i = 0; i < 2; i++)
		tcp_swap(tcp[i], &mine, &done, sizeof(mine));
	for (int i = 0; i < 2 * MESSAGES; i++) {
		char text[SIZE];
		struct rl_sge sge = { (uintptr_t)text, SIZE, 0 };
		struct rl_send_wr wr = { .sg_list = &sge,
			.num_sge = 1,
			.opcode = RL_WR_SEND,
			.send_flags = RL_SEND_SIGNALED | RL_SEND_INLINE,
			.qp_type.xrc.remote_srqn = peer[i % 2].srq_num };

		snprintf(text, sizeof(text), "message %d for %s", i / 2, names[i % 2]);
		must(rl_post_send(qp, &wr, NULL), "rl_post_send");
	}
	for (int i = 0; i < 2 * MESSAGES; i++)
		end_wait(&e);
	for (int i = 1; i >= 0; i--)
		tcp_swap(tcp[i], &mine, &done, sizeof(mine));
	printf("%d messages, half of them for each receive queue of target %u\n", 2 * MESSAGES,
		peer[0].qp_num);
}

int
main(int argc, char **argv)
{
	const bool asks = argc > 4 && strcmp(argv[1], "ask") == 0;
	const bool serves = argc > 2 && strcmp(argv[1], "serve") == 0;
	const int rest = asks ? 5 : 3;

	if (!asks && !serves && (argc < 3 || strcmp(argv[1], "join") != 0)) {
		fprintf(stderr,
			"usage: %s serve PORT [RDMA_PORT] | join PORT [RDMA_PORT] | "
			"ask HOST PORT PORT2 [RDMA_PORT]\n",
			argv[0]);
		return 2;
	}
	port = argc > rest ? (uint8_t)strtoul(argv[rest], NULL, 0) : asks ? 1 : 2;
	begin();
	if (asks)
		ask(argv[2], (const char *const[]){ argv[3], argv[4] });
	else
		receive(argv[2], serves);
	rl_close(e.ctx); /* takes the rest along */
	return 0;
}
