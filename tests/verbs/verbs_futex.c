/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Threads that sleep at a futex beside memory that becomes a region, or is none any more: they are
 * woken as ever. A futex that is not PRIVATE is known by its page, and that is another one then.
 */
#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "ends.h"

enum { SECONDS = 30 };

static struct end e[2];
static __thread char own[256];

static struct beside {
	sem_t woken;
	pthread_mutex_t lock;
	char buffer[200];
	_Atomic pid_t sleeper, locker;
} * x;

/* Until the thread sleeps at its futex. */
static void
wait_for(const _Atomic pid_t *tid)
{
	char path[64], text[64] = "";

	while (strncmp(text, "202 ", 4) != 0) {
		FILE *f;

		snprintf(path, sizeof(path), "/proc/self/task/%d/syscall", *tid);
		f = *tid != 0 ? fopen(path, "r") : NULL;
		if (f == NULL || fgets(text, sizeof(text), f) == NULL)
			text[0] = '\0';
		if (f != NULL)
			fclose(f);
		usleep(1000);
	}
}

static void *
sleeps(void *arg)
{
	x->sleeper = (pid_t)syscall(SYS_gettid);
	while (sem_wait(&x->woken) != 0)
		;
	return arg;
}

static void *
locks(void *arg)
{
	x->locker = (pid_t)syscall(SYS_gettid);
	CHECK(pthread_mutex_lock(&x->lock) == 0 && pthread_mutex_unlock(&x->lock) == 0);
	return arg;
}

static void *
registers_its_own(void *arg)
{
	const _Atomic pid_t *joiner = arg;
	struct ibv_mr *mr;

	wait_for(joiner);
	mr = ibv_reg_mr(e[0].pd, own, sizeof(own), ALL_ACCESS);
	CHECK(mr != NULL);
	return mr;
}

/* pthread_join() waits for the kernel to wake it, at a word of the thread's own memory. */
static void
a_thread_that_ends(void)
{
	_Atomic pid_t self = (pid_t)syscall(SYS_gettid);
	pthread_t thread;
	void *mr;

	CHECK(pthread_create(&thread, NULL, registers_its_own, &self) == 0);
	CHECK(pthread_join(thread, &mr) == 0);
	CHECK(ibv_dereg_mr(mr) == 0);
}

/* @param both ways: it becomes a region, or it is one and ends. */
static void
a_semaphore_and_a_mutex(bool ends)
{
	pthread_mutexattr_t shared;
	struct ibv_mr *mr = NULL;
	pthread_t threads[2];

	CHECK((x = aligned_alloc(4096, 4096)) != NULL);
	memset(x, 0, sizeof(*x));
	CHECK(sem_init(&x->woken, 1, 0) == 0 && pthread_mutexattr_init(&shared) == 0);
	CHECK(pthread_mutexattr_setpshared(&shared, PTHREAD_PROCESS_SHARED) == 0);
	CHECK(pthread_mutex_init(&x->lock, &shared) == 0 && pthread_mutex_lock(&x->lock) == 0);
	if (ends)
		mr = ibv_reg_mr(e[0].pd, x->buffer, sizeof(x->buffer), ALL_ACCESS);
	CHECK(!ends || mr != NULL);
	CHECK(pthread_create(&threads[0], NULL, sleeps, NULL) == 0);
	CHECK(pthread_create(&threads[1], NULL, locks, NULL) == 0);
	wait_for(&x->sleeper);
	wait_for(&x->locker);
	if (ends)
		CHECK(ibv_dereg_mr(mr) == 0);
	else
		mr = ibv_reg_mr(e[0].pd, x->buffer, sizeof(x->buffer), ALL_ACCESS);
	CHECK(mr != NULL);
	CHECK(sem_post(&x->woken) == 0 && pthread_mutex_unlock(&x->lock) == 0);
	for (int i = 0; i < 2; i++)
		CHECK(pthread_join(threads[i], NULL) == 0);
	if (!ends)
		CHECK(ibv_dereg_mr(mr) == 0);
	free(x);
}

int
main(void)
{
	ends_open(e, 7);
	alarm(SECONDS);
	a_thread_that_ends();
	a_semaphore_and_a_mutex(false);
	a_semaphore_and_a_mutex(true);
	puts("futexes");
	return 0;
}
