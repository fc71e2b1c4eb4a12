/* SPDX-License-Identifier: BSD-3-Clause */
/* What a command does with its words and with the daemon's answer. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "ctl.h"

#define QP_PAGE       256      /* QPs asked for at once: one page stays well below a line's limit */
#define CLEAR_MAX     1000000  /* taken by one command: more may come all the time */
#define READ_CHUNK    65536    /* bytes of a region asked for at once */
#define WATCH_SOON_NS 10000000 /* until records that come all the time are asked for again */

int
ctl_ask(struct ctl *ctl, const struct command *cmd, int argc, char **argv, json_t **result)
{
	json_t *params;
	int rc = params_build(cmd, argc, argv, &params);

	return rc == CTL_OK ? ctl_call(ctl, cmd->method, params, result) : rc;
}

/* The same with a flag among the params. */
static int
call_with(struct ctl *ctl, const struct command *cmd, int argc, char **argv, const char *flag,
	json_t **result)
{
	json_t *params;
	int rc = params_build(cmd, argc, argv, &params);

	if (rc != CTL_OK)
		return rc;
	json_object_set_new(params, flag, json_true());
	return ctl_call(ctl, cmd->method, params, result);
}

/* The result as JSON, as a table, or as pairs, by what it is. */
static void
print(struct ctl *ctl, const json_t *v, const char *columns)
{
	char *text;

	if (ctl->json) {
		fmt_json(v);
	} else if (json_is_array(v) && json_is_object(json_array_get(v, 0))) {
		fmt_table(v, columns, true);
	} else if (json_is_array(v)) {
		for (size_t i = 0; i < json_array_size(v); i++) {
			text = fmt_value(json_array_get(v, i));
			puts(text);
			free(text);
		}
	} else if (json_is_object(v)) {
		fmt_pairs(v);
	} else {
		text = fmt_value(v);
		puts(text);
		free(text);
	}
}

/* Commands that people run for their effect: silent when it worked. */
int
run_quiet(struct ctl *ctl, const struct command *cmd, int argc, char **argv)
{
	json_t *result;
	int rc = ctl_ask(ctl, cmd, argc, argv, &result);

	if (rc != CTL_OK)
		return rc;
	if (ctl->json)
		fmt_json(result);
	json_decref(result);
	return CTL_OK;
}

int
run_pairs(struct ctl *ctl, const struct command *cmd, int argc, char **argv)
{
	json_t *result;
	int rc = ctl_ask(ctl, cmd, argc, argv, &result);

	if (rc != CTL_OK)
		return rc;
	print(ctl, result, cmd->columns);
	json_decref(result);
	return CTL_OK;
}

int
run_json(struct ctl *ctl, const struct command *cmd, int argc, char **argv)
{
	json_t *result;
	int rc = ctl_ask(ctl, cmd, argc, argv, &result);

	if (rc != CTL_OK)
		return rc;
	fmt_json(result);
	json_decref(result);
	return CTL_OK;
}

/* Nothing is there, maybe because nobody asked for it. */
static void
hint(const struct command *cmd)
{
	static const struct {
		const char *method;
		const char *text;
	} hints[] = {
		{ "rx_errors",
			"nothing is recorded (no packet was dropped, or \"error_buffer\" is not configured; "
			"`stat show` counts all drops)" },
		{ "poll_cq",
			"no completion waits (a request that was posted with other send_flags than "
			"SIGNALED has one only when it fails; `qp explain` says what a QP is at)" },
		{ "trace_read", "nothing is recorded (`trace start [QP_NUM]` begins it)" },
	};

	for (size_t i = 0; i < sizeof(hints) / sizeof(hints[0]); i++) {
		if (strcmp(cmd->method, hints[i].method) == 0)
			fprintf(stderr, "%s\n", hints[i].text);
	}
}

/* As print, but an empty list still shows its header, and says why it may be empty. */
static void
print_list(struct ctl *ctl, const struct command *cmd, const json_t *list)
{
	if (!ctl->json && json_is_array(list) && json_array_size(list) == 0) {
		fmt_table(list, cmd->columns, true);
		hint(cmd);
	} else {
		print(ctl, list, cmd->columns);
	}
}

int
run_table(struct ctl *ctl, const struct command *cmd, int argc, char **argv)
{
	json_t *result;
	int rc = ctl_ask(ctl, cmd, argc, argv, &result);

	if (rc != CTL_OK)
		return rc;
	print_list(ctl, cmd, result);
	json_decref(result);
	return CTL_OK;
}

int
run_look(struct ctl *ctl, const struct command *cmd, int argc, char **argv)
{
	json_t *result;
	int rc = call_with(ctl, cmd, argc, argv, "peek", &result);

	if (rc != CTL_OK)
		return rc;
	print_list(ctl, cmd, result);
	json_decref(result);
	return CTL_OK;
}

int
run_clear(struct ctl *ctl, const struct command *cmd, int argc, char **argv)
{
	json_int_t cleared = 0;
	json_t *result;
	size_t n;
	int rc;

	do {
		rc = ctl_ask(ctl, cmd, argc, argv, &result);
		if (rc != CTL_OK)
			return rc;
		n = json_array_size(result);
		cleared += (json_int_t)n;
		json_decref(result);
	} while (n > 0 && cleared < CLEAR_MAX);
	result = ctl_must(json_pack("{s:I}", "cleared", cleared));
	print(ctl, result, NULL);
	json_decref(result);
	return CTL_OK;
}

/* "show NAME" where the daemon has only a list. */
int
run_find(struct ctl *ctl, const struct command *cmd, int argc, char **argv)
{
	json_t *params;
	json_t *result;
	json_t *found = NULL;
	const char *name;
	int rc = params_build(cmd, argc, argv, &params);

	if (rc != CTL_OK)
		return rc;
	name = json_string_value(json_object_get(params, "name"));
	rc = ctl_call(ctl, cmd->method, NULL, &result);
	for (size_t i = 0; rc == CTL_OK && found == NULL && i < json_array_size(result); i++) {
		json_t *row = json_array_get(result, i);
		const char *s = json_string_value(json_object_get(row, "name"));

		if (s != NULL && strcmp(s, name) == 0)
			found = row;
	}
	if (rc == CTL_OK && found == NULL) {
		rc = ctl_refuse(RPC_REFUSED - ENOENT, "there is no %s '%s'", cmd->object, name);
		json_decref(result);
	} else if (rc == CTL_OK) {
		print(ctl, found, NULL);
		json_decref(result);
	}
	json_decref(params);
	return rc;
}

/* Page through the QPs; a `limit` among the words asks for one page only. */
int
run_qp_list(struct ctl *ctl, const struct command *cmd, int argc, char **argv)
{
	json_t *all = ctl->json ? ctl_must(json_array()) : NULL;
	json_t *params;
	bool first = true;
	bool one;
	int rc = params_build(cmd, argc, argv, &params);

	if (rc != CTL_OK) {
		json_decref(all);
		return rc;
	}
	one = json_object_get(params, "limit") != NULL;
	if (!one)
		json_object_set_new(params, "limit", json_integer(QP_PAGE));
	for (;;) {
		json_t *page;
		json_t *last;
		size_t n;

		rc = ctl_call(ctl, cmd->method, json_copy(params), &page);
		if (rc != CTL_OK)
			break;
		n = json_array_size(page);
		last = json_object_get(n > 0 ? json_array_get(page, n - 1) : NULL, "qp_num");
		/* A daemon that does not page would answer the same QPs again. */
		if (!first && json_equal(last, json_object_get(params, "after")))
			n = 0;
		if (all != NULL && n > 0)
			json_array_extend(all, page);
		else if (all == NULL && (n > 0 || first))
			fmt_table(page, cmd->columns, first);
		first = false;
		if (last != NULL)
			json_object_set(params, "after", last);
		json_decref(page);
		if (n == 0 || one || last == NULL)
			break;
	}
	if (all != NULL && rc == CTL_OK)
		fmt_json(all);
	json_decref(all);
	json_decref(params);
	return rc;
}

/* Does the daemon have such a region that ends before that? What it does not tell, it refuses. */
static int
check_end(struct ctl *ctl, const char *name, json_int_t offset, json_int_t length)
{
	const bool quiet = ctl->quiet;
	json_t *list = NULL;
	json_t *mr;
	size_t i;
	int rc;

	ctl->quiet = true;
	rc = ctl_call(ctl, "mr_list", NULL, &list);
	ctl->quiet = quiet;
	if (rc != CTL_OK)
		return CTL_OK;
	json_array_foreach (list, i, mr) {
		const char *s = json_string_value(json_object_get(mr, "name"));
		const json_int_t room = json_integer_value(json_object_get(mr, "length"));

		if (s != NULL && strcmp(s, name) == 0 && (offset > room || length > room - offset))
			rc = ctl_refuse(RPC_USAGE,
				"offset %lld and length %lld go beyond the region's %lld bytes",
				(long long)offset, (long long)length, (long long)room);
	}
	json_decref(list);
	return rc;
}

/* A region in pieces, so that no answer is longer than a line may be. */
int
run_mr_read(struct ctl *ctl, const struct command *cmd, int argc, char **argv)
{
	json_t *params;
	char *all = NULL;
	size_t len = 0;
	json_int_t at;
	json_int_t left;
	FILE *f;
	int rc = params_build(cmd, argc, argv, &params);

	if (rc != CTL_OK)
		return rc;
	at = json_integer_value(json_object_get(params, "offset"));
	left = json_integer_value(json_object_get(params, "length"));
	if (left > READ_CHUNK)
		rc = check_end(ctl, json_string_value(json_object_get(params, "name")), at, left);
	if (rc != CTL_OK) {
		json_decref(params);
		return rc;
	}
	f = ctl_must(open_memstream(&all, &len));
	do {
		json_int_t n = left < READ_CHUNK ? left : READ_CHUNK;
		json_t *result;
		const char *hex;

		json_object_set_new(params, "offset", json_integer(at));
		json_object_set_new(params, "length", json_integer(n));
		rc = ctl_call(ctl, cmd->method, json_copy(params), &result);
		if (rc != CTL_OK)
			break;
		hex = json_string_value(json_object_get(result, "data"));
		if (ctl->json)
			fputs(hex != NULL ? hex : "", f);
		else if (hex == NULL || fmt_hexdump((uint64_t)at, hex) != 0)
			rc = ctl_refuse(RPC_REFUSED - EPROTO,
				"the daemon's answer holds no hexadecimal data");
		json_decref(result);
		at += n;
		left -= n;
	} while (rc == CTL_OK && left > 0);
	fclose(f);
	if (ctl->json && rc == CTL_OK) {
		json_t *v = json_pack("{s:s}", "data", ctl_must(all));

		fmt_json(v);
		json_decref(v);
	}
	free(all);
	json_decref(params);
	return rc;
}

static void
print_stream(struct ctl *ctl, const json_t *v)
{
	bool first = true;
	const char *key;
	json_t *e;

	if (ctl->json) {
		fmt_json_line(v);
		return;
	}
	json_object_foreach ((json_t *)(uintptr_t)v, key, e) {
		char *text;

		/* An opcode stands here by its name; memory is told by "why". */
		if (json_is_null(e) || strcmp(key, "header") == 0 || json_is_object(e) ||
			strcmp(key, "opcode_name") == 0)
			continue;
		text = fmt_value(fmt_named(v, key));
		printf("%s%s %s", first ? "" : "  ", key, text);
		first = false;
		free(text);
	}
	putchar('\n');
	fflush(stdout);
}

/* Events as they come: the answer holds those that waited, notifications the rest. */
int
run_follow(struct ctl *ctl, const struct command *cmd, int argc, char **argv)
{
	json_t *v;
	int rc = call_with(ctl, cmd, argc, argv, "follow", &v);

	if (rc != CTL_OK)
		return rc;
	for (size_t i = 0; i < json_array_size(v); i++)
		print_stream(ctl, json_array_get(v, i));
	json_decref(v);
	while (ferror(stdout) == 0 && rpc_wait(&ctl->rpc, -1, &v) == 0) {
		print_stream(ctl, json_object_get(v, "params"));
		json_decref(v);
	}
	if (ferror(stdout) != 0)
		return CTL_OK; /* nobody reads any more; main() says so */
	return ctl_refuse(ctl->rpc.code, "%s", ctl->rpc.err);
}

/*
 * The same for a method that can only be asked, until the daemon goes: each second, and soon again
 * where something was there.
 */
int
run_watch(struct ctl *ctl, const struct command *cmd, int argc, char **argv)
{
	json_t *params;
	json_t *v;
	int rc = params_build(cmd, argc, argv, &params);

	if (rc != CTL_OK)
		return rc;
	while (ferror(stdout) == 0) {
		size_t n;

		rc = ctl_call(ctl, cmd->method, json_copy(params), &v);
		if (rc != CTL_OK)
			break;
		n = json_array_size(v);
		for (size_t i = 0; i < n; i++)
			print_stream(ctl, json_array_get(v, i));
		json_decref(v);
		nanosleep(n == 0 ? &(struct timespec){ .tv_sec = 1 }
				 : &(struct timespec){ .tv_nsec = WATCH_SOON_NS },
			NULL);
	}
	json_decref(params);
	return rc;
}
