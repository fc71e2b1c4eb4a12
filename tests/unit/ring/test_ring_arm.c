/* SPDX-License-Identifier: BSD-3-Clause */
/* Completion ring: what the consumer asks to be told of. */
#include "ring_cq_bed.h"

/* CQ-06: an event is due once something is there that was not polled; arm words are all new. */
static void
arm_words(void **state UNUSED)
{
	void *mem = cq_memory(8);
	struct ring_cq_shared *sh = mem;
	struct ring_cqe out[8];
	struct ring_cq q;
	uint64_t first;

	ring_cq_attach(&q, mem, 8, 8, true);
	assert_int_equal(atomic_load(&sh->arm), 0);
	assert_false(ring_cq_is_due(&q, 0, 0));
	assert_int_equal(push(&q, 1), 0);
	assert_false(ring_cq_is_due(&q, 0, 1)); /* not armed */

	assert_int_equal(ring_cq_poll(&q, out, 8), 1);
	ring_cq_arm(&q, RING_CQ_NEXT);
	first = atomic_load(&sh->arm);
	assert_false(ring_cq_is_due(&q, first, 1));
	assert_int_equal(push(&q, 2), 0);
	assert_true(ring_cq_is_due(&q, first, 1));
	ring_cq_arm(&q, RING_CQ_NEXT); /* nothing was polled since */
	assert_true(atomic_load(&sh->arm) != first);
	assert_true(ring_cq_is_due(&q, atomic_load(&sh->arm), 1));

	ring_cq_arm(&q, RING_CQ_SOLICITED);
	assert_false(ring_cq_is_due(&q, atomic_load(&sh->arm), 1));
	assert_true(ring_cq_is_due(&q, atomic_load(&sh->arm), 2));
	/* Nothing solicited for 2^31 completions: the index of the last one is ahead of all. */
	ring_cq_arm_at(&q, RING_CQ_SOLICITED, 0x80000010);
	atomic_store(&q.tail, 0x80000011);
	assert_false(ring_cq_is_due(&q, atomic_load(&sh->arm), 2));
	assert_true(ring_cq_is_due(&q, atomic_load(&sh->arm), 0x80000011));
	ring_cq_arm(&q, RING_CQ_QUIET);
	assert_false(ring_cq_is_due(&q, atomic_load(&sh->arm), 2));
	free(mem);
}

/* Armed behind those that are there, before they are polled: as libibverbs has it. */
static void
arm_behind(void **state UNUSED)
{
	void *mem = cq_memory(8);
	struct ring_cq_shared *sh = mem;
	struct ring_cqe out[8];
	struct ring_cqe *slot;
	struct ring_cq q;
	uint32_t index;

	ring_cq_attach(&q, mem, 8, 8, true);
	assert_int_equal(ring_cq_end(&q), 0);
	assert_int_equal(push(&q, 1), 0);
	assert_int_equal(push(&q, 2), 0);
	ring_cq_arm_at(&q, RING_CQ_NEXT, ring_cq_end(&q));
	assert_false(ring_cq_is_due(&q, atomic_load(&sh->arm), 0));
	assert_int_equal(ring_cq_poll(&q, out, 8), 2);
	assert_false(ring_cq_is_due(&q, atomic_load(&sh->arm), 0));
	/* One that a worker is about to add cannot be polled yet: no event, but it is a new one. */
	slot = ring_cq_reserve(&q, &index);
	assert_non_null(slot);
	assert_false(ring_cq_is_due(&q, atomic_load(&sh->arm), 0));
	ring_cq_arm_at(&q, RING_CQ_NEXT, ring_cq_end(&q));
	assert_false(ring_cq_is_due(&q, atomic_load(&sh->arm), 0));
	ring_cq_publish(&q, slot, index);
	assert_true(ring_cq_is_due(&q, atomic_load(&sh->arm), 0));
	/* Full, all the way round. */
	assert_int_equal(ring_cq_poll(&q, out, 8), 1);
	for (uint32_t i = 0; i < 8; i++)
		assert_int_equal(push(&q, i), 0);
	assert_int_equal(ring_cq_end(&q), 11);
	/* A place that was used before holds an older entry until the new one is there. */
	ring_cq_arm_at(&q, RING_CQ_NEXT, 11);
	assert_int_equal(ring_cq_poll(&q, out, 8), 8);
	slot = ring_cq_reserve(&q, &index);
	assert_non_null(slot);
	assert_false(ring_cq_is_due(&q, atomic_load(&sh->arm), 0));
	ring_cq_publish(&q, slot, index);
	assert_true(ring_cq_is_due(&q, atomic_load(&sh->arm), 0));
	/* Still due when those after it have come once round. */
	assert_int_equal(ring_cq_poll(&q, out, 8), 1);
	for (uint32_t i = 0; i < 8; i++)
		assert_int_equal(push(&q, i), 0);
	assert_true(ring_cq_is_due(&q, atomic_load(&sh->arm), 0));
	free(mem);
}

/* CQ-06: an event that is late answers an older word, and tells nothing of what a newer asks. */
static void
late_answers(void **state UNUSED)
{
	void *mem = cq_memory(8), *more = cq_memory(16);
	struct ring_cq_shared *sh = mem;
	struct ring_cqe out[8];
	struct ring_cq q, next;
	uint64_t first;

	ring_cq_attach(&q, mem, 8, 8, true);
	assert_int_equal(ring_cq_untold(&q, 0), 0);
	ring_cq_arm(&q, RING_CQ_NEXT);
	first = atomic_load(&sh->arm);
	assert_int_equal(push(&q, 1), 0);
	assert_int_equal(ring_cq_untold(&q, 0), 0);
	/* Found due; but its consumer polls what it is of, and asks anew, before it is answered. */
	assert_true(ring_cq_is_due(&q, first, 0));
	assert_int_equal(ring_cq_poll(&q, out, 8), 1);
	ring_cq_arm(&q, RING_CQ_NEXT);
	ring_cq_answer(&q, first);
	assert_int_equal(atomic_load(&sh->fired), 1);
	assert_int_equal(push(&q, 2), 0);
	assert_int_equal(ring_cq_untold(&q, 1), 1);
	ring_cq_answer(&q, atomic_load(&sh->arm));
	assert_int_equal(ring_cq_untold(&q, 1), 2);
	assert_int_equal(push(&q, 3), 0);
	assert_int_equal(ring_cq_untold(&q, 1), 2);
	assert_int_equal(ring_cq_poll(&q, out, 8), 2);
	assert_int_equal(ring_cq_untold(&q, 3), 3);
	/* Of the ring that follows, wherever that begins, nothing is told, nor of what is left. */
	for (uint32_t at = 0; at < 2; at++) {
		atomic_store(&q.tail, 0u - (2u << 20) - at);
		ring_cq_attach(&next, more, 16, 16, true);
		ring_cq_follow(&next, &q);
		assert_int_equal(push(&next, 4), 0);
		assert_int_equal(ring_cq_untold(&next, next.cons), next.cons);
		assert_int_equal(ring_cq_untold(&next, next.cons - 1), next.cons - 1);
	}
	free(more);
	free(mem);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(arm_words),
		cmocka_unit_test(arm_behind),
		cmocka_unit_test(late_answers),
	};

	return cmocka_run_group_tests_name("ring_arm", tests, NULL, NULL);
}
