/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef METHOD_MW_H
#define METHOD_MW_H
/**
 * @file method_mw.h  What a request of post_send says of a bind.
 *
 * Owner:   control lcore.
 * Memory:  the caller's.
 * Depends: conf, ring.
 */
#include "methods.h"

struct ring_send_wqe;

struct p_bind_mw {
	char mw[CONF_NAME_MAX];
	char mr[CONF_NAME_MAX];
	uint64_t addr;
	uint64_t length;
	uint32_t rkey; /* the new one; 0 with type 1: the next */
	uint32_t mw_access_flags;
};
extern const struct conf_table method_bind_table;

/** The words of an entry that a bind needs. @return 0 or a refusal: no such window or region. */
int method_bind_fill(struct rpc_call *call, const struct p_bind_mw *b, struct ring_send_wqe *wqe,
	struct refusal *r);

#endif
