/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a responder owes, as a worker keeps it: positive ACKs grow until the end of the burst; READ
 * and ATOMIC results stand in a queue, and whatever comes later stands behind it.
 */
#include <string.h>

#include "sim.h"

static struct answer *
answer_at(struct end *e, uint32_t i)
{
	return &e->answers[(e->answer_head + i) % e->answer_cap];
}

/** May an entry be added that nobody promised room for? */
static bool
has_room(const struct end *e)
{
	int32_t promised = (int32_t)e->resp.max_dest_rd_atomic - e->resp.unfinished;

	return e->answer_count + (uint32_t)(promised > 0 ? promised : 0) + 1 < e->answer_cap;
}

static void
reply_ack(struct sim *s, struct end *e, uint8_t syndrome, psn_t p, uint32_t msn)
{
	link_send(s, e,
		&(struct wire_fields){ .opcode = OP_RC_ACKNOWLEDGE,
			.flags = PKT_MIGREQ,
			.pkey = 0xffff,
			.dest_qpn = peer_of(s, e)->qpn,
			.psn = p,
			.aeth = { syndrome, msn } });
}

void
ack_flush(struct sim *s, struct end *e)
{
	if (!e->ack_pending)
		return;
	e->ack_pending = false;
	reply_ack(s, e, e->ack_syndrome, e->ack_psn, e->ack_msn);
}

static struct answer *
push(struct sim *s, struct end *e)
{
	struct answer *a;

	ack_flush(s, e);
	CHECK(s, e->answer_count < e->answer_cap, "more READs and ATOMICs than were promised room");
	a = answer_at(e, e->answer_count++);
	*a = (struct answer){ .kind = ANSWER_ACK };
	return a;
}

static void
pop(struct sim *s, struct end *e)
{
	struct answer a = *answer_at(e, 0);

	if (a.kind != ANSWER_ACK && !a.duplicate)
		responder_answered(&e->resp);
	e->answer_head = (e->answer_head + 1) % e->answer_cap;
	e->answer_count--;
	if (a.ack_after)
		reply_ack(s, e, a.ack_syndrome, a.ack_psn, a.ack_msn);
}

void
owe_ack(struct sim *s, struct end *e, const struct responder_verdict *v)
{
	if (e->answer_count != 0) {
		struct answer *a = answer_at(e, e->answer_count - 1);

		if (a->ack_after && psn_cmp(v->reply_psn, a->ack_psn) < 0)
			return;
		a->ack_after = true;
		a->ack_syndrome = v->syndrome;
		a->ack_psn = v->reply_psn;
		a->ack_msn = v->reply_msn;
		return;
	}
	e->ack_pending = true;
	e->ack_syndrome = v->syndrome;
	e->ack_psn = v->reply_psn;
	e->ack_msn = v->reply_msn;
	if (rarely(&s->g, s->coalesce))
		ack_flush(s, e);
}

void
owe_nak(struct sim *s, struct end *e, const struct responder_verdict *v)
{
	struct answer *a;

	ack_flush(s, e);
	if (e->answer_count == 0) {
		reply_ack(s, e, v->syndrome, v->reply_psn, v->reply_msn);
		return;
	}
	if ((v->act & ACT_ERR) == 0 && !has_room(e))
		return;
	if (e->answer_count == e->answer_cap)
		return;
	a = push(s, e);
	a->syndrome = v->syndrome;
	a->psn = a->first = a->last = v->reply_psn;
	a->msn = v->reply_msn;
}

/** A READ asked for again while its answer is under way goes back in that answer. */
static bool
rejoin(struct end *e, const struct responder_verdict *v, psn_t last)
{
	for (uint32_t i = 0; i < e->answer_count; i++) {
		struct answer *a = answer_at(e, i);

		if (a->kind != ANSWER_READ || !psn_between(v->first, a->first, a->last) ||
			!psn_between(last, a->first, a->last))
			continue;
		if (psn_cmp(v->first, a->psn) > 0)
			return true;
		if (!psn_eq(last, a->last))
			continue;
		a->psn = v->first;
		a->va = v->va;
		a->len_left = v->len;
		a->restarted = true;
		return true;
	}
	return false;
}

void
owe_read(struct sim *s, struct end *e, const struct responder_verdict *v)
{
	uint32_t psns = v->len == 0 ? 1 : (v->len + e->resp.pmtu - 1) / e->resp.pmtu;
	psn_t last = psn_add(v->first, psns - 1);
	bool duplicate = (v->act & ACT_DUPLICATE) != 0;
	struct answer *a;

	if (duplicate && (rejoin(e, v, last) || !has_room(e)))
		return;
	a = push(s, e);
	a->kind = ANSWER_READ;
	a->duplicate = duplicate;
	a->syndrome = v->syndrome;
	a->psn = a->first = v->first;
	a->last = last;
	a->msn = v->reply_msn;
	a->rkey = v->rkey;
	a->len_left = v->len;
	a->va = v->va;
}

void
owe_atomic(struct sim *s, struct end *e, const struct responder_verdict *v, uint64_t original)
{
	bool duplicate = (v->act & ACT_DUPLICATE) != 0;
	struct answer *a;

	if (duplicate) {
		for (uint32_t i = 0; i < e->answer_count; i++) {
			a = answer_at(e, i);
			if (a->kind == ANSWER_ATOMIC && psn_eq(a->psn, v->first))
				return;
		}
		if (!has_room(e))
			return;
	}
	a = push(s, e);
	a->kind = ANSWER_ATOMIC;
	a->duplicate = duplicate;
	a->syndrome = v->syndrome;
	a->psn = a->first = a->last = v->first;
	a->msn = v->reply_msn;
	a->va = original;
}

static uint8_t
read_opcode(const struct answer *a, bool is_last)
{
	if (a->restarted || psn_eq(a->psn, a->first))
		return is_last ? OP_RC_READ_RESPONSE_ONLY : OP_RC_READ_RESPONSE_FIRST;
	return is_last ? OP_RC_READ_RESPONSE_LAST : OP_RC_READ_RESPONSE_MIDDLE;
}

static void
answer_read(struct sim *s, struct end *e, struct answer *a)
{
	uint32_t len = a->len_left < e->resp.pmtu ? a->len_left : e->resp.pmtu;
	uint8_t *host = NULL;

	if (len != 0 &&
		mem_check(e->table, a->rkey, 1, a->va, len, MEM_REMOTE_READ, &host) != MEM_OK) {
		if (a->duplicate) {
			pop(s, e);
			return;
		}
		e->answer_count = 0;
		respond_read_lost(s, e, a->psn);
		return;
	}
	link_send(s, e,
		&(struct wire_fields){ .opcode = read_opcode(a, len == a->len_left),
			.flags = PKT_MIGREQ,
			.pkey = 0xffff,
			.dest_qpn = peer_of(s, e)->qpn,
			.psn = a->psn,
			.aeth = { a->syndrome, a->msn },
			.payload = host,
			.payload_len = (uint16_t)len });
	a->restarted = false;
	a->len_left -= len;
	if (a->len_left == 0) {
		pop(s, e);
		return;
	}
	a->va += len;
	a->psn = psn_add(a->psn, 1);
}

void
answers_run(struct sim *s, struct end *e, uint32_t turn)
{
	while (e->answer_count != 0 && turn-- != 0) {
		struct answer *a = answer_at(e, 0);

		if (a->kind == ANSWER_READ) {
			answer_read(s, e, a);
			continue;
		}
		if (a->kind == ANSWER_ATOMIC)
			link_send(s, e,
				&(struct wire_fields){ .opcode = OP_RC_ATOMIC_ACKNOWLEDGE,
					.flags = PKT_MIGREQ,
					.pkey = 0xffff,
					.dest_qpn = peer_of(s, e)->qpn,
					.psn = a->psn,
					.aeth = { a->syndrome, a->msn },
					.atomicack = a->va });
		else
			reply_ack(s, e, a->syndrome, a->psn, a->msn);
		pop(s, e);
	}
}
