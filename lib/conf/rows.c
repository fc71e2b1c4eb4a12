/* SPDX-License-Identifier: BSD-3-Clause */
#include "rows.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool
conf_rows_in_mode(const struct conf_field *f, enum conf_mode mode)
{
	return (f->flags & (mode == CONF_CREATE ? CONF_F_MODIFY : CONF_F_CREATE)) == 0;
}

const struct conf_field *
conf_rows_find(const struct conf_table *t, const char *key, enum conf_mode mode)
{
	for (uint32_t i = 0; i < t->n_fields; i++) {
		if (strcmp(t->fields[i].name, key) == 0 && conf_rows_in_mode(&t->fields[i], mode))
			return &t->fields[i];
	}
	return NULL;
}

const char *
conf_name_of(const struct conf_name *names, uint32_t value)
{
	for (; names->name != NULL; names++) {
		if (names->value == value)
			return names->name;
	}
	return NULL;
}

void
conf_rows_store(const struct conf_field *f, void *at, uint64_t n)
{
	const uint8_t n8 = (uint8_t)n;
	const uint16_t n16 = (uint16_t)n;
	const uint32_t n32 = (uint32_t)n;
	const double real = (double)n;

	switch ((enum conf_type)f->type) {
	case CONF_T_U8:
		memcpy(at, &n8, sizeof(n8));
		break;
	case CONF_T_U16:
		memcpy(at, &n16, sizeof(n16));
		break;
	case CONF_T_U64:
	case CONF_T_SIZE64:
		memcpy(at, &n, sizeof(n));
		break;
	case CONF_T_REAL:
		memcpy(at, &real, sizeof(real));
		break;
	default:
		memcpy(at, &n32, sizeof(n32));
		break;
	}
}

static int
default_numbers(const struct conf_field *f, uint8_t *out)
{
	const uint32_t n = 1;
	uint32_t *one;

	memcpy(&one, out + f->offset, sizeof(one));
	if (one != NULL)
		return 0; /* filled in with the object around */
	one = malloc(sizeof(*one));
	if (one == NULL)
		return -ENOMEM;
	*one = (uint32_t)f->def;
	memcpy(out + f->offset, &one, sizeof(one));
	memcpy(out + f->n_offset, &n, sizeof(n));
	return 0;
}

int
conf_rows_defaults(const struct conf_table *t, void *out)
{
	int ret = 0;

	for (uint32_t i = 0; i < t->n_fields && ret == 0; i++) {
		const struct conf_field *f = &t->fields[i];
		uint8_t *at = (uint8_t *)out + f->offset;

		/* A required row's `def` stands in for a value that has a fault. */
		if ((f->flags & (CONF_F_DEFAULT | CONF_F_REQUIRED)) == 0 ||
			((f->flags & CONF_F_REQUIRED) != 0 && f->def == 0))
			continue;
		if (f->type == CONF_T_OBJECT)
			ret = conf_rows_defaults(f->sub, at);
		else if (f->type == CONF_T_NUMBERS)
			ret = default_numbers(f, out);
		else if (f->type == CONF_T_CUSTOM)
			ret = f->custom->decode(f->def_str, out);
		else if (f->type == CONF_T_STR)
			memcpy(at, f->def_str, strlen(f->def_str) + 1);
		else if (f->type == CONF_T_BOOL)
			*(bool *)at = f->def != 0;
		else
			conf_rows_store(f, at, f->def);
	}
	return ret;
}

static void
release_field(const struct conf_field *f, uint8_t *out)
{
	uint8_t *mem;
	uint32_t n;

	if (f->type == CONF_T_OBJECT) {
		conf_release(f->sub, out + f->offset);
		return;
	}
	if (f->type < CONF_T_HEX || f->type > CONF_T_NUMBERS)
		return;
	/* Every allocating row starts with its pointer. */
	memcpy(&mem, out + f->offset, sizeof(mem));
	if (mem == NULL)
		return;
	memcpy(&n, out + f->n_offset, sizeof(n));
	for (uint32_t i = 0; i < n && f->type == CONF_T_ARRAY; i++)
		conf_release(f->sub, mem + (size_t)i * f->sub->size);
	for (uint32_t i = 0; i < n && f->type == CONF_T_STRINGS; i++) {
		char *text;

		memcpy(&text, mem + i * sizeof(text), sizeof(text));
		free(text);
	}
	free(mem);
}

void
conf_release(const struct conf_table *table, void *out)
{
	for (uint32_t i = 0; i < table->n_fields; i++)
		release_field(&table->fields[i], out);
	memset(out, 0, table->size);
}

/* ---- messages --------------------------------------------------------------------------- */

static void PRINTF(3, 4) append(char *buf, size_t room, const char *fmt, ...)
{
	size_t len = strlen(buf);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(buf + len, room - len, fmt, ap);
	va_end(ap);
}

static void
allowed_names(const struct conf_field *f, char *buf, size_t room)
{
	const char *quote = f->type == CONF_T_PICK ? "" : "\"";

	for (const struct conf_name *e = f->names; e->name != NULL; e++) {
		const char *between = e[1].name == NULL ? " or " : ", ";

		append(buf, room, "%s%s%s%s", e == f->names ? "" : between, quote, e->name, quote);
	}
}

static void
allowed_number(const struct conf_field *f, char *buf, size_t room)
{
	const bool size = f->type == CONF_T_SIZE32 || f->type == CONF_T_SIZE64;

	append(buf, room, "%s from %" PRIu64 " to ", size ? "a size" : "a number", f->min);
	if (f->max == UINT64_MAX)
		append(buf, room, "0x%" PRIx64, f->max);
	else if (f->max >= 65535 && !size)
		append(buf, room, "%" PRIu64 " (0x%" PRIx64 ")", f->max, f->max);
	else
		append(buf, room, "%" PRIu64, f->max);
	if (size)
		append(buf, room, " bytes (as 4096, \"0x1000\", \"64K\", \"16M\" or \"1G\")");
}

static void
allowed_ip(const struct conf_field *f, char *buf, size_t room)
{
	const bool no4 = f->type == CONF_T_IPV6 || (f->type == CONF_T_IP && f->min > 4);
	const bool no6 = f->type == CONF_T_IPV4 || (f->type == CONF_T_IP && f->max < 6);

	append(buf, room, "a unicast %s address as a string",
		no4   ? "IPv6"
		: no6 ? "IPv4"
		      : "IPv4 or IPv6");
}

static void
allowed_plain(const struct conf_field *f, char *buf, size_t room)
{
	switch ((enum conf_type)f->type) {
	case CONF_T_REAL:
		append(buf, room, "a number from %" PRIu64 ".0 to %" PRIu64 ".0", f->min, f->max);
		break;
	case CONF_T_BOOL:
		append(buf, room, "true or false");
		break;
	case CONF_T_NAME:
		append(buf, room, "a name of 1 to 63 printing ASCII characters without blanks");
		break;
	case CONF_T_STR:
		append(buf, room, "a string of %" PRIu64 " to %" PRIu64 " bytes", f->min, f->max);
		break;
	case CONF_T_MAC:
		append(buf, room, "a unicast MAC address like \"02:00:00:00:00:01\"");
		break;
	case CONF_T_HEX:
		append(buf, room,
			"a string of hex digits, two for each of %" PRIu64 " to %" PRIu64 " bytes",
			f->min, f->max);
		break;
	case CONF_T_OBJECT:
		append(buf, room, "an object");
		break;
	case CONF_T_CUSTOM:
		append(buf, room, "%s", f->custom->what);
		break;
	case CONF_T_JSON:
		append(buf, room, "a value");
		break;
	default:
		append(buf, room, "an array");
		break;
	}
}

const char *
conf_rows_allowed(const struct conf_field *f, char *buf, size_t room)
{
	buf[0] = '\0';
	switch ((enum conf_type)f->type) {
	case CONF_T_U8:
	case CONF_T_U16:
	case CONF_T_U32:
	case CONF_T_U64:
	case CONF_T_SIZE32:
	case CONF_T_SIZE64:
		allowed_number(f, buf, room);
		break;
	case CONF_T_FLAGS:
		append(buf, room, "an array of ");
		__attribute__((fallthrough));
	case CONF_T_ENUM:
	case CONF_T_PICK:
		allowed_names(f, buf, room);
		break;
	case CONF_T_IPV4:
	case CONF_T_IPV6:
	case CONF_T_IP:
		allowed_ip(f, buf, room);
		break;
	default:
		allowed_plain(f, buf, room);
		break;
	}
	if ((f->flags & CONF_F_NULL) != 0)
		append(buf, room, ", or null");
	return buf;
}

#define KEY_MAX 32

/* Edits that turn one key into the other; KEY_MAX when one is too long to be a slip. */
static uint32_t
key_distance(const char *a, const char *b)
{
	uint32_t row[KEY_MAX + 1];
	const size_t len_b = strlen(b);

	if (strnlen(a, KEY_MAX) == KEY_MAX || len_b >= KEY_MAX)
		return KEY_MAX;
	for (uint32_t j = 0; j <= len_b; j++)
		row[j] = j;
	for (uint32_t i = 1; a[i - 1] != '\0'; i++) {
		uint32_t diagonal = row[0];

		row[0] = i;
		for (uint32_t j = 1; j <= len_b; j++) {
			uint32_t best = diagonal + (a[i - 1] != b[j - 1] ? 1 : 0);

			diagonal = row[j];
			best = best < row[j] + 1 ? best : row[j] + 1;
			row[j] = best < row[j - 1] + 1 ? best : row[j - 1] + 1;
		}
	}
	return row[len_b];
}

void
conf_rows_unknown(
	const struct conf_table *t, const char *key, enum conf_mode mode, struct conf_errors *err)
{
	const char *nearest = NULL;
	uint32_t best = strlen(key) < 6 ? 3 : 4; /* fewer edits than this are a slip */
	char list[700] = "";

	if (conf_rows_find(t, key, mode == CONF_CREATE ? CONF_MODIFY : CONF_CREATE) != NULL) {
		conf_fault(err, NULL,
			mode == CONF_CREATE ? "belongs in a modify only"
					    : "cannot be changed by a modify");
		return;
	}
	for (uint32_t i = 0; i < t->n_fields; i++) {
		const struct conf_field *f = &t->fields[i];
		uint32_t d = conf_rows_in_mode(f, mode) ? key_distance(key, f->name) : KEY_MAX;

		if (d < best) {
			best = d;
			nearest = f->name;
		}
		if (conf_rows_in_mode(f, mode))
			append(list, sizeof(list), "%s%s", list[0] != '\0' ? ", " : "", f->name);
	}
	if (nearest != NULL)
		conf_fault(err, NULL, "unknown key: did you mean \"%s\"? Allowed here: %s", nearest,
			list);
	else
		conf_fault(err, NULL, "unknown key; allowed here: %s", list);
}
