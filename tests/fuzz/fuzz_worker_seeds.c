/* SPDX-License-Identifier: BSD-3-Clause */
/* Built-in programs. */
#include "fuzz_worker_seeds.h"

/** Every request that there is, to the other end, which has receives. */
static void
all_requests(struct program *p, uint8_t from, uint8_t to)
{
	/* Those that end the QP come last. */
	static const uint8_t ops[] = { WR_SEND, WR_SEND_WITH_IMM, WR_RDMA_WRITE,
		WR_RDMA_WRITE_WITH_IMM, WR_RDMA_READ, WR_ATOMIC_CMP_AND_SWP,
		WR_ATOMIC_FETCH_AND_ADD, WR_SEND, WR_BIND_MW, WR_SEND_WITH_INV, WR_LOCAL_INV, 10 };

	PUT(p, K_RECV, to, 15, 0, 9, 0);
	PUT(p, K_RECV, POST_SRQ - 1, 15, 0, 9, 0);
	PUT(p, K_RECV, POST_SRQ - 2, 15, 0, 9, 0); /* FIRST is of this one */
	PUT(p, K_SEND, from, WR_SEND, SEND_INLINE | SEND_SIGNALED, 40, 0, FIRST, 1);
	for (uint8_t i = 0; i < sizeof(ops); i++) {
		const bool atomic =
			ops[i] == WR_ATOMIC_CMP_AND_SWP || ops[i] == WR_ATOMIC_FETCH_AND_ADD;
		const uint8_t len = atomic ? 2 : (uint8_t)(6 + i % 5);

		PUT(p, K_SEND, from, ops[i], SEND_SIGNALED, 0x10 | len, 0, FIRST, 1);
		PUT(p, K_TIME, 0, 9, 6);
		if (i == 7)
			for (uint8_t n = 0; n < 24; n++)
				PUT(p, K_SEND | (n % 8 == 7 ? 0 : LATER), from, ops[n % 7], n % 2,
					n % 7 >= 5 ? 0x12 : 0x14, 0, FIRST, 1);
	}
	PUT(p, K_TIME, 1, 200, 15);
	PUT(p, K_TIME, 2, 200, 15);
}

/** Datagrams by every handle, to QPs of this process, a group and others; handles go and change. */
static void
datagrams(struct program *p, uint8_t from)
{
	for (uint8_t i = 6; i < 8; i++)
		PUT(p, K_RECV, i, 15, 0, 9, 0);
	for (uint8_t h = 0; h < 3 * HANDLES; h++) {
		PUT(p, K_SEND, from, h % 4 == 3 ? WR_SEND_WITH_IMM : WR_SEND, SEND_SIGNALED,
			0x10 | (h % 8), 0, h, h % 2);
		if (h >= 2 * HANDLES)
			PUT(p, K_CONTROL, C_HANDLE, h % HANDLES, h % 5);
	}
	for (uint8_t i = 0; i < 12; i++) {
		PUT(p, K_PACKET, from, i, 0, i, 0, i < 10 ? i : 0xff, (i % 2) * 0x10 | i % 4);
		PUT(p, K_PACKET, from, i, 0, i, 0, i, 0x50);
	}
	PUT(p, K_CONTROL, C_GROUP, 0, from, 0);
	PUT(p, K_PACKET, from, 0, 0, 7, 0, 0, 0x10);
	PUT(p, K_CONTROL, C_GROUP, 1, 4, 1);
	PUT(p, K_PACKET, from, 0, 0, 7, 0, 0, 0x50);
	for (uint8_t i = 0; i < 24;
		i++) /* into memory that it may only read, behind what is left */
		PUT(p, i % 2 == 0 ? K_RECV : K_PACKET, from, 0, 0, 7, 1, 0, 1);
}

/** Bound, used from the other end, invalidated by either; then region and window go. */
static void
windows(struct program *p, uint8_t from, uint8_t to)
{
	/* Byte 6 of a send: each window, at the first region's address. */
	static const uint8_t keys[WINDOWS] = { 75, 70, 65 };

	PUT(p, K_RECV, to, 15, 0, 9, 0);
	for (uint8_t w = 0; w < WINDOWS; w++) {
		PUT(p, K_SEND, to, WR_BIND_MW, SEND_SIGNALED, 200, 0, keys[w], 14 << 2);
		PUT(p, K_SEND, from, WR_RDMA_WRITE, SEND_SIGNALED, 0x14, 0, keys[w], 1);
		PUT(p, K_SEND, from, WR_RDMA_READ, SEND_SIGNALED, 0x14, 0, keys[w], 1);
		PUT(p, K_PACKET, to, 10, 0, 4, 5 + w, 0, 1);
		PUT(p, K_CONTROL, C_REGION, 0, 0);
		if (w != 0)
			PUT(p, K_SEND, from, WR_SEND_WITH_INV, SEND_SIGNALED, 0x14, 0, keys[w], 1);
		PUT(p, K_SEND, to, WR_BIND_MW, SEND_SIGNALED, 100, 1, keys[w], 1 | 4 << 2);
		PUT(p, K_SEND | LATER, to, WR_LOCAL_INV, SEND_SIGNALED, 0, 0, keys[w], 1);
		PUT(p, K_SEND, to, WR_RDMA_WRITE, SEND_SIGNALED | SEND_FENCE, 0x14, 0, FIRST, 1);
		PUT(p, K_CONTROL, C_STATE, to, QPS_RESET);
		PUT(p, K_CONTROL, C_ATTACH, to);
		PUT(p, K_CONTROL, C_STATE, from, QPS_RESET);
		PUT(p, K_CONTROL, C_ATTACH, from);
	}
	PUT(p, K_SEND, to, WR_BIND_MW, SEND_SIGNALED, 200, 0, keys[1], 14 << 2);
	PUT(p, K_CONTROL, C_WINDOW, 2, 0);
	PUT(p, K_CONTROL, C_DETACH, to, 0);
	PUT(p, K_SEND, from, WR_RDMA_WRITE, SEND_SIGNALED, 0x14, 0, keys[1], 1);
	PUT(p, K_CONTROL, C_REGION, 0, 0);
	PUT(p, K_CONTROL, C_ATTACH, to);
	PUT(p, K_CONTROL, C_REGION, 0, 1);
}

/** A message of each kind from the wire, and answers to what the QP asks. */
static void
from_the_wire(struct program *p, uint8_t qp)
{
	static const uint8_t whole[] = { OP_RC_SEND_ONLY, OP_RC_WRITE_ONLY, OP_RC_READ_REQUEST,
		OP_RC_COMPARE_SWAP, OP_RC_FETCH_ADD };

	PUT(p, K_RECV, qp, 15, 0, 9, 0);
	PUT(p, K_RECV, POST_SRQ - 1, 15, 0, 9, 0);
	for (uint8_t op = 0; op < 0x18; op++)
		PUT(p, op % 5 == 4 ? K_PACKET | LATER : K_PACKET, qp, op, 0, op % 4 < 2 ? 9 : 4, 0,
			op % 4, op % 7 == 3 ? 9 : 1);
	PUT(p, K_CONTROL, C_STATE, qp, QPS_RESET);
	PUT(p, K_CONTROL, C_ATTACH, qp);
	for (uint8_t i = 0; i < 15; i++) /* good ones, then the same again, and marked */
		PUT(p, K_PACKET | (i % 2 != 0 ? LATER : 0), qp, whole[i % sizeof(whole)],
			i < 5 ? 0 : 0xff - i % 5, 4, 0, 1, i % 2 != 0 ? 9 : 1);
	PUT(p, K_PACKET, qp, 0x7f, 0, 5, 0, 0, 0);
	PUT(p, K_PACKET, 6, 0, 0, 8, 0, 0, 4);
	PUT(p, K_CONTROL, C_QUERY, qp);
	for (uint8_t n = 0; n < 16; n++) {
		PUT(p, K_SEND, qp, n % 7, SEND_SIGNALED, 0x10 | (n % 7 < 5 ? 7 : 2), 0, FIRST, 1);
		PUT(p, K_PACKET, qp, 0x0d + n % 6, n % 3 == 0 ? 0x70 : 0, n % 2 == 0 ? 9 : 0, 1,
			n < 10 ? 0x1f : 0x20 + n * 8, 0);
		PUT(p, K_TIME, 1, n * 16, 3);
	}
	for (uint8_t n = 0; n < 4; n++) { /* FLUSH and ATOMIC WRITE, at both ends */
		PUT(p, K_SEND, qp, 0xe0 + n, SEND_SIGNALED, 0x12, 0, FIRST, 1);
		PUT(p, K_PACKET, qp, 0x10, 0, 0, 1, 0x1f, 0);
		PUT(p, K_PACKET, qp, 0x7d + n % 2, 0, n % 2 * 4, 0, 1, 1);
	}
	PUT(p, K_PACKET, qp, 4, 0, 5, 0, 3, 1 | 0x20);
	PUT(p, K_PACKET, qp, 0x81, 0, 4, 0, 0, 0);
}

/** All at once while the port takes nothing, then states and ends in the middle of it. */
static void
trouble(struct program *p, uint8_t n)
{
	PUT(p, K_PORT, 1);
	for (uint8_t i = 0; i < QPS; i++) {
		PUT(p, K_RECV | LATER, i, 15, 0, 9, 0);
		PUT(p, K_SEND | LATER, i, n % 3 == 0 ? WR_RDMA_READ : WR_SEND, SEND_SIGNALED, 0x19,
			0, FIRST, 1);
		PUT(p, K_SEND | LATER, i, WR_RDMA_WRITE, SEND_SIGNALED, 0x3a, 0, FIRST, 1);
	}
	for (uint8_t i = 0; i < QPS; i++)
		PUT(p, K_CONTROL, n % C_N, i, n < C_N ? QPS_ERR : QPS_SQD, 1, 5);
	PUT(p, K_CONTROL, C_SRQ, 1, 0, 3);
	PUT(p, K_CONTROL, C_CLIENT, 0, n, 3);
	PUT(p, K_TIME, 1, 100, 15);
	PUT(p, K_PORT, 0);
	PUT(p, K_TIME, 2, 100, 15);
	if (n % 2 != 0)
		for (uint8_t i = 0; i < 28; i++)
			PUT(p, K_SCRIBBLE, i * 9, i * 8, (i & 1) << 7, n, i % 4, 0, (i % 3) * 0x7f);
}

/** Long packets of RC, of which many are looked at together, between datagrams to a group. */
static void
long_ones(struct program *p, uint8_t qp, uint8_t op)
{
	const uint8_t many = 8 * QPS;

	PUT(p, K_RECV, qp, 15, 0, 9, 0);
	PUT(p, K_RECV, POST_SRQ - 1, 15, 0, 9, 0);
	PUT(p, K_RECV, 6, 15, 0, 9, 0);
	PUT(p, K_RECV, 7, 15, 0, 9, 0);
	for (uint8_t n = 0; n < 4; n++) {
		const uint8_t flags = HOW_ACKREQ | (n != 0 ? HOW_RUN : 0);

		PUT(p, n % 2 == 0 ? K_PACKET | LATER : K_PACKET, n == 3 ? many + qp : qp, op, 0, 13,
			0, 0, flags);
		PUT(p, K_PACKET | (n == 2 ? LATER : 0), 6, 0, 0, n, 0, 0, HOW_GROUP);
		PUT(p, K_PACKET, 17, 0, 0, n, 0, 0, HOW_GROUP | (n % 2 == 0 ? HOW_V6 : 0));
		PUT(p, K_RECV, qp, 15, 0, 9, 0);
		PUT(p, K_PACKET | LATER, 2 * QPS + qp, op, 0, 7, 0, 0, flags | HOW_RUN);
		PUT(p, K_PACKET, 2 * QPS + qp, op, 0, 13, 0, 0, flags | HOW_RUN);
	}
}

/** A QP goes to the other worker and back, in the middle of what comes and what it sends. */
static void
moves(struct program *p, uint8_t qp)
{
	for (uint8_t n = 0; n < 9; n++) {
		PUT(p, K_RECV, qp, 3, 0, 9, 0);
		PUT(p, K_RECV, qp ^ 31, 3, 0, 9, 0); /* 15 and 16 are connected */
		PUT(p, K_SEND, qp, n % 5, SEND_SIGNALED, 0x18, 0, FIRST, 1);
		PUT(p, K_PACKET | LATER, 3 * QPS + qp, n % 3 == 0 ? 10 : 4, 0, 13, 0, 0,
			HOW_ACKREQ | HOW_RUN);
		PUT(p, K_CONTROL, C_MOVE, qp);
		PUT(p, K_PACKET, 3 * QPS + qp, 0, 0, 4, 0, 0, HOW_GROUP | HOW_RUN);
		PUT(p, K_PACKET, 3 * QPS + qp, 4, 0, 5, 0, 0, HOW_ACKREQ | HOW_RUN);
		PUT(p, K_CONTROL, C_IMPAIR, n % 4 != 3);
		PUT(p, K_TIME, 1, 9, 6);
	}
	PUT(p, K_CONTROL, C_MOVED);
	PUT(p, K_CONTROL, C_RESIZE, qp % CQS);
}

/** The peer migrates to the other path, and back; a feed is answered; a compact QP works. */
static void
migrations(struct program *p)
{
	const uint8_t migrates = QPS - 3, feed = QPS - 2, compact = QPS - 1;

	PUT(p, K_RECV, migrates, 15, 0, 9, 0);
	for (uint8_t n = 0; n < 12; n++) {
		PUT(p, K_PACKET | (n % 3 == 0 ? LATER : 0), migrates, n % 2 == 0 ? 10 : 4, 0,
			(n & 2) << 4 | 4, n % 4 > 1 ? 0x80 : 0, 0, HOW_ACKREQ | HOW_RUN);
		PUT(p, K_SEND, migrates, WR_SEND, SEND_SIGNALED, 0x14, 0, FIRST, 1);
		PUT(p, K_PACKET, feed, 0x11, 0x70, 0, 0, n < 10 ? 0x1f : 0x60, 0);
		PUT(p, K_PACKET, compact,
			n % 3 == 0   ? 12
			: n % 3 == 1 ? 10
				     : 0x14,
			0, 4, 0, 0, HOW_ACKREQ);
		PUT(p, K_TIME, 1, n * 16, 3);
		if (n == 6)
			PUT(p, K_CONTROL, C_STATE, migrates, QPS_SQD);
		if (n == 7)
			PUT(p, K_CONTROL, C_MOVE, feed);
	}
	PUT(p, K_TIME, 2, 200, 15);
	PUT(p, K_CONTROL, C_MOVED);
	PUT(p, K_PACKET, compact, 4, 0, 4, 0, 0, HOW_ACKREQ);
	PUT(p, K_CONTROL, C_DETACH, compact);
	PUT(p, K_CONTROL, C_ATTACH, compact);
	PUT(p, K_PACKET, compact, 12, 0, 4, 0, 0, HOW_ACKREQ);
}

/** Attributes change while packets come and go: in RTS, on the way to SQD, there, and back. */
static void
changes(struct program *p, uint8_t qp)
{
	static const uint8_t to[] = { 0, 0x80 | QPS_SQD, 0, 0x80 | QPS_RTS, 0, 0x80 | QPS_SQD };

	PUT(p, K_RECV, qp, 15, 0, 9, 0);
	for (uint8_t n = 0; n < 18; n++) {
		PUT(p, K_SEND | LATER, qp, n % 7, SEND_SIGNALED, n % 7 >= 5 ? 0x12 : 0x17, 0, FIRST,
			1);
		PUT(p, K_PACKET | LATER, 2 * QPS + qp,
			n % 3 == 0   ? 12
			: n % 3 == 1 ? 10
				     : 4,
			0, 4 | (n & 4) << 3, (n & 8) << 4, 0, HOW_ACKREQ | HOW_RUN);
		PUT(p, K_PACKET, qp, 0x11, 0x70, 0, 0, 0x1f, 0);
		if (n % 4 == 1)
			PUT(p, K_PORT, 8 + n % 8, 99, n < 9 ? 0x18 : 0xff, n % 3);
		PUT(p, K_CONTROL, C_MODIFY, qp, to[n % sizeof(to)], n < 9 ? 0x7f : n * 29,
			n < 6 ? n % 2 : 0x80 | n, n < 12 ? 15 : n, 3 | n << 2);
	}
	PUT(p, K_CONTROL, C_MODIFY, qp, 0, 0, 0x80, 0, 0);
	PUT(p, K_TIME, 2, 200, 15);
}

/** More comes than is served, of two peers; completions are not polled, and buffers are few. */
static void
floods(struct program *p, uint8_t a, uint8_t b, uint8_t op)
{
	PUT(p, K_RECV, a, 15, 0, 9, 0);
	PUT(p, K_RECV, b, 15, 0, 9, 0);
	PUT(p, K_CONTROL, C_LIMIT, a, 5);
	PUT(p, K_CONTROL, C_MOVE, 14);
	PUT(p, K_FLOOD, a, op, b, 13, 0, 0, HOW_ACKREQ);
	PUT(p, K_PORT, 2 + 4 * (op % 2), 9);
	PUT(p, K_FLOOD, a, 4, b, 5, 0, 0, HOW_ACKREQ);
	PUT(p, K_RECV, b, 15, 0, 9, 0);
	PUT(p, K_PACKET, 4 * QPS + b, 4, 0, 5, 0, 0, HOW_ACKREQ | HOW_RUN);
	PUT(p, K_PORT, 0);
	PUT(p, K_PACKET, 4 * QPS + b, 4, 0, 5, 0, 0, HOW_ACKREQ | HOW_RUN);
}

size_t
fuzz_seed(unsigned int index, uint8_t *buf, size_t room)
{
	static const uint8_t pairs[][2] = { { 1, 2 }, { 2, 1 }, { 4, 5 }, { 5, 4 }, { 8, 9 },
		{ 12, 12 }, { 0, 0 }, { 3, 3 }, { 10, 11 }, { 15, 16 } };
	static const uint8_t many[][3] = { { 0, 13, 4 }, { 14, 13, 10 }, { 14, 18, 12 },
		{ 18, 19, 4 }, { 6, 17, 0 } };
	static const uint8_t changing[] = { 0, 18, QPS - 3, 15 };
	struct program p = { buf, buf + room };

	if (index < 10)
		all_requests(&p, pairs[index][0], pairs[index][1]);
	else if (index < 12)
		datagrams(&p, (uint8_t)(6 + index % 2));
	else if (index < 16)
		windows(&p, pairs[index - 12][0], pairs[index - 12][1]);
	else if (index < 16 + QPS)
		from_the_wire(&p, (uint8_t)(index - 16));
	else if (index < 16 + QPS + 2 * C_N)
		trouble(&p, (uint8_t)(index - 16 - QPS));
	else if (index < MORE + 2)
		long_ones(&p, index == MORE ? 0 : 14, index == MORE ? 4 : 10);
	else if (index < MORE + 6)
		moves(&p, (uint8_t)(index - MORE - 2 + 14));
	else if (index < MORE + 11)
		floods(&p, many[index - MORE - 6][0], many[index - MORE - 6][1],
			many[index - MORE - 6][2]);
	else if (index == MORE + 11)
		migrations(&p);
	else if (index < MORE + 16)
		changes(&p, changing[index - MORE - 12]);
	else if (index >= MORE + 16)
		more_programs(&p, index - MORE - 16);
	/* With all registers, narrow ones, none: width_of(). */
	for (uint32_t n = p.at != buf ? index % 3 : 0; n != 0 && p.at != p.end; n--)
		*p.at++ = 0;
	return (size_t)(p.at - buf);
}
