/* SPDX-License-Identifier: BSD-3-Clause */
/* Words of the command line to JSON-RPC params. */
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "ctl.h"

/* Values of these stay text, whatever they look like. */
static const char *const text_keys[] = {
	"name",
	"pd",
	"port",
	"send_cq",
	"recv_cq",
	"cq",
	"srq",
	"xrcd",
	"mr",
	"bind_mw.mw",
	"bind_mw.mr",
	"data",
	"inline",
	"dest_ip",
	"private_data",
	"qp.pd",
	"qp.send_cq",
	"qp.recv_cq",
	"qp.srq",
	"qp.xrcd",
	"ah_attr.dest_ip",
	"ah_attr.dest_mac",
	"alt_ah_attr.dest_ip",
	"alt_ah_attr.dest_mac",
	"ud.ah_attr.dest_ip",
	"ud.ah_attr.dest_mac",
	"alt_port",
	"fill",
	"ipv4",
	"ipv6",
	"mac",
	"to",
	"via",
	"device",
	"bottleneck.rate",
};
/* Values of these are lists of names: "A,B". */
static const char *const list_keys[] = { "access", "qp_access_flags", "qp.qp_access_flags",
	"send_flags", "bind_mw.mw_access_flags", "flush.type" };

static bool
listed(const char *key, const char *const *list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(key, list[i]) == 0)
			return true;
	return false;
}

static json_t *
list_parse(const char *text)
{
	json_t *a = ctl_must(json_array());

	while (*text != '\0') {
		size_t n = strcspn(text, ",|");

		if (n > 0)
			json_array_append_new(a, json_stringn(text, n));
		text += n;
		text += *text != '\0';
	}
	return a;
}

/* A JSON number, list, object, string or literal when it looks like one, else a string. */
static json_t *
value_parse(const char *key, const char *text)
{
	bool text_only = listed(key, text_keys, sizeof(text_keys) / sizeof(text_keys[0]));
	json_t *v = NULL;

	if (strcmp(text, "null") == 0)
		return json_null();
	if (listed(key, list_keys, sizeof(list_keys) / sizeof(list_keys[0])) && text[0] != '[')
		return list_parse(text);
	if (!text_only)
		v = json_loads(text, JSON_DECODE_ANY | JSON_REJECT_DUPLICATES, NULL);
	return v != NULL ? v : json_string(text);
}

/* The object of this name within another one, made if there is none; NULL: it is no object. */
static json_t *
within(json_t *obj, const char *name)
{
	json_t *inner = json_object_get(obj, name);

	if (inner == NULL) {
		inner = ctl_must(json_object());
		json_object_set_new(obj, name, inner);
	}
	return json_is_object(inner) ? inner : NULL;
}

/* The object that holds `key`, with the key's own name: what stands behind its dots. Names of knobs
 * have dots of their own. */
static json_t *
holder(json_t *obj, const char *key, const char **leaf)
{
	bool knobs = false;
	const char *dot;

	for (; obj != NULL && !knobs && (dot = strchr(key, '.')) != NULL; key = dot + 1) {
		char *outer = ctl_must(strndup(key, (size_t)(dot - key)));

		knobs = strcmp(outer, "knobs") == 0;
		obj = within(obj, outer);
		free(outer);
	}
	*leaf = key;
	return obj;
}

int
params_pairs(json_t *obj, int argc, char **argv)
{
	for (int i = 0; i < argc; i += 2) {
		const char *leaf;
		json_t *at;
		json_t *v;

		if (i + 1 == argc)
			return ctl_usage(
				"'%s' has no value: attributes are pairs of KEY VALUE", argv[i]);
		at = holder(obj, argv[i], &leaf);
		if (at == NULL || *leaf == '\0')
			return ctl_usage("'%s' does not fit the other attributes", argv[i]);
		if (json_object_get(at, leaf) != NULL)
			return ctl_usage("'%s' is given twice", argv[i]);
		v = value_parse(argv[i], argv[i + 1]);
		if (v == NULL || json_object_set_new(at, leaf, v) != 0)
			return ctl_usage("'%s %s' is not valid UTF-8", argv[i], argv[i + 1]);
	}
	return CTL_OK;
}

static int
number_parse(const char *text, bool units, uint64_t most, uint64_t *n)
{
	static const char unit[] = "KMG";
	unsigned int shift = 0;
	char *end;

	if (!isdigit((unsigned char)text[0]))
		return -EINVAL;
	errno = 0;
	*n = strtoull(text, &end, strncmp(text, "0x", 2) == 0 ? 16 : 10);
	if (errno != 0)
		return -EINVAL;
	if (*end != '\0') {
		const char *u = strchr(unit, *end);

		if (!units || u == NULL || end[1] != '\0')
			return -EINVAL;
		shift = 10 * (unsigned int)(u - unit + 1);
	}
	if (*n > most >> shift)
		return -EINVAL;
	*n <<= shift;
	return 0;
}

int
params_size(const char *text, uint64_t *size)
{
	return number_parse(text, true, LLONG_MAX, size);
}

int
params_number(const char *text, uint64_t *n)
{
	return number_parse(text, false, UINT64_MAX, n);
}

bool
params_next(const char **spec, char *name, size_t size, char *kind, bool *optional)
{
	const char *s = *spec == NULL ? "" : *spec;
	size_t n;

	s += strspn(s, " ");
	if (*s == '\0')
		return false;
	*optional = *s == '?';
	s += *optional;
	*kind = *s == '#' || *s == '@' ? *s : 's';
	s += *kind != 's';
	n = strcspn(s, " ");
	*spec = s + n;
	if (n >= size)
		n = size - 1;
	memcpy(name, s, n);
	name[n] = '\0';
	return true;
}

static int
word(json_t *obj, const char *name, char kind, const char *text)
{
	uint64_t n;

	if (kind == 's') {
		if (json_object_set_new(obj, name, json_string(text)) != 0)
			return ctl_usage("%s '%s' is not valid UTF-8", name, text);
		return CTL_OK;
	}
	if (number_parse(text, kind == '@', LLONG_MAX, &n) != 0)
		return ctl_usage("%s must be a %s, not '%s'", name,
			kind == '#' ? "number" : "number of bytes", text);
	json_object_set_new(obj, name, json_integer((json_int_t)n));
	return CTL_OK;
}

int
params_build(const struct command *cmd, int argc, char **argv, json_t **params)
{
	json_t *obj = ctl_must(json_object());
	const char *spec = cmd->args;
	char name[64];
	char kind;
	bool optional;
	int rc = CTL_OK;
	int i = 0;

	while (rc == CTL_OK && params_next(&spec, name, sizeof(name), &kind, &optional)) {
		/* Before pairs, an optional word is there when the number of words is odd. */
		if (optional && (cmd->keys != NULL ? (argc - i) % 2 == 0 : i >= argc))
			continue;
		if (i >= argc)
			rc = ctl_usage("%s is missing; --help shows the arguments", name);
		else
			rc = word(obj, name, kind, argv[i++]);
	}
	if (rc == CTL_OK && cmd->keys != NULL)
		rc = params_pairs(obj, argc - i, argv + i);
	else if (rc == CTL_OK && i < argc)
		rc = ctl_usage("'%s' is too much; --help shows the arguments", argv[i]);
	if (rc == CTL_OK)
		*params = obj;
	else
		json_decref(obj);
	return rc;
}
