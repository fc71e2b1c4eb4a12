/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests that wait for one below them: a window of PSNs from ePSN on, a place for each. */
#include "resp_kept.h"

#include "invariant.h"

static void **
place(struct resp_kept *k, psn_t p)
{
	return &k->at[p.v % RESP_KEPT];
}

void *
resp_kept_put(struct resp_kept *k, psn_t epsn, psn_t p, void *what)
{
	void **at = place(k, p), *before = *at;

	ASSERT(what != NULL && resp_kept_fits(epsn, p) && !psn_eq(p, epsn));
	ASSERT(k->n == 0 || psn_eq(k->from, epsn)); /* nothing below it is here any more */
	k->from = epsn;
	k->n += before == NULL;
	*at = what;
	return before;
}

enum resp_kept_is
resp_kept_take(struct resp_kept *k, psn_t epsn, void **what)
{
	uint32_t passed = psn_distance(epsn, k->from);

	if (k->n == 0)
		return KEPT_IS_NONE;
	/* A READ may have taken more PSNs than there are places. */
	for (uint32_t i = 0; i <= passed && i < RESP_KEPT; i++) {
		void **at = place(k, psn_add(k->from, i));

		if (*at == NULL)
			continue;
		*what = *at;
		*at = NULL;
		k->n--;
		k->from = psn_add(k->from, i); /* nothing is below */
		return i == passed ? KEPT_IS_DUE : KEPT_IS_OVER;
	}
	k->from = epsn;
	return KEPT_IS_NONE;
}

void *
resp_kept_drop(struct resp_kept *k)
{
	void *what;

	if (k->n == 0)
		return NULL;
	for (uint32_t i = 0;; i++) {
		ASSERT(i < RESP_KEPT);
		what = k->at[i];
		if (what == NULL)
			continue;
		k->at[i] = NULL;
		k->n--;
		return what;
	}
}
