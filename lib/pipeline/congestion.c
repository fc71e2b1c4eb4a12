/* SPDX-License-Identifier: BSD-3-Clause */
/* Marks on the way in, CNPs on the way out, and CNPs that arrive (CC-01 .. CC-08). */
#include "pipeline_priv.h"

/** CC-08: BECN set, sixteen bytes behind the BTH. */
bool
cnp_is_good(const struct wire_pkt *p)
{
	return (p->flags & PKT_BECN) != 0 && p->payload_len == WIRE_CNP_PAYLOAD_LEN && p->pad == 0;
}

void
congestion_mark(struct worker *w, uint8_t port, struct qp *qp)
{
	count(w, port, qp, STAT_np_ecn_marked_roce_packets);
	qp->ce_seen++;
	if ((qp->flags & QPF_CNP) == 0 || w->now < qp->cnp_next)
		return;
	qp->cnp_next = w->now + qp->cnp_interval_ns;
	reply_cnp(w, qp);
}

/** Nothing is sent that could be slowed down yet: see rp_cnp_handled. */
void
congestion_notified(struct worker *w, uint8_t port, struct qp *qp)
{
	uint8_t state = qp_state_of(qp);

	if (state == QPS_RTS || state == QPS_SQD)
		count(w, port, qp, STAT_rp_cnp_handled);
	else
		count(w, port, qp, STAT_rp_cnp_ignored);
	if (traced(w, qp))
		trace_put(w->trace, &(struct trace_entry){ .time_ns = w->now,
					    .qpn = qp->qpn,
					    .kind = TRACE_cnp,
					    .opcode = OP_CNP,
					    .fault = VERDICT_NO_FAULT,
					    .state = state });
}
