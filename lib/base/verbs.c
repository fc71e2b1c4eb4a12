/* SPDX-License-Identifier: BSD-3-Clause */
/* Names of enumerators, each from its table. */
#include "verbs.h"

#include <stddef.h>

#define ROW(value, name) [value] = #name,

#define NAME_OF(names, value) \
	((value) < ARRAY_LEN(names) && (names)[value] != NULL ? (names)[value] : "UNKNOWN")

const char *
verbs_wc_status_name(uint32_t status)
{
	static const char *const names[] = {
#define WC_STATUS ROW
#include "tables/wc_statuses.def"
#undef WC_STATUS
	};

	return NAME_OF(names, status);
}

const char *
verbs_wc_opcode_name(uint32_t opcode)
{
	static const char *const names[] = {
#define WC_OPCODE ROW
#include "tables/wc_opcodes.def"
#undef WC_OPCODE
	};

	return NAME_OF(names, opcode);
}

const char *
verbs_event_name(uint32_t event)
{
	static const char *const names[] = {
#define EVENT_TYPE ROW
#include "tables/event_types.def"
#undef EVENT_TYPE
	};

	return NAME_OF(names, event);
}

const char *
verbs_qp_type_name(uint32_t type)
{
	static const char *const names[] = {
#define QP_TYPE ROW
#include "tables/qp_types.def"
#undef QP_TYPE
	};

	return NAME_OF(names, type);
}

const char *
verbs_qp_state_name(uint32_t state)
{
	static const char *const names[] = {
#define QP_STATE_NAME ROW
#include "tables/qp_state_names.def"
#undef QP_STATE_NAME
	};

	return NAME_OF(names, state);
}

const char *
verbs_mig_state_name(uint32_t state)
{
	static const char *const names[] = {
#define MIG_STATE ROW
#include "tables/mig_states.def"
#undef MIG_STATE
	};

	return NAME_OF(names, state);
}

const char *
verbs_wr_opcode_name(uint32_t opcode)
{
	static const char *const names[] = {
#define WR_OPCODE(value, name, completion, has, on) [value] = #name,
#include "tables/wr_opcodes.def"
#undef WR_OPCODE
	};

	return NAME_OF(names, opcode);
}

/* ---- rights ---------------------------------------------------------------------------------- */

const char *
verbs_region_fault(uint32_t access)
{
	const uint32_t writes = ACCESS_REMOTE_WRITE | ACCESS_REMOTE_ATOMIC, all = 0
#define ACCESS_FLAG(bit, name) | 1 << (bit)
#include "tables/access_flags.def"
#undef ACCESS_FLAG
		;

	if ((access & ~all) != 0)
		return "a flag that does not exist";
	if ((access & writes) != 0 && (access & ACCESS_LOCAL_WRITE) == 0)
		return "REMOTE_WRITE and REMOTE_ATOMIC require LOCAL_WRITE";
	if ((access & ACCESS_FLUSH_PERSISTENT) != 0)
		return "FLUSH_PERSISTENT: no memory that can be registered is persistent";
	return NULL;
}
