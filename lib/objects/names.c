/* SPDX-License-Identifier: BSD-3-Clause */
#include "names.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "invariant.h"

#define FIRST_BUCKETS 64
#define STRIDE        UINT32_C(0x1e3779b1) /* odd: it comes to each number */

/* FNV-1a. */
static uint32_t
hash_of(const char *s)
{
	uint32_t h = 0x811c9dc5;

	for (; *s != '\0'; s++)
		h = (h ^ (uint8_t)*s) * 0x01000193;
	return h;
}

int
names_init(struct names *t, uint32_t most)
{
	ASSERT(most <= NAMES_NUMBER_MAX && (most & (most + 1)) == 0);
	TAILQ_INIT(&t->all);
	t->n = 0;
	t->most = most;
	t->mask = FIRST_BUCKETS - 1;
	t->bucket = calloc(FIRST_BUCKETS, sizeof(t->bucket[0]));
	t->by_number = calloc(FIRST_BUCKETS, sizeof(t->by_number[0]));
	return t->bucket != NULL && t->by_number != NULL ? 0 : -ENOMEM;
}

void
names_fini(struct names *t)
{
	free(t->bucket);
	free(t->by_number);
	t->bucket = t->by_number = NULL;
}

struct named *
names_find(const struct names *t, const char *name)
{
	struct named *o = t->bucket[hash_of(name) & t->mask];

	while (o != NULL && strcmp(o->name, name) != 0)
		o = o->chain;
	return o;
}

struct named *
names_numbered(const struct names *t, uint32_t number)
{
	struct named *o = t->by_number[number & t->mask];

	while (o != NULL && o->number != number)
		o = o->numbered;
	return o;
}

static void
link_in(struct names *t, struct named *o)
{
	struct named **head = &t->bucket[hash_of(o->name) & t->mask];

	o->chain = *head;
	*head = o;
	if (o->number == 0)
		return;
	head = &t->by_number[o->number & t->mask];
	o->numbered = *head;
	*head = o;
}

/* Twice the buckets; without memory the chains just get longer. */
static void
grow(struct names *t)
{
	const uint32_t entries = (t->mask + 1) * 2;
	struct named **bucket = calloc(entries, sizeof(bucket[0]));
	struct named **by_number = calloc(entries, sizeof(by_number[0]));
	struct named *o;

	if (bucket == NULL || by_number == NULL) {
		free(bucket);
		free(by_number);
		return;
	}
	free(t->bucket);
	free(t->by_number);
	t->bucket = bucket;
	t->by_number = by_number;
	t->mask = entries - 1;
	TAILQ_FOREACH (o, &t->all, all)
		link_in(t, o);
}

uint32_t
names_number(struct names *t, struct named *o)
{
	/* The second time, not through those that were made in one go. */
	do {
		t->again = t->again || t->last == t->most;
		t->last = (t->last + (t->again ? STRIDE : 1)) & t->most;
	} while (t->last == 0 || (t->again && names_numbered(t, t->last) != NULL));
	o->number = t->last;
	return o->number;
}

int
names_add(struct names *t, struct named *o, const char *name)
{
	if (names_find(t, name) != NULL)
		return -EEXIST;
	snprintf(o->name, sizeof(o->name), "%s", name);
	if (t->n > t->mask)
		grow(t);
	link_in(t, o);
	TAILQ_INSERT_TAIL(&t->all, o, all);
	t->n++;
	return 0;
}

static void
unlink_number(struct names *t, const struct named *o)
{
	struct named **at = &t->by_number[o->number & t->mask];

	while (*at != o)
		at = &(*at)->numbered;
	*at = o->numbered;
}

void
names_remove(struct names *t, struct named *o)
{
	struct named **at = &t->bucket[hash_of(o->name) & t->mask];

	while (*at != o)
		at = &(*at)->chain;
	*at = o->chain;
	if (o->number != 0)
		unlink_number(t, o);
	TAILQ_REMOVE(&t->all, o, all);
	t->n--;
}

struct named *
names_get(const struct names *t, const char *kind, const char *name, struct refusal *r)
{
	struct named *o = names_find(t, name);

	if (o == NULL)
		refuse(r, ENOENT, "%s \"%s\" does not exist", kind, name);
	return o;
}

int
names_check(const struct names *t, const char *kind, const char *name, struct refusal *r)
{
	if (names_find(t, name) != NULL)
		return refuse(r, EEXIST, "%s \"%s\" exists already", kind, name);
	if (t->n >= CONF_MAX_OBJECTS)
		return refuse(
			r, ENOSPC, "there are %u %ss already, and no more are allowed", t->n, kind);
	return 0;
}
