/* SPDX-License-Identifier: BSD-3-Clause */
/* Doorbells: nothing that was published is missed, and the ring never runs full. */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include "../../clib/rounds.h"
#include "ring_bell.h"

static void *
zeroed(size_t bytes)
{
	const size_t lines = (bytes + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE;
	void *mem = aligned_alloc(CACHE_LINE, lines);

	assert_non_null(mem);
	memset(mem, 0, lines);
	return mem;
}

static void
sizes(void **state UNUSED)
{
	static const struct {
		uint32_t entries;
		size_t bytes;
	} rows[] = {
		{ 0, 0 },
		{ 1, 4 },
		{ 3, 0 },
		{ 4096, 16384 },
		{ RING_BELLS_MAX, (size_t)RING_BELLS_MAX * 4 },
		{ RING_BELLS_MAX << 1, 0 },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		assert_int_equal(ring_bells_size(rows[i].entries), rows[i].bytes);
}

static void
in_order_and_round(void **state UNUSED)
{
	uint32_t *mem = zeroed(ring_bells_size(4));
	struct ring_bells host, worker;

	ring_bells_attach(&host, mem, 4);
	ring_bells_attach(&worker, mem, 4);
	atomic_store(&host.next, UINT32_MAX - 5);
	atomic_store(&worker.next, UINT32_MAX - 5);
	assert_int_equal(ring_bells_take(&worker), 0);
	for (uint32_t i = 1; i <= 20; i += 2) {
		assert_int_equal(ring_bells_put(&host, i), 0);
		assert_int_equal(ring_bells_put(&host, i + 1), 0);
		assert_int_equal(ring_bells_peek(&worker, 0), i);
		assert_int_equal(ring_bells_peek(&worker, 1), i + 1);
		assert_int_equal(ring_bells_peek(&worker, 2), 0);
		assert_int_equal(ring_bells_take(&worker), i);
		assert_int_equal(ring_bells_take(&worker), i + 1);
		assert_int_equal(ring_bells_take(&worker), 0);
	}
	for (uint32_t i = 0; i < 4; i++)
		assert_int_equal(mem[i], 0);
	free(mem);
}

static _Atomic uint32_t yields;

/* Instead of libc's: one that is counted. */
int
sched_yield(void)
{
	yields++;
	return (int)syscall(SYS_sched_yield);
}

/*
 * Nobody takes: the producer is told, it does not wait for ever and overwrites nothing. On a busy
 * machine each yield may take milliseconds, so there are few of them.
 */
static void
full(void **state UNUSED)
{
	uint32_t *mem = zeroed(ring_bells_size(2));
	struct ring_bells host;

	ring_bells_attach(&host, mem, 2);
	assert_int_equal(ring_bells_put(&host, 7), 0);
	assert_int_equal(ring_bells_put(&host, 8), 0);
	yields = 0;
	assert_int_equal(ring_bells_put(&host, 9), -ENOSPC);
	assert_in_range(yields, 1, 200);
	assert_int_equal(mem[0], 7);
	assert_int_equal(mem[1], 8);
	free(mem);
}

/* Garbage everywhere: each slot gives one number, and then there is nothing. */
static void
garbage(void **state UNUSED)
{
	enum { SLOTS = 64 };
	uint32_t *mem = zeroed(ring_bells_size(SLOTS));
	struct ring_bells worker;
	uint32_t got = 0;

	ring_bells_attach(&worker, mem, SLOTS);
	atomic_store(&worker.next, 17);
	for (uint32_t i = 0; i < SLOTS; i++)
		mem[i] = 0x9e3779b9u * (i + 1);
	while (ring_bells_take(&worker) != 0)
		got++;
	assert_int_equal(got, SLOTS);
	free(mem);
}

#define QUEUES 8
#define SENT   ROUNDS(200000u)
#define HOSTS  2

struct queue {
	struct ring ring;
	void *mem;
};

struct host {
	struct ring_bells *bells;
	struct queue *q; /* QUEUES / HOSTS of them */
	uint32_t first;
	_Atomic int rc;
};

static void *
host_main(void *arg)
{
	struct host *h = arg;
	uint32_t sent[QUEUES / HOSTS] = { 0 }, total = 0;
	uint32_t x = h->first + 1;

	while (total < SENT * (QUEUES / HOSTS) && h->rc == 0) {
		uint32_t i = (x = x * 1664525 + 1013904223) >> 16 & (QUEUES / HOSTS - 1);
		uint64_t *slot;

		if (sent[i] == SENT || (slot = ring_produce_slot(&h->q[i].ring, 16)) == NULL) {
			sched_yield();
			continue;
		}
		*slot = sent[i]++;
		total++;
		ring_produce_commit(&h->q[i].ring);
		if (ring_bell_is_due(&h->q[i].ring))
			h->rc = ring_bells_put(h->bells, h->first + i + 1);
	}
	return NULL;
}

/*
 * Two threads of a client, one worker that looks at a queue only when its bell rang: every entry of
 * every queue arrives, in order, although the ring has no slot to spare.
 */
static void
nothing_is_missed(void **state UNUSED)
{
	void *mem = zeroed(ring_bells_size(QUEUES));
	struct ring_bells host_side, worker;
	struct queue host[QUEUES], far[QUEUES];
	uint32_t next[QUEUES] = { 0 }, total = 0, wrong = 0;
	struct host h[HOSTS];
	pthread_t thread[HOSTS];

	ring_bells_attach(&host_side, mem, QUEUES);
	ring_bells_attach(&worker, mem, QUEUES);
	for (uint32_t i = 0; i < QUEUES; i++) {
		host[i].mem = zeroed(ring_size(16, 16));
		ring_attach(&host[i].ring, host[i].mem, 16, 16, true);
		ring_attach(&far[i].ring, host[i].mem, 16, 16, false);
	}
	for (uint32_t i = 0; i < HOSTS; i++) {
		const uint32_t first = i * (QUEUES / HOSTS);

		h[i] = (struct host){ &host_side, &host[first], first, 0 };
		assert_int_equal(pthread_create(&thread[i], NULL, host_main, &h[i]), 0);
	}
	while (total < SENT * QUEUES && h[0].rc == 0 && h[1].rc == 0) {
		const uint32_t number = ring_bells_take(&worker);
		uint32_t n;

		if (number == 0 || number > QUEUES) {
			wrong += number != 0;
			sched_yield();
			continue;
		}
		ring_bell_heard(&far[number - 1].ring);
		n = ring_consume_count(&far[number - 1].ring);
		for (uint32_t i = 0; i < n; i++) {
			const uint64_t *e = ring_consume_peek(&far[number - 1].ring, i);

			wrong += *e != next[number - 1]++;
		}
		ring_consume_done(&far[number - 1].ring, n);
		total += n;
	}
	for (uint32_t i = 0; i < HOSTS; i++) {
		pthread_join(thread[i], NULL);
		assert_int_equal(h[i].rc, 0);
	}
	assert_int_equal(total, SENT * QUEUES);
	assert_int_equal(wrong, 0);
	for (uint32_t i = 0; i < QUEUES; i++)
		free(host[i].mem);
	free(mem);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sizes),
		cmocka_unit_test(in_order_and_round),
		cmocka_unit_test(full),
		cmocka_unit_test(garbage),
		cmocka_unit_test(nothing_is_missed),
	};

	return cmocka_run_group_tests_name("ring_bell", tests, NULL, NULL);
}
