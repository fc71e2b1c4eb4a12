/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RUNTIME_H
#define RUNTIME_H
/**
 * @file runtime.h  EAL's folder under /run/dpdk: remove what EAL leaves there.
 *
 * EAL makes the folder and never removes it. A file of ours in it, locked as long as the process
 * lives, tells whose it is: what somebody else uses, or might, stays.
 *
 * Owner:   the main thread.
 * Memory:  none.
 * Depends: DPDK.
 */
#include <stdbool.h>

/** Can other processes attach? EAL says so only to who wants to hear of them. */
bool runtime_is_shared(void);
/**
 * Before EAL starts: at the very end, behind what EAL and its telemetry do there, the folder is
 * removed, unless somebody else is in it, or it is that of --file-prefix's default: another
 * dataplane may be about to start in that one.
 */
void runtime_begin(void);
/** EAL has started: claim its folder, and remove those of dataplanes that died. */
void runtime_enter(void);

#endif
