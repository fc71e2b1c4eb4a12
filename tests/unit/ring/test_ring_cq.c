/* SPDX-License-Identifier: BSD-3-Clause */
/* Completion ring: many producers, one consumer. */
#include <errno.h>
#include <pthread.h>
#include <sched.h>

#include "../../clib/rounds.h"
#include "ring_cq_bed.h"

static void
every_field_arrives(void **state UNUSED)
{
	void *mem = cq_memory(4);
	struct ring_cqe in = { 0x1122334455667788, 17, 2058, 0xcafe, 42, 18, 0xabcdef, 99, 7, 12,
		128, WC_WITH_IMM, 1, 0x0a, 6, { 0 }, 0 };
	struct ring_cqe out;
	struct ring_cq q;

	ring_cq_attach(&q, mem, 4, 4, true);
	assert_int_equal(ring_cq_poll(&q, &out, 1), 0); /* what was in the memory is no entry */
	assert_int_equal(ring_cq_push(&q, &in), 0);
	assert_int_equal(ring_cq_poll(&q, &out, 1), 1);
	assert_memory_equal(&in, &out, offsetof(struct ring_cqe, seq));
	assert_int_equal(ring_cq_poll(&q, &out, 1), 0); /* once only */
	free(mem);
}

/* CQ-05: n + 1 completions unpolled: the last is refused and no unread one is overwritten. */
static void
CQ_05_overflow(void **state UNUSED)
{
	static const struct {
		uint32_t entries, cqe;
	} rows[] = { { 8, 8 }, { 8, 5 }, { 1, 1 }, { 16, 9 } };
	struct ring_cqe out[16];

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		void *mem = cq_memory(rows[i].entries);
		struct ring_cq q;

		ring_cq_attach(&q, mem, rows[i].entries, rows[i].cqe, true);
		for (uint32_t turn = 0; turn < 20; turn++) {
			for (uint32_t k = 0; k < rows[i].cqe; k++)
				assert_int_equal(push(&q, 100 * turn + k), 0);
			assert_int_equal(push(&q, 9999), -ENOSPC);
			assert_int_equal(push(&q, 9999), -ENOSPC);
			assert_int_equal(ring_cq_poll(&q, out, 16), rows[i].cqe);
			for (uint32_t k = 0; k < rows[i].cqe; k++)
				assert_int_equal(out[k].wr_id, 100 * turn + k);
			assert_int_equal(ring_cq_poll(&q, out, 16), 0);
		}
		free(mem);
	}
}

static void
poll_in_parts(void **state UNUSED)
{
	void *mem = cq_memory(8);
	struct ring_cqe out[8];
	struct ring_cq q;

	ring_cq_attach(&q, mem, 8, 8, true);
	for (uint64_t i = 0; i < 6; i++)
		assert_int_equal(push(&q, i), 0);
	assert_int_equal(ring_cq_poll(&q, out, 0), 0);
	assert_int_equal(ring_cq_poll(&q, out, 4), 4);
	assert_int_equal(out[3].wr_id, 3);
	assert_int_equal(ring_cq_poll(&q, out, 4), 2);
	assert_int_equal(out[0].wr_id, 4);
	assert_int_equal(out[1].wr_id, 5);
	free(mem);
}

/* A producer that has its slot but has not written it yet holds those behind it back. */
static void
order_of_reservation(void **state UNUSED)
{
	void *mem = cq_memory(8);
	struct ring_cq_shared *sh = mem;
	struct ring_cqe *slots = (void *)sh->slots;
	struct ring_cqe out[8];
	struct ring_cq q;

	ring_cq_attach(&q, mem, 8, 8, true);
	atomic_fetch_add(&q.tail, 1); /* the slow one reserves */
	assert_int_equal(push(&q, 2), 0);
	assert_int_equal(ring_cq_poll(&q, out, 8), 0);
	slots[0].wr_id = 1;
	atomic_store(&slots[0].seq, 1); /* turn 0 + 1 */
	assert_int_equal(ring_cq_poll(&q, out, 8), 2);
	assert_int_equal(out[0].wr_id, 1);
	assert_int_equal(out[1].wr_id, 2);
	free(mem);
}

static void
index_wraps_2_to_32(void **state UNUSED)
{
	static const uint32_t sizes[] = { 1, 2, 8, 64 };

	for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
		void *mem = cq_memory(sizes[i]);
		struct ring_cq_shared *sh = mem;
		struct ring_cqe out[2];
		struct ring_cq q;

		ring_cq_attach(&q, mem, sizes[i], sizes[i], true);
		atomic_store(&sh->cons, UINT32_MAX - 70);
		ring_cq_attach(&q, mem, sizes[i], sizes[i], false);
		atomic_store(&q.tail, UINT32_MAX - 70);
		for (uint64_t k = 0; k < 200; k++) {
			assert_int_equal(push(&q, k), 0);
			assert_int_equal(ring_cq_poll(&q, out, 2), 1);
			assert_int_equal(out[0].wr_id, k);
		}
		free(mem);
	}
}

/* The host made an index up: pushes fail or land inside the ring, and always return. */
static void
hostile_indices(void **state UNUSED)
{
	enum { ENTRIES = 8 };
	size_t bytes = ring_size(ENTRIES, sizeof(struct ring_cqe));
	uint8_t *mem = aligned_alloc(CACHE_LINE, bytes + CACHE_LINE);
	struct ring_cq_shared *sh = (void *)mem;
	struct ring_cqe out[16];
	struct ring_cq q;
	uint32_t x = 99;

	assert_non_null(mem);
	memset(mem + bytes, 0x77, CACHE_LINE);
	ring_cq_attach(&q, mem, ENTRIES, ENTRIES, true);
	atomic_store(&sh->cons, 1); /* ahead of the producers */
	assert_int_equal(push(&q, 1), -ENOSPC);
	atomic_store(&sh->cons, 0x80000000);
	assert_int_equal(push(&q, 1), -ENOSPC);
	for (unsigned int i = 0; i < 100000; i++) {
		x = x * 1664525 + 1013904223;
		if (x >> 30 == 0)
			atomic_store(&sh->cons, x);
		else if (x >> 30 == 1)
			atomic_store(&sh->arm, x >> 7);
		else if (x >> 28 == 15)
			atomic_store(&sh->cons, atomic_load(&q.tail));
		assert_true(push(&q, i) <= 0);
		assert_true(ring_cq_poll(&q, out, 16) <= ENTRIES);
	}
	for (size_t i = 0; i < CACHE_LINE; i++)
		assert_int_equal(mem[bytes + i], 0x77);
	free(mem);
}

static atomic_bool stop_flag;

static void *
index_flipper(void *mem)
{
	struct ring_cq_shared *sh = mem;

	for (uint32_t x = 1; !atomic_load(&stop_flag); x = x * 1664525 + 1013904223) {
		atomic_store(&sh->cons, x);
		atomic_store(&sh->cons, x + 8);
		atomic_store(&sh->arm, x);
	}
	return NULL;
}

/* A host that changes the indices all the time cannot hold a worker. */
static void
hostile_live(void **state UNUSED)
{
	void *mem = cq_memory(8);
	unsigned int done = 0;
	pthread_t thread;
	struct ring_cq q;

	ring_cq_attach(&q, mem, 8, 8, true);
	atomic_store(&stop_flag, false);
	assert_int_equal(pthread_create(&thread, NULL, index_flipper, mem), 0);
	for (; done < ROUNDS(10000); done++) {
		int rc = push(&q, done);

		if (rc != 0 && rc != -ENOSPC)
			break;
	}
	atomic_store(&stop_flag, true);
	pthread_join(thread, NULL);
	assert_int_equal(done, ROUNDS(10000));
	free(mem);
}

#define ITEMS ROUNDS(500000)

struct pusher {
	struct ring_cq *q;
	uint32_t id;
	uint32_t bad;
};

static void *
pusher_main(void *arg)
{
	struct pusher *p = arg;

	for (uint32_t i = 0; i < ITEMS;) {
		struct ring_cqe cqe = { .wr_id = i, .qp_num = p->id, .psn = i ^ p->id };
		int rc = ring_cq_push(p->q, &cqe);

		if (rc == 0)
			i++;
		else if (rc == -ENOSPC)
			sched_yield();
		else
			p->bad++;
	}
	return NULL;
}

/* Two workers on one CQ: each one's completions arrive once, whole and in its order. */
static void
two_producers(void **state UNUSED)
{
	void *mem = cq_memory(256);
	struct pusher p[2];
	uint32_t next[2] = { 0, 0 }, wrong = 0;
	struct ring_cqe out[32];
	pthread_t thread[2];
	struct ring_cq q;

	ring_cq_attach(&q, mem, 256, 200, true);
	for (uint32_t i = 0; i < 2; i++) {
		p[i] = (struct pusher){ &q, i, 0 };
		assert_int_equal(pthread_create(&thread[i], NULL, pusher_main, &p[i]), 0);
	}
	while (next[0] + next[1] < 2 * ITEMS) {
		uint32_t n = ring_cq_poll(&q, out, 32);

		for (uint32_t i = 0; i < n; i++) {
			uint32_t id = out[i].qp_num & 1;

			wrong += out[i].qp_num > 1 || out[i].wr_id != next[id] ||
				 out[i].psn != (next[id] ^ id);
			next[id]++;
		}
		if (n == 0)
			sched_yield();
	}
	for (uint32_t i = 0; i < 2; i++) {
		pthread_join(thread[i], NULL);
		assert_int_equal(next[i], ITEMS);
		assert_int_equal(p[i].bad, 0);
	}
	assert_int_equal(wrong, 0);
	assert_int_equal(ring_cq_poll(&q, out, 32), 0);
	free(mem);
}

/* A producer that is alone: CQ-05 holds for it, whatever the consumer's index says. */
static void
CQ_05_alone(void **state UNUSED)
{
	void *mem = cq_memory(8);
	struct ring_cqe out[8];
	struct ring_cq q;
	uint32_t index;

	ring_cq_attach(&q, mem, 8, 5, true);
	atomic_store(&q.tail, UINT32_MAX - 6);
	atomic_store(&q.sh->cons, UINT32_MAX - 6);
	q.cons = q.seen = UINT32_MAX - 6;
	for (uint32_t turn = 0; turn < 20; turn++) {
		for (uint32_t k = 0; k < 5; k++) {
			struct ring_cqe *slot = ring_cq_reserve_alone(&q, &index);

			assert_non_null(slot);
			slot->wr_id = 100 * turn + k;
			ring_cq_publish(&q, slot, index);
		}
		assert_null(ring_cq_reserve_alone(&q, &index));
		assert_null(ring_cq_reserve(&q, &index));
		assert_int_equal(ring_cq_poll(&q, out, 8), 5);
		for (uint32_t k = 0; k < 5; k++)
			assert_int_equal(out[k].wr_id, 100 * turn + k);
		assert_int_equal(ring_cq_poll(&q, out, 8), 0);
	}
	free(mem);
}

/* What the control lcore and two workers do when a queue gets its second worker. */
struct handover {
	struct ring_cq *q;
	_Atomic bool alone; /* qp_cq_is_alone() */
	_Atomic bool asked; /* the message that a worker answers between its bursts */
	_Atomic bool answered;
};

static void *
first_main(void *arg)
{
	struct handover *h = arg;

	for (uint32_t i = 0; i < ITEMS;) {
		if (atomic_load_explicit(&h->asked, memory_order_acquire))
			atomic_store_explicit(&h->answered, true, memory_order_release);
		for (uint32_t k = 0; k < 32 && i < ITEMS; k++) {
			uint32_t index;
			struct ring_cqe *slot =
				atomic_load_explicit(&h->alone, memory_order_relaxed)
					? ring_cq_reserve_alone(h->q, &index)
					: ring_cq_reserve(h->q, &index);

			if (slot == NULL) {
				sched_yield();
				break;
			}
			slot->wr_id = i++;
			slot->qp_num = 0;
			slot->psn = (uint32_t)slot->wr_id;
			ring_cq_publish(h->q, slot, index);
		}
	}
	atomic_store_explicit(&h->answered, true, memory_order_release);
	return NULL;
}

static void
take_all(struct ring_cq *q, uint32_t next[2], uint32_t *wrong)
{
	struct ring_cqe out[32];
	uint32_t n = ring_cq_poll(q, out, 32);

	for (uint32_t i = 0; i < n; i++) {
		uint32_t id = out[i].qp_num & 1;

		*wrong += out[i].qp_num > 1 || out[i].wr_id != next[id] ||
			  out[i].psn != (next[id] ^ id);
		next[id]++;
	}
	if (n == 0)
		sched_yield();
}

static void
second_producer(void **state UNUSED)
{
	void *mem = cq_memory(256);
	uint32_t next[2] = { 0, 0 }, wrong = 0;
	pthread_t first, second;
	struct ring_cq q;
	struct handover h = { .q = &q, .alone = true };
	struct pusher p = { &q, 1, 0 };

	ring_cq_attach(&q, mem, 256, 200, true);
	assert_int_equal(pthread_create(&first, NULL, first_main, &h), 0);
	while (next[0] < ITEMS / 4)
		take_all(&q, next, &wrong);
	atomic_store_explicit(&h.alone, false, memory_order_relaxed);
	atomic_store_explicit(&h.asked, true, memory_order_release);
	while (!atomic_load_explicit(&h.answered, memory_order_acquire))
		take_all(&q, next, &wrong);
	assert_int_equal(pthread_create(&second, NULL, pusher_main, &p), 0);
	while (next[0] + next[1] < 2 * ITEMS)
		take_all(&q, next, &wrong);
	pthread_join(first, NULL);
	pthread_join(second, NULL);
	assert_int_equal(next[0], ITEMS);
	assert_int_equal(next[1], ITEMS);
	assert_int_equal(wrong, 0);
	free(mem);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_field_arrives),
		cmocka_unit_test(CQ_05_overflow),
		cmocka_unit_test(poll_in_parts),
		cmocka_unit_test(order_of_reservation),
		cmocka_unit_test(index_wraps_2_to_32),
		cmocka_unit_test(hostile_indices),
		cmocka_unit_test(hostile_live),
		cmocka_unit_test(two_producers),
		cmocka_unit_test(CQ_05_alone),
		cmocka_unit_test(second_producer),
	};

	return cmocka_run_group_tests_name("ring_cq", tests, NULL, NULL);
}
