/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TEST_ROUNDS_H
#define TEST_ROUNDS_H
/**
 * @file rounds.h  How many random cases a test looks at.
 *
 * AddressSanitizer makes each three to four times as slow. What it finds it finds in few of them.
 */
#ifdef __SANITIZE_ADDRESS__
#define ROUNDS(n) ((n) / 4)
#else
#define ROUNDS(n) (n)
#endif

#endif
