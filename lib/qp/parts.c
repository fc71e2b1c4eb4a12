/* SPDX-License-Identifier: BSD-3-Clause */
/* Compact QPs: their cells, and the parts that they get later. */
#include "qp_parts.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include <rte_eal.h>
#include <rte_malloc.h>

#include "invariant.h"
#include "log.h"
#include "qp.h"
#include "qp_control.h"

#define SLAB ((size_t)2 << 20)

/** An odd number of lines, so that line 0 of all QPs uses all sets of the cache. */
#define CELL ((sizeof(struct qp) + CACHE_LINE - 1) / CACHE_LINE / 2 * 2 * CACHE_LINE + CACHE_LINE)
_Static_assert(CELL >= sizeof(struct qp) && CELL <= 1024, "an idle QP has at most 1 KiB");
_Static_assert(QP_SIDE_ANSWERS >= 2 * QP_SIDE_READS + 2, "as many as answers_of() says");

struct cell {
	struct cell *next;
};

/** At the beginning of 2 MiB that begin at a multiple of 2 MiB. */
struct slab {
	TAILQ_ENTRY(slab) all; /* of those with room */
	struct cell *empty;
	uint32_t used;
	uint32_t fresh; /* cells behind these were never used */
	bool mapped;
} CACHE_ALIGNED;

#define SLAB_CELLS ((uint32_t)((SLAB - sizeof(struct slab)) / CELL))

/* Control lcore only, as the heap is. */
static TAILQ_HEAD(, slab) slabs = TAILQ_HEAD_INITIALIZER(slabs);
static size_t slabs_bytes;

/* ---- cells ----------------------------------------------------------------------------------- */

/** Anonymous memory can have huge pages without privileges (madvise); EAL's memory cannot. */
static struct slab *
map_slab(void)
{
	uint8_t *p =
		mmap(NULL, 2 * SLAB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	size_t before;

	if (p == MAP_FAILED)
		return NULL;
	before = (SLAB - (uintptr_t)p % SLAB) % SLAB;
	if (before != 0)
		munmap(p, before);
	munmap(p + before + SLAB, SLAB - before);
	madvise(p + before, SLAB, MADV_HUGEPAGE);
	return (struct slab *)(void *)(p + before);
}

static struct slab *
add_slab(int socket)
{
	bool mapped = rte_eal_has_hugepages() == 0;
	struct slab *s = mapped ? map_slab() : rte_zmalloc_socket("qps", SLAB, SLAB, socket);

	if (s == NULL)
		return NULL;
	s->mapped = mapped;
	slabs_bytes += SLAB;
	TAILQ_INSERT_HEAD(&slabs, s, all);
	return s;
}

static void
remove_slab(struct slab *s)
{
	slabs_bytes -= SLAB;
	if (s->mapped)
		munmap(s, SLAB);
	else
		rte_free(s);
}

struct qp *
qp_cell_alloc(int socket)
{
	struct slab *s = TAILQ_FIRST(&slabs);
	void *cell;

	if (s == NULL)
		s = add_slab(socket);
	if (s == NULL)
		return NULL;
	ASSERT(s->used < SLAB_CELLS);
	ASSERT(s->empty != NULL || s->fresh < SLAB_CELLS);
	if (s->empty != NULL) {
		cell = s->empty;
		s->empty = s->empty->next;
		memset(cell, 0, CELL);
	} else {
		cell = (uint8_t *)s + sizeof(*s) + s->fresh++ * CELL;
	}
	if (++s->used == SLAB_CELLS)
		TAILQ_REMOVE(&slabs, s, all);
	return cell;
}

void
qp_cell_free(struct qp *qp)
{
	struct slab *s = (struct slab *)(void *)((uint8_t *)qp - (uintptr_t)qp % SLAB);
	struct cell *cell = (struct cell *)(void *)qp;

	ASSERT(s->used != 0);
	ASSERT(((uintptr_t)qp - (uintptr_t)s - sizeof(*s)) % CELL == 0);
	if (s->used-- == SLAB_CELLS)
		TAILQ_INSERT_HEAD(&slabs, s, all);
	cell->next = s->empty;
	s->empty = cell;
	if (s->used != 0)
		return;
	TAILQ_REMOVE(&slabs, s, all);
	remove_slab(s);
}

size_t
qp_cells_bytes(void)
{
	return slabs_bytes;
}

/* ---- sides ----------------------------------------------------------------------------------- */

int
qp_sides_alloc(uint32_t *n, int socket, struct qp_side **list)
{
	struct qp_side *first = NULL;
	uint32_t made = 0;

	for (; made < *n; made++) {
		struct qp_side *s = rte_zmalloc_socket("side", sizeof(*s), CACHE_LINE, socket);

		if (s == NULL)
			break;
		s->next = first;
		first = s;
	}
	if (first == NULL)
		return -ENOMEM;
	*n = made;
	*list = first;
	return 0;
}

void
qp_sides_free(struct qp_side *list)
{
	while (list != NULL) {
		struct qp_side *next = list->next;

		rte_free(list);
		list = next;
	}
}

void
qp_side_take(struct qp *qp, struct qp_side *side)
{
	ASSERT(qp->compact && qp->side == NULL);
	ASSERT(qp->max_dest_alloc <= QP_SIDE_READS);
	ASSERT(qp->answers.count == 0);
	side->next = NULL;
	qp->side = side;
	qp->stats = &side->stats;
	qp->failure = &side->failure;
	qp->answers.slot = side->answers;
	qp->answers.cap = QP_SIDE_ANSWERS;
	qp->saved = side->saved;
	if (qp->resp.saved_n != 0)
		qp->resp.saved = side->saved;
}

/* ---- work ------------------------------------------------------------------------------------ */

bool
qp_is_compact(const struct qp_alloc_params *p)
{
	return p->compact && !p->has_rate && !p->send_feed && !p->own_area && p->rq_mem == NULL &&
	       p->max_dest_rd_atomic <= QP_SIDE_READS;
}

int
qp_work_alloc(const struct qp *qp, int socket, struct qp_work **out)
{
	uint32_t entries = ring_entries(qp->max_recv_wr == 0 ? 1 : qp->max_recv_wr);
	uint32_t stride = ring_recv_stride(qp->max_recv_sge == 0 ? 1 : qp->max_recv_sge);
	uint32_t wrs = ring_entries(qp->max_send_wr == 0 ? 1 : qp->max_send_wr);
	uint32_t send_stride = ring_send_stride(qp->max_send_sge, qp->max_inline);
	size_t rq = ring_size(entries, stride);
	size_t sq = qp->max_send_wr == 0 ? 0 : ring_size(wrs, send_stride);
	size_t sges = (size_t)wrs * qp->max_send_sge * sizeof(struct ring_sge);
	size_t head = (sizeof(struct qp_work) + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE;
	struct qp_work *work;
	uint8_t *at;

	at = rte_zmalloc_socket("qp_work",
		head + rq + sq + wrs * sizeof(struct requester_wr) + sges, CACHE_LINE, socket);
	if (at == NULL)
		return -ENOMEM;
	work = (struct qp_work *)(void *)at;
	at += head;
	ring_attach(&work->rq, at, entries, stride, true);
	at += rq;
	if (sq != 0)
		ring_attach(&work->sq, at, wrs, send_stride, true);
	at += sq;
	work->wr = (struct requester_wr *)(void *)at;
	work->wr_mask = wrs - 1;
	*out = work;
	return 0;
}

void
qp_work_take(struct qp *qp, struct qp_work *work)
{
	ASSERT(qp->compact && work != NULL);
	if (qp->work != NULL)
		return;
	ASSERT(qp->copy == NULL);
	qp->work = work;
	qp->rq = work->rq;
	qp->copy = &work->copy;
	if (work->sq.sh == NULL)
		return;
	qp->sq.ring = work->sq;
	qp->req.wr = work->wr;
	qp->req.wr_mask = work->wr_mask;
}
