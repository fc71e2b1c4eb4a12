/* SPDX-License-Identifier: BSD-3-Clause */
#include "ask.h"

#include <errno.h>
#include <string.h>

#include "env.h"
#include "invariant.h"
#include "log.h"

/*
 * A cookie is turn << 8 | slot; turns begin at 1, so 0 is never a cookie. Messages that need no
 * answer carry 0.
 */
#define SLOT_BITS 8
_Static_assert(ASK_SLOTS == 1 << SLOT_BITS, "cookies have room for the slots");

/* A clock that stands still must not make a wait endless. */
#define MAX_TURNS 50000000u

struct ask_patience
ask_patience(const struct env *env)
{
	return (struct ask_patience){ .most = ASK_TIMEOUT_NS, .looked = env->w.clock() };
}

static struct ask_patience
patience_start(const struct env *env, uint16_t worker)
{
	struct ask_patience p = ask_patience(env);

	if (env->asks.silent[worker])
		p.most = ASK_SHORT_NS;
	return p;
}

bool
ask_patience_turn(struct env *env, struct ask_patience *p)
{
	const ns_t now = env->w.clock(), gap = now - p->looked;

	p->looked = now;
	p->waited += gap < ASK_GAP_NS ? gap : ASK_GAP_NS;
	if (++p->turns > MAX_TURNS || p->waited > p->most)
		return false;
	if (p->waited >= ASK_BRIEF_NS && env->w.rest != NULL)
		env->w.rest();
	else if (env->w.pump != NULL)
		env->w.pump(env->w.pump_ctx);
	ask_drain(env);
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

/* Take a free slot, and fill it; `m` gets what it is sent with. */
static void
fill(struct env *env, struct ask *s, const struct ask_request *q, struct mbox_msg *m)
{
	*m = q->msg;
	s->state = ASK_SENT; /* who answers late while we wait for room may ask, too */
	env->asks.busy++;
	s->turn++;
	s->worker = q->worker;
	s->late = NULL;
	s->arg = NULL;
	m->cookie = (uint64_t)s->turn << SLOT_BITS | (uint64_t)(s - env->asks.slot);
	if (m->type == MBOX_QP_MODIFY) {
		s->attr = *m->modify.attr;
		m->modify.attr = &s->attr;
	} else if (m->type == MBOX_QP_ATTACH) {
		s->settings = *m->attach.settings;
		m->attach.settings = &s->settings;
	} else if (m->type == MBOX_QP_QUERY) {
		m->query.snapshot = &s->snapshot;
	}
}

/* A question more is no answer, and slots are left for workers that answer. */
static bool
is_in_vain(const struct asks *a, uint16_t worker)
{
	uint32_t held = 0;

	if (!a->silent[worker])
		return false;
	for (uint32_t i = 0; i < ASK_SLOTS; i++)
		held += a->slot[i].state != ASK_FREE && a->silent[a->slot[i].worker];
	return held >= ASK_SILENT;
}

struct ask *
ask_send(struct env *env, const struct ask_request *q)
{
	struct ask_patience p = patience_start(env, q->worker);
	struct mbox_msg m;
	struct ask *s;

	if (env->asks.silent[q->worker])
		ask_drain(env);
	if (is_in_vain(&env->asks, q->worker))
		return NULL;
	while ((s = free_slot(&env->asks)) == NULL) {
		if (!ask_patience_turn(env, &p))
			return NULL;
	}
	fill(env, s, q, &m);
	while (mbox_send_down(env->w.workers[q->worker].mbox, &m) != 0) {
		if (!ask_patience_turn(env, &p)) {
			ask_release(env, s);
			return NULL;
		}
	}
	return s;
}

struct ask *
ask_try(struct env *env, const struct ask_request *q)
{
	const bool may =
		env->asks.busy < ASK_SLOTS - ASK_KEPT && !is_in_vain(&env->asks, q->worker);
	struct ask *s = may ? free_slot(&env->asks) : NULL;
	struct mbox_msg m;

	if (s == NULL)
		return NULL;
	fill(env, s, q, &m);
	if (mbox_send_down(env->w.workers[q->worker].mbox, &m) != 0) {
		ask_release(env, s);
		return NULL;
	}
	return s;
}

int
ask_wait(struct env *env, struct ask *a)
{
	struct ask_patience p = patience_start(env, a->worker);

	ask_drain(env);
	while (a->state == ASK_SENT) {
		if (ask_patience_turn(env, &p))
			continue;
		a->state = ASK_FORGOTTEN;
		env->asks.silent[a->worker] = true;
		return -ETIMEDOUT;
	}
	return a->done.rc;
}

int
ask_wait_again(struct env *env, struct ask *a)
{
	ASSERT(a->state == ASK_FORGOTTEN);
	a->state = ASK_SENT;
	return ask_wait(env, a);
}

void
ask_release(struct env *env, struct ask *a)
{
	a->state = ASK_FREE;
	env->asks.busy--;
}

void
ask_forget(struct ask *a, void (*late)(void *ctx, struct ask *a), void *ctx, void *arg)
{
	a->late = late;
	a->late_ctx = ctx;
	a->arg = arg;
	a->state = ASK_FORGOTTEN;
}

int
ask_and_answer(struct env *env, const struct ask_request *q, struct mbox_done *done)
{
	struct ask *a = ask_send(env, q);
	int rc;

	if (a == NULL)
		return -EBUSY;
	rc = ask_wait(env, a);
	if (a->state == ASK_DONE) {
		*done = a->done;
		ask_release(env, a);
	}
	return rc;
}

int
ask_and_wait(struct env *env, const struct ask_request *q)
{
	struct mbox_done done;

	return ask_and_answer(env, q, &done);
}

int
ask_all(struct env *env)
{
	struct ask *asked[ENV_MAX_WORKERS];
	int rc = 0;

	for (uint32_t w = 0; w < env->w.workers_n; w++) {
		const struct ask_request q = { .worker = (uint16_t)w, .msg.type = MBOX_SYNC };

		asked[w] = ask_send(env, &q);
	}
	for (uint32_t w = 0; w < env->w.workers_n; w++) {
		if (asked[w] == NULL || ask_wait(env, asked[w]) == -ETIMEDOUT)
			rc = -ETIMEDOUT;
		else
			ask_release(env, asked[w]);
	}
	return rc;
}

bool
ask_all_answer(const struct env *env)
{
	for (uint32_t w = 0; w < env->w.workers_n; w++)
		if (env->asks.silent[w])
			return false;
	return true;
}

static void
take_done(struct env *env, const struct mbox_msg *m)
{
	struct ask *s = &env->asks.slot[m->cookie & (ASK_SLOTS - 1)];
	struct ask late;

	if (m->type != MBOX_DONE || m->cookie == 0 || s->turn != m->cookie >> SLOT_BITS)
		return;
	s->done = m->done;
	env->asks.silent[s->worker] = false;
	if (s->state == ASK_SENT) {
		s->state = ASK_DONE;
	} else if (s->state == ASK_FORGOTTEN) {
		late = *s;
		ask_release(env, s); /* what follows from the answer may be a question */
		if (late.late != NULL)
			late.late(late.late_ctx, &late);
	}
}

uint32_t
ask_drain(struct env *env)
{
	struct mbox_msg m[32];
	uint32_t total = 0;

	for (uint32_t w = 0; w < env->w.workers_n; w++) {
		unsigned int n;

		do {
			n = mbox_recv_done(env->w.workers[w].mbox, m, ARRAY_LEN(m));
			for (unsigned int i = 0; i < n; i++)
				take_done(env, &m[i]);
			total += n;
		} while (n == ARRAY_LEN(m));
	}
	return total;
}

int
ask_refuse(struct env *env, uint16_t worker, int rc, struct refusal *r)
{
	const uint32_t lcore = env->w.workers[worker].lcore;

	if (rc == -ETIMEDOUT)
		refuse(r, ETIMEDOUT, "worker %u (lcore %u) does not answer", worker, lcore);
	else if (rc == -EBUSY && env->asks.silent[worker])
		refuse(r, EBUSY, "worker %u (lcore %u) does not answer, and was asked often enough",
			worker, lcore);
	else if (rc == -EBUSY)
		refuse(r, EBUSY, "worker %u (lcore %u) takes no messages: its queue is full",
			worker, lcore);
	else
		refuse(r, -rc, "worker %u (lcore %u) refused: %s", worker, lcore, strerror(-rc));
	return rc;
}
