/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef LOG_H
#define LOG_H
/**
 * @file log.h  Log lines of the control side. The data path never logs: it counts.
 *
 * Owner:   control lcore (the sink is called on the caller's lcore).
 * Memory:  none kept; a line is formatted on the stack and cut at 512 bytes.
 * Depends: base.
 */
#include <stdbool.h>

#include "compiler.h"

enum log_level { LOG_ERROR, LOG_WARN, LOG_INFO, LOG_DEBUG };

typedef void (*log_sink_fn)(void *ctx, enum log_level level, const char *line);

/** Where lines go; NULL restores the default, which is standard error. Call before lcores start. */
void log_set_sink(log_sink_fn sink, void *ctx);
/** Lines above `level` are not formatted. Default LOG_INFO. */
void log_set_level(enum log_level level);
/** Has there been an error since the program began? */
bool log_had_error(void);
/** One line, without a newline at its end. Cost: a system call in the default sink. */
void log_line(enum log_level level, const char *fmt, ...) PRINTF(2, 3);

#define log_error(...) log_line(LOG_ERROR, __VA_ARGS__)
#define log_warn(...)  log_line(LOG_WARN, __VA_ARGS__)
#define log_info(...)  log_line(LOG_INFO, __VA_ARGS__)
#define log_debug(...) log_line(LOG_DEBUG, __VA_ARGS__)

#endif
