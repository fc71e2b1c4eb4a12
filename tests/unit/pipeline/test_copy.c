/* SPDX-License-Identifier: BSD-3-Clause */
/* A WRITE's payload is copied with vectors, some bytes twice, but never one too many. */
#include "bed.h"
#include "../guard.h"

#undef fail /* cmocka's */
#include "stage_06_fast.h"

/* RESP-05: to the last and to the first bytes of a region, out of a frame's last bytes. */
static void
RESP_05_no_byte_outside(void **state)
{
	struct guard from = { NULL }, to = { NULL };
	uint8_t bytes[200], before[200];

	(void)state;
	for (uint32_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)(i + 1);
	memset(before, 0, sizeof(before));
	for (uint32_t len = 1; len <= sizeof(bytes); len++) {
		const uint8_t *src = guard_before_end(&from, bytes, len);
		uint8_t *dst = guard_before_end(&to, before, sizeof(before));

		payload_copy(dst + sizeof(before) - len, src, len);
		assert_memory_equal(dst + sizeof(before) - len, bytes, len);
		assert_memory_equal(dst, before, sizeof(before) - len);

		dst = guard_from_start(&to, before, sizeof(before));
		payload_copy(dst, guard_from_start(&from, bytes, len), len);
		assert_memory_equal(dst, bytes, len);
		assert_memory_equal(dst + len, before, sizeof(before) - len);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(RESP_05_no_byte_outside),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
