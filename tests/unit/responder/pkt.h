/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TEST_RESPONDER_PKT_H
#define TEST_RESPONDER_PKT_H
/**
 * @file pkt.h  Fixture F-RESP of the rules around the responder, and packets to feed it.
 *
 * The surroundings are a small model: a receive queue, one region, and the facts follow only from
 * what responder_query() asked for, so that a fact it forgets to ask for makes a good case fail.
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
#include "responder.h"

#define E       0x000100u
#define MR_VA   UINT64_C(0x7f0000010000)
#define MR_LEN  65536u
#define MR_RKEY 0x1001u
#define INV_KEY 0x2002u
#define BAD_KEY 0x5bad5badu
#define PMTU    1024
#define T0      UINT64_C(1000000000)

/* Values of libibverbs, typed here on purpose. */
enum { REMOTE_WRITE = 2, REMOTE_READ = 4, REMOTE_ATOMIC = 8, ALL_ACCESS = 15, FLUSH_ALL = 0x300 };
enum {
	WC_SUCCESS = 0,
	WC_LOC_LEN = 1,
	WC_LOC_QP_OP = 2,
	WC_LOC_PROT = 4,
	WC_LOC_ACCESS = 8,
	WC_REM_INV_REQ = 9,
	WC_REM_ACCESS = 10
};
enum { EV_QP_FATAL = 1, EV_QP_REQ_ERR = 2, EV_QP_ACCESS_ERR = 3 };
enum { NAK_SEQ = 0x60, NAK_INV = 0x61, NAK_RAE = 0x62, NAK_ROE = 0x63, RNR_12 = 0x2c };

struct bed {
	struct responder r;
	struct responder before; /* as it was when the last packet came */
	struct responder_saved saved[16];
	struct responder_query q;
	struct responder_verdict v;
	struct responder_facts f; /* faults to inject; the rest is filled by feed() */
	ns_t now;
	uint32_t wqes; /* posted and free */
	uint64_t wqe_bytes;
	uint16_t mr_access;
	bool mr_gone;
	bool may_invalidate;
	uint8_t frame[PARSED_FRAME];
	struct wire_pkt pkt;
};

struct spec {
	uint8_t op;
	uint32_t psn;
	uint32_t len;
	uint8_t pad;
	uint8_t flags;
	uint64_t va;
	uint32_t rkey;
	uint32_t dma_len;
	uint32_t imm;
	uint32_t feth;
};

static UNUSED void
bed_init(struct bed *s)
{
	memset(s, 0, sizeof(*s));
	s->r.pmtu = PMTU;
	s->r.access = ALL_ACCESS;
	s->r.min_rnr_timer = 12;
	s->r.max_dest_rd_atomic = 4;
	s->r.saved_n = 4;
	s->r.saved = s->saved;
	responder_reset(&s->r, psn(E));
	s->now = T0;
	s->wqes = 4;
	s->wqe_bytes = 4096;
	s->mr_access = ALL_ACCESS;
	s->may_invalidate = true;
}

/** The frame's headers as the opcode has them; the payload is only a length here. */
static UNUSED void
make_pkt(struct bed *s, const struct spec *p)
{
	uint8_t *e = parsed_pkt(&s->pkt, s->frame, p->op, p->psn, p->len);
	const opflags_t op = s->pkt.op;

	s->pkt.flags = p->flags;
	s->pkt.pad = p->pad;
	if (op_has(op, OPF_FETH)) {
		be32_store(e, p->feth);
		e += 4;
	}
	if (op_has(op, OPF_RETH)) {
		be64_store(e, p->va);
		be32_store(e + 8, p->rkey);
		be32_store(e + 12, p->dma_len);
		e += 16;
	} else if (op_has(op, OPF_ATOMICETH)) {
		be64_store(e, p->va);
		be32_store(e + 8, p->rkey);
	}
	if (op_has(op, OPF_IMM | OPF_IETH))
		be32_store(e, p->imm);
}

static UNUSED bool
key_ok(const struct bed *s, const struct responder_query *q)
{
	return !s->mr_gone && q->rkey == MR_RKEY && (s->mr_access & q->access) == q->access &&
	       q->va >= MR_VA && q->va <= MR_VA + MR_LEN && q->len <= MR_VA + MR_LEN - q->va;
}

/** Query, facts, receive; the receive queue follows the verdict. */
static UNUSED const struct responder_verdict *
feed_spec(struct bed *s, struct spec p)
{
	struct responder_facts f;

	make_pkt(s, &p);
	memset(&s->q, 0xa5, sizeof(s->q));
	memset(&s->v, 0xa5, sizeof(s->v));
	s->before = s->r;
	responder_query(&s->r, &s->pkt, &s->q);
	assert_memory_equal(&s->before, &s->r, sizeof(s->r));

	f = s->f;
	f.has_wqe = s->q.wqe && s->wqes > 0;
	f.wqe_bytes = s->q.wqe ? s->wqe_bytes : 0;
	f.wqe_fault = s->q.wqe ? s->f.wqe_fault : 0;
	f.free_wqes = s->wqes;
	f.key_ok = s->q.key && key_ok(s, &s->q);
	f.invalidate_ok = s->q.invalidate && s->may_invalidate && s->q.inv_key == INV_KEY;
	responder_receive(&s->r, &s->pkt, &f, s->now, &s->v);
	if ((s->v.act & ACT_TAKE_WQE) != 0) {
		assert_true(s->wqes > 0);
		s->wqes--;
	}
	return &s->v;
}
#define FEED(s, ...) feed_spec((s), (struct spec){ __VA_ARGS__ })

/* The usual requests. */
#define SEND_ONLY(p, l) .op = OP_RC_SEND_ONLY, .psn = (p), .len = (l), .flags = PKT_ACKREQ
#define SEND_FIRST(p)   .op = OP_RC_SEND_FIRST, .psn = (p), .len = PMTU
#define WRITE_ONLY(p, l)                                                                  \
	.op = OP_RC_WRITE_ONLY, .psn = (p), .len = (l), .flags = PKT_ACKREQ, .va = MR_VA, \
	.rkey = MR_RKEY, .dma_len = (l)
#define WRITE_FIRST(p, l)                                                               \
	.op = OP_RC_WRITE_FIRST, .psn = (p), .len = PMTU, .va = MR_VA, .rkey = MR_RKEY, \
	.dma_len = (l)
#define WRITE_ONLY_IMM(p, key) \
	.op = OP_RC_WRITE_ONLY_IMM, .psn = (p), .len = 4, .va = MR_VA, .rkey = (key), .dma_len = 4
#define READ(p, l) \
	.op = OP_RC_READ_REQUEST, .psn = (p), .va = MR_VA, .rkey = MR_RKEY, .dma_len = (l)
#define FETCH_ADD(p) .op = OP_RC_FETCH_ADD, .psn = (p), .va = MR_VA, .rkey = MR_RKEY

/* ---- what came out ---- */

#define expect_state(s, e, m)                         \
	do {                                          \
		assert_int_equal((s)->r.epsn.v, (e)); \
		assert_int_equal((s)->r.msn, (m));    \
	} while (0)

#define expect_rule(s, id) assert_string_equal(responder_rule_id((s)->v.rule), (id))

/** ACK(p, m) */
#define expect_ack(s, p, m)                                                                      \
	do {                                                                                     \
		assert_int_equal((s)->v.act &(ACT_ACK | ACT_NAK | ACT_ERR | ACT_DROP), ACT_ACK); \
		assert_int_equal((s)->v.reply_psn.v, (p));                                       \
		assert_int_equal((s)->v.reply_msn, (m));                                         \
		assert_int_equal((s)->v.syndrome, 0x1f);                                         \
	} while (0)

/** A NAK that leaves the QP running, and nothing besides. */
#define expect_nak(s, syn, p, m)                                     \
	do {                                                         \
		assert_int_equal((s)->v.act, ACT_NAK);               \
		assert_int_equal((s)->v.syndrome, (syn));            \
		assert_int_equal((s)->v.reply_psn.v, (p));           \
		assert_int_equal((s)->v.reply_msn, (m));             \
		assert_int_equal((s)->r.epsn.v, (s)->before.epsn.v); \
		assert_int_equal((s)->r.msn, (s)->before.msn);       \
	} while (0)

/** A fatal NAK at ePSN with one event and no completion (RESP-NAK-INV-14, RESP-NAK-INV-16). */
#define expect_fatal_event(s, syn, ev)                                       \
	do {                                                                 \
		assert_int_equal((s)->v.act, ACT_NAK | ACT_ERR | ACT_EVENT); \
		assert_int_equal((s)->v.syndrome, (syn));                    \
		assert_int_equal((s)->v.event, (ev));                        \
		assert_int_equal((s)->v.reply_psn.v, (s)->before.epsn.v);    \
		assert_int_equal((s)->v.reply_msn, (s)->before.msn);         \
		assert_int_equal((s)->r.epsn.v, (s)->before.epsn.v);         \
	} while (0)

/** A fatal NAK at ePSN with one completion and no event; `take` is ACT_TAKE_WQE or 0. */
#define expect_fatal_cqe(s, syn, status, take)                                           \
	do {                                                                             \
		assert_int_equal((s)->v.act, ACT_NAK | ACT_ERR | ACT_COMPLETE | (take)); \
		assert_int_equal((s)->v.syndrome, (syn));                                \
		assert_int_equal((s)->v.wc_status, (status));                            \
		assert_int_equal((s)->v.reply_psn.v, (s)->before.epsn.v);                \
		assert_int_equal((s)->v.reply_msn, (s)->before.msn);                     \
		assert_int_equal((s)->r.epsn.v, (s)->before.epsn.v);                     \
	} while (0)

/** Dropped, nothing sent, state as it was. */
#define expect_silent(s)                                                           \
	do {                                                                       \
		assert_int_equal((s)->v.act & ~(uint32_t)ACT_DUPLICATE, ACT_DROP); \
		assert_memory_equal(&(s)->r, &(s)->before, sizeof((s)->r));        \
		assert_true((s)->v.rule != RULE_NONE);                             \
	} while (0)

#endif
