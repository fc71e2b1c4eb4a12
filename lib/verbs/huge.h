/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef VL_HUGE_H
#define VL_HUGE_H
/**
 * @file huge.h  Huge pages that no dataplane can have.
 *
 * Owner:   the program's threads.
 * Memory:  none.
 * Depends: libc.
 */
#include <stdbool.h>

/** @param flags of mmap(). @return true: errno is ENOMEM, and there is no such memory. */
bool vl_huge_refused(int flags);

#endif
