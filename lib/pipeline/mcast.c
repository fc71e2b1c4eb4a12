/* SPDX-License-Identifier: BSD-3-Clause */
/* Datagrams to multicast groups (UD-31): what stage 5 took out of a burst, to each member. */
#include "mcast.h"

#include <rte_ring.h>

#include "count.h"
#include "drops.h"
#include "local.h"
#include "spare.h"
#include "stage_05_faults.h"
#include "tx.h"
#include "wire_group.h"

/**
 * In mbuf.packet_type of a frame with w->copy_flag: another worker has taken the frame from a port,
 * and sends one to each worker that has members. A driver sets the flags of what it receives, but
 * may leave the type as it was. While a QP moves, the sender says whether it is
 * one of them, for the receiver may hold another view of the move.
 */
enum {
	HANDED = 0xff,      /* to all members of the worker */
	HANDED_WITH = 0xfe, /* and to the QP in the low bits, which comes to this worker */
	HANDED_BUT = 0xfd,  /* but not to that one */
	HANDED_ONE = 0xfc,  /* to that one alone, wherever it is */
};

static inline uint32_t
kind_of(const struct worker *w, const struct rte_mbuf *m)
{
	const uint32_t kind = m->packet_type >> 24;

	return (m->ol_flags & w->copy_flag) == w->copy_flag && kind >= HANDED_ONE ? kind : 0;
}

static inline uint32_t
handed_as(uint32_t kind, uint32_t qpn)
{
	return kind << 24 | qpn;
}

_Static_assert(PIPELINE_MAX_WORKERS <= 64, "a bit for each worker");

/** Who gets a datagram. */
struct takers {
	struct qp *own[QP_MCAST_QPS];
	uint32_t own_n;
	uint64_t others;  /* workers */
	uint32_t one;     /* number of a QP that is somewhere else, 0: none */
	uint32_t one_for; /* whose it is; this worker: kept aside until it has come */
};

static uint32_t
members_of(const struct worker *w, uint8_t port, const uint8_t *l3, uint32_t *qpn)
{
	const bool ipv6 = l3[0] >> 4 == 6;
	struct qp_mcast_group g = { .port = w->conf.ports[port].id };

	if (w->mcasts == NULL)
		return 0;
	wire_group_gid(ipv6, l3 + (ipv6 ? 24 : 16), g.addr);
	return qp_mcast_members(w->mcasts, &g, qpn);
}

bool
pipeline_mcast_take(struct worker *w, const struct burst *b, uint32_t i)
{
	const struct wire_pkt *p = &b->pkt[i];
	const uint8_t *l3 = p->frame + p->l3_off;
	const bool ipv6 = (p->flags & PKT_IPV6) != 0;
	struct burst *to = &w->mcast;
	uint32_t qpn[QP_MCAST_QPS];
	uint8_t mac[6];

	if (!wire_ip_is_group(l3))
		return false;
	wire_group_mac(ipv6, l3 + (ipv6 ? 24 : 16), mac);
	if (memcmp(p->frame, mac, sizeof(mac)) != 0 || members_of(w, b->port[i], l3, qpn) == 0)
		return false;
	if (UNLIKELY(to->n == PIPELINE_BURST))
		return false; /* cannot be: a burst is served before the next one */
	if (w->local_burst)
		pipeline_local_seal(w, b->m[i]);
	to->m[to->n] = b->m[i];
	to->port[to->n] = b->port[i];
	to->pkt[to->n] = *p;
	to->pkt[to->n].faults = MCAST_FAULTS;
	to->qp[to->n] = NULL;
	to->n++;
	w->hurry |= HURRY_MCAST;
	return true;
}

static void
find_takers(const struct worker *w, uint32_t i, struct takers *t)
{
	const struct burst *b = &w->mcast;
	const uint32_t kind = kind_of(w, b->m[i]), named = b->m[i]->packet_type & PSN_MASK;
	const uint8_t *l3 = b->pkt[i].frame + b->pkt[i].l3_off;
	const struct qp *moving = w->moving.qp;
	uint32_t qpn[QP_MCAST_QPS];
	const uint32_t n = members_of(w, b->port[i], l3, qpn);

	*t = (struct takers){ .own_n = 0 };
	for (uint32_t k = 0; k < n; k++) {
		const bool asked = kind == 0 ||
				   ((kind == HANDED_WITH || kind == HANDED_ONE) && qpn[k] == named);
		struct qp *qp = qp_lookup(w->qps, qpn[k]);
		uint32_t owner;

		if (qp == NULL || (kind == HANDED_BUT && qpn[k] == named) ||
			(kind == HANDED_ONE && !asked))
			continue;
		owner = UNLIKELY(qp == moving) ? w->moving.to : qp->worker;
		if (owner == w->index && qp != moving) {
			t->own[t->own_n++] = qp;
		} else if (kind == 0 && owner != w->index) {
			t->others |= UINT64_C(1) << owner;
		} else if (asked) {
			t->one = qpn[k];
			t->one_for = owner;
		}
	}
}

/** A frame that says whom it is for. */
static struct rte_mbuf *
copy_of(const struct worker *w, uint32_t i, uint32_t as)
{
	const struct burst *b = &w->mcast;
	const struct pipeline_port *port = &w->conf.ports[b->port[i]];
	struct rte_mbuf *m = rte_pktmbuf_copy(b->m[i], port->pool, 0, UINT32_MAX);

	if (m != NULL) {
		m->port = port->id;
		m->packet_type = as;
		m->ol_flags |= w->copy_flag;
	}
	return m;
}

static void
hand_over_as(struct worker *w, uint32_t i, uint32_t to, uint32_t as)
{
	struct rte_ring *r = w->conf.handoff[to];
	struct rte_mbuf *m = copy_of(w, i, as);

	if (m != NULL && r != NULL && rte_ring_enqueue(r, m) == 0) {
		count(w, w->mcast.port[i], NULL, STAT_rx_handoff);
		return;
	}
	count(w, w->mcast.port[i], NULL, STAT_rx_handoff_lost);
	rte_pktmbuf_free(m);
}

/** One frame to each of these workers. */
static void
hand_over(struct worker *w, uint32_t i, const struct takers *t)
{
	const struct qp *moving = w->moving.qp;
	struct rte_mbuf *m;

	for (uint64_t others = t->others; others != 0; others &= others - 1) {
		const uint32_t to = (uint32_t)__builtin_ctzll(others);
		const uint32_t kind = moving == NULL       ? HANDED
				      : to == w->moving.to ? HANDED_WITH
							   : HANDED_BUT;

		hand_over_as(w, i, to, handed_as(kind, moving != NULL ? moving->qpn : 0));
	}
	if (LIKELY(t->one == 0))
		return;
	if (t->one_for != w->index) {
		hand_over_as(w, i, t->one_for, handed_as(HANDED_ONE, t->one));
		return;
	}
	m = copy_of(w, i, handed_as(HANDED_ONE, t->one));
	if (m != NULL)
		pipeline_move_keep(w, m, w->mcast.port[i]);
	else
		count(w, w->mcast.port[i], NULL, STAT_rx_handoff_lost);
}

/** As if it named the QP's own number. @return false: the QP does not take it, which is counted. */
static bool
address_to(struct worker *w, struct burst *few, uint32_t at, uint32_t i, struct qp *qp)
{
	const struct burst *b = &w->mcast;
	const uint8_t state = qp_state_of(qp);
	struct wire_pkt *p = &few->pkt[at];

	few->m[at] = b->m[i];
	few->port[at] = b->port[i];
	few->qp[at] = qp;
	*p = b->pkt[i];
	p->dest_qpn = qp->qpn;
	p->faults = FAULT_BIT(FAULT_QP_STATE);
	if (LIKELY(qp_receives(state)))
		p->faults =
			pipeline_faults_all(qp, state, p, (uint8_t)w->conf.ports[b->port[i]].id);
	if (LIKELY(p->faults == 0))
		return true;
	pipeline_drop_faulty(w, few, at);
	return false;
}

/**
 * The frame stays as it is: it has as many owners as there are QPs that read it. Stages 4 and 5 do
 * not see this burst, so what they say of one is said here.
 */
static void
deliver(struct worker *w, uint32_t i, const struct takers *t)
{
	struct burst *few = &w->few;

	few->plain = 0;
	few->one_port = true;
	w->few_end = w->burst.n; /* all of that has been served */
	for (uint32_t k = 0; k < t->own_n;) {
		few->n = 0;
		for (; k < t->own_n && few->n < PIPELINE_BURST; k++)
			few->n += address_to(w, few, few->n, i, t->own[k]);
		if (few->n == 0)
			continue;
		rte_mbuf_refcnt_update(w->mcast.m[i], (int16_t)few->n);
		stage_respond(w, few);
		pipeline_mbufs_free_spare(w);
	}
}

static void
serve(struct worker *w, uint32_t i)
{
	struct burst *b = &w->mcast;
	struct takers t;
	uint32_t n;

	find_takers(w, i, &t);
	n = t.own_n + (uint32_t)__builtin_popcountll(t.others) + (t.one != 0);
	if (UNLIKELY(n == 0)) { /* they have left meanwhile */
		pipeline_drop_faulty(w, b, i);
		rte_pktmbuf_free(b->m[i]);
		return;
	}
	if (kind_of(w, b->m[i]) == 0)
		count(w, b->port[i], NULL, STAT_rx_mcast);
	stats_add(&w->stats, STAT_rx_mcast_copies, n - 1);
	stats_add(&w->port_stats[b->port[i]], STAT_rx_mcast_copies, n - 1);
	hand_over(w, i, &t);
	deliver(w, i, &t);
	rte_pktmbuf_free(b->m[i]);
}

void
pipeline_mcast_serve(struct worker *w)
{
	ASSERT(w->spare_n == 0);
	for (uint32_t i = 0; i < w->mcast.n; i++)
		serve(w, i);
	w->mcast.n = 0;
}

void
pipeline_mcast_loop(struct worker *w, uint8_t port, const struct rte_mbuf *m, uint32_t l3_off)
{
	const uint8_t *frame = rte_pktmbuf_mtod(m, const uint8_t *);
	const uint8_t own = w->port_of[w->conf.ports[port].id]; /* whatever its queue */
	const uint8_t out = (uint8_t)(own + w->wires_n);
	uint32_t qpn[QP_MCAST_QPS];
	struct rte_mbuf *copy;

	if (members_of(w, own, frame + l3_off, qpn) == 0)
		return;
	local_note(w, QP_OUT_LOCAL);
	copy = tx_is_congested(w, out)
		       ? NULL
		       : rte_pktmbuf_copy(m, w->conf.ports[port].pool, 0, UINT32_MAX);
	if (copy != NULL)
		pipeline_tx_push(w, out, copy);
	else
		count(w, port, NULL, STAT_tx_backlog_drop);
}
