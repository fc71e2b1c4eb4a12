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
decode_number(const struct conf_field *f, const json_t *v, void *at, struct conf_errors *err)
{
	const bool size = f->type == CONF_T_SIZE32 || f->type == CONF_T_SIZE64;
	uint64_t n;

	if (conf_value_u64(v, size, &n) != 0 || n < f->min || n > f->max)
		return wrong(f, v, err);
	conf_rows_store(f, at, n);
	return 0;
}

static int
decode_real(const struct conf_field *f, const json_t *v, void *at, struct conf_errors *err)
{
	const double x = json_number_value(v);

	if (!json_is_number(v) || x < (double)f->min || x > (double)f->max)
		return wrong(f, v, err);
	memcpy(at, &x, sizeof(x));
	return 0;
}

static int
decode_pick(const struct conf_field *f, const json_t *v, void *at, struct conf_errors *err)
{
	const char *text = json_string_value(v);
	uint64_t n = 0;

	if (f->type == CONF_T_PICK && conf_value_u64(v, false, &n) != 0)
		return wrong(f, v, err);
	for (const struct conf_name *e = f->names; e->name != NULL; e++) {
		if (f->type == CONF_T_PICK ? e->value == n
					   : text != NULL && strcmp(e->name, text) == 0) {
			memcpy(at, &e->value, sizeof(e->value));
			return 0;
		}
	}
	return wrong(f, v, err);
}

static int
decode_flags(const struct conf_field *f, const json_t *v, void *at, struct conf_errors *err)
{
	const struct conf_field one = { .type = CONF_T_ENUM, .names = f->names };
	uint32_t bits = 0;
	int ret = 0;

	if (!json_is_array(v))
		return wrong(f, v, err);
	for (size_t i = 0; i < json_array_size(v); i++) {
		uint32_t mark = conf_enter_index(err, (uint32_t)i);
		uint32_t bit = 0;

		if (decode_pick(&one, json_array_get(v, i), &bit, err) != 0)
			ret = -EINVAL;
		bits |= bit;
		conf_leave(err, mark);
		if (err->n_errors > CONF_ERRORS_MAX)
			break; /* nobody reads more */
	}
	if (ret == 0)
		memcpy(at, &bits, sizeof(bits));
	return ret;
}

static int
decode_text(const struct conf_field *f, const json_t *v, void *at, struct conf_errors *err)
{
	const char *text = json_string_value(v);
	size_t len = text != NULL ? strlen(text) : 0;

	if (text == NULL || (f->type == CONF_T_NAME && !conf_value_is_name(v)))
		return wrong(f, v, err);
	if (f->type == CONF_T_STR && (len < f->min || len > f->max))
		return wrong(f, v, err);
	memcpy(at, text, len + 1);
	return 0;
}

static int
decode_address(const struct conf_field *f, const json_t *v, void *at, struct conf_errors *err)
{
	const bool only6 = f->type == CONF_T_IPV6;
	const bool only4 = f->type == CONF_T_IPV4;
	struct conf_ip ip;
	uint8_t mac[6];

	if (f->type == CONF_T_MAC) {
		if (conf_value_mac(v, mac) != 0)
			return wrong(f, v, err);
		memcpy(at, mac, sizeof(mac));
		return 0;
	}
	if (conf_value_ip(v,
		    only6   ? 6
		    : only4 ? 4
			    : f->min,
		    only4   ? 4
		    : only6 ? 6
			    : f->max,
		    &ip) != 0)
		return wrong(f, v, err);
	if (f->type == CONF_T_IP)
		memcpy(at, &ip, sizeof(ip));
	else
		memcpy(at, ip.addr, only4 ? 4 : 16);
	return 0;
}

/* Bytes of one element in memory. */
static size_t
element_size(const struct conf_field *f)
{
	if (f->type == CONF_T_ARRAY)
		return f->sub->size;
	return f->type == CONF_T_STRINGS ? sizeof(char *) : sizeof(uint32_t);
}

static int
decode_string_element(
	const struct conf_field *f, const json_t *v, char **at, struct conf_errors *err)
{
	const struct conf_field one = { .type = CONF_T_STR, .min = f->min, .max = f->max };
	const char *text = json_string_value(v);

	if (text == NULL || strlen(text) < f->min || strlen(text) > f->max)
		return wrong(&one, v, err);
	*at = strdup(text);
	return *at != NULL ? 0 : -ENOMEM;
}

static int
decode_element(const struct conf_field *f, const json_t *v, void *at, struct conf_errors *err)
{
	const struct conf_field one = { .type = CONF_T_U32, .min = f->min, .max = f->max };

	if (f->type == CONF_T_ARRAY)
		return decode_object(f->sub, v, CONF_CREATE, at, err);
	if (f->type == CONF_T_STRINGS)
		return decode_string_element(f, v, at, err);
	return decode_number(&one, v, at, err);
}

static int
decode_array(const struct conf_field *f, const json_t *v, void *out, struct conf_errors *err)
{
	const size_t n = json_array_size(v);
	const size_t size = element_size(f);
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
	if (f->type == CONF_T_NUMBERS)
		memset(mem, 0xff, n * size); /* what has a fault is no number that anyone means */
	for (size_t i = 0; i < n && ret != -ENOMEM; i++) {
		uint32_t mark = conf_enter_index(err, (uint32_t)i);
		int one = decode_element(f, json_array_get(v, i), mem + i * size, err);

		conf_leave(err, mark);
		if (one != 0)
			ret = one;
	}
	return ret;
}

static int
decode_custom(const struct conf_field *f, const json_t *v, void *out, struct conf_errors *err)
{
	if (!json_is_string(v) || f->custom->decode(json_string_value(v), out) != 0)
		return wrong(f, v, err);
	return 0;
}

static int
decode_bytes(const struct conf_field *f, const json_t *v, void *at, struct conf_errors *err)
{
	struct conf_bytes b = { NULL, 0 };
	int ret = conf_value_hex(v, &b);

	if (ret == -ENOMEM)
		return ret;
	if (ret != 0 || b.len < f->min || b.len > f->max) {
		free(b.data);
		return wrong(f, v, err);
	}
	memcpy(at, &b, sizeof(b));
	return 0;
}

static int
decode_field(const struct conf_field *f, const json_t *v, void *out, struct conf_errors *err)
{
	void *at = field_at(f, out);

	switch ((enum conf_type)f->type) {
	case CONF_T_U8:
	case CONF_T_U16:
	case CONF_T_U32:
	case CONF_T_U64:
	case CONF_T_SIZE32:
	case CONF_T_SIZE64:
		return decode_number(f, v, at, err);
	case CONF_T_REAL:
		return decode_real(f, v, at, err);
	case CONF_T_BOOL:
		if (!json_is_boolean(v))
			return wrong(f, v, err);
		*(bool *)at = json_is_true(v);
		return 0;
	case CONF_T_NAME:
	case CONF_T_STR:
		return decode_text(f, v, at, err);
	case CONF_T_ENUM:
	case CONF_T_PICK:
		return decode_pick(f, v, at, err);
	case CONF_T_FLAGS:
		return decode_flags(f, v, at, err);
	case CONF_T_MAC:
	case CONF_T_IPV4:
	case CONF_T_IPV6:
	case CONF_T_IP:
		return decode_address(f, v, at, err);
	case CONF_T_HEX:
		return decode_bytes(f, v, at, err);
	case CONF_T_OBJECT:
		return decode_object(f->sub, v, CONF_CREATE, at, err);
	case CONF_T_ARRAY:
	case CONF_T_STRINGS:
	case CONF_T_NUMBERS:
		return decode_array(f, v, out, err);
	case CONF_T_JSON:
		memcpy(at, &v, sizeof(v));
		return 0;
	case CONF_T_CUSTOM:
		return decode_custom(f, v, out, err);
	}
	return -EINVAL;
}

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
		ret = decode_field(f, v, out, err);
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
		return decode_field(f, obj, out, err);
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
