/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef QP_ATTR_H
#define QP_ATTR_H
/**
 * @file qp_attr.h  States and attributes of a queue pair, and which transitions are legal.
 *
 * Owner:   pure data and pure functions: anybody.
 * Memory:  none of its own.
 * Depends: base, wire.
 * Spec:    IBTA vol. 1, 10.3 (states), 10.2.4 (attributes); rules QP-*.
 */
#include <stdbool.h>
#include <stdint.h>

#include "verbs.h"
#include "wire_build.h"

struct qp;

enum {                             /* bits of an attribute mask beyond verbs' QP_ATTR_* */
	QP_ATTR_NEW_MAC = 1 << 29, /* the MAC of qp_attr.path's destination: of either path to it */
	QP_ATTR_TRACE = 1 << 30,   /* qp_attr.trace, QPF_TRACE */
};

#define QP_ALT_TIMEOUT_SAME 0xff

struct qp_attr {
	uint8_t qp_state;
	uint8_t cur_qp_state;
	uint8_t timeout;
	uint8_t retry_cnt;
	uint8_t rnr_retry;
	uint8_t min_rnr_timer;
	uint8_t max_rd_atomic;
	uint8_t max_dest_rd_atomic;
	bool en_sqd_async_notify;
	access_t qp_access_flags;
	uint16_t path_mtu; /* bytes */
	uint16_t pkey;
	uint32_t dest_qp_num;
	uint32_t rq_psn;
	uint32_t sq_psn;
	uint32_t qkey;         /* of datagrams that it takes */
	struct wire_path path; /* AV: dmac all zero until resolved */
	bool path_resolved;
	bool trace; /* record in the flight recorder */
	/* ALT_PATH: all of the alternate path at once */
	bool alt_resolved;
	uint8_t alt_port;       /* DPDK port id */
	uint8_t alt_timeout;    /* QP_ALT_TIMEOUT_SAME: that of the primary path */
	uint8_t path_mig_state; /* enum mig_state */
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
/** "TIMEOUT": name of an attribute by its bit; "?": it is none, or more than one. */
const char *qp_attr_name(uint32_t one_bit);

/**
 * Apply attributes that qp_transition_check() allowed, the state with QP_ATTR_STATE. RESET clears
 * everything and forgets posted WQEs (QP-05). Flushing on ERR is the pipeline's.
 * Who may call it: the QP's worker; the control lcore while the QP is detached.
 */
void qp_apply(struct qp *qp, const struct qp_attr *attr, uint32_t mask);
/** The alternate path takes the place of the primary one in a set of attributes. */
void qp_attr_migrate(struct qp_attr *a);

#endif
