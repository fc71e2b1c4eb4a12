/* SPDX-License-Identifier: BSD-3-Clause */
#include "impair_bed.h"

#include <stdio.h>
#include <unistd.h>

#include <rte_eal.h>
#include <rte_ethdev.h>
#include <rte_malloc.h>
#include <rte_ring.h>

#include "../../clib/eal.h"
#include "net_pair.h"
#include "wire_build.h"

#define POOL_MBUFS 4095

struct bed bed;

static unsigned int allocated; /* by DPDK, before the impairment */

static struct {
	uint16_t port;
	struct rte_ring *to;
	struct rte_ring *from;
} net;

static ns_t
bed_clock(void *arg)
{
	return *(const ns_t *)arg;
}

int
bed_group_setup(void **state)
{
	char prefix[64];
	char *argv[] = { (char *)(uintptr_t) "unit", (char *)(uintptr_t) "--no-huge",
		(char *)(uintptr_t) "--no-shconf", (char *)(uintptr_t) "--no-pci",
		(char *)(uintptr_t) "--no-telemetry", (char *)(uintptr_t) "--log-level=critical",
		(char *)(uintptr_t) "-m", (char *)(uintptr_t) "64", prefix, NULL };

	(void)state;
	snprintf(prefix, sizeof(prefix), "--file-prefix=impair%d", (int)getpid());
	if (eal_init_anywhere(9, argv) < 0)
		return -1;
	rmdir(rte_eal_get_runtime_dir()); /* nothing is in it */
	if (net_pair_create_open("impair", 4096, 0, &net.port, &net.to, &net.from) != 0)
		return -1;
	/* No cache: what the pool has can then be counted. */
	bed.pool =
		rte_pktmbuf_pool_create("impair", POOL_MBUFS, 0, 0, 2048 + RTE_PKTMBUF_HEADROOM, 0);
	return bed.pool == NULL ? -1 : net_pair_start(net.port, bed.pool);
}

static unsigned int
allocations(void)
{
	struct rte_malloc_socket_stats s;

	assert_int_equal(rte_malloc_get_socket_stats(0, &s), 0);
	assert_true(s.alloc_count > 0);
	return s.alloc_count;
}

void
bed_start(const struct impair_conf *conf)
{
	const struct impair_port at = {
		.port_id = net.port, .pool = bed.pool, .clock = bed_clock, .clock_arg = &bed.now
	};

	assert_int_equal(rte_mempool_avail_count(bed.pool), POOL_MBUFS);
	allocated = allocations();
	bed.now = TIME_NS_PER_S;
	bed.put = 0;
	bed.got = 0;
	bed.n = 0;
	assert_int_equal(impair_attach(&at, conf, &bed.im), 0);
}

void
bed_start_rules(uint64_t seed, struct impair_rule *rules, uint32_t n)
{
	const struct impair_conf conf = { .seed = seed, .rules = rules, .n_rules = n };

	bed_start(&conf);
}

void
bed_stop(void)
{
	for (uint32_t i = 0; i < bed.n; i++)
		rte_pktmbuf_free(bed.m[i]);
	bed.n = 0;
	impair_detach(bed.im);
	bed.im = NULL;
	assert_int_equal(rte_ring_count(net.to), 0);
	assert_int_equal(rte_mempool_avail_count(bed.pool), POOL_MBUFS);
	assert_int_equal(allocations(), allocated);
}

struct rte_mbuf *
bed_frame(uint32_t qpn, uint32_t psn_value, uint8_t opcode, bool ipv6)
{
	struct wire_path path = { .dmac = { 2, 0, 0, 0, 0, 1 },
		.smac = { 2, 0, 0, 0, 0, 2 },
		.ipv6 = ipv6,
		.src_ip = { 192, 0, 2, 2 },
		.dst_ip = { 192, 0, 2, 1 },
		.tos = 0x02,
		.ttl = 64,
		.sport = 0xc123 };
	uint8_t payload[24];
	const struct wire_fields f = { .opcode = opcode,
		.pkey = 0xffff,
		.dest_qpn = qpn,
		.psn = psn(psn_value),
		.payload = payload,
		.payload_len = opcode == ACK ? 0 : sizeof(payload) };
	struct rte_mbuf *m = rte_pktmbuf_alloc(bed.pool);
	int len;

	assert_non_null(m);
	for (uint32_t i = 0; i < sizeof(payload); i += 3)
		be24_store(payload + i, psn_value);
	len = wire_build(&path, &f, 1, rte_pktmbuf_mtod(m, uint8_t *), rte_pktmbuf_tailroom(m));
	assert_true(len > 0);
	m->data_len = (uint16_t)len;
	m->pkt_len = (uint32_t)len;
	m->port = net.port;
	return m;
}

void
bed_put(struct rte_mbuf *m)
{
	assert_int_equal(rte_ring_enqueue(net.to, m), 0);
	bed.put++;
}

void
bed_send(uint32_t qpn, uint32_t psn_value)
{
	bed_put(bed_frame(qpn, psn_value, SEND_ONLY, false));
}

struct impair_counters
bed_counters(void)
{
	struct impair_counters c;

	impair_read(bed.im, &c);
	return c;
}

void
bed_poll(uint16_t max)
{
	struct impair_counters c;

	for (uint32_t i = 0; i < bed.n; i++)
		rte_pktmbuf_free(bed.m[i]);
	assert_true(max <= POLL_MAX);
	bed.n = rte_eth_rx_burst(net.port, 0, bed.m, max);
	assert_true(bed.n <= max);
	bed.got += bed.n;
	c = bed_counters();
	assert_int_equal(c.in, bed.put - rte_ring_count(net.to));
	assert_int_equal(c.out, bed.got);
	assert_int_equal(c.in + c.duplicated, c.out + c.dropped + c.queue_dropped + c.held);
}

uint32_t
bed_psn(uint32_t i)
{
	const uint8_t *frame = rte_pktmbuf_mtod(bed.m[i], const uint8_t *);

	return be24_load(frame + (be16_load(frame + 12) == 0x86dd ? 71 : 51));
}

void
bed_expect_psns(const uint32_t *psns, size_t n, int line)
{
	bool same = bed.n == n;

	for (size_t i = 0; same && i < n; i++)
		same = bed_psn((uint32_t)i) == psns[i];
	if (same)
		return;
	for (uint32_t i = 0; i < bed.n; i++)
		print_message("# got %u\n", bed_psn(i));
	fail_msg("line %d: %u frames, %zu wanted, or others", line, bed.n, n);
}
