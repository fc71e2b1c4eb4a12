/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TEST_FIELDS_H
#define TEST_FIELDS_H
/**
 * @file fields.h  A packet as it was read, as what the builder takes.
 *
 * Owner:   tests only.
 * Memory:  the payload stays where the packet has it.
 * Depends: wire.
 */
#include "wire_build.h"

static inline struct wire_fields
fields_of(const struct wire_pkt *p)
{
	struct wire_fields f = {
		.opcode = p->opcode,
		.flags = p->flags,
		.tver = p->tver,
		.pkey = p->pkey,
		.dest_qpn = p->dest_qpn,
		.psn = p->psn,
		.payload = wire_payload(p),
		.payload_len = p->payload_len,
	};

	if (op_has(p->op, OPF_RETH))
		f.reth = wire_reth_any(p);
	if (op_has(p->op, OPF_FETH))
		f.feth = wire_feth(p);
	if (op_has(p->op, OPF_ATOMICETH))
		f.atomiceth = wire_atomiceth(p);
	if (op_has(p->op, OPF_AETH))
		f.aeth = wire_aeth(p);
	if (op_has(p->op, OPF_ATOMICACKETH))
		f.atomicack = wire_atomicack(p);
	if (op_has(p->op, OPF_DETH))
		f.deth = wire_deth(p);
	if (op_has(p->op, OPF_IMM))
		f.imm = wire_imm_or_inv(p);
	if (op_has(p->op, OPF_IETH))
		f.ieth = wire_imm_or_inv(p);
	return f;
}

#endif
