/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TEST_IPV4_H
#define TEST_IPV4_H
/**
 * @file ipv4.h  The checksum of an IPv4 header, as RFC 791 has it.
 *
 * Owner:   tests only.
 * Memory:  the caller's.
 * Depends: nothing.
 */
#include <stdint.h>

/** Put the right checksum into the header at `ip`, of whatever length it says that it has. */
static inline void
ipv4_fix_sum(uint8_t *ip)
{
	const unsigned int len = (ip[0] & 15u) * 4;
	uint32_t sum = 0;

	ip[10] = 0;
	ip[11] = 0;
	for (unsigned int i = 0; i < len; i += 2)
		sum += (uint32_t)ip[i] << 8 | ip[i + 1];
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	ip[10] = (uint8_t)(~sum >> 8);
	ip[11] = (uint8_t)~sum;
}

#endif
