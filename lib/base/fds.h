/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef FDS_H
#define FDS_H
/**
 * @file fds.h  Descriptors: those that come over a Unix socket, the three of every program, and
 *              eventfds that count events.
 *
 * Owner:   any thread.
 * Memory:  the caller's.
 * Depends: nothing.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

/**
 * Call it first in main(): it opens 0, 1 and 2 where they are closed. Otherwise the next socket or
 * device would get one of these numbers, and messages would be written into it. What it opens
 * cannot be used in the usual direction, so that the program still gets its errors.
 */
static inline void
fds_standard(void)
{
	for (int fd = 0; fd <= 2; fd++) {
		if (fcntl(fd, F_GETFD) < 0 &&
			open("/dev/null", fd == STDOUT_FILENO ? O_RDONLY : O_WRONLY) != fd)
			return;
	}
}

/**
 * Would a short write wait longer than that? A pipe that nobody empties, a terminal that was
 * stopped. Files are always ready; an error is the write's to tell.
 */
static inline bool
fds_would_wait(int fd, int ms)
{
	struct pollfd p = { .fd = fd, .events = POLLOUT };

	return poll(&p, 1, ms) == 0;
}

/**
 * ftruncate(), in a program of somebody else's: that one sends SIGXFSZ, of which the process ends,
 * where RLIMIT_FSIZE allows no file of this length. @return -1 and EFBIG instead.
 */
static inline int
fds_set_length(int fd, uint64_t len)
{
	struct rlimit most;

	if (getrlimit(RLIMIT_FSIZE, &most) == 0 && most.rlim_cur < len) {
		errno = EFBIG;
		return -1;
	}
	return ftruncate(fd, (off_t)len);
}

/**
 * Append the descriptors of a received message to the `n` in `fds`.
 * @param most  room of `fds`; descriptors beyond it are closed.
 * @return how many are in `fds` now.
 */
static inline uint32_t
fds_keep(struct msghdr *msg, int *fds, uint32_t n, uint32_t most)
{
	for (struct cmsghdr *h = CMSG_FIRSTHDR(msg); h != NULL; h = CMSG_NXTHDR(msg, h)) {
		const uint8_t *data = CMSG_DATA(h);
		size_t left = h->cmsg_len - CMSG_LEN(0);

		if (h->cmsg_level != SOL_SOCKET || h->cmsg_type != SCM_RIGHTS)
			continue;
		for (; left >= sizeof(int); left -= sizeof(int), data += sizeof(int)) {
			int fd;

			memcpy(&fd, data, sizeof(fd));
			if (n < most)
				fds[n++] = fd;
			else
				close(fd);
		}
	}
	return n;
}

/** @return the process that sent it, as the kernel says with SO_PASSCRED; 0: not known. */
static inline pid_t
fds_sender(struct msghdr *msg)
{
	struct ucred sender = { 0 };

	for (struct cmsghdr *h = CMSG_FIRSTHDR(msg); h != NULL; h = CMSG_NXTHDR(msg, h)) {
		if (h->cmsg_level == SOL_SOCKET && h->cmsg_type == SCM_CREDENTIALS &&
			h->cmsg_len == CMSG_LEN(sizeof(sender)))
			memcpy(&sender, CMSG_DATA(h), sizeof(sender));
	}
	return sender.pid;
}

/** Take the oldest of the `n` in `fds`. @return the descriptor, now the caller's; -1: none. */
static inline int
fds_take(int *fds, uint32_t *n)
{
	int fd = -1;

	if (*n != 0) {
		fd = fds[0];
		--*n;
		memmove(fds, fds + 1, *n * sizeof(fds[0]));
	}
	return fd;
}

/**
 * Take one of the events that an eventfd (EFD_SEMAPHORE) has counted. Never waits, whatever flags
 * the open file has, which others may share. @return false with errno: EAGAIN: there is none.
 */
static inline bool
fds_take_event(int fd)
{
	uint64_t one;
	const struct iovec to = { .iov_base = &one, .iov_len = sizeof(one) };

	return preadv2(fd, &to, 1, -1, RWF_NOWAIT) == (ssize_t)sizeof(one);
}

/** `n` of them are gone unseen: take them off, as far as nobody has done so. */
static inline void
fds_uncount(int fd, uint32_t n)
{
	while (n-- != 0 && fds_take_event(fd))
		;
}

#endif
