/* SPDX-License-Identifier: BSD-3-Clause */
/* Counters, with the same names at every scope. */
#include <stdio.h>
#include <string.h>

#include <rte_cycles.h>
#include <rte_ethdev.h>

#include "methods.h"

enum { SCOPE_TOTAL, SCOPE_PORT, SCOPE_WORKER, SCOPE_QP };
enum { GIVEN_SCOPE = 1, GIVEN_QP = 2, GIVEN_WORKER = 4, GIVEN_PORT = 8 };

struct p_stats {
	uint64_t given;
	uint32_t scope;
	uint32_t qp_num;
	uint32_t worker;
	char port[CONF_NAME_MAX];
};

static const struct conf_name scopes[] = { { "total", SCOPE_TOTAL }, { "port", SCOPE_PORT },
	{ "worker", SCOPE_WORKER }, { "qp", SCOPE_QP }, { NULL, 0 } };

static const struct conf_field stats_rows[] = {
	P_ENUM(p_stats, scope, scopes, P_OPTIONAL, .given = GIVEN_SCOPE),
	P_QPN(p_stats, qp_num, P_OPTIONAL, .given = GIVEN_QP),
	P_U32(p_stats, worker, 0, CONF_MAX_WORKERS - 1, P_OPTIONAL, .given = GIVEN_WORKER),
	P_NAME(p_stats, port, P_OPTIONAL, .given = GIVEN_PORT),
};
static const struct conf_table stats_table = P_TABLE_GIVEN(p_stats, stats_rows, "params");

static json_t *
counters_json(const struct stats_block *b)
{
	json_t *o = json_object();

	for (unsigned int i = 0; i < STAT_MAX && o != NULL; i++)
		json_object_set_new(o, stats_info[i].name, conf_json_u64(b->c[i]));
	return o;
}

static json_t *
total_json(struct methods *ctx)
{
	struct stats_block sum;
	json_t *o;

	diagnose_sum(ctx->diagnose, &sum);
	o = counters_json(&sum);
	json_object_set_new(o, "control_rx", conf_json_u64(ctx->net->frames.rx));
	json_object_set_new(o, "control_rx_ignored", conf_json_u64(ctx->net->frames.rx_ignored));
	json_object_set_new(o, "control_tx", conf_json_u64(ctx->net->frames.tx));
	json_object_set_new(o, "control_tx_lost", conf_json_u64(ctx->net->frames.tx_lost));
	connect_counters(ctx->connect, o);
	return o;
}

/* What the device counted by itself: frames that never reached a worker are only here. */
static void
set_device(json_t *o, uint16_t id)
{
	struct rte_eth_stats s;

	if (!rte_eth_dev_is_valid_port(id) || rte_eth_stats_get(id, &s) != 0)
		return;
	json_object_set_new(o, "dev_rx_packets", conf_json_u64(s.ipackets));
	json_object_set_new(o, "dev_tx_packets", conf_json_u64(s.opackets));
	json_object_set_new(o, "dev_rx_missed", conf_json_u64(s.imissed));
	json_object_set_new(o, "dev_rx_errors", conf_json_u64(s.ierrors));
	json_object_set_new(o, "dev_tx_errors", conf_json_u64(s.oerrors));
	json_object_set_new(o, "dev_rx_nombuf", conf_json_u64(s.rx_nombuf));
}

/* Names as ethtool has them for mlx5: "rx_prio3_pause". */
static void
set_prio(json_t *o, uint32_t prio, const char *name, uint64_t n)
{
	char key[40];

	snprintf(key, sizeof(key), name, prio);
	json_object_set_new(o, key, conf_json_u64(n));
}

static void
set_prios(json_t *o, const struct prio_stats *s)
{
	for (uint32_t i = 0; i < PRIO_STATS_N; i++) {
		set_prio(o, i, "rx_prio%u_packets", s->rx_packets[i]);
		set_prio(o, i, "rx_prio%u_bytes", s->rx_bytes[i]);
		set_prio(o, i, "tx_prio%u_packets", s->tx_packets[i]);
		set_prio(o, i, "tx_prio%u_bytes", s->tx_bytes[i]);
		set_prio(o, i, "rx_prio%u_pause", s->rx_pause[i]);
		set_prio(o, i, "rx_prio%u_pause_duration", s->rx_pause_ns[i] / TIME_NS_PER_US);
	}
	json_object_set_new(o, "rx_global_pause", conf_json_u64(s->rx_global_pause));
	json_object_set_new(o, "rx_pause_storms", conf_json_u64(s->rx_pause_storms));
}

/* Those of all workers; they are numbers all of them. */
static bool
sum_prios(const struct methods *ctx, uint32_t port, struct prio_stats *sum)
{
	uint64_t *into = (uint64_t *)sum;
	bool any = false;

	memset(sum, 0, sizeof(*sum));
	for (uint32_t w = 0; w < ctx->env->w.workers_n; w++) {
		const struct prio_stats *s = ctx->env->w.workers[w].prio_stats[port];

		for (size_t i = 0; s != NULL && i < sizeof(*s) / sizeof(into[0]); i++)
			into[i] += ((const uint64_t *)s)[i];
		any = any || s != NULL;
	}
	return any;
}

static json_t *
port_json(const struct methods *ctx, uint32_t port)
{
	struct prio_stats prios;
	struct stats_block sum = { 0 };
	json_t *o;

	for (uint32_t w = 0; w < ctx->env->w.workers_n; w++) {
		if (ctx->env->w.workers[w].port_stats[port] != NULL)
			stats_sum(&sum, ctx->env->w.workers[w].port_stats[port]);
	}
	o = counters_json(&sum);
	json_object_set_new(o, "port", json_string(ctx->env->w.conf->ports[port].name));
	set_device(o, ctx->env->w.ports[port].id);
	if (sum_prios(ctx, port, &prios))
		set_prios(o, &prios);
	return o;
}

static json_t *
worker_json(const struct methods *ctx, uint32_t worker)
{
	json_t *o = counters_json(ctx->env->w.workers[worker].stats);

	json_object_set_new(o, "worker", json_integer(worker));
	return o;
}

static int
of_ports(struct rpc_call *call, const struct p_stats *p)
{
	const struct methods *ctx = call->m;
	json_t *list;

	if ((p->given & GIVEN_PORT) != 0) {
		for (uint32_t i = 0; i < ctx->env->w.ports_n; i++) {
			if (strcmp(ctx->env->w.conf->ports[i].name, p->port) == 0)
				return rpc_result(call, port_json(ctx, i));
		}
		return rpc_invalid(call, "port: there is no port \"%s\"", p->port);
	}
	list = json_array();
	for (uint32_t i = 0; i < ctx->env->w.ports_n; i++)
		list = conf_json_append(list, port_json(ctx, i));
	return rpc_result(call, list);
}

static int
of_workers(struct rpc_call *call, const struct p_stats *p)
{
	const struct methods *ctx = call->m;
	json_t *list;

	if ((p->given & GIVEN_WORKER) != 0) {
		if (p->worker >= ctx->env->w.workers_n)
			return rpc_invalid(call, "worker: %u does not exist: the last one is %u",
				p->worker, ctx->env->w.workers_n - 1);
		return rpc_result(call, worker_json(ctx, p->worker));
	}
	list = json_array();
	for (uint32_t i = 0; i < ctx->env->w.workers_n; i++)
		list = conf_json_append(list, worker_json(ctx, i));
	return rpc_result(call, list);
}

static int
of_qp(struct rpc_call *call, const struct p_stats *p)
{
	struct qp_snapshot s;
	struct admin_qp *rec;
	struct refusal r;
	json_t *o;

	if ((p->given & GIVEN_QP) == 0)
		return rpc_invalid(call, "qp_num: is missing: scope \"qp\" requires it");
	rec = admin_get(call->m->admin, p->qp_num, &r);
	if (rec == NULL || admin_snapshots(call->m->admin, &rec, 1, &s, &r) != 0)
		return rpc_refused(call, &r);
	o = counters_json(&s.stats);
	json_object_set_new(o, "qp_num", json_integer(p->qp_num));
	return rpc_result(call, o);
}

static int
stats(struct rpc_call *call)
{
	const struct p_stats *p = call->params;
	uint32_t scope = p->scope;

	if ((p->given & GIVEN_SCOPE) == 0)
		scope = (p->given & GIVEN_QP) != 0       ? SCOPE_QP
			: (p->given & GIVEN_PORT) != 0   ? SCOPE_PORT
			: (p->given & GIVEN_WORKER) != 0 ? SCOPE_WORKER
							 : SCOPE_TOTAL;
	switch (scope) {
	case SCOPE_PORT:
		return of_ports(call, p);
	case SCOPE_WORKER:
		return of_workers(call, p);
	case SCOPE_QP:
		return of_qp(call, p);
	default:
		return rpc_result(call, total_json(call->m));
	}
}

enum { GIVEN_MEASURE = 1 };

struct p_load {
	uint64_t given;
	bool measure;
	bool reset;
};

static const struct conf_field load_rows[] = {
	P_BOOL(p_load, measure, P_OPTIONAL, .given = GIVEN_MEASURE),
	P_BOOL(p_load, reset, P_DEFAULT(0)),
};
static const struct conf_table load_table = P_TABLE_GIVEN(p_load, load_rows, "params");

/* What kept it: its longest stage, and what the kernel did to its thread. */
static void
longest_turn(json_t *o, const struct stats_turn *t)
{
	const struct {
		const char *name;
		uint64_t n;
	} rows[] = {
		{ "turn_max_cpu_us", t->cpu_ns / TIME_NS_PER_US },
		{ "turn_max_us", t->took_ns / TIME_NS_PER_US },
		{ "turn_max_stage_us", t->stage_cycles * 1000 / (rte_get_tsc_hz() / 1000) },
		{ "turn_max_faults", t->faults },
		{ "turn_max_disk_faults", t->disk_faults },
		{ "turn_max_waits", t->waits },
		{ "turn_max_preempted", t->preempted },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		json_object_set_new(o, rows[i].name, conf_json_u64(rows[i].n));
	json_object_set_new(o, "turn_max_stage",
		json_string(t->cpu_ns != 0 ? stats_stage_names[t->stage] : ""));
}

static json_t *
load_json(const struct methods *ctx, uint32_t worker)
{
	const struct stats_load *l = ctx->env->w.workers[worker].load;
	json_t *stages = json_object();
	json_t *o;

	for (unsigned int s = 0; s < STAGE_MAX; s++)
		json_object_set_new(stages, stats_stage_names[s], conf_json_u64(l->cycles[s]));
	o = json_pack("{s:I, s:I, s:b, s:o}", "worker", (json_int_t)worker, "lcore",
		(json_int_t)ctx->env->w.workers[worker].lcore, "measure",
		atomic_load_explicit(&l->measure, memory_order_relaxed), "stage_cycles", stages);
	json_object_set_new(o, "packets", conf_json_u64(l->packets));
	json_object_set_new(o, "turns", conf_json_u64(l->turns));
	json_object_set_new(o, "busy_turns", conf_json_u64(l->busy_turns));
	json_object_set_new(o, "busy_ns", conf_json_u64(l->busy_ns));
	json_object_set_new(o, "total_ns", conf_json_u64(l->total_ns));
	longest_turn(o, &l->longest);
	json_object_set_new(o, "stall_ns", conf_json_u64(l->stall_ns));
	json_object_set_new(o, "stalls",
		json_integer(atomic_load_explicit(&l->stalls_n, memory_order_relaxed)));
	json_object_set_new(o, "tsc_hz", conf_json_u64(rte_get_tsc_hz()));
	return o;
}

/*
 * What each worker does with its time. `measure` turns the count of cycles by stage, and the look
 * at the longest turn, on or off; `reset` forgets the longest turn.
 */
static int
worker_load(struct rpc_call *call)
{
	const struct methods *ctx = call->m;
	const struct p_load *p = call->params;
	json_t *list = json_array();

	for (uint32_t w = 0; w < ctx->env->w.workers_n; w++) {
		struct stats_load *l = ctx->env->w.workers[w].load;

		if (l == NULL)
			continue;
		if ((p->given & GIVEN_MEASURE) != 0)
			atomic_store_explicit(&l->measure, p->measure, memory_order_relaxed);
		if (p->reset)
			atomic_store_explicit(&l->turn_new, true, memory_order_relaxed);
		list = conf_json_append(list, load_json(ctx, w));
	}
	return rpc_result(call, list);
}

struct p_turns {
	bool reset;
};

static const struct conf_field turns_rows[] = {
	P_BOOL(p_turns, reset, P_DEFAULT(0)),
};
static const struct conf_table turns_table = P_TABLE(p_turns, turns_rows, "params");

static json_int_t
us(ns_t ns)
{
	return (json_int_t)(ns / TIME_NS_PER_US);
}

/* How long whoever asks may have to wait for the turn that is under way. */
static int
control_load(struct rpc_call *call)
{
	const struct p_turns *p = call->params;
	struct turns *t = &call->m->env->turns;
	const struct turn_worst worst = t->worst;

	if (p->reset)
		t->worst = (struct turn_worst){ 0 };
	return rpc_result(call, json_pack("{s:I, s:I, s:I, s:I, s:s}", "turns", (json_int_t)t->n,
					"turn_max_us", us(worst.took), "turn_max_cpu_us",
					us(worst.cpu), "turn_max_piece_us", us(worst.piece_took),
					"turn_max_piece", worst.piece != NULL ? worst.piece : ""));
}

const struct rpc_method methods_stats[] = {
	{ "stats", stats, &stats_table },
	{ "control_load", control_load, &turns_table },
	{ "worker_load", worker_load, &load_table },
	{ NULL, NULL, NULL },
};
