/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef MEM_REFUSAL_H
#define MEM_REFUSAL_H
/**
 * @file mem_refusal.h  Why memory was refused, with the numbers: looked up once it was.
 *
 * Owner:   any lcore.
 * Memory:  the caller's; a refusal holds numbers and no pointer to any region.
 * Depends: mem.h.
 * Spec:    RESP-NAK-RAE-01..05, REQ-CLS-B-01.
 *
 * The checks of mem.h say only yes or no, which keeps their good path short. After a no, ask here
 * for the reason. MEM_WHY_GONE: the region came or went in between.
 */
#include "mem.h"

enum mem_why {
	MEM_WHY_NONE,
#define REFUSAL(name, rule, text) MEM_WHY_##name,
#include "tables/refusals.def"
#undef REFUSAL
	MEM_WHY_MAX
};

/** Who named the memory. */
enum mem_list {
	MEM_BY_PEER,    /* an R_Key, by a packet's header */
	MEM_BY_SEND,    /* an L_Key, by the list of a send request */
	MEM_BY_RECEIVE, /* an L_Key, by the list of a receive request */
	MEM_BY_BIND,    /* an L_Key or a window's key, by a bind or invalidate */
};

struct mem_refusal {
	uint64_t va;            /* what was asked for: [va, va + length) */
	uint64_t region_va;     /* the region that has the key, if `region` */
	uint64_t region_length; /* ... LIST_TOO_SHORT: bytes that the list has room for */
	uint64_t length;        /* of a bind it may have more than 32 bits */
	uint32_t key;
	uint32_t pd;    /* in which it was looked for */
	access_t need;  /* of the operation */
	access_t have;  /* of the region; QP_NO_RIGHT: of the queue pair, its qp_access_flags */
	uint8_t why;    /* enum mem_why */
	uint8_t by : 6; /* enum mem_list */
	bool fast : 1;  /* the key's index is that of a fast-register region */
	bool region : 1;
	uint8_t sge;  /* of a list: which entry, from 0 */
	uint8_t sges; /* ... of how many */
};
_Static_assert(sizeof(struct mem_refusal) == 48, "travels with records of dropped packets");

/**
 * Check va, length, key, pd and need of `r` as mem_check() does, and fill in the region.
 * @param qpn whose request it was.
 * @return the reason; r->why is left to the caller. Cost: a look into the key table.
 */
enum mem_why mem_refusal_look(const struct mem_table *t, uint32_t qpn, struct mem_refusal *r);
/** The same for r->key and r->pd as mem_check_invalidate() checks them. */
enum mem_why mem_refusal_look_invalidate(
	const struct mem_table *t, uint32_t qpn, struct mem_refusal *r);
/**
 * Find the first entry of a list that is refused. The caller sets r->pd, r->need and r->by; all
 * other fields are filled in. r->why is MEM_WHY_GONE if no entry is refused any more.
 */
void mem_refusal_of_list(
	const struct mem_table *t, const struct ring_sge *sge, uint32_t n, struct mem_refusal *r);

/** Bytes of the range outside its region: below it, or behind its end. */
uint64_t mem_refusal_excess(const struct mem_refusal *r);

/** The reason's name, "TOO_LONG"; "UNKNOWN" of none that is listed. */
const char *mem_why_name(enum mem_why why);
/** The reason in words; "" of none that is listed. */
const char *mem_why_text(enum mem_why why);

#endif
