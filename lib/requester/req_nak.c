/* SPDX-License-Identifier: BSD-3-Clause */
/* Acknowledgements that do not say yes. */
#include "requester_priv.h"

static const struct fatal_nak {
	uint8_t status;
	uint8_t cause;
	uint16_t rule;
} fatal_naks[32] = {
#define FATAL_NAK(code, wc, counter, rl, clause) \
	[NAK_##code] = { WC_##wc, QC_##counter, REQRULE_##rl },
#include "tables/naks.def"
#undef FATAL_NAK
};

/* Bit 7 is reserved too; NAK codes 4 to 31 are on RC (AMB-13), 5 to 31 on XRC. */
enum syndrome_kind
req_syndrome_kind(const struct requester *r, uint8_t syndrome)
{
	uint8_t code = syndrome & (uint8_t)~AETH_KIND_MASK;

	switch (syndrome & AETH_KIND_MASK) {
	case AETH_ACK:
		return SYNDROME_ACK;
	case AETH_RNR:
		return SYNDROME_RNR;
	case AETH_NAK:
		if (code == NAK_INV_RD_REQ && r->transport != WIRE_XRC)
			return SYNDROME_RESERVED;
		if (code == NAK_PSN_SEQ_ERR || fatal_naks[code].status != 0)
			return SYNDROME_NAK;
		return SYNDROME_RESERVED;
	default:
		return SYNDROME_RESERVED;
	}
}

/**
 * The peer took nothing from the PSN of its NAK on, and is silent until that PSN comes again. So
 * every answer from there on is a first one and belongs to the pass that begins now: this pass is
 * like a first one (REQ-IMPL-01).
 */
static void
all_anew(struct requester *r)
{
	r->recovering = false;
}

/* The wait begins anew with each RNR NAK of a resent copy; during it the transport timer is off. */
static void
rnr(struct requester *r, uint8_t code, ns_t now, struct requester_verdict *v)
{
	v->cause = QC_RNR_NAK;
	v->rule = REQRULE_RNR;
	if (r->rnr_retry != RNR_FOREVER) {
		if (r->rnr_left == 0) { /* AMB-01 */
			v->outcome = QC_RNR_EXCEEDED;
			v->rule = REQRULE_RNR_EXHAUSTED;
			fail_head(r, v, WC_RNR_RETRY_EXC_ERR, FATAL_RNR_EXHAUSTED);
			return;
		}
		r->rnr_left--;
	}
	req_rewind(r, v);
	r->waiting_rnr = true;
	r->rnr_code = code;
	r->deadline = now + wire_rnr_us(code) * RNR_NS_PER_US;
}

static void
refused(struct requester *r, const struct fatal_nak *nak, struct requester_verdict *v)
{
	v->cause = nak->cause;
	v->rule = nak->rule;
	v->fault = FAULT_BAD_RESPONSE;
	fail_head(r, v, nak->status, FATAL_NAK_RECEIVED);
}

void
req_nak(struct requester *r, psn_t p, uint8_t syndrome, ns_t now, struct requester_verdict *v)
{
	enum syndrome_kind kind = req_syndrome_kind(r, syndrome);
	uint8_t code = syndrome & (uint8_t)~AETH_KIND_MASK;
	const bool again =
		kind == SYNDROME_RNR || (kind == SYNDROME_NAK && code == NAK_PSN_SEQ_ERR);

	/* A packet behind `p` brought it. Without a timer it may have been sent long after. */
	if (UNLIKELY(r->timeout == 0) && kind == SYNDROME_NAK)
		r->timed_at = 0;
	switch (req_acknowledge(r, p, now, v)) {
	case REACH_READ: /* AMB-19: before anything that it says itself */
		req_implied_nak(r, p, BEYOND_NAK, REQRULE_IMPLIED_NAK, now, v);
		return;
	case REACH_FAULT:
		return;
	case REACH_ALL:
		break;
	}
	if (UNLIKELY(again && fault_is_due(r))) /* REQ-CLS-B-01: it does not leave again */
		return;
	r->implied = false;
	if (kind == SYNDROME_RESERVED) {
		v->fault = FAULT_AETH;
		v->rule = REQRULE_BAD_SYNDROME;
		fail_head(r, v, WC_BAD_RESP_ERR, FATAL_BAD_AETH);
	} else if (kind == SYNDROME_NAK && code != NAK_PSN_SEQ_ERR) {
		refused(r, &fatal_naks[code], v);
	} else if (r->waiting_rnr) {
		verdict_drop(v, REQRULE_NAK_IN_WAIT); /* nothing was sent since the first */
	} else if (kind == SYNDROME_RNR) {
		rnr(r, code, now, v);
		all_anew(r);
	} else {
		req_retry(r, QC_SEQ_NAK, REQRULE_NAK_SEQ, v);
		all_anew(r);
	}
}
