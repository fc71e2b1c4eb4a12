/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Stage 3: find each packet's QP. Packets for QPs of other workers leave here, through handoff.c.
 * The QP's cache misses pass while stage 4 computes the ICRCs.
 */
#include "handoff.h"
#include "stage.h"

/** What is looked at for anything but a WRITE ONLY. */
static ALWAYS_INLINE void
other_fetch(const struct qp *qp, opflags_t op)
{
	if (op_has(op, OPF_SEND)) { /* if in order it counts in `few`, too */
		rte_prefetch0(&qp->recv_cq);
		rte_prefetch0(&qp->rq);
		return;
	}
	rte_prefetch0(qp->hot);
	if (op_has(op, OPF_RESPONSE)) {
		rte_prefetch0(&qp->req);
		rte_prefetch0(&qp->req.deadline);
		rte_prefetch0(&qp->sq);
		rte_prefetch0(&qp->send_cq);
	}
}

void
stage_lookup(struct worker *w, struct burst *b)
{
	const struct qp_table *t = w->qps;

	ASSERT(b->n <= PIPELINE_BURST);
	for (uint32_t i = 0; i < b->n; i++) {
		struct qp *qp = atomic_load_explicit(
			&t->slot[b->pkt[i].dest_qpn & t->mask], memory_order_acquire);

		b->qp[i] = qp;
		if (LIKELY(qp != NULL)) {
			rte_prefetch0(qp);
			if (UNLIKELY(b->pkt[i].opcode != OP_RC_WRITE_ONLY)) /* counts in `few` */
				other_fetch(qp, b->pkt[i].op);
		}
	}
	if (UNLIKELY(w->conf.workers_n > 1))
		pipeline_handoff_sort(w, b);
}
