/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef WIRE_EXT_H
#define WIRE_EXT_H
/**
 * @file wire_ext.h  Write extension headers: the one place that knows their order and layout.
 *
 * Owner:   any lcore (a pure function over the caller's memory).
 * Memory:  the caller's.
 * Depends: base.
 * Spec:    WIRE-05, WIRE-07.
 */
#include "wire_build.h"

/** A RETH alone. */
static ALWAYS_INLINE void
wire_reth_write(uint8_t *p, uint64_t va, uint32_t rkey, uint32_t dma_len)
{
	be64_store(p, va);
	be64_store(p + 8, (uint64_t)rkey << 32 | dma_len);
}

/** A DETH alone. */
static ALWAYS_INLINE void
wire_deth_write(uint8_t *p, uint32_t qkey, uint32_t src_qpn)
{
	be64_store(p, (uint64_t)qkey << 32 | (src_qpn & PSN_MASK));
}

/**
 * Those that `op` names, in the order of the wire. A caller that knows which ones can be there
 * masks `op` with OPF_x: the compiler then leaves the others out.
 * @param p room for WIRE_x_LEN bytes of each. @param f only the members of these headers are read.
 * @return first byte behind them.
 */
static ALWAYS_INLINE uint8_t *
wire_ext_write(uint8_t *p, opflags_t op, const struct wire_fields *f)
{
	if (op_has(op, OPF_DETH)) {
		wire_deth_write(p, f->deth.qkey, f->deth.src_qpn);
		p += WIRE_DETH_LEN;
	}
	if (op_has(op, OPF_XRCETH)) {
		be32_store(p, f->xrc_srqn & PSN_MASK);
		p += WIRE_XRCETH_LEN;
	}
	if (op_has(op, OPF_RETH)) {
		if (UNLIKELY(op_has(op, OPF_FETH))) {
			be32_store(p, f->feth);
			p += WIRE_FETH_LEN;
		}
		wire_reth_write(p, f->reth.va, f->reth.rkey, f->reth.dma_len);
		p += WIRE_RETH_LEN;
	}
	if (op_has(op, OPF_ATOMICETH)) {
		be64_store(p, f->atomiceth.va);
		be32_store(p + 8, f->atomiceth.rkey);
		be64_store(p + 12, f->atomiceth.swap_add);
		be64_store(p + 20, f->atomiceth.compare);
		p += WIRE_ATOMICETH_LEN;
	}
	if (op_has(op, OPF_AETH)) {
		be32_store(p, (uint32_t)f->aeth.syndrome << 24 | (f->aeth.msn & PSN_MASK));
		p += WIRE_AETH_LEN;
	}
	if (op_has(op, OPF_ATOMICACKETH)) {
		be64_store(p, f->atomicack);
		p += WIRE_ATOMICACK_LEN;
	}
	if (op_has(op, OPF_IMM)) {
		be32_store(p, f->imm);
		p += WIRE_IMM_LEN;
	}
	if (op_has(op, OPF_IETH)) {
		be32_store(p, f->ieth);
		p += WIRE_IETH_LEN;
	}
	return p;
}

/** Those bits of an opcode's flags alone. */
static ALWAYS_INLINE opflags_t
wire_ext_only(opflags_t op, uint32_t bits)
{
	return (opflags_t){ op.v & bits };
}

#endif
