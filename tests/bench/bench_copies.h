/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BENCH_COPIES_H
#define BENCH_COPIES_H
/**
 * @file bench_copies.h  How often data is in this process's memory: each copy of it left one there.
 *
 * Owner:   bench_pipeline.c and its rigs; one thread.
 * Memory:  static.
 * Depends: Linux.
 *
 * Each 64 bytes of data end in a word that nothing else holds: an answer that is written over the
 * beginning of a frame leaves it. It is looked for in all memory that can be written, so that no
 * copy is missed.
 */
#include <stddef.h>

#define COPIES_PART 64

/** From here on another word is meant. */
void copies_begin(void);
/** Make data of it. @param len a multiple of COPIES_PART. */
void copies_fill(void *at, size_t len);
/** @return bytes of such data, in all memory but the stack; 0 in a build with sanitizers. */
size_t copies_count(void);

#endif
