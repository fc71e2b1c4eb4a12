/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An XRC target shared by applications. argv[1] is the socket. The first one has the target and an
 * SRQ, the second one an SRQ in the same domain, the third one sends to both. Each is a connection
 * of its own, so they are applications to the dataplane.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "client_priv.h"
#include "xrc_world.h"

#define ROUNDS  20
#define TARGETS 30

/* XRC-04: each application hears of what named its own SRQ, and of nothing else. */
static void
XRC_04_to_each_its_own(struct world *w)
{
	struct member *all[] = { &w->one, &w->two };
	uint8_t *mem = w->asker.mr->addr;

	for (uint32_t n = 0; n < 100; n++) {
		struct member *m = all[n * 7 / 3 % 2];
		const uint32_t len = n * 37 % SLOT;
		struct rl_sge sge = pair_sge(&w->asker, 0, len);
		struct rl_send_wr wr = request(w, m, RL_WR_SEND_WITH_IMM, &sge);
		struct rl_wc wc;

		receive(m, n);
		memset(mem, (int)n, SLOT);
		wr.imm_data = htonl(n);
		OK(rl_post_send(w->from, &wr, NULL));
		CHECK(pair_wait(w->asker.cq).status == RL_WC_SUCCESS);
		wc = pair_wait(m->p.cq);
		CHECK(wc.status == RL_WC_SUCCESS && wc.opcode == RL_WC_RECV && wc.wr_id == n);
		CHECK(wc.byte_len == len && ntohl(wc.imm_data) == n);
		CHECK(wc.qp_num == w->target->qp_num);
		CHECK(memcmp((uint8_t *)m->p.mr->addr + n % 64 * SLOT, mem, len) == 0);
		CHECK(pair_is_quiet(all[m == all[0]]->p.cq));
	}
}

/* XRC-03, XRC-10: READ, WRITE and ATOMIC reach the regions of the SRQ's application. */
static void
XRC_10_regions_of_the_named_one(struct world *w)
{
	struct member *all[] = { &w->one, &w->two };

	for (int i = 0; i < 2; i++) {
		struct rl_mr *theirs = all[i]->p.mr;
		uint8_t *mem = theirs->addr;
		struct rl_sge sge = pair_sge(&w->asker, 0, 5000);
		struct rl_send_wr wr = request(w, all[i], RL_WR_RDMA_WRITE, &sge);

		memset(w->asker.mr->addr, 0x40 + i, 5000);
		wr.wr.rdma.remote_addr = (uintptr_t)mem + 65536;
		wr.wr.rdma.rkey = theirs->rkey;
		OK(rl_post_send(w->from, &wr, NULL));
		CHECK(pair_wait(w->asker.cq).status == RL_WC_SUCCESS);
		CHECK(mem[65536] == 0x40 + i && mem[65536 + 4999] == 0x40 + i);
		sge = pair_sge(&w->asker, 8192, 5000);
		wr.opcode = RL_WR_RDMA_READ;
		OK(rl_post_send(w->from, &wr, NULL));
		CHECK(pair_wait(w->asker.cq).status == RL_WC_SUCCESS);
		CHECK(memcmp((uint8_t *)w->asker.mr->addr + 8192, mem + 65536, 5000) == 0);
		*(uint64_t *)(void *)(mem + 65536) = 41;
		sge.length = 8;
		wr.opcode = RL_WR_ATOMIC_FETCH_AND_ADD;
		wr.wr.atomic.remote_addr = (uintptr_t)mem + 65536;
		wr.wr.atomic.rkey = theirs->rkey;
		wr.wr.atomic.compare_add = 1;
		OK(rl_post_send(w->from, &wr, NULL));
		CHECK(pair_wait(w->asker.cq).status == RL_WC_SUCCESS);
		CHECK(*(uint64_t *)(void *)(mem + 65536) == 42);
	}
}

/* The region of one application under the SRQ of the other: another protection domain. */
static void
XRC_10_not_those_of_another(struct world *w)
{
	struct rl_sge sge = pair_sge(&w->asker, 0, 8);
	struct rl_send_wr wr = request(w, &w->two, RL_WR_RDMA_WRITE, &sge);

	wr.wr.rdma.remote_addr = (uintptr_t)w->one.p.mr->addr;
	wr.wr.rdma.rkey = w->one.p.mr->rkey;
	OK(rl_post_send(w->from, &wr, NULL));
	CHECK(pair_wait(w->asker.cq).status == RL_WC_REM_ACCESS_ERR);
}

/* What can be known is refused at once (XRC-09). */
static void
XRC_09_refused(struct world *w)
{
	struct rl_sge sge = pair_sge(&w->asker, 0, 8);
	struct rl_send_wr wr = request(w, &w->two, RL_WR_SEND, &sge), *bad;
	struct rl_recv_wr recv = { .wr_id = 1 }, *bad_recv;
	struct rl_qp_init_attr init = { .qp_type = RL_QPT_XRC_RECV };
	struct rl_srq_init_attr basic = { .attr = { .max_wr = 4, .max_sge = 1 } };
	struct rl_xrcd *again;
	struct rl_srq *srq;
	struct rl_qp *qp;
	uint32_t num;

	wr.qp_type.xrc.remote_srqn = 0;
	CHECK(rl_post_send(w->from, &wr, &bad) == -EINVAL && bad == &wr);
	CHECK(strstr(rl_last_error(), "remote_srqn") != NULL);
	wr.qp_type.xrc.remote_srqn = 0x1000000;
	CHECK(rl_post_send(w->from, &wr, &bad) == -EINVAL);
	CHECK(rl_post_send(w->target, &wr, &bad) == -EINVAL);
	CHECK(rl_post_recv(w->target, &recv, &bad_recv) == -EINVAL);
	CHECK(rl_post_recv(w->from, &recv, &bad_recv) == -EINVAL);
	CHECK(rl_create_qp(w->one.p.pd, &init, &qp) == -EINVAL);
	init.xrcd = w->one.xrcd;
	init.send_cq = w->one.p.cq;
	CHECK(rl_create_qp(w->one.p.pd, &init, &qp) == -EINVAL);
	CHECK(rl_open_xrcd(w->one.p.ctx, DOMAIN, O_CREAT | O_EXCL, &again) == -EEXIST);
	CHECK(rl_open_xrcd(w->one.p.ctx, "another name", 0, &again) == -ENOENT);
	CHECK(rl_close_xrcd(w->two.xrcd) == -EBUSY);
	CHECK(rl_close_xrcd(w->one.xrcd) == -EBUSY);
	CHECK(rl_destroy_cq(w->two.p.cq) == -EBUSY);
	OK(rl_create_srq(w->one.p.pd, &basic, &srq));
	CHECK(rl_get_srq_num(srq, &num) == -EINVAL);
	OK(rl_destroy_srq(srq));
	/* A domain of one's own, which nobody else can name. */
	OK(rl_create_xrcd(w->one.p.ctx, &again));
	OK(rl_close_xrcd(again));
}

/* XRC-05, XRC-06: an SRQ of another domain is none; the target's owner hears of it. */
static void
XRC_05_of_another_domain(struct world *w)
{
	struct rl_srq_init_attr init = {
		.attr = { .max_wr = 4, .max_sge = 1 }, .srq_type = RL_SRQT_XRC, .cq = w->two.p.cq
	};
	struct rl_sge sge = pair_sge(&w->asker, 0, 8);
	struct rl_send_wr wr = request(w, &w->two, RL_WR_SEND, &sge);
	struct pollfd hears = { .events = POLLIN };
	struct rl_async_event e;
	struct member three;
	struct rl_srq *srq;
	struct rl_qp *qp;

	member_open(&three, w->socket, 0);
	qp = open_target(&three, w->target->qp_num);
	open_target(&w->two, w->target->qp_num);
	OK(rl_create_xrcd(w->two.p.ctx, &init.xrcd));
	OK(rl_create_srq(w->two.p.pd, &init, &srq));
	OK(rl_get_srq_num(srq, &wr.qp_type.xrc.remote_srqn));
	OK(rl_post_send(w->from, &wr, NULL));
	CHECK(pair_wait(w->asker.cq).status == RL_WC_REM_INV_RD_REQ_ERR);
	for (int i = 0; i < 2; i++) { /* who opened it hears of it as well */
		struct member *m = i == 0 ? &w->one : &w->two;

		OK(rl_get_async_event(m->p.ctx, &e));
		while (e.event_type == RL_EVENT_COMM_EST) {
			rl_ack_async_event(&e);
			OK(rl_get_async_event(m->p.ctx, &e));
		}
		CHECK(e.event_type == RL_EVENT_QP_ACCESS_ERR);
		CHECK(e.element.qp->qp_num == w->target->qp_num);
		CHECK(e.element.qp->context == m->p.ctx && strstr(e.detail, "XRC-05") != NULL);
		rl_ack_async_event(&e);
	}
	/* Who has closed it before it asked: nothing waits, and nothing says so. */
	hears.fd = three.p.ctx->async_fd;
	CHECK(poll(&hears, 1, 20000) == 1);
	OK(rl_destroy_qp(qp));
	CHECK(poll(&hears, 1, 0) == 0);
	pair_close(&three.p);
	OK(rl_destroy_srq(srq));
	OK(rl_close_xrcd(init.xrcd));
}

/* The second application ends in the middle of its messages: the target serves the first on. */
static void
one_ends_the_other_goes_on(struct world *w)
{
	for (int round = 0; round < 20; round++) {
		struct rl_sge sge = pair_sge(&w->asker, 0, 100);
		struct rl_send_wr wr = request(w, &w->two, RL_WR_SEND, &sge);

		for (int i = 0; i < 16; i++) {
			receive(&w->two, (uint64_t)i);
			OK(rl_post_send(w->from, &wr, NULL));
		}
		if (round % 2 == 0)
			for (int i = 0; i < 16; i++)
				CHECK(pair_wait(w->asker.cq).status == RL_WC_SUCCESS);
		pair_close(&w->two.p);
		if (round % 2 != 0) {
			int failed = 0;

			/* What came too late named an SRQ that is no more. */
			for (int i = 0; i < 16; i++)
				failed += pair_wait(w->asker.cq).status != RL_WC_SUCCESS;
			if (failed != 0) {
				OK(rl_destroy_qp(w->from));
				OK(rl_destroy_qp(w->target));
				connect_world(w);
			}
		}
		wr.qp_type.xrc.remote_srqn = w->one.num;
		receive(&w->one, 7);
		OK(rl_post_send(w->from, &wr, NULL));
		CHECK(pair_wait(w->asker.cq).status == RL_WC_SUCCESS);
		CHECK(pair_wait(w->one.p.cq).wr_id == 7);
		member_open(&w->two, w->socket, 0);
	}
}

/* The target's owner ends: the domain and the other one's SRQ stay. */
static void
the_owner_ends(struct world *w)
{
	struct rl_sge sge = pair_sge(&w->asker, 0, 100);
	struct rl_send_wr wr = request(w, &w->two, RL_WR_SEND, &sge);

	static const enum rl_qp_state states[] = { RL_QPS_SQD, RL_QPS_RTS, RL_QPS_ERR };

	for (int opened = 0; opened <= 1; opened++) {
		struct rl_qp *qp = opened ? open_target(&w->two, w->target->qp_num) : NULL;

		pair_close(&w->one.p);
		/* Nothing of its maker is left behind in a target that another one has. */
		for (unsigned int i = 0; opened && i < ARRAY_LEN(states); i++) {
			const struct rl_qp_attr a = { .qp_state = states[i] };

			OK(rl_modify_qp(qp, &a, RL_QP_STATE));
		}
		if (opened)
			OK(rl_destroy_qp(qp));
		OK(rl_destroy_qp(w->from));
		member_open(&w->one, w->socket, 0);
		connect_world(w);
		receive(&w->two, 3);
		OK(rl_post_send(w->from, &wr, NULL));
		CHECK(pair_wait(w->asker.cq).status == RL_WC_SUCCESS);
		CHECK(pair_wait(w->two.p.cq).wr_id == 3);
	}
}

static void
refused_to_open(struct member *m, struct rl_xrcd *xrcd, uint32_t qp_num, int err)
{
	const struct rl_qp_open_attr a = { xrcd, qp_num, NULL };
	struct rl_qp *qp;

	CHECK(rl_open_qp(m->p.pd, &a, &qp) == err && qp == NULL);
}

/* XRC-09, rl_open_qp(): both have the target; it is there until the last one has closed it. */
static void
XRC_09_a_target_of_two(struct world *w)
{
	const uint32_t number = w->target->qp_num;
	struct rl_qp_attr a = { .min_rnr_timer = 9 };
	struct rl_xrcd *own;
	struct rl_qp *qp;

	OK(rl_create_xrcd(w->two.p.ctx, &own));
	refused_to_open(&w->two, own, number, -ENOENT);
	OK(rl_close_xrcd(own));
	refused_to_open(&w->two, w->two.xrcd, w->from->qp_num, -ENOENT);
	refused_to_open(&w->one, w->one.xrcd, number, -EEXIST);
	qp = open_target(&w->two, number);
	CHECK(qp->state == RL_QPS_RTS);
	refused_to_open(&w->two, w->two.xrcd, number, -EEXIST);
	OK(rl_modify_qp(qp, &a, RL_QP_MIN_RNR_TIMER));
	OK(rl_query_qp(w->target, &a, RL_QP_MIN_RNR_TIMER, NULL));
	CHECK(a.min_rnr_timer == 9);

	OK(rl_destroy_qp(w->target)); /* by its owner: it is the other one's now */
	reaches(w, &w->two, number);
	reaches(w, &w->one, number);
	w->target = open_target(&w->one, number);
	OK(rl_destroy_srq(w->two.srq));
	CHECK(rl_close_xrcd(w->two.xrcd) == -EBUSY);
	pair_close(&w->two.p); /* the owner ends */
	reaches(w, &w->one, number);
	OK(rl_query_qp(w->target, &a, RL_QP_MIN_RNR_TIMER, NULL));
	CHECK(a.qp_state == RL_QPS_RTS && a.min_rnr_timer == 9);

	member_open(&w->two, w->socket, 0); /* who only opened it ends, or closes it */
	qp = open_target(&w->two, number);
	pair_close(&w->two.p);
	member_open(&w->two, w->socket, 0);
	qp = open_target(&w->two, number);
	OK(rl_destroy_qp(qp));
	reaches(w, &w->two, number);
	OK(rl_destroy_qp(w->target));
	refused_to_open(&w->two, w->two.xrcd, number, -ENOENT);
	OK(rl_destroy_qp(w->from));
	connect_world(w);
}

/*
 * The ring of an SRQ is its application's memory. An index that cannot be ends the queue, and by
 * class K the target, whose domain it was let into; nothing else.
 */
static void
RESP_CLS_K_01_a_ring_that_lies(struct world *w)
{
	struct srq *srq = srq_of(w->two.srq);
	struct rl_sge sge = pair_sge(&w->asker, 0, 8);
	struct rl_send_wr wr = request(w, &w->two, RL_WR_SEND, &sge);
	struct rl_async_event e;

	atomic_store(&srq->ring.sh->prod, srq->ring.prod + 0x12345);
	OK(rl_post_send(w->from, &wr, NULL));
	CHECK(pair_wait(w->asker.cq).status == RL_WC_REM_OP_ERR);
	OK(rl_get_async_event(w->two.p.ctx, &e));
	CHECK(e.event_type == RL_EVENT_SRQ_ERR && e.element.srq == w->two.srq);
	rl_ack_async_event(&e);
	OK(rl_destroy_qp(w->from));
	OK(rl_destroy_qp(w->target));
	connect_world(w);
	wr.qp_type.xrc.remote_srqn = w->one.num;
	receive(&w->one, 9);
	OK(rl_post_send(w->from, &wr, NULL));
	CHECK(pair_wait(w->asker.cq).status == RL_WC_SUCCESS);
	CHECK(pair_wait(w->one.p.cq).wr_id == 9);
}

static void *
close_it(void *arg)
{
	pair_close(arg);
	return NULL;
}

/* XRC-09: who opens targets while the one who made them ends has them whole, or not at all. */
static void
XRC_09_opened_while_it_ends(const char *socket)
{
	const struct rl_qp_attr err = { .qp_state = RL_QPS_ERR };
	struct member maker, other;
	pthread_t ends;

	member_open(&other, socket, O_CREAT);
	for (uint32_t round = 0; round < ROUNDS; round++) {
		uint32_t num[TARGETS];

		member_open(&maker, socket, 0);
		for (uint32_t i = 0; i < TARGETS; i++) {
			struct rl_qp *qp = make_target(&maker);

			up(maker.p.ctx, qp, 2, 77, 1);
			num[i] = qp->qp_num;
		}
		CHECK(pthread_create(&ends, NULL, close_it, &maker.p) == 0);
		for (uint32_t i = 0; i < 2 * TARGETS; i++) {
			const struct rl_qp_open_attr a = { other.xrcd, num[i % TARGETS], NULL };
			struct rl_qp *qp;

			if (rl_open_qp(other.p.pd, &a, &qp) != 0)
				continue;
			OK(rl_modify_qp(qp, &err, RL_QP_STATE));
			OK(rl_destroy_qp(qp));
		}
		CHECK(pthread_join(ends, NULL) == 0);
	}
	pair_close(&other.p);
}

int
main(int argc, char **argv)
{
	struct world w;

	CHECK(argc >= 2);
	world_open(&w, argv[1]);
	XRC_04_to_each_its_own(&w);
	XRC_10_regions_of_the_named_one(&w);
	XRC_09_refused(&w);
	one_ends_the_other_goes_on(&w);
	the_owner_ends(&w);
	XRC_09_a_target_of_two(&w);
	XRC_10_not_those_of_another(&w);
	world_close(&w);
	world_open(&w, argv[1]);
	XRC_05_of_another_domain(&w);
	world_close(&w);
	world_open(&w, argv[1]);
	RESP_CLS_K_01_a_ring_that_lies(&w);
	world_close(&w);
	XRC_09_opened_while_it_ends(argv[1]);
	return 0;
}
