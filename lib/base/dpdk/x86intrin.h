/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DPDK_X86INTRIN_H
#define DPDK_X86INTRIN_H
/**
 * @file x86intrin.h  The compiler's header of this name, as far as DPDK's headers use it.
 *
 * Owner:   DPDK's rte_vect.h, which includes it, as rte_mbuf.h does with that.
 * Memory:  none.
 * Depends: the compiler.
 *
 * The whole is all that x86 ever had: 0.7 s of the compiler's time for each file. Built for SSE4.2,
 * as Debian's DPDK asks for, DPDK's headers use no more than that. Code with wider registers
 * includes immintrin.h itself.
 */
#ifdef __AVX__
#include_next <x86intrin.h>
#else
#include <nmmintrin.h>
#endif

#endif
