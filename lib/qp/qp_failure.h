/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef QP_FAILURE_H
#define QP_FAILURE_H
/**
 * @file qp_failure.h  What a QP's failure was about: the work request, and memory that was refused.
 *
 * Owner:   the QP's worker, when the QP fails; nobody writes it again until RESET.
 * Memory:  behind the QP's counters: a compact QP has it with its side.
 * Depends: mem.
 */
#include "mem_refusal.h"

enum qp_failed_work { QP_FAILED_NONE, QP_FAILED_SEND, QP_FAILED_RECEIVE };

struct qp_failure {
	struct mem_refusal mem; /* why NONE: it was not about memory */
	/* the request that failed */
	uint64_t wr_id;
	uint64_t remote_addr; /* of a WRITE, READ or ATOMIC */
	uint32_t rkey;
	uint32_t length;   /* bytes of the message */
	uint32_t position; /* of the send request, while it waits for its turn to be reported */
	uint16_t rule;     /* that of qp_error: it is about the same failure */
	uint8_t work;      /* enum qp_failed_work */
	uint8_t opcode;    /* ibv_wr_opcode */
	bool fed;          /* the dataplane posted it: wr_id says nothing */
};

#endif
