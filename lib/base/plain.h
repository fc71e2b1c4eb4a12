/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PLAIN_H
#define PLAIN_H
/**
 * @file plain.h  Text for a terminal: what others wrote into it may not steer the terminal.
 *
 * Owner:   any thread.
 * Memory:  the caller's.
 * Depends: nothing.
 */
#include <stddef.h>
#include <string.h>

/** Separators of lines (U+2028), what changes the direction of writing (U+202E), and the like. */
static inline int
plain_is_format(const unsigned char *u)
{
	if (u[0] == 0xd8)
		return u[1] == 0x9c;
	if (u[0] != 0xe2)
		return 0;
	return (u[1] == 0x80 && (u[2] == 0x8e || u[2] == 0x8f || (u[2] >= 0xa8 && u[2] <= 0xae))) ||
	       (u[1] == 0x81 && u[2] >= 0xa6 && u[2] <= 0xa9);
}

/** @return how many bytes of `s` are one character of UTF-8 that is shown; 0: it begins none. */
static inline size_t
plain_len(const char *s)
{
	const unsigned char *u = (const unsigned char *)s;
	size_t n;

	if (u[0] < 0x80)
		return u[0] >= ' ' && u[0] != 0x7f;
	if (u[0] < 0xc2 || u[0] > 0xf4)
		return 0;
	n = u[0] < 0xe0 ? 2 : u[0] < 0xf0 ? 3 : 4;
	for (size_t i = 1; i < n; i++)
		if ((u[i] & 0xc0) != 0x80)
			return 0;
	/* Longer than it has to be: what it stands for is up to the reader. */
	if ((u[0] == 0xe0 && u[1] < 0xa0) || (u[0] == 0xf0 && u[1] < 0x90))
		return 0;
	/* U+0080 to U+009F are control characters, too: one of them is ESC [. */
	return (u[0] == 0xc2 && u[1] < 0xa0) || plain_is_format(u) ? 0 : n;
}

/**
 * Put '?' in place of each byte of a character that is not shown, and of each that is no UTF-8.
 * @param kept  control characters that stay, as "\n".  @return s.
 */
static inline char *
plain_text(char *s, const char *kept)
{
	size_t n;

	for (char *p = s; *p != '\0'; p += n > 0 ? n : 1) {
		n = plain_len(p);
		if (n == 0 && strchr(kept, *p) == NULL)
			*p = '?';
	}
	return s;
}

#endif
