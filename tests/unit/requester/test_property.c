/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Properties over seeded random streams of posts, packets, responses that nobody asked for, and
 * timers. A failing stream prints its seed; the same seed plays it again.
 */
#include "req.h"
#include "rounds.h"
#include "../../clib/rng.h"

static uint64_t playing; /* seed, for the message */

#define CHECK_THAT(cond)                                                                      \
	do {                                                                                  \
		if (!(cond))                                                                  \
			fail_msg("seed %llu: %s: una %06x cur %06x next %06x act %x rule %s", \
				(unsigned long long)playing, #cond, s->r.una.v, s->r.cur.v,   \
				s->r.next.v, s->v.act,                                        \
				requester_rule_id((enum requester_rule)(s->v.rule)));         \
	} while (0)

static uint32_t
ahead(psn_t a, psn_t b)
{
	return (a.v - b.v) & 0xffffff;
}

static bool
is_inside(psn_t p, const struct requester_wr *w)
{
	return ahead(p, w->first) <= ahead(w->last, w->first);
}

/** What holds between any two calls. */
static void
state_holds(const struct bed *s)
{
	const struct requester *r = &s->r;
	uint32_t started = r->fresh - r->head, reads = 0;

	CHECK_THAT(r->sending - r->head <= started);
	CHECK_THAT(started <= r->tail - r->head && r->tail - r->head <= SLOTS);
	CHECK_THAT(ahead(r->next, r->una) <= 0x7fffff);
	CHECK_THAT(ahead(r->cur, r->una) <= ahead(r->next, r->una));
	CHECK_THAT(r->next.v <= 0xffffff && r->cur.v <= 0xffffff && r->una.v <= 0xffffff);
	CHECK_THAT(!(r->timing && r->waiting_rnr));
	CHECK_THAT(!r->dead || (!r->timing && !r->waiting_rnr));
	if (r->dead)
		return;
	CHECK_THAT(r->reply_psns <= ahead(r->cur, r->una));
	CHECK_THAT(started != 0 || r->una.v == r->next.v);
	CHECK_THAT(started == 0 || r->una.v == r->next.v ||
		   is_inside(r->una, &s->wr[r->head % SLOTS]));
	CHECK_THAT(r->sending != r->fresh || r->cur.v == r->next.v);
	CHECK_THAT(r->sending == r->fresh || is_inside(r->cur, &s->wr[r->sending % SLOTS]));
	CHECK_THAT(!r->timing || r->una.v != r->next.v);
	for (uint32_t i = r->head; i != r->fresh; i++) {
		uint8_t op = s->wr[i % SLOTS].opcode;

		reads += (op >= WR_RDMA_READ && op <= WR_ATOMIC_FETCH_AND_ADD) || op == WR_FLUSH ||
			 op == WR_ATOMIC_WRITE;
	}
	CHECK_THAT(reads == r->reads);
	CHECK_THAT(reads <= r->max_rd_atomic);
	CHECK_THAT(r->retry_left <= r->retry_cnt && r->rnr_left <= r->rnr_retry);
}

/** What holds for every verdict. */
static void
verdict_holds(const struct bed *s, uint32_t done_before)
{
	const struct requester *r = &s->r, *b = &s->before;
	uint32_t act = s->v.act;

	CHECK_THAT((act & ~UINT32_C(0x7ff)) == 0);
	CHECK_THAT((act & (REQACT_DROP | REQACT_ERROR | REQACT_RESEND)) == 0 ||
		   (s->v.rule != REQRULE_NONE && s->v.rule < REQRULE_MAX));
	CHECK_THAT(ahead(r->una, b->una) <= ahead(b->next, b->una));
	CHECK_THAT(r->next.v == b->next.v && r->fresh == b->fresh);
	CHECK_THAT((act & REQACT_ERROR) != 0 || s->done == r->head || r->dead);
	if ((act & REQACT_DROP) != 0) {
		CHECK_THAT(act == REQACT_DROP);
		CHECK_THAT(s->done == done_before);
		CHECK_THAT(r->una.v == b->una.v && r->cur.v == b->cur.v);
		CHECK_THAT(r->retry_left == b->retry_left && r->rnr_left == b->rnr_left);
		CHECK_THAT(r->timing == b->timing && r->deadline == b->deadline);
	}
	if ((act & REQACT_ERROR) != 0) {
		CHECK_THAT(r->dead && !b->dead);
		CHECK_THAT(s->v.wc_status != 0 && s->v.fatal != 0);
		CHECK_THAT((act & (REQACT_RESEND | REQACT_MIGRATE | REQACT_DRAINED)) == 0);
	} else {
		CHECK_THAT(s->v.wc_status == 0 && s->v.fatal == 0);
		CHECK_THAT(r->dead == b->dead);
	}
	if ((act & REQACT_RESEND) != 0)
		CHECK_THAT(r->cur.v == r->una.v || r->failed || r->patching);
	if ((act & REQACT_MIGRATE) != 0)
		CHECK_THAT(b->armed && !r->armed && (act & REQACT_RESEND) != 0);
	/* Data lands inside the buffer of the READ that the response belongs to. */
	if ((act & REQACT_PLACE) != 0) {
		const struct requester_wr *w = &s->wr[s->v.position % SLOTS];

		CHECK_THAT(w->opcode == WR_RDMA_READ);
		CHECK_THAT((uint64_t)s->v.offset + s->pkt.payload_len <= w->len);
		CHECK_THAT((r->knobs & REQ_KNOB_READ_KEEP) != 0 ||
			   s->v.position == s->done - ((act & REQACT_COMPLETE) != 0 &&
							      s->v.position < s->done));
	}
}

/** @param reads long READs, as a rule. */
static void
post_random(struct rng *g, struct bed *s, bool reads)
{
	static const uint8_t ops[] = { WR_RDMA_WRITE, WR_RDMA_WRITE_WITH_IMM, WR_SEND,
		WR_SEND_WITH_IMM, WR_RDMA_READ, WR_ATOMIC_CMP_AND_SWP, WR_ATOMIC_FETCH_AND_ADD,
		WR_SEND_WITH_INV, WR_FLUSH, WR_ATOMIC_WRITE };
	struct requester_wr w = { .opcode = ops[below(g, ARRAY_LEN(ops))],
		.flags = (uint8_t)below(g, 8),
		.len = rarely(g, 4) ? below(g, 6000) : below(g, 300) };

	if (s->posted - s->r.head >= SLOTS)
		return;
	if (reads && !rarely(g, 16)) {
		w.opcode = WR_RDMA_READ;
		w.len = below(g, 6000);
	}
	if (w.opcode == WR_ATOMIC_WRITE)
		w.len = 8;
	if (rarely(g, 600))
		w.opcode = (uint8_t)below(g, 256);
	if (rarely(g, 600))
		w.len = (uint32_t)rng_next(g);
	if (rarely(g, 1000))
		w.fault = (uint8_t)(1 + below(g, 3));
	post_wr(s, w);
}

/** Packets out: each in PSN order, a resend never beyond `next`. */
static void
send_some(struct rng *g, struct bed *s)
{
	uint32_t most = rarely(g, 2) ? 1000 : below(g, 8);

	for (uint32_t i = 0; i < most; i++) {
		struct requester_packet *p = &s->out[0];
		struct requester b = s->r;
		enum requester_stop stop = next_packet(s, p);

		state_holds(s);
		CHECK_THAT(!b.dead || stop == REQ_FAULT);
		if (stop != REQ_SEND) {
			/* Nothing is ever waited for that was not asked for, or cannot time out. */
			CHECK_THAT(s->r.una.v == s->r.next.v || s->r.timing || s->r.dead ||
				   s->r.timeout == 0 || stop == REQ_RNR_WAIT);
			return;
		}
		CHECK_THAT(p->resend == (p->psn.v != b.next.v));
		CHECK_THAT(ahead(p->psn, b.una) < 0x7fffff);
		CHECK_THAT(p->psn.v == b.cur.v || p->psn.v == ((b.cur.v - 1) & 0xffffff) ||
			   b.patching || b.holes);
		CHECK_THAT(p->len <= s->r.pmtu && ((p->len + p->pad) & 3) == 0);
		CHECK_THAT((uint64_t)p->offset + p->len <= s->wr[p->position % SLOTS].len);
		CHECK_THAT(!b.failed || p->position - s->r.head < b.failed_at - s->r.head);
	}
}

/** The answer to this PSN of a work request; a READ may go on in any way there (REQ-IMPL-09). */
static struct rsp
answer(struct rng *g, const struct bed *s, const struct requester_wr *w, psn_t at)
{
	static const uint8_t ops[] = { OP_RC_READ_RESPONSE_MIDDLE, OP_RC_READ_RESPONSE_FIRST,
		OP_RC_READ_RESPONSE_LAST, OP_RC_READ_RESPONSE_ONLY };
	struct rsp p = { .op = OP_RC_ACKNOWLEDGE, .psn = at.v, .syn = 0x1f };

	if (w->opcode == WR_RDMA_READ) {
		const bool last = at.v == w->last.v;

		p.op = ops[((at.v == w->first.v) ^ rarely(g, 12)) | (last ^ rarely(g, 24)) << 1];
		p.len = last ? w->len - ahead(at, w->first) * s->r.pmtu : s->r.pmtu;
	} else if (w->opcode > WR_RDMA_READ && w->opcode <= WR_ATOMIC_FETCH_AND_ADD) {
		p.op = OP_RC_ATOMIC_ACKNOWLEDGE;
	} else if (w->opcode == WR_FLUSH || w->opcode == WR_ATOMIC_WRITE) {
		p.op = OP_RC_READ_RESPONSE_ONLY;
	}
	return p;
}

/** The answer to a PSN that is under way: the oldest, as a rule. */
static struct rsp
right_rsp(struct rng *g, const struct bed *s)
{
	const uint32_t out = ahead(s->r.next, s->r.una);
	psn_t at = s->r.una;

	if (s->r.head == s->r.fresh)
		return (struct rsp){ .op = OP_RC_ACKNOWLEDGE, .psn = at.v, .syn = 0x1f };
	if (rarely(g, 3) && out != 0)
		at.v = (at.v + below(g, out < 40 || rarely(g, 8) ? out : 40)) & 0xffffff;
	for (uint32_t i = s->r.head; i != s->r.fresh; i++)
		if (is_inside(at, &s->wr[i % SLOTS]))
			return answer(g, s, &s->wr[i % SLOTS], at);
	return answer(g, s, &s->wr[s->r.head % SLOTS], s->r.una);
}

static struct rsp
random_rsp(struct rng *g, const struct bed *s)
{
	static const uint8_t syns[] = { 0x60, 0x61, 0x62, 0x63, 0x21, 0x22, 0x2c };
	struct rsp p = right_rsp(g, s);

	if (rarely(g, 6)) /* about the range, and at the edges of the window */
		p.psn = s->r.una.v + (rarely(g, 8) ? 0x7ffffe + below(g, 4) : below(g, 24) - 8);
	if (rarely(g, 6)) {
		p.op = OP_RC_ACKNOWLEDGE;
		p.syn = rarely(g, 10) ? syns[below(g, 7)] : rarely(g, 2) ? 0x60 : 0x21;
	}
	if (rarely(g, 60))
		p.op = (uint8_t)(OP_RC_READ_RESPONSE_FIRST + below(g, 6));
	if (rarely(g, 300))
		p.op = (uint8_t)below(g, 256);
	if (rarely(g, 300))
		p.syn = (uint8_t)below(g, 256);
	if (rarely(g, 300))
		p.len = below(g, 70000);
	if (rarely(g, 300))
		p.pad = (uint8_t)below(g, 4);
	p.msn = below(g, 64) + s->r.head;
	return p;
}

/** Any of them, as they may be together. */
static uint16_t
random_knobs(struct rng *g)
{
	uint32_t knobs = rarely(g, 3) ? 0 : below(g, 2 * REQ_KNOB_PATCH);

	if (!rarely(g, 8))
		knobs &= ~(uint32_t)REQ_KNOB_ACK_FOR_READ_FATAL;
	if ((knobs & REQ_KNOB_READ_KEEP) != 0)
		knobs |= REQ_KNOB_READ_FILL;
	return (uint16_t)knobs;
}

/** REQ-19: the data cannot be placed. */
static void
feed_in_vain(struct bed *s, struct rsp p)
{
	make_rsp(s, &p);
	s->before = s->r;
	requester_response(&s->r, &s->pkt, s->now, &s->v);
	if ((s->v.act & (REQACT_PLACE | REQACT_ATOMIC)) != 0)
		requester_local_fault(&s->r, s->v.position, WR_FAULT_PROT, &s->v);
	count_completions(s);
}

static uint32_t
run_stream(uint64_t seed)
{
	struct rng g = { seed };
	static struct bed bed;
	struct bed *s = &bed;
	const bool reads = rarely(&g, 3);

	playing = seed;
	bed_init(s);
	s->r.knobs = random_knobs(&g);
	s->r.armed = rarely(&g, 3);
	s->r.rounds = rarely(&g, 4);
	s->r.timeout = (uint8_t)(rarely(&g, 8) ? 0 : 8);
	s->r.retry_cnt = (uint8_t)below(&g, 8);
	s->r.rnr_retry = (uint8_t)below(&g, 8);
	s->r.max_rd_atomic = (uint8_t)(1 + below(&g, 6));
	s->r.ackreq_interval = (uint8_t)below(&g, 20);
	s->r.pmtu = rarely(&g, 2) ? 256 : 1024;
	requester_reset(&s->r, psn(rng_psn(&g)));
	for (uint32_t n = 0; n < 400 && !s->r.dead; n++) {
		uint32_t done = s->done, posts = below(&g, 4);

		for (uint32_t i = 0; i < posts; i++)
			post_random(&g, s, reads);
		if (rarely(&g, 20))
			s->r.window = 1 + below(&g, 40);
		if (rarely(&g, 100))
			requester_drain(&s->r, !s->r.draining);
		send_some(&g, s);
		s->now += below(&g, 100000);
		if (rarely(&g, 6) && (s->r.timing || s->r.waiting_rnr)) {
			if (rarely(&g, 2))
				s->now = s->r.deadline;
			fire(s);
		} else if (rarely(&g, 150)) {
			memset(&s->v, 0, sizeof(s->v));
			s->before = s->r;
			requester_local_fault(
				&s->r, s->r.head + below(&g, 12), WR_FAULT_PROT, &s->v);
			count_completions(s);
		} else if (rarely(&g, 400)) {
			feed_in_vain(s, random_rsp(&g, s));
		} else {
			feed_rsp(s, random_rsp(&g, s));
		}
		state_holds(s);
		verdict_holds(s, done);
	}
	return s->done;
}

static void
random_streams(void **state)
{
	uint64_t done = 0;

	(void)state;
	for (uint64_t seed = 1; seed <= ROUNDS(40000); seed++)
		done += run_stream(seed * UINT64_C(0x9e3779b97f4a7c15));
	print_message("# %llu work requests completed\n", (unsigned long long)done);
	assert_true(done > ROUNDS(100000)); /* the streams live long enough to mean something */
}

/** Every response opcode with every syndrome at and around every kind of work request. */
static void
every_response_to_every_request(void **state)
{
	static const uint8_t wrs[] = { WR_SEND, WR_RDMA_READ, WR_ATOMIC_FETCH_AND_ADD };
	static const uint32_t lens[] = { 0, 8, 950, 1024 };
	static struct bed bed;
	struct bed *s = &bed;

	(void)state;
	for (uint32_t n = 0; n < 6 * 256 * 3 * 4 * 4; n++) {
		uint32_t syn = n & 255, op = 0x0d + (n >> 8) % 6, rest = (n >> 8) / 6;
		uint32_t wr = rest % 3, at = rest / 3 % 4, len = lens[rest / 12];

		if (n % 256 == 0) {
			bed_init(s);
			s->r.window = 8;
		}
		s->posted = 0;
		s->done = 0;
		requester_reset(&s->r, psn(S));
		POST(s, SEND(1));
		POST(s, .opcode = wrs[wr], .len = 1974);
		POST(s, SEND(1));
		pump(s);
		FEED(s, .op = (uint8_t)op, .psn = S + at, .syn = (uint8_t)syn, .len = len);
		CHECK_THAT(s->v.act != 0);
		CHECK_THAT(s->v.rule != REQRULE_NONE);
		state_holds(s);
		verdict_holds(s, 0);
	}
}

RUN(T(random_streams), T(every_response_to_every_request))
