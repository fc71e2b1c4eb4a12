/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Events of what is destroyed before anybody has fetched them: they are gone, and a descriptor that
 * counted them does not say that there is something. argv[1] is the socket.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "cm_side.h"

#define PATIENCE_MS 60000
#define MANY        400

struct world {
	struct side s, c;
	uint16_t service;
};

static bool
readable(int fd, int ms)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, ms) == 1;
}

/* With an ADDR_RESOLVED that nobody has fetched. */
static struct rl_cm_id *
resolving(struct side *side, uint16_t service)
{
	struct sockaddr_storage to = side_address("10.77.0.2", service);
	struct rl_cm_id *id;

	OK(rl_cm_create_id(side->channel, &id, NULL, RL_PS_TCP));
	OK(rl_cm_resolve_addr(id, NULL, (struct sockaddr *)&to, 20000));
	return id;
}

static struct rl_cm_id *
resolved(struct side *side, uint16_t service)
{
	struct rl_cm_id *id = resolving(side, service);

	side_expect(side, RL_CM_EVENT_ADDR_RESOLVED);
	return id;
}

static struct rl_cm_id *
listening(struct world *w)
{
	struct sockaddr_storage at = side_address("10.77.0.2", w->service);
	struct rl_cm_id *id;

	OK(rl_cm_create_id(w->s.channel, &id, NULL, RL_PS_TCP));
	OK(rl_cm_bind_addr(id, (struct sockaddr *)&at));
	OK(rl_cm_listen(id, 8));
	return id;
}

static void
ask(struct rl_cm_id *id, const struct rl_qp *qp)
{
	const struct rl_cm_conn_param param = { .retry_count = 7, .qp_num = qp->qp_num };

	OK(rl_cm_connect(id, &param));
}

/* Neither poll() nor a call finds anything. */
static void
check_nothing(struct rl_cm_event_channel *ch)
{
	const int flags = fcntl(ch->fd, F_GETFL);
	struct rl_cm_event *e;

	CHECK(!readable(ch->fd, 0));
	CHECK(fcntl(ch->fd, F_SETFL, flags | O_NONBLOCK) == 0);
	CHECK(rl_cm_get_event(ch, &e) == -EAGAIN);
	CHECK(fcntl(ch->fd, F_SETFL, flags) == 0);
}

static void
of_an_id(struct world *w)
{
	struct rl_cm_id *a = resolving(&w->c, 1), *b;

	CHECK(readable(w->c.channel->fd, PATIENCE_MS));
	OK(rl_cm_destroy_id(a));
	check_nothing(w->c.channel);
	/* The library's own events. */
	a = resolved(&w->c, 1);
	OK(rl_cm_resolve_route(a, 0));
	CHECK(readable(w->c.channel->fd, 0));
	OK(rl_cm_destroy_id(a));
	check_nothing(w->c.channel);
	/* Another one's stays, whichever of both came first. */
	for (int i = 0; i < 2; i++) {
		a = resolved(&w->c, 1);
		b = resolved(&w->c, 1);
		OK(rl_cm_resolve_route(i == 0 ? a : b, 0));
		OK(rl_cm_resolve_route(i == 0 ? b : a, 0));
		OK(rl_cm_destroy_id(a));
		CHECK(readable(w->c.channel->fd, 0));
		side_expect(&w->c, RL_CM_EVENT_ROUTE_RESOLVED);
		check_nothing(w->c.channel);
		OK(rl_cm_destroy_id(b));
	}
}

/* They go along, and leave nothing behind. */
static void
of_an_id_that_migrates(struct world *w)
{
	struct rl_cm_event_channel *first = w->c.channel, *other;
	struct rl_cm_id *id = resolving(&w->c, 1);

	OK(rl_cm_create_event_channel(w->c.p.ctx, &other));
	CHECK(readable(first->fd, PATIENCE_MS));
	OK(rl_cm_migrate_id(id, other));
	check_nothing(first);
	w->c.channel = other;
	side_expect(&w->c, RL_CM_EVENT_ADDR_RESOLVED);
	check_nothing(other);
	OK(rl_cm_resolve_route(id, 0));
	OK(rl_cm_migrate_id(id, first));
	check_nothing(other);
	w->c.channel = first;
	side_expect(&w->c, RL_CM_EVENT_ROUTE_RESOLVED);
	check_nothing(first);
	OK(rl_cm_destroy_id(id));
	OK(rl_cm_destroy_event_channel(other));
}

/* CM-29: who asked a listener that is destroyed, and was not heard, is refused. */
static void
of_a_listener(struct world *w)
{
	struct rl_cm_id *listener = listening(w), *id = resolved(&w->c, w->service);
	struct rl_qp *qp = pair_qp(&w->c.p, 4);

	ask(id, qp);
	CHECK(readable(w->s.channel->fd, PATIENCE_MS));
	OK(rl_cm_destroy_id(listener));
	check_nothing(w->s.channel);
	side_expect(&w->c, RL_CM_EVENT_REJECTED);
	OK(rl_cm_destroy_id(id));
	OK(rl_destroy_qp(qp));
}

/* Who asked goes along with a listener, and its new id is where the event comes. */
static void
of_a_listener_that_migrates(struct world *w)
{
	struct rl_cm_event_channel *first = w->s.channel, *other;
	struct rl_cm_id *listener = listening(w), *id = resolved(&w->c, w->service);
	struct rl_qp *qp = pair_qp(&w->c.p, 4);
	struct rl_cm_event *e;

	OK(rl_cm_create_event_channel(w->s.p.ctx, &other));
	ask(id, qp);
	CHECK(readable(first->fd, PATIENCE_MS));
	OK(rl_cm_migrate_id(listener, other));
	check_nothing(first);
	OK(rl_cm_destroy_event_channel(first));
	w->s.channel = other;
	e = side_next(&w->s, RL_CM_EVENT_CONNECT_REQUEST);
	CHECK(e->listen_id == listener && e->id->channel == other);
	w->s.id = e->id;
	OK(rl_cm_ack_event(e));
	check_nothing(other);
	OK(rl_cm_reject(w->s.id, NULL, 0));
	OK(rl_cm_destroy_id(w->s.id));
	side_expect(&w->c, RL_CM_EVENT_REJECTED);
	OK(rl_cm_destroy_id(id));
	OK(rl_cm_destroy_id(listener));
	OK(rl_destroy_qp(qp));
}

/* A CQ that has fired, twice, beside one that has, too. */
static void
of_a_cq(struct world *w)
{
	struct pair *p = &w->c.p;
	struct rl_cq *mine = p->cq, *gone, *got;

	OK(rl_create_cq(p->ctx, 16, NULL, p->channel, &gone));
	p->cq = gone;
	pair_connect(p, 4);
	for (int i = 0; i < 2; i++) {
		OK(rl_req_notify_cq(gone, 0));
		OK(pair_post(p->a, RL_WR_RDMA_WRITE, pair_sge(p, 0, 8), (uintptr_t)p->mr->addr,
			p->mr->rkey, 1));
		CHECK(pair_wait(gone).status == RL_WC_SUCCESS);
		CHECK(readable(p->channel->fd, PATIENCE_MS));
		if (i == 0) { /* one that was fetched is not taken off again */
			OK(rl_get_cq_event(p->channel, &got, NULL));
			CHECK(got == gone && !readable(p->channel->fd, 0));
			rl_ack_cq_events(got, 1);
		}
	}
	pair_disconnect(p);
	OK(rl_destroy_cq(gone));
	CHECK(!readable(p->channel->fd, 0));
	p->cq = mine;
	pair_connect(p, 4);
	OK(rl_req_notify_cq(mine, 0));
	OK(pair_post(
		p->a, RL_WR_RDMA_WRITE, pair_sge(p, 0, 8), (uintptr_t)p->mr->addr, p->mr->rkey, 1));
	CHECK(readable(p->channel->fd, PATIENCE_MS));
	OK(rl_get_cq_event(p->channel, &got, NULL));
	CHECK(got == mine && !readable(p->channel->fd, 0));
	rl_ack_cq_events(got, 1);
	CHECK(pair_wait(mine).status == RL_WC_SUCCESS);
	pair_disconnect(p);
}

/* COMM_EST of a QP that goes. */
static void
of_a_qp(struct world *w)
{
	struct pair *p = &w->c.p;

	p->a = pair_qp(p, 4);
	p->b = pair_qp(p, 4);
	pair_move(p, p->a, RL_QPS_RTS, 1, p->b->qp_num, 2);
	pair_move(p, p->b, RL_QPS_RTR, 2, p->a->qp_num, 1);
	OK(pair_post(
		p->a, RL_WR_RDMA_WRITE, pair_sge(p, 0, 8), (uintptr_t)p->mr->addr, p->mr->rkey, 1));
	CHECK(pair_wait(p->cq).status == RL_WC_SUCCESS);
	CHECK(readable(p->ctx->async_fd, PATIENCE_MS));
	pair_disconnect(p);
	CHECK(!readable(p->ctx->async_fd, 0));
}

/* @return how many of this type there are, and nothing else. */
static uint32_t
count_events(struct rl_context *ctx, enum rl_event_type type, uint64_t *lost)
{
	struct rl_async_event e;
	uint32_t n = 0;

	OK(fcntl(ctx->async_fd, F_SETFL, O_NONBLOCK));
	for (*lost = 0; rl_get_async_event(ctx, &e) == 0; n++) {
		CHECK(e.event_type == type);
		*lost += e.lost;
		rl_ack_async_event(&e);
	}
	CHECK(strcmp(rl_last_error(), "no event is there") == 0);
	CHECK(!readable(ctx->async_fd, 0));
	OK(fcntl(ctx->async_fd, F_SETFL, 0));
	return n;
}

/* AE-08: programs move all their QPs to ERR, and then wait for the last word of each. */
static void
of_many_qps(struct world *w)
{
	struct rl_qp_attr err = { .qp_state = RL_QPS_ERR };
	struct rl_srq_init_attr queue = { .attr = { .max_wr = 4, .max_sge = 1 } };
	struct pair *p = &w->c.p;
	struct rl_qp *qp[MANY];
	struct rl_srq *srq;
	uint64_t lost;

	OK(rl_create_srq(p->pd, &queue, &srq));
	for (uint32_t i = 0; i < MANY; i++) {
		struct rl_qp_init_attr init = { .send_cq = p->cq,
			.recv_cq = p->cq,
			.srq = srq,
			.cap = { .max_send_wr = 1, .max_send_sge = 1 },
			.qp_type = RL_QPT_RC };

		OK(rl_create_qp(p->pd, &init, &qp[i]));
		pair_move(p, qp[i], RL_QPS_RTR, 1, qp[0]->qp_num, 2);
	}
	for (uint32_t i = 0; i < MANY; i++)
		OK(rl_modify_qp(qp[i], &err, RL_QP_STATE));
	CHECK(count_events(p->ctx, RL_EVENT_QP_LAST_WQE_REACHED, &lost) == MANY && lost == 0);
	for (uint32_t i = 0; i < MANY; i++)
		OK(rl_destroy_qp(qp[i]));
	OK(rl_destroy_srq(srq));
}

/* Who makes more and more of them loses what is beyond; it is told how much. */
static void
of_a_qp_that_says_too_much(struct world *w)
{
	struct rl_qp_attr attr = { .en_sqd_async_notify = 1 };
	struct pair *p = &w->c.p;
	uint64_t lost;
	uint32_t n;

	pair_connect(p, 4);
	for (uint32_t i = 0; i < MANY; i++) {
		attr.qp_state = RL_QPS_SQD;
		OK(rl_modify_qp(p->a, &attr, RL_QP_STATE | RL_QP_EN_SQD_ASYNC_NOTIFY));
		attr.qp_state = RL_QPS_RTS;
		OK(rl_modify_qp(p->a, &attr, RL_QP_STATE));
	}
	n = count_events(p->ctx, RL_EVENT_SQ_DRAINED, &lost);
	CHECK(n < MANY && n + lost == MANY);
	pair_disconnect(p);
}

/* A WRITE with a key that is none: the peer's QP has an event. */
static void
fail_access(struct pair *p, struct rl_qp *qp)
{
	OK(pair_post(qp, RL_WR_RDMA_WRITE, pair_sge(p, 0, 8), (uintptr_t)p->mr->addr,
		p->mr->rkey ^ 0x5a5a5a, 1));
}

static void
next_access_error(struct rl_context *ctx, struct rl_async_event *e, uint64_t *lost)
{
	OK(rl_get_async_event(ctx, e));
	CHECK(e->event_type == RL_EVENT_QP_ACCESS_ERR);
	*lost += e->lost;
	rl_ack_async_event(e);
}

/*
 * AEQ-14: each is told or counted, also those for which a worker has no room. Once one of them was
 * told there is room, so the last one comes behind all.
 */
static void
of_many_qps_that_fail_at_once(struct world *w)
{
	struct pair *p = &w->c.p;
	struct rl_qp *a[MANY + 1], *b[MANY + 1];
	struct rl_cq *mine = p->cq;
	struct rl_async_event e;
	uint64_t lost = 0;
	uint32_t n = 1;

	OK(rl_create_cq(p->ctx, MANY, NULL, NULL, &p->cq));
	for (uint32_t i = 0; i <= MANY; i++) {
		pair_connect(p, 1);
		a[i] = p->a;
		b[i] = p->b;
	}
	for (uint32_t i = 0; i < MANY; i++)
		fail_access(p, a[i]);
	for (uint32_t i = 0; i < MANY; i++)
		CHECK(pair_wait(p->cq).status == RL_WC_REM_ACCESS_ERR);
	next_access_error(p->ctx, &e, &lost);
	fail_access(p, a[MANY]);
	for (; e.element.qp != b[MANY]; n++)
		next_access_error(p->ctx, &e, &lost);
	CHECK(n + lost == MANY + 1);
	CHECK(pair_wait(p->cq).status == RL_WC_REM_ACCESS_ERR);
	for (uint32_t i = 0; i <= MANY; i++) {
		OK(rl_destroy_qp(a[i]));
		OK(rl_destroy_qp(b[i]));
	}
	OK(rl_destroy_cq(p->cq));
	p->cq = mine;
}

int
main(int argc, char **argv)
{
	struct world w = { .service = 7471 };

	CHECK(argc >= 2);
	side_open(&w.s, argv[1]);
	side_open(&w.c, argv[1]);
	of_an_id(&w);
	of_an_id_that_migrates(&w);
	of_a_listener(&w);
	of_a_listener_that_migrates(&w);
	of_a_cq(&w);
	of_a_qp(&w);
	of_many_qps(&w);
	of_a_qp_that_says_too_much(&w);
	of_many_qps_that_fail_at_once(&w);
	pair_close(&w.s.p);
	pair_close(&w.c.p);
	return 0;
}
