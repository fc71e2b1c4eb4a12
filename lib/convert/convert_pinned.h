/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CONVERT_PINNED_H
#define CONVERT_PINNED_H
/**
 * @file convert_pinned.h  Pages that an io_uring holds.
 *
 * What is read into a buffer that was registered with a ring goes to the pages that the buffer had
 * then. If they moved, it would be lost, without an error. /proc/self shows nothing of a process
 * whose first thread has ended: what is asked is the calling thread's.
 *
 * Owner:   any thread.
 * Memory:  none that stays.
 * Depends: Linux, libc.
 */
#include <stddef.h>
#include <stdint.h>

/**
 * Does a ring of this process hold pages of [at, at + len)? One system call or two more where
 * nothing of the process is pinned, one for each of its descriptors where something is. While other
 * threads are in a ring it does not say all: they are waited for, a second or so at most.
 * @return 1; 0, also where there is no /proc; or -EMFILE, -ENFILE, -ENOMEM: it cannot be asked now.
 */
int convert_pinned(uintptr_t at, size_t len);

#endif
