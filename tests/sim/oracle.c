/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The reference. Each work request completes once, in posting order, as it was bound to; memory is
 * what the requests leave behind when they are applied one after another; timers keep their rules.
 *
 * The shadow of a target is brought forward when the peer sees a work request complete, so a READ
 * is compared with exactly what lay before it. The application fences what could overtake a READ.
 */
#include <string.h>

#include "sim.h"

/* ---- sending ------------------------------------------------------------------------------- */

/** FLOW-04: is the next work request beyond what the peer has receive WQEs for? */
static bool
is_beyond(struct sim *s, const struct end *e)
{
	const uint32_t msn = (e->started + 1 - peer_of(s, e)->locals) & PSN_MASK;

	return (e->req.knobs & REQ_KNOB_CREDITS) != 0 && e->limited &&
	       psn_cmp(psn(msn), psn(e->offered)) > 0;
}

void
oracle_held(struct sim *s, const struct end *e)
{
	CHECK(s, is_beyond(s, e) && e->started != e->done,
		"FLOW-04: work request %u is held, the newest MSN allowed is %u", e->started,
		e->offered);
}

/** FLOW-04, FLOW-05: of what was asked, or of the ACK just below it. */
void
oracle_offered(struct end *e, const struct wire_pkt *p)
{
	const uint32_t from = psn_distance(p->psn, psn_sub(e->req.una, 1));
	struct wire_aeth aeth;
	uint32_t credits;

	if (e->req.dead || !op_has(p->op, OPF_AETH) || (from == 0 && !op_has(p->op, OPF_ACK)) ||
		from > psn_distance(e->next_new, e->req.una))
		return;
	aeth = wire_aeth(p);
	if ((aeth.syndrome & AETH_KIND_MASK) != AETH_ACK)
		return;
	credits = requester_credits(aeth.syndrome);
	e->limited = credits != UINT32_MAX;
	e->offered = (aeth.msn + credits) & PSN_MASK;
}

static void
first_packet(struct sim *s, struct end *e, const struct requester_packet *p)
{
	const struct requester_wr *w = wr_at(e, p->position);
	bool reads = wr_is_answered(w);

	CHECK(s, p->position == e->started, "work request %u starts, %u is next", p->position,
		e->started);
	CHECK(s, !e->draining, "QP-09: work request %u starts while draining", p->position);
	CHECK(s,
		!is_beyond(s, e) || e->started == e->done ||
			(!wr_is_send(w) && w->opcode != WR_RDMA_WRITE_WITH_IMM),
		"FLOW-04: work request %u leaves, the newest MSN allowed is %u", p->position,
		e->offered);
	CHECK(s, (w->flags & SEND_FENCE) == 0 || e->reads_out == 0,
		"REQ-11: fenced work request %u overtakes %u READs", p->position, e->reads_out);
	CHECK(s, !reads || e->reads_out < e->req.max_rd_atomic, "REQ-10: %u READs outstanding",
		e->reads_out);
	e->reads_out += reads;
	e->started++;
}

static bool
has(const struct work *k, uint32_t packet)
{
	return (k->have[packet / 64] >> packet % 64 & 1) != 0;
}

bool
oracle_has(const struct end *e, psn_t p)
{
	for (uint32_t i = e->done; i != e->started; i++) {
		const struct work *k = &e->work[i % SQ_SLOTS];
		const uint32_t at = psn_distance(p, k->first);

		if (at < wr_psns(e, wr_at(e, i)))
			return wr_is_read(wr_at(e, i)) && has(k, at);
	}
	return false;
}

/** All that is left; or what is missing before a packet that has arrived. */
static bool
asks_right(
	const struct end *e, const struct work *k, uint32_t left, const struct requester_packet *p)
{
	const uint32_t from = psn_distance(p->psn, k->first), n = p->dma_len / e->req.pmtu;

	if (p->dma_len == left)
		return true;
	if (p->opcode != wire_opcode_on(e->req.transport, OP_RC_READ_REQUEST) || n == 0 ||
		p->dma_len > left || p->dma_len % e->req.pmtu != 0 || !has(k, from + n))
		return false;
	for (uint32_t i = 0; i < n; i++)
		if (has(k, from + i))
			return false;
	return true;
}

void
oracle_placed(struct sim *s, struct end *e, struct work *k, uint32_t offset)
{
	const uint32_t packet = offset / e->req.pmtu;
	const bool fills = (e->req.knobs & REQ_KNOB_READ_FILL) != 0;

	CHECK(s, fills || offset == k->placed, "READ data at %u, %u expected", offset, k->placed);
	CHECK(s, !has(k, packet), "REQ-16: READ data at %u for the second time", offset);
	k->have[packet / 64] |= UINT64_C(1) << packet % 64;
	if (psn_cmp(psn_add(k->first, packet), e->req.una) <= 0)
		return;
	s->t.kept++;
	e->probes = 0;
	if (e->asked_at != 0) /* TMR-06 */
		e->asked_at = s->now;
}

/** First copy or resent: it must be this part of the work request (REQ-01, -02, -07, -14). */
static void
check_segment(struct sim *s, const struct end *e, const struct requester_packet *p)
{
	const struct requester_wr *w = wr_at(e, p->position);
	const struct work *k = &e->work[p->position % SQ_SLOTS];
	uint32_t offset = psn_distance(p->psn, k->first) * e->req.pmtu, len = 0;
	opflags_t op = wire_opcodes[p->opcode].flags;
	bool data = wr_is_send(w) || wr_is_write(w), last = true;
	bool se = wr_is_send(w) || w->opcode == WR_RDMA_WRITE_WITH_IMM;

	if (data) {
		last = w->len - offset <= e->req.pmtu;
		len = last ? w->len - offset : e->req.pmtu;
		CHECK(s,
			op_has(op, OPF_FIRST | OPF_ONLY) == (offset == 0) &&
				op_has(op, OPF_LAST | OPF_ONLY) == last,
			"REQ-02: opcode %02x at byte %u of %u", p->opcode, offset, w->len);
	}
	if (wr_is_store(w))
		len = sizeof(uint64_t);
	CHECK(s, offset < w->len || (offset == 0 && w->len == 0),
		"REQ-14: PSN %06x is not of work request %u", p->psn.v, p->position);
	CHECK(s, wr_is_of_kind(w, op, last), "REQ-02: opcode %02x for work request %u", p->opcode,
		p->position);
	CHECK(s, p->offset == offset && p->len == len,
		"REQ-01: PSN %06x has %u bytes from %u on, not %u from %u", p->psn.v, p->len,
		p->offset, len, offset);
	if (op_has(op, OPF_RETH))
		CHECK(s, p->va == w->remote_addr + offset && asks_right(e, k, w->len - offset, p),
			"REQ-IMPL-04: RETH of PSN %06x", p->psn.v);
	CHECK(s, ((p->flags & PKT_SE) != 0) == (last && se && (w->flags & SEND_SOLICITED) != 0),
		"WIRE-18: SE of PSN %06x", p->psn.v);
	CHECK(s, !data || !last || (w->flags & SEND_SIGNALED) == 0 || (p->flags & PKT_ACKREQ) != 0,
		"REQ-07: the last packet of work request %u does not ask for an ACK", p->position);
}

/**
 * PSNs from that of the packet on that it takes up: of a READ up to its end, or with
 * req.read_gap=keep those that it asks for.
 */
static uint32_t
answers_of(const struct end *e, const struct requester_packet *p)
{
	const struct requester_wr *w = wr_at(e, p->position);

	if (!wr_is_read(w))
		return 1;
	if ((e->req.knobs & REQ_KNOB_READ_KEEP) != 0 && p->dma_len != 0)
		return (p->dma_len - 1) / e->req.pmtu + 1;
	return wr_psns(e, w) - psn_distance(p->psn, e->work[p->position % SQ_SLOTS].first);
}

/**
 * REQ-12, REQ-NAK-01: one PSN after another, from una on after each resend. Only the newest may
 * leave twice: where it asked for no response and nothing else is to follow (REQ-07).
 */
static void
in_turn(struct sim *s, struct end *e, const struct requester_packet *p)
{
	const struct requester_wr *w = wr_at(e, p->position);
	bool asks = (p->flags & PKT_ACKREQ) != 0;

	if (e->patching && psn_eq(p->psn, e->req.una)) {
		e->patching = false;
		return;
	}
	if (psn_cmp(e->next_out, e->req.una) < 0)
		e->next_out = e->req.una;
	while ((e->req.knobs & REQ_KNOB_READ_KEEP) != 0 && oracle_has(e, e->next_out))
		e->next_out = psn_add(e->next_out, 1);
	if (asks && !e->out_asked && psn_eq(psn_add(p->psn, 1), e->next_out))
		e->next_out = p->psn;
	CHECK(s, psn_eq(p->psn, e->next_out), "REQ-NAK-01: PSN %06x leaves, %06x is next", p->psn.v,
		e->next_out.v);
	e->next_out = psn_add(p->psn, answers_of(e, p));
	e->out_asked = asks || wr_is_answered(w);
}

/** req.read_gap=keep: a READ counts once, in however many pieces it is asked for again. */
static bool
is_another_piece(const struct end *e, const struct requester_packet *p)
{
	return wr_is_read(wr_at(e, p->position)) && !psn_eq(p->psn, e->req.una) &&
	       !psn_eq(p->psn, e->work[p->position % SQ_SLOTS].first);
}

void
oracle_sent(struct sim *s, struct end *e, const struct requester_packet *p)
{
	const struct requester_wr *w = wr_at(e, p->position);
	bool reads = wr_is_answered(w), patch = e->patching;

	CHECK(s, s->now >= e->rnr_until, "REQ-RNR-01: PSN %06x leaves %llu ns too early", p->psn.v,
		(unsigned long long)(e->rnr_until - s->now));
	if (!p->resend) {
		CHECK(s, psn_eq(p->psn, e->next_new), "REQ-12: PSN %06x leaves, %06x is next",
			p->psn.v, e->next_new.v);
		if (p->position + 1 != e->started) {
			first_packet(s, e, p);
			e->work[p->position % SQ_SLOTS].first = p->psn;
		}
		e->next_new = psn_add(p->psn, wr_is_read(w) ? wr_psns(e, w) : 1);
	} else {
		s->t.resent++;
		CHECK(s, p->position < e->started, "resends what was never sent");
		CHECK(s, psn_distance(p->psn, e->req.una) < PSN_HALF,
			"resends what is acknowledged");
	}
	in_turn(s, e, p);
	if (e->probes != 0 && !is_another_piece(e, p))
		CHECK(s, --e->probes != 0,
			"TMR-07: PSN %06x leaves, nothing was heard since the timeout", p->psn.v);
	check_segment(s, e, p);
	if ((p->flags & PKT_ACKREQ) != 0 || reads) {
		const bool owed = e->asked_at != 0;

		patch &= !e->patching; /* the timer begins anew with it */
		e->asked_at = owed && !patch ? e->asked_at : s->now;
		if (patch && owed)
			return;
		e->asked_last = psn_sub(psn_add(p->psn, answers_of(e, p)), 1);
	}
}

/* ---- responses ---------------------------------------------------------------------------- */

/** Is this the one packet of the READ that is missing? */
static bool
has_all(const struct end *e, uint32_t position, const struct wire_pkt *p)
{
	const struct requester_wr *w = wr_at(e, position);

	return wr_is_read(w) && e->work[position % SQ_SLOTS].placed + p->payload_len == w->len;
}

/** req.read_gap=keep: has all of the READ come before its turn? */
static bool
is_there(const struct end *e, uint32_t position)
{
	const struct requester_wr *w = wr_at(e, position);
	const struct work *k = &e->work[position % SQ_SLOTS];

	return wr_is_read(w) && k->placed == w->len && (w->len != 0 || has(k, 0));
}

/**
 * REQ-IMPL-01, -02, -07, -08: nothing but its data acknowledges a READ or ATOMIC. After a resend a
 * response beyond may be one to the copy before, or to a duplicate: then the timer may decide.
 */
struct expected
oracle_expect(const struct end *e, const struct wire_pkt *p)
{
	struct expected x = { .due = e->req.una, .recovering = e->recovering };
	uint32_t ahead = psn_distance(p->psn, e->req.una);

	if (ahead >= psn_distance(e->next_new, e->req.una))
		return x;
	for (uint32_t i = e->done; i != e->started; i++) {
		const struct requester_wr *w = wr_at(e, i);
		psn_t first = e->work[i % SQ_SLOTS].first;
		psn_t last = psn_add(first, wr_psns(e, w) - 1);
		psn_t due = i == e->done ? e->req.una : first;

		if (wr_is_answered(w)) {
			x.implied = psn_distance(due, e->req.una) < ahead;
			x.due = due;
			x.completed += !x.implied && (psn_eq(p->psn, last) || has_all(e, i, p));
			while (x.completed == i + 1 - e->done && i + 1 != e->started &&
				is_there(e, i + 1)) {
				i++;
				x.completed++;
			}
			return x;
		}
		if (psn_distance(last, e->req.una) > ahead)
			return x;
		x.completed++;
	}
	return x;
}

/** req.reorder: fewer than so many of the READ have come behind the one that is due. */
static bool
may_be_late(const struct end *e)
{
	const uint32_t most = e->req.knobs >> REQ_KNOB_REORDER_SHIFT & REQ_KNOB_REORDER_MASK;
	const struct work *k = &e->work[e->done % SQ_SLOTS];
	const uint32_t due = psn_distance(e->req.una, k->first);
	uint32_t n = 0;

	for (uint32_t i = due + 1; i < wr_psns(e, wr_at(e, e->done)); i++)
		n += has(k, i);
	return (e->req.knobs & REQ_KNOB_READ_FILL) != 0 && n < most && e->req.timing;
}

void
oracle_response(
	struct sim *s, struct end *e, const struct expected *x, const struct requester_verdict *v)
{
	CHECK(s, v->completed <= x->completed, "%u work requests complete, %u are acknowledged",
		v->completed, x->completed);
	if (!x->implied || e->req.failed)
		return;
	CHECK(s, psn_eq(e->req.una, x->due), "REQ-IMPL-01: una is %06x, response %06x is missing",
		e->req.una.v, x->due.v);
	CHECK(s,
		v->cause == QC_IMPLIED_NAK ||
			(v->cause == QC_NONE && (x->recovering || may_be_late(e))),
		"REQ-IMPL-01: a response is missing, and nothing is resent");
}

/* ---- completions of the requester --------------------------------------------------------- */

static void
apply(const struct sim *s, struct end *target, const struct requester_wr *w, const struct work *k,
	uint32_t bytes)
{
	uint8_t *at = target->shadow + k->target;
	uint64_t value;

	if (wr_is_write(w) || wr_is_store(w)) {
		memcpy(at, s->pool + k->source, bytes);
	} else if (wr_is_atomic(w)) {
		memcpy(&value, at, sizeof(value));
		if (w->opcode == WR_ATOMIC_FETCH_AND_ADD)
			value += w->compare_add;
		else if (value == w->compare_add)
			value = w->swap;
		memcpy(at, &value, sizeof(value));
	}
}

static void
check_results(struct sim *s, struct end *e, uint32_t position)
{
	const struct requester_wr *w = wr_at(e, position);
	const struct work *k = &e->work[position % SQ_SLOTS];
	const uint8_t *sink = e->sink + (size_t)(position % SQ_SLOTS) * MESSAGE_TOP;
	struct end *peer = peer_of(s, e);
	const uint8_t *at = peer->shadow + k->target;

	if (wr_is_read(w)) {
		CHECK(s, k->placed == w->len, "REQ-05: READ %u completes with %u of %u bytes",
			position, k->placed, w->len);
		CHECK(s, memcmp(sink, at, w->len) == 0, "READ %u has other bytes than memory",
			position);
	}
	if (wr_is_atomic(w)) {
		CHECK(s, k->got, "REQ-06: ATOMIC %u completes without a result", position);
		CHECK(s, memcmp(&k->original, at, 8) == 0 && memcmp(sink, at, 8) == 0,
			"RESP-DUP-06: ATOMIC %u has another original than memory", position);
	}
	if (w->opcode == WR_SEND_WITH_INV && k->window != 0)
		CHECK(s, mem_check_invalidate(peer->table, w->imm, user_of(peer)) != MEM_OK,
			"RESP-04: key of work request %u is not revoked", position);
	else if (w->opcode == WR_SEND_WITH_INV) {
		struct mr *m = &peer->inv[k->inv];

		CHECK(s, mem_check_invalidate(peer->table, m->key, 1) != MEM_OK,
			"RESP-04: key of work request %u is not revoked", position);
		if (peer->state == END_RTS) {
			mr_remove(peer, m);
			mr_add(s, peer, m, peer->inv_bytes[k->inv], GUARD);
			m->used = false;
		}
	}
}

void
oracle_completed(struct sim *s, struct end *e, uint32_t position)
{
	const struct requester_wr *w = wr_at(e, position);
	const struct work *k = &e->work[position % SQ_SLOTS];
	struct end *peer = peer_of(s, e);

	CHECK(s, position == e->done && position < e->started,
		"work request %u completes, %u is due", position, e->done);
	CHECK(s, k->want == WANT_SUCCESS, "work request %u succeeds, status %u is due", position,
		k->want);
	CHECK(s, peer->executed - position - 1 < PSN_HALF,
		"work request %u succeeds and was not carried out", position);
	check_results(s, e, position);
	apply(s, peer, w, k, w->len);
	e->reads_out -= wr_is_answered(w);
	e->done++;
	s->t.completed++;
	s->t.stores += wr_is_store(w);
	s->t.flushes += wr_is_flush(w);
}

static bool
is_explained(const struct sim *s, const struct end *e, const struct end *peer,
	const struct requester_verdict *v)
{
	const struct requester_wr *w = wr_at(e, v->failed);
	const struct work *k = &e->work[v->failed % SQ_SLOTS];

	switch (v->wc_status) {
	case STATUS_LOC_PROT:
		return k->want == STATUS_LOC_PROT || (k->doomed && e->doomed_gone);
	case STATUS_LOC_LEN:
	case STATUS_MW_BIND:
	case STATUS_LOC_QP_OP:
		return k->want == v->wc_status;
	case STATUS_REM_INV_REQ:
	case STATUS_REM_ACCESS:
	case STATUS_REM_OP:
		return peer->refused && peer->refused_status == v->wc_status &&
		       peer->refused_position == v->failed;
	case STATUS_RETRY_EXC:
		return v->outcome == QC_RETRY_EXCEEDED;
	case STATUS_RNR_RETRY_EXC:
		return v->outcome == QC_RNR_EXCEEDED &&
		       (s->shortage != 0 || wr_is_send(w) || w->opcode == WR_RDMA_WRITE_WITH_IMM);
	default:
		return false;
	}
}

void
oracle_error(struct sim *s, struct end *e, const struct requester_verdict *v)
{
	CHECK(s, v->failed == e->done, "work request %u fails, %u is next", v->failed, e->done);
	CHECK(s, is_explained(s, e, peer_of(s, e), v), "work request %u: status %u is not due (%s)",
		v->failed, v->wc_status, requester_rule_id((enum requester_rule)v->rule));
	s->t.status[v->wc_status & 31]++;
	end_error(s, e, false);
}

/* ---- the end ------------------------------------------------------------------------------ */

void
oracle_settle(struct sim *s, struct end *e)
{
	struct end *peer = peer_of(s, e);
	uint32_t bytes = MRS * (pair_of(s, e)->mr_bytes + GUARD) + GUARD;

	CHECK(s, e->executed - peer->done <= SQ_SLOTS, "%u messages carried out, %u completed",
		e->executed, peer->done);
	for (uint32_t i = peer->done; i != e->executed; i++)
		apply(s, e, wr_at(peer, i), &peer->work[i % SQ_SLOTS], wr_at(peer, i)->len);
	if (e->partial != 0)
		apply(s, e, wr_at(peer, e->executed), &peer->work[e->executed % SQ_SLOTS],
			e->partial);
	for (uint32_t i = 0; memcmp(e->target, e->shadow, bytes) != 0; i++)
		CHECK(s, e->target[i] == e->shadow[i], "end %u: memory differs from byte %u on",
			e->index, i);
}

void
oracle_idle(struct sim *s, struct end *e)
{
	const struct requester *r = &e->req;
	const struct end *peer = peer_of(s, e);

	CHECK(s, e->done == r->tail && r->head == r->tail && r->fresh == r->tail,
		"end %u: %u of %u work requests are complete", e->index, e->done, r->tail);
	CHECK(s, psn_eq(r->una, r->next) && psn_eq(r->cur, r->next) && psn_eq(r->next, e->next_new),
		"end %u: una %06x, cur %06x, next %06x", e->index, r->una.v, r->cur.v, r->next.v);
	CHECK(s, psn_eq(r->next, peer->resp.epsn), "next PSN %06x, ePSN %06x", r->next.v,
		peer->resp.epsn.v);
	CHECK(s, peer->resp.msn == ((r->tail - peer->locals) & PSN_MASK),
		"MSN %u after %u messages", peer->resp.msn, r->tail - peer->locals);
	CHECK(s, r->reads == 0 && r->reply_psns == 0 && e->reads_out == 0,
		"end %u: %u READs, %u PSNs left", e->index, r->reads, r->reply_psns);
	CHECK(s, !r->timing && !r->waiting_rnr, "end %u: a timer runs for nothing", e->index);
	CHECK(s,
		peer->answers.count == 0 && peer->resp.unfinished == 0 &&
			peer->resp.open == OPEN_NONE,
		"end %u: %u answers left, %u unfinished", e->index, peer->answers.count,
		peer->resp.unfinished);
}
