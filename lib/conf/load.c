/* SPDX-License-Identifier: BSD-3-Clause */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cross.h"
#include "errors.h"
#include "lines.h"
#include "rows.h"
#include "table_rows.h"

#define FILE_MAX_BYTES (32u << 20)

/* ---- a whole configuration -------------------------------------------------------------- */

void
conf_free(struct conf *c)
{
	if (c == NULL)
		return;
	conf_release(&conf_table_root, c);
	free(c);
}

/* The record is on by its own key or by its knob; a knob that says off wins. */
static void
resolve_error_buffer(struct conf *c, struct conf_errors *err)
{
	const bool named = (c->knobs.given & KNOB_GIVEN(rx_errbuf)) != 0;
	const bool here = (c->given & CONF_ROOT_ERROR_BUFFER) != 0;

	if (here && named && c->knobs.rx_errbuf == 0)
		conf_warn(err, "error_buffer", "stays off: knob rx.errbuf is \"off\"");
	c->error_buffer.present = named ? c->knobs.rx_errbuf != 0 : here;
	c->knobs.rx_errbuf = c->error_buffer.present ? 1 : 0;
	if (!here)
		conf_rows_defaults(
			conf_rows_find(&conf_table_root, "error_buffer", CONF_CREATE)->sub,
			&c->error_buffer);
}

static int
resolve(struct conf *c, struct conf_errors *err)
{
	int ret;

	conf_knobs_apply(&c->knobs, (enum conf_profile)c->profile);
	resolve_error_buffer(c, err);
	conf_check_psn_check(&c->knobs, err);
	ret = conf_cross_names(c, err);
	if (ret == 0)
		ret = conf_cross_qp_nums(c, err);
	if (ret == 0)
		ret = conf_cross_members(c, err);
	conf_cross_frames(c, err);
	conf_cross_pairs(c, err);
	if (ret == 0)
		ret = conf_cross_routes(c, err);
	if (ret == 0)
		ret = conf_cross_limits(c, err);
	return ret;
}

static int
decode_document(const json_t *doc, struct conf **out, struct conf_errors *err)
{
	const uint32_t errors = err->n_errors;
	struct conf *c = calloc(1, sizeof(*c));
	int ret;

	if (c == NULL)
		return -ENOMEM;
	ret = conf_decode_keep(&conf_table_root, doc, CONF_CREATE, c, err);
	if (ret != -ENOMEM && json_is_object(doc))
		ret = resolve(c, err);
	if (ret == 0 && err->n_errors != errors)
		ret = -EINVAL;
	if (ret == 0)
		*out = c;
	else
		conf_free(c);
	return ret;
}

/* Give each entry from `first` on its line. */
static void
locate(struct conf_errors *err, uint32_t first, const char *text, size_t len)
{
	struct lines *l = err->n > first ? conf_lines_make(text, len) : NULL;

	if (l == NULL)
		return;
	for (uint32_t i = first; i < err->n; i++) {
		if (err->v[i].line == 0)
			err->v[i].line = conf_lines_find(l, err->v[i].pointer);
	}
	conf_lines_free(l);
	conf_errors_sort(err);
}

/* jansson quotes the text as it stands, valid UTF-8 or not; a message must be. */
static void
make_ascii(char *s)
{
	for (; *s != '\0'; s++) {
		if ((uint8_t)*s >= 0x80)
			*s = '?';
	}
}

/* What people used to other formats get wrong. */
static const char *
hint(const char *text, size_t len, const json_error_t *why)
{
	size_t at = why->position > 0 ? (size_t)why->position - 1 : 0, i = 0;

	while (i < len && isspace((unsigned char)text[i]))
		i++;
	if (i == len)
		return ": there is nothing in it";
	if (at >= len)
		return "";
	if (text[at] == '/' || text[at] == '#')
		return ": JSON has no comments";
	if (text[at] != '}' && text[at] != ']')
		return "";
	while (at > 0 && isspace((unsigned char)text[at - 1]))
		at--;
	return at > 0 && text[at - 1] == ',' ? ": no comma behind the last one" : "";
}

/* What a text may not have that JSON has, in our words: jansson's name a flag of its own. */
static const char *
what_of(const json_error_t *why)
{
	switch (json_error_code(why)) {
	case json_error_null_character:
	case json_error_null_byte_in_key:
		return "\\u0000 is no character of a name or text here";
	default:
		return why->text;
	}
}

static void
syntax_fault(struct conf_errors *err, const char *text, size_t len, json_error_t *why)
{
	struct lines *l = conf_lines_make(text, len);
	const uint32_t mark = err->at_len;
	const uint32_t n = err->n;

	if (l != NULL && why->position > 0)
		conf_lines_enter(l, (size_t)why->position - 1, err);
	make_ascii(why->text);
	conf_fault(err, NULL, "%s (column %d)%s", what_of(why), why->column, hint(text, len, why));
	if (err->n > n)
		err->v[n].line = why->line > 0 ? (uint32_t)why->line : 1;
	conf_leave(err, mark);
	conf_lines_free(l);
}

/* What editors and copies make of a text. A byte 0 is nothing to jansson, wherever it stands. */
static const char *
encoding_fault(const char *text, size_t len, const char **at)
{
	*at = text;
	if (len >= 2 && (memcmp(text, "\xff\xfe", 2) == 0 || memcmp(text, "\xfe\xff", 2) == 0))
		return "is UTF-16: must be UTF-8";
	if (len >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0)
		return "begins with a byte order mark: must be UTF-8 without one";
	*at = memchr(text, '\0', len);
	return *at != NULL ? "has a byte 0 in it: must be text" : NULL;
}

static uint32_t
line_of(const char *text, const char *at)
{
	uint32_t line = 1;

	for (; text < at; text++)
		line += *text == '\n';
	return line;
}

int
conf_load_text(const char *text, size_t len, struct conf **out, struct conf_errors *err)
{
	const uint32_t first = err->n;
	const char *fault, *at;
	json_error_t why;
	json_t *doc;
	int ret;

	*out = NULL;
	if (len > FILE_MAX_BYTES) {
		conf_fault(err, NULL, "is longer than %u bytes: no more are read", FILE_MAX_BYTES);
		return -EINVAL;
	}
	fault = len > 0 ? encoding_fault(text, len, &at) : NULL;
	if (fault != NULL) {
		conf_fault(err, NULL, "%s", fault);
		if (err->n > first)
			err->v[first].line = line_of(text, at);
		return -EINVAL;
	}
	doc = json_loadb(text, len, JSON_REJECT_DUPLICATES, &why);
	if (doc == NULL) {
		syntax_fault(err, text, len, &why);
		return json_error_code(&why) == json_error_out_of_memory ? -ENOMEM : -EINVAL;
	}
	ret = decode_document(doc, out, err);
	locate(err, first, text, len);
	json_decref(doc);
	return ret;
}

/* ---- files ------------------------------------------------------------------------------ */

/* The whole of a regular file; one byte more than the limit is enough to refuse it. */
static int
read_all(int fd, char **out, size_t *len)
{
	size_t room = 0, n = 0;
	char *buf = NULL;

	for (;;) {
		ssize_t got;

		if (n == room) {
			char *more = realloc(buf, room += 65536 + room);

			if (more == NULL) {
				free(buf);
				return -ENOMEM;
			}
			buf = more;
		}
		got = read(fd, buf + n, room - n);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0) {
			int ret = -errno;

			free(buf);
			return ret;
		}
		n += (size_t)got;
		if (got == 0 || n > FILE_MAX_BYTES)
			break;
	}
	*out = buf;
	*len = n;
	return 0;
}

int
conf_load_file(const char *path, struct conf **out, struct conf_errors *err)
{
	char *text = NULL;
	size_t len = 0;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	int ret = fd < 0 ? -errno : read_all(fd, &text, &len);

	*out = NULL;
	snprintf(err->file, sizeof(err->file), "%s", path);
	if (fd >= 0)
		close(fd);
	if (ret != 0) {
		conf_fault(err, NULL, "cannot be read: %s", strerror(-ret));
		return ret;
	}
	ret = conf_load_text(text, len, out, err);
	free(text);
	return ret;
}
