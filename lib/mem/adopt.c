/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory that a client made: taken only when it cannot be made smaller any more; or adopted. */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include <stdatomic.h>
#include <unistd.h>

#include "mem.h"
#include "mem_guard.h"
#include "invariant.h"

#define PAGE_MAX ((size_t)1 << 30)
/* Page tables of so many bytes at a time: whoever else changes mappings waits for no more. */
#define PIECE ((size_t)4 << 20)

/* May this descriptor be mapped from `offset` on for `len` bytes, with these seals? */
static int
check(int fd, int seal, uint64_t offset, uint64_t len, struct stat *st)
{
	const int seals = fcntl(fd, F_GET_SEALS);

	if (seals < 0 || fstat(fd, st) != 0 || !S_ISREG(st->st_mode))
		return -EBADF;
	if ((seals & seal) != seal)
		return -EPERM;
	if (len == 0 || offset > (uint64_t)st->st_size || len > (uint64_t)st->st_size - offset)
		return -ERANGE;
	return 0;
}

/* For a kernel before 5.14: make each page writable here, and change nothing in it. */
static void
touch(uint8_t *base, size_t len, size_t page)
{
	for (size_t at = 0; at < len; at += page)
		atomic_fetch_or_explicit((_Atomic uint8_t *)(base + at), 0, memory_order_relaxed);
}

/* Every page now: a failure is reported here, and no worker waits for a page later. */
static int
populate(uint8_t *base, size_t len, size_t page)
{
	for (size_t at = 0; at < len;) {
		size_t n = page > PIECE ? page : PIECE;
		int rc = -1;

		n = n < len - at ? n : len - at;
		errno = EINVAL;
#ifdef MADV_POPULATE_WRITE
		rc = madvise(base + at, n, MADV_POPULATE_WRITE);
#endif
		if (rc != 0 && errno == EINTR)
			continue;
		if (rc != 0 && errno != EINVAL)
			return errno == EFAULT ? -ENOMEM : -errno;
		if (rc != 0)
			touch(base + at, n, page);
		/* A worker must not wait for swap, either; where we may not, it might. */
		(void)!mlock(base + at, n);
		at += n;
	}
	return 0;
}

/* Map [from, from + bytes), whole pages. */
static int
map(struct mem_area *a, int fd, uint64_t from, uint64_t bytes, size_t page)
{
	void *base = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)from);

	if (base == MAP_FAILED)
		return errno == ENOMEM ? -ENOMEM : -EACCES;
	*a = (struct mem_area){
		.base = base, .len = bytes, .page_size = page, .fd = -1, .node = -1
	};
	return 0;
}

/* A tmpfs that may give huge pages says so of each file, also of one that has none. */
static int
page_of(int fd, const struct stat *st, size_t *page)
{
	struct statfs fs;

	if (fstatfs(fd, &fs) != 0)
		return -EBADF;
	*page = fs.f_type == HUGETLBFS_MAGIC ? (size_t)st->st_blksize
					     : (size_t)sysconf(_SC_PAGESIZE);
	return *page == 0 || *page > PAGE_MAX || (*page & (*page - 1)) != 0 ? -EBADF : 0;
}

static int
fill_and_guard(struct mem_area *a)
{
	int rc = mem_guard_add(a);

	if (rc == 0)
		rc = populate(a->base, a->len, a->page_size);
	if (rc == 0 && mem_guard_is_hit(a))
		rc = -ENOMEM;
	if (rc != 0)
		mem_area_destroy(a);
	return rc;
}

static bool
has_holes(const struct stat *st)
{
	return (uint64_t)st->st_blocks * 512 < (uint64_t)st->st_size;
}

/*
 * From here on nobody can map it for writing or take a page out of it, and its size stays. Blocks
 * behind the end would be counted with the others: what truncates it to its size takes them away.
 */
static int
freeze(int fd, struct stat *st)
{
	const int want = F_SEAL_FUTURE_WRITE | F_SEAL_GROW;
	const off_t size = st->st_size;

	if (fcntl(fd, F_ADD_SEALS, want) != 0 || (fcntl(fd, F_GET_SEALS) & want) != want)
		return -EOPNOTSUPP;
	while (ftruncate(fd, size) != 0) {
		if (errno != EINTR)
			return -EOPNOTSUPP;
	}
	if (fstat(fd, st) != 0 || st->st_size != size)
		return -EBADF;
	return has_holes(st) ? -ENODATA : 0;
}

int
mem_area_take(struct mem_area *a, int fd, uint64_t size)
{
	struct stat st;
	uint64_t bytes;
	size_t page;
	int rc;

	*a = (struct mem_area){ .fd = -1, .node = -1 };
	rc = check(fd, F_SEAL_SHRINK, 0, 1, &st);
	/* Sealed, it gets no shorter any more: what the caller knows of it holds. */
	if (rc == 0 && (uint64_t)st.st_size != size)
		rc = -ERANGE;
	if (rc == 0)
		rc = page_of(fd, &st, &page);
	if (rc != 0)
		return rc;
	/* What is refused here was not changed. */
	if ((fcntl(fd, F_GET_SEALS) & F_SEAL_FUTURE_WRITE) != 0)
		return -EROFS;
	if ((fcntl(fd, F_GET_SEALS) & F_SEAL_SEAL) != 0)
		return -EOPNOTSUPP;
	if (has_holes(&st))
		return -ENODATA;
	bytes = ((uint64_t)st.st_size + page - 1) & ~(uint64_t)(page - 1);
	if (bytes > SIZE_MAX / 2)
		return -ERANGE;
	rc = map(a, fd, 0, bytes, page);
	if (rc != 0)
		return rc;
	rc = freeze(fd, &st);
	if (rc != 0) {
		mem_area_destroy(a);
		return rc;
	}
	return fill_and_guard(a);
}

/* As much is locked as we may: what is locked cannot be mapped again. Its pages might be swapped
 * then, as those of any other region. */
static void
unlock(const struct mem_area *a)
{
	for (size_t at = 0, n; at < a->len; at += n) {
		n = a->len - at < PIECE ? a->len - at : PIECE;
		munlock(a->base + at, n);
	}
}

/* From a length of 0 the kernel makes another mapping of the pages. @param to NULL: anywhere. */
static void *
another(const struct mem_area *of, void *at, size_t len, void *to)
{
	const int flags = MREMAP_MAYMOVE | (to != NULL ? MREMAP_FIXED : 0);
	void *base = mremap(at, 0, len, flags, to);

	if (base != MAP_FAILED || errno != EAGAIN)
		return base;
	unlock(of);
	return mremap(at, 0, len, flags, to);
}

int
mem_area_again(struct mem_area *a, const struct mem_area *taken)
{
	void *base = another(taken, taken->base, taken->len, NULL);

	*a = (struct mem_area){ .fd = -1, .node = -1 };
	if (base == MAP_FAILED)
		return errno == ENOMEM ? -ENOMEM : -EROFS;
	*a = (struct mem_area){
		.base = base, .len = taken->len, .page_size = taken->page_size, .fd = -1, .node = -1
	};
	return fill_and_guard(a);
}

/* @return 0, with the same pages at `to`, or -errno. */
static int
map_again(uint8_t *to, const struct mem_part *part)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);

	if (part->len == 0 || (part->len | (uintptr_t)part->at) % page != 0)
		return -EINVAL;
	if (another(part->area, part->at, part->len, to) == MAP_FAILED)
		return errno == ENOMEM ? -ENOMEM : -EROFS;
	return 0;
}

int
mem_area_join(struct mem_area *a, const struct mem_part *parts, uint32_t n)
{
	uint8_t *base;
	size_t len = 0;
	int rc = 0;

	*a = (struct mem_area){ .fd = -1, .node = -1 };
	for (uint32_t i = 0; i < n; i++) {
		if (parts[i].len > SIZE_MAX / 2 - len)
			return -EINVAL;
		len += parts[i].len;
	}
	base = mmap(NULL, len, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (base == MAP_FAILED)
		return -errno;
	for (size_t i = 0, at = 0; i < n && rc == 0; at += parts[i++].len)
		rc = map_again(base + at, &parts[i]);
	if (rc != 0) {
		munmap(base, len);
		return rc;
	}
	*a = (struct mem_area){ .base = base,
		.len = len,
		.page_size = (size_t)sysconf(_SC_PAGESIZE),
		.fd = -1,
		.node = -1 };
	return fill_and_guard(a);
}

/* Holes are filled at the dataplane's cost. */
static bool
has_room_for_holes(const struct stat *st, uint64_t bytes)
{
	const uint64_t there = (uint64_t)st->st_blocks * 512;

	return bytes <= there || bytes - there <= mem_available_bytes();
}

int
mem_area_adopt(struct mem_area *a, int fd, uint64_t offset, uint64_t len, uint8_t **host)
{
	struct stat st;
	uint64_t from, bytes;
	size_t page;
	int rc = check(fd, 0, offset, len, &st);

	*a = (struct mem_area){ .fd = -1, .node = -1 };
	if (rc == 0)
		rc = page_of(fd, &st, &page);
	if (rc != 0)
		return rc;
	from = offset & ~(uint64_t)(page - 1);
	bytes = (offset + len - from + page - 1) & ~(uint64_t)(page - 1);
	if (bytes < len || bytes > SIZE_MAX)
		return -ERANGE;
	if (!has_room_for_holes(&st, bytes))
		return -ENOMEM;
	rc = map(a, fd, from, bytes, page);
	if (rc == 0)
		rc = fill_and_guard(a);
	if (rc != 0)
		return rc;
	ASSERT(offset - from + len <= a->len);
	*host = a->base + (offset - from);
	return 0;
}

/* ---- one file behind the other --------------------------------------------------------------- */

/* From a multiple of `page` on. @return the begin, or NULL. */
static uint8_t *
reserve(size_t len, size_t page)
{
	const size_t more = page - (size_t)sysconf(_SC_PAGESIZE);
	uint8_t *at = mmap(
		NULL, len + more, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	size_t before;

	if (at == MAP_FAILED)
		return NULL;
	before = -(uintptr_t)at & (page - 1);
	if (before != 0)
		munmap(at, before);
	if (before != more)
		munmap(at + before + len, more - before);
	return at + before;
}

int
mem_area_reserve(struct mem_area *a, size_t len, int fd)
{
	struct stat st;
	size_t page;
	int rc = check(fd, 0, 0, 1, &st);

	*a = (struct mem_area){ .fd = -1, .node = -1 };
	if (rc == 0)
		rc = page_of(fd, &st, &page);
	if (rc != 0)
		return rc;
	if (len == 0 || len % page != 0 || len > SIZE_MAX / 2)
		return -EINVAL;
	a->base = reserve(len, page);
	if (a->base == NULL)
		return -ENOMEM;
	a->len = len;
	a->page_size = page;
	rc = mem_guard_add(a);
	if (rc != 0)
		mem_area_destroy(a);
	return rc;
}

/*
 * Map it in place of what is there, which first becomes a mapping of its own: without room for one
 * more, all is as it was. Where the second step fails, the kernel may have taken away what was
 * there, and another thread may have mapped something since: this place is left to itself, and the
 * area ends.
 */
static int
put(struct mem_area *a, size_t at, int fd, uint64_t offset, size_t len)
{
	uint8_t *const end = a->base + at + len;

	if (mprotect(a->base + at, len, PROT_READ) != 0)
		return -ENOMEM;
	if (mmap(a->base + at, len, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd,
		    (off_t)offset) != MAP_FAILED)
		return 0;
	mem_guard_remove(a);
	if (at != 0)
		munmap(a->base, at);
	if (at + len != a->len)
		munmap(end, a->len - at - len);
	*a = (struct mem_area){ .fd = -1, .node = -1 };
	return -ENOMEM;
}

int
mem_area_lay(struct mem_area *a, size_t at, int fd, uint64_t offset, uint64_t len)
{
	struct mem_area first;
	struct stat st;
	size_t page;
	int rc = check(fd, 0, offset, 1, &st);

	if (rc == 0)
		rc = page_of(fd, &st, &page);
	if (rc != 0)
		return rc;
	/* The page in which the file ends is there. */
	if (len == 0 || (len > (uint64_t)st.st_size - offset &&
				len - ((uint64_t)st.st_size - offset) >= page))
		return -ERANGE;
	if (page != a->page_size || (at | offset | len) % page != 0 || at > a->len ||
		len > a->len - at)
		return -EINVAL;
	if (!has_room_for_holes(&st, len))
		return -ENOMEM;
	/* Elsewhere first: what it is refused for, it is refused for here. */
	rc = map(&first, fd, offset, len, page);
	if (rc != 0)
		return rc;
	rc = put(a, at, fd, offset, len);
	mem_area_destroy(&first);
	if (rc != 0)
		return rc;
	rc = populate(a->base + at, len, page);
	return rc == 0 && mem_guard_is_hit(a) ? -ENOMEM : rc;
}
