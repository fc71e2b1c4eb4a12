/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The checks of a request at ePSN, one function each, and the walk over tables/checks.def that
 * finds the first that fails. A good request of the fast path never comes here.
 */
#include "responder_priv.h"

enum opcode_class { CLASS_STARTS, CLASS_SEND_REST, CLASS_WRITE_REST, CLASS_OTHER };

static enum opcode_class
class_of(const struct request *q)
{
	const opflags_t op = q->p->op;

	if (!op_has(op, OPF_REQUEST) || is_disabled(q->r, q->p))
		return CLASS_OTHER;
	if (op_has(op, OPF_FIRST | OPF_ONLY))
		return CLASS_STARTS;
	return op_has(op, OPF_SEND) ? CLASS_SEND_REST : CLASS_WRITE_REST;
}

static const uint8_t succession[3][4] = {
#define SUCCESSION(open, class, rule) [OPEN_##open][CLASS_##class] = RULE_##rule,
#include "tables/succession.def"
#undef SUCCESSION
};

/** The rule, if it is broken. */
static inline enum responder_rule
unless(bool good, enum responder_rule rule)
{
	return good ? RULE_NONE : rule;
}

static inline bool
is_immediate_write(const struct wire_pkt *p)
{
	return op_has_all(p->op, OPF_WRITE | OPF_IMM);
}

static enum responder_rule
check_nothing(UNUSED const struct request *q)
{
	return RULE_NONE;
}

static enum responder_rule
check_sequence(const struct request *q)
{
	return succession[q->r->open][class_of(q)];
}

static enum responder_rule
check_supported(const struct request *q)
{
	if (!op_has(q->p->op, OPF_REQUEST) || is_disabled(q->r, q->p))
		return RULE_INV_OPCODE;
	/* Bits 6 to 31 are reserved, and nobody looks at them. */
	return unless(!op_has(q->p->op, OPF_FLUSH) || verbs_flush_exists(wire_feth(q->p) & 0x3f),
		RULE_INV_FLUSH);
}

static enum responder_rule
check_enabled(const struct request *q)
{
	opflags_t op = q->p->op;
	uint32_t need = 0;

	if (op_has(op, OPF_WRITE | OPF_ATOMIC_WRITE))
		need = ACCESS_REMOTE_WRITE;
	else if (op_has(op, OPF_READ))
		need = ACCESS_REMOTE_READ;
	else if (op_has(op, OPF_ATOMIC))
		need = ACCESS_REMOTE_ATOMIC;
	else if (op_has(op, OPF_FLUSH))
		need = verbs_flush_access(wire_feth(q->p));
	return unless((q->r->access & need) == need, RULE_INV_NOT_ENABLED);
}

static enum responder_rule
check_pad(const struct request *q)
{
	opflags_t op = q->p->op;
	bool may_pad = op_has(op, OPF_LAST | OPF_ONLY) && op_has(op, OPF_PAYLOAD);

	return unless(may_pad || q->p->pad == 0, RULE_INV_PAD);
}

static enum responder_rule
check_length(const struct request *q)
{
	uint32_t len = q->p->payload_len, pmtu = q->r->pmtu;
	opflags_t op = q->p->op;
	bool good;

	if (!op_has(op, OPF_PAYLOAD))
		good = len == 0;
	else if (op_has(op, OPF_ATOMIC_WRITE))
		good = len == VERBS_ATOMIC_LEN;
	else if (op_has(op, OPF_FIRST | OPF_MIDDLE))
		good = len == pmtu;
	else
		good = len <= pmtu && (len != 0 || op_has(op, OPF_ONLY));
	return unless(good, RULE_INV_LENGTH);
}

static enum responder_rule
check_pad_or_length(const struct request *q)
{
	enum responder_rule rule = check_pad(q);

	return rule != RULE_NONE ? rule : check_length(q);
}

/** XRC-05, XRC-10: whatever the request is, its SRQ is known before it is executed. */
static enum responder_rule
check_srq(const struct request *q)
{
	return unless(q->f->wqe_fault != WQE_FAULT_NO_SRQ, RULE_NO_SRQ);
}

static enum responder_rule
check_resources(const struct request *q)
{
	const struct responder *r = q->r;

	if (!op_has(q->p->op, OPF_READ | OPF_ATOMIC | OPF_PLACEMENT))
		return RULE_NONE;
	return unless(r->saved != NULL && r->unfinished + r->at_once < r->max_dest_rd_atomic,
		RULE_INV_RESOURCES);
}

/** Limit of the RETH's length, and the bytes of a WRITE against it. */
static enum responder_rule
check_dma_len(const struct request *q)
{
	opflags_t op = q->p->op;
	uint64_t sum = (uint64_t)q->r->received + q->p->payload_len;
	uint32_t dma_len = q->r->dma_len;

	if (op_has(op, OPF_FLUSH))
		return unless((wire_feth(q->p) & FLUSH_MR) != 0 ||
				      wire_reth_any(q->p).dma_len <= VERBS_MESSAGE_MAX,
			RULE_INV_READ_LIMIT);
	if (!op_has(op, OPF_READ | OPF_WRITE | OPF_ATOMIC_WRITE))
		return RULE_NONE;
	if (op_has(op, OPF_RETH)) {
		sum = q->p->payload_len;
		dma_len = wire_reth(q->p).dma_len;
		if (dma_len > VERBS_MESSAGE_MAX)
			return op_has(op, OPF_READ) ? RULE_INV_READ_LIMIT : RULE_INV_WRITE_LIMIT;
	}
	if (op_has(op, OPF_READ))
		return RULE_NONE;
	return unless(op_has(op, OPF_LAST | OPF_ONLY) ? sum == dma_len : sum <= dma_len,
		RULE_INV_WRITE_SUM);
}

static enum responder_rule
check_alignment(const struct request *q)
{
	if (op_has(q->p->op, OPF_ATOMIC_WRITE))
		return unless((wire_reth(q->p).va & 7) == 0, RULE_INV_MISALIGNED);
	if (!op_has(q->p->op, OPF_ATOMIC))
		return RULE_NONE;
	return unless((wire_atomiceth(q->p).va & 7) == 0, RULE_INV_MISALIGNED);
}

/*
 * RESP-RNR-02: a SEND at its first packet, a WRITE where its immediate is. A SEND that goes on
 * has its WQE; a stray one comes here only when this check goes first (RX-PREC-05).
 */
static enum responder_rule
check_receive_wqe(const struct request *q)
{
	bool send = op_has(q->p->op, OPF_SEND) && !q->r->wqe_active;

	if (q->f->has_wqe || (!send && !is_immediate_write(q->p)))
		return RULE_NONE;
	if (q->f->wqe_fault >= WQE_FAULT_QUEUE) /* another check's matter */
		return RULE_NONE;
	return send ? RULE_RNR_SEND : RULE_RNR_IMMEDIATE;
}

static enum responder_rule
check_receive_queue(const struct request *q)
{
	return unless(q->f->wqe_fault != WQE_FAULT_QUEUE, RULE_SRQ_ERROR);
}

static enum responder_rule
check_shortage(const struct request *q)
{
	return unless(!q->f->short_of_resources, RULE_RNR_SHORTAGE);
}

static enum responder_rule
check_key(const struct request *q)
{
	if (q->f->key_ok || !needs_key(q->r, q->p))
		return RULE_NONE;
	if (op_has(q->p->op, OPF_WRITE) && !op_has(q->p->op, OPF_RETH))
		return RULE_KEY_REVOKED;
	return is_immediate_write(q->p) ? RULE_KEY_IMMEDIATE : RULE_KEY;
}

/** A malformed WQE has no size: that is left to check_wqe_form(). */
static enum responder_rule
check_fits(const struct request *q)
{
	uint64_t sum = (uint64_t)q->r->received + q->p->payload_len;

	if (!op_has(q->p->op, OPF_SEND) || q->f->wqe_fault == WQE_FAULT_MALFORMED)
		return RULE_NONE;
	return unless(
		sum + q->r->head <= q->f->wqe_bytes && sum <= VERBS_MESSAGE_MAX, RULE_INV_TOO_LONG);
}

static enum responder_rule
check_wqe_form(const struct request *q)
{
	bool uses = op_has(q->p->op, OPF_SEND) || is_immediate_write(q->p);

	return unless(!uses || q->f->wqe_fault != WQE_FAULT_MALFORMED, RULE_WQE);
}

/** The memory behind the WQE of a WRITE's immediate is not touched, so it need not be there. */
static enum responder_rule
check_wqe_memory(const struct request *q)
{
	return unless(!op_has(q->p->op, OPF_SEND) || q->f->wqe_fault != WQE_FAULT_PROT, RULE_WQE);
}

static enum responder_rule
check_execution(const struct request *q)
{
	return unless(!q->f->exec_fault, RULE_EXECUTION);
}

static enum responder_rule
check_invalidate(const struct request *q)
{
	return unless(!op_has(q->p->op, OPF_IETH) || q->f->invalidate_ok, RULE_INVALIDATE_KEY);
}

/* Codes of the second check, as tables/checks.def combines them. */
#define ALSO_nothing       0
#define ALSO_pad_or_length FATAL_SEND_LENGTH
#define ALSO_key           (FATAL_RKEY & 3)
_Static_assert((FATAL_OPCODE_SEQ | FATAL_SEND_LENGTH) == FATAL_OPCODE_SEQ_LENGTH, "RX-FATAL-03");
_Static_assert((FATAL_WRITE_SEQ | FATAL_SEND_LENGTH) == FATAL_WRITE_SEQ_LENGTH, "RX-FATAL-17");
_Static_assert((FATAL_DMA_LEN | (FATAL_RKEY & 3)) == FATAL_DMA_LEN_RKEY, "RX-FATAL-22");

#define FATAL_NONE 0
#define FAULT_NONE VERDICT_NO_FAULT

static const struct check checks[] = {
#define CHECK(ord, name, fail, ftl, ftl_write, second, flt, cnt, erl, drp) \
	{ .check = check_##name,                                           \
		.also = check_##second,                                    \
		.order = (ord),                                            \
		.failure = FAIL_##fail,                                    \
		.fatal = FATAL_##ftl,                                      \
		.fatal_write = FATAL_##ftl_write,                          \
		.also_fatal = ALSO_##second,                               \
		.fault = FAULT_##flt,                                      \
		.counter = (cnt),                                          \
		.early = (erl),                                            \
		.drop = (drp) },
#include "tables/checks.def"
#undef CHECK
};

/* A place in checks[]. */
enum {
#define CHECK(ord, name, fail, ftl, ftl_write, second, flt, cnt, erl, drp) AT_##name,
#include "tables/checks.def"
#undef CHECK
};

/** Knobs that move any check. */
#define CHECK(ord, name, fail, ftl, ftl_write, second, flt, cnt, erl, drp) (erl) |
static const uint16_t early_knobs =
#include "tables/checks.def"
	0;
#undef CHECK

static __attribute__((noinline)) const struct check *
check_early(const struct request *q, enum responder_rule *rule)
{
	for (size_t i = 0; i < ARRAY_LEN(checks); i++) {
		if ((checks[i].early & q->r->knobs) == 0)
			continue;
		*rule = checks[i].check(q);
		if (*rule != RULE_NONE)
			return &checks[i];
	}
	return NULL;
}

const struct check *
resp_check(const struct request *q, enum responder_rule *rule)
{
	const struct check *early = NULL;

	if (UNLIKELY((q->r->knobs & early_knobs) != 0))
		early = check_early(q, rule);
	if (early != NULL)
		return early;
		/* Written out, so that no check is a call. */
#define CHECK(ord, name, fail, ftl, ftl_write, second, flt, cnt, erl, drp) \
	*rule = check_##name(q);                                           \
	if (*rule != RULE_NONE)                                            \
		return &checks[AT_##name];
#include "tables/checks.def"
#undef CHECK
	return NULL;
}
