/* SPDX-License-Identifier: BSD-3-Clause */
/* When a worker did not turn. */
#include "load.h"

void
stats_stalled(struct stats_load *l, ns_t was, ns_t now)
{
	const uint32_t n = atomic_load_explicit(&l->stalls_n, memory_order_relaxed);

	l->stalls[n % STATS_STALLS] = (struct stats_stall){ .end = now, .ns = now - was };
	l->stall_ns += now - was;
	atomic_store_explicit(&l->stalls_n, n + 1, memory_order_release);
}

ns_t
stats_stall_between(const struct stats_load *l, ns_t from, ns_t to, ns_t now)
{
	const uint32_t n = atomic_load_explicit(&l->stalls_n, memory_order_acquire);
	const ns_t turned = atomic_load_explicit(&l->turned, memory_order_relaxed);
	ns_t longest = 0;

	if (turned != 0 && turned < to && now > turned && now - turned >= STATS_STALL_NS)
		longest = now - turned;
	for (uint32_t i = 1; i < STATS_STALLS && i <= n; i++) {
		const struct stats_stall s = l->stalls[(n - i) % STATS_STALLS];

		if (s.end > from && s.end - s.ns < to && s.ns > longest)
			longest = s.ns;
	}
	return longest;
}
