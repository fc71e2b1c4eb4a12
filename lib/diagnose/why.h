/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef WHY_H
#define WHY_H
/**
 * @file why.h  What a failure was about, in words and as JSON: memory, and the work request.
 *
 * Owner:   control lcore.
 * Memory:  a new reference each.
 * Depends: qp (qp_failure.h), regions.h, jansson.
 *
 * An application sees its own regions and nothing of others: to it, another's key is no region's.
 */
#include <jansson.h>

#include "clock.h"
#include "qp_failure.h"

struct owner;
struct diagnose;

/** Whose eyes, and when it happened. */
struct why_view {
	const struct owner *owner; /* NULL: the operator's */
	ns_t time_ns;
};

/** "the range ends 1 byte behind the end of mr0"; JSON null: memory was not refused. */
json_t *why_text(struct diagnose *dg, const struct why_view *v, const struct mem_refusal *m);
/** Numbers, the region, the one that was meant, the text; or JSON null. */
json_t *why_memory(struct diagnose *dg, const struct why_view *v, const struct mem_refusal *m);
/** The request that failed, or JSON null. */
json_t *why_request(const struct qp_failure *f);
/** "RDMA_WRITE" of ibv_wr_opcode; NULL: none. */
const char *why_wr_opcode(uint8_t opcode);

#endif
