/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BENCH_DRAIN_H
#define BENCH_DRAIN_H
/**
 * @file bench_drain.h  Empty what a sample left behind.
 *
 * Owner:   the rigs of the benchmarks; one thread.
 * Memory:  frames go back to their pools.
 * Depends: lib/ring, DPDK.
 */
#include <rte_mbuf.h>
#include <rte_ring.h>

#include "ring.h"

/** Free the frames of a ring, and forget the completions. @return frames. */
static inline uint32_t
bench_drain(struct rte_ring *ring, struct ring_cq *cq)
{
	struct ring_cqe cqe[32];
	struct rte_mbuf *m[64];
	uint32_t n, sum = 0;

	while ((n = rte_ring_dequeue_burst(ring, (void **)m, 64, NULL)) != 0) {
		rte_pktmbuf_free_bulk(m, n);
		sum += n;
	}
	while (ring_cq_poll(cq, cqe, 32) != 0)
		;
	return sum;
}

#endif
