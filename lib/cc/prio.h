/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PRIO_H
#define PRIO_H
/**
 * @file prio.h  Priorities of a port: which one a frame has, and how those share the port.
 *
 * Owner:   constant after start, but for `pause` (pause.h).
 * Memory:  the caller's.
 * Depends: base, pause.h.
 * Spec:    IEEE 802.1Q, 6.9.4 and 8.6.8; rules FLOW-09, FLOW-10.
 */
#include <stdbool.h>
#include <stdint.h>

#include "pause.h"

#define PRIO_NONE      0xff
#define PRIO_PORTS_MAX 8 /* that have priorities: bits of wire_path.queue */

/** As `dcb app` has it: by DSCP, else by the tag's priority, else the default. */
struct prio_map {
	uint8_t dscp[64]; /* PRIO_NONE: not said */
	uint8_t pcp[PRIO_N];
	uint8_t other;
};

struct prio_port {
	struct prio_map map;
	uint8_t weight[PRIO_N]; /* 0: strict */
	/*
	 * Number of the transmit queue of priority 1, from 1 on; the others follow. Priority 0 has
	 * the port's own queue, which is number 0.
	 */
	uint8_t first;
	struct pause pause;
};

/** @param tos traffic class with its ECN bits. */
static inline uint8_t
prio_of(const struct prio_map *m, bool tagged, uint16_t tci, uint8_t tos)
{
	const uint8_t prio = m->dscp[tos >> 2];

	if (prio != PRIO_NONE)
		return prio;
	return tagged ? m->pcp[tci >> 13] : m->other;
}

/** Queue of that priority, as wire_path.queue has it. */
static inline uint8_t
prio_queue(const struct prio_port *p, uint8_t prio)
{
	return prio == 0 ? 0 : (uint8_t)(p->first + prio - 1);
}

#endif
