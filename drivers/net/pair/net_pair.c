/* SPDX-License-Identifier: BSD-3-Clause */
/* Ports over rte_rings, by DPDK's net_ring driver. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <rte_errno.h>
#include <rte_eth_ring.h>
#include <rte_ethdev.h>
#include <rte_ring.h>

#include "net_pair.h"

static struct rte_ring *
one_way(const char *name, const char *way, unsigned int queue, unsigned int size, int socket)
{
	char full[RTE_RING_NAMESIZE];

	snprintf(full, sizeof(full), "%.16s_%s%u", name, way, queue);
	return rte_ring_create(full, size, socket, RING_F_SP_ENQ | RING_F_SC_DEQ);
}

static int
port_on(const char *name, const char *end, struct rte_ring *const *rx, struct rte_ring *const *tx,
	uint16_t queues, int socket)
{
	char full[64];

	snprintf(full, sizeof(full), "%.16s_%s", name, end);
	return rte_eth_from_rings(
		full, rx, queues, tx, queues, socket < 0 ? 0 : (unsigned int)socket);
}

int
net_pair_create(const char *name, uint16_t queues, unsigned int ring_size, uint16_t *port_a,
	uint16_t *port_b)
{
	struct rte_ring *ab[NET_PAIR_QUEUES] = { NULL }, *ba[NET_PAIR_QUEUES] = { NULL };
	int a, b, rc = -ENODEV;

	if (queues == 0 || queues > NET_PAIR_QUEUES)
		return -EINVAL;
	for (uint16_t q = 0; q < queues; q++) {
		ab[q] = one_way(name, "ab", q, ring_size, SOCKET_ID_ANY);
		ba[q] = one_way(name, "ba", q, ring_size, SOCKET_ID_ANY);
		if (ab[q] == NULL || ba[q] == NULL) {
			rc = rte_errno != 0 ? -rte_errno : -ENOMEM;
			goto no_rings;
		}
	}
	a = port_on(name, "a", ba, ab, queues, SOCKET_ID_ANY);
	if (a < 0)
		goto no_rings;
	b = port_on(name, "b", ab, ba, queues, SOCKET_ID_ANY);
	if (b < 0)
		goto no_b;
	*port_a = (uint16_t)a;
	*port_b = (uint16_t)b;
	return 0;

no_b:
	rte_eth_dev_close((uint16_t)a);
no_rings:
	for (uint16_t q = 0; q < queues; q++) {
		rte_ring_free(ab[q]);
		rte_ring_free(ba[q]);
	}
	return rc;
}

int
net_pair_create_open(const char *name, unsigned int ring_size, int socket, uint16_t *port,
	struct rte_ring **to_port, struct rte_ring **from_port)
{
	struct rte_ring *in = one_way(name, "in", 0, ring_size, socket);
	struct rte_ring *out = one_way(name, "out", 0, ring_size, socket);
	int p, rc = -ENODEV;

	if (in == NULL || out == NULL) {
		rc = rte_errno != 0 ? -rte_errno : -ENOMEM;
		goto fail;
	}
	p = port_on(name, "p", &in, &out, 1, socket);
	if (p < 0)
		goto fail;
	*port = (uint16_t)p;
	*to_port = in;
	*from_port = out;
	return 0;

fail:
	rte_ring_free(in);
	rte_ring_free(out);
	return rc;
}

int
net_pair_start(uint16_t port, struct rte_mempool *pool)
{
	const struct rte_eth_conf conf = { 0 };
	int rc = rte_eth_dev_configure(port, 1, 1, &conf);

	if (rc == 0)
		rc = rte_eth_rx_queue_setup(port, 0, 512, SOCKET_ID_ANY, NULL, pool);
	if (rc == 0)
		rc = rte_eth_tx_queue_setup(port, 0, 512, SOCKET_ID_ANY, NULL);
	if (rc == 0)
		rc = rte_eth_dev_start(port);
	return rc;
}

void
net_pair_close(uint16_t port)
{
	struct rte_mbuf *m[32];
	uint16_t n;

	while ((n = rte_eth_rx_burst(port, 0, m, 32)) != 0)
		rte_pktmbuf_free_bulk(m, n);
	rte_eth_dev_stop(port);
	rte_eth_dev_close(port);
}
