/* SPDX-License-Identifier: BSD-3-Clause */
/* rocelane-run: which CPU is the worker's that polls. No machine is asked. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "cpus.h"

static cpu_set_t
set_of(const int *cpus)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	for (; *cpus >= 0; cpus++)
		CPU_SET(*cpus, &set);
	return set;
}

static const struct {
	int allowed[8];
	bool apart;
	const char *worker;
	const char *others;
} rows[] = {
	{ { 0, -1 }, false, "0", "0" },
	{ { 0, 1, -1 }, false, "0-1", "0-1" },
	{ { 4, 9, -1 }, false, "4,9", "4,9" },
	{ { 0, 1, 2, -1 }, true, "2", "0-1" },
	{ { 0, 1, 2, 3, -1 }, true, "3", "0-2" },
	{ { 1, 3, 5, 6, 7, -1 }, true, "7", "1,3,5-6" }, /* as taskset has left them */
	{ { 0, 1022, 1023, -1 }, true, "1023", "0,1022" },
};

static void
a_cpu_of_its_own(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const cpu_set_t allowed = set_of(rows[i].allowed);
		cpu_set_t worker, others, both;
		char text[CPUS_TEXT];

		assert_int_equal(cpus_apart(&allowed, &worker, &others), rows[i].apart);
		cpus_text(&worker, text);
		assert_string_equal(text, rows[i].worker);
		cpus_text(&others, text);
		assert_string_equal(text, rows[i].others);
		CPU_OR(&both, &worker, &others);
		assert_true(CPU_EQUAL(&both, &allowed));
	}
}

/* The longest list there is has room. */
static void
every_other_one(void **state)
{
	char text[CPUS_TEXT];
	cpu_set_t set;

	(void)state;
	CPU_ZERO(&set);
	for (int cpu = 1; cpu < CPU_SETSIZE; cpu += 2)
		CPU_SET(cpu, &set);
	cpus_text(&set, text);
	assert_non_null(strstr(text, ",1021,1023"));
	CPU_ZERO(&set);
	cpus_text(&set, text);
	assert_string_equal(text, "");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_cpu_of_its_own),
		cmocka_unit_test(every_other_one),
	};

	return cmocka_run_group_tests_name("run_cpus", tests, NULL, NULL);
}
