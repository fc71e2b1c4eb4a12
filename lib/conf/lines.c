/* SPDX-License-Identifier: BSD-3-Clause */
#include "lines.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define NONE     UINT32_MAX
#define CUT_MOST 6 /* bytes of a pointer's room that a key which was cut can leave */

/* Values in the order of the text; a container is followed by what it holds, up to `end`. */
struct node {
	uint32_t line;
	uint32_t pos;     /* of the key, or of the value when it has none */
	uint32_t key_len; /* with its quotes; 0: an element of an array or the document */
	uint32_t parent;
	uint32_t end;
	uint32_t index; /* among its siblings */
	uint32_t n_children;
	bool object;
};

struct lines {
	const char *text;
	size_t len;
	struct node *v;
	uint32_t n;
	uint32_t room;
};

/* What the walk over the text knows. */
struct walk {
	size_t pos;
	uint32_t line;
	uint32_t open;    /* innermost open container */
	uint32_t pending; /* a key whose value comes next */
};

static uint32_t
node_add(struct lines *l, const struct walk *w, size_t pos, size_t key_len)
{
	if (l->n == l->room) {
		uint32_t room = l->room == 0 ? 64 : l->room * 2;
		struct node *v = realloc(l->v, room * sizeof(*v));

		if (v == NULL)
			return NONE;
		l->v = v;
		l->room = room;
	}
	l->v[l->n] = (struct node){ .line = w->line,
		.pos = (uint32_t)pos,
		.key_len = (uint32_t)key_len,
		.parent = w->open,
		.end = l->n + 1 };
	if (w->open != NONE)
		l->v[l->n].index = l->v[w->open].n_children++;
	return l->n++;
}

/* Position behind the closing quote of the string that starts at `pos`, or 0. */
static size_t
string_end(const struct lines *l, size_t pos)
{
	for (pos++; pos < l->len; pos++) {
		if (l->text[pos] == '\\')
			pos++;
		else if (l->text[pos] == '"')
			return pos + 1;
	}
	return 0;
}

static size_t
scalar_end(const struct lines *l, size_t pos)
{
	if (l->text[pos] == '"')
		return string_end(l, pos);
	while (pos < l->len && strchr(" \t\r\n,:]}[{\"", l->text[pos]) == NULL)
		pos++;
	return pos;
}

/* One value, key or bracket at w->pos. @return false: nothing more can be made of the text. */
static bool
walk_token(struct lines *l, struct walk *w)
{
	const char c = l->text[w->pos];
	size_t end = w->pos + 1;
	uint32_t i;

	if (c == '}' || c == ']') {
		if (w->open == NONE)
			return false;
		l->v[w->open].end = l->n;
		w->open = l->v[w->open].parent;
		w->pending = NONE;
		w->pos = end;
		return true;
	}
	if (c != '{' && c != '[') {
		end = scalar_end(l, w->pos);
		if (end <= w->pos)
			return false;
		if (c == '"' && w->pending == NONE && w->open != NONE && l->v[w->open].object) {
			w->pending = node_add(l, w, w->pos, end - w->pos);
			w->pos = end;
			return w->pending != NONE;
		}
	}
	i = w->pending != NONE ? w->pending : node_add(l, w, w->pos, 0);
	w->pending = NONE;
	if (i == NONE)
		return false;
	if (c == '{' || c == '[') {
		l->v[i].object = c == '{';
		w->open = i;
	}
	w->pos = end;
	return true;
}

struct lines *
conf_lines_make(const char *text, size_t len)
{
	struct lines *l = calloc(1, sizeof(*l));
	struct walk w = { .line = 1, .open = NONE, .pending = NONE };

	if (l == NULL)
		return NULL;
	l->text = text;
	l->len = len < UINT32_MAX / 2 ? len : UINT32_MAX / 2;
	while (w.pos < l->len) {
		const char c = text[w.pos];

		if (c == '\n')
			w.line++;
		if (c == '\0')
			break;
		if (strchr(" \t\r\n,:", c) != NULL)
			w.pos++;
		else if (!walk_token(l, &w))
			break;
	}
	/* A text that breaks off leaves containers open. */
	for (; w.open != NONE; w.open = l->v[w.open].parent)
		l->v[w.open].end = l->n;
	return l;
}

void
conf_lines_free(struct lines *l)
{
	if (l == NULL)
		return;
	free(l->v);
	free(l);
}

/* The key of a node as plain text; the caller frees it. NULL: none, or not valid. */
static char *
node_key(const struct lines *l, const struct node *n)
{
	json_t *s;
	char *key;

	if (n->key_len == 0)
		return NULL;
	s = json_loadb(l->text + n->pos, n->key_len, JSON_DECODE_ANY, NULL);
	if (s == NULL)
		return NULL;
	key = strdup(json_string_value(s));
	json_decref(s);
	return key;
}

/* @param begins the key may go on behind it. */
static bool
key_is(const struct lines *l, const struct node *n, const char *name, size_t len, bool begins)
{
	const char *raw = l->text + n->pos + 1;
	bool same;
	char *key;

	if (n->key_len < 2)
		return false;
	if (memchr(raw, '\\', n->key_len - 2) == NULL)
		return (begins ? n->key_len - 2 >= len : n->key_len - 2 == len) &&
		       memcmp(raw, name, len) == 0;
	key = node_key(l, n);
	same = key != NULL && strncmp(key, name, len) == 0 && (begins || key[len] == '\0');
	free(key);
	return same;
}

/* Undo ~0 and ~1 of one step of a pointer, in place. */
static void
unescape(char *s)
{
	char *to = s;

	for (; *s != '\0'; s++) {
		if (*s == '~' && (s[1] == '0' || s[1] == '1'))
			*to++ = *++s == '0' ? '~' : '/';
		else
			*to++ = *s;
	}
	*to = '\0';
}

static uint32_t
child(const struct lines *l, uint32_t parent, const char *step, bool begins)
{
	const bool object = l->v[parent].object;
	const size_t len = strlen(step);
	const unsigned long index = strtoul(step, NULL, 10);

	for (uint32_t i = parent + 1; i < l->v[parent].end; i = l->v[i].end) {
		if (object ? key_is(l, &l->v[i], step, len, begins) : l->v[i].index == index)
			return i;
	}
	return NONE;
}

uint32_t
conf_lines_find(const struct lines *l, const char *pointer)
{
	/* conf_enter() cuts a key that does not fit, at a whole character. */
	const bool is_cut = strlen(pointer) + CUT_MOST >= CONF_POINTER_MAX;
	char *copy = strdup(pointer);
	char *rest = copy;
	uint32_t at = 0;

	if (copy == NULL || l->n == 0) {
		free(copy);
		return 1;
	}
	while (rest != NULL && *rest == '/') {
		char *step = rest + 1;
		uint32_t next;

		rest = strchr(step, '/');
		if (rest != NULL)
			*rest = '\0';
		unescape(step);
		next = child(l, at, step, false);
		if (next == NONE && is_cut && *step != '\0')
			next = child(l, at, step, true);
		if (next == NONE)
			break;
		at = next;
		if (rest != NULL)
			*rest = '/';
	}
	free(copy);
	return l->v[at].line;
}

void
conf_lines_enter(const struct lines *l, size_t pos, struct conf_errors *err)
{
	uint32_t chain[64]; /* from the value up; a deeper one names its ancestor at this depth */
	uint32_t depth = 0;
	uint32_t at = NONE;

	for (uint32_t i = 0; i < l->n && l->v[i].pos <= pos; i++)
		at = i;
	for (; at != NONE && l->v[at].parent != NONE; at = l->v[at].parent) {
		if (depth == ARRAY_LEN(chain))
			memmove(chain, chain + 1, --depth * sizeof(chain[0]));
		chain[depth++] = at;
	}
	while (depth > 0) {
		const struct node *n = &l->v[chain[--depth]];
		char *key = node_key(l, n);

		if (key == NULL && l->v[n->parent].object)
			return; /* what is to be a key is none: in an object nothing has an index */
		if (key != NULL)
			conf_enter(err, key);
		else
			conf_enter_index(err, n->index);
		free(key);
	}
}
