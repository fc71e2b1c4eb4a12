/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef URING_H
#define URING_H
/**
 * @file uring.h  An io_uring with fixed buffers, by its system calls.
 *
 * Owner:   one thread.
 * Memory:  the caller's, and two mappings of the ring.
 * Depends: Linux 5.4.
 */
#include <errno.h>
#include <linux/io_uring.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

struct uring {
	int fd;
	struct io_uring_params p;
	uint8_t *rings;
	struct io_uring_sqe *sqes;
};

/** @return 0; or -errno, as where containers or the administrator forbid it. */
static inline int
uring_open(struct uring *u)
{
	memset(u, 0, sizeof(*u));
	u->fd = (int)syscall(SYS_io_uring_setup, 4, &u->p);
	if (u->fd < 0)
		return -errno;
	u->rings = mmap(NULL, u->p.cq_off.cqes + u->p.cq_entries * sizeof(struct io_uring_cqe),
		PROT_READ | PROT_WRITE, MAP_SHARED, u->fd, IORING_OFF_SQ_RING);
	u->sqes = mmap(NULL, u->p.sq_entries * sizeof(struct io_uring_sqe), PROT_READ | PROT_WRITE,
		MAP_SHARED, u->fd, IORING_OFF_SQES);
	return u->rings == MAP_FAILED || u->sqes == MAP_FAILED ? -errno : 0;
}

/** Buffer 0 of the ring. @return 0, or -errno. */
static inline int
uring_fix(const struct uring *u, void *at, size_t len)
{
	const struct iovec one = { .iov_base = at, .iov_len = len };

	return syscall(SYS_io_uring_register, u->fd, IORING_REGISTER_BUFFERS, &one, 1) == 0
		       ? 0
		       : -errno;
}

/** The ring has no buffers any more. @return 0, or -errno. */
static inline int
uring_unfix(const struct uring *u)
{
	return syscall(SYS_io_uring_register, u->fd, IORING_UNREGISTER_BUFFERS, NULL, 0) == 0
		       ? 0
		       : -errno;
}

/** One request, and what became of it. @return its result, or -errno. */
static inline int
uring_do(const struct uring *u, const struct io_uring_sqe *e)
{
	uint32_t *tail = (uint32_t *)(void *)(u->rings + u->p.sq_off.tail);
	uint32_t *array = (uint32_t *)(void *)(u->rings + u->p.sq_off.array);
	uint32_t *head = (uint32_t *)(void *)(u->rings + u->p.cq_off.head);
	const struct io_uring_cqe *cqes = (const void *)(u->rings + u->p.cq_off.cqes);
	const uint32_t slot = *tail % u->p.sq_entries;
	int done;

	u->sqes[slot] = *e;
	array[slot] = slot;
	__atomic_store_n(tail, *tail + 1, __ATOMIC_RELEASE);
	if (syscall(SYS_io_uring_enter, u->fd, 1, 1, IORING_ENTER_GETEVENTS, NULL, 0) != 1)
		return -errno;
	done = cqes[*head % u->p.cq_entries].res;
	__atomic_store_n(head, *head + 1, __ATOMIC_RELEASE);
	return done;
}

/** From the begin of a file into buffer 0. @return bytes, or -errno. */
static inline int
uring_read_fixed(const struct uring *u, int file, void *at, uint32_t len)
{
	const struct io_uring_sqe e = {
		.opcode = IORING_OP_READ_FIXED, .fd = file, .addr = (uintptr_t)at, .len = len
	};

	return uring_do(u, &e);
}

/** Nothing. @return 0, or -errno. */
static inline int
uring_nop(const struct uring *u)
{
	const struct io_uring_sqe e = { .opcode = IORING_OP_NOP };

	return uring_do(u, &e);
}

/** Its descriptor goes, its mappings stay. */
static inline void
uring_close(struct uring *u)
{
	close(u->fd);
}

#endif
