/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames that wait for their peer's turn, while ports have more than the worker can do. */
#include <rte_malloc.h>

#include "intake.h"

#include "count.h"
#include "handoff.h"
#include "shares.h"
#include "stage.h"

#define LINGER      64          /* turns that did not need it, until it is over */
#define HASH_FACTOR 0x9e3779b1u /* the golden ratio's bits */
#define COST_FRAME  48   /* beside its bytes: one more packet of the same QP on the fast path */
#define COST_DROP   128  /* of one that finds no room */
#define QUANTUM     4672 /* 32 frames of 130 bytes */
#define BTH_END     (WIRE_UDP_LEN + WIRE_BTH_LEN) /* behind the IP header */
#define MOST        (2 * QUANTUM)                 /* that a burst may cost */
#define DEBT        (PIPELINE_BURST * COST_FULL)  /* of a peer, for the full path */

enum {
	PLACES = 128, /* for peers; a power of two */
	ROOM = 1024,  /* frames */
	DEPTH = 4,    /* a peer may have so many times what is free */
	BURSTS = 4,   /* that a turn takes from a port */
};
_Static_assert((PLACES & (PLACES - 1)) == 0 && ROOM <= UINT16_MAX, "places are numbers");

/** Peers whose addresses fall on the same place. */
struct peer {
	uint16_t first, last; /* frames, in order */
	uint16_t n;
	uint32_t qpn; /* of the last frame */
	int64_t credit;
	TAILQ_ENTRY(peer) turn;
};

struct intake {
	uint32_t n;               /* frames */
	uint32_t turns;           /* since the worker began */
	uint32_t calm;            /* turns in a row that did not need it */
	uint32_t from;            /* of a frame that was looked at, before it began */
	bool several;             /* peers had frames here in this turn */
	uint16_t free;            /* the first free place for a frame */
	TAILQ_HEAD(, peer) peers; /* with frames, in turn */
	struct peer peer[PLACES];
	struct rte_mbuf *m[ROOM] CACHE_ALIGNED;
	uint16_t next[ROOM]; /* of the same peer, or free */
	uint16_t cost[ROOM];
};

struct intake *
pipeline_intake_create(int socket)
{
	struct intake *in;

	in = rte_zmalloc_socket("intake", sizeof(*in), CACHE_LINE, socket); /* not hot: start */
	if (in == NULL)
		return NULL;
	TAILQ_INIT(&in->peers);
	for (uint32_t i = 0; i < ROOM; i++)
		in->next[i] = (uint16_t)(i + 1);
	return in;
}

void
pipeline_intake_destroy(struct intake *in)
{
	struct peer *p;

	if (in == NULL)
		return;
	TAILQ_FOREACH (p, &in->peers, turn)
		for (; p->n != 0; p->n--, p->first = in->next[p->first])
			rte_pktmbuf_free(in->m[p->first]);
	rte_free(in); /* not hot: the end */
}

/* ---- whose a frame is, and what it costs ----------------------------------------------------- */

/** What is looked at of a frame. */
struct look {
	uint32_t from; /* of its sender's address */
	uint32_t qpn;
	uint32_t cost; /* without what it is to go over to another QP */
};

/** What a request of this opcode costs more than a WRITE. */
static inline uint32_t
cost_of(uint8_t opcode)
{
	const opflags_t op = wire_opcodes[opcode].flags;

	if (LIKELY(!op_has(op, OPF_ATOMIC | OPF_READ | OPF_PLACEMENT)) || op_has(op, OPF_RESPONSE))
		return 0;
	return op_has(op, OPF_ATOMIC) ? COST_ATOMIC : COST_READ;
}

/** A frame that is not of IPv4 without a tag, or short: of its address, else of its MAC. */
static __attribute__((noinline)) struct look
look_closely(const struct rte_mbuf *m)
{
	const uint8_t *frame = rte_pktmbuf_mtod(m, const uint8_t *);
	const uint32_t tag = m->data_len > WIRE_ETH_LEN && be16_load(frame + 12) == 0x8100 ? 4 : 0;
	const uint32_t len = m->data_len - tag;
	const uint8_t *ip = frame + WIRE_ETH_LEN + tag;
	struct look l = { .cost = COST_FRAME };

	if (m->data_len <= WIRE_ETH_LEN + tag)
		return l;
	l.from = be32_load(frame + 8);
	if (ip[0] >> 4 == 4 && len >= WIRE_ETH_LEN + WIRE_IPV4_LEN + BTH_END) {
		l.from = be32_load(ip + 12);
		ip += WIRE_IPV4_LEN + WIRE_UDP_LEN;
	} else if (ip[0] >> 4 == 6 && len >= WIRE_ETH_LEN + WIRE_IPV6_LEN + BTH_END) {
		l.from = 0;
		for (uint32_t at = 8; at < 24; at += 4)
			l.from = (l.from ^ be32_load(ip + at)) * HASH_FACTOR;
		ip += WIRE_IPV6_LEN + WIRE_UDP_LEN;
	} else {
		return l;
	}
	l.qpn = be32_load(ip + 4) & PSN_MASK;
	l.cost += cost_of(ip[0]);
	return l;
}

static ALWAYS_INLINE struct look
look_at(const struct rte_mbuf *m)
{
	const uint8_t *frame = rte_pktmbuf_mtod(m, const uint8_t *);

	if (UNLIKELY(m->data_len < WIRE_PLAIN_MIN) || UNLIKELY(be16_load(frame + 12) != 0x0800))
		return look_closely(m);
	return (struct look){ be32_load(frame + 14 + 12),
		be32_load(frame + WIRE_PLAIN_BTH + 4) & PSN_MASK,
		COST_FRAME + cost_of(frame[WIRE_PLAIN_BTH]) };
}

/**
 * So many bytes of a frame: its ICRC and its way to memory that is in no cache. Costs are a model
 * rather than measured cycles, because a burst has frames of several peers, and because whose turn
 * it is must not depend on when the worker lost its CPU.
 */
static inline int64_t
cost_frame_bytes(uint32_t bytes)
{
	return (int64_t)bytes * 3 / 4;
}

static ALWAYS_INLINE struct peer *
peer_of(struct intake *in, uint32_t from)
{
	return &in->peer[from * HASH_FACTOR >> 25 & (PLACES - 1)];
}

void
pipeline_intake_look(struct worker *w, const struct burst *b, bool anew)
{
	struct intake *in = w->intake;

	if (in == NULL || b->n == 0)
		return;
	if (anew)
		in->from = look_at(b->m[0]).from;
	for (uint32_t i = 0; i < b->n; i++)
		if (look_at(b->m[i]).from != in->from) {
			in->calm = 0;
			w->intake_on = true;
			return;
		}
}

void
pipeline_intake_charge(struct worker *w, const struct burst *b, uint32_t i)
{
	struct peer *p = peer_of(w->intake, look_at(b->m[i]).from);

	/* It need not have waited here: frames of this process do not, nor copies for members. */
	if (LIKELY(p->credit > -DEBT))
		p->credit -= COST_FULL;
}

/* ---- in -------------------------------------------------------------------------------------- */

/** Frames in the order of their arrival: to their peers, or away. */
static void
put(struct worker *w, struct burst *b)
{
	struct intake *in = w->intake;
	uint32_t away = 0;

	for (uint32_t i = 0; i < b->n; i++) {
		struct rte_mbuf *m = b->m[i];
		const struct look l = look_at(m);
		struct peer *p = peer_of(in, l.from);
		const uint16_t at = in->free;
		int64_t cost = l.cost + cost_frame_bytes(m->pkt_len);

		if (UNLIKELY(p->n >= DEPTH * (ROOM - in->n))) {
			if (p->credit > 0) /* who floods still has turns */
				p->credit -= COST_DROP;
			stats_inc(&w->port_stats[b->port[i]], STAT_rx_backlog_drop);
			b->m[away++] = m;
			continue;
		}
		if (l.qpn != p->qpn)
			cost += COST_SWITCH;
		p->qpn = l.qpn;
		m->port = w->conf.ports[b->port[i]].id;
		in->free = in->next[at];
		in->m[at] = m;
		in->cost[at] = (uint16_t)RTE_MIN(cost, (int64_t)UINT16_MAX);
		in->n++;
		if (LIKELY(p->n++ != 0)) {
			in->next[p->last] = at;
		} else {
			p->first = at;
			TAILQ_INSERT_TAIL(&in->peers, p, turn);
		}
		p->last = at;
	}
	in->several |= in->n != 0 && TAILQ_NEXT(TAILQ_FIRST(&in->peers), turn) != NULL;
	if (UNLIKELY(away != 0)) {
		stats_add(&w->stats, STAT_rx_backlog_drop, away);
		rte_pktmbuf_free_bulk(b->m, away);
	}
}

/**
 * Nobody but one peer has been here for a while. What waits is served first, in full bursts, and
 * then it is over. Half as many frames are taken meanwhile, so that another peer does not wait for
 * all of that.
 */
static inline bool
is_ending(const struct intake *in)
{
	return in->calm == LINGER && !in->several;
}

static inline uint32_t
bursts_n(const struct intake *in)
{
	if (is_ending(in))
		return (in->turns & 1) != 0 ? 0 : 1;
	return BURSTS;
}

uint32_t
pipeline_intake_fill(struct worker *w, struct burst *b, uint32_t port)
{
	uint32_t done = 0;

	for (uint32_t i = bursts_n(w->intake); i != 0; i--) {
		const uint64_t before = w->stats.c[STAT_rx_packets];
		uint32_t n;

		stage_rx(w, b, port);
		n = (uint32_t)(w->stats.c[STAT_rx_packets] - before);
		done += n;
		put(w, b);
		if (n < PIPELINE_BURST)
			break;
	}
	b->n = 0;
	return done;
}

uint32_t
pipeline_intake_fill_handed(struct worker *w, struct burst *b)
{
	uint32_t done = 0, n = PIPELINE_BURST;

	for (uint32_t i = bursts_n(w->intake); i != 0 && n == PIPELINE_BURST; i--) {
		pipeline_handoff_receive(w, b, PIPELINE_BURST);
		n = b->n;
		done += n;
		put(w, b);
	}
	b->n = 0;
	return done;
}

/* ---- out ------------------------------------------------------------------------------------- */

/** Frames of a peer, as many as it may have and the burst has room for. @return their cost. */
static uint32_t
pop(struct worker *w, struct peer *p, struct burst *b)
{
	const uint32_t n = RTE_MIN((uint32_t)p->n, PIPELINE_BURST - b->n);
	struct intake *in = w->intake;
	uint32_t i = 0, sum = 0;
	uint16_t at = p->first, last = at;

	for (; i < n && (int64_t)sum < p->credit; i++, at = in->next[at]) {
		struct rte_mbuf *m = in->m[at];

		rte_prefetch0(rte_pktmbuf_mtod(m, void *));
		b->port[b->n] = w->port_of[m->port];
		b->m[b->n++] = m;
		sum += in->cost[at];
		last = at;
	}
	if (i == 0)
		return 0;
	in->next[last] = in->free;
	in->free = p->first;
	p->first = at;
	p->n -= (uint16_t)i;
	in->n -= i;
	p->credit -= sum;
	return sum;
}

bool
pipeline_intake_take(struct worker *w, struct burst *b)
{
	struct intake *in = w->intake;
	const bool ends = is_ending(in);
	uint32_t cost = 0, most = ends ? UINT32_MAX : MOST;

	b->n = 0;
	while (b->n < PIPELINE_BURST && in->n != 0 && cost < most) {
		struct peer *p = TAILQ_FIRST(&in->peers);

		cost += pop(w, p, b);
		/*
		 * Frames of this peer that are still at its port wait for the end of the turn: what
		 * others get of it meanwhile is its wait.
		 */
		if (p->n == 0 && !ends)
			most = RTE_MIN(most, cost + QUANTUM);
		if (p->n != 0 && p->credit > 0)
			break; /* it goes on with the next burst */
		TAILQ_REMOVE(&in->peers, p, turn);
		p->credit = RTE_MIN(p->credit + QUANTUM, (int64_t)QUANTUM);
		if (p->n != 0)
			TAILQ_INSERT_TAIL(&in->peers, p, turn);
	}
	return b->n != 0;
}

/** It is over: the next time begins as the first time did. */
static void
forget(struct intake *in)
{
	ASSERT(in->n == 0 && TAILQ_EMPTY(&in->peers));
	for (uint32_t i = 0; i < PLACES; i++) {
		in->peer[i].credit = 0;
		in->peer[i].qpn = 0;
	}
	in->turns = 0;
}

uint32_t
pipeline_intake_settle(struct worker *w, bool more)
{
	struct intake *in = w->intake;

	if (in->several && (more || in->n != 0))
		in->calm = 0;
	else if (in->calm < LINGER)
		in->calm++;
	in->several = false;
	in->turns++;
	if (in->calm == LINGER && in->n == 0) {
		w->intake_on = false;
		forget(in);
	}
	return in->n;
}
