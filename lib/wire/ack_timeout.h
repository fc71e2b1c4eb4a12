/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef WIRE_ACK_TIMEOUT_H
#define WIRE_ACK_TIMEOUT_H
/**
 * @file ack_timeout.h  The Local ACK Timeout that a path and its peer need.
 *
 * Owner:   any lcore.
 * Memory:  none.
 * Depends: nothing.
 * Spec:    IBTA vol. 1, 9.7.6.1.3; TMR-01, TMR-11.
 */
#include <stdint.h>

/**
 * @param life_ns   packet life time of the path, one way.
 * @param delay_ns  Target ACK Delay of the peer.
 * @return the smallest n, from 1 (0 would mean no timer) to 31, with 4.096 us * 2^n no less than
 *         2 * life + delay.
 */
static inline uint8_t
wire_ack_timeout(uint64_t life_ns, uint64_t delay_ns)
{
	uint8_t n = 1;

	while (n < 31 && UINT64_C(4096) << n < 2 * life_ns + delay_ns)
		n++;
	return n;
}

#endif
