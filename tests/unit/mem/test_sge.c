/* SPDX-License-Identifier: BSD-3-Clause */
/* Scatter and gather: bytes land in the SGEs' order, and nowhere else. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "mem.h"

#define PD    1
#define LKEY  0x100
#define RDKEY 0x200 /* no local write */
#define VA    0x40000000
#define BYTES 8192

static uint8_t memory[BYTES];
static uint8_t expect[BYTES];
static struct mem_region rw, ro;
static struct mem_table *table;

static int
setup(void **state UNUSED)
{
	rw = (struct mem_region){ .va = VA,
		.length = BYTES,
		.host = memory,
		.key = LKEY,
		.pd = PD,
		.access = ACCESS_LOCAL_WRITE };
	ro = rw;
	ro.key = RDKEY;
	ro.access = ACCESS_REMOTE_READ;
	table = mem_table_create(2);
	return mem_table_add(table, &rw) != 0 || mem_table_add(table, &ro) != 0;
}

static int
teardown(void **state UNUSED)
{
	mem_table_destroy(table);
	return 0;
}

/* A byte of the message: different from its neighbours and from what the memory holds. */
static uint8_t
byte_of(uint32_t i)
{
	return (uint8_t)(i % 251);
}

static void
message(uint8_t *data, uint32_t offset, uint32_t len)
{
	for (uint32_t i = 0; i < len; i++)
		data[i] = byte_of(offset + i);
}

static enum mem_fault
scatter(const struct ring_sge *sge, uint32_t n, uint64_t offset, uint32_t len)
{
	uint8_t data[4096];

	message(data, (uint32_t)offset, len);
	return mem_scatter(table, sge, n, PD, offset, data, len);
}

/* RESP-02: SGEs of 1000, 3 and 2000 bytes take packets of 1024, 1024 and 10. */
static void
RESP_02_scatter_across_sges(void **state UNUSED)
{
	const struct ring_sge sge[] = { { VA + 100, 1000, LKEY }, { VA + 5000, 3, LKEY },
		{ VA + 2000, 2000, LKEY } };
	uint8_t data[2058];

	memset(memory, 0xfe, sizeof(memory));
	memset(expect, 0xfe, sizeof(expect));
	for (uint32_t i = 0; i < 2058; i++) {
		uint32_t at = i < 1000 ? 100 + i : i < 1003 ? 5000 + i - 1000 : 2000 + i - 1003;

		expect[at] = byte_of(i);
	}
	assert_int_equal(mem_sge_bytes(sge, 3), 3003);
	assert_int_equal(scatter(sge, 3, 0, 1024), MEM_OK);
	assert_int_equal(scatter(sge, 3, 1024, 1024), MEM_OK);
	assert_int_equal(scatter(sge, 3, 2048, 10), MEM_OK);
	assert_memory_equal(memory, expect, sizeof(memory));

	memset(data, 0, sizeof(data));
	assert_int_equal(mem_gather(table, sge, 3, PD, 0, data, 1001), MEM_OK);
	assert_int_equal(mem_gather(table, sge, 3, PD, 1001, data + 1001, 1057), MEM_OK);
	for (uint32_t i = 0; i < 2058; i++)
		assert_int_equal(data[i], byte_of(i));
}

/* Every offset and length over short SGEs, with empty ones between. */
static void
every_split(void **state UNUSED)
{
	const struct ring_sge sge[] = { { VA + 10, 3, LKEY }, { 0, 0, 0xdead },
		{ VA + 20, 1, LKEY }, { VA + 30, 5, LKEY }, { 1, 0, 0 } };
	static const uint8_t place[] = { 10, 11, 12, 20, 30, 31, 32, 33, 34 };

	for (uint32_t offset = 0; offset <= 9; offset++) {
		for (uint32_t len = 0; offset + len <= 10; len++) {
			enum mem_fault want = offset + len <= 9 ? MEM_OK : MEM_BAD_RANGE;
			uint8_t back[10] = { 0 };

			memset(memory, 0xfe, sizeof(memory));
			memset(expect, 0xfe, sizeof(expect));
			for (uint32_t i = 0; want == MEM_OK && i < len; i++)
				expect[place[offset + i]] = byte_of(offset + i);
			assert_int_equal(scatter(sge, 5, offset, len), want);
			assert_memory_equal(memory, expect, 64);
			assert_int_equal(mem_gather(table, sge, 5, PD, offset, back, len), want);
			for (uint32_t i = 0; want == MEM_OK && i < len; i++)
				assert_int_equal(back[i], byte_of(offset + i));
		}
	}
	assert_int_equal(scatter(NULL, 0, 0, 0), MEM_OK);
	assert_int_equal(scatter(NULL, 0, 0, 1), MEM_BAD_RANGE);
	assert_int_equal(scatter(sge, 5, UINT64_MAX, 1), MEM_BAD_RANGE);
	assert_int_equal(scatter(sge, 5, UINT64_MAX - 3, 8), MEM_BAD_RANGE);
}

/* A bad second SGE: nothing of the call is written, not even into the good first one. */
static void
bad_sge_writes_nothing(void **state UNUSED)
{
	static const struct {
		struct ring_sge bad;
		enum mem_fault fault;
	} rows[] = {
		{ { VA + 100, 8, LKEY + 1 }, MEM_BAD_KEY },
		{ { VA + BYTES - 7, 8, LKEY }, MEM_BAD_RANGE },
		{ { VA - 1, 8, LKEY }, MEM_BAD_RANGE },
		{ { UINT64_MAX - 3, 8, LKEY }, MEM_BAD_RANGE },
		{ { VA + 100, UINT32_MAX, LKEY }, MEM_BAD_RANGE },
		{ { VA + 100, 8, RDKEY }, MEM_BAD_ACCESS },
	};

	memset(memory, 0xfe, sizeof(memory));
	memset(expect, 0xfe, sizeof(expect));
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct ring_sge sge[] = { { VA, 8, LKEY }, rows[i].bad };

		assert_int_equal(scatter(sge, 2, 0, 16), rows[i].fault);
		assert_int_equal(
			mem_check_sges(table, sge, 2, PD, ACCESS_LOCAL_WRITE), rows[i].fault);
		assert_int_equal(mem_check_sges(table, sge, 1, PD, ACCESS_LOCAL_WRITE), MEM_OK);
		assert_memory_equal(memory, expect, sizeof(memory));
	}
	struct ring_sge one = { VA, 8, LKEY };

	assert_int_equal(mem_scatter(table, &one, 1, PD + 1, 0, "12345678", 8), MEM_BAD_PD);
	assert_memory_equal(memory, expect, sizeof(memory));
}

/* Reading needs no right of its own; writing needs LOCAL_WRITE. */
static void
gather_from_read_only(void **state UNUSED)
{
	const struct ring_sge sge = { VA + 1, 4, RDKEY };
	uint8_t out[4] = { 0 };

	memcpy(memory, "abcde", 5);
	assert_int_equal(mem_gather(table, &sge, 1, PD, 0, out, 4), MEM_OK);
	assert_memory_equal(out, "bcde", 4);
	assert_int_equal(mem_check_sges(table, &sge, 1, PD, 0), MEM_OK);
	assert_int_equal(mem_check_sges(table, &sge, 1, PD, ACCESS_LOCAL_WRITE), MEM_BAD_ACCESS);
}

/* As many SGEs as a WQE can have; sums beyond 32 bits; revocation between two packets. */
static void
limits(void **state UNUSED)
{
	struct ring_sge sge[RING_MAX_SGE];

	memset(memory, 0xfe, sizeof(memory));
	for (uint32_t i = 0; i < RING_MAX_SGE; i++)
		sge[i] = (struct ring_sge){ VA + 100 - 2 * i, 1, LKEY };
	assert_int_equal(scatter(sge, RING_MAX_SGE, 0, RING_MAX_SGE), MEM_OK);
	for (uint32_t i = 0; i < RING_MAX_SGE; i++)
		assert_int_equal(memory[100 - 2 * i], byte_of(i));

	for (uint32_t i = 0; i < RING_MAX_SGE; i++)
		sge[i] = (struct ring_sge){ 0, UINT32_MAX, 0 };
	assert_int_equal(mem_sge_bytes(sge, RING_MAX_SGE), 0xffffffffull * 16);
	assert_int_equal(mem_sge_bytes(sge, 0), 0);
	assert_int_equal(mem_check_sges(table, sge, 0, PD, 0), MEM_OK);

	sge[0] = (struct ring_sge){ VA, 64, LKEY };
	assert_int_equal(scatter(sge, 1, 0, 32), MEM_OK);
	mem_invalidate(table, LKEY);
	assert_int_equal(scatter(sge, 1, 32, 32), MEM_BAD_KEY);
	assert_int_equal(memory[32], 0xfe);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(RESP_02_scatter_across_sges, setup, teardown),
		cmocka_unit_test_setup_teardown(every_split, setup, teardown),
		cmocka_unit_test_setup_teardown(bad_sge_writes_nothing, setup, teardown),
		cmocka_unit_test_setup_teardown(gather_from_read_only, setup, teardown),
		cmocka_unit_test_setup_teardown(limits, setup, teardown),
	};

	return cmocka_run_group_tests_name("mem_sge", tests, NULL, NULL);
}
