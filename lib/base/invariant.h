/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef INVARIANT_H
#define INVARIANT_H
/**
 * @file invariant.h  ASSERT: what is always true, unless this code has a defect.
 *
 * Owner:   any lcore.
 * Memory:  none.
 * Depends: base.
 *
 * Assert what the code itself guarantees, never what a peer, a client or a file decides: that is
 * checked, counted and answered. Not <assert.h>, because ASSERT follows a build option of its own:
 * meson's "asserts" is on in every build but release ones, so that tests, simulation and fuzzing
 * have it and a deployed dataplane pays nothing.
 */
#include "compiler.h"

#ifdef ROCELANE_ASSERTS

/** End the program unless `cond` is true, and say where. Cost: the condition. */
#define ASSERT(cond) \
	((void)(LIKELY(cond) ? (void)0 : invariant_failed(__FILE__, __LINE__, __func__, #cond)))

#else

/** The condition has to compile, so that names in it count as used; it is never evaluated. */
#define ASSERT(cond) ((void)(0 && (cond)))

#endif

/**
 * Print "FILE:LINE: FUNCTION: ASSERT(COND) does not hold" to standard error, then abort().
 * Only ASSERT calls it. Any lcore.
 */
void invariant_failed(const char *file, int line, const char *function, const char *cond)
	__attribute__((noreturn, cold));

#endif
