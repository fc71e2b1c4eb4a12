/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef NOTIFY_H
#define NOTIFY_H
/**
 * @file notify.h  What the service manager hears: ready, stopping, still alive.
 *
 * Owner:   main lcore.
 * Memory:  none.
 * Time:    `now` is the caller's.
 * Depends: base. Speaks the protocol of sd_notify(3) itself; without NOTIFY_SOCKET it does nothing.
 */
#include <stdbool.h>

#include "clock.h"

/** Read the environment. Failures are logged and otherwise ignored. */
void notify_init(void);
void notify_ready(void);
void notify_stopping(void);
/** Is it time to say "alive"? Twice in the watchdog's time; never without one. */
bool notify_due(ns_t now);
void notify_alive(ns_t now);

#endif
