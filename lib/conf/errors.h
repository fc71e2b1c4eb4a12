/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ERRORS_H
#define ERRORS_H
/**
 * @file errors.h  Inside lib/conf: the list of faults as the loader handles it.
 *
 * Owner:   control lcore.
 * Memory:  the list's own.
 * Depends: base, jansson (through conf_json.h).
 */
#include "conf_json.h"

/** Stable order by line, so that a reader goes down the file once. */
void conf_errors_sort(struct conf_errors *err);
/**
 * Had what stands at `key` of the place where the decoder is, or something within it, a fault? Then
 * its value is not what was written, and what does not go with it is no fault of its own.
 */
bool conf_errors_within(const struct conf_errors *err, const char *key);
/** Longest prefix of s[0..len) that does not end inside a UTF-8 character. */
size_t conf_errors_utf8_cut(const char *s, size_t len);

#endif
