/* SPDX-License-Identifier: BSD-3-Clause */
#include "conf_json.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "conf_json_value.h"
#include "rows.h"

typedef json_t *(*encode_fn)(const struct conf_field *f, const uint8_t *obj);

static json_t *
number(const struct conf_field *f, uint64_t n)
{
	return (f->flags & CONF_F_HEX) != 0 ? conf_json_hex(n) : conf_json_u64(n);
}

static json_t *
encode_number(const struct conf_field *f, const uint8_t *obj)
{
	return number(f, conf_rows_number(f, obj + f->offset));
}

static json_t *
encode_real(const struct conf_field *f, const uint8_t *obj)
{
	double real;

	memcpy(&real, obj + f->offset, sizeof(real));
	return json_real(real);
}

static json_t *
encode_bool(const struct conf_field *f, const uint8_t *obj)
{
	return json_boolean(conf_rows_number(f, obj + f->offset) != 0);
}

static json_t *
encode_string(const struct conf_field *f, const uint8_t *obj)
{
	return json_string((const char *)obj + f->offset);
}

static json_t *
encode_enum(const struct conf_field *f, const uint8_t *obj)
{
	const uint64_t n = conf_rows_number(f, obj + f->offset);

	return json_string(conf_name_of(f->names, (uint32_t)n));
}

json_t *
conf_json_flags(const struct conf_name *names, uint32_t bits)
{
	json_t *list = json_array();

	for (; list != NULL && names->name != NULL; names++) {
		if ((bits & names->value) != 0 &&
			json_array_append_new(list, json_string(names->name)) != 0)
			json_decrefp(&list);
	}
	return list;
}

static json_t *
encode_flags(const struct conf_field *f, const uint8_t *obj)
{
	return conf_json_flags(f->names, (uint32_t)conf_rows_number(f, obj + f->offset));
}

static json_t *
encode_mac(const struct conf_field *f, const uint8_t *obj)
{
	return conf_json_mac(obj + f->offset);
}

static json_t *
address(int family, const void *addr)
{
	char text[INET6_ADDRSTRLEN];

	return json_string(inet_ntop(family, addr, text, sizeof(text)));
}

static json_t *
encode_ipv4(const struct conf_field *f, const uint8_t *obj)
{
	return address(AF_INET, obj + f->offset);
}

static json_t *
encode_ipv6(const struct conf_field *f, const uint8_t *obj)
{
	return address(AF_INET6, obj + f->offset);
}

static json_t *
encode_ip(const struct conf_field *f, const uint8_t *obj)
{
	struct conf_ip ip;

	memcpy(&ip, obj + f->offset, sizeof(ip));
	if (ip.family == 0)
		return json_null();
	return address(ip.family == 4 ? AF_INET : AF_INET6, ip.addr);
}

static json_t *
encode_bytes(const struct conf_field *f, const uint8_t *obj)
{
	static const char digits[] = "0123456789abcdef";
	struct conf_bytes b;
	json_t *v;
	char *text;

	memcpy(&b, obj + f->offset, sizeof(b));
	text = malloc((size_t)b.len * 2 + 1);
	if (text == NULL)
		return NULL;
	for (uint32_t i = 0; i < b.len; i++) {
		text[2 * i] = digits[b.data[i] >> 4];
		text[2 * i + 1] = digits[b.data[i] & 15];
	}
	v = json_stringn(text, (size_t)b.len * 2);
	free(text);
	return v;
}

static json_t *
encode_sub(const struct conf_field *f, const uint8_t *obj)
{
	return conf_encode(f->sub, obj + f->offset);
}

static json_t *
encode_json(const struct conf_field *f, const uint8_t *obj)
{
	const json_t *any;

	memcpy(&any, obj + f->offset, sizeof(any));
	return json_deep_copy((json_t *)(uintptr_t)any);
}

static json_t *
encode_custom(const struct conf_field *f, const uint8_t *obj)
{
	char text[512];

	f->custom->encode(obj, text, sizeof(text));
	return json_string(text);
}

/* ---- arrays ----------------------------------------------------------------------------- */

static json_t *encode_field(const struct conf_field *f, const uint8_t *obj);

/** @param size bytes of an element in memory. @param one encodes it. */
static json_t *
encode_array(const struct conf_field *f, const uint8_t *obj, size_t size, encode_fn one)
{
	json_t *list = json_array();
	const uint8_t *mem;
	uint32_t n;

	memcpy(&mem, obj + f->offset, sizeof(mem));
	memcpy(&n, obj + f->n_offset, sizeof(n));
	for (uint32_t i = 0; list != NULL && i < n; i++) {
		if (json_array_append_new(list, one(f, mem + i * size)) != 0)
			json_decrefp(&list);
	}
	return list;
}

static json_t *
one_object(const struct conf_field *f, const uint8_t *at)
{
	if (f->sub->shorthand != NULL)
		return encode_field(conf_rows_find(f->sub, f->sub->shorthand, CONF_CREATE), at);
	return conf_encode(f->sub, at);
}

static json_t *
one_string(const struct conf_field *f, const uint8_t *at)
{
	const char *text;

	(void)f;
	memcpy(&text, at, sizeof(text));
	return json_string(text);
}

static json_t *
one_number(const struct conf_field *f, const uint8_t *at)
{
	uint32_t n;

	memcpy(&n, at, sizeof(n));
	return number(f, n);
}

static json_t *
encode_objects(const struct conf_field *f, const uint8_t *obj)
{
	return encode_array(f, obj, f->sub->size, one_object);
}

static json_t *
encode_strings(const struct conf_field *f, const uint8_t *obj)
{
	return encode_array(f, obj, sizeof(char *), one_string);
}

static json_t *
encode_numbers(const struct conf_field *f, const uint8_t *obj)
{
	return encode_array(f, obj, sizeof(uint32_t), one_number);
}

static json_t *
encode_field(const struct conf_field *f, const uint8_t *obj)
{
	static const encode_fn encoders[CONF_TYPES] = {
#define TYPE(name, bytes, decode, encode, allowed, text, fill, release) \
	[CONF_T_##name] = encode_##encode,
#include "tables/types.def"
#undef TYPE
	};

	return encoders[f->type](f, obj);
}

static bool
is_given(const struct conf_table *t, const struct conf_field *f, const uint8_t *obj)
{
	uint64_t given;

	if (f->given == 0 || t->given_offset == CONF_NO_GIVEN)
		return true;
	memcpy(&given, obj + t->given_offset, sizeof(given));
	return (given & f->given) != 0;
}

json_t *
conf_encode(const struct conf_table *table, const void *obj)
{
	json_t *out = json_object();

	for (uint32_t i = 0; out != NULL && i < table->n_fields; i++) {
		const struct conf_field *f = &table->fields[i];
		json_t *v;

		if (!conf_rows_in_mode(f, CONF_CREATE))
			continue;
		if ((f->flags & CONF_F_DEFAULT) != 0 && !table->sparse)
			v = encode_field(f, obj);
		else if (is_given(table, f, obj))
			v = encode_field(f, obj);
		else if ((f->flags & CONF_F_NULL) != 0)
			v = json_null();
		else
			continue;
		if (json_object_set_new(out, f->name, v) != 0)
			json_decrefp(&out);
	}
	if (out != NULL && table->hide != NULL)
		table->hide(obj, out);
	return out;
}
