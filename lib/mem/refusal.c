/* SPDX-License-Identifier: BSD-3-Clause */
#include "mem_refusal.h"
#include "invariant.h"

#include "mem_window.h"

static const struct {
	const char *name;
	const char *text;
} reasons[MEM_WHY_MAX] = {
	[MEM_WHY_NONE] = { "NONE", "memory was not refused" },
#define REFUSAL(name, rule, text) [MEM_WHY_##name] = { #name, text },
#include "tables/refusals.def"
#undef REFUSAL
};

const char *
mem_why_name(enum mem_why why)
{
	return (unsigned int)why < MEM_WHY_MAX ? reasons[why].name : "UNKNOWN";
}

const char *
mem_why_text(enum mem_why why)
{
	return (unsigned int)why < MEM_WHY_MAX ? reasons[why].text : "";
}

static void
numbers_of(const struct mem_region *region, struct mem_refusal *r)
{
	r->region = true;
	r->region_va = region->va;
	r->region_length = region->length;
	r->have = region->access;
}

static bool
is_fast(const struct mem_table *t, uint32_t key)
{
	const struct mem_window *w = mem_window_at(t, key);

	return w != NULL && w->r.kind == MEM_FAST;
}

/** The region of the key, its numbers in *r; NONE while nothing speaks against it. */
static enum mem_why
look_key(const struct mem_table *t, uint32_t qpn, struct mem_refusal *r,
	const struct mem_region **out)
{
	const struct mem_region *region = mem_table_find(t, r->key);
	const bool window = region != NULL && region->kind != MEM_REGION;

	r->region = region != NULL;
	r->fast = is_fast(t, r->key);
	if (region == NULL)
		return mem_window_at(t, r->key) != NULL ? MEM_WHY_UNBOUND : MEM_WHY_UNKNOWN_KEY;
	numbers_of(region, r);
	*out = region;
	if (!mem_is_valid(region))
		return window ? MEM_WHY_UNBOUND : MEM_WHY_REVOKED;
	if (region->pd == r->pd || region->pd == mem_pd_of_qp(qpn))
		return MEM_WHY_NONE;
	return region->pd > MEM_PD_MAX ? MEM_WHY_OTHER_QP : MEM_WHY_OTHER_PD;
}

enum mem_why
mem_refusal_look(const struct mem_table *t, uint32_t qpn, struct mem_refusal *r)
{
	const struct mem_region *region;
	enum mem_why why = look_key(t, qpn, r, &region);
	uint64_t offset;

	if (why != MEM_WHY_NONE)
		return why;
	if (r->length != 0 && r->va + (r->length - 1) < r->va)
		return MEM_WHY_WRAPS;
	if (r->va < r->region_va)
		return MEM_WHY_BELOW;
	offset = r->va - r->region_va;
	if (offset > r->region_length || (offset == r->region_length && r->length != 0))
		return MEM_WHY_BEYOND;
	if (r->length > r->region_length - offset)
		return MEM_WHY_TOO_LONG;
	return (r->need & ~r->have) != 0 ? MEM_WHY_NO_RIGHT : MEM_WHY_NONE;
}

enum mem_why
mem_refusal_look_invalidate(const struct mem_table *t, uint32_t qpn, struct mem_refusal *r)
{
	const struct mem_region *region;
	enum mem_why why = look_key(t, qpn, r, &region);

	if (why == MEM_WHY_NONE && !region->remote_invalidate)
		why = MEM_WHY_NOT_REVOCABLE;
	return why;
}

void
mem_refusal_of_bind(const struct mem_table *t, const struct mem_bind *b, enum mem_why why,
	struct mem_refusal *r)
{
	const struct mem_region *region = NULL;

	r->why = (uint8_t)why;
	r->fast = is_fast(t, b->window);
	switch (why) {
	case MEM_WHY_NEW_KEY:
		r->key = b->key;
		return;
	case MEM_WHY_NO_WINDOW:
	case MEM_WHY_BOUND:
	case MEM_WHY_NO_LENGTH:
	case MEM_WHY_WINDOW_ACCESS:
		r->key = b->window;
		return;
	default:
		r->key = b->lkey;
		region = mem_table_region(t, b->lkey);
		if (region != NULL)
			numbers_of(region, r);
		return;
	}
}

void
mem_refusal_of_list(
	const struct mem_table *t, const struct ring_sge *sge, uint32_t n, struct mem_refusal *r)
{
	ASSERT(n <= RING_MAX_SGE);
	r->sges = (uint8_t)n;
	for (uint32_t i = 0; i < n; i++) {
		r->va = sge[i].addr;
		r->length = sge[i].length;
		r->key = sge[i].lkey;
		r->sge = (uint8_t)i;
		r->why = r->length != 0 ? (uint8_t)mem_refusal_look(t, 0, r) : MEM_WHY_NONE;
		if (r->why != MEM_WHY_NONE)
			return;
	}
	r->why = MEM_WHY_GONE;
}

uint64_t
mem_refusal_excess(const struct mem_refusal *r)
{
	const uint64_t end = r->region_va + r->region_length;

	switch (r->why) {
	case MEM_WHY_BELOW:
		ASSERT(r->va < r->region_va);
		return r->region_va - r->va;
	case MEM_WHY_BEYOND:
	case MEM_WHY_TOO_LONG:
		return r->va + r->length - end;
	case MEM_WHY_LIST_TOO_SHORT:
		ASSERT(r->length > r->region_length);
		return r->length - r->region_length;
	default:
		return 0;
	}
}
