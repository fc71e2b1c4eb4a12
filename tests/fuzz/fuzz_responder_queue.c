/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Receive WQEs as the model has them: each QP's own queue, and the one that three QPs share when
 * the input's options say so. What became of each WQE of the shared one is written down, so that
 * none can be used twice or be lost.
 */
#include "fuzz_responder.h"

enum { SRQ_ID = 77, SRQ_QPS = 1 << 4 | 1 << 6 | 1 << 7 /* of PD 1 and completion queue 1 */ };
enum { FED_QPS = 1 << 0 | 1 << 2, FEED_SIZE = 1102 /* a message is longer by one byte */ };
enum fate { POSTED, TAKEN, DONE };

void
queue_open(bool shared)
{
	struct srq_bed *s = &fb.srq;
	static struct mem_area area;

	if (area.base == NULL)
		FUZZ_CHECK(mem_area_create(&area, ring_size(RQ_WRS, ring_recv_stride(MAX_SGE)), -1,
				   0) == 0);
	memset(s, 0, sizeof(*s));
	s->on = shared;
	s->lost = mbox_events_lost(&fb.mbox);
	memset(area.base, 0, area.len);
	ring_srq_attach(&s->q.ring, area.base, RQ_WRS, ring_recv_stride(MAX_SGE));
	ring_srq_producer(&s->q.ring, &s->rq);
	s->q.id = SRQ_ID;
	s->q.pd = 1;
	s->q.max_sge = MAX_SGE;
}

bool
queue_is_shared(uint32_t i)
{
	return fb.srq.on && (SRQ_QPS >> i & 1) != 0;
}

void
queue_attach(uint32_t i, struct qp *qp)
{
	struct qp_bed *q = &fb.q[i];

	q->shared = queue_is_shared(i);
	q->fed = fb.feeds && (FED_QPS >> i & 1) != 0;
	if (q->fed) {
		qp->flags |= QPF_RECV_FEED;
		qp->feed_buffers = FEED_BUFFERS;
		qp->feed_size = FEED_SIZE;
		qp->feed_va = fb.mr[q->plan->rq_mr].va;
		qp->feed_lkey = fb.mr[q->plan->rq_mr].key;
		for (uint32_t b = 0; b < FEED_BUFFERS; b++)
			q->feed[b] = (struct wqe){ .num_sge = 1,
				.sge[0] = {
					qp->feed_va + b * FEED_SIZE, FEED_SIZE, qp->feed_lkey } };
	}
	if (!q->shared)
		return;
	qp->srq = &fb.srq.q;
	qp->flags |= QPF_SRQ;
}

/* ---- posting --------------------------------------------------------------------------------- */

struct ring_recv_wqe *
queue_slot(struct qp_bed *q)
{
	struct srq_bed *s = &fb.srq;
	struct ring_recv_wqe *w;

	if (q->fed)
		return NULL;
	if (!q->shared) {
		w = ring_produce_slot(&q->rq, RQ_WRS);
		if (w != NULL)
			w->wr_id = (uint64_t)(q - fb.q) << 32 | ++q->serial;
		return w;
	}
	if (atomic_load(&s->q.error) || s->serial == SRQ_WRS)
		return NULL;
	w = ring_produce_slot(&s->rq, RQ_WRS);
	if (w != NULL)
		w->wr_id = (uint64_t)SRQ_ID << 32 | s->serial++;
	return w;
}

void
queue_commit(struct qp_bed *q, const struct ring_recv_wqe *w)
{
	struct srq_bed *s = &fb.srq;
	struct wqe *copy = q->shared ? &s->fifo[s->tail++ % FIFO] : &q->fifo[q->tail++ % FIFO];

	copy->wr_id = w->wr_id;
	copy->num_sge = w->num_sge;
	memcpy(copy->sge, w->sge, sizeof(copy->sge));
	ring_produce_commit(q->shared ? &s->rq : &q->rq);
}

/* ---- what the model does --------------------------------------------------------------------- */

const struct wqe *
queue_next(const struct qp_bed *q, bool active)
{
	const struct srq_bed *s = &fb.srq;
	uint32_t at = q->head + (active ? 1u : 0u);

	if (q->shared)
		return !s->error && s->head != s->tail ? &s->fifo[s->head % FIFO] : NULL;
	if (q->fed)
		return &q->feed[at % FEED_BUFFERS];
	return at != q->tail ? &q->fifo[at % FIFO] : NULL;
}

bool
queue_in_error(const struct qp_bed *q)
{
	return q->shared && fb.srq.error;
}

const struct wqe *
queue_active(const struct qp_bed *q)
{
	if (q->shared) {
		FUZZ_CHECK(q->holds);
		return &q->held;
	}
	if (q->fed)
		return &q->feed[q->head % FEED_BUFFERS];
	FUZZ_CHECK(q->head != q->tail);
	return &q->fifo[q->head % FIFO];
}

void
queue_take(struct qp_bed *q)
{
	struct srq_bed *s = &fb.srq;

	if (!q->shared)
		return;
	FUZZ_CHECK(!q->holds && s->head != s->tail);
	q->held = s->fifo[s->head++ % FIFO];
	q->holds = true;
	FUZZ_CHECK(s->fate[(uint32_t)q->held.wr_id] == POSTED);
	s->fate[(uint32_t)q->held.wr_id] = TAKEN;
	if (q->held.num_sge > MAX_SGE)
		s->error = true; /* RESP-CLS-A-03 */
}

/** The WQE that a QP has is used up: by a completion, or with the QP. */
static void
used_up(struct qp_bed *q)
{
	if (q->holds)
		fb.srq.fate[(uint32_t)q->held.wr_id] = DONE;
	q->holds = false;
}

uint64_t
queue_complete(struct qp_bed *q)
{
	uint64_t wr_id = queue_active(q)->wr_id;

	if (q->shared)
		used_up(q);
	else
		q->head++;
	return wr_id;
}

bool
queue_is_done(const struct qp_bed *q)
{
	return q->shared ? !q->holds : q->fed || q->head == q->tail;
}

void
queue_forget(struct qp_bed *q)
{
	if (q->shared)
		used_up(q);
	else
		q->head = q->fed ? 0 : q->tail;
}

/* ---- the worker, held against it ------------------------------------------------------------- */

/** Which of the QPs met a full completion queue first is not modelled: take it as it is. */
void
queue_resync(void)
{
	struct srq_bed *s = &fb.srq;
	uint32_t head = atomic_load(&s->q.ring.head);

	if (!s->on)
		return;
	/* At most what the model took: a QP that fails early takes less. */
	FUZZ_CHECK(s->head - head <= s->tail - head);
	for (; s->head != head; s->head--)
		s->fate[(uint32_t)s->fifo[(s->head - 1) % FIFO].wr_id] = POSTED;
	s->error = atomic_load(&s->q.error);
	for (uint32_t i = 0; i < QPS; i++) {
		struct qp_bed *q = &fb.q[i];

		if (!q->shared || q->qp == NULL)
			continue;
		q->holds = q->qp->active != NULL;
		if (!q->holds)
			continue;
		q->held.wr_id = q->qp->active->wr_id;
		q->held.num_sge = q->qp->active->num_sge;
		memcpy(q->held.sge, q->qp->active->sge, sizeof(q->held.sge));
	}
}

void
queue_compare(void)
{
	struct srq_bed *s = &fb.srq;
	uint32_t taken = 0;

	for (uint32_t i = 0; i < QPS; i++) {
		const struct qp_bed *q = &fb.q[i];

		if (q->fed && q->qp != NULL && state_of(i) != QPS_ERR && (int)i != fb.modifying)
			FUZZ_CHECK(q->qp->feed_next ==
				   (q->head + q->qp->resp.wqe_active) % FEED_BUFFERS);
	}
	if (!s->on)
		return;
	/* SRQ-01: posted = taken + left, and the producer knows of all the room there is. */
	FUZZ_CHECK(atomic_load(&s->q.ring.head) == s->head);
	FUZZ_CHECK(ring_srq_count(&s->q.ring) == s->tail - s->head);
	FUZZ_CHECK(atomic_load(&s->rq.sh->cons) == s->head);
	FUZZ_CHECK(atomic_load(&s->q.error) == s->error);
	for (uint32_t i = 0; i < s->serial; i++)
		taken += s->fate[i] != POSTED;
	FUZZ_CHECK(taken == s->head);
}

void
queue_event(const struct ring_aeq_event *e)
{
	struct srq_bed *s = &fb.srq;

	FUZZ_CHECK(s->on && e->code == AEQ_SRQ_REPORT && e->id == SRQ_ID);
	FUZZ_CHECK(e->context == (uintptr_t)&s->q);
	if (e->event == EVENT_SRQ_ERR) {
		FUZZ_CHECK(atomic_load(&s->q.error) && s->errors++ == 0);
		return;
	}
	FUZZ_CHECK(e->event == EVENT_SRQ_LIMIT_REACHED && s->reached < s->armed);
	s->reached++; /* SRQ-02: once for each time that it was armed */
}

void
queue_arm(uint32_t limit)
{
	if (!fb.srq.on)
		return;
	atomic_store(&fb.srq.q.limit, limit);
	fb.srq.armed += limit != 0;
}

void
queue_close(void)
{
	struct srq_bed *s = &fb.srq;

	if (s->on && mbox_events_lost(&fb.mbox) == s->lost)
		FUZZ_CHECK(s->errors == atomic_load(&s->q.error));
	for (uint32_t i = 0; i < s->serial; i++)
		FUZZ_CHECK(s->fate[i] != TAKEN);
}
