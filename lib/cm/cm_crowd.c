/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What happens when many connections are unfinished (CM-40). Whoever forges addresses sends REQs
 * that nobody repeats; a host that wants a connection repeats its REQ. So in a crowd a REQ finds a
 * place only if it was here in another second before, which costs an honest peer one repetition.
 *
 * A host may repeat forged REQs as well, from several MACs. Then MACs tell hosts apart: who has
 * fewer than another one gets a place of who has most. Nobody is bound while there are places.
 *
 * REQs are remembered as bits of one map for each of the last seconds: of constant size, whatever
 * the rate. At 64,000 REQs a second one in 5,000 is taken for another.
 */
#include <string.h>

#include "cm_priv.h"

enum { SECONDS = 8, MAP_BITS = 22, HASHES = 4, WORD = 64 };
enum { LOOKS = 64, ANSWER_TIMEOUT = 17 }; /* 0.5 s: as long as a place among equals is kept */
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

bool
cm_is_scarce(const struct cm *cm, const struct cm_listener *l)
{
	return cm_is_crowded(cm, l) ||
	       (l->unheard_max != 0 && l->unheard * 4 >= l->unheard_max * 3);
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

/* The one with the most unfinished connections. */
static struct cm_neighbour *
heaviest(struct cm *cm)
{
	struct cm_neighbour *most = &cm->neighbours[0];

	for (uint32_t i = 1; i < CM_NEIGHBOURS; i++)
		if (cm->neighbours[i].n > most->n)
			most = &cm->neighbours[i];
	return most;
}

bool
cm_is_in_the_way(struct cm *cm, const struct cm_conn *c)
{
	const struct cm_neighbour *most;

	if (!cm_is_crowded(cm, c->listener))
		return false;
	most = heaviest(cm);
	return most->n * 2 <= cm->half_open || most == &cm->neighbours[c->neighbour];
}

struct cm_conn *
cm_make_room(struct cm *cm, const struct cm_listener *l, const struct cm_path *path, ns_t now)
{
	const struct cm_neighbour *asks = &cm->neighbours[cm_neighbour_of(cm, path)];
	struct cm_neighbour *most;
	const bool any = l->pending < l->backlog;
	struct cm_conns *list;
	struct cm_conn *c;
	ns_t patience = 0;

	if (asks->n * 2 >= cm->half_open || cm_is_unheard(l))
		return NULL;
	most = heaviest(cm);
	if (most->n * 2 <= cm->half_open) {
		/* Taken from one with as many, or one more, it would be taken back. */
		if (most->n <= asks->n + 1)
			return NULL;
		/* Many honest hosts may come at once: each has time for its answer. */
		patience = cm_time(ANSWER_TIMEOUT);
	}
	list = &most->half_open;
	for (uint32_t looks = 0; looks < LOOKS && looks < most->n; looks++) {
		c = TAILQ_FIRST(list);
		if ((c->state == CM_REP_SENT || c->state == CM_MRA_REP_RCVD ||
			    c->state == CM_REJ_RCVD) &&
			(any || c->listener == l) && c->time_rep + patience <= now) {
			cm_half_open_end(cm, c);
			c->retries = 0;
			cm_arm(cm, c, 0, now);
			return c;
		}
		/* The next look is at others: what cannot be taken must not hide what can. */
		TAILQ_REMOVE(list, c, beside);
		TAILQ_INSERT_TAIL(list, c, beside);
	}
	return NULL;
}
