/* SPDX-License-Identifier: BSD-3-Clause */
#include "notify.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

int
notify_arm(struct control *c, struct object_cq *cq, bool solicited_only, struct refusal *r)
{
	uint8_t level = solicited_only ? CQ_NOTIFY_SOLICITED : CQ_NOTIFY_NEXT;
	uint8_t now = atomic_load_explicit(&cq->q.notify, memory_order_relaxed);

	notify_poll(c);
	/* Armed for any completion stays so when solicited ones are asked for as well. */
	if (now == CQ_NOTIFY_NEXT)
		level = CQ_NOTIFY_NEXT;
	if (!cq->armed)
		c->armed++;
	cq->armed = true;
	atomic_store_explicit(&cq->q.notify, level, memory_order_seq_cst);
	/*
	 * A worker that added a completion and looked before that has left its burst after this
	 * round trip: its completion is there to be polled.
	 */
	return ask_all(&c->env) == 0
		       ? 0
		       : refuse(r, ETIMEDOUT, "cq \"%s\" is armed, but a worker does not answer",
				 cq->n.name);
}

static void
tell(struct control *c, const struct object_cq *cq)
{
	json_t *msg = json_pack("{s:s, s:s, s:{s:s}}", "jsonrpc", "2.0", "method", "cq_event",
		"params", "cq", cq->n.name);
	char *line = msg != NULL ? json_dumps(msg, JSON_COMPACT) : NULL;

	if (line != NULL)
		rpc_server_notify(c, line, strlen(line));
	free(line);
	json_decref(msg);
}

uint32_t
notify_poll(struct control *c)
{
	struct named *o;
	uint32_t n = 0;

	if (c->armed == 0)
		return 0;
	TAILQ_FOREACH (o, &c->cqs.all, all) {
		struct object_cq *cq = (struct object_cq *)(void *)o;

		if (!cq->armed || atomic_load_explicit(&cq->q.notify, memory_order_acquire) !=
					  CQ_NOTIFY_FIRED)
			continue;
		atomic_store_explicit(&cq->q.notify, CQ_NOTIFY_NONE, memory_order_relaxed);
		cq->armed = false;
		c->armed--;
		cq->fired++;
		tell(c, cq);
		n++;
	}
	return n;
}

json_t *
notify_take(struct control *c)
{
	struct named *o;

	TAILQ_FOREACH (o, &c->cqs.all, all) {
		struct object_cq *cq = (struct object_cq *)(void *)o;

		if (cq->fired == 0)
			continue;
		cq->fired--;
		return json_pack("{s:s}", "cq", cq->n.name);
	}
	return NULL;
}

void
notify_forget(struct control *c, struct object_cq *cq)
{
	if (cq->armed)
		c->armed--;
	cq->armed = false;
	cq->fired = 0;
}
