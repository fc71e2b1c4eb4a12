/* SPDX-License-Identifier: BSD-3-Clause */
/* What the dataplane is asked as its operator: faults of the wire, queue pairs that failed. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "run.h"

#define ANSWER_MAX (64u << 20)
#define WAIT_MS    10000
#define FIRST_MS   30000 /* for the first answer, as librocelane waits */
#define SLICE_MS   100   /* between two looks at what signals there are */

static json_int_t newest;       /* failures up to this time were there before */
static json_int_t own_uid = -1; /* to the dataplane; -1: not known */
static json_t *before;          /* ports whose faults were set, as they were */

/* One call on a connection of its own. @return 0 with *result, or -1 with the reason in `why`. */
static int
ask(const char *path, const char *method, json_t *params, json_t **result, char why[512])
{
	struct jsonrpc c = { .fd = -1, .most = ANSWER_MAX };
	const int64_t end = jsonrpc_end(WAIT_MS);
	json_t *o = NULL, *error;
	const char *said;
	int rc;

	*result = NULL;
	rc = jsonrpc_connect(&c, path, end);
	if (rc != 0) {
		snprintf(why, 512, "%s: %s", path, strerror(-rc));
		json_decref(params);
		return -1;
	}
	rc = jsonrpc_send(&c, method, params, NULL, 0, end);
	while (rc == 0 && (rc = jsonrpc_receive(&c, end, &o)) == 0 && !jsonrpc_is_answer(&c, o))
		json_decref(o);
	error = rc == 0 ? json_object_get(o, "error") : NULL;
	said = json_string_value(json_object_get(error, "message"));
	if (rc != 0)
		snprintf(why, 512, "%s", strerror(-rc));
	else if (error != NULL)
		snprintf(why, 512, "%s", said != NULL ? said : "refused without a reason");
	else if ((*result = json_incref(json_object_get(o, "result"))) == NULL)
		snprintf(why, 512, "the answer has neither a result nor an error");
	if (rc == 0)
		json_decref(o);
	jsonrpc_close(&c);
	return *result != NULL ? 0 : -1;
}

/* Some answer, whatever it says: who may ask what is another question. */
static int
await_answer(struct jsonrpc *c, int64_t end)
{
	bool answered = false;
	json_t *o;
	int rc = 0;

	while (rc == 0 && !answered) {
		run_check();
		rc = jsonrpc_receive(c, jsonrpc_end(SLICE_MS), &o);
		if (rc == -ETIMEDOUT && jsonrpc_now_ms() < end) {
			rc = 0;
		} else if (rc == 0) {
			answered = jsonrpc_is_answer(c, o);
			json_decref(o);
		}
	}
	return rc;
}

void
control_await(const char *path)
{
	struct jsonrpc c = { .fd = -1, .most = ANSWER_MAX };
	const int64_t end = jsonrpc_end(FIRST_MS);
	int rc;

	do {
		run_check();
		rc = jsonrpc_connect(&c, path, jsonrpc_end(SLICE_MS));
	} while (rc == -EAGAIN && jsonrpc_now_ms() < end);
	if (rc == 0)
		rc = jsonrpc_send(&c, "version", NULL, NULL, 0, end);
	if (rc == 0)
		rc = await_answer(&c, end);
	jsonrpc_close(&c);
	if (rc == -EAGAIN)
		run_die("%s: it has too many others to answer", path);
	if (rc == -ETIMEDOUT)
		run_die("%s: no answer in time (does its dataplane stand still?)", path);
	if (rc != 0)
		run_die("%s: %s", path, strerror(-rc));
}

/* ---- faults ---------------------------------------------------------------------------------- */

/* The ports' names in a row, for people. */
static void
names_of(const json_t *ports, char *out, size_t room)
{
	const json_t *port;
	size_t i, at = 0;

	out[0] = '\0';
	json_array_foreach (ports, i, port) {
		const char *name = json_string_value(json_object_get(port, "port"));

		if (at < room)
			at += (size_t)snprintf(out + at, room - at, i == 0 ? "%s" : ", %s",
				name != NULL ? name : "?");
	}
}

/* @return the port's entry, or NULL: there is none of that name. */
static json_t *
port_named(const json_t *ports, const char *name)
{
	json_t *port;
	size_t i;

	json_array_foreach (ports, i, port) {
		const char *is = json_string_value(json_object_get(port, "port"));

		if (is != NULL && strcmp(is, name) == 0)
			return port;
	}
	return NULL;
}

static bool
is_given(const json_t *rules, const char *key)
{
	const json_t *value = json_object_get(rules, key);

	return value != NULL && !json_is_null(value);
}

/* No program runs without the faults that were asked for. */
static bool
has_faults(const json_t *rules)
{
	return is_given(rules, "rules") || is_given(rules, "bottleneck");
}

static void
set_port(const char *path, const json_t *ports, const char *name, json_t *rules)
{
	json_t *result, *port = port_named(ports, name);
	char why[512], names[256];

	names_of(ports, names, sizeof(names));
	if (!has_faults(rules))
		run_die("faults of port %s: neither \"rules\" nor a \"bottleneck\" (ports: %s)",
			name, names);
	if (ask(path, "impair_set", json_pack("{s:s, s:O}", "port", name, "impair", rules), &result,
		    why) != 0)
		run_die("faults of port %s: %s (ports: %s)", name, why, names);
	json_decref(result);
	if (before == NULL)
		before = json_array();
	json_array_append(before, port);
}

/* Is it an object with one for each of some ports? A key that is another's goes with the rest. */
static bool
is_by_port(const json_t *ports, json_t *rules)
{
	const char *key;
	json_t *value;

	json_object_foreach (rules, key, value) {
		if (port_named(ports, key) != NULL)
			return true;
	}
	return false;
}

json_t *
control_faults_read(const char *file)
{
	json_t *rules;
	json_error_t e;
	FILE *f = fopen(file, "re");
	int unreadable;

	if (f == NULL)
		run_die("%s: %s", file, strerror(errno));
	errno = 0;
	rules = json_loadf(f, JSON_REJECT_DUPLICATES, &e);
	unreadable = ferror(f) != 0 ? errno : 0;
	fclose(f);
	if (unreadable != 0)
		run_die("%s: %s", file, strerror(unreadable));
	if (rules == NULL)
		run_die("%s:%d: %s", file, e.line, e.text);
	if (!json_is_object(rules))
		run_die("%s: must be an object with \"rules\", or with one for each of some ports",
			file);
	return rules;
}

void
control_faults(const char *path, json_t *faults)
{
	json_t *ports, *port, *value;
	const char *key;
	char why[512], names[256];
	size_t i;

	if (ask(path, "impair_get", NULL, &ports, why) != 0)
		run_die("faults: %s", why);
	names_of(ports, names, sizeof(names));
	if (is_by_port(ports, faults)) {
		json_object_foreach (faults, key, value)
			set_port(path, ports, key, value);
	} else if (!has_faults(faults)) {
		key = json_object_iter_key(json_object_iter(faults));
		run_die("faults: \"%s\": neither \"rules\", nor a \"bottleneck\", nor a port (ports: %s)",
			key != NULL ? key : "", names);
	} else {
		json_array_foreach (ports, i, port)
			set_port(path, ports, json_string_value(json_object_get(port, "port")),
				faults);
	}
	json_decref(ports);
}

void
control_faults_undo(const char *path)
{
	json_t *port, *result;
	char why[512];
	size_t i;

	json_array_foreach (before, i, port) {
		json_t *params = json_pack("{s:O, s:O}", "port", json_object_get(port, "port"),
			"impair", json_object_get(port, "impair"));

		if (ask(path, "impair_set", params, &result, why) != 0)
			run_say("faults of port %s stay: %s",
				json_string_value(json_object_get(port, "port")), why);
		json_decref(result);
	}
	json_decref(before);
	before = NULL;
}

/* ---- failures -------------------------------------------------------------------------------- */

static json_int_t
time_of(const json_t *failure)
{
	const json_t *t = json_object_get(failure, "time_ns");

	/* Beyond what JavaScript can count it is a string. */
	return json_is_string(t) ? strtoll(json_string_value(t), NULL, 0) : json_integer_value(t);
}

void
control_mark(const char *path)
{
	json_t *list, *failure;
	char why[512];
	size_t i;

	if (ask(path, "qp_post_mortem", NULL, &list, why) != 0)
		return;
	json_array_foreach (list, i, failure) {
		if (time_of(failure) > newest)
			newest = time_of(failure);
	}
	json_decref(list);
}

void
control_own(const char *path, uint32_t client)
{
	json_t *list, *row;
	char why[512];
	size_t i;

	if (ask(path, "client_list", NULL, &list, why) != 0)
		return;
	json_array_foreach (list, i, row) {
		if (json_integer_value(json_object_get(row, "client")) == (json_int_t)client)
			own_uid = json_integer_value(json_object_get(row, "uid"));
	}
	json_decref(list);
}

static const char *
text_of(const json_t *o, const char *key)
{
	const char *text = json_string_value(json_object_get(o, key));

	return text != NULL ? text : "";
}

unsigned int
control_report(const char *path)
{
	const json_int_t uid = own_uid >= 0 ? own_uid : (json_int_t)getuid();
	json_t *list, *failure;
	unsigned int n = 0;
	char why[512];
	size_t i;

	if (ask(path, "qp_post_mortem", NULL, &list, why) != 0) {
		run_say("whether queue pairs failed is not known: %s", why);
		return 0;
	}
	/* The newest comes first: tell them in the order of their failures. */
	for (i = json_array_size(list); i-- > 0;) {
		const json_t *owner;

		failure = json_array_get(list, i);
		owner = json_object_get(failure, "owner");
		if (time_of(failure) <= newest || strcmp(text_of(owner, "kind"), "client") != 0 ||
			json_integer_value(json_object_get(owner, "uid")) != uid)
			continue;
		run_say("QP 0x%06x of %s failed: %s",
			(unsigned int)json_integer_value(json_object_get(failure, "qp_num")),
			text_of(owner, "text"), text_of(failure, "summary"));
		n++;
	}
	json_decref(list);
	return n;
}
