/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef METHOD_SGE_H
#define METHOD_SGE_H
/**
 * @file method_sge.h  Posting: lists of requests, receive requests and the sg_list entry.
 *
 * Owner:   control lcore.
 * Memory:  decoded entries live during the call.
 * Depends: conf, ring.
 */
#include "methods.h"

struct p_sge {
	uint64_t given;
	char mr[CONF_NAME_MAX];
	uint64_t offset;
	uint64_t addr;
	uint32_t lkey;
	uint32_t length;
};

extern const struct conf_table method_sge_table;

/** {mr, offset, length} or {lkey, addr, length} to an SGE. @return 0 or a refusal. */
int method_sge_translate(
	struct rpc_call *call, const struct p_sge *from, struct ring_sge *to, struct refusal *r);
/** A receive request, of a QP or an SRQ. */
struct p_recv_wr {
	uint64_t wr_id; /* first: struct method_posting */
	struct p_sge *sg_list;
	uint32_t n_sge;
};
extern const struct conf_table method_recv_wr_table;

/** What a receive queue takes. */
struct method_recv_limits {
	uint32_t max_sge;
	const char *sge_name; /* "max_recv_sge" */
	uint32_t max_wr;
	const char *full; /* "the receive queue is full: max_recv_wr" */
};
/** Post one. @return 0 or a refusal. */
int method_recv_put(struct rpc_call *call, const struct p_recv_wr *wr, struct ring *rq,
	const struct method_recv_limits *most, struct refusal *r);

/** A list of requests for one queue. */
struct method_posting {
	void *queue;
	/** Post one. @return 0 or a refusal. */
	int (*post)(struct rpc_call *call, void *queue, const void *wr, struct refusal *r);
	/** At least one was posted. NULL: nobody needs to be told. */
	void (*tell)(struct methods *ctx, void *queue);
	const void *wrs; /* structs that begin with the wr_id */
	size_t wr_size;
	uint32_t n_wrs;
};
/** Post until one is refused. Result: {posted, refused}. @return 0 or -1. */
int method_post_all(struct rpc_call *call, const struct method_posting *p);
/** The same for the QP of this number, which becomes p->queue (struct admin_qp). */
int method_post_to_qp(struct rpc_call *call, uint32_t qp_num, struct method_posting *p);

#endif
