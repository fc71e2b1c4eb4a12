/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef LOG_RATE_H
#define LOG_RATE_H
/**
 * @file log_rate.h  Lines that a peer or an application can cause: a few at once, then one in ten
 *                   seconds, and how many were left out.
 *
 * Owner:   one thread; a struct log_rate for each place that writes such lines, all zero at first.
 * Memory:  the caller's.
 * Depends: log.
 */
#include <stdbool.h>
#include <stdint.h>

#include "clock.h"
#include "log.h"

#define LOG_RATE_BURST 5
#define LOG_RATE_EVERY ((ns_t)10 * TIME_NS_PER_S)

struct log_rate {
	ns_t full_at; /* when as many lines as go at once may be written again */
	uint32_t left_out;
};

/**
 * Write the line, or count it. The next line that is written tells how many like it were left out.
 * @return was it written?
 */
bool log_rated(struct log_rate *rate, ns_t now, enum log_level level, const char *fmt, ...)
	PRINTF(4, 5);

#endif
