/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CONVERT_STOP_H
#define CONVERT_STOP_H
/**
 * @file convert_stop.h  All other threads of the program stand still for a moment.
 *
 * Each gets a signal that glibc lets nobody block (its own, for setuid() in all threads), and
 * waits in the handler, where it touches no memory of the program, until convert_go(). A system
 * call that was interrupted goes on: by SA_RESTART, or, if it is one that never does and waits
 * without a limit (poll, epoll_wait, select, pause, semop), because it is called again. With a
 * limit of time it gives EINTR.
 *
 * Owner:   one thread at a time, all signals of which are blocked.
 * Memory:  a table for 4096 threads, mapped when it is first needed, which stays.
 * Depends: Linux, x86-64.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Who need not stand. */
struct convert_trap {
	bool is_there; /* whoever touches the range itself sleeps, but a system call does not */
	uintptr_t at;  /* the range */
	size_t len;
};

/**
 * @param trap who sleeps for a limited time in a call that names nothing in its range goes on so.
 * @return 0: all others stand; -ETIMEDOUT: one did not within two seconds, and all go on. With a
 * trap it is also -ETIMEDOUT after a tenth of a second in which none of those that do not stand
 * yet ran or waited for a CPU: they sleep in the kernel, or block even this signal. -errno.
 */
int convert_stop(const struct convert_trap *trap);

/** After convert_stop() has returned 0. */
void convert_go(void);

/**
 * Other pages are in this range now. Threads that sleep at a futex in it sleep at the old page,
 * where nobody wakes them, unless the futex is a PRIVATE one, which is known by its address. Each
 * of them gets the signal: its call is made again, looks at the word, and sleeps at the new page.
 * Where all threads stood still this was done for all of them.
 */
void convert_wait_anew(uintptr_t at, size_t len);

#endif
