/* SPDX-License-Identifier: BSD-3-Clause */
/* WIRE-02, WIRE-04: every field of the wire is big-endian. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "be.h"

static const uint8_t bytes[] = { 0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x88, 0x99 };

static void
WIRE_02_loads_most_significant_byte_first(void **state)
{
	(void)state;
	assert_int_equal(be16_load(bytes + 1), 0x0203);
	assert_int_equal(be24_load(bytes + 1), 0x020304);
	assert_int_equal(be32_load(bytes + 1), 0x02030405);
	assert_true(be64_load(bytes) == UINT64_C(0x0102030405060788));
	assert_true(be64_load(bytes + 1) == UINT64_C(0x0203040506078899));
	assert_int_equal(be16_load(bytes + 7), 0x8899);
	assert_int_equal(be24_load(bytes + 6), 0x078899);
}

/* Stored values read back, and no byte beside them is touched. */
static void
WIRE_02_stores_touch_only_their_bytes(void **state)
{
	uint8_t b[10];
	uint8_t want[10];

	(void)state;
	memset(b, 0xee, sizeof(b));
	memset(want, 0xee, sizeof(want));
	be16_store(b + 1, 0x0102);
	memcpy(want + 1, bytes, 2);
	assert_memory_equal(b, want, sizeof(b));

	be24_store(b + 3, 0xff010203);
	memcpy(want + 3, bytes, 3);
	assert_memory_equal(b, want, sizeof(b));

	be32_store(b + 5, 0x01020304);
	memcpy(want + 5, bytes, 4);
	assert_memory_equal(b, want, sizeof(b));

	be64_store(b + 1, UINT64_C(0x0102030405060788));
	memcpy(want + 1, bytes, 8);
	assert_memory_equal(b, want, sizeof(b));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(WIRE_02_loads_most_significant_byte_first),
		cmocka_unit_test(WIRE_02_stores_touch_only_their_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
