/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An XRC domain that two processes share by a file, with plain verbs: the child has a receive queue
 * in it, the parent one, too, and the target; the parent sends to both.
 */
#include <fcntl.h>
#include <sched.h>
#include <stdbool.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ends.h"

#define LENGTH 100

/** A process's part of the domain. */
struct member {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	struct ibv_xrcd *xrcd;
	struct ibv_srq *srq;
	uint32_t num;
};

static char path[] = "/tmp/rocelane-xrcd-XXXXXX";
static char memory[4096] __attribute__((aligned(4096)));

static struct ibv_context *
device(int i)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *ctx;

	CHECK(list != NULL && (ctx = ibv_open_device(list[i])) != NULL);
	ibv_free_device_list(list);
	return ctx;
}

static struct ibv_xrcd *
open_domain(struct ibv_context *ctx, int fd, int oflags)
{
	struct ibv_xrcd_init_attr init = { .comp_mask = IBV_XRCD_INIT_ATTR_FD |
							IBV_XRCD_INIT_ATTR_OFLAGS,
		.fd = fd,
		.oflags = oflags };

	return ibv_open_xrcd(ctx, &init);
}

static void
join(struct member *m, int fd, int oflags)
{
	struct ibv_srq_init_attr_ex init = { .attr = { .max_wr = 4, .max_sge = 1 },
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
			     IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ,
		.srq_type = IBV_SRQT_XRC };
	struct ibv_recv_wr wr = { .wr_id = 5, .num_sge = 1 }, *bad;
	struct ibv_sge sge = { .addr = (uintptr_t)memory, .length = LENGTH };

	m->ctx = device(0);
	CHECK((m->pd = init.pd = ibv_alloc_pd(m->ctx)) != NULL);
	CHECK((m->cq = init.cq = ibv_create_cq(m->ctx, 16, NULL, NULL, 0)) != NULL);
	CHECK((m->mr = ibv_reg_mr(m->pd, memory, sizeof(memory), IBV_ACCESS_LOCAL_WRITE)) != NULL);
	CHECK((m->xrcd = init.xrcd = open_domain(m->ctx, fd, oflags)) != NULL);
	CHECK((m->srq = ibv_create_srq_ex(m->ctx, &init)) != NULL);
	CHECK(ibv_get_srq_num(m->srq, &m->num) == 0);
	sge.lkey = m->mr->lkey;
	wr.sg_list = &sge;
	CHECK(ibv_post_srq_recv(m->srq, &wr, &bad) == 0);
}

static struct ibv_wc
wait_for(struct ibv_cq *cq)
{
	struct ibv_wc wc;
	int n;

	while ((n = ibv_poll_cq(cq, 1, &wc)) == 0)
		sched_yield();
	CHECK(n == 1 && wc.status == IBV_WC_SUCCESS);
	return wc;
}

static void
received(struct member *m, char what, uint32_t target)
{
	const struct ibv_wc wc = wait_for(m->cq);

	CHECK(wc.opcode == IBV_WC_RECV && wc.wr_id == 5 && wc.byte_len == LENGTH);
	CHECK(wc.qp_num == target);
	for (int i = 0; i < LENGTH; i++)
		CHECK(memory[i] == what);
}

/* ibv_open_qp(): the parent's target, in the state that it has. */
static void
opens(const struct member *m, uint32_t number)
{
	struct ibv_qp_open_attr a = { .comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD |
						   IBV_QP_OPEN_ATTR_TYPE,
		.qp_num = number,
		.xrcd = m->xrcd,
		.qp_type = IBV_QPT_XRC_RECV };
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr now;
	struct ibv_qp *qp;

	CHECK((qp = ibv_open_qp(m->ctx, &a)) != NULL);
	CHECK(qp->qp_num == number && qp->qp_type == IBV_QPT_XRC_RECV);
	CHECK(qp->state == IBV_QPS_RTS && ibv_query_qp(qp, &now, IBV_QP_STATE, &init) == 0);
	CHECK(now.qp_state == IBV_QPS_RTS && now.min_rnr_timer == 12);
	errno = 0;
	CHECK(ibv_open_qp(m->ctx, &a) == NULL && errno == EEXIST);
	CHECK(ibv_close_xrcd(m->xrcd) == EBUSY);
	CHECK(ibv_destroy_qp(qp) == 0);
	a.qp_num ^= 1;
	CHECK(ibv_open_qp(m->ctx, &a) == NULL && errno == ENOENT);
	a.comp_mask = IBV_QP_OPEN_ATTR_NUM;
	CHECK(ibv_open_qp(m->ctx, &a) == NULL && errno == EINVAL);
}

/* The other process, which did not create the domain, and has the file open by itself. */
static int
child(int from, int to)
{
	char other[] = "/tmp/rocelane-xrcd-XXXXXX";
	const int none = mkstemp(other);
	struct member m;
	uint32_t target;
	int fd;

	CHECK(none >= 0 && unlink(other) == 0);
	CHECK(read(from, &target, sizeof(target)) == sizeof(target)); /* the domain is there */
	CHECK((fd = open(path, O_RDONLY)) >= 0);
	join(&m, fd, 0);
	errno = 0;
	CHECK(open_domain(m.ctx, none, 0) == NULL && errno == ENOENT);
	CHECK(open_domain(m.ctx, fd, O_CREAT | O_EXCL) == NULL && errno == EEXIST);
	opens(&m, target);
	CHECK(write(to, &m.num, sizeof(m.num)) == sizeof(m.num));
	received(&m, 'c', target);
	CHECK(ibv_destroy_srq(m.srq) == 0 && ibv_close_xrcd(m.xrcd) == 0);
	return 0;
}

static void
up(struct ibv_qp *qp, const struct ibv_qp *peer, struct ibv_context *peers)
{
	const int first = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
	const int rtr =
		IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
	const bool target = qp->qp_type == IBV_QPT_XRC_RECV;
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = peer->qp_num,
		.min_rnr_timer = 12,
		.timeout = 18, /* the machine may be busy */
		.retry_cnt = 7,
		.rnr_retry = 7,
		.ah_attr = { .is_global = 1, .port_num = 1, .grh.hop_limit = 64 } };

	CHECK(ibv_query_gid(peers, 1, 0, &a.ah_attr.grh.dgid) == 0);
	CHECK(ibv_modify_qp(qp, &a, first) == 0);
	a.qp_state = IBV_QPS_RTR;
	CHECK(ibv_modify_qp(qp, &a,
		      rtr | (target ? IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER : 0)) == 0);
	a.qp_state = IBV_QPS_RTS;
	CHECK(ibv_modify_qp(qp, &a,
		      IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT |
			      (target ? 0
				      : IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
						      IBV_QP_MAX_QP_RD_ATOMIC)) == 0);
}

static void
parent(int fd, int from, int to)
{
	struct ibv_qp_init_attr_ex t = { .qp_type = IBV_QPT_XRC_RECV,
		.comp_mask = IBV_QP_INIT_ATTR_XRCD };
	struct ibv_qp_init_attr_ex s = { .qp_type = IBV_QPT_XRC_SEND,
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.cap = { .max_send_wr = 4, .max_send_sge = 1, .max_inline_data = LENGTH } };
	struct ibv_context *ctx = device(1);
	struct ibv_qp *target, *sender;
	char text[LENGTH];
	struct member m;
	uint32_t num;

	join(&m, fd, O_CREAT);
	t.xrcd = m.xrcd;
	CHECK((target = ibv_create_qp_ex(m.ctx, &t)) != NULL);
	CHECK((s.pd = ibv_alloc_pd(ctx)) != NULL);
	CHECK((s.send_cq = ibv_create_cq(ctx, 16, NULL, NULL, 0)) != NULL);
	CHECK((sender = ibv_create_qp_ex(ctx, &s)) != NULL);
	up(target, sender, ctx);
	up(sender, target, m.ctx);
	CHECK(write(to, &target->qp_num, sizeof(num)) == sizeof(num));
	CHECK(read(from, &num, sizeof(num)) == sizeof(num));
	for (int i = 0; i < 2; i++) {
		struct ibv_sge sge = { .addr = (uintptr_t)text, .length = LENGTH };
		struct ibv_send_wr wr = { .sg_list = &sge,
			.num_sge = 1,
			.opcode = IBV_WR_SEND,
			.send_flags = IBV_SEND_SIGNALED | IBV_SEND_INLINE,
			.qp_type.xrc.remote_srqn = i == 0 ? num : m.num };
		struct ibv_send_wr *bad;

		memset(text, i == 0 ? 'c' : 'p', LENGTH);
		CHECK(ibv_post_send(sender, &wr, &bad) == 0);
		wait_for(s.send_cq);
	}
	received(&m, 'p', target->qp_num);
}

int
main(void)
{
	const int fd = mkstemp(path);
	int down[2], back[2], status;
	pid_t pid;

	CHECK(fd >= 0 && pipe(down) == 0 && pipe(back) == 0);
	pid = fork();
	CHECK(pid >= 0);
	if (pid == 0)
		return child(down[0], back[1]);
	close(back[1]); /* a child that fails is not waited for */
	parent(fd, back[0], down[1]);
	CHECK(waitpid(pid, &status, 0) == pid && status == 0);
	unlink(path);
	printf("one target, two processes\n");
	return 0;
}
