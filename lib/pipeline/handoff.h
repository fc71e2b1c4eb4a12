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
/** The same for one of them, found later. */
void pipeline_handoff_send(struct worker *w, struct burst *b, uint32_t i);
/** Frames that other workers received for our QPs become the burst `b`. */
void pipeline_handoff_receive(struct worker *w, struct burst *b);
/** These frames, each with its `port`, become a burst. */
void pipeline_handoff_take(
	struct worker *w, struct burst *b, struct rte_mbuf *const *m, uint32_t n);

#endif
