/* SPDX-License-Identifier: BSD-3-Clause */
/* Counters: stat show. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "ctl.h"
#include "screen.h"

/* Members of a block that say whose counters they are. */
static const char *const label_keys[] = { "name", "port", "worker", "qp_num", "lcore", "scope" };

#define LABELS (sizeof(label_keys) / sizeof(label_keys[0]))

static bool
is_label(const char *key)
{
	for (size_t i = 0; i < LABELS; i++)
		if (strcmp(key, label_keys[i]) == 0)
			return true;
	return false;
}

static json_t *
block_new(const char *label, const json_t *counters)
{
	json_t *c = ctl_must(json_object());
	const char *key;
	json_t *v;

	json_object_foreach ((json_t *)(uintptr_t)counters, key, v)
		if (json_is_integer(v) && !is_label(key))
			json_object_set(c, key, v);
	return ctl_must(json_pack("{s:s, s:o}", "label", label, "counters", c));
}

static json_t *
block_of(const json_t *v, const char *fallback)
{
	json_t *counters = json_object_get(v, "counters");
	json_t *block;
	char *label = NULL;

	for (size_t i = 0; i < LABELS && label == NULL; i++)
		if (json_object_get(v, label_keys[i]) != NULL)
			label = fmt_value(json_object_get(v, label_keys[i]));
	block = block_new(
		label != NULL ? label : fallback, json_is_object(counters) ? counters : v);
	free(label);
	return block;
}

/*
 * The answer as an array of blocks {label, counters}. It is one object of counters, an array of
 * such objects, or an object of them by name.
 */
json_t *
stats_blocks(const json_t *result, const char *scope)
{
	json_t *blocks = ctl_must(json_array());
	bool nested = json_is_object(result) && json_object_size(result) > 0 &&
		      !json_is_object(json_object_get(result, "counters"));
	const char *key;
	json_t *v;
	size_t i;

	json_array_foreach (result, i, v)
		json_array_append_new(blocks, block_of(v, scope));
	json_object_foreach ((json_t *)(uintptr_t)result, key, v)
		nested = nested && json_is_object(v);
	if (nested) {
		json_object_foreach ((json_t *)(uintptr_t)result, key, v)
			json_array_append_new(blocks, block_of(v, key));
	} else if (json_is_object(result)) {
		json_array_append_new(blocks, block_of(result, scope));
	}
	return blocks;
}

json_int_t
stats_counter(const json_t *blocks, size_t block, const char *name)
{
	const json_t *b = json_array_get(blocks, block);

	return json_integer_value(json_object_get(json_object_get(b, "counters"), name));
}

/* Names over all blocks in the daemon's order, as the keys of an object. */
json_t *
stats_names(const json_t *blocks)
{
	json_t *names = ctl_must(json_object());
	const char *key;
	json_t *b;
	json_t *v;
	size_t i;

	json_array_foreach (blocks, i, b) {
		json_object_foreach (json_object_get(b, "counters"), key, v)
			json_object_set_new(names, key, json_true());
	}
	return names;
}

static char *
number(json_int_t v)
{
	char s[32];

	snprintf(s, sizeof(s), "%" JSON_INTEGER_FORMAT, v);
	return ctl_must(strdup(s));
}

/* Whether any block has counted; what never counted is left out unless asked for. */
static bool
counted(const json_t *blocks, const char *name)
{
	for (size_t b = 0; b < json_array_size(blocks); b++)
		if (stats_counter(blocks, b, name) != 0)
			return true;
	return false;
}

/* A row for each counter, a column for each block, and its rate where `before` is given. */
static void
print_blocks(const json_t *blocks, const json_t *before, double seconds, bool all)
{
	json_t *names = stats_names(blocks);
	size_t n = json_array_size(blocks);
	size_t cols = 1 + n * (before != NULL ? 2 : 1);
	char **cells = ctl_must(calloc((json_object_size(names) + 1) * cols, sizeof(*cells)));
	const char *name;
	size_t rows = 1;
	json_t *v;

	cells[0] = ctl_must(strdup("counter"));
	for (size_t b = 0; b < n; b++) {
		cells[1 + b] = fmt_value(json_object_get(json_array_get(blocks, b), "label"));
		if (before != NULL && asprintf(&cells[1 + n + b], "%s/s", cells[1 + b]) < 0)
			cells[1 + n + b] = NULL;
	}
	json_object_foreach (names, name, v) {
		char **row = &cells[rows * cols];

		if (!all && !counted(blocks, name))
			continue;
		rows++;
		row[0] = ctl_must(strdup(name));
		for (size_t b = 0; b < n; b++) {
			json_int_t now = stats_counter(blocks, b, name);

			row[1 + b] = number(now);
			if (before != NULL)
				row[1 + n + b] = number((
					json_int_t)((double)(now - stats_counter(before, b, name)) /
						    seconds));
		}
	}
	fmt_cells(cells, rows, cols, true);
	for (size_t i = 0; i < rows * cols; i++)
		free(cells[i]);
	free(cells);
	json_decref(names);
}

struct stat_args {
	const char *scope;
	json_t *params;
	double interval; /* seconds, 0: once */
	bool all;
	double stages; /* seconds to measure cycles by stage, 0: do not */
};

static int
parse_args(struct stat_args *a, int argc, char **argv)
{
	uint64_t n;
	char *end;

	a->scope = "total";
	for (int i = 0; i < argc; i++) {
		const char *next = i + 1 < argc ? argv[i + 1] : "";

		if (strcmp(argv[i], "--all") == 0) {
			a->all = true;
		} else if (strcmp(argv[i], "--watch") == 0 || strcmp(argv[i], "--stages") == 0) {
			double *seconds = argv[i][2] == 'w' ? &a->interval : &a->stages;

			*seconds = 1;
			if (!isdigit((unsigned char)next[0]))
				continue;
			*seconds = strtod(next, &end);
			if (*end != '\0' || *seconds < 0.01 || *seconds > 86400)
				return ctl_usage("%s takes 0.01 to 86400 seconds", argv[i]);
			i++;
		} else if (strcmp(argv[i], "total") == 0 || strcmp(argv[i], "port") == 0 ||
			   strcmp(argv[i], "worker") == 0) {
			a->scope = argv[i];
		} else if (strcmp(argv[i], "qp") == 0) {
			if (params_size(next, &n) != 0)
				return ctl_usage("qp needs a number, as in: stat show qp 17");
			a->scope = argv[i++];
			json_object_set_new(a->params, "qp_num", json_integer((json_int_t)n));
		} else {
			return ctl_usage("'%s' is no scope: total, port, worker or qp N; options: "
					 "--all, --watch [SECONDS], --stages [SECONDS]",
				argv[i]);
		}
	}
	json_object_set_new(a->params, "scope", json_string(a->scope));
	return CTL_OK;
}

static double
seconds_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

struct picture {
	const json_t *blocks;
	const json_t *before;
	double seconds;
	bool all;
};

static void
print_picture(void *ctx)
{
	const struct picture *p = ctx;

	print_blocks(p->blocks, p->before, p->seconds, p->all);
}

static int
watch(struct ctl *ctl, const struct command *cmd, const struct stat_args *a)
{
	json_t *before = NULL;
	double then = 0;
	json_t *result;
	int rc;

	screen_begin();
	while ((rc = ctl_call(ctl, cmd->method, json_copy(a->params), &result)) == CTL_OK) {
		const double now = seconds_now();
		struct picture p = {
			.before = before, .seconds = now > then ? now - then : 1, .all = a->all
		};

		p.blocks = stats_blocks(result, a->scope);
		if (ctl->json) {
			fmt_json_line(result);
		} else {
			if (isatty(STDOUT_FILENO) == 0 && before != NULL)
				putchar('\n');
			screen_show(print_picture, &p);
		}
		json_decref(result);
		json_decref(before);
		before = (json_t *)(uintptr_t)p.blocks;
		then = now;
		if (screen_wait(a->interval))
			break;
	}
	json_decref(before);
	return rc;
}

int
run_stats(struct ctl *ctl, const struct command *cmd, int argc, char **argv)
{
	struct stat_args a = { .params = ctl_must(json_object()) };
	json_t *blocks;
	json_t *result;
	int rc = parse_args(&a, argc, argv);

	if (rc == CTL_OK && a.stages > 0) {
		rc = run_stages(ctl, a.stages);
	} else if (rc == CTL_OK && a.interval > 0) {
		rc = watch(ctl, cmd, &a);
	} else if (rc == CTL_OK) {
		rc = ctl_call(ctl, cmd->method, json_incref(a.params), &result);
		if (rc == CTL_OK && ctl->json)
			fmt_json(result);
		else if (rc == CTL_OK) {
			blocks = stats_blocks(result, a.scope);
			print_blocks(blocks, NULL, 1, a.all);
			json_decref(blocks);
		}
		if (rc == CTL_OK)
			json_decref(result);
	}
	json_decref(a.params);
	return rc;
}
