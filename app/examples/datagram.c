/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Datagrams there and back. Nobody is connected, and nobody says what was lost: who asks waits for
 * an answer, and asks again. The server answers whoever knows its number and the Q_Key.
 */
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "exchange.h"
#include "tcp.h"

#define ROUNDS  200
#define SIZE    64
#define GRH     40 /* ahead of each message that is received: the IP header it came with */
#define WAIT_MS 100

/** Memory: what is sent, then what was received. */
struct slot {
	uint32_t round;
	char text[SIZE - 4];
};

static struct slot *
received(const struct end *e)
{
	return (struct slot *)((char *)e->mr->addr + SIZE + GRH);
}

static void
post_recv(struct end *e)
{
	struct rl_sge sge = { (uintptr_t)e->mr->addr + SIZE, GRH + SIZE, e->mr->lkey };
	struct rl_recv_wr wr = { .wr_id = 1, .sg_list = &sge, .num_sge = 1 };

	must(rl_post_recv(e->qp, &wr, NULL), "rl_post_recv");
}

static void
post_send(struct end *e, uint32_t qp_num, uint32_t round)
{
	struct slot *out = e->mr->addr;
	struct rl_sge sge = { (uintptr_t)out, SIZE, e->mr->lkey };
	struct rl_send_wr wr = { .wr_id = 2,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = RL_WR_SEND,
		.send_flags = RL_SEND_SIGNALED,
		.wr.ud = { .ah = e->to, .remote_qpn = qp_num, .remote_qkey = END_QKEY } };

	out->round = round;
	snprintf(out->text, sizeof(out->text), "%s %u", e->serves ? "answer" : "question", round);
	must(rl_post_send(e->qp, &wr, NULL), "rl_post_send");
}

/* Wait for a datagram, so long. Completions of sends go by. @return false: none came. */
static bool
receive(struct end *e, int wait_ms, struct rl_wc *wc)
{
	struct timespec from, now;

	clock_gettime(CLOCK_MONOTONIC, &from);
	for (;;) {
		if (end_poll(e, wc)) {
			if (wc->opcode == RL_WC_RECV)
				return true;
			continue;
		}
		sched_yield();
		clock_gettime(CLOCK_MONOTONIC, &now);
		if ((now.tv_sec - from.tv_sec) * 1000 + (now.tv_nsec - from.tv_nsec) / 1000000 >
			wait_ms)
			return false;
	}
}

static void
serve(struct end *e)
{
	struct rl_wc wc;

	/* Until the other side has all its answers. */
	while (!tcp_check(e->tcp)) {
		while (receive(e, WAIT_MS, &wc)) {
			const uint32_t round = received(e)->round;

			post_recv(e);
			post_send(e, wc.src_qp, round);
		}
	}
}

static uint32_t
ask(struct end *e)
{
	uint32_t again = 0;
	struct rl_wc wc;

	for (uint32_t round = 0; round < ROUNDS; round++) {
		char want[SIZE];

		post_send(e, e->peer.qp_num, round);
		snprintf(want, sizeof(want), "answer %u", round);
		for (bool answered = false; !answered;) {
			if (!receive(e, WAIT_MS, &wc)) {
				tcp_check(e->tcp);
				post_send(e, e->peer.qp_num, round);
				again++;
				continue;
			}
			/* An answer to an earlier question may come late. */
			answered = strcmp(received(e)->text, want) == 0;
			post_recv(e);
		}
	}
	return again;
}

int
main(int argc, char **argv)
{
	uint32_t again = 0;
	struct end e;

	end_open_datagrams(&e, argc, argv, SIZE + GRH + SIZE);
	post_recv(&e);
	end_meet(&e);
	if (e.serves)
		serve(&e);
	else
		again = ask(&e);
	end_meet(&e);
	printf("%d datagrams of %d bytes there and back, %u sent again\n", ROUNDS, SIZE, again);
	end_close(&e);
	return 0;
}
