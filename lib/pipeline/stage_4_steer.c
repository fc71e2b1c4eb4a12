/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Stage 4: find each packet's QP and hold the packet against what the QP knows of its peer. What
 * passes is an accepted packet of a QP of this worker; everything else leaves here, charged to the
 * first of its faults.
 */
#include "pipeline_priv.h"

static inline fault_mask_t
fault_if(bool cond, enum wire_fault f)
{
	return (fault_mask_t)cond << f;
}

/** Transport of a QP type as the three high bits of an opcode. */
static inline uint8_t
transport_of(uint8_t type)
{
	return type == QPT_RC ? WIRE_RC : type == QPT_UC ? WIRE_UC : WIRE_UD;
}

/** RX-HDR-01: the same key, and at least one of the two a full member. */
static inline bool
pkey_matches(uint16_t a, uint16_t b)
{
	return ((a ^ b) & 0x7fff) == 0 && ((a | b) & 0x8000) != 0;
}

static inline bool
differs(const uint8_t *a, const uint8_t *b, size_t n)
{
	return memcmp(a, b, n) != 0;
}

/** Network and link layer against the QP's path (RX-SYN-02, -05, -27, -28). */
static inline fault_mask_t
path_faults(const struct qp *qp, const struct wire_pkt *p)
{
	bool ipv6 = (p->flags & PKT_IPV6) != 0;
	fault_mask_t f = 0;

	if (UNLIKELY(ipv6 != ((qp->flags & QPF_IPV6) != 0)))
		return FAULT_BIT(FAULT_IP_VERSION);
	if (LIKELY(!ipv6))
		f |= fault_if(differs(wire_src_ip(p), qp->peer_ip, 4), FAULT_SRC_IP);
	else
		f |= fault_if(differs(wire_src_ip(p), qp->peer_ip, 16), FAULT_SRC_IP);
	if (UNLIKELY((qp->flags & QPF_REQUIRE_DF) != 0) && !ipv6)
		f |= fault_if((p->frame[p->l3_off + 6] & 0xe0) != 0x40, FAULT_IP_FLAGS);
	return f;
}

/** Everything about a packet that needs its QP, which is in a state that receives. */
static inline fault_mask_t
qp_faults(const struct qp *qp, uint8_t state, const struct wire_pkt *p)
{
	bool cnp = op_has(p->op, OPF_CNP);
	fault_mask_t f = path_faults(qp, p);

	if (UNLIKELY((qp->flags & QPF_CHECK_SRC_MAC) != 0))
		f |= fault_if(differs(p->frame + 6, qp->peer_mac, 6), FAULT_SRC_MAC);
	f |= fault_if(!pkey_matches(p->pkey, qp->pkey), FAULT_PKEY);
	/* Only RC has a responder so far. */
	f |= fault_if((p->opcode >> 5 != transport_of(qp->type) || qp->type != QPT_RC) && !cnp,
		FAULT_QP_TYPE);
	if (UNLIKELY(cnp))
		f |= fault_if(!cnp_is_good(p), FAULT_CNP);
	else if (UNLIKELY(op_has(p->op, OPF_RESPONSE)))
		f |= fault_if(state != QPS_RTS && state != QPS_SQD, FAULT_RESPONSE_STATE);
	return f;
}

/** Look the QPs up in three passes: prefetch slots, prefetch QPs, compare. */
static void
lookup(struct worker *w, struct burst *b)
{
	const struct qp_table *t = w->qps;

	for (uint32_t i = 0; i < b->n; i++)
		rte_prefetch0(&t->slot[b->pkt[i].dest_qpn & t->mask]);
	for (uint32_t i = 0; i < b->n; i++) {
		struct qp *qp = atomic_load_explicit(
			&t->slot[b->pkt[i].dest_qpn & t->mask], memory_order_acquire);

		b->qp[i] = qp;
		if (qp != NULL) {
			rte_prefetch0(qp);
			rte_prefetch0(&qp->resp);
			rte_prefetch0(&qp->ack_psn);
		}
	}
	for (uint32_t i = 0; i < b->n; i++)
		if (b->qp[i] != NULL && b->qp[i]->qpn != b->pkt[i].dest_qpn)
			b->qp[i] = NULL;
}

/** The slow way: nothing, or nothing good, was found for the packet. */
static void
leave(struct worker *w, struct burst *b, uint32_t i)
{
	struct wire_pkt *p = &b->pkt[i];
	struct qp *qp = b->qp[i];

	/* Without a BTH there is no QP to look at; a reserved number has its own fault. */
	if (p->bth_off != 0 && (p->faults & FAULT_BIT(FAULT_DST_QP)) == 0) {
		if (qp == NULL || (qp->worker == w->index && !qp_receives(qp_state_of(qp))))
			p->faults |= FAULT_BIT(FAULT_QP_STATE);
		else if (qp->worker == w->index)
			p->faults |= qp_faults(qp, qp_state_of(qp), p);
	}
	if (qp != NULL && qp->worker != w->index)
		b->qp[i] = NULL; /* not ours to count in */
	drop_faulty(w, b, i);
	mbuf_done(w, b->m[i]);
}

void
stage_steer(struct worker *w, struct burst *b)
{
	uint32_t kept = 0;

	lookup(w, b);
	for (uint32_t i = 0; i < b->n; i++) {
		struct wire_pkt *p = &b->pkt[i];
		struct qp *qp = b->qp[i];
		uint8_t state;

		if (UNLIKELY(qp == NULL || p->faults != 0)) {
			leave(w, b, i);
			continue;
		}
		if (UNLIKELY(qp->worker != w->index)) {
			handoff_send(w, b, i, qp->worker);
			continue;
		}
		state = qp_state_of(qp);
		if (UNLIKELY(!qp_receives(state) || qp_faults(qp, state, p) != 0)) {
			leave(w, b, i);
			continue;
		}
		burst_keep(b, kept, i);
		kept++;
	}
	b->n = kept;
}
