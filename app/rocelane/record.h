/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RECORD_H
#define RECORD_H
/**
 * @file record.h  A pcapng file of what comes to the ports: each packet once, as it was sent.
 *
 * Owner:   main opens and closes; the worker that polls a port tells of its packets; a thread of
 *          this file writes.
 * Memory:  RECORD_ROOM for all workers; what does not fit is not in the file, and counted there.
 * Depends: trace (pcapng), impair, DPDK (mbufs).
 *
 * A packet is told of before rules of a bad wire change it, and its comment says what they did.
 * What goes to an address of this process is told of like what came over a wire, with its ICRC.
 */
#include <stdbool.h>
#include <stdint.h>

#include "conf.h"

struct record;
struct rte_mbuf;

#define RECORD_ROOM     (64u << 20) /* packets that wait to be written */
#define RECORD_FILE_MAX (1ull << 30)

/**
 * The file is made empty and begun, and the thread started. @param fd open for writing, a regular
 * file; it is the record's from now on. @return 0 or -errno, logged.
 */
int record_open(int fd, const struct conf *conf, uint64_t (*clock)(void), struct record **out);
/** Nobody tells of packets any more: the rest is written, what is missing logged. NULL: nothing. */
void record_close(struct record *r);

/** Poller: impair_port.tap. @param arg the struct dataplane_port. Cost: two copies, no call. */
void record_packet(void *arg, const struct rte_mbuf *m, uint32_t actions, uint64_t now);

#endif
