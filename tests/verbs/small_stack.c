/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Handlers of signals and coroutines have small stacks, and look at files all the same: a call
 * takes no more of their stack than libc's own.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define STACK 65536
#define MOST  2048 /* beside what the kernel puts there */

static volatile bool failed;

static void
look(int number)
{
	struct stat st;
	char to[16];
	const int fd = open("/proc/self/maps", O_RDONLY);
	const int at = openat(AT_FDCWD, "/dev/null", O_WRONLY);

	failed = number == 0 || fstat(fd, &st) != 0 || write(at, to, 1) != 1 ||
		 stat("/", &st) != 0 || lstat("/", &st) != 0 || access("/", R_OK) != 0 ||
		 readlink("/proc/self/exe", to, sizeof(to)) <= 0 || chdir("/") != 0;
	close(at);
	close(fd);
}

int
main(void)
{
	char *stack = mmap(NULL, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	const stack_t own = { .ss_sp = stack, .ss_size = STACK };
	struct sigaction sa = { .sa_handler = look, .sa_flags = SA_ONSTACK };
	size_t used = STACK;

	if (stack == MAP_FAILED || sigaltstack(&own, NULL) != 0 || sigaction(SIGUSR1, &sa, NULL))
		return 1;
	look(1); /* the loader takes more at a first call */
	raise(SIGUSR1);
	while (used != 0 && stack[STACK - used] == 0)
		used--;
	if (failed)
		printf("failed\n");
	else if (used < getauxval(AT_MINSIGSTKSZ) + MOST)
		printf("small\n");
	else
		printf("%zu bytes, of which the kernel has %lu\n", used, getauxval(AT_MINSIGSTKSZ));
	return 0;
}
