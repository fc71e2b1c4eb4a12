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
	struct requester_wr head_before; /* the oldest work request then */
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

void bed_init(struct bed *s);

/** Post one work request. */
void post_wr(struct bed *s, struct requester_wr w);
#define POSTF(s, f, ...) post_wr((s), (struct requester_wr){ .flags = (uint8_t)(f), __VA_ARGS__ })
#define POST(s, ...)     POSTF(s, SIGNALED, __VA_ARGS__)
#define SEND(l)          .opcode = WR_SEND, .len = (l)
#define WRITE(l)         .opcode = WR_RDMA_WRITE, .len = (l)
#define READ(l)          .opcode = WR_RDMA_READ, .len = (l)
#define FADD             .opcode = WR_ATOMIC_FETCH_AND_ADD, .len = 8

void post_sends(struct bed *s, uint32_t n);

/**
 * What requester_waits() says is what requester_next() does, and nothing has changed by asking.
 * Nothing leaves where requester_is_shut() says so.
 */
enum requester_stop asked_next(struct bed *s, struct requester_packet *p);

/** requester_next(), and whether the short way agrees. */
enum requester_stop next_packet(struct bed *s, struct requester_packet *p);

/** All packets that may leave now: REQ-01, REQ-07, the short way agrees on many at once. */
enum requester_stop pump(struct bed *s);

/** Completions come in posting order, each once. */
void count_completions(struct bed *s);

struct rsp {
	uint8_t op;
	uint32_t psn;
	uint8_t syn;
	uint32_t msn;
	uint32_t len;
	uint8_t pad;
	uint64_t original;
};

void make_rsp(struct bed *s, const struct rsp *p);

void feed_rsp(struct bed *s, struct rsp p);
#define FEED(s, ...) feed_rsp((s), (struct rsp){ __VA_ARGS__ })

/** ACKNOWLEDGE with any syndrome. */
void ack(struct bed *s, uint32_t p, uint8_t syndrome);

void read_rsp(struct bed *s, uint8_t op, uint32_t p, uint32_t len);
#define FIRST(s, p)     read_rsp((s), OP_RC_READ_RESPONSE_FIRST, (p), PMTU)
#define MIDDLE(s, p)    read_rsp((s), OP_RC_READ_RESPONSE_MIDDLE, (p), PMTU)
#define LAST(s, p, len) read_rsp((s), OP_RC_READ_RESPONSE_LAST, (p), (len))
#define ONLY(s, p, len) read_rsp((s), OP_RC_READ_RESPONSE_ONLY, (p), (len))

void fire(struct bed *s);

/** Time moves to the deadline that is set, and the timer fires there. */
void expire(struct bed *s);

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

void long_write(struct bed *s, uint32_t packets);

/** `n` packets from PSN p on, nothing else. */
void expect_run(const struct bed *s, uint32_t p, uint32_t n);

/** A round trip of `rtt` ns: all that may be sent, then the newest packet's ACK. */
void round_trip(struct bed *s, uint64_t rtt);

#endif
