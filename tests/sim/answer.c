/* SPDX-License-Identifier: BSD-3-Clause */
/* What a responder owes leaves: the worker's answer queue, with frames of the simulation's own. */
#include "sim.h"

static void
reply_ack(struct sim *s, struct end *e, uint8_t syndrome, psn_t p, uint32_t msn)
{
	link_send(s, e,
		&(struct wire_fields){
			.opcode = wire_opcode_on(e->resp.transport, OP_RC_ACKNOWLEDGE),
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

void
owe_ack(struct sim *s, struct end *e, const struct responder_verdict *v)
{
	if (resp_answers_ack(&e->answers, v) != OWED_NOW)
		return;
	if (!e->ack_pending)
		e->ack_at = s->now + s->lazy;
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
	enum resp_owed owed;

	ack_flush(s, e);
	owed = resp_answers_nak(&e->answers, &e->resp, v);
	CHECK(s, owed != OWED_NO_ROOM || (v->act & ACT_ERR) == 0, "the last NAK had no room");
	if (owed == OWED_NOW)
		reply_ack(s, e, v->syndrome, v->reply_psn, v->reply_msn);
}

static void
queued(struct sim *s, struct end *e, const struct responder_verdict *v, enum resp_owed owed)
{
	CHECK(s, owed != OWED_NO_ROOM || (v->act & ACT_DUPLICATE) != 0,
		"more READs and ATOMICs than were promised room");
	if (owed == OWED_QUEUED)
		ack_flush(s, e);
	if (owed == OWED_NO_ROOM)
		oracle_lost(s, peer_of(s, e), v->first);
}

void
owe_read(struct sim *s, struct end *e, const struct responder_verdict *v)
{
	queued(s, e, v, resp_answers_read(&e->answers, &e->resp, v));
}

void
owe_atomic(struct sim *s, struct end *e, const struct responder_verdict *v, uint64_t original)
{
	queued(s, e, v, resp_answers_atomic(&e->answers, &e->resp, v, original));
}

static void
pop(struct sim *s, struct end *e)
{
	const struct resp_answer *a = resp_answers_pop(&e->answers, &e->resp);

	if (a->ack_after)
		reply_ack(s, e, a->ack_syndrome, a->ack_psn, a->ack_msn);
}

/** One packet that carries more than an ACK's AETH. */
static uint32_t
reply(struct sim *s, struct end *e, const struct resp_answer *a, uint8_t opcode,
	const uint8_t *payload, uint32_t len)
{
	return link_send(s, e,
		&(struct wire_fields){ .opcode = wire_opcode_on(e->resp.transport, opcode),
			.flags = PKT_MIGREQ,
			.pkey = 0xffff,
			.dest_qpn = peer_of(s, e)->qpn,
			.psn = a->psn,
			.aeth = { a->syndrome, a->msn },
			.atomicack = a->va,
			.payload = payload,
			.payload_len = (uint16_t)len });
}

static void
answer_read(struct sim *s, struct end *e, struct resp_answer *a)
{
	uint32_t len = resp_answer_len(a, &e->resp);
	uint8_t *host = NULL;

	if (len != 0 && mem_check(e->table, a->rkey, user_of(e), a->va, len, ACCESS_REMOTE_READ,
				&host) != MEM_OK) {
		if (!respond_read_lost(s, e)) {
			oracle_lost(s, peer_of(s, e), a->psn);
			pop(s, e);
		}
		return;
	}
	share_sent(s, e, reply(s, e, a, resp_answer_opcode(a, len == a->len_left), host, len));
	if (!resp_answer_step(a, len))
		pop(s, e);
}

void
answers_run(struct sim *s, struct end *e, uint32_t turn)
{
	e->share.answers_wait = false;
	while (e->answers.count != 0 && turn-- != 0) {
		struct resp_answer *a = resp_answer_at(&e->answers, 0);

		if (a->kind == ANSWER_READ) { /* CC-22 */
			e->share.answers_wait = !share_may(s, e);
			if (e->share.answers_wait)
				return;
			answer_read(s, e, a);
			continue;
		}
		if (a->kind == ANSWER_ATOMIC)
			reply(s, e, a, OP_RC_ATOMIC_ACKNOWLEDGE, NULL, 0);
		else
			reply_ack(s, e, a->syndrome, a->psn, a->msn);
		pop(s, e);
	}
}
