/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sim-unacked [--seeds N] [--first S] [--packets MIN]
 *
 * Two queue pairs without ACKs and a link that loses, repeats, overtakes and delays, on both sides
 * of it what lib/requester and lib/responder are. Of three seeds two are UC, and one is UD, where
 * each packet is a message that is received if a receive is there, in whatever order they arrive. A
 * seed is a run; a failure prints the seed.
 *
 * The oracle knows each packet by its message and its part, which nothing under test looks at: a
 * message is received if its parts arrive one behind the other with nothing between them, and if a
 * receive is there that it fits. What else is lost, nobody may see. Sends complete in order, each
 * once its last packet has been handed to the port, and never before.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../clib/rng.h"
#include "args.h"
#include "requester.h"
#include "responder.h"
#include "verbs.h"
#include "wire_build.h"

#define USAGE "sim-unacked [--seeds N] [--first S] [--packets MIN]"

enum {
	SLOTS = 32, /* work requests, of a power of two */
	PARTS = 9,  /* packets of a message, at most */
	PMTU = 256,
	ROOM = PMTU * PARTS,
	TARGET = 1 << 16, /* bytes that the peer may write to */
	FLYING = 64,
	PORT = 24, /* frames that wait for the port */
	KEY = 0x1001,
	FRAME = PMTU + 160,
};

/** One frame, and what only the oracle knows. */
struct frame {
	uint64_t message;
	uint32_t part, parts;
	uint32_t bytes; /* of the whole message */
	uint32_t len;
	uint32_t delay; /* arrives so many frames late */
	bool bad_key;
	uint8_t op; /* of the work request */
	uint64_t va;
	uint8_t raw[FRAME];
};

struct run {
	struct rng g;
	uint64_t seed, packets, received, lost, completed, faults, datagrams;
	bool ud;
	uint32_t head; /* bytes ahead of what is received */
	/* the sender */
	struct requester req;
	struct requester_wr wr[SLOTS];
	uint64_t posted, done;
	struct frame port[PORT];
	uint32_t port_n;
	psn_t next;      /* that must leave next */
	uint64_t broken; /* `faulty`: the message whose buffer cannot be read */
	bool faulty;
	uint32_t window;
	/* the link */
	struct frame flying[FLYING];
	uint32_t flying_n;
	uint32_t loss, repeat, overtake;
	/* the receiver */
	struct responder resp;
	bool active;       /* a receive was taken, and is not done with */
	uint32_t receives; /* posted and not taken */
	uint32_t room;     /* bytes of each */
	uint8_t buffer[ROOM];
	uint8_t target[TARGET];
	/* the oracle's receiver */
	struct {
		uint64_t message;
		uint32_t part; /* due; 0: none is open */
		bool held;     /* a receive is the open message's, or was a broken one's */
	} want;
	uint8_t shadow[TARGET];
};

static struct run r;

#define CHECK(cond, ...)                                                               \
	do {                                                                           \
		if (UNLIKELY(!(cond))) {                                               \
			printf("sim-unacked --first %" PRIu64 " --seeds 1: ", r.seed); \
			printf(__VA_ARGS__);                                           \
			printf("\n");                                                  \
			exit(1);                                                       \
		}                                                                      \
	} while (0)

static uint8_t
byte_of(uint64_t message, uint32_t offset)
{
	return (uint8_t)(message * 0x9e3779b1u + offset * 0x85ebca6bu + (offset >> 8));
}

/* ---- the sender ------------------------------------------------------------------------------ */

static void
post(void)
{
	static const uint8_t ops[] = { WR_SEND, WR_SEND_WITH_IMM, WR_RDMA_WRITE,
		WR_RDMA_WRITE_WITH_IMM };
	struct requester_wr *w = &r.wr[r.posted % SLOTS];

	*w = (struct requester_wr){ .wr_id = r.posted,
		.opcode = ops[below(&r.g, r.ud ? 2 : 4)],
		.flags = rarely(&r.g, 2) ? SEND_SIGNALED : 0,
		.imm = (uint32_t)r.posted,
		.rkey = rarely(&r.g, 12) ? KEY + 1 : KEY };
	w->len = rarely(&r.g, 8) ? 0 : range(&r.g, 1, ROOM);
	if (rarely(&r.g, 3))
		w->len = (w->len + PMTU - 1) / PMTU * PMTU;
	if (r.ud && !rarely(&r.g, 300)) /* UD-12: now and then one is too long */
		w->len = rarely(&r.g, 3) ? PMTU : w->len % (PMTU + 1);
	w->remote_addr = below(&r.g, TARGET - ROOM);
	r.posted++;
	requester_posted(&r.req, (uint32_t)r.posted);
}

/** Completions of a verdict. */
static void
completed(const struct requester_verdict *v)
{
	if ((v->act & REQACT_COMPLETE) != 0) {
		CHECK(v->head_was == (uint32_t)r.done, "UC-02: completes %u, %" PRIu64 " is next",
			v->head_was, r.done);
		for (uint32_t i = 0; i < v->completed; i++, r.done++, r.completed++) {
			const struct requester_wr *w = &r.wr[r.done % SLOTS];

			CHECK(!r.faulty || r.done != r.broken, "a broken request succeeds");
			for (uint32_t k = 0; k < r.port_n; k++)
				CHECK(r.port[k].message != w->wr_id,
					"UC-02: done while a packet waits for the port");
		}
	}
	if ((v->act & REQACT_ERROR) == 0)
		return;
	if (r.ud && r.wr[v->failed % SLOTS].len > PMTU && !(r.faulty && r.broken <= r.done)) {
		CHECK(v->failed == (uint32_t)r.done && v->wc_status == WC_LOC_LEN_ERR,
			"UD-12: fails %u at %" PRIu64 ", status %u", v->failed, r.done,
			v->wc_status);
	} else {
		CHECK(r.faulty && v->failed == (uint32_t)r.broken && r.done == r.broken,
			"UC-15: fails %u at %" PRIu64, v->failed, r.done);
		CHECK(v->wc_status == WC_LOC_PROT_ERR, "status %u", v->wc_status);
	}
	/* SQE, flushed, and back to RTS */
	r.faults++;
	r.done = r.posted;
	r.faulty = false;
	requester_resume(&r.req);
}

static void
build(const struct requester_packet *p)
{
	const struct requester_wr *w = &r.wr[p->position % SLOTS];
	const struct wire_path path = { .ttl = 64, .sport = 0xc000 };
	struct frame *f = &r.port[r.port_n];
	uint8_t payload[PMTU];
	struct wire_fields fields = { .opcode = p->opcode,
		.flags = p->flags,
		.pkey = 0xffff,
		.dest_qpn = 17,
		.psn = p->psn,
		.deth = { 0x11111111, 0x22 },
		.reth = { p->va, p->rkey, p->dma_len },
		.imm = p->imm,
		.payload = payload,
		.payload_len = p->len };

	CHECK(psn_eq(p->psn, r.next), "PSN %06x, %06x is next", p->psn.v, r.next.v);
	CHECK((p->flags & PKT_ACKREQ) == 0 && !p->resend, "asks, or sends again");
	for (uint32_t i = 0; i < p->len; i++)
		payload[i] = byte_of(w->wr_id, p->offset + i);
	*f = (struct frame){ .message = w->wr_id,
		.part = p->offset / PMTU,
		.parts = w->len == 0 ? 1 : (w->len + PMTU - 1) / PMTU,
		.bytes = w->len,
		.bad_key = w->rkey != KEY && w->len != 0,
		.op = w->opcode,
		.va = w->remote_addr };
	f->len = (uint32_t)wire_build(&path, &fields, 0, f->raw, sizeof(f->raw));
	r.port_n++;
	r.next = psn_add(r.next, 1);
}

static void
send(void)
{
	struct requester_packet p;
	struct requester_verdict v;

	while (r.port_n < PORT) {
		const enum requester_stop why = requester_next(&r.req, 1, &p);

		if (why == REQ_FAULT) {
			requester_check_fault(&r.req, &v);
			completed(&v);
		}
		if (why != REQ_SEND)
			return;
		CHECK(!r.req.timing, "a timer runs");
		if (!r.faulty && rarely(&r.g, 400)) { /* its buffer is gone */
			r.faulty = true;
			r.broken = r.wr[p.position % SLOTS].wr_id;
			v = (struct requester_verdict){ 0 };
			requester_local_fault(&r.req, p.position, WR_FAULT_PROT, &v);
			completed(&v);
			return;
		}
		build(&p);
	}
}

/** The port takes some frames, and they are on the link. */
static void
depart(uint32_t n)
{
	struct requester_verdict v;
	struct wire_pkt p;

	n = n < r.port_n ? n : r.port_n;
	if (n == 0)
		return;
	for (uint32_t i = 0; i < n; i++) {
		const struct frame *f = &r.port[i];

		r.packets++;
		r.datagrams += r.ud;
		p.psn = psn(be24_load(f->raw + 14 + 20 + 8 + 9));
		if (chance(&r.g, r.loss)) {
			r.lost++;
			continue;
		}
		for (uint32_t k = chance(&r.g, r.repeat) ? 2 : 1; k != 0 && r.flying_n < FLYING;
			k--) {
			r.flying[r.flying_n] = *f;
			r.flying[r.flying_n++].delay =
				chance(&r.g, r.overtake) ? below(&r.g, 20) : 0;
		}
	}
	memmove(r.port, r.port + n, (r.port_n - n) * sizeof(r.port[0]));
	r.port_n -= n;
	requester_left(&r.req, psn_add(p.psn, 1), 1, &v);
	completed(&v);
}

/* ---- the receiver ---------------------------------------------------------------------------- */

/** What the oracle says of a frame that arrives. @return a message is whole with it. */
static bool
expect(const struct frame *f, bool *places)
{
	const bool sends = f->op == WR_SEND || f->op == WR_SEND_WITH_IMM;
	const bool last = f->part + 1 == f->parts;
	const bool takes = sends ? f->part == 0 : f->op == WR_RDMA_WRITE_WITH_IMM && last;

	*places = false;
	if (f->part != 0 && (r.want.part != f->part || r.want.message != f->message)) {
		r.want.part = 0;
		return false;
	}
	r.want.part = 0;
	if (takes && !r.want.held && r.receives == 0)
		return false; /* UC-03 */
	if (sends && r.head + f->part * PMTU + (last ? f->bytes - f->part * PMTU : PMTU) > r.room)
		return false; /* UC-12: the receive is for the next one */
	if (!sends && f->bad_key)
		return false; /* UC-04 */
	*places = true;
	if (takes && !r.want.held) {
		r.receives--;
		r.want.held = true;
	}
	if (last) {
		if (sends || takes)
			r.want.held = false;
		return true;
	}
	r.want.message = f->message;
	r.want.part = f->part + 1;
	return false;
}

static void
place(const struct frame *f, const struct wire_pkt *p, const struct responder_verdict *v)
{
	if ((v->act & ACT_PLACE_SEND) != 0) {
		CHECK(r.active && v->offset + p->payload_len <= r.room, "beyond the receive");
		memcpy(r.buffer + v->offset, wire_payload(p), p->payload_len);
	}
	if ((v->act & ACT_PLACE_WRITE) != 0) {
		CHECK(v->va + p->payload_len <= TARGET, "beyond the region");
		memcpy(r.target + v->va, wire_payload(p), p->payload_len);
	}
	if (f->op != WR_SEND && f->op != WR_SEND_WITH_IMM)
		return;
	for (uint32_t i = 0; (v->act & ACT_COMPLETE) != 0 && i + r.head < v->byte_len; i++)
		CHECK(r.buffer[r.head + i] == byte_of(f->message, i), "byte %u of %u is another's",
			i, v->byte_len);
}

/** Facts of a packet, as a worker finds them. `had` are the receives before the oracle took one. */
static void
facts(const struct wire_pkt *p, uint32_t had, struct responder_facts *f)
{
	struct responder_query q;

	responder_query(&r.resp, p, &q);
	*f = (struct responder_facts){ .key_ok = q.key && q.rkey == KEY && q.va + q.len <= TARGET };
	if (q.wqe) {
		f->has_wqe = r.active || had != 0;
		f->wqe_bytes = r.room;
	}
}

static void
receive(const struct frame *f)
{
	const struct wire_port port = { .has_ipv4 = true };
	const uint32_t had = r.receives;
	bool places, whole = expect(f, &places);
	struct responder_verdict v;
	struct responder_facts facts_of;
	struct wire_pkt p;

	CHECK(wire_parse(&port, f->raw, f->len, &p) == WIRE_CLASS_ROCE && p.faults == 0,
		"a frame is not what was built");
	responder_resync(&r.resp, &p);
	facts(&p, had, &facts_of);
	responder_receive(&r.resp, &p, &facts_of, 1, &v);
	CHECK((v.act & (ACT_ACK | ACT_NAK | ACT_ERR | ACT_EVENT)) == 0, "UC-01: act %x", v.act);
	CHECK(((v.act & ACT_DROP) != 0) != places, "message %" PRIu64 " part %u: %s %s", f->message,
		f->part, responder_rule_id((enum responder_rule)v.rule),
		(v.act & ACT_DROP) != 0 ? "dropped" : "taken");
	if ((v.act & ACT_TAKE_WQE) != 0)
		r.active = true;
	place(f, &p, &v);
	if (places && f->op != WR_SEND && f->op != WR_SEND_WITH_IMM)
		for (uint32_t i = 0; i < p.payload_len; i++)
			r.shadow[f->va + f->part * PMTU + i] =
				byte_of(f->message, f->part * PMTU + i);
	CHECK(((v.act & ACT_COMPLETE) != 0) == (whole && f->op != WR_RDMA_WRITE),
		"message %" PRIu64 ": completion %u", f->message, (v.act & ACT_COMPLETE) != 0);
	if ((v.act & ACT_COMPLETE) != 0) {
		CHECK(v.wc_status == WC_SUCCESS && v.byte_len == r.head + f->bytes,
			"%u bytes of %u", v.byte_len, f->bytes);
		CHECK((v.wc_flags & WC_WITH_IMM) == 0 || v.imm == (uint32_t)f->message,
			"immediate of another message");
		r.active = false;
	}
	r.received += whole;
}

/** Frames arrive, some before others that were sent earlier. */
static void
arrive(void)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < r.flying_n; i++) {
		struct frame *f = &r.flying[i];

		if (f->delay != 0) {
			f->delay--;
			r.flying[kept++] = *f;
			continue;
		}
		receive(f);
	}
	r.flying_n = kept;
}

/* ---- runs ------------------------------------------------------------------------------------ */

static void
begin(uint64_t seed)
{
	const uint64_t sums[] = { r.packets, r.received, r.lost, r.completed, r.faults,
		r.datagrams };

	memset(&r, 0, sizeof(r));
	r.packets = sums[0];
	r.received = sums[1];
	r.lost = sums[2];
	r.completed = sums[3];
	r.faults = sums[4];
	r.datagrams = sums[5];
	r.ud = seed % 3 == 0;
	r.head = r.ud ? WIRE_GRH_LEN : 0;
	r.seed = seed;
	r.g.x = (seed * UINT64_C(0x9e3779b97f4a7c15)) | 1;
	r.loss = rarely(&r.g, 4) ? 0 : below(&r.g, rarely(&r.g, 4) ? 300000 : 20000);
	r.repeat = rarely(&r.g, 2) ? 0 : below(&r.g, 30000);
	r.overtake = rarely(&r.g, 2) ? 0 : below(&r.g, 30000);
	r.room = rarely(&r.g, 4) ? range(&r.g, 1, r.ud ? 2 * PMTU : ROOM) : ROOM;
	r.req.wr = r.wr;
	r.req.wr_mask = SLOTS - 1;
	r.req.pmtu = r.resp.pmtu = PMTU;
	r.req.window = range(&r.g, 1, 64);
	r.req.ackreq_interval = 16;
	r.req.transport = r.resp.transport = r.ud ? WIRE_UD : WIRE_UC;
	r.req.qp_type = r.ud ? QPT_UD : QPT_UC;
	r.resp.head = (uint8_t)r.head;
	r.resp.access = ACCESS_REMOTE_WRITE;
	r.next = psn((uint32_t)rng_next(&r.g));
	requester_reset(&r.req, r.next);
	responder_reset(&r.resp, rarely(&r.g, 2) ? psn((uint32_t)rng_next(&r.g)) : r.next);
}

static void
play(uint64_t seed)
{
	const uint32_t starve = 20;

	begin(seed);
	for (uint32_t turn = 0;
		turn < 400 || ((r.done != r.posted || r.flying_n != 0) && turn < 4000); turn++) {
		const bool closing = turn >= 400;

		for (uint32_t n = below(&r.g, 6); !closing && n != 0; n--)
			if (r.posted - r.done < SLOTS)
				post();
		if (!rarely(&r.g, starve))
			r.receives += r.receives < 16 ? below(&r.g, 5) : 0;
		send();
		depart(closing ? PORT : below(&r.g, PORT));
		arrive();
		if (closing)
			send();
	}
	CHECK(r.done == r.posted, "%" PRIu64 " sends of %" PRIu64 " never complete",
		r.posted - r.done, r.posted);
	CHECK(memcmp(r.target, r.shadow, TARGET) == 0, "memory is not what was written");
}

int
main(int argc, char **argv)
{
	uint64_t seeds = 1000, first = 1, packets = 0, n = 0;

	if (argc % 2 == 0)
		args_bad(USAGE);
	for (int i = 1; i < argc; i += 2) {
		const uint64_t v = args_number(argv[i + 1], USAGE);

		if (strcmp(argv[i], "--seeds") == 0)
			seeds = v;
		else if (strcmp(argv[i], "--first") == 0)
			first = v;
		else if (strcmp(argv[i], "--packets") == 0)
			packets = v;
		else
			args_bad(USAGE);
	}
	args_seeds(first, seeds, USAGE);
	for (; n < seeds || r.packets < packets; n++)
		play(first + n);
	printf("%" PRIu64 " seeds, %" PRIu64 " packets, %" PRIu64 " of them datagrams, %" PRIu64
	       " lost; %" PRIu64 " messages sent, %" PRIu64 " received whole; %" PRIu64
	       " times SQE and back\n",
		n, r.packets, r.datagrams, r.lost, r.completed, r.received, r.faults);
	return 0;
}
