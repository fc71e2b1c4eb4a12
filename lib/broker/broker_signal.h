/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BROKER_SIGNAL_H
#define BROKER_SIGNAL_H
/**
 * @file broker_signal.h  Eventfds that count events for a client, and that the client has, too.
 *
 * Owner:   the control lcore; reads and writes are the thread's of the connection.
 * Memory:  one allocation for each; none for an event.
 * Depends: broker, base.
 *
 * A client shares the open file: it can hang any number of watches on it, each of which the kernel
 * looks at when the counter changes; clear O_NONBLOCK and fill the counter up, so that a write
 * waits; and be the first to close it, so that our close() takes all watches away. So whoever
 * touches it is the thread, and the client waits for itself.
 *
 * One that the client writes to wakes others of us. It is in an epoll set of its own, and that set
 * is in theirs: to take the eventfd out, the thread waits for each writer, with its own set locked;
 * theirs is locked for a moment only, to take the thread's set out before.
 */
#include <stdint.h>

#include "broker.h"

struct broker_signal;

/**
 * A new eventfd. @param flags EFD_SEMAPHORE for one that counts events.
 * @return NULL: no memory, or no descriptor.
 */
struct broker_signal *broker_signal_new(struct broker_conn *c, int flags);
/**
 * The thread's. An eventfd that the client alone writes to: each write makes the epoll sets ready,
 * whatever the counter is. A connection has one; who asks again gets the same.
 * @param sets stay open until the connection has ended. @return NULL: no memory, or no descriptor.
 */
struct broker_signal *broker_signal_waker(struct broker_conn *c, const int *sets, uint32_t n);
/** The descriptor, for copies. */
int broker_signal_fd(const struct broker_signal *s);
/** One more event. Never waits. Cost: a system call unless the thread has to come anyway. */
void broker_signal_add(struct broker_signal *s);
/** So many events are gone unseen: take them off, as far as nobody has done so. Never waits. */
void broker_signal_drop(struct broker_signal *s, uint32_t n);
/** What was added is still told, unless the connection ends. @param s NULL: nothing. */
void broker_signal_free(struct broker_signal *s);

#endif
