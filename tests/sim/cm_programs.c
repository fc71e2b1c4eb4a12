/* SPDX-License-Identifier: BSD-3-Clause */
/* Programs on both sides: what they do, what they hear, and what must be true of it. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cm_sim.h"

const uint8_t sim_gids[2][16] = { { [10] = 0xff, 0xff, 10, 0, 0, 1 },
	{ [10] = 0xff, 0xff, 10, 0, 0, 2 } };

static uint32_t
qpn_of(uint32_t side, uint32_t pair)
{
	return (side + 1) << 16 | (pair + 2);
}

void
sim_later(struct sim *s, ns_t after, uint32_t side, enum act act, uint32_t pair)
{
	if (s->laters == PLANS)
		sim_die(s, "too many plans", pair);
	s->later[s->laters++] = (struct later){ s->now + after, (uint8_t)side, act, pair };
}

static void
agree(struct sim *s, uint32_t side, uint32_t n)
{
	struct pair *p = &s->pair[n];
	struct end *e = &p->end[side], *o = &p->end[1 - side];

	if (e->taken.dest_qpn != qpn_of(1 - side, n))
		sim_die(s, "connected to another's queue pair", n);
	if (o->lost)
		return;
	if (e->taken.sq_psn != o->psn || e->taken.rq_psn != e->psn)
		sim_die(s, "the two do not agree on PSNs", n);
	if (side == 1 && !o->was_up)
		sim_die(s, "established, but the other side never was", n);
	if (side == 0 && o->state == END_NONE)
		sim_die(s, "established, but the other side knows of nothing", n);
}

/** Datagrams: the asking side was told a number and its key. */
static void
agree_ud(struct sim *s, uint32_t n, const struct cm_conn *c)
{
	const struct pair *p = &s->pair[n];
	const bool asks = p->kind == KIND_UD;

	if (c->peer.qpn != (asks ? qpn_of(1, n) : ALWAYS_QPN) || c->peer.qkey != UD_QKEY)
		sim_die(s, "datagrams go to another's queue pair", n);
	if (p->kind == KIND_UD_NOBODY || (asks && !p->end[1].lost && !p->end[1].was_up))
		sim_die(s, "datagrams are sent, but nobody said yes", n);
	s->datagrams++;
}

static uint32_t
pair_of(const struct cm_conn *c)
{
	return (uint32_t)(uintptr_t)c->user - 1;
}

static void
heard(struct sim *s, uint32_t side, const struct cm_verdict *v)
{
	const uint32_t n = pair_of(v->conn);
	struct end *e = &s->pair[n].end[side];

	switch ((enum cm_event)v->event) {
	case CM_EVENT_ESTABLISHED:
		if (e->state != END_WAITS)
			sim_die(s, "established twice, or after the end", n);
		e->state = END_UP;
		e->was_up = true;
		if (v->conn->peer.service == CM_UD || v->conn->own.service == CM_UD) {
			agree_ud(s, n, v->conn);
		} else {
			if (s->pair[n].kind != KIND_RC)
				sim_die(s, "established, and nobody listens", n);
			e->taken = v->conn->taken;
			s->up++;
			agree(s, side, n);
			if (sim_random(s, 8) == 0)
				sim_later(s, sim_random(s, s->delay * 4), side, ACT_LAP, n);
		}
		if (sim_random(s, 4) != 0)
			sim_later(s, sim_random(s, s->delay * 4), side, ACT_DATA, n);
		if (sim_random(s, 2) == 0 || side == 0)
			sim_later(s, sim_random(s, s->delay * 20 + TIME_NS_PER_MS), side,
				ACT_DISCONNECT, n);
		break;
	case CM_EVENT_REJECTED:
	case CM_EVENT_UNREACHABLE:
	case CM_EVENT_CONNECT_ERROR:
		if (e->state != END_WAITS)
			sim_die(s, "an attempt failed that was over, or had succeeded", n);
		s->refused += v->status != 0 && v->conn->reason != 0;
		e->state = END_OVER;
		break;
	case CM_EVENT_DISCONNECTED:
		if (e->state != END_UP && e->state != END_WAITS)
			sim_die(s, "disconnected twice", n);
		e->state = END_OVER;
		break;
	case CM_EVENT_TIMEWAIT_EXIT:
		if (e->state != END_OVER && !e->own_end)
			sim_die(s, "the end was not told", n);
		break;
	case CM_EVENT_NONE:
	case CM_EVENT_CONNECT_REQUEST:
	case CM_EVENTS:
		break;
	}
}

void
sim_carry_out(struct sim *s, uint32_t side, const struct cm_verdict *v)
{
	if (s->verbose && v->conn != NULL)
		printf("%12.3f %u: attempt %u now %s, event %s, sends %u, drop '%s'\n",
			(double)s->now / 1e6, side, pair_of(v->conn),
			cm_state_name((enum cm_state)v->conn->state),
			v->event != 0 ? cm_event_name((enum cm_event)v->event) : "-", v->outs,
			cm_drop_text((enum cm_drop)v->drop));
	if (v->todo == CM_DO_ASK) {
		const uint32_t n = v->conn->peer.service == CM_UD
					   ? v->conn->source_port
					   : (v->conn->peer.qpn & 0xffff) - 2;
		struct end *e = &s->pair[n].end[1];
		/* A SIDR_REQ gets no MRA: who asks waits as long as it said, and no longer. */
		const uint32_t slow = v->conn->peer.service == CM_UD ? 8 : 30;

		if (side != 1 || n >= PAIRS)
			sim_die(s, "a REQ from nowhere", n);
		if (e->conn != NULL) /* a late copy of a REQ may begin anew what is over */
			sim_die(s, "asked twice for one attempt", n);
		*e = (struct end){ .conn = v->conn,
			.state = END_WAITS,
			.lost = e->lost,
			.again = e->state != END_NONE };
		v->conn->user = (void *)(uintptr_t)(n + 1);
		sim_later(s, sim_random(s, 3) == 0 ? sim_random(s, s->delay * slow) : 0, 1,
			ACT_ANSWER, n);
	} else if (v->conn != NULL) {
		heard(s, side, v);
	}
	for (uint32_t i = 0; i < v->outs; i++)
		sim_fly(s, 1 - side, &v->out[i]);
	if (v->over) {
		struct end *e = &s->pair[pair_of(v->conn)].end[side];

		if (e->conn == v->conn)
			e->conn = NULL;
		if (e->state != END_OVER && !e->own_end)
			sim_die(s, "forgotten without a word", pair_of(v->conn));
		cm_forget(&s->side[side], v->conn);
	}
}

void
sim_begin(struct sim *s, uint32_t n)
{
	static const uint64_t services[KINDS] = { SERVICE, SERVICE_UD, SERVICE_UD_ALWAYS,
		SERVICE + NOBODY, SERVICE_UD + NOBODY };
	static const enum kind kinds[16] = { [9] = KIND_UD,
		KIND_UD,
		KIND_UD,
		KIND_UD,
		KIND_UD_ALWAYS,
		KIND_NOBODY,
		KIND_UD_NOBODY };
	struct end *e = &s->pair[n].end[0];
	const enum kind kind = kinds[sim_random(s, ARRAY_LEN(kinds))];
	struct cm_ask ask = { .service_id = services[kind],
		.source_port = (uint16_t)n,
		.packet_life = (uint8_t)sim_random(s, 16),
		.ip = true,
		.hop_limit = 64,
		.time = s->delay * 40 + sim_random(s, s->delay * 40),
		.user = (void *)(uintptr_t)(n + 1) };
	struct cm_verdict v;

	*e = (struct end){ .state = END_WAITS, .psn = (uint32_t)sim_random(s, 1 << 24) };
	s->pair[n].kind = kind;
	s->pair[n].refuse = sim_random(s, 10) == 0 || kind == KIND_NOBODY || kind == KIND_UD_NOBODY;
	memcpy(ask.path.own_gid, sim_gids[0], 16);
	memcpy(ask.path.peer_gid, sim_gids[1], 16);
	ask.terms = (struct cm_terms){ .qpn = qpn_of(0, n), .psn = e->psn, .mtu = 3 };
	if (kind == KIND_UD || kind == KIND_UD_ALWAYS || kind == KIND_UD_NOBODY)
		ask.terms.service = CM_UD;
	if (cm_connect(&s->side[0], &ask, s->now, &v) != 0)
		sim_die(s, "no place for an attempt", n);
	e->conn = v.conn;
	sim_carry_out(s, 0, &v);
	if (sim_random(s, 16) == 0)
		sim_later(s, sim_random(s, s->delay * 10), 0, ACT_DISCONNECT, n);
}

static void
answer(struct sim *s, uint32_t n)
{
	struct end *e = &s->pair[n].end[1];
	struct cm_verdict v;
	int rc;

	if (e->conn == NULL || e->state != END_WAITS || e->own_end || e->conn->own.qpn != 0)
		return;
	e->psn = (uint32_t)sim_random(s, 1 << 24);
	if (s->pair[n].refuse) {
		e->own_end = true;
		rc = cm_reject(&s->side[1], e->conn, 28, NULL, 0, s->now, &v);
	} else {
		const struct cm_terms own = { .qpn = qpn_of(1, n), .psn = e->psn, .qkey = UD_QKEY };

		if (s->pair[n].kind == KIND_UD) { /* more it does not hear */
			e->state = END_OVER;
			e->was_up = true;
		}
		rc = cm_accept(&s->side[1], e->conn, &own, NULL, 0, s->now, &v);
	}
	if (rc != 0)
		sim_die(s, "an answer was refused", n);
	sim_carry_out(s, 1, &v);
	if (!s->pair[n].refuse && s->pair[n].kind == KIND_RC && sim_random(s, 16) == 0)
		sim_later(s, sim_random(s, s->delay * 10), 1, ACT_DISCONNECT, n);
}

/** A LAP, which this connection manager never sends itself: it is answered, or dropped (CM-39). */
static void
lap(struct sim *s, uint32_t side, const struct cm_conn *c)
{
	struct cm_out out = { .path = c->path };

	mad_init(out.mad, CM_LAP, sim_random(s, UINT64_MAX));
	mad_set(out.mad, RTU_local_comm_id, c->local_id);
	mad_set(out.mad, RTU_remote_comm_id, c->remote_id);
	sim_fly(s, 1 - side, &out);
}

void
sim_act(struct sim *s, const struct later *l)
{
	struct pair *p = &s->pair[l->pair];
	struct end *e = &p->end[l->side], *o = &p->end[1 - l->side];
	struct cm_verdict v;

	switch ((enum act)l->act) {
	case ACT_ANSWER:
		answer(s, l->pair);
		break;
	case ACT_DATA:
		/* Reliable data: the first packet comes through in the end. */
		if (e->state == END_UP && o->conn != NULL && p->kind == KIND_RC &&
			cm_data(&s->side[1 - l->side], qpn_of(1 - l->side, l->pair), s->now, &v))
			sim_carry_out(s, 1 - l->side, &v);
		break;
	case ACT_LAP:
		if (e->conn != NULL)
			lap(s, l->side, e->conn);
		break;
	case ACT_DISCONNECT:
		if (e->conn == NULL || e->own_end || (e->state != END_UP && e->state != END_WAITS))
			break;
		if (cm_disconnect(&s->side[l->side], e->conn, s->now, &v) != 0)
			sim_die(s, "a connection could not be ended", l->pair);
		e->own_end = true;
		sim_carry_out(s, l->side, &v);
		break;
	}
}
