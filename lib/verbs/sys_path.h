/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SYS_PATH_H
#define SYS_PATH_H
/**
 * @file sys_path.h  Files that a kernel shows of RDMA devices: below $ROCELANE_FILES instead, where
 *                   rocelane-run has made them.
 *
 * Owner:   any thread.
 * Memory:  the caller's buffer.
 * Depends: nothing.
 */
#include <stdbool.h>
#include <stddef.h>

#define SYS_PATH_MAX 4096

/** May vl_path() name another one? */
bool vl_path_is_ours(const char *path);
/**
 * What vl_path() needs, on the caller's stack; NULL: nothing. All of a program's files come by
 * here, also in handlers of signals and in coroutines, whose stacks are small.
 */
#define SYS_PATH_BUF(path) (vl_path_is_ours(path) ? __builtin_alloca(SYS_PATH_MAX) : NULL)
/** Where the file of this path is: in `buf`, or the path itself. Any other path is left alone. */
const char *vl_path(const char *path, char *buf);
/** Is it a device of libibverbs, as vl_path() has it? *minor is that of its number, 231:192+N. */
bool vl_path_is_device(const char *path, unsigned int *minor);
/** Somebody looks for devices: says on standard error, once, if it can be another libibverbs. */
void vl_tell_other(void);

#endif
