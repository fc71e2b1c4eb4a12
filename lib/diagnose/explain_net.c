/* SPDX-License-Identifier: BSD-3-Clause */
#include "explain_net.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conf_json_value.h"
#include "diagnose.h"
#include "psn.h"
#include "requester.h"

struct text {
	char *buf;
	size_t room;
	size_t len;
};

/* One more sentence. */
static void
add(struct text *t, const char *sentence)
{
	const int n = snprintf(
		t->buf + t->len, t->room - t->len, "%s%s", t->len > 0 ? "; " : "", sentence);

	if (n > 0)
		t->len = t->len + (size_t)n < t->room ? t->len + (size_t)n : t->room - 1;
}

/* One that is only asked whether it is still there may be about to answer. */
static bool
is_trouble(const struct neigh_link *link)
{
	const struct neigh *n = link->neigh;

	return n != NULL && (!neigh_has_mac(n) || (n->state == NEIGH_STALE && n->tries > 1));
}

/* LB-01: what no wire has anything to do with. */
static bool
local_text(struct diagnose *dg, const struct admin_qp *rec, char *buf, size_t room)
{
	const struct wire_path *path = &rec->attr.path;
	int to;

	if (!path->local)
		return false;
	to = env_port_with(dg->env, (uint32_t)rec->port, path->ipv6, path->dst_ip);
	snprintf(buf, room,
		"local destination: it is an address of port %s, and packets do not leave the process",
		dg->env->w.conf->ports[to >= 0 ? to : rec->port].name);
	return true;
}

ns_t
explain_given_up(const struct qp_error *e)
{
	return e->rule == (REQRULE_RETRY_EXHAUSTED | QP_RULE_REQUESTER) ? e->time_ns : 0;
}

/* The port of this dataplane that has the peer's address; -1: none has. */
static int
peer_port(const struct diagnose *dg, const struct admin_qp *rec)
{
	const struct wire_path *path = &rec->attr.path;

	if (rec->port < 0 || (rec->given & QP_ATTR_AV) == 0)
		return -1;
	return env_port_with(dg->env, (uint32_t)rec->port, path->ipv6, path->dst_ip);
}

/* Has the worker anything to do with the QP's packets? */
static bool
has_part(const struct diagnose *dg, const struct admin_qp *rec, int far, uint32_t worker)
{
	const struct admin_qp *peer =
		far >= 0 ? admin_find(dg->admin, rec->attr.dest_qp_num) : NULL;

	if (worker == rec->worker || (peer != NULL && worker == peer->worker))
		return true;
	if (rec->port < 0 || rec->attr.path.local)
		return false;
	return env_worker_polls(dg->env, (uint16_t)rec->port, worker) ||
	       (far >= 0 && env_worker_polls(dg->env, (uint16_t)far, worker));
}

static bool
stall_text(
	const struct diagnose *dg, const struct admin_qp *rec, ns_t failed, char *buf, size_t room)
{
	const ns_t timeout = requester_timeout_ns(rec->attr.timeout);
	const ns_t tries = 2 * timeout * (rec->attr.retry_cnt + 1u); /* a wait may be late */
	const ns_t now = dg->env->now, to = failed != 0 ? failed : now;
	const ns_t from = failed == 0 ? now : tries < to ? to - tries : 0;
	const int far = peer_port(dg, rec);
	ns_t longest = 0;
	uint32_t which = 0;

	for (uint32_t i = 0; i < dg->env->w.workers_n; i++) {
		const struct stats_load *l = dg->env->w.workers[i].load;
		const ns_t ns = l != NULL ? stats_stall_between(l, from, to, now) : 0;

		/* The QP's own takes what has come before its timers run (TMR-02). */
		if (ns > longest && (failed == 0 || (ns >= timeout && i != rec->worker)) &&
			has_part(dg, rec, far, i)) {
			longest = ns;
			which = i;
		}
	}
	if (longest == 0)
		return false;
	snprintf(buf, room, "worker %u stood still for %llu ms", which,
		(unsigned long long)(longest / TIME_NS_PER_MS));
	return true;
}

/*
 * Of a QP, on its way in at a port: packets that a rule dropped or corrupted, from this PSN on. The
 * log has the newest decisions.
 */
static uint64_t
impair_took(const struct env_port *p, uint32_t qpn, uint32_t una)
{
	enum { LOOK = 1024 };
	struct impair_rule *r = malloc(LOOK * sizeof(*r)), last = { 0 };
	uint64_t from = UINT64_MAX, took = 0;
	uint32_t n;

	if (r == NULL)
		return 0;
	p->impair->log(p->impair_ctx, &from, r, 0);
	from = from > LOOK ? from - LOOK : 0;
	n = p->impair->log(p->impair_ctx, &from, r, LOOK);
	for (uint32_t i = 0; i < n; i++) {
		const bool bits = r[i].action == IMPAIR_CORRUPT; /* several of one packet */

		if ((r[i].action != IMPAIR_DROP && !bits) || (r[i].given & IMPAIR_GIVEN_PSN) == 0 ||
			r[i].qp_num != qpn || psn_cmp(psn(r[i].psn), psn(una)) < 0)
			continue;
		took += !bits || last.action != IMPAIR_CORRUPT || last.psn != r[i].psn ||
			last.skip != r[i].skip;
		last = r[i];
	}
	free(r);
	return took;
}

/* @param qpn at this port; there may be two, 0: none. */
static void
impair_text(
	const struct diagnose *dg, int port, const uint32_t qpn[2], uint32_t una, struct text *t)
{
	const struct env_port *p = port >= 0 ? &dg->env->w.ports[port] : NULL;
	const struct impair_conf *conf = NULL;
	struct impair_counters c;
	uint64_t took = 0;
	char one[160];

	if (p != NULL && p->impair != NULL)
		conf = p->impair->get(p->impair_ctx, &c);
	if (conf == NULL)
		return;
	for (int i = 0; i < 2; i++)
		took += qpn[i] != 0 ? impair_took(p, qpn[i], una) : 0;
	if (took != 0) {
		snprintf(one, sizeof(one),
			"impair at port %s dropped or corrupted %" PRIu64 " packet%s",
			dg->env->w.conf->ports[port].name, took, took == 1 ? "" : "s");
		add(t, one);
	}
	/* Whose they were it does not know. */
	if (conf->bottleneck.rate != 0 && c.queue_dropped != 0) {
		snprintf(one, sizeof(one),
			"the bottleneck of port %s has dropped %" PRIu64 " packet%s of all",
			dg->env->w.conf->ports[port].name, c.queue_dropped,
			c.queue_dropped == 1 ? "" : "s");
		add(t, one);
	}
}

bool
explain_inside_text(const struct diagnose *dg, const struct admin_qp *rec,
	const struct explain_when *when, char *buf, size_t room)
{
	const int far = peer_port(dg, rec);
	const bool same = far == rec->port;
	const uint32_t peer = rec->attr.dest_qp_num;
	struct text t = { .buf = buf, .room = room };
	char one[160];

	buf[0] = '\0';
	if (stall_text(dg, rec, when->failed, one, sizeof(one)))
		add(&t, one);
	impair_text(dg, rec->port, (uint32_t[]){ rec->qpn, same ? peer : 0 }, when->una, &t);
	if (!same)
		impair_text(dg, far, (uint32_t[]){ peer, 0 }, when->una, &t);
	return t.len > 0;
}

bool
explain_net_text(struct diagnose *dg, struct admin_qp *rec, const struct explain_when *when,
	char *buf, size_t room)
{
	const bool has_path = rec->port >= 0 && (rec->given & QP_ATTR_AV) != 0;
	const uint64_t lost = when->lost;
	struct text t = { .buf = buf, .room = room };
	char one[600], other[512];

	buf[0] = '\0';
	admin_alternate_sync(dg->admin, rec);
	if ((is_trouble(&rec->link) || lost != 0) &&
		neigh_text(dg->net, &rec->link, one, sizeof(one)))
		add(&t, one);
	if (lost != 0) {
		snprintf(one, sizeof(one),
			"%" PRIu64 " %spacket%s had nowhere to go (tx_no_neighbor)", lost,
			lost == QP_NOWHERE_MANY ? "or more " : "", lost == 1 ? "" : "s");
		add(&t, one);
	}
	if (has_path && local_text(dg, rec, one, sizeof(one)))
		add(&t, one);
	else if (has_path && link_text(dg->net, (uint16_t)rec->port,
				     conf_datagram_len(rec->attr.path_mtu, rec->attr.path.ipv6),
				     one, sizeof(one)))
		add(&t, one);
	if (rec->alt_loaded && is_trouble(&rec->alt_link) &&
		neigh_text(dg->net, &rec->alt_link, other, sizeof(other))) {
		snprintf(one, sizeof(one), "on the alternate path, %s", other);
		add(&t, one);
	}
	if (explain_inside_text(dg, rec, when, one, sizeof(one)))
		add(&t, one);
	return t.len > 0;
}

/*
 * Packets that had nowhere to go: as long as there is no MAC all of them, answers too; with one
 * those that what waits, or has failed, was sent in. What was lost before has come since.
 */
static uint64_t
lost_of(const struct qp_snapshot *s)
{
	return s->resolved || s->error.time_ns != 0 ? s->nowhere : s->stats.c[STAT_tx_no_neighbor];
}

static struct explain_when
when_of(const struct qp_snapshot *s, ns_t failed)
{
	return (struct explain_when){ .failed = failed,
		.lost = lost_of(s),
		.una = s->error.time_ns != 0 ? s->error.psn : s->una_psn };
}

json_t *
explain_net_json(struct diagnose *dg, struct admin_qp *rec, const struct qp_snapshot *s)
{
	const struct explain_when now = when_of(s, 0);
	json_t *o = json_object();
	char text[1024];

	json_object_set_new(o, "neighbor", neigh_json(dg->net, &rec->link));
	if (rec->alt_loaded)
		json_object_set_new(o, "alt_neighbor", neigh_json(dg->net, &rec->alt_link));
	json_object_set_new(
		o, "link", rec->port >= 0 ? link_json(dg->net, (uint16_t)rec->port) : json_null());
	json_object_set_new(o, "not_sent", conf_json_u64(s->stats.c[STAT_tx_no_neighbor]));
	json_object_set_new(o, "text",
		explain_net_text(dg, rec, &now, text, sizeof(text)) ? json_string(text)
								    : json_null());
	return o;
}

static bool
may_be_the_cause(const struct qp_snapshot *s)
{
	return s->outstanding != 0 || lost_of(s) != 0 ||
	       (!s->resolved && s->state >= QPS_RTR && s->state <= QPS_SQD);
}

json_t *
explain_net_add(
	struct diagnose *dg, struct admin_qp *rec, const struct qp_snapshot *s, json_t *summary)
{
	const ns_t failed = s->error.time_ns, given_up = explain_given_up(&s->error);
	const struct explain_when when = when_of(s, given_up);
	const char *then = NULL;
	char text[1024];
	json_t *longer;

	if (failed != 0 ? given_up == 0 : !may_be_the_cause(s))
		return summary;
	if (rec->failed) /* what is wrong now may have been well then, and the reverse */
		then = post_mortem_network(dg, rec->qpn, failed);
	else if (explain_net_text(dg, rec, &when, text, sizeof(text)))
		then = text;
	if (then == NULL || then[0] == '\0')
		return summary;
	longer = json_sprintf("%s; %s", json_string_value(summary), then);
	json_decref(summary);
	return longer;
}
