/* SPDX-License-Identifier: BSD-3-Clause */
/* Flows that always have something to send, their hosts and switches: events in virtual time. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fair.h"

#define SAMPLE  (20 * TIME_NS_PER_US) /* of the queue */
#define SAMPLES 100000
#define HOP_WAY TIME_NS_PER_US /* from the first switch to the second */

struct flow {
	struct cc cc;
	ns_t cnp_next;   /* the notified side */
	uint32_t flying; /* packets not acknowledged */
	uint64_t out;    /* packets sent */
	uint64_t timed;  /* `timed_at`: the one whose acknowledgement ends a round trip */
	ns_t timed_at;   /* 0: none is being timed */
	uint64_t half;   /* delivered when the time that is judged began */
	uint64_t line;   /* delivered at the last line of CSV */
	uint64_t sent;   /* delivered, bytes */
	bool waits;      /* for room in its window */
};

struct event {
	ns_t at;
	uint64_t nth; /* of two at the same time the older one comes first */
	uint32_t flow;
	enum { SENDS, ARRIVES, ARRIVES_MARKED, NOTIFIED, ACKED, LOST } what;
};

static struct flow flow[FAIR_MOST + 1];
static struct event heap[FAIR_MOST * 256];
static uint32_t heap_n;
static uint64_t events;
static struct bottleneck link, hop;
static ns_t host_free; /* the link of the victim's host */
static uint32_t queue[SAMPLES], queue_n;

/* ---- events ---------------------------------------------------------------------------------- */

static bool
is_before(const struct event *a, const struct event *b)
{
	return a->at != b->at ? a->at < b->at : a->nth < b->nth;
}

static void
push(ns_t at, uint32_t f, int what)
{
	const struct event e = { at, events++, f, what };
	uint32_t i = heap_n++;

	if (heap_n > ARRAY_LEN(heap))
		abort();
	for (; i != 0 && is_before(&e, &heap[(i - 1) / 2]); i = (i - 1) / 2)
		heap[i] = heap[(i - 1) / 2];
	heap[i] = e;
}

static struct event
pop(void)
{
	const struct event first = heap[0], last = heap[--heap_n];
	uint32_t i = 0, child;

	while ((child = 2 * i + 1) < heap_n) {
		child += child + 1 < heap_n && is_before(&heap[child + 1], &heap[child]);
		if (!is_before(&heap[child], &last))
			break;
		heap[i] = heap[child];
		i = child;
	}
	heap[i] = last;
	return first;
}

/* ---- a frame, and what it leads to ----------------------------------------------------------- */

void
fair_params(const struct fair_row *r, struct cc_params *p)
{
	if (r->by_delay)
		cc_delay_preset(p);
	else
		cc_preset(r->preset, p);
	p->line_rate = r->line != 0 ? r->line : (uint32_t)(r->link.rate / 1000000);
	if (r->ai != 0)
		p->rpg_ai_rate = r->ai;
}

static uint32_t
flows_of(const struct fair_row *r)
{
	return r->flows + (r->victim != VICTIM_NONE);
}

static bool
has_window(const struct fair_row *r)
{
	return r->window != 0 || r->by_delay;
}

/** It comes to the receiver, or is known to be lost, at `at`. */
static void
ends(struct fair_row *r, uint32_t n, ns_t at, bool delivered, bool marked)
{
	struct flow *f = &flow[n];

	if (delivered) {
		f->sent += FAIR_FRAME;
		if (r->halves != NULL && n < r->flows && at / FAIR_SLICE < FAIR_SLICES)
			r->halves[n >= r->flows / 2][at / FAIR_SLICE] += FAIR_FRAME;
	}
	if (marked && !r->by_delay && at >= f->cnp_next) {
		f->cnp_next = at + FAIR_CNP;
		push(at + 2 * FAIR_DELAY, n, NOTIFIED);
		r->cnps++;
	}
	if (has_window(r))
		push(at + 2 * FAIR_DELAY, n, delivered ? ACKED : LOST);
}

/** A frame comes to a queue. @param last nothing is behind it but the receiver. */
static void
enters(struct fair_row *r, struct bottleneck *b, const struct event *e, bool last, bool marked)
{
	const struct bottleneck_verdict v = impair_bottleneck_offer(b, FAIR_FRAME, !marked, e->at);

	r->digest = (r->digest ^ v.leaves ^ v.marked) * 0x100000001b3u;
	marked |= v.marked;
	if (v.dropped)
		ends(r, e->flow, b->empty_at, false, false);
	else if (last)
		ends(r, e->flow, v.leaves, true, marked);
	else
		push(v.leaves + HOP_WAY, e->flow, marked ? ARRIVES_MARKED : ARRIVES);
}

static void
leaves_host(struct fair_row *r, const struct event *e)
{
	const bool victim = e->flow == r->flows;

	if (r->victim == VICTIM_HOP)
		enters(r, &hop, e, victim, false);
	else if (victim)
		ends(r, e->flow, e->at, true, false);
	else
		enters(r, &link, e, true, false);
}

static void
send_one(struct fair_row *r, const struct event *e)
{
	const bool shares = r->victim == VICTIM_HOST && (e->flow == 0 || e->flow == r->flows);
	struct flow *f = &flow[e->flow];

	if (has_window(r) && f->flying >= (r->by_delay ? cc_delay_window(&f->cc) : r->window)) {
		f->waits = true;
		return;
	}
	if (shares && e->at < host_free) { /* who came first goes first: they take turns */
		push(host_free, e->flow, SENDS);
		return;
	}
	cc_advance(&f->cc, e->at);
	if (cc_packets(&f->cc, FAIR_FRAME, e->at) != 0) {
		cc_sent(&f->cc, FAIR_FRAME);
		f->flying++;
		if (r->by_delay && f->timed_at == 0) {
			f->timed = f->out;
			f->timed_at = e->at + 1;
		}
		f->out++;
		if (shares)
			host_free = e->at + FAIR_FRAME * 8000ull / f->cc.p.line_rate;
		leaves_host(r, e);
	}
	push(f->cc.due > e->at ? f->cc.due : e->at + 1, e->flow, SENDS);
}

/** What the requester tells of a packet that was acknowledged, or lost. */
static void
heard(struct flow *f, const struct event *e)
{
	const struct cc_round s = { .rtt = (uint32_t)(e->at + 1 - f->timed_at),
		.frame = FAIR_FRAME };

	if (e->what == LOST) {
		f->timed_at = 0;
		cc_delay_lost(&f->cc, false, e->at);
	} else if (f->timed_at != 0 && f->out - f->flying == f->timed) {
		f->timed_at = 0;
		cc_delay_round(&f->cc, &s, e->at);
	}
}

/** A packet is acknowledged, or known to be lost: in the order in which they were sent. */
static void
acked(const struct fair_row *r, const struct event *e)
{
	struct flow *f = &flow[e->flow];

	if (r->by_delay)
		heard(f, e);
	f->flying--;
	if (f->waits)
		push(f->cc.due > e->at ? f->cc.due : e->at, e->flow, SENDS);
	f->waits = false;
}

static void
happens(struct fair_row *r, const struct event *e)
{
	if (e->what == NOTIFIED)
		cc_notified(&flow[e->flow].cc, e->at);
	else if (e->what == ACKED || e->what == LOST)
		acked(r, e);
	else if (e->what == SENDS)
		send_one(r, e);
	else
		enters(r, &link, e, true, e->what == ARRIVES_MARKED);
}

/* ---- results --------------------------------------------------------------------------------- */

static void
csv_line(const struct fair_row *r, ns_t now)
{
	fprintf(stderr, "%.3f,%u", (double)now / 1e6, impair_bottleneck_queue(&link, now));
	for (uint32_t i = 0; i < flows_of(r); i++) {
		fprintf(stderr, ",%.1f",
			(double)(flow[i].sent - flow[i].line) * 8000 / (double)TIME_NS_PER_MS);
		flow[i].line = flow[i].sent;
	}
	fputc('\n', stderr);
}

static int
by_size(const void *a, const void *b)
{
	const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

static void
results(struct fair_row *r, ns_t took)
{
	const struct flow *side = &flow[r->flows];
	double squares = 0;

	r->sum = 0;
	for (uint32_t i = 0; i < r->flows; i++) {
		const double rate = (double)(flow[i].sent - flow[i].half) * 8000 / (double)took;

		r->sum += rate;
		squares += rate * rate;
	}
	r->jain = r->sum * r->sum / (r->flows * squares);
	r->beside[0] = (double)side->half * 8000 / (double)took;
	r->beside[1] = (double)(side->sent - side->half) * 8000 / (double)took;
	r->dropped = link.dropped + hop.dropped;
	r->longest = link.longest;
	qsort(queue, queue_n, sizeof(queue[0]), by_size);
	r->mean = 0;
	for (uint32_t i = 0; i < queue_n; i++)
		r->mean += (double)queue[i] / queue_n;
	r->p99 = queue[queue_n / 100 * 99];
}

static void
begin(struct fair_row *r)
{
	struct cc_params p;

	fair_params(r, &p);
	heap_n = queue_n = 0;
	r->digest = 0xcbf29ce484222325u;
	r->cnps = events = host_free = 0;
	memset(flow, 0, sizeof(flow));
	r->link.seed = r->seed;
	impair_bottleneck_init(&link, &r->link);
	r->hop.seed = r->seed + 1;
	impair_bottleneck_init(&hop, r->victim == VICTIM_HOP ? &r->hop : &r->link);
	for (uint32_t i = 0; i < flows_of(r); i++) {
		const bool first = r->together || i < r->flows / 2 || i == r->flows;

		cc_start(&flow[i].cc, &p);
		push((first ? 0 : fair_t0(r)) + (r->together ? 0 : i * 7919 % 100000), i, SENDS);
	}
}

void
fair_play(struct fair_row *r)
{
	const ns_t end = r->ms * TIME_NS_PER_MS, half = end / 2;
	ns_t next_line = TIME_NS_PER_MS, next_sample = half;
	bool halved = false;

	begin(r);
	while (heap[0].at < end) {
		const struct event e = pop();

		for (; r->csv && e.at >= next_line; next_line += TIME_NS_PER_MS)
			csv_line(r, next_line);
		for (; e.at >= next_sample && queue_n < SAMPLES; next_sample += SAMPLE)
			queue[queue_n++] = impair_bottleneck_queue(&link, next_sample);
		if (!halved && e.at >= half) {
			halved = true;
			for (uint32_t i = 0; i <= r->flows; i++)
				flow[i].half = flow[i].sent;
		}
		happens(r, &e);
	}
	results(r, half);
}
