/* SPDX-License-Identifier: BSD-3-Clause */
/* What is good by itself, and more than there is room for; and requests that a knob forbids. */
#include "conf_qps.h"
#include "cross.h"
#include "errors.h"
#include "verbs_wr.h"

#include <errno.h>
#include <stdlib.h>

#define PLACES_MIN 65536u

uint32_t
conf_qp_places(const struct conf *c)
{
	uint32_t qps = 0, n = PLACES_MIN;

	for (uint32_t i = 0; i < c->n_qps; i++)
		qps += c->qps[i].count;
	while (n < qps && n < CONF_MAX_QPS)
		n <<= 1;
	return n;
}

/* Places in a row that an entry of /qps takes. */
struct run {
	uint32_t first;
	uint32_t n;
	uint32_t index;  /* of the entry */
	uint32_t number; /* that has the first of them */
};

static int
by_place(const void *a, const void *b)
{
	const struct run *x = a, *y = b;

	if (x->first != y->first)
		return x->first < y->first ? -1 : 1;
	return x->index < y->index ? -1 : x->index > y->index;
}

/* Behind the last place the first one is next. @return how many runs that makes. */
static uint32_t
runs_of(const struct conf *c, uint32_t i, uint32_t places, struct run *to)
{
	const struct conf_qp *q = &c->qps[i];
	const uint32_t first = q->qp_num % places, room = places - first;
	const uint32_t n = q->count < room ? q->count : room;

	to[0] = (struct run){ first, n, i, q->qp_num };
	if (n == q->count)
		return 1;
	to[1] = (struct run){ 0, q->count - n, i, q->qp_num + n };
	return 2;
}

static void
taken(const struct run *held, const struct run *r, uint32_t places, struct conf_errors *err)
{
	/* Of the two the later one is told of, as the start does. */
	const bool swap = r->index < held->index;
	const struct run *by = swap ? r : held, *of = swap ? held : r;
	const uint32_t mark = err->at_len;

	conf_enter(err, "qps");
	conf_enter_index(err, of->index);
	conf_fault(err, "qp_num",
		"%u and %u of /qps/%u have the same low bits (0x%x), and so one place of %u: take "
		"other numbers",
		of->number + (r->first - of->first), by->number + (r->first - by->first), by->index,
		r->first, places);
	conf_leave(err, mark);
}

/* Numbers that overlap are conf_cross_qp_nums()' matter. */
static int
places_taken(const struct conf *c, struct conf_errors *err)
{
	const uint32_t places = conf_qp_places(c);
	struct run *v = malloc((2 * (size_t)c->n_qps + 1) * sizeof(*v)), held;
	uint32_t n = 0;

	if (v == NULL)
		return -ENOMEM;
	for (uint32_t i = 0; i < c->n_qps; i++)
		if (c->qps[i].qp_num != 0 && c->qps[i].count <= places)
			n += runs_of(c, i, places, &v[n]);
	qsort(v, n, sizeof(*v), by_place);
	for (uint32_t i = 0; i < n; i++) {
		if (i != 0 && v[i].first - held.first < held.n && v[i].index != held.index)
			taken(&held, &v[i], places, err);
		if (i == 0 || v[i].first + v[i].n > held.first + held.n)
			held = v[i];
	}
	free(v);
	return 0;
}

static void
ports_with_priorities(const struct conf *c, struct conf_errors *err)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < c->n_ports; i++) {
		const uint32_t mark = err->at_len;

		if ((c->ports[i].given & CONF_PORT_PRIORITIES) == 0 || n++ != CONF_PRIO_PORTS)
			continue;
		conf_enter(err, "ports");
		conf_enter_index(err, i);
		conf_fault(err, "priorities", "%u ports have them already: no more can",
			CONF_PRIO_PORTS);
		conf_leave(err, mark);
	}
}

static void
srqs_of_xrc(const struct conf *c, struct conf_errors *err)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < c->n_srqs; i++)
		n += c->srqs[i].srq_type == CONF_SRQ_XRC;
	if (n > CONF_SRQ_PLACES)
		conf_fault(err, "srqs", "has %u of type XRC: at most %u", n, CONF_SRQ_PLACES);
}

static void
feeds_forbidden(const struct conf *c, struct conf_errors *err)
{
	for (uint32_t i = 0; i < c->n_qps; i++) {
		const struct conf_qp *q = &c->qps[i];
		struct conf_knobs k;
		uint32_t mark;

		if ((q->given & CONF_QP_SEND_FEED) == 0 ||
			!verbs_wr_has(q->send_feed.opcode, WR_HAS_ANSWER))
			continue;
		conf_qp_knobs(&c->knobs, q, &k);
		if (k.ops_placement == KNOB_on)
			continue;
		mark = conf_enter(err, "qps");
		conf_enter_index(err, i);
		conf_enter(err, "send_feed");
		conf_fault(err, "opcode", "%s requires the knob ops.placement, which is \"off\"",
			verbs_wr_opcode_name(q->send_feed.opcode));
		conf_leave(err, mark);
	}
}

int
conf_cross_limits(const struct conf *c, struct conf_errors *err)
{
	ports_with_priorities(c, err);
	srqs_of_xrc(c, err);
	feeds_forbidden(c, err);
	/* A number that had a fault is not known, and is not told of twice. */
	if (err->n_errors > CONF_ERRORS_MAX || conf_errors_within(err, "qps"))
		return 0;
	return places_taken(c, err);
}
