/* SPDX-License-Identifier: BSD-3-Clause */
/* Completions that are taken out of a ring with their QP. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>

#include "ring.h"

/* Of the QP with this number. */
static void
push(struct ring_cq *q, uint32_t number, int want)
{
	const struct ring_cqe e = { .wr_id = number, .qp_num = number };

	assert_int_equal(ring_cq_push(q, &e), want);
}

/* A QP that was reset: its completions are gone, others' are in order, and the ring goes on. */
static void
forget(void **state UNUSED)
{
	static const uint32_t of[][8] = { { 7, 1, 7, 2, 3, 7, 4, 7 }, { 1, 2, 3, 4, 0 },
		{ 7, 7, 7, 7, 1, 2, 3, 4 }, { 1, 2, 3, 4, 7, 7, 7, 7 }, { 7, 7, 0 }, { 0 } };

	for (size_t i = 0; i < ARRAY_LEN(of); i++) {
		void *mem = aligned_alloc(64, ring_size(8, sizeof(struct ring_cqe)));
		struct ring_cqe out[8];
		struct ring_cq q;

		ring_cq_attach(&q, mem, 8, 8, true);
		for (uint32_t turn = 0; turn < 20; turn++) {
			uint32_t want = 0, n = 0;

			push(&q, 99, 0); /* so that it begins anywhere */
			assert_int_equal(ring_cq_poll(&q, out, 8), 1);
			for (; n < 8 && of[i][n] != 0; n++) {
				push(&q, of[i][n], 0);
				want += of[i][n] != 7;
			}
			ring_cq_forget(&q, 7);
			assert_int_equal(ring_cq_end(&q) - q.cons, want);
			/* Their places are free. */
			for (uint32_t k = want; k < 8; k++)
				push(&q, 5 + k, 0);
			push(&q, 0, -ENOSPC);
			assert_int_equal(ring_cq_poll(&q, out, 8), 8);
			for (uint32_t k = 0; k < 8; k++)
				assert_int_equal(out[k].wr_id, k < want ? k + 1 : 5 + k);
		}
		free(mem);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(forget),
	};

	return cmocka_run_group_tests_name("ring_forget", tests, NULL, NULL);
}
