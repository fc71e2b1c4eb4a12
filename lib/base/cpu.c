/* SPDX-License-Identifier: BSD-3-Clause */
#include "cpu.h"

uint8_t cpu_features;

#if defined(__x86_64__)
static uint8_t
features_up_to(uint32_t bits)
{
	uint8_t f = 0;

	__builtin_cpu_init();
	if (bits >= 128 && __builtin_cpu_supports("pclmul") && __builtin_cpu_supports("sse4.1"))
		f |= CPU_CLMUL;
	if (bits >= 256 && __builtin_cpu_supports("avx"))
		f |= CPU_AVX;
	if (bits >= 256 && (f & CPU_CLMUL) != 0 && __builtin_cpu_supports("avx2") &&
		__builtin_cpu_supports("vpclmulqdq"))
		f |= CPU_CRC_256;
	if (bits >= 256 && __builtin_cpu_supports("avx2"))
		f |= CPU_AVX2;
	if (bits < 512 || !__builtin_cpu_supports("avx512bw") ||
		!__builtin_cpu_supports("avx512vl"))
		return f;
	if (__builtin_cpu_supports("vpclmulqdq"))
		f |= CPU_WIDE_CRC;
	if (__builtin_cpu_supports("avx512vbmi"))
		f |= CPU_WIDE_PARSE;
	return f;
}
#else
static uint8_t
features_up_to(uint32_t bits)
{
	(void)bits;
	return 0;
}
#endif

void
cpu_limit(uint32_t bits)
{
	cpu_features = features_up_to(bits);
}

__attribute__((constructor)) static void
cpu_look(void)
{
	cpu_limit(UINT32_MAX);
}
