/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two ports in memory, and their buffers. The second one has priorities; what this process sends to
 * its address may be lost, or come late.
 */
#include <rte_mempool.h>

#include "fuzz_worker.h"
#include "net_pair.h"

enum { DATA_ROOM = 2048, WIRE_RING = 64, HELD = 8, LOSE = 7, HOLD = 3, PAUSE_FRAME = 60 };

static struct {
	struct rte_mbuf *m[HELD];
	uint32_t n;
	uint32_t seen;
} wire;

struct prio_port fuzz_prio = { .first = 1, .weight = { [3] = 1, [4] = 2, [5] = 5 } };

static void *hoard[MBUFS];
static uint32_t hoard_n;

uint8_t
bed_host(uint32_t port, bool peer)
{
	return (uint8_t)(port * 16 + (peer ? 2 : 1));
}

static bool
impair_is_on(void *ctx)
{
	(void)ctx;
	return fw.impaired;
}

/** Some are lost, some come behind those that follow. */
static uint16_t
impair_receive(void *ctx, struct rte_mbuf **m, uint16_t n, uint16_t max)
{
	uint16_t kept = 0;

	(void)ctx;
	for (uint32_t i = 0; i < n; i++) {
		wire.seen++;
		if (wire.seen % LOSE == 0)
			rte_pktmbuf_free(m[i]);
		else if (wire.seen % HOLD == 0 && wire.n < HELD)
			wire.m[wire.n++] = m[i];
		else
			m[kept++] = m[i];
	}
	while (wire.n != 0 && kept < max && wire.seen % HOLD != 0)
		m[kept++] = wire.m[--wire.n];
	return kept;
}

static const struct pipeline_impair impair = { impair_is_on, impair_receive, NULL };

void
ports_start(void)
{
	static const char *const name[PORTS] = { "fuzz0", "fuzz1" };

	fw.pool = rte_pktmbuf_pool_create("fuzz", MBUFS, 0, 0, DATA_ROOM + RTE_PKTMBUF_HEADROOM, 0);
	FUZZ_CHECK(fw.pool != NULL);
	memset(fuzz_prio.map.dscp, PRIO_NONE, sizeof(fuzz_prio.map.dscp));
	fuzz_prio.map.dscp[8] = 3; /* CNPs */
	ports_forget();
	for (uint32_t i = 0; i < PORTS; i++) {
		FUZZ_CHECK(net_pair_create_open(name[i], WIRE_RING, 0, &fw.port[i], &fw.to[i],
				   &fw.from[i]) == 0);
		FUZZ_CHECK(net_pair_start(fw.port[i], fw.pool) == 0);
	}
}

void
ports_conf(struct worker_conf *conf, uint32_t i)
{
	for (uint32_t p = 0; p < PORTS; p++) {
		const uint8_t host = bed_host(p, false);

		conf->ports[p] = (struct pipeline_port){ .id = fw.port[p],
			.polls_rx = i == p,
			.rx_worker = (uint16_t)p,
			.pool = fw.pool,
			.max_frame = 1514,
			.impair = p == 1 ? &impair : NULL,
			.prio = p == 1 ? &fuzz_prio : NULL,
			.addr = { .mac = { 2, 0, 0, 0, 0, host },
				.has_ipv4 = true,
				.has_ipv6 = true,
				.ipv4 = { 192, 0, 2, host },
				.ipv6 = { 0xfd, [15] = host } } };
	}
}

void
ports_drain(void)
{
	void *m;

	for (uint32_t i = 0; i < PORTS && !fw.stuck; i++)
		while (rte_ring_dequeue(fw.from[i], &m) == 0)
			rte_pktmbuf_free(m);
}

void
ports_forget(void)
{
	while (wire.n != 0)
		rte_pktmbuf_free(wire.m[--wire.n]);
	wire.seen = 0;
	memset(&fuzz_prio.pause, 0, sizeof(fuzz_prio.pause));
	fuzz_prio.pause.conf = (struct pause_conf){
		.obeyed = 0xfe, .most = 200 * TIME_NS_PER_MS, .restore = 400 * TIME_NS_PER_MS
	};
}

void
ports_pause(uint8_t prios, uint8_t quanta)
{
	static const uint8_t to[6] = { 0x01, 0x80, 0xc2, 0, 0, 0x01 };
	struct rte_mbuf *m = rte_pktmbuf_alloc(fw.pool);
	uint8_t *frame;

	if (m == NULL)
		return;
	frame = (uint8_t *)rte_pktmbuf_append(m, PAUSE_FRAME);
	if (frame == NULL) {
		rte_pktmbuf_free(m);
		return;
	}
	memset(frame, 0, PAUSE_FRAME);
	memcpy(frame, to, sizeof(to));
	frame[6] = 2;
	be16_store(frame + 12, PAUSE_TYPE);
	be16_store(frame + 14, PAUSE_BY_PRIORITY);
	be16_store(frame + 16, prios);
	for (uint32_t i = 0; i < PRIO_N; i++)
		be16_store(frame + 18 + 2 * i, (uint16_t)(quanta << 8));
	port_put(1, m);
}

void
port_put(uint32_t port, struct rte_mbuf *m)
{
	m->port = fw.port[port];
	if (rte_ring_enqueue(fw.to[port], m) != 0)
		rte_pktmbuf_free(m);
}

void
ports_hoard(uint32_t left)
{
	const uint32_t free = rte_mempool_avail_count(fw.pool);

	if (left == 0) {
		rte_mempool_put_bulk(fw.pool, hoard, hoard_n);
		hoard_n = 0;
	} else if (free > left &&
		   rte_mempool_get_bulk(fw.pool, hoard + hoard_n, free - left) == 0) {
		hoard_n += free - left;
	}
}
