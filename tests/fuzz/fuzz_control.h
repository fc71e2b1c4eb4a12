/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef FUZZ_CONTROL_H
#define FUZZ_CONTROL_H
/**
 * @file fuzz_control.h  What targets of the control lcore begin with.
 *
 * Owner:   tests only.
 * Memory:  none.
 * Depends: tests/unit/control.
 */
#include <signal.h>
#include <sys/resource.h>

#include "../unit/control/fake.h"
#include "fuzz.h"

/** libFuzzer calls it, and then each target does. */
int LLVMFuzzerInitialize(int *argc, char ***argv);

int
LLVMFuzzerInitialize(int *argc, char ***argv)
{
	/* Regions and queues are files in memory: none may be so large that this takes long. */
	const struct rlimit limit = { 4 << 20, RLIM_INFINITY };
	static bool started;

	(void)argc;
	(void)argv;
	if (started)
		return 0;
	started = true;
	signal(SIGXFSZ, SIG_IGN);
	FUZZ_CHECK(fake_eal(NULL) == 0);
	FUZZ_CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0);
	return 0;
}

#endif
