/* SPDX-License-Identifier: BSD-3-Clause */
#include "conf_json.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "errors.h"
#include "rows.h"
#include "value.h"

static int decode_object(const struct conf_table *t, const json_t *obj, enum conf_mode mode,
	void *out, struct conf_errors *err);

static void *
field_at(const struct conf_field *f, void *out)
{
	return (uint8_t *)out + f->offset;
}

static uint32_t *
count_at(const struct conf_field *f, void *out)
{
	return (uint32_t *)(void *)((uint8_t *)out + f->n_offset);
}

static void
set_given(const struct conf_table *t, const struct conf_field *f, void *out)
{
	uint64_t given;

	if (t->given_offset == CONF_NO_GIVEN)
		return;
	memcpy(&given, (uint8_t *)out + t->given_offset, sizeof(given));
	given |= f->given;
	memcpy((uint8_t *)out + t->given_offset, &given, sizeof(given));
}

static int
wrong(const struct conf_field *f, const json_t *v, struct conf_errors *err)
{
	char allowed[512];
	char got[64];

	conf_fault(err, NULL, "must be %s, not %s", conf_rows_allowed(f, allowed, sizeof(allowed)),
		conf_value_describe(v, got, sizeof(got)));
	return -EINVAL;
}

static int
number(const struct conf_field *f, const json_t *v, bool size, void *out, struct conf_errors *err)
{
	uint64_t n;

	if (conf_value_u64(v, size, &n) != 0 || n < f->min || n > f->max)
		return wrong(f, v, err);
	conf_rows_store(f, field_at(f, out), n);
	return 0;
}

static int
decode_number(const struct conf_field *f, const json_t *v, void *out, struct conf_errors *err)
{
	return number(f, v, false, out, err);
}

static int
decode_size(const struct conf_field *f, const json_t *v, void *out, struct conf_errors *err)
{
	return number(f, v, true, out, err);
}

static int
decode_real(const struct conf_field *f, const json_t *v, void *out, struct conf_errors *err)
{
	const double x = json_number_value(v);

	if (!json_is_number(v) || x < (double)f->min || x > (double)f->max)
		return wrong(f, v, err);
	memcpy(field_at(f, out), &x, sizeof(x));
	return 0;
}

static int
decode_bool(const struct conf_field *f, const json_t *v, void *out, struct conf_errors *err)
{
	if (!json_is_boolean(v))
		return wrong(f, v, err);
	conf_rows_store(f, field_at(f, out), json_is_true(v) ? 1 : 0);
	return 0;
}

static int
decode_enum(const struct conf_field *f, const json_t *v, void *out, struct conf_errors *err)
{
	const char *text = json_string_value(v);

	for (const struct conf_name *e = f->names; text != NULL && e->name != NULL; e++) {
		if (strcmp(e->name, text) == 0) {
			conf_rows_store(f, field_at(f, out), e->value);
			return 0;
		}
	}
	return wrong(f, v, err);
}

static int
decode_pick(const struct conf_field *f, const json_t *v, void *out, struct conf_errors *err)
{
	uint64_t n;

	if (conf_value_u64(v, false, &n) != 0 || n > UINT32_MAX ||
		conf_name_of(f->names, (uint32_t)n) == NULL)
		return wrong(f, v, err);
	conf_rows_store(f, field_at(f, out), n);
	return 0;
}

static int
decode_flags(const struct conf_field *f, const json_t *v, void *out, struct conf_errors *err)
{
	const struct conf_field one = { .type = CONF_T_ENUM, .names = f->names };
	uint32_t bits = 0;
	int ret = 0;

	if (!json_is_array(v))
		return wrong(f, v, err);
	for (size_t i = 0; i < json_array_size(v); i++) {
		uint32_t mark = conf_enter_index(err, (uint32_t)i);
		uint32_t bit = 0;

		if (decode_enum(&one, json_array_get(v, i), &bit, err) != 0)
			ret = -EINVAL;
		bits |= bit;
		conf_leave(err, mark);
		if (err->n_errors > CONF_ERRORS_MAX)
			break; /* nobody reads more */
	}
	if (ret == 0)
		conf_rows_store(f, field_at(f, out), bits);
	return ret;
}

static int
decode_name(const struct conf_field *f, const json_t *v, void *out, struct conf_errors *err)
{
	const char *text = json_string_value(v);

	if (text == NULL || !conf_value_is_name(v))
		return wrong(f, v, err);
	memcpy(field_at(f, out), text, strlen(text) + 1);
	return 0;
}

static int
decode_string(const struct conf_field *f, const json_t *v, void *out, struct conf_errors *err)
{
	const char *text = json_string_value(v);
	const size_t len = text != NULL ? strlen(text) : 0;

	if (text == NULL || len < f->min || len > f->max)
		return wrong(f, v, err);
	memcpy(field_at(f, out), text, len + 1);
	return 0;
}

static int
decode_mac(const struct conf_field *f, const json_t *v, void *out, struct conf_errors *err)
{
	uint8_t mac[6];

	if (conf_value_mac(v, mac) != 0)
		return wrong(f, v, err);
	memcpy(field_at(f, out), mac, sizeof(mac));
	return 0;
}

static int
decode_ipv4(const struct conf_field *f, const json_t *v, void *out, struct conf_errors *err)
{
	struct conf_ip ip;

	if (conf_value_ip(v, 4, 4, &ip) != 0)
		return wrong(f, v, err);
	memcpy(field_at(f, out), ip.addr, 4);
	return 0;
}

static int
decode_ipv6(const struct conf_field *f, const json_t *v, void *out, struct conf_errors *err)
{
	struct conf_ip ip;

	if (conf_value_ip(v, 6, 6, &ip) != 0)
		return wrong(f, v, err);
	memcpy(field_at(f, out), ip.addr, 16);
	return 0;
}

static int
decode_ip(const struct conf_field *f, const json_t *v, void *out, struct conf_errors *err)
{
	struct conf_ip ip;

	if (conf_value_ip(v, f->min, f->max, &ip) != 0)
		return wrong(f, v, err);
	memcpy(field_at(f, out), &ip, sizeof(ip));
	return 0;
}

static int
decode_any_ip(const struct conf_field *f, const json_t *v, void *out, struct conf_errors *err)
{
	struct conf_ip ip;

	if (conf_value_ip(v, 4, 6, &ip) != 0 && conf_value_group(v, &ip) != 0)
		return wrong(f, v, err);
	memcpy(field_at(f, out), &ip, sizeof(ip));
	return 0;
}

static int
decode_group(const struct conf_field *f, const json_t *v, void *out, struct conf_errors *err)
{
	struct conf_ip ip;

	if (conf_value_group(v, &ip) != 0)
		return wrong(f, v, err);
	memcpy(field_at(f, out), &ip, sizeof(ip));
	return 0;
}

static int
decode_bytes(const struct conf_field *f, const json_t *v, void *out, struct conf_errors *err)
{
	struct conf_bytes b = { NULL, 0 };
	int ret = conf_value_hex(v, &b);

	if (ret == -ENOMEM)
		return ret;
	if (ret != 0 || b.len < f->min || b.len > f->max) {
		free(b.data);
		return wrong(f, v, err);
	}
	memcpy(field_at(f, out), &b, sizeof(b));
	return 0;
}

static int
decode_sub(const struct conf_field *f, const json_t *v, void *out, struct conf_errors *err)
{
	return decode_object(f->sub, v, CONF_CREATE, field_at(f, out), err);
}

/* ---- arrays ----------------------------------------------------------------------------- */

typedef int (*decode_fn)(
	const struct conf_field *f, const json_t *v, void *out, struct conf_errors *err);

/** @param size bytes of an element in memory. @param one decodes it. */
static int
decode_array(const struct conf_field *f, const json_t *v, void *out, struct conf_errors *err,
	size_t size, decode_fn one)
{
	const size_t n = json_array_size(v);
	uint8_t *mem;
	int ret = 0;

	if (!json_is_array(v))
		return wrong(f, v, err);
	if (n < f->n_min || n > f->n_max) {
		conf_fault(
			err, NULL, "must have %u to %u elements, not %zu", f->n_min, f->n_max, n);
		return -EINVAL;
	}
	memcpy(&mem, field_at(f, out), sizeof(mem));
	free(mem); /* the default */
	mem = n != 0 ? calloc(n, size) : NULL;
	memcpy(field_at(f, out), &mem, sizeof(mem));
	*count_at(f, out) = mem != NULL ? (uint32_t)n : 0;
	if (mem == NULL)
		return n != 0 ? -ENOMEM : 0;
	for (size_t i = 0; i < n && ret != -ENOMEM; i++) {
		uint32_t mark = conf_enter_index(err, (uint32_t)i);
		int rc = one(f, json_array_get(v, i), mem + i * size, err);

		conf_leave(err, mark);
		if (rc != 0)
			ret = rc;
	}
	return ret;
}

static int
one_object(const struct conf_field *f, const json_t *v, void *at, struct conf_errors *err)
{
	return decode_object(f->sub, v, CONF_CREATE, at, err);
}

static int
one_string(const struct conf_field *f, const json_t *v, void *at, struct conf_errors *err)
{
	const struct conf_field one = { .type = CONF_T_STR, .min = f->min, .max = f->max };
	const char *text = json_string_value(v);
	char *copy;

	if (text == NULL || strlen(text) < f->min || strlen(text) > f->max)
		return wrong(&one, v, err);
	copy = strdup(text);
	memcpy(at, &copy, sizeof(copy));
	return copy != NULL ? 0 : -ENOMEM;
}

static int
one_number(const struct conf_field *f, const json_t *v, void *at, struct conf_errors *err)
{
	const struct conf_field one = { .type = CONF_T_U32, .min = f->min, .max = f->max };

	memset(at, 0xff, sizeof(uint32_t)); /* with a fault it is no number that anyone means */
	return decode_number(&one, v, at, err);
}

static int
decode_objects(const struct conf_field *f, const json_t *v, void *out, struct conf_errors *err)
{
	return decode_array(f, v, out, err, f->sub->size, one_object);
}

static int
decode_strings(const struct conf_field *f, const json_t *v, void *out, struct conf_errors *err)
{
	return decode_array(f, v, out, err, sizeof(char *), one_string);
}

static int
decode_numbers(const struct conf_field *f, const json_t *v, void *out, struct conf_errors *err)
{
	return decode_array(f, v, out, err, sizeof(uint32_t), one_number);
}

/* ---- others ----------------------------------------------------------------------------- */

static int
decode_json(const struct conf_field *f, const json_t *v, void *out, struct conf_errors *err)
{
	(void)err;
	memcpy(field_at(f, out), &v, sizeof(v));
	return 0;
}

static int
decode_custom(const struct conf_field *f, const json_t *v, void *out, struct conf_errors *err)
{
	if (!json_is_string(v) || f->custom->decode(json_string_value(v), out) != 0)
		return wrong(f, v, err);
	return 0;
}

static const decode_fn decoders[CONF_TYPES] = {
#define TYPE(name, bytes, decode, encode, allowed, text, fill, release) \
	[CONF_T_##name] = decode_##decode,
#include "tables/types.def"
#undef TYPE
};

/* Required rows that were left out. */
static int
decode_absent(
	const struct conf_table *t, const json_t *obj, enum conf_mode mode, struct conf_errors *err)
{
	int ret = 0;

	for (uint32_t i = 0; i < t->n_fields; i++) {
		const struct conf_field *f = &t->fields[i];
		char allowed[512];

		if (!conf_rows_in_mode(f, mode) || (f->flags & CONF_F_REQUIRED) == 0 ||
			json_object_get(obj, f->name) != NULL)
			continue;
		conf_fault(err, f->name, "is missing: it is required and must be %s",
			conf_rows_allowed(f, allowed, sizeof(allowed)));
		ret = -EINVAL;
	}
	return ret;
}

static int
decode_key(const struct conf_table *t, const char *key, const json_t *v, enum conf_mode mode,
	void *out, struct conf_errors *err)
{
	const struct conf_field *f = conf_rows_find(t, key, mode);
	uint32_t mark = conf_enter(err, key);
	int ret = -EINVAL;

	if (f == NULL) {
		conf_rows_unknown(t, key, mode, err);
	} else if (json_is_null(v) && (f->flags & CONF_F_NULL) != 0) {
		ret = 0;
	} else {
		set_given(t, f, out);
		ret = decoders[f->type](f, v, out, err);
	}
	conf_leave(err, mark);
	return ret;
}

static int
decode_object(const struct conf_table *t, const json_t *obj, enum conf_mode mode, void *out,
	struct conf_errors *err)
{
	const uint32_t errors = err->n_errors;
	const char *key;
	json_t *v;
	int ret = 0;

	if (mode == CONF_CREATE && !t->sparse && conf_rows_defaults(t, out) != 0)
		return -ENOMEM;
	if (json_is_string(obj) && t->shorthand != NULL) {
		const struct conf_field *f = conf_rows_find(t, t->shorthand, mode);

		set_given(t, f, out);
		return decoders[f->type](f, obj, out, err);
	}
	if (obj != NULL && !json_is_object(obj)) {
		char got[64];

		conf_fault(err, NULL, "must be an object (%s), not %s", t->name,
			conf_value_describe(obj, got, sizeof(got)));
		return -EINVAL;
	}
	/* jansson's iteration macro takes no const object, and changes nothing. */
	json_object_foreach ((json_t *)(uintptr_t)obj, key, v) {
		if (decode_key(t, key, v, mode, out, err) == -ENOMEM)
			return -ENOMEM;
		if (err->n_errors > CONF_ERRORS_MAX)
			return -EINVAL;
	}
	ret = decode_absent(t, obj, mode, err);
	if (t->check != NULL)
		t->check(out, mode, err);
	return err->n_errors != errors ? -EINVAL : ret;
}

int
conf_decode_keep(const struct conf_table *table, const json_t *obj, enum conf_mode mode, void *out,
	struct conf_errors *err)
{
	memset(out, 0, table->size);
	return decode_object(table, obj, mode, out, err);
}

int
conf_decode(const struct conf_table *table, const json_t *obj, enum conf_mode mode, void *out,
	struct conf_errors *err)
{
	int ret = conf_decode_keep(table, obj, mode, out, err);

	if (ret != 0)
		conf_release(table, out);
	return ret;
}
