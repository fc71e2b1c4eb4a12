/* SPDX-License-Identifier: BSD-3-Clause */
#include "bench_workers_many.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>

#include <rte_cycles.h>
#include <rte_ethdev.h>
#include <rte_launch.h>
#include <rte_mbuf.h>
#include <rte_pause.h>
#include <rte_ring.h>

#include "bench_stat.h"
#include "net_pair.h"

enum { EACH = 64, ROUNDS_MOST = 2001, WARM_UP = 3 };

static struct {
	struct bench_rig *rig;
	uint16_t port, far; /* the workers' port, and the other end of its wire */
	struct worker *w[MANY_MOST];
	struct rte_ring *handoff[MANY_MOST];
	struct rte_ring *second; /* frames that the second worker's CPU is to send */
} many;

static void
make_rings(void)
{
	for (uint32_t i = 0; i < MANY_MOST; i++) {
		char name[16];

		snprintf(name, sizeof(name), "many%" PRIu32, i);
		many.handoff[i] = rte_ring_create(name, 4096, many.rig->conf.socket, RING_F_SC_DEQ);
		if (many.handoff[i] == NULL)
			die("no ring");
	}
	many.second = rte_ring_create("many_second", 4096, many.rig->conf.socket, 0);
	if (many.second == NULL)
		die("no ring");
}

static void
start(uint16_t port)
{
	const struct rte_eth_conf conf = { 0 };
	int rc = rte_eth_dev_configure(port, MANY_MOST, MANY_MOST, &conf);

	for (uint16_t q = 0; q < MANY_MOST && rc == 0; q++) {
		rc = rte_eth_rx_queue_setup(port, q, 1024, SOCKET_ID_ANY, NULL, many.rig->pool);
		if (rc == 0)
			rc = rte_eth_tx_queue_setup(port, q, 1024, SOCKET_ID_ANY, NULL);
	}
	if (rc != 0 || rte_eth_dev_start(port) != 0)
		die("a port with many queues does not start");
}

void
many_set_up(struct bench_rig *rig)
{
	struct worker_conf conf = rig->conf;

	many.rig = rig;
	make_rings();
	if (net_pair_create("many", MANY_MOST, 1024, &many.port, &many.far) != 0)
		die("no port with many queues");
	start(many.port);
	start(many.far);
	conf.workers_n = MANY_MOST;
	conf.ports[0].id = many.port;
	for (uint16_t i = 0; i < MANY_MOST; i++) {
		conf.index = i;
		conf.ports[0].rx_queue = conf.ports[0].tx_queue = i;
		conf.handoff_in = many.handoff[i];
		memcpy(conf.handoff, many.handoff, sizeof(many.handoff));
		many.w[i] = worker_create(&conf);
		if (many.w[i] == NULL)
			die("no worker");
	}
}

/** QPs go round the workers. */
static void
give(const struct bench_case *c, uint32_t workers)
{
	for (uint32_t i = 0; i < workers; i++) {
		rig_choose(i * RING_QPS, i % 2);
		rig_begin(many.rig, c);
		for (uint32_t k = 0; k < c->qps; k++) {
			struct qp *qp = qp_lookup(many.rig->conf.qps, MAX_QPS + i * RING_QPS + k);

			qp_table_give(many.rig->conf.qps, qp, (uint16_t)i);
			qp->port = qp->out = (uint8_t)many.port;
		}
	}
}

static void
send_to(struct rte_mbuf *m, uint16_t queue)
{
	if (rte_eth_tx_burst(many.far, queue, &m, 1) != 1)
		die("no room for a frame");
}

/** On the CPU of the second worker: frames that were made elsewhere become its cache's. */
static int
send_second(void *arg)
{
	void *next = NULL;

	(void)arg;
	while (rte_ring_dequeue(many.second, &next) == 0) {
		struct rte_mbuf *m = next;
		volatile uint8_t *at = next, *frame = rte_pktmbuf_mtod(m, void *);

		for (uint32_t i = 0; i < sizeof(*m); i += RTE_CACHE_LINE_SIZE)
			at[i] = at[i];
		for (uint32_t i = 0; i < m->data_len; i += RTE_CACHE_LINE_SIZE)
			frame[i] = frame[i];
		send_to(m, 1);
	}
	return 0;
}

/**
 * One packet of each QP; a QP's packets always come to the same queue.
 * @param second where the second queue's are put instead, or NULL
 */
static uint32_t
send_round(const struct bench_case *c, uint32_t workers, uint32_t *handed, struct rte_ring *second)
{
	for (uint32_t owner = 0; owner < workers; owner++) {
		rig_choose(owner * RING_QPS, owner % 2);
		rig_prepare(many.rig, c, c->qps, true);
		for (uint32_t k = 0; k < c->qps; k++) {
			const uint16_t at = (uint16_t)((owner + k) % workers);
			void *m = NULL;

			if (rte_ring_dequeue(many.rig->to, &m) != 0)
				die("no frame");
			if (at != 1 || second == NULL)
				send_to(m, at);
			else if (rte_ring_enqueue(second, m) != 0)
				die("no room for a frame");
			*handed += at != owner;
		}
	}
	return workers * c->qps;
}

/** Throw away what came back. @return frames. */
static uint32_t
drain(uint32_t workers)
{
	struct rte_mbuf *m[64];
	uint32_t n, all = 0;

	for (uint16_t i = 0; i < workers; i++)
		while ((n = rte_eth_rx_burst(many.far, i, m, 64)) != 0) {
			rte_pktmbuf_free_bulk(m, n);
			all += n;
		}
	return all;
}

/** All workers in turn, until all is answered. @param spent cycles of turns with work. */
static void
play(uint32_t workers, uint64_t *spent)
{
	bool busy = true;

	while (busy) {
		busy = false;
		for (uint32_t i = 0; i < workers; i++) {
			const uint64_t from = rte_rdtsc();

			if (worker_poll(many.w[i], 1) == 0)
				continue;
			spent[i] += rte_rdtsc() - from;
			busy = true;
		}
	}
}

struct many
many_measure(const struct bench_case *c, uint32_t workers, uint32_t repeats)
{
	static double cycles[ROUNDS_MOST], busiest[ROUNDS_MOST];
	const uint32_t rounds = EACH / c->qps < 1 ? 1 : EACH / c->qps;
	uint32_t handed = 0, all = 0;

	give(c, workers);
	for (uint32_t i = 0; i < repeats + WARM_UP; i++) {
		uint64_t spent[MANY_MOST] = { 0 }, sum = 0, most = 0;
		uint32_t n = 0;

		for (uint32_t k = 0; k < rounds; k++)
			n += send_round(c, workers, &handed, NULL);
		all += n;
		play(workers, spent);
		if (drain(workers) < n / rounds)
			die("packets were not answered");
		for (uint32_t k = 0; k < workers; k++) {
			sum += spent[k];
			most = spent[k] > most ? spent[k] : most;
		}
		if (i < WARM_UP)
			continue;
		cycles[i - WARM_UP] = (double)sum / n;
		busiest[i - WARM_UP] = (double)most / n;
	}
	return (struct many){ .handed = (double)handed / all,
		.cycles = median(cycles, repeats),
		.busiest = median(busiest, repeats) };
}

/* ---- two at the same time -------------------------------------------------------------------- */

enum { HALF_ROUNDS = 16, HALF_TRIES = 5, IDLE_MOST = 100u * 1000 * 1000 /* turns */ };

/** What one of them does, and how long it takes. */
struct runner {
	struct worker *w;
	_Atomic uint32_t *ready; /* of `all`: they begin together */
	uint32_t all;
	uint32_t n; /* packets that it receives, and packets of its QPs */
	uint64_t began, ended;
	double cpu; /* part of the time in which it had its CPU */
};

static double
cpu_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static int
serve(void *arg)
{
	struct runner *r = arg;
	const uint64_t *c = worker_stats(r->w)->c;
	const uint64_t received = c[STAT_rx_packets] + r->n, served = c[STAT_rcvd_pkts] + r->n;
	uint32_t idle = 0;
	double cpu;

	atomic_fetch_add(r->ready, 1);
	while (atomic_load(r->ready) < r->all)
		rte_pause();
	cpu = cpu_s();
	r->began = rte_rdtsc_precise();
	while ((c[STAT_rx_packets] < received || c[STAT_rcvd_pkts] < served) && idle < IDLE_MOST)
		idle = worker_poll(r->w, 1) != 0 ? 0 : idle + 1;
	r->ended = rte_rdtsc_precise();
	if (idle >= IDLE_MOST)
		die("a worker waits for frames that do not come");
	r->cpu = (cpu_s() - cpu) * (double)rte_get_tsc_hz() / (double)(r->ended - r->began);
	return 0;
}

/** @return cycles a packet of so many workers, or a negative value: one had no CPU for a while. */
static double
race(const struct bench_case *c, uint32_t workers, uint32_t second)
{
	const uint32_t each = c->qps * (c->len <= 64 ? HALF_ROUNDS : HALF_ROUNDS / 4);
	_Atomic uint32_t ready = 0;
	struct runner r[2];
	uint64_t began, ended;
	uint32_t handed = 0;

	give(c, workers);
	for (uint32_t n = 0; n < each; n += c->qps)
		send_round(c, workers, &handed, many.second);
	if (workers == 2) {
		rte_eal_remote_launch(send_second, NULL, second);
		rte_eal_wait_lcore(second);
	}
	for (uint32_t i = 0; i < workers; i++)
		r[i] = (struct runner){ many.w[i], &ready, workers, each, 0, 0, 0 };
	if (workers == 2)
		rte_eal_remote_launch(serve, &r[1], second);
	serve(&r[0]);
	if (workers == 2)
		rte_eal_wait_lcore(second);
	if (drain(workers) < each / c->qps)
		die("packets were not answered");
	began = r[0].began;
	ended = r[0].ended;
	if (workers == 2) {
		began = RTE_MIN(began, r[1].began);
		ended = RTE_MAX(ended, r[1].ended);
	}
	if (r[0].cpu < 0.95 || (workers == 2 && r[1].cpu < 0.95))
		return -1;
	return (double)(ended - began) / (workers * each);
}

struct many_half
many_half(const struct bench_case *c, uint32_t second, uint32_t repeats)
{
	static double one[ROUNDS_MOST], two[ROUNDS_MOST], speedup[ROUNDS_MOST];
	uint32_t n = 0;

	for (uint32_t i = 0; i < repeats * HALF_TRIES + WARM_UP && n < repeats; i++) {
		const double a = race(c, 1, second), b = race(c, 2, second);

		if (i < WARM_UP || a < 0 || b < 0)
			continue;
		one[n] = a;
		two[n] = b;
		speedup[n] = a / b;
		n++;
	}
	if (n == 0)
		return (struct many_half){ 0 };
	return (struct many_half){ n, median(one, n), median(two, n), median(speedup, n) };
}
