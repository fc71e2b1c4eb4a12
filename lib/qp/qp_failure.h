/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef QP_FAILURE_H
#define QP_FAILURE_H
/**
 * @file qp_failure.h  Why a QP is in ERR: the fault, the work request, memory that was refused.
 *
 * Owner:   the QP's worker, when the QP fails; nobody writes it again until RESET.
 * Memory:  qp_error: in struct qp. qp_failure: behind the QP's counters; a compact QP has it with
 *          its side.
 * Depends: base mem.
 */
#include <stdbool.h>
#include <stdint.h>

#include "clock.h"
#include "compiler.h"
#include "mem_refusal.h"

enum {                                 /* struct qp_error.flags */
	QP_ERROR_PACKET = BIT32(0),    /* a packet did it: opcode, psn, len are its own */
	QP_ERROR_NAK = BIT32(1),       /* answered with a NAK: `syndrome`, at `psn` */
	QP_ERROR_ACK = BIT32(2),       /* answered with an ACK */
	QP_ERROR_COMPLETED = BIT32(3), /* a work request completed with wc_status */
	QP_ERROR_EVENT = BIT32(4),     /* `event` was raised */
	QP_ERROR_SEND = BIT32(5),      /* the requester's side */
};

/** The fault that brought the QP to ERR; time_ns 0: none since RESET. */
struct qp_error {
	uint16_t rule;
	uint8_t opcode;
	uint8_t syndrome; /* AETH sent or received */
	uint8_t fatal;
	uint8_t fault; /* enum wire_fault, 0xff none */
	uint8_t wc_status;
	uint8_t event;
	uint32_t psn;
	uint16_t len;  /* payload bytes */
	uint8_t flags; /* QP_ERROR_* */
	uint8_t reserved;
	ns_t time_ns;
	uint64_t trace_at; /* entries the worker's flight recorder had taken */
};

#define QP_NOWHERE_MANY 255 /* of qp_nowhere(): so many or more */

enum qp_failed_work { QP_FAILED_NONE, QP_FAILED_SEND, QP_FAILED_RECEIVE };

struct qp_failure {
	struct mem_refusal mem; /* why NONE: it was not about memory */
	/* the request that failed */
	uint64_t wr_id;
	uint64_t remote_addr; /* of a WRITE, READ or ATOMIC */
	uint32_t rkey;
	uint32_t length;   /* bytes of the message */
	uint32_t position; /* of the send request, until those before it are reported */
	uint16_t rule;     /* that of qp_error: it is about the same failure */
	uint8_t work;      /* enum qp_failed_work */
	uint8_t opcode;    /* ibv_wr_opcode */
	bool fed;          /* the dataplane posted it: wr_id says nothing */
	/* ... of a datagram */
	bool datagram;
	uint8_t dest_family; /* 4, 6; 0: its address handle is gone */
	uint8_t dest_ip[16];
	uint32_t remote_qpn;
};

#endif
