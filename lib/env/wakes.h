/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef WAKES_H
#define WAKES_H
/**
 * @file wakes.h  Clients that wake a worker which sleeps; who does so in vain is not heard.
 *
 * Owner:   the worker's lcore. The set's members come and go by connections' threads.
 * Memory:  part of the owner's state.
 * Depends: base; Linux.
 *
 * Each client has a descriptor in the worker's epoll set (broker_signal_waker()). To write to it
 * costs the client a system call, and the worker a turn. A client that rings a doorbell first gives
 * it work; one that does not has WAKES_VAIN of them, and then its descriptor is out until there is
 * work, whoever gives it. The others are heard all the time.
 */
#include <stdint.h>

#define WAKES_VAIN 64
#define WAKES_MOST 64 /* who woke it since it had work; further ones are heard all the time */

struct wakes {
	int set;
	uint32_t n;
	struct wakes_one {
		int fd;
		uint32_t vain;
	} one[WAKES_MOST];
};

/** @param set an epoll set, edge-triggered, whose members carry their descriptor as data. */
void env_wakes_init(struct wakes *w, int set);
/** The set is readable: take what woke the worker. */
void env_wakes_heard(struct wakes *w);
/** The worker had work: what woke it was not in vain, and all are heard again. */
void env_wakes_worked(struct wakes *w);

#endif
