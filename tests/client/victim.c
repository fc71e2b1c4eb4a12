/* SPDX-License-Identifier: BSD-3-Clause */
#include "victim.h"

#include <string.h>

#include "pair.h"

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

void
victim_run(const char *socket, struct victim_report *r)
{
	struct pair p;
	uint64_t last;

	pair_open(&p, socket, 64, 3 * BLOCK);
	pair_connect(&p, 16);
	transfer(&p, 1);
	last = pair_now_ns();
	for (uint32_t n = 2; !atomic_load(&r->stop); n++) {
		uint64_t at;

		transfer(&p, n);
		at = pair_now_ns();
		if (at - last > atomic_load(&r->longest_ns))
			atomic_store(&r->longest_ns, at - last);
		last = at;
		atomic_fetch_add(&r->blocks, 1);
	}
	CHECK(pair_is_quiet(p.cq));
	pair_disconnect(&p);
	pair_close(&p);
	exit(0);
}
