/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RPC_ADMIT_H
#define RPC_ADMIT_H
/**
 * @file rpc_admit.h  Who may connect: places at the control socket, shared out among users.
 *
 * Owner:   control lcore.
 * Memory:  the caller's.
 * Depends: conf, owner (who somebody is).
 *
 * The operator's part is never a user's, a user has no more than control.client_limits.user says,
 * and a few places stay free for users who are not here yet (quota.h). A connection that is refused
 * is told why.
 */
#include <stdbool.h>
#include <stdint.h>

#include "clock.h"
#include "conf.h"
#include "log_rate.h"
#include "owner.h"
#include "quota.h"
#include "refusal.h"

#define RPC_PLACES 128 /* connections at a time */

struct rpc_admission {
	struct quota places;
	struct {
		uint32_t uid;
		uint32_t n;
		ns_t used;  /* rpc_paid() */
	} user[RPC_PLACES]; /* those with connections */
	ns_t operators_used;
	ns_t used; /* by whoever had used least, when it was served last */
	uint32_t users_n;
	struct log_rate told;
};

/** @param a all zero. */
void rpc_admission_init(struct rpc_admission *a, const struct conf_control *conf);
/**
 * Is it the operator: root, or the user whom the dataplane runs as?
 * @param limited it came by the clients' socket, where nobody is.
 */
bool rpc_is_operator(const struct owner_process *who, bool limited);
/** One more connection of this user. @return 0 with the place taken, or a refusal (EUSERS). */
int rpc_admit(struct rpc_admission *a, uint32_t uid, bool operator, struct refusal * r);
/** A connection that was admitted is gone. */
void rpc_admit_end(struct rpc_admission *a, uint32_t uid, bool operator);
/**
 * How much of the control lcore's time the user has had, as far as it counts: who has had least is
 * served first. Who was silent for long has saved nothing up. Operators are one user.
 */
ns_t rpc_used(const struct rpc_admission *a, uint32_t uid, bool operator);
/** The user, who had used so much before, has been served for so long. */
void rpc_paid(struct rpc_admission *a, uint32_t uid, bool operator, ns_t took);
/** Connections of this user that are not an operator's. */
uint32_t rpc_admitted(const struct rpc_admission *a, uint32_t uid);

#endif
