/* SPDX-License-Identifier: BSD-3-Clause */
#include "wheel.h"
#include "invariant.h"

#include <string.h>

#define LEVEL_BITS 6

_Static_assert(1 << LEVEL_BITS == WHEEL_SLOTS, "slots of a level");
_Static_assert(WHEEL_LEVELS >= (64 + LEVEL_BITS - 1) / LEVEL_BITS, "every tick has a level");

/* Position of a tick among the slots of a level. */
static inline unsigned int
index_of(tick_t t, unsigned int level)
{
	return (t >> (level * LEVEL_BITS)) & (WHEEL_SLOTS - 1);
}

/* First tick of the slot `index` of a level, in the range of that level that `cur` is in. */
static inline tick_t
start_of(tick_t cur, unsigned int level, unsigned int index)
{
	unsigned int shift = level * LEVEL_BITS;
	tick_t above = shift + LEVEL_BITS < 64 ? cur >> (shift + LEVEL_BITS) : 0;

	return (above << LEVEL_BITS | index) << shift;
}

void
wheel_init(struct wheel *w, tick_t now)
{
	memset(w, 0, sizeof(*w));
	w->cur = now;
	w->next = WHEEL_NEVER;
	w->pending = WHEEL_NO_SLOT;
}

void
wheel_link(struct wheel *w, struct wheel_node *n)
{
	tick_t at = n->deadline > w->cur ? n->deadline : w->cur;
	tick_t differs = at ^ w->cur;
	unsigned int level =
		differs == 0 ? 0 : (63 - (unsigned int)__builtin_clzll(differs)) / LEVEL_BITS;
	unsigned int index = index_of(at, level);
	tick_t start = start_of(w->cur, level, index);
	struct wheel_node **slot;

	ASSERT(n->link == NULL);
	ASSERT(level < WHEEL_LEVELS);
	ASSERT(start >= w->cur); /* else the slot would never be due again */
	n->slot = level * WHEEL_SLOTS + index;
	slot = &w->slots[n->slot];
	n->next = *slot;
	if (n->next != NULL)
		n->next->link = &n->next;
	n->link = slot;
	*slot = n;
	w->used[level] |= BIT64(index);
	if (start < w->next)
		w->next = start;
}

void
wheel_cancel(struct wheel *w, struct wheel_node *n)
{
	if (n->link == NULL)
		return;
	ASSERT(*n->link == n);
	ASSERT(n->slot < WHEEL_LEVELS * WHEEL_SLOTS);
	ASSERT((w->used[n->slot / WHEEL_SLOTS] & BIT64(n->slot % WHEEL_SLOTS)) != 0);
	*n->link = n->next;
	if (n->next != NULL)
		n->next->link = n->link;
	n->link = NULL;
	if (w->slots[n->slot] == NULL)
		w->used[n->slot / WHEEL_SLOTS] &= ~BIT64(n->slot % WHEEL_SLOTS);
}

/*
 * The slot that is due first, and when. Slots of a level lie within the current slot of the level
 * above, so the lowest level that has any comes first; none is behind `cur`.
 */
static tick_t
first_slot(const struct wheel *w, uint32_t *slot)
{
	for (unsigned int level = 0; level < WHEEL_LEVELS; level++) {
		unsigned int index;

		if (w->used[level] == 0)
			continue;
		index = (unsigned int)__builtin_ctzll(w->used[level]);
		*slot = level * WHEEL_SLOTS + index;
		ASSERT(w->slots[*slot] != NULL);
		return start_of(w->cur, level, index);
	}
	*slot = WHEEL_NO_SLOT;
	return WHEEL_NEVER;
}

/* Hand out what is due in a slot of level 0, which `cur` has reached; the rest was re-armed. */
static uint32_t
fire(struct wheel *w, uint32_t slot, struct wheel_node **out, uint32_t max, uint32_t *moves)
{
	struct wheel_node *n;
	uint32_t got = 0;

	ASSERT(slot == index_of(w->cur, 0));
	while (got < max && *moves != 0 && (n = w->slots[slot]) != NULL) {
		wheel_cancel(w, n);
		if (n->deadline <= w->cur) {
			out[got++] = n;
		} else {
			wheel_link(w, n);
			--*moves;
		}
	}
	return got;
}

/* Move the nodes of a slot that `cur` has entered to where they belong: never the same slot. */
static void
move_down(struct wheel *w, uint32_t slot, uint32_t *moves)
{
	struct wheel_node *n;

	for (; *moves != 0 && (n = w->slots[slot]) != NULL; --*moves) {
		wheel_cancel(w, n);
		wheel_link(w, n);
		ASSERT(n->slot < slot / WHEEL_SLOTS * WHEEL_SLOTS || n->deadline > w->cur);
	}
	w->pending = w->slots[slot] != NULL ? slot : WHEEL_NO_SLOT;
}

uint32_t
wheel_expire(struct wheel *w, tick_t now, struct wheel_node **out, uint32_t max)
{
	uint32_t moves = WHEEL_MOVES;
	uint32_t got = 0;

	if (now < w->cur)
		return 0;
	for (;;) {
		uint32_t slot = w->pending;

		if (UNLIKELY(slot != WHEEL_NO_SLOT)) {
			w->next = w->cur;
		} else {
			w->next = first_slot(w, &slot);
			if (w->next > now || slot == WHEEL_NO_SLOT)
				break;
		}
		ASSERT(w->next >= w->cur);
		if (got == max || moves == 0)
			return got; /* `next` brings the caller back */
		if (w->next > w->cur)
			w->cur = w->next;
		if (slot < WHEEL_SLOTS)
			got += fire(w, slot, out + got, max - got, &moves);
		else
			move_down(w, slot, &moves);
	}
	ASSERT(got <= max && w->pending == WHEEL_NO_SLOT);
	w->cur = now;
	return got;
}
