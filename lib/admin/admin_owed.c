/* SPDX-License-Identifier: BSD-3-Clause */
/* What a worker could not be told of a QP, its queue being full: it is told when there is room. */
#include <errno.h>
#include <stdlib.h>

#include "ask.h"
#include "log.h"
#include "admin.h"

#define OWED_TURN 16 /* QPs that are looked at in a turn */

struct admin_owed {
	STAILQ_ENTRY(admin_owed) all;
	struct admin_qp *rec;
};

void
admin_owe(struct admin *adm, struct admin_qp *rec, uint8_t what)
{
	struct admin_owed *o = rec->owed == 0 ? malloc(sizeof(*o)) : NULL;

	if (rec->owed == 0 && o == NULL) {
		log_error("QP %u: worker %u takes no messages, and there is no memory to tell it "
			  "later",
			rec->qpn, rec->worker);
		return;
	}
	if (o != NULL) {
		o->rec = rec;
		STAILQ_INSERT_TAIL(&adm->owed, o, all);
	}
	rec->owed |= what;
}

/* @return false: there is no room. */
static bool
tell(struct admin *adm, const struct admin_qp *rec, uint8_t type, uint32_t worker)
{
	const struct ask_request q = { .worker = (uint16_t)worker,
		.msg = { .type = type, .qp.qp = rec->qp } };
	struct ask *a = ask_try(adm->env, &q);

	if (a != NULL)
		ask_forget(a, NULL, NULL, NULL);
	return a != NULL;
}

static bool
tell_all(struct admin *adm, const struct admin_qp *rec, uint8_t type)
{
	for (uint32_t w = 0; w < adm->env->w.workers_n; w++)
		if (!tell(adm, rec, type, w))
			return false;
	return true;
}

static bool
pay(struct admin *adm, struct admin_qp *rec, uint8_t one)
{
	switch (one) {
	case ADMIN_OWED_ADOPT:
		return admin_move_back(adm, rec);
	case ADMIN_OWED_UNPARK:
		return tell_all(adm, rec, MBOX_QP_UNPARK);
	case ADMIN_OWED_POSTED:
		return !rec->attached || tell(adm, rec, MBOX_QP_POSTED, rec->worker);
	case ADMIN_OWED_ERR:
		return admin_fail_try(adm, rec);
	default:
		return !rec->attached || tell(adm, rec, MBOX_QP_RECEIVES, rec->worker);
	}
}

void
admin_owed_forget(struct admin *adm, struct admin_qp *rec)
{
	struct admin_owed *o;

	STAILQ_FOREACH (o, &adm->owed, all)
		if (o->rec == rec)
			break;
	if (o == NULL)
		return;
	STAILQ_REMOVE(&adm->owed, o, admin_owed, all);
	free(o);
	rec->owed = 0;
}

void
admin_owed_forgive(struct admin *adm, struct admin_qp *rec, uint8_t what)
{
	if (rec->owed == 0)
		return;
	rec->owed &= (uint8_t)~what;
	if (rec->owed == 0)
		admin_owed_forget(adm, rec);
}

/* While a worker has not answered nobody knows whose the QP is; ADOPT is what it waits for then. */
static bool
settle(struct admin *adm, struct admin_qp *rec)
{
	const uint8_t may = rec->pending ? ADMIN_OWED_ADOPT : UINT8_MAX;

	for (uint8_t one = 1; one != 0; one = (uint8_t)(one << 1)) {
		if ((rec->owed & may & one) == 0)
			continue;
		if (!pay(adm, rec, one))
			return false;
		rec->owed &= (uint8_t)~one;
	}
	return rec->owed == 0;
}

bool
admin_owed_settle(struct admin *adm, struct admin_qp *rec)
{
	if (rec->owed == 0)
		return true;
	if (!settle(adm, rec))
		return false;
	admin_owed_forget(adm, rec);
	return true;
}

uint32_t
admin_owed_poll(struct admin *adm)
{
	uint32_t n = 0;

	for (uint32_t looks = 0; looks < OWED_TURN && !STAILQ_EMPTY(&adm->owed); looks++) {
		struct admin_owed *o = STAILQ_FIRST(&adm->owed);

		STAILQ_REMOVE_HEAD(&adm->owed, all);
		if (settle(adm, o->rec)) {
			free(o);
			n++;
		} else {
			STAILQ_INSERT_TAIL(&adm->owed, o, all);
		}
	}
	return n;
}

void
admin_ring(struct admin *adm, struct admin_qp *rec, uint8_t what)
{
	const struct ask_request q = { .worker = rec->worker,
		.msg = { .type = what == ADMIN_OWED_POSTED ? MBOX_QP_POSTED : MBOX_QP_RECEIVES,
			.qp.qp = rec->qp } };
	const int rc = rec->attached ? ask_and_wait(adm->env, &q) : 0;

	/* One that moves may be another worker's by now. Who is late has the message. */
	if (rc == -EBUSY || rc == -ENOENT)
		admin_owe(adm, rec, what);
}
