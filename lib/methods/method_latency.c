/* SPDX-License-Identifier: BSD-3-Clause */
/* How long the requests of send_feeds took. */
#include "methods.h"

struct p_latency {
	bool buckets;
};

static const struct conf_field latency_rows[] = { P_BOOL(p_latency, buckets, P_DEFAULT(0)) };
static const struct conf_table latency_table = P_TABLE(p_latency, latency_rows, "params");

/* Pairs: times up to so many ns, how many; only where there are any. */
static json_t *
buckets_json(const struct latency *l)
{
	json_t *list = json_array();

	for (uint32_t i = 0; i < LATENCY_BUCKETS; i++) {
		if (l->n[i] != 0)
			list = conf_json_append(
				list, json_pack("[o, o]", conf_json_u64(latency_upper(i)),
					      conf_json_u64(l->n[i])));
	}
	return list;
}

static int
latency(struct rpc_call *call)
{
	static const char *const names[LATENCY_KINDS] = { [LATENCY_SEND] = "SEND",
		[LATENCY_WRITE] = "RDMA_WRITE",
		[LATENCY_READ] = "RDMA_READ",
		[LATENCY_ATOMIC] = "ATOMIC" };
	static const struct {
		const char *key;
		uint32_t permille;
	} told[] = { { "p50_ns", 500 }, { "p90_ns", 900 }, { "p99_ns", 990 }, { "p999_ns", 999 },
		{ "max_ns", 1000 } };
	const struct p_latency *p = call->params;
	const struct methods *ctx = call->m;
	json_t *list = json_array();

	for (uint32_t k = 0; k < LATENCY_KINDS; k++) {
		struct latency sum = { 0 };
		json_t *o;

		for (uint32_t w = 0; w < ctx->env->w.workers_n; w++) {
			if (ctx->env->w.workers[w].latency != NULL)
				latency_sum(&sum, &ctx->env->w.workers[w].latency[k]);
		}
		o = json_pack("{s:s, s:o}", "opcode", names[k], "count",
			conf_json_u64(latency_count(&sum)));
		for (size_t i = 0; i < ARRAY_LEN(told); i++)
			json_object_set_new(o, told[i].key,
				conf_json_u64(latency_permille(&sum, told[i].permille)));
		if (p->buckets)
			json_object_set_new(o, "buckets", buckets_json(&sum));
		list = conf_json_append(list, o);
	}
	return rpc_result(call, list);
}

const struct rpc_method methods_latency[] = {
	{ "latency", latency, &latency_table },
	{ NULL, NULL, NULL },
};
