/* SPDX-License-Identifier: BSD-3-Clause */
/* Thread and parent domains, and the clock of completions. */
#include <time.h>

#include "ends.h"

#define S_NS   UINT64_C(1000000000)
#define STEADY UINT64_C(2000000) /* the dataplane follows the time of day to within 1 ms */
#define EX_FLAGS \
	(IBV_WC_EX_WITH_COMPLETION_TIMESTAMP | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK)

static struct end e[2];
static uint64_t began, began_wall; /* before the worker's turns that made the queue pairs */
static char from[64] = "written", to[64];

static void *
never_asked(struct ibv_pd *pd, void *context, size_t size, size_t alignment, uint64_t type)
{
	(void)pd, (void)context, (void)size, (void)alignment, (void)type;
	CHECK(!"asked for memory");
	return NULL;
}

static void
never_freed(struct ibv_pd *pd, void *context, void *ptr, uint64_t type)
{
	(void)pd, (void)context, (void)ptr, (void)type;
	CHECK(!"given memory");
}

static uint64_t
wall(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	return (uint64_t)ts.tv_sec * S_NS + (uint64_t)ts.tv_nsec;
}

static uint64_t
device_clock(void)
{
	struct ibv_values_ex v = { .comp_mask = IBV_VALUES_MASK_RAW_CLOCK };

	CHECK(ibv_query_rt_values_ex(e[0].ctx, &v) == 0);
	CHECK(v.comp_mask == IBV_VALUES_MASK_RAW_CLOCK && v.raw_clock.tv_sec == 0);
	return (uint64_t)v.raw_clock.tv_nsec;
}

static void
note_begin(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	began_wall = wall();
	CHECK(list != NULL && (e[0].ctx = ibv_open_device(list[0])) != NULL);
	began = device_clock();
	CHECK(ibv_close_device(e[0].ctx) == 0);
	ibv_free_device_list(list);
}

static void
refused(void)
{
	struct ibv_td_init_attr odd = { .comp_mask = 1 };
	struct ibv_parent_domain_init_attr a = { .pd = NULL };

	CHECK(ibv_alloc_td(e[0].ctx, &odd) == NULL && errno == EINVAL);
	CHECK(ibv_alloc_parent_domain(e[0].ctx, &a) == NULL && errno == EINVAL);
	a.pd = e[0].pd;
	a.comp_mask = 1u << 31;
	CHECK(ibv_alloc_parent_domain(e[0].ctx, &a) == NULL && errno == EINVAL);
	a.comp_mask = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS;
	a.alloc = never_asked;
	CHECK(ibv_alloc_parent_domain(e[0].ctx, &a) == NULL && errno == EINVAL);
}

/* Not in Debian 12's verbs.h. */
#define ALLOW_CC_UNPROTECTED (1u << 2)

/* rdma-core 65 lets a program allow buffers that a guest shares with its host. None are needed. */
static void
allows_shared(void)
{
	struct ibv_parent_domain_init_attr a = { .pd = e[0].pd, .comp_mask = ALLOW_CC_UNPROTECTED };
	struct ibv_pd *parent = ibv_alloc_parent_domain(e[0].ctx, &a);

	CHECK(parent != NULL && ibv_dealloc_pd(parent) == 0);
}

/* A WRITE by the first end; its completion carries both times. */
static void
timed_write(struct ibv_cq_ex *cq, struct ibv_mr *own, struct ibv_mr *other)
{
	struct ibv_sge sge = { .addr = (uintptr_t)from, .length = 64, .lkey = own->lkey };
	struct ibv_send_wr *bad, wr = { .sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_RDMA_WRITE,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = { .remote_addr = (uintptr_t)to, .rkey = other->rkey } };
	struct ibv_poll_cq_attr none = { 0 };
	uint64_t at, at_wall;
	int rc;

	CHECK(ibv_post_send(e[0].qp, &wr, &bad) == 0);
	while ((rc = ibv_start_poll(cq, &none)) == ENOENT)
		;
	CHECK(rc == 0 && cq->status == IBV_WC_SUCCESS);
	at = ibv_wc_read_completion_ts(cq);
	at_wall = ibv_wc_read_completion_wallclock_ns(cq);
	ibv_end_poll(cq);
	CHECK(at >= began && at <= device_clock());
	CHECK(at_wall + STEADY >= began_wall && at_wall <= wall() + STEADY);
}

int
main(void)
{
	struct ibv_td_init_attr none = { .comp_mask = 0 };
	struct ibv_parent_domain_init_attr a = { .comp_mask =
							 IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS |
							 IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT,
		.alloc = never_asked,
		.free = never_freed };
	struct ibv_srq_init_attr srq_init = { .attr = { .max_wr = 4, .max_sge = 1 } };
	struct ibv_cq_init_attr_ex cq_init = {
		.cqe = 64, .wc_flags = EX_FLAGS, .comp_mask = IBV_CQ_INIT_ATTR_MASK_PD
	};
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1 }
	};
	struct ibv_ah_attr ah_attr = { .is_global = 1, .port_num = 1, .grh = { .hop_limit = 64 } };
	struct ibv_mr *own, *other;
	struct ibv_cq_ex *cq;
	struct ibv_srq *srq;
	struct ibv_pd *parent;
	struct ibv_ah *ah;
	struct ibv_mw *mw;

	note_begin();
	ends_open(e, 7);
	refused();
	allows_shared();
	CHECK((a.td = ibv_alloc_td(e[0].ctx, &none)) != NULL);
	a.pd = e[0].pd;
	CHECK((parent = ibv_alloc_parent_domain(e[0].ctx, &a)) != NULL);
	CHECK(ibv_dealloc_td(a.td) == EBUSY);
	a.pd = parent;
	CHECK(ibv_alloc_parent_domain(e[0].ctx, &a) == NULL && errno == EINVAL);
	/* All that a protection domain may have; each keeps it. */
	cq_init.parent_domain = e[0].pd;
	CHECK(ibv_create_cq_ex(e[0].ctx, &cq_init) == NULL && errno == EINVAL);
	cq_init.parent_domain = parent;
	CHECK((cq = ibv_create_cq_ex(e[0].ctx, &cq_init)) != NULL);
	CHECK(ibv_dealloc_pd(parent) == EBUSY);
	CHECK(ibv_destroy_qp(e[0].qp) == 0);
	init.send_cq = init.recv_cq = ibv_cq_ex_to_cq(cq);
	CHECK((e[0].qp = ibv_create_qp(parent, &init)) != NULL && e[0].qp->pd == parent);
	CHECK(ibv_modify_qp(e[1].qp, &(struct ibv_qp_attr){ .qp_state = IBV_QPS_RESET },
		      IBV_QP_STATE) == 0);
	end_connect(&e[0], &e[1], 7);
	end_connect(&e[1], &e[0], 7);
	/* It is the same domain: a region of the one is good for queue pairs of the other. */
	CHECK((own = ibv_reg_mr(e[0].pd, from, sizeof(from), ALL_ACCESS)) != NULL);
	CHECK((other = ibv_reg_mr(e[1].pd, to, sizeof(to), ALL_ACCESS)) != NULL);
	timed_write(cq, own, other);
	CHECK(memcmp(from, to, sizeof(from)) == 0);
	CHECK(ibv_rereg_mr(own, IBV_REREG_MR_CHANGE_PD, parent, NULL, 0, 0) == 0);
	timed_write(cq, own, other);
	CHECK(ibv_destroy_qp(e[0].qp) == 0 && ibv_destroy_cq(ibv_cq_ex_to_cq(cq)) == 0);
	CHECK(ibv_dealloc_pd(parent) == EBUSY);
	CHECK(ibv_rereg_mr(own, IBV_REREG_MR_CHANGE_PD, e[0].pd, NULL, 0, 0) == 0);
	CHECK((srq = ibv_create_srq(parent, &srq_init)) != NULL);
	CHECK(ibv_dealloc_pd(parent) == EBUSY && ibv_destroy_srq(srq) == 0);
	ah_attr.grh.dgid = e[1].gid;
	CHECK((ah = ibv_create_ah(parent, &ah_attr)) != NULL);
	CHECK(ibv_dealloc_pd(parent) == EBUSY && ibv_destroy_ah(ah) == 0);
	CHECK((mw = ibv_alloc_mw(parent, IBV_MW_TYPE_2)) != NULL);
	CHECK(ibv_dealloc_pd(parent) == EBUSY && ibv_dealloc_mw(mw) == 0);
	CHECK(ibv_dereg_mr(own) == 0 && ibv_destroy_cq(e[0].cq) == 0);
	CHECK(ibv_dealloc_pd(e[0].pd) == EBUSY);
	CHECK(ibv_dealloc_pd(parent) == 0);
	CHECK(ibv_dealloc_pd(e[0].pd) == 0);
	CHECK(ibv_dealloc_td(a.td) == 0);
	puts("domains");
	return 0;
}
