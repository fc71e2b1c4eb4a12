/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Stage 3: find each packet's QP. Packets for QPs of other workers leave here, through handoff.c:
 * nothing of such a QP is read. A QP's cache misses pass while stage 4 computes the ICRCs.
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
	if (op_has(op, OPF_RESPONSE)) { /* counts in line 9, too */
		rte_prefetch0(&qp->req);
		rte_prefetch0(&qp->req.deadline);
		rte_prefetch0(&qp->sq);
		rte_prefetch0(&qp->send_cq);
		return;
	}
	rte_prefetch0(qp->hot);
}

void
stage_lookup(struct worker *w, struct burst *b)
{
	uint8_t owner[PIPELINE_BURST]; /* read once: a QP may change hands meanwhile */
	const struct qp_table *t = w->qps;
	const uintptr_t index = w->index;
	const struct wire_pkt *p = b->pkt, *const end = &b->pkt[b->n];
	struct qp **to = b->qp;
	uint32_t foreign = 0;

	ASSERT(b->n <= PIPELINE_BURST);
	for (; p != end; p++, to++) {
		const uintptr_t slot = qp_table_at(t, p->dest_qpn);
		struct qp *qp = (struct qp *)(slot - index); /* one of ours */

		if (UNLIKELY(((slot - index) & QP_SLOT_WORKER) != 0)) {
			const uint32_t i = (uint32_t)(p - b->pkt);

			*to = qp = qp_of_slot(slot);
			owner[i] = slot & QP_SLOT_WORKER;
			foreign |= (uint32_t)(qp != NULL) << i;
			continue;
		}
		*to = qp;
		if (UNLIKELY(qp == NULL))
			continue;
		rte_prefetch0(qp);
		if (UNLIKELY(p->opcode != OP_RC_WRITE_ONLY)) /* counts in `few` */
			other_fetch(qp, p->op);
	}
	if (UNLIKELY(foreign != 0) || UNLIKELY(w->moving.qp != NULL))
		pipeline_handoff_sort(w, b, foreign, owner);
}
