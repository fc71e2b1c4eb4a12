/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared receive queues of an application: argv[1] is the socket, argv[2] the number of workers. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>

#include "client_priv.h"
#include "pair.h"

#define QPS  4
#define SLOT 64u

/* Receivers on port 2 that share an SRQ, each with a sender of its own on port 1. */
struct shared {
	struct pair p;
	struct rl_cq *rcq; /* of the receivers */
	struct rl_srq *srq;
	struct rl_qp *from[QPS];
	struct rl_qp *to[QPS];
};

static struct rl_qp *
receiver(struct shared *s)
{
	struct rl_qp_init_attr init = { .send_cq = s->rcq,
		.recv_cq = s->rcq,
		.srq = s->srq,
		.qp_type = RL_QPT_RC,
		.cap = { .max_send_wr = 4, .max_recv_wr = 9, .max_send_sge = 1 } };
	struct rl_qp *qp;

	OK(rl_create_qp(s->p.pd, &init, &qp));
	CHECK(init.cap.max_recv_wr == 0 && qp->srq == s->srq);
	return qp;
}

static void
shared_open(struct shared *s, const char *socket, uint32_t max_wr)
{
	struct rl_srq_init_attr init = { .srq_context = s,
		.attr = { .max_wr = max_wr, .max_sge = 2, .srq_limit = 1 } };

	pair_open(&s->p, socket, 4096, 1 << 20);
	OK(rl_create_cq(s->p.ctx, 4096, NULL, NULL, &s->rcq));
	OK(rl_create_srq(s->p.pd, &init, &s->srq));
	CHECK(init.attr.max_wr >= max_wr && init.attr.max_sge >= 2);
	CHECK(s->srq->srq_context == s && s->srq->pd == s->p.pd);
	for (int i = 0; i < QPS; i++)
		s->from[i] = pair_qp(&s->p, 64);
	for (int i = 0; i < QPS; i++)
		s->to[i] = receiver(s); /* on the workers in turn */
	for (int i = 0; i < QPS; i++) {
		pair_move(&s->p, s->from[i], RL_QPS_RTS, 1, s->to[i]->qp_num, 2);
		pair_move(&s->p, s->to[i], RL_QPS_RTS, 2, s->from[i]->qp_num, 1);
	}
}

static void
shared_close(struct shared *s)
{
	for (int i = 0; i < QPS; i++) {
		OK(rl_destroy_qp(s->from[i]));
		OK(rl_destroy_qp(s->to[i]));
	}
	OK(rl_destroy_srq(s->srq));
	OK(rl_destroy_cq(s->rcq));
	OK(rl_destroy_cq(s->p.cq));
	OK(rl_dereg_mr(s->p.mr));
	OK(rl_dealloc_pd(s->p.pd));
	pair_close(&s->p);
}

static int
post(struct shared *s, uint64_t wr_id)
{
	struct rl_sge sge = pair_sge(&s->p, (wr_id % 4096 + 1) * SLOT, SLOT);
	struct rl_recv_wr wr = { .wr_id = wr_id, .sg_list = &sge, .num_sge = 1 };

	return rl_post_srq_recv(s->srq, &wr, NULL);
}

/* An inline message of one QP, which tells its number and a count. */
static int
send_to(struct shared *s, int i, uint32_t count)
{
	uint32_t text[2] = { (uint32_t)i, count };
	struct rl_sge sge = { (uintptr_t)text, sizeof(text), 0 };
	struct rl_send_wr wr = { .wr_id = count,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = RL_WR_SEND,
		.send_flags = RL_SEND_SIGNALED | RL_SEND_INLINE };

	return rl_post_send(s->from[i], &wr, NULL);
}

static void
expect(struct shared *s, int i, uint64_t wr_id, uint32_t count)
{
	const struct rl_wc wc = pair_wait(s->rcq);
	uint32_t got[2];

	CHECK(wc.status == RL_WC_SUCCESS && wc.opcode == RL_WC_RECV && wc.byte_len == 8);
	CHECK(wc.wr_id == wr_id && wc.qp_num == s->to[i]->qp_num);
	memcpy(got, (uint8_t *)s->p.mr->addr + (wr_id % 4096 + 1) * SLOT, sizeof(got));
	CHECK(got[0] == (uint32_t)i && got[1] == count);
	CHECK(pair_wait(s->p.cq).status == RL_WC_SUCCESS);
}

/* SRQ-01: entries go in the order of posting to whichever QP asks first. */
static void
SRQ_01_any_qp_takes(struct shared *s)
{
	const int order[] = { 0, 3, 3, 1, 2, 0, 2, 1 };

	for (uint64_t n = 0; n < 8; n++)
		OK(post(s, 100 + n));
	for (uint32_t n = 0; n < 8; n++) {
		OK(send_to(s, order[n], n));
		expect(s, order[n], 100 + n, n);
	}
	CHECK(pair_is_quiet(s->rcq));
}

/* CQ-09: what can be known is refused at once, and says what to do. */
static void
CQ_09_refused_at_once(struct shared *s)
{
	struct rl_sge sge[3] = { pair_sge(&s->p, 0, 8), pair_sge(&s->p, 0, 8),
		pair_sge(&s->p, 0, 8) };
	struct rl_recv_wr wr = { .wr_id = 1, .sg_list = sge, .num_sge = 3 }, *bad = NULL;
	struct rl_srq_init_attr many = { .attr = { .max_wr = 1u << 20, .max_sge = 1 } };
	struct rl_srq_attr attr;
	struct rl_srq *other;

	CHECK(rl_post_srq_recv(s->srq, &wr, &bad) == -EINVAL && bad == &wr);
	CHECK(strstr(rl_last_error(), "max_sge is 2") != NULL);
	wr.num_sge = 1;
	CHECK(rl_post_recv(s->to[0], &wr, &bad) == -EINVAL);
	CHECK(strstr(rl_last_error(), "rl_post_srq_recv") != NULL);
	for (uint64_t n = 0; n < 16; n++)
		OK(post(s, n));
	CHECK(post(s, 16) == -ENOMEM && strstr(rl_last_error(), "max_wr is 16") != NULL);
	for (uint32_t n = 0; n < 16; n++) {
		OK(send_to(s, 0, n));
		expect(s, 0, n, n);
	}
	CHECK(rl_create_srq(s->p.pd, &many, &other) == -EINVAL && other == NULL);
	many = (struct rl_srq_init_attr){ .attr = { 16, 1, 0 }, .srq_type = RL_SRQT_XRC + 1 };
	CHECK(rl_create_srq(s->p.pd, &many, &other) == -EINVAL && other == NULL);
	CHECK(strcmp(rl_last_error(), "srq_type 2 does not exist") == 0);
	CHECK(rl_destroy_srq(s->srq) == -EBUSY);
	attr.srq_limit = 17;
	CHECK(rl_modify_srq(s->srq, &attr, RL_SRQ_LIMIT) == -EINVAL);
	CHECK(rl_modify_srq(s->srq, &attr, 4) == -EINVAL);
}

/* SRQ-02: one event when fewer than the limit are left, which is disarmed by that. */
static void
SRQ_02_limit_event(struct shared *s)
{
	struct rl_srq_attr attr = { .srq_limit = 3 };
	struct rl_async_event e;

	for (uint64_t n = 0; n < 6; n++)
		OK(post(s, n));
	OK(rl_query_srq(s->srq, &attr));
	CHECK(attr.max_wr == 16 && attr.max_sge == 2 && attr.srq_limit == 0);
	attr.srq_limit = 3;
	OK(rl_modify_srq(s->srq, &attr, RL_SRQ_LIMIT));
	OK(fcntl(s->p.ctx->async_fd, F_SETFL, O_NONBLOCK));
	for (uint32_t n = 0; n < 3; n++) {
		OK(send_to(s, 1, n));
		expect(s, 1, n, n);
	}
	CHECK(rl_get_async_event(s->p.ctx, &e) == -EAGAIN);
	OK(rl_query_srq(s->srq, &attr));
	CHECK(attr.srq_limit == 3);
	OK(fcntl(s->p.ctx->async_fd, F_SETFL, 0));
	for (uint32_t n = 3; n < 6; n++) {
		OK(send_to(s, 2, n));
		expect(s, 2, n, n);
	}
	OK(rl_get_async_event(s->p.ctx, &e));
	CHECK(e.event_type == RL_EVENT_SRQ_LIMIT_REACHED && e.element.srq == s->srq);
	rl_ack_async_event(&e);
	OK(rl_query_srq(s->srq, &attr));
	CHECK(attr.srq_limit == 0);
	OK(fcntl(s->p.ctx->async_fd, F_SETFL, O_NONBLOCK));
	CHECK(rl_get_async_event(s->p.ctx, &e) == -EAGAIN); /* one, not three */
	OK(fcntl(s->p.ctx->async_fd, F_SETFL, 0));
}

/* AE-08: a QP in ERR says that it takes no more; what is posted stays for the others. */
static void
AE_08_last_wqe(struct shared *s)
{
	struct rl_qp_attr err = { .qp_state = RL_QPS_ERR };
	struct rl_async_event e;

	OK(post(s, 7));
	OK(rl_modify_qp(s->to[2], &err, RL_QP_STATE));
	OK(rl_get_async_event(s->p.ctx, &e));
	CHECK(e.event_type == RL_EVENT_QP_LAST_WQE_REACHED && e.element.qp == s->to[2]);
	rl_ack_async_event(&e);
	CHECK(pair_is_quiet(s->rcq));
	OK(send_to(s, 3, 1));
	expect(s, 3, 7, 1);
}

/* Deeper while messages come; shallower than what is posted is refused. */
static void
resized(struct shared *s)
{
	struct rl_srq_attr attr = { .max_wr = 300 };
	uint32_t taken = 0, posted = 0;

	while (posted < 16)
		OK(post(s, posted++));
	while (taken < 5) {
		OK(send_to(s, 0, taken));
		expect(s, 0, taken, taken);
		taken++;
	}
	OK(rl_modify_srq(s->srq, &attr, RL_SRQ_MAX_WR));
	while (posted < 305)
		OK(post(s, posted++));
	CHECK(post(s, posted) == -ENOMEM);
	attr.max_wr = 299;
	CHECK(rl_modify_srq(s->srq, &attr, RL_SRQ_MAX_WR) == -EINVAL);
	while (taken < posted) {
		OK(send_to(s, (int)taken % QPS, taken));
		expect(s, (int)taken % QPS, taken, taken);
		taken++;
	}
	attr.max_wr = 20;
	OK(rl_modify_srq(s->srq, &attr, RL_SRQ_MAX_WR));
	OK(rl_query_srq(s->srq, &attr));
	CHECK(attr.max_wr == 20);
}

/* A key that is nobody's: the QP that took the entry fails, the SRQ does not (RESP-CLS-A-02). */
static void
RESP_CLS_A_02_bad_entry(struct shared *s)
{
	struct rl_sge sge = pair_sge(&s->p, 0, 8);
	struct rl_recv_wr wr = { .wr_id = 55, .sg_list = &sge, .num_sge = 1 };
	struct rl_wc wc;

	sge.lkey ^= 0x5a5a5a;
	OK(rl_post_srq_recv(s->srq, &wr, NULL));
	OK(send_to(s, 1, 0));
	wc = pair_wait(s->rcq);
	CHECK(wc.status == RL_WC_LOC_PROT_ERR && wc.wr_id == 55);
	CHECK(wc.qp_num == s->to[1]->qp_num);
	CHECK(pair_wait(s->p.cq).status == RL_WC_REM_OP_ERR);
	OK(post(s, 9));
	OK(send_to(s, 0, 3));
	expect(s, 0, 9, 3);
}

/* SRQ-04, RESP-CLS-A-03: an entry that cannot be, written around the library. */
static void
SRQ_04_malformed_entry(struct shared *s)
{
	struct ring *r = &srq_of(s->srq)->ring;
	struct rl_recv_wr wr = { .wr_id = 2 }, *bad = NULL;
	struct rl_async_event e;
	bool srq_err = false, last = false;

	OK(post(s, 1));
	((struct ring_recv_wqe *)(void *)r->sh->slots)->num_sge = 3;
	OK(send_to(s, 0, 0));
	CHECK(pair_wait(s->p.cq).status == RL_WC_REM_OP_ERR);
	while (!srq_err || !last) {
		OK(rl_get_async_event(s->p.ctx, &e));
		if (e.event_type == RL_EVENT_SRQ_ERR) {
			CHECK(e.element.srq == s->srq && !srq_err);
			srq_err = true;
		} else if (e.event_type == RL_EVENT_QP_LAST_WQE_REACHED) {
			CHECK(e.element.qp == s->to[0]);
			last = true;
		}
		rl_ack_async_event(&e);
	}
	CHECK(rl_post_srq_recv(s->srq, &wr, &bad) == -EINVAL && bad == &wr);
	CHECK(strstr(rl_last_error(), "SRQ_ERR") != NULL);
}

/* ---- many at once ---------------------------------------------------------------------------- */

#define EACH 4000u

#define POSTERS 2
#define AHEAD   512 /* of who polls: the CQ has room for them, and their buffers are free */

/* Each has the numbers, and with them the buffers, that leave its own rest. */
struct poster {
	struct shared *s;
	uint32_t rest;
	_Atomic uint32_t polled; /* of its entries */
};

/* Together they keep the queue filled. */
static void *
post_many(void *arg)
{
	struct poster *p = arg;

	for (uint32_t n = 0; n < QPS * EACH / POSTERS; n++) {
		while (n - atomic_load(&p->polled) >= AHEAD ||
			post(p->s, (uint64_t)n * POSTERS + p->rest) != 0)
			sched_yield();
	}
	return NULL;
}

static void *
send_many(void *arg)
{
	struct shared *s = arg;
	struct rl_wc wc;
	uint32_t done = 0, sent[QPS] = { 0 };

	while (done < QPS * EACH) {
		for (int i = 0; i < QPS; i++) {
			if (sent[i] < EACH && send_to(s, i, sent[i]) == 0)
				sent[i]++;
		}
		while (rl_poll_cq(s->p.cq, 1, &wc) == 1) {
			CHECK(wc.status == RL_WC_SUCCESS);
			done++;
		}
		sched_yield();
	}
	return NULL;
}

/*
 * Two threads post, one sends, QPs on every worker take: each entry once, each QP's messages whole
 * and in order, while the queue's depth changes. A buffer is read when its completion comes; it is
 * posted again 4096 later at the earliest, and fewer are under way, however slow the reader is.
 */
static void
SRQ_01_threads(struct shared *s)
{
	static uint8_t times[QPS * EACH];
	uint32_t next[QPS] = { 0 };
	struct rl_srq_attr attr;
	struct poster p[POSTERS] = { { .s = s, .rest = 0 }, { .s = s, .rest = 1 } };
	pthread_t t[3];

	memset(times, 0, sizeof(times));
	CHECK(pthread_create(&t[0], NULL, post_many, &p[0]) == 0);
	CHECK(pthread_create(&t[1], NULL, post_many, &p[1]) == 0);
	CHECK(pthread_create(&t[2], NULL, send_many, s) == 0);
	for (uint32_t n = 0; n < QPS * EACH; n++) {
		const struct rl_wc wc = pair_wait(s->rcq);
		uint32_t got[2];

		CHECK(wc.status == RL_WC_SUCCESS && wc.wr_id < QPS * EACH);
		CHECK(times[wc.wr_id]++ == 0);
		memcpy(got, (uint8_t *)s->p.mr->addr + (wc.wr_id % 4096 + 1) * SLOT, sizeof(got));
		CHECK(got[0] < QPS && wc.qp_num == s->to[got[0]]->qp_num);
		CHECK(got[1] == next[got[0]]++);
		atomic_fetch_add(&p[wc.wr_id % POSTERS].polled, 1);
		if (n % EACH == EACH / 2) {
			attr.max_wr = 16u << (n / EACH + 1);
			OK(rl_modify_srq(s->srq, &attr, RL_SRQ_MAX_WR));
		}
	}
	for (int i = 0; i < 3; i++)
		pthread_join(t[i], NULL);
	CHECK(pair_is_quiet(s->rcq) && pair_is_quiet(s->p.cq));
}

/* Its QPs are on so many workers. */
static uint32_t
workers_of(const struct shared *s)
{
	uint64_t seen = 0;

	for (int i = 0; i < QPS; i++)
		seen |= UINT64_C(1) << atomic_load(&qp_of(s->to[i])->worker);
	return (uint32_t)__builtin_popcountll(seen);
}

int
main(int argc, char **argv)
{
	static void (*const cases[])(struct shared *) = { SRQ_01_any_qp_takes,
		CQ_09_refused_at_once, SRQ_02_limit_event, AE_08_last_wqe, resized,
		RESP_CLS_A_02_bad_entry, SRQ_04_malformed_entry, SRQ_01_threads };
	struct shared s;

	CHECK(argc == 3);
	for (unsigned int i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		shared_open(&s, argv[1], 16);
		CHECK(workers_of(&s) == strtoul(argv[2], NULL, 0));
		cases[i](&s);
		shared_close(&s);
		printf("ok %u\n", i);
		fflush(stdout);
	}
	puts("ok");
	return 0;
}
