/* SPDX-License-Identifier: BSD-3-Clause */
/* FLOW-07, FLOW-08 from an application's side: argv[1] is the socket; both credits knobs are on. */
#include <errno.h>
#include <sched.h>
#include <stdatomic.h>

#include "client_priv.h"
#include "pair.h"

#define DEPTH 16u
#define WAIT  UINT64_C(10000000000) /* ns */

/* Does the dataplane ask to be told of receives of `qp`? */
static bool
asks(const struct rl_qp *qp)
{
	return atomic_load(&((const struct qp *)(const void *)qp)->rq.sh->alert) != 0;
}

static void
await(const struct rl_qp *qp, bool asking)
{
	const uint64_t end = pair_now_ns() + WAIT;

	while (asks(qp) != asking) {
		CHECK(pair_now_ns() < end);
		sched_yield();
	}
}

static void
send(struct pair *p, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		OK(pair_post(p->a, RL_WR_SEND, pair_sge(p, 0, 8), 0, 0, i));
	for (uint32_t i = 0; i < 2 * n; i++) /* of both ends */
		CHECK(pair_wait(p->cq).status == RL_WC_SUCCESS);
}

static void
receives(struct pair *p, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		OK(pair_recv(p->b, pair_sge(p, 4096, 8), 100 + i));
}

/*
 * The last receive is taken: the worker asks to be told. It is told by the next ones that are
 * posted, by a doorbell, and asks no more. Again and again, and no SEND meets an empty queue.
 */
static void
FLOW_07_told_by_doorbells(struct pair *p)
{
	for (uint32_t round = 1; round <= 200; round++) {
		const uint32_t n = 2 + round % (DEPTH - 2);

		await(p->b, true);
		receives(p, n);
		await(p->b, false);
		send(p, n);
	}
}

/* FLOW-08: one event when fewer than the limit are left, which is disarmed by that. */
static void
FLOW_08_limit_event(struct pair *p)
{
	struct rl_qp_attr attr = { .rq_limit = 4 };
	struct rl_async_event e;

	receives(p, 6);
	OK(rl_modify_qp(p->b, &attr, RL_QP_RQ_LIMIT));
	OK(rl_query_qp(p->b, &attr, 0, NULL));
	CHECK(attr.rq_limit == 4);
	send(p, 6);
	OK(rl_get_async_event(p->ctx, &e));
	CHECK(e.event_type == RL_EVENT_RQ_LIMIT_REACHED && e.element.qp == p->b);
	rl_ack_async_event(&e);
	OK(rl_query_qp(p->b, &attr, 0, NULL));
	CHECK(attr.rq_limit == 0);
	attr.rq_limit = DEPTH + 1;
	CHECK(rl_modify_qp(p->b, &attr, RL_QP_RQ_LIMIT) == -EINVAL);
}

int
main(int argc, char **argv)
{
	struct pair p;

	CHECK(argc == 2);
	pair_open(&p, argv[1], 1024, 1 << 20);
	pair_connect(&p, DEPTH);
	receives(&p, 1);
	send(&p, 1);
	FLOW_07_told_by_doorbells(&p);
	FLOW_08_limit_event(&p);
	pair_disconnect(&p);
	pair_close(&p);
	return 0;
}
