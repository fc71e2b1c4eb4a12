/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory of QPs. Control lcore only. */
#include <errno.h>

#include <rte_malloc.h>

#include "invariant.h"
#include "qp.h"
#include "qp_cc.h"
#include "qp_control.h"
#include "qp_parts.h"
#include "wire_service.h"

/**
 * A QP's one heap block: context, statistics, answer queue, saved READs and ATOMICs; private send
 * requests and their SGEs; the two rings unless they have areas of their own.
 */
struct layout {
	size_t stats;
	size_t failure;
	size_t answers;
	size_t saved;
	size_t copy;
	size_t wrs;
	size_t sges; /* from `wrs` on */
	size_t feed;
	size_t areas;     /* 0: none */
	size_t ring;      /* 0: in an area of its own */
	size_t send_ring; /* 0: likewise, or there is none */
	size_t total;
	size_t ring_bytes;
	size_t send_bytes; /* 0: no ring */
	size_t work_bytes; /* at `wrs`, in this block or in the caller's memory */
	uint32_t entries;
	uint32_t stride;
	uint32_t answers_n;
	uint32_t send_entries;
	uint32_t send_stride;
};

/**
 * Each READ or ATOMIC that may be outstanding has two places. A peer that goes back sends all of
 * them again, and a request without a place would cost another resend.
 */
static uint32_t
answers_of(uint32_t max_dest_rd_atomic)
{
	uint32_t more = max_dest_rd_atomic + 2; /* and a NAK, and a place that stays free */
	uint32_t n;

	n = max_dest_rd_atomic + (more > QP_ANSWER_RESERVE ? more : QP_ANSWER_RESERVE);
	return n < UINT8_MAX ? n : UINT8_MAX;
}

static size_t
line_up(size_t n)
{
	return (n + CACHE_LINE - 1) & ~(size_t)(CACHE_LINE - 1);
}

/** Take `n` bytes at the end of the block. @return where they begin. */
static size_t
take(struct layout *l, size_t n)
{
	size_t at = l->total;

	ASSERT(at % CACHE_LINE == 0);
	l->total += line_up(n);
	return at;
}

static int
layout_send(const struct qp_alloc_params *p, struct layout *l)
{
	l->send_entries = ring_entries(p->max_send_wr == 0 ? 1 : p->max_send_wr);
	l->send_stride = ring_send_stride(p->max_send_sge, p->max_inline);
	if (l->send_entries == 0 || l->send_stride == 0)
		return -EINVAL;
	/* The requester reads a slot even if nothing is ever posted. */
	l->sges = line_up(l->send_entries * sizeof(struct requester_wr));
	l->work_bytes = l->sges;
	if (!p->send_feed && p->max_send_wr != 0)
		l->work_bytes += line_up(
			(size_t)l->send_entries * p->max_send_sge * sizeof(struct ring_sge));
	if (p->work_mem == NULL)
		l->wrs = take(l, l->work_bytes);
	if (p->send_feed)
		l->feed = take(l, sizeof(struct qp_feed));
	if (p->send_feed || p->max_send_wr == 0)
		return 0;
	l->send_bytes = ring_size(l->send_entries, l->send_stride);
	return l->send_bytes != 0 ? 0 : -EINVAL;
}

static int
layout_of(const struct qp_alloc_params *p, struct layout *l)
{
	*l = (struct layout){ 0 };
	if (p->max_recv_sge > RING_MAX_SGE || p->max_dest_rd_atomic > QP_MAX_RD_ATOMIC)
		return -EINVAL;
	l->entries = ring_entries(p->max_recv_wr == 0 ? 1 : p->max_recv_wr);
	l->stride = ring_recv_stride(p->max_recv_sge == 0 ? 1 : p->max_recv_sge);
	l->ring_bytes = ring_size(l->entries, l->stride);
	if (l->entries == 0 || l->ring_bytes == 0)
		return -EINVAL;
	ASSERT((l->entries & (l->entries - 1)) == 0);
	l->answers_n = answers_of(p->max_dest_rd_atomic);
	ASSERT(l->answers_n > p->max_dest_rd_atomic);

	take(l, p->has_rate ? sizeof(struct qp) + sizeof(struct qp_cc) : sizeof(struct qp));
	/* What each message needs comes first: as few pages as may be. */
	if (layout_send(p, l) != 0)
		return -EINVAL;
	if (!p->own_area && p->rq_mem == NULL) {
		if (l->send_bytes != 0)
			l->send_ring = take(l, l->send_bytes);
		l->ring = take(l, l->ring_bytes);
	}
	l->saved = take(l, p->max_dest_rd_atomic * sizeof(struct responder_saved));
	l->answers = take(l, l->answers_n * sizeof(struct resp_answer));
	l->stats = take(l, sizeof(struct stats_block));
	l->failure = take(l, sizeof(struct qp_failure));
	l->copy = take(l, sizeof(struct ring_recv_copy));
	if (p->own_area)
		l->areas = take(l, sizeof(struct qp_areas));
	return 0;
}

/**
 * Bytes to ask the heap for. QPs of one kind lie at equal distances. That distance, with the heap's
 * own two lines, must be an odd number of lines: otherwise line 0 of all QPs falls into a few sets
 * of the cache. (Measured: 10 cycles a packet with 32 QPs at a distance of 12 KiB.)
 */
static size_t
spread(size_t bytes)
{
	return bytes / CACHE_LINE % 2 != 0 ? bytes : bytes + CACHE_LINE;
}

/** Memory of each ring: in the QP's block, lent, or an area of its own. */
static int
make_rings(struct qp *qp, const struct qp_alloc_params *p, const struct layout *l, uint8_t *base)
{
	uint8_t *rq = l->ring != 0 ? base + l->ring : p->rq_mem;
	uint8_t *sq = l->send_ring != 0 ? base + l->send_ring : p->sq_mem;
	struct qp_areas *areas = NULL;
	int rc = 0;

	if (p->own_area) {
		qp->areas = areas = (struct qp_areas *)(void *)(base + l->areas);
		rc = mem_area_create(&areas->rq, l->ring_bytes, p->socket, 0);
		if (rc == 0 && l->send_bytes != 0)
			rc = mem_area_create(&areas->sq, l->send_bytes, p->socket, 0);
		if (rc != 0) {
			mem_area_destroy(&areas->rq);
			return rc;
		}
		rq = areas->rq.base;
		sq = areas->sq.base;
	}
	ring_attach(&qp->rq, rq, l->entries, l->stride, true);
	if (l->send_bytes != 0)
		ring_attach(&qp->sq.ring, sq, l->send_entries, l->send_stride, true);
	return 0;
}

/** Limits of the send side, and defaults of what the settings may change. */
static void
make_send(struct qp *qp, const struct qp_alloc_params *p, const struct layout *l, uint8_t *base)
{
	struct requester *r = &qp->req;
	uint8_t *work;

	r->window = 256;
	r->ackreq_interval = 16;
	qp->window = r->window;
	qp->max_send_wr = p->max_send_wr;
	qp->max_send_sge = (uint8_t)p->max_send_sge;
	qp->sq.takes_fast = p->max_send_sge != 0 && p->type != QPT_XRC_SEND;
	qp->max_inline = (uint16_t)p->max_inline;
	if (base == NULL)
		return;
	work = p->work_mem != NULL ? p->work_mem : base + l->wrs;
	r->wr = (struct requester_wr *)(void *)work;
	r->wr_mask = l->send_entries - 1;
	ASSERT((l->send_entries & r->wr_mask) == 0);
	if (l->feed != 0)
		qp->send_feed = (struct qp_feed *)(void *)(base + l->feed);
}

int
qp_ring_bytes(const struct qp_alloc_params *p, size_t *rq, size_t *sq)
{
	struct layout l;

	if (layout_of(p, &l) != 0)
		return -EINVAL;
	*rq = l.ring_bytes;
	*sq = l.send_bytes;
	return 0;
}

size_t
qp_work_bytes(const struct qp_alloc_params *p)
{
	struct layout l;

	return layout_of(p, &l) == 0 ? l.work_bytes : 0;
}

int
qp_footprint(const struct qp_alloc_params *p, size_t *bytes)
{
	struct layout l;

	if (layout_of(p, &l) != 0)
		return -EINVAL;
	*bytes = qp_is_compact(p)
			 ? sizeof(struct qp)
			 : spread(l.total) + (p->own_area ? l.ring_bytes + l.send_bytes : 0);
	return 0;
}

static void
begin(struct qp *qp, const struct qp_alloc_params *p)
{
	qp->type = p->type != 0 ? p->type : QPT_RC;
	qp->req.qp_type = qp->type;
	qp_service_set(qp, wire_transport_on(qp->type));
	qp->resp.head = wire_is_connected(qp->resp.transport) ? 0 : WIRE_GRH_LEN;
	qp->qpn = p->qpn;
	qp->pd = p->pd;
	qp->worker = p->worker;
	qp->send_cq = p->send_cq;
	qp->recv_cq = p->recv_cq;
	qp->srq = p->srq;
	qp->client = p->client;
	qp->xrcd = p->xrcd;
	ASSERT(p->max_dest_rd_atomic == 0 || qp->saved != NULL);
	ASSERT(qp->rq.sh != NULL);
	qp->max_dest_alloc = p->max_dest_rd_atomic;
	qp->resp.saved = qp->saved;
	qp->resp.saved_n = p->max_dest_rd_atomic;
	qp->max_recv_wr = p->max_recv_wr;
	qp->max_recv_sge = p->max_recv_sge;
	qp_rq_limit_set(qp, p->rq_limit);
	qp->last_error.fault = VERDICT_NO_FAULT;
	atomic_store_explicit(&qp->state, QPS_RESET, memory_order_release);
}

/** Until it gets its parts, a compact QP reads an empty ring and empty slots that all share. */
static int
alloc_compact(const struct qp_alloc_params *p, const struct layout *l, struct qp **out)
{
	static struct ring_shared no_ring;
	static struct requester_wr no_wr;
	static struct responder_saved no_saved[QP_SIDE_READS];
	struct qp *qp = qp_cell_alloc(p->socket);

	if (qp == NULL)
		return -ENOMEM;
	qp->compact = true;
	ring_attach(&qp->rq, &no_ring, 1, l->stride, false);
	make_send(qp, p, l, NULL);
	if (p->max_dest_rd_atomic != 0)
		qp->saved = no_saved;
	qp->req.wr = &no_wr;
	qp->req.wr_mask = 0;
	begin(qp, p);
	*out = qp;
	return 0;
}

int
qp_alloc(const struct qp_alloc_params *p, struct qp **out)
{
	struct layout l;
	struct qp *qp;
	uint8_t *base;
	int rc;

	if (layout_of(p, &l) != 0)
		return -EINVAL;
	if (qp_is_compact(p))
		return alloc_compact(p, &l, out);
	base = rte_zmalloc_socket("qp", spread(l.total), CACHE_LINE, p->socket);
	if (base == NULL)
		return -ENOMEM;

	qp = (struct qp *)(void *)base;
	rc = make_rings(qp, p, &l, base);
	if (rc != 0) {
		rte_free(base);
		return rc;
	}
	make_send(qp, p, &l, base);

	qp->stats = (struct stats_block *)(void *)(base + l.stats);
	qp->failure = (struct qp_failure *)(void *)(base + l.failure);
	qp->answers.slot = (struct resp_answer *)(void *)(base + l.answers);
	qp->answers.cap = (uint8_t)l.answers_n;
	if (p->max_dest_rd_atomic != 0)
		qp->saved = (struct responder_saved *)(void *)(base + l.saved);
	qp->copy = (struct ring_recv_copy *)(void *)(base + l.copy);
	begin(qp, p);
	*out = qp;
	return 0;
}

void
qp_free(struct qp *qp)
{
	if (qp == NULL)
		return;
	if (qp->compact) {
		ASSERT(qp->areas == NULL);
		qp_sides_free(qp->side);
		rte_free(qp->work);
		qp_cell_free(qp);
		return;
	}
	if (qp->areas != NULL) {
		mem_area_destroy(&qp->areas->rq);
		if (qp->areas->sq.base != NULL)
			mem_area_destroy(&qp->areas->sq);
	}
	rte_free(qp);
}
