/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fork() where a region lies on the caller's stack. Its pages are the parent's and the child's for
 * a moment, until the child has copied them (span.c): both would write their frames to the same
 * bytes. So both come out of fork() on a stack of their own, and go back when the copy is there.
 * fork() that libc calls itself, as daemon() does, does not come here.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/types.h>
#include <ucontext.h>
#include <unistd.h>

#include "next.h"

#define STACK ((size_t)256 << 10) /* handlers of pthread_atfork() run on it */
#define BELOW ((size_t)64 << 10)  /* what fork() itself needs, and more */

/* Lies shared memory where frames are, or will be? */
static bool
is_shared(uintptr_t frame)
{
	FILE *f = fopen("/proc/self/maps", "re");
	uintptr_t from, to;
	bool found = false;
	char line[512], share;

	if (f == NULL)
		return false;
	while (!found && fgets(line, sizeof(line), f) != NULL) {
		if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %*3c%c", &from, &to, &share) == 3)
			found = share == 's' && from <= frame && to > frame - BELOW;
	}
	fclose(f);
	return found;
}

/* At the foot of the other stack. */
struct call {
	pid_t (*fork)(void);
	pid_t pid;
	int err;
	ucontext_t back;
	ucontext_t there;
};

static void
run(unsigned int low, unsigned int high)
{
	struct call *c = (struct call *)((uintptr_t)high << 32 | low);

	c->pid = c->fork();
	c->err = errno;
}

static pid_t
fork_elsewhere(pid_t (*real)(void))
{
	struct call *c = mmap(NULL, STACK, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
	const uintptr_t at = (uintptr_t)c;
	pid_t pid;
	int err;

	if (c == MAP_FAILED)
		return -1; /* ENOMEM, as of fork() */
	c->fork = real;
	getcontext(&c->there);
	c->there.uc_stack.ss_sp = c + 1;
	c->there.uc_stack.ss_size = STACK - sizeof(*c);
	c->there.uc_link = &c->back;
	makecontext(&c->there, (void (*)(void))run, 2, (unsigned int)at, (unsigned int)(at >> 32));
	swapcontext(&c->back, &c->there);
	pid = c->pid;
	err = c->err;
	munmap(c, STACK);
	errno = err;
	return pid;
}

EXPORT pid_t
fork(void)
{
	pid_t (*const real)(void) = NEXT(fork);

	if (is_shared((uintptr_t)__builtin_frame_address(0)))
		return fork_elsewhere(real);
	return real();
}
