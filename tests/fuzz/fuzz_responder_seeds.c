/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Built-in programs: a good stream of every request on every kind of QP, each mutation in the
 * middle of one, and each action; all of it again with a shared receive queue, and once more with
 * alternate paths and feeds. See fuzz_responder.c and fuzz_responder_packet.c for the bytes.
 */
#include "fuzz_responder.h"

enum { MUTATIONS = 24, REQUESTS = 16, SCENES = 12 };
enum { SEEDS = MUTATIONS + REQUESTS + SCENES, PATHS = 32, ALL = 3 * SEEDS + PATHS };
enum { ACK = 0x10, HEAP = 0x40, QUEUE = 0x08, MORE = 0x80, AGAIN = 0x40 };
enum { OTHER = 0x10, MIG = 0x20 }; /* beside MORE and AGAIN */
enum { OPTION_SHARED = 16, OPTION_APM = 32, OPTION_FEEDS = 64 };
enum { PATH = 12, LOAD = 1, REARM = 2, MIGRATED = 0 };
enum { S_PACKET = 0x00, S_POST = 0xa0, S_QP = 0xb0, S_MR = 0xc0, S_TIME = 0xd0, S_NOISE = 0xe0 };
enum { S_DRAIN = 0xf0 };
enum { TO_ERR = 0, TO_RESET = 2, TO_RTR = 4, TO_SQD = 5, CHANGE = 6, GONE = 8, ANEW = 9, LIE = 10 };
enum { TO_RTS = 11, ARM = 15 };

struct program {
	uint8_t *at;
	uint8_t *end;
	bool shared; /* those QPs that share a receive queue, whatever the seed says */
};

static uint8_t
which(const struct program *p, uint8_t a)
{
	static const uint8_t sharing[8] = { 4, 6, 7, 4, 4, 5, 6, 7 };

	return p->shared ? (uint8_t)((a & ~7) | sharing[a & 7]) : a;
}

static void
put(struct program *p, uint8_t kind, uint8_t a, uint8_t b, uint8_t c)
{
	const uint8_t s[STEP] = { kind, kind <= S_QP ? which(p, a) : a, b, c };

	if (p->at + STEP > p->end)
		return;
	memcpy(p->at, s, STEP);
	p->at += STEP;
}

static void
mutated(struct program *p, uint8_t qp, uint8_t request, uint8_t kind, uint8_t a, uint8_t b)
{
	const uint8_t s[STEP] = { S_PACKET, which(p, qp) | ACK, request, 64, 0, 0xc0 | kind, a, b };

	if (p->at + STEP > p->end)
		return;
	memcpy(p->at, s, STEP);
	p->at += STEP;
}

/** Every kind of message once, to its end. */
static void
stream(struct program *p, uint8_t qp)
{
	for (uint8_t k = 0; k < 11; k++) {
		put(p, S_PACKET, qp | ACK | HEAP, k, (uint8_t)(k * 23));
		for (int more = 0; more < 3 && (k == 1 || k == 3); more++)
			put(p, S_PACKET, qp | ACK, (uint8_t)(k + more), 9);
	}
}

static void
mutation(struct program *p, uint8_t kind)
{
	static const uint8_t values[] = { 1, 0xff, 0x80, 4, 40 };

	put(p, S_POST, 0, 15, 0);
	for (uint8_t v = 0; v < sizeof(values); v++) {
		uint8_t qp = v % 3;

		put(p, S_PACKET, qp | ACK, 2, 64);
		mutated(p, qp, v % 2 == 0 ? 2 : 4, kind, values[v], (uint8_t)(v * 3));
		put(p, S_PACKET, qp | ACK, 2, 64);
		put(p, S_QP, qp, TO_RTS, v);
	}
}

static void
request(struct program *p, uint8_t kind)
{
	static const uint8_t qps[] = { 0, 1, 2, 3, 7 };

	for (uint8_t i = 0; i < sizeof(qps); i++) {
		put(p, S_POST, qps[i], 3, kind % 12);
		put(p, S_PACKET, qps[i] | ACK | QUEUE, kind, 20);
		for (uint8_t n = 0; n < 4; n++)
			put(p, S_PACKET, qps[i] | ACK | (n < 3 ? QUEUE : 0), n % 3, 33);
		put(p, S_PACKET, qps[i] | ACK, kind | AGAIN, 0);
		put(p, S_PACKET, qps[i] | ACK, kind | MORE, 20);
	}
}

static void
scene(struct program *p, uint8_t n)
{
	uint8_t v;

	switch (n) {
	case 0: /* all good, all QPs */
		for (v = 0; v < QPS; v++) {
			put(p, S_POST, v, 15, v == 2 ? 4 : 0);
			stream(p, v);
		}
		break;
	case 1: /* READs pile up behind a port that takes nothing; then the region goes */
	case 8:
		put(p, S_DRAIN, 0, 0, 0);
		for (v = 0; v < 12; v++)
			put(p, S_PACKET, ACK | (v % 2), 10, 255);
		for (v = 0; v < 32; v++)
			put(p, S_PACKET, ACK | (v % 2), 10 | AGAIN, (uint8_t)(v * 7));
		put(p, S_PACKET, 1 | ACK, 2, 3);
		if (n == 8) {
			put(p, S_DRAIN, 15, 7, 0);
			break;
		}
		put(p, S_MR, 0, 0, 0);
		put(p, S_DRAIN, 15, 7, 0);
		put(p, S_MR, 0, 1, 0);
		put(p, S_QP, 0, ANEW, 0);
		stream(p, 0);
		break;
	case 2: /* the completion queue runs over */
		put(p, S_DRAIN, 2, 0, 0);
		put(p, S_POST, 7, 15, 0);
		for (v = 0; v < 8; v++)
			put(p, S_PACKET, 7 | ACK | (v < 4 ? QUEUE : 0), 0, 7);
		put(p, S_POST, 7, 3, 0);
		put(p, S_DRAIN, 15, 2, 0);
		put(p, S_QP, 7, TO_RTS, 7);
		stream(p, 7);
		break;
	case 3: /* states */
		for (v = 0; v < 12; v++) {
			put(p, S_POST, 0, 2, 0);
			put(p, S_PACKET, ACK, 0, 64);
			put(p, S_PACKET, ACK, 10, 100);
			put(p, S_QP, 0, v, v * 5);
		}
		break;
	case 4: /* RNR, early retry, in time */
		for (v = 0; v < 4; v++) {
			put(p, S_PACKET, 7 | ACK, 0, 64);
			put(p, S_POST, 7, 0, v);
			put(p, S_PACKET, 7 | ACK, 0, 64);
			put(p, S_TIME, 2, 250, 0);
			put(p, S_PACKET, 7 | ACK, 0, 64);
		}
		break;
	case 5: /* regions change under an open WRITE and under posted WQEs */
		put(p, S_POST, 1, 7, 11);
		put(p, S_PACKET, 1 | ACK, 3, 255);
		put(p, S_MR, 0, 2, 1);
		put(p, S_PACKET, 1 | ACK, 0, 255);
		put(p, S_QP, 1, TO_RTS, 1);
		put(p, S_PACKET, 1 | ACK, 9, 64);
		put(p, S_QP, 2, CHANGE, 0);
		put(p, S_PACKET, 2 | ACK, 4, 15);
		break;
	case 6: /* SQD, less READ depth, gone and another one */
		put(p, S_QP, 0, TO_SQD, 0);
		put(p, S_QP, 0, CHANGE, 0xf1);
		put(p, S_PACKET, ACK | QUEUE, 4, 15);
		put(p, S_PACKET, ACK, 4, 15);
		put(p, S_QP, 0, GONE, 0);
		put(p, S_PACKET, 1 | ACK, 4, 15);
		put(p, S_QP, 0, ANEW, 3);
		put(p, S_QP, 0, LIE, 3);
		put(p, S_PACKET, ACK, 6, 15);
		break;
	case 10: /* messages of several QPs, interleaved; the limit; ends in the middle of one */
		for (v = 0; v < 16; v++) {
			if (v % 4 == 0)
				put(p, S_POST, 0, 3, v);
			put(p, S_QP, 0, ARM, v % 5);
			put(p, S_PACKET, QUEUE | ACK, 1, 3);
			put(p, S_PACKET, 1 | QUEUE | ACK, 1, 3);
			put(p, S_PACKET, 2 | QUEUE | ACK, 5, 3);
			put(p, S_PACKET, QUEUE | ACK, 2, 3);
			put(p, S_PACKET, 1 | (v % 2 != 0 ? QUEUE : 0) | ACK, 2, 3);
			put(p, S_PACKET, QUEUE | ACK, 0, 3);
			put(p, S_PACKET, ACK, 1, 200);
			put(p, S_QP, v % 3, v % 5 == 4 ? TO_ERR : CHANGE, 15);
			put(p, S_QP, v % 3, TO_RTS, v);
		}
		put(p, S_POST, 0, 15, 0xf9);
		for (v = 0; v < 24; v++)
			put(p, S_PACKET, v % 3 | ACK, 0, 9);
		break;
	case 11: /* an immediate inside an open SEND, with and without a WQE for it (RX-PREC-05) */
		for (v = 0; v < 12; v++) {
			uint8_t qp = p->shared ? v % 3 : 1;

			put(p, S_QP, qp, TO_RTS, v);
			put(p, S_POST, qp, v / 6, 0);
			put(p, S_PACKET, qp | QUEUE | ACK, 1, 3);
			put(p, S_PACKET, qp | ACK, MORE | 8, 3);
			put(p, S_PACKET, qp | ACK, 2, 3);
		}
		break;
	case 9: /* READs repeated in part, now and later */
		for (v = 0; v < 24; v++) {
			uint8_t how = 1 | ACK | (v % 3 != 0 ? QUEUE : 0);

			put(p, S_PACKET, 1 | ACK | QUEUE, 10, 60);
			put(p, S_PACKET, how, 10 | AGAIN, v);
			put(p, S_PACKET, how, 2, 3);
			put(p, S_PACKET, 1 | ACK, 10 | AGAIN, (uint8_t)(v * 16 + 9));
		}
		break;
	default:
		for (v = 0; v < 32; v++)
			put(p, S_NOISE, v == 20 ? 0 : QUEUE, v, 60);
		break;
	}
}

static void
path(struct program *p, uint8_t qp, uint8_t what, uint8_t way)
{
	const uint8_t s[STEP] = { S_QP, qp, PATH, what, way };

	if (p->at + STEP > p->end)
		return;
	memcpy(p->at, s, STEP);
	p->at += STEP;
}

/** A QP with an alternate path: armed by a packet, then `n` says what happens. */
static void
migration(struct program *p, uint8_t qp, uint8_t n)
{
	uint8_t v;

	put(p, S_POST, qp, 15, 0);
	put(p, S_PACKET, qp | ACK, n % 2 != 0 ? 2 | MIG : 4, 40); /* stays REARM, or ARMED */
	switch (n) {
	case 0: /* the peer moves, between other requests */
		for (v = 0; v < 6; v++)
			put(p, S_PACKET, qp | ACK, 2 | (v >= 2 ? OTHER | MIG : 0), 64);
		put(p, S_PACKET, qp | ACK, 10, 90);
		put(p, S_PACKET, qp | ACK, 10 | AGAIN | OTHER, 90);
		break;
	case 1: /* asks on the wrong path, and again; the wrong path without asking */
		for (v = 0; v < 12; v++)
			put(p, S_PACKET, qp | ACK | (v % 4 == 0 ? QUEUE : 0),
				(v % 6 < 2 ? 2 : 0) | (v % 3 == 1 ? MIG : 0) |
					(v % 5 == 4 ? OTHER : 0),
				64);
		break;
	case 2: /* there, and on the old path behind it, in one burst */
		put(p, S_PACKET, qp | ACK | QUEUE, 4, 40);
		put(p, S_PACKET, qp | ACK | QUEUE, 2 | OTHER | MIG, 3);
		put(p, S_PACKET, qp | ACK | QUEUE, 2, 3);
		put(p, S_PACKET, qp | ACK, 0 | OTHER | MIG, 3);
		put(p, S_PACKET, qp | ACK, 0, 3);
		break;
	case 3: /* by order, to each of the paths, and back */
		for (v = 0; v < 8; v++) {
			put(p, S_PACKET, qp | ACK, v % 3, 64);
			path(p, qp, MIGRATED << 1, 0);
			put(p, S_PACKET, qp | ACK, 2, 64);
			path(p, qp, LOAD | REARM, v % 4);
			put(p, S_PACKET, qp | ACK, 10, 90);
		}
		break;
	case 4: /* answers wait for the port, the QP moves, the port takes them */
		put(p, S_DRAIN, 0, 0, 0);
		for (v = 0; v < 12; v++)
			put(p, S_PACKET, qp | ACK, v % 4 == 3 ? 6 : 10, 255);
		put(p, S_PACKET, qp | ACK, 6 | OTHER | MIG, 8);
		put(p, S_PACKET, qp | ACK, 10 | AGAIN, 8);
		put(p, S_DRAIN, 15, 7, 0);
		put(p, S_PACKET, qp | ACK, 10, 255);
		break;
	case 5: /* on the right one, but for its source, tag or key */
		for (v = 0; v < 8; v++) {
			mutated(p, qp, 2 | OTHER | MIG, v < 5 ? 10 : 6,
				v < 5 ? (uint8_t)(2 << v) : v, 5);
			put(p, S_PACKET, qp | ACK, 2, 3);
		}
		put(p, S_PACKET, qp | ACK, 2 | OTHER | MIG, 3);
		break;
	case 6: /* an address that the port has no more; messages as long as a feed's buffers */
		path(p, qp, MIGRATED << 1, 0);
		path(p, qp, LOAD | REARM, 3);
		put(p, S_PACKET, qp | ACK, 2, 3);
		put(p, S_PACKET, qp | ACK, 2 | OTHER | MIG, 3);
		for (v = 5; v < 7; v++) {
			put(p, S_PACKET, qp | ACK, 1, v);
			put(p, S_PACKET, qp | ACK, 0, v);
		}
		put(p, S_QP, qp, TO_RTS, 9);
		break;
	default: /* a path whose neighbour is not known; RESET forgets all of it */
		path(p, qp, LOAD, 0xfe);
		put(p, S_PACKET, qp | ACK, 2 | OTHER | MIG, 64);
		put(p, S_PACKET, qp | ACK, 10, 90);
		put(p, S_QP, qp, TO_RTS, 9);
		put(p, S_PACKET, qp | ACK, 10, 90);
		put(p, S_QP, qp, ANEW, 9);
		put(p, S_PACKET, qp | ACK, 10, 90);
		break;
	}
	stream(p, qp);
}

size_t
fuzz_seed(unsigned int index, uint8_t *buf, size_t room)
{
	static const uint8_t ways[4] = { 0, 1, 2, 7 };
	const bool paths = index >= 2 * SEEDS;
	struct program p = { buf + 2, buf + room, index >= SEEDS && !paths };

	if (room < 2 || index >= ALL)
		return 0;
	if (index >= 3 * SEEDS) {
		index -= 3 * SEEDS;
		buf[0] = 0;
		buf[1] = (uint8_t)(OPTION_APM | (index % 3 == 0 ? OPTION_FEEDS : 0));
		migration(&p, ways[index % 4], (uint8_t)(index / 4));
		return (size_t)(p.at - buf);
	}
	index %= SEEDS;
	buf[0] = index % 3 == 2 ? (uint8_t)(index * 5) : 0;
	if (index == SEEDS - 1)
		buf[0] = RESP_KNOB_RNR_FIRST;
	buf[1] = (uint8_t)((index % 2 == 1 ? 0 : 4) | (p.shared ? OPTION_SHARED : 0) |
			   (paths ? OPTION_APM | OPTION_FEEDS : 0));
	if (index < MUTATIONS)
		mutation(&p, (uint8_t)index);
	else if (index < MUTATIONS + REQUESTS)
		request(&p, (uint8_t)(index - MUTATIONS));
	else if (index < MUTATIONS + REQUESTS + SCENES)
		scene(&p, (uint8_t)(index - MUTATIONS - REQUESTS));
	else
		return 0;
	return (size_t)(p.at - buf);
}
