/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RIG_H
#define RIG_H
/**
 * @file rig.h  The dataplane on a stepped clock: what its set-up and its commands share.
 *
 * Owner:   tests only; the one thread of the process.
 * Memory:  one struct rig.
 * Depends: app/rocelane, DPDK.
 */
#include "dataplane.h"

enum { RIG_FRAME_MAX = 16384 };

struct rig_port {
	struct rte_ring *rx;
	struct rte_ring *tx;
};

struct rig {
	struct dataplane dp;
	struct rig_port ports[CONF_MAX_PORTS];
	ns_t now;
	uint64_t fcs_flag;        /* of an mbuf whose FCS was wrong */
	struct rte_mempool *pool; /* of frames given to a starving port */
};

extern struct rig rig;

/** One turn of each worker. */
void rig_pump(void *ctx);
/** Carry out one line. @return false at quit. */
bool rig_command(char *line);

#endif
