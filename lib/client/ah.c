/* SPDX-License-Identifier: BSD-3-Clause */
/* Address handles: where the datagrams of work requests go. */
#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "client_priv.h"

#define LOOK_NS    UINT64_C(1000000)    /* between two looks whether the neighbour has answered */
#define WAIT_NS    UINT64_C(3000000000) /* for it: the dataplane asks four times meanwhile */
#define NS_PER_S   UINT64_C(1000000000)
#define LOOKS_FAST 64 /* that often; then more seldom */

static uint64_t
now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_nsec;
}

/* @return 0, -EAGAIN: the neighbour's MAC is not known yet, or -errno. */
static int
look(struct context *ctx, const struct ah *ah, bool last)
{
	json_t *result;
	int rc;

	client_lock(ctx);
	rc = client_call(ctx, "client_ah_query",
		json_pack("{s:I}", "handle", (json_int_t)ah->handle), -1, &result);
	client_unlock(ctx);
	if (rc != 0)
		return rc;
	if (!json_is_true(json_object_get(result, "known")))
		rc = last ? client_fail(EHOSTUNREACH, "nobody answers at that address: %s",
				    json_string_value(json_object_get(result, "neighbor")))
			  : -EAGAIN;
	json_decref(result);
	return rc;
}

/* Until the neighbour has answered, or for three seconds. */
static int
wait_neighbor(struct context *ctx, const struct ah *ah)
{
	const uint64_t end = now_ns() + WAIT_NS;
	CANCEL_HELD;
	int rc;

	for (uint32_t n = 0;; n++) {
		const uint64_t pause = LOOK_NS * (n < LOOKS_FAST ? 1 : 20);

		rc = look(ctx, ah, now_ns() >= end);
		if (rc != -EAGAIN)
			return rc;
		nanosleep(&(struct timespec){ .tv_nsec = (long)pause }, NULL);
	}
}

/* ---- handles that have ended ----------------------------------------------------------------- */

/*
 * A device copies the address when a request is posted. Here the worker looks the handle up when it
 * sends: the dataplane keeps one that has ended until no request that names it is left.
 */

/** Requests of a QP that name it. */
struct ah_use {
	const struct qp *qp;
	uint32_t end; /* the index behind the last of them */
};

static uint32_t
completed(const struct qp *qp)
{
	return atomic_load_explicit(&qp->sq.sh->cons, memory_order_acquire);
}

/** Does a request that has not completed name it? @param end the index behind the last of them. */
static bool
is_named(struct qp *qp, const struct ah *ah, uint32_t *end)
{
	uint32_t first;
	bool found = false;

	if (qp->pub.qp_type != RL_QPT_UD || qp->pub.pd != ah->pub.pd || qp->sq.sh == NULL)
		return false;
	spin_lock(&qp->sq_lock);
	*end = qp->sq.prod;
	for (first = completed(qp); *end != first && !found; *end -= !found) {
		const void *wqe = ring_slot(&qp->sq, *end - 1);

		found = ((const struct ring_send_wqe *)wqe)->rkey == ah->key;
	}
	spin_unlock(&qp->sq_lock);
	return found;
}

/** Note who still needs it. @return 0 or -ENOMEM. */
static int
note_uses(struct context *ctx, struct ah *ah)
{
	struct ah_use use, *more;

	TAILQ_FOREACH (use.qp, &ctx->qps, all) {
		if (!is_named((struct qp *)use.qp, ah, &use.end))
			continue;
		more = realloc(ah->uses, (ah->uses_n + 1) * sizeof(*more));
		if (more == NULL)
			return client_fail(ENOMEM, "out of memory");
		ah->uses = more;
		ah->uses[ah->uses_n++] = use;
	}
	return 0;
}

/** @param gone a QP that has forgotten its requests, or NULL. */
static void
drop_uses(struct ah *ah, const struct qp *gone)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < ah->uses_n; i++) {
		const struct ah_use use = ah->uses[i];

		if (use.qp != gone && (int32_t)(completed(use.qp) - use.end) < 0)
			ah->uses[kept++] = use;
	}
	ah->uses_n = kept;
}

static void
free_ah(struct ah *ah)
{
	free(ah->uses);
	free(ah);
}

/** Give back those that nothing needs any more. @return how many. */
static uint32_t
give_back(struct context *ctx, const struct qp *gone)
{
	struct ah *ah = TAILQ_FIRST(&ctx->ended_ahs), *next;
	uint32_t n = 0;

	for (; ah != NULL; ah = next) {
		next = TAILQ_NEXT(ah, all);
		drop_uses(ah, gone);
		if (ah->uses_n != 0 || client_call(ctx, "client_ah_destroy",
					       json_pack("{s:I}", "handle", (json_int_t)ah->handle),
					       -1, NULL) != 0)
			continue;
		TAILQ_REMOVE(&ctx->ended_ahs, ah, all);
		free_ah(ah);
		n++;
	}
	return n;
}

void
client_ahs_left(struct context *ctx, const struct qp *qp)
{
	give_back(ctx, qp);
}

/** There is no room for another handle: until one has been given back, or for about a second. */
static bool
wait_room(struct context *ctx)
{
	CANCEL_HELD;

	for (uint32_t n = 0; n < NS_PER_S / LOOK_NS; n++) {
		bool some, none;

		client_lock(ctx);
		none = TAILQ_EMPTY(&ctx->ended_ahs);
		some = give_back(ctx, NULL) != 0;
		client_unlock(ctx);
		if (some || none)
			return some;
		nanosleep(&(struct timespec){ .tv_nsec = LOOK_NS }, NULL);
	}
	return false;
}

void
client_free_ahs(struct context *ctx)
{
	struct ah *ah;

	TAILQ_CONCAT(&ctx->ahs, &ctx->ended_ahs, all);
	while ((ah = TAILQ_FIRST(&ctx->ahs)) != NULL) {
		TAILQ_REMOVE(&ctx->ahs, ah, all);
		free_ah(ah);
	}
}

/* ---- those of the application ---------------------------------------------------------------- */

static int
make(struct context *ctx, struct ah *ah, const struct rl_ah_attr *attr)
{
	json_t *params, *result;
	int rc;

	if (attr->is_global == 0)
		return client_fail(EINVAL, "is_global is 0: RoCE addresses are global");
	if (attr->port_num < 1 || attr->port_num > ctx->pub.num_ports)
		return client_fail(EINVAL, "port_num %u does not exist: there are %u, from 1",
			attr->port_num, ctx->pub.num_ports);
	params = json_pack("{s:I, s:s, s:o}", "pd",
		(json_int_t)((const struct pd *)ah->pub.pd)->handle, "port",
		ctx->ports[attr->port_num - 1].name, "ah_attr", client_path_encode(attr));
	client_lock(ctx);
	rc = client_call(ctx, "client_ah_create", params, -1, &result);
	if (rc == 0) {
		ah->handle = (uint32_t)json_integer_value(json_object_get(result, "handle"));
		ah->key = (uint32_t)json_integer_value(json_object_get(result, "key"));
		TAILQ_INSERT_TAIL(&ctx->ahs, ah, all);
		json_decref(result);
	}
	client_unlock(ctx);
	return rc;
}

int
rl_create_ah(struct rl_pd *pd, struct rl_ah_attr *attr, struct rl_ah **out)
{
	struct context *ctx = context_of(pd->context);
	struct ah *ah = calloc(1, sizeof(*ah));
	int rc;

	*out = NULL;
	if (ah == NULL)
		return client_fail(ENOMEM, "out of memory");
	ah->pub = (struct rl_ah){ .context = pd->context, .pd = pd };
	do {
		rc = make(ctx, ah, attr);
	} while (rc == -ENOSPC && wait_room(ctx));
	if (rc != 0) {
		free(ah);
		return rc;
	}
	rc = wait_neighbor(ctx, ah);
	if (rc != 0) {
		rl_destroy_ah(&ah->pub);
		return rc;
	}
	*out = &ah->pub;
	return 0;
}

int
rl_destroy_ah(struct rl_ah *pub)
{
	struct context *ctx = context_of(pub->context);
	struct ah *ah = (struct ah *)pub;
	int rc;

	client_lock(ctx);
	rc = note_uses(ctx, ah);
	if (rc == 0) {
		TAILQ_REMOVE(&ctx->ahs, ah, all);
		TAILQ_INSERT_TAIL(&ctx->ended_ahs, ah, all);
		give_back(ctx, NULL);
	}
	client_unlock(ctx);
	return rc;
}
