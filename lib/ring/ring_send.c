/* SPDX-License-Identifier: BSD-3-Clause */
#include "ring_send.h"
#include "invariant.h"

uint32_t
ring_send_stride(uint32_t max_sge, uint32_t max_inline)
{
	uint32_t behind;

	if (max_sge > RING_MAX_SGE || max_inline > RING_MAX_INLINE)
		return 0;
	behind = max_sge * (uint32_t)sizeof(struct ring_sge);
	if (behind < max_inline)
		behind = (max_inline + 15) & ~15u;
	ASSERT(behind % 16 == 0 && behind >= max_inline);
	return (uint32_t)sizeof(struct ring_send_wqe) + behind;
}
