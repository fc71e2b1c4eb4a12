/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef QP_ATTR_H
#define QP_ATTR_H
/**
 * @file qp_attr.h  States and attributes of a queue pair, and which transitions are legal.
 *
 * Owner:   pure data and pure functions: anybody.
 * Memory:  none of its own.
 * Depends: base wire.
 * Spec:    IBTA vol. 1, 10.3 (states), 10.2.4 (attributes); rules QP-*.
 */
#include <stdbool.h>
#include <stdint.h>

#include "wire_build.h"

enum qp_state { QPS_RESET, QPS_INIT, QPS_RTR, QPS_RTS, QPS_SQD, QPS_SQE, QPS_ERR, QPS_MAX };
enum qp_type { QPT_RC = 2, QPT_UC = 3, QPT_UD = 4 }; /* ibv_qp_type */

/** Attributes, with the mask bits of enum ibv_qp_attr_mask. */
enum {
	QP_ATTR_STATE = 1 << 0,
	QP_ATTR_CUR_STATE = 1 << 1,
	QP_ATTR_EN_SQD_ASYNC_NOTIFY = 1 << 2,
	QP_ATTR_ACCESS_FLAGS = 1 << 3,
	QP_ATTR_PKEY_INDEX = 1 << 4,
	QP_ATTR_PORT = 1 << 5,
	QP_ATTR_QKEY = 1 << 6,
	QP_ATTR_AV = 1 << 7,
	QP_ATTR_PATH_MTU = 1 << 8,
	QP_ATTR_TIMEOUT = 1 << 9,
	QP_ATTR_RETRY_CNT = 1 << 10,
	QP_ATTR_RNR_RETRY = 1 << 11,
	QP_ATTR_RQ_PSN = 1 << 12,
	QP_ATTR_MAX_QP_RD_ATOMIC = 1 << 13,
	QP_ATTR_ALT_PATH = 1 << 14,
	QP_ATTR_MIN_RNR_TIMER = 1 << 15,
	QP_ATTR_SQ_PSN = 1 << 16,
	QP_ATTR_MAX_DEST_RD_ATOMIC = 1 << 17,
	QP_ATTR_PATH_MIG_STATE = 1 << 18,
	QP_ATTR_CAP = 1 << 19,
	QP_ATTR_DEST_QPN = 1 << 20,
	/* the project's own */
	QP_ATTR_NEW_MAC = 1 << 29, /* the MAC of qp_attr.path's destination: of either path to it */
	QP_ATTR_TRACE = 1 << 30,   /* qp_attr.trace, QPF_TRACE */
};

#define QP_ALT_TIMEOUT_SAME 0xff

struct qp_attr {
	uint8_t qp_state;
	uint8_t cur_qp_state;
	uint8_t qp_access_flags;
	uint8_t timeout;
	uint8_t retry_cnt;
	uint8_t rnr_retry;
	uint8_t min_rnr_timer;
	uint8_t max_rd_atomic;
	uint8_t max_dest_rd_atomic;
	bool en_sqd_async_notify;
	uint16_t path_mtu; /* bytes */
	uint16_t pkey;
	uint32_t dest_qp_num;
	uint32_t rq_psn;
	uint32_t sq_psn;
	struct wire_path path; /* AV: dmac all zero until resolved */
	bool path_resolved;
	bool trace; /* record in the flight recorder */
	/* ALT_PATH: all of the alternate path at once */
	bool alt_resolved;
	uint8_t alt_port;       /* DPDK port id */
	uint8_t alt_timeout;    /* QP_ALT_TIMEOUT_SAME: that of the primary path */
	uint8_t path_mig_state; /* enum qp_migration */
	uint16_t alt_pkey;      /* 0: that of the primary path */
	uint32_t migrations;    /* qp.migrations, as the control lcore knows it */
	struct wire_path alt_path;
};

/**
 * Is from -> to a legal transition for this type with these attributes? qp_states.def.
 * @param why out: static text naming the first missing or forbidden attribute, or the pair.
 * @return 0 or -EINVAL.
 */
int qp_transition_check(
	enum qp_type type, enum qp_state from, enum qp_state to, uint32_t mask, const char **why);
/** Attributes required and optional for a transition; false if the pair is not legal. */
bool qp_transition_attrs(enum qp_type type, enum qp_state from, enum qp_state to,
	uint32_t *required, uint32_t *optional);
const char *qp_state_name(enum qp_state s); /* "RTS" */
const char *qp_attr_name(uint32_t one_bit); /* "TIMEOUT" */

/** The alternate path takes the place of the primary one. */
void qp_attr_migrate(struct qp_attr *a);

#endif
