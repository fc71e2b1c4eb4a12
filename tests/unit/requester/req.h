/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TEST_REQUESTER_REQ_H
#define TEST_REQUESTER_REQ_H
/**
 * @file req.h  Fixture F-REQ of the rules around the requester: work requests to post, the packets
 * that came out, and responses to feed. The test plays the responder.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "../../clib/parsed.h"
#include "be.h"
#include "compiler.h"
#include "requester.h"
#include "requester_fast.h"

#define S       0x000200u
#define VA      UINT64_C(0x7f0000020000)
#define RKEY    0x3003u
#define PMTU    1024
#define T0      UINT64_C(5000000000)
#define SLOTS   256
#define OUT_MAX 512
#define MS      UINT64_C(1000000)
#define TTR_14  UINT64_C(67108864)       /* timeout 14: 67.1 ms */
#define WAIT_14 (TTR_14 + TTR_14 / 1024) /* ... by no clock too short: two may differ so much */

/* Values of libibverbs and of the AETH, typed here on purpose. */
enum {
	WC_LOC_LEN = 1,
	WC_LOC_QP_OP = 2,
	WC_LOC_PROT = 4,
	WC_BAD_RESP = 7,
	WC_REM_INV_REQ = 9,
	WC_REM_ACCESS = 10,
	WC_REM_OP = 11,
	WC_RETRY_EXC = 12,
	WC_RNR_RETRY_EXC = 13
};
enum { ACK = 0x1f, NSEQ = 0x60, NINV = 0x61, NRAE = 0x62, NROE = 0x63, RNR = 0x20 };
enum { ACKREQ = PKT_ACKREQ, SE = PKT_SE, MIGREQ = PKT_MIGREQ };
enum { SIGNALED = 2, SOLICITED = 4, FENCE = 1 };

struct bed {
	struct requester r;
	struct requester before; /* as it was when the last response or timer came */
	struct requester_verdict v;
	struct requester_wr wr[SLOTS];
	struct requester_packet out[OUT_MAX];
	uint32_t n; /* packets of the last pump() */
	uint32_t posted;
	uint32_t done; /* completed with success, in all */
	ns_t now;
	uint8_t frame[PARSED_FRAME];
	struct wire_pkt pkt;
};

static UNUSED void
bed_init(struct bed *s)
{
	memset(s, 0, sizeof(*s));
	s->r.wr = s->wr;
	s->r.wr_mask = SLOTS - 1;
	s->r.window = 128;
	s->r.pmtu = PMTU;
	s->r.timeout = 14;
	s->r.retry_cnt = 3;
	s->r.rnr_retry = 3;
	s->r.max_rd_atomic = 4;
	s->r.ackreq_interval = 16;
	requester_reset(&s->r, psn(S));
	s->now = T0;
}

/** Post one work request. */
static UNUSED void
post_wr(struct bed *s, struct requester_wr w)
{
	w.wr_id = s->posted;
	w.remote_addr = w.remote_addr == 0 ? VA : w.remote_addr;
	w.rkey = RKEY;
	w.resumed = 0xaa; /* the requester's own; garbage on purpose */
	s->wr[s->posted++ % SLOTS] = w;
	requester_posted(&s->r, s->posted);
}
#define POSTF(s, f, ...) post_wr((s), (struct requester_wr){ .flags = (uint8_t)(f), __VA_ARGS__ })
#define POST(s, ...)     POSTF(s, SIGNALED, __VA_ARGS__)
#define SEND(l)          .opcode = WR_SEND, .len = (l)
#define WRITE(l)         .opcode = WR_RDMA_WRITE, .len = (l)
#define READ(l)          .opcode = WR_RDMA_READ, .len = (l)
#define FADD             .opcode = WR_ATOMIC_FETCH_AND_ADD, .len = 8

static UNUSED void
post_sends(struct bed *s, uint32_t n)
{
	while (n-- > 0)
		POST(s, SEND(64));
}

/** REQ-01, REQ-07: the packet that the short way makes, and nothing is different. */
static UNUSED void
start_agrees(const struct bed *s, const struct requester *r, const struct requester_wr *w,
	const struct requester_start *start, const struct requester_packet *p)
{
	static const uint8_t only[] = { [WR_RDMA_WRITE] = OP_RC_WRITE_ONLY,
		[WR_RDMA_WRITE_WITH_IMM] = OP_RC_WRITE_ONLY_IMM,
		[WR_SEND] = OP_RC_SEND_ONLY,
		[WR_SEND_WITH_IMM] = OP_RC_SEND_ONLY_IMM,
		[WR_RDMA_READ] = OP_RC_READ_REQUEST };

	assert_memory_equal(r, &s->r, sizeof(*r));
	assert_memory_equal(w, &s->wr[p->position % SLOTS], sizeof(*w));
	assert_int_equal(p->psn.v, start->psn.v);
	assert_int_equal(p->flags, start->flags | (start->ask ? PKT_ACKREQ : 0));
	assert_int_equal(p->opcode, only[w->opcode]);
	assert_int_equal(p->len, w->opcode == WR_RDMA_READ ? 0 : w->len);
	assert_int_equal(p->dma_len, w->len);
	assert_int_equal(p->offset, 0);
	assert_false(p->resend);
}

/**
 * What requester_waits() says is what requester_next() does, and nothing has changed by asking.
 * Nothing leaves where requester_is_shut() says so.
 */
static UNUSED enum requester_stop
asked_next(struct bed *s, struct requester_packet *p)
{
	const struct requester r = s->r;
	const enum requester_stop waits = requester_waits(&s->r, s->now);
	enum requester_stop stop;

	assert_memory_equal(&r, &s->r, sizeof(r));
	stop = requester_next(&s->r, s->now, p);
	assert_int_equal(waits, stop);
	if (requester_is_shut(&r))
		assert_true(stop != REQ_SEND && stop != REQ_LOCAL && requester_outstanding(&r));
	return stop;
}

/** One packet by the short way, if it is for that. */
static UNUSED bool
run_one(const struct requester *r, struct requester_run *run, struct requester_wr *w,
	struct requester_start *start)
{
	if (requester_run_next(run, w, true, start))
		return true;
	return run->reads < requester_reads_most(r) && requester_run_read(run, w, start);
}

/** requester_next(), and whether the short way agrees. */
static UNUSED enum requester_stop
next_packet(struct bed *s, struct requester_packet *p)
{
	struct requester r = s->r;
	struct requester_wr *at = &s->wr[r.sending % SLOTS], before = *at, after;
	struct requester_start start;
	struct requester_run run;
	bool starts = requester_run_begin(&r, &run, s->now) != 0 && run_one(&r, &run, at, &start);
	enum requester_stop stop;

	if (starts)
		requester_run_end(&r, &run, s->now);

	after = *at;
	*at = before;
	if (!starts)
		assert_memory_equal(&r, &s->r, sizeof(r));
	stop = asked_next(s, p);
	if (starts) {
		assert_int_equal(stop, REQ_SEND);
		start_agrees(s, &r, &after, &start, p);
	}
	return stop;
}

/** Where the short way is after as many packets as it can make at once. */
struct ahead {
	struct requester r;
	struct requester_wr wr[SLOTS];
	uint32_t n;
};

static UNUSED void
run_ahead(const struct bed *s, struct ahead *a)
{
	struct requester_start start;
	struct requester_run run;
	uint32_t most;

	a->r = s->r;
	memcpy(a->wr, s->wr, sizeof(a->wr));
	a->n = 0;
	most = requester_run_begin(&a->r, &run, s->now);
	while (a->n < most && run_one(&a->r, &run, &a->wr[run.at % SLOTS], &start))
		a->n++;
	if (a->n != 0)
		requester_run_end(&a->r, &run, s->now);
}

/** All packets that may leave now: REQ-01, REQ-07, the short way agrees on many at once. */
static UNUSED enum requester_stop
pump(struct bed *s)
{
	enum requester_stop stop;
	struct ahead a;

	run_ahead(s, &a);
	s->n = 0;
	while ((stop = next_packet(s, &s->out[s->n])) == REQ_SEND) {
		s->n++;
		assert_true(s->n < OUT_MAX);
		if (s->n != a.n)
			continue;
		assert_memory_equal(&a.r, &s->r, sizeof(a.r));
		assert_memory_equal(a.wr, s->wr, sizeof(a.wr));
	}
	assert_true(s->n >= a.n);
	return stop;
}

/** Completions come in posting order, each once. */
static UNUSED void
count_completions(struct bed *s)
{
	if ((s->v.act & REQACT_COMPLETE) != 0) {
		assert_int_equal(s->v.head_was, s->done);
		assert_true(s->v.completed > 0);
		s->done += s->v.completed;
	} else {
		assert_int_equal(s->v.completed, 0);
	}
	assert_true(s->done <= s->posted);
	if ((s->v.act & REQACT_ERROR) != 0)
		assert_int_equal(s->v.failed, s->done);
}

struct rsp {
	uint8_t op;
	uint32_t psn;
	uint8_t syn;
	uint32_t msn;
	uint32_t len;
	uint8_t pad;
	uint64_t original;
};

static UNUSED void
make_rsp(struct bed *s, const struct rsp *p)
{
	uint8_t *e = parsed_pkt(&s->pkt, s->frame, p->op, p->psn, p->len);

	s->pkt.pad = p->pad;
	e[0] = p->syn;
	be24_store(e + 1, p->msn);
	be64_store(e + 4, p->original);
}

/** REQ-05: the same of a READ that one packet answers. */
static UNUSED void
short_read_agrees(const struct bed *s)
{
	struct requester r = s->before;

	requester_take_read(&r, s->now);
	assert_memory_equal(&r, &s->r, sizeof(r));
	assert_int_equal(s->v.act, REQACT_TIMER | REQACT_COMPLETE | REQACT_PLACE);
	assert_int_equal(s->v.completed, 1);
	assert_int_equal(s->v.position, s->v.head_was);
	assert_int_equal(s->v.head_was, s->before.head);
	assert_int_equal(s->v.offset, 0);
	assert_int_equal(s->v.cause, QC_NONE);
}

/** REQ-03, REQ-04: what is taken without a verdict comes to the same as with one. */
static UNUSED void
short_way_agrees(const struct bed *s)
{
	struct requester r = s->before;
	uint32_t n, ahead;

	if (requester_fits_read(&r, &s->pkt))
		short_read_agrees(s);
	if (s->pkt.opcode != OP_RC_ACKNOWLEDGE)
		return;
	ahead = requester_ack_ahead(&r, &s->pkt);
	if (ahead >= requester_ack_limit(&r))
		return;
	n = requester_take_acks(&r, ahead, s->now);
	assert_memory_equal(&r, &s->r, sizeof(r));
	assert_int_equal(s->v.act, REQACT_TIMER | (n != 0 ? REQACT_COMPLETE : 0));
	assert_int_equal(s->v.completed, n);
	assert_int_equal(s->v.cause, QC_NONE);
}

static UNUSED void
feed_rsp(struct bed *s, struct rsp p)
{
	make_rsp(s, &p);
	memset(&s->v, 0xa5, sizeof(s->v));
	s->before = s->r;
	requester_response(&s->r, &s->pkt, s->now, &s->v);
	short_way_agrees(s);
	count_completions(s);
}
#define FEED(s, ...) feed_rsp((s), (struct rsp){ __VA_ARGS__ })

/** ACKNOWLEDGE with any syndrome. */
static UNUSED void
ack(struct bed *s, uint32_t p, uint8_t syndrome)
{
	FEED(s, .op = OP_RC_ACKNOWLEDGE, .psn = p, .syn = syndrome);
}

static UNUSED void
read_rsp(struct bed *s, uint8_t op, uint32_t p, uint32_t len)
{
	FEED(s, .op = op, .psn = p, .syn = ACK, .len = len);
}
#define FIRST(s, p)     read_rsp((s), OP_RC_READ_RESPONSE_FIRST, (p), PMTU)
#define MIDDLE(s, p)    read_rsp((s), OP_RC_READ_RESPONSE_MIDDLE, (p), PMTU)
#define LAST(s, p, len) read_rsp((s), OP_RC_READ_RESPONSE_LAST, (p), (len))
#define ONLY(s, p, len) read_rsp((s), OP_RC_READ_RESPONSE_ONLY, (p), (len))

static UNUSED void
fire(struct bed *s)
{
	memset(&s->v, 0xa5, sizeof(s->v));
	s->before = s->r;
	requester_timer(&s->r, s->now, &s->v);
	count_completions(s);
}

/** Time moves to the deadline that is set, and the timer fires there. */
static UNUSED void
expire(struct bed *s)
{
	assert_true(s->r.timing || s->r.waiting_rnr);
	s->now = s->r.deadline;
	fire(s);
}

/* ---- what came out ---- */

#define expect_rule(s, id) assert_string_equal(requester_rule_id((s)->v.rule), (id))

/** The PSNs of the last pump(), in order. */
#define expect_psns(s, ...)                                                         \
	do {                                                                        \
		const uint32_t psns_[] = { __VA_ARGS__ };                           \
		assert_int_equal((s)->n, ARRAY_LEN(psns_));                         \
		for (uint32_t i_ = 0; i_ < ARRAY_LEN(psns_); i_++)                  \
			assert_int_equal((s)->out[i_].psn.v, psns_[i_] & 0xffffff); \
	} while (0)

#define expect_done(s, n_) assert_int_equal((s)->done, (n_))

/** Dropped: state as it was, nothing to do, a rule that says why. */
#define expect_no_effect(s, id)                                             \
	do {                                                                \
		assert_int_equal((s)->v.act, REQACT_DROP);                  \
		assert_memory_equal(&(s)->r, &(s)->before, sizeof((s)->r)); \
		expect_rule(s, id);                                         \
	} while (0)

/** Going back, nothing else. */
#define expect_resend(s, cause_, id)                                                            \
	do {                                                                                    \
		assert_int_equal(                                                               \
			(s)->v.act & ~(uint32_t)REQACT_COMPLETE, REQACT_RESEND | REQACT_TIMER); \
		assert_int_equal((s)->v.cause, (cause_));                                       \
		assert_int_equal((s)->v.outcome, QC_NONE);                                      \
		expect_rule(s, id);                                                             \
	} while (0)

/** The work request at `pos_` fails; no event; nothing leaves any more (REQ-NAK-09). */
#define expect_error(s, pos_, status, fatal_)                                                  \
	do {                                                                                   \
		assert_int_equal(                                                              \
			(s)->v.act & ~(uint32_t)REQACT_COMPLETE, REQACT_ERROR | REQACT_TIMER); \
		assert_int_equal((s)->v.failed, (pos_));                                       \
		assert_int_equal((s)->v.wc_status, (status));                                  \
		assert_int_equal((s)->v.fatal, (fatal_));                                      \
		assert_int_equal((s)->v.event, 0);                                             \
		assert_true((s)->v.rule != REQRULE_NONE);                                      \
		assert_false((s)->r.timing);                                                   \
		assert_false((s)->r.waiting_rnr);                                              \
		assert_int_equal(pump(s), REQ_FAULT);                                          \
		assert_int_equal((s)->n, 0);                                                   \
	} while (0)

#define RUN(...)                                                   \
	int main(void)                                             \
	{                                                          \
		const struct CMUnitTest tests[] = { __VA_ARGS__ }; \
		return cmocka_run_group_tests(tests, NULL, NULL);  \
	}
#define T(f) cmocka_unit_test(f)

/* ---- long WRITEs ---- */

static UNUSED void
long_write(struct bed *s, uint32_t packets)
{
	bed_init(s);
	POST(s, WRITE(packets * PMTU));
}

/** `n` packets from PSN p on, nothing else. */
static UNUSED void
expect_run(const struct bed *s, uint32_t p, uint32_t n)
{
	assert_int_equal(s->n, n);
	for (uint32_t i = 0; i < n; i++)
		assert_int_equal(s->out[i].psn.v, (p + i) & 0xffffff);
}

/** A round trip of `rtt` ns: all that may be sent, then the newest packet's ACK. */
static UNUSED void
round_trip(struct bed *s, uint64_t rtt)
{
	pump(s);
	s->now += rtt;
	ack(s, s->r.cur.v - 1, ACK);
}

#endif
