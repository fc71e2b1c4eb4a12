/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The far end of scripts/bench/link: as many RDMA WRITE ONLY requests as a port takes, of QPS queue
 * pairs in turn, and a count of what comes back. The frames are made once; what changes from round
 * to round, PSN and ICRC, is patched in: the ICRC is linear, so that the bytes of a PSN change it
 * by values that are looked up. The frames are well formed for whoever reads them, and a forwarder
 * does not mind.
 *
 *   bench_link EAL-ARGUMENTS -- BYTES
 *
 * Each line "PORT MS" of its standard input is a measurement of so many milliseconds over that
 * port (0, 1): it waits for the link and for the first frame that comes back, warms up, and prints
 * a JSON object. It ends with its standard input, so that the other ends can go first. Addresses,
 * numbers and keys are those of scripts/bench/link.
 */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <rte_cycles.h>
#include <rte_eal.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include "be.h"
#include "compiler.h"
#include "crc_isal.h"
#include "icrc.h"
#include "wire_build.h"

enum { QPS = 32, FRAMES = 256, BURST = 256, DESCRIPTORS = 1024, BATCH_BYTES = 256 * 1024 };
enum { L3 = 14, BTH = 42, PSN_AT = 51, AETH = 54, MAX_BYTES = 4096, ROOM = MAX_BYTES + 512 };
enum { PLACES = 128, PORTS = 2, WAIT_S = 30, WARM_UP_MS = 20, DRAIN_MS = 1 };

#define REGION_VA  0x100000u
#define REGION_KEY 0x1001u

/** One of the links, and how it does. */
struct end {
	uint16_t port;
	uint64_t next; /* number of the next frame */
	uint64_t sent;
	uint64_t refused; /* bursts that the port did not take whole */
	uint64_t bursts;
	uint64_t received;
	uint64_t naks;
};

static struct {
	uint32_t len;               /* of a frame */
	uint32_t batch;             /* frames: sent at once, and how many there are */
	uint32_t icrc[FRAMES];      /* with PSN 0 */
	uint32_t change[3][256];    /* of the ICRC, by byte of the PSN and its value */
	struct rte_mbuf *m[FRAMES]; /* sent over and over */
	struct end ends[PORTS];
} g;

static _Noreturn void
die(const char *what)
{
	fprintf(stderr, "bench_link: %s\n", what);
	exit(1);
}

/* ---- frames ---------------------------------------------------------------------------------- */

static void
frame_make(uint8_t *frame, uint32_t i, uint32_t bytes)
{
	static const uint8_t payload[MAX_BYTES] = { 1 };
	const struct wire_path path = { .smac = { 2, 0, 0, 0, 0, 0x22 },
		.dmac = { 2, 0, 0, 0, 0, 0x11 },
		.src_ip = { 192, 0, 2, 2 },
		.dst_ip = { 192, 0, 2, 1 },
		.tos = 2,
		.ttl = 64,
		.sport = 0xc000 };
	const struct wire_fields f = { .opcode = OP_RC_WRITE_ONLY,
		.flags = PKT_ACKREQ | PKT_MIGREQ,
		.pkey = 0xffff,
		.dest_qpn = 0x100 + i % QPS,
		.reth = { REGION_VA + (uint64_t)(i % PLACES) * MAX_BYTES, REGION_KEY, bytes },
		.payload = payload,
		.payload_len = bytes };
	int len = wire_build(&path, &f, 0, frame, ROOM);

	if (len < 0)
		die("the frame does not fit");
	g.len = (uint32_t)len;
	icrc_seal(crc_isal(), frame, L3, false, g.len);
}

/** What the bytes of a PSN change about the ICRC, found by trying them. */
static void
changes_find(const uint8_t *frame)
{
	const uint32_t covered = g.len - L3 - WIRE_ICRC_LEN;
	uint8_t copy[ROOM];
	uint32_t zero;

	memcpy(copy, frame, g.len);
	zero = icrc_compute(crc_isal(), copy + L3, false, covered);
	for (uint32_t k = 0; k < 3; k++) {
		for (uint32_t v = 0; v < 256; v++) {
			copy[PSN_AT + k] = (uint8_t)v;
			g.change[k][v] = icrc_compute(crc_isal(), copy + L3, false, covered) ^ zero;
		}
		copy[PSN_AT + k] = 0;
	}
}

static void
frames_make(struct rte_mempool *pool, uint32_t bytes)
{
	g.batch = BATCH_BYTES / (bytes + 1) / QPS * QPS;
	g.batch = RTE_MIN(g.batch, (uint32_t)FRAMES);
	for (uint32_t i = 0; i < g.batch; i++) {
		struct rte_mbuf *m = rte_pktmbuf_alloc(pool);
		uint8_t *frame;

		if (m == NULL)
			die("no mbuf");
		frame = rte_pktmbuf_mtod(m, uint8_t *);
		frame_make(frame, i, bytes);
		m->data_len = (uint16_t)g.len;
		m->pkt_len = g.len;
		g.icrc[i] = icrc_compute(crc_isal(), frame + L3, false, g.len - L3 - WIRE_ICRC_LEN);
		g.m[i] = m;
	}
	changes_find(rte_pktmbuf_mtod(g.m[0], uint8_t *));
}

/** Frame number n of all: its QP's PSN goes up by one from round to round. */
static struct rte_mbuf *
frame(uint64_t n)
{
	const uint32_t psn = (uint32_t)(n / QPS), i = (uint32_t)(n % g.batch);
	struct rte_mbuf *m = g.m[i];
	uint8_t *p = rte_pktmbuf_mtod(m, uint8_t *);

	p[PSN_AT] = (uint8_t)(psn >> 16);
	p[PSN_AT + 1] = (uint8_t)(psn >> 8);
	p[PSN_AT + 2] = (uint8_t)psn;
	icrc_store(p + g.len - WIRE_ICRC_LEN, g.icrc[i] ^ g.change[0][p[PSN_AT]] ^
						      g.change[1][p[PSN_AT + 1]] ^
						      g.change[2][p[PSN_AT + 2]]);
	return m;
}

/* ---- the ports ------------------------------------------------------------------------------- */

static void
port_open(uint16_t port, struct rte_mempool *pool)
{
	struct rte_eth_conf conf = { 0 };
	uint16_t rxd = DESCRIPTORS, txd = DESCRIPTORS;

	if (rte_eth_dev_configure(port, 1, 1, &conf) != 0 ||
		rte_eth_dev_adjust_nb_rx_tx_desc(port, &rxd, &txd) != 0 ||
		rte_eth_rx_queue_setup(port, 0, rxd, SOCKET_ID_ANY, NULL, pool) != 0 ||
		rte_eth_tx_queue_setup(port, 0, txd, SOCKET_ID_ANY, NULL) != 0 ||
		rte_eth_dev_start(port) != 0)
		die("a port does not start");
	g.ends[port].port = port;
}

static struct rte_mempool *
ports_open(void)
{
	struct rte_mempool *pool = rte_pktmbuf_pool_create("link", 16383, 256, 0,
		RTE_ALIGN_CEIL(ROOM + RTE_PKTMBUF_HEADROOM, 64), SOCKET_ID_ANY);

	if (pool == NULL)
		die("no memory for frames: raise EAL's -m");
	if (rte_eth_dev_count_avail() != PORTS)
		die("two ports, please: name them with --vdev");
	for (uint16_t i = 0; i < PORTS; i++)
		port_open(i, pool);
	return pool;
}

static uint32_t
take(struct end *e)
{
	struct rte_mbuf *m[BURST];
	uint32_t n = rte_eth_rx_burst(e->port, 0, m, BURST);

	for (uint32_t i = 0; i < n; i++) {
		const uint8_t *p = rte_pktmbuf_mtod(m[i], const uint8_t *);

		e->naks += p[BTH] == OP_RC_ACKNOWLEDGE && p[AETH] >= 0x60;
	}
	rte_pktmbuf_free_bulk(m, n);
	e->received += n;
	return n;
}

/**
 * What came back first, so that the other end never waits for room; then a batch. Batches are
 * large, so that the two ends are not at the same lines of the rings all the time.
 */
static void
turn(struct end *e)
{
	struct rte_mbuf *m[BURST];
	uint16_t taken;

	for (uint32_t i = 0; i < DESCRIPTORS / BURST && take(e) == BURST; i++)
		;
	for (uint32_t i = 0; i < g.batch; i++) {
		m[i] = frame(e->next + i);
		rte_mbuf_refcnt_set(m[i], 2); /* the port frees it once it has copied it */
	}
	taken = rte_eth_tx_burst(e->port, 0, m, (uint16_t)g.batch);
	e->next += taken;
	e->sent += taken;
	e->bursts++;
	e->refused += taken != g.batch;
}

static uint64_t
in_ms(uint64_t ms)
{
	return rte_rdtsc() + rte_get_tsc_hz() / 1000 * ms;
}

static void
run_for(struct end *e, uint64_t ms)
{
	const uint64_t end = in_ms(ms);

	while (rte_rdtsc() < end)
		turn(e);
}

static void
wait_for_link(const struct end *e)
{
	struct rte_eth_link link = { 0 };

	for (uint32_t i = 0; i < WAIT_S * 1000; i++) {
		if (rte_eth_link_get_nowait(e->port, &link) == 0 && link.link_status != 0)
			return;
		rte_delay_us_sleep(1000);
	}
	die("the other end does not come");
}

static void
wait_for_answer(struct end *e)
{
	e->received = 0;
	for (uint32_t i = 0; i < WAIT_S * 1000 && e->received == 0; i++)
		run_for(e, 1);
	if (e->received == 0)
		die("nothing comes back");
}

static void
measure(struct end *e, uint64_t ms)
{
	uint64_t start, cycles, end;

	run_for(e, WARM_UP_MS);
	e->sent = e->received = e->naks = e->refused = e->bursts = 0;
	start = rte_rdtsc_precise();
	run_for(e, ms);
	cycles = rte_rdtsc_precise() - start;
	printf("{\"seconds\": %.6f, \"tsc_hz\": %" PRIu64 ", \"frame_bytes\": %" PRIu32
	       ", \"sent\": %" PRIu64 ", \"received\": %" PRIu64 ", \"naks\": %" PRIu64
	       ", \"full\": %.4f}\n",
		(double)cycles / (double)rte_get_tsc_hz(), rte_get_tsc_hz(), g.len, e->sent,
		e->received, e->naks, (double)e->refused / (double)e->bursts);
	end = in_ms(DRAIN_MS);
	while (take(e) != 0 || rte_rdtsc() < end)
		;
	fflush(stdout);
}

int
main(int argc, char **argv)
{
	int used = rte_eal_init(argc, argv);
	unsigned long bytes, ms;
	unsigned int port;
	char line[64];

	if (used < 0)
		die("EAL does not start");
	if (argc - used != 2)
		die("usage: bench_link EAL-ARGUMENTS -- BYTES");
	bytes = strtoul(argv[used + 1], NULL, 10);
	if (bytes == 0 || bytes > MAX_BYTES)
		die("BYTES is 1 to 4096");
	frames_make(ports_open(), (uint32_t)bytes);
	while (fgets(line, sizeof(line), stdin) != NULL) {
		if (sscanf(line, "%u %lu", &port, &ms) != 2 || port >= PORTS || ms == 0)
			die("a line is \"PORT MS\"");
		wait_for_link(&g.ends[port]);
		wait_for_answer(&g.ends[port]);
		measure(&g.ends[port], ms);
	}
	for (uint16_t i = 0; i < PORTS; i++)
		rte_eth_dev_stop(i);
	rte_eal_cleanup();
	return 0;
}
