/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RESP_KEPT_H
#define RESP_KEPT_H
/**
 * @file resp_kept.h  Requests that came before one below them, by their PSNs (resp.gap=keep).
 *
 * Owner:   the worker that owns the QP.
 * Memory:  the caller's, and so is what is kept: here are pointers to it.
 * Depends: base.
 * Spec:    RESP-SEQ-14, RESP-SEQ-15.
 *
 * What a responder says may be kept (ACT_KEEP) goes in with resp_kept_put(). After each request of
 * the QP resp_kept_take() gives back, lowest PSN first, what ePSN has come to: that is handed to
 * responder_receive() as if it came now, so nothing of the protocol knows that it waited. What ePSN
 * has passed came in another copy, and is given back to be dropped.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "psn.h"

#define RESP_KEPT 256u /* PSNs from ePSN on; a power of two */

struct resp_kept {
	uint32_t n;
	psn_t from; /* with any: ePSN at the last look, or what that has taken out */
	void *at[RESP_KEPT];
};

/** May a request at PSN `p` be kept, which is ahead of ePSN? */
static inline bool
resp_kept_fits(psn_t epsn, psn_t p)
{
	return psn_distance(p, epsn) < RESP_KEPT;
}

/** Keep it. @return what was kept of this PSN before, to be dropped; or NULL. */
void *resp_kept_put(struct resp_kept *k, psn_t epsn, psn_t p, void *what);

enum resp_kept_is {
	KEPT_IS_NONE, /* nothing at ePSN or below */
	KEPT_IS_DUE,  /* at ePSN: it is the next request */
	KEPT_IS_OVER, /* below: to be dropped */
};

/** Take out the lowest one that is not ahead of ePSN. */
enum resp_kept_is resp_kept_take(struct resp_kept *k, psn_t epsn, void **what);

/** Take out any, when nothing may be kept any more. @return NULL: there is none. */
void *resp_kept_drop(struct resp_kept *k);

#endif
