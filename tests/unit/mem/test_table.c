/* SPDX-License-Identifier: BSD-3-Clause */
/* Regions and keys: IBTA vol. 1, 9.7.5 (RESP-NAK-RAE) and 10.6. */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../clib/rounds.h"
#include "mem.h"

#define PD    3
#define KEY   0x1001
#define ALL   (ACCESS_LOCAL_WRITE | ACCESS_REMOTE_WRITE | ACCESS_REMOTE_READ | ACCESS_REMOTE_ATOMIC)
#define KIB64 0x10000

static uint8_t memory[KIB64];

static struct mem_region
region(uint32_t key, uint64_t va, uint64_t length, uint8_t access)
{
	return (struct mem_region){
		.va = va, .length = length, .host = memory, .key = key, .pd = PD, .access = access
	};
}

/* RESP-NAK-RAE-01: a key that was never issued, in tables with none, one and many keys. */
static void
RESP_NAK_RAE_01_invalid_key(void **state UNUSED)
{
	struct mem_table *t = mem_table_create(4);
	struct mem_region r = region(KEY, 0x10000, KIB64, ALL);
	uint8_t *host = NULL;

	assert_non_null(t);
	assert_int_equal(mem_check(t, KEY, PD, 0x10000, 1, 0, &host), MEM_BAD_KEY);
	assert_int_equal(mem_check(t, 0, PD, 0x10000, 1, 0, &host), MEM_BAD_KEY);
	assert_int_equal(mem_table_add(t, &r), 0);
	assert_int_equal(mem_check(t, KEY, PD, 0x10000, 1, 0, &host), MEM_OK);
	host = NULL;
	for (unsigned int bit = 0; bit < 32; bit++) {
		assert_int_equal(
			mem_check(t, KEY ^ BIT32(bit), PD, 0x10000, 1, 0, &host), MEM_BAD_KEY);
		assert_null(mem_table_find(t, KEY ^ BIT32(bit)));
	}
	assert_null(host); /* set on MEM_OK only */
	mem_table_destroy(t);
}

/* RESP-NAK-RAE-02: outside the region, and VA + length beyond 2^64. */
static void
RESP_NAK_RAE_02_range(void **state UNUSED)
{
	static const struct {
		uint64_t va, len;
		enum mem_fault fault;
		uint64_t host; /* offset */
	} rows[] = {
		{ 0x10000, KIB64, MEM_OK, 0 },
		{ 0x10000, 1, MEM_OK, 0 },
		{ 0x1ffff, 1, MEM_OK, 0xffff },
		{ 0x18000, 0x8000, MEM_OK, 0x8000 },
		{ 0x18000, 0x8001, MEM_BAD_RANGE, 0 }, /* one byte past */
		{ 0x10000, KIB64 + 1, MEM_BAD_RANGE, 0 },
		{ 0xffff, 1, MEM_BAD_RANGE, 0 }, /* below */
		{ 0xffff, 2, MEM_BAD_RANGE, 0 },
		{ 0, KIB64, MEM_BAD_RANGE, 0 },
		{ 0x20000, 1, MEM_BAD_RANGE, 0 },
		{ 0x10001, UINT64_MAX, MEM_BAD_RANGE, 0 }, /* sum wraps to inside */
		{ 0x18000, UINT64_MAX - 0x7fff, MEM_BAD_RANGE, 0 },
		{ UINT64_MAX, 1, MEM_BAD_RANGE, 0 },
		{ UINT64_MAX, 2, MEM_BAD_RANGE, 0 },
		{ UINT64_MAX - 0xff, 0x10000 + 0x200, MEM_BAD_RANGE, 0 },
		/* zero length is judged as well; the end is a place of the region */
		{ 0x10000, 0, MEM_OK, 0 },
		{ 0x20000, 0, MEM_OK, KIB64 },
		{ 0x20001, 0, MEM_BAD_RANGE, 0 },
		{ 0xffff, 0, MEM_BAD_RANGE, 0 },
	};
	struct mem_table *t = mem_table_create(1);
	struct mem_region r = region(KEY, 0x10000, KIB64, ALL);

	assert_int_equal(mem_table_add(t, &r), 0);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		uint8_t *host = NULL;
		enum mem_fault f = mem_check(t, KEY, PD, rows[i].va, rows[i].len, 0, &host);

		if (f != rows[i].fault)
			print_message("# row %zu\n", i);
		assert_int_equal(f, rows[i].fault);
		assert_ptr_equal(host, f == MEM_OK ? memory + rows[i].host : NULL);
	}
	mem_table_destroy(t);
}

/* The same at the upper end of the address space, and for regions that cannot be. */
static void
RESP_NAK_RAE_02_top_of_address_space(void **state UNUSED)
{
	const uint64_t va = UINT64_MAX - 0xfff; /* 4096 bytes below 2^64 */
	struct mem_table *t = mem_table_create(4);
	struct mem_region top = region(KEY, va, 0xfff, ALL);
	struct mem_region wraps = region(KEY + 1, va, 0x1001, ALL);
	struct mem_region far = region(KEY + 1, 1, UINT64_MAX, ALL);
	struct mem_region nowhere = region(KEY + 1, va, 16, ALL);
	uint8_t *host;

	nowhere.host = NULL;
	assert_int_equal(mem_table_add(t, &wraps), -EINVAL);
	assert_int_equal(mem_table_add(t, &far), -EINVAL);
	assert_int_equal(mem_table_add(t, &nowhere), -EINVAL);
	assert_null(mem_table_find(t, KEY + 1));
	assert_int_equal(mem_table_add(t, &top), 0);
	assert_int_equal(mem_check(t, KEY, PD, va, 0xfff, 0, &host), MEM_OK);
	assert_int_equal(mem_check(t, KEY, PD, va, 0x1000, 0, &host), MEM_BAD_RANGE);
	assert_int_equal(mem_check(t, KEY, PD, va + 8, UINT64_MAX - 7, 0, &host), MEM_BAD_RANGE);
	assert_int_equal(mem_check(t, KEY, PD, 0, 1, 0, &host), MEM_BAD_RANGE);
	assert_int_equal(mem_check(t, KEY, PD, 0, 0, 0, &host), MEM_BAD_RANGE);
	mem_table_destroy(t);
}

/* RESP-NAK-RAE-03: every combination of granted and needed bits. */
static void
RESP_NAK_RAE_03_access(void **state UNUSED)
{
	struct mem_table *t = mem_table_create(16);
	struct mem_region r[16];
	uint8_t *host;

	for (uint8_t granted = 0; granted < 16; granted++) {
		r[granted] = region(KEY + granted, 0x10000, 4096, granted);
		assert_int_equal(mem_table_add(t, &r[granted]), 0);
	}
	for (uint32_t granted = 0; granted < 16; granted++) {
		for (uint8_t needed = 0; needed < 16; needed++) {
			bool good = true;

			for (unsigned int bit = 0; bit < 4; bit++) {
				if ((needed >> bit & 1) == 1 && (granted >> bit & 1) == 0)
					good = false;
			}
			assert_int_equal(mem_check(t, KEY + granted, PD, 0x10000, 8, needed, &host),
				good ? MEM_OK : MEM_BAD_ACCESS);
		}
	}
	mem_table_destroy(t);
}

/* RESP-NAK-RAE-04: another PD, a changed variant byte, deregistered and invalidated keys. */
static void
RESP_NAK_RAE_04_pd_and_stale(void **state UNUSED)
{
	struct mem_table *t = mem_table_create(4);
	struct mem_region r = region(KEY, 0x10000, 4096, ALL);
	struct mem_region again;
	uint8_t *host;

	assert_int_equal(mem_table_add(t, &r), 0);
	assert_int_equal(mem_check(t, KEY, PD + 1, 0x10000, 8, 0, &host), MEM_BAD_PD);
	assert_int_equal(mem_check(t, KEY, 0, 0x10000, 8, 0, &host), MEM_BAD_PD);
	assert_int_equal(mem_check(t, KEY ^ 0x01, PD, 0x10000, 8, 0, &host), MEM_BAD_KEY);
	assert_int_equal(mem_check(t, KEY, PD, 0x10000, 8, 0, &host), MEM_OK);

	mem_invalidate(t, KEY);
	assert_int_equal(mem_check(t, KEY, PD, 0x10000, 8, 0, &host), MEM_BAD_KEY);
	assert_int_equal(mem_check(t, KEY, PD + 1, 0x10000, 8, 0, &host), MEM_BAD_KEY);
	assert_ptr_equal(mem_table_find(t, KEY), &r); /* still there, as not valid */
	assert_false(atomic_load(&r.valid));
	again = region(KEY, 0x10000, 4096, ALL);
	assert_int_equal(mem_table_add(t, &again), -EEXIST);

	assert_int_equal(mem_table_remove(t, KEY), 0);
	assert_int_equal(mem_check(t, KEY, PD, 0x10000, 8, 0, &host), MEM_BAD_KEY);
	assert_null(mem_table_find(t, KEY));
	assert_int_equal(mem_table_remove(t, KEY), -ENOENT);
	mem_invalidate(t, KEY); /* nothing happens */

	assert_int_equal(mem_table_add(t, &again), 0);
	assert_int_equal(mem_check(t, KEY, PD, 0x10000, 8, 0, &host), MEM_OK);
	assert_int_equal(mem_table_remove(t, KEY), 0);
	assert_false(atomic_load(&again.valid)); /* for who still holds the pointer */
	mem_table_destroy(t);
}

/* RESP-NAK-RAE-05: the whole length of the RETH is judged: DMALen 8192 in a region of 4096. */
static void
RESP_NAK_RAE_05_whole_range(void **state UNUSED)
{
	struct mem_table *t = mem_table_create(1);
	struct mem_region r = region(KEY, 0x10000, 4096, ALL);
	uint8_t *host = NULL;

	assert_int_equal(mem_table_add(t, &r), 0);
	assert_int_equal(
		mem_check(t, KEY, PD, 0x10000, 8192, ACCESS_REMOTE_WRITE, &host), MEM_BAD_RANGE);
	assert_int_equal(mem_check(t, KEY, PD, 0x10000, UINT32_MAX, ACCESS_REMOTE_WRITE, &host),
		MEM_BAD_RANGE);
	assert_null(host);
	mem_table_destroy(t);
}

/* More than one thing wrong: key, then PD, then range, then access. */
static void
order_of_faults(void **state UNUSED)
{
	struct mem_table *t = mem_table_create(1);
	struct mem_region r = region(KEY, 0x10000, 4096, ACCESS_REMOTE_READ);
	uint8_t *host;

	assert_int_equal(mem_table_add(t, &r), 0);
	assert_int_equal(
		mem_check(t, KEY + 1, PD + 1, 0, 1, ACCESS_REMOTE_WRITE, &host), MEM_BAD_KEY);
	assert_int_equal(mem_check(t, KEY, PD + 1, 0, 1, ACCESS_REMOTE_WRITE, &host), MEM_BAD_PD);
	assert_int_equal(mem_check(t, KEY, PD, 0, 1, ACCESS_REMOTE_WRITE, &host), MEM_BAD_RANGE);
	assert_int_equal(
		mem_check(t, KEY, PD, 0x10000, 1, ACCESS_REMOTE_WRITE, &host), MEM_BAD_ACCESS);
	mem_table_destroy(t);
}

static void
remote_invalidate(void **state UNUSED)
{
	struct mem_table *t = mem_table_create(2);
	struct mem_region yes = region(KEY, 0x10000, 4096, ALL);
	struct mem_region no = region(KEY + 1, 0x10000, 4096, ALL);

	yes.remote_invalidate = true;
	assert_int_equal(mem_table_add(t, &yes), 0);
	assert_int_equal(mem_table_add(t, &no), 0);
	assert_int_equal(mem_check_invalidate(t, KEY + 2, PD), MEM_BAD_KEY);
	assert_int_equal(mem_check_invalidate(t, KEY, PD + 1), MEM_BAD_PD);
	assert_int_equal(mem_check_invalidate(t, KEY + 1, PD), MEM_BAD_ACCESS);
	assert_int_equal(mem_check_invalidate(t, KEY, PD), MEM_OK);
	assert_int_equal(mem_check_invalidate(t, KEY, PD), MEM_OK); /* asking does not do it */
	mem_invalidate(t, KEY);
	assert_int_equal(mem_check_invalidate(t, KEY, PD), MEM_BAD_KEY);
	mem_table_destroy(t);
}

static void
capacity(void **state UNUSED)
{
	static const uint32_t sizes[] = { 1, 2, 3, 5, 64, 1000 };
	static struct mem_region r[1001];

	assert_null(mem_table_create(0));
	assert_null(mem_table_create(UINT32_MAX));
	for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
		struct mem_table *t = mem_table_create(sizes[i]);

		for (uint32_t k = 0; k <= sizes[i]; k++) {
			/* the last one is one too many */
			r[k] = region(k * 0x10001, 0x10000, 4096, ALL);
			assert_int_equal(mem_table_add(t, &r[k]), k < sizes[i] ? 0 : -ENOSPC);
		}
		for (uint32_t k = 0; k <= sizes[i]; k++)
			assert_ptr_equal(
				mem_table_find(t, k * 0x10001), k < sizes[i] ? &r[k] : NULL);
		assert_int_equal(mem_table_remove(t, 0), 0);
		assert_int_equal(mem_table_add(t, &r[sizes[i]]), 0);
		mem_table_destroy(t);
	}
}

/* Keys come and go; the table must agree with a plain array at every step. */
static void
churn(void **state UNUSED)
{
	enum { KEYS = 512, CAPACITY = 128 };
	struct mem_table *t = mem_table_create(CAPACITY);
	static struct mem_region r[KEYS];
	static bool present[KEYS];
	uint32_t x = 1, used = 0;

	for (uint32_t step = 0; step < 100000; step++) {
		uint32_t k, check;

		x = x * 1664525 + 1013904223;
		k = x >> 23;
		check = x >> 8 & (KEYS - 1);
		if (present[k]) {
			assert_int_equal(mem_table_remove(t, k << 8), 0);
			present[k] = false;
			used--;
		} else {
			int rc;

			r[k] = region(k << 8, 0x10000, 4096, ALL);
			rc = mem_table_add(t, &r[k]);
			assert_int_equal(rc, used < CAPACITY ? 0 : -ENOSPC);
			present[k] = rc == 0;
			used += rc == 0;
		}
		assert_ptr_equal(mem_table_find(t, check << 8), present[check] ? &r[check] : NULL);
	}
	for (uint32_t k = 0; k < KEYS; k++)
		assert_ptr_equal(mem_table_find(t, k << 8), present[k] ? &r[k] : NULL);
	mem_table_destroy(t);
}

#define LIVE_KEYS 32

/* Keys with equal hashes (the inverse of its factor): they all search along one row of slots. */
#define CROWDED(n) ((uint32_t)(n)*0x0E8B2F51u)

static struct mem_region live[2][LIVE_KEYS]; /* two regions a key, taken in turns */
static struct mem_region fixed[LIVE_KEYS];
static atomic_uint phase; /* odd: the fixed keys are there */
static atomic_bool stop_flag;

/*
 * Worker: a key that is there is found, though its entry moves as others go; a key that comes and
 * goes is never found half-written.
 */
static void *
reader_main(void *arg)
{
	uint64_t wrong = 0;
	uint32_t i = 0;

	while (!atomic_load_explicit(&stop_flag, memory_order_relaxed)) {
		uint32_t k = i++ % LIVE_KEYS;
		unsigned int before = atomic_load(&phase);
		uint8_t *host = NULL;
		struct mem_region *r;

		r = mem_table_find(arg, CROWDED(2 * k + 1));
		if ((before & 1) == 1 && before == atomic_load(&phase))
			wrong += r != &fixed[k];
		r = mem_table_find(arg, CROWDED(2 * k));
		wrong += r != NULL && r != &live[0][k] && r != &live[1][k];
		if (mem_check(arg, CROWDED(2 * k), PD, 0x10000 + k, 1, ALL, &host) == MEM_OK)
			wrong += host != memory + 64 * k;
	}
	return (void *)(uintptr_t)wrong;
}

static void
lookups_during_changes(void **state UNUSED)
{
	struct mem_table *t = mem_table_create(2 * LIVE_KEYS);
	void *wrong = NULL;
	pthread_t thread;

	for (uint32_t k = 0; k < LIVE_KEYS; k++) {
		fixed[k] = region(CROWDED(2 * k + 1), 0x10000, 4096, ALL);
		for (uint32_t turn = 0; turn < 2; turn++) {
			live[turn][k] = region(CROWDED(2 * k), 0x10000 + k, 1, ALL);
			live[turn][k].host = memory + 64 * k;
		}
	}
	atomic_store(&stop_flag, false);
	assert_int_equal(pthread_create(&thread, NULL, reader_main, t), 0);
	for (uint32_t round = 0; round < ROUNDS(2000); round++) {
		for (uint32_t k = 0; k < LIVE_KEYS; k++) {
			assert_int_equal(mem_table_add(t, &live[round & 1][k]), 0);
			assert_int_equal(mem_table_add(t, &fixed[k]), 0);
		}
		atomic_fetch_add(&phase, 1);
		for (uint32_t k = 0; k < LIVE_KEYS; k++) /* each moves all behind it */
			assert_int_equal(mem_table_remove(t, CROWDED(2 * k)), 0);
		atomic_fetch_add(&phase, 1);
		for (uint32_t k = 0; k < LIVE_KEYS; k++)
			assert_int_equal(mem_table_remove(t, CROWDED(2 * k + 1)), 0);
	}
	atomic_store(&stop_flag, true);
	pthread_join(thread, &wrong);
	assert_int_equal((uintptr_t)wrong, 0);
	mem_table_destroy(t);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(RESP_NAK_RAE_01_invalid_key),
		cmocka_unit_test(RESP_NAK_RAE_02_range),
		cmocka_unit_test(RESP_NAK_RAE_02_top_of_address_space),
		cmocka_unit_test(RESP_NAK_RAE_03_access),
		cmocka_unit_test(RESP_NAK_RAE_04_pd_and_stale),
		cmocka_unit_test(RESP_NAK_RAE_05_whole_range),
		cmocka_unit_test(order_of_faults),
		cmocka_unit_test(remote_invalidate),
		cmocka_unit_test(capacity),
		cmocka_unit_test(churn),
		cmocka_unit_test(lookups_during_changes),
	};

	return cmocka_run_group_tests_name("mem_table", tests, NULL, NULL);
}
