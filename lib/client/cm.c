/* SPDX-License-Identifier: BSD-3-Clause */
/* Connections: channels, ids, addresses. */
#include "cm.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define RESOLVE_MS_MAX 600000

/* ---- channels -------------------------------------------------------------------------------- */

int
rl_cm_create_event_channel(struct rl_context *pub, struct rl_cm_event_channel **out)
{
	struct context *ctx = context_of(pub);
	struct cm_channel *ch = calloc(1, sizeof(*ch));
	json_t *result;
	int rc;

	*out = NULL;
	if (ch == NULL)
		return client_fail(ENOMEM, "out of memory");
	ch->pub = (struct rl_cm_event_channel){ .context = pub, .fd = -1 };
	STAILQ_INIT(&ch->waiting);
	client_lock(ctx);
	rc = client_call_for_fds(ctx, "client_cm_channel_create", NULL, &result);
	if (rc == 0) {
		ch->handle = (uint32_t)json_integer_value(json_object_get(result, "handle"));
		json_decref(result);
		ch->pub.fd = client_take_channel(
			ctx, "client_cm_channel_destroy", ch->handle, &ch->event_fd);
		if (ch->pub.fd < 0)
			rc = ch->pub.fd;
	}
	if (rc == 0)
		TAILQ_INSERT_TAIL(&ctx->cm_channels, ch, all);
	client_unlock(ctx);
	if (rc != 0)
		free(ch);
	else
		*out = &ch->pub;
	return rc;
}

int
rl_cm_accepted_only(struct rl_cm_event_channel *pub)
{
	return client_call_handle(context_of(pub->context), "client_cm_accepted_only",
		((struct cm_channel *)pub)->handle);
}

static void
free_channel(struct context *ctx, struct cm_channel *ch)
{
	client_cm_free_waiting(ch);
	TAILQ_REMOVE(&ctx->cm_channels, ch, all);
	client_close_channel(ctx, ch->pub.fd, ch->event_fd);
	free(ch);
}

int
rl_cm_destroy_event_channel(struct rl_cm_event_channel *pub)
{
	struct context *ctx = context_of(pub->context);
	struct cm_channel *ch = (struct cm_channel *)pub;
	int rc = 0;

	client_lock(ctx);
	if (ch->ids != 0)
		rc = client_fail(EBUSY, "the channel is in use by %u ids", ch->ids);
	if (rc == 0)
		rc = client_call(ctx, "client_cm_channel_destroy",
			json_pack("{s:I}", "handle", (json_int_t)ch->handle), -1, NULL);
	if (rc == 0)
		free_channel(ctx, ch);
	client_unlock(ctx);
	return rc;
}

/* ---- ids ------------------------------------------------------------------------------------- */

struct cm_id *
client_cm_id(struct context *ctx, uint32_t handle)
{
	struct cm_id *id;

	TAILQ_FOREACH (id, &ctx->cm_ids, all)
		if (id->handle == handle && handle != 0)
			return id;
	return NULL;
}

struct cm_id *
client_cm_id_new(struct cm_channel *ch, void *id_context, enum rl_cm_port_space ps)
{
	struct cm_id *id = calloc(1, sizeof(*id));

	if (id == NULL)
		return NULL;
	id->pub = (struct rl_cm_id){ .context = ch->pub.context,
		.channel = &ch->pub,
		.id_context = id_context,
		.ps = ps,
		.qp_type = ps == RL_PS_UDP ? RL_QPT_UD : RL_QPT_RC };
	ch->ids++;
	TAILQ_INSERT_TAIL(&context_of(ch->pub.context)->cm_ids, id, all);
	return id;
}

int
rl_cm_create_id(struct rl_cm_event_channel *channel, struct rl_cm_id **out, void *id_context,
	enum rl_cm_port_space ps)
{
	struct context *ctx = context_of(channel->context);
	struct cm_id *id;

	client_lock(ctx);
	id = client_cm_id_new((struct cm_channel *)channel, id_context, ps);
	client_unlock(ctx);
	*out = id != NULL ? &id->pub : NULL;
	return id != NULL ? 0 : client_fail(ENOMEM, "out of memory");
}

int
client_cm_call(struct context *ctx, const struct cm_id *id, const char *method)
{
	return client_call(
		ctx, method, json_pack("{s:I}", "handle", (json_int_t)id->handle), -1, NULL);
}

int
rl_cm_destroy_id(struct rl_cm_id *pub)
{
	struct context *ctx = context_of(pub->context);
	struct cm_id *id = cm_id_of(pub);
	struct cm_channel *ch = (struct cm_channel *)pub->channel;

	if (id->bound != 0)
		client_call_handle(ctx, "client_cm_destroy", id->bound);
	client_lock(ctx);
	if (id->handle != 0)
		client_cm_call(ctx, id, "client_cm_destroy");
	client_cm_forget(ctx, ch, id);
	id->handle = 0;
	client_wait_acks(ctx, &id->events);
	ch->ids--;
	TAILQ_REMOVE(&ctx->cm_ids, id, all);
	client_unlock(ctx);
	free(id);
	return 0;
}

int
rl_cm_migrate_id(struct rl_cm_id *pub, struct rl_cm_event_channel *channel)
{
	struct context *ctx = context_of(pub->context);
	struct cm_id *id = cm_id_of(pub);
	struct cm_channel *from = (struct cm_channel *)pub->channel;
	struct cm_channel *to = (struct cm_channel *)channel;
	int rc;

	if (channel->context != pub->context)
		return client_fail(EINVAL, "the channel is of another context");
	if (from == to)
		return 0;
	client_lock(ctx);
	rc = client_cm_move(ctx, id, from, to);
	if (rc == 0) {
		from->ids--;
		to->ids++;
		pub->channel = channel;
	}
	client_unlock(ctx);
	return rc;
}

void
client_free_cm(struct context *ctx)
{
	struct cm_channel *ch;
	struct cm_id *id;

	while ((id = TAILQ_FIRST(&ctx->cm_ids)) != NULL) {
		TAILQ_REMOVE(&ctx->cm_ids, id, all);
		free(id);
	}
	while ((ch = TAILQ_FIRST(&ctx->cm_channels)) != NULL)
		free_channel(ctx, ch);
}

/* ---- addresses ------------------------------------------------------------------------------- */

void
client_cm_address(struct sockaddr_storage *out, const char *ip, uint16_t port)
{
	struct sockaddr_in *in = (struct sockaddr_in *)(void *)out;
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)(void *)out;

	memset(out, 0, sizeof(*out));
	if (ip != NULL && inet_pton(AF_INET, ip, &in->sin_addr) == 1) {
		in->sin_family = AF_INET;
		in->sin_port = htons(port);
	} else if (ip != NULL && inet_pton(AF_INET6, ip, &in6->sin6_addr) == 1) {
		in6->sin6_family = AF_INET6;
		in6->sin6_port = htons(port);
	}
}

struct sockaddr *
rl_cm_get_local_addr(struct rl_cm_id *id)
{
	return (struct sockaddr *)&cm_id_of(id)->local;
}

struct sockaddr *
rl_cm_get_peer_addr(struct rl_cm_id *id)
{
	return (struct sockaddr *)&cm_id_of(id)->peer;
}

static int
take_address(struct sockaddr_storage *out, const struct sockaddr *from)
{
	if (from->sa_family != AF_INET && from->sa_family != AF_INET6)
		return client_fail(EAFNOSUPPORT, "an address is IPv4 or IPv6");
	memset(out, 0, sizeof(*out));
	memcpy(out, from,
		from->sa_family == AF_INET ? sizeof(struct sockaddr_in)
					   : sizeof(struct sockaddr_in6));
	return 0;
}

uint16_t
client_cm_port(const struct sockaddr_storage *a)
{
	/* At the same place in both. */
	return ntohs(((const struct sockaddr_in *)(const void *)a)->sin_port);
}

static bool
is_any(const struct sockaddr_storage *a)
{
	static const struct in6_addr any;
	const struct sockaddr_in *in = (const struct sockaddr_in *)(const void *)a;
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)(const void *)a;

	if (a->ss_family == AF_INET)
		return in->sin_addr.s_addr == 0;
	return a->ss_family != AF_INET6 || memcmp(&in6->sin6_addr, &any, sizeof(any)) == 0;
}

/* As text for a call. @return NULL: any. */
static json_t *
ip_json(const struct sockaddr_storage *a)
{
	const struct sockaddr_in *in = (const struct sockaddr_in *)(const void *)a;
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)(const void *)a;
	char text[INET6_ADDRSTRLEN];

	if (is_any(a))
		return NULL;
	inet_ntop(a->ss_family,
		a->ss_family == AF_INET ? (const void *)&in->sin_addr : &in6->sin6_addr, text,
		sizeof(text));
	return json_string(text);
}

const char *
client_cm_space(enum rl_cm_port_space ps)
{
	return ps == RL_PS_TCP ? "TCP" : ps == RL_PS_UDP ? "UDP" : "IB";
}

/* @return the port with this address, or 0. */
static uint8_t
port_with(struct rl_context *ctx, const struct sockaddr_storage *a)
{
	const struct sockaddr_in *in = (const struct sockaddr_in *)(const void *)a;
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)(const void *)a;
	union rl_gid gid = { .raw = { [10] = 0xff, [11] = 0xff } }, own;

	if (a->ss_family == AF_INET6)
		memcpy(gid.raw, &in6->sin6_addr, sizeof(gid.raw));
	else
		memcpy(&gid.raw[12], &in->sin_addr, sizeof(in->sin_addr));
	for (uint8_t port = 1; port <= ctx->num_ports; port++)
		for (int i = 0; rl_query_gid(ctx, port, i, &own) == 0; i++)
			if (memcmp(own.raw, gid.raw, sizeof(own.raw)) == 0)
				return port;
	return 0;
}

/* What an id listens at, or is bound to. */
static json_t *
place_json(const struct cm_id *id, const struct sockaddr_storage *at)
{
	json_t *ip = ip_json(at);
	json_t *o = json_pack("{s:I, s:s, s:i}", "channel",
		(json_int_t)((struct cm_channel *)id->pub.channel)->handle, "ps",
		client_cm_space(id->pub.ps), "service_port", client_cm_port(at));

	if (ip != NULL)
		json_object_set_new(o, "ip", ip);
	else if (id->afonly && at->ss_family != 0)
		json_object_set_new(
			o, "ip_version", json_integer(at->ss_family == AF_INET6 ? 6 : 4));
	return o;
}

static void
take_port(struct sockaddr_storage *to, json_t *result)
{
	struct sockaddr_in *in = (struct sockaddr_in *)(void *)to; /* at the same place in both */

	in->sin_port = htons((uint16_t)json_integer_value(json_object_get(result, "service_port")));
	json_decref(result);
}

/* Programs tell their peers of it before they listen. @return 0 or -errno. */
static int
bind_port(struct context *ctx, struct cm_id *id, struct sockaddr_storage *to)
{
	json_t *result, *params = place_json(id, to);
	int rc;

	json_object_set_new(params, "reuse", json_boolean(id->reuse));
	client_lock(ctx);
	rc = client_call(ctx, "client_cm_bind", params, -1, &result);
	if (rc == 0) {
		id->bound = (uint32_t)json_integer_value(json_object_get(result, "handle"));
		take_port(to, result);
	}
	client_unlock(ctx);
	return rc;
}

int
rl_cm_bind_addr(struct rl_cm_id *pub, const struct sockaddr *addr)
{
	struct cm_id *id = cm_id_of(pub);
	struct sockaddr_storage to;
	uint8_t port = 0;
	int rc;

	if (id->handle != 0 || id->local.ss_family != 0)
		return client_fail(EINVAL, "the id is bound, listens, or has a peer");
	rc = take_address(&to, addr);
	if (rc != 0)
		return rc;
	if (!is_any(&to)) {
		port = port_with(pub->context, &to);
		if (port == 0)
			return client_fail(EADDRNOTAVAIL, "no port has the address");
	}
	rc = bind_port(context_of(pub->context), id, &to);
	if (rc != 0)
		return rc;
	id->local = to;
	pub->port_num = port;
	return 0;
}

int
rl_cm_listen(struct rl_cm_id *pub, int backlog)
{
	static const char *const types[] = { [RL_QPT_RC] = "RC",
		[RL_QPT_UC] = "UC",
		[RL_QPT_UD] = "UD",
		[RL_QPT_XRC_RECV] = "XRC_RECV" };
	struct context *ctx = context_of(pub->context);
	struct cm_id *id = cm_id_of(pub);
	json_t *params, *result;
	int rc;

	if (id->handle != 0 || pub->qp_type >= ARRAY_LEN(types) || types[pub->qp_type] == NULL)
		return client_fail(EINVAL, "the id listens, or has a peer, or is of no such type");
	params = place_json(id, &id->local);
	json_object_set_new(params, "backlog", json_integer(backlog > 0 ? backlog : 0));
	json_object_set_new(params, "qp_type", json_string(types[pub->qp_type]));
	json_object_set_new(params, "bound", json_integer(id->bound));
	client_lock(ctx);
	rc = client_call(ctx, "client_cm_listen", params, -1, &result);
	if (rc == 0) {
		id->handle = (uint32_t)json_integer_value(json_object_get(result, "handle"));
		id->bound = 0;
		if (id->local.ss_family == 0)
			id->local.ss_family = AF_INET;
		take_port(&id->local, result);
	}
	client_unlock(ctx);
	return rc;
}

/* Less than 0 is no limit to the kernel. */
static int
resolve_ms(int timeout_ms)
{
	if (timeout_ms < 0 || timeout_ms > RESOLVE_MS_MAX)
		return RESOLVE_MS_MAX;
	return timeout_ms > 0 ? timeout_ms : 1;
}

/* @param ctx its lock is held. */
static int
resolve(struct context *ctx, struct cm_id *id, int timeout_ms)
{
	json_t *result, *source = ip_json(&id->local), *dest = ip_json(&id->peer);
	json_t *params = json_pack("{s:I, s:i, s:i}", "channel",
		(json_int_t)((struct cm_channel *)id->pub.channel)->handle, "timeout_ms",
		resolve_ms(timeout_ms), "traffic_class", id->tos);
	const uint16_t port = client_cm_port(&id->local);
	bool known;
	int rc;

	if (source != NULL)
		json_object_set_new(params, "source_ip", source);
	if (dest != NULL)
		json_object_set_new(params, "dest_ip", dest);
	rc = client_call(ctx, "client_cm_resolve", params, -1, &result);
	if (rc != 0)
		return rc;
	id->handle = (uint32_t)json_integer_value(json_object_get(result, "handle"));
	id->pub.port_num = (uint8_t)json_integer_value(json_object_get(result, "port_num"));
	client_cm_address(&id->local, json_string_value(json_object_get(result, "own_ip")), port);
	known = json_is_true(json_object_get(result, "known"));
	json_decref(result);
	return known ? client_cm_tell(id, RL_CM_EVENT_ADDR_RESOLVED) : 0;
}

int
rl_cm_resolve_addr(struct rl_cm_id *pub, const struct sockaddr *src, const struct sockaddr *dst,
	int timeout_ms)
{
	struct context *ctx = context_of(pub->context);
	struct cm_id *id = cm_id_of(pub);
	const struct sockaddr_storage before = id->local;
	int rc;

	if (id->handle != 0)
		return client_fail(EINVAL, "the id listens, or has a peer");
	rc = take_address(&id->peer, dst);
	if (rc == 0 && src != NULL && id->local.ss_family == 0)
		rc = take_address(&id->local, src);
	if (rc != 0)
		return rc;
	client_lock(ctx);
	id->asked = id->local;
	id->asked_port = pub->port_num;
	rc = client_cm_is_group(&id->peer) ? client_cm_resolve_group(id)
					   : resolve(ctx, id, timeout_ms);
	if (rc != 0) {
		id->local = before;
		pub->port_num = id->asked_port;
	}
	client_unlock(ctx);
	return rc;
}

int
rl_cm_resolve_route(struct rl_cm_id *pub, int timeout_ms UNUSED)
{
	struct context *ctx = context_of(pub->context);
	struct cm_id *id = cm_id_of(pub);
	int rc;

	if (id->handle == 0 || id->peers)
		return client_fail(EINVAL, "the peer's address is not resolved");
	client_lock(ctx);
	rc = client_cm_tell(id, RL_CM_EVENT_ROUTE_RESOLVED);
	client_unlock(ctx);
	return rc;
}
