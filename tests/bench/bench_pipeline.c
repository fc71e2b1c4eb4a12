/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a packet costs in a worker, in TSC cycles: in all, by stage, and next to two loops on the
 * same in-memory port. `bare` answers WRITEs without any protocol, or sends them and takes their
 * ACKs (bench_bare.h), `empty` only receives and sends. The bare loop has the row's own packets,
 * where it can do that work, else those of (req_)write_64: `loop` in the JSON file says whose.
 * `ratio` is total to bare, the median over the rounds: the figure that may be compared between
 * machines, and on one whose speed changes. Rows `req_*` (bench_requests.c) are the requester's, in
 * cycles per request; the `ratio` of the rows with timers, with cc.algo=dcqcn and without work is
 * to the same work without the timers, with cc.algo=none, and with one QP (`by_bare` is to bare
 * there). Packets are made outside the timed part, the samples of the loops are interleaved, and a
 * sample whose process had less than 95 % of its time is measured again. `copied` is how many bytes
 * the worker wrote for each byte that was delivered: copies of the data that are in memory
 * afterwards (bench_copies.h). Nothing passes or fails here. The rows of a million QPs take 5 GB of
 * memory on the responder's side, 6 on the requester's.
 *
 *   bench_pipeline [--json FILE] [--repeats N] [CASE...]
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rte_ethdev.h>
#include <rte_ring.h>

#include "bench_copies.h"
#include "bench_requests.h"
#include "bench_rig.h"
#include "bench_stat.h"

enum { MAX_REPEATS = 2001, WARM_UP = 10, TRIES = 5, MAX_ROWS = 80 };

static const char *const columns[COLUMNS] = {
	[TOTAL] = "total",
	[RATIO] = "ratio",
	[BARE] = "bare",
	[BY_BARE] = "by_bare",
	[EMPTY] = "empty",
	[COPIED] = "copied",
	[STAGES + STAGE_RX] = "rx",
	[STAGES + STAGE_PARSE] = "parse",
	[STAGES + STAGE_ICRC] = "icrc",
	[STAGES + STAGE_STEER] = "steer",
	[STAGES + STAGE_RESPOND] = "respond",
	[STAGES + STAGE_TIMERS] = "timers",
	[STAGES + STAGE_DOORBELLS] = "doorbells",
	[STAGES + STAGE_FLUSH] = "flush",
	[STAGES + STAGE_REQUEST] = "request",
	[STAGES + STAGE_TX] = "tx",
	[STAGES + STAGE_MAILBOX] = "mailbox",
};

/* clang-format off */
static const struct bench_case cases[] = {
	/* name, opcode, kind, bytes, path MTU, QPs, in random order, traced, shared receive queue, network */
	{ "write_8", OP_RC_WRITE_ONLY, KIND_GOOD, 8, 1024, 32, false, false, false, NET_IPV4 },
	{ "write_64", OP_RC_WRITE_ONLY, KIND_GOOD, 64, 1024, 32, false, false, false, NET_IPV4 },
	{ "uc_write_64", OP_UC_WRITE_ONLY, KIND_GOOD, 64, 1024, 32, false, false, false, NET_IPV4 },
	{ "uc_send_64", OP_UC_SEND_ONLY, KIND_GOOD, 64, 1024, 32, false, false, false, NET_IPV4 },
	{ "ud_send_64", OP_UD_SEND_ONLY, KIND_GOOD, 64, 1024, 32, false, false, false, NET_IPV4 },
	{ "ud_send_64_vlan", OP_UD_SEND_ONLY, KIND_GOOD, 64, 1024, 32, false, false, false, NET_VLAN },
	{ "write_64_coalesced", OP_RC_WRITE_ONLY, KIND_GOOD, 64, 1024, 1, false, false, false, NET_IPV4 },
	{ "write_64_traced", OP_RC_WRITE_ONLY, KIND_GOOD, 64, 1024, 32, false, true, false, NET_IPV4 },
	{ "write_1024", OP_RC_WRITE_ONLY, KIND_GOOD, 1024, 1024, 32, false, false, false, NET_IPV4 },
	{ "write_4096", OP_RC_WRITE_ONLY, KIND_GOOD, 4096, 4096, 32, false, false, false, NET_IPV4 },
	{ "write_parts_1024", OP_RC_WRITE_ONLY, KIND_PARTS, 1024, 1024, 32, false, false, false, NET_IPV4 },
	{ "write_parts_4096", OP_RC_WRITE_ONLY, KIND_PARTS, 4096, 4096, 32, false, false, false, NET_IPV4 },
	{ "send_parts_1024", OP_RC_SEND_ONLY, KIND_PARTS, 1024, 1024, 32, false, false, false, NET_IPV4 },
	{ "send_parts_4096", OP_RC_SEND_ONLY, KIND_PARTS, 4096, 4096, 32, false, false, false, NET_IPV4 },
	{ "write_64_vlan", OP_RC_WRITE_ONLY, KIND_GOOD, 64, 1024, 32, false, false, false, NET_VLAN },
	{ "write_64_ipv6", OP_RC_WRITE_ONLY, KIND_GOOD, 64, 1024, 32, false, false, false, NET_IPV6 },
	{ "write_1024_ipv6", OP_RC_WRITE_ONLY, KIND_GOOD, 1024, 1024, 32, false, false, false, NET_IPV6 },
	{ "send_64", OP_RC_SEND_ONLY, KIND_GOOD, 64, 1024, 32, false, false, false, NET_IPV4 },
	{ "send_64_srq", OP_RC_SEND_ONLY, KIND_GOOD, 64, 1024, 32, false, false, true, NET_IPV4 },
	{ "send_64_imm", OP_RC_SEND_ONLY_IMM, KIND_GOOD, 64, 1024, 32, false, false, false, NET_IPV4 },
	{ "write_64_imm", OP_RC_WRITE_ONLY_IMM, KIND_GOOD, 64, 1024, 32, false, false, false, NET_IPV4 },
	{ "send_64_coalesced", OP_RC_SEND_ONLY, KIND_GOOD, 64, 1024, 1, false, false, false, NET_IPV4 },
	{ "read_64", OP_RC_READ_REQUEST, KIND_GOOD, 64, 1024, 32, false, false, false, NET_IPV4 },
	{ "read_4096", OP_RC_READ_REQUEST, KIND_GOOD, 4096, 4096, 32, false, false, false, NET_IPV4 },
	{ "send_64_ipv6", OP_RC_SEND_ONLY, KIND_GOOD, 64, 1024, 32, false, false, false, NET_IPV6 },
	{ "read_64_ipv6", OP_RC_READ_REQUEST, KIND_GOOD, 64, 1024, 32, false, false, false, NET_IPV6 },
	{ "duplicate_64", OP_RC_WRITE_ONLY, KIND_DUPLICATE, 64, 1024, 32, false, false, false, NET_IPV4 },
	{ "ahead_64", OP_RC_WRITE_ONLY, KIND_AHEAD, 64, 1024, 32, false, false, false, NET_IPV4 },
	{ "bad_icrc_64", OP_RC_WRITE_ONLY, KIND_BAD_ICRC, 64, 1024, 32, false, false, false, NET_IPV4 },
	{ "no_qp_64", OP_RC_WRITE_ONLY, KIND_NO_QP, 64, 1024, 32, false, false, false, NET_IPV4 },
	{ "not_roce_64", OP_RC_WRITE_ONLY, KIND_NOT_ROCE, 64, 1024, 32, false, false, false, NET_IPV4 },
	{ "write_64_1k_qps", OP_RC_WRITE_ONLY, KIND_GOOD, 64, 1024, 1024, true, false, false, NET_IPV4 },
	{ "write_64_64k_qps", OP_RC_WRITE_ONLY, KIND_GOOD, 64, 1024, 65536, true, false, false, NET_IPV4 },
	{ "write_64_1m_qps", OP_RC_WRITE_ONLY, KIND_GOOD, 64, 1024, MAX_QPS, true, false, false, NET_IPV4 },
};
/* clang-format on */

/* ---- samples --------------------------------------------------------------------------------- */

static void
turn_worker(struct bench_rig *r)
{
	worker_poll(r->timed, 1);
}

static void
turn_lapped(struct bench_rig *r)
{
	worker_poll(r->lapped, 1);
}

static void
turn_bare(struct bench_rig *r)
{
	bare_poll(&r->bare);
}

static void
turn_empty(struct bench_rig *r)
{
	struct rte_mbuf *m[PIPELINE_BURST];
	uint16_t n = rte_eth_rx_burst(r->port, 0, m, PIPELINE_BURST);

	rte_eth_tx_burst(r->port, 0, m, n);
}

/**
 * One sample: n packets of the case through this loop.
 * @return cycles a packet, or a negative number if too much of the time went to other processes.
 */
static double
sample(struct bench_rig *r, const struct bench_case *c, uint32_t n,
	void (*turn)(struct bench_rig *), uint32_t *frames)
{
	bool worker = turn == turn_worker || turn == turn_lapped;
	struct span s;
	bool good;

	rig_prepare(r, c, n, worker);
	s = span_begin();
	while (rte_ring_count(r->to) != 0)
		turn(r);
	good = span_end(&s);
	*frames = rig_clear(r);
	if (!worker)
		rig_unpost(r, c);
	return good ? (double)s.cycles / n : -1;
}

static uint32_t
frames_wanted(const struct bench_case *c, uint32_t n)
{
	if (c->random || !wire_is_acked(wire_transport_of(c->opcode)))
		return 0; /* QPs may meet twice in a burst */
	return c->kind == KIND_GOOD || c->kind == KIND_DUPLICATE
		       ? (c->qps < PIPELINE_BURST ? n / PIPELINE_BURST * c->qps : n)
		       : 0;
}

/** Whose packets the bare loop has: it answers WRITEs over IPv4 alone. */
static const struct bench_case *
bare_of(const struct bench_case *c)
{
	static const struct bench_case write_64 = { "write_64", OP_RC_WRITE_ONLY, KIND_GOOD, 64,
		1024, 32, false, false, false, NET_IPV4 };

	return c->opcode == OP_RC_WRITE_ONLY && c->kind == KIND_GOOD && c->net == NET_IPV4
		       ? c
		       : &write_64;
}

/** One round over all loops. @return false: it does not count. */
static bool
one_round(struct bench_rig *r, const struct bench_case *c, uint32_t n, double v[COLUMNS])
{
	uint64_t before[STAGE_MAX];
	uint32_t frames, any;

	v[TOTAL] = sample(r, c, n, turn_worker, &frames);
	v[BARE] = sample(r, bare_of(c), n, turn_bare, &any);
	v[EMPTY] = sample(r, c, n, turn_empty, &any);
	if (frames < frames_wanted(c, n))
		fprintf(stderr, "%s: %" PRIu32 " frames came back\n", c->name, frames);
	v[RATIO] = v[BY_BARE] = v[TOTAL] / v[BARE];
	memcpy(before, worker_load(r->lapped)->cycles, sizeof(before));
	if (sample(r, c, n, turn_lapped, &any) < 0)
		return false;
	for (uint32_t s = 0; s < STAGE_MAX; s++)
		v[STAGES + s] = (double)(worker_load(r->lapped)->cycles[s] - before[s]) / n;
	return v[TOTAL] >= 0 && v[BARE] >= 0 && v[EMPTY] >= 0;
}

/** A row of the table: a case of bench_rig.h, or one of bench_req_rig.h. */
struct row {
	const char *name;
	uint32_t len;
	uint32_t qps;
	const struct bench_case *c;
	const struct request_case *req; /* instead */
	double copied;
};

/** Whose packets the row's bare loop has; "own": it has none, its `ratio` is to something else. */
static const char *
loop_of(const struct row *row)
{
	return row->req == NULL ? bare_of(row->c)->name : requests_bare(row->req);
}

static bool
round_of(struct bench_rig *r, const struct row *row, uint32_t n, double v[COLUMNS])
{
	return row->req != NULL ? requests_round(row->req, n, v) : one_round(r, row->c, n, v);
}

/** @return bytes that the worker copies for each byte delivered; 0: the row delivers none. */
static double
copied(struct bench_rig *r, const struct row *row)
{
	if (row->req != NULL) {
		if (!row->req->random)
			requests_begin(row->req);
		return requests_copied(row->req);
	}
	if (!row->c->random)
		rig_begin(r, row->c);
	return row->c->kind == KIND_GOOD && row->len >= COPIES_PART && !row->c->random
		       ? rig_copied(r, row->c)
		       : 0;
}

/** Medians of all columns. @return rounds that counted. */
static uint32_t
measure(struct bench_rig *r, const struct row *row, uint32_t repeats, double out[COLUMNS])
{
	static double v[COLUMNS][MAX_REPEATS];
	uint32_t n = row->req != NULL ? requests_begin(row->req) : rig_begin(r, row->c), good = 0;

	for (uint32_t i = 0; i < repeats * TRIES + WARM_UP && good < repeats; i++) {
		double one[COLUMNS];

		if (!round_of(r, row, n, one) || i < WARM_UP)
			continue;
		for (uint32_t k = 0; k < COLUMNS; k++)
			v[k][good] = one[k];
		good++;
	}
	for (uint32_t k = 0; k < COLUMNS; k++)
		out[k] = good != 0 ? median(v[k], good) : 0;
	out[COPIED] = row->copied;
	return good;
}

/* ---- figures --------------------------------------------------------------------------------- */

static void
print_json(FILE *f, const struct row *c, const double *v, uint32_t good, bool first)
{
	fprintf(f,
		"%s\n    {\"case\": \"%s\", \"bytes\": %u, \"qps\": %" PRIu32
		", \"samples\": %" PRIu32 ", \"loop\": \"%s\"",
		first ? "" : ",", c->name, c->len, c->qps, good, loop_of(c));
	for (uint32_t i = 0; i < COLUMNS; i++)
		if (v[i] != 0)
			fprintf(f, ", \"%s\": %.3f", columns[i], v[i]);
	fprintf(f, "}");
}

static void
print_row(const struct row *c, const double *v)
{
	printf("%-23s", c->name);
	for (uint32_t k = 0; k < COLUMNS; k++)
		if (k == BY_BARE)
			continue;
		else if (k == RATIO || k == BARE || k == COPIED)
			v[k] != 0 ? printf(" %8.*f", k == BARE ? 1 : 2, v[k]) : printf(" %8s", "-");
		else
			printf(" %8.1f", v[k]);
	printf("\n");
	fflush(stdout);
}

struct options {
	uint32_t repeats;
	FILE *json;
	int cases_at;
};

static struct options
options(int argc, char **argv)
{
	struct options o = { .repeats = 301, .cases_at = 1 };

	for (; o.cases_at + 1 < argc && strncmp(argv[o.cases_at], "--", 2) == 0; o.cases_at += 2) {
		const char *value = argv[o.cases_at + 1];

		if (strcmp(argv[o.cases_at], "--json") == 0) {
			o.json = fopen(value, "w");
			if (o.json == NULL)
				die("cannot write the JSON file");
		} else if (strcmp(argv[o.cases_at], "--repeats") == 0) {
			o.repeats = (uint32_t)strtoul(value, NULL, 10);
		} else {
			die("unknown option");
		}
	}
	if (o.repeats == 0 || o.repeats > MAX_REPEATS)
		die("--repeats is 1 to 2001");
	return o;
}

static const char *
name_of(size_t i)
{
	if (i < ARRAY_LEN(cases))
		return cases[i].name;
	return i - ARRAY_LEN(cases) < request_cases_n ? request_cases[i - ARRAY_LEN(cases)].name
						      : NULL;
}

/** Those that are wanted. @return how many; *qps, *req_qps: the most that a row of a kind needs. */
static uint32_t
choose(int argc, char **argv, int from, struct row *rows, uint32_t *qps, uint32_t *req_qps)
{
	uint32_t n = 0;

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		const struct bench_case *c = &cases[i];

		if (!is_chosen(c->name, argc, argv, from))
			continue;
		rows[n++] = (struct row){ c->name, c->len, c->qps, c, NULL, 0 };
		*qps = RTE_MAX(*qps, c->qps);
	}
	for (uint32_t i = 0; i < request_cases_n; i++) {
		const struct request_case *c = &request_cases[i];

		if (!is_chosen(c->name, argc, argv, from))
			continue;
		rows[n++] = (struct row){ c->name, c->len, c->qps, NULL, c, 0 };
		*req_qps = RTE_MAX(*req_qps, c->qps);
	}
	return n;
}

static void
print_head(const struct options *o, const struct bench_rig *r)
{
	if (o->json != NULL)
		fprintf(o->json,
			"{\n  \"unit\": \"TSC cycles per packet, median\",\n"
			"  \"tsc_hz\": %" PRIu64 ",\n  \"crc\": \"%s\",\n  \"cases\": [",
			rte_get_tsc_hz(), r->conf.crc->name);
	printf("TSC cycles per packet (%.0f MHz), median of %" PRIu32 " samples\n%-23s",
		(double)rte_get_tsc_hz() / 1e6, o->repeats, "case");
	for (uint32_t i = 0; i < COLUMNS; i++)
		if (i != BY_BARE)
			printf(" %8s", columns[i]);
	printf("\n");
}

/** Count them in a process of its own: it must not change what is measured. */
static void
count_copies(struct bench_rig *r, struct row *rows, uint32_t n)
{
	const size_t bytes = sizeof(rows[0].copied);
	int fd[2], status;
	pid_t child;

	if (pipe(fd) != 0)
		die("no pipe");
	child = fork();
	if (child < 0)
		die("no process to count copies in");
	if (child == 0) {
		rig_set_up(r, RING_QPS);
		requests_set_up(r, SENDERS);
		for (uint32_t i = 0; i < n; i++) {
			const double v = copied(r, &rows[i]);

			if (write(fd[1], &v, bytes) != (ssize_t)bytes)
				_exit(1);
		}
		_exit(0);
	}
	close(fd[1]);
	for (uint32_t i = 0; i < n; i++)
		if (read(fd[0], &rows[i].copied, bytes) != (ssize_t)bytes)
			die("copies were not counted");
	close(fd[0]);
	if (waitpid(child, &status, 0) != child || status != 0)
		die("copies were not counted");
}

int
main(int argc, char **argv)
{
	static struct bench_rig r;
	static struct row rows[MAX_ROWS];
	struct options o = options(argc, argv);
	uint32_t qps = RING_QPS, req_qps = 0, n;

	check_rows(argc, argv, o.cases_at, name_of);
	n = choose(argc, argv, o.cases_at, rows, &qps, &req_qps);
	count_copies(&r, rows, n);
	rig_set_up(&r, qps);
	if (req_qps != 0)
		requests_set_up(&r, req_qps);
	print_head(&o, &r);
	for (uint32_t i = 0; i < n; i++) {
		double v[COLUMNS];
		uint32_t good = measure(&r, &rows[i], o.repeats, v);

		print_row(&rows[i], v);
		if (o.json != NULL)
			print_json(o.json, &rows[i], v, good, i == 0);
	}
	if (o.json != NULL) {
		fprintf(o.json, "\n  ]\n}\n");
		fclose(o.json);
	}
	if (req_qps != 0)
		requests_tear_down();
	rig_tear_down(&r);
	return 0;
}
