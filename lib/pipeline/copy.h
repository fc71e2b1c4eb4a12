/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef COPY_H
#define COPY_H
/**
 * @file copy.h  Copy a payload; up to 64 bytes there is no call.
 *
 * Owner:   any lcore (a pure function over the caller's memory).
 * Memory:  the caller's.
 * Depends: base, mem.
 */
#include <string.h>

#include "compiler.h"
#include "mem.h"

/**
 * 16 bytes at a time, some of them twice; longer ones as mem_copy() has it.
 * @param len not 0.
 */
static ALWAYS_INLINE void
payload_copy(uint8_t *to, const uint8_t *from, uint32_t len)
{
	if (LIKELY(len - 16 <= 64 - 16)) {
		uint32_t middle = len > 32 ? 16 : 0;
		__uint128_t a, b, c, d;

		memcpy(&a, from, 16);
		memcpy(&b, from + middle, 16);
		memcpy(&c, from + len - 16 - middle, 16);
		memcpy(&d, from + len - 16, 16);
		memcpy(to, &a, 16);
		memcpy(to + middle, &b, 16);
		memcpy(to + len - 16 - middle, &c, 16);
		memcpy(to + len - 16, &d, 16);
		return;
	}
	mem_copy(to, from, len);
}

#endif
