/* SPDX-License-Identifier: BSD-3-Clause */
/* ASSERT where it is on: true passes, and false ends the program and says where. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "invariant.h"

/* In a child: write to `fd` the number of the line that fails, then let it fail. */
static void
fail_in_child(int fd)
{
	const struct rlimit no_core = { 0, 0 };
	int apples = 3;

	setrlimit(RLIMIT_CORE, &no_core);
	signal(SIGABRT, SIG_DFL); /* cmocka would report it as the test's */
	dup2(fd, STDERR_FILENO);
	dprintf(fd, "%d\n", __LINE__ + 1);
	ASSERT(apples == 4);
	_exit(0);
}

static void
ends_the_program_and_says_where(void **state)
{
	char said[512] = "", want[512];
	ssize_t n = 0, got;
	int pipes[2], status, line;
	pid_t child;

	(void)state;
	assert_int_equal(pipe(pipes), 0);
	child = fork();
	assert_true(child >= 0);
	if (child == 0)
		fail_in_child(pipes[1]);
	close(pipes[1]);
	while ((got = read(pipes[0], said + n, sizeof(said) - 1 - (size_t)n)) > 0)
		n += got;
	close(pipes[0]);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGABRT);
	assert_int_equal(sscanf(said, "%d", &line), 1);
	/* Before it there is more of the path where the build's folder is outside of the tree. */
	snprintf(want, sizeof(want),
		"tests/unit/base/test_invariant.c:%d: fail_in_child: "
		"ASSERT(apples == 4) does not hold\n",
		line);
	assert_non_null(strstr(said, want));
}

static void
evaluates_a_true_condition_once(void **state)
{
	int calls = 0;

	(void)state;
	ASSERT(++calls == 1);
	assert_int_equal(calls, 1);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ends_the_program_and_says_where),
		cmocka_unit_test(evaluates_a_true_condition_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
