/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SANDBOX_H
#define SANDBOX_H
/**
 * @file sandbox.h  What the process gives up once it runs: capabilities, and most system calls.
 *
 * Owner:   the main thread, once, when all ports and sockets are open.
 * Memory:  none.
 * Depends: base, libseccomp.
 *
 * Whoever takes the process over through a packet or a client's request finds no program to start,
 * no other process to look into, no capability, and no file to write to, unless the configuration
 * needs one. A call that is not allowed fails with EPERM: it neither ends the process, so that a
 * library's new habit is a message in the log and no outage, nor does it do anything. All threads
 * are confined, also those that are started later.
 */
#include <stdbool.h>

/** What stays possible, beside what every dataplane does. */
struct sandbox_needs {
	bool writes_files; /* opens files for writing: a capture of drops, hugepages */
	bool physical;     /* memory can grow, and devices want physical addresses: CAP_SYS_ADMIN */
};

/** Is it of no use in this build? Sanitizers start programs and trace the process. */
bool sandbox_is_left_out(void);
/** From here on. @return 0, or -errno; then nothing, or a part of it, was given up. */
int sandbox_enter(const struct sandbox_needs *needs);

#endif
