/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CHARGE_H
#define CHARGE_H
/**
 * @file charge.h  What an application holds, what all of its user's hold, and how much there is.
 *
 * Owner:   control lcore.
 * Memory:  a struct owner_user for each user who has applications.
 * Depends: conf, quota.h, DPDK (its heap).
 *
 * Each kind has three bounds: control.client_limits for one application, control.client_limits.user
 * for all of one user, and what there is at all. Of the last a part is the operator's, and users
 * who are not here yet find something (quota.h). A refusal says which bound it was.
 */
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "conf.h"
#include "quota.h"
#include "refusal.h"

/**
 * ROW(name, key, err, what): `key` in control.client_limits and control.client_limits.user; `err`
 * when a client's own limit or what all have together is reached; `what` for sentences.
 */
/* clang-format off */
#define OWNER_CHARGES(ROW) \
	ROW(CLIENTS,     clients,        ENOSPC, "clients") \
	OWNER_CLIENT_CHARGES(ROW) \
	OWNER_SCARCE_CHARGES(ROW)
#define OWNER_CLIENT_CHARGES(ROW) /* of one application */ \
	ROW(PDS,         pds,            ENOSPC, "protection domains") \
	ROW(MRS,         mrs,            ENOSPC, "regions") \
	ROW(CQS,         cqs,            ENOSPC, "completion queues") \
	ROW(SRQS,        srqs,           ENOSPC, "shared receive queues") \
	ROW(AHS,         ahs,            ENOSPC, "address handles") \
	ROW(MCASTS,      mcasts,         ENOSPC, "memberships in multicast groups") \
	ROW(QPS,         qps,            ENOSPC, "queue pairs") \
	ROW(CHANNELS,    channels,       ENOSPC, "completion channels") \
	ROW(CM_IDS,      cm_ids,         ENOSPC, "connections") \
	ROW(CM_LISTENERS, cm_listeners,  ENOSPC, "listeners") \
	ROW(CM_PENDING,  cm_pending,     ENOSPC, "connections that wait for an answer") \
	ROW(OUTSTANDING, outstanding,    ENOSPC, "work requests") \
	ROW(MEMORY,      memory,         ENOMEM, "bytes of regions and rings") \
	ROW(PRIVATE,     private_memory, ENOMEM, "bytes for the work of queue pairs")
#define OWNER_SCARCE_CHARGES(ROW) /* besides: of these there are fewer, and limits are the same */ \
	ROW(XRC_SRQS,    srqs,           ENOSPC, "shared receive queues of type XRC")
/* clang-format on */

enum owner_kind {
#define OWNER_KIND(name, key, err, what) OWNER_##name,
	OWNER_CHARGES(OWNER_KIND)
#undef OWNER_KIND
		OWNER_KINDS,
	OWNER_KEYS = OWNER_XRC_SRQS /* up to here each has a key of its own */
};

struct owner;

struct owner_user {
	TAILQ_ENTRY(owner_user) all;
	uint32_t uid;
	bool operator;
	uint32_t owners; /* applications that point here */
	uint64_t has[OWNER_KINDS];
};

struct owner_users {
	TAILQ_HEAD(, owner_user) all;
	const struct conf_client_limits *limits;
	bool counted; /* `quota` is set: when the first application came */
	struct quota quota[OWNER_KINDS];
};

/** What there is beside the limits of the configuration. */
struct owner_supply {
	uint64_t keys;        /* that regions of applications may have */
	uint64_t qps;         /* queue pairs */
	uint64_t descriptors; /* that can still be opened */
	uint64_t heap;        /* bytes that EAL's heap can still give */
	uint64_t cm_ids;      /* connections */
	uint64_t cm_listeners;
	uint64_t cm_pending; /* connections that are not finished */
	uint64_t xrc_srqs;
};

/** @param u all zero. */
void owner_users_init(struct owner_users *u, const struct conf_client_limits *limits);
/** Share this out. Once, before the first application. */
void owner_users_supply(struct owner_users *u, const struct owner_supply *s);
/** What EAL's heap and RLIMIT_NOFILE have to give now. */
void owner_supply_look(struct owner_supply *s);
/** The application is of this user from now on. @return 0 or a refusal. */
int owner_user_join(struct owner_users *u, struct owner *o, bool operator, struct refusal * r);
/** It is gone: all that it was charged for is given back. */
void owner_user_leave(struct owner_users *u, struct owner *o);
/** `n` more of this kind. @return 0, or a refusal that says which limit it is over. */
int owner_charge(struct owner *o, enum owner_kind kind, uint64_t n, struct refusal *r);
/**
 * Another limit than control.client_limits for this application: a lower one. What it has beyond
 * that it keeps. @return 0 or a refusal.
 */
int owner_limit(struct owner *o, enum owner_kind kind, uint64_t most, struct refusal *r);
/** Give `n` back. */
void owner_uncharge(struct owner *o, enum owner_kind kind, uint64_t n);
/** What one has another one has from now on, over its limits or not: they have the same user. */
void owner_charge_moved(struct owner *from, struct owner *to, enum owner_kind kind, uint64_t n);
/** A region of so many bytes: its key, and the bytes. @return 0 or a refusal. */
int owner_charge_region(struct owner *o, uint64_t bytes, struct refusal *r);
/** Give both back. */
void owner_uncharge_region(struct owner *o, uint64_t bytes);
/** Its key in the configuration. */
const char *owner_kind_key(enum owner_kind kind);

#endif
