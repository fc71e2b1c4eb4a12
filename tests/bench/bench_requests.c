/* SPDX-License-Identifier: BSD-3-Clause */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <rte_ring.h>

#include "bench_local.h"
#include "bench_requests.h"

enum { IDLE_QPS = 100000, TURNS_MAX = 4096 };

/* clang-format off */
const struct request_case request_cases[] = {
	/* name, opcode, part, bytes, path MTU, QPs, one signalled of, frames of an ACK, random,
	 * service, SGEs, network */
	{ "req_write_64", WR_RDMA_WRITE, PART_BOTH, 64, 1024, SENDERS, 1, 1, false, QPT_RC, 1, NET_IPV4 },
	{ "req_write_64_ack", WR_RDMA_WRITE, PART_RESPONSES, 64, 1024, SENDERS, 1, 1, false, QPT_RC, 1, NET_IPV4 },
	{ "req_write_64_coalesced", WR_RDMA_WRITE, PART_BOTH, 64, 1024, 1, 1, 32, false, QPT_RC, 1, NET_IPV4 },
	{ "req_write_64_quiet", WR_RDMA_WRITE, PART_BOTH, 64, 1024, SENDERS, 8, 1, false, QPT_RC, 1, NET_IPV4 },
	{ "req_write_4096", WR_RDMA_WRITE, PART_BOTH, 4096, 4096, SENDERS, 1, 1, false, QPT_RC, 1, NET_IPV4 },
	{ "req_write_parts_1024", WR_RDMA_WRITE, PART_BOTH, 16384, 1024, 2, 1, 32, false, QPT_RC, 1, NET_IPV4 },
	{ "req_write_parts_4096", WR_RDMA_WRITE, PART_BOTH, 65536, 4096, 2, 1, 32, false, QPT_RC, 1, NET_IPV4 },
	{ "req_write_64_dcqcn", WR_RDMA_WRITE, PART_RATED, 64, 1024, SENDERS, 1, 1, false, QPT_RC, 1, NET_IPV4 },
	{ "req_write_1024_dcqcn", WR_RDMA_WRITE, PART_RATED, 1024, 1024, SENDERS, 1, 1, false, QPT_RC, 1, NET_IPV4 },
	{ "req_send_64", WR_SEND, PART_BOTH, 64, 1024, SENDERS, 1, 1, false, QPT_RC, 1, NET_IPV4 },
	{ "req_send_64_sges", WR_SEND, PART_BOTH, 64, 1024, SENDERS, 1, 1, false, QPT_RC, 2, NET_IPV4 },
	{ "req_send_1024", WR_SEND, PART_BOTH, 1024, 1024, SENDERS, 1, 1, false, QPT_RC, 1, NET_IPV4 },
	{ "req_send_1024_sges", WR_SEND, PART_BOTH, 1024, 1024, SENDERS, 1, 1, false, QPT_RC, 2, NET_IPV4 },
	{ "req_send_parts_1024", WR_SEND, PART_BOTH, 16384, 1024, 2, 1, 32, false, QPT_RC, 1, NET_IPV4 },
	{ "req_send_64_imm", WR_SEND_WITH_IMM, PART_BOTH, 64, 1024, SENDERS, 1, 1, false, QPT_RC, 1, NET_IPV4 },
	{ "req_write_64_imm", WR_RDMA_WRITE_WITH_IMM, PART_BOTH, 64, 1024, SENDERS, 1, 1, false, QPT_RC, 1, NET_IPV4 },
	{ "req_ud_send_64", WR_SEND, PART_BOTH, 64, 1024, SENDERS, 1, 1, false, QPT_UD, 1, NET_IPV4 },
	{ "req_uc_write_64", WR_RDMA_WRITE, PART_BOTH, 64, 1024, SENDERS, 1, 1, false, QPT_UC, 1, NET_IPV4 },
	{ "req_read_64", WR_RDMA_READ, PART_BOTH, 64, 1024, SENDERS, 1, 1, false, QPT_RC, 1, NET_IPV4 },
	{ "req_read_4096", WR_RDMA_READ, PART_BOTH, 4096, 4096, SENDERS, 1, 1, false, QPT_RC, 1, NET_IPV4 },
	{ "req_read_parts_1024", WR_RDMA_READ, PART_BOTH, 16384, 1024, 2, 1, 1, false, QPT_RC, 1, NET_IPV4 },
	{ "req_read_parts_4096", WR_RDMA_READ, PART_BOTH, 65536, 4096, 2, 1, 1, false, QPT_RC, 1, NET_IPV4 },
	{ "req_write_64_vlan", WR_RDMA_WRITE, PART_BOTH, 64, 1024, SENDERS, 1, 1, false, QPT_RC, 1, NET_VLAN },
	{ "req_write_64_ipv6", WR_RDMA_WRITE, PART_BOTH, 64, 1024, SENDERS, 1, 1, false, QPT_RC, 1, NET_IPV6 },
	{ "req_write_4096_ipv6", WR_RDMA_WRITE, PART_BOTH, 4096, 4096, SENDERS, 1, 1, false, QPT_RC, 1, NET_IPV6 },
	{ "req_read_64_ipv6", WR_RDMA_READ, PART_BOTH, 64, 1024, SENDERS, 1, 1, false, QPT_RC, 1, NET_IPV6 },
	{ "req_write_64_1k_qps", WR_RDMA_WRITE, PART_BOTH, 64, 1024, 1024, 1, 1, true, QPT_RC, 1, NET_IPV4 },
	{ "req_write_64_64k_qps", WR_RDMA_WRITE, PART_BOTH, 64, 1024, 65536, 1, 1, true, QPT_RC, 1, NET_IPV4 },
	{ "req_write_64_1m_qps", WR_RDMA_WRITE, PART_BOTH, 64, 1024, MAX_QPS, 1, 1, true, QPT_RC, 1, NET_IPV4 },
	{ "req_ack_64k_qps", WR_RDMA_WRITE, PART_RESPONSES, 64, 1024, 65536, 1, 1, true, QPT_RC, 1, NET_IPV4 },
	{ "req_write_64_1m_timers", WR_RDMA_WRITE, PART_TIMERS, 64, 1024, SENDERS, 1, 1, false, QPT_RC, 1, NET_IPV4 },
	{ "idle_100k_qps", WR_RDMA_WRITE, PART_IDLE, 64, 1024, IDLE_QPS, 1, 1, false, QPT_RC, 1, NET_IPV4 },
	{ "local_write_4096", WR_RDMA_WRITE, PART_LOCAL, 4096, 4096, 1, 1, 1, false, QPT_RC, 1, NET_IPV4 },
	{ "local_write_64k", WR_RDMA_WRITE, PART_LOCAL, 65536, 4096, 1, 1, 1, false, QPT_RC, 1, NET_IPV4 },
	{ "local_read_4096", WR_RDMA_READ, PART_LOCAL, 4096, 4096, 1, 1, 1, false, QPT_RC, 1, NET_IPV4 },
	{ "local_read_64k", WR_RDMA_READ, PART_LOCAL, 65536, 4096, 1, 1, 1, false, QPT_RC, 1, NET_IPV4 },
	{ "local_write_64", WR_RDMA_WRITE, PART_LOCAL, 64, 1024, 1, 1, 1, false, QPT_RC, 1, NET_IPV4 },
};
/* clang-format on */
const uint32_t request_cases_n = ARRAY_LEN(request_cases);

static struct req_rig rig, other, single, rated;
static bool timers_armed;

void
requests_set_up(struct bench_rig *r, uint32_t qps)
{
	req_set_up(&rig, r, 0, RTE_MAX(qps, (uint32_t)SENDERS), false);
	req_set_up(&other, r, 1, SENDERS, false);
	req_set_up(&single, r, 2, 1, false);
	req_set_up(&rated, r, 3, SENDERS, true);
	local_set_up(r);
}

void
requests_tear_down(void)
{
	req_tear_down(&rig);
	req_tear_down(&other);
	req_tear_down(&single);
	req_tear_down(&rated);
	local_tear_down();
}

/** The bare loop makes RDMA WRITEs over IPv4 alone: other rows have it make those of 64 bytes. */
static const struct request_case *
bare_of(const struct request_case *c)
{
	return c->part <= PART_RESPONSES && c->opcode == WR_RDMA_WRITE && c->service == QPT_RC &&
			       c->net == NET_IPV4
		       ? c
		       : &request_cases[0];
}

const char *
requests_bare(const struct request_case *c)
{
	return c->part == PART_LOCAL ? "own" : bare_of(c)->name;
}

uint32_t
requests_begin(const struct request_case *c)
{
	if (c->part == PART_LOCAL)
		return local_begin(c);
	if (c->part == PART_TIMERS && !timers_armed) {
		req_arm_timers(&other);
		timers_armed = true;
	}
	req_begin(&other, c);
	req_begin(&single, c);
	req_begin(&rated, c);
	req_bare_begin(&rig, bare_of(c));
	return req_begin(&rig, c);
}

/** Turns until as many frames are in this ring as should be. */
static bool
until(struct req_rig *q, struct rte_ring *ring, uint32_t n, struct span *s)
{
	uint32_t turns = 0;
	bool good;

	*s = span_begin();
	while (rte_ring_count(ring) != n && ++turns != TURNS_MAX)
		req_turn(q, s->start);
	good = span_end(s);
	q->cycles += s->cycles;
	return good;
}

/** n frames through the port and back, without a worker. @return cycles a frame, or -1. */
static double
empty_loop(struct bench_rig *r, uint32_t n)
{
	struct rte_mbuf *all[MAX_PACKETS], *m[PIPELINE_BURST];
	struct span s;
	bool good;

	if (rte_pktmbuf_alloc_bulk(r->pool, all, n) != 0 ||
		rte_ring_enqueue_bulk(r->to, (void **)all, n, NULL) != n)
		die("no frames");
	s = span_begin();
	while (rte_ring_count(r->to) != 0)
		rte_eth_tx_burst(r->port, 0, m, rte_eth_rx_burst(r->port, 0, m, PIPELINE_BURST));
	good = span_end(&s);
	if (rte_ring_dequeue_bulk(r->from, (void **)all, n, NULL) != n)
		die("frames are lost");
	rte_pktmbuf_free_bulk(all, n);
	return good ? (double)s.cycles / n : -1;
}

/** What belongs to the row, for each request. */
static double
cycles_of(const struct request_case *c, uint32_t n, const struct span *sending,
	const struct span *receiving)
{
	const uint64_t sum = c->part == PART_RESPONSES ? 0 : sending->cycles;

	return (double)(sum + receiving->cycles) / n;
}

/**
 * Post, send, answer, take the answers.
 * @param laps count cycles by stage.
 * @return cycles a packet, or -1.
 */
static double
sample(struct req_rig *q, const struct request_case *c, uint32_t n, bool laps)
{
	struct stats_load *load = worker_load(q->worker);
	struct span sending, receiving;
	uint32_t sent, done;
	const uint32_t frames = case_requests(c, n), wanted = n / case_parts(c) / c->signal_every;
	bool good;

	req_post(q, c, n);
	load->measure = laps && c->part != PART_RESPONSES;
	good = until(q, q->r->from, frames, &sending);
	req_answer(q, c, &sent);
	load->measure = laps;
	good &= until(q, q->r->to, 0, &receiving);
	load->measure = false;
	done = req_completions(q);
	if (sent != frames || done != wanted)
		fprintf(stderr, "%s: %" PRIu32 " frames, %" PRIu32 " completions\n", c->name, sent,
			done);
	return good ? cycles_of(c, n, &sending, &receiving) : -1;
}

/** The same of the bare loop, which makes RDMA WRITEs only. */
static double
bare_sample(struct req_rig *q, const struct request_case *c, uint32_t n)
{
	struct span sending, receiving;
	uint32_t sent = 0;
	bool good;

	req_bare_post(q, c, n);
	sending = span_begin();
	while (sent < n)
		sent += bare_send(&q->bare, q->work + sent, n - sent);
	good = span_end(&sending);
	req_answer(q, c, &sent);
	if (sent != n)
		die("the bare loop lost frames");
	receiving = span_begin();
	while (rte_ring_count(q->r->to) != 0)
		bare_acks(&q->bare);
	good &= span_end(&receiving);
	return good ? cycles_of(c, n, &sending, &receiving) : -1;
}

/** @return cycles of a turn, or -1. */
static double
idle(struct req_rig *q, uint32_t turns)
{
	struct span s = span_begin();

	for (uint32_t i = 0; i < turns; i++)
		worker_poll(q->worker, 1);
	return span_end(&s) ? (double)s.cycles / turns : -1;
}

static double
idle_empty(struct bench_rig *r, uint32_t turns)
{
	struct rte_mbuf *m[PIPELINE_BURST];
	struct span s = span_begin();

	for (uint32_t i = 0; i < turns; i++)
		rte_eth_tx_burst(r->port, 0, m, rte_eth_rx_burst(r->port, 0, m, PIPELINE_BURST));
	return span_end(&s) ? (double)s.cycles / turns : -1;
}

static bool
idle_round(uint32_t n, double v[COLUMNS])
{
	double one = idle(&single, n);

	v[TOTAL] = idle(&rig, n);
	v[EMPTY] = idle_empty(rig.r, n);
	v[RATIO] = v[TOTAL] / one;
	v[BY_BARE] = v[TOTAL] / v[BARE];
	return one >= 0 && v[TOTAL] >= 0 && v[BARE] >= 0 && v[EMPTY] >= 0;
}

bool
requests_round(const struct request_case *c, uint32_t n, double v[COLUMNS])
{
	struct req_rig *q = c->part == PART_TIMERS ? &other : c->part == PART_RATED ? &rated : &rig;
	const struct stats_load *load = worker_load(q->worker);
	uint64_t before[STAGE_MAX];
	double without = 0, lapped;

	if (c->part == PART_LOCAL)
		return local_round(c, n, v);
	memset(v, 0, COLUMNS * sizeof(v[0]));
	v[BARE] = bare_sample(&rig, bare_of(c), n);
	if (c->part == PART_IDLE)
		return idle_round(n, v);
	if (q != &rig)
		without = sample(&rig, c, n, false);
	v[TOTAL] = sample(q, c, n, false);
	v[EMPTY] = empty_loop(q->r, n);
	v[BY_BARE] = v[TOTAL] / v[BARE];
	v[RATIO] = without > 0 ? v[TOTAL] / without : v[BY_BARE];
	memcpy(before, load->cycles, sizeof(before));
	lapped = sample(q, c, n, true);
	for (uint32_t s = 0; s < STAGE_MAX; s++)
		v[STAGES + s] = (double)(load->cycles[s] - before[s]) / n;
	return v[TOTAL] >= 0 && v[BARE] >= 0 && v[EMPTY] >= 0 && lapped >= 0 && without >= 0;
}

double
requests_copied(const struct request_case *c)
{
	if (c->part == PART_LOCAL)
		return local_copied(rig.r, c);
	return c->part == PART_BOTH && !c->random ? req_copied(&rig, c) : 0;
}
