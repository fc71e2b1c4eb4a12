/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fork() where a region lies on the caller's stack. Its pages are the parent's and the child's for
 * a moment, until the child has copied them (span.c): both would write their frames to the same
 * bytes. So both come out of fork() on a stack of their own, and go back when the copy is there.
 * fork() that libc calls itself, as daemon() does, does not come here.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <ucontext.h>
#include <unistd.h>

#include "next.h"

#define STACK ((size_t)256 << 10) /* handlers of pthread_atfork() run on it */
#define BELOW ((size_t)64 << 10)  /* what fork() itself needs, and more */

/* A line of /proc/thread-self/maps, as far as it was read: "from-to rwxs ". */
struct mapping {
	uintptr_t at[2];
	int field; /* 0 and 1: of `at`; 2: letters; 3: the rest */
	int letters;
};

/* @return true: with this character it is known to be shared memory. */
static bool
read_on(struct mapping *m, char c)
{
	if (c == '\n') {
		*m = (struct mapping){ 0 };
	} else if (m->field == 2) {
		m->letters++;
		m->field += c == ' ';
		return c == 's' && m->letters == 4;
	} else if (c == '-' || c == ' ') {
		m->field += m->field < 2;
	} else if (m->field < 2) {
		const int digit = c <= '9' ? c - '0' : c - 'a' + 10;

		m->at[m->field] = m->at[m->field] << 4 | (uintptr_t)digit;
	}
	return false;
}

/*
 * Lies shared memory where frames are, or will be? fork() may be called where nothing but system
 * calls is allowed, as in a handler of a signal; and nobody's thread ends in it (cancellation).
 * The first thread, whose is what /proc/self shows, may have ended.
 */
static bool
is_shared(uintptr_t frame)
{
	const int fd = (int)syscall(SYS_open, "/proc/thread-self/maps", O_RDONLY | O_CLOEXEC);
	struct mapping m = { 0 };
	bool found = false;
	char text[1024];
	long n = 0;

	if (fd < 0)
		return false;
	while (!found && (n = syscall(SYS_read, fd, text, sizeof(text))) > 0) {
		for (long i = 0; i < n && !found; i++)
			found = read_on(&m, text[i]) && m.at[0] <= frame && m.at[1] > frame - BELOW;
	}
	syscall(SYS_close, fd);
	return found;
}

typedef pid_t fork_function(void);

/* At the foot of the other stack. */
struct call {
	fork_function *fork;
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
	/* A handler of pthread_atfork() may have changed it. */
	sigprocmask(SIG_SETMASK, NULL, &c->back.uc_sigmask);
}

static pid_t
fork_elsewhere(fork_function *real)
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

/* dlsym() uses the heap, where an error of another call is forgotten: hence not in a handler. */
static fork_function *
libc_fork(void)
{
	return NEXT(fork);
}

__attribute__((constructor)) static void
find(void)
{
	(void)libc_fork();
}

EXPORT pid_t
fork(void)
{
	fork_function *const real = libc_fork();
	const int err = errno;

	if (is_shared((uintptr_t)__builtin_frame_address(0)))
		return fork_elsewhere(real);
	errno = err;
	return real();
}
