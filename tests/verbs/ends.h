/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ENDS_H
#define ENDS_H
/**
 * @file ends.h  Two connected RC queue pairs on the first two devices, with plain verbs.
 *
 * Owner:   one thread.
 * Memory:  static.
 * Depends: libibverbs.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <infiniband/verbs.h>

#define CHECK(what)                                                                   \
	do {                                                                          \
		if (!(what)) {                                                        \
			fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #what, \
				strerror(errno));                                     \
			exit(1);                                                      \
		}                                                                     \
	} while (0)

#define ALL_ACCESS                                                                   \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | \
		IBV_ACCESS_REMOTE_ATOMIC)

#define END_TIMEOUT 10 /* 4 ms: what is lost is soon sent again */

struct end {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	union ibv_gid gid;
};

static inline void
end_open(struct end *e, struct ibv_device *device)
{
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 64,
			.max_recv_wr = 64,
			.max_send_sge = 4,
			.max_recv_sge = 4 } };

	CHECK((e->ctx = ibv_open_device(device)) != NULL);
	CHECK((e->pd = ibv_alloc_pd(e->ctx)) != NULL);
	CHECK((e->cq = ibv_create_cq(e->ctx, 256, NULL, NULL, 0)) != NULL);
	init.send_cq = init.recv_cq = e->cq;
	CHECK((e->qp = ibv_create_qp(e->pd, &init)) != NULL);
	CHECK(ibv_query_gid(e->ctx, 1, 0, &e->gid) == 0);
}

static inline void
end_connect(struct end *e, const struct end *peer, int retry_cnt)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = ALL_ACCESS,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = peer->qp->qp_num,
		.rq_psn = 0xab0003e8, /* as of rand(): 24 bits of it count */
		.sq_psn = 0xcd0003e8,
		.max_dest_rd_atomic = 4,
		.max_rd_atomic = 4,
		.min_rnr_timer = 12,
		.timeout = retry_cnt > 0 ? END_TIMEOUT : 14,
		.retry_cnt = (uint8_t)retry_cnt,
		.rnr_retry = 7,
		.ah_attr = { .is_global = 1,
			.port_num = 1,
			.grh = { .dgid = peer->gid, .hop_limit = 64, .flow_label = 0xabc12345 } } };
	struct ibv_qp_init_attr init;

	CHECK(ibv_modify_qp(e->qp, &a,
		      IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) == 0);
	a.qp_state = IBV_QPS_RTR;
	CHECK(ibv_modify_qp(e->qp, &a,
		      IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
			      IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER) == 0);
	a.qp_state = IBV_QPS_RTS;
	CHECK(ibv_modify_qp(e->qp, &a,
		      IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
			      IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC) == 0);
	CHECK(ibv_query_qp(e->qp, &a, IBV_QP_AV, &init) == 0);
	CHECK(a.ah_attr.grh.flow_label == 0x12345); /* 20 bits of it count, too */
}

/** A WRITE or READ of one piece, and its completion. */
static inline struct ibv_wc
end_run(struct end *e, enum ibv_wr_opcode opcode, const struct ibv_mr *mr, void *at,
	uint32_t length, const struct ibv_mr *peer_mr, const void *peer_at, uint64_t wr_id)
{
	struct ibv_sge sge = { .addr = (uintptr_t)at, .length = length, .lkey = mr->lkey };
	struct ibv_send_wr wr = { .wr_id = wr_id,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = opcode,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = { .remote_addr = (uintptr_t)peer_at, .rkey = peer_mr->rkey } };
	struct ibv_send_wr *bad;
	struct ibv_wc wc;
	int n;

	CHECK(ibv_post_send(e->qp, &wr, &bad) == 0);
	while ((n = ibv_poll_cq(e->cq, 1, &wc)) == 0)
		;
	CHECK(n == 1);
	return wc;
}

/* No two pages of a mebibyte alike. */
static inline void
ends_fill(char *at, uint32_t len, int with)
{
	for (uint32_t i = 0; i < len; i++)
		at[i] = (char)(with + (int)(i >> 12));
}

/**
 * The second device writes to a region of the first one, and reads it; then the region is given
 * back. @param same another mapping of the same memory, or that itself.
 */
static inline void
ends_move(struct end e[2], struct ibv_mr *mine, char *at, const char *same)
{
	const uint32_t len = mine != NULL ? (uint32_t)mine->length : 0;
	char *peer = aligned_alloc(4096, (len + 4095u) & ~4095u); /* no pages of the other device */
	struct ibv_mr *other;

	CHECK(mine != NULL && mine->addr == at);
	CHECK((other = ibv_reg_mr(e[1].pd, peer, len, IBV_ACCESS_LOCAL_WRITE)) != NULL);
	ends_fill(peer, len, 'w');
	memset(at, '-', len);
	CHECK(end_run(&e[1], IBV_WR_RDMA_WRITE, other, peer, len, mine, at, 1).status ==
		IBV_WC_SUCCESS);
	CHECK(memcmp(same, peer, len) == 0);
	ends_fill(at, len, 'r');
	CHECK(end_run(&e[1], IBV_WR_RDMA_READ, other, peer, len, mine, at, 2).status ==
		IBV_WC_SUCCESS);
	CHECK(memcmp(same, peer, len) == 0);
	CHECK(ibv_dereg_mr(mine) == 0);
	CHECK(ibv_dereg_mr(other) == 0);
	CHECK(memcmp(same, peer, len) == 0); /* it is the program's still */
	free(peer);
}

/** Both ends, on the first two devices, connected. */
static inline void
ends_open(struct end e[2], int retry_cnt)
{
	int n;
	struct ibv_device **list = ibv_get_device_list(&n);

	CHECK(list != NULL && n >= 2);
	end_open(&e[0], list[0]);
	end_open(&e[1], list[1]);
	ibv_free_device_list(list);
	end_connect(&e[0], &e[1], retry_cnt);
	end_connect(&e[1], &e[0], retry_cnt);
}

#endif
