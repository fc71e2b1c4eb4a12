/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory that a client made: taken only when it cannot be made smaller any more. */
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "mem.h"
#include "mem_guard.h"
#include "invariant.h"

#define PAGE_MAX ((size_t)1 << 30)

/* May this descriptor be mapped from `offset` on for `len` bytes, for ever? */
static int
check(int fd, uint64_t offset, uint64_t len, struct stat *st)
{
	const int seals = fcntl(fd, F_GET_SEALS);

	if (seals < 0 || fstat(fd, st) != 0 || !S_ISREG(st->st_mode))
		return -EBADF;
	if ((seals & F_SEAL_SHRINK) == 0)
		return -EPERM;
	if (len == 0 || offset > (uint64_t)st->st_size || len > (uint64_t)st->st_size - offset)
		return -ERANGE;
	return 0;
}

/*
 * Allocate every page now: a failure is reported here, and no worker waits for a page later.
 * Blocks of the file that are allocated already do not count against available memory.
 */
static int
populate(void *base, size_t len, const struct stat *st)
{
	const uint64_t there = (uint64_t)st->st_blocks * 512;

	if (len > there && len - there > mem_available_bytes())
		return -ENOMEM;
#ifdef MADV_POPULATE_WRITE
	if (madvise(base, len, MADV_POPULATE_WRITE) != 0 && errno != EINVAL)
		return errno == EFAULT ? -ENOMEM : -errno;
#endif
	return 0;
}

int
mem_area_adopt(struct mem_area *a, int fd, uint64_t offset, uint64_t len, uint8_t **host)
{
	struct stat st;
	uint64_t from, bytes;
	size_t page;
	void *base;
	int rc = check(fd, offset, len, &st);

	*a = (struct mem_area){ .fd = -1, .node = -1 };
	if (rc != 0)
		return rc;
	page = (size_t)st.st_blksize;
	if (page == 0 || page > PAGE_MAX || (page & (page - 1)) != 0)
		return -EBADF;
	from = offset & ~(uint64_t)(page - 1);
	bytes = (offset + len - from + page - 1) & ~(uint64_t)(page - 1);
	if (bytes < len || bytes > SIZE_MAX)
		return -ERANGE;
	base = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)from);
	if (base == MAP_FAILED)
		return errno == ENOMEM ? -ENOMEM : -EACCES;
	*a = (struct mem_area){
		.base = base, .len = bytes, .page_size = page, .fd = -1, .node = -1
	};
	rc = populate(base, bytes, &st);
	if (rc == 0)
		rc = mem_guard_add(a);
	if (rc != 0) {
		mem_area_destroy(a);
		return rc;
	}
	ASSERT(offset - from + len <= a->len);
	*host = a->base + (offset - from);
	return 0;
}
