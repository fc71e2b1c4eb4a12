/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mmap(MAP_SHARED): a region of it is registered by its file, and the kernel tells what file it is
 * to CAP_SYS_ADMIN alone. So the file is kept for as long as it is mapped, and anonymous memory has
 * one, a memfd. A file of the program's is kept in a message that waits at a socket, not as a
 * descriptor: to close any of a file gives up the record locks (fcntl) that the process has on it.
 * A user may have as many descriptors in messages, those of all programs together, as a process may
 * have at all. So of these there are few, and none that the program is short of.
 * Private mappings cost a comparison. What is not seen here, as a system call of the program's own,
 * or is too much, is as it would be without this.
 */
#undef _FILE_OFFSET_BITS /* mmap() is mmap(), and mmap64() a function of its own */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include "fds.h"
#include "huge.h"
#include "kept.h"
#include "next.h"
#include "wiped.h"

#define MOST       64                /* mappings */
#define PAGE       ((uintptr_t)4096) /* x86-64 */
#define PART       16                /* of what a process may have: descriptors here */
#define PART_FILES 64                /* ... in messages */
#define PAUSE_NS   20000
#define LOOKED_AT  ((size_t)64 << 20) /* bytes: nobody has less */

struct kept {
	uintptr_t at;
	size_t len;
	size_t left; /* bytes that are still mapped; 0: a free place */
	uint64_t inode;
	dev_t dev;
	int holder; /* the memfd; of a file of the program's the socket at which it waits */
	bool waits;
	dev_t holder_dev; /* the program may have closed it, and have another file there */
	ino_t holder_inode;
};

static struct kept kept[MOST];
static _Atomic int kept_n; /* or more */

/* ---- the lock: also for handlers of signals, which hence wait until it is free --------------- */

/*
 * On a page of its own, which the kernel clears in the child of fork(), however that was called:
 * who has the lock in the parent is not there. What it was about to change is there as it was, or
 * `left` says that it is not there. No handler of pthread_atfork() holds the lock meanwhile, for
 * another one may wait for a thread that waits for it. NULL: nothing was kept.
 */
static atomic_flag *_Atomic locked;

static bool
lock_is_there(void)
{
	atomic_flag *none = NULL;
	void *page;

	if (atomic_load(&locked) != NULL)
		return true;
	page = wiped_page();
	if (page == NULL)
		return false;
	if (atomic_compare_exchange_strong(&locked, &none, page))
		return true;
	NEXT(munmap)(page, WIPED_PAGE);
	return none != NULL;
}

static sigset_t
lock(void)
{
	const struct timespec pause = { .tv_nsec = PAUSE_NS };
	sigset_t all, before;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	/* Not sched_yield(): who has it may be of a lower priority. */
	while (atomic_flag_test_and_set_explicit(atomic_load(&locked), memory_order_acquire))
		syscall(SYS_nanosleep, &pause, NULL);
	return before;
}

static void
unlock(sigset_t before)
{
	atomic_flag_clear_explicit(atomic_load(&locked), memory_order_release);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* ---- a descriptor in a message, by calls in which no thread is cancelled --------------------- */

union one_fd {
	struct cmsghdr head;
	char room[CMSG_SPACE(sizeof(int))];
};

static bool
put_fd(int socket, int fd)
{
	union one_fd c = { .head = { .cmsg_len = CMSG_LEN(sizeof(int)),
				   .cmsg_level = SOL_SOCKET,
				   .cmsg_type = SCM_RIGHTS } };
	struct iovec byte = { .iov_base = "", .iov_len = 1 };
	struct msghdr m = {
		.msg_iov = &byte, .msg_iovlen = 1, .msg_control = &c, .msg_controllen = sizeof(c)
	};

	memcpy(CMSG_DATA(&c.head), &fd, sizeof(fd));
	return syscall(SYS_sendmsg, socket, &m, MSG_NOSIGNAL) == 1;
}

/* A new descriptor; the message stays. */
static int
look_fd(int socket)
{
	union one_fd c = { .head = { 0 } };
	char got;
	struct iovec byte = { .iov_base = &got, .iov_len = 1 };
	struct msghdr m = {
		.msg_iov = &byte, .msg_iovlen = 1, .msg_control = &c, .msg_controllen = sizeof(c)
	};
	int fd;

	if (syscall(SYS_recvmsg, socket, &m, MSG_PEEK | MSG_DONTWAIT | MSG_CMSG_CLOEXEC) != 1 ||
		m.msg_controllen < CMSG_LEN(sizeof(int)) || c.head.cmsg_type != SCM_RIGHTS)
		return -1;
	memcpy(&fd, CMSG_DATA(&c.head), sizeof(fd));
	return fd;
}

/* Out of the way of programs that count on small numbers. @return a new descriptor; -1. */
static int
copy_up(int fd, const struct rlimit *most)
{
	return fcntl(
		fd, F_DUPFD_CLOEXEC, (int)(most->rlim_cur / 2 < 512 ? most->rlim_cur / 2 : 512));
}

/* @return a socket at which the descriptor waits; -1. */
static int
socket_with(int fd, const struct rlimit *most)
{
	int ends[2], up;

	if (socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, ends) != 0)
		return -1;
	up = put_fd(ends[1], fd) ? copy_up(ends[0], most) : -1;
	syscall(SYS_close, ends[0]);
	syscall(SYS_close, ends[1]);
	return up;
}

/* ---- the table ------------------------------------------------------------------------------- */

static bool
is_there(const struct kept *k)
{
	struct stat st;

	return fstat(k->holder, &st) == 0 && st.st_dev == k->holder_dev &&
	       st.st_ino == k->holder_inode;
}

/* So much of it is no longer mapped. The lock is held. */
static void
drop(struct kept *k, size_t len)
{
	k->left -= len < k->left ? len : k->left;
	if (k->left != 0)
		return;
	if (is_there(k))
		syscall(SYS_close, k->holder);
	atomic_fetch_sub(&kept_n, 1);
}

static size_t
shared_bytes(const struct kept *k, uintptr_t at, uintptr_t end)
{
	const uintptr_t from = at > k->at ? at : k->at;
	const uintptr_t to = end < k->at + k->len ? end : k->at + k->len;

	return k->left != 0 && from < to ? to - from : 0;
}

/* Of a range, whatever the table has of it: it is no longer mapped. The lock is held. */
static void
drop_range(uintptr_t at, uintptr_t end)
{
	for (struct kept *k = kept; k != &kept[MOST]; k++) {
		const size_t n = shared_bytes(k, at, end);

		if (n != 0)
			drop(k, n);
	}
}

/*
 * What was unmapped by a system call of the program's own: what was where a new mapping has come to
 * be, and one is looked at in turn. Of one of which a part was unmapped that cannot be told.
 */
static void
drop_unseen(uintptr_t at, uintptr_t end)
{
	static uint32_t turn;
	struct kept *one = &kept[turn++ % MOST];

	for (uint32_t i = 0; i < MOST && one->left == 0; i++)
		one = &kept[turn++ % MOST];
	for (struct kept *k = kept; k != &kept[MOST]; k++) {
		if (k->left == k->len && k->left != 0 && shared_bytes(k, at, end) != 0)
			drop(k, k->left);
	}
	if (one->left == one->len && one->left != 0 &&
		msync((void *)one->at, one->len, MS_ASYNC) != 0 && errno == ENOMEM)
		drop(one, one->left);
}

/* A place, if another descriptor is none too many. @param waits in a message. The lock is held. */
static struct kept *
free_place(bool waits, const struct rlimit *most)
{
	struct kept *place = NULL;
	rlim_t n = 0, in_messages = 0;

	for (struct kept *k = kept; k != &kept[MOST]; k++) {
		if (k->left == 0) {
			place = k;
			continue;
		}
		n++;
		in_messages += k->waits;
	}
	if (n >= most->rlim_cur / PART || (waits && in_messages >= most->rlim_cur / PART_FILES))
		return NULL;
	return place;
}

/* @param own the memfd is of this file's making. */
static void
keep(const void *at, size_t len, int fd, bool own)
{
	struct rlimit most;
	struct stat st, holder;
	struct kept *k;
	sigset_t before;
	int up = -1;

	if (!lock_is_there() || fstat(fd, &st) != 0 || getrlimit(RLIMIT_NOFILE, &most) != 0)
		return;
	before = lock();
	drop_unseen((uintptr_t)at, (uintptr_t)at + len);
	k = free_place(!own, &most);
	if (k != NULL)
		up = own ? copy_up(fd, &most) : socket_with(fd, &most);
	if (up >= 0 && fstat(up, &holder) == 0) {
		*k = (struct kept){ .at = (uintptr_t)at,
			.len = len,
			.dev = st.st_dev,
			.inode = st.st_ino,
			.holder = up,
			.waits = !own,
			.holder_dev = holder.st_dev,
			.holder_inode = holder.st_ino };
		atomic_fetch_add(&kept_n, 1);
		k->left = len; /* last: see lock_is_there() */
	}
	unlock(before);
}

/* [at, at + len) is about to be unmapped, or to be another mapping. */
static void
forget(const void *addr, size_t len)
{
	const uintptr_t page = PAGE - 1, at = (uintptr_t)addr;
	const int err = errno;
	sigset_t before;

	if (__builtin_expect(atomic_load_explicit(&kept_n, memory_order_relaxed) == 0, 1))
		return;
	before = lock();
	drop_range(at, (at + len + page) & ~page);
	unlock(before);
	errno = err;
}

/*
 * A mapping has moved as a whole, or has become longer; a part of one is forgotten. The lock is
 * held.
 */
static void
follow(const void *old, size_t old_len, const void *now, size_t len)
{
	for (struct kept *k = kept; k != &kept[MOST]; k++) {
		const size_t n = shared_bytes(k, (uintptr_t)old, (uintptr_t)old + old_len);

		if (n == k->len && n == k->left && n != 0) {
			k->at = (uintptr_t)now;
			k->len = k->left = len;
		} else if (n != 0) {
			drop(k, n);
		}
	}
}

EXPORT int
vl_kept_fd(unsigned int major_of, unsigned int minor_of, uint64_t inode)
{
	const dev_t dev = makedev(major_of, minor_of);
	sigset_t before;
	int fd = -1;

	if (atomic_load(&locked) == NULL)
		return -1;
	before = lock();
	for (const struct kept *k = kept; k != &kept[MOST] && fd < 0; k++) {
		if (k->left != 0 && k->dev == dev && k->inode == inode && is_there(k))
			fd = k->waits ? look_fd(k->holder) : fcntl(k->holder, F_DUPFD_CLOEXEC, 0);
	}
	unlock(before);
	return fd;
}

/* ---- libc's functions ------------------------------------------------------------------------ */

/* The kernel refuses anonymous memory of which there is not so much; of a file it says nothing. */
static bool
is_there_so_much(size_t len)
{
	struct sysinfo s;

	return len < LOOKED_AT ||
	       (sysinfo(&s) == 0 && len / s.mem_unit < (size_t)s.totalram + s.totalswap);
}

/* @return -1: none, and the kernel says what is wrong with the mapping, if anything is. */
static int
anonymous_file(size_t len, off_t offset)
{
	int fd;

	if (len == 0 || (offset & (off_t)(PAGE - 1)) != 0 || !is_there_so_much(len))
		return -1;
	fd = memfd_create("shared", MFD_CLOEXEC);
	if (fd < 0 || fds_set_length(fd, len) == 0)
		return fd;
	syscall(SYS_close, fd);
	return -1;
}

/* Of files that stay, names are enough. What librocelane maps itself is sealed. */
static bool
may_be_lost(int fd)
{
	const int flags = fcntl(fd, F_GETFL);
	struct statfs fs;

	return flags >= 0 && (flags & O_ACCMODE) == O_RDWR && fstatfs(fd, &fs) == 0 &&
	       (fs.f_type == TMPFS_MAGIC || fs.f_type == HUGETLBFS_MAGIC) &&
	       (fcntl(fd, F_GET_SEALS) & F_SEAL_SHRINK) == 0;
}

typedef void *mmap_function(void *, size_t, int, int, int, off_t);

static void *
map_shared(mmap_function *real, void *at, size_t len, int prot, int flags, int fd, off_t offset)
{
	const bool anonymous = (flags & MAP_ANONYMOUS) != 0;
	const int err = errno, file = anonymous ? anonymous_file(len, offset) : -1;
	void *got = MAP_FAILED;

	if (file >= 0)
		got = real(at, len, prot, flags & ~MAP_ANONYMOUS, file, 0);
	else if (!anonymous && may_be_lost(fd))
		got = real(at, len, prot, flags, fd, offset);
	if (got != MAP_FAILED)
		keep(got, len, anonymous ? file : fd, anonymous);
	if (file >= 0)
		syscall(SYS_close, file);
	errno = err;
	return got != MAP_FAILED ? got : real(at, len, prot, flags, fd, offset);
}

#define MMAP(name)                                                                             \
	EXPORT void *name(void *at, size_t len, int prot, int flags, int fd, off_t offset)     \
	{                                                                                      \
		if (__builtin_expect((flags & MAP_HUGETLB) != 0, 0) && vl_huge_refused(flags)) \
			return MAP_FAILED;                                                     \
		if ((flags & MAP_FIXED) != 0)                                                  \
			forget(at, len);                                                       \
		if (__builtin_expect((flags & (MAP_TYPE | MAP_HUGETLB)) != MAP_SHARED, 1))     \
			return NEXT(name)(at, len, prot, flags, fd, offset);                   \
		return map_shared(NEXT(name), at, len, prot, flags, fd, offset);               \
	}

MMAP(mmap)
MMAP(mmap64)

EXPORT int
munmap(void *at, size_t len)
{
	forget(at, len);
	return NEXT(munmap)(at, len);
}

EXPORT void *
mremap(void *at, size_t old_len, size_t len, int flags, ...)
{
	void *to, *got;
	sigset_t before;
	va_list ap;
	int err;

	va_start(ap, flags);
	to = va_arg(ap, void *);
	va_end(ap);
	if ((flags & MREMAP_FIXED) != 0)
		forget(to, len);
	if (__builtin_expect(atomic_load_explicit(&kept_n, memory_order_relaxed) == 0, 1))
		return NEXT(mremap)(at, old_len, len, flags, to);
	before = lock(); /* or somebody else would map something where it was */
	got = NEXT(mremap)(at, old_len, len, flags, to);
	err = errno;
	if (got != MAP_FAILED)
		follow(at, old_len, got, len);
	unlock(before);
	errno = err;
	return got;
}
