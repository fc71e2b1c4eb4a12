/* SPDX-License-Identifier: BSD-3-Clause */
/* Work ring: one producer, one consumer, and a far side that writes what it likes. */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../clib/rounds.h"
#include "ring.h"

#define STRIDE 16

static void *
ring_memory(uint32_t entries, uint32_t stride)
{
	size_t bytes = ring_size(entries, stride);
	void *mem = aligned_alloc(CACHE_LINE, bytes);

	assert_non_null(mem);
	memset(mem, 0xa5, bytes);
	return mem;
}

static void
sizes(void **state UNUSED)
{
	static const struct {
		uint32_t entries, stride;
		size_t bytes;
	} rows[] = {
		{ 1, 16, 192 },
		{ 4, 16, 192 },
		{ 8, 32, 384 },
		{ 65536, 272, 128 + 65536 * 272 },
		{ 0, 16, 0 },
		{ 3, 16, 0 },
		{ 131072, 16, 0 },
		{ 8, 0, 0 },
		{ 8, 24, 0 },
	};
	static const struct {
		uint32_t n, entries;
	} powers[] = { { 0, 1 }, { 1, 1 }, { 2, 2 }, { 3, 4 }, { 128, 128 }, { 129, 256 },
		{ 65536, 65536 }, { 65537, 0 }, { UINT32_MAX, 0 } };

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		assert_int_equal(ring_size(rows[i].entries, rows[i].stride), rows[i].bytes);
	for (size_t i = 0; i < ARRAY_LEN(powers); i++)
		assert_int_equal(ring_entries(powers[i].n), powers[i].entries);
	assert_int_equal(ring_recv_stride(0), 16);
	assert_int_equal(ring_recv_stride(1), 32);
	assert_int_equal(ring_recv_stride(16), 272);
	assert_int_equal(ring_recv_stride(17), 0);
}

/* The ABI between processes: offsets never move. */
static void
layout(void **state UNUSED)
{
	assert_int_equal(offsetof(struct ring_shared, prod), 0);
	assert_int_equal(offsetof(struct ring_shared, cons), 64);
	assert_int_equal(offsetof(struct ring_shared, slots), 128);
	assert_int_equal(offsetof(struct ring_recv_wqe, sge), 16);
	assert_int_equal(offsetof(struct ring_cqe, seq), 60);
	assert_int_equal(sizeof(struct ring_sge), 16);
	assert_int_equal(sizeof(struct ring_recv_copy), 272);
}

static bool
produce(struct ring *r, uint32_t limit, uint64_t value)
{
	uint64_t *slot = ring_produce_slot(r, limit);

	if (slot == NULL)
		return false;
	*slot = value;
	ring_produce_commit(r);
	return true;
}

static uint64_t
peek(const struct ring *r, uint32_t i)
{
	uint64_t value;

	memcpy(&value, ring_consume_peek(r, i), sizeof(value));
	return value;
}

static void
order_and_wrap(void **state UNUSED)
{
	void *mem = ring_memory(8, STRIDE);
	struct ring p, c;
	uint64_t in = 0, out = 0;

	ring_attach(&p, mem, 8, STRIDE, true);
	ring_attach(&c, mem, 8, STRIDE, false);
	assert_int_equal(ring_consume_count(&c), 0);
	for (unsigned int round = 0; round < 100; round++) {
		uint32_t want = round % 9;

		for (uint32_t i = 0; i < want; i++)
			assert_true(produce(&p, 8, in++));
		assert_int_equal(ring_consume_count(&c), want);
		for (uint32_t i = 0; i < want; i++)
			assert_int_equal(peek(&c, i), out++);
		ring_consume_done(&c, want);
	}
	free(mem);
}

/* Between two looks of the consumer the far side takes entries back that were seen. */
static void
producer_takes_back(void **state UNUSED)
{
	void *mem = ring_memory(8, STRIDE);
	struct ring_shared *sh = mem;
	struct ring p, c;

	ring_attach(&p, mem, 8, STRIDE, true);
	ring_attach(&c, mem, 8, STRIDE, false);
	for (uint32_t i = 0; i < 5; i++)
		assert_true(produce(&p, 8, i));
	assert_int_equal(ring_consume_count(&c), 5);
	for (uint32_t back = 0; back < 5; back++) {
		atomic_store(&sh->prod, back);
		assert_int_equal(ring_consume_count(&c), 5);
	}
	ring_consume_done(&c, 3);
	for (uint32_t back = 0; back < 5; back++) {
		atomic_store(&sh->prod, back);
		assert_int_equal(ring_consume_count(&c), 2);
	}
	ring_consume_done(&c, 2);
	for (uint32_t back = 0; back < 5; back++) {
		atomic_store(&sh->prod, back);
		assert_int_equal(ring_consume_count(&c), 0);
		assert_true(ring_is_corrupt(&c));
	}
	/* As far as it may go, and not beyond. */
	atomic_store(&sh->prod, 14);
	assert_int_equal(ring_consume_count(&c), 0);
	atomic_store(&sh->prod, 13);
	assert_int_equal(ring_consume_count(&c), 8);
	atomic_store(&sh->prod, 12);
	assert_int_equal(ring_consume_count(&c), 8);
	free(mem);
}

static void
full_and_limit(void **state UNUSED)
{
	void *mem = ring_memory(8, STRIDE);
	struct ring p, c;

	ring_attach(&p, mem, 8, STRIDE, true);
	ring_attach(&c, mem, 8, STRIDE, false);
	assert_null(ring_produce_slot(&p, 0));
	for (uint64_t i = 0; i < 5; i++)
		assert_true(produce(&p, 5, i));
	assert_false(produce(&p, 5, 99)); /* max_recv_wr 5 of 8 */
	for (uint64_t i = 5; i < 8; i++)
		assert_true(produce(&p, 100, i)); /* a limit above the ring is the ring's */
	assert_false(produce(&p, 100, 99));

	assert_int_equal(ring_consume_count(&c), 8);
	for (uint32_t i = 0; i < 8; i++)
		assert_int_equal(peek(&c, i), i);
	ring_consume_done(&c, 1);
	assert_true(produce(&p, 8, 8));
	assert_false(produce(&p, 8, 99));
	assert_int_equal(ring_consume_count(&c), 8);
	assert_int_equal(peek(&c, 0), 1);
	assert_int_equal(peek(&c, 7), 8);
	free(mem);
}

static void
index_wraps_2_to_32(void **state UNUSED)
{
	void *mem = ring_memory(4, STRIDE);
	struct ring_shared *sh = mem;
	struct ring p, c;

	atomic_store(&sh->prod, UINT32_MAX - 5);
	atomic_store(&sh->cons, UINT32_MAX - 5);
	ring_attach(&p, mem, 4, STRIDE, false);
	ring_attach(&c, mem, 4, STRIDE, false);
	for (uint64_t i = 0; i < 40; i++) {
		assert_true(produce(&p, 4, 2 * i));
		assert_true(produce(&p, 4, 2 * i + 1));
		assert_int_equal(ring_consume_count(&c), 2);
		assert_int_equal(peek(&c, 0), 2 * i);
		assert_int_equal(peek(&c, 1), 2 * i + 1);
		ring_consume_done(&c, 2);
	}
	free(mem);
}

/* A producer's index that cannot be: the consumer stays with what it has seen. */
static void
hostile_producer(void **state UNUSED)
{
	static const uint32_t bogus[] = { 9, 10, 255, 0x7fffffff, 0x80000000, UINT32_MAX - 1 };
	void *mem = ring_memory(8, STRIDE);
	struct ring_shared *sh = mem;
	struct ring p, c;

	ring_attach(&p, mem, 8, STRIDE, true);
	ring_attach(&c, mem, 8, STRIDE, false);
	for (size_t i = 0; i < ARRAY_LEN(bogus); i++) {
		atomic_store(&sh->prod, bogus[i]);
		assert_int_equal(ring_consume_count(&c), 0);
	}
	atomic_store(&sh->prod, 0);
	assert_true(produce(&p, 8, 7));
	assert_int_equal(ring_consume_count(&c), 1);
	for (size_t i = 0; i < ARRAY_LEN(bogus); i++) {
		atomic_store(&sh->prod, bogus[i]);
		assert_int_equal(ring_consume_count(&c), 1);
		assert_int_equal(peek(&c, 0), 7);
	}
	free(mem);
}

static void
hostile_consumer(void **state UNUSED)
{
	static const uint32_t bogus[] = { 9, 255, 0x7fffffff, 0x80000000, UINT32_MAX };
	void *mem = ring_memory(8, STRIDE);
	struct ring_shared *sh = mem;
	struct ring p;

	ring_attach(&p, mem, 8, STRIDE, true);
	for (uint64_t i = 0; i < 8; i++)
		assert_true(produce(&p, 8, i));
	for (size_t i = 0; i < ARRAY_LEN(bogus); i++) {
		atomic_store(&sh->cons, bogus[i]);
		assert_false(produce(&p, 8, 99));
	}
	atomic_store(&sh->cons, 8);
	assert_true(produce(&p, 8, 8));
	free(mem);
}

/* Whatever the shared words say, at attach or later, no slot outside the ring is touched. */
static void
hostile_random(void **state UNUSED)
{
	enum { ENTRIES = 16 };
	uint8_t *mem = ring_memory(ENTRIES, STRIDE);
	const uint8_t *end = mem + ring_size(ENTRIES, STRIDE);
	struct ring_shared *sh = (void *)mem;
	uint32_t x = 12345;
	struct ring p, c;

	ring_attach(&p, mem, ENTRIES, STRIDE, true);
	ring_attach(&c, mem, ENTRIES, STRIDE, false);
	for (unsigned int i = 0; i < 200000; i++) {
		const uint8_t *at;
		uint32_t n;

		x = x * 1664525 + 1013904223;
		if (x >> 30 == 0)
			atomic_store(&sh->prod, x >> 3);
		else if (x >> 30 == 1)
			atomic_store(&sh->cons, x >> 3);
		else if (x >> 20 == 0xfff)
			ring_attach(&c, mem, ENTRIES, STRIDE, false);
		at = ring_produce_slot(&p, x & 31);
		if (at != NULL) {
			assert_true(at >= mem + 128 && at + STRIDE <= end);
			ring_produce_commit(&p);
		}
		n = ring_consume_count(&c);
		assert_true(n <= ENTRIES);
		for (uint32_t k = 0; k < n; k++) {
			at = ring_consume_peek(&c, k);
			assert_true(at >= mem + 128 && at + STRIDE <= end);
		}
		ring_consume_done(&c, x % (n + 1));
	}
	free(mem);
}

#define ITEMS ROUNDS(1000000)

static void *
producer(void *mem)
{
	struct ring p;

	ring_attach(&p, mem, 256, 32, false);
	for (uint64_t i = 0; i < ITEMS;) {
		uint64_t *slot = ring_produce_slot(&p, 256);

		if (slot == NULL) {
			sched_yield();
			continue;
		}
		for (unsigned int k = 0; k < 4; k++)
			slot[k] = i * 4 + k;
		ring_produce_commit(&p);
		i++;
	}
	return NULL;
}

static void
two_threads(void **state UNUSED)
{
	void *mem = ring_memory(256, 32);
	uint64_t got = 0, wrong = 0;
	pthread_t thread;
	struct ring c;

	ring_attach(&c, mem, 256, 32, true);
	assert_int_equal(pthread_create(&thread, NULL, producer, mem), 0);
	while (got < ITEMS) {
		uint32_t n = ring_consume_count(&c);

		for (uint32_t i = 0; i < n; i++, got++) {
			const uint64_t *slot = ring_consume_peek(&c, i);

			for (unsigned int k = 0; k < 4; k++)
				wrong += slot[k] != got * 4 + k;
		}
		ring_consume_done(&c, n);
		if (n == 0)
			sched_yield();
	}
	pthread_join(thread, NULL);
	assert_int_equal(wrong, 0);
	assert_int_equal(got, ITEMS);
	assert_int_equal(ring_consume_count(&c), 0);
	free(mem);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sizes),
		cmocka_unit_test(layout),
		cmocka_unit_test(order_and_wrap),
		cmocka_unit_test(producer_takes_back),
		cmocka_unit_test(full_and_limit),
		cmocka_unit_test(index_wraps_2_to_32),
		cmocka_unit_test(hostile_producer),
		cmocka_unit_test(hostile_consumer),
		cmocka_unit_test(hostile_random),
		cmocka_unit_test(two_threads),
	};

	return cmocka_run_group_tests_name("ring", tests, NULL, NULL);
}
