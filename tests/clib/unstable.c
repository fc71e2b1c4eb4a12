/* SPDX-License-Identifier: BSD-3-Clause */
#include "unstable.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

enum { AREAS = 8, PAGE = 4096 };
#define TRAP_FLAG 0x100 /* of EFLAGS: stop after one instruction */

struct area {
	uint8_t *view;
	uint8_t *alias;
	size_t bytes; /* whole pages */
	bool open;    /* for the instruction that is being carried out */
};

static struct {
	struct area area[AREAS];
	uint32_t areas;
	bool watched;
	uint32_t n;
	uint32_t most;
	unstable_change change;
	void *ctx;
	struct sigaction before; /* of SIGSEGV: a sanitizer's */
} u;

static struct area *
area_of(const void *at)
{
	for (uint32_t i = 0; i < u.areas; i++)
		if ((uintptr_t)at - (uintptr_t)u.area[i].view < u.area[i].bytes)
			return &u.area[i];
	return NULL;
}

static void
protect(struct area *a, int prot)
{
	if (mprotect(a->view, a->bytes, prot) != 0)
		abort();
}

/** An instruction has met an area. */
static void
touched(int sig, siginfo_t *info, void *context)
{
	ucontext_t *c = context;
	struct area *a = area_of(info->si_addr);
	size_t off;

	(void)sig;
	if (a == NULL || !u.watched || a->open) {
		sigaction(
			SIGSEGV, &u.before, NULL); /* it happens again, and is no concern of ours */
		return;
	}
	if (u.n == u.most) {
		static const char text[] = "unstable: the work has no bound\n";

		if (write(STDERR_FILENO, text, sizeof(text) - 1) < 0)
			abort();
		abort();
	}
	off = (size_t)((uint8_t *)info->si_addr - a->view);
	u.change(u.ctx, u.n++, a->alias + off, a->bytes - off);
	a->open = true;
	protect(a, PROT_READ | PROT_WRITE);
	c->uc_mcontext.gregs[REG_EFL] |= TRAP_FLAG;
}

/** It has been carried out. */
static void
stepped(int sig, siginfo_t *info, void *context)
{
	ucontext_t *c = context;

	(void)sig;
	(void)info;
	for (uint32_t i = 0; i < u.areas; i++) {
		if (u.area[i].open && u.watched)
			protect(&u.area[i], PROT_NONE);
		u.area[i].open = false;
	}
	c->uc_mcontext.gregs[REG_EFL] &= ~TRAP_FLAG;
}

uint8_t *
unstable_map(size_t len)
{
	const size_t bytes = (len + PAGE - 1) / PAGE * PAGE;
	int fd = memfd_create("unstable", MFD_CLOEXEC);
	struct area *a = &u.area[u.areas];
	uint8_t *all;

	if (u.areas == AREAS || len % 64 != 0 || fd < 0 || ftruncate(fd, (off_t)bytes) != 0)
		return NULL;
	all = mmap(NULL, bytes + 2 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (all == MAP_FAILED)
		return NULL;
	a->view = mmap(all + PAGE, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0);
	a->alias = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	a->bytes = bytes;
	close(fd);
	if (a->view == MAP_FAILED || a->alias == MAP_FAILED)
		return NULL;
	u.areas++;
	return a->view + bytes - len;
}

void *
unstable_alias(const void *at)
{
	const struct area *a = area_of(at);

	return a->alias + ((const uint8_t *)at - a->view);
}

void
unstable_begin(unstable_change change, void *ctx, uint32_t most)
{
	struct sigaction sa = { .sa_sigaction = touched, .sa_flags = SA_SIGINFO };

	u.n = 0;
	u.most = most;
	u.change = change;
	u.ctx = ctx;
	sigaction(SIGSEGV, &sa, &u.before);
	sa.sa_sigaction = stepped;
	sigaction(SIGTRAP, &sa, NULL);
	u.watched = true;
	for (uint32_t i = 0; i < u.areas; i++)
		protect(&u.area[i], PROT_NONE);
}

uint32_t
unstable_end(void)
{
	if (!u.watched)
		return u.n;
	u.watched = false;
	for (uint32_t i = 0; i < u.areas; i++)
		protect(&u.area[i], PROT_READ | PROT_WRITE);
	sigaction(SIGSEGV, &u.before, NULL);
	signal(SIGTRAP, SIG_DFL);
	return u.n;
}
