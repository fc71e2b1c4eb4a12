/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BROKER_WAIT_H
#define BROKER_WAIT_H
/**
 * @file broker_wait.h  poll() that no limit of descriptors stops.
 *
 * Owner:   any thread.
 * Memory:  the caller's.
 * Depends: libc.
 */
#include <poll.h>

/**
 * poll() for POLLIN, POLLOUT. The kernel refuses it where RLIMIT_NOFILE is less than `n`, however
 * few are open, and somebody may have lowered that.
 */
int broker_wait(struct pollfd *p, unsigned int n, int ms);

#endif
