/* SPDX-License-Identifier: BSD-3-Clause */
/* Names of enumerators. */
#include "client_priv.h"

static const char *
name_of(const char *const *names, size_t n, unsigned int value)
{
	return value < n && names[value] != NULL ? names[value] : "UNKNOWN";
}

const char *
rl_wc_status_str(enum rl_wc_status status)
{
	/* clang-format off */
	static const char *const names[] = {
		"SUCCESS", "LOC_LEN_ERR", "LOC_QP_OP_ERR", "LOC_EEC_OP_ERR", "LOC_PROT_ERR",
		"WR_FLUSH_ERR", "MW_BIND_ERR", "BAD_RESP_ERR", "LOC_ACCESS_ERR", "REM_INV_REQ_ERR",
		"REM_ACCESS_ERR", "REM_OP_ERR", "RETRY_EXC_ERR", "RNR_RETRY_EXC_ERR",
		"LOC_RDD_VIOL_ERR", "REM_INV_RD_REQ_ERR", "REM_ABORT_ERR", "INV_EECN_ERR",
		"INV_EEC_STATE_ERR", "FATAL_ERR", "RESP_TIMEOUT_ERR", "GENERAL_ERR",
	};
	/* clang-format on */

	return name_of(names, ARRAY_LEN(names), (unsigned int)status);
}

const char *
rl_event_type_str(enum rl_event_type event)
{
	/* clang-format off */
	static const char *const names[] = {
		"CQ_ERR", "QP_FATAL", "QP_REQ_ERR", "QP_ACCESS_ERR", "COMM_EST", "SQ_DRAINED",
		"PATH_MIG", "PATH_MIG_ERR", "DEVICE_FATAL", "PORT_ACTIVE", "PORT_ERR", "LID_CHANGE",
		"PKEY_CHANGE", "SM_CHANGE", "SRQ_ERR", "SRQ_LIMIT_REACHED", "QP_LAST_WQE_REACHED",
	};
	/* clang-format on */

	return name_of(names, ARRAY_LEN(names), (unsigned int)event);
}

const char *
rl_qp_state_str(enum rl_qp_state state)
{
	static const char *const names[] = { "RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR" };

	return name_of(names, ARRAY_LEN(names), (unsigned int)state);
}
