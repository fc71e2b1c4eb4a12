/* SPDX-License-Identifier: BSD-3-Clause */
/* What a worker could not be told of a QP, its queue being full: it is told when there is room. */
#include <errno.h>
#include <string.h>

#include "ask.h"
#include "admin.h"

#define OWED_TURN 16 /* QPs that are looked at in a turn */

void
admin_owe(struct admin *adm, struct admin_qp *rec, uint8_t what)
{
	if (rec->owed == 0)
		TAILQ_INSERT_TAIL(&adm->owed, rec, of_owed);
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
	if (rec->owed == 0)
		return;
	TAILQ_REMOVE(&adm->owed, rec, of_owed);
	memset(&rec->of_owed, 0, sizeof(rec->of_owed)); /* admin_fold() compares bytes */
	rec->owed = 0;
}

void
admin_owed_forgive(struct admin *adm, struct admin_qp *rec, uint8_t what)
{
	if ((rec->owed & ~what) == 0)
		admin_owed_forget(adm, rec);
	else
		rec->owed &= (uint8_t)~what;
}

/* While a worker has not answered nobody knows whose the QP is; ADOPT is what it waits for then. */
bool
admin_owed_settle(struct admin *adm, struct admin_qp *rec)
{
	const uint8_t may = rec->pending ? ADMIN_OWED_ADOPT : UINT8_MAX;

	for (uint8_t one = 1; one != 0; one = (uint8_t)(one << 1)) {
		if ((rec->owed & may & one) == 0)
			continue;
		if (!pay(adm, rec, one))
			return false;
		admin_owed_forgive(adm, rec, one);
	}
	return rec->owed == 0;
}

uint32_t
admin_owed_poll(struct admin *adm)
{
	uint32_t n = 0;

	for (uint32_t looks = 0; looks < OWED_TURN && !TAILQ_EMPTY(&adm->owed); looks++) {
		struct admin_qp *rec = TAILQ_FIRST(&adm->owed);

		if (admin_owed_settle(adm, rec)) {
			n++;
			continue;
		}
		TAILQ_REMOVE(&adm->owed, rec, of_owed);
		TAILQ_INSERT_TAIL(&adm->owed, rec, of_owed);
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
