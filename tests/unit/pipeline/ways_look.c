/* SPDX-License-Identifier: BSD-3-Clause */
/* What is seen of a world after each turn, a line of text for each thing. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ways.h"

enum { ROOM = 16 << 20, EVENTS = 256, CQES = 1024 };

static struct {
	char *text[2];
	size_t len;
	uint32_t at;
} book;

void
ways_log_open(uint32_t world)
{
	if (book.text[world] == NULL)
		book.text[world] = malloc(ROOM);
	assert_non_null(book.text[world]);
	book.text[world][0] = 0;
	book.at = world;
	book.len = 0;
}

const char *
ways_log(uint32_t world)
{
	return book.text[world];
}

static void
say(const char *format, ...)
{
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(book.text[book.at] + book.len, ROOM - book.len, format, args);
	va_end(args);
	assert_true(n > 0 && (size_t)n < ROOM - book.len);
	book.len += (size_t)n;
}

static uint64_t
sum_of(const void *bytes, size_t n)
{
	uint64_t h = UINT64_C(0xcbf29ce484222325);

	for (size_t i = 0; i < n; i++)
		h = (h ^ ((const uint8_t *)bytes)[i]) * UINT64_C(0x100000001b3);
	return h;
}

/**
 * A queue pair's requests in order, and its answers in order: which of either, and whose, comes
 * first is not the peers' to rely on.
 */
static struct {
	char text[1 << 18];
	size_t len;
} frames[2 * WAYS_QPS];

void
ways_look_at_frames(const struct world *w)
{
	for (uint32_t i = 0; i < w->b->out_n; i++) {
		const struct wire_pkt *p = &w->b->pkt[i];
		const uint32_t answer = op_has(p->op, OPF_RESPONSE);
		const uint32_t to = 2 * (p->dest_qpn - PEER_QPN) + answer;
		int n;

		assert_in_range(to, 0, 2 * WAYS_QPS - 1);
		n = snprintf(frames[to].text + frames[to].len,
			sizeof(frames[to].text) - frames[to].len,
			"frame to %x opcode %02x PSN %x length %u ext %016llx bytes %016llx\n",
			p->dest_qpn, p->opcode, p->psn.v, p->payload_len,
			wire_ext(p) + 8 > p->frame + p->frame_len
				? 0ULL
				: (unsigned long long)be64_load(wire_ext(p)),
			(unsigned long long)sum_of(p->frame, p->frame_len));
		frames[to].len += (size_t)n;
		assert_true(frames[to].len < sizeof(frames[to].text));
	}
}

static void
say_frames(uint32_t to, uint32_t unclear)
{
	if (frames[to].len != 0 && (unclear & BIT32(to / 2)) == 0)
		say("%s", frames[to].text);
	frames[to].len = 0;
}

static void
say_completion(const struct ring_cqe *c)
{
	say("completion of %x wr_id %llu status %u opcode %u length %u flags %x imm %x vendor %x "
	    "src %x PSN %x cause %u solicited %u peer %02x grh %u time %llu\n",
		c->qp_num, (unsigned long long)c->wr_id, c->status, c->opcode, c->byte_len,
		c->wc_flags, c->imm_data, c->vendor_err, c->src_qp, c->psn, c->cause, c->solicited,
		c->peer_opcode, c->grh_ip, (unsigned long long)c->time_ns);
}

/**
 * Completions of each queue pair: of two that fail in the same turn the one that is served first
 * comes first, and a queue pair may leave the list of senders a visit earlier by the fast path.
 */
static void
look_at_completions(struct world *w)
{
	static struct ring_cqe c[CQES];
	const uint32_t n = ring_cq_poll(&w->b->cq.ring, c, CQES);

	assert_in_range(n, 0, CQES - 1);
	for (uint32_t i = 0; i < WAYS_QPS; i++)
		for (uint32_t k = 0; k < n; k++)
			if (c[k].qp_num == w->q[i].qp->qpn)
				say_completion(&c[k]);
	say("solicited %u error %u\n", atomic_load(&w->b->cq.solicited),
		atomic_load(&w->b->cq.error));
}

static void
say_event(const struct ring_aeq_event *e)
{
	say("event of %x code %u source %u event %u fatal %u PSN %x wqe %u rule %u "
	    "opcode %02x state %u syndrome %02x fault %u flags %x\n",
		e->id, e->code, e->source, e->event, e->fatal, e->psn, e->wqe_index, e->rule,
		e->opcode, e->state, e->syndrome, e->fault, e->flags);
}

/** Events of each queue pair: timers of several that end at once may end in any order. */
static void
look_at_events(struct world *w)
{
	struct ring_aeq_event e[EVENTS];
	struct mbox_msg m;
	uint32_t n = 0;

	while (mbox_recv_up(&w->b->mbox, &m, 1) != 0) {
		say("message %u\n", m.type);
		if (m.type == MBOX_PACKET)
			rte_pktmbuf_free(m.pkt.m);
	}
	while (n < EVENTS && mbox_next_event(&w->b->mbox, &e[n]))
		n++;
	assert_true(n < EVENTS);
	for (uint32_t group = 0; group <= WAYS_QPS; group++)
		for (uint32_t i = 0; i < n; i++)
			if (RTE_MIN(e[i].id - QPN, (uint32_t)WAYS_QPS) == group)
				say_event(&e[i]);
	mbox_events_done(&w->b->mbox);
}

static bool
is_unclear(const struct world *w, uint32_t qpn)
{
	return qpn - QPN < WAYS_QPS && (w->unclear >> (qpn - QPN) & 1) != 0;
}

static void
say_entry(const struct trace_entry *e)
{
	say("trace of %x %s PSN %x opcode %02x rule %u state %u detail %u msn %x length %u "
	    "syndrome %02x fault %u\n",
		e->qpn, trace_kind_name(e->kind), e->psn, e->opcode, e->rule,
		e->kind == TRACE_rx ? e->state : 0, e->detail, e->msn, e->len, e->syndrome,
		e->fault);
}

/**
 * Entries of each queue pair and each kind: an answer that waits for its turn is sent later,
 * perhaps after an error. Last come those of no queue pair.
 */
static void
look_at_recorder(struct world *w)
{
	const uint32_t groups = TRACE_KIND_MAX * (WAYS_QPS + 1);
	static struct trace_entry e[WAYS_TRACE];
	const uint32_t n = trace_after(worker_trace(w->b->w), UINT32_MAX, w->traced, e, WAYS_TRACE);

	for (uint32_t group = 0; group < groups; group++)
		for (uint32_t i = 0; i < n; i++)
			if (!is_unclear(w, e[i].qpn) && e[i].kind == group % TRACE_KIND_MAX &&
				RTE_MIN(e[i].qpn - QPN, (uint32_t)WAYS_QPS) ==
					group / TRACE_KIND_MAX)
				say_entry(&e[i]);
	w->traced = trace_head(worker_trace(w->b->w));
}

static void
look_at_records(struct world *w)
{
	struct errbuf_record r;

	while (w->keeps_records && trace_errbuf_take(worker_errbuf(w->b->w), &r, 1) == 1)
		say("record of %x PSN %x opcode %02x rule %u fault %u impact %u faults %llx\n",
			r.qpn, r.psn, r.opcode, r.rule, r.charged, r.impact,
			(unsigned long long)r.faults);
}

static void
count(const char *whose, uint32_t number, uint64_t *seen, uint64_t is, uint32_t s)
{
	if (seen[s] != is)
		say("counter of %s %x %s %llu\n", whose, number, stats_info[s].name,
			(unsigned long long)is);
	seen[s] = is;
}

static void
look_at_counters(struct world *w)
{
	for (uint32_t s = 0; s < STAT_MAX; s++) {
		if (w->unclear == 0) {
			count("worker", 0, w->counters, worker_stats(w->b->w)->c[s], s);
			count("port", 0, w->port_counters, worker_port_stats(w->b->w, 0)->c[s], s);
		}
		for (uint32_t i = 0; i < WAYS_QPS; i++)
			if ((w->unclear >> i & 1) == 0)
				count("QP", w->q[i].qp->qpn, w->q[i].counters,
					qp_stat(w->q[i].qp, (enum stats_counter)s), s);
	}
}

static void
look_at_states(struct world *w)
{
	for (uint32_t i = 0; i < WAYS_QPS; i++) {
		struct qp *qp = w->q[i].qp;
		const struct responder *p = &qp->resp;
		const struct requester *r = &qp->req;

		if ((w->unclear >> i & 1) != 0)
			continue;
		say("QP %x state %u responder %x %x %u %u %u %u %u %u %u %llu saved %016llx\n",
			qp->qpn, atomic_load(&qp->state), p->epsn.v, p->msn, p->open, p->latched,
			p->unfinished, p->saved_next, p->wqe_active, p->received, p->starved,
			(unsigned long long)p->rnr_until,
			p->saved == NULL ? 0ULL
					 : (unsigned long long)sum_of(
						   p->saved, p->saved_n * sizeof(*p->saved)));
		/* How many requests were copied when all were flushed is nobody's. */
		say("QP %x requester %x %x %x %u %u %u %u reply %u ackreq %u reads %u flags "
		    "%u%u%u%u%u%u%u%u deadline %llu %u %u left %u %u\n",
			qp->qpn, r->next.v, r->cur.v, r->una.v, r->head, r->dead ? 0 : r->tail,
			r->sending, r->fresh, r->reply_psns, r->since_ackreq, r->reads, r->timing,
			r->waiting_rnr, r->draining, r->failed, r->dead, r->implied, r->recovering,
			r->doubting, (unsigned long long)(r->timing ? r->deadline : 0), r->open,
			r->knee, r->retry_left, r->rnr_left);
		say("QP %x rings %u %u\n", qp->qpn, qp->rq.cons, qp->sq.ring.cons);
	}
	say("SRQ %u %u\n", ring_srq_count(&w->srq.ring), atomic_load(&w->srq.error));
}

/** Who has failed in this step, or begun anew, and is not compared any more. */
static void
look_for_failed(struct world *w)
{
	for (uint32_t i = 0; i < WAYS_QPS; i++) {
		struct ways_qp *q = &w->q[i];
		const bool anew = q->anew;

		q->anew = false;
		if (q->asks == 0 || !q->well || (atomic_load(&q->qp->state) != QPS_ERR && !anew))
			continue;
		say("QP %x has failed with READs\n", q->qp->qpn);
		w->unclear |= BIT32(i);
	}
}

void
ways_look(struct world *w, uint32_t step)
{
	look_for_failed(w);
	say("step %u\n", step);
	for (uint32_t i = 0; i < 2 * WAYS_QPS; i++)
		say_frames(i, w->unclear);
	look_at_completions(w);
	look_at_events(w);
	look_at_records(w);
	look_at_recorder(w);
	look_at_counters(w);
	look_at_states(w);
}

void
ways_look_at_memory(const struct world *w)
{
	say("memory %016llx %016llx\n", (unsigned long long)sum_of(w->b->memory, MR_LEN),
		(unsigned long long)sum_of(w->b->rq_memory, MR_LEN));
}
