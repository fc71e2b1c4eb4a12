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

#define RETRY_FOREVER 7 /* rnr_retry */

/* data.rnr_timer, in microseconds */
static const uint32_t rnr_us[32] = { 655360, 10, 20, 30, 40, 60, 80, 120, 160, 240, 320, 480, 640,
	960, 1280, 1920, 2560, 3840, 5120, 7680, 10240, 15360, 20480, 30720, 40960, 61440, 81920,
	122880, 163840, 245760, 327680, 491520 };

/* ---- sending, retries, timers ------------------------------------------------------------- */

static void
first_packet(struct sim *s, struct end *e, const struct requester_packet *p)
{
	const struct requester_wr *w = wr_at(e, p->position);
	bool reads = wr_is_read(w) || wr_is_atomic(w);

	CHECK(s, p->position == e->started, "work request %u starts, %u is next", p->position,
		e->started);
	CHECK(s, !e->draining, "QP-09: work request %u starts while draining", p->position);
	CHECK(s, (w->flags & WR_FENCE) == 0 || e->reads_out == 0,
		"REQ-11: fenced work request %u overtakes %u READs", p->position, e->reads_out);
	CHECK(s, !reads || e->reads_out < e->req.max_rd_atomic, "REQ-10: %u READs outstanding",
		e->reads_out);
	e->reads_out += reads;
	e->started++;
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
	CHECK(s, offset < w->len || (offset == 0 && w->len == 0),
		"REQ-14: PSN %06x is not of work request %u", p->psn.v, p->position);
	CHECK(s, wr_is_of_kind(w, op, last), "REQ-02: opcode %02x for work request %u", p->opcode,
		p->position);
	CHECK(s, p->offset == offset && p->len == len,
		"REQ-01: PSN %06x has %u bytes from %u on, not %u from %u", p->psn.v, p->len,
		p->offset, len, offset);
	if (op_has(op, OPF_RETH))
		CHECK(s, p->va == w->remote_addr + offset && p->dma_len == w->len - offset,
			"REQ-IMPL-04: RETH of PSN %06x", p->psn.v);
	CHECK(s, ((p->flags & PKT_SE) != 0) == (last && se && (w->flags & WR_SOLICITED) != 0),
		"WIRE-18: SE of PSN %06x", p->psn.v);
	CHECK(s, !data || !last || (w->flags & WR_SIGNALED) == 0 || (p->flags & PKT_ACKREQ) != 0,
		"REQ-07: the last packet of work request %u does not ask for an ACK", p->position);
}

/* Eight, one that asks for a response once more (REQ-07), and the one that is too many. */
#define PROBES 10

void
oracle_sent(struct sim *s, struct end *e, const struct requester_packet *p)
{
	const struct requester_wr *w = wr_at(e, p->position);
	bool reads = wr_is_read(w) || wr_is_atomic(w);

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
	if (e->probes != 0)
		CHECK(s, --e->probes != 0, "TMR-07: PSN %06x leaves, and nothing was heard since "
			"the timeout", p->psn.v);
	check_segment(s, e, p);
	if ((p->flags & PKT_ACKREQ) != 0 || reads) {
		e->asked_at = e->asked_at == 0 ? s->now : e->asked_at;
		e->asked_last = wr_is_read(w) ? psn_add(e->work[p->position % SQ_SLOTS].first,
							wr_psns(e, w) - 1)
					      : p->psn;
	}
}

/* ---- responses ---------------------------------------------------------------------------- */

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

		if (wr_is_read(w) || wr_is_atomic(w)) {
			x.implied = psn_distance(due, e->req.una) < ahead;
			x.due = due;
			x.completed += psn_eq(p->psn, last) && !x.implied;
			return x;
		}
		if (psn_distance(last, e->req.una) > ahead)
			return x;
		x.completed++;
	}
	return x;
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
	CHECK(s, v->cause == QC_IMPLIED_NAK || (v->cause == QC_NONE && x->recovering),
		"REQ-IMPL-01: a response is missing, and nothing is resent");
}

void
oracle_progress(struct sim *s, struct end *e)
{
	if (psn_eq(e->req.una, e->seen_una))
		return;
	e->seen_una = e->req.una;
	e->tries = 0;
	e->rnr_tries = 0;
	e->rnr_until = 0;
	e->probes = 0;
	e->progress_at = s->now;
	if (psn_cmp(e->req.una, e->recovered) >= 0)
		e->recovering = false;
	if (e->asked_at != 0) /* TMR-06 */
		e->asked_at = psn_cmp(e->asked_last, e->req.una) < 0 ? 0 : s->now;
}

static void
transport_retry(struct sim *s, struct end *e, const struct requester_verdict *v)
{
	ns_t wait = UINT64_C(4096) << e->req.timeout;
	bool over;

	CHECK(s, !s->perfect || peer_of(s, e)->state == END_ERR,
		"a retry over a link without fault: %s",
		requester_rule_id((enum requester_rule)v->rule));
	s->t.timeouts += v->cause == QC_TIMEOUT;
	s->t.nak_seq += v->cause == QC_SEQ_NAK;
	s->t.implied += v->cause == QC_IMPLIED_NAK;
	if (v->cause == QC_TIMEOUT) {
		CHECK(s, e->req.timeout != 0, "TMR-03: timeout without a timer");
		CHECK(s, e->asked_at != 0, "TMR-05: timeout, and no response was asked for");
		CHECK(s, s->now >= e->asked_at + wait, "TMR-02: timeout %llu ns too early",
			(unsigned long long)(e->asked_at + wait - s->now));
		CHECK(s, s->now <= e->asked_at + 4 * wait, "TMR-02: timeout %llu ns too late",
			(unsigned long long)(s->now - e->asked_at - 4 * wait));
	}
	e->tries++;
	over = e->tries > e->req.retry_cnt;
	CHECK(s, (over && e->armed) == ((v->act & REQACT_MIGRATE) != 0),
		"REQ-RETRY-09: retry %u of %u, act %x", e->tries, e->req.retry_cnt, v->act);
	CHECK(s, (over && !e->armed) == (v->outcome == QC_RETRY_EXCEEDED),
		"REQ-RETRY-02: retry %u of %u, outcome %u", e->tries, e->req.retry_cnt, v->outcome);
	if (over && e->armed) {
		e->armed = false;
		e->tries = 0;
		s->t.migrations++;
	}
}

static void
rnr_retry(struct sim *s, struct end *e, const struct requester_verdict *v)
{
	bool last = e->req.rnr_retry != RETRY_FOREVER && e->rnr_tries == e->req.rnr_retry;

	s->t.rnr++;
	e->rnr_tries++;
	CHECK(s, last == (v->outcome == QC_RNR_EXCEEDED),
		"REQ-RNR-04: RNR NAK %u, rnr_retry %u, outcome %u", e->rnr_tries, e->req.rnr_retry,
		v->outcome);
	if (!last)
		e->rnr_until = s->now + rnr_us[peer_of(s, e)->resp.min_rnr_timer] * 1000ull;
}

void
oracle_retry(struct sim *s, struct end *e, const struct requester_verdict *v)
{
	if ((v->act & (REQACT_RESEND | REQACT_ERROR)) != 0) {
		if (v->cause == QC_SEQ_NAK || v->cause == QC_IMPLIED_NAK || v->cause == QC_TIMEOUT)
			transport_retry(s, e, v);
		else if (v->cause == QC_RNR_NAK)
			rnr_retry(s, e, v);
	}
	if (v->rule == REQRULE_RNR_OVER)
		CHECK(s, s->now >= e->rnr_until, "REQ-RNR-01: the wait ends early");
	if ((v->act & REQACT_RESEND) != 0 && psn_eq(e->req.cur, e->req.una)) {
		e->asked_at = 0;
		e->recovering = true;
		e->recovered = e->next_new;
		e->probes = v->cause == QC_TIMEOUT && (v->act & REQACT_MIGRATE) == 0 ? PROBES : 0;
	}
}

/* ---- completions of the requester --------------------------------------------------------- */

static void
apply(const struct sim *s, struct end *target, const struct requester_wr *w, const struct work *k,
	uint32_t bytes)
{
	uint8_t *at = target->shadow + k->target;
	uint64_t value;

	if (wr_is_write(w)) {
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
	if (w->opcode == WR_SEND_WITH_INV) {
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
	e->reads_out -= wr_is_read(w) || wr_is_atomic(w);
	e->done++;
	s->t.completed++;
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
	CHECK(s, peer->resp.msn == (r->tail & PSN_MASK), "MSN %u after %u messages", peer->resp.msn,
		r->tail);
	CHECK(s, r->reads == 0 && r->reply_psns == 0 && e->reads_out == 0,
		"end %u: %u READs, %u PSNs left", e->index, r->reads, r->reply_psns);
	CHECK(s, !r->timing && !r->waiting_rnr, "end %u: a timer runs for nothing", e->index);
	CHECK(s,
		peer->answers.count == 0 && peer->resp.unfinished == 0 &&
			peer->resp.open == OPEN_NONE,
		"end %u: %u answers left, %u unfinished", e->index, peer->answers.count,
		peer->resp.unfinished);
}
