/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ibv_wr_atomic_write() of a program that knows only libibverbs: 8 bytes arrive, and are answered.
 * And ibv_wr_flush(), which Debian 12's header does not have yet: its place is the next one.
 */
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>

#include "ends.h"

enum { RIGHT_GLOBAL = 1 << 8, RIGHT_PERSISTENT = 1 << 9 };
enum { NOT_SUPPORTED = 3 };

static struct end e[2];

/* A second queue pair of the first end, for requests that are put together by calls. */
static struct ibv_qp_ex *
open_ex(struct end *of)
{
	struct ibv_qp_init_attr_ex init = { .qp_type = IBV_QPT_RC,
		.send_cq = of->cq,
		.recv_cq = of->cq,
		.cap = { .max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1 },
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = of->pd,
		.send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_ATOMIC_WRITE |
				  (1 << 11) /* FLUSH */ };
	struct ibv_qp *qp = ibv_create_qp_ex(of->ctx, &init);

	if (qp == NULL && errno == EOPNOTSUPP) {
		printf("not supported\n");
		exit(NOT_SUPPORTED);
	}
	CHECK(qp != NULL && init.cap.max_inline_data >= 8);
	CHECK(ibv_destroy_qp(of->qp) == 0);
	of->qp = qp;
	return ibv_qp_to_qp_ex(qp);
}

/* Posted, completed, and nothing else completes. @return its status. */
static enum ibv_wc_status
run(struct ibv_qp_ex *qp, int opcode)
{
	struct ibv_wc wc;
	int n;

	CHECK(ibv_wr_complete(qp) == 0);
	while ((n = ibv_poll_cq(e[0].cq, 1, &wc)) == 0)
		;
	CHECK(n == 1 && wc.wr_id == qp->wr_id);
	CHECK(wc.status != IBV_WC_SUCCESS || (int)wc.opcode == opcode);
	return wc.status;
}

static void
start(struct ibv_qp_ex *qp, uint64_t wr_id)
{
	ibv_wr_start(qp);
	qp->wr_id = wr_id;
	qp->wr_flags = IBV_SEND_SIGNALED;
}

static void
atomic_write(struct ibv_qp_ex *qp, const struct ibv_mr *mr, uint64_t *target)
{
	uint64_t word = 0x1122334455667788;

	start(qp, 5);
	ibv_wr_atomic_write(qp, mr->rkey, (uintptr_t)&target[1], &word);
	word = 0; /* it was copied */
	CHECK(run(qp, IBV_WC_ATOMIC_WRITE) == IBV_WC_SUCCESS);
	CHECK(target[0] == 0 && target[1] == 0x1122334455667788 && target[2] == 0);
	printf("atomic write\n");
}

/* Of the types GLOBAL and PERSISTENT, 1 and 2, at the levels RANGE and MR, 0 and 1. */
static void
flush(struct ibv_qp_ex *qp, const struct ibv_mr *mr, const uint64_t *target)
{
	struct ibv_qp_attr a = { .qp_access_flags = ALL_ACCESS | RIGHT_GLOBAL };
	void (*wr_flush)(struct ibv_qp_ex *, uint32_t, uint64_t, size_t, uint8_t, uint8_t);

	CHECK(ibv_modify_qp(e[1].qp, &a, IBV_QP_ACCESS_FLAGS) == 0);
	memcpy(&wr_flush,
		(char *)qp + offsetof(struct ibv_qp_ex, wr_atomic_write) + sizeof(wr_flush),
		sizeof(wr_flush));
	start(qp, 6);
	wr_flush(qp, mr->rkey, (uintptr_t)target, 32, 1, 0);
	CHECK(run(qp, 8) == IBV_WC_SUCCESS);
	start(qp, 7);
	wr_flush(qp, mr->rkey, 0, 0, 1, 1);
	CHECK(run(qp, 8) == IBV_WC_SUCCESS);
	start(qp, 8);
	wr_flush(qp, mr->rkey, (uintptr_t)target, 32, 4, 0);
	CHECK(ibv_wr_complete(qp) == EINVAL);
	start(qp, 9); /* the queue pair does not grant it */
	wr_flush(qp, mr->rkey, (uintptr_t)target, 32, 2, 0);
	CHECK(run(qp, 8) == IBV_WC_REM_INV_REQ_ERR);
	printf("flush\n");
}

int
main(void)
{
	static uint64_t target[4] __attribute__((aligned(4096)));
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_qp_ex *qp;
	struct ibv_mr *mr;

	CHECK(list != NULL && list[0] != NULL && list[1] != NULL);
	end_open(&e[0], list[0]);
	end_open(&e[1], list[1]);
	qp = open_ex(&e[0]);
	end_connect(&e[0], &e[1], 7);
	end_connect(&e[1], &e[0], 7);
	CHECK(ibv_reg_mr_iova2(e[1].pd, target, sizeof(target), (uintptr_t)target,
		      RIGHT_PERSISTENT) == NULL);
	mr = ibv_reg_mr_iova2(
		e[1].pd, target, sizeof(target), (uintptr_t)target, ALL_ACCESS | RIGHT_GLOBAL);
	CHECK(mr != NULL);
	atomic_write(qp, mr, target);
	flush(qp, mr, target);
	ibv_free_device_list(list);
	return 0;
}
