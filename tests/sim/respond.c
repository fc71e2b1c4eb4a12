/* SPDX-License-Identifier: BSD-3-Clause */
/* The responder's surroundings: look up what it asks for, do what it says. */
#include <string.h>

#include "sim.h"

static void
wqe_facts(const struct end *e, struct responder_facts *f)
{
	const struct receive *r = e->active ? &e->active_wqe : &e->rq[e->rq_head % RQ_SLOTS];

	f->has_wqe = e->active || e->rq_head != e->rq_tail;
	if (!f->has_wqe)
		return;
	f->wqe_fault = r->fault;
	if (r->fault == WQE_FAULT_MALFORMED)
		return;
	f->wqe_bytes = mem_sge_bytes(r->sge, r->num_sge);
	if (mem_check_sges(e->table, r->sge, r->num_sge, 1, ACCESS_LOCAL_WRITE) != MEM_OK)
		f->wqe_fault = WQE_FAULT_PROT;
}

/** The first byte of what a key names; 0 where it names nothing. */
static uint64_t
region_start(const struct end *e, uint32_t key)
{
	const struct mem_region *r = mem_table_find(e->table, key);

	return r != NULL ? r->va : 0;
}

static uint8_t *
gather_facts(struct sim *s, struct end *e, const struct wire_pkt *p, struct responder_query *q,
	struct responder_facts *f)
{
	uint8_t *host = NULL;

	responder_query(&e->resp, p, q);
	*f = (struct responder_facts){ .free_wqes = e->rq_tail - e->rq_head };
	if (q->whole)
		q->va = region_start(e, q->rkey);
	if (q->key)
		f->key_ok = mem_check(e->table, q->rkey, user_of(e), q->va, q->len, q->access,
				    &host) == MEM_OK;
	if (q->wqe)
		wqe_facts(e, f);
	if (q->invalidate)
		f->invalidate_ok = mem_check_invalidate(e->table, q->inv_key, user_of(e)) == MEM_OK;
	f->may_keep = !chance(&s->g, s->shortage);
	f->short_of_resources = chance(&s->g, s->shortage);
	if (UNLIKELY(s->faults != 0) && rarely(&s->g, s->faults * 64))
		f->exec_fault = true;
	return host;
}

static uint64_t
execute(const struct wire_pkt *p, uint8_t *host)
{
	struct wire_atomiceth a = wire_atomiceth(p);
	uint64_t original, result;

	memcpy(&original, host, sizeof(original));
	result = wire_operation(p->opcode) == OP_RC_FETCH_ADD ? original + a.swap_add
		 : original == a.compare                      ? a.swap_add
							      : original;
	memcpy(host, &result, sizeof(result));
	return original;
}

static void
fail(struct sim *s, struct end *e, const struct responder_verdict *v)
{
	if ((v->act & ACT_COMPLETE) != 0) {
		CHECK(s, v->wc_status != 0, "a failed receive is reported as a success");
		e->active = false;
	} else {
		CHECK(s, (v->act & ACT_EVENT) != 0, "responder fails without a report");
	}
	end_error(s, e, true);
	if ((v->act & ACT_NAK) != 0)
		owe_nak(s, e, v);
	else if ((v->act & ACT_ACK) != 0)
		owe_ack(s, e, v);
}

bool
respond_read_lost(struct sim *s, struct end *e)
{
	struct end *peer = peer_of(s, e);
	psn_t at = resp_answer_at(&e->answers, 0)->psn;
	struct responder_verdict v;
	uint32_t i;

	if (!resp_answers_lost(&e->answers, &e->resp, true, &v))
		return false;
	for (i = peer->done; i != peer->started; i++) {
		const struct requester_wr *w = &peer->wr[i % SQ_SLOTS];

		if (wr_is_read(w) && psn_between(at, w->first, w->last))
			break;
	}
	CHECK(s, i != peer->started, "READ answer at PSN %06x belongs to no READ", at.v);
	CHECK(s, is_gone(e, &peer->work[i % SQ_SLOTS]), "READ lost a region that is there");
	/* A later request may have been refused already: its NAK waits behind this READ's. */
	e->refused = true;
	e->refused_status = STATUS_REM_ACCESS;
	e->refused_position = i;
	if (e->state == END_RTS)
		fail(s, e, &v);
	else
		owe_nak(s, e, &v);
	return true;
}

static void
act_place(struct sim *s, struct end *e, const struct wire_pkt *p, const struct responder_verdict *v)
{
	uint8_t *host;

	if ((v->act & ACT_TAKE_WQE) != 0) {
		CHECK(s, !e->active && e->rq_head != e->rq_tail,
			"takes a receive WQE that is not there");
		e->active = true;
		e->active_wqe = e->rq[e->rq_head++ % RQ_SLOTS];
	}
	if ((v->act & ACT_PLACE_WRITE) != 0) {
		oracle_placed_write(s, e, p, v);
		CHECK(s,
			mem_check(e->table, v->rkey, user_of(e), v->va, p->payload_len,
				ACCESS_REMOTE_WRITE, &host) == MEM_OK,
			"WRITE outside its region");
		memcpy(host, wire_payload(p), p->payload_len);
	}
	if ((v->act & ACT_PLACE_SEND) != 0) {
		CHECK(s, e->active, "SEND without a receive WQE");
		CHECK(s, v->offset == e->partial, "SEND packet at offset %u, %u expected",
			v->offset, e->partial);
		CHECK(s,
			mem_scatter(e->table, e->active_wqe.sge, e->active_wqe.num_sge, 1,
				v->offset, wire_payload(p), p->payload_len) == MEM_OK,
			"SEND does not fit its receive WQE");
		e->partial += p->payload_len;
	}
}

/** Of a peer that sends again what is missing alone: what it does not keep either is lost. */
static void
keep(struct sim *s, struct end *e, const struct wire_pkt *p, const struct packet *from,
	const struct responder_verdict *v)
{
	struct packet *before;

	if ((v->act & ACT_KEEP) == 0) {
		if (v->counter == RC_OUT_OF_SEQUENCE &&
			(peer_of(s, e)->req.knobs & REQ_KNOB_PATCH) != 0)
			oracle_lost(s, peer_of(s, e), p->psn);
		return;
	}
	s->t.ahead++;
	before = resp_kept_put(&e->kept, e->resp.epsn, p->psn, packet_copy(s, from));
	if (before != NULL)
		packet_free(s, before);
}

void
respond_forget(struct sim *s, struct end *e)
{
	struct packet *p;

	while ((p = resp_kept_drop(&e->kept)) != NULL)
		packet_free(s, p);
}

static void
request(struct sim *s, struct end *e, const struct wire_pkt *p, const struct packet *from)
{
	uint32_t msn = e->resp.msn;
	psn_t epsn = e->resp.epsn;
	struct responder_query q;
	struct responder_facts f;
	struct responder_verdict v;
	uint8_t *host = gather_facts(s, e, p, &q, &f);

	if (e->resp.transport == WIRE_XRC && op_has(p->op, OPF_XRCETH))
		CHECK(s, wire_xrceth(p) == end_srqn(e), "XRC-02: SRQ %u", wire_xrceth(p));
	responder_receive(&e->resp, p, &f, s->now, &v);
	TRACE(s, e, "responder: act %x syndrome %02x %s %s", v.act, v.syndrome,
		responder_rule_id((enum responder_rule)v.rule),
		responder_rule_text((enum responder_rule)v.rule));
	CHECK(s, v.rule != RULE_NONE, "verdict without a rule");
	keep(s, e, p, from, &v);
	if ((v.act & ACT_DUPLICATE) != 0)
		CHECK(s,
			(v.act & ~(uint32_t)(ACT_DUPLICATE | ACT_ACK | ACT_READ | ACT_REPLAY |
					     ACT_DROP)) == 0,
			"RESP-DUP-09: a duplicate does more than it may: act %x", v.act);
	CHECK(s, (v.act & ACT_READ) == 0 || v.len == 0 || f.key_ok,
		"RESP-DUP-08: READ is answered without a valid key");
	if ((v.act & ACT_ERR) != 0) {
		e->exec_fault = f.exec_fault;
		oracle_refused(s, e, &v);
	}
	oracle_judged(s, e, epsn, p, &v);
	if ((v.act & ACT_DROP) != 0 && op_has(p->op, OPF_READ | OPF_ATOMIC | OPF_PLACEMENT) &&
		!f.short_of_resources && !f.exec_fault)
		oracle_duplicate_dropped(s, e, p);
	if ((v.act & ACT_DUPLICATE) != 0 && (v.act & ACT_DROP) != 0)
		oracle_lost(s, peer_of(s, e), p->psn);
	act_place(s, e, p, &v);
	if (e->resp.msn != msn) {
		CHECK(s, e->resp.msn == ((msn + 1) & PSN_MASK), "MSN jumps from %u to %u", msn,
			e->resp.msn);
		oracle_executed(s, e, p);
	}
	oracle_acknowledged(s, e, p, &v);
	if ((v.act & ACT_INVALIDATE) != 0) {
		mem_invalidate(e->table, v.rkey);
		window_invalidated(s, e, v.rkey);
	}
	if ((v.act & ACT_STORE) != 0)
		memcpy(host, wire_payload(p), sizeof(uint64_t));
	if ((v.act & ACT_READ) != 0)
		owe_read(s, e, &v);
	if ((v.act & ACT_ATOMIC) != 0) {
		v.saved->original = execute(p, host);
		owe_atomic(s, e, &v, v.saved->original);
	}
	if ((v.act & ACT_REPLAY) != 0)
		owe_atomic(s, e, &v, v.saved->original);
	if ((v.act & ACT_ERR) != 0) {
		fail(s, e, &v);
		return;
	}
	if ((v.act & ACT_COMPLETE) != 0) {
		if (e->cq_full) { /* class G: not completed, so not acknowledged */
			responder_cq_overflow(&e->resp, &v);
			fail(s, e, &v);
			return;
		}
		oracle_received(s, e, p, &v);
	}
	if ((v.act & ACT_NAK) != 0)
		owe_nak(s, e, &v);
	if ((v.act & ACT_ACK) != 0)
		owe_ack(s, e, &v);
}

/** RESP-SEQ-14, -15: what was kept is next, or is told to be missing. */
static void
respond_kept(struct sim *s, struct end *e)
{
	enum resp_kept_is is;
	struct responder_verdict v;
	struct wire_pkt w;
	void *what;

	while ((is = resp_kept_take(&e->kept, e->resp.epsn, &what)) != KEPT_IS_NONE) {
		struct packet *p = what;

		if (is == KEPT_IS_DUE && e->state == END_RTS) {
			CHECK(s, link_parse(s, p, &w) && psn_eq(w.psn, e->resp.epsn),
				"RESP-SEQ-14: PSN %06x is served, ePSN is %06x", w.psn.v,
				e->resp.epsn.v);
			e->asked = p->cause;
			request(s, e, &w, p);
		}
		packet_free(s, p);
	}
	if (e->state != END_RTS) {
		respond_forget(s, e);
		return;
	}
	if (e->kept.n == 0 || !responder_still_missing(&e->resp, &v))
		return;
	CHECK(s, !e->nakked, "RESP-SEQ-02: another sequence NAK for ePSN %06x", e->resp.epsn.v);
	e->nakked = true;
	TRACE(s, e, "responder: %s", responder_rule_id((enum responder_rule)v.rule));
	owe_nak(s, e, &v);
}

void
respond(struct sim *s, struct end *e, const struct wire_pkt *p, const struct packet *from)
{
	request(s, e, p, from);
	e->asked = from->cause;
	respond_kept(s, e);
}
