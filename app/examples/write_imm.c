/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Write with immediate: records land in the server's memory without its doing, and a number with
 * each tells it which one has arrived. The server sleeps in between.
 */
#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "exchange.h"

#define RECORDS 16
#define SIZE    512

static int
serve(struct end *e)
{
	struct rl_recv_wr wr = { .wr_id = 1 }; /* no buffer: only the immediate comes here */
	int wrong = 0;

	for (int i = 0; i < RECORDS; i++)
		must(rl_post_recv(e->qp, &wr, NULL), "rl_post_recv");
	end_meet(e);
	for (int i = 0; i < RECORDS; i++) {
		const struct rl_wc wc = end_sleep(e);
		const uint32_t which = ntohl(wc.imm_data);
		char want[SIZE];

		snprintf(want, sizeof(want), "this is record %u", which);
		if (which >= RECORDS || wc.byte_len != SIZE ||
			strcmp((char *)e->mr->addr + which * SIZE, want) != 0)
			wrong++;
		else
			printf("%s\n", want);
	}
	return wrong;
}

static int
ask(struct end *e)
{
	struct rl_sge sge = { .length = SIZE, .lkey = e->mr->lkey };
	struct rl_send_wr wr = { .sg_list = &sge,
		.num_sge = 1,
		.opcode = RL_WR_RDMA_WRITE_WITH_IMM,
		.send_flags = RL_SEND_SIGNALED,
		.wr.rdma.rkey = e->peer.rkey };

	end_meet(e);
	for (uint32_t n = 0; n < RECORDS; n++) {
		const uint32_t which = n * 5 % RECORDS; /* in any order */
		char *record = (char *)e->mr->addr + which * SIZE;

		snprintf(record, SIZE, "this is record %u", which);
		sge.addr = (uintptr_t)record;
		wr.wr_id = which;
		wr.imm_data = htonl(which);
		wr.wr.rdma.remote_addr = e->peer.addr + which * SIZE;
		must(rl_post_send(e->qp, &wr, NULL), "rl_post_send");
	}
	for (int i = 0; i < RECORDS; i++)
		end_wait(e);
	return 0;
}

int
main(int argc, char **argv)
{
	struct end e;
	int wrong;

	end_open(&e, argc, argv, RECORDS * SIZE);
	wrong = e.serves ? serve(&e) : ask(&e);
	end_meet(&e);
	end_close(&e);
	if (wrong != 0)
		fprintf(stderr, "%d records are wrong\n", wrong);
	return wrong != 0;
}
