/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef IMPAIR_APPLY_H
#define IMPAIR_APPLY_H
/**
 * @file impair_apply.h  Changes to a frame that arrived.
 *
 * Owner:   the lcore that polls the queue.
 * Memory:  mbufs; whoever shares one with us never sees a change.
 * Depends: base, DPDK mbufs, this driver's peek and verdicts.
 */
#include <stdbool.h>

#include "impair_model.h"

struct rte_mbuf;
struct rte_mempool;

/**
 * The same frame in memory that is ours alone: `m` itself, or a copy (then `m` is freed).
 * @return NULL when there is no mbuf for the copy; `m` is as it was.
 */
struct rte_mbuf *impair_own(struct rte_mbuf *m, struct rte_mempool *pool);

/** Flip what the verdict says. Offsets beyond the frame do nothing. `m` is ours alone. */
void impair_corrupt(struct rte_mbuf *m, const struct impair_verdict *v);

/** Is it ECN-capable (ECN field not 00), so that a queue may mark it? False where it is not IP. */
bool impair_is_ect(struct rte_mbuf *m, const struct impair_pkt *p);

/**
 * Set the ECN field to 11, whatever it was, with the IPv4 header checksum following (wrong if it
 * was wrong). The ICRC does not cover either (ICRC-02). `m` is ours alone.
 */
void impair_mark_ce(struct rte_mbuf *m, const struct impair_pkt *p);

#endif
