/* SPDX-License-Identifier: BSD-3-Clause */
#include "bench_copies.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench_rig.h"

/* Not the word itself: that would be found. */
static uint64_t inverted = UINT64_C(0x5be3a1c7d92f4e86);

void
copies_begin(void)
{
	inverted = inverted * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
}

void
copies_fill(void *at, size_t len)
{
	const uint64_t word = ~inverted;

	memset(at, 0, len);
	for (size_t i = COPIES_PART; i <= len; i += COPIES_PART)
		memcpy((char *)at + i - sizeof(word), &word, sizeof(word));
}

#if defined(__SANITIZE_ADDRESS__)
size_t
copies_count(void)
{
	return 0; /* most memory is the sanitizer's, and not to be read */
}
#else
static size_t
count_in(const char *from, const char *to)
{
	const uint64_t word = ~inverted;
	size_t n = 0;

	while ((from = memmem(from, (size_t)(to - from), &word, sizeof(word))) != NULL) {
		n += COPIES_PART;
		from += sizeof(word);
	}
	return n;
}

size_t
copies_count(void)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	char line[512];
	size_t n = 0;

	if (maps == NULL)
		die("no /proc/self/maps");
	while (fgets(line, sizeof(line), maps) != NULL) {
		char *end;
		const uintptr_t from = strtoull(line, &end, 16);
		const uintptr_t to = strtoull(end + 1, &end, 16);

		if (strncmp(end, " rw", 3) == 0 && strstr(line, "[stack") == NULL)
			n += count_in((const char *)from, (const char *)to);
	}
	fclose(maps);
	return n;
}
#endif
