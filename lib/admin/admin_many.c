/* SPDX-License-Identifier: BSD-3-Clause */
/* Many QPs up or down without a round trip for each step: messages go out ahead of the answers. */
#include <errno.h>

#include "ask.h"
#include "invariant.h"
#include "log.h"
#include "admin.h"

/* Attributes of a creation that have no default. */
#define NO_DEFAULT (QP_ATTR_PORT | QP_ATTR_AV | QP_ATTR_DEST_QPN | QP_ATTR_RQ_PSN | QP_ATTR_SQ_PSN)

static int
post(struct admin *adm, struct admin_walk *walk, const struct ask_request *q, struct refusal *r)
{
	struct ask *a = ask_send(adm->env, q);

	if (a == NULL)
		return ask_refuse(adm->env, q->worker, -EBUSY, r);
	walk->ask[walk->n++] = a;
	return 0;
}

/* One step: the worker carries steps out in the order in which they were sent. */
static int
post_step(struct admin *adm, struct admin_qp *rec, const struct admin_change *ch,
	struct admin_walk *walk, struct refusal *r)
{
	struct qp_settings settings;
	struct ask_request q = { .worker = rec->worker,
		.msg = { .type = MBOX_QP_ATTACH, .attach = { rec->qp, &settings } } };
	int rc = 0;

	if (ch->from == QPS_RESET) {
		admin_knobs_settings(adm, rec, &settings);
		rc = object_cqs_claim(adm->objects, rec->send_cq, rec->recv_cq, rec->worker);
		if (rc != 0)
			return ask_refuse(adm->env, rec->worker, rc, r);
		rc = post(adm, walk, &q, r);
		rec->pending = rc == 0;
	}
	q.msg = (struct mbox_msg){ .type = MBOX_QP_MODIFY,
		.modify = { rec->qp, &ch->attr, ch->mask | QP_ATTR_STATE } };
	if (rc == 0)
		rc = post(adm, walk, &q, r);
	if (rc != 0)
		return rc;
	rec->attr = ch->attr;
	rec->alt_loaded |= (ch->mask & QP_ATTR_ALT_PATH) != 0;
	return 0;
}

int
admin_many_start(struct admin *adm, struct admin_qp *rec, const struct conf_qp *conf,
	struct admin_walk *walk, struct refusal *r)
{
	static const enum qp_state steps[] = { QPS_INIT, QPS_RTR, QPS_RTS };
	const uint32_t has = (uint32_t)(conf->given & CONF_QP_ATTR_MASK) | ~(uint32_t)NO_DEFAULT;
	const uint32_t chosen = (uint32_t)conf->given & (QP_ATTR_ALT_PATH | QP_ATTR_PATH_MIG_STATE);
	struct admin_change ch = { .from = QPS_RESET };
	int rc = 0;

	walk->n = 0;
	for (unsigned int i = 0; i < ARRAY_LEN(steps) && steps[i] <= conf->qp_state && rc == 0;
		i++) {
		uint32_t required = 0, optional = 0;

		ch.to = steps[i];
		qp_transition_attrs(admin_qp_type(rec), ch.from, ch.to, &required, &optional);
		/* What a state does not ask for stands ready for a later one. */
		ch.mask = ((required & has) | (optional & chosen)) & ~(uint32_t)QP_ATTR_STATE;
		rc = admin_walk_plan(adm, rec, conf, &ch, r);
		if (rc == 0)
			rc = post_step(adm, rec, &ch, walk, r);
		ch.from = ch.to;
	}
	return rc;
}

int
admin_many_finish(
	struct admin *adm, struct admin_qp *rec, struct admin_walk *walk, struct refusal *r)
{
	int rc = 0;

	for (uint32_t i = 0; i < walk->n; i++) {
		struct ask *a = walk->ask[i];
		const int one = ask_wait(adm->env, a);

		if (one == -ETIMEDOUT) {
			ask_forget(a, i == 0 ? admin_walk_late_attach : NULL, adm, rec);
		} else {
			if (i == 0) {
				rec->pending = false;
				rec->attached = one == 0;
			}
			ask_release(adm->env, a);
		}
		if (one != 0 && rc == 0)
			rc = ask_refuse(adm->env, rec->worker, one, r);
	}
	return rc;
}

/* To ERR, so that work is flushed, then away. */
static struct ask *
post_end(struct admin *adm, struct admin_qp *rec)
{
	struct ask_request q = { .worker = rec->worker,
		.msg = { .type = MBOX_QP_MODIFY,
			.modify = { rec->qp, &rec->attr, QP_ATTR_STATE } } };
	struct ask *a;

	rec->attr.cur_qp_state = (uint8_t)admin_state(rec);
	rec->attr.qp_state = QPS_ERR;
	a = ask_send(adm->env, &q);
	if (a != NULL)
		ask_forget(a, NULL, NULL, NULL);
	q.msg = (struct mbox_msg){ .type = MBOX_QP_DETACH, .qp = { rec->qp, .drop = true } };
	return ask_send(adm->env, &q);
}

bool
admin_end_begin(struct admin *adm, struct admin_qp *rec)
{
	struct ask_request q = { .worker = rec->worker,
		.msg = { .type = MBOX_QP_MODIFY,
			.modify = { rec->qp, &rec->attr, QP_ATTR_STATE } } };
	struct ask *a;

	ASSERT(rec->attached && !rec->pending);
	rec->attr.cur_qp_state = (uint8_t)admin_state(rec);
	rec->attr.qp_state = QPS_ERR;
	a = ask_try(adm->env, &q);
	if (a == NULL)
		return false;
	ask_forget(a, NULL, NULL, NULL);
	q.msg = (struct mbox_msg){ .type = MBOX_QP_DETACH, .qp = { rec->qp, .drop = true } };
	a = ask_try(adm->env, &q);
	if (a == NULL)
		return false;
	ask_forget(a, admin_walk_late_detach, adm, rec);
	rec->pending = true;
	return true;
}

void
admin_many_end(struct admin *adm, struct admin_qp *const *recs, uint32_t n)
{
	struct ask *asked[ADMIN_WINDOW] = { NULL };
	bool late[ADMIN_WINDOW] = { false };
	struct refusal r;

	for (uint32_t i = 0; i < n; i++) {
		if (recs[i]->attached && !recs[i]->pending)
			asked[i] = post_end(adm, recs[i]);
	}
	for (uint32_t i = 0; i < n; i++) {
		if (asked[i] == NULL)
			continue;
		if (ask_wait(adm->env, asked[i]) == -ETIMEDOUT) {
			recs[i]->pending = true;
			late[i] = true;
			ask_forget(asked[i], admin_walk_late_detach, adm, recs[i]);
		} else {
			recs[i]->pending = true;
			ask_release(adm->env, asked[i]);
		}
	}
	/* What they had to say while they were attached; nothing of them is freed meanwhile. */
	if (n > 0)
		env_drain(adm->env);
	for (uint32_t i = 0; i < n; i++) {
		if (asked[i] == NULL || late[i])
			continue;
		recs[i]->pending = false;
		recs[i]->attached = false;
		recs[i]->held = true;
	}
	/* Once for all of them. */
	if (n > 0 && adm->env->w.workers_n > 1 && ask_all(adm->env) == 0) {
		for (uint32_t i = 0; i < n; i++)
			recs[i]->held = recs[i]->held && (asked[i] == NULL || late[i]);
	}
	for (uint32_t i = 0; i < n; i++) {
		if (admin_destroy(adm, recs[i], &r) != 0)
			log_error("stopping: %s", r.text);
	}
}
