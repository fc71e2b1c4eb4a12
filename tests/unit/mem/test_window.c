/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory windows in the key table, and what several workers may rely on while one binds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>

#include "mem_refusal.h"
#include "mem_window.h"

#define PD    7u
#define QPN   0x11u
#define LKEY  0x0b0b0100u
#define INDEX 0x00abcd00u
#define VA    0x10000u
#define LEN   4096u
#define USER  mem_user(PD, QPN)

enum { FULL = ACCESS_LOCAL_WRITE | ACCESS_MW_BIND };

struct bed {
	struct mem_table *t;
	struct mem_region *on;
	struct mem_window *w;
	uint8_t bytes[LEN];
};

static struct bed *
bed_make(uint32_t readers, enum mem_kind kind)
{
	static struct bed b;

	b.t = mem_table_create(8);
	assert_non_null(b.t);
	assert_int_equal(mem_table_readers(b.t, readers), 0);
	b.on = mem_region_alloc();
	b.on->va = VA;
	b.on->length = LEN;
	b.on->host = b.bytes;
	b.on->key = LKEY;
	b.on->pd = PD;
	b.on->access = FULL;
	assert_int_equal(mem_table_add(b.t, b.on), 0);
	b.w = mem_window_alloc();
	b.w->r.kind = (uint8_t)kind;
	b.w->home_pd = PD;
	assert_int_equal(mem_window_add(b.t, b.w, INDEX), 0);
	return &b;
}

static void
bed_end(struct bed *b)
{
	if (!b->w->gone)
		mem_window_remove(b->t, b->w);
	mem_window_free(b->w);
	assert_int_equal(mem_region_claim(b->on), 0);
	mem_table_remove(b->t, LKEY);
	mem_region_free(b->on);
	mem_table_destroy(b->t);
}

static struct mem_bind
to(uint32_t key, uint64_t offset, uint64_t length)
{
	return (struct mem_bind){ .window = INDEX,
		.key = key,
		.lkey = LKEY,
		.pd = PD,
		.qpn = QPN,
		.access = ACCESS_REMOTE_WRITE,
		.addr = VA + offset,
		.length = length };
}

static enum mem_turn
bind_it(struct bed *b, uint32_t worker, uint32_t key, uint64_t offset)
{
	const struct mem_bind bind = to(key, offset, 64);
	enum mem_why why;

	return mem_window_bind(b->t, worker, &bind, &why);
}

static enum mem_fault
ask(const struct bed *b, uint32_t key, uint64_t user, uint64_t va, uint64_t len)
{
	const struct mem_region *region;
	uint8_t *host = NULL, *fast;
	const enum mem_fault f = mem_check(b->t, key, user, va, len, ACCESS_REMOTE_WRITE, &host);

	fast = mem_reach_remote(b->t, key, user, va, len, ACCESS_REMOTE_WRITE, &region);
	assert_int_equal(fast != NULL, f == MEM_OK);
	if (fast != NULL)
		assert_ptr_equal(fast, host);
	return f;
}

/* The same answers on both ways to ask. */
static void
MW_02_checked_like_a_region(void **state UNUSED)
{
	struct bed *b = bed_make(1, MEM_WINDOW_1);

	assert_int_equal(ask(b, INDEX, USER, VA, 1), MEM_BAD_KEY);
	assert_int_equal(bind_it(b, 0, 0, 128), MEM_TURN_DONE);
	assert_int_equal(b->w->r.key, INDEX + 1);
	assert_int_equal(ask(b, INDEX + 1, USER, VA + 128, 64), MEM_OK);
	assert_int_equal(ask(b, INDEX + 1, mem_user(PD, QPN + 1), VA + 128, 64), MEM_OK);
	assert_int_equal(ask(b, INDEX + 1, mem_user(PD + 1, QPN), VA + 128, 64), MEM_BAD_PD);
	assert_int_equal(ask(b, INDEX + 1, USER, VA + 128, 65), MEM_BAD_RANGE);
	assert_int_equal(ask(b, INDEX + 1, USER, VA + 127, 1), MEM_BAD_RANGE);
	assert_int_equal(ask(b, INDEX, USER, VA + 128, 1), MEM_BAD_KEY);
	assert_int_equal(ask(b, INDEX + 2, USER, VA + 128, 1), MEM_BAD_KEY);
	assert_int_equal(mem_check_invalidate(b->t, INDEX + 1, USER), MEM_BAD_ACCESS);
	bed_end(b);
}

static void
MW_09_type_2_is_one_queue_pairs(void **state UNUSED)
{
	struct bed *b = bed_make(1, MEM_WINDOW_2);

	assert_int_equal(bind_it(b, 0, INDEX + 9, 0), MEM_TURN_DONE);
	assert_int_equal(ask(b, INDEX + 9, USER, VA, 8), MEM_OK);
	assert_int_equal(ask(b, INDEX + 9, mem_user(PD, QPN + 1), VA, 8), MEM_BAD_PD);
	assert_int_equal(ask(b, INDEX + 9, mem_user(PD, 0), VA, 8), MEM_BAD_PD);
	assert_int_equal(mem_check_invalidate(b->t, INDEX + 9, mem_user(PD, QPN + 1)), MEM_BAD_PD);
	assert_int_equal(mem_check_invalidate(b->t, INDEX + 9, USER), MEM_OK);
	mem_window_leave(b->w, QPN + 1);
	assert_int_equal(ask(b, INDEX + 9, USER, VA, 8), MEM_OK);
	mem_window_leave(b->w, QPN);
	assert_int_equal(ask(b, INDEX + 9, USER, VA, 8), MEM_BAD_KEY);
	bed_end(b);
}

/* A fast-register region: of its whole domain, with an L_Key, and valid once at a time. */
static void
fast_register_region(void **state UNUSED)
{
	struct bed *b = bed_make(1, MEM_FAST);
	const uint64_t other = mem_user(PD, QPN + 1), foreign = mem_user(PD + 1, QPN);
	const uint8_t full = ACCESS_LOCAL_WRITE | ACCESS_REMOTE_WRITE;
	struct mem_refusal m = { .key = INDEX, .pd = PD };
	struct mem_bind bind = to(INDEX, 64, 64); /* the same low byte as before is good */
	bool begun = false;
	enum mem_why why;
	uint8_t *host;

	assert_int_equal(mem_refusal_look(b->t, QPN, &m), MEM_WHY_UNBOUND);
	assert_true(m.fast);                /* what is said of it does not speak of windows */
	b->on->access = ACCESS_LOCAL_WRITE; /* no windows: it needs no MW_BIND */
	assert_int_equal(ask(b, INDEX, USER, VA + 64, 8), MEM_BAD_KEY);
	assert_int_equal(mem_window_bind(b->t, 0, &bind, &why), MEM_TURN_REFUSED);
	assert_int_equal(why, MEM_WHY_NO_LOCAL_WRITE); /* REMOTE_WRITE without LOCAL_WRITE */
	bind.access = full;
	b->on->access = 0;
	assert_int_equal(mem_window_bind(b->t, 0, &bind, &why), MEM_TURN_REFUSED);
	assert_int_equal(why, MEM_WHY_NO_LOCAL_WRITE); /* the region below has not got it */
	bind.access = ACCESS_LOCAL_WRITE;
	assert_int_equal(mem_window_bind(b->t, 0, &bind, &why), MEM_TURN_REFUSED);
	b->on->access = ACCESS_LOCAL_WRITE;
	bind.access = full | ACCESS_MW_BIND; /* no window is bound to it */
	assert_int_equal(mem_window_bind(b->t, 0, &bind, &why), MEM_TURN_REFUSED);
	mem_refusal_of_bind(b->t, &bind, why, &m);
	assert_true(m.fast && m.why == MEM_WHY_WINDOW_ACCESS);
	bind.access = full;
	assert_int_equal(mem_window_bind(b->t, 0, &bind, &why), MEM_TURN_DONE);
	assert_int_equal(ask(b, INDEX, other, VA + 64, 64), MEM_OK);
	assert_int_equal(ask(b, INDEX, foreign, VA + 64, 64), MEM_BAD_PD);
	assert_int_equal(ask(b, INDEX, USER, VA + 63, 1), MEM_BAD_RANGE);
	assert_int_equal(ask(b, INDEX, USER, VA + 65, 64), MEM_BAD_RANGE);
	assert_int_equal(
		mem_check(b->t, INDEX, USER, VA + 64, 64, ACCESS_LOCAL_WRITE, &host), MEM_OK);
	assert_ptr_equal(host, b->bytes + 64);
	assert_int_equal(mem_check(b->t, INDEX, USER, VA + 64, 64, 0, &host), MEM_OK);
	assert_int_equal(mem_check(b->t, INDEX, USER, VA + 64, 8, ACCESS_REMOTE_READ, &host),
		MEM_BAD_ACCESS);
	bind.key = INDEX + 1;
	assert_int_equal(mem_window_bind(b->t, 0, &bind, &why), MEM_TURN_REFUSED);
	assert_int_equal(why, MEM_WHY_BOUND);
	assert_int_equal(mem_region_claim(b->on), 1);
	mem_window_leave(b->w, QPN); /* it is no queue pair's */
	assert_int_equal(ask(b, INDEX, USER, VA + 64, 64), MEM_OK);
	assert_int_equal(mem_check_invalidate(b->t, INDEX, other), MEM_OK);
	assert_int_equal(mem_check_invalidate(b->t, INDEX, foreign), MEM_BAD_PD);
	assert_int_equal(
		mem_window_invalidate(b->t, 0, INDEX, foreign, &begun, &why), MEM_TURN_REFUSED);
	begun = false;
	assert_int_equal(mem_window_invalidate(b->t, 0, INDEX, other, &begun, &why), MEM_TURN_DONE);
	assert_int_equal(mem_check(b->t, INDEX, USER, VA + 64, 8, 0, &host), MEM_BAD_KEY);
	begun = false;
	assert_int_equal(
		mem_window_invalidate(b->t, 0, INDEX, USER, &begun, &why), MEM_TURN_REFUSED);
	assert_int_equal(mem_window_bind(b->t, 0, &bind, &why), MEM_TURN_DONE);
	assert_int_equal(ask(b, INDEX, USER, VA + 64, 8), MEM_BAD_KEY);
	assert_int_equal(ask(b, INDEX + 1, USER, VA + 64, 8), MEM_OK);
	mem_invalidate(b->t, INDEX + 1); /* by the peer */
	assert_int_equal(ask(b, INDEX + 1, USER, VA + 64, 8), MEM_BAD_KEY);
	bed_end(b);
}

static void
MW_10_region_counts_its_windows(void **state UNUSED)
{
	struct bed *b = bed_make(1, MEM_WINDOW_2);

	assert_int_equal(bind_it(b, 0, INDEX + 1, 0), MEM_TURN_DONE);
	assert_int_equal(mem_region_claim(b->on), 1);
	mem_invalidate(b->t, INDEX + 1);
	mem_invalidate(b->t, INDEX + 1);
	assert_int_equal(mem_region_claim(b->on), 0);
	assert_int_equal(bind_it(b, 0, INDEX + 2, 0), MEM_TURN_REFUSED);
	mem_region_release(b->on);
	assert_int_equal(bind_it(b, 0, INDEX + 2, 0), MEM_TURN_DONE);
	mem_window_remove(b->t, b->w);
	bed_end(b);
}

/* A region and a window never have a key in common, whichever came first. */
static void
keys_are_apart(void **state UNUSED)
{
	struct bed *b = bed_make(1, MEM_WINDOW_1);
	struct mem_window *w = mem_window_alloc();
	struct mem_region *r = mem_region_alloc();

	r->host = b->bytes;
	r->length = 1;
	r->key = INDEX + 0x80;
	assert_int_equal(mem_table_add(b->t, r), -EEXIST);
	w->r.kind = MEM_WINDOW_1;
	assert_int_equal(mem_window_add(b->t, w, LKEY + 0x80), -EEXIST);
	assert_int_equal(mem_window_add(b->t, w, INDEX + 3), -EEXIST);
	assert_int_equal(mem_window_add(b->t, w, 5), -EEXIST);
	mem_window_free(w);
	mem_region_free(r);
	bed_end(b);
}

/* Places of windows that are gone are free again, however many there have been. */
static void
places_come_back(void **state UNUSED)
{
	struct bed *b = bed_make(1, MEM_WINDOW_1);
	struct mem_window *w;

	for (uint32_t round = 0; round < 20; round++) {
		assert_int_equal(mem_windows(b->t), 1);
		w = mem_window_alloc();
		w->r.kind = MEM_WINDOW_1;
		w->home_pd = PD;
		assert_int_equal(mem_window_add(b->t, w, INDEX + 0x100), 0);
		assert_int_equal(mem_windows(b->t), 2);
		mem_window_remove(b->t, w);
		mem_window_free(w);
	}
	bed_end(b);
}

/* With several workers: nothing is done before each of the others has begun another turn. */
static void
MW_06_waits_for_other_workers(void **state UNUSED)
{
	struct bed *b = bed_make(3, MEM_WINDOW_1);

	assert_int_equal(bind_it(b, 1, 0, 0), MEM_TURN_LATER);
	mem_reader_turn(b->t, 0);
	assert_int_equal(bind_it(b, 1, 0, 0), MEM_TURN_LATER);
	mem_reader_turn(b->t, 2);
	assert_int_equal(bind_it(b, 1, 0, 0), MEM_TURN_DONE);
	assert_int_equal(ask(b, INDEX + 1, USER, VA, 64), MEM_OK);
	/* Taken back at once, bound anew later. */
	assert_int_equal(bind_it(b, 2, 0, 64), MEM_TURN_LATER);
	assert_int_equal(ask(b, INDEX + 1, USER, VA, 64), MEM_BAD_KEY);
	mem_reader_turn(b->t, 0);
	mem_reader_turn(b->t, 1);
	assert_int_equal(bind_it(b, 2, 0, 64), MEM_TURN_DONE);
	assert_int_equal(ask(b, INDEX + 2, USER, VA + 64, 64), MEM_OK);
	bed_end(b);
}

static void
MW_08_completes_when_nobody_uses_it(void **state UNUSED)
{
	struct bed *b = bed_make(2, MEM_WINDOW_2);
	bool begun = false, again = false;
	enum mem_why why;

	bind_it(b, 0, INDEX + 1, 0);
	mem_reader_turn(b->t, 1);
	assert_int_equal(bind_it(b, 0, INDEX + 1, 0), MEM_TURN_DONE);
	assert_int_equal(
		mem_window_invalidate(b->t, 0, INDEX + 1, USER, &begun, &why), MEM_TURN_LATER);
	assert_true(begun);
	assert_int_equal(ask(b, INDEX + 1, USER, VA, 1), MEM_BAD_KEY);
	assert_int_equal(
		mem_window_invalidate(b->t, 0, INDEX + 1, USER, &again, &why), MEM_TURN_REFUSED);
	assert_int_equal(why, MEM_WHY_UNBOUND);
	mem_reader_turn(b->t, 1);
	assert_int_equal(
		mem_window_invalidate(b->t, 0, INDEX + 1, USER, &begun, &why), MEM_TURN_DONE);
	/* The wait is over: a bind behind it need not wait again. */
	assert_int_equal(bind_it(b, 0, INDEX + 2, 0), MEM_TURN_DONE);
	bed_end(b);
}

/* MW-08: who invalidates a window of type 1 is told that it is one. */
static void
MW_08_not_of_type_1(void **state UNUSED)
{
	struct bed *b = bed_make(1, MEM_WINDOW_1);
	bool begun = false;
	enum mem_why why;

	assert_int_equal(bind_it(b, 0, INDEX + 1, 0), MEM_TURN_DONE);
	assert_int_equal(
		mem_window_invalidate(b->t, 0, INDEX + 1, USER, &begun, &why), MEM_TURN_REFUSED);
	assert_int_equal(why, MEM_WHY_NOT_OF_TYPE_2);
	assert_int_equal(ask(b, INDEX + 1, USER, VA, 1), MEM_OK);
	bed_end(b);
}

/*
 * One worker binds the window to one 64-byte piece after another and, once it is revoked, writes to
 * the piece itself; others write through the key. What is revoked must not be written by them.
 */
#define TURNS   1000
#define WRITERS 2

static struct bed *shared;
static _Atomic uint32_t current, done;

static void *
writer(void *arg)
{
	const uint32_t worker = (uint32_t)(uintptr_t)arg;

	while (atomic_load(&done) == 0) {
		const struct mem_region *region;
		uint32_t key;
		uint8_t *host = NULL;

		mem_reader_turn(shared->t, worker);
		key = atomic_load(&current);
		for (uint32_t at = 0; at < LEN && host == NULL; at += 64)
			host = mem_reach_remote(
				shared->t, key, USER, VA + at, 64, ACCESS_REMOTE_WRITE, &region);
		if (host != NULL && !mem_is_valid(region))
			host = NULL;
		sched_yield(); /* it loses its CPU where that is worst */
		if (host != NULL)
			memset(host, (int)worker, 64);
	}
	return NULL;
}

static void
MW_06_no_write_after_revocation(void **state UNUSED)
{
	pthread_t thread[WRITERS];

	shared = bed_make(WRITERS + 1, MEM_WINDOW_1);
	atomic_store(&done, 0);
	for (uintptr_t i = 1; i <= WRITERS; i++)
		assert_int_equal(pthread_create(&thread[i - 1], NULL, writer, (void *)i), 0);
	for (uint32_t i = 0; i < TURNS; i++) {
		uint8_t *mine = shared->bytes + i % (LEN / 64) * 64;

		while (bind_it(shared, 0, 0, i % (LEN / 64) * 64) != MEM_TURN_DONE) {
			mem_reader_turn(shared->t, 0);
			sched_yield(); /* to a writer that has no CPU */
		}
		atomic_store(&current, shared->w->r.key);
		for (uint32_t rest = i % 4; rest != 0; rest--)
			sched_yield(); /* they look at it, and write */
		while (bind_it(shared, 0, 0, (i + 1) % (LEN / 64) * 64) != MEM_TURN_DONE) {
			mem_reader_turn(shared->t, 0);
			sched_yield(); /* to a writer that has no CPU */
		}
		/* It is bound to another piece: this one is ours. */
		memset(mine, 0xee, 64);
		for (uint32_t look = 0; look < 20; look++) {
			for (uint32_t k = 0; k < 64; k++)
				assert_int_equal(*(volatile uint8_t *)&mine[k], 0xee);
			sched_yield();
		}
	}
	atomic_store(&done, 1);
	for (uint32_t i = 0; i < WRITERS; i++)
		pthread_join(thread[i], NULL);
	bed_end(shared);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(MW_02_checked_like_a_region),
		cmocka_unit_test(MW_09_type_2_is_one_queue_pairs),
		cmocka_unit_test(fast_register_region),
		cmocka_unit_test(MW_10_region_counts_its_windows),
		cmocka_unit_test(keys_are_apart),
		cmocka_unit_test(places_come_back),
		cmocka_unit_test(MW_06_waits_for_other_workers),
		cmocka_unit_test(MW_08_completes_when_nobody_uses_it),
		cmocka_unit_test(MW_08_not_of_type_1),
		cmocka_unit_test(MW_06_no_write_after_revocation),
	};

	return cmocka_run_group_tests_name("window", tests, NULL, NULL);
}
