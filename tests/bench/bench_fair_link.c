/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The link between the measured host and its peers. Peers that have something to send get as many
 * bytes each, in turn, up to what the measured port's receive queue takes. Nothing is lost: who may
 * not send yet waits.
 */
#include "bench_fair_world.h"

#include <stdio.h>

#include <rte_mbuf.h>
#include <rte_ring.h>

#include "net_pair.h"

enum {
	RX_RING = 64,      /* frames that the measured port holds */
	PEER_RING = 2048,  /* frames of a peer that wait */
	ROOM = 2048,       /* of the measured port's rings */
	QUANTUM = 2048,    /* bytes of a peer's turn */
	FIRST_ADDRESS = 2, /* of the peers; the measured host has 1 */
};

static struct {
	struct rte_ring *to;
	struct rte_ring *from;
	int64_t credit; /* bytes */
} wire[1 + APPS];       /* the measured host, then the peers */

static void
make_port(struct pipeline_port *p, const char *name, uint8_t address, uint32_t room,
	struct rte_mempool *pool)
{
	const struct wire_path out = fair_path(address, 0);
	uint16_t id;

	if (net_pair_create_open(name, room, SOCKET_ID_ANY, &id, &wire[address - 1].to,
		    &wire[address - 1].from) != 0 ||
		net_pair_start(id, pool) != 0)
		die("no port");
	*p = (struct pipeline_port){
		.id = id, .polls_rx = true, .pool = pool, .addr = { .has_ipv4 = true }
	};
	memcpy(p->addr.mac, out.smac, sizeof(p->addr.mac));
	memcpy(p->addr.ipv4, out.src_ip, sizeof(p->addr.ipv4));
}

void
fair_link_make(struct rte_mempool *pool)
{
	char name[16];

	make_port(&fair.host[MEASURED].conf.ports[0], "hub", 1, ROOM, pool);
	fair.host[MEASURED].conf.ports_n = 1;
	for (uint32_t i = 0; i < APPS; i++) {
		uint32_t port;
		struct host *h = fair_host_of(i, &port);

		snprintf(name, sizeof(name), "peer%u", i);
		make_port(
			&h->conf.ports[port], name, (uint8_t)(FIRST_ADDRESS + i), PEER_RING, pool);
		h->conf.ports_n++;
	}
}

/** A frame of a peer comes again, if it is one of the others. */
static void
come_again(const struct rte_mbuf *m, uint32_t peer)
{
	if (peer == 1 + VICTIM)
		return;
	for (uint32_t i = 0; i < fair.again; i++) {
		struct rte_mbuf *copy = rte_pktmbuf_copy(m, m->pool, 0, UINT32_MAX);

		if (copy == NULL)
			die("no mbufs");
		wire[peer].credit -= m->pkt_len;
		if (rte_ring_enqueue(wire[0].to, copy) != 0)
			die("the link is full");
	}
}

/** The turn of a peer with something to send: until its bytes or the room are used up. */
static void
send_of(uint32_t peer)
{
	struct rte_mbuf *m;

	while (wire[peer].credit > 0 && rte_ring_count(wire[0].to) < RX_RING) {
		if (rte_ring_dequeue(wire[peer].from, (void **)&m) != 0) {
			wire[peer].credit = 0; /* who has nothing saves nothing up */
			return;
		}
		wire[peer].credit -= m->pkt_len;
		come_again(m, peer);
		if (rte_ring_enqueue(wire[0].to, m) != 0)
			die("the link is full");
	}
}

void
fair_link_deliver(void)
{
	struct rte_mbuf *m;

	while (rte_ring_dequeue(wire[0].from, (void **)&m) == 0) {
		const uint8_t to = rte_pktmbuf_mtod(m, uint8_t *)[5];

		if (rte_ring_enqueue(wire[to - 1].to, m) != 0)
			rte_pktmbuf_free(m); /* the peer is flooded, by its own wish */
	}
}

void
fair_link_collect(void)
{
	static uint32_t turn;
	uint32_t idle = 0;

	while (idle < APPS && rte_ring_count(wire[0].to) < RX_RING) {
		struct rte_ring *from = wire[1 + turn].from;

		idle = rte_ring_count(from) == 0 ? idle + 1 : 0;
		if (wire[1 + turn].credit <= 0)
			wire[1 + turn].credit += QUANTUM;
		send_of(1 + turn);
		if (wire[1 + turn].credit > 0)
			return; /* no room: it goes on */
		turn = (turn + 1) % APPS;
	}
}
