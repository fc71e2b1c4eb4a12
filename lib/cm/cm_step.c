/* SPDX-License-Identifier: BSD-3-Clause */
/* One row of cm_states.def: the next state, its timer, and what is sent. */
#include <errno.h>
#include <string.h>

#include "cm_priv.h"
#include "compiler.h"
#include "invariant.h"

const struct cm_step cm_steps[CM_STATES][CM_INPUTS] = {
#define STEP(state, input, next, send, todo, event, rule)                                          \
	[CM_##state][CM_IN_##input] = { CM_##next, CM_SEND_##send, CM_DO_##todo, CM_EVENT_##event, \
		rule },
#include "tables/cm_states.def"
#undef STEP
};

enum { TIMEWAIT_MIN = 14 }; /* 67 ms, for paths whose timeout says less or nothing */

static bool
is_half_open(uint8_t state)
{
	return state == CM_REQ_RCVD || state == CM_MRA_REQ_SENT || state == CM_REP_SENT ||
	       state == CM_MRA_REP_RCVD || state == CM_REJ_RCVD || state == CM_SIDR_REQ_RCVD;
}

static ns_t
least(ns_t a, ns_t b)
{
	return a < b ? a : b;
}

static ns_t
latest(ns_t a, ns_t b)
{
	return a > b ? a : b;
}

void
cm_arm(struct cm *cm, struct cm_conn *c, ns_t after, ns_t now)
{
	ns_t at = now + after;

	/* Response timeouts are powers of two: the time that was asked for is longer. */
	if (c->give_up != 0 && c->state <= CM_MRA_REQ_RCVD && (at > c->give_up || c->retries == 0))
		at = c->give_up;
	wheel_cancel(&cm->wheel, &c->timer);
	wheel_arm(&cm->wheel, &c->timer, tick_after(at));
}

/** How long packets of the old connection may arrive (CM-35); a peer names it: not for hours. */
static ns_t
time_wait(const struct cm_conn *c)
{
	uint8_t n = c->taken.timeout;

	n = n < TIMEWAIT_MIN ? TIMEWAIT_MIN : n > CM_TIMEOUT_MAX ? CM_TIMEOUT_MAX : n;
	return cm_time(n);
}

/** The timer of the state that was entered, or stayed in. */
static void
arm(struct cm *cm, struct cm_conn *c, uint8_t from, enum cm_input in, const struct cm_said *said,
	ns_t now)
{
	const bool entered = from != c->state;
	uint8_t n = said->timeout < CM_MRA_TIMEOUT ? said->timeout : CM_MRA_TIMEOUT;

	switch ((enum cm_state)c->state) {
	case CM_SIDR_REQ_SENT:
	case CM_REQ_SENT:
	case CM_REP_SENT:
	case CM_DREQ_SENT:
		if (in == CM_IN_TIMEOUT) {
			c->retries--;
		} else if (!entered) {
			break;
		} else {
			c->retries = c->retries_max;
		}
		/* No application waits for the end as long as its timeout may ask for. */
		if (c->state == CM_DREQ_SENT)
			c->interval = least(c->interval, cm_time(CM_TIMEOUT_MAX));
		cm_arm(cm, c, c->interval, now);
		break;
	case CM_MRA_REQ_RCVD:
		if (in != CM_IN_MRA)
			break;
		/* Each further one costs a repetition, so nobody waits for ever. */
		if (c->patient && (entered || c->retries > 0)) {
			c->retries -= !entered;
			c->give_up = latest(c->give_up, now + cm_time(n) + c->interval);
		}
		cm_arm(cm, c, cm_time(n) + c->interval, now);
		break;
	case CM_MRA_REP_RCVD:
		/* Each further one costs a repetition; whose place is given away gets no time. */
		if (in != CM_IN_MRA || !c->half_open || (!entered && c->retries == 0))
			break;
		c->retries -= !entered;
		/* A place that others wait for is not kept by a word alone. */
		if (cm_is_crowded(cm, c->listener))
			n = n < CM_CROWDED_TIMEOUT ? n : CM_CROWDED_TIMEOUT;
		cm_arm(cm, c, cm_time(n) + c->interval, now);
		break;
	case CM_MRA_REQ_SENT:
		if (entered)
			cm_arm(cm, c, cm_time(CM_MRA_TIMEOUT), now);
		break;
	case CM_TIMEWAIT:
		if (entered)
			cm_arm(cm, c, time_wait(c), now);
		break;
	case CM_SIDR_REP_SENT:
		if (entered)
			cm_arm(cm, c, cm_time(CM_SIDR_KEPT), now);
		break;
	case CM_REJ_RCVD:
		if (entered)
			cm_arm(cm, c, cm_time(CM_CROWDED_TIMEOUT), now);
		break;
	case CM_REQ_RCVD:
	case CM_SIDR_REQ_RCVD:
		break;
	case CM_IDLE:
	case CM_ESTABLISHED:
	case CM_SIDR_REP_RCVD:
	case CM_STATES:
		wheel_cancel(&cm->wheel, &c->timer);
		break;
	}
}

static void
send(struct cm *cm, struct cm_conn *c, enum cm_send what, enum cm_input in,
	const struct cm_said *said, struct cm_verdict *v)
{
	uint16_t reason = said->reason;

	switch (what) {
	case CM_SEND_NOTHING:
		break;
	case CM_SEND_DREQ:
		cm_make_dreq(cm, c);
		memcpy(cm_out(v, &c->path), c->sent, MAD_LEN);
		break;
	case CM_SEND_REP: /* made by cm_accept() */
	case CM_SEND_AGAIN:
		memcpy(cm_out(v, &c->path), c->sent, MAD_LEN);
		c->sent_n++;
		break;
	case CM_SEND_MRA:
		cm_send_short(v, c, CM_MRA, c->tid);
		break;
	case CM_SEND_REJ:
		/* Of a REQ that is taken back the peer finds its part by our GUID alone. */
		if (reason == CM_REJ_NONE)
			reason = in == CM_IN_LAST || c->state <= CM_MRA_REQ_RCVD
					 ? CM_REJ_TIMEOUT
					 : CM_REJ_CONSUMER_DEFINED;
		cm_send_rej(cm, v, c, reason, said->private, said->private_len);
		break;
	case CM_SEND_RTU:
		cm_send_short(v, c, CM_RTU, c->tid);
		break;
	case CM_SEND_DREP:
		cm_send_short(v, c, CM_DREP, c->their_tid);
		break;
	case CM_SEND_APR:
		cm_send_short(v, c, CM_APR, c->their_tid);
		break;
	}
}

/** A message that brings nothing new. */
static bool
is_again(const struct cm_step *s, uint8_t from, enum cm_input in)
{
	if (in == CM_IN_REQ)
		return true;
	return s->next == from && (in <= CM_IN_DREP || in == CM_IN_SIDR_REP) && in != CM_IN_MRA;
}

bool
cm_step(struct cm *cm, struct cm_conn *c, enum cm_input in, const struct cm_said *said, ns_t now,
	struct cm_verdict *v)
{
	const uint8_t from = c->state;
	const struct cm_step *s = &cm_steps[from][in];

	v->conn = c;
	if (s->rule == NULL) {
		v->drop = CM_DROP_state;
		return false;
	}
	send(cm, c, (enum cm_send)s->send, in, said, v); /* some say in which state it was */
	c->state = s->next;
	arm(cm, c, from, in, said, now);
	if (c->half_open && !is_half_open(c->state))
		cm_half_open_end(cm, c);
	if (c->state == CM_ESTABLISHED)
		c->is_up = true;
	if (in == CM_IN_REJ || in == CM_IN_SIDR_NO)
		c->reason = said->status;
	v->todo = s->todo;
	v->event = s->event;
	v->duplicate = is_again(s, from, in);
	v->over = c->state == CM_IDLE;
	if (s->event != CM_EVENT_NONE) {
		v->status = said->status;
		if (in == CM_IN_LAST && s->event != CM_EVENT_TIMEWAIT_EXIT)
			v->status = ETIMEDOUT;
		if (in == CM_IN_LAST || in == CM_IN_DATA || in == CM_IN_DREP)
			c->private_len = 0; /* what an earlier message brought */
		if (s->event != CM_EVENT_ESTABLISHED && s->event != CM_EVENT_TIMEWAIT_EXIT)
			c->last = s->event;
	}
	return true;
}

bool
cm_timer(struct cm *cm, ns_t now, struct cm_verdict *v)
{
	static const struct cm_said nothing;
	struct wheel_node *node;
	struct cm_conn *c;
	enum cm_input in;

	cm_verdict_init(v);
	if (wheel_advance(&cm->wheel, tick_of(now), &node, 1) == 0)
		return false;
	c = (void *)((char *)node - offsetof(struct cm_conn, timer));
	ASSERT(c->local_id != 0);
	in = CM_IN_TIMEOUT;
	if (c->state == CM_MRA_REQ_SENT || c->state == CM_TIMEWAIT || c->state == CM_REJ_RCVD ||
		c->state == CM_SIDR_REQ_RCVD || c->state == CM_SIDR_REP_SENT)
		in = CM_IN_LAST;
	else if (c->state == CM_REP_SENT && cm_is_in_the_way(cm, c))
		in = CM_IN_LAST;
	else if (c->state != CM_REQ_RCVD &&
		 (c->retries == 0 ||
			 (c->give_up != 0 && c->state <= CM_MRA_REQ_RCVD && now >= c->give_up)))
		in = CM_IN_LAST;
	cm_step(cm, c, in, &nothing, now, v);
	ASSERT(v->drop == CM_DROP_NONE);
	return true;
}
