/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OWNER_H
#define OWNER_H
/**
 * @file owner.h  An application as the owner of objects: its names, memory shared with it alone.
 *
 * Owner:   control lcore.
 * Memory:  areas are memfds, made as they are needed and kept until the application ends; rings are
 *          places in them, given back and given out again.
 * Depends: env, mem, qp.
 *
 * What the configuration and the operator make has no owner: NULL stands for them.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "charge.h"
#include "conf.h"
#include "mem.h"
#include "refusal.h"

#define OWNER_GRAIN 256u /* bytes: places begin and end at multiples of it */
#define OWNER_AREAS 4096

struct broker_conn;
struct env;
struct qp_alloc_params;
struct admin_qp;

/** What a process is to be told apart by (SO_PEERCRED). */
struct owner_process {
	int32_t pid;
	uint32_t uid;
	uint32_t gid;
};

struct owner_area {
	struct mem_area mem;
	uint64_t *map; /* a bit for each grain: taken */
	uint32_t grains;
	uint32_t taken;
	bool told; /* the application has its descriptor, and we do not any more */
};

/** A stretch of an area; n 0: none. */
struct owner_place {
	uint32_t area;
	uint32_t first; /* grain */
	uint32_t n;     /* grains */
};

/** Where a QP's rings are. */
struct owner_rings {
	struct owner_place rq;
	struct owner_place sq;
	uint32_t entries;  /* of both, charged as OWNER_OUTSTANDING */
	size_t private_bytes; /* of the QP, charged as OWNER_PRIVATE */
	bool charged; /* also one of OWNER_QPS */
};

TAILQ_HEAD(owner_qps, admin_qp);

struct owner {
	uint32_t id;
	struct owner_process process;
	char name[CONF_NAME_MAX];
	bool gone;            /* its connection ended: it is being taken down */
	uint32_t named;       /* objects that got a name, ever */
	uint64_t has[OWNER_KINDS]; /* charge.h */
	struct owner_user *user;
	struct owner_users *users;
	/* Its connection's thread, held until all is released: it maps regions. Or NULL. */
	struct broker_conn *home;
	struct owner_qps qps; /* by the administration of QPs */
	uint32_t qps_n;
	struct owner_area *areas;
	uint32_t areas_n;
};

/** "client 3 pd 7", unique, for the next object of this kind. */
void owner_name(struct owner *o, const char *kind, char name[CONF_NAME_MAX]);
/** Is it a name of that kind? No name that a user chose is. */
bool owner_is_name(const char *name);
/** May `viewer` know of the object with this name? @param viewer NULL: the operator, who may. */
bool owner_may_see(const struct owner *viewer, const char *name);

/**
 * Zeroed memory of at least `bytes`, on a cache line, charged as OWNER_MEMORY.
 * @return 0 or a refusal.
 */
int owner_place_get(struct env *env, struct owner *o, size_t bytes, struct owner_place *out,
	void **mem, struct refusal *r);
/** The workers must have let go of it. A place with n 0 is none. */
void owner_place_put(struct owner *o, struct owner_place *p);
/** Bytes from the beginning of its area. */
static inline uint64_t
owner_place_offset(const struct owner_place *p)
{
	return (uint64_t)p->first * OWNER_GRAIN;
}
/** Unmap all of them, in its thread. The workers must have let go. */
void owner_areas_free(struct owner *o);

/** Memory for the rings of a QP: sets rq_mem and sq_mem of `p`. @return 0 or a refusal. */
int owner_rings_lend(struct env *env, struct owner *o, struct qp_alloc_params *p,
	struct owner_rings *rings, struct refusal *r);
/** The QP is freed: its rings can be used again. */
void owner_rings_return(struct owner *o, struct owner_rings *rings);

#endif
