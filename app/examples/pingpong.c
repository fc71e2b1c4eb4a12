/* SPDX-License-Identifier: BSD-3-Clause */
/* Ping-pong: each side answers the other's SEND with one of its own, and they measure how long. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "exchange.h"

#define ROUNDS 1000
#define SIZE   64

static void
post_recv(struct end *e)
{
	struct rl_sge sge = { (uintptr_t)e->mr->addr + SIZE, SIZE, e->mr->lkey };
	struct rl_recv_wr wr = { .wr_id = 1, .sg_list = &sge, .num_sge = 1 };

	must(rl_post_recv(e->qp, &wr, NULL), "rl_post_recv");
}

static void
post_send(struct end *e)
{
	struct rl_sge sge = { (uintptr_t)e->mr->addr, SIZE, e->mr->lkey };
	struct rl_send_wr wr = { .wr_id = 2,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = RL_WR_SEND,
		.send_flags = RL_SEND_SIGNALED };

	must(rl_post_send(e->qp, &wr, NULL), "rl_post_send");
}

/* The peer's message and the end of our own, in whatever order. */
static void
round_trip(struct end *e, bool sent)
{
	bool received = false;

	while (!received || !sent) {
		const struct rl_wc wc = end_wait(e);

		if (wc.opcode == RL_WC_RECV)
			received = true;
		else
			sent = true;
	}
}

int
main(int argc, char **argv)
{
	struct timespec from, to;
	struct end e;

	end_open(&e, argc, argv, 2 * SIZE);
	memset(e.mr->addr, e.serves ? 'o' : 'i', SIZE);
	post_recv(&e); /* before anybody can send */
	end_meet(&e);
	clock_gettime(CLOCK_MONOTONIC, &from);
	for (int i = 0; i < ROUNDS; i++) {
		const char *in = (char *)e.mr->addr + SIZE;

		if (!e.serves)
			post_send(&e);
		round_trip(
			&e, e.serves && i == 0); /* the server's last answer, and the next ball */
		if (*in != (e.serves ? 'i' : 'o')) {
			fprintf(stderr, "round %d: '%c' arrived\n", i, *in);
			return 1;
		}
		post_recv(&e);
		if (e.serves)
			post_send(&e);
	}
	if (e.serves)
		end_wait(&e);
	clock_gettime(CLOCK_MONOTONIC, &to);
	printf("%d round trips of %d bytes: %.2f us each\n", ROUNDS, SIZE,
		((double)(to.tv_sec - from.tv_sec) * 1e6 +
			(double)(to.tv_nsec - from.tv_nsec) * 1e-3) /
			ROUNDS);
	end_meet(&e);
	end_close(&e);
	return 0;
}
