/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames that wait for a request below them: a place for each of a few queue pairs. */
#include <rte_malloc.h>

#include "kept.h"
#include "resp_kept.h"

#define PLACES  8
#define MOST    512                   /* frames in all: ports have a few thousand */
#define SILENCE (10 * TIME_NS_PER_MS) /* of its owner, until another QP may take a place */

/** A frame, as stage 6 gets it. */
struct frame {
	struct rte_mbuf *m;
	struct wire_pkt pkt;
	uint8_t port;
};

struct place {
	struct qp *qp; /* NULL: nobody's */
	ns_t since;    /* of its newest frame */
	struct resp_kept frames;
	struct frame frame[RESP_KEPT]; /* where `frames` points to */
};

struct kept {
	uint32_t n; /* frames */
	struct place place[PLACES];
	struct burst next;
};

struct kept *
pipeline_kept_create(int socket)
{
	const size_t size = sizeof(struct kept);

	return rte_zmalloc_socket("kept", size, CACHE_LINE, socket); /* not hot: start */
}

static void
drop_all(struct kept *k, struct place *p)
{
	struct frame *f;

	ASSERT(k->n >= p->frames.n);
	k->n -= p->frames.n;
	while ((f = resp_kept_drop(&p->frames)) != NULL)
		rte_pktmbuf_free(f->m);
	p->qp->kept = 0;
	p->qp = NULL;
}

void
pipeline_kept_destroy(struct kept *k)
{
	if (k == NULL)
		return;
	for (uint32_t i = 0; i < PLACES; i++)
		if (k->place[i].qp != NULL)
			drop_all(k, &k->place[i]);
	rte_free(k); /* not hot: the end */
}

static struct place *
place_of(const struct worker *w, const struct qp *qp)
{
	ASSERT(qp->kept == 0 || w->kept->place[qp->kept - 1].qp == qp);
	return qp->kept != 0 ? &w->kept->place[qp->kept - 1] : NULL;
}

bool
pipeline_kept_room(struct worker *w, struct qp *qp)
{
	struct place *p, *best = NULL;

	if (w->kept->n == MOST)
		return false;
	if (qp->kept != 0)
		return true;
	for (uint32_t i = 0; i < PLACES; i++) {
		p = &w->kept->place[i];
		if (p->qp == NULL) {
			best = p;
			break;
		}
		if (best == NULL || p->since < best->since)
			best = p;
	}
	if (best->qp != NULL) {
		if (w->now < best->since + SILENCE)
			return false;
		drop_all(w->kept, best);
	}
	best->qp = qp;
	best->since = w->now;
	qp->kept = (uint8_t)(best - w->kept->place + 1);
	return true;
}

void
pipeline_kept_put(struct worker *w, struct burst *b, uint32_t i)
{
	struct place *p = place_of(w, b->qp[i]);
	const psn_t at = b->pkt[i].psn;
	struct frame *f = &p->frame[at.v % RESP_KEPT];

	ASSERT(p != NULL);
	/* Of two copies the newer one stays. */
	if (resp_kept_put(&p->frames, b->qp[i]->resp.epsn, at, f) != NULL)
		rte_pktmbuf_free(f->m);
	else
		w->kept->n++;
	*f = (struct frame){ .m = b->m[i], .pkt = b->pkt[i], .port = b->port[i] };
	p->since = w->now;
	b->m[i] = NULL;
}

struct burst *
pipeline_kept_next(struct worker *w, struct qp *qp, uint32_t i)
{
	struct place *p = place_of(w, qp);
	struct burst *b = &w->kept->next;
	enum resp_kept_is is;
	struct frame *f;
	void *what;

	ASSERT(i < PIPELINE_BURST);
	if (p == NULL)
		return NULL;
	while ((is = resp_kept_take(&p->frames, qp->resp.epsn, &what)) != KEPT_IS_NONE) {
		f = what;
		w->kept->n--;
		if (is == KEPT_IS_OVER) {
			rte_pktmbuf_free(f->m);
			continue;
		}
		b->n = i + 1;
		b->m[i] = f->m;
		b->qp[i] = qp;
		b->port[i] = f->port;
		b->pkt[i] = f->pkt;
		return b;
	}
	if (p->frames.n == 0)
		drop_all(w->kept, p);
	return NULL;
}

bool
pipeline_kept_any(const struct worker *w, const struct qp *qp)
{
	const struct place *p = place_of(w, qp);

	return p != NULL && p->frames.n != 0;
}

void
pipeline_kept_forget(struct worker *w, struct qp *qp)
{
	struct place *p = place_of(w, qp);

	if (p != NULL)
		drop_all(w->kept, p);
}
