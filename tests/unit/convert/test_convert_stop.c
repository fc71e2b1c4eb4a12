/* SPDX-License-Identifier: BSD-3-Clause */
/* Who is waited for until it stands still. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "convert_stop.h"

#define STOP_SIGNAL 33 /* glibc's functions leave it out of masks */
#define MS          1000000ull

static _Atomic uint64_t begun;
static atomic_bool is_there;

static uint64_t
now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void
mask(int how)
{
	const uint64_t set = UINT64_C(1) << (STOP_SIGNAL - 1);

	syscall(SYS_rt_sigprocmask, how, &set, NULL, sizeof(set));
}

/* It runs, sleeps from 80 to 130 ms, and then stands. */
static void *
runs_and_sleeps(void *arg)
{
	const struct timespec nap = { .tv_nsec = 50 * (long)MS };
	uint64_t at;

	(void)arg;
	mask(SIG_BLOCK);
	atomic_store(&is_there, true);
	while ((at = atomic_load(&begun)) == 0 || now_ns() < at + 80 * MS)
		;
	nanosleep(&nap, NULL);
	mask(SIG_UNBLOCK);
	return NULL;
}

/* Where pages are trapped, 100 ms are enough for those that do not run: on end, not in all. */
static void
one_that_sleeps_for_a_moment_is_waited_for(void **state)
{
	static uint8_t page[4096];
	const struct convert_trap trap = { true, (uintptr_t)page, sizeof(page) };
	pthread_t thread;

	(void)state;
	assert_int_equal(pthread_create(&thread, NULL, runs_and_sleeps, NULL), 0);
	while (!atomic_load(&is_there))
		sched_yield();
	atomic_store(&begun, now_ns());
	assert_int_equal(convert_stop(&trap), 0);
	convert_go();
	pthread_join(thread, NULL);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_that_sleeps_for_a_moment_is_waited_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
