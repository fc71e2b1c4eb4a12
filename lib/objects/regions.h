/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef REGIONS_H
#define REGIONS_H
/**
 * @file regions.h  Which region was it, or which was meant? Those that are gone, too.
 *
 * Owner:   control lcore.
 * Memory:  the newest REGIONS_GONE deregistered regions, by value.
 * Depends: objects, mem.
 *
 * An application is told of its own regions only: the caller says for whom it asks.
 */
#include <stdbool.h>
#include <stdint.h>

#include "clock.h"
#include "conf.h"
#include "mem_refusal.h"

#define REGIONS_GONE 256

struct owner;
struct objects;
struct object_mr;

/** A region, as it is or was. */
struct region_view {
	char name[CONF_NAME_MAX];
	char pd[CONF_NAME_MAX];
	uint64_t va;
	uint64_t length;
	uint32_t key;
	uint32_t pd_id;
	access_t access;
	bool revoked; /* its key */
	ns_t made_ns; /* since when it was so: it has nothing to do with what was before */
	ns_t gone_ns; /* when it was deregistered, 0: it is there */
};

/** Why a region may have been meant. */
enum { REGIONS_LOOKS = 32768 }; /* 2 ms */

enum { REGION_HOLDS_RANGE = 1 << 0, REGION_KEY_BYTE = 1 << 1, REGION_KEY_DIGIT = 1 << 2 };

struct regions_gone {
	struct region_view r[REGIONS_GONE];
	uint32_t n; /* ever */
};

/**
 * May all regions be looked at once more in this turn? Whoever asks does so. Failures of clients
 * cost a look at each region that there is; a turn has time for REGIONS_LOOKS, and for one look.
 */
bool regions_may_look(struct objects *objs);
/** It is being deregistered. */
void regions_note_gone(struct objects *objs, const struct object_mr *mr);
/**
 * The region that a refusal at `when` found, or the one that had the key before.
 * @param viewer an application, or NULL: the operator.
 * @return false: there is none that the viewer may know of.
 */
bool regions_of(struct objects *objs, const struct owner *viewer, const struct mem_refusal *m,
	ns_t when, struct region_view *out);
/** The region that had the key at `when`, or the last one before. @return false: none. */
bool regions_by_key(struct objects *objs, uint32_t key, ns_t when, struct region_view *out);
/**
 * Another region that the request refused at `when` may have been meant for: it was there then.
 * @return why: REGION_* flags, 0: there is none.
 */
unsigned int regions_meant(struct objects *objs, const struct owner *viewer,
	const struct mem_refusal *m, ns_t when, struct region_view *out);
/** Name of a protection domain, "" if it is gone. */
const char *regions_pd_name(const struct objects *objs, uint32_t id);

#endif
