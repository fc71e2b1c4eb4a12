/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CC_DELAY_H
#define CC_DELAY_H
/**
 * @file cc_delay.h  A window that follows the round trip: the reaction of cc.algo=delay.
 *
 * Owner:   the QP's worker, or whoever simulates one.
 * Memory:  that of struct cc.
 * Depends: cc.h.
 * Spec:    CC-29 .. CC-34; Kumar et al., "Swift: Delay is Simple and Effective for Congestion
 *          Control in the Datacenter", SIGCOMM 2020.
 *
 * A struct cc whose parameters are cc_delay_preset()'s has a window of packets, in parts of
 * 1 / CC_PACKET, beside its rate. One round trip at a time is measured; each brings the window up
 * by a step where it was shorter than the target, and down otherwise. The rate is what the window
 * makes of that round trip: with less than a packet in the window it is all that there is, and with
 * more it spreads the window over the round trip. CNPs are counted, and change nothing.
 */
#include "cc.h"

#define CC_PACKET    65536u /* a whole packet in a window */
#define CC_HOPS_MOST 15u    /* more are not believed */

/** A round trip has ended. */
struct cc_round {
	uint32_t rtt;   /* ns, not 0 */
	uint32_t hops;  /* switches on the way */
	uint32_t frame; /* bytes of a full frame */
};

/** Parameters of cc.algo=delay as they are without knobs; the line rate is not known. */
void cc_delay_preset(struct cc_params *out);
/** CC-30, CC-31. */
void cc_delay_round(struct cc *c, const struct cc_round *s, ns_t now);
/** CC-32: packets were lost. @param timeout nothing else told of it. */
void cc_delay_lost(struct cc *c, bool timeout, ns_t now);
/** Switches on the way of a frame that came with so much of its hop limit left. */
uint32_t cc_delay_hops(uint8_t left);

/** Packets that may be in flight: one at least. */
static inline uint32_t
cc_delay_window(const struct cc *c)
{
	return c->delay.window < CC_PACKET ? 1 : c->delay.window / CC_PACKET;
}

#endif
