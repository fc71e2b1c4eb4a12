/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PSN_H
#define PSN_H
/**
 * @file psn.h  Packet sequence numbers: 24 bits, modulo 2^24.
 *
 * Owner:   any lcore (pure functions).
 * Memory:  none.
 * Depends: nothing.
 * Spec:    IBTA vol. 1, 9.7.2 (WIRE-11).
 *
 * The struct keeps a PSN from being compared or added as a plain number by mistake.
 */
#include <stdbool.h>
#include <stdint.h>

#define PSN_MASK 0xffffffu
#define PSN_HALF 0x800000u

typedef struct {
	uint32_t v; /* 0 .. 2^24-1 */
} psn_t;

/** Make a PSN from a number; bits above 24 are cut off. */
static inline psn_t
psn(uint32_t v)
{
	return (psn_t){ v & PSN_MASK };
}

/** The PSN that is n after p. It wraps at 2^24. */
static inline psn_t
psn_add(psn_t p, uint32_t n)
{
	return psn(p.v + n);
}

/** The PSN that is n before p. It wraps at 2^24. */
static inline psn_t
psn_sub(psn_t p, uint32_t n)
{
	return psn(p.v - n);
}

/** Are the two the same? */
static inline bool
psn_eq(psn_t a, psn_t b)
{
	return a.v == b.v;
}

/** How far `a` is ahead of `b`, 0 .. 2^24-1. */
static inline uint32_t
psn_distance(psn_t a, psn_t b)
{
	return (a.v - b.v) & PSN_MASK;
}

/**
 * Signed distance a - b in -2^23 .. 2^23-1: negative when `a` is older.
 * The one value that is equally far both ways comes out as -2^23.
 */
static inline int32_t
psn_cmp(psn_t a, psn_t b)
{
	return (int32_t)((a.v - b.v) << 8) >> 8;
}

/** Is `p` in [first, last], walking forward from `first`? */
static inline bool
psn_between(psn_t p, psn_t first, psn_t last)
{
	return psn_distance(p, first) <= psn_distance(last, first);
}

#endif
