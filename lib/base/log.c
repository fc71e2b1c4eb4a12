/* SPDX-License-Identifier: BSD-3-Clause */
#include "log.h"

#include "fds.h"
#include "plain.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define LINE_MAX_BYTES 512

static void
sink_stderr(void *ctx UNUSED, enum log_level level, const char *line)
{
	static const char *const names[] = {
		[LOG_ERROR] = "error",
		[LOG_WARN] = "warning",
		[LOG_INFO] = "info",
		[LOG_DEBUG] = "debug",
	};
	static _Atomic uint32_t lost;
	char buf[LINE_MAX_BYTES + 128];
	uint32_t before;
	int n;

	/* Nobody who waits for us may wait for whoever reads this. */
	if (fds_would_wait(STDERR_FILENO, 0)) {
		lost++;
		return;
	}
	before = atomic_exchange(&lost, 0);
	n = before == 0 ? snprintf(buf, sizeof(buf), "rocelane: %s: %s\n", names[level], line)
			: snprintf(buf, sizeof(buf),
				  "rocelane: warning: %u lines of the log are lost: nobody read "
				  "them\nrocelane: %s: %s\n",
				  before, names[level], line);
	if (n > 0 && write(STDERR_FILENO, buf, (size_t)n) < 0)
		return; /* nowhere left to complain */
}

static log_sink_fn current_sink = sink_stderr;
static void *current_ctx;
static enum log_level max_level = LOG_INFO;
static _Atomic bool had_error;

void
log_set_sink(log_sink_fn sink, void *ctx)
{
	current_sink = sink != NULL ? sink : sink_stderr;
	current_ctx = ctx;
}

void
log_set_level(enum log_level level)
{
	max_level = level;
}

bool
log_had_error(void)
{
	return had_error;
}

void
log_line(enum log_level level, const char *fmt, ...)
{
	char line[LINE_MAX_BYTES];
	va_list ap;

	if (level == LOG_ERROR)
		had_error = true;
	if (level > max_level)
		return;
	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	plain_text(line, "\n");
	current_sink(current_ctx, level, line);
}
