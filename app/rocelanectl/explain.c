/* SPDX-License-Identifier: BSD-3-Clause */
/* "qp explain": why a queue pair is in ERR, for people. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl.h"

static void
line(const char *what, const json_t *v)
{
	char *text;

	if (v == NULL || json_is_null(v))
		return;
	text = fmt_value(v);
	printf("%-12s  %s\n", what, text);
	free(text);
}

/* "what  a  b  c" with the parts that are there. */
static void
parts(const char *what, const json_t *o, const char *const *keys, const char *const *labels)
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

static void
print_error(const json_t *e)
{
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
		line("rule", json_object_get(e, "rule"));
		line("what", json_object_get(e, "text"));
	}
	line("side", json_object_get(e, "side"));
	parts("packet", json_object_get(e, "packet"), packet, packet_labels);
	parts("peer", json_object_get(e, "peer"), peer, peer_labels);
	parts("syndrome", json_object_get(e, "fault"), fault, fault_labels);
	line("received", json_object_get(e, "received_syndrome"));
	if (json_is_object(answer))
		line("answered", json_object_get(answer, "text"));
	else if (side != NULL && strcmp(side, "responder") == 0)
		printf("%-12s  nothing\n", "answered");
	line("completed", json_object_get(e, "completion"));
	line("event", json_object_get(e, "event"));
	if (json_integer_value(code) != 0) {
		const char *text = json_string_value(json_object_get(e, "fatal_text"));

		printf("%-12s  %lld%s%s\n", "FATAL code", (long long)json_integer_value(code),
			text != NULL ? ": " : "", text != NULL ? text : "");
	}
	line("time_ns", json_object_get(e, "time_ns"));
}

/* The entries before the error, and those from it on. */
static void
print_trace(const json_t *v)
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
				"time_ns kind opcode psn msn len syndrome fault rule qp_state",
				true);
		}
		json_decref(part);
	}
}

static void
print_path(const json_t *path)
{
	static const char *const last[] = { "text", "rule", "time_ns", NULL };
	static const char *const labels[] = { "", "", "time_ns ", NULL };

	if (!json_is_object(path))
		return;
	line("path", json_object_get(path, "path_mig_state"));
	line("migrations", json_object_get(path, "migrations"));
	parts("last one", json_object_get(path, "last"), last, labels);
}

int
run_explain(struct ctl *ctl, const struct command *cmd, int argc, char **argv)
{
	const json_t *error;
	json_t *params, *v;
	char *text;
	int rc = params_build(cmd, argc, argv, &params);

	if (rc != CTL_OK)
		return rc;
	rc = ctl_call(ctl, cmd->method, params, &v);
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
	if (json_is_object(error)) {
		print_error(error);
		line("flushed", json_object_get(v, "flushed"));
		print_trace(v);
	}
	print_path(json_object_get(v, "path"));
	json_decref(v);
	return CTL_OK;
}
