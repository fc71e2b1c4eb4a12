/* SPDX-License-Identifier: BSD-3-Clause */
/* Making QPs: references, memory, numbers, and all of a template or none. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ask.h"
#include "log.h"
#include "admin.h"

/* From this many QPs of one template on, memory counts more than room for later changes. */
#define MANY 256

void
admin_shared_put(struct admin *adm, struct admin_shared *s)
{
	if (--s->refs != 0)
		return;
	if (s->send_region != NULL)
		object_region_retire(adm->objects, s->send_region);
	free(s);
}

static uint32_t
pick_worker(const struct admin *adm, const struct admin_qp *rec, const struct conf_qp *conf)
{
	uint32_t best = rec->port >= 0 ? adm->env->w.ports[rec->port].worker : 0;

	if ((conf->given & CONF_QP_WORKER) != 0)
		return conf->worker;
	for (uint32_t w = 0; w < adm->env->w.workers_n; w++) {
		const bool can = env_worker_sends(adm->env, rec->alt_port, w);
		const bool best_can = env_worker_sends(adm->env, rec->alt_port, best);

		/* One that can send on both paths before one that has little to do. */
		if (env_worker_sends(adm->env, rec->port, w) &&
			(can > best_can ||
				(can == best_can && adm->worker_qps[w] < adm->worker_qps[best])))
			best = w;
	}
	return best;
}

int
admin_place(struct admin *adm, struct admin_qp *rec, struct refusal *r)
{
	const uint32_t old = rec->worker;
	const uint32_t worker = env_worker_sends(adm->env, rec->port, old)
					? old
					: pick_worker(adm, rec, &rec->shared->conf);

	if (!env_worker_sends(adm->env, rec->port, worker))
		return refuse(r, EINVAL,
			"worker %u cannot send on port \"%s\", which has %u transmit queues: "
			"use worker %u",
			worker, adm->env->w.conf->ports[rec->port].name,
			adm->env->w.ports[rec->port].tx_queues,
			adm->env->w.ports[rec->port].worker);
	adm->worker_qps[old]--;
	adm->worker_qps[worker]++;
	rec->worker = (uint8_t)worker;
	admin_stock_begin(adm, rec, worker);
	return 0;
}

void
admin_set_defaults(struct admin_qp *rec, const struct conf_qp *conf)
{
	admin_attrs_take(&rec->attr, conf, UINT32_MAX);
	rec->attr.qp_state = QPS_RESET;
	rec->given = (uint32_t)(conf->given & CONF_QP_ATTR_MASK);
	if ((conf->given & QP_ATTR_AV) != 0)
		rec->ah = conf->ah_attr;
	rec->alt_ah = conf->alt_ah_attr;
	rec->alt_given = conf->given & (CONF_QP_ALT_PORT | CONF_QP_ALT_TIMEOUT | CONF_QP_ALT_PKEY);
	rec->attr.alt_timeout = QP_ALT_TIMEOUT_SAME;
}

void
admin_paths_link(struct admin_qp *rec, struct admin_qp *at)
{
	rec->link.ah = &at->ah;
	rec->alt_link.ah = &at->alt_ah;
	rec->link.user = rec->alt_link.user = at;
	rec->link.qpn = rec->alt_link.qpn = rec->qpn;
}

/* Neither end of XRC has a receive queue. */
static bool
is_xrc(const struct conf_qp *conf)
{
	return conf->qp_type == QPT_XRC_SEND || conf->qp_type == QPT_XRC_RECV;
}

static int
alloc_qp(struct admin *adm, const struct admin_shared *shared, const struct conf_qp *conf,
	struct admin_qp *rec, struct refusal *r)
{
	struct owner *owner = shared->owner;
	const bool feed = (conf->given & CONF_QP_RECV_FEED) != 0;
	const bool reads = conf->qp_type == QPT_RC || conf->qp_type == QPT_XRC_RECV;
	struct qp_alloc_params p = { .qpn = rec->qpn,
		.type = (uint8_t)conf->qp_type,
		.pd = rec->pd->id,
		.send_cq = rec->send_cq != NULL ? &rec->send_cq->q : NULL,
		.recv_cq = rec->recv_cq != NULL ? &rec->recv_cq->q : NULL,
		.srq = rec->srq != NULL ? &rec->srq->q : NULL,
		.xrcd = rec->xrcd != NULL ? rec->xrcd->id : 0,
		.client = owner != NULL ? owner->id : 0,
		.worker = rec->worker,
		.max_recv_wr = conf->cap.max_recv_wr,
		.max_recv_sge = conf->cap.max_recv_sge,
		.rq_limit = conf->rq_limit,
		.max_send_wr = conf->cap.max_send_wr,
		.max_send_sge = conf->cap.max_send_sge,
		.max_inline = conf->cap.max_inline_data,
		.send_feed = (conf->given & CONF_QP_SEND_FEED) != 0,
		.max_dest_rd_atomic = reads ? conf->max_dest_rd_atomic : 0,
		.has_rate = admin_knobs_rate(&shared->knobs),
		.socket = adm->env->w.numa_node };
	int rc;

	if (p.send_feed && p.max_send_wr > conf->send_feed.depth)
		p.max_send_wr = conf->send_feed.depth;
	if (feed && p.max_recv_wr < conf->recv_feed.buffers)
		p.max_recv_wr = conf->recv_feed.buffers;
	if (rec->srq != NULL) {
		p.max_recv_wr = 0;
		p.max_recv_sge = rec->srq->q.max_sge;
	}
	if (rec->xrcd != NULL)
		p.max_send_wr = 0;
	if (is_xrc(conf))
		p.max_recv_wr = p.max_recv_sge = 0;
	if (p.max_recv_wr == 0)
		p.max_recv_wr = 1; /* never used, but a ring has an entry */
	if (p.max_recv_sge == 0)
		p.max_recv_sge = 1;
	if (conf->count < MANY && reads && p.max_dest_rd_atomic < CONF_MAX_RD_ATOMIC)
		p.max_dest_rd_atomic = CONF_MAX_RD_ATOMIC;
	/* What receives without a post needs its memory from the beginning. */
	p.compact =
		conf->count >= MANY && owner == NULL && rec->srq == NULL && !feed && !is_xrc(conf);
	if (owner != NULL) {
		rc = owner_rings_lend(adm->env, owner, &p, &rec->rings, r);
		if (rc != 0)
			return rc;
	}
	rc = qp_alloc(&p, &rec->qp);
	if (rc == 0)
		return 0;
	if (owner != NULL)
		owner_rings_return(owner, &rec->rings);
	return refuse(r, ENOMEM, "no memory for a QP of these capacities");
}

/* The objects that the decoder could not know. */
int
admin_references(
	struct admin *adm, const struct conf_qp *conf, struct admin_qp *rec, struct refusal *r)
{
	rec->pd = object_pd_find(adm->objects, conf->pd, r);
	if (rec->pd == NULL)
		return -ENOENT;
	if ((conf->given & CONF_QP_SEND_CQ) != 0) {
		rec->send_cq = object_cq_find(adm->objects, conf->send_cq, r);
		if (rec->send_cq == NULL)
			return -ENOENT;
	}
	if ((conf->given & CONF_QP_RECV_CQ) != 0) {
		rec->recv_cq = object_cq_find(adm->objects, conf->recv_cq, r);
		if (rec->recv_cq == NULL)
			return -ENOENT;
	}
	if ((conf->given & CONF_QP_XRCD) != 0) {
		rec->xrcd = object_xrcd_find(adm->objects, conf->xrcd, r);
		if (rec->xrcd == NULL)
			return -ENOENT;
	}
	if ((conf->given & CONF_QP_SRQ) != 0) {
		rec->srq = object_srq_find(adm->objects, conf->srq, r);
		if (rec->srq == NULL)
			return -ENOENT;
		/* As Linux: it is for whom a request names it by its number (XRC-04). */
		if (rec->srq->conf.srq_type == CONF_SRQ_XRC)
			return refuse(r, EINVAL,
				"srq \"%s\" is of type XRC: requests of XRC name it, and no QP has it",
				conf->srq);
	}
	if (conf->worker >= adm->env->w.workers_n && (conf->given & CONF_QP_WORKER) != 0)
		return refuse(r, EINVAL, "worker %u does not exist: the last one is %u",
			conf->worker, adm->env->w.workers_n - 1);
	rec->alt_port = (conf->given & CONF_QP_ALT_PORT) != 0
				? env_port_named(adm->env, conf->alt_port)
				: -1;
	rec->port = -1;
	if ((conf->given & QP_ATTR_PORT) == 0)
		return 0;
	rec->port = env_port_named(adm->env, conf->port);
	return rec->port >= 0 ? 0 : refuse(r, ENOENT, "port \"%s\" does not exist", conf->port);
}

void
admin_rings_attach(struct admin_qp *rec)
{
	qp_rings(rec->qp, &rec->rq, &rec->sq);
}

static void
link_in(struct admin *adm, struct admin_qp *rec)
{
	admin_stock_begin(adm, rec, rec->worker);
	if (rec->srq != NULL)
		rec->srq->q.users++;
	qp_user_set(rec->qp, rec);
	admin_paths_link(rec, rec);
	if (rec->shared->owner != NULL) {
		admin_link_charge(&rec->link, rec->shared->owner);
		admin_link_charge(&rec->alt_link, rec->shared->owner);
		TAILQ_INSERT_TAIL(&rec->shared->owner->qps, rec, of_owner);
		rec->shared->owner->qps_n++;
	}
	admin_rings_attach(rec);
	if (rec->send_cq != NULL)
		atomic_fetch_add_explicit(&rec->send_cq->q.users, 1, memory_order_relaxed);
	if (rec->recv_cq != NULL)
		atomic_fetch_add_explicit(&rec->recv_cq->q.users, 1, memory_order_relaxed);
	if (rec->xrcd != NULL)
		rec->xrcd->users++;
	rec->pd->users++;
	admin_slot_set(&adm->slots[rec->qpn & adm->env->w.qps->mask], rec);
	adm->worker_qps[rec->worker]++;
	adm->qps_n++;
}

/* All QPs of a template send from, or read into, one region. */
static int
send_region(struct admin *adm, struct object_pd *pd, struct admin_shared *shared, struct refusal *r)
{
	const uint32_t size = shared->conf.send_feed.size;
	int rc;

	if (verbs_wr_has(shared->conf.send_feed.opcode, WR_HAS_ANSWER) &&
		shared->knobs.ops_placement == 0)
		return refuse(r, EINVAL, "send_feed.opcode: %s requires the knob ops.placement",
			verbs_wr_opcode_name(shared->conf.send_feed.opcode));
	rc = object_feed_region(adm->objects, pd, size < 8 ? 8 : size, &shared->send_region, r);
	if (rc == 0)
		mem_pattern_fill(shared->send_region->host, size, 0, 0);
	return rc;
}

/* One QP, in RESET. `conf` is that of the nth of its template. */
static int
create_one(struct admin *adm, const struct conf_qp *conf, struct admin_shared *shared,
	struct admin_qp **out, struct refusal *r)
{
	struct admin_qp *rec = calloc(1, sizeof(*rec));
	int rc;

	if (rec == NULL)
		return refuse(r, ENOMEM, "out of memory");
	rc = admin_references(adm, conf, rec, r);
	if (rc == 0)
		rc = admin_number_pick(adm, conf->qp_num, &rec->qpn, r);
	if (rc != 0)
		goto free_rec;
	rec->worker = (uint8_t)pick_worker(adm, rec, conf);
	rc = alloc_qp(adm, shared, conf, rec, r);
	if (rc != 0)
		goto free_rec;
	if ((conf->given & CONF_QP_RECV_FEED) != 0) {
		rc = object_feed_region(adm->objects, rec->pd,
			(uint64_t)conf->recv_feed.buffers * conf->recv_feed.size, &rec->feed, r);
		if (rc != 0)
			goto free_qp;
	}
	if ((conf->given & CONF_QP_SEND_FEED) != 0 && shared->send_region == NULL) {
		rc = send_region(adm, rec->pd, shared, r);
		if (rc != 0)
			goto free_feed;
	}
	rec->shared = shared;
	shared->refs++;
	admin_set_defaults(rec, conf);
	link_in(adm, rec);
	qp_apply(rec->qp, &rec->attr, QP_ATTR_STATE);
	*out = rec;
	return 0;

free_feed:
	if (rec->feed != NULL)
		object_region_retire(adm->objects, rec->feed);
free_qp:
	qp_free(rec->qp);
free_rec:
	free(rec);
	return rc;
}

int
admin_nth_conf(const struct conf_qp *conf, uint32_t n, struct conf_qp *one, struct refusal *r)
{
	*one = *conf;
	if (conf->qp_num != 0)
		one->qp_num = conf->qp_num + n;
	if ((conf->given & QP_ATTR_DEST_QPN) != 0)
		one->dest_qp_num = conf->dest_qp_num + n;
	if (one->qp_num > CONF_QPN_MAX || one->dest_qp_num > CONF_QPN_MAX)
		return refuse(
			r, EINVAL, "count %u: the numbers run over %u", conf->count, CONF_QPN_MAX);
	return 0;
}

static struct admin_shared *
make_shared(struct admin *adm, const struct conf_qp *conf)
{
	struct admin_shared *s = calloc(1, sizeof(*s));

	if (s == NULL)
		return NULL;
	s->refs = 1;
	s->configured = !adm->running;
	s->conf = *conf;
	conf_qp_knobs(&adm->env->w.conf->knobs, conf, &s->knobs);
	if (s->knobs.resp_psn_check == KNOB_resp_psn_check_resync)
		log_warn("QP %u: resp.psn_check is \"resync\", for benchmarks only: it takes "
			 "requests in any order",
			conf->qp_num);
	return s;
}

/* QPs first .. first + n - 1 of the template. What was made stands in `made`, even on a refusal. */
static int
create_window(struct admin *adm, struct admin_shared *shared, uint32_t first, uint32_t n,
	struct admin_qp **made, struct refusal *r)
{
	struct admin_walk walk[ADMIN_WINDOW];
	struct refusal late;
	struct conf_qp one;
	int rc = 0;

	for (uint32_t i = 0; i < n && rc == 0; i++) {
		walk[i].n = 0;
		rc = admin_nth_conf(&shared->conf, first + i, &one, r);
		if (rc == 0)
			rc = create_one(adm, &one, shared, &made[i], r);
		if (rc == 0) {
			made[i]->nth = first + i;
			rc = admin_many_start(adm, made[i], &one, &walk[i], r);
		}
	}
	for (uint32_t i = 0; i < n && made[i] != NULL; i++) {
		if (admin_many_finish(adm, made[i], &walk[i], &late) != 0 && rc == 0) {
			*r = late;
			rc = -late.err;
		}
	}
	return rc;
}

/* Those that are as their template says need no records; NULL stands for them then. */
static void
fold(struct admin *adm, struct admin_qp **made, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		if (admin_fold(adm, made[i]))
			made[i] = NULL;
}

static int
create_all(struct admin *adm, struct admin_shared *shared, const struct conf_qp *conf,
	struct admin_qp **recs, struct refusal *r)
{
	struct admin_qp **made = calloc(conf->count, sizeof(made[0]));
	struct refusal ignored;
	uint32_t n = 0;
	int rc = 0;

	if (shared == NULL || made == NULL) {
		rc = refuse(r, ENOMEM, "out of memory");
		goto out;
	}
	while (n < conf->count && rc == 0) {
		const uint32_t left = conf->count - n,
			       some = left < ADMIN_WINDOW ? left : ADMIN_WINDOW;

		rc = create_window(adm, shared, n, some, &made[n], r);
		if (rc == 0 && recs == NULL)
			fold(adm, &made[n], some);
		n += rc == 0 ? some : 0;
	}
	for (uint32_t i = 0; i < conf->count && rc != 0; i++) {
		struct admin_qp *rec = made[i];

		if (rec == NULL && i < n)
			rec = admin_find(adm, conf->qp_num + i);
		if (rec != NULL && admin_destroy(adm, rec, &ignored) != 0) {
			log_error("%s", ignored.text);
			admin_end_later(adm, rec);
		}
	}
	if (rc == 0 && recs != NULL)
		memcpy(recs, made, conf->count * sizeof(made[0]));
out:
	if (shared != NULL)
		admin_shared_put(adm, shared);
	free(made);
	return rc;
}

int
admin_create(
	struct admin *adm, const struct conf_qp *conf, struct admin_qp **recs, struct refusal *r)
{
	return create_all(adm, make_shared(adm, conf), conf, recs, r);
}

int
admin_create_for(struct admin *adm, struct owner *owner, const struct conf_qp *conf,
	struct admin_qp **rec, struct refusal *r)
{
	struct admin_shared *shared = make_shared(adm, conf);

	if (shared != NULL)
		shared->owner = owner;
	return create_all(adm, shared, conf, rec, r);
}
