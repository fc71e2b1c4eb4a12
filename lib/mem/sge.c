/* SPDX-License-Identifier: BSD-3-Clause */
#include "mem.h"
#include "invariant.h"

#include <string.h>

/* A stretch of host memory that one SGE gives to a copy. */
struct piece {
	uint8_t *host;
	uint32_t len;
};

enum mem_fault
mem_check_sges(const struct mem_table *t, const struct ring_sge *sge, uint32_t n, uint32_t pd,
	access_t access)
{
	uint8_t *host;

	for (uint32_t i = 0; i < n; i++) {
		enum mem_fault fault;

		if (sge[i].length == 0)
			continue;
		fault = mem_check(t, sge[i].lkey, pd, sge[i].addr, sge[i].length, access, &host);
		if (fault != MEM_OK)
			return fault;
	}
	return MEM_OK;
}

uint64_t
mem_sge_bytes(const struct ring_sge *sge, uint32_t n)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < n; i++)
		sum += sge[i].length;
	return sum;
}

/* What a copy needs to know, apart from its direction. */
struct span {
	const struct ring_sge *sge;
	uint32_t n;
	uint32_t pd;
	uint64_t offset; /* into the list */
	uint32_t len;
	access_t access;
};

/*
 * Find and check everything before the first byte moves. An SGE is checked as a whole, not only
 * the part in use.
 */
static enum mem_fault
locate(const struct mem_table *t, const struct span *s, struct piece *piece, uint32_t *pieces)
{
	uint64_t skip = s->offset;
	uint32_t left = s->len;

	*pieces = 0;
	for (uint32_t i = 0; i < s->n && left != 0; i++) {
		const struct ring_sge *g = &s->sge[i];
		enum mem_fault fault;
		struct piece *p;

		if (skip >= g->length) {
			skip -= g->length;
			continue;
		}
		if (*pieces == RING_MAX_SGE)
			return MEM_BAD_RANGE;
		p = &piece[(*pieces)++];
		fault = mem_check(t, g->lkey, s->pd, g->addr, g->length, s->access, &p->host);
		if (fault != MEM_OK)
			return fault;
		p->host += skip;
		p->len = g->length - (uint32_t)skip;
		if (p->len > left)
			p->len = left;
		ASSERT(p->len != 0);
		left -= p->len;
		skip = 0;
	}
	ASSERT(*pieces <= RING_MAX_SGE);
	return left == 0 ? MEM_OK : MEM_BAD_RANGE;
}

enum mem_fault
mem_scatter(const struct mem_table *t, const struct ring_sge *sge, uint32_t n, uint32_t pd,
	uint64_t offset, const void *data, uint32_t len)
{
	struct span s = { sge, n, pd, offset, len, ACCESS_LOCAL_WRITE };
	struct piece piece[RING_MAX_SGE];
	const uint8_t *from = data;
	uint32_t pieces;
	enum mem_fault fault = locate(t, &s, piece, &pieces);

	if (fault != MEM_OK)
		return fault;
	for (uint32_t i = 0; i < pieces; i++) {
		mem_copy(piece[i].host, from, piece[i].len);
		from += piece[i].len;
	}
	ASSERT(from == (const uint8_t *)data + len);
	return MEM_OK;
}

enum mem_fault
mem_gather(const struct mem_table *t, const struct ring_sge *sge, uint32_t n, uint32_t pd,
	uint64_t offset, void *data, uint32_t len)
{
	struct span s = { sge, n, pd, offset, len, 0 };
	struct piece piece[RING_MAX_SGE];
	uint8_t *to = data;
	uint32_t pieces;
	enum mem_fault fault = locate(t, &s, piece, &pieces);

	if (fault != MEM_OK)
		return fault;
	for (uint32_t i = 0; i < pieces; i++) {
		memcpy(to, piece[i].host, piece[i].len);
		to += piece[i].len;
	}
	ASSERT(to == (uint8_t *)data + len);
	return MEM_OK;
}
