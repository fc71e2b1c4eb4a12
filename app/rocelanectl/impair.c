/* SPDX-License-Identifier: BSD-3-Clause */
/* A bad wire in front of a port: show, set, log. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl.h"

#define SCRIPT_MAX 4096 /* decisions in one answer, and rules that a port takes */

static void
print_rules(const json_t *port)
{
	const json_t *impair = json_object_get(port, "impair");
	const json_t *rules = json_object_get(impair, "rules");
	const json_t *bottleneck = json_object_get(impair, "bottleneck");
	char *name = fmt_value(json_object_get(port, "port"));
	json_t *rule;
	size_t i;

	json_array_foreach (rules, i, rule) {
		printf("%s: ", name);
		fmt_json_line(rule);
	}
	if (json_is_object(bottleneck)) {
		printf("%s: bottleneck ", name);
		fmt_json_line(bottleneck);
	}
	free(name);
}

int
run_impair_show(struct ctl *ctl, const struct command *cmd, int argc, char **argv)
{
	json_t *result, *list, *port;
	size_t i;
	int rc = ctl_ask(ctl, cmd, argc, argv, &result);

	if (rc != CTL_OK)
		return rc;
	if (ctl->json) {
		fmt_json(result);
		json_decref(result);
		return CTL_OK;
	}
	list = json_is_array(result) ? json_incref(result) : ctl_must(json_pack("[O]", result));
	fmt_table(list, cmd->columns, true);
	json_array_foreach (list, i, port)
		print_rules(port);
	json_decref(list);
	json_decref(result);
	return CTL_OK;
}

/* "none", or a file with what stands in a port's "impair"; "-" is standard input. */
static int
load_rules(const char *path, json_t **out)
{
	json_error_t e;
	int unreadable;
	FILE *f;

	if (strcmp(path, "none") == 0) {
		*out = json_null();
		return CTL_OK;
	}
	f = strcmp(path, "-") == 0 ? stdin : fopen(path, "r");
	if (f == NULL)
		return ctl_usage("%s cannot be read: %s", path, strerror(errno));
	errno = 0;
	*out = json_loadf(f, JSON_REJECT_DUPLICATES, &e);
	unreadable = ferror(f) != 0 ? errno : 0;
	if (f != stdin)
		fclose(f);
	if (unreadable != 0)
		return ctl_usage("%s cannot be read: %s", path, strerror(unreadable));
	if (*out == NULL)
		return ctl_usage("%s:%d: %s", path, e.line, e.text);
	return CTL_OK;
}

/* Pairs are one rule, but for the keys that belong beside the rules. A bottleneck needs no rule. */
static json_t *
one_rule(json_t *params)
{
	static const char *const beside[] = { "seed", "held_max", "log_size", "bottleneck" };
	json_t *impair = ctl_must(json_object());
	json_t *rule = ctl_must(json_deep_copy(params));

	json_object_del(rule, "port");
	for (size_t i = 0; i < sizeof(beside) / sizeof(beside[0]); i++) {
		json_t *v = json_object_get(rule, beside[i]);

		if (v != NULL)
			json_object_set(impair, beside[i], v);
		json_object_del(rule, beside[i]);
	}
	if (json_object_size(rule) == 0 && json_object_get(impair, "bottleneck") != NULL)
		json_decref(rule);
	else
		json_object_set_new(impair, "rules", ctl_must(json_pack("[o]", rule)));
	return impair;
}

int
run_impair_set(struct ctl *ctl, const struct command *cmd, int argc, char **argv)
{
	json_t *params, *impair = NULL, *result;
	const char *file, *port;
	int rc = params_build(cmd, argc, argv, &params);

	if (rc != CTL_OK)
		return rc;
	port = json_string_value(json_object_get(params, "port"));
	file = json_string_value(json_object_get(params, "rules"));
	if (json_object_size(params) == 1)
		rc = ctl_usage("give a file, \"none\", or a rule: impair set %s action drop "
			       "probability 0.01",
			port);
	else if (file != NULL && json_object_size(params) > 2)
		rc = ctl_usage("a file and a rule do not go together");
	else if (file != NULL)
		rc = load_rules(file, &impair);
	else
		impair = one_rule(params);
	if (rc == CTL_OK)
		rc = ctl_call(ctl, cmd->method,
			ctl_must(json_pack("{s:s, s:o}", "port", port, "impair", impair)), &result);
	json_decref(params);
	if (rc != CTL_OK)
		return rc;
	if (ctl->json)
		fmt_json(result);
	json_decref(result);
	return CTL_OK;
}

int
run_impair_log(struct ctl *ctl, const struct command *cmd, int argc, char **argv)
{
	json_t *result, *rules;
	json_int_t lost;
	size_t n;
	int rc = ctl_ask(ctl, cmd, argc, argv, &result);

	if (rc != CTL_OK)
		return rc;
	rules = json_object_get(json_object_get(result, "impair"), "rules");
	lost = json_integer_value(json_object_get(result, "lost"));
	n = json_array_size(rules);
	if (ctl->json) {
		fmt_json(result);
		json_decref(result);
		return CTL_OK;
	}
	puts("{\"seed\": 0, \"rules\": [");
	for (size_t i = 0; i < n; i++) {
		json_dumpf(json_array_get(rules, i), stdout, 0);
		puts(i + 1 < n ? "," : "");
	}
	puts("]}");
	if (lost != 0)
		fprintf(stderr,
			"rocelanectl: %" JSON_INTEGER_FORMAT
			" older decisions are forgotten: a larger log_size keeps more\n",
			lost);
	if (n == SCRIPT_MAX)
		fprintf(stderr,
			"rocelanectl: there may be more, from %" JSON_INTEGER_FORMAT " on\n",
			json_integer_value(json_object_get(result, "next")));
	json_decref(result);
	return CTL_OK;
}
