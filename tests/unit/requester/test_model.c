/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The requester against a small responder over a link that loses, doubles and reorders. Every work
 * request is carried out once and completes once, in order, with its own data, and both sides agree
 * about PSN and MSN in the end. A failing run prints its seed.
 */
#include "req.h"
#include "../../clib/rng.h"

#define LINK_MAX 4096
#define SAVED    4

static uint64_t playing;
static uint64_t events, lost, resent, rnrs;

#define CHECK_THAT(cond)                                                               \
	do {                                                                           \
		if (!(cond))                                                           \
			fail_msg("seed %llu: %s", (unsigned long long)playing, #cond); \
	} while (0)

struct flying {
	ns_t at;
	bool request;
	struct requester_packet q;
	struct rsp p;
	uint32_t position; /* of the READ whose data this is */
	uint32_t offset;
};

struct saved {
	uint32_t first, psns, position, len;
	uint64_t original;
	bool atomic;
};

struct model {
	struct bed s;
	struct rng g;
	struct flying link[LINK_MAX];
	uint32_t flying;
	uint32_t loss; /* one in so many */
	uint32_t reorder;
	bool rnr;
	bool credits;
	/* responder */
	uint32_t epsn, msn;
	uint32_t position, offset; /* what must come next */
	bool latched;
	struct saved saved[SAVED];
	uint32_t n_saved;
	uint64_t atomics; /* carried out; the counter that they fetch and add to */
	/* requester's side */
	uint64_t results;
	uint32_t read_off;
};

static void
launch(struct model *m, struct flying f)
{
	uint32_t copies = rarely(&m->g, m->loss) ? 0 : rarely(&m->g, 40) ? 2 : 1;

	lost += copies == 0;
	while (copies-- > 0) {
		f.at = m->s.now + 1000 + (rarely(&m->g, m->reorder) ? below(&m->g, 40000) : 0);
		CHECK_THAT(m->flying < LINK_MAX);
		m->link[m->flying++] = f;
	}
}

static void
answer(struct model *m, uint8_t op, uint32_t at, uint8_t syn)
{
	launch(m, (struct flying){
			  .p = { .op = op, .psn = at & 0xffffff, .syn = syn, .msn = m->msn } });
}

static uint8_t
ack_syn(struct model *m)
{
	return m->credits ? (uint8_t)(rarely(&m->g, 3) ? below(&m->g, 3) : 0x1f) : 0x1f;
}

/** Answer READ `v` from PSN `from` on; `resumed`: as a new READ, or as the old stream. */
static void
answer_read(struct model *m, const struct saved *v, uint32_t from, bool duplicate)
{
	uint32_t pmtu = m->s.r.pmtu, start = (from - v->first) & 0xffffff;
	bool opens = !duplicate || start == 0 || rarely(&m->g, 2);

	for (uint32_t i = start; i < v->psns; i++) {
		bool first = i == start && opens, last = i + 1 == v->psns;
		struct flying f = { .position = v->position, .offset = i * pmtu };

		f.p = (struct rsp){ .psn = (v->first + i) & 0xffffff,
			.syn = ack_syn(m),
			.msn = m->msn,
			.len = last ? v->len - i * pmtu : pmtu,
			.op = first && last ? OP_RC_READ_RESPONSE_ONLY
			      : first       ? OP_RC_READ_RESPONSE_FIRST
			      : last        ? OP_RC_READ_RESPONSE_LAST
					    : OP_RC_READ_RESPONSE_MIDDLE };
		launch(m, f);
	}
}

static void
answer_atomic(struct model *m, const struct saved *v)
{
	launch(m, (struct flying){ .p = { .op = OP_RC_ATOMIC_ACKNOWLEDGE,
					   .psn = v->first,
					   .syn = ack_syn(m),
					   .msn = m->msn,
					   .original = v->original } });
}

static void
duplicate(struct model *m, const struct requester_packet *q)
{
	bool read = q->opcode == OP_RC_READ_REQUEST;

	if (!read && q->opcode != OP_RC_FETCH_ADD) {
		if ((q->flags & ACKREQ) != 0)
			answer(m, OP_RC_ACKNOWLEDGE, m->epsn - 1, ack_syn(m));
		return;
	}
	for (uint32_t i = 0; i < SAVED; i++) {
		const struct saved *v = &m->saved[i];

		if (v->psns == 0 || ((q->psn.v - v->first) & 0xffffff) >= v->psns)
			continue;
		CHECK_THAT(v->atomic == !read && v->position == q->position);
		if (read) {
			CHECK_THAT(q->dma_len == v->len - q->offset);
			answer_read(m, v, q->psn.v, true);
		} else {
			answer_atomic(m, v);
		}
	}
}

static bool
takes_wqe(uint8_t op)
{
	return op == 0x00 || op == 0x04 || op == 0x05 || op == 0x17 || op == 0x09 || op == 0x0b;
}

/** A request at ePSN: exactly the one that must come next. */
static void
carry_out(struct model *m, const struct requester_packet *q)
{
	const struct requester_wr *w = &m->s.wr[m->position % SLOTS];
	struct saved *v = &m->saved[m->n_saved % SAVED];
	bool read = q->opcode == OP_RC_READ_REQUEST, atomic = q->opcode == OP_RC_FETCH_ADD;

	if (m->rnr && takes_wqe(q->opcode) && rarely(&m->g, 4)) {
		m->latched = true;
		rnrs++;
		answer(m, OP_RC_ACKNOWLEDGE, m->epsn, (uint8_t)(RNR + 1 + below(&m->g, 5)));
		return;
	}
	m->latched = false;
	CHECK_THAT(q->position == m->position && q->offset == m->offset);
	if (!read && !atomic) {
		m->epsn = (m->epsn + 1) & 0xffffff;
		m->offset += q->len;
		if (m->offset == w->len) {
			m->msn = (m->msn + 1) & 0xffffff;
			m->position++;
			m->offset = 0;
		} else {
			CHECK_THAT(q->len == m->s.r.pmtu);
		}
		if ((q->flags & ACKREQ) != 0)
			answer(m, OP_RC_ACKNOWLEDGE, m->epsn - 1, ack_syn(m));
		return;
	}
	*v = (struct saved){ .first = q->psn.v,
		.psns = atomic || w->len == 0 ? 1 : (w->len + m->s.r.pmtu - 1) / m->s.r.pmtu,
		.position = m->position,
		.len = w->len,
		.original = m->atomics,
		.atomic = atomic };
	m->n_saved++;
	m->epsn = (m->epsn + v->psns) & 0xffffff;
	m->msn = (m->msn + 1) & 0xffffff;
	m->position++;
	if (atomic) {
		m->atomics++;
		answer_atomic(m, v);
	} else {
		CHECK_THAT(q->dma_len == w->len);
		answer_read(m, v, v->first, false);
	}
}

static void
respond(struct model *m, const struct requester_packet *q)
{
	uint32_t d = (q->psn.v - m->epsn) & 0xffffff;

	if (d == 0) {
		carry_out(m, q);
	} else if (d > 0x800000) {
		duplicate(m, q);
	} else if (!m->latched) {
		m->latched = true;
		answer(m, OP_RC_ACKNOWLEDGE, m->epsn, NSEQ);
	}
}

static void
receive(struct model *m, const struct flying *f)
{
	struct bed *s = &m->s;

	feed_rsp(s, f->p);
	CHECK_THAT((s->v.act & (REQACT_ERROR | REQACT_EVENT)) == 0);
	CHECK_THAT(s->done <= m->position);
	if ((s->v.act & REQACT_PLACE) != 0) {
		CHECK_THAT(s->v.position == f->position && s->v.offset == f->offset);
		CHECK_THAT(s->v.offset == m->read_off); /* each byte once, in order */
		m->read_off += f->p.len;
		if (m->read_off == s->wr[f->position % SLOTS].len)
			m->read_off = 0;
	}
	if ((s->v.act & REQACT_ATOMIC) != 0)
		CHECK_THAT(s->v.original == m->results++);
}

/** The next thing that happens: a packet arrives, or a timer fires. @return false: nothing. */
static bool
step(struct model *m)
{
	struct bed *s = &m->s;
	bool timer = s->r.timing || s->r.waiting_rnr;
	uint32_t best = m->flying;
	ns_t at = timer ? s->r.deadline : UINT64_MAX;

	for (uint32_t i = 0; i < m->flying; i++) {
		if (m->link[i].at < at || (best == m->flying && m->link[i].at == at)) {
			best = i;
			at = m->link[i].at;
		}
	}
	if (best < m->flying) {
		struct flying f = m->link[best];

		memmove(&m->link[best], &m->link[best + 1], (m->flying - best - 1) * sizeof(f));
		m->flying--;
		s->now = f.at > s->now ? f.at : s->now;
		if (f.request)
			respond(m, &f.q);
		else
			receive(m, &f);
		return true;
	}
	if (!timer)
		return false;
	s->now = at > s->now ? at : s->now;
	fire(s);
	CHECK_THAT((s->v.act & REQACT_ERROR) == 0);
	return true;
}

static void
post_random(struct model *m)
{
	static const uint8_t ops[] = { WR_RDMA_WRITE, WR_RDMA_WRITE_WITH_IMM, WR_SEND,
		WR_SEND_WITH_IMM, WR_SEND_WITH_INV, WR_RDMA_READ, WR_RDMA_READ,
		WR_ATOMIC_FETCH_AND_ADD };
	struct requester_wr w = { .opcode = ops[below(&m->g, ARRAY_LEN(ops))] };

	w.len = rarely(&m->g, 3) ? below(&m->g, 8 * m->s.r.pmtu) : below(&m->g, 64);
	if (w.opcode == WR_ATOMIC_FETCH_AND_ADD)
		w.len = 8;
	w.flags = (uint8_t)((rarely(&m->g, 2) ? SIGNALED : 0) | (rarely(&m->g, 10) ? FENCE : 0));
	post_wr(&m->s, w);
}

static void
run(struct model *m, uint64_t seed)
{
	struct bed *s = &m->s;
	uint32_t total, steps = 0;

	playing = seed;
	memset(m, 0, sizeof(*m));
	m->g.x = seed;
	m->loss = rarely(&m->g, 4) ? 1000000 : 5 + below(&m->g, 60);
	m->reorder = rarely(&m->g, 2) ? 1000000 : 4 + below(&m->g, 30);
	m->rnr = rarely(&m->g, 2);
	m->credits = rarely(&m->g, 3);
	bed_init(s);
	s->r.pmtu = rarely(&m->g, 2) ? 256 : 1024;
	s->r.window = 1 + below(&m->g, 32);
	s->r.timeout = 5; /* 131 us; the link takes 1 to 41 */
	/* A link in order needs few retries; else far more than a run needs, short of a livelock.
	 */
	s->r.retry_cnt = m->reorder > 1000 && m->loss >= 20 ? 7 : 200;
	s->r.rnr_retry = 7;
	s->r.max_rd_atomic = (uint8_t)(1 + below(&m->g, SAVED));
	s->r.ackreq_interval = (uint8_t)(1 + below(&m->g, 20));
	s->r.knobs = m->credits ? REQ_KNOB_CREDITS : 0;
	requester_reset(&s->r, psn(rng_psn(&m->g)));
	m->epsn = s->r.next.v;
	total = 4 + below(&m->g, 24);
	for (;;) {
		struct flying f = { .request = true };

		if (s->posted < total && rarely(&m->g, 2))
			post_random(m);
		if (rarely(&m->g, 50))
			s->r.window = 1 + below(&m->g, 32);
		for (uint32_t burst = below(&m->g, 12); burst > 0; burst--) {
			if (asked_next(s, &f.q) != REQ_SEND)
				break;
			resent += f.q.resend;
			launch(m, f);
		}
		if (s->done == total && m->flying == 0)
			break;
		CHECK_THAT(++steps < 40000);
		events++;
		step(m);
	}
	CHECK_THAT(m->position == total && s->r.head == total);
	CHECK_THAT(m->epsn == s->r.next.v && m->epsn == s->r.una.v);
	CHECK_THAT(m->msn == total);
	CHECK_THAT(m->atomics == m->results);
	CHECK_THAT(s->r.reads == 0 && s->r.reply_psns == 0);
	CHECK_THAT(!s->r.timing && !s->r.waiting_rnr);
}

/* REQ-08, REQ-12, REQ-14, REQ-16, REQ-CLS-A-01, TMR-09 over many links. */
static void
every_request_once_and_in_order(void **state)
{
	static struct model model;

	(void)state;
	for (uint64_t seed = 1; seed <= 4000; seed++)
		run(&model, seed * UINT64_C(0x9e3779b97f4a7c15));
	print_message("# %llu events, %llu packets lost, %llu resent, %llu RNR NAKs\n",
		(unsigned long long)events, (unsigned long long)lost, (unsigned long long)resent,
		(unsigned long long)rnrs);
	assert_true(events > 200000 && lost > 10000 && resent > 10000 && rnrs > 1000);
}

RUN(T(every_request_once_and_in_order))
