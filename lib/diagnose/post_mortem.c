/* SPDX-License-Identifier: BSD-3-Clause */
#include "post_mortem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "diagnose.h"
#include "explain_net.h"
#include "log.h"
#include "requester.h"
#include "wall.h"

#define LINES_AT_ONCE 16
#define LINE_EVERY    (250 * TIME_NS_PER_MS)
#define TELL_EVERY    TIME_NS_PER_S

/* ---- owners ---------------------------------------------------------------------------------- */

/* Applications of one user, or what belongs to nobody: those who share a share. */
static uint64_t
user_of(const struct failed_owner *o)
{
	return o->kind == FAILED_OF_CLIENT ? o->uid : UINT64_MAX;
}

static uint64_t
application_of(const struct failed_owner *o)
{
	return o->kind == FAILED_OF_CLIENT ? o->client : UINT64_MAX;
}

static struct failed_owner
owner_of(const struct admin_qp *rec)
{
	const struct owner *of = rec->shared->owner;
	struct failed_owner o = { .kind = rec->shared->configured ? FAILED_OF_CONFIGURATION
								  : FAILED_OF_OPERATOR };

	if (of == NULL)
		return o;
	o.kind = FAILED_OF_CLIENT;
	o.client = of->id;
	o.pid = of->process.pid;
	o.uid = of->process.uid;
	memcpy(o.name, of->name, sizeof(o.name));
	return o;
}

/* ---- records --------------------------------------------------------------------------------- */

struct share {
	uint64_t of;
	uint32_t n;
	uint32_t oldest; /* place in order[] */
};

/*
 * Place of the oldest record of the owner that has most of them, with the new one counted.
 * @param user only records of this one's user count; NULL: all.
 */
static uint32_t
oldest_of_most(const struct post_mortem *p, const struct failed_owner *newcomer,
	const struct failed_owner *user, uint64_t (*of)(const struct failed_owner *o))
{
	struct share s[POST_MORTEM_MAX];
	uint32_t n = 0, most = 0;

	for (uint32_t i = 0; i < p->n; i++) {
		const struct failed_owner *o = &p->v[p->order[i]].owner;
		uint32_t k = 0;

		if (user != NULL && user_of(o) != user_of(user))
			continue;
		while (k < n && s[k].of != of(o))
			k++;
		if (k == n)
			s[n++] = (struct share){ .of = of(o), .oldest = i };
		s[k].n++;
	}
	for (uint32_t k = 0; k < n; k++) {
		s[k].n += s[k].of == of(newcomer);
		if (s[k].n > s[most].n)
			most = k;
	}
	return s[most].oldest;
}

/* Room for one more, as the newest; NULL: no memory. */
static struct failed_qp *
room_for(struct post_mortem *p, const struct failed_owner *o)
{
	uint32_t at, place;

	if (p->v == NULL)
		p->v = calloc(POST_MORTEM_MAX, sizeof(p->v[0]));
	if (p->v == NULL)
		return NULL;
	p->total++;
	if (p->n < POST_MORTEM_MAX) {
		p->order[p->n] = (uint16_t)p->n;
		return &p->v[p->n++];
	}
	at = oldest_of_most(p, o, NULL, user_of);
	at = oldest_of_most(p, o, &p->v[p->order[at]].owner, application_of);
	place = p->order[at];
	memmove(&p->order[at], &p->order[at + 1], (p->n - 1 - at) * sizeof(p->order[0]));
	p->order[p->n - 1] = (uint16_t)place;
	return &p->v[place];
}

/* .failed 0: it did not fail of retries that were used up. */
static struct explain_when
when_of(const struct admin_qp *rec, const struct qp_error *e)
{
	return (struct explain_when){
		.failed = explain_given_up(e), .lost = qp_nowhere(rec->qp, e->psn), .una = e->psn
	};
}

static void
surroundings(struct diagnose *dg, struct admin_qp *rec, struct failed_qp *q)
{
	const struct explain_when when = when_of(rec, &q->f.error);

	q->port = rec->port;
	q->port_down = rec->port >= 0 && !rec->attr.path.local &&
		       link_is_down(dg->net, (uint16_t)rec->port);
	q->neigh = FAILED_NO_NEIGHBOR;
	if (rec->link.neigh != NULL) {
		q->neigh = rec->link.neigh->state;
		q->neigh_tries = rec->link.neigh->tries;
	}
	if (when.failed != 0)
		explain_net_text(dg, rec, &when, q->network, sizeof(q->network));
}

static void
keep(struct diagnose *dg, struct admin_qp *rec, const struct failure *f)
{
	const struct failed_owner o = owner_of(rec);
	struct failed_qp *q = room_for(&dg->post_mortem, &o);

	rec->failed = true;
	if (q == NULL)
		return;
	memset(q, 0, sizeof(*q));
	q->f = *f;
	q->owner = o;
	q->worker = rec->worker;
	q->timeout = rec->attr.timeout;
	q->retry_cnt = rec->attr.retry_cnt;
	q->rnr_retry = rec->attr.rnr_retry;
	q->path_mtu = rec->attr.path_mtu;
	q->recorder = rec->trace;
	if (rec->story != NULL)
		q->story = *rec->story;
	surroundings(dg, rec, q);
}

/* ---- the log --------------------------------------------------------------------------------- */

void
failed_owner_text(const struct failed_owner *o, char *text, size_t room)
{
	static const char *const kinds[] = { [FAILED_OF_CONFIGURATION] = "the configuration",
		[FAILED_OF_OPERATOR] = "the operator" };

	if (o->kind != FAILED_OF_CLIENT)
		snprintf(text, room, "%s", kinds[o->kind]);
	else
		snprintf(text, room, "client %u (pid %d, uid %u%s%s)", o->client, o->pid, o->uid,
			o->name[0] != '\0' ? ", " : "", o->name);
}

static void
tell_left_out(struct failed_lines *l)
{
	char owner[FAILED_OWNER_TEXT];

	if (l->left_out == 0)
		return;
	failed_owner_text(&l->last_left_out, owner, sizeof(owner));
	log_warn("%u more QPs failed, the last of %s: rocelanectl qp post-mortem", l->left_out,
		owner);
	l->left_out = 0;
}

/*
 * A user who has no place gets that of who was quiet for longest, with what is left of its lines:
 * users who take turns have no more lines than there are places for.
 */
static struct failed_lines *
lines_of(struct post_mortem *p, const struct failed_owner *o)
{
	struct failed_lines *l = &p->lines[0];

	for (uint32_t i = 0; i < p->lines_n; i++) {
		if (user_of(&p->lines[i].user) == user_of(o))
			return &p->lines[i];
		if (p->lines[i].full_at < l->full_at)
			l = &p->lines[i];
	}
	if (p->lines_n < FAILED_USERS)
		l = &p->lines[p->lines_n++];
	l->user = *o;
	return l;
}

static bool
may_write(struct diagnose *dg, const struct failed_owner *o)
{
	struct failed_lines *l = lines_of(&dg->post_mortem, o);

	if (l->full_at < dg->env->now)
		l->full_at = dg->env->now;
	if (l->full_at < dg->env->now + LINES_AT_ONCE * LINE_EVERY) {
		l->full_at += LINE_EVERY;
		return true;
	}
	l->left_out++;
	l->last_left_out = *o;
	if (!dg->post_mortem.untold)
		dg->post_mortem.tell_at = dg->env->now + TELL_EVERY;
	dg->post_mortem.untold = true;
	return false;
}

static void
write_line(struct diagnose *dg, const struct admin_qp *rec, const struct failure *f)
{
	const struct failed_owner o = owner_of(rec);
	const bool fed = qp_limits(rec->qp).send_feed && (f->error.flags & QP_ERROR_SEND) != 0;
	const struct explain_when at = when_of(rec, &f->error);
	char owner[FAILED_OWNER_TEXT], when[WALL_TEXT], what[FAILURE_TEXT], inside[512];
	bool ours;

	if (!may_write(dg, &o))
		return;
	ours = at.failed != 0 && explain_inside_text(dg, rec, &at, inside, sizeof(inside));
	failed_owner_text(&o, owner, sizeof(owner));
	wall_text(dg->env, f->error.time_ns, when);
	failure_text(dg, f, what, sizeof(what));
	log_warn("QP %u of %s failed at %s: %s%s%s%s%s%s", f->qpn, owner, when, what,
		ours ? "; " : "", ours ? inside : "",
		(f->error.flags & QP_ERROR_COMPLETED) != 0 ? "; completed with " : "",
		(f->error.flags & QP_ERROR_COMPLETED) != 0
			? verbs_wc_status_name(f->error.wc_status)
			: "",
		fed ? "; its send_feed stopped" : "");
}

bool
post_mortem_has(const struct diagnose *dg, uint32_t qpn)
{
	const struct post_mortem *p = &dg->post_mortem;

	for (uint32_t i = 0; i < p->n; i++)
		if (p->v[i].f.qpn == qpn)
			return true;
	return false;
}

const char *
post_mortem_network(const struct diagnose *dg, uint32_t qpn, ns_t time_ns)
{
	const struct post_mortem *p = &dg->post_mortem;

	for (uint32_t i = 0; i < p->n; i++)
		if (p->v[i].f.qpn == qpn && p->v[i].f.error.time_ns == time_ns)
			return p->v[i].network;
	return NULL;
}

void
post_mortem_poll(struct diagnose *dg)
{
	struct post_mortem *p = &dg->post_mortem;

	if (!p->untold || dg->env->now < p->tell_at)
		return;
	p->untold = false;
	for (uint32_t i = 0; i < p->lines_n; i++)
		tell_left_out(&p->lines[i]);
}

/* ---- from the workers ------------------------------------------------------------------------ */

/* As far as the message has it; the QP was reset meanwhile. */
static struct qp_error
error_of(const struct mbox_msg *m)
{
	return (struct qp_error){ .rule = m->ev.rule,
		.opcode = m->ev.opcode,
		.syndrome = m->ev.syndrome,
		.fatal = m->ev.fatal,
		.fault = m->ev.fault,
		.psn = m->ev.psn,
		.flags = (m->ev.rule & QP_RULE_REQUESTER) != 0 ? QP_ERROR_SEND : 0,
		.time_ns = m->ev.time_ns,
		.trace_at = m->ev.trace_at };
}

void
post_mortem_add(struct diagnose *dg, struct admin_qp *rec, const struct mbox_msg *m)
{
	const struct qp_error *last = qp_last_error(rec->qp);
	const struct qp_error e = last->time_ns != 0 ? *last : error_of(m);
	const struct failure f = failure_of(rec, &e);

	keep(dg, rec, &f);
	write_line(dg, rec, &f);
}

void
post_mortem_end(struct diagnose *dg, struct admin_qp *rec, enum admin_end how)
{
	struct post_mortem *p = &dg->post_mortem;
	const struct qp_error *last = qp_last_error(rec->qp);
	const struct trace *t = dg->env->w.workers[rec->worker].trace;

	if (!rec->failed && last->time_ns != 0) {
		const struct failure f = failure_of(rec, last);

		keep(dg, rec, &f);
		write_line(dg, rec, &f);
	}
	for (uint32_t i = p->n; rec->failed && i-- > 0;) {
		struct failed_qp *q = &p->v[p->order[i]];

		if (q->f.qpn != rec->qpn || q->end != ADMIN_END_NONE)
			continue;
		q->end = (uint8_t)how;
		q->ended_ns = dg->env->now;
		if (q->story.n != 0)
			story_go_on(&q->story, t, rec->qpn);
		if (how != ADMIN_END_RESET)
			q->flushed = qp_counter(rec->qp, STAT_resp_cqe_flush_error) +
				     qp_counter(rec->qp, STAT_req_cqe_flush_error);
	}
	rec->failed = false;
}

void
post_mortem_fini(struct diagnose *dg)
{
	free(dg->post_mortem.v);
	dg->post_mortem.v = NULL;
	dg->post_mortem.n = 0;
}
