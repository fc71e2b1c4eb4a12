/* SPDX-License-Identifier: BSD-3-Clause */
#include "victim.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "pair.h"

#define THREADS 4

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

/* From one block to the next. */
static void
gap(struct victim_report *r, uint64_t took, uint64_t waited)
{
	const uint64_t net = took > waited ? took - waited : 0;

	if (took > atomic_load(&r->longest_ns))
		atomic_store(&r->longest_ns, took);
	if (net > atomic_load(&r->longest_net_ns))
		atomic_store(&r->longest_net_ns, net);
}

void
victim_run(const char *socket, struct victim_report *r)
{
	struct pair p;
	uint64_t last, before;

	open_waits();
	pair_open(&p, socket, 64, 3 * BLOCK);
	pair_connect(&p, 16);
	transfer(&p, 1);
	last = pair_now_ns();
	before = waited_ns();
	for (uint32_t n = 2; !atomic_load(&r->stop); n++) {
		uint64_t at, waited;

		transfer(&p, n);
		waited = waited_ns();
		at = pair_now_ns();
		gap(r, at - last, waited - before);
		last = at;
		before = waited;
		atomic_fetch_add(&r->blocks, 1);
	}
	CHECK(pair_is_quiet(p.cq));
	pair_disconnect(&p);
	pair_close(&p);
	exit(0);
}
