/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ask.h"
#include "log.h"
#include "admin.h"

#define FLUSH_WAIT_NS (20 * TIME_NS_PER_MS)
#define FLUSH_ASKED   4096 /* a clock that stands still must not make the wait endless */

/* A wait for the end of a flush. */
struct flushing {
	ns_t until;
	uint32_t asked;
};

/* A transition under way, with what the record said before. */
struct step {
	struct admin_qp *rec;
	struct admin_change ch;
	uint32_t mask; /* as it was asked for; ch.mask has what follows from it, too */
	bool moves;    /* ... and STATE belongs to them */
	bool late;     /* the worker has it, and has not answered */
	struct conf_ah ah, alt_ah;
	int16_t port, alt_port;
	uint64_t alt_given;
};

void
admin_walk_late_attach(void *ctx, struct ask *a)
{
	struct admin_qp *rec = a->arg;

	rec->attached = a->done.rc == 0;
	admin_answered(ctx, rec);
}

void
admin_walk_late_detach(void *ctx, struct ask *a)
{
	struct admin_qp *rec = a->arg;

	rec->attached = false;
	rec->held = true;
	admin_answered(ctx, rec);
}

/*
 * Ask again while the worker says that it still flushes the QP, a part in each turn. A QP with the
 * deepest queues takes milliseconds: a request that can be put off is; if it takes longer, the
 * caller has to try again.
 */
static bool
ask_again(struct admin *adm, struct flushing *f, int rc)
{
	if (rc != -EINPROGRESS || env_put_off(adm->env))
		return false;
	if (f->asked++ == 0)
		f->until = adm->env->w.clock() + FLUSH_WAIT_NS;
	return f->asked < FLUSH_ASKED && adm->env->w.clock() < f->until;
}

static int
refuse_flushing(const struct admin_qp *rec, struct refusal *r)
{
	return refuse(r, EINPROGRESS,
		"QP %u: its posted work is still being completed with WR_FLUSH_ERR: ask again",
		rec->qpn);
}

/* ATTACH or DETACH. When no answer comes the record waits for it: nothing is freed early. */
static int
hand_over(struct admin *adm, struct admin_qp *rec, bool attach, struct refusal *r)
{
	struct ask_request q = { .worker = rec->worker,
		.msg = { .type = MBOX_QP_DETACH, .qp.qp = rec->qp } };
	struct flushing f = { 0 };
	struct qp_settings settings;
	struct ask *a;
	int rc;

	if (rec->pending)
		return admin_refuse_pending(rec, r);
	if (attach) {
		admin_knobs_settings(adm, rec, &settings);
		q.msg = (struct mbox_msg){ .type = MBOX_QP_ATTACH,
			.attach = { rec->qp, &settings } };
	}
	rc = attach ? object_cqs_claim(adm->objects, rec->send_cq, rec->recv_cq, rec->worker) : 0;
	if (rc != 0)
		return ask_refuse(adm->env, rec->worker, rc, r);
	do {
		a = ask_send(adm->env, &q);
		rc = a == NULL ? -EBUSY : ask_wait(adm->env, a);
		if (a != NULL && rc != -ETIMEDOUT)
			ask_release(adm->env, a);
	} while (ask_again(adm, &f, rc));
	if (rc == -ETIMEDOUT) {
		rec->pending = true;
		ask_forget(a, attach ? admin_walk_late_attach : admin_walk_late_detach, adm, rec);
	}
	if (rc == -EINPROGRESS)
		return refuse_flushing(rec, r);
	if (rc != 0)
		return ask_refuse(adm->env, rec->worker, rc, r);
	if (!attach) {
		rec->pending = true;
		env_drain(adm->env); /* what it had to say while it was attached */
		rec->pending = false;
	}
	rec->attached = attach;
	rec->held |= !attach;
	return 0;
}

int
admin_walk_detach(struct admin *adm, struct admin_qp *rec, struct refusal *r)
{
	return hand_over(adm, rec, false, r);
}

/* The worker has carried the step out. */
static void
step_done(struct admin *adm, const struct step *s)
{
	struct admin_qp *rec = s->rec;

	rec->attr = s->ch.attr;
	if (s->moves)
		rec->state_ns = adm->env->now;
	rec->alt_loaded |= (s->mask & QP_ATTR_ALT_PATH) != 0;
	admin_alternate_sync(adm, rec);
	rec->given |= s->mask & ~(uint32_t)(QP_ATTR_STATE | QP_ATTR_CUR_STATE);
}

/* A path that was refused took the neighbour's place of the one in use. */
static void
resolve_again(struct admin *adm, struct admin_qp *rec, enum qp_state from, uint32_t mask)
{
	if ((mask & QP_ATTR_AV) != 0 && from >= QPS_RTR && from <= QPS_SQD)
		admin_path_resolve_again(
			adm, &(struct admin_way){ "ah_attr", &rec->ah, rec->port, &rec->link,
				     &rec->attr.path, &rec->attr.path_resolved });
	else if ((mask & QP_ATTR_AV) != 0)
		neigh_leave(adm->net, &rec->link);
	if ((mask & QP_ATTR_ALT_PATH) != 0)
		admin_alternate_again(adm, rec);
}

/* It was refused. */
static void
step_undone(struct admin *adm, const struct step *s)
{
	struct admin_qp *rec = s->rec;

	rec->ah = s->ah;
	rec->port = s->port;
	rec->alt_ah = s->alt_ah;
	rec->alt_port = s->alt_port;
	rec->alt_given = s->alt_given;
	resolve_again(adm, rec, s->ch.from, s->mask);
}

/* It is in RESET, and the worker has forgotten posted work. */
static void
at_home(struct admin *adm, struct admin_qp *rec)
{
	admin_rings_attach(rec);
	neigh_leave(adm->net, &rec->link);
	admin_alternate_forget(adm, rec);
	admin_owed_forgive(adm, rec, ADMIN_OWED_ERR);
	rec->attr.path_resolved = false;
	rec->fatal = (struct admin_fatal){ 0 };
	rec->last_event = (struct event_last){ 0 };
	adm->up.left(adm->up.ctx, rec, ADMIN_END_RESET);
}

/* Behind RESET the QP is the control lcore's again. */
static int
back_home(struct admin *adm, struct admin_qp *rec, struct refusal *r)
{
	int rc = rec->attached ? hand_over(adm, rec, false, r) : 0;

	if (rc == 0)
		at_home(adm, rec);
	return rc;
}

/* It is answered after all. One in RESET stays at its worker until somebody wants it again. */
static void
late_step(void *ctx, struct ask *a)
{
	struct step *s = a->arg;
	struct admin_qp *rec = s->rec;

	rec->pending = false;
	if (a->done.rc == 0)
		step_done(ctx, s);
	else
		step_undone(ctx, s);
	if (a->done.rc == 0 && s->ch.to == QPS_RESET)
		at_home(ctx, rec);
	free(s);
	admin_answered(ctx, rec);
}

/* @return the worker's answer; s->late: late_step() will say how it ends, and frees the step. */
static int
ask_step(struct admin *adm, struct step *s)
{
	struct admin_qp *rec = s->rec;
	const struct ask_request q = { .worker = rec->worker,
		.msg = { .type = MBOX_QP_MODIFY,
			.modify = { rec->qp, &s->ch.attr,
				s->ch.mask | (s->moves ? QP_ATTR_STATE : 0) } } };
	struct ask *a = ask_send(adm->env, &q);
	const int rc = a == NULL ? -EBUSY : ask_wait(adm->env, a);

	s->late = rc == -ETIMEDOUT;
	if (s->late) {
		rec->pending = true;
		ask_forget(a, late_step, adm, s);
	} else if (a != NULL) {
		ask_release(adm->env, a);
	}
	return rc;
}

/* Not each worker sends at each port. */
static int
change_port(struct admin *adm, struct step *s, struct refusal *r)
{
	struct admin_qp *rec = s->rec;
	const uint8_t from = rec->worker;
	struct refusal ignored;
	int rc = rec->attached ? hand_over(adm, rec, false, r) : 0;

	if (rc != 0)
		return rc;
	rc = admin_place(adm, rec, r);
	if (rc == 0)
		rc = hand_over(adm, rec, true, r);
	if (rc == 0)
		return 0;
	if (rec->pending) { /* the new worker will have it, for the new port */
		s->port = rec->port;
		return rc;
	}
	adm->worker_qps[rec->worker]--;
	adm->worker_qps[from]++;
	rec->worker = from;
	rec->port = s->port;
	hand_over(adm, rec, true, &ignored); /* as it was */
	return rc;
}

/* On the worker, or, for a QP that stays in RESET, here. */
static int
carry_out(struct admin *adm, struct step *s, struct refusal *r)
{
	struct admin_qp *rec = s->rec;
	const struct qp_attr *attr = &s->ch.attr;
	/* Behind RESET it has its place already. */
	const bool leaves =
		(s->ch.mask & QP_ATTR_PORT) != 0 && s->ch.from != QPS_RESET && rec->port != s->port;
	struct flushing f = { 0 };
	struct refusal ignored;
	int rc;

	if (!rec->attached && attr->qp_state == QPS_RESET) {
		qp_apply(rec->qp, attr, s->ch.mask | QP_ATTR_STATE);
		return 0;
	}
	/* Its end was begun, and a worker was late: all that can follow is RESET, or its end. */
	if (!rec->attached && admin_state(rec) > QPS_INIT)
		return refuse(r, EBUSY, "QP %u is about to be destroyed: only RESET is possible",
			rec->qpn);
	rc = leaves ? change_port(adm, s, r) : 0;
	if (rc == 0 && !rec->attached)
		rc = hand_over(adm, rec, true, r);
	if (rc != 0)
		return rc;
	do {
		rc = ask_step(adm, s);
	} while (ask_again(adm, &f, rc));
	if (rc == 0)
		return 0;
	if (rc == -EINPROGRESS)
		return refuse_flushing(rec, r);
	if (rc == -EINVAL && admin_state(rec) == QPS_ERR)
		return refuse(r, EINVAL,
			"QP %u went from %s to ERR meanwhile, and only RESET leads out of ERR",
			rec->qpn, verbs_qp_state_name(attr->cur_qp_state));
	if (rc == -EINVAL && admin_state(rec) == QPS_SQE)
		return refuse(r, EINVAL,
			"QP %u went from %s to SQE meanwhile, from where it may go to RTS",
			rec->qpn, verbs_qp_state_name(attr->cur_qp_state));
	if (rc == -EAGAIN)
		return refuse(r, EAGAIN,
			"QP %u migrated meanwhile, or its path_mig_state changed: look at it again",
			rec->qpn);
	ask_refuse(adm->env, rec->worker, rc, r);
	if (attr->cur_qp_state == QPS_RESET && rc != -ETIMEDOUT)
		hand_over(adm, rec, false, &ignored); /* as it was before */
	return rc;
}

/* Address vector: path, MAC, and whether the path MTU fits the port. */
static int
take_path(struct admin *adm, struct admin_qp *rec, struct qp_attr *attr, struct refusal *r)
{
	const struct admin_way way = { .key = "ah_attr",
		.ah = &rec->ah,
		.port = rec->port,
		.link = &rec->link,
		.path = &attr->path,
		.resolved = &attr->path_resolved };
	/* RX-LNK-02, in SQD, too: with IPv6 or a VLAN tag, frames get longer. */
	int rc = admin_path_mtu_check(adm, &way, attr->path_mtu, r);

	if (rc == 0)
		rc = admin_path_make(adm, rec, &way, r);
	if (rc == 0)
		rc = admin_path_resolve(adm, &way, r);
	return rc;
}

static int
check_values(struct admin *adm, const struct admin_qp *rec, const struct conf_qp *conf,
	enum qp_state from, uint32_t mask, struct refusal *r)
{
	int16_t port;

	if ((mask & QP_ATTR_MAX_DEST_RD_ATOMIC) != 0 &&
		conf->max_dest_rd_atomic > qp_limits(rec->qp).max_dest_rd_atomic)
		return refuse(r, EINVAL,
			"max_dest_rd_atomic %u is above the %u that QP %u was created for",
			conf->max_dest_rd_atomic, qp_limits(rec->qp).max_dest_rd_atomic, rec->qpn);
	if ((mask & QP_ATTR_PORT) == 0)
		return 0;
	port = env_port_named(adm->env, conf->port);
	if (port < 0)
		return refuse(r, ENOENT, "port \"%s\" does not exist", conf->port);
	if (from == QPS_SQD && port != rec->port)
		return refuse(
			r, ENOTSUP, "port: QP %u cannot move to another port in SQD", rec->qpn);
	if (rec->mcasts_n != 0 && port != rec->port)
		return refuse(r, EBUSY,
			"port: QP %u is a member of %u multicast group%s at port \"%s\": detach it "
			"first",
			rec->qpn, rec->mcasts_n, rec->mcasts_n == 1 ? "" : "s",
			adm->env->w.conf->ports[rec->port].name);
	return 0;
}

int
admin_walk_plan(struct admin *adm, struct admin_qp *rec, const struct conf_qp *conf,
	struct admin_change *ch, struct refusal *r)
{
	int rc = admin_transition_check(rec, ch, r);

	if (rc == 0)
		rc = check_values(adm, rec, conf, ch->from, ch->mask, r);
	if (rc != 0)
		return rc;
	ch->attr = rec->attr;
	admin_attrs_take(&ch->attr, conf, ch->mask);
	ch->attr.qp_state = (uint8_t)ch->to;
	ch->attr.cur_qp_state = (uint8_t)ch->from;
	if ((ch->mask & QP_ATTR_PORT) != 0)
		rec->port = env_port_named(adm->env, conf->port);
	if (ch->from == QPS_RESET && ch->to != QPS_RESET)
		rc = admin_place(adm, rec, r);
	if (rc == 0 && ch->to == QPS_INIT && admin_qp_type(rec) == QPT_UD) {
		ch->attr.path_mtu = admin_path_datagram(adm, rec);
		ch->mask |= QP_ATTR_PATH_MTU;
	}
	if (rc == 0 && (ch->mask & QP_ATTR_AV) != 0) {
		rec->ah = conf->ah_attr;
		rc = take_path(adm, rec, &ch->attr, r);
	}
	return rc == 0 ? admin_alternate_take(adm, rec, conf, ch, r) : rc;
}

static struct step
step_of(struct admin_qp *rec, enum qp_state to, uint32_t mask)
{
	const enum qp_state from = admin_state(rec);

	return (struct step){ .rec = rec,
		.ch = { .from = from, .to = to, .mask = mask },
		.mask = mask,
		/* One that stays must not be brought back from an ERR still unknown here. */
		.moves = to != from || to == QPS_RESET,
		.ah = rec->ah,
		.alt_ah = rec->alt_ah,
		.port = rec->port,
		.alt_port = rec->alt_port,
		.alt_given = rec->alt_given };
}

int
admin_walk_step(struct admin *adm, struct admin_qp *rec, const struct conf_qp *conf,
	enum qp_state to, uint32_t mask, struct refusal *r)
{
	struct step *s;
	int rc = 0;

	/* Its worker may have it, or get it: neither place nor attributes are ours to change. */
	if (rec->pending)
		return admin_refuse_pending(rec, r);
	if (rec->attached && admin_state(rec) == QPS_RESET) /* a worker was late */
		rc = back_home(adm, rec, r);
	if (rc != 0)
		return rc;
	s = malloc(sizeof(*s));
	if (s == NULL)
		return refuse(r, ENOMEM, "out of memory");
	*s = step_of(rec, to, mask);
	rc = admin_walk_plan(adm, rec, conf, &s->ch, r);
	if (rc == 0)
		rc = carry_out(adm, s, r);
	if (s->late)
		return rc;
	if (rc == 0)
		step_done(adm, s);
	else
		step_undone(adm, s);
	free(s);
	if (rc == 0 && to == QPS_RESET)
		rc = back_home(adm, rec, r);
	if (!rec->pending)
		admin_answered(adm, rec); /* what came while it changed hands */
	return rc;
}
