/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Latency of a WRITE of 8 bytes through a running dataplane, as write_lat has it, alone and beside
 * another client that moves 1 MiB at a time. One thread is all clients: so it needs one CPU, and
 * the dataplane's worker another.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "bench_stat.h"
#include "rocelane.h"

enum {
	PING = 8,
	BULK = 1 << 20,
	BULK_DEPTH = 8,
	MOST = 1 << 20, /* samples of a round */
	ROUNDS_MOST = 101,
};

struct end {
	struct rl_context *ctx;
	struct rl_pd *pd;
	struct rl_cq *cq;
	struct rl_mr *mr;
	struct rl_qp *qp;
	struct end *peer;
	uint8_t port;
};

/** What is done beside the pings. */
struct load {
	const char *name;
	int opcode;        /* of the bulk; -1: none */
	uint32_t pause_us; /* between two pings */
};

static const struct load loads[] = {
	{ "alone", -1, 0 },
	{ "write_1m", RL_WR_RDMA_WRITE, 0 },
	{ "read_1m", RL_WR_RDMA_READ, 0 },
	{ "alone_rare", -1, 300 },
	{ "write_1m_rare", RL_WR_RDMA_WRITE, 300 },
	{ "read_1m_rare", RL_WR_RDMA_READ, 300 },
};
enum { LOADS = sizeof(loads) / sizeof(loads[0]) };

struct figures {
	double p50[ROUNDS_MOST], p99[ROUNDS_MOST], rate[ROUNDS_MOST];
	double by[ROUNDS_MOST]; /* p99, to that of the first row in the same round */
};

static struct end ping[2], bulk[2];
static uint32_t under_way; /* of the bulk */
static uint64_t moved;     /* its requests that are done */
static double sample[MOST];

static void
must(int rc, const char *what)
{
	if (rc >= 0)
		return;
	fprintf(stderr, "bench_latency: %s: %s (%s)\n", what, rl_last_error(), strerror(-rc));
	exit(1);
}

static uint64_t
now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* ---- ends ------------------------------------------------------------------------------------ */

static void
end_open(struct end *e, uint8_t port, size_t bytes)
{
	struct rl_qp_init_attr init = {
		.qp_type = RL_QPT_RC,
		.cap = { .max_send_wr = 64, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 }
	};

	*e = (struct end){ .port = port };
	must(rl_open(NULL, &e->ctx), "rl_open");
	must(rl_alloc_pd(e->ctx, &e->pd), "rl_alloc_pd");
	must(rl_create_cq(e->ctx, 64, NULL, NULL, &e->cq), "rl_create_cq");
	must(rl_reg_mr(e->pd, NULL, bytes,
		     RL_ACCESS_LOCAL_WRITE | RL_ACCESS_REMOTE_WRITE | RL_ACCESS_REMOTE_READ,
		     &e->mr),
		"rl_reg_mr");
	memset(e->mr->addr, 0, bytes);
	init.send_cq = e->cq;
	init.recv_cq = e->cq;
	must(rl_create_qp(e->pd, &init, &e->qp), "rl_create_qp");
}

static void
end_connect(struct end *e, struct end *peer)
{
	struct rl_qp_attr a = { .qp_state = RL_QPS_INIT,
		.port_num = e->port,
		.qp_access_flags = RL_ACCESS_REMOTE_WRITE | RL_ACCESS_REMOTE_READ,
		.path_mtu = RL_MTU_4096,
		.dest_qp_num = peer->qp->qp_num,
		.max_rd_atomic = 16,
		.max_dest_rd_atomic = 16,
		.min_rnr_timer = 12,
		.timeout = 14,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.ah_attr = { .is_global = 1, .port_num = e->port } };

	e->peer = peer;
	must(rl_query_gid(peer->ctx, peer->port, 0, &a.ah_attr.grh.dgid), "rl_query_gid");
	must(rl_modify_qp(
		     e->qp, &a, RL_QP_STATE | RL_QP_PKEY_INDEX | RL_QP_PORT | RL_QP_ACCESS_FLAGS),
		"to INIT");
	a.qp_state = RL_QPS_RTR;
	must(rl_modify_qp(e->qp, &a,
		     RL_QP_STATE | RL_QP_AV | RL_QP_PATH_MTU | RL_QP_DEST_QPN | RL_QP_RQ_PSN |
			     RL_QP_MAX_DEST_RD_ATOMIC | RL_QP_MIN_RNR_TIMER),
		"to RTR");
	a.qp_state = RL_QPS_RTS;
	must(rl_modify_qp(e->qp, &a,
		     RL_QP_STATE | RL_QP_TIMEOUT | RL_QP_RETRY_CNT | RL_QP_RNR_RETRY |
			     RL_QP_SQ_PSN | RL_QP_MAX_QP_RD_ATOMIC),
		"to RTS");
}

static void
pair_open(struct end pair[2], size_t bytes)
{
	for (int i = 0; i < 2; i++)
		end_open(&pair[i], (uint8_t)(1 + i), bytes);
	for (int i = 0; i < 2; i++)
		end_connect(&pair[i], &pair[1 - i]);
}

static void
post(struct end *e, int opcode, uint32_t bytes)
{
	struct rl_sge sge = { (uintptr_t)e->mr->addr, bytes, e->mr->lkey };
	struct rl_send_wr wr = { .sg_list = &sge,
		.num_sge = 1,
		.opcode = (enum rl_wr_opcode)opcode,
		.send_flags = RL_SEND_SIGNALED };

	wr.wr.rdma.remote_addr = (uintptr_t)e->peer->mr->addr;
	wr.wr.rdma.rkey = e->peer->mr->rkey;
	must(rl_post_send(e->qp, &wr, NULL), "rl_post_send");
}

/** @return completions, all good. */
static uint32_t
completions(struct end *e)
{
	struct rl_wc wc[BULK_DEPTH];
	const int n = rl_poll_cq(e->cq, BULK_DEPTH, wc);

	must(n, "rl_poll_cq");
	for (int i = 0; i < n; i++)
		if (wc[i].status != RL_WC_SUCCESS) {
			fprintf(stderr, "bench_latency: %s\n", rl_wc_status_str(wc[i].status));
			exit(1);
		}
	return (uint32_t)n;
}

/* ---- one round ------------------------------------------------------------------------------- */

static void
bulk_more(const struct load *l)
{
	const uint32_t n = completions(&bulk[0]);

	moved += n;
	under_way -= n;
	for (; l->opcode >= 0 && under_way < BULK_DEPTH; under_way++)
		post(&bulk[0], l->opcode, BULK);
}

/** A WRITE of this word to the other end, until it is there. */
static void
send_word(struct end *e, uint64_t word)
{
	/* The buffer's second half is what the peer writes to. */
	volatile uint64_t *there = (uint64_t *)e->peer->mr->addr;
	uint64_t *here = (uint64_t *)e->mr->addr + 1;
	struct rl_sge sge = { (uintptr_t)here, PING, e->mr->lkey };
	struct rl_send_wr wr = { .sg_list = &sge,
		.num_sge = 1,
		.opcode = RL_WR_RDMA_WRITE,
		.send_flags = RL_SEND_SIGNALED };

	*here = word;
	wr.wr.rdma.remote_addr = (uintptr_t)there;
	wr.wr.rdma.rkey = e->peer->mr->rkey;
	must(rl_post_send(e->qp, &wr, NULL), "rl_post_send");
	while (*there != word)
		;
}

static void
completion_wait(struct end *e)
{
	while (completions(e) == 0)
		;
}

static long
switches(void)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	return u.ru_nivcsw;
}

static void
pause_for(const struct load *l)
{
	const uint64_t until = now_ns() + (uint64_t)l->pause_us * 1000;

	do
		bulk_more(l);
	while (now_ns() < until);
}

/** Samples are halves of round trips, in us; those in which this thread lost its CPU are none. */
static void
round_run(const struct load *l, double seconds, uint32_t at, struct figures *f)
{
	static uint64_t word;
	const uint64_t from = now_ns(), until = from + (uint64_t)(seconds * 1e9);
	uint32_t n = 0;

	moved = 0;
	while (now_ns() < until && n < MOST) {
		const long before = switches();
		uint64_t start;

		pause_for(l);
		start = now_ns();
		send_word(&ping[0], ++word);
		send_word(&ping[1], word);
		sample[n] = (double)(now_ns() - start) / 2e3;
		completion_wait(&ping[0]);
		completion_wait(&ping[1]);
		n += switches() == before;
	}
	if (n == 0) {
		fprintf(stderr, "bench_latency: no sample without a loss of the CPU\n");
		exit(1);
	}
	f->rate[at] = (double)moved * BULK / (double)(now_ns() - from);
	qsort(sample, n, sizeof(sample[0]), stat_compare);
	f->p50[at] = sample[n / 2];
	f->p99[at] = sample[n - 1 - n / 100];
	while (under_way != 0)
		bulk_more(&loads[0]);
}

static const char *
name_of(size_t i)
{
	return i < LOADS ? loads[i].name : NULL;
}

int
main(int argc, char **argv)
{
	const uint32_t rounds = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : 5;
	const double seconds = argc > 2 ? strtod(argv[2], NULL) : 0.2;
	static struct figures f[LOADS];

	if (rounds == 0 || rounds > ROUNDS_MOST || seconds <= 0 || seconds > 60) {
		fprintf(stderr, "usage: bench_latency [ROUNDS [SECONDS [ROW...]]]\n");
		return 2;
	}
	check_rows(argc, argv, 3, name_of);
	pair_open(ping, 4096);
	pair_open(bulk, BULK);
	for (uint32_t i = 0; i < rounds; i++)
		for (int k = 0; k < LOADS; k++) {
			if (k != 0 && !is_chosen(loads[k].name, argc, argv, 3))
				continue;
			round_run(&loads[k], seconds, i, &f[k]);
			f[k].by[i] = f[k].p99[i] / f[0].p99[i];
		}
	printf("%-14s %9s %9s %9s %9s\n", "beside", "p50 us", "p99 us", "by alone", "GB/s");
	for (int k = 0; k < LOADS; k++)
		if (k == 0 || is_chosen(loads[k].name, argc, argv, 3))
			printf("%-14s %9.2f %9.2f %9.2f %9.2f\n", loads[k].name,
				median(f[k].p50, rounds), median(f[k].p99, rounds),
				median(f[k].by, rounds), median(f[k].rate, rounds));
	for (int i = 0; i < 2; i++) {
		rl_close(ping[i].ctx);
		rl_close(bulk[i].ctx);
	}
	return 0;
}
