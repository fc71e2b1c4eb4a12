/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ADMIN_OPEN_H
#define ADMIN_OPEN_H
/**
 * @file admin_open.h  XRC targets of several applications: one is the owner, others opened it.
 *
 * Owner:   control lcore.
 * Memory:  a struct admin_opener for each application that opened a QP, until it closes it.
 * Depends: admin.
 * Spec:    XRC-09; ibv_open_qp() of libibverbs.
 *
 * A target has no queues and no domain of its own, so any application that has its XRC domain can
 * be its owner. When the owner is done with it, or ends, the one that opened it first is the next;
 * the QP goes on, and is destroyed with the last of them.
 */
#include "admin.h"

struct admin_opener {
	struct admin_qp *rec;
	struct owner *owner;
	struct object_pd *pd; /* the QP's when it is the owner */
	TAILQ_ENTRY(admin_opener) of_qp;
	TAILQ_ENTRY(admin_opener) of_owner;
};

/** @return 0 or a refusal: it has the QP already, no XRC target, a limit. */
int admin_open(struct owner *o, struct admin_qp *rec, struct object_pd *pd, struct refusal *r);
/** Has it opened the QP? Its owner has not. */
bool admin_has_open(const struct owner *o, const struct admin_qp *rec);
/** Has it opened a QP of this domain? */
bool admin_has_open_in(const struct owner *o, const struct object_xrcd *xrcd);
/**
 * The application, its owner or not, is done with the QP. @return true: others have it, and it goes
 * on; false: it is the owner's alone, and nothing was done.
 */
bool admin_close(struct owner *o, struct admin_qp *rec);
/** It ends: the same for all that it has. */
void admin_close_all(struct owner *o);
/** The QP is being destroyed: nobody has opened it any more. */
void admin_open_forget(struct admin_qp *rec);

#endif
