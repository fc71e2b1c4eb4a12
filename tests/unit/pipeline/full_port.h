/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TEST_PIPELINE_FULL_PORT_H
#define TEST_PIPELINE_FULL_PORT_H
/**
 * @file full_port.h  A port that takes no frames.
 *
 * Owner:   the pipeline's unit tests that include it.
 * Memory:  buffers of the port's pool, from fill_port() to empty_port().
 * Depends: bed.h.
 */
#include "bed.h"

/** The port's ring takes nothing more. */
static inline void
fill_port(struct bed *b)
{
	struct rte_mbuf *m;

	do
		m = rte_pktmbuf_alloc(b->conf.ports[0].pool);
	while (m != NULL && rte_ring_enqueue(bed_far_end(), m) == 0);
	rte_pktmbuf_free(m);
}

/** It has taken all. */
static inline void
empty_port(void)
{
	void *m;

	while (rte_ring_dequeue(bed_far_end(), &m) == 0)
		rte_pktmbuf_free(m);
}

#endif
