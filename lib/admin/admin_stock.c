/* SPDX-License-Identifier: BSD-3-Clause */
/* Compact QPs get what they need when they need it: qp/qp_parts.h. */
#include <errno.h>

#include "ask.h"
#include "log.h"
#include "admin.h"

#define STOCK_FIRST 64u   /* sides that a worker has to begin with */
#define STOCK_MOST  4096u /* ... that it is given at a time */

static void
give(struct admin *adm, uint16_t worker)
{
	struct admin_stock *s = &adm->stock[worker];
	uint32_t n = s->given / 2 < STOCK_FIRST ? STOCK_FIRST : (uint32_t)(s->given / 2);
	struct ask_request q = { .worker = worker, .msg.type = MBOX_SIDES };
	struct qp_side *list;
	struct ask *a;

	n = n < STOCK_MOST ? n : STOCK_MOST;
	if (qp_sides_alloc(&n, adm->env->w.numa_node, &list) != 0) {
		if (!s->short_told)
			log_warn("worker %u: no memory for READs and error counters of more QPs: "
				 "raise EAL's -m",
				worker);
		s->short_told = true;
		return;
	}
	q.msg.sides.list = list;
	a = ask_send(adm->env, &q);
	if (a == NULL) {
		qp_sides_free(list);
		return;
	}
	ask_forget(a, NULL, NULL, NULL);
	s->given += n;
}

uint32_t
admin_stock_poll(struct admin *adm)
{
	uint32_t work = 0;

	for (uint16_t w = 0; w < adm->env->w.workers_n; w++) {
		const struct admin_stock *s = &adm->stock[w];
		const uint64_t taken = atomic_load_explicit(
			&adm->env->w.workers[w].mbox->sides_taken, memory_order_relaxed);
		const uint64_t left = s->given - taken, few = s->given / 8;

		if (!s->wanted || left > (few > STOCK_FIRST / 2 ? few : STOCK_FIRST / 2))
			continue;
		give(adm, w);
		work++;
	}
	return work;
}

void
admin_stock_begin(struct admin *adm, const struct admin_qp *rec, uint32_t worker)
{
	if (!qp_limits(rec->qp).compact || adm->stock[worker].wanted)
		return;
	adm->stock[worker].wanted = true;
	give(adm, (uint16_t)worker);
}

int
admin_work_attach(struct admin *adm, struct admin_qp *rec, struct refusal *r)
{
	struct ask_request q = { .worker = rec->worker,
		.msg = { .type = MBOX_QP_WORK, .work.qp = rec->qp } };
	int rc;

	if (!qp_limits(rec->qp).compact || rec->has_work)
		return 0;
	if (rec->pending)
		return admin_refuse_pending(rec, r);
	if (rec->work == NULL && qp_work_alloc(rec->qp, adm->env->w.numa_node, &rec->work) != 0)
		return refuse(
			r, ENOMEM, "no memory for the queues of QP %u: raise EAL's -m", rec->qpn);
	q.msg.work.work = rec->work;
	if (rec->attached) {
		rc = ask_and_wait(adm->env, &q);
		if (rc != 0)
			return ask_refuse(adm->env, rec->worker, rc, r);
	} else {
		qp_work_take(rec->qp, rec->work);
	}
	rec->has_work = true;
	admin_rings_attach(rec);
	return 0;
}
