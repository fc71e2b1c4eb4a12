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

/* ---- in memory -------------------------------------------------------------------------- */

static const uint8_t widths[CONF_TYPES] = {
#define TYPE(name, bytes, decode, encode, allowed, text, fill, release) [CONF_T_##name] = (bytes),
#include "tables/types.def"
#undef TYPE
};

void
conf_rows_store(const struct conf_field *f, void *at, uint64_t n)
{
	const uint8_t n8 = (uint8_t)n;
	const uint16_t n16 = (uint16_t)n;
	const uint32_t n32 = (uint32_t)n;

	switch (widths[f->type]) {
	case sizeof(n8):
		memcpy(at, &n8, sizeof(n8));
		break;
	case sizeof(n16):
		memcpy(at, &n16, sizeof(n16));
		break;
	case sizeof(n32):
		memcpy(at, &n32, sizeof(n32));
		break;
	default:
		memcpy(at, &n, sizeof(n));
		break;
	}
}

uint64_t
conf_rows_number(const struct conf_field *f, const void *at)
{
	uint64_t n = 0;

	/* Little-endian, as everything here. */
	memcpy(&n, at, widths[f->type]);
	return n;
}

/* ---- defaults --------------------------------------------------------------------------- */

static int
fill_nothing(const struct conf_field *f, uint8_t *out)
{
	(void)f;
	(void)out;
	return 0;
}

static int
fill_number(const struct conf_field *f, uint8_t *out)
{
	conf_rows_store(f, out + f->offset, f->def);
	return 0;
}

static int
fill_real(const struct conf_field *f, uint8_t *out)
{
	const double real = (double)f->def;

	memcpy(out + f->offset, &real, sizeof(real));
	return 0;
}

static int
fill_string(const struct conf_field *f, uint8_t *out)
{
	memcpy(out + f->offset, f->def_str, strlen(f->def_str) + 1);
	return 0;
}

static int
fill_custom(const struct conf_field *f, uint8_t *out)
{
	return f->custom->decode(f->def_str, out);
}

static int
fill_sub(const struct conf_field *f, uint8_t *out)
{
	return conf_rows_defaults(f->sub, out + f->offset);
}

static int
fill_numbers(const struct conf_field *f, uint8_t *out)
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
	static int (*const fillers[CONF_TYPES])(const struct conf_field *f, uint8_t *out) = {
#define TYPE(name, bytes, decode, encode, allowed, text, fill, release) \
	[CONF_T_##name] = fill_##fill,
#include "tables/types.def"
#undef TYPE
	};
	int ret = 0;

	for (uint32_t i = 0; i < t->n_fields && ret == 0; i++) {
		const struct conf_field *f = &t->fields[i];

		/* A required row's `def` stands in for a value that has a fault. */
		if ((f->flags & (CONF_F_DEFAULT | CONF_F_REQUIRED)) == 0 ||
			((f->flags & CONF_F_REQUIRED) != 0 && f->def == 0))
			continue;
		ret = fillers[f->type](f, out);
	}
	return ret;
}

/* ---- the end ---------------------------------------------------------------------------- */

static void
release_nothing(const struct conf_field *f, uint8_t *out)
{
	(void)f;
	(void)out;
}

/* Every allocating row starts with its pointer. */
static void
release_memory(const struct conf_field *f, uint8_t *out)
{
	uint8_t *mem;

	memcpy(&mem, out + f->offset, sizeof(mem));
	free(mem);
}

static void
release_sub(const struct conf_field *f, uint8_t *out)
{
	conf_release(f->sub, out + f->offset);
}

static uint32_t
elements(const struct conf_field *f, const uint8_t *out, uint8_t **mem)
{
	uint32_t n;

	memcpy(mem, out + f->offset, sizeof(*mem));
	memcpy(&n, out + f->n_offset, sizeof(n));
	return *mem != NULL ? n : 0;
}

static void
release_objects(const struct conf_field *f, uint8_t *out)
{
	uint8_t *mem;
	const uint32_t n = elements(f, out, &mem);

	for (uint32_t i = 0; i < n; i++)
		conf_release(f->sub, mem + (size_t)i * f->sub->size);
	free(mem);
}

static void
release_strings(const struct conf_field *f, uint8_t *out)
{
	uint8_t *mem;
	const uint32_t n = elements(f, out, &mem);

	for (uint32_t i = 0; i < n; i++) {
		char *text;

		memcpy(&text, mem + i * sizeof(text), sizeof(text));
		free(text);
	}
	free(mem);
}

void
conf_release(const struct conf_table *table, void *out)
{
	static void (*const releases[CONF_TYPES])(const struct conf_field *f, uint8_t *out) = {
#define TYPE(name, bytes, decode, encode, allowed, text, fill, release) \
	[CONF_T_##name] = release_##release,
#include "tables/types.def"
#undef TYPE
	};

	for (uint32_t i = 0; i < table->n_fields; i++)
		releases[table->fields[i].type](&table->fields[i], out);
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
list_names(const struct conf_field *f, const char *quote, char *buf, size_t room)
{
	for (const struct conf_name *e = f->names; e->name != NULL; e++) {
		const char *between = e[1].name == NULL ? " or " : ", ";

		append(buf, room, "%s%s%s%s", e == f->names ? "" : between, quote, e->name, quote);
	}
}

static void
allowed_names(const struct conf_field *f, char *buf, size_t room)
{
	list_names(f, "\"", buf, room);
}

static void
allowed_numbers(const struct conf_field *f, char *buf, size_t room)
{
	list_names(f, "", buf, room);
}

static void
allowed_flags(const struct conf_field *f, char *buf, size_t room)
{
	append(buf, room, "an array of ");
	list_names(f, "\"", buf, room);
}

static void
allowed_number(const struct conf_field *f, char *buf, size_t room)
{
	append(buf, room, "a number from %" PRIu64 " to ", f->min);
	if (f->max == UINT64_MAX)
		append(buf, room, "0x%" PRIx64, f->max);
	else if (f->max >= 65535)
		append(buf, room, "%" PRIu64 " (0x%" PRIx64 ")", f->max, f->max);
	else
		append(buf, room, "%" PRIu64, f->max);
}

static void
allowed_size(const struct conf_field *f, char *buf, size_t room)
{
	append(buf, room, "a size from %" PRIu64 " to ", f->min);
	append(buf, room, f->max == UINT64_MAX ? "0x%" PRIx64 : "%" PRIu64, f->max);
	append(buf, room, " bytes (as 4096, \"0x1000\", \"64K\", \"16M\" or \"1G\")");
}

static void
allowed_real(const struct conf_field *f, char *buf, size_t room)
{
	append(buf, room, "a number from %" PRIu64 ".0 to %" PRIu64 ".0", f->min, f->max);
}

static void
allowed_string(const struct conf_field *f, char *buf, size_t room)
{
	append(buf, room, "a string of %" PRIu64 " to %" PRIu64 " bytes", f->min, f->max);
}

static void
allowed_ip(const struct conf_field *f, char *buf, size_t room)
{
	append(buf, room, "a unicast %s address as a string",
		f->min > 4   ? "IPv6"
		: f->max < 6 ? "IPv4"
			     : "IPv4 or IPv6");
}

static void
allowed_bytes(const struct conf_field *f, char *buf, size_t room)
{
	append(buf, room,
		"a string of hex digits, two for each of %" PRIu64 " to %" PRIu64 " bytes", f->min,
		f->max);
}

static void
allowed_custom(const struct conf_field *f, char *buf, size_t room)
{
	append(buf, room, "%s", f->custom->what);
}

static void
allowed_text(const struct conf_field *f, char *buf, size_t room)
{
	static const char *const texts[CONF_TYPES] = {
#define TYPE(name, bytes, decode, encode, allowed, text, fill, release) [CONF_T_##name] = text,
#include "tables/types.def"
#undef TYPE
	};

	append(buf, room, "%s", texts[f->type]);
}

const char *
conf_rows_allowed(const struct conf_field *f, char *buf, size_t room)
{
	static void (*const sayers[CONF_TYPES])(
		const struct conf_field *f, char *buf, size_t room) = {
#define TYPE(name, bytes, decode, encode, allowed, text, fill, release) \
	[CONF_T_##name] = allowed_##allowed,
#include "tables/types.def"
#undef TYPE
	};

	buf[0] = '\0';
	sayers[f->type](f, buf, room);
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

/* One more name, as long as there is room for it and for how many are left out. */
static void
list_add(char *list, size_t room, const char *name, uint32_t *left)
{
	const size_t more = sizeof(" and 4294967295 more");

	if (*left != 0 || strlen(list) + strlen(name) + sizeof(", ") + more > room)
		++*left;
	else
		append(list, room, "%s%s", list[0] != '\0' ? ", " : "", name);
}

void
conf_rows_unknown(
	const struct conf_table *t, const char *key, enum conf_mode mode, struct conf_errors *err)
{
	const char *nearest = NULL;
	uint32_t best = strlen(key) < 6 ? 3 : 4; /* fewer edits than this are a slip */
	char list[700] = "";
	uint32_t left = 0;

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
			list_add(list, sizeof(list), f->name, &left);
	}
	if (left != 0)
		append(list, sizeof(list), " and %u more", left);
	if (nearest != NULL)
		conf_fault(err, NULL, "unknown key: did you mean \"%s\"? Allowed here: %s", nearest,
			list);
	else if (list[0] == '\0')
		conf_fault(err, NULL, "unknown key: nothing is allowed here");
	else
		conf_fault(err, NULL, "unknown key; allowed here: %s", list);
}
