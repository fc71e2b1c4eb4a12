/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls that fail besides those of fail_calls.c: of mappings, files, sockets, waits and ports. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <numaif.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include "fail_calls.h"

static void *
none(int error)
{
	errno = error;
	return NULL;
}

/* ---- mappings -------------------------------------------------------------------------------- */

EXPORT void *
mremap(void *at, size_t from, size_t to, int flags, ...)
{
	va_list ap;
	void *where;

	va_start(ap, flags);
	where = va_arg(ap, void *);
	va_end(ap);
	if (!fails(CALLER, MAPPING))
		return NEXT(mremap)(at, from, to, flags, where);
	errno = ENOMEM;
	return MAP_FAILED;
}

EXPORT int
madvise(void *at, size_t n, int advice)
{
	return fails(CALLER, MAPPING) ? refused(ENOMEM) : NEXT(madvise)(at, n, advice);
}

EXPORT int
mprotect(void *at, size_t n, int prot)
{
	return fails(CALLER, MAPPING) ? refused(ENOMEM) : NEXT(mprotect)(at, n, prot);
}

EXPORT long
mbind(void *at, unsigned long n, int mode, const unsigned long *mask, unsigned long max,
	unsigned int flags)
{
	return fails(CALLER, MAPPING) ? refused(ENOMEM)
				      : NEXT(mbind)(at, n, mode, mask, max, flags);
}

/* ---- files ----------------------------------------------------------------------------------- */

static bool
is_file(int fd)
{
	struct stat st;

	return NEXT(fstat)(fd, &st) == 0 && S_ISREG(st.st_mode);
}

/* The program is built to call it where flags are no constant. */
extern int __open64_2(const char *path, int flags);

int
__open64_2(const char *path, int flags)
{
	return fails(CALLER, FILES) ? refused(EMFILE) : NEXT(__open64_2)(path, flags);
}

EXPORT int
open(const char *path, int flags, ...)
{
	va_list ap;
	int mode;

	va_start(ap, flags);
	mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(ap, int) : 0;
	va_end(ap);
	return fails(CALLER, FILES) ? refused(EMFILE) : NEXT(open)(path, flags, mode);
}

EXPORT int
openat(int dir, const char *path, int flags, ...)
{
	va_list ap;
	int mode;

	va_start(ap, flags);
	mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(ap, int) : 0;
	va_end(ap);
	return fails(CALLER, FILES) ? refused(EMFILE) : NEXT(openat)(dir, path, flags, mode);
}

EXPORT FILE *
fopen(const char *path, const char *how)
{
	return fails(CALLER, FILES) ? none(EMFILE) : NEXT(fopen)(path, how);
}

EXPORT FILE *
fdopen(int fd, const char *how)
{
	return fails(CALLER, FILES) ? none(ENOMEM) : NEXT(fdopen)(fd, how);
}

EXPORT FILE *
open_memstream(char **text, size_t *n)
{
	return fails(CALLER, FILES) ? none(ENOMEM) : NEXT(open_memstream)(text, n);
}

EXPORT DIR *
opendir(const char *path)
{
	return fails(CALLER, FILES) ? none(EMFILE) : NEXT(opendir)(path);
}

EXPORT int
stat(const char *path, struct stat *st)
{
	return fails(CALLER, FILES) ? refused(ENOMEM) : NEXT(stat)(path, st);
}

EXPORT int
lstat(const char *path, struct stat *st)
{
	return fails(CALLER, FILES) ? refused(ENOMEM) : NEXT(lstat)(path, st);
}

EXPORT int
fstat(int fd, struct stat *st)
{
	return fails(CALLER, FILES) ? refused(ENOMEM) : NEXT(fstat)(fd, st);
}

EXPORT int
fstatat(int dir, const char *path, struct stat *st, int flags)
{
	return fails(CALLER, FILES) ? refused(ENOMEM) : NEXT(fstatat)(dir, path, st, flags);
}

EXPORT int
fstatfs(int fd, struct statfs *st)
{
	return fails(CALLER, FILES) ? refused(ENOMEM) : NEXT(fstatfs)(fd, st);
}

/* Of an eventfd it does not fail. */
EXPORT ssize_t
read(int fd, void *to, size_t n)
{
	return fails(CALLER, FILES) && is_file(fd) ? refused(ENOMEM) : NEXT(read)(fd, to, n);
}

EXPORT ssize_t
write(int fd, const void *from, size_t n)
{
	return fails(CALLER, FILES) && is_file(fd) ? refused(ENOSPC) : NEXT(write)(fd, from, n);
}

EXPORT int
rename(const char *from, const char *to)
{
	return fails(CALLER, FILES) ? refused(ENOSPC) : NEXT(rename)(from, to);
}

EXPORT int
fchmod(int fd, mode_t mode)
{
	return fails(CALLER, FILES) ? refused(ENOMEM) : NEXT(fchmod)(fd, mode);
}

EXPORT ssize_t
readlink(const char *path, char *to, size_t n)
{
	return fails(CALLER, FILES) ? refused(ENOMEM) : NEXT(readlink)(path, to, n);
}

/* Before the kernel has collected enough. */
EXPORT ssize_t
getrandom(void *to, size_t n, unsigned int flags)
{
	return fails(CALLER, FILES) ? refused(EAGAIN) : NEXT(getrandom)(to, n, flags);
}

/* ---- sockets and waits ----------------------------------------------------------------------- */

EXPORT int
socket(int domain, int type, int protocol)
{
	return fails(CALLER, SOCKET) ? refused(EMFILE) : NEXT(socket)(domain, type, protocol);
}

EXPORT int
setsockopt(int fd, int level, int name, const void *value, socklen_t n)
{
	return fails(CALLER, SOCKET) ? refused(ENOMEM)
				     : NEXT(setsockopt)(fd, level, name, value, n);
}

EXPORT int
getsockopt(int fd, int level, int name, void *value, socklen_t *n)
{
	return fails(CALLER, SOCKET) ? refused(ENOBUFS)
				     : NEXT(getsockopt)(fd, level, name, value, n);
}

EXPORT ssize_t
recv(int fd, void *to, size_t n, int flags)
{
	return fails(CALLER, SOCKET) ? refused(ENOMEM) : NEXT(recv)(fd, to, n, flags);
}

EXPORT int
ioctl(int fd, unsigned long what, ...)
{
	va_list ap;
	void *arg;

	va_start(ap, what);
	arg = va_arg(ap, void *);
	va_end(ap);
	return fails(CALLER, SOCKET) ? refused(ENOMEM) : NEXT(ioctl)(fd, what, arg);
}

/* A debugger came, or the process was stopped and goes on. */
EXPORT int
poll(struct pollfd *fds, nfds_t n, int ms)
{
	return fails(CALLER, SOCKET) ? refused(EINTR) : NEXT(poll)(fds, n, ms);
}

EXPORT int
epoll_wait(int set, struct epoll_event *out, int n, int ms)
{
	return fails(CALLER, SOCKET) ? refused(EINTR) : NEXT(epoll_wait)(set, out, n, ms);
}

/* ---- ports and packets ----------------------------------------------------------------------- */

EXPORT struct rte_mbuf *
rte_pktmbuf_copy(const struct rte_mbuf *m, struct rte_mempool *pool, uint32_t from, uint32_t n)
{
	return fails(CALLER, PORTS) ? NULL : NEXT(rte_pktmbuf_copy)(m, pool, from, n);
}

EXPORT int
rte_eth_dev_set_mc_addr_list(uint16_t port, struct rte_ether_addr *list, uint32_t n)
{
	return fails(CALLER, PORTS) ? -ENOSPC : NEXT(rte_eth_dev_set_mc_addr_list)(port, list, n);
}

EXPORT int
rte_eth_stats_get(uint16_t port, struct rte_eth_stats *out)
{
	return fails(CALLER, PORTS) ? -EIO : NEXT(rte_eth_stats_get)(port, out);
}

EXPORT int
rte_eth_link_get_nowait(uint16_t port, struct rte_eth_link *out)
{
	return fails(CALLER, PORTS) ? -EIO : NEXT(rte_eth_link_get_nowait)(port, out);
}

EXPORT int
rte_eth_dev_info_get(uint16_t port, struct rte_eth_dev_info *out)
{
	return fails(CALLER, PORTS) ? -EIO : NEXT(rte_eth_dev_info_get)(port, out);
}
