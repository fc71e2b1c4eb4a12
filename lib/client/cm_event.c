/* SPDX-License-Identifier: BSD-3-Clause */
/* Events of connections: the dataplane's, and some of the library's own. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cm.h"

enum { NOTHING = 1 };

enum { SERVICE_RC = 0, SERVICE_UC = 1, SERVICE_XRC = 3, SERVICE_UD = 8 };

static const char *const names[] = { "ADDR_RESOLVED", "ADDR_ERROR", "ROUTE_RESOLVED", "ROUTE_ERROR",
	"CONNECT_REQUEST", "CONNECT_RESPONSE", "CONNECT_ERROR", "UNREACHABLE", "REJECTED",
	"ESTABLISHED", "DISCONNECTED", "DEVICE_REMOVAL", "MULTICAST_JOIN", "MULTICAST_ERROR",
	"ADDR_CHANGE", "TIMEWAIT_EXIT" };

const char *
rl_cm_event_str(enum rl_cm_event_type event)
{
	return (unsigned int)event < ARRAY_LEN(names) ? names[event] : "unknown";
}

/* ---- what the dataplane tells ---------------------------------------------------------------- */

static uint32_t
number(const json_t *o, const char *key)
{
	return (uint32_t)json_integer_value(json_object_get(o, key));
}

static uint8_t
nibble(char c)
{
	return (uint8_t)(c <= '9' ? c - '0' : c - 'a' + 10);
}

static void
take_param(struct cm_event *e, const json_t *o)
{
	const char *hex = json_string_value(json_object_get(o, "private_data"));
	const size_t n = hex != NULL ? strlen(hex) / 2 : 0;

	for (size_t i = 0; i < n && i < CM_PRIVATE_DATA; i++)
		e->private_data[i] = (uint8_t)(nibble(hex[2 * i]) << 4 | nibble(hex[2 * i + 1]));
	e->pub.conn = (struct rl_cm_conn_param){ .private_data = n != 0 ? e->private_data : NULL,
		.private_data_len = (uint8_t)(n < CM_PRIVATE_DATA ? n : CM_PRIVATE_DATA),
		.responder_resources = (uint8_t)number(o, "responder_resources"),
		.initiator_depth = (uint8_t)number(o, "initiator_depth"),
		.flow_control = number(o, "flow_control") != 0,
		.retry_count = (uint8_t)number(o, "retry_count"),
		.rnr_retry_count = (uint8_t)number(o, "rnr_retry_count"),
		.srq = number(o, "srq") != 0,
		.qp_num = number(o, "qp_num") };
}

static void
take_addresses(struct cm_id *id, const json_t *o)
{
	const char *peer = json_string_value(json_object_get(o, "peer_ip"));

	if (peer == NULL)
		return;
	client_cm_address(&id->peer, peer, (uint16_t)number(o, "peer_port"));
	client_cm_address(&id->local, json_string_value(json_object_get(o, "own_ip")),
		(uint16_t)number(o, "own_port"));
	id->pub.port_num = (uint8_t)number(o, "port_num");
}

/* A peer has asked: a new id, as the listener is. @return NULL: no memory. */
static struct cm_id *
new_id(struct context *ctx, const json_t *o, struct cm_id *listener)
{
	static const enum rl_qp_type types[] = { [SERVICE_RC] = RL_QPT_RC,
		[SERVICE_UC] = RL_QPT_UC,
		[SERVICE_XRC] = RL_QPT_XRC_RECV,
		[SERVICE_UD] = RL_QPT_UD };
	struct cm_id *id = client_cm_id_new((struct cm_channel *)listener->pub.channel,
		listener->pub.id_context, listener->pub.ps);
	const uint32_t service = number(o, "service");

	if (id == NULL)
		return NULL;
	id->handle = number(o, "handle");
	id->peers = true;
	if (service < ARRAY_LEN(types) && types[service] != 0)
		id->pub.qp_type = types[service];
	(void)ctx;
	return id;
}

/* Lock held. @return 0; NOTHING: of an id that is gone; -ENOMEM. */
static int
take_event(struct context *ctx, const json_t *o, struct cm_event *e)
{
	struct cm_id *listener = client_cm_id(ctx, number(o, "listener"));
	struct cm_id *id = client_cm_id(ctx, number(o, "handle"));
	const json_t *qp = json_object_get(o, "qp");

	if (id == NULL && listener == NULL)
		return NOTHING;
	if (id == NULL)
		id = new_id(ctx, o, listener);
	if (id == NULL)
		return -ENOMEM;
	e->pub.event = (enum rl_cm_event_type)number(o, "event");
	e->pub.status = (int)json_integer_value(json_object_get(o, "status"));
	e->pub.id = &id->pub;
	e->counted = id;
	if (e->pub.event == RL_CM_EVENT_CONNECT_REQUEST && listener != NULL) {
		e->pub.listen_id = &listener->pub;
		e->counted = listener;
	}
	/* As before rl_cm_resolve_addr(), which may be tried again, and find another port. */
	if (e->pub.event == RL_CM_EVENT_ADDR_ERROR &&
		client_cm_call(ctx, id, "client_cm_destroy") == 0) {
		id->handle = 0;
		id->local = id->asked;
		id->pub.port_num = id->asked_port;
	}
	take_addresses(id, o);
	take_param(e, o);
	if (json_is_object(qp)) {
		client_attr_decode(ctx, qp, &id->attr);
		id->has_attr = true;
	}
	if (e->pub.event == RL_CM_EVENT_ESTABLISHED && !id->peers && client_cm_walks(id))
		client_qp_is(qp_of(id->pub.qp), RL_QPS_RTS);
	if (number(o, "service") == SERVICE_UD)
		e->pub.ud = (struct rl_cm_ud_param){ .private_data = e->pub.conn.private_data,
			.private_data_len = e->pub.conn.private_data_len,
			.ah_attr = id->attr.ah_attr,
			.qp_num = number(o, "qp_num"),
			.qkey = number(o, "qkey") };
	e->counted->events.given++;
	return 0;
}

static int
own_event(const struct cm_waiting *from, struct cm_event *e)
{
	e->pub.event = from->event;
	e->pub.id = &from->id->pub;
	e->counted = from->id;
	from->id->events.given++;
	return 0;
}

/* Lock held. @return 0; NOTHING: none, or of an id that is gone; -ENOMEM: it waits. */
static int
take(struct context *ctx, struct cm_channel *ch, struct cm_event *e)
{
	const struct cm_waiting *next = STAILQ_FIRST(&ch->waiting);
	int rc;

	if (next == NULL)
		return NOTHING;
	rc = next->told != NULL ? take_event(ctx, next->told, e) : own_event(next, e);
	if (rc != -ENOMEM)
		client_cm_drop(ch);
	return rc;
}

/* The same, and what the dataplane tells is fetched. */
static int
fetch_and_take(struct context *ctx, struct cm_channel *ch, struct cm_event **out)
{
	struct cm_event *e = calloc(1, sizeof(*e));
	int rc = e != NULL ? client_cm_fetch(ctx, ch) : -ENOMEM;

	if (rc == 0)
		rc = take(ctx, ch, e);
	if (rc == 0) {
		*out = e;
		return 0;
	}
	free(e);
	if (rc == -ENOMEM) {
		client_cm_count(ch);
		client_fail(ENOMEM, "out of memory");
	}
	return rc;
}

int
rl_cm_get_event(struct rl_cm_event_channel *pub, struct rl_cm_event **out)
{
	struct context *ctx = context_of(pub->context);
	struct cm_channel *ch = (struct cm_channel *)pub;
	struct cm_event *e;
	int rc;

	*out = NULL;
	do {
		rc = client_fd_wait(ctx, ch->event_fd, pub->fd);
		if (rc != 0)
			return rc;
		client_lock(ctx);
		rc = fetch_and_take(ctx, ch, &e);
		client_unlock(ctx);
	} while (rc == NOTHING);
	if (rc == 0)
		*out = &e->pub;
	return rc;
}

int
rl_cm_ack_event(struct rl_cm_event *pub)
{
	struct cm_event *e = (struct cm_event *)pub;
	struct context *ctx = context_of(e->counted->pub.context);

	client_lock(ctx);
	e->counted->events.acked++;
	pthread_cond_broadcast(&ctx->acked);
	client_unlock(ctx);
	free(e);
	return 0;
}
