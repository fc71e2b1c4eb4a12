/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ROCELANE_XRC_H
#define ROCELANE_XRC_H
/**
 * @file rocelane_xrc.h  librocelane's XRC domains. Include rocelane.h.
 *
 * Owner:   any thread.
 * Memory:  the library's, until rl_close_xrcd() or rl_close().
 * Depends: rocelane.h.
 */
#include "rocelane.h"

/** An XRC domain of this application alone. @return -ENOSPC: over the limit of its PDs. */
int rl_create_xrcd(struct rl_context *ctx, struct rl_xrcd **xrcd);
/**
 * The XRC domain of this name (1 to 40 characters), for all applications of this user, and of no
 * other, that open it: an SRQ of each can be reached through one target QP.
 * @param oflags O_CREAT, O_EXCL. @return -ENOENT, -EEXIST: as open(2).
 */
int rl_open_xrcd(struct rl_context *ctx, const char *name, int oflags, struct rl_xrcd **xrcd);
/** The last one closes the domain. @return -EBUSY: an SRQ or a QP of this application is in it. */
int rl_close_xrcd(struct rl_xrcd *xrcd);
/** @return -EINVAL: the SRQ is not of type XRC. */
int rl_get_srq_num(struct rl_srq *srq, uint32_t *srq_num);

struct rl_qp_open_attr {
	struct rl_xrcd *xrcd;
	uint32_t qp_num;
	void *qp_context;
};

/**
 * A target (RL_QPT_XRC_RECV) that another application made in this domain. It can be modified,
 * queried and destroyed, and its events come here, too. rl_destroy_qp() and the end of an
 * application close it; the QP is there until the last one that has it did so. It counts as a QP
 * of each.
 * @param pd any: keys are checked by the SRQs' domains.
 * @return -ENOENT: there is no such QP in it; -EEXIST: this application has it already; -ENOSPC:
 * over the limit of its QPs.
 */
int rl_open_qp(struct rl_pd *pd, const struct rl_qp_open_attr *attr, struct rl_qp **qp);

#endif
