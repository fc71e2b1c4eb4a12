/* SPDX-License-Identifier: BSD-3-Clause */
/* What a host, a peer and an operator see of the worker, held against the model. */
#include "fuzz_responder.h"

#include "crc_isal.h"

enum { WANT_SUCCESS = 0, WANT_FLUSH = 5 };
enum { EV_QP_FATAL = 1, EV_REQ_ERR = 2, EV_ACCESS_ERR = 3, EV_LAST_WQE = 16 };

void
look_begin(void)
{
	fb.made = worker_stats(fb.w)->c[STAT_sent_pkts];
	fb.turn++;
	fb.taken_n = 0;
}

void
look_new_life(uint32_t i)
{
	struct qp_bed *q = &fb.q[i];
	uint8_t drain = fb.drain;

	fb.drain |= DRAIN_UP;
	look_events();
	fb.drain = drain;
	q->learns = q->vague = q->error_cqe = q->flushed = q->nak_sent = q->msn_seen = false;
	q->last_n = 0;
	q->open = OPEN_NONE;
	q->ends = q->lasts = 0;
	q->records = 0;
	q->stale = worker_stats(fb.w)->c[STAT_sent_pkts];
}

/* ---- completions ----------------------------------------------------------------------------- */

static struct qp_bed *
qp_of(uint32_t qpn, bool peer)
{
	for (uint32_t i = 0; i < QPS; i++)
		if (qpn == (peer ? fuzz_plans[i].peer_qpn : fuzz_plans[i].qpn))
			return &fb.q[i];
	return NULL;
}

static void
completion(const struct ring_cqe *c)
{
	struct qp_bed *q = qp_of(c->qp_num, false);

	FUZZ_CHECK(q != NULL && q->qp != NULL && !q->fed);
	if (c->status == WANT_SUCCESS) {
		/* In posting order, each once, with the bytes of its message. */
		FUZZ_CHECK(!q->error_cqe && !q->flushed && q->due_seen < q->due_n);
		FUZZ_CHECK(c->wr_id == q->due[q->due_seen].wr_id);
		FUZZ_CHECK(c->byte_len == q->due[q->due_seen].bytes);
		q->due_seen++;
		return;
	}
	FUZZ_CHECK(atomic_load(&q->qp->state) == QPS_ERR);
	FUZZ_CHECK(q->due_seen == q->due_n);
	FUZZ_CHECK(c->wr_id == queue_complete(q));
	if (c->status == WANT_FLUSH) {
		q->flushed = true;
		return;
	}
	FUZZ_CHECK(!q->error_cqe && !q->flushed);
	q->error_cqe = true;
}

void
look_completions(void)
{
	struct ring_cqe c;

	for (uint32_t k = 0; k < CQS; k++) {
		struct qp_cq *cq = &fb.cq[k];
		const struct ring_cqe *slot = (const void *)cq->ring.sh->slots;
		uint32_t n = atomic_load(&cq->ring.tail) - fb.cq_seen[k];

		FUZZ_CHECK(n <= cq->ring.limit);
		for (uint32_t i = 0; i < n; i++)
			completion(&slot[fb.cq_seen[k]++ & cq->ring.mask]);
		if ((fb.drain & DRAIN_CQ) != 0)
			while (ring_cq_poll(&cq->ring, &c, 1) != 0)
				;
	}
	for (uint32_t i = 0; i < QPS; i++) {
		struct qp_bed *q = &fb.q[i];

		if (!bed_attached(i))
			continue;
		if (!atomic_load(&fb.cq[q->plan->cq].error))
			FUZZ_CHECK(q->due_seen == q->due_n);
		else if (state_of(i) == QPS_ERR)
			queue_forget(q); /* lost with the queue */
	}
}

/* ---- events ---------------------------------------------------------------------------------- */

static void
event(const struct ring_aeq_event *e)
{
	struct qp_bed *q = qp_of(e->id, false);

	if (e->event == EV_LAST_WQE && q != NULL && q->qp != NULL) {
		/* AE-08: once in a life; the QP may be in RESET by the time that it is heard. */
		FUZZ_CHECK(q->shared && q->lasts++ == 0 && q->qp->active == NULL);
		FUZZ_CHECK(state_of((uint32_t)(q - fb.q)) == QPS_ERR ||
			   state_of((uint32_t)(q - fb.q)) == QPS_RESET);
	}
	if (q != NULL && q->qp != NULL)
		paths_event(q, e);
	if (e->code == AEQ_SRQ_REPORT)
		queue_event(e);
	if (e->event < EV_QP_FATAL || e->event > EV_ACCESS_ERR)
		return;
	FUZZ_CHECK(q != NULL);
	if (q->qp == NULL)
		return;
	/* One report; a second one when its completion is lost or the knob asks for both. */
	q->ends++;
	FUZZ_CHECK(q->ends == 1 ||
		   (q->ends == 2 && (atomic_load(&fb.cq[q->plan->cq].error) ||
					    (q->plan->knobs & RESP_KNOB_EVENT_WITH_CQE) != 0)));
}

void
look_events(void)
{
	struct errbuf_record rec[8];
	struct ring_aeq_event e;
	struct mbox_msg m;

	while ((fb.drain & DRAIN_UP) != 0 && mbox_recv_up(&fb.mbox, &m, 1) != 0) {
		FUZZ_CHECK(m.type == MBOX_FATAL || m.type == MBOX_PACKET);
		if (m.type == MBOX_PACKET)
			rte_pktmbuf_free(m.pkt.m);
	}
	while ((fb.drain & DRAIN_UP) != 0 && mbox_next_event(&fb.mbox, &e))
		event(&e);
	if ((fb.drain & DRAIN_UP) != 0)
		mbox_events_done(&fb.mbox);
	if ((fb.drain & DRAIN_ERRBUF) != 0 && worker_errbuf(fb.w) != NULL)
		trace_errbuf_take(worker_errbuf(fb.w), rec, 8);
}

/* ---- frames ---------------------------------------------------------------------------------- */

/** The n-th newest of a QP's records, counting from 1; NULL: there are no more. */
static struct record *
nth_newest(struct qp_bed *q, uint32_t n)
{
	if (n > q->records || n > RECORDS)
		return NULL;
	return &q->record[(q->records - n) % RECORDS];
}

/** Everything accepted before `p` (and `p` itself, if `with`) has its answer by now. */
static void
older_are_done(struct qp_bed *q, psn_t p, bool with)
{
	struct record *r;

	for (uint32_t n = 1; (r = nth_newest(q, n)) != NULL; n++) {
		int32_t d = psn_cmp(r->last, p);

		if (d > 0 || (d == 0 && !with))
			continue;
		FUZZ_CHECK(r->done);
		return; /* when it was, the ones before it were */
	}
}

static struct record *
record_of(struct qp_bed *q, psn_t p, bool read)
{
	struct record *r;

	for (uint32_t n = 1; (r = nth_newest(q, n)) != NULL; n++)
		if (r->read == read && psn_between(p, r->first, r->last))
			return r;
	return NULL;
}

static void
read_response(struct qp_bed *q, const struct wire_pkt *p, bool fresh)
{
	bool ends = p->opcode == OP_RC_READ_RESPONSE_LAST || p->opcode == OP_RC_READ_RESPONSE_ONLY;
	struct record *r = record_of(q, p->psn, true);
	const struct region *m;
	uint32_t off, len;
	uint64_t va;

	FUZZ_CHECK(r != NULL);
	older_are_done(q, r->first, false);
	off = psn_distance(p->psn, r->first) * q->plan->pmtu;
	len = r->len - off < q->plan->pmtu ? r->len - off : q->plan->pmtu;
	FUZZ_CHECK(off <= r->len && p->payload_len <= len);
	if (!r->repeated) {
		FUZZ_CHECK(p->payload_len == len && ends == psn_eq(p->psn, r->last));
		FUZZ_CHECK(
			psn_eq(p->psn, r->first) == (p->opcode == OP_RC_READ_RESPONSE_FIRST ||
							    p->opcode == OP_RC_READ_RESPONSE_ONLY));
	}
	if (ends && psn_eq(p->psn, r->last))
		r->done = true;
	if (!fresh || p->payload_len == 0)
		return;
	if (r->turn == fb.turn && memcmp(wire_payload(p), fb.taken[r->taken], p->payload_len) == 0)
		return;
	/* Only bytes that the peer may read, and those that are there. */
	va = r->va + off;
	m = granted(r->rkey, q->plan->pd, va, p->payload_len, ACCESS_REMOTE_READ);
	FUZZ_CHECK(m != NULL);
	FUZZ_CHECK(memcmp(wire_payload(p), fb.arena + m->at + (va - m->va), p->payload_len) == 0);
}

static void
atomic_response(struct qp_bed *q, const struct wire_pkt *p)
{
	struct record *r = record_of(q, p->psn, false);

	FUZZ_CHECK(r != NULL && wire_atomicack(p) == r->original);
	older_are_done(q, r->first, false);
	r->done = true;
}

static void
acknowledge(struct qp_bed *q, const struct wire_pkt *p, struct wire_aeth a)
{
	int32_t d = psn_cmp(p->psn, q->qp->resp.epsn);
	bool j_ack =
		(q->plan->knobs & RESP_KNOB_J_ACK) != 0 && atomic_load(&q->qp->state) == QPS_ERR;

	FUZZ_CHECK(p->payload_len == 0 && p->pad == 0);
	if ((a.syndrome & AETH_KIND_MASK) == AETH_ACK) {
		FUZZ_CHECK(d < 0 || (d == 0 && j_ack));
		if (!q->vague)
			older_are_done(q, p->psn, true);
		return;
	}
	FUZZ_CHECK(d <= 0);
	if (!q->vague)
		older_are_done(q, p->psn, false);
	if ((a.syndrome & AETH_KIND_MASK) == AETH_RNR)
		return;
	FUZZ_CHECK((a.syndrome & AETH_KIND_MASK) == AETH_NAK && (a.syndrome & 0x1f) <= NAK_REM_OP);
	if ((a.syndrome & 0x1f) == NAK_PSN_SEQ_ERR)
		return;
	FUZZ_CHECK(atomic_load(&q->qp->state) == QPS_ERR);
	q->nak_sent = true;
}

static void
msn_is_sane(struct qp_bed *q, uint32_t msn)
{
	bool j_ack =
		(q->plan->knobs & RESP_KNOB_J_ACK) != 0 && atomic_load(&q->qp->state) == QPS_ERR;

	FUZZ_CHECK(psn_cmp(psn(msn), psn(q->qp->resp.msn)) <= (j_ack ? 1 : 0));
	if (q->msn_seen)
		FUZZ_CHECK(psn_cmp(psn(msn), psn(q->msn)) >= 0);
	q->msn_seen = true;
	q->msn = msn;
}

static void
answer(struct qp_bed *q, const struct wire_pkt *p, bool fresh)
{
	FUZZ_CHECK(!q->nak_sent);
	if (p->opcode == OP_CNP) {
		FUZZ_CHECK((q->qp->flags & QPF_CNP) != 0 && p->payload_len == 16 && p->psn.v == 0);
		return;
	}
	FUZZ_CHECK(p->opcode >= OP_RC_READ_RESPONSE_FIRST && p->opcode <= OP_RC_ATOMIC_ACKNOWLEDGE);
	if (op_has(p->op, OPF_AETH))
		msn_is_sane(q, wire_aeth(p).msn);
	if (p->opcode == OP_RC_ACKNOWLEDGE) {
		acknowledge(q, p, wire_aeth(p));
		return;
	}
	FUZZ_CHECK(psn_cmp(p->psn, q->qp->resp.epsn) < 0);
	if (q->vague)
		return;
	if (p->opcode == OP_RC_ATOMIC_ACKNOWLEDGE)
		atomic_response(q, p);
	else
		read_response(q, p, fresh);
}

static void
frame(const struct rte_mbuf *m, uint64_t number)
{
	struct wire_port tester = { .mac = { 2, 0, 0, 0, 0, 2 },
		.has_ipv4 = true,
		.has_ipv6 = true,
		.require_df = true,
		.ipv4 = { 192, 0, 2, 2 },
		.ipv6 = { 0xfd, [15] = 2 } };
	struct wire_pkt p;
	struct qp_bed *q;

	FUZZ_CHECK(m->nb_segs == 1 && m->pkt_len == m->data_len);
	/* The peer has an address for each way. */
	memcpy(tester.mac, rte_pktmbuf_mtod(m, uint8_t *), 6);
	tester.ipv4[3] = tester.ipv6[15] = paths_peer(rte_pktmbuf_mtod(m, const uint8_t *));
	FUZZ_CHECK(wire_parse(&tester, rte_pktmbuf_mtod(m, const uint8_t *), m->data_len, &p) ==
		   WIRE_CLASS_ROCE);
	/* ICRC-05, and nothing that the peer would refuse. */
	FUZZ_CHECK(p.faults == 0 && icrc_verify(crc_isal(), &p));
	FUZZ_CHECK((uint32_t)p.icrc_off + WIRE_ICRC_LEN == m->data_len);
	q = qp_of(p.dest_qpn, true);
	FUZZ_CHECK(q != NULL);
	paths_frame(q, &p, number >= fb.made && number >= q->stale);
	FUZZ_CHECK((p.payload_len + p.pad) % 4 == 0);
	for (uint32_t i = 0; i < p.pad; i++)
		FUZZ_CHECK(wire_payload(&p)[p.payload_len + i] == 0);
	/* No later than in the turn in which its QP goes to RESET: of the life that has ended. */
	if (fb.modifying == (int)(q - fb.q) && state_of((uint32_t)(q - fb.q)) == QPS_RESET)
		return;
	if (q->qp != NULL && number >= q->stale)
		answer(q, &p, number >= fb.made);
}

void
look_frames(void)
{
	struct rte_mbuf *m;

	if ((fb.drain & DRAIN_TX) == 0)
		return;
	while (rte_ring_dequeue(fb.from, (void **)&m) == 0) {
		frame(m, fb.collected++);
		rte_pktmbuf_free(m);
	}
}

/* ---- counters -------------------------------------------------------------------------------- */

/* Counters of drops: looked for once, since every turn asks. */
static uint32_t drops_n;
static uint16_t drops[STAT_MAX];

static void
find_drops(void)
{
	for (uint16_t i = 0; i < STAT_MAX; i++)
		if (stats_info[i].drop != 0)
			drops[drops_n++] = i;
}

static void
accounts(const struct stats_block *s)
{
	uint64_t out = s->c[STAT_rcvd_pkts] + s->c[STAT_rx_control] + s->c[STAT_rx_handoff];

	if (drops_n == 0)
		find_drops();
	for (uint32_t i = 0; i < drops_n; i++)
		out += s->c[drops[i]];
	FUZZ_CHECK(s->c[STAT_rx_packets] + s->c[STAT_rx_handoff_in] == out);
}

void
look_accounts(void)
{
	accounts(worker_stats(fb.w));
	accounts(worker_port_stats(fb.w, 0));
	FUZZ_CHECK(worker_stats(fb.w)->c[STAT_tx_backlog_drop] == 0);
	FUZZ_CHECK(rte_ring_empty(fb.to));
}
