/* SPDX-License-Identifier: BSD-3-Clause */
/* Which vector instructions are used, as the machine has them and with a limit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "compiler.h"
#include "cpu.h"

/** Does the kernel name this among the CPU's flags? */
static bool
kernel_says(const char *flag)
{
	static char line[1 << 16];
	bool found = false;
	FILE *f = fopen("/proc/cpuinfo", "r");

	assert_non_null(f);
	while (fgets(line, sizeof(line), f) != NULL && strncmp(line, "flags", 5) != 0)
		;
	fclose(f);
	for (char *save, *w = strtok_r(line, " \t\n", &save); w != NULL && !found;
		w = strtok_r(NULL, " \t\n", &save))
		found = strcmp(w, flag) == 0;
	return found;
}

/* Before anything is said: all that the machine has, as the kernel names it. */
static void
what_the_machine_has(void **state)
{
	const bool wide = kernel_says("avx512bw") && kernel_says("avx512vl");

	(void)state;
	assert_int_equal(cpu_has(CPU_CLMUL), kernel_says("pclmulqdq") && kernel_says("sse4_1"));
	assert_int_equal(cpu_has(CPU_AVX), kernel_says("avx"));
	assert_int_equal(cpu_has(CPU_CRC_256),
		kernel_says("pclmulqdq") && kernel_says("avx2") && kernel_says("vpclmulqdq"));
	assert_int_equal(cpu_has(CPU_AVX2), kernel_says("avx2"));
	assert_int_equal(cpu_has(CPU_WIDE_CRC), wide && kernel_says("vpclmulqdq"));
	assert_int_equal(cpu_has(CPU_WIDE_PARSE), wide && kernel_says("avx512vbmi"));
}

/* A limit takes away what needs wider registers and nothing else; no limit gives it all back. */
static void
no_wider_than_the_limit(void **state)
{
	const uint8_t all = cpu_features;
	static const struct {
		uint32_t bits;
		uint8_t of;
	} steps[] = {
		{ 0, 0 },
		{ 64, 0 },
		{ 128, CPU_CLMUL },
		{ 256, CPU_CLMUL | CPU_AVX | CPU_CRC_256 | CPU_AVX2 },
		{ 512, UINT8_MAX },
		{ 32768, UINT8_MAX },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
		cpu_limit(steps[i].bits);
		assert_int_equal(cpu_features, all & steps[i].of);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_the_machine_has),
		cmocka_unit_test(no_wider_than_the_limit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
