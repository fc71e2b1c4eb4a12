/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CONTROL_LINK_H
#define CONTROL_LINK_H
/**
 * @file link.h  A port's link: the driver's word, and the kernel's where it has an interface.
 *
 * Owner:   control lcore.
 * Memory:  one record for each port, in struct net.
 * Time:    a look every 100 ms.
 * Depends: DPDK.
 * Spec:    AE-07.
 *
 * An interface is looked for in the network namespace of the process.
 */
#include <jansson.h>
#include <net/if.h>
#include <stdbool.h>
#include <stdint.h>

#include "clock.h"

struct net;

struct link_view {
	bool up;
	uint32_t speed_mbps; /* 0: not known */
	/* of the kernel's interface under the driver, where there is one */
	bool has_interface;
	bool gone;   /* it was deleted */
	bool set_up; /* by an administrator */
	char interface[IF_NAMESIZE];
	uint32_t interface_mtu; /* 0: not known */
};

/** What is known of a port's link. */
struct link_watch {
	struct link_view seen;
	bool known; /* `seen` is the last look */
	bool device_lost;
	bool is_small; /* the interface's MTU is less than the port's, and the log has it */
	ns_t since;    /* of seen.up */
};

/** @return 0; -ENODEV: the device is gone; another -errno: nobody can tell now. A few us. */
int link_look(uint16_t port, struct link_view *out);
/** Look at all links: changes are events, and in the log (AE-07). */
void link_look_at_all(struct net *net);
/** The same when it is time. */
void link_poll(struct net *net);
/** Is the link known to be down, or the device gone? @param port index. */
bool link_is_down(const struct net *net, uint16_t port);
/** "UP", "DOWN", "UNKNOWN" */
const char *link_state_name(const struct link_watch *l);
/** Adds state, link_speed_mbps, interface, interface_mtu and warning to a port's object. */
void link_set_json(const struct net *net, uint16_t port, json_t *o);
/** The same as an object of its own, for explanations. */
json_t *link_json(const struct net *net, uint16_t port);
/**
 * What is wrong with the port's link, as a sentence.
 * @param datagram the longest IP datagram that matters, bytes: an interface that is smaller is
 * wrong. @return false: nothing is.
 */
bool link_text(const struct net *net, uint16_t port, uint32_t datagram, char *buf, size_t room);

#endif
