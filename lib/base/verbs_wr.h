/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef VERBS_WR_H
#define VERBS_WR_H
/**
 * @file verbs_wr.h  May this send work request be? One judgement for all who meet one.
 *
 * What an opcode has and may have is its row in tables/wr_opcodes.def. Who calls: librocelane and
 * the control lcore before they post (they refuse with EINVAL), the worker once it has copied an
 * entry, and the requester before the first packet (both complete it with an error).
 *
 * Owner:   pure functions: any thread, any lcore.
 * Memory:  none.
 * Depends: nothing.
 * Spec:    CQ-09, REQ-10, REQ-18, REQ-CLS-B-05, UD-12, UD-25.
 */
#include "verbs.h"

enum verbs_wr_fault {
	VERBS_WR_GOOD,
	VERBS_WR_NO_OPCODE,     /* there is none of this value */
	VERBS_WR_NO_SERVICE,    /* queue pairs of this type have no such operation (UC-16) */
	VERBS_WR_NO_READS,      /* READ, ATOMIC or the like, and max_rd_atomic is 0 (REQ-10) */
	VERBS_WR_SGES,          /* more entries than max_send_sge */
	VERBS_WR_NO_LIST,       /* a bind, invalidate or FLUSH with entries */
	VERBS_WR_NOT_INLINE,    /* READ, ATOMIC, FLUSH, bind or invalidate with inline bytes */
	VERBS_WR_INLINE_LENGTH, /* more than max_inline_data */
	VERBS_WR_LENGTH,        /* more than 2^31 bytes, or than a datagram has (REQ-18, UD-12) */
	VERBS_WR_ATOMIC_SHORT,  /* an ATOMIC with less than 8 bytes for its result */
	VERBS_WR_ATOMIC_LONG,   /* ... or more: a worker uses the first 8 of a result */
};

/** Limits of the send queue that it is for. */
struct verbs_wr_limits {
	uint32_t max_sge;
	uint32_t max_inline; /* bytes */
	uint32_t max_rd_atomic;
	uint32_t qp_type;
	uint32_t max_bytes; /* verbs_wr_longest() */
};

/** Bytes of the longest message of a type of queue pairs; a datagram is one packet (UD-12). */
static ALWAYS_INLINE uint32_t
verbs_wr_longest(uint32_t qp_type, uint32_t pmtu)
{
	return qp_type == QPT_UD ? pmtu : VERBS_MESSAGE_MAX;
}

/** May a QP in this state be posted to? In ERR what is posted is flushed (QP-06, QP-10, QP-13). */
static ALWAYS_INLINE bool
verbs_wr_may_post(uint32_t qp_state)
{
	return qp_state >= QPS_RTS;
}

/**
 * Before the list is looked at. @param flags SEND_*. @param num_sge entries that will be read: 0
 * for inline bytes. @return VERBS_WR_GOOD, _NO_OPCODE, _NO_SERVICE, _NO_READS, _SGES, _NO_LIST,
 * _NOT_INLINE.
 */
static ALWAYS_INLINE enum verbs_wr_fault
verbs_wr_form(const struct verbs_wr_limits *l, uint32_t opcode, uint32_t flags, uint32_t num_sge)
{
	if (UNLIKELY(!verbs_wr_exists(opcode)))
		return VERBS_WR_NO_OPCODE;
	if (UNLIKELY(!verbs_wr_is_on(opcode, l->qp_type)))
		return VERBS_WR_NO_SERVICE;
	if (UNLIKELY(num_sge > l->max_sge))
		return VERBS_WR_SGES;
	if (LIKELY(!verbs_wr_has(opcode, WR_HAS_RESPONSE | WR_HAS_LOCAL | WR_HAS_ANSWER)))
		return VERBS_WR_GOOD;
	if (UNLIKELY((flags & SEND_INLINE) != 0) && opcode != WR_ATOMIC_WRITE)
		return VERBS_WR_NOT_INLINE;
	if (num_sge != 0 && (verbs_wr_is_local(opcode) || opcode == WR_FLUSH))
		return VERBS_WR_NO_LIST;
	if (verbs_wr_is_local(opcode))
		return VERBS_WR_GOOD;
	return LIKELY(l->max_rd_atomic != 0) ? VERBS_WR_GOOD : VERBS_WR_NO_READS;
}

/**
 * Once its form is good. @param bytes sum of the list, inline bytes, or what a FLUSH names.
 * @return VERBS_WR_GOOD, _INLINE_LENGTH, _LENGTH, _ATOMIC_SHORT or _ATOMIC_LONG.
 */
static ALWAYS_INLINE enum verbs_wr_fault
verbs_wr_length(const struct verbs_wr_limits *l, uint32_t opcode, uint32_t flags, uint64_t bytes)
{
	if (UNLIKELY((flags & SEND_INLINE) != 0) && bytes > l->max_inline)
		return VERBS_WR_INLINE_LENGTH;
	if (UNLIKELY(bytes > l->max_bytes))
		return VERBS_WR_LENGTH;
	if (LIKELY(!verbs_wr_is_word(opcode)) || bytes == VERBS_ATOMIC_LEN)
		return VERBS_WR_GOOD;
	return bytes < VERBS_ATOMIC_LEN ? VERBS_WR_ATOMIC_SHORT : VERBS_WR_ATOMIC_LONG;
}

#endif
