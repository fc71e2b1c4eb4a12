/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef WR_H
#define WR_H
/** @file wr.h  Of what kind a work request is, and which packets it may send. */
#include "requester.h"
#include "verbs.h"
#include "wire.h"

static inline bool
wr_is_read(const struct requester_wr *w)
{
	return w->opcode == WR_RDMA_READ;
}

static inline bool
wr_is_atomic(const struct requester_wr *w)
{
	return w->opcode == WR_ATOMIC_CMP_AND_SWP || w->opcode == WR_ATOMIC_FETCH_AND_ADD;
}

static inline bool
wr_is_store(const struct requester_wr *w)
{
	return w->opcode == WR_ATOMIC_WRITE;
}

static inline bool
wr_is_flush(const struct requester_wr *w)
{
	return w->opcode == WR_FLUSH;
}

/** Is it a FLUSH of a whole region, whatever range it names? */
static inline bool
wr_is_whole_flush(const struct requester_wr *w)
{
	return wr_is_flush(w) && (w->swap & FLUSH_MR) != 0;
}

/** Is it answered by more than an ACK? */
static inline bool
wr_is_answered(const struct requester_wr *w)
{
	return wr_is_read(w) || wr_is_atomic(w) || wr_is_store(w) || wr_is_flush(w);
}

static inline bool
wr_is_write(const struct requester_wr *w)
{
	return w->opcode == WR_RDMA_WRITE || w->opcode == WR_RDMA_WRITE_WITH_IMM;
}

static inline bool
wr_is_send(const struct requester_wr *w)
{
	return w->opcode == WR_SEND || w->opcode == WR_SEND_WITH_IMM ||
	       w->opcode == WR_SEND_WITH_INV;
}

/** Can a packet of this opcode be of it? Immediate and invalidated key stand in the last only. */
static inline bool
wr_is_of_kind(const struct requester_wr *w, opflags_t op, bool last)
{
	bool imm = w->opcode == WR_RDMA_WRITE_WITH_IMM || w->opcode == WR_SEND_WITH_IMM;

	if (wr_is_answered(w))
		return op_has(op, wr_is_read(w)     ? OPF_READ
				  : wr_is_atomic(w) ? OPF_ATOMIC
				  : wr_is_store(w)  ? OPF_ATOMIC_WRITE
						    : OPF_FLUSH);
	return op_has(op, wr_is_write(w) ? OPF_WRITE : OPF_SEND) &&
	       op_has(op, OPF_IMM) == (last && imm) &&
	       op_has(op, OPF_IETH) == (last && w->opcode == WR_SEND_WITH_INV);
}

#endif
