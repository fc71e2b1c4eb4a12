/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A worker's memory, and what others may look at. Control lcore only.
 * not hot: nothing here runs between packets.
 */
#include <errno.h>
#include <string.h>

#include <rte_malloc.h>
#include <rte_mbuf_dyn.h>

#include "flush.h"
#include "intake.h"
#include "kept.h"
#include "tx_prio.h"
#include "qp_control.h"
#include "shares.h"
#include "spare.h"

#define ERRBUF_MAX 1048576u

/** A driver or a receive callback that knows of a wrong FCS says so with this mbuf flag. */
static const struct rte_mbuf_dynflag fcs_flag = { .name = PIPELINE_FCS_FLAG };

/** A frame's payload still stands in its sender's memory (local.h). */
static const struct rte_mbuf_dynflag lent_flag = { .name = "rocelane_lent" };

/** A copy for members of a group at another worker (mcast.c). */
static const struct rte_mbuf_dynflag copy_flag = { .name = "rocelane_copy" };

/** A bit of ol_flags, or 0 where none is left. */
static uint64_t
mbuf_flag(const struct rte_mbuf_dynflag *flag)
{
	const int bit = rte_mbuf_dynflag_register(flag);

	return bit >= 0 ? UINT64_C(1) << bit : 0;
}

static void
map_faults(struct worker *w)
{
	for (uint32_t f = 0; f < FAULT_MAX; f++) {
		enum stats_counter s = STAT_MAX;

		if (wire_faults[f].counter != NULL)
			s = stats_by_name(wire_faults[f].counter);
		w->fault_stat[f] = s != STAT_MAX ? (uint16_t)s : STAT_rx_not_roce;
	}
}

_Static_assert(RTE_MAX_ETHPORTS <= QP_OUT_QUEUE + 1, "qp.out: numbers of queues are above ids");
_Static_assert(QP_OUT_QUEUE + PRIO_PORTS_MAX * (PRIO_N - 1) < QP_OUT_LOCAL, "... below that bit");

/** Queues of priorities 1 to 7 follow those of the ports. */
static int
map_priorities(struct worker *w)
{
	for (uint32_t i = 0; i < w->ports_n; i++) {
		const struct prio_port *p = w->conf.ports[i].prio;

		if (p == NULL)
			continue;
		w->prio_tx[i] = rte_zmalloc_socket(
			"prio_tx", sizeof(*w->prio_tx[i]), CACHE_LINE, w->conf.socket);
		if (w->prio_tx[i] == NULL)
			return -ENOMEM;
		for (uint8_t prio = 1; prio < PRIO_N; prio++) {
			const uint8_t queue = prio_queue(p, prio);
			const uint32_t out = w->ports_n + queue - 1u;

			ASSERT(queue != 0 && queue <= PRIO_PORTS_MAX * (PRIO_N - 1));
			w->port_of[QP_OUT_QUEUE + queue] = (uint8_t)out;
			w->conf.ports[out] = w->conf.ports[i];
			w->wires_n = (uint16_t)RTE_MAX(w->wires_n, out + 1);
		}
	}
	w->outs_n = w->wires_n;
	return 0;
}

static int
map_ports(struct worker *w)
{
	memset(w->port_of, PORT_NONE, sizeof(w->port_of));
	if (map_priorities(w) != 0)
		return -ENOMEM;
	for (uint32_t i = 0; i < w->ports_n; i++) {
		uint16_t id = w->conf.ports[i].id;

		if (id >= QP_OUT_LOCAL)
			return -ERANGE;
		w->port_of[id] = (uint8_t)i;
		w->port_of[id | QP_OUT_LOCAL] = (uint8_t)(w->wires_n + i);
		w->conf.ports[w->wires_n + i] = w->conf.ports[i];
		w->steer[i] = steer_owner(w->index, id);
		wire_front_init(&w->front[i], &w->conf.ports[i].addr);
	}
	for (uint32_t i = 0; i < w->wires_n + (uint32_t)w->ports_n; i++) {
		w->tx[i].m = rte_zmalloc_socket(
			"tx_queue", TX_ROOM * sizeof(w->tx[i].m[0]), CACHE_LINE, w->conf.socket);
		w->tx[i].starts = rte_zmalloc_socket("tx_starts",
			TX_STARTS * sizeof(w->tx[i].starts[0]), CACHE_LINE, w->conf.socket);
		if (w->tx[i].m == NULL || w->tx[i].starts == NULL)
			return -ENOMEM;
	}
	return 0;
}

static int
make_buffers(struct worker *w)
{
	uint32_t entries = 1;

	if (w->conf.errbuf_entries != 0) {
		while (entries < w->conf.errbuf_entries && entries < ERRBUF_MAX)
			entries <<= 1;
		w->errbuf = rte_zmalloc_socket(
			"errbuf", trace_errbuf_size(entries), CACHE_LINE, w->conf.socket);
		if (w->errbuf == NULL)
			return -ENOMEM;
		trace_errbuf_init(w->errbuf, entries);
		w->records_left = RECORDS_DEPTH;
	}
	if (w->conf.trace_entries != 0) {
		size_t size = trace_size(w->conf.trace_entries);

		if (size == 0)
			return -EINVAL;
		w->trace = rte_zmalloc_socket("trace", size, CACHE_LINE, w->conf.socket);
		if (w->trace == NULL)
			return -ENOMEM;
		trace_init(w->trace, w->conf.trace_entries);
	}
	return 0;
}

struct worker *
worker_create(const struct worker_conf *c)
{
	struct worker *w;

	if (c->ports_n == 0 || c->ports_n > PIPELINE_MAX_PORTS ||
		c->workers_n > PIPELINE_MAX_WORKERS || c->crc == NULL || c->qps == NULL ||
		c->mem == NULL)
		return NULL;
	w = rte_zmalloc_socket("worker", sizeof(*w), CACHE_LINE, c->socket);
	if (w == NULL)
		return NULL;
	w->conf = *c;
	w->index = c->index;
	w->ports_n = c->ports_n;
	w->wires_n = c->ports_n;
	w->crc = c->crc;
	w->qps = c->qps;
	w->mem = c->mem;
	w->ahs = c->ahs;
	w->srqs = c->srqs;
	w->mcasts = c->mcasts;
	w->mbox = c->mbox;
	TAILQ_INIT(&w->peers);
	for (uint32_t i = 0; i < ANSWER_PEERS; i++)
		TAILQ_INIT(&w->peer[i].qps);
	TAILQ_INIT(&w->shares);
	TAILQ_INIT(&w->flushing);
	w->flush_left = FLUSH_TURN;
	pipeline_share_init(&w->own);
	TAILQ_INIT(&w->clients);
	wheel_init(&w->wheel, 0);
	atomic_init(&w->receiving, !c->start_paused);
	w->fcs_bad = mbuf_flag(&fcs_flag);
	w->lent_flag = mbuf_flag(&lent_flag);
	w->copy_flag = mbuf_flag(&copy_flag);
	map_faults(w);
	w->intake = c->by_arrival ? NULL : pipeline_intake_create(c->socket);
	w->kept = pipeline_kept_create(c->socket);
	if ((w->intake == NULL && !c->by_arrival) || w->kept == NULL || map_ports(w) != 0 ||
		make_buffers(w) != 0) {
		worker_destroy(w);
		return NULL;
	}
	return w;
}

void
worker_destroy(struct worker *w)
{
	if (w == NULL)
		return;
	pipeline_mbufs_free_spare(w);
	rte_pktmbuf_free_bulk(w->moving.kept, w->moving.kept_n);
	for (uint32_t i = 0; i < w->ports_n; i++)
		rte_free(w->prio_tx[i]);
	for (uint32_t i = 0; i < w->wires_n + (uint32_t)w->ports_n; i++) {
		struct tx_queue *q = &w->tx[i];

		if (q->m != NULL && q->tail != q->head)
			rte_pktmbuf_free_bulk(q->m + q->head, q->tail - q->head);
		rte_free(q->m);
		rte_free(q->starts);
	}
	pipeline_intake_destroy(w->intake);
	pipeline_kept_destroy(w->kept);
	qp_sides_free(w->sides);
	rte_free(w->errbuf);
	rte_free(w->trace);
	rte_free(w);
}

void
worker_receive(struct worker *w)
{
	atomic_store_explicit(&w->receiving, true, memory_order_relaxed);
}

const struct stats_block *
worker_stats(const struct worker *w)
{
	return &w->stats;
}

const struct latency *
worker_latency(const struct worker *w)
{
	return w->latency;
}

const struct stats_block *
worker_port_stats(const struct worker *w, uint16_t port_index)
{
	return port_index < w->ports_n ? &w->port_stats[port_index] : NULL;
}

const struct prio_stats *
worker_prio_stats(const struct worker *w, uint16_t port_index)
{
	return port_index < w->ports_n && w->prio_tx[port_index] != NULL
		       ? &w->prio_tx[port_index]->stats
		       : NULL;
}

struct trace *
worker_trace(struct worker *w)
{
	return w->trace;
}

struct errbuf *
worker_errbuf(struct worker *w)
{
	return w->errbuf;
}

struct stats_load *
worker_load(struct worker *w)
{
	return &w->load;
}
