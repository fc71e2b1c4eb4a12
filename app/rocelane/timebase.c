/* SPDX-License-Identifier: BSD-3-Clause */
#include "timebase.h"

#include <rte_cycles.h>

#define FRACTION_BITS 32

static uint64_t base_cycles;
static uint64_t ns_per_cycle; /* fixed point, FRACTION_BITS behind the point */

void
timebase_init(void)
{
	ns_per_cycle = (uint64_t)(((__uint128_t)TIME_NS_PER_S << FRACTION_BITS) / rte_get_tsc_hz());
	base_cycles = rte_get_tsc_cycles();
}

ns_t
timebase_now(void)
{
	uint64_t cycles = rte_get_tsc_cycles() - base_cycles;

	return (ns_t)(((__uint128_t)cycles * ns_per_cycle) >> FRACTION_BITS);
}
