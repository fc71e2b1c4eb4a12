/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef REFUSAL_H
#define REFUSAL_H
/**
 * @file refusal.h  Why an operation was refused: an errno and a sentence for people.
 *
 * Owner:   any thread; not for the data path, which has no sentences.
 * Memory:  the caller's.
 * Depends: nothing.
 */
#include "compiler.h"

struct refusal {
	int err; /* positive errno; 0: none */
	char text[320];
};

/**
 * Fill in; a sentence that is too long is cut.
 * @param err  positive errno.
 * @return -err, so that "return refuse(...)" reads well.
 */
int refuse(struct refusal *r, int err, const char *fmt, ...) PRINTF(3, 4);

#endif
