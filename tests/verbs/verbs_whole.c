/* SPDX-License-Identifier: BSD-3-Clause */
/* ibv_wr_complete() posts all that was begun, or nothing of it. */
#include <unistd.h>

#include <arpa/inet.h>

#include "ends.h"

static struct end e[2];
static char from[8] = "written", to[64];
static struct ibv_mr *own, *other;

static void
begin_write(struct ibv_qp_ex *q, uint32_t place)
{
	ibv_wr_rdma_write(q, other->rkey, (uintptr_t)&to[place]);
	ibv_wr_set_sge(q, own->lkey, (uintptr_t)from, sizeof(from));
}

static void
wait_for(uint64_t wr_id)
{
	struct ibv_wc wc;
	int n;

	while ((n = ibv_poll_cq(e[0].cq, 1, &wc)) == 0)
		;
	CHECK(n == 1 && wc.status == IBV_WC_SUCCESS && wc.wr_id == wr_id);
}

/* Programs probe with it: what the type has not is refused when the queue pair is made. */
static void
refused_ops(void)
{
	static const struct {
		enum ibv_qp_type type;
		uint64_t has, lacks;
	} rows[] = {
		{ IBV_QPT_RC, IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP | IBV_QP_EX_WITH_SEND_WITH_INV,
			IBV_QP_EX_WITH_TSO },
		{ IBV_QPT_UC, IBV_QP_EX_WITH_SEND_WITH_IMM | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM,
			IBV_QP_EX_WITH_RDMA_READ },
		{ IBV_QPT_UC, IBV_QP_EX_WITH_BIND_MW, IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD },
		{ IBV_QPT_UD, IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM,
			IBV_QP_EX_WITH_RDMA_WRITE },
		{ IBV_QPT_XRC_SEND, IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_RDMA_WRITE,
			IBV_QP_EX_WITH_TSO },
	};
	struct ibv_qp_init_attr_ex init = {
		.cap = { .max_send_wr = 4, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 },
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = e[0].pd,
		.send_cq = e[0].cq,
		.recv_cq = e[0].cq
	};

	for (uint32_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct ibv_qp *qp;

		init.qp_type = rows[i].type;
		init.send_ops_flags = rows[i].has;
		CHECK((qp = ibv_create_qp_ex(e[0].ctx, &init)) != NULL);
		CHECK(ibv_destroy_qp(qp) == 0);
		init.send_ops_flags = rows[i].has | rows[i].lacks;
		CHECK(ibv_create_qp_ex(e[0].ctx, &init) == NULL && errno == EOPNOTSUPP);
	}
	/* As the kernel, which tells types of other devices from what is none. */
	init.comp_mask = IBV_QP_INIT_ATTR_PD;
	init.qp_type = IBV_QPT_RAW_PACKET;
	CHECK(ibv_create_qp_ex(e[0].ctx, &init) == NULL && errno == EOPNOTSUPP);
	init.qp_type = (enum ibv_qp_type)99;
	CHECK(ibv_create_qp_ex(e[0].ctx, &init) == NULL && errno == EINVAL);
}

/* As libibverbs itself: the whole P_Key is compared. */
static void
partitions(void)
{
	CHECK(ibv_get_pkey_index(e[0].ctx, 1, htons(0xffff)) == 0);
	CHECK(ibv_get_pkey_index(e[0].ctx, 1, htons(0x7fff)) == -1);
}

int
main(void)
{
	struct ibv_qp_init_attr_ex init = { .qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 4, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 },
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_READ };
	struct ibv_qp_ex *q;
	uint32_t room;

	ends_open(e, 7);
	refused_ops();
	partitions();
	CHECK((own = ibv_reg_mr(e[0].pd, from, sizeof(from), ALL_ACCESS)) != NULL);
	CHECK((other = ibv_reg_mr(e[1].pd, to, sizeof(to), ALL_ACCESS)) != NULL);
	CHECK(ibv_destroy_qp(e[0].qp) == 0);
	init.pd = e[0].pd;
	init.send_cq = init.recv_cq = e[0].cq;
	CHECK((e[0].qp = ibv_create_qp_ex(e[0].ctx, &init)) != NULL);
	end_connect(&e[0], &e[1], 7);
	/* The other end knew the number of the one before. */
	CHECK(ibv_modify_qp(e[1].qp, &(struct ibv_qp_attr){ .qp_state = IBV_QPS_RESET },
		      IBV_QP_STATE) == 0);
	end_connect(&e[1], &e[0], 7);
	q = ibv_qp_to_qp_ex(e[0].qp);
	CHECK(q != NULL);
	q->wr_flags = 0;
	room = init.cap.max_send_wr;
	/* One place is left: their completions, which nobody asked for, give none back. */
	for (uint32_t i = 0; i + 1 < room; i++) {
		ibv_wr_start(q);
		begin_write(q, 0);
		CHECK(ibv_wr_complete(q) == 0);
	}
	ibv_wr_start(q);
	begin_write(q, 16);
	begin_write(q, 32);
	CHECK(ibv_wr_complete(q) == ENOMEM);
	/* One that is wrong behind a good one. */
	ibv_wr_start(q);
	begin_write(q, 16);
	q->wr_flags = IBV_SEND_INLINE;
	ibv_wr_rdma_read(q, other->rkey, (uintptr_t)to);
	ibv_wr_set_sge(q, own->lkey, (uintptr_t)from, sizeof(from));
	CHECK(ibv_wr_complete(q) == EINVAL);
	/* The place is still there, and what was sent before it came in order. */
	q->wr_flags = IBV_SEND_SIGNALED;
	q->wr_id = 77;
	ibv_wr_start(q);
	begin_write(q, 48);
	CHECK(ibv_wr_complete(q) == 0);
	wait_for(77);
	CHECK(memcmp(to, from, sizeof(from)) == 0 && memcmp(to + 48, from, sizeof(from)) == 0);
	CHECK(to[16] == 0 && to[32] == 0);
	puts("all or nothing");
	return 0;
}
