/* SPDX-License-Identifier: BSD-3-Clause */
/* "qp explain": why a queue pair is in ERR, for people. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl.h"

void
explain_line(const char *what, const json_t *v)
{
	char *text;

	if (v == NULL || json_is_null(v))
		return;
	text = fmt_value(v);
	printf("%-12s  %s\n", what, text);
	free(text);
}

/* "what  a  b  c" with the parts that are there. */
void
explain_parts(const char *what, const json_t *o, const char *const *keys, const char *const *labels)
{
	if (!json_is_object(o))
		return;
	printf("%-12s", what);
	for (size_t i = 0; keys[i] != NULL; i++) {
		const json_t *v = json_object_get(o, keys[i]);
		char *text;

		if (v == NULL || json_is_null(v))
			continue;
		text = fmt_value(v);
		printf("  %s%s", labels[i], text);
		free(text);
	}
	putchar('\n');
}

/* Memory that was refused: why, what was asked for, what is there. */
static void
print_memory(const json_t *m)
{
	static const char *const asked[] = { "sge", "sges", "addr", "va", "length", "lkey", "rkey",
		"needs", NULL };
	static const char *const asked_labels[] = { "sg_list index ", "of ", "addr ", "va ",
		"length ", "lkey ", "rkey ", "needs ", NULL };
	static const char *const region[] = { "name", "addr", "length", "rkey", "access", "pd",
		NULL };
	static const char *const region_labels[] = { "", "addr ", "length ", "rkey ", "access ",
		"pd ", NULL };

	if (!json_is_object(m))
		return;
	explain_line("why", json_object_get(m, "text"));
	explain_parts("asked for", m, asked, asked_labels);
	explain_parts("region", json_object_get(m, "region"), region, region_labels);
	explain_parts("meant?", json_object_get(m, "meant"), region, region_labels);
}

void
explain_error(const json_t *e)
{
	static const char *const request[] = { "queue", "wr_id", "opcode", "length", "remote_addr",
		"rkey", "dest_ip", "remote_qpn", NULL };
	static const char *const request_labels[] = { "", "wr_id ", "", "length ", "remote_addr ",
		"rkey ", "to ", "QP ", NULL };
	static const char *const packet[] = { "opcode_name", "psn", "length", NULL };
	static const char *const packet_labels[] = { "", "PSN ", "payload ", NULL };
	static const char *const peer[] = { "ip", "mac", "qp_num", NULL };
	static const char *const peer_labels[] = { "", "", "QP ", NULL };
	static const char *const fault[] = { "name", "text", "rule", NULL };
	static const char *const fault_labels[] = { "", "", "", NULL };
	const json_t *answer = json_object_get(e, "answer");
	const char *rule = json_string_value(json_object_get(e, "rule"));
	const char *side = json_string_value(json_object_get(e, "side"));
	json_t *code = json_object_get(e, "fatal_code");

	if (rule != NULL && *rule != '\0') {
		explain_line("rule", json_object_get(e, "rule"));
		explain_line("what", json_object_get(e, "text"));
	}
	explain_line("side", json_object_get(e, "side"));
	explain_parts("packet", json_object_get(e, "packet"), packet, packet_labels);
	explain_parts("peer", json_object_get(e, "peer"), peer, peer_labels);
	explain_parts("syndrome", json_object_get(e, "fault"), fault, fault_labels);
	print_memory(json_object_get(e, "memory"));
	explain_parts("request", json_object_get(e, "request"), request, request_labels);
	explain_line("received", json_object_get(e, "received_syndrome"));
	if (json_is_object(answer))
		explain_line("answered", json_object_get(answer, "text"));
	else if (side != NULL && strcmp(side, "responder") == 0)
		printf("%-12s  nothing\n", "answered");
	explain_line("completed", json_object_get(e, "completion"));
	explain_line("event", json_object_get(e, "event"));
	if (json_integer_value(code) != 0) {
		const json_t *fatal = json_object_get(e, "fatal_text");
		char *text = fmt_value(fatal);

		printf("%-12s  %lld%s%s\n", "FATAL code", (long long)json_integer_value(code),
			json_is_string(fatal) ? ": " : "", json_is_string(fatal) ? text : "");
		free(text);
	}
	explain_line("time", json_object_get(e, "time"));
}

/* The entries before the error, and those from it on. */
void
explain_trace(const json_t *v)
{
	const json_t *list = json_object_get(v, "trace");
	const size_t before = (size_t)json_integer_value(json_object_get(v, "before"));
	const size_t n = json_array_size(list);

	if (n == 0) {
		printf("\nflight recorder: nothing kept%s\n",
			json_is_true(json_object_get(v, "recorder"))
				? ""
				: " (it is off for this queue pair: trace start)");
		return;
	}
	for (int half = 0; half < 2; half++) {
		json_t *part = ctl_must(json_array());
		const size_t end = half == 0 ? before : n;

		for (size_t i = half == 0 ? 0 : before; i < end && i < n; i++)
			json_array_append(part, json_array_get(list, i));
		if (json_array_size(part) > 0) {
			printf("\n%s\n", half == 0 ? "before it:" : "with it and behind it:");
			fmt_table(part,
				"time kind opcode psn msn len syndrome fault rule qp_state key va length why region",
				true);
		}
		json_decref(part);
	}
}

static void
print_path(const json_t *path)
{
	static const char *const last[] = { "text", "rule", "time", NULL };
	static const char *const labels[] = { "", "", "at ", NULL };

	if (!json_is_object(path))
		return;
	explain_line("path", json_object_get(path, "path_mig_state"));
	explain_line("migrations", json_object_get(path, "migrations"));
	explain_parts("last one", json_object_get(path, "last"), last, labels);
}

/* Groups that it gets datagrams of. */
static void
print_mcasts(const json_t *mcasts)
{
	static const char *const keys[] = { "group", "port", "mac", NULL };
	static const char *const labels[] = { "", "on ", "", NULL };
	const json_t *m;
	size_t i;

	json_array_foreach (mcasts, i, m)
		explain_parts("member of", m, keys, labels);
}

/* One paragraph for each thing that the QP waits for. */
static void
print_waits(const json_t *waits)
{
	static const char *const keys[] = { "since", "until", "wakes", NULL };
	static const char *const labels[] = { "  since", "  until", "  ended by", NULL };
	const json_t *w;
	size_t i;

	json_array_foreach (waits, i, w) {
		explain_line("waits for", json_object_get(w, "text"));
		for (size_t k = 0; keys[k] != NULL; k++)
			explain_line(labels[k], json_object_get(w, keys[k]));
	}
}

/* Who the packets go to, and by what, where that is the matter or may be. */
static void
print_network(const json_t *net, bool failed)
{
	static const char *const names[2][4] = { { "neighbor", "alternate", "link", "network" },
		{ "neighbor now", "alternate now", "link now", "network now" } };
	const char *const *name = names[failed];
	static const char *const neighbor[] = { "ip", "state", "mac", "asked", "unanswered",
		"last_asked_ms", NULL };
	static const char *const neighbor_labels[] = { "", "", "", "asked ", "unanswered ",
		"last asked ms ago ", NULL };
	static const char *const link[] = { "port", "state", "interface", "interface_mtu", "mtu",
		NULL };
	static const char *const link_labels[] = { "", "", "interface ", "its mtu ", "port's mtu ",
		NULL };

	if (!json_is_object(net))
		return;
	explain_parts(name[0], json_object_get(net, "neighbor"), neighbor, neighbor_labels);
	explain_parts(name[1], json_object_get(net, "alt_neighbor"), neighbor, neighbor_labels);
	explain_parts(name[2], json_object_get(net, "link"), link, link_labels);
	explain_line(name[3], json_object_get(net, "text"));
}

int
run_explain(struct ctl *ctl, const struct command *cmd, int argc, char **argv)
{
	const json_t *error;
	json_t *v;
	char *text;
	int rc = ctl_ask(ctl, cmd, argc, argv, &v);

	if (rc != CTL_OK)
		return rc;
	if (ctl->json) {
		fmt_json(v);
		json_decref(v);
		return CTL_OK;
	}
	error = json_object_get(v, "error");
	text = fmt_value(json_object_get(v, "qp_state"));
	printf("QP %lld (%s): ", (long long)json_integer_value(json_object_get(v, "qp_num")), text);
	free(text);
	text = fmt_value(json_object_get(v, "summary"));
	puts(text);
	free(text);
	print_network(json_object_get(v, "network"), json_is_object(error));
	if (json_is_object(error)) {
		explain_error(error);
		explain_line("flushed", json_object_get(v, "flushed"));
		explain_trace(v);
	}
	print_waits(json_object_get(v, "waits"));
	explain_line("timeouts", json_object_get(json_object_get(v, "timeouts"), "text"));
	print_path(json_object_get(v, "path"));
	print_mcasts(json_object_get(v, "mcasts"));
	json_decref(v);
	return CTL_OK;
}
