/* SPDX-License-Identifier: BSD-3-Clause */
#include "charge.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include <rte_eal.h>
#include <rte_lcore.h>
#include <rte_malloc.h>

#include "invariant.h"
#include "owner.h"
#include "qp_ah.h"
#include "qp_mcast.h"

/* More than anybody has: the bound is the machine's, or the configuration's. */
#define NO_END (UINT64_C(1) << 62)

/* Descriptors for files, ports and connections with what they pass, not for applications. */
#define OWN_DESCRIPTORS 528

#define KEPT_PART 8 /* of everything: the operator's */
#define HEAP_KEPT 4 /* of the heap likewise */

static const struct {
	const char *key;
	const char *what;
	int err;
} kinds[OWNER_KINDS] = {
#define KIND(name, key, err, what) [OWNER_##name] = { #key, what, err },
	OWNER_CHARGES(KIND)
#undef KIND
};

const char *
owner_kind_key(enum owner_kind kind)
{
	return kinds[kind].key;
}

static uint64_t
limit_of_client(const struct conf_client_limits *l, enum owner_kind kind)
{
	switch (kind) {
#define KIND(name, key, err, what) \
	case OWNER_##name:         \
		return kind == OWNER_CLIENTS ? NO_END : l->key;
		OWNER_CHARGES(KIND)
#undef KIND
	default:
		return 0;
	}
}

static uint64_t
limit_of_user(const struct conf_client_limits *l, enum owner_kind kind)
{
	switch (kind) {
#define KIND(name, key, err, what) \
	case OWNER_##name:         \
		return l->user.key;
		OWNER_CHARGES(KIND)
#undef KIND
	default:
		return 0;
	}
}

/* ---- what there is --------------------------------------------------------------------------- */

/* The next descriptor has the lowest number that is free. */
static uint64_t
open_descriptors(void)
{
	const int fd = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0);

	if (fd >= 0)
		close(fd);
	return fd >= 0 ? (uint64_t)fd : 64;
}

void
owner_supply_look(struct owner_supply *s)
{
	const uint64_t taken = open_descriptors() + OWN_DESCRIPTORS;
	struct rte_malloc_socket_stats heap;
	struct rlimit limit;

	s->descriptors = NO_END;
	if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
		s->descriptors = limit.rlim_cur > taken + 16 ? limit.rlim_cur - taken : 16;
	s->heap = 0;
	for (unsigned int i = 0; i < rte_socket_count(); i++) {
		if (rte_malloc_get_socket_stats(rte_socket_id_by_idx(i), &heap) == 0)
			s->heap += heap.heap_freesz_bytes;
	}
	/* With hugepages the heap can grow. */
	if (rte_eal_has_hugepages() != 0)
		s->heap += mem_available_bytes() / 2;
}

void
owner_users_init(struct owner_users *u, const struct conf_client_limits *limits)
{
	TAILQ_INIT(&u->all);
	u->limits = limits;
}

void
owner_users_supply(struct owner_users *u, const struct owner_supply *s)
{
	for (uint32_t k = 0; k < OWNER_KINDS; k++) {
		uint64_t total = CONF_MAX_OBJECTS, part = KEPT_PART;

		switch (k) {
		case OWNER_CLIENTS:
			total = u->limits->clients;
			break;
		case OWNER_MRS:
			total = s->keys;
			break;
		case OWNER_AHS:
			total = QP_AH_MAX;
			break;
		case OWNER_MCASTS: /* each may be in a group of its own */
			total = QP_MCAST_GROUPS;
			break;
		case OWNER_QPS:
			total = s->qps;
			break;
		case OWNER_CHANNELS:
			total = s->descriptors;
			break;
		case OWNER_CM_IDS:
			total = s->cm_ids;
			break;
		case OWNER_CM_LISTENERS:
			total = s->cm_listeners;
			break;
		case OWNER_CM_PENDING:
			total = s->cm_pending;
			break;
		case OWNER_XRC_SRQS:
			total = s->xrc_srqs;
			break;
		case OWNER_OUTSTANDING:
		case OWNER_MEMORY:
			total = NO_END;
			break;
		case OWNER_PRIVATE:
			total = s->heap;
			part = HEAP_KEPT;
			break;
		default:
			break;
		}
		quota_init(&u->quota[k], total, total / part,
			limit_of_user(u->limits, (enum owner_kind)k));
	}
	u->counted = true;
}

/* ---- who has what ---------------------------------------------------------------------------- */

static struct owner_user *
find(const struct owner_users *u, uint32_t uid, bool operator)
{
	struct owner_user *user;

	TAILQ_FOREACH (user, &u->all, all) {
		if (user->uid == uid && user->operator== operator)
			return user;
	}
	return NULL;
}

int
owner_user_join(struct owner_users *u, struct owner *o, bool operator, struct refusal * r)
{
	struct owner_user *user = find(u, o->process.uid, operator);

	ASSERT(u->counted);
	if (user == NULL) {
		user = calloc(1, sizeof(*user));
		if (user == NULL)
			return refuse(r, ENOMEM, "out of memory");
		user->uid = o->process.uid;
		user->operator= operator;
		TAILQ_INSERT_TAIL(&u->all, user, all);
	}
	user->owners++;
	o->user = user;
	o->users = u;
	for (uint32_t k = 0; k < OWNER_KINDS; k++)
		o->most[k] = limit_of_client(u->limits, (enum owner_kind)k);
	return owner_charge(o, OWNER_CLIENTS, 1, r);
}

void
owner_user_leave(struct owner_users *u, struct owner *o)
{
	struct owner_user *user = o->user;

	if (user == NULL)
		return;
	for (uint32_t k = 0; k < OWNER_KINDS; k++)
		owner_uncharge(o, (enum owner_kind)k, o->has[k]);
	o->user = NULL;
	if (--user->owners != 0)
		return;
	TAILQ_REMOVE(&u->all, user, all);
	free(user);
}

static int
refuse_user(const struct owner_user *user, enum owner_kind kind, uint64_t n, uint64_t most,
	struct refusal *r)
{
	return refuse(r, EDQUOT,
		"%" PRIu64 " more %s than the %" PRIu64 " that user %" PRIu32
		" has are over control.client_limits.user.%s (%" PRIu64 ")",
		n, kinds[kind].what, user->has[kind], user->uid, kinds[kind].key, most);
}

static int
refuse_all(const struct quota *q, enum owner_kind kind, uint64_t n, struct refusal *r)
{
	if (kind == OWNER_CLIENTS)
		return refuse(r, ENOSPC,
			"there are %" PRIu64 " clients, control.client_limits.clients is %" PRIu64
			", and a part is kept for the operator and other users",
			q->used + q->operators, q->total);
	return refuse(r, kinds[kind].err,
		"%" PRIu64 " more %s cannot be had: %" PRIu64 " of %" PRIu64
		" are in use, and a part is kept for the operator and other users; "
		"control.client_limits.user.%s can limit who has them",
		n, kinds[kind].what, q->used + q->operators, q->total, kinds[kind].key);
}

static void
take(struct owner *o, enum owner_kind kind, uint64_t n)
{
	struct owner_user *user = o->user;

	quota_take(&o->users->quota[kind], user->has[kind], n, user->operator);
	user->has[kind] += n;
	o->has[kind] += n;
}

int
owner_charge(struct owner *o, enum owner_kind kind, uint64_t n, struct refusal *r)
{
	const uint64_t most = o->most[kind];
	const struct quota *q = &o->users->quota[kind];
	const struct owner_user *user = o->user;

	if (n > most || o->has[kind] > most - n)
		return refuse(r, kinds[kind].err,
			"%" PRIu64 " more %s than the %" PRIu64
			" that this client has are over control.client_limits.%s (%" PRIu64 ")",
			n, kinds[kind].what, o->has[kind], kinds[kind].key, most);
	switch (quota_ask(q, user->has[kind], n, user->operator)) {
	case QUOTA_USER:
		return refuse_user(user, kind, n, q->most, r);
	case QUOTA_ALL:
		return refuse_all(q, kind, n, r);
	default:
		break;
	}
	take(o, kind, n);
	return 0;
}

int
owner_limit(struct owner *o, enum owner_kind kind, uint64_t most, struct refusal *r)
{
	const uint64_t all = limit_of_client(o->users->limits, kind);

	if (most > all)
		return refuse(r, EINVAL,
			"%" PRIu64 " %s are over control.client_limits.%s (%" PRIu64 ")", most,
			kinds[kind].what, kinds[kind].key, all);
	o->most[kind] = most;
	return 0;
}

void
owner_uncharge(struct owner *o, enum owner_kind kind, uint64_t n)
{
	ASSERT(n <= o->has[kind] && n <= o->user->has[kind]);
	quota_give(&o->users->quota[kind], o->user->has[kind], n, o->user->operator);
	o->user->has[kind] -= n;
	o->has[kind] -= n;
}

void
owner_charge_moved(struct owner *from, struct owner *to, enum owner_kind kind, uint64_t n)
{
	owner_uncharge(from, kind, n);
	take(to, kind, n);
}

int
owner_charge_region(struct owner *o, uint64_t bytes, struct refusal *r)
{
	int rc = owner_charge(o, OWNER_MRS, 1, r);

	if (rc == 0 && (rc = owner_charge(o, OWNER_MEMORY, bytes, r)) != 0)
		owner_uncharge(o, OWNER_MRS, 1);
	return rc;
}

void
owner_uncharge_region(struct owner *o, uint64_t bytes)
{
	owner_uncharge(o, OWNER_MRS, 1);
	owner_uncharge(o, OWNER_MEMORY, bytes);
}
