/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BROKER_OUT_H
#define BROKER_OUT_H
/**
 * @file broker_out.h  What goes out to a peer: counted by the control lcore, written by the thread.
 *
 * Owner:   the control lcore, but for what is marked "The thread's".
 * Memory:  an allocation for each line, made and freed by the control lcore.
 * Depends: broker.
 *
 * A write looks at every watch that the peer has hung on its end of the socket, and so does
 * shutdown(). The thread writes what fits and waits for room while it goes on with all else. It
 * does so in the order in which it was asked for that and for other jobs: an event that was
 * signalled before an answer is there before it.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "broker.h"

#define BROKER_OUT_FDS 8 /* descriptors that go with one line */

/** What is said, and a newline. @param fds taken. Never waits. @return false: no memory. */
bool broker_conn_say(
	struct broker_conn *c, const char *line, size_t len, const int *fds, uint32_t fds_n);
/** Nothing more will be said: the peer reads to the end. Never waits. */
void broker_conn_hush(struct broker_conn *c);
/** Bytes on their way, with what they are kept in. */
size_t broker_conn_unsaid(const struct broker_conn *c);
/** Nobody can hear it any more. */
bool broker_conn_is_deaf(const struct broker_conn *c);

/** The thread's: write what fits. */
void broker_out_flush(struct broker_conn *c);
/** The thread's: what fits, and the rest is thrown away. */
void broker_out_end(struct broker_conn *c);
/** After the thread has ended. */
void broker_out_free(struct broker_conn *c);

#endif
