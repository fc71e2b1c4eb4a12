/* SPDX-License-Identifier: BSD-3-Clause */
/* Which CPU an lcore runs on. No machine is asked. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "lcores.h"

#define END -1

/* The control lcore, then the workers. */
static const struct {
	int allowed[8];
	int lcore[8];
	int cpu[8];
} rows[] = {
	{ { 0, 1, 2, END }, { 0, 1, 2, END }, { 0, 1, 2 } },
	{ { 0, END }, { 0, 1, 2, END }, { 0, 0, 0 } },
	{ { 0, 1, END }, { 0, 1, 2, 3, END }, { 0, 1, 0, 1 } },
	/* As taskset or a container leaves them: nobody shares while a CPU is idle. */
	{ { 1, 2, END }, { 0, 1, END }, { 2, 1 } },
	{ { 2, 3, END }, { 0, 2, END }, { 3, 2 } },
	{ { 4, 5, 6, 7, END }, { 0, 1, 2, 5, END }, { 7, 4, 6, 5 } },
	{ { 1, 2, 3, END }, { 0, 1, 2, END }, { 3, 1, 2 } },
	/* Where somebody has to share, it is the control lcore. */
	{ { 5, 6, END }, { 0, 1, 2, END }, { 5, 5, 6 } },
	{ { 0, 1, END }, { 0, 127, END }, { 0, 1 } },
	{ { 1022, 1023, END }, { 0, 1, END }, { 1023, 1022 } },
};

static void
no_cpu_is_idle_while_another_is_shared(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uint32_t lcore[8], n = 0;
		cpu_set_t allowed;
		int cpu[8];

		CPU_ZERO(&allowed);
		for (const int *c = rows[i].allowed; *c != END; c++)
			CPU_SET(*c, &allowed);
		for (; rows[i].lcore[n] != END; n++)
			lcore[n] = (uint32_t)rows[i].lcore[n];
		lcores_place(&allowed, lcore, n, cpu);
		print_message("# row %zu\n", i);
		for (uint32_t k = 0; k < n; k++)
			assert_int_equal(cpu[k], rows[i].cpu[k]);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_cpu_is_idle_while_another_is_shared),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
