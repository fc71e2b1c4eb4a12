/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RPC_SGE_H
#define RPC_SGE_H
/**
 * @file rpc_sge.h  Receive requests and the sg_list entry, shared by the methods that post them.
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
/** A receive request, of a QP or an SRQ. */
struct p_recv_wr {
	uint64_t wr_id;
	struct p_sge *sg_list;
	uint32_t n_sge;
};
extern const struct conf_table rpc_recv_wr_table;

/** What a receive queue takes. */
struct recv_limits {
	uint32_t max_sge;
	const char *sge_name; /* "max_recv_sge" */
	uint32_t max_wr;
	const char *full; /* "the receive queue is full: max_recv_wr" */
};
/** Post one. @return 0 or a refusal. */
int rpc_recv_put(struct rpc_call *call, const struct p_recv_wr *wr, struct ring *rq,
	const struct recv_limits *most, struct refusal *r);
/** {posted, refused}. @return 0 or -1. */
int rpc_posted(struct rpc_call *call, uint32_t n, json_t *refused);
/** The first request of a list that was not posted. */
json_t *rpc_refused_wr(uint64_t wr_id, uint32_t index, const struct refusal *r);

#endif
