/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef MIX_H
#define MIX_H
/**
 * @file mix.h  Places in tables for what others choose.
 *
 * Owner:   anybody.
 * Memory:  none.
 * Depends: nothing.
 *
 * With a secret mixed into what is chosen, nobody can choose many that fall on one place.
 */
#include <stdint.h>

/** Each bit of the result depends on all bits of `h`; no two have the same result. */
static inline uint64_t
mix(uint64_t h)
{
	h = (h ^ h >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	h = (h ^ h >> 27) * UINT64_C(0x94d049bb133111eb);
	return h ^ h >> 31;
}

#endif
