/* SPDX-License-Identifier: BSD-3-Clause */
/* Built-in programs: ends of clients and SRQs, knobs, credits, rates, what is kept. */
#include "fuzz_worker_seeds.h"

/** The client ends while all of its QPs send and receive; the next one goes on, and ends. */
static void
deaths(struct program *p, uint8_t n)
{
	for (uint8_t again = 0; again < 2; again++) {
		PUT(p, K_PORT, n % 2, 0);
		for (uint8_t i = 0; i < QPS; i++) {
			const uint8_t op = i % 3 == n ? WR_RDMA_READ : WR_SEND;

			PUT(p, K_RECV | LATER, i, 7, 0, 9, 0);
			PUT(p, K_SEND | (i % 4 == 3 ? 0 : LATER), i, op, SEND_SIGNALED, 0x19, 0,
				FIRST, 1);
			PUT(p, K_PACKET | LATER, 2 * QPS + i, i % 2 == 0 ? 0 : 6, 0, 14, 0, 1,
				HOW_ACKREQ);
			PUT(p, K_PACKET | LATER, 2 * QPS + i, i % 2 == 0 ? 12 : 1, 1, 14, 0, 1,
				HOW_ACKREQ | HOW_RUN);
		}
		PUT(p, K_CONTROL | LATER, C_MOVE, 14 + n);
		PUT(p, K_CONTROL | LATER, C_DEATH, 0, n == 0 ? 0 : 0x55 << n % 2, 2 * n);
		PUT(p, K_PACKET, 0, 4, 0, 9, 0, 0, HOW_ACKREQ);
		PUT(p, K_TIME, 1, 50, 5);
	}
	PUT(p, K_TIME, 2, 200, 15);
}

/** An XRC SRQ ends, and another one has its number, in the middle of a SEND to it. */
static void
lost_srqs(struct program *p, uint8_t from, uint8_t to)
{
	for (uint8_t n = 0; n < 6; n++) {
		PUT(p, K_RECV, POST_SRQ - 2, 3, 0, 9, 0);
		PUT(p, K_RECV, POST_SRQ - 1, 3, 0, 9, 0);
		PUT(p, K_PACKET, to, 0, 0, 14, 0, 1, HOW_ACKREQ);
		PUT(p, K_SEND | LATER, from, WR_SEND, SEND_SIGNALED, 0x19, 0, FIRST, 1);
		PUT(p, K_PACKET | LATER, to, 1, 0, 14, 0, 1, HOW_ACKREQ);
		if (n % 3 != 0)
			PUT(p, K_CONTROL, C_SRQ, 1, 0, n);
		if (n % 3 == 2)
			PUT(p, K_CONTROL, C_SRQ, 1, 1, n);
		PUT(p, K_PACKET, to, 1 + n % 2, 0, n == 4 ? 1 : 14, 0, 1 + n % 2, HOW_ACKREQ);
		PUT(p, K_CONTROL, C_SRQ, 1, 1, 0);
		PUT(p, K_PACKET, to, n == 5 ? 0x7d : 2, 0, 4, 0, 1, HOW_ACKREQ);
		PUT(p, K_CONTROL, C_STATE, to, QPS_ERR);
		for (uint8_t state = QPS_RESET; state <= QPS_RTS; state++) {
			PUT(p, K_CONTROL, C_STATE, to, state);
			PUT(p, K_CONTROL, C_STATE, from, state);
		}
	}
}

/** Requests while nobody knows where to; then somebody does, or the peer's packet tells. */
static void
nowhere(struct program *p, uint8_t qp)
{
	const uint8_t unknown = 0x81, known = 0x80, answer = 0x11;

	for (uint8_t n = 0; n < 6; n++) {
		PUT(p, K_CONTROL, C_MODIFY, qp, 0, 0, unknown, 0, 0);
		for (uint8_t k = 0; k < 4; k++)
			PUT(p, K_SEND, qp, (n + k) % 7, SEND_SIGNALED,
				(n + k) % 7 < 5 ? 0x17 : 0x12, 0, FIRST, 1);
		if (n % 2 == 0)
			PUT(p, K_CONTROL, C_MODIFY, qp, 0, 0, known, 0, 0);
		PUT(p, K_PACKET | LATER, qp, answer, 0, 0, 0, n == 3 ? 0x60 : 0x1f, 0);
		PUT(p, K_PACKET, qp, answer, 0x70, 0, 0, 0x1f, 0);
		PUT(p, K_PACKET, 2 * QPS + qp, 0x10, 0, 9, 0, 0x1f, HOW_RUN);
		PUT(p, K_TIME, 1, 3, 4);
	}
	PUT(p, K_TIME, 2, 200, 15);
}

/** Answers to READs that are kept, for memory that is there no more; NAKs and patches beside. */
static void
kept_answers(struct program *p, uint8_t qp, uint8_t n)
{
	const uint8_t keep = REQ_KNOB_READ_FILL, all = REQ_KNOB_READ_KEEP >> 8;
	const uint8_t patch = n % 2 * (REQ_KNOB_PATCH >> 8);

	PUT(p, K_CONTROL, C_KNOBS, qp, 0, n << 4, keep | n << 6, all | patch | 3 << 2 | n << 4, n);
	for (uint8_t k = 0; k < 3; k++) {
		for (uint8_t i = 0; i < 4; i++)
			PUT(p, K_SEND | (i < 3 ? LATER : 0), qp, WR_RDMA_READ, SEND_SIGNALED, 0x11,
				0, FIRST, 1);
		PUT(p, K_PACKET, qp, 0x10, 2, 9, 0, 0x1f, 0);
		if (k == n)
			PUT(p, K_CONTROL, C_REGION, 0, 0);
		PUT(p, K_PACKET, qp, 0x10, 1, 9, 0, 0x1f, 0);
		PUT(p, K_TIME, 1, 1, 3);
		PUT(p, K_PACKET, qp, 0x10, 0, 9, 0, 0x1f, 0);
		PUT(p, K_SEND, qp, WR_SEND, SEND_SIGNALED, 0x19, 0, FIRST, 1);
		PUT(p, K_SEND, qp, WR_SEND, SEND_SIGNALED, 0x19, 0, FIRST, 1);
		PUT(p, K_PACKET, qp, 0x11, 1, 0, 0, 0x60, 0);
		PUT(p, K_PACKET, qp, 0x11, 0, 0, 0, 0x60, 0);
		PUT(p, K_CONTROL, C_REGION, 0, 1);
		PUT(p, K_TIME, 1, 40, 3);
	}
}

/** READs of a peer, and requests, at a rate that a CNP has cut; then losses. */
static void
slow_ones(struct program *p, uint8_t qp, uint8_t n)
{
	PUT(p, K_CONTROL, C_KNOBS, qp, 0, 0, 0, 3 << 2, n % 4 | n << 3);
	PUT(p, K_RECV, qp, 15, 0, 9, 0);
	for (uint8_t k = 0; k < 8; k++) {
		PUT(p, K_SEND | LATER, qp, k % 5, SEND_SIGNALED, 0x1a, 0, FIRST, 1);
		PUT(p, K_SEND, qp, WR_RDMA_WRITE, SEND_SIGNALED, 0x3a, 0, FIRST, 1);
		PUT(p, K_PACKET | LATER, qp, 0x7f, 0, 5, 0, 0, 0);
		PUT(p, K_PACKET | LATER, qp, 12, 0, 13, 0, 0, HOW_ACKREQ);
		PUT(p, K_PACKET, QPS + qp, 12, 0, 13, 0, 0, HOW_ACKREQ | HOW_RUN);
		PUT(p, K_PACKET, qp, 0x11, k % 2 * 0x70, 0, 0, k % 4 == 2 ? 0x60 : 0x1f, 0);
		PUT(p, K_TIME, k % 2, k * 16, 4);
		if (k == 5)
			PUT(p, K_CONTROL, n % 2 == 0 ? C_MOVE : C_STATE, qp, QPS_RESET);
	}
	PUT(p, K_TIME, 2, 200, 15);
}

/** The receive queue is empty, and the peer hears of what is posted to it. */
static void
credits(struct program *p, uint8_t qp)
{
	PUT(p, K_CONTROL, C_KNOBS, qp, RESP_KNOB_CREDITS, 0, REQ_KNOB_CREDITS, 3 << 2, 0);
	for (uint8_t n = 0; n < 6; n++) {
		PUT(p, K_PACKET, qp, 10, 0, 4, 0, 0, HOW_ACKREQ);
		PUT(p, K_PACKET | (n % 2 != 0 ? LATER : 0), qp, 12, 0, 4, 0, 0, HOW_ACKREQ);
		PUT(p, K_RECV, qp, n % 3, 0, 9, 0);
		PUT(p, K_PACKET, QPS + qp, 4, 0, 5, 0, 0, HOW_ACKREQ | HOW_RUN);
		PUT(p, K_SEND, qp, WR_SEND, SEND_SIGNALED, 0x17, 0, FIRST, 1);
		PUT(p, K_PACKET, qp, 0x11, 0, 0, 0, n, 0);
	}
}

/** A compact QP before and after it has what it posts with. */
static void
compacts(struct program *p)
{
	const uint8_t qp = QPS - 1;

	for (uint8_t n = 0; n < 4; n++) {
		PUT(p, K_PACKET, qp, 4, 0, 5, 0, 0, HOW_ACKREQ);
		PUT(p, K_PACKET, qp, 9, 0, 4, 0, 0, HOW_ACKREQ);
		PUT(p, K_CONTROL, C_WORK, qp);
		PUT(p, K_RECV, qp, 15, 0, 9, 0);
		for (uint8_t k = 0; k < 7; k++) {
			PUT(p, K_SEND, qp, k, SEND_SIGNALED, k < 5 ? 0x17 : 0x12, 0, FIRST, 1);
			PUT(p, K_PACKET, qp, 0x11, 0x70, 0, 0, 0x1f, 0);
		}
		PUT(p, K_PACKET, 2 * QPS + qp, 4, 0, 5, 0, 0, HOW_ACKREQ | HOW_RUN);
		PUT(p, K_PACKET, qp, 0, 0, 14, 0, 0, HOW_ACKREQ);
		PUT(p, K_CONTROL, n == 0 ? C_MOVE : C_STATE, qp, n == 1 ? QPS_ERR : QPS_RESET);
		PUT(p, K_RECV, qp, 15, 0, 9, 0);
		PUT(p, K_SEND, qp, WR_SEND, SEND_SIGNALED, 0x17, 0, FIRST, 1);
		PUT(p, K_CONTROL, C_MOVED);
		PUT(p, K_CONTROL, n == 3 ? C_DETACH : C_STATE, qp, QPS_INIT);
		PUT(p, K_CONTROL, C_STATE, qp, QPS_RTR);
		PUT(p, K_CONTROL, C_STATE, qp, QPS_RTS);
	}
	PUT(p, K_CONTROL, C_ATTACH, qp);
	PUT(p, K_PACKET, qp, 4, 0, 5, 0, 0, HOW_ACKREQ);
}

/** Requests and answers with other knobs: in order, with gaps, with losses and marks. */
static void
other_knobs(struct program *p, uint8_t qp, uint8_t n)
{
	PUT(p, K_CONTROL, C_KNOBS, qp, 0x11 * n, 0x10 * n + 8 * (n % 2), 0x29 * n, n << 3 | n % 4,
		3 + 8 * n);
	PUT(p, K_RECV, qp, 15, 0, 9, 0);
	for (uint8_t k = 0; k < 16; k++) {
		PUT(p, K_SEND | LATER, qp, k % 7, SEND_SIGNALED, k % 7 < 5 ? 0x1a : 0x12, 0, FIRST,
			1);
		PUT(p, K_SEND, qp, k % 5, 0, 0x1a, 0, FIRST, 1);
		PUT(p, K_PACKET | LATER, 2 * QPS + qp,
			k % 3 == 0   ? 4
			: k % 3 == 1 ? 10
				     : 12,
			k % 4 == 3 ? 2 : 0, 4, 0, 0, HOW_ACKREQ | HOW_RUN | (k % 5) / 4 * HOW_CE);
		PUT(p, K_PACKET, qp, k % 6 == 5 ? 0x7f : 0x0d + k % 6, k % 2 * 0x70,
			k % 6 == 5 ? 5 : 9, 1, k < 11 ? 0x1f : 0x60 + k % 3, 0);
		PUT(p, K_TIME, k % 2, k * 16, 3);
	}
	PUT(p, K_TIME, 2, 200, 15);
}

void
more_programs(struct program *p, unsigned int index)
{
	static const uint8_t knobbed[] = { 0, 15, 18, 13 };

	if (index < 3)
		deaths(p, (uint8_t)index);
	else if (index == 3)
		compacts(p);
	else if (index < 20)
		other_knobs(p, knobbed[index % 4], (uint8_t)(index - 4));
	else if (index < 22)
		lost_srqs(p, index == 20 ? 8 : 10, index == 20 ? 9 : 11);
	else if (index < 24)
		nowhere(p, index == 22 ? 0 : 13);
	else if (index < 28)
		kept_answers(p, 0, (uint8_t)(index - 24));
	else if (index < 36)
		slow_ones(p, index % 2 == 0 ? 18 : 15, (uint8_t)(index - 28));
	else if (index < 38)
		credits(p, index == 36 ? 0 : 14);
}
