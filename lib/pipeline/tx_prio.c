/* SPDX-License-Identifier: BSD-3-Clause */
/* Transmit queues by priority: who sends next, who is paused (FLOW-09..13). */
#include "tx_prio.h"

#include "count.h"
#include "spare.h"

#define CHOSEN    64  /* frames given to the port at once */
#define QUANTUM   512 /* bytes for a weight of 1 in a round */
#define TYPE_VLAN 0x8100
#define TYPE_IPV4 0x0800
#define TYPE_IPV6 0x86dd

/** Frames in the order in which they are to leave. */
struct chosen {
	struct rte_mbuf *m[CHOSEN];
	uint8_t prio[CHOSEN];
	uint32_t at[PRIO_N]; /* of each queue, so many */
	uint32_t n, most;
	/* Of the first of each queue. Once the port has a frame, its length is not ours to read. */
	uint32_t len[PRIO_N][CHOSEN];
	uint32_t known[PRIO_N];
};

static struct tx_queue *
queue_of(struct worker *w, uint32_t port, uint32_t prio)
{
	const uint8_t queue = prio_queue(w->conf.ports[port].prio, (uint8_t)prio);

	return &w->tx[queue == 0 ? port : w->ports_n + queue - 1u];
}

static inline uint32_t
left_in(const struct tx_queue *q, const struct chosen *c, uint32_t prio)
{
	return q->tail - q->head - c->at[prio];
}

static inline uint32_t
next_len(const struct tx_queue *q, struct chosen *c, uint32_t prio)
{
	const uint32_t at = c->at[prio];

	if (at == c->known[prio])
		c->len[prio][c->known[prio]++] = q->m[q->head + at]->pkt_len;
	return c->len[prio][at];
}

static inline void
choose_one(struct chosen *c, const struct tx_queue *q, uint32_t prio)
{
	c->m[c->n] = q->m[q->head + c->at[prio]++];
	c->prio[c->n++] = (uint8_t)prio;
}

/** @param may a bit for each priority that may send. @return those with a weight and frames. */
static uint32_t
choose_strict(struct worker *w, uint32_t port, uint32_t may, struct chosen *c)
{
	const uint8_t *weight = w->conf.ports[port].prio->weight;
	uint32_t weighted = 0;

	for (uint32_t i = PRIO_N; i-- != 0;) {
		const struct tx_queue *q = queue_of(w, port, i);

		if ((may >> i & 1) == 0 || left_in(q, c, i) == 0)
			continue;
		if (weight[i] != 0)
			weighted |= BIT32(i);
		else
			while (c->n < c->most && left_in(q, c, i) != 0) {
				next_len(q, c, i);
				choose_one(c, q, i);
			}
	}
	return weighted;
}

/** Deficit round robin. @param busy those that have frames. */
static void
choose_weighted(struct worker *w, uint32_t port, uint32_t busy, struct chosen *c)
{
	const uint8_t *weight = w->conf.ports[port].prio->weight;
	struct prio_tx *t = w->prio_tx[port];

	while (c->n < c->most && busy != 0) {
		const uint32_t i = t->turn.next;
		const struct tx_queue *q = queue_of(w, port, i);

		if ((busy >> i & 1) != 0 && !t->turn.begun) {
			t->turn.deficit[i] += weight[i] * QUANTUM;
			t->turn.begun = true;
		}
		while ((busy >> i & 1) != 0 && c->n < c->most &&
			next_len(q, c, i) <= t->turn.deficit[i]) {
			t->turn.deficit[i] -= next_len(q, c, i);
			choose_one(c, q, i);
			if (left_in(q, c, i) == 0) {
				t->turn.deficit[i] = 0; /* who has nothing to send saves nothing */
				busy &= ~BIT32(i);
			}
		}
		if (c->n == c->most)
			return;
		t->turn.next = (uint8_t)((i + 1) % PRIO_N);
		t->turn.begun = false;
	}
}

/** Has everything left? Then nobody waits, and the next round begins as the first one did. */
static void
forget(struct worker *w, uint32_t port)
{
	for (uint32_t i = 0; i < PRIO_N; i++) {
		const struct tx_queue *q = queue_of(w, port, i);

		if (q->head != q->tail)
			return;
	}
	w->prio_tx[port]->turn.next = 0;
	w->prio_tx[port]->turn.begun = false;
}

/** `most` of what these priorities have, strict ones first. */
static void
choose(struct worker *w, uint32_t port, uint32_t may, uint32_t most, struct chosen *c)
{
	c->n = 0;
	c->most = most;
	memset(c->at, 0, sizeof(c->at));
	choose_weighted(w, port, choose_strict(w, port, may, c), c);
}

/** The port took the first `sent`. The others stay where they are. @param all there are none. */
static void
settle(struct worker *w, uint32_t port, const struct chosen *c, uint32_t sent, bool all)
{
	struct prio_tx *t = w->prio_tx[port];
	uint32_t gone[PRIO_N] = { 0 };
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < sent; i++) {
		const uint32_t prio = c->prio[i];
		const uint32_t len = c->len[prio][gone[prio]++];
		struct tx_queue *q = queue_of(w, port, prio);

		q->head++;
		q->gone++;
		if (q->head == q->tail)
			q->head = q->tail = 0;
		t->stats.tx_packets[prio]++;
		t->stats.tx_bytes[prio] += len;
		bytes += len;
	}
	stats_add(&w->stats, STAT_tx_packets, sent);
	stats_add(&w->stats, STAT_tx_bytes, bytes);
	stats_add(&w->port_stats[port], STAT_tx_packets, sent);
	stats_add(&w->port_stats[port], STAT_tx_bytes, bytes);
	if (all)
		forget(w, port);
}

/** Replies that were made, and those that are too many: the port's buffers are for all. */
static void
look_at_queues(struct worker *w, uint32_t port)
{
	for (uint32_t i = 0; i < PRIO_N; i++) {
		struct tx_queue *q = queue_of(w, port, i);

		stats_add(&w->stats, STAT_sent_pkts, q->made);
		stats_add(&w->port_stats[port], STAT_sent_pkts, q->made);
		q->made = 0;
		while (UNLIKELY(q->tail - q->head > PRIO_ROOM)) {
			count(w, (uint8_t)port, NULL, STAT_tx_backlog_drop);
			rte_pktmbuf_free(q->m[--q->tail]);
		}
	}
}

uint32_t
pipeline_prio_tx(struct worker *w, uint32_t port)
{
	const struct pipeline_port *p = &w->conf.ports[port];
	const uint32_t may = ~pause_mask(&p->prio->pause, w->now);
	struct prio_tx *t = w->prio_tx[port];
	uint32_t total = 0, sent, n;
	struct prio_turn turn;
	struct chosen c;

	look_at_queues(w, port);
	do {
		turn = t->turn;
		memset(c.known, 0, sizeof(c.known));
		choose(w, port, may, CHOSEN, &c);
		n = c.n;
		if (n == 0)
			break;
		sent = rte_eth_tx_burst(p->id, p->tx_queue, c.m, (uint16_t)n);
		ASSERT(sent <= n);
		if (sent < n) {
			/* The turn goes on behind what the port took, not what was chosen. */
			t->turn = turn;
			choose(w, port, may, sent, &c);
			ASSERT(c.n == sent);
		}
		settle(w, port, &c, sent, sent == n);
		total += sent;
	} while (sent == CHOSEN);
	return total;
}

/** Of a frame as it came; what is no IP, or cut short, has the priority of its tag, or none. */
static uint8_t
prio_of_frame(const struct prio_map *map, const uint8_t *frame, uint32_t len)
{
	const bool tagged = len >= 18 && be16_load(frame + 12) == TYPE_VLAN;
	const uint16_t tci = tagged ? be16_load(frame + 14) : 0;
	const uint32_t at = tagged ? 16 : 12;
	uint16_t type, first;

	if (len >= at + 4) {
		type = be16_load(frame + at);
		first = be16_load(frame + at + 2);
		if (type == TYPE_IPV4)
			return prio_of(map, tagged, tci, (uint8_t)first);
		if (type == TYPE_IPV6)
			return prio_of(map, tagged, tci, (uint8_t)(first >> 4));
	}
	return tagged ? map->pcp[tci >> 13] : map->other;
}

void
pipeline_prio_received(struct worker *w, const struct burst *b, uint32_t port)
{
	const struct prio_map *map = &w->conf.ports[port].prio->map;
	struct prio_stats *s = &w->prio_tx[port]->stats;

	for (uint32_t i = 0; i < b->n; i++) {
		const struct rte_mbuf *m = b->m[i];
		const uint8_t prio =
			prio_of_frame(map, rte_pktmbuf_mtod(m, const uint8_t *), m->data_len);

		s->rx_packets[prio]++;
		s->rx_bytes[prio] += m->pkt_len;
	}
}

/** Counted by priority, and obeyed. */
static void
obey(struct worker *w, uint32_t port, const struct pause_frame *f)
{
	struct prio_stats *s = &w->prio_tx[port]->stats;
	struct pause_done done;

	s->rx_global_pause += f->opcode == PAUSE_GLOBAL;
	for (uint32_t i = 0; i < PRIO_N; i++)
		s->rx_pause[i] += f->opcode == PAUSE_BY_PRIORITY && (f->enabled >> i & 1) != 0;
	cc_pause_receive(&w->conf.ports[port].prio->pause, f, w->now, &done);
	s->rx_pause_storms += (uint32_t)__builtin_popcount(done.storms);
	for (uint32_t i = 0; i < PRIO_N; i++)
		s->rx_pause_ns[i] += (uint64_t)done.held[i];
}

bool
pipeline_prio_paused(struct worker *w, struct burst *b, uint32_t i)
{
	const uint8_t port = b->port[i];
	struct rte_mbuf *m = b->m[i];
	struct pause_frame f;

	if (!cc_pause_parse(rte_pktmbuf_mtod(m, const uint8_t *), m->data_len, &f))
		return false;
	count(w, port, NULL, STAT_rx_pause_ctrl);
	if (w->conf.ports[port].prio != NULL && !w->local_burst)
		obey(w, port, &f);
	mbuf_done(w, m);
	return true;
}

uint8_t
pipeline_prio_cnp(const struct worker *w, const struct qp *qp, uint8_t out)
{
	const struct prio_port *p = w->conf.ports[out].prio;
	const uint8_t prio = prio_of(
		&p->map, (qp->flags & QPF_VLAN) != 0, (uint16_t)(qp->cnp.prio << 13), qp->cnp.tos);
	const uint8_t queue = prio_queue(p, prio);

	return queue == 0 ? w->port_of[w->conf.ports[out].id] : (uint8_t)(w->ports_n + queue - 1);
}

bool
pipeline_prio_is_paused(const struct worker *w, uint8_t out)
{
	const struct prio_port *p = out < w->wires_n ? w->conf.ports[out].prio : NULL;
	uint32_t prio = 0;

	if (p == NULL)
		return false;
	if (out >= w->ports_n)
		prio = out - w->ports_n + 2u - p->first;
	return (pause_mask(&p->pause, w->now) >> prio & 1) != 0;
}
