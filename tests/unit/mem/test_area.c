/* SPDX-License-Identifier: BSD-3-Clause */
/* Areas: shared, zeroed, sealed memory; and the fill pattern. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "mem.h"

static void
check_area(struct mem_area *a, size_t least)
{
	assert_non_null(a->base);
	assert_true(a->len >= least && a->len - least < a->page_size);
	assert_int_equal(a->len % a->page_size, 0);
	assert_int_equal((uintptr_t)a->base % a->page_size, 0);
	for (size_t i = 0; i < a->len; i += 509)
		assert_int_equal(a->base[i], 0);
	assert_int_equal(a->base[a->len - 1], 0);
	memset(a->base, 0x5a, a->len);
}

static void
ordinary_pages(void **state UNUSED)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	size_t lens[] = { 1, page - 1, page, page + 1, 3 << 20 };

	for (size_t i = 0; i < ARRAY_LEN(lens); i++) {
		struct mem_area a;

		assert_int_equal(mem_area_create(&a, lens[i], -1, 0), 0);
		assert_int_equal(a.page_size, page);
		assert_int_equal(a.node, -1);
		check_area(&a, lens[i]);
		mem_area_destroy(&a);
		assert_null(a.base);
		mem_area_destroy(&a); /* twice is nothing */
	}
}

/* With hugepages or without: it works, and page_size says which. */
static void
huge_or_not(void **state UNUSED)
{
	struct mem_area a;

	assert_int_equal(mem_area_create(&a, 100000, 0, MEM_AREA_HUGE), 0);
	assert_true(a.page_size == 2u << 20 || a.page_size == (size_t)sysconf(_SC_PAGESIZE));
	assert_true(a.node == 0 || a.node == -1);
	check_area(&a, 100000);
	mem_area_destroy(&a);

	assert_int_equal(mem_area_create(&a, 1, 100000, 0), 0); /* no such node */
	assert_int_equal(a.node, -1);
	mem_area_destroy(&a);
}

/* Who gets the descriptor cannot shrink the area under us, and sees the same bytes. */
static void
sealed_and_shared(void **state UNUSED)
{
	struct mem_area a;
	uint8_t *other;
	int seals;

	assert_int_equal(mem_area_create(&a, 8192, -1, 0), 0);
	seals = fcntl(a.fd, F_GET_SEALS);
	assert_true(seals >= 0 && (seals & F_SEAL_SHRINK) != 0);
	assert_int_equal(ftruncate(a.fd, 0), -1);
	assert_int_equal(errno, EPERM);
	other = mmap(NULL, a.len, PROT_READ, MAP_SHARED, a.fd, 0);
	assert_true(other != MAP_FAILED);
	a.base[4097] = 42;
	assert_int_equal(other[4097], 42);
	munmap(other, a.len);
	mem_area_destroy(&a);
}

static void
refused(void **state UNUSED)
{
	struct mem_area a;

	assert_int_equal(mem_area_create(&a, 0, -1, 0), -EINVAL);
	assert_null(a.base);
	assert_true(mem_area_create(&a, SIZE_MAX, -1, MEM_AREA_HUGE) < 0);
	assert_true(mem_area_create(&a, SIZE_MAX / 4, -1, 0) < 0);
	assert_int_equal(mem_area_create(&a, 1ull << 44, -1, 0), -ENOMEM); /* 16 TiB */
	assert_null(a.base);
	mem_area_destroy(&a);
}

static void
region_owns_its_area(void **state UNUSED)
{
	struct mem_region *r = mem_region_alloc();
	int fd;

	assert_non_null(r);
	assert_int_equal((uintptr_t)r % CACHE_LINE, 0);
	assert_null(r->area.base);
	assert_int_equal(mem_area_create(&r->area, 4096, -1, 0), 0);
	fd = r->area.fd;
	mem_region_free(r);
	assert_int_equal(fcntl(fd, F_GETFD), -1);
	mem_region_free(NULL);
}

/* Worked out apart from this code, from the formula in mem.h. */
static void
pattern(void **state UNUSED)
{
	static const struct {
		uint32_t seed, i;
		uint8_t byte;
	} rows[] = {
		{ 0, 0, 0x00 },
		{ 0, 1, 0xe3 },
		{ 0, 2, 0x27 },
		{ 1, 0, 0x04 },
		{ 1, 1, 0xa7 },
		{ 1, 255, 0x3f },
		{ 42, 4095, 0x54 },
		{ 42, 4096, 0x94 },
		{ 7, UINT32_MAX, 0xd3 },
		{ UINT32_MAX, 1000000, 0x9f },
	};
	uint8_t buf[300];

	for (size_t k = 0; k < ARRAY_LEN(rows); k++)
		assert_int_equal(mem_pattern_byte(rows[k].seed, rows[k].i), rows[k].byte);
	memset(buf, 0xee, sizeof(buf));
	mem_pattern_fill(buf + 1, 298, 7, UINT32_MAX - 100); /* the index wraps */
	assert_int_equal(buf[0], 0xee);
	assert_int_equal(buf[299], 0xee);
	for (uint32_t k = 0; k < 298; k++)
		assert_int_equal(buf[1 + k], mem_pattern_byte(7, UINT32_MAX - 100 + k));
}

/* Whoever wants to stop does not wait for a terabyte. */
static void
stopped(void **state UNUSED)
{
	static const size_t much = (size_t)64 << 20;
	_Atomic bool stop = false;
	struct mem_area a;

	mem_stop_by(&stop);
	assert_false(mem_is_stopped());
	assert_int_equal(mem_area_create(&a, much, -1, 0), 0);
	mem_pattern_fill(a.base, much, 7, 0);
	assert_int_equal(a.base[much - 1], mem_pattern_byte(7, (uint32_t)much - 1));
	memset(a.base, 0, much);
	stop = true;
	mem_pattern_fill(a.base, much, 7, 0);
	assert_int_equal(a.base[much - 1], 0);
	mem_area_destroy(&a);
	assert_int_equal(mem_area_create(&a, much, -1, 0), -ECANCELED);
	assert_null(a.base);
	mem_stop_by(NULL);
	assert_int_equal(mem_area_create(&a, 4096, -1, 0), 0);
	mem_area_destroy(&a);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ordinary_pages),
		cmocka_unit_test(huge_or_not),
		cmocka_unit_test(sealed_and_shared),
		cmocka_unit_test(refused),
		cmocka_unit_test(region_owns_its_area),
		cmocka_unit_test(pattern),
		cmocka_unit_test(stopped),
	};

	return cmocka_run_group_tests_name("mem_area", tests, NULL, NULL);
}
