/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCREEN_H
#define SCREEN_H
/**
 * @file screen.h  Pictures that follow each other on a terminal, and the key that ends them.
 *
 * Owner:   one thread. Without a terminal it is plain output, and only signals end it.
 * Memory:  one picture at a time.
 * Depends: none.
 */
#include <stdbool.h>

/** Keys arrive without Enter from now on, until the program ends, however it does. */
void screen_begin(void);
/** @return true: `q` was pressed, or the terminal is gone. */
bool screen_wait(double seconds);
/** What `print` writes to stdout, in place of the picture before, cut to the terminal's size. */
void screen_show(void (*print)(void *ctx), void *ctx);

#endif
