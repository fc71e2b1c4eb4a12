/* SPDX-License-Identifier: BSD-3-Clause */
/* save_config: the objects as they are now, as a file that starts the same dataplane. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "admin_mcast.h"
#include "conf_mcast.h"
#include "mem_window.h"
#include "methods.h"

/*
 * A new dataplane starts its QPs, it does not go on with them: PSNs are the configured ones, and a
 * QP that has failed or drains is saved in the state that it worked in.
 */
static uint32_t
state_to_save(const struct admin_qp *rec, const struct conf_qp *q)
{
	const uint32_t most = conf_qp_reaches(q);
	uint32_t state = rec->port >= 0 ? QPS_INIT : QPS_RESET;

	switch (admin_state(rec)) {
	case QPS_RESET:
		return QPS_RESET;
	case QPS_INIT:
		return QPS_INIT;
	case QPS_RTR:
		return QPS_RTR;
	case QPS_ERR: /* from any state: the furthest that its attributes reach */
		if ((rec->given & QP_ATTR_SQ_PSN) != 0)
			state = QPS_RTS;
		else if ((rec->given & QP_ATTR_RQ_PSN) != 0)
			state = QPS_RTR;
		return state < most ? state : most;
	default:
		return QPS_RTS;
	}
}

/* @return false: no route leads there any more, and nobody has told a MAC. */
static bool
is_reachable(const struct methods *ctx, int16_t port, const struct wire_path *path, bool resolved,
	struct conf_ah *ah)
{
	struct conf_ip hop;

	if ((ah->given & CONF_AH_DEST_MAC) != 0 || port < 0 || conf_ip_is_group(&ah->dest_ip) ||
		routes_hop(ctx->net, (uint16_t)port, &ah->dest_ip, &hop))
		return true;
	ah->given |= CONF_AH_DEST_MAC;
	memcpy(ah->dest_mac, path->dmac, sizeof(ah->dest_mac));
	return resolved;
}

/*
 * A path whose route is gone works on with the MAC that it has found; a new one would have none.
 * A QP without its path has no alternate one either, nor has one that went on without it.
 */
static void
keep_reachable(const struct methods *ctx, const struct admin_qp *rec, struct conf_qp *q)
{
	const struct qp_attr *a = &rec->attr;
	const uint64_t alternate = QP_ATTR_ALT_PATH | QP_ATTR_PATH_MIG_STATE | CONF_QP_ALT_PORT |
				   CONF_QP_ALT_TIMEOUT | CONF_QP_ALT_PKEY;
	const bool lost = (q->given & QP_ATTR_AV) != 0 &&
			  !is_reachable(ctx, rec->port, &a->path, a->path_resolved, &q->ah_attr);

	if (lost && q->qp_state > QPS_INIT)
		q->qp_state = QPS_INIT;
	if (lost)
		q->given &= ~(uint64_t)QP_ATTR_AV;
	if ((q->given & QP_ATTR_ALT_PATH) != 0 &&
		(lost || (q->qp_state > QPS_INIT && !rec->alt_loaded) ||
			!is_reachable(ctx, rec->alt_port >= 0 ? rec->alt_port : rec->port,
				&a->alt_path, a->alt_resolved, &q->alt_ah_attr))) {
		q->path_mig_state = MIG_MIGRATED;
		q->given &= ~alternate;
	}
}

/* Does `q` continue the template that `first` began, as its QP number first->count? */
static bool
continues(const struct conf_qp *first, const struct conf_qp *q)
{
	struct conf_qp next;

	memcpy(&next, first, sizeof(next));
	next.qp_num += first->count;
	if ((next.given & QP_ATTR_DEST_QPN) != 0)
		next.dest_qp_num += first->count;
	if ((next.given & CONF_QP_SEND_FEED) != 0)
		next.send_feed.remote_addr += first->count * next.send_feed.stride;
	next.count = 1;
	return memcmp(&next, q, sizeof(next)) == 0;
}

/* One that goes with its application, or its connection. */
static bool
is_passing(const struct methods *ctx, const struct admin_qp *rec)
{
	return rec->shared->owner != NULL || connect_has_qp(ctx->connect, rec->qpn);
}

/* Room for every QP on its own; QPs of one template mostly become one entry again. */
static int
qps_save(struct methods *ctx, struct conf *out)
{
	struct admin_qp *rec;
	uint32_t slot = 0;

	out->n_qps = 0;
	out->qps = calloc((size_t)ctx->admin->qps_n + 1, sizeof(*out->qps));
	if (out->qps == NULL)
		return -ENOMEM;
	while ((rec = admin_next(ctx->admin, &slot)) != NULL && out->n_qps < ctx->admin->qps_n) {
		struct conf_qp *q = &out->qps[out->n_qps];

		if (is_passing(ctx, rec))
			continue;
		admin_conf(ctx->admin, rec, q);
		q->qp_state = state_to_save(rec, q);
		keep_reachable(ctx, rec, q);
		if (out->n_qps > 0 && continues(q - 1, q))
			q[-1].count++;
		else
			out->n_qps++;
	}
	return 0;
}

static int
mcasts_save(struct methods *ctx, struct conf *out)
{
	const struct admin_mcast *m;
	uint32_t n = 0;

	TAILQ_FOREACH (m, &ctx->admin->mcasts, all)
		n++;
	out->mcasts = calloc((size_t)n + 1, sizeof(*out->mcasts));
	if (out->mcasts == NULL)
		return -ENOMEM;
	TAILQ_FOREACH (m, &ctx->admin->mcasts, all) {
		const struct admin_qp *rec = admin_find(ctx->admin, m->qpn);

		if (rec != NULL && !is_passing(ctx, rec))
			out->mcasts[out->n_mcasts++] =
				(struct conf_mcast){ .qp_num = m->qpn, .group = m->group };
	}
	return 0;
}

/* Room for all of a kind. @return false: no memory. */
static bool
room(void *array, const struct names *t, size_t size)
{
	void *v = calloc((size_t)t->n + 1, size);

	memcpy(array, &v, sizeof(v));
	return v != NULL;
}

/* What they are bound to goes with the requests that did it. */
static void
mws_save(const struct methods *ctx, struct conf *out)
{
	struct named *o;

	TAILQ_FOREACH (o, &ctx->objects->mws.all, all) {
		const struct object_mw *mw = (const struct object_mw *)(const void *)o;
		struct conf_mw *to = &out->mws[out->n_mws];

		if (owner_is_name(o->name))
			continue;
		out->n_mws++;
		memcpy(to->name, o->name, sizeof(to->name));
		memcpy(to->pd, mw->pd->n.name, sizeof(to->pd));
		to->type = mw->window->r.kind - MEM_WINDOW_1 + 1;
	}
}

static int
objects_save(struct methods *ctx, struct conf *out)
{
	struct named *o;

	if (!room(&out->pds, &ctx->objects->pds, sizeof(*out->pds)) ||
		!room(&out->mrs, &ctx->objects->mrs, sizeof(*out->mrs)) ||
		!room(&out->xrcds, &ctx->objects->xrcds, sizeof(*out->xrcds)) ||
		!room(&out->cqs, &ctx->objects->cqs, sizeof(*out->cqs)) ||
		!room(&out->srqs, &ctx->objects->srqs, sizeof(*out->srqs)) ||
		!room(&out->mws, &ctx->objects->mws, sizeof(*out->mws)))
		return -ENOMEM;
	TAILQ_FOREACH (o, &ctx->objects->pds.all, all) {
		if (!owner_is_name(o->name))
			memcpy(out->pds[out->n_pds++].name, o->name, sizeof(o->name));
	}
	TAILQ_FOREACH (o, &ctx->objects->xrcds.all, all) {
		if (!owner_is_name(o->name))
			memcpy(out->xrcds[out->n_xrcds++].name, o->name, sizeof(o->name));
	}
	TAILQ_FOREACH (o, &ctx->objects->mrs.all, all) {
		const struct object_mr *mr = (const struct object_mr *)(const void *)o;

		if (owner_is_name(o->name))
			continue;
		out->mrs[out->n_mrs] = mr->conf;
		out->mrs[out->n_mrs++].addr = mr->addr; /* also while it is ZERO_BASED */
	}
	TAILQ_FOREACH (o, &ctx->objects->srqs.all, all) {
		if (!owner_is_name(o->name))
			out->srqs[out->n_srqs++] =
				((const struct object_srq *)(const void *)o)->conf;
	}
	TAILQ_FOREACH (o, &ctx->objects->cqs.all, all) {
		struct conf_cq *cq = &out->cqs[out->n_cqs];

		if (owner_is_name(o->name))
			continue;
		out->n_cqs++;
		memcpy(cq->name, o->name, sizeof(cq->name));
		cq->cqe = ((const struct object_cq *)(const void *)o)->cqe;
	}
	mws_save(ctx, out);
	return qps_save(ctx, out) == 0 ? mcasts_save(ctx, out) : -ENOMEM;
}

/* The rules of now. Its own bottleneck, which they leave as it is, stands beside them. */
static void
impair_save(const struct env_port *p, struct conf_port *out)
{
	struct impair_counters ignored;
	const struct impair_conf *is =
		p->impair != NULL ? p->impair->get(p->impair_ctx, &ignored) : NULL;
	bool own;

	if (is == NULL)
		return;
	own = (out->given & CONF_PORT_BOTTLENECK) != 0 &&
	      memcmp(&is->bottleneck, &out->bottleneck, sizeof(out->bottleneck)) == 0;
	out->impair = *is;
	if (own) {
		out->impair.bottleneck = (struct bottleneck_conf){ .rate = 0 };
		out->impair.given &= ~(uint64_t)IMPAIR_HAS_BOTTLENECK;
	} else {
		out->given &= ~(uint64_t)CONF_PORT_BOTTLENECK;
	}
	out->given &= ~(uint64_t)CONF_PORT_IMPAIR;
	if (is->n_rules != 0 || out->impair.bottleneck.rate != 0)
		out->given |= CONF_PORT_IMPAIR;
}

/* The port's routes and fixed neighbours of now, in arrays of their own. @return 0 or -ENOMEM. */
static int
port_save(const struct methods *ctx, uint32_t port, struct conf_port *out)
{
	const struct neigh *n;

	impair_save(&ctx->env->w.ports[port], out);
	out->routes = NULL;
	out->neighbors = calloc((size_t)ctx->net->neighs.n + 1, sizeof(*out->neighbors));
	out->n_neighbors = 0;
	if (out->neighbors == NULL || conf_routes_save(&ctx->net->routes[port], out) != 0)
		return -ENOMEM;
	TAILQ_FOREACH (n, &ctx->net->neighs.all, all) {
		struct conf_neighbor *to = &out->neighbors[out->n_neighbors];

		if (n->port != port || n->state != NEIGH_STATIC || n->vlan != 0)
			continue; /* a tagged one goes with the other */
		out->n_neighbors++;
		to->given = n->ip.family == 4 ? CONF_NEIGHBOR_IPV4 : CONF_NEIGHBOR_IPV6;
		to->ip = n->ip;
		memcpy(to->mac, n->mac, sizeof(to->mac));
	}
	return 0;
}

static int
ports_save(const struct methods *ctx, struct conf *out)
{
	const struct conf *conf = ctx->env->w.conf;
	int rc = 0;

	out->ports = calloc(conf->n_ports, sizeof(*out->ports));
	if (out->ports == NULL)
		return -ENOMEM;
	for (uint32_t p = 0; p < conf->n_ports; p++) {
		out->ports[p] = conf->ports[p];
		rc |= port_save(ctx, p, &out->ports[p]);
	}
	return rc != 0 ? -ENOMEM : 0;
}

static void
ports_free(struct conf *saved)
{
	for (uint32_t p = 0; saved->ports != NULL && p < saved->n_ports; p++) {
		free(saved->ports[p].neighbors);
		free(saved->ports[p].routes);
	}
	free(saved->ports);
}

static int
save_config(struct rpc_call *call)
{
	struct conf now = *call->m->env->w.conf; /* what does not change: lcores, knobs */
	json_t *o = NULL;

	now.pds = NULL;
	now.n_pds = 0;
	now.xrcds = NULL;
	now.n_xrcds = 0;
	now.mrs = NULL;
	now.n_mrs = 0;
	now.cqs = NULL;
	now.n_cqs = 0;
	now.srqs = NULL;
	now.n_srqs = 0;
	now.qps = NULL;
	now.mcasts = NULL;
	now.n_mcasts = 0;
	now.mws = NULL;
	now.n_mws = 0;
	now.cm.listen = calloc(CM_LISTENERS, sizeof(*now.cm.listen));
	if (now.cm.listen == NULL)
		return rpc_result(call, NULL);
	now.cm.n_listen = connect_save(call->m->connect, now.cm.listen);
	if (ports_save(call->m, &now) == 0 && objects_save(call->m, &now) == 0)
		o = conf_encode_all(&now);
	free(now.cm.listen);
	ports_free(&now);
	free(now.pds);
	free(now.xrcds);
	free(now.mrs);
	free(now.cqs);
	free(now.srqs);
	free(now.qps);
	free(now.mcasts);
	free(now.mws);
	return rpc_result(call, o);
}

const struct rpc_method methods_save[] = {
	{ "save_config", save_config, &method_no_params },
	{ NULL, NULL, NULL },
};
