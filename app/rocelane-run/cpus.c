/* SPDX-License-Identifier: BSD-3-Clause */
#include "cpus.h"

#include <stdio.h>

bool
cpus_apart(const cpu_set_t *allowed, cpu_set_t *worker, cpu_set_t *others)
{
	int last = CPU_SETSIZE - 1;

	CPU_ZERO(worker);
	*others = *allowed;
	if (CPU_COUNT(allowed) < CPUS_LEAST) {
		*worker = *allowed;
		return false;
	}
	while (!CPU_ISSET(last, allowed))
		last--;
	CPU_SET(last, worker);
	CPU_CLR(last, others);
	return true;
}

void
cpus_text(const cpu_set_t *set, char *out)
{
	size_t at = 0;

	out[0] = '\0';
	for (int cpu = 0, end; cpu < CPU_SETSIZE; cpu = end + 1) {
		end = cpu;
		if (!CPU_ISSET(cpu, set))
			continue;
		while (end + 1 < CPU_SETSIZE && CPU_ISSET(end + 1, set))
			end++;
		at += (size_t)snprintf(out + at, CPUS_TEXT - at, end == cpu ? "%s%d" : "%s%d-%d",
			at != 0 ? "," : "", cpu, end);
	}
}
