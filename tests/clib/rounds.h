/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TEST_ROUNDS_H
#define TEST_ROUNDS_H
/**
 * @file rounds.h  How often a test of several threads goes round.
 *
 * Owner:   tests only.
 * Memory:  none.
 * Depends: nothing.
 *
 * ThreadSanitizer looks at each access and finds a race by what orders two of them, not by how they
 * happen to fall: a fiftieth of the rounds is enough, and takes as long.
 */
#if defined(__SANITIZE_THREAD__)
#define ROUNDS(n) ((n) / 50)
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define ROUNDS(n) ((n) / 50)
#endif
#endif
#ifndef ROUNDS
#define ROUNDS(n) (n)
#endif

#endif
