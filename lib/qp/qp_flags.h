/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef QP_FLAGS_H
#define QP_FLAGS_H
/**
 * @file qp_flags.h  struct qp.flags: what a QP's worker knows about it, a bit each.
 *
 * Owner:   constants.
 * Memory:  none.
 * Depends: base.
 */
#include <stdint.h>

#include "compiler.h"

enum {                                /* struct qp.flags; writer: worker */
	QPF_IPV6 = BIT32(0),          /* path's address family */
	QPF_CHECK_SRC_MAC = BIT32(1), /* rx.check_src_mac */
	QPF_REQUIRE_DF = BIT32(2),    /* rx.ip_df */
	QPF_TRACE = BIT32(3),
	QPF_CNP = BIT32(4),        /* cc.cnp=on */
	QPF_NOT_RC = BIT32(5),     /* these three are QPF_SERVICE (constant) */
	QPF_DATAGRAM = BIT32(6),   /* UD: each request has its own destination */
	QPF_XRC = BIT32(7),        /* a target's `srq` is that of the packet */
	QPF_FLUSHING = BIT32(8),   /* in ERR, and in line for the rest of its flush */
	QPF_RESOLVED = BIT32(9),   /* template has a destination MAC */
	QPF_RECV_FEED = BIT32(10), /* the worker keeps the receive queue filled */
	QPF_EVENT_WITH_CQE = BIT32(11),
	QPF_ACK_CRC = BIT32(12), /* ack_crc is valid: cleared when the template changes */
	QPF_VLAN = BIT32(13), /* the path has a tag: only packets with the same VLAN are the QP's */
	QPF_CNP_SCHEDULED = BIT32(14), /* the control lcore was told to send a CNP (CC-04) */
	QPF_SENDING = BIT32(16),       /* on the worker's list of QPs with something to send */
	QPF_SIG_ALL = BIT32(17),       /* sq_sig_all: every send request is signalled */
	QPF_SEND_FEED = BIT32(18),     /* the worker posts to itself: send_feed */
	QPF_CC_WINDOW = BIT32(19),     /* cc.algo=ernic_window: a CNP halves the window, once */
	QPF_PACED = BIT32(20),         /* with QPF_CC_RATE: not at the port's rate, for now */
	QPF_SQD_NOTIFY = BIT32(21),    /* en_sqd_async_notify of the move to SQD */
	QPF_MIGRATION = BIT32(22),     /* path_mig_state is REARM or ARMED: MigReq is 0 */
	QPF_MIG_REFUSED = BIT32(23),   /* PATH_MIG_ERR was raised since ARMED */
	QPF_SRQ = BIT32(24),           /* receives from `srq` */
	QPF_LAST_WQE = BIT32(25),      /* ... and has said that it takes no more (AE-08) */
	QPF_SENT_NOWHERE = BIT32(26),  /* requests were sent while nobody knew where to */
	QPF_UNHEARD = BIT32(27),       /* in RTR, no request was accepted so far (AE-05) */
	QPF_CNP_CONTROL = BIT32(28),   /* cc.cnp_path=control */
	QPF_DIRTY = BIT32(29),         /* on the worker's list of owed ACKs */
	QPF_ANSWERING = BIT32(30),     /* on the worker's list of answer queues */
	QPF_LOCAL = BIT32(15),         /* QP_OUT_LOCAL in qp.out */
};

/** cc.algo=dcqcn, delay: there is a struct qp_cc. An enumerator is an int, and this is none. */
#define QPF_CC_RATE BIT32(31)

/** The high bits of the opcodes of a QP's service stand where an opcode has them. */
#define QPF_SERVICE (QPF_NOT_RC | QPF_DATAGRAM | QPF_XRC)

/** In qp.out: not to the port's wire, but to addresses of this process (LB-01). */
#define QP_OUT_LOCAL 0x80
/** Or: this, and wire_path.queue. The bits of both are above those of DPDK port ids. */
#define QP_OUT_QUEUE 0x1f

/** Those that the control lcore decides (struct qp_settings); all others are the worker's. */
#define QPF_SETTINGS                                                                               \
	(QPF_CHECK_SRC_MAC | QPF_REQUIRE_DF | QPF_TRACE | QPF_CNP | QPF_CNP_CONTROL |              \
		QPF_RECV_FEED | QPF_EVENT_WITH_CQE | QPF_SIG_ALL | QPF_SEND_FEED | QPF_CC_WINDOW | \
		QPF_SRQ | QPF_CC_RATE)

#endif
