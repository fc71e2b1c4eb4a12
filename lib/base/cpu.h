/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CPU_H
#define CPU_H
/**
 * @file cpu.h  Which vector instructions may be used: those of the machine, or fewer when told so.
 *
 * Owner:   set before the workers start, constant after it; read by any lcore.
 * Memory:  one byte.
 * Depends: base.
 */
#include <stdbool.h>
#include <stdint.h>

enum cpu_feature {
	CPU_CLMUL = 1,      /* PCLMULQDQ and SSE4.1: short CRCs in 128-bit registers */
	CPU_AVX = 2,        /* copies in 256-bit registers */
	CPU_WIDE_CRC = 4,   /* VPCLMULQDQ over 512-bit registers */
	CPU_WIDE_PARSE = 8, /* headers read by AVX-512's permutations of bytes */
	CPU_CRC_256 = 16,   /* VPCLMULQDQ over 256-bit registers, and AVX2 */
	CPU_AVX2 = 32,      /* headers compared in 256-bit registers */
};

/** Bits of cpu_feature. Before main() it is all that the machine has. */
extern uint8_t cpu_features;

/** May this feature be used? Cost: one load. */
static inline bool
cpu_has(enum cpu_feature f)
{
	return (cpu_features & f) != 0;
}

/**
 * Use what the machine has, but no wider registers than this. Call before the workers start.
 * @param bits as DPDK's --force-max-simd-bitwidth. 512 and more: everything; 256: no AVX-512; 128:
 *        no AVX and AVX2; less: no vector instructions.
 */
void cpu_limit(uint32_t bits);

#endif
