/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Path migration: what the peer's packets and exhausted retries do to a QP's paths, and which
 * events report it. Stage 5 checks on which path a packet came. Also here: a QP learns its peer's
 * MAC from the peer's packets while no neighbour has answered for the address.
 */
#include "count.h"
#include "local.h"
#include "migration.h"
#include "report.h"
#include "sending.h"
#include "tx.h"

/**
 * Does the packet show that its sender knows the QP? It has the one PSN that the responder expects,
 * or answers what is outstanding. A CNP's PSN says nothing.
 */
static bool
is_in_window(const struct qp *qp, const struct wire_pkt *p)
{
	if (op_has(p->op, OPF_CNP))
		return false;
	if (op_has(p->op, OPF_REQUEST))
		return psn_eq(p->psn, qp->resp.epsn);
	return psn_distance(p->psn, qp->req.una) < psn_distance(qp->req.next, qp->req.una);
}

/**
 * Without the peer's MAC our answers would be lost, and each would cost the peer a timeout. So they
 * go to the MAC that its packet came from: the peer's, or a router's. Only a packet inside the
 * window is trusted: its sender could write the QP's data as well. The neighbour's own answer
 * replaces what was learned (QP_ATTR_NEW_MAC).
 */
void
pipeline_path_learn(struct worker *w, struct qp *qp, const struct wire_pkt *p)
{
	static const uint8_t none[6];
	const uint8_t *mac = p->frame + sizeof(none);

	if ((mac[0] & 1) != 0 || memcmp(mac, none, sizeof(none)) == 0 || !is_in_window(qp, p))
		return;
	memcpy(qp->attr.path.dmac, mac, sizeof(none));
	qp->attr.path_resolved = true;
	qp_path_changed(qp);
	pipeline_sends_found(w, qp);
}

static void
trace_path(struct worker *w, const struct qp *qp, const struct wire_pkt *p, uint16_t rule)
{
	if (!traced(w, qp))
		return;
	trace_put(w->trace, &(struct trace_entry){ .time_ns = w->now,
				    .qpn = qp->qpn,
				    .psn = p != NULL ? p->psn.v : qp->req.una.v,
				    .rule = rule,
				    .kind = TRACE_path,
				    .opcode = p != NULL ? p->opcode : TRACE_NO_PACKET,
				    .fault = VERDICT_NO_FAULT,
				    .state = qp_state_of(qp),
				    .detail = qp->attr.path_mig_state });
}

static void
tell(struct worker *w, struct qp *qp, const struct wire_pkt *p, uint16_t rule, uint8_t event)
{
	bool asked = event == EVENT_PATH_MIG_ERR || rule == RULE_PATH_FOLLOWED;

	pipeline_report_event_only(w, qp,
		&(const struct report){ .psn = p != NULL ? p->psn.v : qp->req.una.v,
			.rule = rule,
			.event = event,
			.opcode = p != NULL ? p->opcode : 0,
			.fault = VERDICT_NO_FAULT,
			.source = asked ? SOURCE_RQ : SOURCE_SQ });
}

static void
count_both(struct worker *w, struct qp *qp, enum stats_counter s)
{
	stats_inc(&w->stats, s);
	qp_count(w, qp, s, 1);
}

/**
 * Requests that still wait for a port were made for the path that is left: the peer takes nothing
 * that comes on it any more. They are sent again on the other one, and that is no retry.
 */
static void
send_stranded(struct worker *w, struct qp *qp)
{
	struct requester_verdict v;

	if (!wire_is_acked(qp->req.transport) || pipeline_tx_waits_since(w, qp) == 0)
		return;
	pipeline_tx_forget(w, qp);
	requester_stranded(&qp->req, &v);
	pipeline_act_requester(w, qp, NULL, &v);
}

void
pipeline_migration_done(struct worker *w, struct qp *qp, const struct wire_pkt *p, uint16_t rule)
{
	local_note(w, qp->out);
	qp->migration_rule = rule;
	qp->migration_ns = w->now;
	timer_update(w, qp); /* alt_timeout */
	count_both(w, qp, STAT_path_migrations);
	trace_path(w, qp, p, rule);
	tell(w, qp, p, rule, EVENT_PATH_MIG);
	send_stranded(w, qp);
}

void
pipeline_migration_exhausted(
	struct worker *w, struct qp *qp, const struct wire_pkt *p, uint16_t rule)
{
	qp_migrate(qp);
	pipeline_migration_done(w, qp, p, rule);
}

void
pipeline_migration_receive(struct worker *w, struct qp *qp, const struct wire_pkt *p)
{
	uint8_t now = qp->attr.path_mig_state, next;

	next = qp_migration_step((enum mig_state)now, (p->flags & PKT_MIGREQ) != 0).next;
	if (LIKELY(next == now) || op_has(p->op, OPF_CNP)) /* CC-01: MigReq means nothing there */
		return;
	if (next != MIG_MIGRATED) {
		qp_migration_set(qp, (enum mig_state)next);
		trace_path(w, qp, p, RULE_NONE);
		return;
	}
	qp_migrate(qp);
	pipeline_migration_done(w, qp, p, RULE_PATH_FOLLOWED);
}

void
pipeline_migration_refuse(struct worker *w, struct qp *qp, const struct wire_pkt *p)
{
	count_both(w, qp, STAT_path_migration_errors);
	trace_path(w, qp, p, RULE_PATH_REFUSED);
	if ((qp->flags & QPF_MIG_REFUSED) != 0)
		return; /* one event: more of these packets must not fill the event queue */
	qp->flags |= QPF_MIG_REFUSED;
	tell(w, qp, p, RULE_PATH_REFUSED, EVENT_PATH_MIG_ERR);
}
