/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef MEMINFO_H
#define MEMINFO_H
/**
 * @file meminfo.h  How much memory there is. The kernel does not refuse more than that: it kills
 *       programs instead.
 *
 * Owner:   any thread.
 * Memory:  none.
 * Depends: nothing.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/** Bytes of ordinary pages that are available without starving others; SIZE_MAX: not known. */
static inline size_t
meminfo_available(void)
{
	FILE *f = fopen("/proc/meminfo", "re");
	unsigned long long kib = SIZE_MAX / 1024;
	char line[128];

	if (f == NULL)
		return SIZE_MAX;
	while (fgets(line, sizeof(line), f) != NULL) {
		if (sscanf(line, "MemAvailable: %llu kB", &kib) == 1)
			break;
	}
	fclose(f);
	return kib < SIZE_MAX / 1024 ? (size_t)kib * 1024 : SIZE_MAX;
}

#endif
