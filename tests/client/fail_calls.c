/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Preloaded into a dataplane: calls for memory, descriptors and threads that fail.
 *
 * FAIL_CALLS names a file that a test maps as well, a struct control. While `one_in` is not 0,
 * one call in so many fails, at random, with what the kernel or the C library says when there is no
 * more. That is of calls that the program and jansson make; those of other libraries go through.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <rte_malloc.h>

#include "fail_calls.h"

#define OBJECTS 8

struct control {
	_Atomic uint32_t one_in;
	_Atomic uint32_t kinds; /* a bit for each enum kind */
	_Atomic uint64_t asked[8];
	_Atomic uint64_t failed[8];
};

static struct control *control;
static struct {
	uintptr_t from, to;
} judged[OBJECTS];
static uint32_t judged_n;
static _Atomic uint32_t state = 2463534242u;

/* The code of the program itself, which comes first, and of jansson. */
static int
note(struct dl_phdr_info *info, size_t size, void *first)
{
	bool *is_first = first;
	const bool wanted = *is_first || strstr(info->dlpi_name, "libjansson") != NULL;

	(void)size;
	*is_first = false;
	for (int i = 0; wanted && i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];

		if (p->p_type != PT_LOAD || (p->p_flags & PF_X) == 0 || judged_n == OBJECTS)
			continue;
		judged[judged_n].from = info->dlpi_addr + p->p_vaddr;
		judged[judged_n].to = judged[judged_n].from + p->p_memsz;
		judged_n++;
	}
	return 0;
}

__attribute__((constructor)) static void
begin(void)
{
	const char *path = getenv("FAIL_CALLS");
	const int fd = path != NULL ? open(path, O_RDWR | O_CLOEXEC) : -1;
	bool first = true;
	void *at;

	if (fd < 0)
		return;
	dl_iterate_phdr(note, &first);
	at = NEXT(mmap)(NULL, sizeof(*control), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	control = at != MAP_FAILED ? at : NULL;
}

static bool
is_judged(const void *caller)
{
	for (uint32_t i = 0; i < judged_n; i++)
		if ((uintptr_t)caller >= judged[i].from && (uintptr_t)caller < judged[i].to)
			return true;
	return false;
}

/* Threads that draw at the same time may draw the same. */
static uint32_t
draw(void)
{
	uint32_t x = atomic_load_explicit(&state, memory_order_relaxed);

	x ^= x << 13;
	x ^= x >> 17;
	x ^= x << 5;
	atomic_store_explicit(&state, x, memory_order_relaxed);
	return x;
}

bool
fails(const void *caller, enum kind k)
{
	const uint32_t n = control != NULL ? atomic_load(&control->one_in) : 0;

	if (n == 0 || (atomic_load(&control->kinds) >> k & 1) == 0 || !is_judged(caller))
		return false;
	atomic_fetch_add(&control->asked[k], 1);
	if (draw() % n != 0)
		return false;
	atomic_fetch_add(&control->failed[k], 1);
	return true;
}

static void *
no_memory(void)
{
	errno = ENOMEM;
	return NULL;
}

int
refused(int error)
{
	errno = error;
	return -1;
}

/* ---- memory ---------------------------------------------------------------------------------- */

extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);

EXPORT void *
malloc(size_t n)
{
	return fails(CALLER, MEMORY) ? no_memory() : __libc_malloc(n);
}

EXPORT void *
calloc(size_t n, size_t each)
{
	return fails(CALLER, MEMORY) ? no_memory() : __libc_calloc(n, each);
}

EXPORT void *
realloc(void *p, size_t n)
{
	return fails(CALLER, MEMORY) ? no_memory() : __libc_realloc(p, n);
}

EXPORT void *
aligned_alloc(size_t align, size_t n)
{
	return fails(CALLER, MEMORY) ? no_memory() : NEXT(aligned_alloc)(align, n);
}

EXPORT int
posix_memalign(void **out, size_t align, size_t n)
{
	return fails(CALLER, MEMORY) ? ENOMEM : NEXT(posix_memalign)(out, align, n);
}

EXPORT void *
rte_zmalloc_socket(const char *what, size_t n, unsigned int align, int node)
{
	return fails(CALLER, MEMORY) ? no_memory() : NEXT(rte_zmalloc_socket)(what, n, align, node);
}

EXPORT char *
strdup(const char *s)
{
	return fails(CALLER, MEMORY) ? no_memory() : NEXT(strdup)(s);
}

/* ---- mappings, descriptors ------------------------------------------------------------------- */

EXPORT void *
mmap(void *at, size_t n, int prot, int flags, int fd, off_t off)
{
	if (!fails(CALLER, MAPPING))
		return NEXT(mmap)(at, n, prot, flags, fd, off);
	errno = ENOMEM;
	return MAP_FAILED;
}

EXPORT int
memfd_create(const char *name, unsigned int flags)
{
	return fails(CALLER, DESCRIPTOR) ? refused(EMFILE) : NEXT(memfd_create)(name, flags);
}

EXPORT int
eventfd(unsigned int n, int flags)
{
	return fails(CALLER, DESCRIPTOR) ? refused(EMFILE) : NEXT(eventfd)(n, flags);
}

EXPORT int
accept4(int fd, struct sockaddr *a, socklen_t *len, int flags)
{
	return fails(CALLER, SOCKET) ? refused(EMFILE) : NEXT(accept4)(fd, a, len, flags);
}

EXPORT int
epoll_create1(int flags)
{
	return fails(CALLER, DESCRIPTOR) ? refused(EMFILE) : NEXT(epoll_create1)(flags);
}

EXPORT int
epoll_ctl(int set, int op, int fd, struct epoll_event *e)
{
	return op == EPOLL_CTL_ADD && fails(CALLER, DESCRIPTOR) ? refused(ENOSPC)
								: NEXT(epoll_ctl)(set, op, fd, e);
}

EXPORT int
ftruncate(int fd, off_t n)
{
	return fails(CALLER, MAPPING) ? refused(ENOSPC) : NEXT(ftruncate)(fd, n);
}

EXPORT int
fallocate(int fd, int mode, off_t at, off_t n)
{
	return fails(CALLER, MAPPING) ? refused(ENOSPC) : NEXT(fallocate)(fd, mode, at, n);
}

EXPORT int
mlock(const void *at, size_t n)
{
	return fails(CALLER, MAPPING) ? refused(ENOMEM) : NEXT(mlock)(at, n);
}

/* pidfd_open(), for whose sake alone the program has this. */
EXPORT long
syscall(long number, ...)
{
	long a[6];
	va_list ap;

	va_start(ap, number);
	for (int i = 0; i < 6; i++)
		a[i] = va_arg(ap, long);
	va_end(ap);
	if (number == SYS_pidfd_open && fails(CALLER, DESCRIPTOR))
		return refused(EMFILE);
	return NEXT(syscall)(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

EXPORT int
fcntl(int fd, int op, ...)
{
	const bool copies = op == F_DUPFD || op == F_DUPFD_CLOEXEC;
	va_list ap;
	void *arg;

	va_start(ap, op);
	arg = va_arg(ap, void *);
	va_end(ap);
	if (copies && fails(CALLER, DESCRIPTOR))
		return refused(EMFILE);
	if (op == F_ADD_SEALS && fails(CALLER, SEAL))
		return refused(EBUSY);
	return NEXT(fcntl)(fd, op, arg);
}

EXPORT int
pthread_create(pthread_t *out, const pthread_attr_t *attr, void *(*f)(void *), void *arg)
{
	return fails(CALLER, THREAD) ? EAGAIN : NEXT(pthread_create)(out, attr, f, arg);
}

/* ---- sockets --------------------------------------------------------------------------------- */

EXPORT ssize_t
sendmsg(int fd, const struct msghdr *m, int flags)
{
	return fails(CALLER, SOCKET) ? refused(ENOBUFS) : NEXT(sendmsg)(fd, m, flags);
}

EXPORT ssize_t
send(int fd, const void *p, size_t n, int flags)
{
	return fails(CALLER, SOCKET) ? refused(ENOBUFS) : NEXT(send)(fd, p, n, flags);
}

EXPORT ssize_t
recvmsg(int fd, struct msghdr *m, int flags)
{
	return fails(CALLER, SOCKET) ? refused(ENOMEM) : NEXT(recvmsg)(fd, m, flags);
}
