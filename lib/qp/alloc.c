/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory of QPs and of their table. Control lcore only. */
#include <errno.h>
#include <string.h>

#include <rte_malloc.h>

#include "qp.h"

/** A QP's one heap block: context, statistics, answer queue, saved READs and ATOMICs. */
struct layout {
	size_t stats;
	size_t answers;
	size_t saved;
	size_t ring; /* 0: in an area of its own */
	size_t total;
	size_t ring_bytes;
	uint32_t entries;
	uint32_t stride;
	uint32_t answers_n;
};

static size_t
line_up(size_t n)
{
	return (n + CACHE_LINE - 1) & ~(size_t)(CACHE_LINE - 1);
}

static int
layout_of(const struct qp_alloc_params *p, struct layout *l)
{
	if (p->max_recv_sge > RING_MAX_SGE || p->max_dest_rd_atomic > QP_MAX_RD_ATOMIC)
		return -EINVAL;
	l->entries = ring_entries(p->max_recv_wr == 0 ? 1 : p->max_recv_wr);
	l->stride = ring_recv_stride(p->max_recv_sge == 0 ? 1 : p->max_recv_sge);
	l->ring_bytes = ring_size(l->entries, l->stride);
	if (l->entries == 0 || l->ring_bytes == 0)
		return -EINVAL;
	l->answers_n = (uint32_t)p->max_dest_rd_atomic + QP_ANSWER_RESERVE;

	l->stats = line_up(sizeof(struct qp));
	l->answers = l->stats + line_up(sizeof(struct stats_block));
	l->saved = l->answers + line_up(l->answers_n * sizeof(struct qp_answer));
	l->total = l->saved + line_up(p->max_dest_rd_atomic * sizeof(struct responder_saved));
	l->ring = 0;
	if (!p->own_area) {
		l->ring = l->total;
		l->total += line_up(l->ring_bytes);
	}
	return 0;
}

size_t
qp_footprint(const struct qp_alloc_params *p)
{
	struct layout l;

	if (layout_of(p, &l) != 0)
		return 0;
	return l.ring != 0 ? l.total : l.total + l.ring_bytes;
}

struct qp *
qp_alloc(const struct qp_alloc_params *p)
{
	struct layout l;
	struct qp *qp;
	uint8_t *base;

	if (layout_of(p, &l) != 0)
		return NULL;
	base = rte_zmalloc_socket("qp", l.total, CACHE_LINE, p->socket);
	if (base == NULL)
		return NULL;

	qp = (struct qp *)(void *)base;
	qp->own_area = p->own_area;
	if (p->own_area) {
		if (mem_area_create(&qp->rq_area, l.ring_bytes, p->socket, 0) != 0) {
			rte_free(base);
			return NULL;
		}
	} else {
		qp->rq_area = (struct mem_area){
			.base = base + l.ring, .len = l.ring_bytes, .fd = -1, .node = p->socket
		};
	}
	ring_attach(&qp->rq, qp->rq_area.base, l.entries, l.stride, true);

	qp->type = QPT_RC;
	qp->stats = (struct stats_block *)(void *)(base + l.stats);
	qp->answers = (struct qp_answer *)(void *)(base + l.answers);
	qp->answer_cap = (uint8_t)l.answers_n;
	qp->max_dest_alloc = p->max_dest_rd_atomic;
	if (p->max_dest_rd_atomic != 0)
		qp->saved = (struct responder_saved *)(void *)(base + l.saved);
	qp->max_recv_wr = p->max_recv_wr;
	qp->max_recv_sge = p->max_recv_sge;
	qp->last_error.fault = VERDICT_NO_FAULT;
	atomic_store_explicit(&qp->state, QPS_RESET, memory_order_release);
	return qp;
}

void
qp_free(struct qp *qp)
{
	if (qp == NULL)
		return;
	if (qp->own_area)
		mem_area_destroy(&qp->rq_area);
	rte_free(qp);
}

struct qp_table *
qp_table_create(uint32_t entries, int socket)
{
	struct qp_table *t;
	uint32_t n = 1;

	if (entries == 0 || entries > 1u << 24)
		return NULL;
	while (n < entries)
		n <<= 1;
	t = rte_zmalloc_socket(
		"qp_table", sizeof(*t) + (size_t)n * sizeof(t->slot[0]), CACHE_LINE, socket);
	if (t == NULL)
		return NULL;
	t->mask = n - 1;
	t->entries = n;
	return t;
}

void
qp_table_destroy(struct qp_table *t)
{
	rte_free(t);
}

int
qp_table_insert(struct qp_table *t, struct qp *qp)
{
	struct qp *none = NULL;

	/* Neighbouring slots belong to other workers, but this one can be anybody's. */
	if (!atomic_compare_exchange_strong_explicit(&t->slot[qp->qpn & t->mask], &none, qp,
		    memory_order_release, memory_order_relaxed))
		return -EEXIST;
	return 0;
}

void
qp_table_remove(struct qp_table *t, struct qp *qp)
{
	struct qp *expected = qp;

	atomic_compare_exchange_strong_explicit(&t->slot[qp->qpn & t->mask], &expected, NULL,
		memory_order_release, memory_order_relaxed);
}
