/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef XRC_WORLD_H
#define XRC_WORLD_H
/**
 * @file xrc_world.h  For tests: two applications that share an XRC target, and one that sends.
 *
 * Owner:   one thread.
 * Memory:  world_close() ends it.
 * Depends: pair.h, rocelane_xrc.h.
 */
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "pair.h"

#define SLOT   2048u
#define DOMAIN "shared by two"

/** An application that receives. */
struct member {
	struct pair p;
	struct rl_xrcd *xrcd;
	struct rl_srq *srq;
	uint32_t num;
};

struct world {
	const char *socket;
	struct member one; /* owns the target */
	struct member two;
	struct pair asker;
	struct rl_qp *target;
	struct rl_qp *from;
};

static inline void
member_open(struct member *m, const char *socket, int oflags)
{
	struct rl_srq_init_attr init = { .attr = { .max_wr = 64, .max_sge = 2 },
		.srq_type = RL_SRQT_XRC };
	int rc = -EEXIST;

	pair_open(&m->p, socket, 128, 1 << 20);
	/* The applications that had the name before may still be on their way out. */
	for (int i = 0; i < 10000; i++) {
		rc = rl_open_xrcd(m->p.ctx, DOMAIN, oflags, &m->xrcd);
		if (rc != -EEXIST)
			break;
		usleep(1000);
	}
	OK(rc);
	init.xrcd = m->xrcd;
	init.cq = m->p.cq;
	OK(rl_create_srq(m->p.pd, &init, &m->srq));
	OK(rl_get_srq_num(m->srq, &m->num));
	CHECK(m->num != 0 && m->num == m->srq->srq_num && m->srq->cq == m->p.cq);
}

static inline void
receive(struct member *m, uint64_t wr_id)
{
	struct rl_sge sge = pair_sge(&m->p, (size_t)(wr_id % 64) * SLOT, SLOT);
	struct rl_recv_wr wr = { .wr_id = wr_id, .sg_list = &sge, .num_sge = 1 };

	OK(rl_post_srq_recv(m->srq, &wr, NULL));
}

/* RESET to RTS; each type with what it needs (XRC-11). */
static inline void
up(struct rl_context *ctx, struct rl_qp *qp, uint8_t port, uint32_t dest, uint8_t dest_port)
{
	const bool target = qp->qp_type == RL_QPT_XRC_RECV;
	struct rl_qp_attr a = { .qp_state = RL_QPS_INIT,
		.port_num = port,
		.qp_access_flags =
			RL_ACCESS_REMOTE_READ | RL_ACCESS_REMOTE_WRITE | RL_ACCESS_REMOTE_ATOMIC,
		.path_mtu = RL_MTU_1024,
		.dest_qp_num = dest,
		.rq_psn = 17,
		.sq_psn = 17,
		.max_rd_atomic = 4,
		.max_dest_rd_atomic = 4,
		.min_rnr_timer = 1,
		.timeout = 18, /* the machine may be busy */
		.retry_cnt = 7,
		.rnr_retry = 7,
		.ah_attr = { .is_global = 1, .port_num = port } };

	OK(rl_query_gid(ctx, dest_port, 0, &a.ah_attr.grh.dgid));
	OK(rl_modify_qp(qp, &a, RL_QP_STATE | RL_QP_PKEY_INDEX | RL_QP_PORT | RL_QP_ACCESS_FLAGS));
	a.qp_state = RL_QPS_RTR;
	OK(rl_modify_qp(qp, &a,
		RL_QP_STATE | RL_QP_AV | RL_QP_PATH_MTU | RL_QP_DEST_QPN | RL_QP_RQ_PSN |
			(target ? RL_QP_MAX_DEST_RD_ATOMIC | RL_QP_MIN_RNR_TIMER : 0)));
	a.qp_state = RL_QPS_RTS;
	OK(rl_modify_qp(qp, &a,
		RL_QP_STATE | RL_QP_TIMEOUT | RL_QP_SQ_PSN |
			(target ? 0 : RL_QP_RETRY_CNT | RL_QP_RNR_RETRY | RL_QP_MAX_QP_RD_ATOMIC)));
}

static inline struct rl_qp *
make_target(struct member *m)
{
	struct rl_qp_init_attr init = { .qp_type = RL_QPT_XRC_RECV, .xrcd = m->xrcd };
	struct rl_qp *qp;

	OK(rl_create_qp(m->p.pd, &init, &qp));
	return qp;
}

static inline struct rl_qp *
make_initiator(struct pair *p)
{
	struct rl_qp_init_attr init = { .qp_type = RL_QPT_XRC_SEND,
		.send_cq = p->cq,
		.cap = { .max_send_wr = 64, .max_send_sge = 2, .max_inline_data = 64 } };
	struct rl_qp *qp;

	OK(rl_create_qp(p->pd, &init, &qp));
	return qp;
}

static inline void
connect_world(struct world *w)
{
	w->target = make_target(&w->one);
	w->from = make_initiator(&w->asker);
	up(w->one.p.ctx, w->target, 2, w->from->qp_num, 1);
	up(w->asker.ctx, w->from, 1, w->target->qp_num, 2);
}

static inline void
world_open(struct world *w, const char *socket)
{
	*w = (struct world){ .socket = socket };
	member_open(&w->one, socket, O_CREAT | O_EXCL);
	member_open(&w->two, socket, 0);
	CHECK(w->one.num != w->two.num);
	pair_open(&w->asker, socket, 128, 1 << 20);
	connect_world(w);
}

static inline void
world_close(struct world *w)
{
	pair_close(&w->asker);
	pair_close(&w->two.p);
	pair_close(&w->one.p);
}

static inline struct rl_send_wr
request(struct world *w, struct member *to, enum rl_wr_opcode opcode, struct rl_sge *sge)
{
	(void)w;
	return (struct rl_send_wr){ .wr_id = 1,
		.sg_list = sge,
		.num_sge = 1,
		.opcode = opcode,
		.send_flags = RL_SEND_SIGNALED,
		.qp_type.xrc.remote_srqn = to->num };
}

static inline struct rl_qp *
open_target(struct member *m, uint32_t qp_num)
{
	const struct rl_qp_open_attr a = { m->xrcd, qp_num, m };
	struct rl_qp *qp;

	OK(rl_open_qp(m->p.pd, &a, &qp));
	CHECK(qp->qp_num == qp_num && qp->qp_context == m && qp->qp_type == RL_QPT_XRC_RECV);
	return qp;
}

static inline void
reaches(struct world *w, struct member *m, uint32_t target)
{
	struct rl_sge sge = pair_sge(&w->asker, 0, 100);
	struct rl_send_wr wr = request(w, m, RL_WR_SEND, &sge);
	struct rl_wc wc;

	receive(m, 3);
	OK(rl_post_send(w->from, &wr, NULL));
	CHECK(pair_wait(w->asker.cq).status == RL_WC_SUCCESS);
	wc = pair_wait(m->p.cq);
	CHECK(wc.wr_id == 3 && wc.qp_num == target);
}

#endif
