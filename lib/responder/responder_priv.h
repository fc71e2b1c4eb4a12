/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RESPONDER_PRIV_H
#define RESPONDER_PRIV_H
/**
 * @file responder_priv.h  What the responder's files share; nobody else includes it.
 *
 * responder_step.h  each change of the state, once        RESP-SEQ-01, -02, RESP-RNR-01
 * responder.c       entry: fast path, accept              RESP-01..05, -08, -12
 * resp_query.c      what must be looked up for a packet   RESP-NAK-RAE-05, -09
 * resp_read.c       accepting READ and ATOMIC             RESP-06, RESP-07
 * resp_sequence.c   PSNs that are not ePSN's, early retry RESP-SEQ, RESP-RNR-05, -08
 * resp_duplicate.c  duplicates                            RESP-DUP
 * resp_checks.c     the walk over tables/checks.def       RX-PREC-03, RESP-NAK-INV, -RAE, -ROE
 * resp_fault.c      what a failed check leads to          RESP-CLS, RESP-RNR, RX-FATAL
 * resp_kept.c       requests that are ahead, kept         RESP-SEQ-14
 * resp_unacked.c    services without ACKs                 UC-05..12, RESP-CLS D1 and E
 * resp_rules.c      rule texts, credit codes              FLOW-01
 *
 * Owner:   the QP's worker.
 * Memory:  the caller's.
 * Depends: base, wire.
 */
#include "compiler.h"
#include "responder.h"
#include "responder_step.h"
#include "verbs.h"

enum { EVENT_NONE = 0 }; /* in tables: no event is raised */

/** One request being judged. */
struct request {
	struct responder *r;
	const struct wire_pkt *p;
	const struct responder_facts *f;
	ns_t now;
};

/** PSNs of a READ of `len` bytes: max(1, ceil(len / pmtu)); pmtu is a power of two. */
static inline uint32_t
read_psns(uint32_t len, uint16_t pmtu)
{
	uint32_t shift = (uint32_t)__builtin_ctz(pmtu);

	return len == 0 ? 1 : ((len - 1) >> shift) + 1;
}

/** Is it a request of this service? Anything else is dropped without an answer. */
static inline bool
is_request(const struct responder *r, const struct wire_pkt *p)
{
	return wire_transport_of(p->opcode) == r->transport && !op_has(p->op, OPF_RESPONSE);
}

/** responder_region(), where PSNs say what comes next; elsewhere every packet is the next one. */
static inline enum responder_region
region_of(const struct responder *r, psn_t p)
{
	return wire_is_acked(r->transport) ? responder_region(r, p) : REGION_EXPECTED;
}

/** Is it of the opcodes that the knob ops.placement has to allow, and does not? */
static inline bool
is_disabled(const struct responder *r, const struct wire_pkt *p)
{
	return op_has(p->op, OPF_PLACEMENT) && (r->knobs & RESP_KNOB_PLACEMENT) == 0;
}

/** A verdict that says nothing yet but where ePSN and MSN stand. */
static inline struct responder_verdict
verdict_blank(const struct responder *r)
{
	return (struct responder_verdict){
		.reply_psn = r->epsn,
		.reply_msn = r->msn,
		.syndrome = AETH_ACK | AETH_CREDIT_NONE,
		.fault = VERDICT_NO_FAULT,
	};
}

/** The packet is dropped by this rule, and counted. */
static inline void
verdict_drop(struct responder_verdict *v, enum responder_rule rule, enum responder_counter counter)
{
	v->act |= ACT_DROP;
	v->rule = rule;
	v->counter = counter;
}

/** What holds of a responder between two packets, whatever its peer sent. */
static ALWAYS_INLINE void
resp_check_state(const struct responder *r)
{
	ASSERT(r->epsn.v <= PSN_MASK);
	ASSERT(r->msn <= PSN_MASK);
	ASSERT(r->open <= OPEN_WRITE);
	ASSERT(r->open != OPEN_NONE || r->received == 0);
	ASSERT(r->wqe_active == (r->open == OPEN_SEND));
	ASSERT(r->open != OPEN_SEND || r->received <= VERBS_MESSAGE_MAX);
	ASSERT(r->open != OPEN_WRITE || r->received <= r->dma_len);
	ASSERT(r->open != OPEN_WRITE || r->dma_len <= VERBS_MESSAGE_MAX);
	ASSERT(r->rnr_until == 0 || r->latched);
	ASSERT(r->unfinished <= r->saved_n);
	ASSERT(r->saved_next == 0 || r->saved_next < r->saved_n);
}

/** What holds of the verdict on a packet, when ePSN was `before`. */
static ALWAYS_INLINE void
resp_check_verdict(const struct responder *r, psn_t before, const struct responder_verdict *v)
{
	const uint32_t places =
		ACT_PLACE_SEND | ACT_PLACE_WRITE | ACT_INVALIDATE | ACT_STORE | ACT_FENCE;
	const uint32_t answers = ACT_READ | ACT_ATOMIC | ACT_REPLAY;
	const uint32_t not_taken = ACT_DROP | ACT_NAK | ACT_ERR | ACT_DUPLICATE | ACT_KEEP;

	ASSERT(v->rule != RULE_NONE && v->rule < RULE_MAX);
	ASSERT((v->act & (ACT_ACK | ACT_NAK)) != (ACT_ACK | ACT_NAK));
	ASSERT((v->act & ACT_DROP) == 0 ||
		(v->act & ~(uint32_t)(ACT_DROP | ACT_DUPLICATE | ACT_CUT | ACT_LOW)) == 0);
	ASSERT((v->act & ACT_CUT) == 0 || (v->act & ACT_DROP) != 0);
	ASSERT((v->act & (ACT_ACK | ACT_NAK)) == 0 || wire_is_acked(r->transport));
	ASSERT((v->act & ACT_KEEP) == 0 || (v->act & ~(uint32_t)(ACT_KEEP | ACT_NAK)) == 0);
	ASSERT((v->act & (ACT_DROP | ACT_NAK | ACT_ERR)) == 0 ||
		(v->act & (places | answers)) == 0);
	ASSERT((v->act & not_taken) == 0 || psn_eq(r->epsn, before) ||
		!wire_is_acked(r->transport));
	ASSERT((v->act & not_taken) != 0 || psn_eq(v->reply_psn, responder_newest(r)));
	ASSERT((v->act & ACT_NAK) == 0 || psn_eq(v->reply_psn, r->epsn));
	ASSERT((v->act & ACT_NAK) == 0 || (v->syndrome & AETH_KIND_MASK) != AETH_ACK);
	ASSERT((v->act & ACT_ACK) == 0 || (v->syndrome & AETH_KIND_MASK) == AETH_ACK);
	ASSERT((v->act & ACT_ERR) == 0 || (v->act & (ACT_EVENT | ACT_COMPLETE)) != 0);
	ASSERT((v->act & ACT_EVENT) == 0 || (v->act & ACT_ERR) != 0);
	ASSERT((v->act & (answers & ~(uint32_t)ACT_READ)) == 0 || v->saved != NULL);
	ASSERT(v->reply_psn.v <= PSN_MASK && v->reply_msn <= PSN_MASK);
}

/** Does a request of this opcode need its key checked, given that it is well formed? */
static inline bool
needs_key(const struct responder *r, const struct wire_pkt *p)
{
	if (op_has(p->op, OPF_ATOMIC | OPF_FLUSH))
		return true;
	if (op_has(p->op, OPF_RETH))
		return wire_reth(p).dma_len != 0; /* RESP-08 */
	return op_has(p->op, OPF_WRITE) && r->open == OPEN_WRITE;
}

/* ---- resp_sequence.c */

/** Packet ahead of ePSN: one NAK, then silence. */
void resp_ahead(struct request *q, struct responder_verdict *v);
/** Retry at ePSN before the RNR time was over, and the knob says to drop it. */
bool resp_is_early(const struct request *q);

/* ---- resp_duplicate.c: changes nothing in the state */

/** A request behind ePSN: acknowledge it again, repeat a READ or ATOMIC, or drop it. */
void resp_duplicate(const struct request *q, struct responder_verdict *v);

/* ---- resp_checks.c */

enum failure {
#define FAILURE(name, cls, unacked, xrc, syndrome, status, event, clause) FAIL_##name,
#include "tables/failures.def"
#undef FAILURE
};

/** One row of tables/checks.def. */
struct check {
	enum responder_rule (*check)(const struct request *q);
	enum responder_rule (*also)(const struct request *q);
	uint8_t order;
	uint8_t failure; /* enum failure */
	uint8_t fatal;
	uint8_t fatal_write;
	uint8_t also_fatal;
	uint8_t fault;
	uint8_t counter;
	uint16_t early; /* RESP_KNOB_* */
	uint16_t drop;
};

/** First check that the request at ePSN fails, with the rule broken; NULL: it is good. */
const struct check *resp_check(const struct request *q, enum responder_rule *rule);

/* ---- resp_fault.c */

/** Order from which on a failed request takes the receive WQE that it would have taken. */
#define ORDER_TAKES_WQE 6

/** The request at ePSN fails check `c`: NAK, RNR, FATAL or silence, as the check's row says. */
void resp_fail(struct request *q, const struct check *c, enum responder_rule rule,
	struct responder_verdict *v);

/** Local completion status of a failure. */
uint8_t resp_failure_status(enum failure f);

/* ---- resp_unacked.c */

/** The same on a service without ACKs: the packet is dropped, and with it its message. */
void resp_drop_message(struct request *q, const struct check *c, enum responder_rule rule,
	struct responder_verdict *v);

/* ---- resp_read.c */

/** A good READ at ePSN: save it, and owe its responses. */
void resp_accept_read(struct request *q, struct responder_verdict *v);
/** A good ATOMIC at ePSN: execute it once, save the result, and owe the answer. */
void resp_accept_atomic(struct request *q, struct responder_verdict *v);
/** A good ATOMIC WRITE or FLUSH at ePSN: do it once, and owe a READ response without data. */
void resp_accept_placement(struct request *q, struct responder_verdict *v);
/** The slot saved last that covers PSN `p` and is of this kind, or NULL. */
struct responder_saved *resp_saved_find(const struct responder *r, psn_t p, uint8_t kind);

#endif
