/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The program of a folder's tests: runs the one that its first argument names. Each test's
 * own main() is compiled as test_NAME(). `TESTS` is TEST(NAME) for each of them.
 */
#include <stdio.h>
#include <string.h>

#define TEST(name) int test_##name(void);
TESTS
#undef TEST

static const struct {
	const char *name;
	int (*run)(void);
} tests[] = {
#define TEST(name) { #name, test_##name },
	TESTS
#undef TEST
};

int
main(int argc, char **argv)
{
	for (size_t i = 0; argc == 2 && i < sizeof(tests) / sizeof(tests[0]); i++)
		if (strcmp(argv[1], tests[i].name) == 0)
			return tests[i].run();
	fprintf(stderr, "usage: %s TEST; its tests:\n", argv[0]);
	for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++)
		fprintf(stderr, "%s\n", tests[i].name);
	return 2;
}
