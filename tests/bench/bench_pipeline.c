/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a packet costs in a worker, in TSC cycles: in all, by stage, and next to a loop that only
 * receives and sends on the same in-memory port. Packets are made outside the timed part; figures
 * are medians. To be compared with another run on the same machine; nothing passes or fails here.
 *
 *   bench_pipeline [--json FILE] [--repeats N] [CASE...]
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_cycles.h>
#include <rte_eal.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <rte_ring.h>

#include "crc_isal.h"
#include "net_pair.h"
#include "pipeline.h"

enum { QPS = 32, PACKETS = 512, MAX_REPEATS = 2001, COLUMNS = STAGE_MAX + 2 };

#define MR_VA  0x10000000u
#define MR_KEY 0x1001u
#define MR_LEN (QPS * 8192u)

struct bench_case {
	const char *name;
	uint8_t opcode;
	uint16_t len;
	uint16_t pmtu;
	uint8_t qps; /* packets of a burst go round these: 32 means an ACK each */
	bool duplicate;
	bool bad_icrc;
};

static const struct bench_case cases[] = {
	{ "write_64", OP_RC_WRITE_ONLY, 64, 1024, QPS, false, false },
	{ "write_64_coalesced", OP_RC_WRITE_ONLY, 64, 1024, 1, false, false },
	{ "write_1024", OP_RC_WRITE_ONLY, 1024, 1024, QPS, false, false },
	{ "write_4096", OP_RC_WRITE_ONLY, 4096, 4096, QPS, false, false },
	{ "send_64", OP_RC_SEND_ONLY, 64, 1024, QPS, false, false },
	{ "read_64", OP_RC_READ_REQUEST, 64, 1024, QPS, false, false },
	{ "read_4096", OP_RC_READ_REQUEST, 4096, 4096, QPS, false, false },
	{ "write_64_duplicate", OP_RC_WRITE_ONLY, 64, 1024, QPS, true, false },
	{ "bad_icrc_64", OP_RC_WRITE_ONLY, 64, 1024, QPS, false, true },
};

static struct {
	uint16_t port;
	struct rte_ring *to;
	struct rte_ring *from;
	struct rte_mempool *pool;
	struct worker_conf conf;
	struct worker *timed;  /* without laps */
	struct worker *lapped; /* with them */
	struct qp_cq cq;
	struct qp *qp[QPS];
	struct ring rq[QPS];
	struct wire_path path; /* of the tester */
	uint8_t payload[4096];
} b;

static void
die(const char *what)
{
	fprintf(stderr, "bench_pipeline: %s\n", what);
	exit(1);
}

/* ---- set up ---------------------------------------------------------------------------------- */

static void
make_port(void)
{
	char *argv[] = { (char *)(uintptr_t) "bench", (char *)(uintptr_t) "--no-huge",
		(char *)(uintptr_t) "--no-shconf", (char *)(uintptr_t) "--no-pci",
		(char *)(uintptr_t) "--no-telemetry", (char *)(uintptr_t) "--log-level=critical",
		(char *)(uintptr_t) "-m", (char *)(uintptr_t) "128", NULL };

	if (rte_eal_init(8, argv) < 0)
		die("EAL does not start");
	b.pool = rte_pktmbuf_pool_create("bench", 4095, 256, 0, 4352 + RTE_PKTMBUF_HEADROOM, 0);
	if (b.pool == NULL ||
		net_pair_create_open("bench", 2048, 0, &b.port, &b.to, &b.from) != 0 ||
		net_pair_start(b.port, b.pool) != 0)
		die("no port");
}

static struct wire_path
path(uint8_t from, uint8_t to)
{
	return (struct wire_path){ .smac = { 2, 0, 0, 0, 0, from },
		.dmac = { 2, 0, 0, 0, 0, to },
		.src_ip = { 192, 0, 2, from },
		.dst_ip = { 192, 0, 2, to },
		.tos = 2,
		.ttl = 64,
		.sport = 0xc000 };
}

static void
make_qp(uint32_t i)
{
	const struct qp_alloc_params params = {
		.max_recv_wr = PACKETS, .max_recv_sge = 1, .max_dest_rd_atomic = 16
	};
	struct qp *qp = qp_alloc(&params);

	if (qp == NULL)
		die("no QP");
	qp->qpn = 0x100 + i;
	qp->pd = 1;
	qp->port = (uint8_t)b.port;
	qp->recv_cq = qp->send_cq = &b.cq;
	if (qp_table_insert(b.conf.qps, qp) != 0)
		die("no slot");
	ring_attach(&b.rq[i], qp->rq.sh, qp->rq.mask + 1, qp->rq.stride, false);
	b.qp[i] = qp;
}

/** From RESET to RTS with this path MTU, at PSN 0. */
static void
bring_up(struct qp *qp, uint16_t pmtu)
{
	struct qp_attr a = { .qp_state = QPS_RESET,
		.pkey = 0xffff,
		.qp_access_flags = 15,
		.path_mtu = pmtu,
		.dest_qp_num = qp->qpn,
		.max_dest_rd_atomic = 16,
		.min_rnr_timer = 12,
		.path = path(1, 2),
		.path_resolved = true };

	qp_apply(qp, &a, QP_ATTR_STATE);
	a.qp_state = QPS_INIT;
	qp_apply(qp, &a, QP_ATTR_STATE | QP_ATTR_PKEY_INDEX | QP_ATTR_ACCESS_FLAGS);
	a.qp_state = QPS_RTR;
	qp_apply(qp, &a,
		QP_ATTR_STATE | QP_ATTR_AV | QP_ATTR_PATH_MTU | QP_ATTR_DEST_QPN | QP_ATTR_RQ_PSN |
			QP_ATTR_MAX_DEST_RD_ATOMIC | QP_ATTR_MIN_RNR_TIMER);
	a.qp_state = QPS_RTS;
	qp_apply(qp, &a, QP_ATTR_STATE);
}

static void
set_up(void)
{
	struct mem_region *r = mem_region_alloc();

	make_port();
	b.conf = (struct worker_conf){ .ports_n = 1,
		.workers_n = 1,
		.crc = crc_isal(),
		.qps = qp_table_create(1024, 0),
		.mem = mem_table_create(16) };
	b.conf.ports[0] = (struct pipeline_port){ .id = b.port, .polls_rx = true, .pool = b.pool };
	b.path = path(2, 1);
	b.conf.ports[0].addr.has_ipv4 = true;
	memcpy(b.conf.ports[0].addr.mac, b.path.dmac, 6);
	memcpy(b.conf.ports[0].addr.ipv4, b.path.dst_ip, 4);
	if (r == NULL || b.conf.qps == NULL || b.conf.mem == NULL ||
		mem_area_create(&r->area, MR_LEN, -1, MEM_AREA_HUGE) != 0 ||
		mem_area_create(&b.cq.area, ring_size(1024, 64), -1, 0) != 0)
		die("no memory");
	r->va = MR_VA;
	r->length = MR_LEN;
	r->host = r->area.base;
	r->key = MR_KEY;
	r->pd = 1;
	r->access = 15;
	if (mem_table_add(b.conf.mem, r) != 0)
		die("no region");
	ring_cq_attach(&b.cq.ring, b.cq.area.base, 1024, 1024, true);
	for (uint32_t i = 0; i < QPS; i++)
		make_qp(i);
	b.timed = worker_create(&b.conf);
	b.conf.stage_cycles = true;
	b.lapped = worker_create(&b.conf);
	if (b.timed == NULL || b.lapped == NULL)
		die("no worker");
}

/* ---- one repetition -------------------------------------------------------------------------- */

/** Put PACKETS requests on the wire, each QP's in PSN order. */
static void
prepare(const struct bench_case *c)
{
	uint32_t next[QPS];

	for (uint32_t i = 0; i < QPS; i++)
		next[i] = b.qp[i]->resp.epsn.v;
	for (uint32_t i = 0; i < PACKETS; i++) {
		uint32_t q = i % c->qps;
		struct wire_fields f = { .opcode = c->opcode,
			.flags = PKT_ACKREQ,
			.pkey = 0xffff,
			.dest_qpn = b.qp[q]->qpn,
			.psn = c->duplicate ? psn_sub(psn(next[q]), 1) : psn(next[q]),
			.reth = { MR_VA + q * 8192u, MR_KEY, c->len },
			.payload = b.payload };
		struct rte_mbuf *m = rte_pktmbuf_alloc(b.pool);
		uint8_t *frame;
		int len;

		if (m == NULL)
			die("pool is empty");
		next[q]++;
		f.payload_len = c->opcode == OP_RC_READ_REQUEST ? 0 : c->len;
		frame = rte_pktmbuf_mtod(m, uint8_t *);
		len = wire_build(&b.path, &f, 0, frame, rte_pktmbuf_tailroom(m));
		icrc_seal(b.conf.crc, frame, 14, false, (uint32_t)len);
		if (c->bad_icrc)
			frame[len - 1] ^= 1;
		m->data_len = (uint16_t)len;
		m->pkt_len = (uint32_t)len;
		if (rte_ring_enqueue(b.to, m) != 0)
			die("wire is full");
		if (c->opcode == OP_RC_SEND_ONLY) {
			struct ring_recv_wqe *w = ring_produce_slot(&b.rq[q], PACKETS);

			if (w == NULL)
				die("receive queue is full");
			w->wr_id = i;
			w->num_sge = 1;
			w->sge[0] = (struct ring_sge){ MR_VA + q * 8192u, 4096, MR_KEY };
			ring_produce_commit(&b.rq[q]);
		}
	}
}

/** Empty the far end and the completion queue. @return frames found. */
static uint32_t
clear(void)
{
	struct ring_cqe cqe[32];
	void *m[64];
	uint32_t n, sum = 0;

	while ((n = rte_ring_dequeue_burst(b.from, m, 64, NULL)) != 0) {
		rte_pktmbuf_free_bulk((struct rte_mbuf **)(void *)m, n);
		sum += n;
	}
	while (ring_cq_poll(&b.cq.ring, cqe, 32) != 0)
		;
	return sum;
}

/** @return cycles for all packets of the wire. */
static uint64_t
run(struct worker *w)
{
	uint64_t start = rte_rdtsc_precise();

	while (rte_ring_count(b.to) != 0)
		worker_poll(w, 1);
	return rte_rdtsc_precise() - start;
}

/** The same frames, received and sent back as they are. */
static uint64_t
run_empty(void)
{
	uint64_t start = rte_rdtsc_precise();

	while (rte_ring_count(b.to) != 0) {
		struct rte_mbuf *m[32];
		uint16_t n = rte_eth_rx_burst(b.port, 0, m, 32);

		rte_eth_tx_burst(b.port, 0, m, n);
	}
	return rte_rdtsc_precise() - start;
}

/* ---- figures --------------------------------------------------------------------------------- */

static int
compare(const void *x, const void *y)
{
	double a = *(const double *)x, c = *(const double *)y;

	return (a > c) - (a < c);
}

static double
median(double *v, uint32_t n)
{
	qsort(v, n, sizeof(*v), compare);
	return v[n / 2];
}

/** out: total, empty loop, then one figure a stage. */
static void
measure(const struct bench_case *c, uint32_t repeats, double out[COLUMNS])
{
	static double v[COLUMNS][MAX_REPEATS];
	uint32_t want = c->bad_icrc ? 0 : PACKETS / 32 * c->qps, frames = 0;

	for (uint32_t i = 0; i < QPS; i++)
		bring_up(b.qp[i], c->pmtu);
	for (uint32_t r = 0; r < repeats + 10; r++) {
		uint32_t at = r < 10 ? 0 : r - 10; /* the first ones warm up */
		uint64_t before[STAGE_MAX];

		prepare(c);
		v[0][at] = (double)run(b.timed) / PACKETS;
		frames = clear();
		prepare(c);
		v[1][at] = (double)run_empty() / PACKETS;
		clear();
		for (uint32_t i = 0; c->opcode == OP_RC_SEND_ONLY && i < QPS; i++)
			ring_consume_done(&b.qp[i]->rq, ring_consume_count(&b.qp[i]->rq));
		prepare(c);
		memcpy(before, worker_stage_cycles(b.lapped), sizeof(before));
		run(b.lapped);
		for (uint32_t s = 0; s < STAGE_MAX; s++)
			v[2 + s][at] =
				(double)(worker_stage_cycles(b.lapped)[s] - before[s]) / PACKETS;
		clear();
	}
	if (frames != want)
		fprintf(stderr, "%s: %u frames came back, not %u\n", c->name, frames, want);
	for (uint32_t i = 0; i < COLUMNS; i++)
		out[i] = median(v[i], repeats);
}

static const char *const columns[COLUMNS] = { "total", "empty", "rx", "parse", "icrc", "steer",
	"respond", "tx" };

static void
print_json(FILE *f, const struct bench_case *c, const double *v, bool first)
{
	fprintf(f, "%s\n    {\"case\": \"%s\", \"bytes\": %u, \"qps\": %u", first ? "" : ",",
		c->name, c->len, c->qps);
	for (uint32_t i = 0; i < COLUMNS; i++)
		fprintf(f, ", \"%s\": %.1f", columns[i], v[i]);
	fprintf(f, "}");
}

static bool
is_chosen(const char *name, int argc, char **argv, int from)
{
	if (from >= argc)
		return true;
	for (int i = from; i < argc; i++)
		if (strcmp(argv[i], name) == 0)
			return true;
	return false;
}

int
main(int argc, char **argv)
{
	uint32_t repeats = 301;
	FILE *json = NULL;
	bool first = true;
	int at = 1;

	for (; at + 1 < argc && strncmp(argv[at], "--", 2) == 0; at += 2) {
		if (strcmp(argv[at], "--json") == 0)
			json = fopen(argv[at + 1], "w");
		else if (strcmp(argv[at], "--repeats") == 0)
			repeats = (uint32_t)strtoul(argv[at + 1], NULL, 10);
		else
			die("unknown option");
		if (strcmp(argv[at], "--json") == 0 && json == NULL)
			die("cannot write the JSON file");
	}
	if (repeats == 0 || repeats > MAX_REPEATS)
		die("--repeats is 1 to 2001");

	set_up();
	if (json != NULL)
		fprintf(json,
			"{\n  \"unit\": \"TSC cycles per packet, median\",\n"
			"  \"tsc_hz\": %" PRIu64 ",\n  \"crc\": \"%s\",\n  \"repeats\": %u,\n"
			"  \"packets\": %d,\n  \"cases\": [",
			rte_get_tsc_hz(), b.conf.crc->name, repeats, PACKETS);
	printf("TSC cycles per packet (%.0f MHz), median of %u runs of %d packets\n%-20s",
		(double)rte_get_tsc_hz() / 1e6, repeats, PACKETS, "case");
	for (uint32_t i = 0; i < COLUMNS; i++)
		printf(" %8s", columns[i]);
	printf("\n");
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		double v[COLUMNS];

		if (!is_chosen(cases[i].name, argc, argv, at))
			continue;
		measure(&cases[i], repeats, v);
		printf("%-20s", cases[i].name);
		for (uint32_t k = 0; k < COLUMNS; k++)
			printf(" %8.1f", v[k]);
		printf("\n");
		if (json != NULL)
			print_json(json, &cases[i], v, first);
		first = false;
	}
	if (json != NULL) {
		fprintf(json, "\n  ]\n}\n");
		fclose(json);
	}
	worker_destroy(b.timed);
	worker_destroy(b.lapped);
	return 0;
}
