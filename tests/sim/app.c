/* SPDX-License-Identifier: BSD-3-Clause */
/* The applications: they post, do harm now and then, and connect anew what has failed. */
#include "sim.h"

#define STUCK_NS (20 * TIME_NS_PER_S)

void
end_error(struct sim *s, struct end *e, bool keep_answers)
{
	TRACE(s, e, "ERR: %u work requests are flushed", e->req.tail - e->done);
	e->state = END_ERR;
	e->busy = false;
	s->t.flushed += e->req.tail - e->done;
	e->active = false;
	e->rq_head = e->rq_tail;
	wheel_cancel(&s->wheel, &e->timer);
	if (keep_answers)
		return;
	resp_answers_clear(&e->answers);
	e->ack_pending = false;
}

static void
harm_end(struct sim *s, struct end *e)
{
	struct requester_verdict v;
	struct mr *m;

	switch (below(&s->g, 10)) {
	case 0:
		m = &e->mr[below(&s->g, MRS)];
		TRACE(s, e, "region %08x is deregistered", m->key);
		mr_remove(e, m);
		break;
	case 1:
		TRACE(s, e, "doomed regions are deregistered");
		mr_remove(e, &e->doomed_pool);
		mr_remove(e, &e->doomed_sink);
		e->doomed_gone = true;
		break;
	case 2:
		TRACE(s, e, "modified to ERR");
		end_error(s, e, false);
		break;
	case 3:
		e->hold_receives = s->now + below(&s->g, 40000000);
		break;
	case 4: /* classes C and F */
		TRACE(s, e, "send context corrupt, or send CQ full");
		if (rarely(&s->g, 2))
			requester_context_fault(&e->req, &v);
		else
			requester_cq_overflow(&e->req, &v);
		CHECK(s, (v.act & REQACT_EVENT) != 0 && (v.act & REQACT_ERROR) == 0 && v.event == 1,
			"REQ-CLS-C-01: act %x, event %u", v.act, v.event);
		end_error(s, e, false);
		break;
	case 5:
		TRACE(s, e, "receive CQ is full from now on");
		e->cq_full = true;
		break;
	case 6:
		e->req.window = range(&s->g, 1, 64);
		break;
	default:
		send_drain(s, e, true);
		break;
	}
}

static void
harm_link(struct sim *s)
{
	struct link *l = &s->link[below(&s->g, 2)];

	if (rarely(&s->g, 3) && s->hostile)
		l->down_until = s->now + below(&s->g, rarely(&s->g, 4) ? 20000000 : 300000);
	else
		link_random(s, l);
}

static void
reset_pair(struct sim *s, uint32_t pair)
{
	TRACE(s, &s->end[2 * pair], "RESET and connected anew");
	s->t.resets++;
	pair_settle(s, pair);
	pair_connect(s, pair);
}

/** Will this end find out by itself that its peer is gone? */
static bool
is_waiting(struct sim *s, struct end *e)
{
	if (e->state == END_ERR)
		return false;
	if (e->draining)
		send_drain(s, e, false);
	if (e->req.tail == e->done && e->req.timeout != 0)
		app_post(s, e, 1);
	return e->req.timeout != 0 && e->req.tail != e->done;
}

/** At least one end of the pair is in ERR. */
static void
dead_pair(struct sim *s, uint32_t pair)
{
	struct pair *p = &s->pair[pair];
	struct end *a = &s->end[2 * pair], *b = a + 1;

	if (p->reset_at == 0) {
		p->patient = s->closing || rarely(&s->g, 2);
		p->reset_at = s->now + 1 + below(&s->g, rarely(&s->g, 3) ? 5000000 : 100000);
	}
	if (p->patient) {
		bool waits = is_waiting(s, a);

		if (is_waiting(s, b) || waits)
			return;
	}
	if (s->now < p->reset_at)
		return;
	if (s->closing)
		p->over = true;
	else
		reset_pair(s, pair);
}

/** Without a timer what is lost stays lost. */
static void
give_up(struct sim *s, struct end *e)
{
	if (e->req.timeout != 0 || e->req.tail == e->done || s->now < e->progress_at + STUCK_NS)
		return;
	TRACE(s, e, "stuck without a timer: modified to ERR");
	oracle_stuck(s, e);
	end_error(s, e, false);
}

static void
step_end(struct sim *s, struct end *e)
{
	struct rng *g = &s->g;

	if (rarely(g, s->starve))
		e->hold_receives = s->now + below(g, rarely(g, 4) ? 3000000 : 100000);
	if (s->closing)
		app_receives(s, e, RQ_SLOTS);
	else if (s->now >= e->hold_receives)
		app_receives(s, e, below(g, 8));
	if (e->draining && (e->drained || s->closing) && (s->closing || rarely(g, 8)))
		send_drain(s, e, false);
	if (!s->closing)
		app_post(s, e, below(g, 6));
	give_up(s, e);
}

static void
step_pair(struct sim *s, uint32_t pair)
{
	struct end *a = &s->end[2 * pair], *b = a + 1;

	if (s->pair[pair].over)
		return;
	if (a->state == END_ERR || b->state == END_ERR) {
		dead_pair(s, pair);
		return;
	}
	step_end(s, a);
	step_end(s, b);
	if (!s->closing && rarely(&s->g, s->chaos)) {
		struct end *e = below(&s->g, 2) ? a : b;

		if (rarely(&s->g, 8))
			reset_pair(s, pair);
		else if (rarely(&s->g, 3))
			harm_link(s);
		else if (!e->draining)
			harm_end(s, e);
	}
}

void
app_step(struct sim *s)
{
	if (!s->closing && s->packets >= s->target_packets) {
		s->closing = true;
		s->t.seeds++;
		if (rarely(&s->g, 2))
			for (uint32_t i = 0; i < 2; i++)
				s->link[i] =
					(struct link){ .latency = 1000, .last = s->link[i].last };
	}
	for (uint32_t i = 0; i < s->pairs; i++)
		step_pair(s, i);
}
