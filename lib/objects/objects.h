/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OBJECTS_H
#define OBJECTS_H
/**
 * @file objects.h  Protection domains, memory regions and windows, completion queues, shared
 *                  receive queues.
 *
 * Owner:   control lcore.
 * Memory:  each object is allocated by its create function and freed by its destroy function.
 * Depends: conf qp mem.
 *
 * The same functions serve the configuration at start and the RPC methods. A refusal changes
 * nothing.
 */
#include <jansson.h>

#include "conf.h"
#include "mem.h"
#include "names.h"
#include "owner.h"
#include "qp_cq.h"
#include "refusal.h"
#include "regions.h"

struct app_cq;
struct app_srq;
struct broker_conn;
struct broker_memory;
struct env;
struct objects;

/** What has a number that events name. */
enum object_kind { OBJECT_QP, OBJECT_CQ, OBJECT_SRQ, OBJECT_PORT, OBJECT_NONE };
struct qp;

struct object_pd {
	struct named n; /* first: a struct named * is cast to it */
	uint32_t id;
	uint32_t users; /* MRs, MWs, SRQs, QPs */
	TAILQ_HEAD(, object_mw) mws;
};

struct object_mw {
	struct named n;
	struct object_pd *pd;
	TAILQ_ENTRY(object_mw) of_pd;
	struct mem_window *window;
	ns_t made_ns;
};

/** An XRC domain: what its targets and its SRQs have in common. */
struct object_xrcd {
	struct named n;
	uint32_t id;
	uint32_t users;  /* SRQs, QPs */
	uint32_t opened; /* how often: by the configuration, the operator, applications */
};

struct object_mr {
	struct named n;
	struct object_pd *pd;
	struct mem_region *region;
	ns_t made_ns;                 /* since then it is as it is */
	struct conf_mr conf;          /* as asked for, addr and rkey filled in */
	uint64_t addr;                /* where it begins without ZERO_BASED */
	bool revoked;                 /* its key is gone; the memory waits for the workers */
	struct broker_memory *memory; /* a use of it: the client's memory it lies in, or NULL */
};

/** Memory that is there already. */
struct object_memory {
	uint8_t *host; /* in a client's memory, whose byte `offset` is there; or NULL */
	uint64_t offset;
	struct mem_area *made; /* by object_mr_prepare(); taken over */
};

struct object_cq {
	struct named n;
	struct qp_cq q;
	uint32_t cqe;
	struct ring_cq *leaving; /* resized: a worker may still write to this one; or NULL */
	bool quiet;              /* nobody listens to its events: the dataplane's own */
	bool armed;              /* waits for a completion */
	struct app_cq *app;      /* the application's side of it, or NULL */
	uint32_t fired;          /* completion events not delivered yet */
};

struct object_srq {
	struct named n;
	struct qp_srq q;
	struct object_pd *pd;
	struct owner *owner;      /* whose it is, or NULL */
	struct owner_place place; /* of its ring, with an owner */
	struct app_srq *app;      /* who posts, with an owner */
	struct ring rq;           /* producer's view */
	struct conf_srq conf;     /* as modified last; q.limit is the limit in effect */
	struct object_xrcd *xrcd; /* of type XRC, else NULL */
	struct object_cq *cq;     /* ... where its completions go */
	bool hidden;              /* ... no request finds it any more */
	/* The ring that it has left, and that a worker may still be at. */
	bool has_old;
	struct mem_area old_area;
	struct owner_place old_place;
};

/** Upwards: what others have to hear. Set once, by the owner of the loop. */
struct objects_up {
	/** Nothing is told of this object any more: it is being destroyed. Also called for QPs. */
	void (*gone)(void *ctx, enum object_kind kind, uint32_t number);
	/** A CQ that was armed has got a completion. */
	void (*fired)(void *ctx, const struct object_cq *cq);
	void *ctx;
};

/** All objects of the dataplane but QPs. */
struct objects {
	struct env *env;
	struct objects_up up;
	struct names pds;
	struct names mrs;
	struct names mws;
	struct names cqs;
	struct names xrcds;
	struct names srqs;
	struct regions_gone regions_gone;
	uint32_t next_mw; /* last number that was given away in a name */
	uint32_t looked;  /* regions.h: at so many regions in this turn */
	uint64_t looked_turn;
	uint32_t armed; /* CQs that wait for a completion */
	uint64_t random_fallback;
	bool memory_logged;
	STAILQ_HEAD(, object_late) late; /* object_late.c: to be given back */
};

/**
 * @param objs all zero.
 * @return 0 or -ENOMEM; objects_fini() is right after both.
 */
int objects_init(struct objects *objs, struct env *env, const struct objects_up *up);

/** Object of this name, or NULL with the refusal (ENOENT) filled in. */
struct object_pd *object_pd_find(struct objects *objs, const char *name, struct refusal *r);
/** The same for a memory region. */
struct object_mr *object_mr_find(struct objects *objs, const char *name, struct refusal *r);
/** The same for a completion queue. */
struct object_cq *object_cq_find(struct objects *objs, const char *name, struct refusal *r);
/** The same for a shared receive queue. */
struct object_srq *object_srq_find(struct objects *objs, const char *name, struct refusal *r);
/** The same for an XRC domain. */
struct object_xrcd *object_xrcd_find(struct objects *objs, const char *name, struct refusal *r);
/** CQ with this number, or NULL. Cost: linear; for events only. */
struct object_cq *object_cq_by_id(struct objects *objs, uint32_t id);
/** SRQ with this number, or NULL. Cost: linear; for events only. */
struct object_srq *object_srq_by_id(struct objects *objs, uint32_t id);

/** A protection domain. @return 0 or a refusal: EEXIST, ENOSPC, ENOMEM. */
int object_pd_create(struct objects *objs, const struct conf_pd *conf, struct refusal *r);
/** A memory region in memory of the dataplane's own, published. @return 0 or a refusal. */
int object_mr_create(struct objects *objs, const struct conf_mr *conf, struct refusal *r);
/** A completion queue in memory of the dataplane's own. @return 0 or a refusal. */
int object_cq_create(struct objects *objs, const struct conf_cq *conf, struct refusal *r);
/** An XRC domain. @return 0 or a refusal: EEXIST, ENOSPC, ENOMEM. */
int object_xrcd_create(struct objects *objs, const struct conf_xrcd *conf, struct refusal *r);
/** One opening less; the last one frees it. -EBUSY: it is the last, and something is left in it. */
int object_xrcd_close(struct objects *objs, struct object_xrcd *xrcd, struct refusal *r);
/** A shared receive queue in memory of the dataplane's own. @return 0 or a refusal. */
int object_srq_create(struct objects *objs, const struct conf_srq *conf, struct refusal *r);
/**
 * Any thread: the memory of a region that the dataplane makes, filled as asked for.
 * @return 0 or a refusal.
 */
int object_mr_prepare(
	int numa_node, const struct conf_mr *conf, struct mem_area *out, struct refusal *r);
/** The same over memory that is there. @param from NULL: over the dataplane's own. */
int object_mr_create_in(struct objects *objs, const struct conf_mr *conf,
	const struct object_memory *from, struct object_mr **out, struct refusal *r);
/**
 * Change a region in place, its keys stay: workers do not know it meanwhile.
 * @param conf pd, access, remote_invalidate and addr from now on; with `from` also length.
 * @param from the memory from now on, a client's; NULL: it stays.
 * @return 0 or a refusal, after which the region is as before; -EBUSY: windows are bound to it.
 * Cost: a round trip to every worker.
 */
int object_mr_rereg(struct objects *objs, struct object_mr *mr, const struct conf_mr *conf,
	const struct object_memory *from, struct refusal *r);
/** The same in `mem`, of ring_size(ring_entries(cqe), sizeof(struct ring_cqe)); NULL: its own. */
int object_cq_create_in(struct objects *objs, const struct conf_cq *conf, void *mem,
	struct object_cq **out, struct refusal *r);
/**
 * Completions go to `mem` from now on, of the size as above, an application's. What stands in the
 * old memory stays there, for the application to take first; no worker writes there any more.
 * @return 0; or a refusal: -EINVAL, more stands in it; -EIO: it has overflowed; -ETIMEDOUT: a
 * worker did not answer. With cq->leaving it has begun then, both memories are in use, and
 * object_cq_resize_end() is next; else all is as before.
 * Cost: two round trips to every worker.
 */
int object_cq_resize(
	struct objects *objs, struct object_cq *cq, void *mem, uint32_t cqe, struct refusal *r);
/** With cq->leaving. @return 0: nobody writes to the old memory; or -ETIMEDOUT: not yet. */
int object_cq_resize_end(struct objects *objs, struct object_cq *cq, struct refusal *r);
/**
 * The QP is going to be attached to this worker: are its queues that worker's alone, or shared?
 * See qp_cq_is_alone(). @return 0, or -ETIMEDOUT: a worker did not answer, do not attach.
 * Cost: a round trip to every worker when a queue gets its second one.
 */
int object_cqs_claim(
	struct objects *objs, struct object_cq *send, struct object_cq *recv, uint32_t worker);
/** Any worker may add to it from now on. @return 0, or -ETIMEDOUT as above. */
int object_cq_share(struct objects *objs, struct object_cq *cq);
/** The same in a place of the owner's memory. */
int object_srq_create_in(struct objects *objs, const struct conf_srq *conf, struct owner *owner,
	struct object_srq **out, struct refusal *r);
/**
 * Another capacity, or another limit, which is armed by that (0: disarmed); NULL: as it is.
 * @return 0 or a refusal: fewer than are posted, a limit above max_wr.
 */
int object_srq_modify(struct objects *objs, struct object_srq *srq, const uint32_t *max_wr,
	const uint32_t *limit, struct refusal *r);

/** Attributes as configured, those of now, and what is posted. */
json_t *object_srq_json(struct object_srq *srq);

/** -EBUSY while something refers to the object. */
int object_pd_destroy(struct objects *objs, struct object_pd *pd, struct refusal *r);
/** No event of it is told from then on. -EBUSY while a QP uses it. */
int object_cq_destroy(struct objects *objs, struct object_cq *cq, struct refusal *r);
/**
 * Of type XRC: no request finds it any more. Whoever frees it asks every worker before.
 * @return is it of type XRC?
 */
bool object_srq_hide(struct objects *objs, struct object_srq *srq);
/** How many places of the workers' table are taken. Cost: a look at each. */
uint32_t object_srqs_of_xrc(const struct objects *objs);
/** No event of it is told from then on. -EBUSY while a QP uses it. */
int object_srq_destroy(struct objects *objs, struct object_srq *srq, struct refusal *r);
/**
 * Never refused because of work; freed after every worker has left the burst before. -EBUSY while
 * windows are bound to it.
 * @param where whose thread gives a large area back; NULL: here.
 */
int object_mr_destroy(
	struct objects *objs, struct object_mr *mr, struct broker_conn *where, struct refusal *r);
/** Many at once: revoke all, make one round trip to every worker, then free each. */
void object_mr_revoke(struct objects *objs, struct object_mr *mr);
/** Every worker has left the burst in which it was revoked. */
void object_mr_free_revoked(struct objects *objs, struct object_mr *mr);

/** The same as object_mr_find() for a memory window. */
struct object_mw *object_mw_find(struct objects *objs, const char *name, struct refusal *r);
/**
 * An unbound window with an unpredictable key. @param type 1 or 2. @param name "": one is picked.
 * @return 0 or a refusal.
 */
int object_mw_alloc(struct objects *objs, struct object_pd *pd, uint32_t type, const char *name,
	struct object_mw **out, struct refusal *r);
/** Bound or not: its key dies, then it is freed after a round trip to every worker. */
void object_mw_dealloc(struct objects *objs, struct object_mw *mw);
/** Many at once: all keys die, then, behind a round trip to every worker, each is freed. */
void object_mw_revoke(struct objects *objs, struct object_mw *mw);
/** Every worker has left the burst in which it was revoked. */
void object_mw_free_revoked(struct objects *objs, struct object_mw *mw);
/** The queue pair of this number, which is detached, is going away: what it bound is unbound. */
void object_mws_leave(struct object_pd *pd, uint32_t qpn);
/** As it was made, and as it is bound. */
json_t *object_mw_json(struct objects *objs, const struct object_mw *mw);

/**
 * A region of `bytes` with an unpredictable key, for the dataplane's own buffers (recv_feed).
 * @return 0 or -errno.
 */
int object_feed_region(struct objects *objs, struct object_pd *pd, uint64_t bytes,
	struct mem_region **out, struct refusal *r);
/** Revoke a region's key, wait for every worker, free it. @return false: left behind. */
bool object_region_retire(struct objects *objs, struct mem_region *region);

/* ---- object_late.c: what a worker that did not answer may still be at ------------------------ */

/** It is in no table any more. @param memory a use of it that the region has, or NULL. */
void object_late_region(
	struct objects *objs, struct mem_region *region, struct broker_memory *memory);
/** The same for a window. */
void object_late_window(struct objects *objs, struct mem_window *window);
/** Give back what no worker can be at any more, if all answer. @return how many. */
uint32_t object_late_poll(struct objects *objs);
/** All of it, as far as workers answer. */
void object_late_fini(struct objects *objs);

/** After all QPs are gone: frees every object. */
void objects_fini(struct objects *objs);

/** Unpredictable number; falls back to the clock and a counter if the system has none. */
uint64_t object_random(struct objects *objs);

#endif
