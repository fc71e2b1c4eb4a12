/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Frames and the link. Every packet is a whole frame, sealed with its ICRC, and parsed and verified
 * where it arrives; a corrupt one must be found out.
 *
 * How late may a copy be? A request further than 2^23 - 1 PSNs behind ePSN would count as one ahead
 * of it, and a response 2^24 behind would be in range again. Each PSN takes at least one packet,
 * and a run has some ten thousand, so no lateness within a run can do that; a connection made anew
 * has another QP number, and what is late for the old one is turned away by that.
 */
#include <stdlib.h>
#include <string.h>

#include "crc_isal.h"
#include "icrc.h"
#include "sim.h"

struct packet *
packet_new(struct sim *s)
{
	struct packet *p = s->free;

	if (p == NULL) {
		p = malloc(sizeof(*p));
		CHECK(s, p != NULL, "out of memory");
	} else {
		s->free = p->next;
	}
	p->corrupt = p->cnp = false;
	return p;
}

void
packet_free(struct sim *s, struct packet *p)
{
	p->next = s->free;
	s->free = p;
}

/* ---- packets in flight: a heap, earliest on top ------------------------------------------- */

static bool
is_before(const struct flying *a, const struct flying *b)
{
	return a->at != b->at ? a->at < b->at : a->order < b->order;
}

static void
push(struct sim *s, struct packet *p, ns_t at)
{
	struct flying f = { at, s->order++, p };
	uint32_t i = s->flying_n;

	if (i == FLYING_MAX) {
		oracle_lost(s, &s->end[p->asker], p->psn);
		packet_free(s, p);
		return;
	}
	s->flying_n++;
	while (i != 0 && is_before(&f, &s->flying[(i - 1) / 2])) {
		s->flying[i] = s->flying[(i - 1) / 2];
		i = (i - 1) / 2;
	}
	s->flying[i] = f;
}

static struct packet *
pop(struct sim *s)
{
	struct packet *p = s->flying[0].p;
	struct flying f = s->flying[--s->flying_n];
	uint32_t i = 0;

	for (;;) {
		uint32_t c = 2 * i + 1;

		if (c >= s->flying_n)
			break;
		if (c + 1 < s->flying_n && is_before(&s->flying[c + 1], &s->flying[c]))
			c++;
		if (!is_before(&s->flying[c], &f))
			break;
		s->flying[i] = s->flying[c];
		i = c;
	}
	s->flying[i] = f;
	return p;
}

ns_t
link_next(const struct sim *s)
{
	return s->flying_n == 0 ? UINT64_MAX : s->flying[0].at;
}

struct packet *
link_receive(struct sim *s)
{
	return s->flying_n == 0 || s->flying[0].at > s->now ? NULL : pop(s);
}

void
link_clear(struct sim *s)
{
	while (s->flying_n != 0)
		packet_free(s, s->flying[--s->flying_n].p);
}

/* ---- character ---------------------------------------------------------------------------- */

void
link_random(struct sim *s, struct link *l)
{
	struct rng *g = &s->g;

	*l = (struct link){ .last = s->fifo ? l->last : 0,
		.latency = range(g, 200, rarely(g, 3) ? 20000 : 4000),
		.jitter = rarely(g, 3) ? below(g, 6000) : below(g, 300),
		.duplicate = rarely(g, 2) ? 0 : below(g, 50000),
		.reorder = rarely(g, 2) ? 0 : below(g, rarely(g, 4) ? 200000 : 20000),
		.reorder_ns = range(g, 1000, 30000),
		.ghost = rarely(g, 2) ? 0 : below(g, 30000),
		.ghost_ns = range(g, 10000, 5000000) };
	if (s->fifo)
		l->duplicate = l->reorder = l->ghost = 0;
	if (!s->hostile)
		return;
	l->loss = rarely(g, 3) ? 0 : below(g, rarely(g, 4) ? 150000 : 20000);
	l->corrupt = rarely(g, 2) ? 0 : below(g, 10000);
	if (rarely(g, 3)) {
		l->turns_bad = below(g, 5000);
		l->turns_good = range(g, 10000, 400000);
		l->bad_loss = range(g, 200000, 1000000);
	}
}

static bool
is_lost(struct sim *s, struct link *l)
{
	if (l->turns_bad != 0)
		l->bad = l->bad ? !chance(&s->g, l->turns_good) : chance(&s->g, l->turns_bad);
	return s->now < l->down_until || chance(&s->g, l->bad ? l->bad_loss : l->loss);
}

/** Up to three bits, behind the Ethernet header: no CRC-32 lets those pass at these lengths. */
static void
corrupt(struct sim *s, struct packet *p)
{
	for (uint32_t n = range(&s->g, 1, 3); n != 0; n--) {
		uint32_t bit = range(&s->g, WIRE_ETH_LEN * 8, p->len * 8 - 1);

		p->frame[bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
	if (rarely(&s->g, 8))
		p->len = below(&s->g, p->len);
	p->corrupt = true;
	oracle_lost(s, &s->end[p->asker], p->psn);
	s->t.corrupt++;
}

struct packet *
packet_copy(struct sim *s, const struct packet *p)
{
	struct packet *c = packet_new(s);

	c->len = p->len;
	c->to = p->to;
	c->asker = p->asker;
	c->psn = p->psn;
	c->corrupt = p->corrupt;
	c->cause = p->cause;
	memcpy(c->frame, p->frame, p->len);
	return c;
}

static void
launch(struct sim *s, const struct end *e, struct packet *p)
{
	struct link *l = &s->link[e->index & 1];
	const ns_t leaves = share_queue(s, e, p);
	ns_t at = leaves + l->latency + below(&s->g, l->jitter);

	s->packets++;
	if (leaves == 0 || is_lost(s, l)) {
		s->t.lost += leaves != 0;
		oracle_lost(s, &s->end[p->asker], p->psn);
		packet_free(s, p);
		return;
	}
	if (chance(&s->g, l->corrupt))
		corrupt(s, p);
	if (chance(&s->g, l->reorder)) {
		at += below(&s->g, l->reorder_ns);
	} else {
		at = at < l->last ? l->last : at;
		l->last = at;
	}
	if (chance(&s->g, l->duplicate)) {
		s->t.duplicates++;
		push(s, packet_copy(s, p), at + below(&s->g, l->reorder_ns));
	}
	if (chance(&s->g, l->ghost)) {
		s->t.ghosts++;
		push(s, packet_copy(s, p), at + below(&s->g, l->ghost_ns));
	}
	push(s, p, at);
}

/* ---- frames ------------------------------------------------------------------------------- */

static void
trace_packet(struct sim *s, const struct end *e, const char *what, const struct packet *p)
{
	struct wire_pkt w;
	char line[256] = "not RoCE";

	if (wire_parse(&s->end[p->to].port, p->frame, p->len, &w) == WIRE_CLASS_ROCE)
		wire_print(&w, line, sizeof(line));
	sim_trace(s, e, "%s %s", what, line);
}

uint32_t
link_send(struct sim *s, struct end *e, const struct wire_fields *f)
{
	struct packet *p = packet_new(s);
	struct wire_path path = e->path;
	int len;

	if (f->opcode == OP_CNP)
		path.tos &= (uint8_t)~3; /* CC-01: Not-ECT */
	len = wire_build(&path, f, (uint16_t)s->order, p->frame, sizeof(p->frame));

	CHECK(s, len > 0, "frame of opcode %u does not fit", f->opcode);
	p->len = (uint32_t)len;
	p->to = e->index ^ 1;
	p->asker = op_has(wire_opcodes[f->opcode].flags, OPF_RESPONSE) ? p->to : e->index;
	p->psn = f->psn;
	p->cause = p->asker == p->to ? e->asked : (struct cause){ e->pass, f->psn };
	icrc_seal(crc_isal(), p->frame, e->path.vlan ? WIRE_ETH_LEN + WIRE_VLAN_LEN : WIRE_ETH_LEN,
		e->path.ipv6, p->len);
	if (UNLIKELY(s->verbose))
		trace_packet(s, e, "tx", p);
	p->cnp = f->opcode == OP_CNP;
	launch(s, e, p);
	return (uint32_t)len;
}

bool
link_parse(struct sim *s, const struct packet *p, struct wire_pkt *out)
{
	struct end *e = &s->end[p->to];
	bool good = wire_parse(&e->port, p->frame, p->len, out) == WIRE_CLASS_ROCE &&
		    out->faults == 0 && icrc_verify(crc_isal(), out);

	CHECK(s, good || p->corrupt, "a frame that was built is not accepted");
	if (UNLIKELY(s->verbose))
		trace_packet(s, e, good ? "rx" : "rx corrupt", p);
	return good;
}
