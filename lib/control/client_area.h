/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CLIENT_AREA_H
#define CLIENT_AREA_H
/**
 * @file client_area.h  Memory that the dataplane makes for one client and shares with it alone.
 *
 * Owner:   control lcore.
 * Memory:  areas are memfds, made as they are needed and kept until the client ends; rings are
 *          places in them, given back and given out again.
 * Depends: mem qp.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mem.h"
#include "refusal.h"

#define CLIENT_GRAIN 256u /* bytes: places begin and end at multiples of it */
#define CLIENT_AREAS 4096

struct client;
struct control;
struct qp_alloc_params;

struct client_area {
	struct mem_area mem;
	uint64_t *map; /* a bit for each grain: taken */
	uint32_t grains;
	uint32_t taken;
	bool told; /* the client has its descriptor, and we do not any more */
};

/** A stretch of an area; n 0: none. */
struct client_place {
	uint32_t area;
	uint32_t first; /* grain */
	uint32_t n;     /* grains */
};

/** Where a QP's rings are. */
struct client_rings {
	struct client_place rq;
	struct client_place sq;
	uint32_t entries; /* of both, as counted against client_limits.outstanding */
};

/**
 * Zeroed memory of at least `bytes`, on a cache line, counted against client_limits.memory.
 * @return 0 or a refusal.
 */
int client_place_get(struct control *c, struct client *cl, size_t bytes, struct client_place *out,
	void **mem, struct refusal *r);
void client_place_put(struct client *cl, struct client_place *p);
static inline uint64_t
client_place_offset(const struct client_place *p)
{
	return (uint64_t)p->first * CLIENT_GRAIN;
}
/** Unmap all of them. The workers must have let go. */
void client_areas_free(struct client *cl);

/** Memory for the rings of a QP: sets rq_mem and sq_mem of `p`. @return 0 or a refusal. */
int client_rings_lend(struct control *c, struct client *cl, struct qp_alloc_params *p,
	struct client_rings *rings, struct refusal *r);
void client_rings_return(struct client *cl, struct client_rings *rings);

#endif
