/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HANDOFF_H
#define HANDOFF_H
/**
 * @file handoff.h  Packets that arrive at one worker for a QP of another.
 *
 * Owner:   the worker's lcore, for all functions here.
 * Memory:  none.
 * Depends: worker.h.
 */
#include "worker.h"

/**
 * Packets of other workers' QPs leave the burst, and those of a QP that moves.
 * @param foreign a bit for each of the former: their QPs' worker is `owner`.
 */
void pipeline_handoff_sort(
	struct worker *w, struct burst *b, uint32_t foreign, uint8_t owner[PIPELINE_BURST]);
/** Those that are plain leave a burst of one port before their headers are read. */
void pipeline_handoff_early(struct worker *w, struct burst *b);
/** The same for one of them, found later. */
void pipeline_handoff_send(struct worker *w, struct burst *b, uint32_t i);
/** Frames that other workers received for our QPs, `max` of them, become the burst `b`. */
void pipeline_handoff_receive(struct worker *w, struct burst *b, uint32_t max);
/**
 * They fill up the burst `b` of a port, unless they are another port's.
 * @return how many stay aside, for pipeline_handoff_arrive(); 0: none
 */
uint32_t pipeline_handoff_join(
	struct worker *w, struct burst *b, uint32_t port, struct rte_mbuf *aside[PIPELINE_BURST]);
/** Such frames, out of the ring, become a burst. */
void pipeline_handoff_arrive(
	struct worker *w, struct burst *b, struct rte_mbuf *const *m, uint32_t n);
/** These frames, each with its `port`, become a burst. */
void pipeline_handoff_take(
	struct worker *w, struct burst *b, struct rte_mbuf *const *m, uint32_t n);

#endif
