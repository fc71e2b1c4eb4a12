/* SPDX-License-Identifier: BSD-3-Clause */
/* DPDK ports: found by name, sized by the config's mtu. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include "af_packet.h"
#include "dataplane.h"
#include "log.h"

#define RX_DESCRIPTORS 1024
#define TX_DESCRIPTORS 1024
/*
 * mbufs of a port: a receive ring full, for each worker a transmit ring full and as many that wait
 * or are at work, and room for caches.
 */
#define POOL_MBUFS    2047
#define POOL_WORKER   2048
#define POOL_MAX      8191u
#define QUEUE_MBUFS   4096 /* for each receive queue but the first */
#define POOL_CACHE    256
#define PRIO_MBUFS    4096 /* that wait at paused priorities, for each worker (tx_prio.h) */
#define MIN_DATA_ROOM 2048

/* Does EAL's argument make this device? net_af_packet10 is not net_af_packet1. */
static bool
makes(const char *arg, const char *device)
{
	const size_t len = strlen(device);

	for (const char *at = strstr(arg, device); at != NULL; at = strstr(at + 1, device))
		if (at[len] == ',' || at[len] == '\0')
			return true;
	return false;
}

/* A slot of the device's ring, or 0: af_packet wants mbufs that hold a whole one. */
static uint32_t
vdev_frame_size(const struct dataplane *dp, const char *device)
{
	for (uint32_t i = 0; i < dp->eal_n; i++) {
		uint32_t size = 0;

		if (makes(dp->eal[i], device))
			size = af_packet_framesz(dp->eal[i]);
		if (size != 0)
			return size;
	}
	return 0;
}

static int
pool_create(const struct dataplane *dp, struct dataplane_port *p, const struct conf_port *cp)
{
	const struct conf *conf = dp->conf;
	uint32_t slot = vdev_frame_size(dp, cp->device);
	uint32_t mbufs = RTE_MIN(POOL_MBUFS + POOL_WORKER * conf->lcores.n_workers, POOL_MAX);
	uint32_t room;
	char name[32];

	/* The mtu is the IP datagram; two tags and the FCS may come on top of the header. */
	p->max_frame = (uint32_t)cp->mtu + RTE_ETHER_HDR_LEN + 4;
	room = RTE_MAX(p->max_frame + 8, slot);
	room = RTE_MAX(room, (uint32_t)MIN_DATA_ROOM);
	room = RTE_ALIGN_CEIL(room + RTE_PKTMBUF_HEADROOM, 64u);
	if (room > UINT16_MAX) { /* the mtu ends far below it */
		log_error(
			"port %s: af_packet's frames of %u bytes do not fit an mbuf: lower framesz, and blocksz if it is no multiple of framesz",
			cp->name, slot);
		return -EINVAL;
	}
	snprintf(name, sizeof(name), "port%u", p->id);
	mbufs += (cp->rx_queues - 1u) * QUEUE_MBUFS;
	if (p->has_prio)
		mbufs += PRIO_MBUFS * conf->lcores.n_workers;
	p->pool = rte_pktmbuf_pool_create(
		name, mbufs, POOL_CACHE, 0, (uint16_t)room, rte_eth_dev_socket_id(p->id));
	if (p->pool == NULL) {
		log_error("port %s: no memory for %u packet buffers of %u bytes: raise EAL's -m",
			cp->name, mbufs, room);
		return -ENOMEM;
	}
	return 0;
}

/* Drivers differ in what they refuse; what is refused and not needed is a warning. */
static void
port_set_mtu(const struct dataplane_port *p, const struct conf_port *cp)
{
	uint16_t now;
	int rc;

	if (p->paired) /* frames of any length pass, and the driver has no MTU to set */
		return;
	if (rte_eth_dev_get_mtu(p->id, &now) == 0 && now == cp->mtu)
		return;
	rc = rte_eth_dev_set_mtu(p->id, cp->mtu);
	if (rc != 0)
		log_warn(
			"port %s: the driver refuses an mtu of %u (%s); frames of that size may still pass",
			cp->name, cp->mtu, strerror(-rc));
}

/* What is no host's address nobody answers to: as that of a wire in memory, which has none. */
static void
make_up_mac(const struct dataplane_port *p, struct rte_ether_addr *mac)
{
	if (rte_is_valid_assigned_ether_addr(mac))
		return;
	if (p->paired) /* the same at each start */
		*mac = (struct rte_ether_addr){ { 0x02, 'r', 'l', 'a', 'n',
			(uint8_t)(p->index + 1) } };
	else
		rte_eth_random_addr(mac->addr_bytes);
}

static void
port_set_mac(struct dataplane_port *p, const struct conf_port *cp)
{
	struct rte_eth_dev_info info;
	struct rte_ether_addr mac = { { 0 } };
	int rc;

	if ((cp->given & CONF_PORT_MAC) == 0) {
		rte_eth_macaddr_get(p->id, &mac);
		make_up_mac(p, &mac);
		memcpy(p->addr.mac, mac.addr_bytes, sizeof(p->addr.mac));
		return;
	}
	memcpy(p->addr.mac, cp->mac, sizeof(p->addr.mac));
	memcpy(mac.addr_bytes, cp->mac, sizeof(mac.addr_bytes));
	/* net_tap would give the kernel's side of the tap the same address: two hosts, one MAC. */
	if (rte_eth_dev_info_get(p->id, &info) == 0 && strcmp(info.driver_name, "net_tap") == 0)
		return;
	rc = rte_eth_dev_default_mac_addr_set(p->id, &mac);
	if (rc != 0)
		log_debug(
			"port %s: the driver keeps its own MAC address (%s): promiscuous mode serves",
			cp->name, strerror(-rc));
}

/*
 * RSS by addresses and UDP ports: a peer's QPs have source ports of their own, each QP always the
 * same one, so that the order within a QP is kept.
 */
static int
port_spread(const struct dataplane_port *p, const struct conf_port *cp,
	const struct rte_eth_dev_info *info, struct rte_eth_conf *eth)
{
	const uint64_t udp = RTE_ETH_RSS_NONFRAG_IPV4_UDP | RTE_ETH_RSS_NONFRAG_IPV6_UDP;
	const uint64_t can = info->flow_type_rss_offloads;

	if (cp->rx_queues > info->max_rx_queues) {
		log_error("port %s: %u rx_queues, but driver %s has %u: lower rx_queues", cp->name,
			cp->rx_queues, info->driver_name, info->max_rx_queues);
		return -EINVAL;
	}
	if (p->paired || cp->rx_queues == 1)
		return 0;
	if ((can & (udp | RTE_ETH_RSS_IP)) == 0) {
		log_warn("port %s: driver %s knows no RSS: how frames are spread is its own matter",
			cp->name, info->driver_name);
		return 0;
	}
	if ((can & udp) == 0)
		log_warn("port %s: driver %s spreads by addresses only: a peer's QPs share a queue",
			cp->name, info->driver_name);
	eth->rxmode.mq_mode = RTE_ETH_MQ_RX_RSS;
	eth->rx_adv_conf.rss_conf.rss_hf = can & (udp | RTE_ETH_RSS_IP);
	return 0;
}

static int
port_queues(struct dataplane_port *p, const struct conf *conf, const struct conf_port *cp)
{
	struct rte_eth_conf eth = { 0 };
	struct rte_eth_dev_info info;
	uint16_t rxd = RX_DESCRIPTORS, txd = TX_DESCRIPTORS;
	int rc = rte_eth_dev_info_get(p->id, &info);

	if (rc == 0)
		rc = port_spread(p, cp, &info, &eth);
	if (rc != 0)
		return rc;
	p->rx_queues = cp->rx_queues;
	p->tx_queues = (uint16_t)RTE_MIN((uint32_t)info.max_tx_queues, conf->lcores.n_workers);
	/* net_tap wants as many receive as transmit queues. */
	if (strcmp(info.driver_name, "net_tap") == 0)
		p->tx_queues = p->rx_queues;
	rc = rte_eth_dev_configure(p->id, p->rx_queues, p->tx_queues, &eth);
	if (rc != 0)
		return rc;
	port_set_mtu(p, cp);
	rc = rte_eth_dev_adjust_nb_rx_tx_desc(p->id, &rxd, &txd);
	if (rc != 0)
		return rc;
	for (uint16_t q = 0; rc == 0 && q < p->rx_queues; q++)
		rc = rte_eth_rx_queue_setup(
			p->id, q, rxd, rte_eth_dev_socket_id(p->id), NULL, p->pool);
	for (uint16_t q = 0; rc == 0 && q < p->tx_queues; q++)
		rc = rte_eth_tx_queue_setup(p->id, q, txd, rte_eth_dev_socket_id(p->id), NULL);
	return rc;
}

static void
no_device(const struct dataplane *dp, const struct conf_port *cp)
{
	for (uint32_t i = 0; i < dp->eal_n; i++) {
		if (!makes(dp->eal[i], cp->device))
			continue;
		log_error(
			"port %s: \"%s\" made no device: the lines above say why (is the interface there, and are the rights?)",
			cp->name, dp->eal[i]);
		return;
	}
	log_error(
		"port %s: there is no device '%s': create it with a --vdev or --allow argument in \"eal\"",
		cp->name, cp->device);
}

static int
port_open(struct dataplane *dp, uint32_t i)
{
	const struct conf_port *cp = &dp->conf->ports[i];
	struct dataplane_port *p = &dp->ports[i];
	int rc = p->paired ? 0 : rte_eth_dev_get_port_by_name(cp->device, &p->id);

	if (rc != 0)
		rc = pair_open(dp, i);
	if (rc != 0) {
		no_device(dp, cp);
		return -ENODEV;
	}
	p->clock = dp->clock;
	p->index = i;
	/* Single queues go round; where there are more, queue n is worker n's on every port. */
	p->rx_worker = cp->rx_queues == 1 ? (uint16_t)(i % dp->conf->lcores.n_workers) : 0;
	rc = priorities_open(dp, i);
	if (rc == 0)
		rc = pool_create(dp, p, cp);
	if (rc != 0)
		return rc;
	rc = port_queues(p, dp->conf, cp);
	if (rc == 0)
		rc = impairs_open(p, cp);
	if (rc == 0)
		rc = rte_eth_dev_start(p->id);
	if (rc != 0) {
		log_error(
			"port %s (%s): cannot be started: %s", cp->name, cp->device, strerror(-rc));
		return rc;
	}
	p->started = true;
	port_set_mac(p, cp);
	/* Frames for other addresses are wanted too: they are dropped with a reason (RX-SYN-00). */
	rte_eth_promiscuous_enable(p->id);
	rte_eth_allmulticast_enable(p->id);
	p->addr.has_ipv4 = (cp->given & CONF_PORT_IPV4) != 0;
	p->addr.has_ipv6 = (cp->given & CONF_PORT_IPV6) != 0;
	p->addr.require_df = dp->conf->knobs.rx_ip_df == KNOB_rx_ip_df_require;
	memcpy(p->addr.ipv4, cp->ipv4, sizeof(p->addr.ipv4));
	memcpy(p->addr.ipv6, cp->ipv6, sizeof(p->addr.ipv6));
	return 0;
}

int
ports_open(struct dataplane *dp)
{
	for (uint32_t i = 0; i < dp->conf->n_ports; i++) {
		int rc = port_open(dp, i);

		if (rc != 0)
			return rc;
	}
	return 0;
}

/* A device that takes everything needs no list: it was asked to, and most do. */
int
ports_groups(void *ctx, uint32_t port, uint8_t (*macs)[6], uint32_t n)
{
	struct dataplane *dp = ctx;
	const uint16_t id = dp->ports[port].id;
	struct rte_ether_addr *list;
	int rc;

	if (rte_eth_promiscuous_get(id) == 1 || rte_eth_allmulticast_get(id) == 1)
		return 0;
	list = calloc((size_t)n + 1, sizeof(*list));
	if (list == NULL)
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++)
		memcpy(list[i].addr_bytes, macs[i], sizeof(list[i].addr_bytes));
	rc = rte_eth_dev_set_mc_addr_list(id, n != 0 ? list : NULL, n);
	free(list);
	return rc;
}

void
ports_close(struct dataplane *dp)
{
	for (uint32_t i = 0; i < dp->conf->n_ports; i++) {
		struct dataplane_port *p = &dp->ports[i];

		impairs_close(p);
		if (p->started) {
			rte_eth_dev_stop(p->id);
			rte_eth_dev_close(p->id);
			p->started = false;
		}
		/* Its pool ends with the process: EAL would write zeros to each of its pages. */
	}
}
