/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef NAMES_H
#define NAMES_H
/**
 * @file names.h  Objects by name, in the order in which they were made, and their numbers.
 *
 * Owner:   control lcore.
 * Memory:  struct named is embedded in the object; the table allocates its buckets only.
 * Depends: conf (length of a name).
 */
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "conf.h"
#include "refusal.h"

struct named {
	TAILQ_ENTRY(named) all;
	struct named *chain;    /* of names that have one hash */
	struct named *numbered; /* the same of numbers */
	uint32_t number;        /* names_number(); 0: it needs none */
	char name[CONF_NAME_MAX];
};

#define NAMES_NUMBER_MAX UINT32_C(0x7fffffff)

struct names {
	TAILQ_HEAD(named_list, named) all;
	struct named **bucket;
	struct named **by_number;
	uint32_t mask; /* of both */
	uint32_t n;
	uint32_t most; /* number that there is: all bits set */
	uint32_t last; /* number that was given away */
	bool again;    /* each of them was given away once */
};

/** @param most the highest number, up to NAMES_NUMBER_MAX: 2^n - 1. @return 0 or -ENOMEM. */
int names_init(struct names *t, uint32_t most);
/** The table must be empty, or its objects forgotten. */
void names_fini(struct names *t);
/** Object of this name, or NULL. Cost: one hash. */
struct named *names_find(const struct names *t, const char *name);
/** The same, with the refusal (ENOENT) filled in. @param kind "pd": for the sentence. */
struct named *names_get(
	const struct names *t, const char *kind, const char *name, struct refusal *r);
/** Object of this number, or NULL. Cost: one look, and one at each that falls together with it. */
struct named *names_numbered(const struct names *t, uint32_t number);
/**
 * Is the name free, and is there room for one more?
 * @return 0 or a refusal: EEXIST, ENOSPC.
 */
int names_check(const struct names *t, const char *kind, const char *name, struct refusal *r);
/**
 * A number that no other object of the table has, from 1 to `most`, before it is added. Who
 * makes and destroys objects for hours comes round: then a number is given away again that was
 * not for as long as that.
 */
uint32_t names_number(struct names *t, struct named *o);
/** @return 0, or -EEXIST. */
int names_add(struct names *t, struct named *o, const char *name);
/** Take the object out; it may be freed then. */
void names_remove(struct names *t, struct named *o);

#endif
