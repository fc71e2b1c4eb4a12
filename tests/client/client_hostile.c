/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Clients that write rubbish, stop, or are killed, next to one whose data must keep flowing.
 *
 *   client-hostile SOCKET [ROUNDS [SEED]]
 *   client-hostile SOCKET attack NUMBER SEED    one attack, until it is killed
 *   client-hostile SOCKET victim FD             the victim alone; its report lies in the memfd FD
 *   client-hostile CPU witness FD               what the victim must not count, into its report
 *   client-hostile - count                      how many attacks there are
 *
 * Each round is a process of its own that makes QPs on both ports, starts work, and then does its
 * worst until it is killed at a random moment. The victim writes and reads back all the while and
 * compares every byte.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "client_priv.h"
#include "pair.h"
#include "victim.h"

static uint32_t seed;

static uint32_t
draw(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 17;
	seed ^= seed << 5;
	return seed;
}

/* ---- attackers ------------------------------------------------------------------------------- */

static void
scribble(uint8_t *at, size_t len)
{
	const size_t first = draw() % len;
	size_t n = draw() % 512;

	for (size_t i = first; i < len && n-- != 0; i++)
		at[i] = (uint8_t)draw();
}

/* Random bytes anywhere in all rings: work, completions, doorbells. */
static void
rubbish_everywhere(struct pair *p)
{
	const struct context *ctx = context_of(p->ctx);

	for (;;) {
		const struct area *a = &ctx->areas[draw() % ctx->areas_n];

		scribble(a->base, a->len);
	}
}

/* Plausible numbers in the doorbell rings: of its own queues, of others', of none. */
static void
rubbish_in_bells(struct pair *p)
{
	struct context *ctx = context_of(p->ctx);

	for (;;) {
		struct ring_bells *b = &ctx->bells[draw() % ctx->workers];
		uint32_t number = draw();

		if (number % 4 == 0)
			number = p->a->qp_num | (number & RING_BELL_RECV);
		else if (number % 4 == 1)
			number &= 0xffffff;
		atomic_store(&b->slot[draw() & b->mask], number);
	}
}

/* A queue to flush, and its producer's index back and forth while the worker looks. */
static void
index_goes_back(struct pair *p)
{
	struct rl_qp_attr error = { .qp_state = RL_QPS_ERR };
	struct qp *qp = qp_of(p->a);
	struct context *ctx = context_of(p->ctx);
	struct ring *r = &qp->rq;

	OK(rl_modify_qp(p->a, &error, RL_QP_STATE));
	for (uint32_t n = 0;; n++) {
		const uint32_t cons = atomic_load(&r->sh->cons);

		atomic_store(&r->sh->prod, cons + 1 + n % 4);
		ring_bells_put(
			&ctx->bells[atomic_load(&qp->worker)], p->a->qp_num | RING_BELL_RECV);
		for (int k = 0; k < 64; k++) {
			atomic_store(&r->sh->prod, cons + 2);
			atomic_store(&r->sh->prod, cons + 1);
			atomic_store(&r->sh->prod, cons);
		}
	}
}

/* Impossible indices and entries, with the bell that makes the worker look. */
static void
rubbish_in_queues(struct pair *p)
{
	struct qp *qp = qp_of(p->a);
	struct context *ctx = context_of(p->ctx);

	for (;;) {
		struct ring *r = draw() % 2 != 0 ? &qp->sq : &qp->rq;

		scribble(r->sh->slots, (size_t)(r->mask + 1) * r->stride);
		if (draw() % 8 == 0)
			atomic_store(&r->sh->prod, draw());
		else
			atomic_fetch_add(&r->sh->prod, draw() % 4);
		atomic_store(&r->sh->cons, draw());
		ring_bells_put(&ctx->bells[atomic_load(&qp->worker)],
			p->a->qp_num | (r == &qp->rq ? RING_BELL_RECV : 0));
	}
}

static struct rl_qp *
qp_on(struct pair *p, struct rl_srq *srq)
{
	struct rl_qp_init_attr init = { .send_cq = p->cq,
		.recv_cq = p->cq,
		.srq = srq,
		.qp_type = RL_QPT_RC,
		.cap = { .max_send_wr = 1, .max_send_sge = 1 } };
	struct rl_qp *qp;

	OK(rl_create_qp(p->pd, &init, &qp));
	return qp;
}

/* Entries, indices and sizes that cannot be, while two QPs take from the queue and it moves. */
static void
scribble_srq(struct pair *p, struct rl_srq *srq, struct rl_qp *from[2])
{
	for (int n = 0; n < 60; n++) {
		struct ring *r = &srq_of(srq)->ring;
		struct rl_srq_attr attr = { .max_wr = 1 + draw() % 600, .srq_limit = draw() % 9 };
		struct rl_sge sge = pair_sge(p, 0, 1024);
		struct rl_recv_wr wr = { .sg_list = &sge, .num_sge = 1 };

		rl_post_srq_recv(srq, &wr, NULL);
		if (draw() % 4 == 0)
			scribble(r->sh->slots, (size_t)(r->mask + 1) * r->stride);
		if (draw() % 16 == 0)
			atomic_store(&r->sh->prod, draw());
		else if (draw() % 4 == 0)
			atomic_fetch_add(&r->sh->prod, draw() % 4);
		atomic_store(&r->sh->cons, draw());
		for (int i = 0; i < 2; i++)
			pair_post(from[i], RL_WR_SEND, pair_sge(p, 0, 1024), 0, 0, 0);
		if (n % 8 == 0)
			rl_modify_srq(srq, &attr, 1 + (int)(draw() % 3));
		for (struct rl_wc wc; rl_poll_cq(p->cq, 1, &wc) != 0;)
			;
	}
}

static void
rubbish_in_srq(struct pair *p)
{
	struct rl_srq_init_attr init = { .attr = { .max_wr = 16, .max_sge = 2 } };
	struct rl_qp *from[2] = { p->a, p->b }, *to[2];
	struct rl_qp_attr reset = { .qp_state = RL_QPS_RESET };
	struct rl_srq *srq;

	for (;;) {
		OK(rl_create_srq(p->pd, &init, &srq));
		for (uint8_t i = 0; i < 2; i++) {
			to[i] = qp_on(p, srq);
			rl_modify_qp(from[i], &reset, RL_QP_STATE);
			pair_move(p, to[i], RL_QPS_RTR, 2 - i, from[i]->qp_num, 1 + i);
			pair_move(p, from[i], RL_QPS_RTS, 1 + i, to[i]->qp_num, 2 - i);
		}
		scribble_srq(p, srq, from);
		for (int i = 0; i < 2; i++)
			OK(rl_destroy_qp(to[i]));
		OK(rl_destroy_srq(srq));
	}
}

/* The consumer's index of its CQ, all the time, while completions come. */
static void
rubbish_in_cq(struct pair *p)
{
	struct cq *cq = (struct cq *)p->cq;

	for (;;) {
		atomic_store(&cq->ring.sh->cons, draw());
		atomic_store(&cq->ring.sh->arm, (uint64_t)draw() << 32 | draw());
		pair_post(p->a, RL_WR_RDMA_WRITE, pair_sge(p, 0, 8), (uintptr_t)p->mr->addr,
			p->mr->rkey, 0);
	}
}

/* Holes in regions that are written to, and attempts to make them smaller. */
static void
take_memory_away(struct pair *p)
{
	struct mr *mr = (struct mr *)p->mr;

	for (;;) {
		CHECK(ftruncate(mr->memory->fd, 0) == -1);
		fallocate(mr->memory->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0,
			(off_t)mr->memory->len);
		pair_post(p->a, RL_WR_RDMA_WRITE, pair_sge(p, 0, 4096),
			(uintptr_t)p->mr->addr + 4096, p->mr->rkey, 0);
		pair_post(p->b, RL_WR_RDMA_READ, pair_sge(p, 0, 4096),
			(uintptr_t)p->mr->addr + 4096, p->mr->rkey, 0);
	}
}

/* Events pile up that nobody fetches; the eventfds are filled up and made to block. */
static void
never_reads_events(struct pair *p)
{
	struct rl_qp_attr reset = { .qp_state = RL_QPS_RESET };
	struct context *ctx = context_of(p->ctx);
	const uint64_t full = UINT64_MAX - 1;

	fcntl(ctx->event_fd, F_SETFL, O_NONBLOCK);
	fcntl(p->channel->fd, F_SETFL, O_NONBLOCK);
	CHECK(write(ctx->event_fd, &full, sizeof(full)) != 0);
	CHECK(write(p->channel->fd, &full, sizeof(full)) != 0);
	fcntl(ctx->event_fd, F_SETFL, 0);
	fcntl(p->channel->fd, F_SETFL, 0);
	for (;;) {
		rl_req_notify_cq(p->cq, 0);
		pair_post(p->a, RL_WR_RDMA_WRITE, pair_sge(p, 0, 8), 0, 12345, 0);
		pair_post(p->b, RL_WR_RDMA_WRITE, pair_sge(p, 0, 8), 0, 12345, 0);
		for (struct rl_wc wc; rl_poll_cq(p->cq, 1, &wc) != 0;)
			;
		rl_modify_qp(p->a, &reset, RL_QP_STATE);
		rl_modify_qp(p->b, &reset, RL_QP_STATE);
		pair_move(p, p->a, RL_QPS_RTS, 1, p->b->qp_num, 2);
		pair_move(p, p->b, RL_QPS_RTS, 2, p->a->qp_num, 1);
	}
}

/* Objects made and destroyed as fast as it goes: killed in the middle of any of it. */
static void
comes_and_goes(struct pair *p)
{
	struct rl_mr *mr;
	struct rl_cq *cq;

	for (;;) {
		OK(rl_reg_mr(p->pd, NULL, 1 + draw() % 100000, RL_ACCESS_LOCAL_WRITE, &mr));
		OK(rl_create_cq(p->ctx, 1 + (int)(draw() % 300), NULL, p->channel, &cq));
		pair_disconnect(p);
		pair_connect(p, 1 + draw() % 64);
		OK(rl_destroy_cq(cq));
		OK(rl_dereg_mr(mr));
	}
}

/* Requests that it never reads the answers of. */
static void
never_reads_answers(struct pair *p)
{
	static const char line[] =
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"client_channel_create\"}\n";

	for (;;)
		send(context_of(p->ctx)->line.fd, line, sizeof(line) - 1,
			MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* Honest traffic, in both directions. */
static void
works(struct pair *p)
{
	for (;;) {
		pair_recv(p->b, pair_sge(p, 4096, 1024), 1);
		pair_post(p->a, RL_WR_SEND, pair_sge(p, 0, 1024), 0, 0, 2);
		pair_post(p->b, RL_WR_RDMA_READ, pair_sge(p, 0, 2048),
			(uintptr_t)p->mr->addr + 4096, p->mr->rkey, 3);
		for (struct rl_wc wc; rl_poll_cq(p->cq, 1, &wc) != 0;)
			;
	}
}

#define ATTACKS (sizeof(attacks) / sizeof(attacks[0]))
static void (*const attacks[])(struct pair *) = { works, rubbish_everywhere, rubbish_in_bells,
	rubbish_in_queues, index_goes_back, rubbish_in_srq, rubbish_in_cq, take_memory_away,
	never_reads_events, comes_and_goes, never_reads_answers };

static void
attacker(const char *socket, uint32_t round)
{
	struct pair p;

	/* What it says when it meets what it made itself is of no interest. */
	OK(dup2(open("/dev/null", O_WRONLY), 2) == 2 ? 0 : -1);
	pair_open(&p, socket, 64, 8192);
	pair_connect(&p, 64);
	for (int i = 0; i < 8; i++)
		pair_post(p.a, RL_WR_RDMA_WRITE, pair_sge(&p, 0, 1024),
			(uintptr_t)p.mr->addr + 4096, p.mr->rkey, 0);
	attacks[round % ATTACKS](&p);
}

/* ---- rounds ---------------------------------------------------------------------------------- */

static void
run_round(const char *socket, uint32_t round)
{
	const uint32_t lives_us = draw() % 40000;
	const pid_t pid = fork();
	int status;

	CHECK(pid >= 0);
	if (pid == 0) {
		alarm(60);
		seed ^= round * 2654435761u;
		seed = seed != 0 ? seed : 1;
		attacker(socket, round);
		_exit(0);
	}
	usleep(lives_us);
	CHECK(kill(pid, SIGKILL) == 0);
	CHECK(waitpid(pid, &status, 0) == pid);
}

/* The victim goes on: so many blocks more within some seconds. */
static void
flows(struct victim_report *r, uint64_t more)
{
	const uint64_t from = atomic_load(&r->blocks);
	const uint64_t end = pair_now_ns() + 30 * UINT64_C(1000000000);

	while (atomic_load(&r->blocks) < from + more) {
		CHECK(pair_now_ns() < end);
		sched_yield();
	}
}

/* The forms of the command in which something else starts and ends the processes. */
static int
one_part(const char *socket, const char *part, const char *n, const char *seed_text)
{
	void *at;

	if (strcmp(part, "count") == 0)
		return printf("%zu\n", ATTACKS) > 0 ? 0 : 1;
	if (strcmp(part, "attack") == 0) {
		seed = (uint32_t)strtoul(seed_text, NULL, 0) | 1;
		attacker(socket, (uint32_t)strtoul(n, NULL, 0));
		return 0;
	}
	at = mmap(
		NULL, sizeof(struct victim_report), PROT_READ | PROT_WRITE, MAP_SHARED, atoi(n), 0);
	CHECK(at != MAP_FAILED);
	if (strcmp(part, "witness") == 0)
		victim_witness(at, atoi(socket));
	else
		victim_run(socket, at);
	return 0;
}

int
main(int argc, char **argv)
{
	const uint32_t rounds = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 0) : 30;
	struct victim_report *r =
		mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int status;
	pid_t pid;

	CHECK(argc > 1 && r != MAP_FAILED);
	if (argc > 2 && (argv[2][0] < '0' || argv[2][0] > '9'))
		return one_part(
			argv[1], argv[2], argc > 3 ? argv[3] : "0", argc > 4 ? argv[4] : "1");
	seed = argc > 3 ? (uint32_t)strtoul(argv[3], NULL, 0) : (uint32_t)time(NULL) | 1;
	printf("%u rounds, seed %u\n", rounds, seed);
	fflush(stdout);
	pid = fork();
	CHECK(pid >= 0);
	if (pid == 0)
		victim_run(argv[1], r);
	flows(r, 1);
	for (uint32_t i = 0; i < rounds; i++) {
		run_round(argv[1], i);
		flows(r, 1);
		CHECK(waitpid(pid, &status, WNOHANG) == 0);
	}
	flows(r, 10);
	atomic_store(&r->stop, true);
	CHECK(waitpid(pid, &status, 0) == pid);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	printf("ok: %llu blocks of the victim\n", (unsigned long long)atomic_load(&r->blocks));
	return 0;
}
