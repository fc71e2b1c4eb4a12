/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef NET_PAIR_H
#define NET_PAIR_H
/**
 * @file net_pair.h  In-memory ports for hermetic runs: frames move as pointers, nothing is lost.
 *
 * Owner:   control lcore creates and closes; a queue of a port is used by one lcore at a time.
 * Memory:  rte_rings made here; mbufs belong to whoever holds them.
 * Depends: DPDK's net_ring driver.
 */
#include <stdint.h>

struct rte_mempool;
struct rte_ring;

#define NET_PAIR_QUEUES 16 /* the most that net_ring takes */

/**
 * Two ports whose wires are crossed: what one sends on a queue the other receives on the queue of
 * the same number. They are not configured yet. @param name at most 16 bytes, unique.
 * @param queues 1 to NET_PAIR_QUEUES, each way. @param ring_size power of two.
 * @return 0 or -errno.
 */
int net_pair_create(const char *name, uint16_t queues, unsigned int ring_size, uint16_t *port_a,
	uint16_t *port_b);

/**
 * One port; the far end of its wire is two rings: put frames into *to_port, take what it sends
 * from *from_port. @return 0 or -errno.
 */
int net_pair_create_open(const char *name, unsigned int ring_size, int socket, uint16_t *port,
	struct rte_ring **to_port, struct rte_ring **from_port);

/** Configure one queue each way and start. @return 0 or -errno. */
int net_pair_start(uint16_t port, struct rte_mempool *pool);

/** Stop and close a port; frames still in its receive ring are freed, its rings stay. */
void net_pair_close(uint16_t port);

#endif
