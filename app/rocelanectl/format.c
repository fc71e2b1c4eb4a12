/* SPDX-License-Identifier: BSD-3-Clause */
/* JSON to text for people: tables, pairs, hexdumps. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl.h"
#include "plain.h"

/* ASCII: what a client names its own is for programs to read, and steers no terminal. */
#define AS_IT_IS (JSON_ENCODE_ANY | JSON_ENSURE_ASCII | JSON_REAL_PRECISION(15))

void
fmt_json(const json_t *v)
{
	json_dumpf(v, stdout, JSON_INDENT(2) | AS_IT_IS);
	putchar('\n');
}

void
fmt_json_line(const json_t *v)
{
	json_dumpf(v, stdout, JSON_COMPACT | AS_IT_IS);
	putchar('\n');
	fflush(stdout);
}

/* Nothing that the daemon sends may drive the terminal. */
static char *
cleaned(char *s)
{
	return plain_text(s, "");
}

/* "a,b,c" of scalars; anything deeper as JSON. */
static char *
list_text(const json_t *v)
{
	char *all = NULL;
	size_t len = 0;
	size_t i;
	json_t *e;
	FILE *f;

	json_array_foreach (v, i, e) {
		if (json_is_object(e) || json_is_array(e))
			return ctl_must(json_dumps(v, JSON_COMPACT));
	}
	f = ctl_must(open_memstream(&all, &len));
	json_array_foreach (v, i, e) {
		char *t = fmt_value(e);

		fprintf(f, "%s%s", i == 0 ? "" : ",", t);
		free(t);
	}
	fclose(f);
	return ctl_must(all);
}

char *
fmt_value(const json_t *v)
{
	if (v == NULL || json_is_null(v) || (json_is_array(v) && json_array_size(v) == 0))
		return ctl_must(strdup("-"));
	if (json_is_string(v))
		return cleaned(ctl_must(strdup(json_string_value(v))));
	if (json_is_array(v))
		return cleaned(list_text(v));
	return cleaned(
		ctl_must(json_dumps(v, JSON_COMPACT | JSON_ENCODE_ANY | JSON_REAL_PRECISION(15))));
}

static bool
is_number(const char *s)
{
	size_t n;

	s += *s == '-';
	n = strspn(s, "0123456789");
	if (n > 0 && s[n] == '.')
		n += 1 + strspn(s + n + 1, "0123456789");
	return n > 0 && s[n] == '\0';
}

void
fmt_cells(char *const *cells, size_t rows, size_t cols, bool header)
{
	int *width = ctl_must(calloc(cols + 1, sizeof(*width)));
	bool *right = ctl_must(calloc(cols + 1, sizeof(*right)));

	for (size_t c = 0; c < cols; c++) {
		right[c] = rows > 1;
		for (size_t r = 0; r < rows; r++) {
			const char *s = cells[r * cols + c] != NULL ? cells[r * cols + c] : "-";
			int n = (int)strnlen(s, 4096);

			if (n > width[c])
				width[c] = n;
			if (r > 0 && !is_number(s) && strcmp(s, "-") != 0)
				right[c] = false;
		}
	}
	for (size_t r = header ? 0 : 1; r < rows; r++) {
		for (size_t c = 0; c < cols; c++) {
			const char *s = cells[r * cols + c] != NULL ? cells[r * cols + c] : "-";

			if (c > 0)
				fputs("  ", stdout);
			if (right[c])
				printf("%*s", width[c], s);
			else if (c + 1 < cols)
				printf("%-*s", width[c], s);
			else
				fputs(s, stdout);
		}
		putchar('\n');
	}
	free(width);
	free(right);
}

/* What people call the number `key`: its "key_name", where there is one. */
const json_t *
fmt_named(const json_t *row, const char *key)
{
	char *name = NULL;
	const json_t *v;

	if (asprintf(&name, "%s_name", key) < 0)
		ctl_must(NULL);
	v = json_object_get(row, name);
	free(name);
	return json_is_string(v) ? v : json_object_get(row, key);
}

/* Member by path; the first dot goes one level down. */
static const json_t *
member(const json_t *row, const char *path)
{
	const char *dot = strchr(path, '.');
	const json_t *v = fmt_named(row, path);
	char *outer;

	if (v != NULL || dot == NULL)
		return v;
	outer = ctl_must(strndup(path, (size_t)(dot - path)));
	v = json_object_get(json_object_get(row, outer), dot + 1);
	free(outer);
	return v;
}

/* The wanted columns that at least one row has, as an array of paths. */
static json_t *
columns_of(const json_t *rows, const char *columns)
{
	json_t *out = ctl_must(json_array());
	json_t *seen = ctl_must(json_object());
	const char *key;
	json_t *row;
	json_t *v;
	size_t i;

	if (columns == NULL) {
		json_array_foreach (rows, i, row) {
			json_object_foreach (row, key, v) {
				if (json_object_get(seen, key) == NULL)
					json_array_append_new(out, json_string(key));
				json_object_set_new(seen, key, json_true());
			}
		}
	}
	for (const char *s = columns; s != NULL && *s != '\0'; s += strspn(s, " ")) {
		size_t n = strcspn(s, " ");
		char *path = ctl_must(strndup(s, n));
		bool found = json_array_size(rows) == 0;

		json_array_foreach (rows, i, row)
			found = found || member(row, path) != NULL;
		if (found)
			json_array_append_new(out, json_string(path));
		free(path);
		s += n;
	}
	json_decref(seen);
	return out;
}

void
fmt_table(const json_t *rows, const char *columns, bool header)
{
	json_t *paths = columns_of(rows, columns);
	size_t cols = json_array_size(paths);
	size_t n = json_array_size(rows) + 1;
	char **cells = ctl_must(calloc(n * cols + 1, sizeof(*cells)));

	for (size_t c = 0; c < cols; c++) {
		const char *path = json_string_value(json_array_get(paths, c));
		const char *dot = strchr(path, '.');

		cells[c] = ctl_must(strdup(dot != NULL ? dot + 1 : path));
		for (size_t r = 1; r < n; r++)
			cells[r * cols + c] = fmt_value(member(json_array_get(rows, r - 1), path));
	}
	if (cols > 0)
		fmt_cells(cells, n, cols, header);
	for (size_t i = 0; i < n * cols; i++)
		free(cells[i]);
	free(cells);
	json_decref(paths);
}

/* Every leaf of `v` as (dotted key, text) into `flat`. */
static void
flatten(json_t *flat, const char *prefix, const json_t *v)
{
	const char *key;
	json_t *e;

	json_object_foreach ((json_t *)(uintptr_t)v, key, e) {
		size_t n = strlen(prefix) + strlen(key) + 2;
		char *name = ctl_must(malloc(n));
		char *text;

		snprintf(name, n, "%s%s%s", prefix, *prefix != '\0' ? "." : "", key);
		if (json_is_object(e) && json_object_size(e) > 0) {
			flatten(flat, name, e);
		} else {
			text = fmt_value(e);
			json_object_set_new(flat, cleaned(name), json_string(text));
			free(text);
		}
		free(name);
	}
}

void
fmt_pairs(const json_t *obj)
{
	json_t *flat = ctl_must(json_object());
	const char *key;
	json_t *v;
	int width = 0;

	flatten(flat, "", obj);
	json_object_foreach (flat, key, v)
		width = (int)strlen(key) > width ? (int)strlen(key) : width;
	json_object_foreach (flat, key, v)
		printf("%-*s  %s\n", width, key, json_string_value(v));
	json_decref(flat);
}

static int
nibble(char c)
{
	const char *digits = "0123456789abcdef";
	const char *p = c != '\0' ? strchr(digits, tolower((unsigned char)c)) : NULL;

	return p != NULL ? (int)(p - digits) : -1;
}

int
fmt_hexdump(uint64_t offset, const char *hex)
{
	size_t n = strlen(hex) / 2;

	if (strlen(hex) % 2 != 0 || strspn(hex, "0123456789abcdefABCDEF") != n * 2)
		return -EINVAL;
	for (size_t at = 0; at < n; at += 16) {
		size_t end = n - at < 16 ? n - at : 16;
		char text[17] = "";

		printf("%08llx ", (unsigned long long)(offset + at));
		for (size_t i = 0; i < 16; i++) {
			const char *h = hex + 2 * (at + i);

			if (i % 8 == 0)
				putchar(' ');
			if (i >= end) {
				fputs("   ", stdout);
				continue;
			}
			text[i] = (char)(nibble(h[0]) << 4 | nibble(h[1]));
			printf("%c%c ", tolower((unsigned char)h[0]), tolower((unsigned char)h[1]));
			if (!isprint((unsigned char)text[i]) || (unsigned char)text[i] > 126)
				text[i] = '.';
		}
		printf(" |%s|\n", text);
	}
	return 0;
}
