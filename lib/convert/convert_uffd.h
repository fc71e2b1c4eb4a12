/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CONVERT_UFFD_H
#define CONVERT_UFFD_H
/**
 * @file convert_uffd.h  A userfaultfd, from the device or the system call.
 *
 * Owner:   any thread.
 * Memory:  none.
 * Depends: Linux.
 */
#include <stdint.h>

#include "convert.h"

/**
 * @param features UFFD_FEATURE_… that it must have. @param way what can be done with it.
 * @return its descriptor; -1: there is none, and `way` says so.
 */
int convert_uffd_open(uint64_t features, enum convert_way *way);

#endif
