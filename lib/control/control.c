/* SPDX-License-Identifier: BSD-3-Clause */
#include "control.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "connect_client.h"
#include "admin_mcast.h"
#include "conf_mcast.h"
#include "control_state.h"
#include "log.h"
#include "object_notify.h"

#define WAIT_US       1000
#define WAIT_SHORT_US 20
#define DRAIN_MAX     256 /* messages of one worker in one turn */

static void
message(struct control *c, const struct mbox_msg *m, uint16_t worker)
{
	switch ((enum mbox_type)m->type) {
	case MBOX_FATAL:
		events_fatal(&c->diagnose, m, worker);
		break;
	case MBOX_CNP:
		admin_cnp_send(&c->admin, m, worker);
		break;
	case MBOX_PACKET:
		frames_receive(&c->net, m->pkt.m, m->pkt.port);
		break;
	default:
		break;
	}
}

/* What the workers have said: env_drain(). */
static uint32_t
drain(void *ctx)
{
	struct control *c = ctx;
	struct mbox_msg m[32];
	uint32_t total = 0;

	for (uint32_t w = 0; w < c->env.w.workers_n; w++) {
		for (uint32_t got = 0; got < DRAIN_MAX;) {
			const unsigned int n =
				mbox_recv_up(c->env.w.workers[w].mbox, m, ARRAY_LEN(m));

			for (unsigned int i = 0; i < n; i++)
				message(c, &m[i], (uint16_t)w);
			got += n;
			total += n;
			if (n < ARRAY_LEN(m))
				break;
		}
		/* A fatal status comes before its event (RX-ERR-04). */
		total += events_drain(&c->diagnose, (uint16_t)w);
	}
	events_check_lost(&c->diagnose);
	return total;
}

/* Nothing that is queued names the object any more. */
static void
gone(void *ctx, enum object_kind kind, uint32_t number)
{
	struct control *c = ctx;

	events_forget(&c->diagnose, kind, number);
	apps_event_forget(&c->apps, kind, number);
}

/* The QP's failure is over: keep what is needed later, forget the rest. */
static void
left(void *ctx, struct admin_qp *rec, enum admin_end how)
{
	struct control *c = ctx;

	post_mortem_end(&c->diagnose, rec, how);
	explain_forget(&c->diagnose, rec);
}

/* Tell the connections that follow events, and the application that owns the object. */
static uint32_t
event(void *ctx, const struct event *e)
{
	struct control *c = ctx;
	uint32_t told = 0;

	if (e->event == EVENT_COMM_EST && e->of == OBJECT_QP)
		connect_data(&c->connect, e->number);
	if (c->server.followers != 0)
		told = rpc_notify(&c->server, RPC_ASYNC_EVENTS, events_json(&c->diagnose, e));
	apps_event(&c->apps, e);
	return told;
}

/* Somebody follows, or it waits for who asks. */
static uint32_t
cm_event(void *ctx, const struct connect_event *e)
{
	struct control *c = ctx;

	if (c->server.followers == 0)
		return 0;
	return rpc_notify(&c->server, RPC_CM_EVENTS, connect_event_json(&c->connect, e));
}

static void
datagram(void *ctx, uint16_t port, const uint8_t *frame, uint32_t len)
{
	struct control *c = ctx;

	connect_frame(&c->connect, port, frame, len);
}

/* Tell the connections that follow events. */
static void
fired(void *ctx, const struct object_cq *cq)
{
	struct control *c = ctx;
	json_t *params = json_pack("{s:s}", "cq", cq->n.name);

	rpc_notify(&c->server, RPC_CQ_EVENTS, params);
}

/* The connection of an application ends, and all that is the application's. */
static void
closed(void *ctx, struct rpc_client *cl)
{
	struct control *c = ctx;

	connect_client_gone(&c->connect, &cl->app->o);
	app_close(&c->apps, cl->app);
}

/* What it was told of is mapped, since it asks for more. */
static int
ready(void *ctx, struct rpc_client *cl, struct refusal *r)
{
	struct control *c = ctx;

	return app_ready(&c->apps, cl->app, r);
}

static json_t *
first(void *ctx UNUSED, struct rpc_client *cl)
{
	return method_client_map_first(cl);
}

/* A path's worker is told of its next hop's MAC. */
static int
new_mac(void *ctx, struct neigh_link *link)
{
	struct control *c = ctx;

	return admin_new_mac(&c->admin, link);
}

static void
device_lost(void *ctx, uint32_t port)
{
	struct control *c = ctx;

	events_device(&c->diagnose, port);
}

static void
link_changed(void *ctx, uint32_t port, bool up)
{
	struct control *c = ctx;

	events_port(&c->diagnose, port, up);
}

uint32_t
control_poll(struct control *c, ns_t now)
{
	struct turns *t = &c->env.turns;
	uint32_t work;

	c->env.now = now;
	env_turn_begin(t, c->env.w.clock, now);
	work = ask_drain(&c->env);
	work += drain(c);
	env_turn_piece(t, "workers' messages");
	work += object_notify_poll(&c->objects);
	env_turn_piece(t, "completion events");
	work += rpc_server_poll(&c->server);
	work += apps_poll(&c->apps);
	env_turn_piece(t, "applications");
	work += net_poll(&c->net);
	env_turn_piece(t, "network");
	work += connect_poll(&c->connect);
	env_turn_piece(t, "connections");
	work += admin_stock_poll(&c->admin);
	work += admin_owed_poll(&c->admin);
	work += admin_end_poll(&c->admin);
	work += object_late_poll(&c->objects);
	admin_mcast_poll(&c->admin);
	work += errlog_poll(&c->diagnose);
	post_mortem_poll(&c->diagnose);
	admin_fold_poll(&c->admin);
	env_turn_piece(t, "records");
	env_turn_end(t);
	return work;
}

uint32_t
control_wait_us(const struct control *c)
{
	return c->apps.waiting != 0 || connect_is_talking(&c->connect) ? WAIT_SHORT_US : WAIT_US;
}

int
control_wait_fd(const struct control *c)
{
	return c->server.epoll_fd;
}

char *
control_rpc(struct control *c, const char *line, size_t len)
{
	return rpc_line(&c->server, NULL, line, len);
}

struct objects *
control_objects(struct control *c)
{
	return &c->objects;
}

void
control_print_counters(const struct control *c, void (*out)(void *ctx, const char *line), void *ctx)
{
	struct stats_block sum;
	char line[128];

	diagnose_sum(&c->diagnose, &sum);
	for (unsigned int i = 0; i < STAT_MAX; i++) {
		if (sum.c[i] == 0)
			continue;
		snprintf(line, sizeof(line), "%-32s %" PRIu64, stats_info[i].name, sum.c[i]);
		out(ctx, line);
	}
}

/*
 * Report a fault that shows only when the object is made, in the same way as faults of the file.
 * @return rc; -ECANCELED: the dataplane is to stop, which is no fault.
 */
static int
made(const struct control *c, const char *list, uint32_t index, int rc, const struct refusal *r)
{
	const _Atomic bool *stop = c->env.w.stop;

	if (stop != NULL && atomic_load_explicit(stop, memory_order_relaxed))
		return -ECANCELED;
	if (rc != 0)
		log_error("configuration: /%s/%u: %s%s", list, index, r->text,
			rc == -ENOMEM || rc == -EMFILE
				? " (fewer or smaller ones; or more memory, or hugepages, "
				  "or a higher limit: ulimit -n, -v, -l)"
				: "");
	return rc;
}

static int
window(struct control *c, const struct conf_mw *mw, struct refusal *r)
{
	struct object_pd *pd = object_pd_find(&c->objects, mw->pd, r);
	struct object_mw *made_mw;

	return pd == NULL ? -ENOENT
			  : object_mw_alloc(&c->objects, pd, mw->type, mw->name, &made_mw, r);
}

static int
join(struct control *c, const struct conf_mcast *m, struct refusal *r)
{
	struct admin_qp *rec = admin_get(&c->admin, m->qp_num, r);

	return rec != NULL ? admin_mcast_attach(&c->admin, rec, &m->group, r) : -ENOENT;
}

static int
configure_objects(struct control *c, struct refusal *r)
{
	const struct conf *conf = c->env.w.conf;
	int rc = 0;

	for (uint32_t i = 0; i < conf->n_pds && rc == 0; i++)
		rc = made(c, "pds", i, object_pd_create(&c->objects, &conf->pds[i], r), r);
	for (uint32_t i = 0; i < conf->n_mrs && rc == 0; i++)
		rc = made(c, "mrs", i, object_mr_create(&c->objects, &conf->mrs[i], r), r);
	for (uint32_t i = 0; i < conf->n_cqs && rc == 0; i++)
		rc = made(c, "cqs", i, object_cq_create(&c->objects, &conf->cqs[i], r), r);
	for (uint32_t i = 0; i < conf->n_xrcds && rc == 0; i++)
		rc = made(c, "xrcds", i, object_xrcd_create(&c->objects, &conf->xrcds[i], r), r);
	/* As with QPs: numbers that are asked for come first. */
	for (uint32_t i = 0; i < conf->n_srqs && rc == 0; i++)
		if ((conf->srqs[i].given & CONF_SRQ_NUM) != 0)
			rc = made(
				c, "srqs", i, object_srq_create(&c->objects, &conf->srqs[i], r), r);
	for (uint32_t i = 0; i < conf->n_srqs && rc == 0; i++)
		if ((conf->srqs[i].given & CONF_SRQ_NUM) == 0)
			rc = made(
				c, "srqs", i, object_srq_create(&c->objects, &conf->srqs[i], r), r);
	/* Numbers that are asked for come first, so that none is picked away. */
	for (uint32_t i = 0; i < conf->n_qps && rc == 0; i++) {
		if (conf->qps[i].qp_num != 0)
			rc = made(c, "qps", i, admin_create(&c->admin, &conf->qps[i], NULL, r), r);
	}
	for (uint32_t i = 0; i < conf->n_qps && rc == 0; i++) {
		if (conf->qps[i].qp_num == 0)
			rc = made(c, "qps", i, admin_create(&c->admin, &conf->qps[i], NULL, r), r);
	}
	for (uint32_t i = 0; i < conf->n_mcasts && rc == 0; i++)
		rc = made(c, "mcasts", i, join(c, &conf->mcasts[i], r), r);
	for (uint32_t i = 0; i < conf->n_mws && rc == 0; i++)
		rc = made(c, "mws", i, window(c, &conf->mws[i], r), r);
	if (rc == 0)
		log_info("%u PDs, %u MRs, %u CQs, %u SRQs, %u QPs", c->objects.pds.n,
			c->objects.mrs.n, c->objects.cqs.n, c->objects.srqs.n, c->admin.qps_n);
	return rc;
}

static void
release(struct control *c)
{
	connect_client_all_gone(&c->connect);
	apps_fini(&c->apps);
	connect_fini(&c->connect);
	admin_fini(&c->admin);
	objects_fini(&c->objects);
	net_fini(&c->net);
	post_mortem_fini(&c->diagnose);
	errlog_close(&c->diagnose);
	rpc_server_close(&c->server);
	free(c);
}

static int
init_tables(struct control *c)
{
	const struct net_up net_up = { .new_mac = new_mac,
		.device = device_lost,
		.datagram = datagram,
		.link = link_changed,
		.ctx = c };
	const struct objects_up up = { .gone = gone, .fired = fired, .ctx = c };

	if (objects_init(&c->objects, &c->env, &up) != 0 || admin_init(&c->admin) != 0)
		return -ENOMEM;
	return net_init(&c->net, &c->env, &net_up);
}

/* Each module has those below it, and the callbacks by which it is heard above. */
static void
connect_modules(struct control *c)
{
	const struct rpc_up rpc_up = { .closed = closed, .ready = ready, .first = first, .ctx = c };

	c->env.drain = drain;
	c->env.drain_ctx = c;
	c->admin.env = &c->env;
	c->admin.objects = &c->objects;
	c->admin.net = &c->net;
	c->admin.up = (struct admin_up){ .left = left, .ctx = c };
	c->connect.env = &c->env;
	c->connect.net = &c->net;
	c->connect.admin = &c->admin;
	c->connect.up = (struct connect_up){ .event = cm_event, .ctx = c };
	c->diagnose.env = &c->env;
	c->diagnose.objects = &c->objects;
	c->diagnose.net = &c->net;
	c->diagnose.admin = &c->admin;
	c->diagnose.up = (struct diagnose_up){ .event = event, .ctx = c };
	c->apps.env = &c->env;
	c->apps.objects = &c->objects;
	c->apps.admin = &c->admin;
	c->apps.diagnose = &c->diagnose;
	apps_init(&c->apps);
	c->methods = (struct methods){ .env = &c->env,
		.objects = &c->objects,
		.net = &c->net,
		.admin = &c->admin,
		.connect = &c->connect,
		.diagnose = &c->diagnose,
		.apps = &c->apps,
		.rpc = &c->server };
	rpc_server_init(&c->server, &c->env, &rpc_up);
	c->server.tables = methods_all;
	c->server.slow = methods_slow;
	c->server.m = &c->methods;
}

int
control_create(const struct env_wiring *env, struct control **out)
{
	struct control *c = calloc(1, sizeof(*c));
	struct refusal r = { 0 };
	int rc;

	*out = NULL;
	if (c == NULL)
		return -ENOMEM;
	c->env.w = *env;
	c->env.now = env->clock();
	connect_modules(c);
	/* The socket first: a second instance is turned away before it makes anything. */
	rc = rpc_server_open(&c->server);
	if (rc == 0)
		rc = init_tables(c);
	if (rc == 0)
		rc = errlog_open(&c->diagnose);
	if (rc == 0) {
		rc = configure_objects(c, &r);
	}
	if (rc == 0)
		rc = connect_init(&c->connect, &r);
	if (rc != 0) {
		release(c);
		return rc;
	}
	c->admin.running = true;
	*out = c;
	return 0;
}

void
control_destroy(struct control *c)
{
	if (c == NULL)
		return;
	c->env.now = c->env.w.clock();
	release(c);
}
