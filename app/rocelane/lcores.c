/* SPDX-License-Identifier: BSD-3-Clause */
#include "lcores.h"

/* The first of those with the fewest lcores. */
static int
least_used(const cpu_set_t *allowed, const uint32_t *used)
{
	int best = -1;

	for (int c = 0; c < CPU_SETSIZE; c++)
		if (CPU_ISSET(c, allowed) && (best < 0 || used[c] < used[best]))
			best = c;
	return best < 0 ? 0 : best;
}

void
lcores_place(const cpu_set_t *allowed, const uint32_t *lcore, uint32_t n, int *cpu)
{
	uint32_t used[CPU_SETSIZE] = { 0 };

	for (uint32_t i = 0; i < n; i++) {
		cpu[i] = lcore[i] < CPU_SETSIZE && CPU_ISSET((int)lcore[i], allowed) ? (int)lcore[i]
										     : -1;
		if (cpu[i] >= 0)
			used[cpu[i]]++;
	}
	/* Workers first: who polls needs a CPU of its own more than who waits. */
	for (uint32_t k = 1; k <= n; k++) {
		const uint32_t i = k % n;

		if (cpu[i] >= 0)
			continue;
		cpu[i] = least_used(allowed, used);
		used[cpu[i]]++;
	}
}
