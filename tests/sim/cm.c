/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sim-cm [--seeds N] [--first S] [--connections N] [--verbose SEED]
 *
 * Two connection managers and a link that loses, doubles, delays and reorders, by seed. Programs on
 * both sides connect, answer (late, or with no), send data, and disconnect, one or both; some ask
 * where datagrams go (SIDR), some ask where nobody listens, some get a LAP; a side may
 * forget everything, as after a crash. What must hold (CM-11..CM-41):
 *
 * - a side is ESTABLISHED only with another that agreed to the same QPNs and PSNs;
 * - the passive side is ESTABLISHED only if the active one was before;
 * - each attempt ends, once, at each side that has heard of it; nothing is heard afterwards;
 * - without loss, what both programs want comes about;
 * - who may send datagrams was told so by the listener, or by its program, which said yes;
 * - in the end both tables are empty: nothing is half open, no timer runs.
 */
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "args.h"
#include "cm_sim.h"

#define USAGE "sim-cm [--seeds N] [--first S] [--connections N] [--verbose SEED]"

void
sim_die(const struct sim *s, const char *what, uint32_t pair)
{
	printf("sim-cm --verbose %" PRIu64 " # %.6f ms, attempt %u: %s\n", s->seed,
		(double)s->now / 1e6, pair, what);
	exit(1);
}

uint64_t
sim_random(struct sim *s, uint64_t n)
{
	s->rand ^= s->rand << 13;
	s->rand ^= s->rand >> 7;
	s->rand ^= s->rand << 17;
	return (s->rand >> 11) % n;
}

void
sim_fly(struct sim *s, uint32_t to, const struct cm_out *out)
{
	uint32_t copies = sim_random(s, 1000) < s->twice ? 2 : 1;

	s->sent++;
	while (copies-- > 0) {
		struct flight *f;

		if (sim_random(s, 1000) < s->loss)
			continue;
		if (s->flights == FLIGHT)
			sim_die(s, "the link is full", 0);
		f = &s->flight[s->flights++];
		f->at = s->now + 1000 + sim_random(s, s->delay);
		f->to = (uint8_t)to;
		f->out = *out;
	}
}

static void
init_side(struct sim *s, uint32_t side)
{
	const struct cm_limits limits = { 128, 96, 1000000 };
	struct cm_listener *l;
	int rc;

	if (cm_init(&s->side[side], &limits, sim_random(s, UINT64_MAX), side + 1, s->now) != 0)
		sim_die(s, "no memory", 0);
	if (side != 1)
		return;
	l = cm_listen(&s->side[1], 0, SERVICE, NULL, &rc);
	l->backlog = 96;
	l = cm_listen(&s->side[1], 0, SERVICE_UD, NULL, &rc);
	l->backlog = 96;
	l->service = CM_UD;
	l->asks = true;
	l = cm_listen(&s->side[1], 0, SERVICE_UD_ALWAYS, NULL, &rc);
	l->service = CM_UD;
	l->ud = (struct cm_terms){ .qpn = ALWAYS_QPN, .qkey = UD_QKEY };
}

/** A side loses its memory. */
static void
crash(struct sim *s, uint32_t side)
{
	cm_fini(&s->side[side]);
	init_side(s, side);
	for (uint32_t n = 0; n < PAIRS; n++) {
		struct end *e = &s->pair[n].end[side];

		e->conn = NULL;
		e->lost = true;
		e->state = END_OVER;
	}
}

static void
deliver(struct sim *s, uint32_t at)
{
	const struct flight f = s->flight[at];
	struct cm_packet p = { .mad = f.out.mad, .len = MAD_LEN, .path = f.out.path };
	struct cm_verdict v;

	s->flight[at] = s->flight[--s->flights];
	memcpy(p.path.own_gid, f.out.path.peer_gid, 16);
	memcpy(p.path.peer_gid, f.out.path.own_gid, 16);
	if (s->verbose) {
		char line[160];

		mad_print(f.out.mad, line, sizeof(line));
		printf("%12.3f to %u: %s\n", (double)s->now / 1e6, f.to, line);
	}
	cm_receive(&s->side[f.to], &p, s->now, &v);
	sim_carry_out(s, f.to, &v);
}

/** The next thing that happens. @return false: nothing ever does. */
static bool
step(struct sim *s)
{
	ns_t next = UINT64_MAX;
	uint32_t flight = FLIGHT, plan = PLANS;
	struct cm_verdict v;

	for (uint32_t i = 0; i < s->flights; i++)
		if (s->flight[i].at < next) {
			next = s->flight[i].at;
			flight = i;
		}
	for (uint32_t i = 0; i < s->laters; i++)
		if (s->later[i].at < next) {
			next = s->later[i].at;
			plan = i;
		}
	for (uint32_t side = 0; side < 2; side++) {
		const tick_t t = wheel_next(&s->side[side].wheel);

		if (t == WHEEL_NEVER || t << TICK_SHIFT >= next)
			continue;
		if (t << TICK_SHIFT > s->now)
			s->now = t << TICK_SHIFT;
		while (cm_timer(&s->side[side], s->now, &v))
			sim_carry_out(s, side, &v);
		return true;
	}
	if (next == UINT64_MAX)
		return false;
	s->now = next > s->now ? next : s->now;
	if (plan != PLANS) {
		const struct later l = s->later[plan];

		s->later[plan] = s->later[--s->laters];
		sim_act(s, &l);
	} else {
		deliver(s, flight);
	}
	return true;
}

static void
finish(struct sim *s)
{
	for (uint32_t side = 0; side < 2; side++) {
		const struct cm *cm = &s->side[side];

		if (cm->n != 0 || cm->half_open != 0)
			sim_die(s, "connections are left", 0);
		for (uint32_t i = 0; i < CM_SOURCES; i++)
			if (cm->sources[i].half_open != 0)
				sim_die(s, "a source still has unfinished connections", 0);
		for (uint32_t i = 0; i < CM_LISTENERS; i++)
			if (cm->listeners[i].pending != 0)
				sim_die(s, "a listener still has unfinished connections", 0);
	}
	for (uint32_t n = 0; n < PAIRS; n++)
		for (uint32_t side = 0; side < 2; side++) {
			const struct end *e = &s->pair[n].end[side];

			if (e->lost || e->own_end || e->state == END_NONE)
				continue;
			if (e->state != END_OVER)
				sim_die(s, "one side was never told of the end", n);
			if (s->loss == 0 && !s->crash && !s->pair[n].refuse && !e->was_up &&
				!e->again && !s->pair[n].end[1 - side].own_end)
				sim_die(s, "it failed without any loss", n);
		}
}

static void
run(struct sim *s, uint64_t seed, bool verbose)
{
	static const uint32_t losses[] = { 0, 0, 10, 50, 200, 500 };
	uint32_t begun = 0, steps = 0;

	memset(s, 0, sizeof(*s));
	s->seed = seed;
	s->rand = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
	s->verbose = verbose;
	for (int i = 0; i < 8; i++)
		sim_random(s, 2);
	s->now = TIME_NS_PER_S;
	s->loss = losses[sim_random(s, ARRAY_LEN(losses))];
	s->twice = (uint32_t)sim_random(s, 3) * 100;
	s->delay = UINT64_C(100000) << sim_random(s, 10);
	s->crash = sim_random(s, 8) == 0;
	init_side(s, 0);
	init_side(s, 1);
	while (begun < PAIRS || s->flights != 0 || s->laters != 0 || s->side[0].n != 0 ||
		s->side[1].n != 0) {
		if (begun < PAIRS && (sim_random(s, 4) == 0 || s->side[0].n == 0))
			sim_begin(s, begun++);
		if (s->crash && sim_random(s, 400) == 0 && begun < PAIRS / 2)
			crash(s, (uint32_t)sim_random(s, 2));
		if (!step(s) && begun == PAIRS) {
			/* Who believes in a connection that nobody ends, ends it now. */
			bool any = false;

			for (uint32_t n = 0; n < PAIRS * 2; n++) {
				const struct end *e = &s->pair[n / 2].end[n % 2];

				if (e->conn == NULL || e->own_end || e->state != END_UP)
					continue;
				sim_later(s, 0, n % 2, ACT_DISCONNECT, n / 2);
				any = true;
			}
			if (!any)
				break;
		}
		if (++steps > 1000000)
			sim_die(s, "it never ends", 0);
	}
	finish(s);
	cm_fini(&s->side[0]);
	cm_fini(&s->side[1]);
}

int
main(int argc, char **argv)
{
	static const struct option options[] = { { "seeds", 1, NULL, 's' },
		{ "first", 1, NULL, 'f' }, { "connections", 1, NULL, 'c' },
		{ "verbose", 1, NULL, 'v' }, { NULL, 0, NULL, 0 } };
	uint64_t seeds = 1, first = 1, connections = 0, n = 0, sent = 0, up = 0, no = 0, ud = 0;
	static struct sim s;
	int o;

	while ((o = getopt_long(argc, argv, "", options, NULL)) != -1) {
		const uint64_t value = optarg != NULL ? args_number(optarg, USAGE) : 0;

		switch (o) {
		case 's':
			seeds = value;
			break;
		case 'f':
			first = value;
			break;
		case 'c':
			connections = value;
			break;
		case 'v':
			run(&s, value, true);
			return 0;
		default:
			args_bad(USAGE);
		}
	}
	if (optind != argc)
		args_bad(USAGE);
	args_seeds(first, seeds, USAGE);
	for (; n < seeds || n * PAIRS < connections; n++) {
		run(&s, first + n, false);
		sent += s.sent;
		up += s.up;
		no += s.refused;
		ud += s.datagrams;
	}
	printf("%" PRIu64 " seeds, %" PRIu64 " attempts, %" PRIu64 " messages, %" PRIu64
	       " ends established, %" PRIu64 " told of datagrams, %" PRIu64 " refused: ok\n",
		n, n * PAIRS, sent, up, ud, no);
	return 0;
}
