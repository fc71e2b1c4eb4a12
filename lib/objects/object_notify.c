/* SPDX-License-Identifier: BSD-3-Clause */
#include "object_notify.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "env.h"
#include "objects.h"

int
object_notify_arm(
	struct objects *objs, struct object_cq *cq, bool solicited_only, struct refusal *r)
{
	uint8_t level = solicited_only ? CQ_NOTIFY_SOLICITED : CQ_NOTIFY_NEXT;
	uint8_t now = atomic_load_explicit(&cq->q.notify, memory_order_relaxed);

	object_notify_poll(objs);
	/* Armed for any completion stays so when solicited ones are asked for as well. */
	if (now == CQ_NOTIFY_NEXT)
		level = CQ_NOTIFY_NEXT;
	if (!cq->armed)
		objs->armed++;
	cq->armed = true;
	atomic_store_explicit(&cq->q.notify, level, memory_order_seq_cst);
	/*
	 * A worker that added a completion and looked before that has left its burst after this
	 * round trip: its completion is there to be polled.
	 */
	return ask_all(objs->env) == 0
		       ? 0
		       : refuse(r, ETIMEDOUT, "cq \"%s\" is armed, but a worker does not answer",
				 cq->n.name);
}

uint32_t
object_notify_poll(struct objects *objs)
{
	struct named *o;
	uint32_t n = 0;

	if (objs->armed == 0)
		return 0;
	TAILQ_FOREACH (o, &objs->cqs.all, all) {
		struct object_cq *cq = (struct object_cq *)(void *)o;

		if (!cq->armed || atomic_load_explicit(&cq->q.notify, memory_order_acquire) !=
					  CQ_NOTIFY_FIRED)
			continue;
		atomic_store_explicit(&cq->q.notify, CQ_NOTIFY_NONE, memory_order_relaxed);
		cq->armed = false;
		objs->armed--;
		cq->fired++;
		objs->up.fired(objs->up.ctx, cq);
		n++;
	}
	return n;
}

json_t *
object_notify_take(struct objects *objs)
{
	struct named *o;

	TAILQ_FOREACH (o, &objs->cqs.all, all) {
		struct object_cq *cq = (struct object_cq *)(void *)o;

		if (cq->fired == 0)
			continue;
		cq->fired--;
		return json_pack("{s:s}", "cq", cq->n.name);
	}
	return NULL;
}

void
object_notify_forget(struct objects *objs, struct object_cq *cq)
{
	if (cq->armed)
		objs->armed--;
	cq->armed = false;
	cq->fired = 0;
}
