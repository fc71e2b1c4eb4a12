/* SPDX-License-Identifier: BSD-3-Clause */
/* What librocelane's calls do, against a real dataplane: argv[1] is its socket. */
#include <string.h>

#include "pair.h"

static void
write_and_read(const char *socket)
{
	struct pair p;
	struct rl_wc wc;
	uint8_t *m;

	pair_open(&p, socket, 64, 8192);
	pair_connect(&p, 16);
	m = p.mr->addr;
	for (int i = 0; i < 3000; i++)
		m[i] = (uint8_t)(i * 7 + 1);
	OK(pair_post(
		p.a, RL_WR_RDMA_WRITE, pair_sge(&p, 0, 3000), (uintptr_t)m + 4096, p.mr->rkey, 42));
	wc = pair_wait(p.cq);
	CHECK(wc.status == RL_WC_SUCCESS && wc.wr_id == 42 && wc.qp_num == p.a->qp_num);
	CHECK(wc.opcode == RL_WC_RDMA_WRITE);
	CHECK(memcmp(m, m + 4096, 3000) == 0);
	OK(pair_post(p.b, RL_WR_RDMA_READ, pair_sge(&p, 0, 100), (uintptr_t)m + 4096 + 1000,
		p.mr->rkey, 43));
	wc = pair_wait(p.cq);
	CHECK(wc.status == RL_WC_SUCCESS && wc.wr_id == 43 && wc.byte_len == 100);
	CHECK(memcmp(m, m + 5096, 100) == 0);
	pair_disconnect(&p);
	pair_close(&p);
}

int
main(int argc, char **argv)
{
	CHECK(argc == 2);
	write_and_read(argv[1]);
	puts("ok");
	return 0;
}
