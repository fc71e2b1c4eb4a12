/* SPDX-License-Identifier: BSD-3-Clause */
/* A completion ring's memory, and entries for it. */
#ifndef ROCELANE_TEST_RING_CQ_BED_H
#define ROCELANE_TEST_RING_CQ_BED_H

#include <stdarg.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "ring.h"

static inline void *
cq_memory(uint32_t entries)
{
	size_t bytes = ring_size(entries, sizeof(struct ring_cqe));
	void *mem = aligned_alloc(CACHE_LINE, bytes);

	assert_non_null(mem);
	memset(mem, 0x5a, bytes);
	return mem;
}

static inline int
push(struct ring_cq *q, uint64_t wr_id)
{
	struct ring_cqe cqe = { .wr_id = wr_id, .qp_num = 17, .byte_len = (uint32_t)wr_id + 1 };

	return ring_cq_push(q, &cqe);
}

#endif
