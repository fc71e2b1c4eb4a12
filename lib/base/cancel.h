/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CANCEL_H
#define CANCEL_H
/**
 * @file cancel.h  Sections in which no thread ends by pthread_cancel().
 *
 * Owner:   the thread that calls.
 * Memory:  none.
 * Depends: pthread.
 *
 * Most system calls of libc may end a thread that was cancelled, and its locks stay locked for
 * ever. Programs cancel threads that wait for events, and that wait is where they may end.
 */
#include <pthread.h>

/** @return what cancel_go_on() wants. */
static inline int
cancel_hold(void)
{
	int before = PTHREAD_CANCEL_ENABLE;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
	return before;
}

/** The thread may end as before. @param before what cancel_hold() returned. */
static inline void
cancel_go_on(int before)
{
	pthread_setcancelstate(before, NULL);
}

/** For CANCEL_HELD. */
static inline void
cancel_left(const int *before)
{
	cancel_go_on(*before);
}

/** From here to the end of the block no thread ends. */
#define CANCEL_HELD                                                                   \
	const int cancel_held __attribute__((cleanup(cancel_left), unused)) = cancel_hold()

#endif
