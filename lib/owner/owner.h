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

#define OWNER_GRAIN      256u /* bytes: places begin and end at multiples of it */
#define OWNER_AREAS      4096
#define OWNER_AREA_FIRST (256u << 10) /* bytes, at least */
#define OWNER_CLEARED    4096u

struct broker_conn;
struct broker_making;
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
	uint32_t fresh; /* grains from here on were never given out */
	bool told;      /* the application has its descriptor, too */
	bool open; /* not sealed: the application can take pages out of it. No worker touches it */
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
	uint32_t entries;     /* of both, charged as OWNER_OUTSTANDING */
	size_t private_bytes; /* of the QP, charged as OWNER_PRIVATE */
	bool charged;         /* also one of OWNER_QPS */
	struct mem_area work; /* the QP's private requests, if they are many */
};

TAILQ_HEAD(owner_qps, admin_qp);
TAILQ_HEAD(owner_opened, admin_opener);

struct owner {
	uint32_t id;
	struct owner_process process;
	char name[CONF_NAME_MAX];
	bool gone;                  /* its connection ended: it is being taken down */
	uint32_t named;             /* objects that got a name, ever */
	uint64_t has[OWNER_KINDS];  /* charge.h */
	uint64_t most[OWNER_KINDS]; /* control.client_limits, or what client_set said */
	struct owner_user *user;
	struct owner_users *users;
	/* Its connection's thread, held until all is released: it maps regions. Or NULL. */
	struct broker_conn *home;
	struct owner_qps qps; /* by the administration of QPs */
	uint32_t qps_n;
	struct owner_opened opened; /* QPs of others: admin_open.h */
	struct owner_area *areas;
	uint32_t areas_n;
	/* An area is made by its thread; the request that needs it is put off (env_put_off). */
	struct broker_making *making;
	bool making_work;              /* for a QP's private requests, not for rings */
	size_t making_len;             /* of rings: charged */
	struct mem_area work;          /* made for the QP of the request under way */
	uint32_t open_n;               /* of the areas; they are the last ones */
	struct broker_making *sealing; /* the first of them */
	bool opening;   /* its doorbells may be in an open area: they are not rung yet */
	bool map_first; /* the request was refused until the application has mapped an area */
};

/** "client 3 pd 7", unique, for the next object of this kind. */
void owner_name(struct owner *o, const char *kind, char name[CONF_NAME_MAX]);
/** Is it a name of that kind? No name that a user chose is. */
bool owner_is_name(const char *name);
/** May `viewer` know of the object with this name? @param viewer NULL: the operator, who may. */
bool owner_may_see(const struct owner *viewer, const char *name);

/**
 * Memory of at least `bytes`, on a cache line, charged as OWNER_MEMORY. All of it is zero if it was
 * never given out, else the first OWNER_CLEARED bytes are: the rest is what the application left.
 * @return 0 or a refusal, perhaps of a request that is put off.
 */
int owner_place_get(struct env *env, struct owner *o, size_t bytes, struct owner_place *out,
	void **mem, struct refusal *r);
/** An area that was made for it, which is taken over in any case. @return 0 or a refusal. */
int owner_area_give(struct owner *o, struct mem_area *mem, struct refusal *r);
/**
 * Seal what the application has mapped: it knows the areas, and asks for more.
 * @return 0: no area is open; -EINPROGRESS; or -errno: there can be none.
 */
int owner_areas_seal(struct owner *o);
/**
 * The application could not map this area, and never will: it goes, and nothing lies in it.
 * @return 0 or a refusal.
 */
int owner_area_lost(struct owner *o, uint32_t number, struct refusal *r);
/** The workers must have let go of it. A place with n 0 is none. */
void owner_place_put(struct owner *o, struct owner_place *p);
/** Bytes from the beginning of its area. */
static inline uint64_t
owner_place_offset(const struct owner_place *p)
{
	return (uint64_t)p->first * OWNER_GRAIN;
}
/** Unmap all of them, and what was being made, in its thread. The workers must have let go. */
void owner_areas_free(struct owner *o);

/** Memory for the rings of a QP: sets rq_mem and sq_mem of `p`. @return 0 or a refusal. */
int owner_rings_lend(struct env *env, struct owner *o, struct qp_alloc_params *p,
	struct owner_rings *rings, struct refusal *r);
/** A QP without rings is another application's from now on, and what it was charged for. */
void owner_rings_pass(struct owner *from, struct owner *to, const struct owner_rings *rings);
/** The QP is freed: its rings can be used again. */
void owner_rings_return(struct owner *o, struct owner_rings *rings);

#endif
