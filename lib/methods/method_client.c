/* SPDX-License-Identifier: BSD-3-Clause */
/* Methods of applications (librocelane): the connection itself, regions, channels, events. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "methods.h"
#include "method_client.h"
#include "wall.h"

static const struct conf_field handle_rows[] = {
	P_U32(p_handle, handle, 1, UINT32_MAX, P_REQUIRED),
};
const struct conf_table method_handle_table = P_TABLE(p_handle, handle_rows, "params");

int
method_client_refuse(struct rpc_call *call, int err, const char *what, uint32_t handle)
{
	struct refusal r;

	refuse(&r, err, "%s %u does not exist", what, handle);
	return rpc_refused(call, &r);
}

/* Areas that the client does not know yet; NULL: none. It gets a copy of each descriptor. */
static json_t *
new_areas(struct rpc_client *cl)
{
	struct owner *o = &cl->app->o;
	json_t *list = NULL;

	for (uint32_t i = 0; i < o->areas_n; i++) {
		struct owner_area *a = &o->areas[i];
		int copy;

		if (a->told)
			continue;
		copy = fcntl(a->mem.fd, F_DUPFD_CLOEXEC, 0);
		if (copy < 0)
			break;
		if (list == NULL)
			list = json_array();
		list = conf_json_append(list,
			json_pack("{s:i, s:I}", "area", (int)i, "bytes", (json_int_t)a->mem.len));
		rpc_server_attach_fd(cl, copy);
		a->told = true;
	}
	return list;
}

json_t *
method_client_map_first(struct rpc_client *cl)
{
	json_t *areas = cl->app->o.map_first ? new_areas(cl) : NULL;

	return areas != NULL ? json_pack("{s:b, s:o}", "again", true, "areas", areas) : NULL;
}

int
method_client_give_fd(struct rpc_call *call, int fd)
{
	const int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);

	return copy >= 0 ? rpc_server_attach_fd(call->client, copy) : -errno;
}

/* ---- open ------------------------------------------------------------------------------------ */

struct p_open {
	uint32_t abi;
	char name[CONF_NAME_MAX];
};

static const struct conf_field open_rows[] = {
	P_U32(p_open, abi, 1, UINT32_MAX, P_REQUIRED),
	P_NAME(p_open, name, P_OPTIONAL),
};
static const struct conf_table open_table = P_TABLE(p_open, open_rows, "params");

static json_t *
gids_json(const struct conf_port *p)
{
	static const uint8_t mapped[12] = { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff };
	json_t *list = json_array();
	char text[33];

	if ((p->given & CONF_PORT_IPV4) != 0) {
		for (unsigned int i = 0; i < 12; i++)
			snprintf(text + 2 * i, 3, "%02x", mapped[i]);
		for (unsigned int i = 0; i < 4; i++)
			snprintf(text + 24 + 2 * i, 3, "%02x", p->ipv4[i]);
		list = conf_json_append(list, json_string(text));
	}
	if ((p->given & CONF_PORT_IPV6) != 0) {
		for (unsigned int i = 0; i < 16; i++)
			snprintf(text + 2 * i, 3, "%02x", p->ipv6[i]);
		list = conf_json_append(list, json_string(text));
	}
	return list;
}

/* The longest packets that a QP may use there. */
static uint32_t
path_mtu_of(const struct methods *ctx, uint32_t port)
{
	const bool ipv6 = (ctx->env->w.conf->ports[port].given & CONF_PORT_IPV4) == 0;
	uint32_t mtu = 4096;

	while (mtu > 256 &&
		(conf_datagram_len(mtu, ipv6) > ctx->env->w.conf->ports[port].mtu ||
			conf_frame_len(mtu, ipv6, false) > ctx->env->w.ports[port].max_frame))
		mtu /= 2;
	return mtu;
}

/* As the client needs it: in the order of port_num, state by the last look at the link. */
static json_t *
ports_json(struct methods *ctx)
{
	json_t *list = json_array();

	for (uint32_t i = 0; i < ctx->env->w.ports_n; i++) {
		const struct conf_port *p = &ctx->env->w.conf->ports[i];
		const uint8_t *mac = ctx->env->w.ports[i].addr->mac;
		char text[18];

		snprintf(text, sizeof(text), "%02x:%02x:%02x:%02x:%02x:%02x", mac[0], mac[1],
			mac[2], mac[3], mac[4], mac[5]);
		list = conf_json_append(
			list, json_pack("{s:s, s:s, s:I, s:b, s:o}", "name", p->name, "mac", text,
				      "path_mtu", (json_int_t)path_mtu_of(ctx, i), "up",
				      !link_is_down(ctx->net, (uint16_t)i), "gids", gids_json(p)));
	}
	return list;
}

static json_t *
limits_json(const struct methods *ctx)
{
	const struct conf_client_limits *l = &ctx->env->w.conf->control.client_limits;

	return json_pack(
		"{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:i, s:i, s:i, s:i, s:i, s:b}",
		"pds", (json_int_t)l->pds, "mrs", (json_int_t)l->mrs, "cqs", (json_int_t)l->cqs,
		"srqs", (json_int_t)l->srqs, "ahs", (json_int_t)l->ahs, "qps", (json_int_t)l->qps,
		"mcasts", (json_int_t)l->mcasts, "outstanding", (json_int_t)l->outstanding,
		"memory", (json_int_t)l->memory, "wr", CONF_MAX_WR, "sge", CONF_MAX_SGE, "cqe",
		CONF_MAX_CQE, "inline", CONF_MAX_INLINE, "rd_atomic", CONF_MAX_RD_ATOMIC,
		"placement", ctx->env->w.conf->knobs.ops_placement != 0);
}

static json_t *
bells_json(const struct methods *ctx, const struct app *app)
{
	json_t *list = json_array();

	for (uint32_t w = 0; w < ctx->env->w.workers_n; w++) {
		const struct app_bells *b = &app->bells[w];

		list = conf_json_append(
			list, json_pack("{s:i, s:I, s:I}", "area", (int)b->place.area, "offset",
				      (json_int_t)owner_place_offset(&b->place), "entries",
				      (json_int_t)b->entries));
	}
	return list;
}

/* The connection's thread: its first area. */
void
method_client_open_prepare(const void *ctx, struct broker_conn *c UNUSED, struct broker_gift *gift,
	const json_t *params UNUSED)
{
	const struct env_wiring *w = &((const struct rpc_server *)ctx)->env->w;

	gift->rc =
		mem_area_create(&gift->area, app_first_area(w->conf), w->numa_node, MEM_AREA_OPEN);
}

static int
open_client(struct rpc_call *call)
{
	const struct p_open *p = call->params;
	struct broker_gift *gift = rpc_gift(call);
	struct mem_area none = { .fd = -1, .node = -1 };
	struct methods *ctx = call->m;
	struct app *app;
	struct refusal r;

	if (call->client == NULL)
		return rpc_invalid(call, "client_open: there is no connection to be a client");
	if (p->abi != APP_ABI) {
		refuse(&r, EPROTO, "abi %u: this dataplane's rings are of abi %u", p->abi, APP_ABI);
		return rpc_refused(call, &r);
	}
	ctx->env->may_put_off = false; /* a client is made whole, or not at all */
	if (app_open(ctx->apps, call->client, p->name, gift != NULL ? &gift->area : &none, &r) != 0)
		return rpc_refused(call, &r);
	app = call->client->app;
	method_client_give_fd(call, broker_signal_fd(app->async));
	return rpc_result(
		call, json_pack("{s:I, s:s, s:o, s:o, s:o, s:o}", "client", (json_int_t)app->o.id,
			      "version", ROCELANE_VERSION, "limits", limits_json(ctx), "ports",
			      ports_json(ctx), "bells", bells_json(ctx, app), "areas",
			      new_areas(call->client)));
}

/* The connection's thread: it may wait for who else has sets of sets. */
void
method_client_presence_prepare(const void *ctx, struct broker_conn *c, struct broker_gift *gift,
	const json_t *params UNUSED)
{
	const struct env_wiring *w = &((const struct rpc_server *)ctx)->env->w;
	int sets[ENV_MAX_WORKERS];

	if (w->presence == NULL)
		return;
	for (uint32_t i = 0; i < w->workers_n; i++)
		sets[i] = w->workers[i].wake_set;
	gift->waker = broker_signal_waker(c, sets, w->workers_n);
}

/* Where the workers are, to be mapped for reading, and what wakes them. */
static int
presence(struct rpc_call *call)
{
	const struct mem_area *area = call->m->env->w.presence;
	const struct broker_gift *gift = rpc_gift(call);
	struct app *app = call->client->app;
	struct refusal r;

	if (area == NULL) {
		refuse(&r, ENOTSUP, "the workers of this dataplane are woken by nobody");
		return rpc_refused(call, &r);
	}
	if (app->wake == NULL && gift != NULL)
		app->wake = gift->waker;
	if (app->wake == NULL) {
		refuse(&r, EMFILE, "no descriptor, or no memory, to wake workers by");
		return rpc_refused(call, &r);
	}
	if (method_client_give_fd(call, area->fd) != 0 ||
		method_client_give_fd(call, broker_signal_fd(app->wake)) != 0) {
		refuse(&r, EMFILE, "too many open files");
		return rpc_refused(call, &r);
	}
	return rpc_result(call, json_pack("{s:I}", "bytes", (json_int_t)area->len));
}

struct p_area {
	uint32_t area;
};

static const struct conf_field area_rows[] = {
	P_U32(p_area, area, 0, UINT32_MAX, P_REQUIRED),
};
static const struct conf_table area_table = P_TABLE(p_area, area_rows, "params");

/* It had no descriptor left, or no memory: it could ask for nothing that lies there. */
static int
area_lost(struct rpc_call *call)
{
	const struct p_area *p = call->params;
	struct refusal r;

	if (owner_area_lost(&call->client->app->o, p->area, &r) != 0)
		return rpc_refused(call, &r);
	return rpc_result(call, json_object());
}

static int
ports(struct rpc_call *call)
{
	return rpc_result(call, ports_json(call->m));
}

/* ---- protection domains ---------------------------------------------------------------------- */

static int
pd_create(struct rpc_call *call)
{
	struct app *app = call->client->app;
	struct conf_pd conf;
	struct object_pd *pd;
	struct refusal r;
	uint32_t handle;

	if (owner_charge(&app->o, OWNER_PDS, 1, &r) != 0)
		return rpc_refused(call, &r);
	owner_name(&app->o, "pd", conf.name);
	if (object_pd_create(call->m->objects, &conf, &r) != 0) {
		owner_uncharge(&app->o, OWNER_PDS, 1);
		return rpc_refused(call, &r);
	}
	pd = object_pd_find(call->m->objects, conf.name, &r);
	handle = app_table_add(&app->pds, pd);
	if (handle == 0) {
		object_pd_destroy(call->m->objects, pd, &r);
		owner_uncharge(&app->o, OWNER_PDS, 1);
		return rpc_result(call, NULL);
	}
	return rpc_result(call, json_pack("{s:I}", "handle", (json_int_t)handle));
}

static int
pd_destroy(struct rpc_call *call)
{
	const struct p_handle *p = call->params;
	struct app *app = call->client->app;
	struct object_pd *pd = app_table_get(&app->pds, p->handle);
	struct refusal r;

	if (pd == NULL)
		return method_client_refuse(call, ENOENT, "pd", p->handle);
	if (object_pd_destroy(call->m->objects, pd, &r) != 0)
		return rpc_refused(call, &r);
	owner_uncharge(&app->o, OWNER_PDS, 1);
	app_table_remove(&app->pds, p->handle);
	return rpc_result(call, json_object());
}

/* ---- channels, events ------------------------------------------------------------------------ */

static int
channel_create(struct rpc_call *call)
{
	struct app *app = call->client->app;
	struct app_channel *ch;
	struct refusal r;
	uint32_t handle;

	if (owner_charge(&app->o, OWNER_CHANNELS, 1, &r) != 0)
		return rpc_refused(call, &r);
	ch = calloc(1, sizeof(*ch));
	if (ch == NULL) {
		owner_uncharge(&app->o, OWNER_CHANNELS, 1);
		return rpc_result(call, NULL);
	}
	ch->signal = broker_signal_new(app->o.home, EFD_SEMAPHORE);
	handle = ch->signal != NULL ? app_table_add(&app->channels, ch) : 0;
	if (handle == 0 || method_client_give_fd(call, broker_signal_fd(ch->signal)) != 0) {
		if (handle != 0)
			app_table_remove(&app->channels, handle);
		broker_signal_free(ch->signal);
		free(ch);
		owner_uncharge(&app->o, OWNER_CHANNELS, 1);
		return rpc_result(call, NULL);
	}
	return rpc_result(call, json_pack("{s:I}", "handle", (json_int_t)handle));
}

static int
channel_destroy(struct rpc_call *call)
{
	const struct p_handle *p = call->params;
	struct app *app = call->client->app;
	struct app_channel *ch = app_table_get(&app->channels, p->handle);
	struct refusal r;

	if (ch == NULL)
		return method_client_refuse(call, ENOENT, "channel", p->handle);
	if (ch->users != 0) {
		refuse(&r, EBUSY, "channel %u is in use by %u CQs", p->handle, ch->users);
		return rpc_refused(call, &r);
	}
	app_table_remove(&app->channels, p->handle);
	owner_uncharge(&app->o, OWNER_CHANNELS, 1);
	broker_signal_free(ch->signal);
	free(ch);
	return rpc_result(call, json_object());
}

struct p_max {
	uint32_t max;
};

static const struct conf_field events_rows[] = {
	P_U32(p_max, max, 1, APP_EVENTS, P_DEFAULT(1)),
};
static const struct conf_table events_table = P_TABLE(p_max, events_rows, "params");

static int
events(struct rpc_call *call)
{
	const struct p_max *p = call->params;
	struct app *app = call->client->app;
	json_t *list = json_array();

	env_drain(call->m->env);
	for (uint32_t i = 0; i < p->max && list != NULL; i++) {
		json_t *e = app_event_take(call->m->apps, app);

		if (e == NULL)
			break;
		list = conf_json_append(list, e);
	}
	return rpc_result(call, list);
}

struct p_watch {
	uint32_t port_num;
};

static const struct conf_field watch_rows[] = {
	P_U32(p_watch, port_num, 1, CONF_MAX_PORTS, P_REQUIRED),
};
static const struct conf_table watch_table = P_TABLE(p_watch, watch_rows, "params");

/* Events of other ports are not for it. */
static int
watch(struct rpc_call *call)
{
	const struct p_watch *p = call->params;
	const uint32_t ports = call->m->env->w.ports_n;

	if (p->port_num > ports)
		return rpc_invalid(call, "port_num: there are %u ports", ports);
	app_watch_port(call->client->app, p->port_num, ports);
	return rpc_result(call, json_object());
}

/* What completions' times are, as people count time. */
static int
clock_now(struct rpc_call *call)
{
	struct env *env = call->m->env;
	const ns_t now = env->w.clock();
	json_t *o = json_object();

	json_object_set_new(o, "time_ns", conf_json_u64(now));
	json_object_set_new(o, "wall_ns", conf_json_u64(wall_ns(env, now)));
	return rpc_result(call, o);
}

const struct rpc_method methods_client_open[] = {
	{ "client_open", open_client, &open_table },
	{ NULL, NULL, NULL },
};

const struct rpc_method methods_client[] = {
	{ "client_area_lost", area_lost, &area_table },
	{ "client_ports", ports, &method_no_params },
	{ "client_presence", presence, &method_no_params },
	{ "client_pd_create", pd_create, &method_no_params },
	{ "client_pd_destroy", pd_destroy, &method_handle_table },
	{ "client_channel_create", channel_create, &method_no_params },
	{ "client_channel_destroy", channel_destroy, &method_handle_table },
	{ "client_events", events, &events_table },
	{ "client_watch", watch, &watch_table },
	{ "client_clock", clock_now, &method_no_params },
	{ NULL, NULL, NULL },
};
