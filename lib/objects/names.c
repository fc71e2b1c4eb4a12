/* SPDX-License-Identifier: BSD-3-Clause */
#include "names.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
names_init(struct names *t)
{
	TAILQ_INIT(&t->all);
	t->n = 0;
	t->mask = FIRST_BUCKETS - 1;
	t->bucket = calloc(FIRST_BUCKETS, sizeof(t->bucket[0]));
	return t->bucket != NULL ? 0 : -ENOMEM;
}

void
names_fini(struct names *t)
{
	free(t->bucket);
	t->bucket = NULL;
}

struct named *
names_find(const struct names *t, const char *name)
{
	struct named *o = t->bucket[hash_of(name) & t->mask];

	while (o != NULL && strcmp(o->name, name) != 0)
		o = o->chain;
	return o;
}

static void
link_in(struct names *t, struct named *o)
{
	struct named **head = &t->bucket[hash_of(o->name) & t->mask];

	o->chain = *head;
	*head = o;
}

/* Twice the buckets; without memory the chains just get longer. */
static void
grow(struct names *t)
{
	const uint32_t entries = (t->mask + 1) * 2;
	struct named **bucket = calloc(entries, sizeof(bucket[0]));
	struct named *o;

	if (bucket == NULL)
		return;
	free(t->bucket);
	t->bucket = bucket;
	t->mask = entries - 1;
	TAILQ_FOREACH (o, &t->all, all)
		link_in(t, o);
}

static bool
is_taken(const struct names *t, uint32_t number)
{
	const struct named *o;

	TAILQ_FOREACH (o, &t->all, all) {
		if (o->number == number)
			return true;
	}
	return false;
}

uint32_t
names_number(struct names *t, struct named *o)
{
	/* The second time, not through those that were made in one go. */
	do {
		t->again = t->again || t->last == NAMES_NUMBER_MAX;
		t->last = (t->last + (t->again ? STRIDE : 1)) & NAMES_NUMBER_MAX;
	} while (t->last == 0 || (t->again && is_taken(t, t->last)));
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

void
names_remove(struct names *t, struct named *o)
{
	struct named **at = &t->bucket[hash_of(o->name) & t->mask];

	while (*at != o)
		at = &(*at)->chain;
	*at = o->chain;
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
