/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TCP_H
#define TCP_H
/**
 * @file tcp.h  How the examples' two sides find each other, and miss each other; nothing of it is
 * RDMA.
 *
 * Owner:   one thread.
 * Memory:  none.
 * Depends: libc.
 */
#include <stdbool.h>
#include <stddef.h>

/** Connect to a host, or (NULL) wait for somebody; ends the program when neither works. */
int tcp_open(const char *host, const char *port);
/** Give `len` bytes and take as many. */
void tcp_swap(int fd, const void *mine, void *theirs, size_t len);
/** How long tcp_swap() waits; 0: for ever. */
void tcp_patience(int fd, int seconds);
/** Ends the program when the other side is gone. @return has it said something? */
bool tcp_check(int fd);
/** Sleep until `event` is readable, but not for long. @return is it? */
bool tcp_sleep(int fd, int event);

#endif
