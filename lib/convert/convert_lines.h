/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CONVERT_LINES_H
#define CONVERT_LINES_H
/**
 * @file convert_lines.h  Lines of a file of /proc, without heap.
 *
 * Owner:   its caller.
 * Memory:  its caller's.
 * Depends: libc.
 */
#include <stdbool.h>
#include <stddef.h>

#define LINE_MAX_BYTES 4352 /* a path, and what stands before it */

/** { .fd = … } begins where the descriptor stands. */
struct lines {
	int fd;
	size_t at, end; /* of what was read and not given yet */
	bool cut;       /* ... which is the rest of a line that was too long */
	char text[LINE_MAX_BYTES];
};

/** @return the next one, cut off where it is too long, until the next call; NULL: there is none. */
const char *convert_next_line(struct lines *l);

#endif
