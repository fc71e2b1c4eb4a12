/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TEST_UNSTABLE_H
#define TEST_UNSTABLE_H
/**
 * @file unstable.h  Shared memory that another process writes to between any two accesses to it.
 *
 * Owner:   tests of code that reads memory which clients share; one thread, x86-64.
 * Memory:  mapped once for each area and never unmapped.
 * Depends: the system alone.
 *
 * The area cannot be touched while it is watched. Each instruction that touches it is stopped, the
 * test changes the memory through a second mapping, and the instruction is carried out alone. So
 * what is tested is what the compiler made of the source: a second load that it thought harmless
 * counts as well. Before and behind an area lie pages that nobody may touch at any time.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/**
 * Called before each instruction that touches an area. @param n  so many came before. @param at
 * what it touches, in the second mapping. @param len  bytes from there to the area's end.
 */
typedef void (*unstable_change)(void *ctx, uint32_t n, uint8_t *at, size_t len);

/** An area of `len` bytes, a multiple of 64, right before a page that nobody may touch; or NULL. */
uint8_t *unstable_map(size_t len);
/** Where the test itself reads and writes an address of an area. */
void *unstable_alias(const void *at);
/** From here on all areas are watched. @param most  instructions; one more ends the program. */
void unstable_begin(unstable_change change, void *ctx, uint32_t most);
/** Areas are memory like any other again. @return instructions that touched them. */
uint32_t unstable_end(void);

#endif
