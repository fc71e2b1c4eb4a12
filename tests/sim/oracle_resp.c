/* SPDX-License-Identifier: BSD-3-Clause */
/* The reference of a responder: what it takes, refuses and answers, message by message. */
#include <string.h>

#include "sim.h"

/** RESP-SEQ-01, -02, RESP-RNR-05: one sequence NAK for an ePSN, none after an RNR NAK (AMB-06). */
void
oracle_judged(struct sim *s, struct end *e, psn_t before, const struct wire_pkt *p,
	const struct responder_verdict *v)
{
	uint32_t ahead = psn_distance(p->psn, before);
	bool nak = (v->act & ACT_NAK) != 0;

	if (!psn_eq(e->resp.epsn, before))
		e->nakked = false;
	if ((v->act & ACT_ERR) != 0)
		return;
	CHECK(s, ahead == 0 || ahead >= PSN_HALF || nak || e->nakked,
		"RESP-SEQ-04: PSN %06x draws no NAK, ePSN is %06x", p->psn.v, before.v);
	if (!nak)
		return;
	CHECK(s, v->syndrome != 0x60 || !e->nakked,
		"RESP-SEQ-02: another sequence NAK for ePSN %06x", before.v);
	CHECK(s, v->syndrome == 0x60 || v->syndrome == (0x20 | e->resp.min_rnr_timer),
		"RESP-RNR-03: syndrome %02x", v->syndrome);
	CHECK(s, psn_eq(v->reply_psn, before), "RESP-SEQ-01: NAK at PSN %06x, ePSN is %06x",
		v->reply_psn.v, before.v);
	e->nakked = true;
}

void
oracle_acknowledged(struct sim *s, const struct end *e, const struct wire_pkt *p,
	const struct responder_verdict *v)
{
	bool duplicate = (v->act & ACT_DUPLICATE) != 0, ack = (v->act & ACT_ACK) != 0;
	bool asked = (p->flags & PKT_ACKREQ) != 0 && op_has(p->op, OPF_SEND | OPF_WRITE);

	if ((v->act & (ACT_ERR | ACT_NAK | ACT_DROP | ACT_KEEP)) != 0 && !duplicate)
		return;
	CHECK(s, ack || !asked, "RESP-09: PSN %06x asks for an ACK and gets none", p->psn.v);
	if ((v->act & (ACT_ACK | ACT_READ | ACT_ATOMIC | ACT_REPLAY)) != 0)
		CHECK(s, v->reply_msn == msn_of(e), "RESP-12: MSN %u after %u messages",
			v->reply_msn, msn_of(e));
	if (ack)
		CHECK(s, psn_eq(v->reply_psn, duplicate ? psn_sub(e->resp.epsn, 1) : p->psn),
			"RESP-DUP-01: ACK of PSN %06x for %06x, ePSN is %06x", v->reply_psn.v,
			p->psn.v, e->resp.epsn.v);
}

/** The peer still waits for its answer, so it is one of the newest max_dest_rd_atomic. */
void
oracle_duplicate_dropped(struct sim *s, const struct end *e, const struct wire_pkt *p)
{
	const struct end *peer = &s->end[e->index ^ 1];

	for (uint32_t i = peer->done; i != e->executed && i != peer->started; i++) {
		const struct requester_wr *w = wr_at(peer, i);
		const struct work *k = &peer->work[i % SQ_SLOTS];
		bool here = wr_is_answered(w) &&
			    psn_between(p->psn, k->first, psn_add(k->first, wr_psns(peer, w) - 1));

		CHECK(s, !here || is_gone(e, k), "RESP-DUP-11: duplicate of message %u is dropped",
			i);
	}
}

void
oracle_placed_write(
	struct sim *s, struct end *e, const struct wire_pkt *p, const struct responder_verdict *v)
{
	struct end *peer = peer_of(s, e);
	const struct requester_wr *w = wr_at(peer, e->executed);

	CHECK(s, e->executed < peer->started && wr_is_write(w),
		"WRITE where message %u is another kind", e->executed);
	CHECK(s, v->va == w->remote_addr + e->partial && e->partial + p->payload_len <= w->len,
		"WRITE packet at byte %u of message %u expected", e->partial, e->executed);
	e->partial += p->payload_len;
}

void
oracle_executed(struct sim *s, struct end *e, const struct wire_pkt *p)
{
	struct end *peer = peer_of(s, e);
	const struct requester_wr *w = wr_at(peer, e->executed);
	const struct work *k = &peer->work[e->executed % SQ_SLOTS];

	CHECK(s, e->executed < peer->started, "message %u was never sent", e->executed);
	CHECK(s, wr_is_of_kind(w, p->op, true), "message %u is of another kind", e->executed);
	CHECK(s, k->want == WANT_SUCCESS, "message %u is carried out, status %u is due",
		e->executed, k->want);
	if (wr_is_write(w) || wr_is_send(w))
		CHECK(s, e->partial == w->len, "message %u ends with %u of %u bytes", e->executed,
			e->partial, w->len);
	else
		CHECK(s, psn_eq(p->psn, w->first), "message %u at another PSN", e->executed);
	e->executed++;
	e->partial = 0;
}

void
oracle_received(
	struct sim *s, struct end *e, const struct wire_pkt *p, const struct responder_verdict *v)
{
	struct end *peer = peer_of(s, e);
	uint32_t position = e->executed - 1;
	const struct requester_wr *w = wr_at(peer, position);
	const struct work *k = &peer->work[position % SQ_SLOTS];
	const uint8_t *inbox = e->inbox + (size_t)((e->rq_head - 1) % RQ_SLOTS) * MESSAGE_TOP;
	bool imm = w->opcode == WR_SEND_WITH_IMM || w->opcode == WR_RDMA_WRITE_WITH_IMM;
	bool inv = w->opcode == WR_SEND_WITH_INV;

	CHECK(s, e->active, "receive completion without a WQE");
	CHECK(s, op_has(p->op, OPF_LAST | OPF_ONLY) && (wr_is_send(w) || imm),
		"receive completion of message %u, which has none", position);
	CHECK(s, v->wc_status == 0 && v->byte_len == w->len,
		"message %u: status %u, byte_len %u, not %u", position, v->wc_status, v->byte_len,
		w->len);
	CHECK(s, v->wc_opcode == (wr_is_send(w) ? 128 : 129), "message %u: completion opcode %u",
		position, v->wc_opcode);
	CHECK(s,
		v->wc_flags == (imm          ? 2
				       : inv ? 8
					     : 0),
		"message %u: completion flags %u", position, v->wc_flags);
	CHECK(s, (!imm && !inv) || v->imm == w->imm, "RESP-03: message %u: immediate", position);
	CHECK(s, (v->solicited != 0) == ((w->flags & SEND_SOLICITED) != 0), "message %u: solicited",
		position);
	if (wr_is_send(w))
		CHECK(s, memcmp(inbox, s->pool + k->source, w->len) == 0,
			"RESP-02: message %u arrived with other bytes", position);
	e->active = false;
	e->received++;
}

void
oracle_refused(struct sim *s, struct end *e, const struct responder_verdict *v)
{
	struct end *peer = peer_of(s, e);
	const struct requester_wr *w = wr_at(peer, e->executed);
	const struct work *k = &peer->work[e->executed % SQ_SLOTS];
	const struct receive *r = e->active ? &e->active_wqe : &e->rq[e->rq_head % RQ_SLOTS];
	bool send = wr_is_send(w), wqe = send || w->opcode == WR_RDMA_WRITE_WITH_IMM;
	uint8_t status = WANT_SILENCE;
	bool good;

	CHECK(s, e->executed < peer->started, "refuses message %u, which was never sent",
		e->executed);
	if ((v->act & ACT_NAK) != 0)
		status = v->syndrome == 0x61   ? STATUS_REM_INV_REQ
			 : v->syndrome == 0x62 ? STATUS_REM_ACCESS
			 : v->syndrome == 0x63 ? STATUS_REM_OP
					       : 0;
	good = k->want == status;
	good |= status == STATUS_REM_ACCESS && !send && is_gone(e, k);
	good |= status == STATUS_REM_INV_REQ && send && r->bytes < w->len;
	good |= status == STATUS_REM_OP && ((wqe && r->fault != 0) || e->exec_fault);
	CHECK(s, good, "message %u is refused with syndrome %02x (%s)", e->executed, v->syndrome,
		responder_rule_id((enum responder_rule)v->rule));
	e->refused = true;
	e->refused_status = status;
	e->refused_position = e->executed;
}
