/* SPDX-License-Identifier: BSD-3-Clause */
/* Completion queues that are resized at work, against a dataplane: argv[1] is its socket. */
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <string.h>

#include "pair.h"

#define DEPTH 16u
#define LEN   4096u

static void
write_one(struct pair *p, struct rl_qp *qp, uint64_t wr_id)
{
	OK(pair_post(qp, RL_WR_RDMA_WRITE, pair_sge(p, 64, 64), (uintptr_t)p->mr->addr + LEN / 2,
		p->mr->rkey, wr_id));
}

/* Not signalled. Once its data is here, completions of all before the one before it are. */
static void
read_one(struct pair *p, struct rl_qp *qp)
{
	volatile uint64_t *local = p->mr->addr, *remote = local + 1;
	struct rl_sge sge = pair_sge(p, 0, 8);
	struct rl_send_wr *bad, wr = { .sg_list = &sge,
		.num_sge = 1,
		.opcode = RL_WR_RDMA_READ,
		.wr.rdma = { .remote_addr = (uintptr_t)remote, .rkey = p->mr->rkey } };

	*remote = *local + 1;
	OK(rl_post_send(qp, &wr, &bad));
	while (*local != *remote)
		sched_yield();
}

/* Completions of `n` WRITEs stand in the queue. */
static void
let_stand_of(struct pair *p, struct rl_qp *qp, uint32_t n, uint64_t first)
{
	for (uint32_t i = 0; i < n; i++)
		write_one(p, qp, first + i);
	read_one(p, qp);
	read_one(p, qp);
}

static void
let_stand(struct pair *p, uint32_t n, uint64_t first)
{
	let_stand_of(p, p->a, n, first);
}

static void
drain(struct pair *p, uint32_t n, uint64_t first)
{
	for (uint32_t i = 0; i < n; i++) {
		const struct rl_wc wc = pair_wait(p->cq);

		CHECK(wc.status == RL_WC_SUCCESS && wc.wr_id == first + i);
	}
}

/* Grown and shrunk with completions in it, once and again: all are there, in order. */
static void
CQ_order_is_kept(struct pair *p)
{
	static const int sizes[] = { 256, 20, 1024, 64 };

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		let_stand(p, 10, 100);
		OK(rl_resize_cq(p->cq, sizes[i]));
		CHECK(p->cq->cqe == sizes[i]);
		OK(rl_resize_cq(p->cq, sizes[i] + 1));
		drain(p, 10, 100);
	}
	OK(rl_resize_cq(p->cq, 64));
}

/* Two senders, the queue resized all the while: nothing is lost, each one's are in order. */
static void
while_both_work(struct pair *p)
{
	struct rl_qp *qp[2] = { p->a, p->b };
	uint64_t posted[2] = { 0 }, done[2] = { 0 };
	struct rl_wc wc[8];

	for (int round = 0; round < 300; round++) {
		for (int i = 0; i < 2; i++) {
			while (posted[i] - done[i] < DEPTH)
				write_one(p, qp[i], posted[i]++);
		}
		if (round % 3 == 0)
			OK(rl_resize_cq(p->cq, round % 2 == 0 ? 40 : 200));
		const int n = rl_poll_cq(p->cq, 8, wc);

		CHECK(n >= 0);
		for (int i = 0; i < n; i++) {
			const int at = wc[i].qp_num == qp[1]->qp_num;

			CHECK(wc[i].status == RL_WC_SUCCESS && wc[i].wr_id == done[at]);
			done[at]++;
		}
	}
	while (done[0] != posted[0] || done[1] != posted[1]) {
		const struct rl_wc one = pair_wait(p->cq);
		const int at = one.qp_num == qp[1]->qp_num;

		CHECK(one.status == RL_WC_SUCCESS && one.wr_id == done[at]);
		done[at]++;
	}
	CHECK(pair_is_quiet(p->cq));
	OK(rl_resize_cq(p->cq, 64));
}

static void
refused(struct pair *p)
{
	CHECK(rl_resize_cq(p->cq, 0) == -EINVAL);
	CHECK(rl_resize_cq(p->cq, 1 << 30) == -EINVAL);
	let_stand(p, 10, 500);
	CHECK(rl_resize_cq(p->cq, 9) == -EINVAL);
	CHECK(p->cq->cqe == 64);
	drain(p, 10, 500);
}

/*
 * Completions of a QP go with it, others stay, in order: as mlx5 and mlx4 have it. Also those that
 * stood in the queue when it was resized.
 */
static void
QP_05_reset_takes_completions_with_it(struct pair *p)
{
	struct rl_qp_attr reset = { .qp_state = RL_QPS_RESET };

	let_stand_of(p, p->a, 3, 100);
	let_stand_of(p, p->b, 4, 200);
	let_stand_of(p, p->a, 2, 103);
	OK(rl_resize_cq(p->cq, 128));
	let_stand_of(p, p->a, 2, 105);
	let_stand_of(p, p->b, 2, 204);
	let_stand_of(p, p->a, 1, 107);
	CHECK(pair_wait(p->cq).wr_id == 100);
	OK(rl_modify_qp(p->a, &reset, RL_QP_STATE));
	drain(p, 6, 200);
	CHECK(pair_is_quiet(p->cq));
	/* The same of one that is destroyed. */
	pair_disconnect(p);
	pair_connect(p, DEPTH);
	let_stand_of(p, p->a, 2, 300);
	let_stand_of(p, p->b, 3, 400);
	let_stand_of(p, p->a, 1, 302);
	OK(rl_destroy_qp(p->b));
	p->b = pair_qp(p, DEPTH);
	drain(p, 3, 300);
	CHECK(pair_is_quiet(p->cq));
	OK(rl_resize_cq(p->cq, 64));
}

/* CQ-06: asked for before, it comes after. */
static void
CQ_06_events(struct pair *p)
{
	struct rl_cq *cq;
	void *context;

	for (int i = 0; i < 3; i++) {
		OK(rl_req_notify_cq(p->cq, 0));
		OK(rl_resize_cq(p->cq, 100 + i));
		write_one(p, p->a, 7);
		OK(rl_get_cq_event(p->channel, &cq, &context));
		CHECK(cq == p->cq);
		rl_ack_cq_events(cq, 1);
		CHECK(pair_wait(cq).wr_id == 7);
	}
}

/* CQ-06: asked for when some that came before the resize stand there: an event at once. */
static void
CQ_06_events_of_what_is_left(struct pair *p)
{
	struct pollfd told = { .fd = p->channel->fd, .events = POLLIN };
	struct rl_cq *cq;
	void *context;

	for (int i = 0; i < 3; i++) {
		OK(rl_req_notify_cq(p->cq, 0));
		write_one(p, p->a, 7);
		OK(rl_get_cq_event(p->channel, &cq, &context)); /* it is there */
		OK(rl_resize_cq(p->cq, 100 + i));
		OK(rl_req_notify_cq(p->cq, 0));
		CHECK(poll(&told, 1, 20000) == 1);
		OK(rl_get_cq_event(p->channel, &cq, &context));
		rl_ack_cq_events(cq, 2);
		CHECK(pair_wait(cq).wr_id == 7);
	}
}

/* CQ-06: asked for any, it is not asked for less afterwards; until the event has come. */
static void
CQ_06_any_stays_any(struct pair *p)
{
	struct pollfd told = { .fd = p->channel->fd, .events = POLLIN };
	struct rl_cq *cq;
	void *context;

	for (int i = 0; i < 3; i++) {
		OK(rl_req_notify_cq(p->cq, 0));
		OK(rl_req_notify_cq(p->cq, 1));
		if (i == 1)
			OK(rl_resize_cq(p->cq, 100));
		write_one(p, p->a, 7);
		CHECK(poll(&told, 1, 20000) == 1);
		OK(rl_get_cq_event(p->channel, &cq, &context));
		rl_ack_cq_events(cq, 1);
		CHECK(pair_wait(cq).wr_id == 7);
		OK(rl_req_notify_cq(p->cq, 1));
		write_one(p, p->a, 8);
		CHECK(pair_wait(cq).wr_id == 8);
		CHECK(poll(&told, 1, 0) == 0);
	}
}

/* QP-09: who has asked for no event asks whether the queue is drained. */
static void
QP_09_draining_is_told(struct pair *p)
{
	struct rl_qp_attr reset = { .qp_state = RL_QPS_RESET }, a = { .qp_state = RL_QPS_RTS };

	OK(rl_modify_qp(p->b, &reset, RL_QP_STATE)); /* it does not answer */
	write_one(p, p->a, 7);
	do { /* in SQD no request is begun that the worker has not seen */
		OK(rl_modify_qp(p->a, &a, RL_QP_STATE));
		a.qp_state = RL_QPS_SQD;
		OK(rl_modify_qp(p->a, &a, RL_QP_STATE));
		OK(rl_query_qp(p->a, &a, 0, NULL));
		CHECK(a.qp_state == RL_QPS_SQD);
		a.qp_state = RL_QPS_RTS;
	} while (a.sq_draining == 0);
	a.qp_state = RL_QPS_ERR;
	OK(rl_modify_qp(p->a, &a, RL_QP_STATE));
	CHECK(pair_wait(p->cq).status != RL_WC_SUCCESS);
	OK(rl_query_qp(p->a, &a, 0, NULL));
	CHECK(a.sq_draining == 0);
}

int
main(int argc, char **argv)
{
	static void (*const cases[])(struct pair *) = { CQ_order_is_kept, while_both_work, refused,
		QP_05_reset_takes_completions_with_it, CQ_06_events, CQ_06_events_of_what_is_left,
		CQ_06_any_stays_any, QP_09_draining_is_told };
	struct pair p;

	CHECK(argc == 2);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		pair_open(&p, argv[1], 64, LEN);
		pair_connect(&p, DEPTH);
		cases[i](&p);
		pair_disconnect(&p);
		pair_close(&p);
	}
	return 0;
}
