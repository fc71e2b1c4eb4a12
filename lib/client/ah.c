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

	pthread_mutex_lock(&ctx->lock);
	rc = client_call(ctx, "client_ah_query",
		json_pack("{s:I}", "handle", (json_int_t)ah->handle), -1, &result);
	pthread_mutex_unlock(&ctx->lock);
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
	int rc;

	for (uint32_t n = 0;; n++) {
		const uint64_t pause = LOOK_NS * (n < LOOKS_FAST ? 1 : 20);

		rc = look(ctx, ah, now_ns() >= end);
		if (rc != -EAGAIN)
			return rc;
		nanosleep(&(struct timespec){ .tv_nsec = (long)pause }, NULL);
	}
}

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
	pthread_mutex_lock(&ctx->lock);
	rc = client_call(ctx, "client_ah_create", params, -1, &result);
	if (rc == 0) {
		ah->handle = (uint32_t)json_integer_value(json_object_get(result, "handle"));
		ah->key = (uint32_t)json_integer_value(json_object_get(result, "key"));
		TAILQ_INSERT_TAIL(&ctx->ahs, ah, all);
		json_decref(result);
	}
	pthread_mutex_unlock(&ctx->lock);
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
	rc = make(ctx, ah, attr);
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
	const int rc = client_call_handle(ctx, "client_ah_destroy", ah->handle);

	if (rc != 0)
		return rc;
	pthread_mutex_lock(&ctx->lock);
	TAILQ_REMOVE(&ctx->ahs, ah, all);
	pthread_mutex_unlock(&ctx->lock);
	free(ah);
	return 0;
}
