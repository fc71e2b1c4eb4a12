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
#include <ctype.h>
#include <stddef.h>
#include <stdint.h>

static inline uint8_t
hex_digit(char c)
{
	return (uint8_t)(c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10);
}

/** @return bytes written; stops at the end of the text or of the room. Blanks are skipped. */
static inline size_t
hex_bytes(const char *text, uint8_t *buf, size_t room)
{
	size_t n = 0;

	while (n < room) {
		while (isspace((unsigned char)*text))
			text++;
		if (!isxdigit((unsigned char)text[0]) || !isxdigit((unsigned char)text[1]))
			break;
		buf[n++] = (uint8_t)(hex_digit(text[0]) << 4 | hex_digit(text[1]));
		text += 2;
	}
	return n;
}

#endif
