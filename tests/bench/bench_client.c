/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What an application's calls cost itself: rl_post_send() with its doorbell, and rl_poll_cq(), in
 * cycles an operation. The library's rings are in this process's memory. A worker's part is played
 * in between, in the same thread and untimed: it hears doorbells, takes requests, and completes
 * them. So no line comes from another core here: that is what a real worker adds.
 * `bare` is what it takes to copy the two entries of an operation. Nothing passes or fails here.
 *
 *   bench_client [--json FILE]
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_cycles.h>

#include "bench_stat.h"
#include "client_priv.h"

#define BATCH   32 /* operations of a span */
#define DEPTH   256
#define SPANS   20001
#define QPN     17
#define MAX_SGE 1

struct rig {
	struct context ctx;
	struct ring_bells bells;   /* the library's view */
	struct ring_bells heard;   /* the worker's */
	struct ring_cq completing; /* the worker's */
	struct cq cq;
	struct qp qp[BATCH];
	struct ring taken[BATCH]; /* the worker's, one a QP */
};

struct row {
	const char *name;
	uint32_t qps;  /* requests go round them */
	bool list;     /* one call for all */
	int poll;      /* completions asked for at once */
	uint64_t bell; /* doorbells that the worker heard, all in all */
	double post;   /* cycles an operation */
	double polled;
	double bare; /* to copy the two entries of an operation */
};

static void *
zeroed(size_t bytes)
{
	const size_t lines = (bytes + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE;
	void *mem = aligned_alloc(CACHE_LINE, lines);

	if (mem == NULL)
		exit(1);
	return memset(mem, 0, lines);
}

static void
qp_make(struct rig *r, uint32_t i)
{
	const uint32_t stride = ring_send_stride(MAX_SGE, 0);
	void *mem = zeroed(ring_size(DEPTH, stride));
	struct qp *qp = &r->qp[i];

	qp->pub = (struct rl_qp){ .context = &r->ctx.pub,
		.qp_type = RL_QPT_RC,
		.qp_num = QPN + i,
		.send_cq = &r->cq.pub };
	qp->cap = (struct rl_qp_cap){ .max_send_wr = DEPTH, .max_send_sge = MAX_SGE };
	atomic_store(&qp->longest, UINT32_MAX);
	atomic_store(&qp->state, RL_QPS_RTS);
	ring_attach(&qp->sq, mem, DEPTH, stride, true);
	ring_attach(&r->taken[i], mem, DEPTH, stride, false);
	qp->signaled = zeroed(DEPTH);
	if (client_cqs_join(qp) != 0)
		exit(1);
}

static struct rig *
rig_make(void)
{
	struct rig *r = zeroed(sizeof(*r));
	void *bells = zeroed(ring_bells_size(DEPTH));
	void *cqes = zeroed(ring_size(DEPTH, sizeof(struct ring_cqe)));

	ring_bells_attach(&r->bells, bells, DEPTH);
	ring_bells_attach(&r->heard, bells, DEPTH);
	r->ctx.bells = &r->bells;
	r->ctx.workers = 1;
	r->ctx.wake_fd = -1;
	ring_cq_attach(&r->completing, cqes, DEPTH, DEPTH, true);
	ring_cq_attach(&r->cq.ring, cqes, DEPTH, DEPTH, false);
	r->cq.pub.context = &r->ctx.pub;
	r->cq.armed_from = ARMED_NEVER;
	for (uint32_t i = 0; i < BATCH; i++)
		qp_make(r, i);
	return r;
}

static void
rig_free(struct rig *r)
{
	for (uint32_t i = 0; i < BATCH; i++) {
		client_cqs_leave(&r->qp[i]);
		free(r->qp[i].sq.sh);
		free(r->qp[i].signaled);
	}
	free(r->cq.users);
	free(r->cq.ring.sh);
	free((void *)r->bells.slot);
	free(r);
}

/* A worker's turn. @return doorbells heard. */
static uint32_t
work(struct rig *r)
{
	uint32_t number, bells = 0;

	while ((number = ring_bells_take(&r->heard)) != 0) {
		struct ring *taken = &r->taken[number - QPN];
		uint32_t n;

		bells++;
		ring_bell_heard(taken);
		n = ring_consume_count(taken);
		for (uint32_t i = 0; i < n; i++) {
			const struct ring_send_wqe *wqe = ring_consume_peek(taken, i);
			uint32_t index;
			struct ring_cqe *cqe = ring_cq_reserve_alone(&r->completing, &index);

			if (cqe == NULL)
				return bells;
			ring_cqe_write(cqe, number, 0,
				&(struct ring_completion){
					.wr_id = wqe->wr_id, .opcode = WC_RDMA_WRITE });
			ring_cq_publish(&r->completing, cqe, index);
		}
		ring_consume_done(taken, n);
	}
	return bells;
}

static bool
post(struct rig *r, const struct row *row, struct rl_send_wr *wr)
{
	int rc = 0;

	if (row->list)
		return rl_post_send(&r->qp[0].pub, wr, NULL) == 0;
	for (uint32_t i = 0; i < BATCH; i++)
		rc |= rl_post_send(&r->qp[i & (row->qps - 1)].pub, &wr[i], NULL);
	return rc == 0;
}

static int
poll(struct rig *r, const struct row *row, struct rl_wc *wc)
{
	int got = 0;

	for (int n = 1; got < BATCH && n > 0; got += n)
		n = rl_poll_cq(&r->cq.pub, row->poll, &wc[got]);
	return got;
}

/* Each request came back once: what was timed is what it says. */
static bool
is_whole(const struct rl_wc *wc)
{
	uint64_t seen = 0;

	for (uint32_t i = 0; i < BATCH; i++)
		if (wc[i].status == RL_WC_SUCCESS && wc[i].wr_id < BATCH)
			seen |= UINT64_C(1) << wc[i].wr_id;
	return seen == (UINT64_C(1) << BATCH) - 1;
}

/* What nobody can do without: an entry is written for the worker, and one that it wrote is read. */
static double
copies(void)
{
	static uint8_t CACHE_ALIGNED sq[DEPTH][CACHE_LINE], cq[DEPTH][CACHE_LINE];
	static uint8_t CACHE_ALIGNED mine[BATCH][CACHE_LINE];
	static uint32_t at;
	const uint64_t from = rte_rdtsc_precise();

	for (uint32_t i = 0; i < BATCH; i++) {
		memcpy(sq[(at + i) % DEPTH], mine[i], CACHE_LINE);
		rte_compiler_barrier();
	}
	for (uint32_t i = 0; i < BATCH; i++) {
		memcpy(mine[i], cq[(at + i) % DEPTH], CACHE_LINE);
		rte_compiler_barrier();
	}
	at += BATCH;
	return (double)(rte_rdtsc_precise() - from);
}

static bool
bench(struct rig *r, struct row *row)
{
	static double posts[SPANS], polls[SPANS], nothing[SPANS], bare[SPANS];
	struct rl_send_wr wr[BATCH] = { 0 };
	struct rl_sge sge = { .addr = 4096, .length = 8, .lkey = 1 };
	struct rl_wc wc[BATCH];

	for (uint32_t i = 0; i < BATCH; i++)
		wr[i] = (struct rl_send_wr){ .wr_id = i,
			.next = row->list && i + 1 < BATCH ? &wr[i + 1] : NULL,
			.sg_list = &sge,
			.num_sge = 1,
			.opcode = RL_WR_RDMA_WRITE,
			.send_flags = RL_SEND_SIGNALED };
	for (uint32_t i = 0; i < SPANS; i++) {
		const uint64_t a = rte_rdtsc_precise(), b = rte_rdtsc_precise();
		const bool posted = post(r, row, wr);
		const uint64_t c = rte_rdtsc_precise();
		uint64_t d;

		row->bell += work(r);
		memset(wc, 0xff, sizeof(wc));
		d = rte_rdtsc_precise();
		if (!posted || poll(r, row, wc) != BATCH)
			return false;
		polls[i] = (double)(rte_rdtsc_precise() - d);
		if (!is_whole(wc))
			return false;
		nothing[i] = (double)(b - a);
		posts[i] = (double)(c - b);
		bare[i] = copies();
	}
	row->post = (median(posts, SPANS) - median(nothing, SPANS)) / BATCH;
	row->polled = (median(polls, SPANS) - median(nothing, SPANS)) / BATCH;
	row->bare = (median(bare, SPANS) - median(nothing, SPANS)) / BATCH;
	return true;
}

static void
print_json(FILE *f, const struct row *row, bool first)
{
	fprintf(f,
		"%s\n    {\"name\": \"%s\", \"post\": %.1f, \"poll\": %.1f, \"both\": %.1f, "
		"\"bare\": %.2f, \"bells\": %.3f}",
		first ? "" : ",", row->name, row->post, row->polled, row->post + row->polled,
		row->bare, (double)row->bell / SPANS / BATCH);
}

int
main(int argc, char **argv)
{
	struct row rows[] = {
		{ .name = "list32_poll32", .qps = 1, .list = true, .poll = BATCH },
		{ .name = "list32_poll1", .qps = 1, .list = true, .poll = 1 },
		{ .name = "single_poll32", .qps = 1, .poll = BATCH },
		{ .name = "single_poll1", .qps = 1, .poll = 1 },
		{ .name = "single_32qps_poll32", .qps = BATCH, .poll = BATCH },
		{ .name = "single_32qps_poll1", .qps = BATCH, .poll = 1 },
	};
	struct rig *r = rig_make();
	FILE *json = NULL;
	int rc = 0;

	if (argc == 3 && strcmp(argv[1], "--json") == 0)
		json = fopen(argv[2], "w");
	if (argc != 1 && json == NULL) {
		fprintf(stderr, "bench_client: [--json FILE]\n");
		rig_free(r);
		return 1;
	}
	if (json != NULL)
		fprintf(json, "{\n  \"unit\": \"cycles per operation\",\n  \"rows\": [");
	printf("cycles per WRITE of 8 bytes, medians of %u spans of %u\n", SPANS, BATCH);
	printf("%-20s %8s %8s %8s %8s %8s\n", "", "post", "poll", "both", "bare", "bells");
	for (size_t i = 0; i < ARRAY_LEN(rows) && rc == 0; i++) {
		struct row *row = &rows[i];

		if (!bench(r, row)) {
			fprintf(stderr, "bench_client: %s: requests were lost\n", row->name);
			rc = 1;
			continue;
		}
		printf("%-20s %8.1f %8.1f %8.1f %8.1f %8.3f\n", row->name, row->post, row->polled,
			row->post + row->polled, row->bare, (double)row->bell / SPANS / BATCH);
		if (json != NULL)
			print_json(json, row, i == 0);
	}
	if (json != NULL) {
		fprintf(json, "\n  ]\n}\n");
		fclose(json);
	}
	rig_free(r);
	return rc;
}
