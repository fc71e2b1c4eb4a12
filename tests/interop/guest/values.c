/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "peer.h"

uint64_t
value_number(json_t *params, const char *key, uint64_t fallback)
{
	json_t *v = json_object_get(params, key);

	if (json_is_string(v))
		return strtoull(json_string_value(v), NULL, 0);
	return json_is_integer(v) ? (uint64_t)json_integer_value(v) : fallback;
}

const char *
value_text(json_t *params, const char *key)
{
	const char *s = json_string_value(json_object_get(params, key));

	return s == NULL ? "" : s;
}

int
value_word(const struct word *table, const char *name)
{
	for (; table->name != NULL; table++) {
		if (strcmp(table->name, name) == 0)
			return table->value;
	}
	return -1;
}

int
value_flags(const struct word *table, json_t *array)
{
	int flags = 0;
	size_t i;
	json_t *v;

	json_array_foreach (array, i, v) {
		int flag = value_word(table, json_is_string(v) ? json_string_value(v) : "");

		if (flag > 0)
			flags |= flag;
	}
	return flags;
}

const char *
value_name(const struct word *table, int value)
{
	for (; table->name != NULL; table++) {
		if (table->value == value)
			return table->name;
	}
	return "?";
}

static int
digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

size_t
value_hex(const char *hex, uint8_t *out, size_t max)
{
	size_t n = 0;

	while (n < max && digit(hex[0]) >= 0 && digit(hex[1]) >= 0) {
		out[n++] = (uint8_t)(digit(hex[0]) << 4 | digit(hex[1]));
		hex += 2;
	}
	return n;
}

json_t *
value_json_hex(uint64_t v)
{
	char text[32];

	snprintf(text, sizeof(text), "0x%llx", (unsigned long long)v);
	return json_string(text);
}

uint32_t
value_crc32(const uint8_t *data, size_t length)
{
	static uint32_t table[256];
	uint32_t crc = UINT32_MAX;

	for (uint32_t i = 0; table[255] == 0 && i < 256; i++) {
		uint32_t c = i;

		for (int k = 0; k < 8; k++)
			c = (c & 1) != 0 ? c >> 1 ^ 0xedb88320U : c >> 1;
		table[i] = c;
	}
	for (size_t i = 0; i < length; i++)
		crc = crc >> 8 ^ table[(crc ^ data[i]) & 255];
	return ~crc;
}
