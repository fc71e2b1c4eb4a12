/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef STEPPED_H
#define STEPPED_H
/**
 * @file stepped.h  The dataplane on a stepped clock: what its set-up and its commands share.
 *
 * Owner:   tests only; the one thread of the process.
 * Memory:  one struct stepped.
 * Depends: app/rocelane, DPDK.
 */
#include "dataplane.h"

enum { STEPPED_FRAME_MAX = 16384 };

struct stepped_port {
	struct rte_ring *rx;
	struct rte_ring *tx;
};

struct stepped {
	struct dataplane dp;
	struct stepped_port ports[CONF_MAX_PORTS];
	ns_t now;
	uint64_t fcs_flag;        /* of an mbuf whose FCS was wrong */
	struct rte_mempool *pool; /* of frames given to a starving port */
};

extern struct stepped stepped;

/** One turn of each worker. */
void stepped_pump(void *ctx);
/** Carry out one line. @return false at quit. */
bool stepped_command(char *line);

#endif
