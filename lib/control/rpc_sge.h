/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RPC_SGE_H
#define RPC_SGE_H
/**
 * @file rpc_sge.h  The sg_list entry of work requests, shared by the methods that post them.
 *
 * Owner:   control lcore.
 * Memory:  decoded entries live during the call.
 * Depends: conf, ring.
 */
#include "rpc.h"
#include "rpc_params.h"

struct p_sge {
	uint64_t given;
	char mr[CONF_NAME_MAX];
	uint64_t offset;
	uint64_t addr;
	uint32_t lkey;
	uint32_t length;
};

extern const struct conf_table rpc_sge_table;

/** {mr, offset, length} or {lkey, addr, length} to an SGE. @return 0 or a refusal. */
int rpc_sge_translate(
	struct rpc_call *call, const struct p_sge *from, struct ring_sge *to, struct refusal *r);
/** The first request of a list that was not posted. */
json_t *rpc_refused_wr(uint64_t wr_id, uint32_t index, const struct refusal *r);

#endif
