/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ROCELANE_ENUMS_H
#define ROCELANE_ENUMS_H
/**
 * @file rocelane_enums.h  librocelane's enumerators: libibverbs' names, RL_ for IBV_, and values.
 *
 * Owner:   compile time. Include rocelane.h.
 * Memory:  none.
 * Depends: nothing.
 */

enum rl_qp_type {
	RL_QPT_RC = 2,
	RL_QPT_UC = 3,
	RL_QPT_UD = 4,
	RL_QPT_XRC_SEND = 9,
	RL_QPT_XRC_RECV = 10
};

enum rl_qp_state {
	RL_QPS_RESET,
	RL_QPS_INIT,
	RL_QPS_RTR,
	RL_QPS_RTS,
	RL_QPS_SQD,
	RL_QPS_SQE,
	RL_QPS_ERR
};

enum rl_mig_state { RL_MIG_MIGRATED, RL_MIG_REARM, RL_MIG_ARMED };

enum rl_mtu { RL_MTU_256 = 1, RL_MTU_512, RL_MTU_1024, RL_MTU_2048, RL_MTU_4096 };

enum rl_port_state { RL_PORT_NOP, RL_PORT_DOWN, RL_PORT_INIT, RL_PORT_ARMED, RL_PORT_ACTIVE };

enum rl_access_flags {
	RL_ACCESS_LOCAL_WRITE = 1,
	RL_ACCESS_REMOTE_WRITE = 1 << 1,
	RL_ACCESS_REMOTE_READ = 1 << 2,
	RL_ACCESS_REMOTE_ATOMIC = 1 << 3,
	RL_ACCESS_MW_BIND = 1 << 4,
	RL_ACCESS_ZERO_BASED = 1 << 5,
	RL_ACCESS_FLUSH_GLOBAL = 1 << 8,
	RL_ACCESS_FLUSH_PERSISTENT = 1 << 9, /* of queue pairs: no region here is persistent */
	/* Not of libibverbs: a peer's SEND with Invalidate may revoke the region's key. */
	RL_ACCESS_REMOTE_INVALIDATE = 1 << 30
};

enum rl_rereg_mr_flags {
	RL_REREG_MR_CHANGE_TRANSLATION = 1,
	RL_REREG_MR_CHANGE_PD = 1 << 1,
	RL_REREG_MR_CHANGE_ACCESS = 1 << 2,
	RL_REREG_MR_ALL = 7
};

enum rl_qp_attr_mask {
	RL_QP_STATE = 1 << 0,
	RL_QP_CUR_STATE = 1 << 1,
	RL_QP_EN_SQD_ASYNC_NOTIFY = 1 << 2,
	RL_QP_ACCESS_FLAGS = 1 << 3,
	RL_QP_PKEY_INDEX = 1 << 4,
	RL_QP_PORT = 1 << 5,
	RL_QP_QKEY = 1 << 6,
	RL_QP_AV = 1 << 7,
	RL_QP_PATH_MTU = 1 << 8,
	RL_QP_TIMEOUT = 1 << 9,
	RL_QP_RETRY_CNT = 1 << 10,
	RL_QP_RNR_RETRY = 1 << 11,
	RL_QP_RQ_PSN = 1 << 12,
	RL_QP_MAX_QP_RD_ATOMIC = 1 << 13,
	RL_QP_ALT_PATH = 1 << 14,
	RL_QP_MIN_RNR_TIMER = 1 << 15,
	RL_QP_SQ_PSN = 1 << 16,
	RL_QP_MAX_DEST_RD_ATOMIC = 1 << 17,
	RL_QP_PATH_MIG_STATE = 1 << 18,
	RL_QP_CAP = 1 << 19,
	RL_QP_DEST_QPN = 1 << 20,
	RL_QP_RQ_LIMIT = 1 << 28 /* by itself */
};

/*
 * Added to solicited_only of rl_req_notify_cq(), for programs that ask before they poll: not for
 * the completion that the last event was of. What came behind that one counts, as with mlx5.
 */
enum rl_notify { RL_NOTIFY_NEW = 2 };

enum rl_srq_type { RL_SRQT_BASIC, RL_SRQT_XRC };

enum rl_srq_attr_mask { RL_SRQ_MAX_WR = 1 << 0, RL_SRQ_LIMIT = 1 << 1 };

enum rl_wr_opcode {
	RL_WR_RDMA_WRITE,
	RL_WR_RDMA_WRITE_WITH_IMM,
	RL_WR_SEND,
	RL_WR_SEND_WITH_IMM,
	RL_WR_RDMA_READ,
	RL_WR_ATOMIC_CMP_AND_SWP,
	RL_WR_ATOMIC_FETCH_AND_ADD,
	RL_WR_LOCAL_INV,
	RL_WR_BIND_MW,
	RL_WR_SEND_WITH_INV,
	/* With the knob ops.placement of both queue pairs only. */
	RL_WR_FLUSH = 14,
	RL_WR_ATOMIC_WRITE,
	RL_WR_REG_MR = 1 << 8 | RL_WR_BIND_MW /* of a fast-register region; RL_WC_BIND_MW */
};

/* Bits: what a FLUSH waits for. ibv_placement_type, ibv_selectivity_level. */
enum rl_flush_type { RL_FLUSH_GLOBAL = 1 << 0, RL_FLUSH_PERSISTENT = 1 << 1 };

enum rl_flush_level { RL_FLUSH_RANGE, RL_FLUSH_MR };

enum rl_send_flags {
	RL_SEND_FENCE = 1 << 0,
	RL_SEND_SIGNALED = 1 << 1,
	RL_SEND_SOLICITED = 1 << 2,
	RL_SEND_INLINE = 1 << 3
};

enum rl_wc_status {
	RL_WC_SUCCESS,
	RL_WC_LOC_LEN_ERR,
	RL_WC_LOC_QP_OP_ERR,
	RL_WC_LOC_EEC_OP_ERR,
	RL_WC_LOC_PROT_ERR,
	RL_WC_WR_FLUSH_ERR,
	RL_WC_MW_BIND_ERR,
	RL_WC_BAD_RESP_ERR,
	RL_WC_LOC_ACCESS_ERR,
	RL_WC_REM_INV_REQ_ERR,
	RL_WC_REM_ACCESS_ERR,
	RL_WC_REM_OP_ERR,
	RL_WC_RETRY_EXC_ERR,
	RL_WC_RNR_RETRY_EXC_ERR,
	RL_WC_LOC_RDD_VIOL_ERR,
	RL_WC_REM_INV_RD_REQ_ERR,
	RL_WC_REM_ABORT_ERR,
	RL_WC_INV_EECN_ERR,
	RL_WC_INV_EEC_STATE_ERR,
	RL_WC_FATAL_ERR,
	RL_WC_RESP_TIMEOUT_ERR,
	RL_WC_GENERAL_ERR
};

enum rl_wc_opcode {
	RL_WC_SEND,
	RL_WC_RDMA_WRITE,
	RL_WC_RDMA_READ,
	RL_WC_COMP_SWAP,
	RL_WC_FETCH_ADD,
	RL_WC_BIND_MW,
	RL_WC_LOCAL_INV,
	RL_WC_FLUSH = 8,
	RL_WC_ATOMIC_WRITE,
	RL_WC_RECV = 1 << 7,
	RL_WC_RECV_RDMA_WITH_IMM
};

enum rl_wc_flags { RL_WC_GRH = 1 << 0, RL_WC_WITH_IMM = 1 << 1, RL_WC_WITH_INV = 1 << 3 };

enum rl_event_type {
	RL_EVENT_CQ_ERR,
	RL_EVENT_QP_FATAL,
	RL_EVENT_QP_REQ_ERR,
	RL_EVENT_QP_ACCESS_ERR,
	RL_EVENT_COMM_EST,
	RL_EVENT_SQ_DRAINED,
	RL_EVENT_PATH_MIG,
	RL_EVENT_PATH_MIG_ERR,
	RL_EVENT_DEVICE_FATAL,
	RL_EVENT_PORT_ACTIVE,
	RL_EVENT_PORT_ERR,
	RL_EVENT_LID_CHANGE,
	RL_EVENT_PKEY_CHANGE,
	RL_EVENT_SM_CHANGE,
	RL_EVENT_SRQ_ERR,
	RL_EVENT_SRQ_LIMIT_REACHED,
	RL_EVENT_QP_LAST_WQE_REACHED,
	RL_EVENT_RQ_LIMIT_REACHED = 64 /* of a QP; verbs have no name for it */
};

#endif
