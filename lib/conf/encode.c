/* SPDX-License-Identifier: BSD-3-Clause */
#include "conf_json.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "conf_json_value.h"
#include "rows.h"

static uint64_t
number_at(const struct conf_field *f, const uint8_t *at)
{
	uint16_t n16;
	uint32_t n32;
	uint64_t n64;

	switch ((enum conf_type)f->type) {
	case CONF_T_U8:
		return *at;
	case CONF_T_U16:
		memcpy(&n16, at, sizeof(n16));
		return n16;
	case CONF_T_U64:
	case CONF_T_SIZE64:
		memcpy(&n64, at, sizeof(n64));
		return n64;
	default:
		memcpy(&n32, at, sizeof(n32));
		return n32;
	}
}

static json_t *
encode_number(const struct conf_field *f, const uint8_t *at)
{
	const uint64_t n = number_at(f, at);

	return (f->flags & CONF_F_HEX) != 0 ? conf_json_hex(n) : conf_json_u64(n);
}

static json_t *
encode_flags(const struct conf_field *f, const uint8_t *at)
{
	const uint64_t bits = number_at(f, at);
	json_t *list = json_array();

	for (const struct conf_name *e = f->names; list != NULL && e->name != NULL; e++) {
		if ((bits & e->value) != 0 &&
			json_array_append_new(list, json_string(e->name)) != 0)
			json_decrefp(&list);
	}
	return list;
}

static json_t *
encode_address(int family, const void *addr)
{
	char text[INET6_ADDRSTRLEN];

	return json_string(inet_ntop(family, addr, text, sizeof(text)));
}

static json_t *
encode_ip(const uint8_t *at)
{
	struct conf_ip ip;

	memcpy(&ip, at, sizeof(ip));
	if (ip.family == 0)
		return json_null();
	return encode_address(ip.family == 4 ? AF_INET : AF_INET6, ip.addr);
}

static json_t *
encode_bytes(const uint8_t *at)
{
	static const char digits[] = "0123456789abcdef";
	struct conf_bytes b;
	json_t *v;
	char *text;

	memcpy(&b, at, sizeof(b));
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

static json_t *encode_field(const struct conf_field *f, const uint8_t *obj);

static json_t *
encode_element(const struct conf_field *f, const uint8_t *at)
{
	const struct conf_field number = { .type = CONF_T_U32 };
	const char *text;

	if (f->type == CONF_T_NUMBERS)
		return encode_number(&number, at);
	if (f->type == CONF_T_STRINGS) {
		memcpy(&text, at, sizeof(text));
		return json_string(text);
	}
	if (f->sub->shorthand != NULL)
		return encode_field(conf_rows_find(f->sub, f->sub->shorthand, CONF_CREATE), at);
	return conf_encode(f->sub, at);
}

static json_t *
encode_array(const struct conf_field *f, const uint8_t *obj)
{
	const size_t plain = f->type == CONF_T_STRINGS ? sizeof(char *) : sizeof(uint32_t);
	const size_t size = f->type == CONF_T_ARRAY ? f->sub->size : plain;
	json_t *list = json_array();
	const uint8_t *mem;
	uint32_t n;

	memcpy(&mem, obj + f->offset, sizeof(mem));
	memcpy(&n, obj + f->n_offset, sizeof(n));
	for (uint32_t i = 0; list != NULL && i < n; i++) {
		if (json_array_append_new(list, encode_element(f, mem + i * size)) != 0)
			json_decrefp(&list);
	}
	return list;
}

static json_t *
encode_field(const struct conf_field *f, const uint8_t *obj)
{
	const uint8_t *at = obj + f->offset;
	const json_t *any;
	double real;
	char text[128];

	switch ((enum conf_type)f->type) {
	case CONF_T_U8:
	case CONF_T_U16:
	case CONF_T_U32:
	case CONF_T_U64:
	case CONF_T_SIZE32:
	case CONF_T_SIZE64:
	case CONF_T_PICK:
		return encode_number(f, at);
	case CONF_T_REAL:
		memcpy(&real, at, sizeof(real));
		return json_real(real);
	case CONF_T_BOOL:
		return json_boolean(*(const bool *)at);
	case CONF_T_NAME:
	case CONF_T_STR:
		return json_string((const char *)at);
	case CONF_T_ENUM:
		return json_string(conf_name_of(f->names, (uint32_t)number_at(f, at)));
	case CONF_T_FLAGS:
		return encode_flags(f, at);
	case CONF_T_MAC:
		return conf_json_mac(at);
	case CONF_T_IPV4:
		return encode_address(AF_INET, at);
	case CONF_T_IPV6:
		return encode_address(AF_INET6, at);
	case CONF_T_IP:
		return encode_ip(at);
	case CONF_T_HEX:
		return encode_bytes(at);
	case CONF_T_OBJECT:
		return conf_encode(f->sub, at);
	case CONF_T_ARRAY:
	case CONF_T_STRINGS:
	case CONF_T_NUMBERS:
		return encode_array(f, obj);
	case CONF_T_JSON:
		memcpy(&any, at, sizeof(any));
		return json_deep_copy((json_t *)(uintptr_t)any);
	case CONF_T_CUSTOM:
		f->custom->encode(obj, text, sizeof(text));
		return json_string(text);
	}
	return NULL;
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
