/* SPDX-License-Identifier: BSD-3-Clause */
/* The requester's surroundings: packets out, responses in, timers, completions. */
#include <errno.h>
#include <string.h>

#include "sim.h"

static void
act(struct sim *s, struct end *e, const struct wire_pkt *p, struct requester_verdict *v)
{
	struct work *k = &e->work[v->position % SQ_SLOTS];
	uint32_t kinds = REQACT_PLACE | REQACT_ATOMIC;
	enum mem_fault fault = MEM_OK;
	psn_t una = e->seen_una;

	oracle_progress(s, e);
	oracle_retry(s, e, v);
	share_heard(s, e, v);
	if (e->paths && !psn_eq(una, e->seen_una))
		e->req.armed = e->armed = true;
	if ((v->act & REQACT_PLACE) != 0) {
		CHECK(s,
			(v->position - e->done <= v->completed ||
				(e->req.knobs & REQ_KNOB_READ_KEEP) != 0) &&
				v->position - e->done < e->started - e->done,
			"READ data for work request %u, %u is due", v->position, e->done);
		oracle_placed(s, e, k, v->offset);
		k->placed += p->payload_len;
		fault = mem_scatter(e->table, k->sge, k->num_sge, 1, v->offset, wire_payload(p),
			p->payload_len);
	}
	if ((v->act & REQACT_ATOMIC) != 0) {
		CHECK(s, !k->got, "REQ-16: a second result for one ATOMIC");
		k->got = true;
		k->original = v->original;
		fault = mem_scatter(e->table, k->sge, k->num_sge, 1, 0, &v->original, 8);
	}
	if (fault != MEM_OK) {
		CHECK(s, (v->act & kinds) != 0 && k->doomed && e->doomed_gone,
			"result cannot be placed");
		requester_local_fault(&e->req, v->position, WR_FAULT_PROT, v);
	}
	if ((v->act & REQACT_COMPLETE) != 0) {
		CHECK(s, v->head_was == e->done, "completions from %u on, %u is next", v->head_was,
			e->done);
		for (uint32_t i = 0; i < v->completed; i++)
			oracle_completed(s, e, v->head_was + i);
	}
	if ((v->act & REQACT_DRAINED) != 0) {
		CHECK(s, e->draining && !e->drained, "QP-09: drained twice, or not draining");
		CHECK(s, e->done == e->started, "QP-09: drained with work under way");
		e->drained = true;
		s->t.drained++;
	}
	CHECK(s, (v->act & REQACT_EVENT) == 0, "event %u", v->event);
	if ((v->act & REQACT_ERROR) != 0)
		oracle_error(s, e, v);
}

static void
trace_verdict(struct sim *s, const struct end *e, const struct requester_verdict *v)
{
	sim_trace(s, e,
		"requester: act %x completed %u status %u %s %s; una %06x cur %06x next %06x",
		v->act, v->completed, v->wc_status, requester_rule_id((enum requester_rule)v->rule),
		requester_rule_text((enum requester_rule)v->rule), e->req.una.v, e->req.cur.v,
		e->req.next.v);
}

void
send_timer_update(struct sim *s, struct end *e)
{
	if (e->req.timing || e->req.waiting_rnr)
		wheel_arm(&s->wheel, &e->timer, tick_after(e->req.deadline));
}

/* ---- out ---------------------------------------------------------------------------------- */

static int
put(struct sim *s, struct end *e, const struct requester_packet *p)
{
	const struct requester_wr *w = &e->wr[p->position % SQ_SLOTS];
	const struct work *k = &e->work[p->position % SQ_SLOTS];
	bool swap = w->opcode == WR_ATOMIC_CMP_AND_SWP;
	struct wire_fields f = { .opcode = p->opcode,
		.flags = p->flags,
		.pkey = 0xffff,
		.dest_qpn = peer_of(s, e)->qpn,
		.psn = p->psn,
		.feth = (uint32_t)w->swap,
		.reth = { p->va, p->rkey, p->dma_len },
		.atomiceth = { p->va, p->rkey, swap ? w->swap : w->compare_add,
			swap ? w->compare_add : 0 },
		.xrc_srqn = end_srqn(peer_of(s, e)),
		.imm = p->imm,
		.ieth = p->imm,
		.payload = s->payload,
		.payload_len = p->len };
	enum mem_fault fault = MEM_OK;

	CHECK(s, p->pad == (-p->len & 3), "pad %u for %u bytes", p->pad, p->len);
	if (wr_is_read(w) || wr_is_atomic(w))
		fault = mem_check_sges(e->table, k->sge, k->num_sge, 1, ACCESS_LOCAL_WRITE);
	else if (p->len != 0)
		fault = mem_gather(e->table, k->sge, k->num_sge, 1, p->offset, s->payload, p->len);
	if (fault != MEM_OK)
		return -EFAULT;
	share_sent(s, e, link_send(s, e, &f));
	return 0;
}

static void
stopped(struct sim *s, struct end *e, enum requester_stop why)
{
	struct requester_verdict v;

	if (why == REQ_FAULT) {
		requester_check_fault(&e->req, &v);
		if (UNLIKELY(s->verbose))
			trace_verdict(s, e, &v);
		act(s, e, NULL, &v);
	}
	if (e->state != END_RTS)
		return;
	CHECK(s,
		!requester_outstanding(&e->req) || e->req.timing || e->req.timeout == 0 ||
			why == REQ_RNR_WAIT,
		"TMR-05: stops (%u) with packets in flight and no timer", why);
}

/** A request without a packet. @return false: it has to wait, or has failed. */
static bool
local_work(struct sim *s, struct end *e)
{
	struct requester_verdict v = { .act = 0 };
	enum requester_fault fault;

	switch (window_work(s, e, &fault)) {
	case MEM_TURN_LATER:
		return false;
	case MEM_TURN_REFUSED:
		TRACE(s, e, "work request %u: refused", e->req.head);
		requester_local_fault(&e->req, e->req.head, fault, &v);
		stopped(s, e, REQ_FAULT);
		return false;
	case MEM_TURN_DONE:
		break;
	}
	TRACE(s, e, "work request %u is done here", e->req.head);
	requester_local_done(&e->req, &v);
	e->started++;
	peer_of(s, e)->executed++;
	peer_of(s, e)->locals++;
	act(s, e, NULL, &v);
	return true;
}

void
send_some(struct sim *s, struct end *e, uint32_t turn)
{
	struct requester_packet p;
	bool later = false, shut;

	e->busy = false;
	if (e->state != END_RTS)
		return;
	for (; turn != 0; turn--) {
		enum requester_stop why;

		if (e->req.sending != e->req.tail && !share_may(s, e))
			break;
		e->patching = e->req.patching;
		shut = requester_is_shut(&e->req);
		why = requester_next(&e->req, s->now, &p);
		CHECK(s, !shut || (why != REQ_SEND && why != REQ_LOCAL),
			"shut, and something is to be sent");
		if (why == REQ_LOCAL && local_work(s, e))
			continue;
		later = why == REQ_LOCAL && e->state == END_RTS;
		if (why == REQ_LOCAL)
			break;
		if (why == REQ_NO_CREDIT)
			oracle_held(s, e);
		if (why != REQ_SEND) {
			stopped(s, e, why);
			break;
		}
		oracle_sent(s, e, &p);
		if (put(s, e, &p) != 0) {
			/* Nothing of it follows: what stands before it is the newest. */
			e->next_out = e->work[p.position % SQ_SLOTS].first;
			e->out_asked = false;
			struct requester_verdict v = { .act = 0 };

			TRACE(s, e, "work request %u: local fault", p.position);
			requester_local_fault(&e->req, p.position, WR_FAULT_PROT, &v);
			act(s, e, NULL, &v);
			if (e->state != END_RTS)
				return;
		}
	}
	/* A request for what is missing that waits for its turn starts the timer, as any resend. */
	CHECK(s,
		e->req.doubting || e->req.patching ||
			e->req.timing == (e->asked_at != 0 && e->req.timeout != 0),
		"TMR-05: timer %d, response owed %d", e->req.timing, e->asked_at != 0);
	e->busy = (turn == 0 || later) && e->state == END_RTS;
	send_timer_update(s, e);
}

/* ---- in ----------------------------------------------------------------------------------- */

void
send_response(struct sim *s, struct end *e, const struct wire_pkt *p)
{
	struct expected x = oracle_expect(e, p);
	struct requester_verdict v;

	oracle_offered(e, p);
	requester_response(&e->req, p, s->now, &v);
	if (UNLIKELY(s->verbose))
		trace_verdict(s, e, &v);
	if (e->state != END_RTS) {
		CHECK(s, v.act == REQACT_DROP, "REQ-CLS-B-08: a response has an effect in ERR");
		return;
	}
	act(s, e, p, &v);
	oracle_response(s, e, &x, &v);
	if ((v.act & REQACT_PLACE) == 0 && (e->req.knobs & REQ_KNOB_READ_KEEP) != 0 &&
		op_has(p->op, OPF_READ) && e->state == END_RTS && !oracle_has(e, p->psn))
		oracle_lost(s, e, p->psn); /* behind a second gap */
	if (x.implied && v.cause == QC_NONE)
		oracle_told(s, e);
	if (e->state == END_RTS)
		send_timer_update(s, e);
}

void
send_timer(struct sim *s, struct end *e)
{
	struct requester *r = &e->req;
	struct requester_verdict v;

	if (e->state != END_RTS || (!r->timing && !r->waiting_rnr))
		return;
	if (s->now < r->deadline) {
		send_timer_update(s, e);
		return;
	}
	requester_timer(r, s->now, &v);
	s->t.probes += v.rule == REQRULE_PROBE;
	if (UNLIKELY(s->verbose))
		trace_verdict(s, e, &v);
	act(s, e, NULL, &v);
	if (e->state == END_RTS)
		send_timer_update(s, e);
}

void
send_drain(struct sim *s, struct end *e, bool on)
{
	bool drained = requester_drain(&e->req, on);

	TRACE(s, e, on ? "SQD%s" : "RTS again%s", drained ? ", drained" : "");
	CHECK(s, !drained || e->done == e->started, "QP-09: drained with work under way");
	e->draining = on;
	e->drained = drained;
}
