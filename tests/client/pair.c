/* SPDX-License-Identifier: BSD-3-Clause */
#include "pair.h"

#include <sched.h>
#include <time.h>

#define PATIENCE_S 20

uint64_t
pair_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

static double
now(void)
{
	return (double)pair_now_ns() * 1e-9;
}

void
pair_open(struct pair *p, const char *socket, int cqe, size_t bytes)
{
	const int all = RL_ACCESS_LOCAL_WRITE | RL_ACCESS_REMOTE_WRITE | RL_ACCESS_REMOTE_READ |
			RL_ACCESS_REMOTE_ATOMIC | RL_ACCESS_FLUSH_GLOBAL;

	*p = (struct pair){ .timeout = 18 }; /* the machine may be busy */
	OK(rl_open(socket, &p->ctx));
	OK(rl_alloc_pd(p->ctx, &p->pd));
	OK(rl_create_comp_channel(p->ctx, &p->channel));
	OK(rl_create_cq(p->ctx, cqe, p, p->channel, &p->cq));
	OK(rl_reg_mr(p->pd, NULL, bytes, all, &p->mr));
}

struct rl_qp *
pair_qp(struct pair *p, uint32_t depth)
{
	struct rl_qp_init_attr init = { .send_cq = p->cq,
		.recv_cq = p->cq,
		.qp_type = RL_QPT_RC,
		.cap = { .max_send_wr = depth,
			.max_recv_wr = depth,
			.max_send_sge = 2,
			.max_recv_sge = 2,
			.max_inline_data = 64 } };
	struct rl_qp *qp;

	OK(rl_create_qp(p->pd, &init, &qp));
	return qp;
}

void
pair_move(struct pair *p, struct rl_qp *qp, enum rl_qp_state state, uint8_t port, uint32_t dest,
	uint8_t dest_port)
{
	struct rl_qp_attr a = { .qp_state = RL_QPS_INIT,
		.port_num = port,
		.qp_access_flags = RL_ACCESS_REMOTE_WRITE | RL_ACCESS_REMOTE_READ |
				   RL_ACCESS_REMOTE_ATOMIC | RL_ACCESS_FLUSH_GLOBAL,
		.path_mtu = RL_MTU_1024,
		.dest_qp_num = dest,
		.rq_psn = 0x111111,
		.sq_psn = 0x111111,
		.max_rd_atomic = 4,
		.max_dest_rd_atomic = 4,
		.min_rnr_timer = 12,
		.timeout = p->timeout,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.ah_attr = { .is_global = 1, .port_num = port } };

	OK(rl_query_gid(p->ctx, dest_port, 0, &a.ah_attr.grh.dgid));
	OK(rl_modify_qp(qp, &a, RL_QP_STATE | RL_QP_PKEY_INDEX | RL_QP_PORT | RL_QP_ACCESS_FLAGS));
	a.qp_state = RL_QPS_RTR;
	if (state >= RL_QPS_RTR)
		OK(rl_modify_qp(qp, &a,
			RL_QP_STATE | RL_QP_AV | RL_QP_PATH_MTU | RL_QP_DEST_QPN | RL_QP_RQ_PSN |
				RL_QP_MAX_DEST_RD_ATOMIC | RL_QP_MIN_RNR_TIMER));
	a.qp_state = RL_QPS_RTS;
	if (state >= RL_QPS_RTS)
		OK(rl_modify_qp(qp, &a,
			RL_QP_STATE | RL_QP_TIMEOUT | RL_QP_RETRY_CNT | RL_QP_RNR_RETRY |
				RL_QP_SQ_PSN | RL_QP_MAX_QP_RD_ATOMIC));
}

void
pair_connect(struct pair *p, uint32_t depth)
{
	p->a = pair_qp(p, depth);
	p->b = pair_qp(p, depth);
	pair_move(p, p->a, RL_QPS_RTS, 1, p->b->qp_num, 2);
	pair_move(p, p->b, RL_QPS_RTS, 2, p->a->qp_num, 1);
}

void
pair_disconnect(struct pair *p)
{
	OK(rl_destroy_qp(p->a));
	OK(rl_destroy_qp(p->b));
	p->a = NULL;
	p->b = NULL;
}

void
pair_close(struct pair *p)
{
	OK(rl_close(p->ctx));
	p->ctx = NULL;
}

struct rl_wc
pair_wait(struct rl_cq *cq)
{
	const double end = now() + PATIENCE_S;
	struct rl_wc wc;
	int n;

	while ((n = rl_poll_cq(cq, 1, &wc)) == 0) {
		CHECK(now() < end);
		sched_yield();
	}
	CHECK(n == 1);
	return wc;
}

bool
pair_is_quiet(struct rl_cq *cq)
{
	const double end = now() + 0.05;
	struct rl_wc wc;

	while (now() < end) {
		if (rl_poll_cq(cq, 1, &wc) != 0)
			return false;
		sched_yield();
	}
	return true;
}

struct rl_sge
pair_sge(const struct pair *p, size_t offset, uint32_t length)
{
	return (struct rl_sge){
		.addr = (uintptr_t)p->mr->addr + offset, .length = length, .lkey = p->mr->lkey
	};
}

int
pair_post(struct rl_qp *qp, enum rl_wr_opcode opcode, struct rl_sge sge, uint64_t remote,
	uint32_t rkey, uint64_t wr_id)
{
	struct rl_send_wr wr = { .wr_id = wr_id,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = opcode,
		.send_flags = RL_SEND_SIGNALED,
		.wr.rdma = { remote, rkey } };

	return rl_post_send(qp, &wr, NULL);
}

int
pair_recv(struct rl_qp *qp, struct rl_sge sge, uint64_t wr_id)
{
	struct rl_recv_wr wr = { .wr_id = wr_id, .sg_list = &sge, .num_sge = 1 };

	return rl_post_recv(qp, &wr, NULL);
}
