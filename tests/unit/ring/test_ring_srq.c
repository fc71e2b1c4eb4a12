/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared receive ring: one producer, many that take (SRQ-01). */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../clib/rounds.h"
#include "ring_srq.h"

#define MAX_SGE 4

static void *
memory(uint32_t entries)
{
	size_t bytes = ring_size(entries, ring_recv_stride(MAX_SGE));
	void *mem = aligned_alloc(CACHE_LINE, bytes);

	assert_non_null(mem);
	memset(mem, 0x5a, bytes);
	memset(mem, 0, sizeof(struct ring_shared));
	return mem;
}

/** Post one of wr_id % 5 SGEs; @return false: full. */
static bool
post(struct ring *p, uint32_t limit, uint64_t wr_id)
{
	struct ring_recv_wqe *w = ring_produce_slot(p, limit);
	struct ring_sge sge[MAX_SGE];

	if (w == NULL)
		return false;
	for (uint32_t i = 0; i < MAX_SGE; i++)
		sge[i] = (struct ring_sge){ wr_id * 1000, (uint32_t)wr_id + i, 7 };
	ring_recv_fill(w, wr_id, sge, (uint32_t)(wr_id % (MAX_SGE + 1)));
	ring_produce_commit(p);
	return true;
}

static bool
is_whole(const struct ring_recv_copy *c)
{
	bool good = c->num_sge == c->wr_id % (MAX_SGE + 1);

	for (uint32_t i = 0; good && i < c->num_sge; i++)
		good = c->sge[i].addr == c->wr_id * 1000 &&
		       c->sge[i].length == (uint32_t)c->wr_id + i && c->sge[i].lkey == 7;
	return good;
}

static void
SRQ_01_look_and_take(void **state UNUSED)
{
	void *mem = memory(4);
	struct ring_recv_copy one, two;
	struct ring_srq q;
	struct ring p;

	ring_srq_attach(&q, mem, 4, ring_recv_stride(MAX_SGE));
	ring_srq_producer(&q, &p);
	assert_int_equal(ring_srq_peek(&q, MAX_SGE, &one), 0);
	for (uint64_t i = 0; i < 100; i++) {
		assert_true(post(&p, 3, 3 * i));
		assert_true(post(&p, 3, 3 * i + 1));
		assert_true(post(&p, 3, 3 * i + 2));
		assert_false(post(&p, 3, 0)); /* the limit, not the ring's size */
		assert_int_equal(ring_srq_count(&q), 3);
		for (uint64_t k = 0; k < 3; k++) {
			/* Two look at the same entry; one of them has it. */
			assert_int_equal(ring_srq_peek(&q, MAX_SGE, &one), 1);
			assert_int_equal(ring_srq_peek(&q, MAX_SGE, &two), 1);
			assert_int_equal(one.wr_id, 3 * i + k);
			assert_int_equal(two.wr_id, 3 * i + k);
			assert_true(is_whole(&two));
			assert_int_equal(ring_srq_slot(&q, &two), (3 * i + k) % 4);
			assert_true(ring_srq_take(&q, &two));
			assert_false(ring_srq_take(&q, &one));
			assert_false(ring_srq_take(&q, &two));
		}
		assert_int_equal(ring_srq_count(&q), 0);
		assert_int_equal(ring_srq_peek(&q, MAX_SGE, &one), 0);
	}
	free(mem);
}

/* What a host writes is copied no further than it may be, and followed nowhere. */
static void
SRQ_04_lies(void **state UNUSED)
{
	void *mem = memory(4);
	struct ring_recv_copy c;
	struct ring_srq q;
	struct ring p;

	ring_srq_attach(&q, mem, 4, ring_recv_stride(MAX_SGE));
	ring_srq_producer(&q, &p);
	assert_true(post(&p, 4, 2));
	((struct ring_recv_wqe *)(void *)p.sh->slots)->num_sge = 0xffffffff;
	memset(&c, 0x77, sizeof(c));
	assert_int_equal(ring_srq_peek(&q, MAX_SGE, &c), 1);
	assert_int_equal(c.num_sge, 0xffffffff);
	assert_int_equal(c.sge[0].lkey, 0x77777777);
	static const uint32_t ahead[] = { 5, 1000, 0x80000000, 0xffffffff };
	for (size_t i = 0; i < ARRAY_LEN(ahead); i++) {
		atomic_store(&p.sh->prod, ahead[i]);
		assert_int_equal(ring_srq_peek(&q, MAX_SGE, &c), -EBADMSG);
		assert_int_equal(ring_srq_count(&q), 0);
	}
	atomic_store(&p.sh->prod, 4);
	assert_int_equal(ring_srq_count(&q), 4);
	free(mem);
}

static void
SRQ_01_move(void **state UNUSED)
{
	void *mem[3] = { memory(4), memory(16), memory(64) };
	struct ring_recv_copy c, before;
	uint64_t next = 0, taken = 0;
	struct ring_srq q;
	struct ring p;

	ring_srq_attach(&q, mem[0], 4, ring_recv_stride(MAX_SGE));
	ring_srq_producer(&q, &p);
	for (; next < 6; next++) { /* indices that are no multiple of the size */
		assert_true(post(&p, 4, next));
		assert_int_equal(ring_srq_peek(&q, MAX_SGE, &c), 1);
		assert_true(ring_srq_take(&q, &c));
		taken++;
	}
	while (post(&p, 4, next))
		next++;
	for (int i = 1; i < 3; i++) {
		assert_int_equal(ring_srq_peek(&q, MAX_SGE, &before), 1);
		ring_srq_move(&q, mem[i], i == 1 ? 16 : 64);
		ring_srq_producer(&q, &p);
		assert_int_equal(ring_srq_count(&q), next - taken);
		assert_true(ring_srq_take(&q, &before)); /* looked at in the old memory */
		taken++;
		while (post(&p, i == 1 ? 16 : 64, next))
			next++;
	}
	assert_int_equal(ring_srq_count(&q), 64);
	for (; taken < next; taken++) {
		assert_int_equal(ring_srq_peek(&q, MAX_SGE, &c), 1);
		assert_int_equal(c.wr_id, taken);
		assert_true(is_whole(&c));
		assert_true(ring_srq_take(&q, &c));
	}
	for (int i = 0; i < 3; i++)
		free(mem[i]);
}

/* ---- three that take, one that posts and moves ----------------------------------------------- */

#define ITEMS  ROUNDS(300000u)
#define TAKERS 3

static _Atomic uint8_t times[ITEMS];

struct taker {
	struct ring_srq *q;
	_Atomic bool *done;
	_Atomic uint32_t bursts; /* between two of them it looks at nothing */
	uint32_t wrong;
};

/** Take some at once, each of which has to be whole. @return is there anything? */
static bool
take_several(struct taker *t, uint64_t *last)
{
	enum { MOST = 3 };
	const struct ring_srq_run run = ring_srq_look(t->q);
	const uint32_t n = run.n < MOST ? run.n : MOST;
	struct ring_recv_copy c[MOST];

	if (n == 0)
		return false;
	for (uint32_t i = 0; i < n; i++) {
		const struct ring_recv_wqe *wqe = ring_srq_at(&run, i);

		c[i].wr_id = RING_LOAD(uint64_t, &wqe->wr_id);
		c[i].num_sge = RING_LOAD(uint32_t, &wqe->num_sge);
		for (uint32_t k = 0; k < c[i].num_sge && k < MAX_SGE; k++)
			c[i].sge[k] =
				(struct ring_sge){ .addr = RING_LOAD(uint64_t, &wqe->sge[k].addr),
					.length = RING_LOAD(uint32_t, &wqe->sge[k].length),
					.lkey = RING_LOAD(uint32_t, &wqe->sge[k].lkey) };
	}
	if (!ring_srq_take_run(t->q, &run, n))
		return true;
	for (uint32_t i = 0; i < n; i++) {
		t->wrong += !is_whole(&c[i]) || c[i].wr_id >= ITEMS ||
			    (c[i].wr_id <= *last && *last != 0);
		*last = c[i].wr_id;
		if (c[i].wr_id < ITEMS)
			atomic_fetch_add(&times[c[i].wr_id], 1);
	}
	return true;
}

static void *
taker_main(void *arg)
{
	struct taker *t = arg;
	uint64_t last = 0;

	while (!atomic_load(t->done)) {
		struct ring_recv_copy c;

		if (atomic_fetch_add(&t->bursts, 1) % 2 != 0 && take_several(t, &last))
			continue;
		if (ring_srq_peek(t->q, MAX_SGE, &c) != 1) {
			sched_yield();
			continue;
		}
		t->wrong += !is_whole(&c);
		if (!ring_srq_take(t->q, &c))
			continue;
		t->wrong += c.wr_id >= ITEMS || (c.wr_id <= last && last != 0);
		last = c.wr_id;
		if (c.wr_id < ITEMS)
			atomic_fetch_add(&times[c.wr_id], 1);
	}
	return NULL;
}

/** As control does before it gives the old memory back. */
static void
leave(struct taker *t)
{
	uint32_t before = atomic_load(&t->bursts);

	while (atomic_load(&t->bursts) == before)
		sched_yield();
}

static void
SRQ_01_each_once(void **state UNUSED)
{
	void *mem[6];
	_Atomic bool done = false;
	struct taker t[TAKERS];
	pthread_t thread[TAKERS];
	uint32_t size = 4, moves = 0;
	struct ring_srq q;
	struct ring p;

	for (int i = 0; i < 6; i++)
		mem[i] = memory(8u << (2 * i));
	ring_srq_attach(&q, memory(size), size, ring_recv_stride(MAX_SGE));
	void *first = q.view[0].sh;
	ring_srq_producer(&q, &p);
	for (int i = 0; i < TAKERS; i++) {
		t[i] = (struct taker){ &q, &done, 0, 0 };
		assert_int_equal(pthread_create(&thread[i], NULL, taker_main, &t[i]), 0);
	}
	for (uint64_t id = 0; id < ITEMS;) {
		if (!post(&p, size, id)) {
			sched_yield();
			continue;
		}
		if (++id % (ITEMS / 7) == 0 && moves < 6) {
			size = 8u << (2 * moves);
			ring_srq_move(&q, mem[moves++], size);
			ring_srq_producer(&q, &p);
			for (int i = 0; i < TAKERS; i++)
				leave(&t[i]);
		}
	}
	while (ring_srq_count(&q) != 0)
		sched_yield();
	atomic_store(&done, true);
	for (int i = 0; i < TAKERS; i++) {
		pthread_join(thread[i], NULL);
		assert_int_equal(t[i].wrong, 0);
	}
	for (uint32_t i = 0; i < ITEMS; i++)
		assert_int_equal(atomic_load(&times[i]), 1);
	assert_int_equal(moves, 6);
	assert_int_equal(ring_srq_count(&q), 0);
	assert_int_equal(atomic_load(&p.sh->cons), ITEMS); /* all its room is the producer's */
	free(first);
	for (int i = 0; i < 6; i++)
		free(mem[i]);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(SRQ_01_look_and_take),
		cmocka_unit_test(SRQ_04_lies),
		cmocka_unit_test(SRQ_01_move),
		cmocka_unit_test(SRQ_01_each_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
