/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Records of compact QPs that say no more than their template does are not kept. The slot then
 * points to the QP alone, the QP to its template, and a look-up makes the record again. A record is
 * folded only if the new one would be the same to the last byte: one that was changed, waits for
 * something or uses a neighbour stays.
 */
#include <stdlib.h>
#include <string.h>

#include "ask.h"
#include "log.h"
#include "admin.h"

#define FOLDED     ((uintptr_t)1)
#define SCAN_SLOTS 64u /* looked at in a turn, as long as there may be something to fold */

static struct qp *
folded(const struct admin_slot *slot)
{
	return (slot->at & FOLDED) != 0 ? (struct qp *)(slot->at - FOLDED) : NULL;
}

static struct admin_qp *
open_record(const struct admin_slot *slot)
{
	return (slot->at & FOLDED) == 0 ? (struct admin_qp *)slot->at : NULL;
}

void
admin_slot_set(struct admin_slot *slot, struct admin_qp *rec)
{
	slot->at = (uintptr_t)rec;
}

uint32_t
admin_slot_qpn(const struct admin_slot *slot)
{
	if (slot->at == 0)
		return 0;
	return folded(slot) != NULL ? qp_number(folded(slot)) : open_record(slot)->qpn;
}

int
admin_slot_state(const struct admin_slot *slot)
{
	const struct qp *qp;

	if (slot->at == 0)
		return -1;
	qp = folded(slot) != NULL ? folded(slot) : open_record(slot)->qp;
	return (int)qp_state_now(qp);
}

/** What admin_many_start() left in the record of a QP whose path needs no neighbour. */
static int
take_steps(struct admin *adm, struct admin_qp *rec, const struct conf_qp *conf, struct refusal *r)
{
	const struct admin_way way = { .key = "ah_attr",
		.ah = &rec->ah,
		.port = rec->port,
		.link = &rec->link,
		.path = &rec->attr.path,
		.resolved = &rec->attr.path_resolved };

	if (conf->qp_state == QPS_RESET)
		return 0;
	rec->attr.qp_state = (uint8_t)conf->qp_state;
	rec->attr.cur_qp_state = (uint8_t)(conf->qp_state - 1);
	if (conf->qp_state < QPS_RTR)
		return 0;
	rec->attr.path_resolved = true;
	return admin_path_make(adm, rec, &way, r);
}

/** The record of this QP as it was when it was made. @return 0 or -errno. */
static int
make(struct admin *adm, struct admin_shared *shared, struct qp *qp, struct admin_qp *rec)
{
	const uint32_t nth = qp_number(qp) - shared->conf.qp_num;
	struct conf_qp conf;
	struct refusal r;
	int rc = admin_nth_conf(&shared->conf, nth, &conf, &r);

	memset(rec, 0, sizeof(*rec));
	rec->qp = qp;
	rec->qpn = qp_number(qp);
	rec->worker = qp_worker(qp);
	rec->shared = shared;
	if (rc == 0)
		rc = admin_references(adm, &conf, rec, &r);
	if (rc != 0)
		return rc;
	admin_set_defaults(rec, &conf);
	admin_paths_link(rec, rec);
	rec->nth = nth;
	rec->attached = conf.qp_state != QPS_RESET;
	admin_rings_attach(rec);
	return take_steps(adm, rec, &conf, &r);
}

bool
admin_fold(struct admin *adm, struct admin_qp *rec)
{
	const struct conf_qp *conf = &rec->shared->conf;
	struct qp *qp = rec->qp;
	struct admin_qp again;

	/* Numbers that were picked do not say which QP of its template it is. */
	if (!qp_limits(qp).compact || conf->qp_num == 0 || conf->qp_state > QPS_RTS ||
		rec->link.neigh != NULL || rec->alt_link.neigh != NULL ||
		make(adm, rec->shared, qp, &again) != 0)
		return false;
	admin_paths_link(&again, rec);
	if (memcmp(&again, rec, sizeof(again)) != 0)
		return false;
	adm->slots[rec->qpn & adm->env->w.qps->mask].at = (uintptr_t)qp | FOLDED;
	qp_user_set(qp, rec->shared);
	free(rec);
	return true;
}

struct admin_qp *
admin_slot_rec(struct admin *adm, struct admin_slot *slot)
{
	struct qp *qp = folded(slot);
	struct admin_qp *rec;

	if (qp == NULL)
		return open_record(slot);
	rec = malloc(sizeof(*rec));
	if (rec == NULL || make(adm, qp_user(qp), qp, rec) != 0) {
		log_error("QP %u: no memory to look at it", qp_number(qp));
		free(rec);
		return NULL;
	}
	qp_user_set(qp, rec);
	slot->at = (uintptr_t)rec;
	adm->fold_left = adm->env->w.qps->entries;
	return rec;
}

void
admin_fold_poll(struct admin *adm)
{
	for (uint32_t i = 0; i < SCAN_SLOTS && adm->fold_left != 0; i++) {
		struct admin_qp *rec =
			open_record(&adm->slots[adm->fold_at++ & adm->env->w.qps->mask]);

		adm->fold_left--;
		if (rec != NULL && qp_limits(rec->qp).compact)
			admin_fold(adm, rec);
	}
}
