/* SPDX-License-Identifier: BSD-3-Clause */
#include "ask.h"

#include <errno.h>
#include <string.h>

#include "internal.h"
#include "log.h"

/*
 * A cookie is turn << 8 | slot; turns begin at 1, so 0 is never a cookie. Messages that need no
 * answer carry 0.
 */
#define SLOT_BITS 8
_Static_assert(ASK_SLOTS == 1 << SLOT_BITS, "cookies have room for the slots");

/* A clock that stands still must not make a wait endless. */
#define MAX_TURNS 50000000u

struct patience {
	ns_t until;
	uint32_t turns;
};

static struct patience
patience_start(const struct control *c, uint16_t worker)
{
	const ns_t length = c->asks.silent[worker] ? ASK_SHORT_NS : ASK_TIMEOUT_NS;

	return (struct patience){ c->env.clock() + length, 0 };
}

/* Let the workers run a little. @return false: waited long enough. */
static bool
patience_turn(struct control *c, struct patience *p)
{
	if (++p->turns > MAX_TURNS || c->env.clock() > p->until)
		return false;
	if (c->env.pump != NULL)
		c->env.pump(c->env.pump_ctx);
	ask_drain(c);
	return true;
}

static struct ask *
free_slot(struct asks *a)
{
	for (uint32_t i = 0; i < ASK_SLOTS && a->busy < ASK_SLOTS; i++) {
		struct ask *s = &a->slot[a->hint++ % ASK_SLOTS];

		if (s->state == ASK_FREE)
			return s;
	}
	return NULL;
}

struct ask *
ask_send(struct control *c, const struct ask_request *q)
{
	struct patience p = patience_start(c, q->worker);
	struct mbox_msg m = { .type = q->type };
	struct ask *s;

	while ((s = free_slot(&c->asks)) == NULL) {
		if (!patience_turn(c, &p))
			return NULL;
	}
	s->turn++;
	s->worker = q->worker;
	s->late = NULL;
	s->arg = NULL;
	if (q->attr != NULL)
		s->attr = *q->attr;
	m.cookie = (uint64_t)s->turn << SLOT_BITS | (uint64_t)(s - c->asks.slot);
	if (q->client != NULL) {
		m.client = q->client;
	} else if (q->sides != NULL) {
		m.sides = q->sides;
	} else {
		m.qp.qp = q->qp;
		m.qp.attr = &s->attr;
		m.qp.snapshot = &s->snapshot;
		m.qp.mask = q->mask;
	}
	while (mbox_send_down(c->env.workers[q->worker].mbox, &m) != 0) {
		if (!patience_turn(c, &p))
			return NULL;
	}
	s->state = ASK_SENT;
	c->asks.busy++;
	return s;
}

int
ask_wait(struct control *c, struct ask *a)
{
	struct patience p = patience_start(c, a->worker);

	ask_drain(c);
	while (a->state == ASK_SENT) {
		if (patience_turn(c, &p))
			continue;
		a->state = ASK_FORGOTTEN;
		c->asks.silent[a->worker] = true;
		return -ETIMEDOUT;
	}
	return a->rc;
}

void
ask_release(struct control *c, struct ask *a)
{
	a->state = ASK_FREE;
	c->asks.busy--;
}

void
ask_forget(struct ask *a, void (*late)(struct control *c, struct ask *a), void *arg)
{
	a->late = late;
	a->arg = arg;
	a->state = ASK_FORGOTTEN;
}

int
ask_and_wait(struct control *c, const struct ask_request *q)
{
	struct ask *a = ask_send(c, q);
	int rc;

	if (a == NULL)
		return -EBUSY;
	rc = ask_wait(c, a);
	if (a->state == ASK_DONE)
		ask_release(c, a);
	return rc;
}

int
ask_all(struct control *c)
{
	struct ask *asked[CONTROL_MAX_WORKERS];
	int rc = 0;

	for (uint32_t w = 0; w < c->env.workers_n; w++) {
		const struct ask_request q = { .type = MBOX_SYNC, .worker = (uint16_t)w };

		asked[w] = ask_send(c, &q);
	}
	for (uint32_t w = 0; w < c->env.workers_n; w++) {
		if (asked[w] == NULL || ask_wait(c, asked[w]) == -ETIMEDOUT)
			rc = -ETIMEDOUT;
		else
			ask_release(c, asked[w]);
	}
	return rc;
}

static void
take_done(struct control *c, const struct mbox_msg *m)
{
	struct ask *s = &c->asks.slot[m->cookie & (ASK_SLOTS - 1)];

	if (m->type != MBOX_DONE || m->cookie == 0 || s->turn != m->cookie >> SLOT_BITS)
		return;
	s->rc = m->rc;
	c->asks.silent[s->worker] = false;
	if (s->state == ASK_SENT) {
		s->state = ASK_DONE;
	} else if (s->state == ASK_FORGOTTEN) {
		if (s->late != NULL)
			s->late(c, s);
		ask_release(c, s);
	}
}

uint32_t
ask_drain(struct control *c)
{
	struct mbox_msg m[32];
	uint32_t total = 0;

	for (uint32_t w = 0; w < c->env.workers_n; w++) {
		unsigned int n;

		do {
			n = mbox_recv_done(c->env.workers[w].mbox, m, ARRAY_LEN(m));
			for (unsigned int i = 0; i < n; i++)
				take_done(c, &m[i]);
			total += n;
		} while (n == ARRAY_LEN(m));
	}
	return total;
}

int
ask_refuse(struct control *c, uint16_t worker, int rc, struct refusal *r)
{
	const uint32_t lcore = c->env.workers[worker].lcore;

	if (rc == -ETIMEDOUT)
		refuse(r, ETIMEDOUT, "worker %u (lcore %u) does not answer", worker, lcore);
	else if (rc == -EBUSY)
		refuse(r, EBUSY, "worker %u (lcore %u) takes no messages: its queue is full",
			worker, lcore);
	else
		refuse(r, -rc, "worker %u (lcore %u) refused: %s", worker, lcore, strerror(-rc));
	return rc;
}
