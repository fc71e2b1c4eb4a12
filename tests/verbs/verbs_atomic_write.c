/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ibv_wr_atomic_write() of a program that knows only libibverbs: 8 bytes arrive, and are answered.
 */
#include "ends.h"

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
		.send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_ATOMIC_WRITE };
	struct ibv_qp *qp = ibv_create_qp_ex(of->ctx, &init);

	CHECK(qp != NULL && init.cap.max_inline_data >= 8);
	CHECK(ibv_destroy_qp(of->qp) == 0);
	of->qp = qp;
	return ibv_qp_to_qp_ex(qp);
}

int
main(void)
{
	static uint64_t target[4] __attribute__((aligned(4096)));
	struct ibv_device **list = ibv_get_device_list(NULL);
	uint64_t word = 0x1122334455667788;
	struct ibv_qp_ex *qp;
	struct ibv_mr *mr;
	struct ibv_wc wc;
	int n;

	CHECK(list != NULL && list[0] != NULL && list[1] != NULL);
	end_open(&e[0], list[0]);
	end_open(&e[1], list[1]);
	qp = open_ex(&e[0]);
	end_connect(&e[0], &e[1], 7);
	end_connect(&e[1], &e[0], 7);
	CHECK((mr = ibv_reg_mr(e[1].pd, target, sizeof(target), ALL_ACCESS)) != NULL);

	ibv_wr_start(qp);
	qp->wr_id = 5;
	qp->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_atomic_write(qp, mr->rkey, (uintptr_t)&target[1], &word);
	word = 0; /* it was copied */
	CHECK(ibv_wr_complete(qp) == 0);
	while ((n = ibv_poll_cq(e[0].cq, 1, &wc)) == 0)
		;
	CHECK(n == 1 && wc.status == IBV_WC_SUCCESS && wc.wr_id == 5);
	CHECK(wc.opcode == IBV_WC_ATOMIC_WRITE);
	CHECK(target[0] == 0 && target[1] == 0x1122334455667788 && target[2] == 0);
	ibv_free_device_list(list);
	printf("atomic write\n");
	return 0;
}
