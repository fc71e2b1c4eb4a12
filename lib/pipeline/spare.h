/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SPARE_H
#define SPARE_H
/**
 * @file spare.h  mbufs that nobody needs any more: replies of the same burst use them again.
 *
 * Owner:   the worker's lcore, for all functions here.
 * Memory:  mbufs, until the end of the burst.
 * Depends: worker.h.
 */
#include "worker.h"

/** Nobody needs this mbuf any more; it becomes a reply or is freed at the end of the burst. */
static inline void
mbuf_done(struct worker *w, struct rte_mbuf *m)
{
	if (LIKELY(w->spare_n < PIPELINE_BURST))
		w->spare[w->spare_n++] = m;
	else
		rte_pktmbuf_free(m);
}

/** The same of packets from .. to - 1. @param reused of which these have become answers already. */
static inline void
mbufs_done(struct worker *w, const struct burst *b, uint32_t from, uint32_t to, uint32_t reused)
{
	ASSERT(from <= to && to <= PIPELINE_BURST);
	ASSERT(w->spare_n <= PIPELINE_BURST);
	if (UNLIKELY(reused != 0)) {
		for (; from < to; from++)
			if ((reused & BIT32(from)) == 0)
				mbuf_done(w, b->m[from]);
		return;
	}
	if (LIKELY(w->spare_n + (to - from) <= PIPELINE_BURST)) {
		memcpy(w->spare + w->spare_n, b->m + from, (to - from) * sizeof(b->m[0]));
		w->spare_n += to - from;
		return;
	}
	for (; from < to; from++)
		mbuf_done(w, b->m[from]);
}

/** The burst is over: free what no reply has used. */
void pipeline_mbufs_free_spare(struct worker *w);

#endif
