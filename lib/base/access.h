/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ACCESS_H
#define ACCESS_H
/**
 * @file access.h  What may be done to memory: ACCESS_* of verbs.h, without their names.
 *
 * For headers of the protocol, whose tests write the words of verbs down for themselves.
 *
 * Owner:   compile time.
 * Memory:  none.
 * Depends: nothing.
 * Spec:    IBTA vol. 1, 10.6.3; the values are those of enum ibv_access_flags.
 */
#include <stdint.h>

/** ACCESS_* of a region, a window or a queue pair. */
typedef uint16_t access_t;

#endif
