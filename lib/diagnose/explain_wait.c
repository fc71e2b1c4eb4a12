/* SPDX-License-Identifier: BSD-3-Clause */
#include "explain_wait.h"

#include <stdarg.h>
#include <stdio.h>

#include "conf_json.h"
#include "conf_json_value.h"
#include "diagnose.h"
#include "requester.h"
#include "responder.h"
#include "wall.h"

struct waits {
	struct diagnose *dg;
	const struct admin_qp *rec;
	const struct qp_snapshot *s;
	const struct qp_waiting *w;
	enum qp_type type;
	json_t *list;
};

/* ---- entries --------------------------------------------------------------------------------- */

static json_t *add(struct waits *x, const char *kind, const char *wakes, const char *fmt, ...)
	PRINTF(4, 5);

/* @return borrowed, to be filled further. */
static json_t *
add(struct waits *x, const char *kind, const char *wakes, const char *fmt, ...)
{
	char text[320];
	json_t *o;
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	o = json_pack("{s:s, s:s, s:s}", "kind", kind, "text", text, "wakes", wakes);
	x->list = conf_json_append(x->list, o);
	return x->list != NULL ? o : NULL;
}

static void
since(struct waits *x, json_t *o, ns_t t)
{
	if (t == 0 || t > x->dg->env->w.clock())
		return;
	json_object_set_new(o, "since_ns", conf_json_u64(t));
	json_object_set_new(o, "since", wall_json(x->dg->env, t));
}

static void
until(struct waits *x, json_t *o, ns_t t)
{
	json_object_set_new(o, "until_ns", conf_json_u64(t));
	json_object_set_new(o, "until", wall_json(x->dg->env, t));
}

#define REQUEST_TEXT 64

/* "wr_id 7": a send_feed's requests have none, but the time of posting. */
static json_t *
request_id(const struct waits *x, uint64_t id, char text[REQUEST_TEXT])
{
	const bool fed = qp_limits(x->rec->qp).send_feed;

	if (fed)
		snprintf(text, REQUEST_TEXT, "of the send_feed");
	else
		snprintf(text, REQUEST_TEXT, "wr_id %llu", (unsigned long long)id);
	return fed ? json_null() : conf_json_u64(id);
}

/* "RDMA_WRITE wr_id 7" */
static json_t *
oldest_request(const struct waits *x, char text[REQUEST_TEXT])
{
	const char *name = conf_name_of(conf_names_wr_opcode, x->w->oldest_opcode);
	char which[REQUEST_TEXT];
	json_t *id = request_id(x, x->w->oldest_id, which);

	snprintf(text, REQUEST_TEXT, "%.24s %.36s", name != NULL ? name : "request", which);
	return id;
}

/* ---- around the QP --------------------------------------------------------------------------- */

static void
surroundings(struct waits *x)
{
	const struct admin_qp *rec = x->rec;
	const int16_t port = rec->port;
	char text[256];

	if (port >= 0 && !rec->attr.path.local && link_is_down(x->dg->net, (uint16_t)port))
		since(x,
			add(x, "PORT_DOWN", "the link comes up", "the link of port %s is down",
				x->dg->env->w.conf->ports[port].name),
			x->dg->net->links[port].since);
	if (!x->s->resolved && neigh_text(x->dg->net, &rec->link, text, sizeof(text)))
		add(x, "NEIGHBOR",
			rec->link.neigh->state == NEIGH_NO_ROUTE
				? "a route of that port to it (route add)"
				: "the neighbour answers, or sends a packet of its own",
			"%s", text);
	if (x->w->tx_paused && x->w->tx_frames != 0)
		add(x, "PRIORITY_PAUSED", "its time is over, or the neighbour says go on",
			"%u frames wait: the port's neighbour has paused their priority",
			x->w->tx_frames);
	else if (x->w->tx_full)
		add(x, "TX_BACKLOG", "the port takes them",
			"%u frames wait for the port, which takes no more", x->w->tx_frames);
}

/* ---- the requester --------------------------------------------------------------------------- */

static void
wait_ack(struct waits *x)
{
	const struct qp_snapshot *s = x->s;
	const struct qp_waiting *w = x->w;
	char what[REQUEST_TEXT];
	json_t *o, *id;

	if (s->una_psn == s->next_psn || !w->has_oldest || w->started == 0)
		return;
	id = oldest_request(x, what);
	if (s->timing)
		o = add(x, "ACK", "a response of the peer; else the transport timer: a resend",
			"the acknowledgement of PSN %u: %s, and %u requests behind it; "
			"%u of %u retries left",
			s->una_psn, what, w->started - 1, s->retry_left, x->rec->attr.retry_cnt);
	else if (w->timeout == 0)
		o = add(x, "ACK", "a response of the peer, and nothing else: there is no timer",
			"the acknowledgement of PSN %u: %s, and %u requests behind it; "
			"timeout is 0, so it waits for ever",
			s->una_psn, what, w->started - 1);
	else if (w->resends)
		o = add(x, "RESEND", "its turn to send",
			"PSN %u and what follows are to be sent again: %s", s->una_psn, what);
	else
		o = add(x, "SENDING", "its turn to send",
			"%s is being sent, from PSN %u on: PSN %u is next", what, s->una_psn,
			s->next_psn);
	json_object_set_new(o, "psn", json_integer(s->una_psn));
	json_object_set_new(o, "wr_id", id);
	json_object_set_new(o, "retries_left", json_integer(s->retry_left));
	since(x, o, x->w->since);
	if (s->timing)
		until(x, o, s->deadline);
}

static void
wait_rnr(struct waits *x)
{
	const uint32_t us = wire_rnr_us(x->w->rnr_code);
	char left[48] = "for ever, if need be (rnr_retry 7)";
	json_t *o;

	if (x->rec->attr.rnr_retry != 7)
		snprintf(left, sizeof(left), "%u of %u RNR retries left", x->s->rnr_left,
			x->rec->attr.rnr_retry);
	o = add(x, "RNR", "the end of the wait: a resend",
		"the peer had no receive for PSN %u and asked for %u us (RNR NAK); %s",
		x->s->una_psn, us, left);
	json_object_set_new(o, "psn", json_integer(x->s->una_psn));
	json_object_set_new(o, "retries_left", json_integer(x->s->rnr_left));
	since(x, o, x->w->since);
	until(x, o, x->s->deadline);
}

/* How many packets may be in flight, and what made it so few. */
static void
wait_window(struct waits *x)
{
	const struct qp_waiting *w = x->w;
	const uint32_t room = x->s->window < w->open ? x->s->window : w->open;
	const char *by = x->s->rate.by_delay ? ", as its round trips have it (cc.algo delay)"
					     : ", half of what it was before a CNP";

	since(x,
		add(x, w->narrowed ? "CONGESTION" : "WINDOW", "acknowledgements",
			"the window is full: %u request packets in flight of %u%s%s", w->flying,
			room, w->narrowed ? by : "",
			w->open < x->s->window ? ", fewer since packets were lost" : ""),
		x->w->since);
}

static void
wait_reads(struct waits *x)
{
	const struct qp_waiting *w = x->w;
	const bool fence = w->stop == REQ_FENCED;
	char which[REQUEST_TEXT];
	json_t *o, *id = request_id(x, w->read_id, which);

	o = fence ? add(x, "FENCE", "the READ or ATOMIC completes",
			    "a request with a fence waits for %u READs and ATOMICs before it, the "
			    "oldest of them %s at PSN %u",
			    w->reads, which, w->read_psn)
		  : add(x, "READ_LIMIT", "one of them completes",
			    "%u READs and ATOMICs are outstanding, as many as max_rd_atomic allows; "
			    "the oldest is %s at PSN %u",
			    w->reads, which, w->read_psn);
	json_object_set_new(o, "psn", json_integer(w->read_psn));
	json_object_set_new(o, "wr_id", id);
	since(x, o, x->w->since);
}

static void
wait_post(struct waits *x)
{
	const uint64_t count = x->rec->shared->conf.send_feed.count;

	if (!qp_limits(x->rec->qp).send_feed)
		since(x,
			add(x, "SEND_QUEUE_EMPTY", "post_send",
				"the send queue is empty: nothing is posted"),
			x->s->next_psn == x->rec->attr.sq_psn ? x->rec->state_ns : 0);
	else if (count != 0 && x->s->feed_posted >= count)
		add(x, "FEED_DONE", "nothing", "the send_feed has done its count: %llu requests",
			(unsigned long long)count);
}

static void
wait_stop(struct waits *x)
{
	switch ((enum requester_stop)x->w->stop) {
	case REQ_RNR_WAIT:
		wait_rnr(x);
		break;
	case REQ_WINDOW:
		wait_window(x);
		break;
	case REQ_READ_LIMIT:
	case REQ_FENCED:
		wait_reads(x);
		break;
	case REQ_ORDERED:
		since(x,
			add(x, "ORDER", "what is older completes",
				"a bind or invalidate is carried out when all requests before it "
				"have completed (MW-12)"),
			x->w->since);
		break;
	case REQ_LOCAL:
		add(x, "OTHER_WORKERS", "each of them ends its turn",
			"a bind or invalidate waits until no other worker can still use the key "
			"that was revoked");
		break;
	case REQ_NO_CREDIT:
		since(x,
			add(x, "CREDITS", "an acknowledgement with more credits",
				"the peer has announced no more receives (FLOW)"),
			x->w->since);
		break;
	case REQ_FAULT:
		add(x, "OLDER", "they complete",
			"a request that cannot be sent fails when those before it have completed");
		break;
	case REQ_IDLE:
		if (x->s->outstanding == 0 && x->w->unstarted == 0)
			wait_post(x);
		break;
	case REQ_DRAINED:
	case REQ_SEND:
		break;
	}
	if (x->w->stop != REQ_RNR_WAIT)
		wait_ack(x);
}

/* CC-20, CC-33: CNPs, rpg_max_rate or round trips have made it slower than its port. */
static void
wait_rate(struct waits *x)
{
	const struct qp_rate *r = &x->s->rate;

	if (r->waits_until != 0)
		until(x,
			add(x, "CONGESTION", "its turn at that rate",
				"packets leave at %u.%03u Mb/s (cc.algo %s, %u CNPs since RESET)",
				r->current / 1000, r->current % 1000,
				r->by_delay ? "delay" : "dcqcn", r->cnps),
			r->waits_until);
}

/* It has something to send, and takes its turn with the others of its client. */
static void
wait_turn(struct waits *x)
{
	const struct qp_waiting *w = x->w;
	const bool idle = w->stop == REQ_IDLE || w->stop == REQ_SEND;

	if (w->rate_until != 0 && idle && (w->unstarted != 0 || w->stop == REQ_SEND))
		until(x,
			add(x, "RATE", "what the rate brings (client set ID rate)",
				"its client may move %llu bytes a second, and has used them up; %u "
				"requests were not started yet",
				(unsigned long long)w->rate, w->unstarted),
			w->rate_until);
	else if (idle && w->unstarted != 0 && x->s->resolved && x->s->rate.waits_until == 0)
		add(x, "TURN", "the worker looks at its send queue",
			"%u requests are posted, and were not started yet", w->unstarted);
}

static void
wait_requester(struct waits *x)
{
	const struct qp_waiting *w = x->w;

	if (w->rest_until != 0) {
		json_t *o = add(x, "FEED_RESTS", "the end of the rest",
			"the send_feed rests: its peer was not there");

		until(x, o, w->rest_until);
		return;
	}
	if (x->s->state == QPS_SQD)
		since(x,
			x->s->drained
				? add(x, "SQD", "qp_modify to RTS",
					  "the send queue is drained (SQD); %u requests wait",
					  w->unstarted)
				: add(x, "SQD", "what was started completes",
					  "the send queue is draining (SQD): %u requests were started",
					  w->started),
			x->rec->state_ns);
	wait_turn(x);
	wait_rate(x);
	wait_stop(x);
}

/* ---- the responder --------------------------------------------------------------------------- */

/* An XRC target's receives are those of the SRQ that a packet names. */
static bool
receives(const struct waits *x, uint32_t *posted)
{
	const struct admin_qp *rec = x->rec;
	const struct qp_snapshot *s = x->s;

	if (x->type == QPT_XRC_SEND || x->type == QPT_XRC_RECV)
		return false;
	*posted = s->rq_posted;
	if (rec->srq == NULL)
		return rec->feed == NULL;
	*posted = ring_srq_count(&rec->srq->q.ring);
	return true;
}

static void
wait_rtr(struct waits *x)
{
	json_t *o;

	if (x->type == QPT_XRC_SEND)
		o = add(x, "RTR", "qp_modify to RTS", "nothing is sent before RTS");
	else if (x->w->established && x->type == QPT_XRC_RECV)
		o = add(x, "RTR", "a packet of the peer", "requests are answered");
	else if (x->w->established)
		o = add(x, "RTR", "qp_modify to RTS", "requests are %s; none is sent before RTS",
			x->type == QPT_RC ? "answered" : "taken");
	else if (x->type == QPT_UD)
		o = add(x, "FIRST_PACKET", "a datagram with its qkey",
			"no datagram has been accepted");
	else if (x->type == QPT_UC)
		o = add(x, "FIRST_PACKET", "the first packet of a message, whatever its PSN",
			"no packet of the peer has been accepted");
	else
		o = add(x, "FIRST_PACKET", "a packet with PSN rq_psn",
			"no packet of the peer has been accepted; PSN %u is expected", x->s->epsn);
	since(x, o, x->rec->state_ns);
}

static void
wait_receive(struct waits *x)
{
	const char *shared = x->rec->srq != NULL ? "shared " : "";
	const char *wakes = x->rec->srq != NULL ? "post_srq_recv" : "post_recv";
	const uint32_t us = wire_rnr_us(x->rec->attr.min_rnr_timer);
	const ns_t told = x->w->rnr_until;
	json_t *o;

	if (x->type != QPT_RC) {
		add(x, "RECEIVE_QUEUE_EMPTY", wakes, "the %sreceive queue is empty: %s is lost",
			shared,
			x->type == QPT_UD ? "a datagram" : "a SEND, or a WRITE with immediate,");
		return;
	}
	o = add(x, "RECEIVE_QUEUE_EMPTY", wakes,
		"the %sreceive queue is empty: a SEND, or a WRITE with immediate, gets an RNR NAK "
		"of %u us%s%s",
		shared, us,
		told == 0                ? ""
		: told > x->dg->env->now ? "; the peer waits with one"
					 : "; the peer was told to wait, and has not come again",
		x->w->starved ? "; the peer has no credit, and is told of the next one" : "");
	json_object_set_new(o, "psn", json_integer(x->s->epsn));
	if (x->w->rnr_until > us * TIME_NS_PER_US)
		since(x, o, x->w->rnr_until - us * TIME_NS_PER_US);
}

static void
wait_responder(struct waits *x)
{
	const struct qp_snapshot *s = x->s;
	uint32_t posted;

	if (s->state == QPS_RTR)
		wait_rtr(x);
	if (receives(x, &posted) && posted == 0)
		wait_receive(x);
	if (s->latched && x->w->rnr_until == 0)
		json_object_set_new(
			add(x, "NAK_SENT", "the peer sends it again",
				"the peer was told that PSN %u is missing (sequence NAK)", s->epsn),
			"psn", json_integer(s->epsn));
	else if (s->open != OPEN_NONE)
		json_object_set_new(
			add(x, "MESSAGE_OPEN", "the peer sends it",
				"a message of the peer has begun: PSN %u goes on", s->epsn),
			"psn", json_integer(s->epsn));
	if (s->answers != 0)
		add(x, "ANSWERS", "their turn to send", "%u answers to the peer wait to be sent",
			s->answers);
}

/* ---- completion queues ----------------------------------------------------------------------- */

static void
wait_cq(struct waits *x, struct object_cq *cq)
{
	struct ring_cq *q = qp_cq_ring(&cq->q);
	const uint32_t waiting = atomic_load_explicit(&q->tail, memory_order_relaxed) -
				 atomic_load_explicit(&q->sh->cons, memory_order_relaxed);

	if (atomic_load_explicit(&cq->q.error, memory_order_relaxed))
		add(x, "CQ_ERROR", "nothing: make another",
			"completion queue %s has overflowed and takes nothing more", cq->n.name);
	else if (waiting >= q->limit)
		add(x, "CQ_FULL", "poll_cq",
			"completion queue %s is full (%u of %u): the consumer is slow, and the "
			"next completion fails the QP",
			cq->n.name, q->limit, q->limit);
}

/* ---- the whole ------------------------------------------------------------------------------- */

json_t *
explain_waits(struct diagnose *dg, struct admin_qp *rec, const struct qp_snapshot *s)
{
	struct waits x = { .dg = dg,
		.rec = rec,
		.s = s,
		.w = &s->waiting,
		.type = admin_qp_type(rec),
		.list = json_array() };

	switch ((enum qp_state)s->state) {
	case QPS_RESET:
		since(&x, add(&x, "RESET", "qp_modify to INIT", "in RESET nothing moves"),
			rec->state_ns);
		return x.list;
	case QPS_INIT:
		since(&x,
			add(&x, "INIT", "qp_modify to RTR",
				"in INIT receives may be posted, and packets are dropped"),
			rec->state_ns);
		return x.list;
	case QPS_RTR:
	case QPS_RTS:
	case QPS_SQD:
	case QPS_SQE:
		break;
	default:
		return x.list;
	}
	surroundings(&x);
	if (s->state == QPS_SQE)
		since(&x,
			add(&x, "SQE", "qp_modify to RTS",
				"a send request has failed (SQE): those that are posted are "
				"flushed"),
			s->error.time_ns);
	else if (s->state != QPS_RTR && x.type != QPT_XRC_RECV)
		wait_requester(&x);
	wait_responder(&x);
	if (rec->send_cq != NULL)
		wait_cq(&x, rec->send_cq);
	if (rec->recv_cq != rec->send_cq && rec->recv_cq != NULL)
		wait_cq(&x, rec->recv_cq);
	return x.list;
}
