/* SPDX-License-Identifier: BSD-3-Clause */
/* Bandwidth: as many requests in flight as the queues take. */
#include <stdio.h>
#include <unistd.h>

#include "perf.h"

#define PROGRESS_NS 5000000000u /* of runs longer than that, on a terminal */
#define LINGER_NS   1000000000u /* for what is in flight when a timed run of SENDs ends */
#define CLOCK_POLLS 16

static void
meter_turn(struct meter *m, uint64_t done, uint64_t size)
{
	double rate;

	meter_see(m, done, now_ns());
	if (m->now - m->shown < PROGRESS_NS)
		return;
	rate = (double)(done - m->shown_done) * 1e9 / (double)(m->now - m->shown);
	if (isatty(STDERR_FILENO) != 0)
		fprintf(stderr, "%6.0f s  %.3f Gbit/s  %.6f Mpps\n",
			(double)(m->now - m->began) / 1e9, rate * (double)size * 8 / 1e9,
			rate / 1e6);
	m->shown = m->now;
	m->shown_done = done;
}

static void
meter_result(
	struct meter *m, const struct perf *p, uint64_t size, uint64_t done, struct perf_result *r)
{
	const double s = m->now > m->began ? (double)(m->now - m->began) / 1e9 : 1e-9;

	r->size = size;
	r->iters = p->o.duration_s > 0 ? done : p->o.iters;
	r->seconds = s;
	r->rate = (double)done / s;
	r->bw_avg = r->rate * (double)size;
	r->bw_peak = (m->peak > r->rate ? m->peak : r->rate) * (double)size;
}

/* Fill a QP's queue. The last request is signaled, so that its completion tells of all. */
static int
fill(struct perf *p, uint32_t qp, uint64_t size, bool more)
{
	const struct perf_count *c = &p->count[qp];
	const bool timed = p->o.duration_s > 0;
	const uint64_t every = p->o.validate ? 1 : p->o.cq_mod;

	while (c->posted - c->done < p->o.tx_depth) {
		const bool last = timed ? !more : c->posted + 1 == p->o.iters;

		if (timed ? (!more && c->unsignaled == 0) : c->posted == p->o.iters)
			break;
		if (work_post(p, qp, size, last || (c->posted + 1) % every == 0) != 0)
			return -1;
	}
	return work_flush(p, qp);
}

int
bw_client(struct perf *p, uint64_t size, struct perf_result *r)
{
	const uint64_t total = p->o.iters * p->o.qps;
	const uint64_t span = (uint64_t)(p->o.duration_s * 1e9);
	uint64_t measured = 0;
	uint32_t spins = 0;
	uint32_t turns = 0;
	bool more = true;
	struct meter m;

	meter_start(&m, now_ns());
	for (;;) {
		uint64_t in_flight = 0;
		int64_t n;

		for (uint32_t i = 0; i < p->o.qps; i++) {
			if (fill(p, i, size, more) != 0)
				return -1;
			in_flight += p->count[i].posted - p->count[i].done;
		}
		if (span == 0 ? p->done == total : !more && in_flight == 0)
			break;
		n = work_poll(p, p->send_cq, size);
		if (n < 0 || (n == 0 && work_idle(p, p->send_cq, &spins) != 0))
			return -1;
		if (++turns % CLOCK_POLLS == 0 || n == 0)
			meter_turn(&m, p->done, size);
		if (span != 0 && more && m.now - m.began >= span) {
			more = false;
			measured = p->done;
			meter_result(&m, p, size, measured, r);
		}
		if (!more && p->o.verb == PERF_SEND && m.now - m.began > span + LINGER_NS)
			break; /* the server has stopped to receive */
	}
	meter_turn(&m, p->done, size);
	if (span == 0)
		meter_result(&m, p, size, p->done, r);
	return 0;
}

/*
 * Has the client said that it is done, and has nothing come since? Where messages may be lost, that
 * is how a run by iterations ends. @param quiet since when nothing came, 0: something did.
 */
static bool
is_over(const struct perf *p, uint64_t *quiet)
{
	const uint64_t now = now_ns();

	if (!options_may_lose(&p->o) || !work_peer_speaks(p))
		return false;
	if (*quiet == 0)
		*quiet = now;
	return now - *quiet > LINGER_NS;
}

/* By iterations until all are there, by time until the client says that it is done. */
int
bw_server_recv(struct perf *p, uint64_t size, struct perf_result *r)
{
	const bool timed = p->o.duration_s > 0;
	const uint64_t total = p->o.iters * p->o.qps;
	uint64_t quiet = 0;
	uint32_t spins = 0;
	uint32_t turns = 0;
	struct meter m;

	meter_start(&m, now_ns());
	while (timed || p->received < total) {
		int64_t n = work_poll(p, p->recv_cq, size);

		if (n < 0)
			return -1;
		/* From the first message on, which came before that; unless it was all. */
		if (n > 0 && p->received == (uint64_t)n && (timed || p->received < total)) {
			meter_start(&m, now_ns());
			m.window_done = m.seen_done = p->received;
		}
		for (uint32_t i = 0; n > 0 && i < p->o.qps; i++) {
			const struct perf_count *c = &p->count[i];

			while (c->recv_posted - c->received < p->o.rx_depth &&
				(timed || c->recv_posted < p->o.iters)) {
				if (work_post_recv(p, i, size) != 0)
					return -1;
			}
		}
		if (n == 0 && timed && work_peer_speaks(p))
			break;
		if (n > 0)
			quiet = 0;
		else if (is_over(p, &quiet))
			break;
		if (n == 0 && work_idle(p, p->recv_cq, &spins) != 0)
			return -1;
		if (++turns % CLOCK_POLLS == 0 && n > 0)
			meter_turn(&m, p->received, size);
	}
	if (!timed)
		meter_turn(&m, p->received, size);
	meter_result(&m, p, size, p->received, r);
	return 0;
}
