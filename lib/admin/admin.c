/* SPDX-License-Identifier: BSD-3-Clause */
#include "admin.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "admin_ah.h"
#include "admin_mcast.h"
#include "admin_open.h"
#include "ask.h"
#include "log.h"

#define UNWANTED_TURN 16 /* of those that go later, looked at in a turn */
#define UNWANTED_NS   (100 * TIME_NS_PER_MS)

int
admin_init(struct admin *adm)
{
	TAILQ_INIT(&adm->mcasts);
	TAILQ_INIT(&adm->unwanted);
	TAILQ_INIT(&adm->owed);
	memset(adm->mcasts_left, true, sizeof(adm->mcasts_left));
	adm->slots = calloc(adm->env->w.qps->entries, sizeof(adm->slots[0]));
	return adm->slots != NULL ? 0 : -ENOMEM;
}

struct admin_qp *
admin_find(struct admin *adm, uint32_t qpn)
{
	struct admin_slot *slot;

	if (adm->slots == NULL) /* the last events may come after the last QP */
		return NULL;
	slot = &adm->slots[qpn & adm->env->w.qps->mask];
	return qpn != 0 && admin_slot_qpn(slot) == qpn ? admin_slot_rec(adm, slot) : NULL;
}

struct admin_qp *
admin_get(struct admin *adm, uint32_t qpn, struct refusal *r)
{
	struct admin_qp *rec = admin_find(adm, qpn);

	if (rec == NULL)
		refuse(r, ENOENT, "qp_num %u does not exist", qpn);
	return rec;
}

struct admin_qp *
admin_next(struct admin *adm, uint32_t *slot)
{
	while (*slot < adm->env->w.qps->entries) {
		struct admin_qp *rec = admin_slot_rec(adm, &adm->slots[(*slot)++]);

		if (rec != NULL)
			return rec;
	}
	return NULL;
}

enum qp_state
admin_state(const struct admin_qp *rec)
{
	return qp_state_now(rec->qp);
}

int
admin_refuse_pending(const struct admin_qp *rec, struct refusal *r)
{
	return refuse(r, EBUSY, "QP %u: worker %u has not answered the request before", rec->qpn,
		rec->worker);
}

int
admin_refuse_owed(const struct admin_qp *rec, struct refusal *r)
{
	return refuse(r, EBUSY,
		"QP %u has moved, and a worker takes no messages: its queue is full", rec->qpn);
}

static void
release(struct admin *adm, struct admin_qp *rec)
{
	struct owner *owner = rec->shared->owner;

	if (rec->work != NULL) /* the worker may never have taken it */
		qp_work_take(rec->qp, rec->work);
	qp_free(rec->qp);
	if (owner != NULL) {
		TAILQ_REMOVE(&owner->qps, rec, of_owner);
		owner->qps_n--;
		owner_rings_return(owner, &rec->rings);
	}
	admin_shared_put(adm, rec->shared);
	free(rec);
}

/* Forget a QP that is detached. */
static void
drop(struct admin *adm, struct admin_qp *rec)
{
	struct admin_slot *slot = &adm->slots[rec->qpn & adm->env->w.qps->mask];

	neigh_leave(adm->net, &rec->link);
	neigh_leave(adm->net, &rec->alt_link);
	admin_ahs_free(adm, rec);
	admin_mcast_leave(adm, rec);
	admin_open_forget(rec);
	adm->objects->up.gone(adm->objects->up.ctx, OBJECT_QP, rec->qpn);
	admin_slot_set(slot, NULL);
	slot->last_qpn = rec->qpn;
	adm->qps_n--;
	adm->worker_qps[rec->worker]--;
	rec->pd->users--;
	object_mws_leave(rec->pd, rec->qpn);
	if (rec->send_cq != NULL)
		atomic_fetch_sub_explicit(&rec->send_cq->q.users, 1, memory_order_relaxed);
	if (rec->recv_cq != NULL)
		atomic_fetch_sub_explicit(&rec->recv_cq->q.users, 1, memory_order_relaxed);
	if (rec->xrcd != NULL)
		rec->xrcd->users--;
	if (rec->srq != NULL)
		rec->srq->q.users--;
	if (rec->feed != NULL)
		object_region_retire(adm->objects, rec->feed);
	adm->up.left(adm->up.ctx, rec,
		rec->shared->owner != NULL && rec->shared->owner->gone ? ADMIN_END_OWNER
								       : ADMIN_END_DESTROYED);
	if (rec->unwanted)
		TAILQ_REMOVE(&adm->unwanted, rec, of_unwanted);
	rec->unwanted = false;
	admin_owed_forget(adm, rec);
	rec->doomed = true;
	if (rec->holds == 0)
		release(adm, rec);
}

void
admin_hold(struct admin_qp *rec)
{
	rec->holds++;
}

void
admin_put(struct admin *adm, struct admin_qp *rec)
{
	if (--rec->holds == 0 && rec->doomed)
		release(adm, rec);
}

int
admin_destroy(struct admin *adm, struct admin_qp *rec, struct refusal *r)
{
	if (rec->pending)
		return admin_refuse_pending(rec, r);
	if ((rec->owed & ADMIN_OWED_UNPARK) != 0 && !admin_owed_settle(adm, rec))
		return admin_refuse_owed(rec, r);
	if (rec->attached) {
		const int rc = admin_walk_detach(adm, rec, r);

		if (rc != 0)
			return rc;
	}
	if (rec->held && adm->env->w.workers_n > 1 && ask_all(adm->env) != 0)
		return refuse(r, EBUSY, "QP %u: a worker does not answer", rec->qpn);
	rec->held = false;
	drop(adm, rec);
	return 0;
}

void
admin_end_later(struct admin *adm, struct admin_qp *rec)
{
	if (!rec->unwanted)
		TAILQ_INSERT_TAIL(&adm->unwanted, rec, of_unwanted);
	rec->unwanted = true;
}

uint32_t
admin_end_poll(struct admin *adm)
{
	struct admin_qp *rec;
	struct refusal ignored;
	uint32_t n = 0;

	for (uint32_t looks = 0; looks < UNWANTED_TURN; looks++) {
		rec = TAILQ_FIRST(&adm->unwanted);
		if (rec == NULL || adm->env->now < adm->unwanted_at || !ask_all_answer(adm->env))
			break;
		if (!rec->pending && admin_destroy(adm, rec, &ignored) == 0) {
			n++;
			continue;
		}
		/* The others first: this one may have to wait. */
		TAILQ_REMOVE(&adm->unwanted, rec, of_unwanted);
		TAILQ_INSERT_TAIL(&adm->unwanted, rec, of_unwanted);
		if (!rec->pending)
			adm->unwanted_at = adm->env->now + UNWANTED_NS;
	}
	return n;
}

/* FLOW-08 */
static int
set_rq_limit(struct admin *adm, struct admin_qp *rec, uint32_t limit, struct refusal *r)
{
	const uint32_t most = rec->shared->conf.cap.max_recv_wr;
	const struct ask_request q = { .worker = rec->worker,
		.msg = { .type = MBOX_QP_RQ_LIMIT, .limit = { rec->qp, limit } } };
	int rc = 0;

	if (rec->srq != NULL || rec->xrcd != NULL || rec->feed != NULL ||
		admin_qp_type(rec) == QPT_XRC_SEND)
		return refuse(r, EINVAL,
			"rq_limit: QP %u has no receive queue of its own that anybody posts to",
			rec->qpn);
	if (limit > most)
		return refuse(r, EINVAL,
			"rq_limit must be a number from 0 to max_recv_wr (%u), not %u", most,
			limit);
	if (rec->pending)
		return admin_refuse_pending(rec, r);
	if (rec->attached)
		rc = ask_and_wait(adm->env, &q);
	else
		qp_rq_limit_set(rec->qp, limit);
	return rc != 0 ? ask_refuse(adm->env, rec->worker, rc, r) : 0;
}

int
admin_modify(struct admin *adm, struct admin_qp *rec, const struct conf_qp *m, struct refusal *r)
{
	const enum qp_state from = admin_state(rec);
	const uint32_t mask = (uint32_t)(m->given & CONF_QP_ATTR_MASK);

	if ((m->given & CONF_QP_WORKER) != 0) {
		if ((m->given & ~(uint64_t)(CONF_QP_WORKER | CONF_QP_QP_NUM)) != 0)
			return refuse(r, EINVAL, "worker: QP %u moves without other attributes",
				rec->qpn);
		return admin_move(adm, rec, m->worker, r);
	}
	if ((m->given & CONF_QP_RQ_LIMIT) != 0) {
		if ((m->given & ~(uint64_t)(CONF_QP_RQ_LIMIT | CONF_QP_QP_NUM)) != 0)
			return refuse(r, EINVAL, "rq_limit: it is set without other attributes");
		return set_rq_limit(adm, rec, m->rq_limit, r);
	}
	admin_alternate_sync(adm, rec);
	if ((mask & QP_ATTR_PATH_MIG_STATE) != 0 && admin_alternate_look(adm, rec, r) != 0)
		return -r->err;
	if ((mask & QP_ATTR_CUR_STATE) != 0 && m->cur_qp_state != from)
		return refuse(r, EINVAL, "cur_qp_state is %s, but QP %u is in %s",
			verbs_qp_state_name(m->cur_qp_state), rec->qpn, verbs_qp_state_name(from));
	return admin_walk_step(adm, rec, m, (mask & QP_ATTR_STATE) != 0 ? m->qp_state : from,
		mask & ~(uint32_t)QP_ATTR_STATE, r);
}

int
admin_snapshots(struct admin *adm, struct admin_qp *const *recs, uint32_t n,
	struct qp_snapshot *out, struct refusal *r)
{
	struct ask *asked[ADMIN_SNAPSHOTS] = { NULL };
	int rc = 0;

	for (uint32_t i = 0; i < n; i++) {
		const struct ask_request q = { .worker = recs[i]->worker,
			.msg = { .type = MBOX_QP_QUERY, .query.qp = recs[i]->qp } };

		if (!recs[i]->attached)
			qp_snapshot(recs[i]->qp, adm->env->now, 0, &out[i]);
		else if ((asked[i] = ask_send(adm->env, &q)) == NULL)
			rc = ask_refuse(adm->env, recs[i]->worker, -EBUSY, r);
	}
	for (uint32_t i = 0; i < n; i++) {
		int one;

		if (asked[i] == NULL)
			continue;
		one = ask_wait(adm->env, asked[i]);
		if (one == 0)
			out[i] = asked[i]->snapshot;
		if (one != -ETIMEDOUT)
			ask_release(adm->env, asked[i]);
		if (one != 0)
			rc = ask_refuse(adm->env, recs[i]->worker, one, r);
	}
	return rc;
}

int
admin_trace(struct admin *adm, struct admin_qp *rec, bool on, struct refusal *r)
{
	const struct qp_attr attr = { .trace = on };
	const struct ask_request q = { .worker = rec->worker,
		.msg = { .type = MBOX_QP_MODIFY, .modify = { rec->qp, &attr, QP_ATTR_TRACE } } };
	int rc;

	if (rec->attached) {
		rc = ask_and_wait(adm->env, &q);
		if (rc == -ETIMEDOUT) /* it has the message, and will do so */
			rec->trace = on;
		if (rc != 0)
			return ask_refuse(adm->env, rec->worker, rc, r);
	}
	rec->trace = on;
	return 0;
}

int
admin_trace_all(struct admin *adm, bool on, uint32_t *n, struct refusal *r)
{
	const struct qp_attr attr = { .trace = on };
	struct admin_qp *rec;
	uint32_t slot = 0;

	*n = 0;
	while ((rec = admin_next(adm, &slot)) != NULL) {
		const struct ask_request q = { .worker = rec->worker,
			.msg = { .type = MBOX_QP_MODIFY,
				.modify = { rec->qp, &attr, QP_ATTR_TRACE } } };
		struct ask *a;

		++*n;
		if (rec->attached && rec->trace != on) {
			a = ask_send(adm->env, &q);
			if (a == NULL)
				return ask_refuse(adm->env, rec->worker, -EBUSY, r);
			ask_forget(a, NULL, NULL, NULL);
		}
		rec->trace = on;
	}
	/* Behind all of them. */
	return ask_all(adm->env) == 0 ? 0 : refuse(r, ETIMEDOUT, "a worker does not answer");
}

/* The worker of a QP is told. @return 0, -EAGAIN: later. */
static int
tell_mac(struct admin *adm, struct neigh_link *link)
{
	struct admin_qp *rec = link->user;
	const bool alternate = link == &rec->alt_link, known = neigh_has_mac(link->neigh);
	struct wire_path *path = alternate ? &rec->attr.alt_path : &rec->attr.path;
	const enum qp_state state = admin_state(rec);
	struct qp_attr attr;
	const struct ask_request q = { .worker = rec->worker,
		.msg = { .type = MBOX_QP_MODIFY, .modify = { rec->qp, &attr, QP_ATTR_NEW_MAC } } };
	struct ask *a;

	if (adm->env->asks.busy >= ASK_SLOTS / 2)
		return -EAGAIN;
	if (known)
		memcpy(path->dmac, link->neigh->mac, sizeof(path->dmac));
	*(alternate ? &rec->attr.alt_resolved : &rec->attr.path_resolved) = known;
	/* Whose it will be then is not known, and behind a RELEASE it would be refused. */
	if (rec->pending)
		rec->mac_missed = true;
	if (rec->pending || !rec->attached || state < QPS_RTR || state > QPS_SQD)
		return 0;
	attr = (struct qp_attr){ .path = *path, .path_resolved = known };
	a = ask_try(adm->env, &q); /* others have new MACs, too */
	if (a == NULL)
		return -EAGAIN;
	ask_forget(a, NULL, NULL, NULL);
	return 0;
}

static bool
may_fail(const struct admin_qp *rec)
{
	return rec->attached && admin_state(rec) != QPS_RESET && admin_state(rec) != QPS_ERR;
}

int
admin_fail(struct admin *adm, struct admin_qp *rec, struct refusal *r)
{
	const struct conf_qp m = {
		.given = QP_ATTR_STATE | CONF_QP_QP_NUM, .qp_num = rec->qpn, .qp_state = QPS_ERR
	};
	int rc;

	rec->err_missed = rec->pending;
	if (rec->pending || admin_state(rec) == QPS_RESET || admin_state(rec) == QPS_ERR)
		return 0;
	rc = admin_modify(adm, rec, &m, r);
	if (rc == 0)
		return 0;
	/* A late worker has the step already, or one before it: admin_answered() looks again. */
	rec->err_missed = rec->pending;
	if (rec->pending)
		return 0;
	if (!may_fail(rec))
		return rc;
	admin_owe(adm, rec, ADMIN_OWED_ERR);
	return 0;
}

/* ask_send() and ask_try() copy the attributes: the worker never looks at the record's. */
static struct ask_request
to_err(struct admin_qp *rec)
{
	rec->attr.cur_qp_state = (uint8_t)admin_state(rec);
	rec->attr.qp_state = QPS_ERR;
	return (struct ask_request){ .worker = rec->worker,
		.msg = { .type = MBOX_QP_MODIFY,
			.modify = { rec->qp, &rec->attr, QP_ATTR_STATE } } };
}

/* Nobody waits for it. */
static void
fail_now(struct admin *adm, struct admin_qp *rec)
{
	struct ask_request q;
	struct ask *a;

	/* In RESET that is over. One in INIT may have no worker: its next step ends there. */
	rec->err_missed = !rec->attached && admin_state(rec) == QPS_INIT;
	if (!may_fail(rec))
		return;
	q = to_err(rec);
	a = ask_send(adm->env, &q);
	if (a != NULL)
		ask_forget(a, NULL, NULL, NULL);
	else
		admin_owe(adm, rec, ADMIN_OWED_ERR);
}

bool
admin_fail_try(struct admin *adm, struct admin_qp *rec)
{
	struct ask_request q;
	struct ask *a;

	if (!may_fail(rec))
		return true;
	q = to_err(rec);
	a = ask_try(adm->env, &q);
	if (a != NULL)
		ask_forget(a, NULL, NULL, NULL);
	return a != NULL;
}

void
admin_answered(struct admin *adm, struct admin_qp *rec)
{
	rec->pending = false;
	if (rec->err_missed)
		fail_now(adm, rec);
	if (!rec->mac_missed)
		return;
	rec->mac_missed = false;
	neigh_tell(adm->net, &rec->link);
	neigh_tell(adm->net, &rec->alt_link);
}

int
admin_new_mac(struct admin *adm, struct neigh_link *link)
{
	if (!link->of_handle)
		return tell_mac(adm, link);
	admin_ah_new_mac(adm, link->user);
	return 0;
}

void
admin_fini(struct admin *adm)
{
	struct admin_qp *recs[ADMIN_WINDOW];
	uint32_t slot = 0, n;

	if (adm->slots != NULL)
		ask_all(adm->env); /* nothing is pending then */
	do {
		n = 0;
		while (adm->slots != NULL && n < ADMIN_WINDOW &&
			(recs[n] = admin_next(adm, &slot)) != NULL)
			n++;
		admin_many_end(adm, recs, n);
	} while (n > 0);
	free(adm->slots);
	adm->slots = NULL;
}
