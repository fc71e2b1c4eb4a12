/* SPDX-License-Identifier: BSD-3-Clause */
#include "log_rate.h"

#include <stdarg.h>
#include <stdio.h>

bool
log_rated(struct log_rate *rate, ns_t now, enum log_level level, const char *fmt, ...)
{
	char line[480];
	va_list ap;

	if (rate->full_at < now)
		rate->full_at = now;
	if (rate->full_at > now + (LOG_RATE_BURST - 1) * LOG_RATE_EVERY) {
		rate->left_out++;
		return false;
	}
	rate->full_at += LOG_RATE_EVERY;
	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	if (rate->left_out != 0)
		log_line(level, "%s (%u lines like this one were left out before it)", line,
			rate->left_out);
	else
		log_line(level, "%s", line);
	rate->left_out = 0;
	return true;
}
