/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PARTS_H
#define PARTS_H
/**
 * @file parts.h  How a burst goes through stages 4 to 6, which read its payloads.
 *
 * Owner:   the worker's lcore, for all functions here.
 * Memory:  none.
 * Depends: worker.h.
 */
#include <rte_cycles.h>

#include "worker.h"

/** While somebody measures: the cycles since the last lap are this stage's. */
static inline void
lap(struct worker *w, enum pipeline_stage stage, uint64_t *since)
{
	if (UNLIKELY(w->measuring)) {
		uint64_t t = rte_rdtsc(); /* not hot: only while somebody measures */

		w->load.cycles[stage] += t - *since;
		*since = t;
	}
}

/** Stages 4 to 6 of a burst that has been through stage 3: they run close together. */
void pipeline_deliver(struct worker *w, struct burst *b, uint64_t *since);
/**
 * The same in parts that fit into the L1 cache, with the memory that they are copied to: a payload
 * is still in the cache when it is copied. The burst has a packet.
 */
void pipeline_deliver_parts(struct worker *w, struct burst *b, uint64_t *since);

#endif
