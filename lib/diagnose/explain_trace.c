/* SPDX-License-Identifier: BSD-3-Clause */
/* One entry of the flight recorder as JSON. */
#include "conf_json_value.h"
#include "diagnose.h"
#include "explain.h"
#include "wall.h"

/* Memory that was refused, and whose key it is, or was: not a packet's line, but of its shape. */
static void
set_memory(struct diagnose *dg, json_t *o, const struct trace_entry *e)
{
	static const char *const none[] = { "psn", "msn", "len", "syndrome", "rule", "fault" };
	struct region_view region;

	for (size_t i = 0; i < ARRAY_LEN(none); i++)
		json_object_set_new(o, none[i], json_null());
	json_object_set_new(o, "key", conf_json_hex(e->key));
	json_object_set_new(o, "va", conf_json_hex(e->va));
	json_object_set_new(o, "length", json_integer(e->length));
	json_object_set_new(o, "why", json_string(mem_why_name((enum mem_why)e->detail)));
	json_object_set_new(o, "region",
		regions_by_key(dg->objects, e->key, e->time_ns, &region) ? json_string(region.name)
									 : json_null());
}

static void
set_decision(json_t *o, const struct trace_entry *e)
{
	const char *fault = e->fault < FAULT_MAX ? wire_faults[e->fault].name : NULL;

	json_object_set_new(o, "psn", json_integer(e->psn));
	json_object_set_new(o, "msn", json_integer(e->msn));
	json_object_set_new(o, "len", json_integer(e->len));
	json_object_set_new(o, "syndrome", json_integer(e->syndrome));
	json_object_set_new(o, "rule", json_string(qp_rule_id(e->rule)));
	json_object_set_new(o, "fault", fault != NULL ? json_string(fault) : json_null());
}

json_t *
explain_trace_entry(struct diagnose *dg, const struct trace_entry *e, uint32_t worker)
{
	const char *opcode = wire_opcodes[e->opcode].name;
	json_t *o = json_object();

	wall_set(dg->env, o, e->time_ns);
	json_object_set_new(o, "worker", json_integer(worker));
	json_object_set_new(o, "kind", json_string(trace_kind_name(e->kind)));
	json_object_set_new(o, "qp_num", json_integer(e->qpn));
	json_object_set_new(o, "opcode", opcode != NULL ? json_string(opcode) : json_null());
	if (e->kind == TRACE_memory)
		set_memory(dg, o, e);
	else
		set_decision(o, e);
	json_object_set_new(o, "qp_state",
		json_string(e->state < QPS_MAX ? verbs_qp_state_name(e->state) : "?"));
	json_object_set_new(o, "detail", json_integer(e->detail));
	return o;
}
