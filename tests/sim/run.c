/* SPDX-License-Identifier: BSD-3-Clause */
/* One seed: what it is like, and the order of events. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim.h"

#define TURNS_PER_PACKET 400
#define TIME_MAX         (20000 * TIME_NS_PER_S)

static uint8_t *
memory(size_t bytes)
{
	uint8_t *p = aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);

	if (p == NULL) {
		fputs("sim: out of memory\n", stderr);
		exit(2);
	}
	memset(p, 0, bytes);
	return p;
}

struct sim *
sim_create(void)
{
	struct sim *s = (void *)memory(sizeof(*s));
	struct rng g = { UINT64_C(0x9e3779b97f4a7c15) };

	s->pool = memory(POOL_BYTES);
	for (uint32_t i = 0; i < POOL_BYTES; i++)
		s->pool[i] = (uint8_t)rng_next(&g);
	for (uint32_t i = 0; i < ENDS_MAX; i++) {
		struct end *e = &s->end[i];

		e->target = memory(TARGET_BYTES);
		e->shadow = memory(TARGET_BYTES);
		e->sink = memory((size_t)SQ_SLOTS * MESSAGE_TOP);
		e->inbox = memory((size_t)RQ_SLOTS * MESSAGE_TOP);
	}
	return s;
}

static void
choose_pair(struct sim *s, uint32_t pair)
{
	struct pair *p = &s->pair[pair];
	uint32_t packets = rarely(&s->g, 8) ? 128 : range(&s->g, 4, 24);

	*p = (struct pair){ .pmtu = (uint16_t)(256u << (rarely(&s->g, 2) ? below(&s->g, 5) : 0)) };
	p->message_max = packets * p->pmtu;
	if (p->message_max > MESSAGE_TOP)
		p->message_max = MESSAGE_TOP;
	p->mr_bytes = 4096 + (p->message_max + 63) / 64 * 64;
	if (p->mr_bytes > MR_BYTES)
		p->mr_bytes = MR_BYTES;
	for (uint32_t i = 2 * pair; i < 2 * pair + 2; i++) {
		uint32_t bytes = MRS * (p->mr_bytes + GUARD) + GUARD, half = bytes / 2;
		struct end *e = &s->end[i];

		memcpy(e->target, s->pool + below(&s->g, POOL_BYTES - half), half);
		memcpy(e->target + half, s->pool + below(&s->g, POOL_BYTES - half - 1),
			bytes - half);
		memcpy(e->shadow, e->target, bytes);
	}
}

static void
choose(struct sim *s, uint64_t seed)
{
	struct rng *g = &s->g;

	g->x = (seed + 1) * UINT64_C(0x9e3779b97f4a7c15);
	g->x ^= g->x >> 29;
	if (g->x == 0)
		g->x = 1;
	for (uint32_t i = 0; i < 4; i++)
		rng_next(g);
	s->seed = seed;
	s->now = range(g, 1, 1000000000);
	s->order = 0;
	s->packets = 0;
	s->turns = 0;
	s->closing = false;
	s->needed = s->needless = s->timeouts = s->unheard = 0;
	s->next_key = 0x1000;
	s->next_wr_id = 1;
	s->hostile = !rarely(g, 4);
	s->perfect = !s->hostile && rarely(g, 4);
	s->fifo = seed % 3 == 0;
	s->timeless = s->all_timeless || seed % 8 == 5;
	share_choose(s);
	s->pairs = rarely(g, 3) ? range(g, 2, PAIRS_MAX) : 1;
	s->target_packets = rarely(g, 2) ? range(g, 12000, 24000) : range(g, 1000, 5000);
	s->faults = rarely(g, 3) && !s->perfect ? range(g, 100, 2000) : 0;
	s->chaos = rarely(g, 2) && !s->perfect ? range(g, 100, 3000) : 0;
	s->shortage = rarely(g, 5) ? below(g, 5000) : 0;
	s->starve = rarely(g, 2) ? range(g, 20, 500) : 0;
	s->size = below(g, 4);
	s->pace = range(g, 200, rarely(g, 4) ? 50000 : 4000);
	s->answers_turn = rarely(g, 3) ? range(g, 1, 4) : range(g, 8, 64);
	s->send_turn = rarely(g, 3) ? range(g, 1, 4) : range(g, 8, 64);
	s->coalesce = rarely(g, 3) ? 1 : rarely(g, 2) ? 0 : range(g, 2, 8);
	s->lazy = seed % 4 == 2 ? 1000u << seed / 4 % 4 : 0;
	s->coalesce = s->lazy != 0 ? 0 : s->coalesce;
	s->app_gap = s->pace;
	s->app_at = s->now;
	wheel_init(&s->wheel, tick_of(s->now));
	memset(s->link, 0, sizeof(s->link));
	for (uint32_t i = 0; i < 2; i++) {
		link_random(s, &s->link[i]);
		if (s->perfect)
			s->link[i] = (struct link){ .latency = s->link[i].latency };
	}
	for (uint32_t i = 0; i < s->pairs; i++) {
		choose_pair(s, i);
		pair_connect(s, i);
	}
}

/* ---- events ------------------------------------------------------------------------------- */

void
sim_arrive(struct sim *s, struct packet *p)
{
	struct end *e = &s->end[p->to];
	struct wire_pkt w;

	if (!link_parse(s, p, &w))
		return;
	if (w.dest_qpn != e->qpn) { /* of a connection that is no more */
		s->t.strays++;
		return;
	}
	if (share_arrived(s, e, &w, p->corrupt))
		return;
	e->answers_to = p->cause;
	if (op_has(w.op, OPF_RESPONSE)) {
		if (e->state == END_RTS || e->req.dead)
			send_response(s, e, &w);
	} else if (e->state == END_RTS) {
		respond(s, e, &w, p);
	}
}

void
sim_timers(struct sim *s)
{
	struct wheel_node *due[16];
	uint32_t n;

	do {
		n = wheel_advance(&s->wheel, tick_of(s->now), due, 16);
		for (uint32_t i = 0; i < n; i++) {
			struct end *e = (void *)((uint8_t *)due[i] - offsetof(struct end, timer));

			CHECK(s, tick_of(s->now) >= due[i]->deadline,
				"TMR-02: the wheel fires early");
			send_timer(s, e);
		}
	} while (n == 16);
}

static ns_t
next_time(const struct sim *s)
{
	ns_t at = s->app_at, link = link_next(s);
	tick_t tick = wheel_next(&s->wheel);

	for (uint32_t i = 0; i < 2 * s->pairs; i++)
		if (s->end[i].ack_pending && s->end[i].ack_at < at)
			at = s->end[i].ack_at;
	for (uint32_t i = 0; i < 2 * s->pairs; i++)
		if (s->end[i].busy ||
			(s->end[i].answers.count != 0 && !s->end[i].share.answers_wait))
			at = at < s->now + 500 ? at : s->now + 500;
	for (uint32_t i = 0; i < 2 * s->pairs; i++)
		if (s->end[i].share.wakes_at != 0 && s->end[i].share.wakes_at < at)
			at = s->end[i].share.wakes_at;
	at = at < link ? at : link;
	if (tick != WHEEL_NEVER && tick << TICK_SHIFT < at)
		at = tick << TICK_SHIFT;
	return at > s->now ? at : s->now + 1;
}

/** Packets that are there, a burst at most; then what a worker does after them, end by end. */
static void
turn(struct sim *s)
{
	uint32_t flip = below(&s->g, 2), packets = s->packets;
	struct packet *p;

	for (uint32_t n = 0; n < BURST && (p = link_receive(s)) != NULL; n++) {
		sim_arrive(s, p);
		packet_free(s, p);
	}
	for (uint32_t i = 0; i < 2 * s->pairs; i++)
		if (s->now >= s->end[i].ack_at)
			ack_flush(s, &s->end[i]);
	sim_timers(s);
	if (s->now >= s->app_at) {
		app_step(s);
		s->app_at = s->now + range(&s->g, 1, (uint32_t)s->app_gap);
		s->app_gap = s->app_gap < 20000000 ? s->app_gap + s->app_gap / 4 + 1 : s->app_gap;
	}
	for (uint32_t i = 0; i < 2 * s->pairs; i++) {
		struct end *e = &s->end[i ^ flip];

		e->share.wakes_at = 0;
		answers_run(s, e, s->answers_turn);
		send_some(s, e, s->send_turn);
	}
	if (s->packets != packets)
		s->app_gap = s->pace;
}

static bool
is_over(const struct sim *s)
{
	if (!s->closing || s->flying_n != 0)
		return false;
	for (uint32_t i = 0; i < 2 * s->pairs; i++) {
		const struct end *e = &s->end[i];

		if (s->pair[i / 2].over)
			continue;
		if (e->state != END_RTS || e->done != e->req.tail || e->answers.count != 0 ||
			e->draining)
			return false;
	}
	return true;
}

void
sim_run(struct sim *s, uint64_t seed)
{
	choose(s, seed);
	while (!is_over(s)) {
		s->now = next_time(s) + below(&s->g, 300);
		CHECK(s, ++s->turns < TURNS_PER_PACKET * s->target_packets && s->now < TIME_MAX,
			"does not come to an end");
		turn(s);
	}
	for (uint32_t i = 0; i < s->pairs; i++) {
		if (!s->pair[i].over) {
			oracle_idle(s, &s->end[2 * i]);
			oracle_idle(s, &s->end[2 * i + 1]);
		}
		pair_settle(s, i);
		pair_release(s, i);
	}
	link_clear(s);
	s->t.packets += s->packets;
}
