/* SPDX-License-Identifier: BSD-3-Clause */
/* A QP goes to another worker: qp_modify with `worker`. pipeline/move.c has the order of things. */
#include <errno.h>

#include "ask.h"
#include "log.h"
#include "admin.h"

#define RELEASE_TRIES 1000 /* for a port that takes no frames */

/* Nobody waits: whatever is sent to the worker later comes behind it. */
static void
unpark(struct admin *adm, struct admin_qp *rec)
{
	for (uint32_t w = 0; w < adm->env->w.workers_n; w++) {
		const struct ask_request q = { .worker = (uint16_t)w,
			.msg = { .type = MBOX_QP_UNPARK, .qp.qp = rec->qp } };
		struct ask *a = ask_send(adm->env, &q);

		if (a != NULL)
			ask_forget(a, NULL, NULL, NULL);
		else
			admin_owe(adm, rec, ADMIN_OWED_UNPARK);
	}
}

static void
moved(struct admin *adm, struct admin_qp *rec, uint32_t to)
{
	adm->worker_qps[rec->worker]--;
	adm->worker_qps[to]++;
	rec->worker = (uint8_t)to;
	rec->move_to = 0; /* as in a record that was never moved: admin_fold() */
}

/* Parked until the new owner has it: the old one would take it for its own again. */
static void
late_adopt(void *ctx, struct ask *a)
{
	struct admin *adm = ctx;
	struct admin_qp *rec = a->arg;

	if (a->done.rc == 0)
		moved(adm, rec, rec->move_to);
	admin_answered(adm, rec);
	unpark(adm, rec);
}

static struct ask *
ask_adopt(struct admin *adm, struct admin_qp *rec, uint32_t to)
{
	const struct ask_request q = { .worker = (uint16_t)to,
		.msg = { .type = MBOX_QP_ADOPT, .qp.qp = rec->qp } };

	return ask_send(adm->env, &q);
}

/* The new owner; if it cannot be told, the old one has it again: nobody would serve it. */
static struct ask *
ask_one_to_adopt(struct admin *adm, struct admin_qp *rec)
{
	struct ask *a = ask_adopt(adm, rec, rec->move_to);

	if (a != NULL || rec->move_to == rec->worker)
		return a;
	log_warn("QP %u: worker %u takes no messages: the QP stays at worker %u", rec->qpn,
		rec->move_to, rec->worker);
	rec->move_to = rec->worker;
	return ask_adopt(adm, rec, rec->worker);
}

/* Neither can be told: the old one is, as soon as there is room. */
static void
owe_adopt(struct admin *adm, struct admin_qp *rec)
{
	rec->pending = true;
	admin_owe(adm, rec, ADMIN_OWED_ADOPT);
}

bool
admin_move_back(struct admin *adm, struct admin_qp *rec)
{
	const struct ask_request q = { .worker = rec->worker,
		.msg = { .type = MBOX_QP_ADOPT, .qp.qp = rec->qp } };
	struct ask *a = ask_try(adm->env, &q);

	rec->move_to = rec->worker;
	if (a != NULL)
		ask_forget(a, late_adopt, adm, rec);
	return a != NULL;
}

static void
late_release(void *ctx, struct ask *a)
{
	struct admin *adm = ctx;
	struct admin_qp *rec = a->arg;
	struct ask *b = a->done.rc == 0 ? ask_one_to_adopt(adm, rec) : NULL;

	if (b != NULL) {
		ask_forget(b, late_adopt, adm, rec);
		return;
	}
	if (a->done.rc == 0) {
		owe_adopt(adm, rec);
		return;
	}
	admin_quiet_cancel(adm);
	admin_answered(adm, rec);
	unpark(adm, rec);
}

/* To every worker but the owner. */
static int
park(struct admin *adm, struct admin_qp *rec, uint32_t to, struct refusal *r)
{
	struct ask_request q = { .msg = { .type = MBOX_QP_PARK,
					 .move = { rec->qp, (uint16_t)to } } };
	int rc;

	for (uint32_t w = 0; w < adm->env->w.workers_n; w++) {
		q.worker = (uint16_t)w;
		rc = w != rec->worker ? ask_and_wait(adm->env, &q) : 0;
		if (rc != 0)
			return ask_refuse(adm->env, (uint16_t)w, rc, r);
	}
	return 0;
}

static int
release(struct admin *adm, struct admin_qp *rec, uint32_t to, struct refusal *r)
{
	const struct ask_request q = { .worker = rec->worker,
		.msg = { .type = MBOX_QP_RELEASE, .move = { rec->qp, (uint16_t)to } } };
	int rc = -EAGAIN;

	for (uint32_t i = 0; i < RELEASE_TRIES && rc == -EAGAIN; i++) {
		struct ask *a = ask_send(adm->env, &q);

		rc = a == NULL ? -EBUSY : ask_wait(adm->env, a);
		if (rc == -ETIMEDOUT) {
			rec->pending = true;
			rec->move_to = (uint8_t)to;
			ask_forget(a, late_release, adm, rec);
		} else if (a != NULL) {
			ask_release(adm->env, a);
		}
	}
	if (rc == -EAGAIN)
		return refuse(r, EAGAIN, "QP %u: its port takes no frames, and some wait there",
			rec->qpn);
	return rc != 0 ? ask_refuse(adm->env, q.worker, rc, r) : 0;
}

static int
adopt(struct admin *adm, struct admin_qp *rec, uint32_t to, struct refusal *r)
{
	struct ask *a;
	uint32_t asked;
	int rc;

	rec->move_to = (uint8_t)to;
	a = ask_one_to_adopt(adm, rec);
	asked = rec->move_to;
	rc = a == NULL ? -EBUSY : ask_wait(adm->env, a);
	if (rc == 0)
		moved(adm, rec, asked);
	if (rc == -ETIMEDOUT) {
		rec->pending = true;
		ask_forget(a, late_adopt, adm, rec);
	} else if (a != NULL) {
		ask_release(adm->env, a);
	} else {
		owe_adopt(adm, rec);
	}
	if (rc == 0 && asked != to)
		rc = -EBUSY;
	return rc != 0 ? ask_refuse(adm->env, (uint16_t)to, rc, r) : 0;
}

static int
check(struct admin *adm, struct admin_qp *rec, uint32_t to, struct refusal *r)
{
	if (to >= adm->env->w.workers_n)
		return refuse(r, EINVAL, "worker %u does not exist: the last one is %u", to,
			adm->env->w.workers_n - 1);
	if (rec->pending)
		return admin_refuse_pending(rec, r);
	if ((rec->owed & ADMIN_OWED_UNPARK) != 0 && !admin_owed_settle(adm, rec))
		return admin_refuse_owed(rec, r);
	if (rec->shared->owner != NULL)
		return refuse(
			r, ENOTSUP, "QP %u is an application's: it stays on its worker", rec->qpn);
	if (!env_worker_sends(adm->env, rec->port, to))
		return refuse(r, EINVAL, "worker %u cannot send on port \"%s\"", to,
			adm->env->w.conf->ports[rec->port].name);
	if (rec->alt_loaded && !env_worker_sends(adm->env, rec->alt_port, to))
		return refuse(r, EINVAL, "worker %u cannot send on alt_port \"%s\"", to,
			adm->env->w.conf->ports[rec->alt_port].name);
	return 0;
}

int
admin_move(struct admin *adm, struct admin_qp *rec, uint32_t to, struct refusal *r)
{
	int rc = check(adm, rec, to, r);

	if (rc != 0 || to == rec->worker)
		return rc;
	admin_stock_begin(adm, rec, to);
	if (!rec->attached) {
		moved(adm, rec, to);
		return 0;
	}
	rc = object_cqs_claim(adm->objects, rec->send_cq, rec->recv_cq, to);
	if (rc != 0)
		return ask_refuse(adm->env, rec->worker, rc, r);
	rc = park(adm, rec, to, r);
	if (rc == 0) {
		admin_quiet_begin(adm);
		rc = release(adm, rec, to, r);
		if (rc != 0 && !rec->pending)
			admin_quiet_cancel(adm);
	}
	if (rc == 0) {
		rec->pending = true;
		env_drain(adm->env); /* what the old owner had to say */
		rec->pending = false;
		rc = adopt(adm, rec, to, r);
	}
	if (!rec->pending) {
		admin_answered(adm, rec);
		unpark(adm, rec);
	}
	return rc;
}

void
admin_quiet_begin(struct admin *adm)
{
	adm->suspended++;
}

void
admin_quiet_cancel(struct admin *adm)
{
	adm->suspended -= adm->suspended != 0;
}

void
admin_quiet_end(struct admin *adm)
{
	if (adm->suspended == 0 || --adm->suspended != 0)
		return;
	if (adm->on_quiet != NULL)
		adm->on_quiet(adm->on_quiet_ctx);
}
