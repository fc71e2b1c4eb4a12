/* SPDX-License-Identifier: BSD-3-Clause */
#include "rpc_admit.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

void
rpc_admission_init(struct rpc_admission *a, const struct conf_control *conf)
{
	quota_init(&a->places, RPC_PLACES, RPC_PLACES - CONF_MAX_CLIENTS,
		conf->client_limits.user.connections);
}

bool
rpc_is_operator(const struct owner_process *who, bool limited)
{
	return !limited && (who->uid == 0 || who->uid == geteuid());
}

static uint32_t
find(const struct rpc_admission *a, uint32_t uid)
{
	uint32_t i = 0;

	while (i < a->users_n && a->user[i].uid != uid)
		i++;
	return i;
}

uint32_t
rpc_admitted(const struct rpc_admission *a, uint32_t uid)
{
	const uint32_t i = find(a, uid);

	return i < a->users_n ? a->user[i].n : 0;
}

/* All places are taken, or those that are left are not for this one. */
static int
refuse_place(const struct rpc_admission *a, uint32_t uid, bool operator, struct refusal * r)
{
	const uint64_t all = a->places.used + a->places.operators;
	char whose[32] = "the operator";

	if (!operator)
		snprintf(whose, sizeof(whose), "user %" PRIu32, uid);
	return refuse(r, EUSERS,
		"there are %" PRIu64 " connections already, %" PRIu64 " of them of %s%s: end one",
		all, operator? a->places.operators : rpc_admitted(a, uid), whose,
		all < RPC_PLACES
			? ", and the other places are kept for the operator and other users"
			: "");
}

int
rpc_admit(struct rpc_admission *a, uint32_t uid, bool operator, struct refusal * r)
{
	const uint32_t has = operator? 0 : rpc_admitted(a, uid);
	uint32_t i;

	switch (quota_ask(&a->places, has, 1, operator)) {
	case QUOTA_OK:
		break;
	case QUOTA_USER:
		return refuse(r, EUSERS,
			"user %" PRIu32 " has %" PRIu32 " connections, and "
			"control.client_limits.user.connections is %" PRIu64 ": end one",
			uid, has, a->places.most);
	default:
		return refuse_place(a, uid, operator, r);
	}
	quota_take(&a->places, has, 1, operator);
	if (operator)
		return 0;
	i = find(a, uid);
	if (i == a->users_n) {
		a->user[i].uid = uid;
		a->user[i].n = 0;
		a->user[i].used = a->used;
		a->users_n++;
	}
	a->user[i].n++;
	return 0;
}

void
rpc_admit_end(struct rpc_admission *a, uint32_t uid, bool operator)
{
	const uint32_t i = find(a, uid);

	if (operator) {
		quota_give(&a->places, a->places.operators, 1, true);
		return;
	}
	if (i == a->users_n)
		return;
	quota_give(&a->places, a->user[i].n, 1, false);
	if (--a->user[i].n == 0)
		a->user[i] = a->user[--a->users_n];
}

ns_t
rpc_used(const struct rpc_admission *a, uint32_t uid, bool operator)
{
	const uint32_t i = operator? 0 : find(a, uid);
	const ns_t used = operator? a->operators_used : i<a->users_n ? a->user[i].used : 0;

	return used > a->used ? used : a->used;
}

void
rpc_paid(struct rpc_admission *a, uint32_t uid, bool operator, ns_t took)
{
	const uint32_t i = operator? 0 : find(a, uid);

	a->used = rpc_used(a, uid, operator);
	if (operator)
		a->operators_used = a->used + took;
	else if (i < a->users_n)
		a->user[i].used = a->used + took;
}
