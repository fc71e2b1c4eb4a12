/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fork() in a program without regions uses no heap: a handler of a signal may call it while
 * malloc() is at work. And no thread ends in it that is cancelled.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile bool strict;

static void
heap_used(void)
{
	static const char words[] = "fork() uses the heap\n";

	if (strict && write(STDERR_FILENO, words, sizeof(words) - 1) != 0)
		_exit(1);
}

#ifdef __SANITIZE_ADDRESS__

int __sanitizer_install_malloc_and_free_hooks(
	void (*on_malloc)(const volatile void *, size_t), void (*on_free)(const volatile void *));

static void
got(const volatile void *at, size_t n)
{
	(void)at;
	(void)n;
	heap_used();
}

static void
freed(const volatile void *at)
{
	(void)at;
	heap_used();
}

__attribute__((constructor)) static void
watch_heap(void)
{
	if (__sanitizer_install_malloc_and_free_hooks(got, freed) == 0)
		_exit(3);
}

#else

void *__libc_malloc(size_t n);

void *
malloc(size_t n)
{
	heap_used();
	return __libc_malloc(n);
}

#endif

static void *
cancelled(void *arg)
{
	pid_t pid;
	int was;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
	pthread_cancel(pthread_self());
	pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
	pid = fork();
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &was);
	if (pid == 0)
		_exit(0);
	return waitpid(pid, NULL, 0) == pid ? arg : NULL;
}

int
main(void)
{
	pthread_t t;
	void *end;
	pid_t pid;

	strict = true;
	pid = fork();
	if (pid == 0)
		_exit(0);
	strict = false;
	if (pid < 0 || waitpid(pid, NULL, 0) != pid)
		return 1;
	if (pthread_create(&t, NULL, cancelled, &end) != 0 || pthread_join(t, &end) != 0 ||
		end != &end)
		return 2;
	printf("as libc's\n");
	return 0;
}
