/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CAPTURE_H
#define CAPTURE_H
/**
 * @file capture.h  Lets dpdk-dumpcap and dpdk-pdump capture on the ports.
 *
 * Owner:   main, after EAL is up.
 * Memory:  a memzone of some MiB, where other processes can attach to this one; else none.
 * Depends: DPDK (pdump).
 *
 * A capturing process attaches to this one's memory: that needs EAL's shared configuration (no
 * --no-shconf, no --in-memory) and hugepages (no --no-huge).
 */

/** Costs packets nothing until somebody captures. */
void capture_start(void);
void capture_stop(void);

#endif
