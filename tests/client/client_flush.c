/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A key that names no memory, with a thousand requests behind it. Then fifteen QPs in ERR with
 * 65,536 receives each, and all their doorbells at once: a neighbour goes on while they are
 * flushed.
 *
 *   client-flush SOCKET [ROUNDS]
 *   client-flush SOCKET attack      without the neighbour, until it is killed
 *
 * The neighbour's longest wait for a WRITE of 64 bytes is printed, and not judged: it depends on
 * what else the machine does. What is judged is that his WRITEs complete in the middle of a flush.
 */
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client_priv.h"
#include "pair.h"

#define QPS      15
#define DEPTH    65536u
#define REQUESTS 1024
#define ENOUGH   8 /* WRITEs of the neighbour in the middle of a flush */

struct shared {
	_Atomic bool stop, ready;
	_Atomic uint64_t writes;
	_Atomic uint64_t longest_ns;
};

static void
neighbour(const char *socket, struct shared *sh)
{
	struct pair p;

	pair_open(&p, socket, 64, 4096);
	pair_connect(&p, 16);
	for (uint64_t n = 1; !atomic_load(&sh->stop); n++) {
		const uint64_t began = pair_now_ns();
		uint64_t took;

		OK(pair_post(p.a, RL_WR_RDMA_WRITE, pair_sge(&p, 0, 64),
			(uintptr_t)p.mr->addr + 2048, p.mr->rkey, n));
		CHECK(pair_wait(p.cq).wr_id == n);
		took = pair_now_ns() - began;
		if (n > 1 && took > atomic_load(&sh->longest_ns))
			atomic_store(&sh->longest_ns, took);
		atomic_fetch_add(&sh->writes, 1);
		atomic_store(&sh->ready, true);
	}
	pair_disconnect(&p);
	pair_close(&p);
	exit(0);
}

static uint32_t
taken(const struct qp *qp)
{
	return atomic_load_explicit(&qp->rq.sh->cons, memory_order_acquire);
}

/* All doorbells in one turn: the first slot is filled last. One worker: they are all his. */
static void
ring_all(struct context *ctx, struct qp *const *qp)
{
	struct ring_bells *b = &ctx->bells[0];
	const uint32_t next = atomic_load(&b->next);

	CHECK(ctx->workers == 1);
	for (uint32_t i = QPS; i-- != 0;)
		atomic_store(&b->slot[(next + i) & b->mask], qp[i]->pub.qp_num | RING_BELL_RECV);
	atomic_store(&b->next, next + QPS);
}

/* Whether they are all flushed. */
static bool
is_done(struct qp *const *qp, const uint32_t *until)
{
	uint32_t done = 0;

	for (uint32_t i = 0; i < QPS; i++)
		done += taken(qp[i]) == until[i];
	return done == QPS;
}

/* @return the neighbour's WRITEs between the first that is flushed and the last. */
static uint64_t
attack(struct pair *p, struct qp *const *qp, const struct shared *sh)
{
	struct context *ctx = context_of(p->ctx);
	uint32_t until[QPS], first = taken(qp[0]);
	uint64_t writes;

	for (uint32_t i = 0; i < QPS; i++) {
		struct ring_cq *cq = &((struct cq *)qp[i]->pub.recv_cq)->ring;

		until[i] = taken(qp[i]) + DEPTH;
		atomic_store(&cq->sh->cons, taken(qp[i])); /* room for them all */
		atomic_store(&qp[i]->rq.sh->prod, until[i]);
		atomic_store(&qp[i]->rq.sh->bell, 1);
	}
	ring_all(ctx, qp);
	while (taken(qp[0]) == first)
		is_done(qp, until);
	writes = atomic_load(&sh->writes);
	while (!is_done(qp, until))
		;
	return atomic_load(&sh->writes) - writes;
}

/* A client with QPs in ERR: what is posted to them is flushed. */
static void
open_all(struct pair *p, const char *socket, struct qp *qp[QPS])
{
	pair_open(p, socket, 64, 4096);
	for (uint32_t i = 0; i < QPS; i++) {
		struct rl_qp_init_attr init = { .send_cq = p->cq,
			.qp_type = RL_QPT_RC,
			.cap = { .max_send_wr = 1, .max_recv_wr = DEPTH, .max_recv_sge = 1 } };
		struct rl_qp_attr a = { .qp_state = RL_QPS_ERR };
		struct rl_qp *made;

		OK(rl_create_cq(p->ctx, DEPTH, NULL, NULL, &init.recv_cq));
		OK(rl_create_qp(p->pd, &init, &made));
		qp[i] = qp_of(made);
		pair_move(p, made, RL_QPS_INIT, 1, 0, 2);
		OK(rl_modify_qp(made, &a, RL_QP_STATE));
	}
}

/* The first request fails in the turn that takes it; those behind are more than a turn flushes. */
static void
bad_key(const char *socket)
{
	static struct rl_send_wr wr[1024];
	struct rl_send_wr *bad;
	struct rl_sge sge[2];
	struct pair p;

	pair_open(&p, socket, REQUESTS, 4096);
	pair_connect(&p, REQUESTS);
	sge[0] = sge[1] = pair_sge(&p, 0, 64);
	sge[0].lkey ^= 1;
	for (uint32_t i = 0; i < REQUESTS; i++)
		wr[i] = (struct rl_send_wr){ .wr_id = i,
			.next = i + 1 < REQUESTS ? &wr[i + 1] : NULL,
			.sg_list = &sge[i != 0],
			.num_sge = 1,
			.opcode = RL_WR_RDMA_WRITE,
			.wr.rdma = { (uintptr_t)p.mr->addr + 2048, p.mr->rkey } };
	OK(rl_post_send(p.a, wr, &bad));
	for (uint32_t i = 0; i < REQUESTS; i++) {
		const struct rl_wc wc = pair_wait(p.cq);

		CHECK(wc.wr_id == i);
		CHECK(wc.status == (i == 0 ? RL_WC_LOC_PROT_ERR : RL_WC_WR_FLUSH_ERR));
	}
	pair_disconnect(&p);
	pair_close(&p);
}

int
main(int argc, char **argv)
{
	const bool alone = argc > 2 && strcmp(argv[2], "attack") == 0;
	const int rounds = argc > 2 ? atoi(argv[2]) : 40;
	struct shared *sh =
		mmap(NULL, sizeof(*sh), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct qp *qp[QPS];
	struct pair p;
	uint64_t most = 0;
	int status, good = 0;
	pid_t pid;

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (!alone)
		bad_key(argv[1]);
	pid = alone ? 0 : fork();
	if (pid == 0 && !alone)
		neighbour(argv[1], sh);
	open_all(&p, argv[1], qp);
	while (alone)
		attack(&p, qp, sh);
	while (!atomic_load(&sh->ready))
		sched_yield();
	atomic_store(&sh->longest_ns, 0);
	for (int i = 0; i < rounds && good < 3; i++) {
		const uint64_t n = attack(&p, qp, sh);

		most = n > most ? n : most;
		good += n >= ENOUGH;
	}
	printf("in the middle of a flush the neighbour completed up to %llu WRITEs; the longest took "
	       "%.1f ms\n",
		(unsigned long long)most, (double)atomic_load(&sh->longest_ns) * 1e-6);
	atomic_store(&sh->stop, true);
	CHECK(waitpid(pid, &status, 0) == pid && status == 0);
	CHECK(good != 0);
	/* Left as it is, in the middle of another one. */
	for (uint32_t i = 0; i < QPS; i++)
		atomic_store(&qp[i]->rq.sh->prod, taken(qp[i]) + DEPTH);
	ring_all(context_of(p.ctx), qp);
	_exit(0);
}
