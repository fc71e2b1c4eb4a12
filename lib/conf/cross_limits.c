/* SPDX-License-Identifier: BSD-3-Clause */
/* What is good by itself, and more than there is room for; and requests that a knob forbids. */
#include "conf_pair.h"
#include "conf_qps.h"
#include "cross.h"
#include "errors.h"
#include "verbs_wr.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

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

/*
 * A wire in memory and a net_tap have as many transmit queues as the port has receive queues. Of
 * other devices the driver knows.
 */
static bool
can_send(const struct conf *c, int port, uint32_t worker)
{
	const struct conf_port *p = &c->ports[port];

	if (conf_pair_far(c, (uint32_t)port) < 0 && strncmp(p->device, "net_tap", 7) != 0)
		return true;
	return p->rx_queues == 1 ? worker == (uint32_t)port % c->lcores.n_workers
				 : worker < p->rx_queues;
}

/* @return its index; -1: none. */
static int
port_named(const struct conf *c, const char *name)
{
	for (uint32_t i = 0; i < c->n_ports; i++)
		if (strcmp(c->ports[i].name, name) == 0)
			return (int)i;
	return -1;
}

/* It has an alternate path from the beginning: its worker sends there, too. */
static void
alternate_sent(const struct conf *c, const struct conf_qp *q, int port, struct conf_errors *err)
{
	const int alt = port_named(c, q->alt_port);
	const bool given = (q->given & CONF_QP_WORKER) != 0;
	const uint32_t n = given ? q->worker + 1 : c->lcores.n_workers;

	if (alt < 0 || q->qp_state < QPS_RTR || (q->given & QP_ATTR_ALT_PATH) == 0)
		return;
	for (uint32_t w = given ? q->worker : 0; w < n; w++)
		if (can_send(c, port, w) && can_send(c, alt, w))
			return;
	if (given)
		conf_fault(err, "alt_port",
			"worker %u, which has the QP, cannot send on port \"%s\": give both ports "
			"rx_queues for it",
			q->worker, q->alt_port);
	else
		conf_fault(err, "alt_port",
			"no worker can send on both port \"%s\" and port \"%s\": give them more "
			"rx_queues",
			q->port, q->alt_port);
}

/* @return false: the worker that it names has no transmit queue there, and the fault is told. */
static bool
worker_sends(const struct conf *c, const struct conf_qp *q, int port, struct conf_errors *err)
{
	const struct conf_port *p = &c->ports[port];
	const uint32_t other = p->rx_queues == 1 ? (uint32_t)port % c->lcores.n_workers : 0;

	if ((q->given & CONF_QP_WORKER) == 0 || can_send(c, port, q->worker))
		return true;
	conf_fault(err, "worker",
		"%u cannot send on port \"%s\", which has %u rx_queues: give it more, or use "
		"worker %u",
		q->worker, p->name, p->rx_queues, other);
	return false;
}

/* A worker without a transmit queue of its own on a port cannot serve QPs there. */
static void
workers_send(const struct conf *c, struct conf_errors *err)
{
	const uint32_t here = conf_enter(err, "qps");

	for (uint32_t i = 0; i < c->n_qps; i++) {
		const struct conf_qp *q = &c->qps[i];
		const int port = port_named(c, q->port);
		const uint32_t mark = conf_enter_index(err, i);

		if (port >= 0 && worker_sends(c, q, port, err))
			alternate_sent(c, q, port, err);
		conf_leave(err, mark);
	}
	conf_leave(err, here);
}

/* Those of a listener's connections come later. */
static void
accepted_send(const struct conf *c, struct conf_errors *err)
{
	const uint32_t here = conf_enter(err, "cm");

	conf_enter(err, "listen");
	for (uint32_t i = 0; i < c->cm.n_listen; i++) {
		const int port = port_named(c, c->cm.listen[i].port);
		const uint32_t mark = conf_enter_index(err, i);

		conf_enter(err, "qp");
		if (port >= 0)
			worker_sends(c, &c->cm.listen[i].qp, port, err);
		conf_leave(err, mark);
	}
	conf_leave(err, here);
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
	if (!conf_errors_within(err, "ports") && !conf_errors_within(err, "lcores") &&
		c->lcores.n_workers != 0) {
		workers_send(c, err);
		if (!conf_errors_within(err, "cm"))
			accepted_send(c, err);
	}
	return places_taken(c, err);
}
