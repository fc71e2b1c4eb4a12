/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OWN_REPORT_H
#define OWN_REPORT_H
/**
 * @file own_report.h  What a port with an IPv6 address says by itself, when it begins and after.
 *
 * Owner:   tests that look at every frame that leaves.
 * Memory:  none.
 * Depends: base.
 */
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "be.h"

/** An untagged MLD report of a group at which neighbours ask for addresses (RFC 4861, 7.2.1). */
static inline bool
is_own_report(const uint8_t *frame, uint32_t len)
{
	static const uint8_t solicited[13] = { 0xff, 0x02, [11] = 1, [12] = 0xff };
	const uint32_t ipv6_at = 14, mld_at = ipv6_at + 40 + 8; /* behind hop-by-hop options */

	if (len < mld_at + 24 || be16_load(frame + 12) != 0x86dd || frame[ipv6_at + 6] != 0)
		return false;
	if (frame[mld_at] == 131) /* MLDv1 */
		return memcmp(frame + mld_at + 8, solicited, sizeof(solicited)) == 0;
	return frame[mld_at] == 143 && len >= mld_at + 28 &&
	       memcmp(frame + mld_at + 12, solicited, sizeof(solicited)) == 0;
}

#endif
