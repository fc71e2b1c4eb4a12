/* SPDX-License-Identifier: BSD-3-Clause */
/* mem_copy(): all bytes, none beside them, none read that are not there (under sanitizers). */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "mem.h"

enum { MOST = 4160, BESIDE = 64 };

/** RESP-02: `len` bytes to a place that is `odd` bytes behind a multiple of 64. */
static void
copy_one(uint32_t len, uint32_t odd)
{
	static uint8_t to[BESIDE + MOST + BESIDE] CACHE_ALIGNED;
	uint8_t *from = malloc(len == 0 ? 1 : len); /* nothing is behind its end */
	uint8_t *at = to + odd;

	assert_non_null(from);
	for (uint32_t i = 0; i < len; i++)
		from[i] = (uint8_t)(i * 7 + i / 251 + 1);
	memset(to, 0xee, sizeof(to));
	mem_copy(at, from, len);
	for (uint32_t i = 0; i < odd; i++)
		assert_int_equal(to[i], 0xee);
	for (uint32_t i = 0; i < len; i++)
		assert_int_equal(at[i], (uint8_t)(i * 7 + i / 251 + 1));
	for (uint32_t i = 0; i < BESIDE; i++)
		assert_int_equal(at[len + i], 0xee);
	free(from);
}

static void
RESP_02_every_length(void **state UNUSED)
{
	for (uint32_t len = 0; len <= 600; len++)
		for (uint32_t odd = 0; odd < BESIDE; odd += 13)
			copy_one(len, odd);
	for (uint32_t len = 601; len <= MOST; len += 61)
		copy_one(len, len % BESIDE);
}

int
main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(RESP_02_every_length) };

	return cmocka_run_group_tests_name("mem_copy", tests, NULL, NULL);
}
