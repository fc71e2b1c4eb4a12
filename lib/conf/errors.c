/* SPDX-License-Identifier: BSD-3-Clause */
#include "errors.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plain.h"

#define MESSAGE_MAX 1024

void
conf_errors_init(struct conf_errors *err)
{
	memset(err, 0, sizeof(*err));
}

void
conf_errors_free(struct conf_errors *err)
{
	for (uint32_t i = 0; i < err->n; i++) {
		free(err->v[i].pointer);
		free(err->v[i].message);
	}
	free(err->v);
	conf_errors_init(err);
}

size_t
conf_errors_utf8_cut(const char *s, size_t len)
{
	size_t i = len;

	/* Find the start of the last character; drop it when its tail is missing. */
	while (i > 0 && len - i < 4 && ((uint8_t)s[i - 1] & 0xc0) == 0x80)
		i--;
	if (i == 0)
		return 0;
	uint8_t lead = (uint8_t)s[i - 1];
	size_t need = lead < 0x80 ? 1 : lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;

	return len - (i - 1) < need ? i - 1 : len;
}

static struct conf_error *
error_slot(struct conf_errors *err)
{
	if (err->n == CONF_ERRORS_MAX)
		return NULL;
	if (err->n == err->room) {
		uint32_t room = err->room == 0 ? 16 : err->room * 2;
		struct conf_error *v = realloc(err->v, room * sizeof(*v));

		if (v == NULL)
			return NULL;
		err->v = v;
		err->room = room;
	}
	return &err->v[err->n];
}

static void
add(struct conf_errors *err, bool warning, const char *key, const char *fmt, va_list ap)
{
	char text[MESSAGE_MAX];
	int len = vsnprintf(text, sizeof(text), fmt, ap);
	uint32_t mark = key != NULL ? conf_enter(err, key) : err->at_len;
	struct conf_error *e = error_slot(err);

	if (warning)
		err->n_warnings++;
	else
		err->n_errors++;
	if (e != NULL) {
		if (len >= (int)sizeof(text))
			text[conf_errors_utf8_cut(text, sizeof(text) - 1)] = '\0';
		*e = (struct conf_error){
			.pointer = strdup(err->at), .message = strdup(text), .is_warning = warning
		};
		if (e->pointer != NULL && e->message != NULL) {
			err->n++;
		} else {
			free(e->pointer);
			free(e->message);
		}
	}
	conf_leave(err, mark);
}

void
conf_fault(struct conf_errors *err, const char *key, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	add(err, false, key, fmt, ap);
	va_end(ap);
}

void
conf_warn(struct conf_errors *err, const char *key, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	add(err, true, key, fmt, ap);
	va_end(ap);
}

/* RFC 6901: "~" is "~0", "/" is "~1". What does not fit is cut at a whole character. */
uint32_t
conf_enter(struct conf_errors *err, const char *key)
{
	const uint32_t mark = err->at_len;
	uint32_t n = mark;

	if (n + 1 < sizeof(err->at))
		err->at[n++] = '/';
	for (; *key != '\0'; key++) {
		const bool escape = *key == '~' || *key == '/';

		if (n + 2 >= sizeof(err->at)) {
			n = (uint32_t)conf_errors_utf8_cut(err->at, n);
			break;
		}
		err->at[n++] = escape ? '~' : *key;
		if (escape)
			err->at[n++] = *key == '~' ? '0' : '1';
	}
	err->at[n] = '\0';
	err->at_len = n;
	return mark;
}

uint32_t
conf_enter_index(struct conf_errors *err, uint32_t index)
{
	char key[16];

	snprintf(key, sizeof(key), "%u", index);
	return conf_enter(err, key);
}

void
conf_leave(struct conf_errors *err, uint32_t mark)
{
	err->at_len = mark;
	err->at[mark] = '\0';
}

int
conf_error_print(const struct conf_errors *err, uint32_t i, char *buf, size_t room)
{
	const struct conf_error *e = &err->v[i];
	const char *label = e->is_warning ? "warning: " : "";
	int len;

	char line[16] = "";

	if (e->line != 0)
		snprintf(line, sizeof(line), "%u:", e->line);
	len = snprintf(buf, room, "%s%s%s%s%s%s%s%s", err->file, err->file[0] != '\0' ? ":" : "",
		err->file[0] != '\0' ? line : "", err->file[0] != '\0' ? " " : "", e->pointer,
		e->pointer[0] != '\0' ? ": " : "", label, e->message);
	/* Names and values come from the file: nothing of it may steer a terminal. */
	if (room > 0)
		plain_text(buf, "");
	return len;
}

int
conf_errors_first(const struct conf_errors *err)
{
	for (uint32_t i = 0; i < err->n; i++) {
		if (!err->v[i].is_warning)
			return (int)i;
	}
	return -1;
}

bool
conf_errors_within(const struct conf_errors *err, const char *key)
{
	const size_t len = strlen(key);

	for (uint32_t i = 0; i < err->n; i++) {
		const char *p = err->v[i].pointer;

		if (err->v[i].is_warning || strncmp(p, err->at, err->at_len) != 0)
			continue;
		p += err->at_len;
		if (*p == '/' && strncmp(p + 1, key, len) == 0 &&
			(p[1 + len] == '/' || p[1 + len] == '\0'))
			return true;
	}
	return false;
}

/* An entry with its place before sorting, because qsort is not stable. */
struct placed {
	struct conf_error e;
	uint32_t place;
};

static int
by_line(const void *a, const void *b)
{
	const struct placed *x = a, *y = b;

	if (x->e.line != y->e.line)
		return x->e.line < y->e.line ? -1 : 1;
	return x->place < y->place ? -1 : x->place > y->place;
}

void
conf_errors_sort(struct conf_errors *err)
{
	struct placed *p;

	if (err->n < 2)
		return;
	p = calloc(err->n, sizeof(*p));
	if (p == NULL)
		return; /* unsorted is still complete */
	for (uint32_t i = 0; i < err->n; i++)
		p[i] = (struct placed){ err->v[i], i };
	qsort(p, err->n, sizeof(*p), by_line);
	for (uint32_t i = 0; i < err->n; i++)
		err->v[i] = p[i].e;
	free(p);
}
