/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef LINES_H
#define LINES_H
/**
 * @file lines.h  Where each value of a JSON text stands: pointer to line, position to pointer.
 *
 * Owner:   control lcore.
 * Memory:  one map a text, allocated by conf_lines_make; it points into the text.
 * Depends: base, jansson (through conf_json.h).
 * Spec:    RFC 6901 (pointers), RFC 8259 (text).
 */
#include <stddef.h>
#include <stdint.h>

#include "conf_json.h"

struct lines;

/** @return NULL without memory. Cost: one pass, 28 bytes a value. */
struct lines *conf_lines_make(const char *text, size_t len);
/** Free what conf_lines_make() has made; NULL is allowed. */
void conf_lines_free(struct lines *l);
/** Line (from 1) of the value, or of its nearest ancestor that exists. Cost: siblings passed. */
uint32_t conf_lines_find(const struct lines *l, const char *pointer);
/** Go down (conf_enter) to the last value that starts at or before byte `pos`. */
void conf_lines_enter(const struct lines *l, size_t pos, struct conf_errors *err);

#endif
