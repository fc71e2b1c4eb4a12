/* SPDX-License-Identifier: BSD-3-Clause */
/* Latency: one message at a time. SEND and WRITE go there and back, and half of that is told. */
#include <stdatomic.h>
#include <stdio.h>

#include "perf.h"

struct run {
	uint64_t size;
	uint64_t iters;
	uint64_t until; /* ns; 0: by iterations */
	uint64_t last;  /* when the message before was posted */
	uint32_t spins;
};

static bool
more(const struct run *run, uint64_t n)
{
	return run->until != 0 ? now_ns() < run->until : n < run->iters;
}

/* Post the next message, and take the time since the one before. */
static int
post(struct perf *p, struct run *run, unsigned int legs)
{
	uint64_t now = now_ns();

	if (run->last != 0)
		hist_add(&p->hist, (now - run->last) / legs);
	run->last = now;
	return work_post(p, 0, run->size, true);
}

static int
wait_for(struct perf *p, struct run *run, struct rl_cq *cq)
{
	for (;;) {
		int64_t n = work_poll(p, cq, run->size);

		if (n != 0)
			return n > 0 ? 0 : -1;
		if (work_idle(p, cq, &run->spins) != 0)
			return -1;
	}
}

/* READ and ATOMIC: the client alone. */
static int
ask(struct perf *p, struct run *run)
{
	for (uint64_t n = 0; more(run, n); n++) {
		uint64_t began = now_ns();

		if (work_post(p, 0, run->size, true) != 0 || wait_for(p, run, p->send_cq) != 0)
			return -1;
		hist_add(&p->hist, now_ns() - began);
	}
	return 0;
}

/*
 * SEND: the client begins. By time it ends with its own last answer, and the server when the client
 * speaks on the handshake's connection.
 */
static int
ping_send(struct perf *p, struct run *run)
{
	for (uint64_t n = 0; more(run, n) || (!p->o.client && run->until != 0); n++) {
		if (p->o.client && post(p, run, 2) != 0)
			return -1;
		for (;;) {
			int64_t got = work_poll(p, p->recv_cq, run->size);

			if (got < 0)
				return -1;
			if (got > 0)
				break;
			if (!p->o.client && run->until != 0 && work_peer_speaks(p))
				return 0;
			if (work_idle(p, p->recv_cq, &run->spins) != 0)
				return -1;
		}
		if ((run->until != 0 || p->count[0].recv_posted < run->iters) &&
			work_post_recv(p, 0, run->size) != 0)
			return -1;
		if (!p->o.client && post(p, run, 2) != 0)
			return -1;
		if (wait_for(p, run, p->send_cq) != 0)
			return -1;
	}
	return 0;
}

/* WRITE: the server begins; a message has come when its last byte has the next number. */
static int
ping_write(struct perf *p, struct run *run)
{
	uint8_t *out = ends_local(p, 0) + run->size - 1;
	const _Atomic uint8_t *in =
		(const _Atomic uint8_t *)(const void *)(ends_remote(p, 0) + run->size - 1);

	for (uint64_t n = 0; n < run->iters + (p->o.client ? 0 : 1); n++) {
		uint8_t want = (uint8_t)(p->o.client ? n + 1 : n);

		while ((p->o.client || n > 0) &&
			atomic_load_explicit(in, memory_order_acquire) != want) {
			/* No completion comes: a worker on the same CPU gets it. */
			if (work_poll(p, p->send_cq, run->size) < 0 ||
				work_idle(p, NULL, &run->spins) != 0)
				return -1;
		}
		if (n == run->iters)
			break;
		*out = (uint8_t)(n + 1);
		if (post(p, run, 2) != 0 || wait_for(p, run, p->send_cq) != 0)
			return -1;
	}
	return 0;
}

int
lat_run(struct perf *p, uint64_t size, struct perf_result *r)
{
	struct run run = { .size = size, .iters = p->o.iters };
	uint64_t began = now_ns();
	int rc;

	if (p->o.duration_s > 0)
		run.until = began + (uint64_t)(p->o.duration_s * 1e9);
	if (p->o.verb == PERF_SEND)
		rc = ping_send(p, &run);
	else if (p->o.verb == PERF_WRITE)
		rc = ping_write(p, &run);
	else
		rc = ask(p, &run);
	r->size = size;
	r->iters = p->o.duration_s > 0 ? p->hist.n : p->o.iters;
	r->seconds = (double)(now_ns() - began) / 1e9;
	r->rate = (double)p->hist.n / r->seconds;
	return rc;
}
