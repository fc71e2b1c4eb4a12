/* SPDX-License-Identifier: BSD-3-Clause */
#include "qp_admin.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"
#include "log.h"

/* From this many QPs of one template on, memory counts more than room for later changes. */
#define MANY 1024

int
qp_admin_init(struct control *c)
{
	c->slots = calloc(c->env.qps->entries, sizeof(c->slots[0]));
	return c->slots != NULL ? 0 : -ENOMEM;
}

struct qp_rec *
qp_admin_find(struct control *c, uint32_t qpn)
{
	struct qp_rec *rec = c->slots[qpn & c->env.qps->mask].rec;

	return rec != NULL && rec->qp->qpn == qpn ? rec : NULL;
}

struct qp_rec *
qp_admin_get(struct control *c, uint32_t qpn, struct refusal *r)
{
	struct qp_rec *rec = qp_admin_find(c, qpn);

	if (rec == NULL)
		refuse(r, ENOENT, "qp_num %u does not exist", qpn);
	return rec;
}

struct qp_rec *
qp_admin_next(struct control *c, uint32_t *slot)
{
	while (*slot < c->env.qps->entries) {
		struct qp_rec *rec = c->slots[(*slot)++].rec;

		if (rec != NULL)
			return rec;
	}
	return NULL;
}

enum qp_state
qp_admin_state(const struct qp_rec *rec)
{
	return atomic_load_explicit(&rec->qp->state, memory_order_acquire);
}

static void
shared_put(struct qp_shared *s)
{
	if (--s->refs == 0)
		free(s);
}

/* Forget a QP that is detached. */
static void
drop(struct control *c, struct qp_rec *rec)
{
	struct qp *qp = rec->qp;
	struct qp_slot *slot = &c->slots[qp->qpn & c->env.qps->mask];

	neigh_leave(c, rec);
	events_forget(c, EVENT_OF_QP, qp->qpn);
	slot->rec = NULL;
	slot->last_qpn = qp->qpn;
	c->qps_n--;
	c->worker_qps[qp->worker]--;
	rec->pd->users--;
	atomic_fetch_sub_explicit(&rec->send_cq->q.users, 1, memory_order_relaxed);
	atomic_fetch_sub_explicit(&rec->recv_cq->q.users, 1, memory_order_relaxed);
	if (rec->feed != NULL)
		object_region_retire(c, rec->feed);
	shared_put(rec->shared);
	qp_free(qp);
	free(rec);
}

int
qp_admin_destroy(struct control *c, struct qp_rec *rec, struct refusal *r)
{
	if (rec->pending)
		return refuse(r, EBUSY, "QP %u: worker %u has not answered the request before",
			rec->qp->qpn, rec->qp->worker);
	if (rec->attached) {
		const int rc = qp_walk_detach(c, rec, r);

		if (rc != 0)
			return rc;
	}
	drop(c, rec);
	return 0;
}

/* May this worker send on the port? One without a queue of its own there may not. */
static bool
can_send(const struct control *c, int port, uint32_t worker)
{
	const struct control_port *p = port >= 0 ? &c->env.ports[port] : NULL;

	return p == NULL || worker == p->worker || worker < p->tx_queues;
}

static uint32_t
pick_worker(const struct control *c, const struct qp_rec *rec, const struct conf_qp *conf)
{
	uint32_t best = rec->port >= 0 ? c->env.ports[rec->port].worker : 0;

	if ((conf->given & CONF_QP_WORKER) != 0)
		return conf->worker;
	for (uint32_t w = 0; w < c->env.workers_n; w++) {
		if (can_send(c, rec->port, w) && c->worker_qps[w] < c->worker_qps[best])
			best = w;
	}
	return best;
}

int
qp_admin_place(struct control *c, struct qp_rec *rec, struct refusal *r)
{
	const uint32_t old = rec->qp->worker;
	const uint32_t worker = can_send(c, rec->port, old)
		? old
		: pick_worker(c, rec, &rec->shared->conf);

	if (!can_send(c, rec->port, worker))
		return refuse(r, EINVAL,
			"worker %u cannot send on port \"%s\", which has %u transmit queues: use worker %u",
			worker, c->env.conf->ports[rec->port].name,
			c->env.ports[rec->port].tx_queues, c->env.ports[rec->port].worker);
	c->worker_qps[old]--;
	c->worker_qps[worker]++;
	rec->qp->worker = (uint8_t)worker;
	return 0;
}

static void
set_defaults(struct qp_rec *rec, const struct conf_qp *conf)
{
	qp_walk_take(&rec->attr, conf, UINT32_MAX);
	rec->attr.qp_state = QPS_RESET;
	rec->given = (uint32_t)(conf->given & CONF_QP_ATTR_MASK);
	if ((conf->given & CONF_QP_AV) != 0)
		rec->ah = conf->ah_attr;
}

static struct qp *
alloc_qp(struct control *c, const struct conf_qp *conf)
{
	const bool feed = (conf->given & CONF_QP_RECV_FEED) != 0;
	struct qp_alloc_params p = { .max_recv_wr = conf->cap.max_recv_wr,
		.max_recv_sge = conf->cap.max_recv_sge,
		.max_dest_rd_atomic = conf->max_dest_rd_atomic,
		.socket = c->env.numa_node };

	if (feed && p.max_recv_wr < conf->recv_feed.buffers)
		p.max_recv_wr = conf->recv_feed.buffers;
	if (p.max_recv_wr == 0)
		p.max_recv_wr = 1; /* never used, but a ring has an entry */
	if (p.max_recv_sge == 0)
		p.max_recv_sge = 1;
	if (conf->count < MANY && p.max_dest_rd_atomic < CONF_MAX_RD_ATOMIC)
		p.max_dest_rd_atomic = CONF_MAX_RD_ATOMIC;
	return qp_alloc(&p);
}

/* The objects that the decoder could not know. */
static int
references(struct control *c, const struct conf_qp *conf, struct qp_rec *rec, struct refusal *r)
{
	rec->pd = object_pd_find(c, conf->pd, r);
	if (rec->pd == NULL)
		return -ENOENT;
	rec->send_cq = object_cq_find(c, conf->send_cq, r);
	if (rec->send_cq == NULL)
		return -ENOENT;
	rec->recv_cq = object_cq_find(c, conf->recv_cq, r);
	if (rec->recv_cq == NULL)
		return -ENOENT;
	if ((conf->given & CONF_QP_SRQ) != 0)
		return object_srq_find(c, conf->srq, r) == NULL
			? -ENOENT
			: refuse(r, ENOTSUP, "srq: QPs cannot use a shared receive queue yet");
	if (conf->worker >= c->env.workers_n && (conf->given & CONF_QP_WORKER) != 0)
		return refuse(r, EINVAL, "worker %u does not exist: there are %u", conf->worker,
			c->env.workers_n);
	rec->port = -1;
	if ((conf->given & CONF_QP_PORT) == 0)
		return 0;
	for (uint32_t p = 0; p < c->env.ports_n && rec->port < 0; p++) {
		if (strcmp(c->env.conf->ports[p].name, conf->port) == 0)
			rec->port = (int16_t)p;
	}
	return rec->port >= 0 ? 0
			      : refuse(r, ENOENT, "port \"%s\" does not exist", conf->port);
}

static void
link_in(struct control *c, struct qp_rec *rec, uint32_t qpn, uint32_t worker)
{
	struct qp *qp = rec->qp;

	qp->qpn = qpn;
	qp->type = QPT_RC;
	qp->worker = (uint8_t)worker;
	qp->pd = rec->pd->id;
	qp->send_cq = &rec->send_cq->q;
	qp->recv_cq = &rec->recv_cq->q;
	qp->user = rec;
	ring_attach(&rec->rq, qp->rq.sh, qp->rq.mask + 1, qp->rq.stride, false);
	atomic_fetch_add_explicit(&rec->send_cq->q.users, 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&rec->recv_cq->q.users, 1, memory_order_relaxed);
	rec->pd->users++;
	c->slots[qpn & c->env.qps->mask].rec = rec;
	c->worker_qps[worker]++;
	c->qps_n++;
}

/* One QP, in RESET. `conf` is that of the nth of its template. */
static int
create_one(struct control *c, const struct conf_qp *conf, struct qp_shared *shared,
	struct qp_rec **out, struct refusal *r)
{
	struct qp_rec *rec = calloc(1, sizeof(*rec));
	uint32_t qpn = 0;
	int rc;

	if (rec == NULL)
		return refuse(r, ENOMEM, "out of memory");
	rc = references(c, conf, rec, r);
	if (rc == 0)
		rc = qp_number_pick(c, conf->qp_num, &qpn, r);
	if (rc != 0)
		goto free_rec;
	rec->qp = alloc_qp(c, conf);
	if (rec->qp == NULL) {
		rc = refuse(r, ENOMEM, "no memory for a QP of these capacities");
		goto free_rec;
	}
	if ((conf->given & CONF_QP_RECV_FEED) != 0) {
		rc = object_feed_region(c, rec->pd,
			(uint64_t)conf->recv_feed.buffers * conf->recv_feed.size, &rec->feed, r);
		if (rc != 0)
			goto free_qp;
	}
	rec->shared = shared;
	shared->refs++;
	set_defaults(rec, conf);
	link_in(c, rec, qpn, pick_worker(c, rec, conf));
	qp_apply(rec->qp, &rec->attr, QP_ATTR_STATE);
	*out = rec;
	return 0;

free_qp:
	qp_free(rec->qp);
free_rec:
	free(rec);
	return rc;
}

/* The nth QP's own numbers. */
static int
nth_conf(const struct conf_qp *conf, uint32_t n, struct conf_qp *one, struct refusal *r)
{
	*one = *conf;
	if (conf->qp_num != 0)
		one->qp_num = conf->qp_num + n;
	if ((conf->given & CONF_QP_DEST_QPN) != 0)
		one->dest_qp_num = conf->dest_qp_num + n;
	if (one->qp_num > CONF_QPN_MAX || one->dest_qp_num > CONF_QPN_MAX)
		return refuse(r, EINVAL, "count %u: the numbers run over %u", conf->count,
			CONF_QPN_MAX);
	return 0;
}

static struct qp_shared *
make_shared(struct control *c, const struct conf_qp *conf)
{
	struct qp_shared *s = calloc(1, sizeof(*s));

	if (s == NULL)
		return NULL;
	s->refs = 1;
	s->conf = *conf;
	conf_qp_knobs(&c->env.conf->knobs, conf, &s->knobs);
	return s;
}

int
qp_admin_create(struct control *c, const struct conf_qp *conf, struct qp_rec **recs,
	struct refusal *r)
{
	struct qp_shared *shared = make_shared(c, conf);
	struct qp_rec **made = calloc(conf->count, sizeof(made[0]));
	struct refusal ignored;
	struct conf_qp one;
	uint32_t n = 0;
	int rc = 0;

	if (shared == NULL || made == NULL) {
		rc = refuse(r, ENOMEM, "out of memory");
		goto out;
	}
	if ((conf->given & CONF_QP_SEND_FEED) != 0)
		log_warn("send_feed: not available yet; the QP is made without it");
	for (n = 0; n < conf->count && rc == 0; n++) {
		rc = nth_conf(conf, n, &one, r);
		if (rc == 0)
			rc = create_one(c, &one, shared, &made[n], r);
		if (rc == 0) {
			made[n]->nth = n;
			rc = qp_walk_to(c, made[n], &one, r);
		}
	}
	for (uint32_t i = 0; i < n && rc != 0; i++) {
		if (made[i] != NULL && qp_admin_destroy(c, made[i], &ignored) != 0)
			log_error("%s", ignored.text);
	}
	if (rc == 0 && recs != NULL)
		memcpy(recs, made, conf->count * sizeof(made[0]));
out:
	if (shared != NULL)
		shared_put(shared);
	free(made);
	return rc;
}

int
qp_admin_modify(struct control *c, struct qp_rec *rec, const struct conf_qp *m, struct refusal *r)
{
	const enum qp_state from = qp_admin_state(rec);
	const uint32_t mask = (uint32_t)(m->given & CONF_QP_ATTR_MASK);

	if ((mask & QP_ATTR_CUR_STATE) != 0 && m->cur_qp_state != from)
		return refuse(r, EINVAL, "cur_qp_state is %s, but QP %u is in %s",
			qp_state_name(m->cur_qp_state), rec->qp->qpn, qp_state_name(from));
	return qp_walk_step(c, rec, m, (mask & QP_ATTR_STATE) != 0 ? m->qp_state : from,
		mask & ~(uint32_t)QP_ATTR_STATE, r);
}

int
qp_admin_snapshots(struct control *c, struct qp_rec *const *recs, uint32_t n,
	struct qp_snapshot *out, struct refusal *r)
{
	struct ask *asked[QP_SNAPSHOTS] = { NULL };
	int rc = 0;

	for (uint32_t i = 0; i < n; i++) {
		const struct ask_request q = { .type = MBOX_QP_QUERY, .qp = recs[i]->qp,
			.worker = recs[i]->qp->worker };

		if (!recs[i]->attached)
			qp_snapshot(recs[i]->qp, &out[i]);
		else if ((asked[i] = ask_send(c, &q)) == NULL)
			rc = ask_refuse(c, recs[i]->qp->worker, -EBUSY, r);
	}
	for (uint32_t i = 0; i < n; i++) {
		int one;

		if (asked[i] == NULL)
			continue;
		one = ask_wait(c, asked[i]);
		if (one == 0)
			out[i] = asked[i]->snapshot;
		if (one != -ETIMEDOUT)
			ask_release(c, asked[i]);
		if (one != 0)
			rc = ask_refuse(c, recs[i]->qp->worker, one, r);
	}
	return rc;
}

int
qp_admin_trace(struct control *c, struct qp_rec *rec, bool on, struct refusal *r)
{
	const struct qp_attr attr = { .trace = on };
	const struct ask_request q = { .type = MBOX_QP_MODIFY, .worker = rec->qp->worker,
		.qp = rec->qp, .mask = QP_ATTR_TRACE, .attr = &attr };
	int rc;

	if (rec->attached) {
		rc = ask_and_wait(c, &q);
		if (rc != 0)
			return ask_refuse(c, rec->qp->worker, rc, r);
	}
	rec->trace = on;
	return 0;
}

int
qp_admin_new_mac(struct control *c, struct qp_rec *rec)
{
	const enum qp_state state = qp_admin_state(rec);
	const struct ask_request q = { .type = MBOX_QP_MODIFY, .worker = rec->qp->worker,
		.qp = rec->qp, .mask = QP_ATTR_AV, .attr = &rec->attr };
	struct ask *a;

	if (c->asks.busy >= ASK_SLOTS / 2)
		return -EAGAIN;
	memcpy(rec->attr.path.dmac, rec->neigh->mac, sizeof(rec->attr.path.dmac));
	rec->attr.path_resolved = true;
	if (!rec->attached || state < QPS_RTR || state > QPS_SQD)
		return 0;
	a = ask_send(c, &q);
	if (a == NULL)
		return -EAGAIN;
	ask_forget(a, NULL, NULL);
	return 0;
}

void
qp_admin_fini(struct control *c)
{
	struct refusal r;
	struct qp_rec *rec;
	uint32_t slot = 0;

	while (c->slots != NULL && (rec = qp_admin_next(c, &slot)) != NULL) {
		const struct conf_qp none = { 0 };

		if (rec->attached && qp_admin_state(rec) != QPS_ERR &&
			qp_walk_step(c, rec, &none, QPS_ERR, 0, &r) != 0)
			log_warn("stopping: %s", r.text);
		if (qp_admin_destroy(c, rec, &r) != 0)
			log_error("stopping: %s", r.text);
	}
	free(c->slots);
	c->slots = NULL;
}
