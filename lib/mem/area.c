/* SPDX-License-Identifier: BSD-3-Clause */
#include "mem_guard.h"
#include "meminfo.h"
#include "invariant.h"

#include <errno.h>
#include <fcntl.h>
#include <numa.h>
#include <numaif.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Whoever else changes mappings waits for a piece, not for all. */
#define UNMAP_PIECE    ((size_t)8 << 20)
#define POPULATE_PIECE ((size_t)4 << 20)
#define HUGE_PAGE      (2u << 20)
#define MEMFD_HUGE_2M  (MFD_HUGETLB | 21u << 26) /* log2 of the page size from bit 26 on */

size_t
mem_available_bytes(void)
{
	return meminfo_available();
}

/* Prefer `node` for pages not yet there. @return the node, or -1 when it cannot be done. */
static int
bind_node(void *base, size_t len, int node)
{
	struct bitmask *mask;
	long rc;

	if (node < 0 || numa_available() < 0 || node > numa_max_node())
		return -1;
	mask = numa_allocate_nodemask();
	if (mask == NULL)
		return -1;
	numa_bitmask_setbit(mask, (unsigned int)node);
	rc = mbind(base, len, MPOL_PREFERRED, mask->maskp, mask->size + 1, 0);
	numa_free_nodemask(mask);
	return rc == 0 ? node : -1;
}

static const _Atomic bool *stop_flag;

void
mem_stop_by(const _Atomic bool *stop)
{
	stop_flag = stop;
}

bool
mem_is_stopped(void)
{
	return stop_flag != NULL && atomic_load_explicit(stop_flag, memory_order_relaxed);
}

/* A signal takes back all that a call of fallocate() has made: so a piece is not much to lose. */
static int
allocate(int fd, size_t at, size_t len)
{
	while (fallocate(fd, 0, (off_t)at, (off_t)len) != 0) {
		if (errno == EOPNOTSUPP)
			break;
		if (errno != EINTR)
			return errno == ENOSPC ? -ENOMEM : -errno;
	}
	return 0;
}

/* @return 0, also before Linux 5.14. */
static int
map_pages(void *from, size_t len)
{
#ifdef MADV_POPULATE_WRITE
	while (madvise(from, len, MADV_POPULATE_WRITE) != 0) {
		if (errno == EINVAL)
			break;
		if (errno != EINTR)
			return -errno;
	}
#else
	(void)from;
	(void)len;
#endif
	return 0;
}

/* Allocate every page now: a page that is missing later would be a SIGBUS on a worker. */
static int
populate(int fd, uint8_t *base, size_t len)
{
	int rc = 0;

	for (size_t at = 0; at < len && rc == 0; at += POPULATE_PIECE) {
		const size_t n = POPULATE_PIECE < len - at ? POPULATE_PIECE : len - at;

		rc = mem_is_stopped() ? -ECANCELED : allocate(fd, at, n);
		if (rc == 0)
			rc = map_pages(base + at, n);
	}
	return rc;
}

static int
create(struct mem_area *a, size_t len, size_t page_size, int node, unsigned int fd_flags, bool open)
{
	const int seals = F_SEAL_SHRINK | F_SEAL_GROW | (open ? 0 : F_SEAL_SEAL);
	size_t bytes = (len + page_size - 1) / page_size * page_size;
	int fd, rc;
	void *base;

	if (bytes < len || bytes > INT64_MAX)
		return -EINVAL;
	fd = memfd_create("rocelane", MFD_CLOEXEC | MFD_ALLOW_SEALING | fd_flags);
	if (fd < 0)
		return -errno;
	if (ftruncate(fd, (off_t)bytes) != 0) {
		rc = -errno;
		goto close_fd;
	}
	/* A client that gets the descriptor can neither shrink the file nor remove the seals. */
	if (fcntl(fd, F_ADD_SEALS, seals) != 0) {
		rc = -errno;
		goto close_fd;
	}
	base = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (base == MAP_FAILED) {
		rc = -errno;
		goto close_fd;
	}
	node = bind_node(base, bytes, node);
	rc = populate(fd, base, bytes);
	if (rc != 0)
		goto unmap;

	*a = (struct mem_area){
		.base = base, .len = bytes, .page_size = page_size, .fd = fd, .node = node
	};
	ASSERT(a->len >= len && a->len % a->page_size == 0);
	return 0;

unmap:
	munmap(base, bytes);
close_fd:
	close(fd);
	return rc;
}

/* Pages are large where the system has such pages to spare. */
static int
create_private(struct mem_area *a, size_t len, int node)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE), bytes = (len + page - 1) / page * page;
	void *base;

	if (bytes < len)
		return -EINVAL;
	base = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (base == MAP_FAILED)
		return -errno;
	node = bind_node(base, bytes, node);
	(void)!madvise(base, bytes, MADV_HUGEPAGE);
	memset(base, 0, bytes); /* every page now */
	*a = (struct mem_area){
		.base = base, .len = bytes, .page_size = page, .fd = -1, .node = node
	};
	return 0;
}

int
mem_area_create(struct mem_area *a, size_t len, int node, unsigned int flags)
{
	const bool open = (flags & MEM_AREA_OPEN) != 0;

	*a = (struct mem_area){ .fd = -1, .node = -1 };
	if (len == 0)
		return -EINVAL;
	if ((flags & MEM_AREA_PRIVATE) != 0)
		return len > mem_available_bytes() ? -ENOMEM : create_private(a, len, node);
	if ((flags & MEM_AREA_HUGE) != 0 &&
		create(a, len, HUGE_PAGE, node, MEMFD_HUGE_2M, open) == 0)
		return 0;
	/* All of it is taken at once, below: better refused here than killed there. */
	if (len > mem_available_bytes())
		return -ENOMEM;
	return create(a, len, (size_t)sysconf(_SC_PAGESIZE), node, 0, open);
}

int
mem_area_seal(const struct mem_area *a, int fd)
{
	int rc = 0;

	/* EINVAL: a kernel before 5.1. */
	if (fcntl(fd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE) != 0 && errno != EINVAL)
		rc = -errno;
	if (rc == 0 && fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL) != 0)
		rc = -errno;
	if (rc == 0)
		rc = populate(fd, a->base, a->len);
	close(fd);
	return rc;
}

/* From the end: whoever else changes mappings waits for a piece, not for all of it. */
static void
unmap(const struct mem_area *a)
{
	const size_t piece = a->page_size > UNMAP_PIECE ? a->page_size : UNMAP_PIECE;
	size_t left = a->len;

	while (left != 0) {
		const size_t n = left % piece != 0 ? left % piece : piece;

		left -= n;
		munmap(a->base + left, n);
	}
}

void
mem_area_destroy(struct mem_area *a)
{
	if (a->base == NULL)
		return;
	ASSERT(a->len != 0 && (uintptr_t)a->base % a->page_size == 0);
	mem_guard_remove(a); /* before somebody else's is mapped there */
	unmap(a);
	if (a->fd >= 0)
		close(a->fd);
	*a = (struct mem_area){ .fd = -1, .node = -1 };
}
