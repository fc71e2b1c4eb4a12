/* SPDX-License-Identifier: BSD-3-Clause */
#include "regions.h"

#include <stdio.h>
#include <string.h>

#include "env.h"
#include "mem_window.h"
#include "objects.h"

static void
view(const struct object_mr *mr, struct region_view *out)
{
	const struct mem_region *r = mr->region;

	*out = (struct region_view){ .va = r->va,
		.length = r->length,
		.key = r->key,
		.pd_id = r->pd,
		.access = r->access,
		.revoked = !atomic_load_explicit(&r->valid, memory_order_relaxed),
		.made_ns = mr->made_ns };
	memcpy(out->name, mr->n.name, sizeof(out->name));
	memcpy(out->pd, mr->pd->n.name, sizeof(out->pd));
}

void
regions_note_gone(struct objects *objs, const struct object_mr *mr)
{
	struct regions_gone *g = &objs->regions_gone;
	struct region_view *v = &g->r[g->n++ % REGIONS_GONE];

	view(mr, v);
	v->gone_ns = objs->env->now != 0 ? objs->env->now : 1;
}

/* The i-th newest of those that are gone; NULL: no more. */
static const struct region_view *
gone_at(const struct regions_gone *g, uint32_t i)
{
	if (i >= g->n || i >= REGIONS_GONE)
		return NULL;
	return &g->r[(g->n - 1 - i) % REGIONS_GONE];
}

static bool
is_it(const struct region_view *v, const struct mem_refusal *m)
{
	if (v->key != m->key)
		return false;
	return !m->region || (v->va == m->region_va && v->length == m->region_length);
}

/* A window that has the key, or had it: its index stays. */
static bool
view_window(struct objects *objs, uint32_t key, ns_t when, struct region_view *out)
{
	const struct named *n;

	TAILQ_FOREACH (n, &objs->mws.all, all) {
		const struct object_mw *mw = (const struct object_mw *)(const void *)n;
		const struct mem_region *r = &mw->window->r;

		if (mem_index(r->key) != mem_index(key) || mw->made_ns > when)
			continue;
		*out = (struct region_view){ .va = r->va,
			.length = r->length,
			.key = key,
			.pd_id = mw->pd->id,
			.access = r->access,
			.revoked = !mem_is_valid(r) || r->key != key };
		memcpy(out->name, mw->n.name, sizeof(out->name));
		memcpy(out->pd, mw->pd->n.name, sizeof(out->pd));
		return true;
	}
	return false;
}

bool
regions_may_look(struct objects *objs)
{
	const uint32_t gone = objs->regions_gone.n;
	const uint32_t n = objs->mrs.n + objs->mws.n + (gone < REGIONS_GONE ? gone : REGIONS_GONE);

	if (objs->looked_turn != objs->env->turns.n) {
		objs->looked_turn = objs->env->turns.n;
		objs->looked = 0;
	}
	if (objs->looked != 0 && objs->looked + n > REGIONS_LOOKS)
		return false;
	objs->looked += n;
	return true;
}

bool
regions_of(struct objects *objs, const struct owner *viewer, const struct mem_refusal *m, ns_t when,
	struct region_view *out)
{
	const struct region_view *gone;
	const struct named *n;

	/* A key that nobody had then may have been given away since. */
	TAILQ_FOREACH (n, &objs->mrs.all, all) {
		const struct object_mr *mr = (const struct object_mr *)(const void *)n;

		if (!m->region || mr->region->key != m->key || mr->made_ns > when)
			continue;
		view(mr, out);
		if (is_it(out, m))
			return owner_may_see(viewer, out->name);
	}
	if (view_window(objs, m->key, when, out))
		return owner_may_see(viewer, out->name);
	for (uint32_t i = 0; (gone = gone_at(&objs->regions_gone, i)) != NULL; i++) {
		if (gone->made_ns <= when && is_it(gone, m)) {
			*out = *gone;
			return owner_may_see(viewer, out->name);
		}
	}
	return false;
}

bool
regions_by_key(struct objects *objs, uint32_t key, ns_t when, struct region_view *out)
{
	const struct region_view *gone;
	const struct named *n;

	TAILQ_FOREACH (n, &objs->mrs.all, all) {
		const struct object_mr *mr = (const struct object_mr *)(const void *)n;

		if (mr->region->key == key && mr->made_ns <= when) {
			view(mr, out);
			return true;
		}
	}
	if (view_window(objs, key, when, out))
		return true;
	for (uint32_t i = 0; (gone = gone_at(&objs->regions_gone, i)) != NULL; i++) {
		if (gone->key == key && gone->made_ns <= when) {
			*out = *gone;
			return true;
		}
	}
	return false;
}

/* One hexadecimal digit is another one, or two beside each other have changed places. */
static bool
is_slip(uint32_t a, uint32_t b)
{
	const uint32_t x = a ^ b;

	for (unsigned int at = 0; at < 32; at += 4) {
		if ((x & ~(UINT32_C(0xf) << at)) == 0)
			return true;
	}
	for (unsigned int at = 0; at < 28; at += 4) {
		const uint32_t swapped = (a & ~(UINT32_C(0xff) << at)) |
					 (a >> (at + 4) & 0xf) << at | (a >> at & 0xf) << (at + 4);

		if (swapped == b)
			return true;
	}
	return false;
}

/* What a region has in common with what was asked for; `pd` is the region's. */
static unsigned int
likeness(const struct mem_refusal *m, uint32_t key, uint32_t pd, uint64_t va, uint64_t length)
{
	const uint64_t offset = m->va - va;
	unsigned int why = 0;

	if (key == m->key)
		return 0;
	if (pd == m->pd && m->length != 0 && offset <= length && m->length <= length - offset)
		why |= REGION_HOLDS_RANGE;
	if ((key ^ m->key) <= UINT8_MAX)
		why |= REGION_KEY_BYTE;
	else if (is_slip(key, m->key))
		why |= REGION_KEY_DIGIT;
	return why;
}

/* The range counts for more than the key: there is only one of it. */
static unsigned int
weight(unsigned int why)
{
	return ((why & REGION_HOLDS_RANGE) != 0 ? 4 : 0) + ((why & REGION_KEY_BYTE) != 0 ? 2 : 0) +
	       ((why & REGION_KEY_DIGIT) != 0 ? 1 : 0);
}

unsigned int
regions_meant(struct objects *objs, const struct owner *viewer, const struct mem_refusal *m,
	ns_t when, struct region_view *out)
{
	const struct region_view *gone;
	unsigned int best = 0;
	const struct named *n;

	/* There may be many: names are looked at where the numbers are alike. */
	TAILQ_FOREACH (n, &objs->mrs.all, all) {
		const struct object_mr *mr = (const struct object_mr *)(const void *)n;
		const struct mem_region *r = mr->region;
		const unsigned int why = likeness(m, r->key, r->pd, r->va, r->length);

		if (weight(why) <= weight(best) || mr->made_ns > when ||
			!owner_may_see(viewer, n->name) ||
			!atomic_load_explicit(&r->valid, memory_order_relaxed))
			continue;
		best = why;
		view(mr, out);
	}
	for (uint32_t i = 0; (gone = gone_at(&objs->regions_gone, i)) != NULL; i++) {
		const unsigned int why =
			likeness(m, gone->key, gone->pd_id, gone->va, gone->length);

		if (gone->made_ns > when || gone->gone_ns < when || gone->revoked ||
			weight(why) <= weight(best) || !owner_may_see(viewer, gone->name))
			continue;
		best = why;
		*out = *gone;
	}
	return best;
}

const char *
regions_pd_name(const struct objects *objs, uint32_t id)
{
	const struct named *pd = names_numbered(&objs->pds, id);

	return pd != NULL ? pd->name : "";
}
