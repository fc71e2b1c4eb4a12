/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What happens when many connections are unfinished (CM-40). Whoever forges addresses sends REQs
 * that nobody repeats; a host that wants a connection repeats its REQ. So in a crowd a REQ finds a
 * place only if it was here in another second before, which costs an honest peer one repetition.
 *
 * REQs are remembered as bits of one map for each of the last seconds: of constant size, whatever
 * the rate. At 64,000 REQs a second one in 5,000 is taken for another.
 */
#include <string.h>

#include "cm_priv.h"

enum { SECONDS = 8, MAP_BITS = 22, HASHES = 4, WORD = 64 };
enum { WORDS = (1 << MAP_BITS) / WORD };

size_t
cm_crowd_bytes(void)
{
	return (size_t)SECONDS * WORDS * sizeof(uint64_t);
}

bool
cm_is_crowded(const struct cm *cm, const struct cm_listener *l)
{
	return cm->half_open * 4 >= cm->limits.half_open * 3 ||
	       (l != NULL && l->pending * 4 >= l->backlog * 3);
}

/* The maps of the seconds that went by in between are empty. */
static void
turn(struct cm *cm, uint64_t second)
{
	uint64_t from = cm->crowd.second + 1;

	if (second > from + SECONDS)
		from = second - SECONDS;
	for (; from <= second; from++)
		memset(cm->crowd.map + from % SECONDS * WORDS, 0, WORDS * sizeof(uint64_t));
	cm->crowd.second = second;
}

bool
cm_is_repeated(struct cm *cm, uint64_t hash, ns_t now)
{
	const uint64_t second = now / TIME_NS_PER_S;
	uint32_t at[HASHES];
	bool before = false;

	if (second != cm->crowd.second)
		turn(cm, second);
	for (uint32_t i = 0; i < HASHES; i++) {
		at[i] = hash & ((1u << MAP_BITS) - 1);
		hash = hash >> 15 ^ hash * UINT64_C(0xd6e8feb86659fd93);
	}
	for (uint32_t s = 0; s < SECONDS; s++) {
		uint64_t *map = cm->crowd.map + s * WORDS;
		uint32_t found = 0;

		for (uint32_t i = 0; i < HASHES; i++) {
			uint64_t *word = &map[at[i] / WORD];
			const uint64_t bit = UINT64_C(1) << at[i] % WORD;

			found += (*word & bit) != 0;
			if (s == second % SECONDS)
				*word |= bit;
		}
		before = before || (found == HASHES && s != second % SECONDS);
	}
	return before;
}
