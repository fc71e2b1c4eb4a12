/* SPDX-License-Identifier: BSD-3-Clause */
/* Methods of applications (librocelane): channels of connections' events. */
#include <errno.h>

#include "conf_json_value.h"
#include "connect_client.h"
#include "method_client.h"
#include "method_client_cm.h"

#define EVENTS_ONCE 64

struct p_cm_events {
	uint32_t channel;
	uint32_t max;
};

static const struct conf_field events_rows[] = {
	P_U32(p_cm_events, channel, 1, UINT32_MAX, P_REQUIRED),
	P_U32(p_cm_events, max, 1, EVENTS_ONCE, P_DEFAULT(1)),
};
static const struct conf_table events_table = P_TABLE(p_cm_events, events_rows, "params");

struct connect_client *
method_cm_client(struct rpc_call *call)
{
	struct connect_client *cl = connect_client_of(call->m->connect, &call->client->app->o);

	if (cl == NULL)
		rpc_result(call, NULL);
	return cl;
}

struct connect_id *
method_cm_id(struct rpc_call *call, uint32_t handle, struct refusal *r)
{
	struct connect_client *cl = connect_client_of(call->m->connect, &call->client->app->o);

	if (cl != NULL)
		return connect_id_find(cl, handle, r);
	refuse(r, ENOMEM, "out of memory");
	return NULL;
}

static int
id_channel_create(struct rpc_call *call)
{
	struct connect_client *cl = method_cm_client(call);
	struct connect_channel *ch;
	struct refusal r;

	if (cl == NULL)
		return -1;
	if (connect_channel_create(cl, &ch, &r) != 0)
		return rpc_refused(call, &r);
	if (method_client_give_fd(call, broker_signal_fd(ch->signal)) != 0) {
		connect_channel_destroy(cl, ch->handle, &r);
		return rpc_result(call, NULL);
	}
	return rpc_result(call, json_pack("{s:I}", "handle", (json_int_t)ch->handle));
}

static int
id_channel_destroy(struct rpc_call *call)
{
	const struct p_handle *p = call->params;
	struct connect_client *cl = method_cm_client(call);
	struct refusal r;

	if (cl == NULL)
		return -1;
	if (connect_channel_destroy(cl, p->handle, &r) != 0)
		return rpc_refused(call, &r);
	return rpc_result(call, json_object());
}

static int
id_accepted_only(struct rpc_call *call)
{
	const struct p_handle *p = call->params;
	struct connect_client *cl = method_cm_client(call);
	struct connect_channel *ch;
	struct refusal r;

	if (cl == NULL)
		return -1;
	ch = connect_channel_find(cl, p->handle, &r);
	if (ch == NULL)
		return rpc_refused(call, &r);
	ch->accepted_only = true;
	return rpc_result(call, json_object());
}

static int
id_events(struct rpc_call *call)
{
	const struct p_cm_events *p = call->params;
	struct connect_client *cl = method_cm_client(call);
	struct connect_channel *ch;
	json_t *list, *e;
	struct refusal r;

	if (cl == NULL)
		return -1;
	ch = connect_channel_find(cl, p->channel, &r);
	if (ch == NULL)
		return rpc_refused(call, &r);
	list = json_array();
	for (uint32_t i = 0; i < p->max && (e = connect_notice_take(ch)) != NULL; i++)
		list = conf_json_append(list, e);
	return rpc_result(call, list);
}

const struct rpc_method methods_client_cm_channel[] = {
	{ "client_cm_channel_create", id_channel_create, &method_no_params },
	{ "client_cm_channel_destroy", id_channel_destroy, &method_handle_table },
	{ "client_cm_accepted_only", id_accepted_only, &method_handle_table },
	{ "client_cm_events", id_events, &events_table },
	{ NULL, NULL, NULL },
};
