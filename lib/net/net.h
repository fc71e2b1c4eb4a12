/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef NET_H
#define NET_H
/**
 * @file net.h  What the control lcore does on the network: frames, neighbours, routes, links.
 *
 * Owner:   control lcore.
 * Memory:  part of struct control; tables allocate their entries.
 * Time:    env->now.
 * Depends: env, route, conf; DPDK (mbufs, links).
 */
#include "env.h"
#include "frames.h"
#include "link.h"
#include "log_rate.h"
#include "members.h"
#include "neigh.h"
#include "routes.h"

/** Upwards: what others have to hear. Set once, by the owner of the loop. */
struct net_up {
	/**
	 * The MAC of the neighbour that this path leads to is another one, or not known any more.
	 * @return 0, -EAGAIN: cannot be told now; it is asked again in the next turn.
	 */
	int (*new_mac)(void *ctx, struct neigh_link *link);
	/** The port's device is gone. @param port index. */
	void (*device)(void *ctx, uint32_t port);
	/** A RoCEv2 datagram of the control lcore's. @param port index. */
	void (*datagram)(void *ctx, uint16_t port, const uint8_t *frame, uint32_t len);
	/** The port's link has come up, or gone down. */
	void (*link)(void *ctx, uint32_t port, bool up);
	void *ctx;
};

struct net {
	struct env *env;
	struct net_up up;
	ns_t link_next; /* when to look at the ports' links again */
	struct link_watch links[ENV_MAX_PORTS];
	struct frame_stats frames;
	struct {
		struct log_rate mac, silent, full, twice;
	} told; /* lines that peers and applications can cause */
	struct neigh_table neighs;
	struct member_table members;
	struct route_table routes[ENV_MAX_PORTS];
	uint8_t frame_rx[FRAME_MAX];
	uint8_t frame_tx[FRAME_MAX]; /* where a frame is built */
};

/**
 * Routes and fixed neighbours of the configuration.
 * @param net all zero.
 * @return 0 or -ENOMEM; net_fini() is right after both.
 */
int net_init(struct net *net, struct env *env, const struct net_up *up);
/** Also of one that net_init() has not seen. */
void net_fini(struct net *net);
/** One turn: requests for neighbours that are due, paths whose neighbour changed, links. */
uint32_t net_poll(struct net *net);

#endif
