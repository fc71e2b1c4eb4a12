/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef VECTORS_HEX_H
#define VECTORS_HEX_H
/**
 * @file hex.h  Bytes from the hexadecimal text of a vector.
 *
 * Owner:   tests only.
 * Memory:  the caller's.
 * Depends: nothing.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/** @return bytes written; stops at the end of the text or of the room. Blanks are skipped. */
static inline size_t
hex_bytes(const char *text, uint8_t *buf, size_t room)
{
	size_t n = 0;
	unsigned int byte;
	int used;

	while (n < room && sscanf(text, " %2x%n", &byte, &used) == 1) {
		buf[n++] = (uint8_t)byte;
		text += used;
	}
	return n;
}

#endif
