/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Metrics in Prometheus' text format. A name stands for one thing, so that sum() over its labels is
 * right: what a worker counted has the worker's label, what a port counted is a name of its own
 * (rocelane_port_...), and what neither counted has no label.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl.h"

struct text {
	const char *name;
	bool drop;
	const char *help;
};

/* The daemon's own table of counters, and what it adds to it. */
static const struct text counter_help[] = {
#define COUNTER(name, unit, drop, help) { #name, drop, help },
#include "counters.def"
#undef COUNTER
	{ "control_rx", false,
		"frames that the control lcore got: ARP, neighbour discovery, ICMP" },
	{ "control_rx_ignored", false, "those of them that nothing was done with" },
	{ "control_tx", false, "frames that the control lcore sent" },
	{ "control_tx_lost", false, "frames of the control lcore that no worker took" },
	{ "dev_rx_packets", false, "frames that the device itself counted as received" },
	{ "dev_tx_packets", false, "frames that the device itself counted as sent" },
	{ "dev_rx_missed", false, "frames that the device dropped because its queue was full" },
	{ "dev_rx_errors", false, "frames that the device refused" },
	{ "dev_tx_errors", false, "frames that the device could not send" },
	{ "dev_rx_nombuf", false, "frames that the device dropped for want of a buffer" },
#define MESSAGE(attribute, NAME, name, text)                                             \
	{ "cm_rx_" #name, false, "messages of the connection manager received: " text }, \
		{ "cm_tx_" #name, false, "messages of the connection manager sent: " text },
#include "tables/cm_messages.def"
#undef MESSAGE
#define DROP(name, text, rule) \
	{ "cm_drops_" #name, false, "messages of the connection manager dropped: " text },
#include "tables/cm_drops.def"
#undef DROP
	{ "cm_rx_duplicates", false, "messages of the connection manager that had come before" },
	{ "cm_rx_lost", false, "messages of the connection manager for which there was no room" },
	{ "cm_tx_lost", false, "messages of the connection manager that could not be sent" },
	{ "cm_events_lost", false, "events of connections that nobody fetched in time" },
	{ "cm_listeners", false, "listeners of the connection manager, clients' and configured" },
	{ "cm_connections", false, "connections that the connection manager knows" },
	{ "cm_half_open", false, "those of them that are not established yet" },
};

/* What rises and falls. */
static const char *const gauges[] = { "cm_listeners", "cm_connections", "cm_half_open" };

/* In the total are losses that no worker can count. */
static const char *const of_all[] = { "aeq_overflow", "error_buffer_lost" };

#define IS_IN(name, list) is_in(name, list, sizeof(list) / sizeof((list)[0]))

static bool
is_in(const char *name, const char *const *list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(list[i], name) == 0)
			return true;
	return false;
}

static const char *
help_of(const char *name)
{
	for (size_t i = 0; i < sizeof(counter_help) / sizeof(counter_help[0]); i++)
		if (strcmp(counter_help[i].name, name) == 0)
			return counter_help[i].help;
	return "a counter that this rocelanectl does not know";
}

static void
print_name(const char *prefix, const char *name)
{
	printf("rocelane_%s", prefix);
	for (; *name != '\0'; name++)
		putchar(isalnum((unsigned char)*name) ? *name : '_');
}

/* {label="value"}; the comma before it where it is not the first. */
static void
print_label(const char *label, const char *s, bool first, bool last)
{
	printf("%s%s=\"", first ? "{" : ",", label);
	for (; s != NULL && *s != '\0'; s++) {
		if (*s == '\\' || *s == '"')
			putchar('\\');
		if (*s == '\n')
			fputs("\\n", stdout);
		else
			putchar(*s);
	}
	fputs(last ? "\"}" : "\"", stdout);
}

/* The two lines in front of a family; its samples have to follow at once. */
static void
print_head(const char *prefix, const char *name, const char *suffix, const char *type,
	const char *help)
{
	fputs("# HELP ", stdout);
	print_name(prefix, name);
	printf("%s %s\n# TYPE ", suffix, help);
	print_name(prefix, name);
	printf("%s %s\n", suffix, type);
}

/* One sample a block, with its label; label NULL: the one block has none. */
static void
print_stat(const char *prefix, const char *name, const char *label, const json_t *blocks)
{
	const bool gauge = IS_IN(name, gauges);
	const char *suffix = gauge ? "" : "_total";

	print_head(prefix, name, suffix, gauge ? "gauge" : "counter", help_of(name));
	for (size_t b = 0; b < json_array_size(blocks); b++) {
		const json_t *of = json_object_get(json_array_get(blocks, b), "label");

		print_name(prefix, name);
		fputs(suffix, stdout);
		if (label != NULL)
			print_label(label, json_string_value(of), true, true);
		printf(" %" JSON_INTEGER_FORMAT "\n", stats_counter(blocks, b, name));
	}
}

/* All that makes a packet leave early as one family: its sum is all drops. */
static void
print_drops(const json_t *workers)
{
	json_t *names = stats_names(workers);
	bool head = false;

	for (size_t i = 0; i < sizeof(counter_help) / sizeof(counter_help[0]); i++) {
		const char *name = counter_help[i].name;

		if (!counter_help[i].drop || json_object_get(names, name) == NULL)
			continue;
		if (!head)
			print_head("", "rx_dropped_packets", "_total", "counter",
				"packets that were received and not accepted, by reason");
		head = true;
		for (size_t b = 0; b < json_array_size(workers); b++) {
			const json_t *of = json_object_get(json_array_get(workers, b), "label");

			fputs("rocelane_rx_dropped_packets_total", stdout);
			print_label("worker", json_string_value(of), true, false);
			print_label("reason", name, false, true);
			printf(" %" JSON_INTEGER_FORMAT "\n", stats_counter(workers, b, name));
		}
	}
	json_decref(names);
}

static void
print_counters(const json_t *total, const json_t *workers, const json_t *ports)
{
	json_t *by_worker = stats_names(workers);
	json_t *by_port = stats_names(ports);
	json_t *names = stats_names(total);
	const char *name;
	json_t *v;

	json_object_update_missing(names, by_worker);
	json_object_foreach (names, name, v) {
		if (json_object_get(by_worker, name) != NULL && !IS_IN(name, of_all))
			print_stat("", name, "worker", workers);
		else
			print_stat("", name, NULL, total);
	}
	print_drops(workers);
	json_object_foreach (by_port, name, v)
		print_stat("port_", name, "port", ports);
	json_decref(names);
	json_decref(by_port);
	json_decref(by_worker);
}

/* ---- how things are ------------------------------------------------------------------------- */

static void
print_build(const json_t *v)
{
	static const char *const keys[] = { "version", "dpdk_version", "crc" };

	print_head("", "build_info", "", "gauge", "version of the dataplane; always 1");
	print_name("", "build_info");
	for (size_t i = 0; i < 3; i++)
		print_label(
			keys[i], json_string_value(json_object_get(v, keys[i])), i == 0, i == 2);
	puts(" 1");
}

static void
print_qps(const json_t *v)
{
	const char *state;
	json_t *n;

	print_head("", "qps", "", "gauge", "queue pairs, by state");
	json_object_foreach ((json_t *)(uintptr_t)v, state, n) {
		print_name("", "qps");
		print_label("state", state, true, true);
		printf(" %" JSON_INTEGER_FORMAT "\n", json_integer_value(n));
	}
}

static json_int_t
is_up(const json_t *row)
{
	const char *state = json_string_value(json_object_get(row, "state"));

	return state != NULL && strcmp(state, "UP") == 0;
}

static json_int_t
mtu_of(const json_t *row)
{
	return json_integer_value(json_object_get(row, "mtu"));
}

static json_int_t
qps_of(const json_t *row)
{
	return json_integer_value(json_object_get(row, "qps"));
}

/* One gauge over the rows of a list, labelled by the member `key` of each. */
static void
print_rows(const json_t *rows, const char *name, const char *label, const char *key,
	json_int_t (*value)(const json_t *row), const char *help)
{
	json_t *row;
	size_t i;

	print_head("", name, "", "gauge", help);
	json_array_foreach (rows, i, row) {
		char *text = fmt_value(json_object_get(row, key));

		print_name("", name);
		print_label(label, text, true, true);
		printf(" %" JSON_INTEGER_FORMAT "\n", value(row));
		free(text);
	}
}

static void
print_ports(const json_t *rows)
{
	print_rows(rows, "port_up", "port", "name", is_up, "1 where the port's link is up");
	print_rows(rows, "port_mtu_bytes", "port", "name", mtu_of,
		"longest IP packet that the port takes");
}

static void
print_workers(const json_t *rows)
{
	print_rows(rows, "worker_qps", "worker", "worker", qps_of, "queue pairs of a worker");
}

static void
print_clients(const json_t *rows)
{
	print_head("", "clients", "", "gauge", "applications that are connected");
	print_name("", "clients");
	printf(" %zu\n", json_array_size(rows));
}

static void
print_seconds(const json_t *load, const char *name, const char *key, const char *help)
{
	json_t *w;
	size_t i;

	print_head("", name, "_total", "counter", help);
	json_array_foreach (load, i, w) {
		char *text = fmt_value(json_object_get(w, "worker"));

		print_name("", name);
		fputs("_total", stdout);
		print_label("worker", text, true, true);
		printf(" %.9f\n", (double)json_integer_value(json_object_get(w, key)) / 1e9);
		free(text);
	}
}

/* Busy share of an lcore: rate(busy) / rate(all). */
static void
print_load(const json_t *load)
{
	print_seconds(load, "worker_busy_seconds", "busy_ns", "time of turns with work");
	print_seconds(load, "worker_seconds", "total_ns", "time of all turns");
	print_seconds(load, "worker_stall_seconds", "stall_ns",
		"time without a turn for 10 ms or more");
}

/* Everything is asked for before anything is printed: half a page is no page. */
int
run_metrics(struct ctl *ctl, const struct command *cmd, int argc, char **argv)
{
	static const struct {
		const char *method;
		const char *scope; /* of "stats" */
		void (*print)(const json_t *answer);
	} rows[] = {
		{ "stats", "total", NULL },
		{ "stats", "worker", NULL },
		{ "stats", "port", NULL },
		{ "version", NULL, print_build },
		{ "qp_count", NULL, print_qps },
		{ "port_list", NULL, print_ports },
		{ "worker_list", NULL, print_workers },
		{ "client_list", NULL, print_clients },
		{ "worker_load", NULL, print_load },
	};
	enum { N = sizeof(rows) / sizeof(rows[0]), SCOPES = 3 };
	json_t *answers[N] = { NULL };
	json_t *params;
	int rc = params_build(cmd, argc, argv, &params);

	if (rc == CTL_OK)
		json_decref(params);
	for (size_t i = 0; rc == CTL_OK && i < N; i++) {
		const char *scope = rows[i].scope;

		if (ctl->json && scope == NULL)
			break;
		rc = ctl_call(ctl, rows[i].method,
			scope != NULL ? json_pack("{s:s}", "scope", scope) : NULL, &answers[i]);
		if (rc == CTL_OK && scope != NULL) {
			json_t *blocks = stats_blocks(answers[i], scope);

			json_decref(answers[i]);
			answers[i] = blocks;
		}
	}
	if (rc == CTL_OK && ctl->json) {
		json_t *all = ctl_must(json_pack("{s:O, s:O, s:O}", "total", answers[0], "port",
			answers[2], "worker", answers[1]));

		fmt_json(all);
		json_decref(all);
	} else if (rc == CTL_OK) {
		print_counters(answers[0], answers[1], answers[2]);
		for (size_t i = SCOPES; i < N; i++)
			rows[i].print(answers[i]);
	}
	for (size_t i = 0; i < N; i++)
		json_decref(answers[i]);
	return rc;
}
