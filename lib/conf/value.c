/* SPDX-License-Identifier: BSD-3-Clause */
#include "value.h"
#include "conf_mcast.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "errors.h"

static int
hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

static int
text_hex_u64(const char *s, uint64_t *out)
{
	uint64_t v = 0;

	if (*s == '\0')
		return -EINVAL;
	for (; *s != '\0'; s++) {
		int d = hex_digit(*s);

		if (d < 0 || v >> 60 != 0)
			return -EINVAL;
		v = v << 4 | (uint64_t)d;
	}
	*out = v;
	return 0;
}

static int
text_size(const char *s, uint64_t *out)
{
	static const struct {
		char suffix;
		unsigned int shift;
	} units[] = { { '\0', 0 }, { 'K', 10 }, { 'M', 20 }, { 'G', 30 } };
	uint64_t v = 0;

	if (hex_digit(*s) < 0 || hex_digit(*s) > 9)
		return -EINVAL;
	for (; *s >= '0' && *s <= '9'; s++) {
		if (v > (UINT64_MAX - 9) / 10)
			return -EINVAL;
		v = v * 10 + (uint64_t)(*s - '0');
	}
	for (size_t i = 0; i < ARRAY_LEN(units); i++) {
		if (units[i].suffix != s[0] || (s[0] != '\0' && s[1] != '\0'))
			continue;
		if (v > UINT64_MAX >> units[i].shift)
			return -EINVAL;
		*out = v << units[i].shift;
		return 0;
	}
	return -EINVAL;
}

int
conf_value_u64(const json_t *v, bool size, uint64_t *out)
{
	const char *s;

	if (json_is_integer(v)) {
		if (json_integer_value(v) < 0)
			return -EINVAL;
		*out = (uint64_t)json_integer_value(v);
		return 0;
	}
	if (!json_is_string(v))
		return -EINVAL;
	s = json_string_value(v);
	if (s[0] == '0' && (s[1] == 'x' || s[1] == 'X'))
		return text_hex_u64(s + 2, out);
	return size ? text_size(s, out) : -EINVAL;
}

int
conf_value_mac(const json_t *v, uint8_t mac[6])
{
	const char *s = json_string_value(v);
	uint8_t any = 0;

	if (s == NULL || strlen(s) != 17)
		return -EINVAL;
	for (int i = 0; i < 6; i++, s += 3) {
		int hi = hex_digit(s[0]);
		int lo = hex_digit(s[1]);

		if (hi < 0 || lo < 0 || s[2] != (i == 5 ? '\0' : ':'))
			return -EINVAL;
		mac[i] = (uint8_t)(hi << 4 | lo);
		any |= mac[i];
	}
	return any == 0 || (mac[0] & 1) != 0 ? -EINVAL : 0;
}

bool
conf_ip_is_unicast(const struct conf_ip *ip)
{
	static const uint8_t unspecified[16];
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };

	if (ip->family == 4)
		return ip->addr[0] != 0 && ip->addr[0] < 224;
	return ip->addr[0] != 0xff && memcmp(ip->addr, unspecified, 16) != 0 &&
	       memcmp(ip->addr, mapped, 12) != 0;
}

bool
conf_ip_is_group(const struct conf_ip *ip)
{
	return ip->family == 4 ? ip->addr[0] >> 4 == 0xe : ip->addr[0] == 0xff;
}

static int
address(const json_t *v, uint64_t min, uint64_t max, struct conf_ip *out)
{
	const char *s = json_string_value(v);

	memset(out, 0, sizeof(*out));
	if (s == NULL)
		return -EINVAL;
	if (min <= 4 && inet_pton(AF_INET, s, out->addr) == 1)
		out->family = 4;
	else if (max >= 6 && inet_pton(AF_INET6, s, out->addr) == 1)
		out->family = 6;
	else
		return -EINVAL;
	return 0;
}

int
conf_value_ip(const json_t *v, uint64_t min, uint64_t max, struct conf_ip *out)
{
	return address(v, min, max, out) == 0 && conf_ip_is_unicast(out) ? 0 : -EINVAL;
}

int
conf_value_group(const json_t *v, struct conf_ip *out)
{
	return address(v, 4, 6, out) == 0 && conf_ip_is_group(out) ? 0 : -EINVAL;
}

bool
conf_value_is_name(const json_t *v)
{
	const char *s = json_string_value(v);
	size_t n = 0;

	if (s == NULL)
		return false;
	for (; s[n] != '\0' && n < CONF_NAME_MAX; n++) {
		if (s[n] <= ' ' || s[n] > '~')
			return false;
	}
	return n > 0 && n < CONF_NAME_MAX;
}

int
conf_value_hex(const json_t *v, struct conf_bytes *out)
{
	const char *s = json_string_value(v);
	size_t len = s != NULL ? strlen(s) : 1;
	uint8_t *data;

	if (len % 2 != 0 || len / 2 > UINT32_MAX)
		return -EINVAL;
	data = malloc(len / 2 + 1);
	if (data == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < len / 2; i++) {
		int hi = hex_digit(s[2 * i]);
		int lo = hex_digit(s[2 * i + 1]);

		if (hi < 0 || lo < 0) {
			free(data);
			return -EINVAL;
		}
		data[i] = (uint8_t)(hi << 4 | lo);
	}
	*out = (struct conf_bytes){ data, (uint32_t)(len / 2) };
	return 0;
}

/* As it may stand in a file: 16.0 is not 16, and 1.0000001 is not 1. */
static void
describe_real(const json_t *v, char *buf, size_t room)
{
	static const size_t digits[] = { 6, 15, 17 };

	for (size_t i = 0; i < ARRAY_LEN(digits); i++) {
		const size_t n = json_dumpb(
			v, buf, room - 1, JSON_ENCODE_ANY | JSON_REAL_PRECISION(digits[i]));

		buf[n < room ? n : room - 1] = '\0';
		if (strtod(buf, NULL) == json_real_value(v))
			return;
	}
}

const char *
conf_value_describe(const json_t *v, char *buf, size_t room)
{
	static const char more[] = "...\"";

	switch (v == NULL ? JSON_NULL : json_typeof(v)) {
	case JSON_OBJECT:
		snprintf(buf, room, "an object");
		break;
	case JSON_ARRAY:
		snprintf(buf, room, "an array");
		break;
	case JSON_STRING:
		if (snprintf(buf, room, "\"%s\"", json_string_value(v)) >= (int)room) {
			size_t cut = conf_errors_utf8_cut(buf, room - sizeof(more));

			memcpy(buf + cut, more, sizeof(more));
		}
		break;
	case JSON_INTEGER:
		snprintf(buf, room, "%" JSON_INTEGER_FORMAT, json_integer_value(v));
		break;
	case JSON_REAL:
		describe_real(v, buf, room);
		break;
	case JSON_TRUE:
		snprintf(buf, room, "true");
		break;
	case JSON_FALSE:
		snprintf(buf, room, "false");
		break;
	case JSON_NULL:
		snprintf(buf, room, "null");
		break;
	}
	return buf;
}
