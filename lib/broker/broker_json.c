/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Has memory for JSON run out while a line was read, or an answer made? The library then leaves out
 * single bytes, of what it reads and of what it writes, and says nothing. And whoever puts a value
 * together does not look whether each member of it found memory. Lines and answers that lack
 * something must not be taken for good ones.
 */
#include <stdlib.h>

#include <jansson.h>

#include "broker.h"

static _Thread_local uint64_t failures;

static void *
take(size_t n)
{
	void *p = malloc(n);

	if (p == NULL)
		failures++;
	return p;
}

void
broker_json_watch(void)
{
	json_set_alloc_funcs(take, free);
}

uint64_t
broker_json_failures(void)
{
	return failures;
}

char *
broker_json_text(const json_t *v)
{
	const uint64_t before = failures;
	char *text = v != NULL ? json_dumps(v, JSON_COMPACT) : NULL;

	if (failures == before)
		return text;
	free(text);
	return NULL;
}
