/* SPDX-License-Identifier: BSD-3-Clause */
#include "victim.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "pair.h"

#define THREADS    4
#define WITNESS_NS 500000 /* how often it looks, and what is late */

#define BLOCK 2048

/* One block there and back. */
static void
transfer(struct pair *p, uint32_t n)
{
	uint8_t *m = p->mr->addr;

	for (uint32_t i = 0; i < BLOCK; i++)
		m[i] = (uint8_t)((n * 2654435761u + i * 40503u) >> 8);
	OK(pair_post(p->a, RL_WR_RDMA_WRITE, pair_sge(p, 0, BLOCK), (uintptr_t)m + BLOCK,
		p->mr->rkey, n));
	OK(pair_post(p->a, RL_WR_RDMA_READ, pair_sge(p, 2 * BLOCK, BLOCK), (uintptr_t)m + BLOCK,
		p->mr->rkey, n + 1));
	for (uint64_t k = 0; k < 2; k++) {
		const struct rl_wc wc = pair_wait(p->cq);

		CHECK(wc.status == RL_WC_SUCCESS && wc.wr_id == n + k);
	}
	CHECK(memcmp(m, m + 2 * BLOCK, BLOCK) == 0);
	memset(m + BLOCK, 0, 2 * BLOCK);
}

/* Files (schedstat) that say how long threads have waited for a CPU: ours, and the workers'. */
static int waits[THREADS];
static uint32_t waits_n;

static void
open_waits(void)
{
	const char *at = getenv("VICTIM_WAITS");
	char path[128];
	int n = 0;

	waits[waits_n++] = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
	while (at != NULL && waits_n < THREADS && sscanf(at, "%127[^:]%n", path, &n) == 1) {
		waits[waits_n++] = open(path, O_RDONLY | O_CLOEXEC);
		at += n + (at[n] == ':');
	}
	for (uint32_t i = 0; i < waits_n; i++)
		CHECK(waits[i] >= 0);
}

static uint64_t
waited_ns(void)
{
	unsigned long long one, sum = 0;
	char text[128];

	for (uint32_t i = 0; i < waits_n; i++) {
		const ssize_t n = pread(waits[i], text, sizeof(text) - 1, 0);

		text[n > 0 ? n : 0] = '\0';
		CHECK(sscanf(text, "%*u %llu", &one) == 1);
		sum += one;
	}
	return sum;
}

/* A moment, and what had been waited before it and behind it: we may lose our CPU in between. */
struct moment {
	uint64_t before;
	uint64_t at;
	uint64_t behind;
};

static struct moment
moment(struct victim_report *r)
{
	struct moment m;

	m.before = waited_ns() + atomic_load(&r->stalled_ns);
	m.at = pair_now_ns();
	m.behind = waited_ns() + atomic_load(&r->stalled_ns);
	return m;
}

/* From one block to the next. */
static void
gap(struct victim_report *r, const struct moment *from, const struct moment *to)
{
	const uint64_t took = to->at - from->at, waited = to->behind - from->before;
	const uint64_t net = took > waited ? took - waited : 0;

	if (took > atomic_load(&r->longest_ns))
		atomic_store(&r->longest_ns, took);
	if (net > atomic_load(&r->longest_net_ns))
		atomic_store(&r->longest_net_ns, net);
}

void
victim_witness(struct victim_report *r, int cpu)
{
	const struct sched_param ahead = { .sched_priority = 1 };
	struct timespec due;
	uint64_t now;
	cpu_set_t set;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	CHECK(sched_setaffinity(0, sizeof(set), &set) == 0);
	if (sched_setscheduler(0, SCHED_FIFO, &ahead) != 0)
		return;
	for (now = pair_now_ns(); !atomic_load(&r->stop); now = pair_now_ns()) {
		const uint64_t at = now + WITNESS_NS;

		due = (struct timespec){ (time_t)(at / 1000000000), (long)(at % 1000000000) };
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &due, NULL);
		now = pair_now_ns();
		if (now > at + WITNESS_NS)
			atomic_fetch_add(&r->stalled_ns, now - at);
	}
}

void
victim_run(const char *socket, struct victim_report *r)
{
	struct moment last;
	struct pair p;

	open_waits();
	pair_open(&p, socket, 64, 3 * BLOCK);
	pair_connect(&p, 16);
	transfer(&p, 1);
	last = moment(r);
	for (uint32_t n = 2; !atomic_load(&r->stop); n++) {
		struct moment now;

		transfer(&p, n);
		now = moment(r);
		gap(r, &last, &now);
		last = now;
		atomic_fetch_add(&r->blocks, 1);
	}
	CHECK(pair_is_quiet(p.cq));
	pair_disconnect(&p);
	pair_close(&p);
	exit(0);
}
