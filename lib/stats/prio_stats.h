/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PRIO_STATS_H
#define PRIO_STATS_H
/**
 * @file prio_stats.h  Counters by priority, of ports that have priorities.
 *
 * Owner:   each block has one writing lcore; any lcore may read.
 * Memory:  the owner's.
 * Depends: base.
 */
#include <stdint.h>

#define PRIO_STATS_N 8

struct prio_stats {
	uint64_t rx_packets[PRIO_STATS_N];
	uint64_t rx_bytes[PRIO_STATS_N];
	uint64_t tx_packets[PRIO_STATS_N];
	uint64_t tx_bytes[PRIO_STATS_N];
	uint64_t rx_pause[PRIO_STATS_N];    /* PFC frames about it */
	uint64_t rx_pause_ns[PRIO_STATS_N]; /* for which it was silent by what was obeyed */
	uint64_t rx_global_pause;           /* 802.3x frames */
	uint64_t rx_pause_storms;           /* pause_max was over at a priority */
};

#endif
