/* SPDX-License-Identifier: BSD-3-Clause */
#include "connect.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "connect_client.h"
#include "connect_priv.h"
#include "log.h"

enum { GUID_FLIP = 0x02 };

_Static_assert(CM_LISTENERS == CONF_CM_LISTENERS, "what applications share is what there is");

/* CM-44: of the first port's MAC (modified EUI-64), so that it stays after a restart. */
static uint64_t
guid_of(const struct connect *cx)
{
	const uint8_t *mac = cx->env->w.ports[0].addr->mac;
	const uint8_t g[8] = { mac[0] ^ GUID_FLIP, mac[1], mac[2], 0xff, 0xfe, mac[3], mac[4],
		mac[5] };

	return be64_load(g);
}

int
connect_init(struct connect *cx, struct refusal *r)
{
	const struct conf_cm *conf = &cx->env->w.conf->cm;
	struct cm_limits limits = { 1, conf->half_open, conf->reqs };
	uint64_t seed;
	int rc;

	TAILQ_INIT(&cx->conns);
	TAILQ_INIT(&cx->ended);
	TAILQ_INIT(&cx->clients);
	TAILQ_INIT(&cx->resolving);
	TAILQ_INIT(&cx->bound);
	while (limits.connections < conf->connections)
		limits.connections <<= 1;
	if (getrandom(&seed, sizeof(seed), 0) != sizeof(seed))
		return -EIO;
	if (cm_init(&cx->cm, &limits, seed, guid_of(cx), cx->env->now) != 0)
		return -ENOMEM;
	cx->psn = (uint32_t)cm_random(&cx->cm) & PSN_MASK;
	for (uint32_t i = 0; i < conf->n_listen; i++) {
		rc = connect_listen(cx, &conf->listen[i], r);
		if (rc != 0) {
			log_error("configuration: /cm/listen/%u: %s", i, r->text);
			return rc;
		}
	}
	return 0;
}

static void
free_conn(struct connect *cx, struct connect_conn *cc)
{
	if (cc->ah != NULL)
		admin_ah_destroy(cx->admin, cc->ah);
	connect_client_forget(cc);
	LIST_REMOVE(cc, same);
	free(cc);
}

void
connect_fini(struct connect *cx)
{
	struct connect_list *const lists[] = { &cx->conns, &cx->ended };

	for (uint32_t i = 0; i < ARRAY_LEN(lists); i++) {
		struct connect_conn *cc;

		while ((cc = TAILQ_FIRST(lists[i])) != NULL) {
			TAILQ_REMOVE(lists[i], cc, all);
			free_conn(cx, cc);
		}
	}
	cm_fini(&cx->cm);
}

struct connect_conn *
connect_new(struct connect *cx)
{
	struct connect_conn *cc = calloc(1, sizeof(*cc));

	if (cc == NULL)
		return NULL;
	if (++cx->next_id == 0)
		cx->next_id = 1;
	cc->id = cx->next_id;
	TAILQ_INSERT_TAIL(&cx->conns, cc, all);
	LIST_INSERT_HEAD(&cx->by_id[cc->id % CONNECT_IDS], cc, same);
	return cc;
}

void
connect_drop(struct connect *cx, struct connect_conn *cc)
{
	connect_qp_end(cx, cc);
	if (cc->of != NULL) { /* for another attempt */
		cc->of->ah = cc->ah;
		cc->ah = NULL;
	}
	TAILQ_REMOVE(&cx->conns, cc, all);
	free_conn(cx, cc);
}

struct connect_conn *
connect_find(struct connect *cx, uint32_t id, struct refusal *r)
{
	struct connect_conn *cc;

	LIST_FOREACH (cc, &cx->by_id[id % CONNECT_IDS], same)
		if (cc->id == id)
			return cc;
	refuse(r, ENOENT, "connection %u does not exist", id);
	return NULL;
}

/* The connection is over: its QP goes, its story stays for a while. */
static void
end(struct connect *cx, struct connect_conn *cc, struct cm_conn *c)
{
	cc->last = *c;
	cc->c = NULL;
	cc->ended = cx->env->now;
	connect_qp_end(cx, cc);
	if (cc->ah != NULL && !cc->ah->known && cc->note[0] == '\0')
		neigh_text(cx->net, &cc->ah->link, cc->note, sizeof(cc->note));
	connect_client_over(cx, cc);
	if (cc->ah != NULL)
		admin_ah_destroy(cx->admin, cc->ah);
	cc->ah = NULL;
	TAILQ_REMOVE(&cx->conns, cc, all);
	TAILQ_INSERT_TAIL(&cx->ended, cc, all);
	if (++cx->ended_n > CONNECT_ENDED) {
		struct connect_conn *oldest = TAILQ_FIRST(&cx->ended);

		TAILQ_REMOVE(&cx->ended, oldest, all);
		free_conn(cx, oldest);
		cx->ended_n--;
	}
}

void
connect_end(struct connect *cx, struct connect_conn *cc)
{
	struct cm_conn *c = cc->c;

	end(cx, cc, c);
	cm_forget(&cx->cm, c);
}

/* A peer asks. */
static void
asked(struct connect *cx, struct cm_conn *c)
{
	const struct connect_listener *l = c->listener->user;
	struct connect_conn *cc = connect_new(cx);
	struct cm_verdict v;
	struct refusal r;

	if (cc == NULL) {
		if (cm_reject(&cx->cm, c, CM_REJ_NO_RESOURCES, NULL, 0, cx->env->now, &v) == 0) {
			connect_send(cx, NULL, &v.out[0]);
			cm_forget(&cx->cm, c);
		}
		return;
	}
	cc->c = c;
	c->user = cc;
	cc->qp = l->conf.qp;
	cc->port = c->path.port;
	memcpy(cc->listener, l->conf.name, sizeof(cc->listener));
	cc->shared = l->qpn != 0;
	cc->qpn = l->qpn;
	if (l->of != NULL) {
		if (!connect_client_asked(cx, l->of, cc))
			connect_reject(cx, cc, CM_REJ_NO_RESOURCES, NULL, 0, &r);
		return;
	}
	if (l->conf.accept != CONF_ACCEPT_ALWAYS) {
		const struct cm_verdict told = { .conn = c, .event = CM_EVENT_CONNECT_REQUEST };

		connect_event(cx, cc, &told);
		return;
	}
	if (connect_accept(cx, cc, NULL, NULL, 0, &r) == 0)
		return;
	snprintf(cc->note, sizeof(cc->note), "%s", r.text);
	log_rated(&cx->refused_said, cx->env->now, LOG_WARN,
		"listener \"%s\": no queue pair for a connection: %s", l->conf.name, r.text);
	connect_reject(cx, cc, CM_REJ_NO_RESOURCES, NULL, 0, &r);
}

/* The QP follows; what cannot be done ends the connection. @return 0 or -errno. */
static int
walk(struct connect *cx, struct connect_conn *cc, uint8_t todo)
{
	struct refusal r = { .err = 0 };
	int rc = 0;

	if (cc->foreign && !(cc->walks && todo == CM_DO_CONNECT))
		return 0;
	switch ((enum cm_todo)todo) {
	case CM_DO_CONNECT:
		rc = connect_qp_rtr(cx, cc, &r);
		if (rc == 0)
			rc = connect_qp_rts(cx, cc, &r);
		break;
	case CM_DO_READY:
		rc = connect_qp_rts(cx, cc, &r);
		break;
	case CM_DO_DOWN:
		connect_qp_down(cx, cc);
		break;
	case CM_DO_NONE:
	case CM_DO_ASK:
		break;
	}
	if (rc == 0)
		return 0;
	snprintf(cc->note, sizeof(cc->note), "%s", r.text);
	log_rated(&cx->failed_said, cx->env->now, LOG_WARN, "connection %u: QP %u: %s", cc->id,
		cc->qpn, r.text);
	connect_disconnect(cx, cc, &r);
	return rc;
}

/* The QP follows, and what is told: without one nothing is established. @return as walk(). */
static int
follow(struct connect *cx, struct connect_conn *cc, struct cm_verdict *v)
{
	const int rc = walk(cx, cc, v->todo);

	if (rc == 0)
		return 0;
	v->event = CM_EVENT_CONNECT_ERROR;
	v->status = (uint16_t)-rc;
	return rc;
}

/* An RTU says that the queue pair is ready: its application has to make it so. */
static void
hold(struct connect_conn *cc, struct cm_verdict *v)
{
	if (!cc->foreign || cc->walks || v->outs == 0 || mad_message(v->out[0].mad) != CM_RTU)
		return;
	if (v->todo == CM_DO_CONNECT) {
		cc->rtu = v->out[0];
		cc->held = true;
	}
	if (cc->held)
		v->outs = 0;
}

/* It has no place among the unfinished ones any more: nor has it one of its application's. */
static void
settle(struct connect_conn *cc)
{
	if (cc != NULL && cc->of != NULL)
		connect_id_answered(cc->of);
}

void
connect_carry_out(struct connect *cx, struct cm_verdict *v)
{
	struct connect_conn *cc = v->conn != NULL ? v->conn->user : NULL;

	cx->drops[v->drop]++;
	cx->duplicates += v->duplicate;
	if (v->displaced != NULL)
		settle(v->displaced->user);
	if (v->todo == CM_DO_ASK) {
		asked(cx, v->conn);
		return;
	}
	/* Data may come as soon as the peer has the RTU: the QP is ready before, or none goes. */
	if (cc != NULL && v->todo == CM_DO_CONNECT && follow(cx, cc, v) != 0)
		v->outs = 0;
	if (cc != NULL)
		hold(cc, v);
	for (uint32_t i = 0; i < v->outs; i++)
		connect_send(cx, cc, &v->out[i]);
	if (cc == NULL)
		return;
	if (v->todo != CM_DO_CONNECT)
		follow(cx, cc, v);
	if (v->event != CM_EVENT_NONE)
		connect_event(cx, cc, v);
	if (!v->conn->half_open)
		settle(cc);
	if (v->over) {
		end(cx, cc, v->conn);
		cm_forget(&cx->cm, v->conn);
	}
}

void
connect_data(struct connect *cx, uint32_t qpn)
{
	/* Without room the RTU, or the REP's repetition, does it. */
	if (cx->data.n < ARRAY_LEN(cx->data.qpn))
		cx->data.qpn[cx->data.n++] = qpn;
}

uint32_t
connect_poll(struct connect *cx)
{
	struct connect_inbox in;
	struct cm_verdict v;
	uint32_t data = 0, messages = 0, timers = 0;

	if (cx->cm.conns == NULL)
		return 0;
	/* Each has a turn of its own: who sends without end must not stop what time does. */
	for (; data < CONNECT_TURN && cx->data.n != 0; data++) {
		if (cm_data(&cx->cm, cx->data.qpn[--cx->data.n], cx->env->now, &v))
			connect_carry_out(cx, &v);
	}
	for (; messages < CONNECT_TURN && connect_inbox_take(cx, &in); messages++) {
		struct cm_packet p;

		if (!connect_parse(cx, &in, &p))
			continue;
		cm_receive(&cx->cm, &p, cx->env->now, &v);
		if (mad_check(p.mad, p.len) == MAD_GOOD)
			cx->rx[mad_message(p.mad)]++;
		connect_carry_out(cx, &v);
	}
	for (; timers < CONNECT_TURN && cm_timer(&cx->cm, cx->env->now, &v); timers++)
		connect_carry_out(cx, &v);
	return data + messages + timers + connect_client_poll(cx);
}
