/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * QP-16: a queue pair in INIT goes to another port. Run with two workers, of which each sends at
 * one port alone: it has to be the worker of that port, in whose queue no other one may meddle.
 * And what is known of ports is there for all threads at any time.
 */
#include <pthread.h>
#include <string.h>

#include "client_priv.h"
#include "pair.h"

#define WRITES  1000
#define QUERIES 3000

/* RESET to INIT at `first`, then at `port`. */
static struct rl_qp *
placed(struct pair *p, uint8_t first, uint8_t port)
{
	struct rl_qp_attr a = { .qp_state = RL_QPS_INIT, .port_num = port };
	struct rl_qp *qp = pair_qp(p, 16);

	pair_move(p, qp, RL_QPS_INIT, first, 2, 1);
	if (first != port)
		OK(rl_modify_qp(qp, &a, RL_QP_STATE | RL_QP_PORT));
	return qp;
}

static void
ready(struct pair *p, struct rl_qp *qp, uint8_t port, uint32_t dest)
{
	struct rl_qp_attr a = { .qp_state = RL_QPS_RTR,
		.path_mtu = RL_MTU_1024,
		.dest_qp_num = dest,
		.rq_psn = 7,
		.sq_psn = 7,
		.max_rd_atomic = 4,
		.max_dest_rd_atomic = 4,
		.min_rnr_timer = 12,
		.timeout = 18,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.ah_attr = { .is_global = 1, .port_num = port } };

	OK(rl_query_gid(p->ctx, 3 - port, 0, &a.ah_attr.grh.dgid));
	OK(rl_modify_qp(qp, &a,
		RL_QP_STATE | RL_QP_AV | RL_QP_PATH_MTU | RL_QP_DEST_QPN | RL_QP_RQ_PSN |
			RL_QP_MAX_DEST_RD_ATOMIC | RL_QP_MIN_RNR_TIMER));
	a.qp_state = RL_QPS_RTS;
	OK(rl_modify_qp(qp, &a,
		RL_QP_STATE | RL_QP_TIMEOUT | RL_QP_RETRY_CNT | RL_QP_RNR_RETRY | RL_QP_SQ_PSN |
			RL_QP_MAX_QP_RD_ATOMIC));
}

struct asking {
	struct rl_context *ctx;
	atomic_bool over;
};

static void *
ask_ports(void *arg)
{
	struct asking *a = arg;
	struct rl_port_attr port;

	for (uint32_t i = 0; i < QUERIES; i++)
		OK(rl_query_port(a->ctx, 1, &port));
	atomic_store(&a->over, true);
	return NULL;
}

/* A GID is there while another thread asks whether the port is up. */
static void
gids_stay(struct rl_context *ctx)
{
	struct asking a = { .ctx = ctx };
	union rl_gid first, now;
	pthread_t thread;

	OK(rl_query_gid(ctx, 1, 0, &first));
	CHECK(pthread_create(&thread, NULL, ask_ports, &a) == 0);
	while (!atomic_load(&a.over)) {
		OK(rl_query_gid(ctx, 1, 0, &now));
		CHECK(memcmp(&now, &first, sizeof(now)) == 0);
	}
	CHECK(pthread_join(thread, NULL) == 0);
}

int
main(int argc, char **argv)
{
	struct pair p;
	struct rl_qp *qp[2], *straight;

	CHECK(argc == 2);
	pair_open(&p, argv[1], 64, 4096);
	gids_stay(p.ctx);
	for (uint8_t to = 1; to <= 2; to++) {
		const uint8_t from = 3 - to;

		straight = placed(&p, to, to);
		qp[0] = placed(&p, from, to);
		qp[1] = placed(&p, from, from);
		CHECK(qp_of(straight)->worker == qp_of(qp[0])->worker);
		CHECK(qp_of(qp[0])->worker != qp_of(qp[1])->worker);
		ready(&p, qp[0], to, qp[1]->qp_num);
		ready(&p, qp[1], from, qp[0]->qp_num);
		for (uint64_t i = 0; i < WRITES; i++) {
			OK(pair_post(qp[i % 2], RL_WR_RDMA_WRITE, pair_sge(&p, 0, 64),
				(uintptr_t)p.mr->addr + 2048, p.mr->rkey, i));
			CHECK(pair_wait(p.cq).status == RL_WC_SUCCESS);
		}
		OK(rl_destroy_qp(straight));
		OK(rl_destroy_qp(qp[0]));
		OK(rl_destroy_qp(qp[1]));
	}
	pair_close(&p);
	return 0;
}
