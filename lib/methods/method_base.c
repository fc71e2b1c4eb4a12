/* SPDX-License-Identifier: BSD-3-Clause */
/* Methods about the program itself, its ports, workers and neighbours. */
#include <rte_ethdev.h>
#include <rte_version.h>

#include "methods.h"

/* A table without rows still is a struct of at least one byte. */
struct p_none {
	uint8_t nothing;
};
const struct conf_table method_no_params = {
	.name = "params", .size = sizeof(struct p_none), .given_offset = CONF_NO_GIVEN
};

static const struct conf_field name_rows[] = { P_NAME(p_name, name, P_REQUIRED) };
const struct conf_table method_name_table = P_TABLE(p_name, name_rows, "params");

static const struct conf_field qp_rows[] = { P_QPN(p_qp, qp_num, P_REQUIRED) };
const struct conf_table method_qp_table = P_TABLE(p_qp, qp_rows, "params");

static int
get_methods(struct rpc_call *call)
{
	json_t *list = json_array();

	for (const struct rpc_table *t = call->server->tables; t->methods != NULL; t++) {
		for (const struct rpc_method *m = t->methods; m->name != NULL; m++)
			list = conf_json_append(list, json_string(m->name));
	}
	return rpc_result(call, list);
}

/* What every build has. */
static json_t *
features(void)
{
	static const char *const names[] = { "RC", "responder", "requester", "SRQ", "APM",
		"async_events", "clients", "UC", "UD", "XRC", "MW", "multicast", "CM" };
	json_t *list = json_array();

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		list = conf_json_append(list, json_string(names[i]));
	return list;
}

static int
version(struct rpc_call *call)
{
	return rpc_result(call,
		json_pack("{s:s, s:s, s:s, s:o, s:s}", "name", "rocelane", "version",
			ROCELANE_VERSION, "dpdk_version", rte_version(), "features", features(),
			"crc", call->m->env->w.crc != NULL ? call->m->env->w.crc->name : ""));
}

static int
shut_down(struct rpc_call *call)
{
	if (call->m->env->w.stop != NULL)
		atomic_store(call->m->env->w.stop, true);
	return rpc_result(call, json_object());
}

static json_t *
port_counters(const struct methods *ctx, uint32_t port)
{
	struct stats_block sum = { 0 };
	json_t *o = json_object();

	for (uint32_t w = 0; w < ctx->env->w.workers_n; w++) {
		if (ctx->env->w.workers[w].port_stats[port] != NULL)
			stats_sum(&sum, ctx->env->w.workers[w].port_stats[port]);
	}
	for (unsigned int i = 0; i < STAT_MAX; i++) {
		if (sum.c[i] != 0)
			json_object_set_new(o, stats_info[i].name, conf_json_u64(sum.c[i]));
	}
	return o;
}

static int
port_list(struct rpc_call *call)
{
	struct methods *ctx = call->m;
	json_t *list = json_array();

	link_look_at_all(ctx->net);
	for (uint32_t p = 0; p < ctx->env->w.ports_n; p++) {
		const uint8_t *m = ctx->env->w.ports[p].addr->mac;
		json_t *o = conf_encode_port(&ctx->env->w.conf->ports[p]);

		json_object_del(o, "neighbors"); /* neighbor_list, route_list */
		json_object_del(o, "routes");
		json_object_del(o, "impair"); /* impair_get tells what it is now */
		json_object_del(o, "bottleneck");
		json_object_set_new(o, "mac", conf_json_mac(m));
		json_object_set_new(o, "port_id", json_integer(ctx->env->w.ports[p].id));
		json_object_set_new(o, "max_frame", json_integer(ctx->env->w.ports[p].max_frame));
		link_set_json(ctx->net, (uint16_t)p, o);
		json_object_set_new(o, "counters", port_counters(ctx, p));
		list = conf_json_append(list, o);
	}
	return rpc_result(call, list);
}

static int
worker_list(struct rpc_call *call)
{
	const struct methods *ctx = call->m;
	json_t *list = json_array();

	for (uint32_t w = 0; w < ctx->env->w.workers_n; w++) {
		const struct env_worker *worker = &ctx->env->w.workers[w];
		const uint64_t lost =
			atomic_load_explicit(&worker->mbox->up_lost, memory_order_relaxed);

		list = conf_json_append(list,
			json_pack("{s:I, s:I, s:I, s:o, s:o, s:b}", "worker", (json_int_t)w,
				"lcore", (json_int_t)worker->lcore, "qps",
				(json_int_t)ctx->admin->worker_qps[w], "rx_packets",
				conf_json_u64(worker->stats->c[STAT_rx_packets]), "messages_lost",
				conf_json_u64(lost), "answers", !ctx->env->asks.silent[w]));
	}
	return rpc_result(call, list);
}

const struct rpc_method methods_base[] = {
	{ "rpc_get_methods", get_methods, &method_no_params },
	{ "version", version, &method_no_params },
	{ "port_list", port_list, &method_no_params },
	{ "worker_list", worker_list, &method_no_params },
	{ "shutdown", shut_down, &method_no_params },
	{ NULL, NULL, NULL },
};
