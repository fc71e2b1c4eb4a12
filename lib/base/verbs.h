/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef VERBS_H
#define VERBS_H
/**
 * @file verbs.h  The words of verbs: libibverbs' enumerators without IBV_, their values and names.
 *
 * One row of tables/ makes the enumerator here, the name that people read, the value that the
 * configuration and RPC take, and the check that librocelane's public header agrees. Nothing else
 * in the tree writes these numbers down.
 *
 * Owner:   compile time, and pure functions: any thread, any lcore.
 * Memory:  none.
 * Depends: nothing.
 * Spec:    IBTA vol. 1, chapter 11 (verbs); the values are those of <infiniband/verbs.h>.
 */
#include <stdbool.h>
#include <stdint.h>

#include "access.h"
#include "compiler.h"

/** Status of a completion (ibv_wc_status). */
enum wc_status {
#define WC_STATUS(value, name) WC_##name = (value),
#include "tables/wc_statuses.def"
#undef WC_STATUS
};

/** What completed (ibv_wc_opcode); from WC_RECV on a receive. */
enum wc_opcode {
#define WC_OPCODE(value, name) WC_##name = (value),
#include "tables/wc_opcodes.def"
#undef WC_OPCODE
};

enum { /* ibv_wc_flags */
#define WC_FLAG(bit, name) WC_##name = 1 << (bit),
#include "tables/wc_flags.def"
#undef WC_FLAG
};

/** Asynchronous events (ibv_event_type). */
enum event_type {
#define EVENT_TYPE(value, name) EVENT_##name = (value),
#include "tables/event_types.def"
#undef EVENT_TYPE
};

enum { /* ibv_access_flags */
#define ACCESS_FLAG(bit, name) ACCESS_##name = 1 << (bit),
#include "tables/access_flags.def"
#undef ACCESS_FLAG
};

/** ibv_qp_type. */
enum qp_type {
#define QP_TYPE(value, name) QPT_##name = (value),
#include "tables/qp_types.def"
#undef QP_TYPE
};

/** ibv_qp_state. */
enum qp_state {
#define QP_STATE_NAME(value, name) QPS_##name = (value),
#include "tables/qp_state_names.def"
#undef QP_STATE_NAME
	QPS_MAX
};

/** ibv_mig_state. */
enum mig_state {
#define MIG_STATE(value, name) MIG_##name = (value),
#include "tables/mig_states.def"
#undef MIG_STATE
	MIG_MAX
};

enum { /* ibv_qp_attr_mask; bits above are the project's own (qp.h) */
#define QP_ATTR(bit, name) QP_ATTR_##name = 1 << (bit),
#include "tables/qp_attrs.def"
#undef QP_ATTR
};

/** Send work requests (ibv_wr_opcode). */
enum wr_opcode {
#define WR_OPCODE(value, name, completion, has, on) WR_##name = (value),
#include "tables/wr_opcodes.def"
#undef WR_OPCODE
};

enum { /* ibv_send_flags */
#define SEND_FLAG(bit, name) SEND_##name = 1 << (bit),
#include "tables/send_flags.def"
#undef SEND_FLAG
};

/* ---- send work requests ---------------------------------------------------------------------- */

#define VERBS_WR_OPCODES  32                   /* values of wr_opcode are below */
#define VERBS_MESSAGE_MAX UINT32_C(0x80000000) /* bytes of the longest message (REQ-18) */
#define VERBS_ATOMIC_LEN  8u                   /* bytes of an ATOMIC's operands and result */

enum {                            /* column `has` of wr_opcodes.def */
	WR_HAS_REMOTE = 1 << 0,   /* remote address and R_Key */
	WR_HAS_IMM = 1 << 1,      /* immediate */
	WR_HAS_INV = 1 << 2,      /* a key to invalidate */
	WR_HAS_RESPONSE = 1 << 3, /* data comes back into its list: READ, ATOMIC (REQ-10) */
	WR_HAS_OPERANDS = 1 << 4, /* operands of an ATOMIC */
	WR_HAS_BIND = 1 << 5,     /* a range and rights for a key of one's own */
	WR_HAS_LOCAL = 1 << 6,    /* no packet: carried out here, in order */
	WR_HAS_ANSWER = 1 << 7,   /* an empty READ response, with the knob ops.placement only */
};

enum { /* column `on` of wr_opcodes.def */
	WR_ON_RC = 1 << QPT_RC,
	WR_ON_UC = 1 << QPT_UC,
	WR_ON_UD = 1 << QPT_UD,
	WR_ON_XRC = 1 << QPT_XRC_SEND,
};

/** Has a work request of this opcode one of `what`, WR_HAS_*? Cost: a compare with a constant. */
static ALWAYS_INLINE bool
verbs_wr_has(uint32_t opcode, uint32_t what)
{
#define WR_OPCODE(value, name, completion, has, on) | (((has)&what) != 0 ? BIT32(value) : 0)
	const uint32_t those = 0
#include "tables/wr_opcodes.def"
		;
#undef WR_OPCODE

	/* A run of values is a range. `those` is a constant: one of the two ways is left. */
	if (those != 0 && (those & (those + (those & -those))) == 0)
		return opcode - (uint32_t)__builtin_ctz(those) <
		       (uint32_t)__builtin_popcount(those);
	return opcode < VERBS_WR_OPCODES && (those & BIT32(opcode)) != 0;
}

/** Is it a READ or an ATOMIC, which brings data back (REQ-10, REQ-14)? */
static ALWAYS_INLINE bool
verbs_wr_returns(uint32_t opcode)
{
	return verbs_wr_has(opcode, WR_HAS_RESPONSE);
}

/** Is it a FETCH_ADD or a CMP_AND_SWP? */
static ALWAYS_INLINE bool
verbs_wr_is_atomic(uint32_t opcode)
{
	return verbs_wr_has(opcode, WR_HAS_OPERANDS);
}

/** Are there 8 bytes in its list: is it an ATOMIC, or an ATOMIC WRITE? */
static ALWAYS_INLINE bool
verbs_wr_is_word(uint32_t opcode)
{
	return verbs_wr_is_atomic(opcode) || opcode == WR_ATOMIC_WRITE;
}

/** What a FLUSH waits for, and of how much: bits of its FETH (annex A19). */
enum {
	FLUSH_GLOBAL = 1 << 0,     /* all who can see the memory see what was written */
	FLUSH_PERSISTENT = 1 << 1, /* ... and it outlives a loss of power */
	FLUSH_TYPES = FLUSH_GLOBAL | FLUSH_PERSISTENT,
	FLUSH_MR = 1 << 4, /* all of the key's region; else the range that the request names */
};

/** Is there a FLUSH of these bits? */
static inline bool
verbs_flush_exists(uint64_t feth)
{
	return (feth & FLUSH_TYPES) != 0 && (feth & ~(uint64_t)(FLUSH_TYPES | FLUSH_MR)) == 0;
}

/** The rights that it needs, of the queue pair and of the region. */
static inline access_t
verbs_flush_access(uint32_t feth)
{
	return (access_t)(((feth & FLUSH_GLOBAL) != 0 ? ACCESS_FLUSH_GLOBAL : 0) |
			  ((feth & FLUSH_PERSISTENT) != 0 ? ACCESS_FLUSH_PERSISTENT : 0));
}

/** Is it carried out here, without a packet: a bind, an invalidate? */
static ALWAYS_INLINE bool
verbs_wr_is_local(uint32_t opcode)
{
	return verbs_wr_has(opcode, WR_HAS_LOCAL);
}

/** Is there a work request of this opcode? */
static ALWAYS_INLINE bool
verbs_wr_exists(uint32_t opcode)
{
#define WR_OPCODE(value, name, completion, has, on) | BIT32(value)
	const uint32_t all = 0
#include "tables/wr_opcodes.def"
		;
#undef WR_OPCODE

	return opcode < VERBS_WR_OPCODES && (all & BIT32(opcode)) != 0;
}

/** wc_opcode of a send work request that completed; WC_SEND of an opcode that does not exist. */
static ALWAYS_INLINE uint8_t
verbs_wc_opcode(uint32_t wr_opcode)
{
	static const uint8_t codes[] = {
#define WR_OPCODE(value, name, completion, has, on) [value] = WC_##completion,
#include "tables/wr_opcodes.def"
#undef WR_OPCODE
	};

	return wr_opcode < ARRAY_LEN(codes) ? codes[wr_opcode] : WC_SEND;
}

/** May a queue pair of this type be given a work request of this opcode? */
static ALWAYS_INLINE bool
verbs_wr_is_on(uint32_t wr_opcode, uint32_t qp_type)
{
	static const uint16_t types[] = {
#define WR_OPCODE(value, name, completion, has, on) [value] = (on),
#include "tables/wr_opcodes.def"
#undef WR_OPCODE
	};

	return wr_opcode < ARRAY_LEN(types) && (types[wr_opcode] >> qp_type & 1) != 0;
}

/** What is wrong with these rights of a region, or NULL. */
const char *verbs_region_fault(uint32_t access);

/* ---- names ----------------------------------------------------------------------------------- */

/** "LOC_LEN_ERR": name of a completion status, without its prefix; "UNKNOWN" of what has none. */
const char *verbs_wc_status_name(uint32_t status);
/** The same of a completion's opcode: "RDMA_WRITE". */
const char *verbs_wc_opcode_name(uint32_t opcode);
/** The same of an asynchronous event: "QP_FATAL". */
const char *verbs_event_name(uint32_t event);
/** The same of a type of queue pairs: "RC". */
const char *verbs_qp_type_name(uint32_t type);
/** The same of a QP state: "RTS". */
const char *verbs_qp_state_name(uint32_t state);
/** The same of a state of path migration: "ARMED". */
const char *verbs_mig_state_name(uint32_t state);
/** The same of a work request's opcode: "SEND_WITH_IMM". */
const char *verbs_wr_opcode_name(uint32_t opcode);

#endif
