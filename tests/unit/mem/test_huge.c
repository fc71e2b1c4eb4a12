/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory of hugepages: the same seals, the same refusals. Each test runs with 2 MiB pages where the
 * system has some to spare (vm.nr_hugepages), and with pages that it has none of; the output says
 * which it was.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "mem.h"

#define TWO_MIB  ((size_t)2 << 20)
#define ONE_GIB  ((size_t)1 << 30)
#define HUGE_2M  (MFD_HUGETLB | 21u << 26) /* log2 of the page size from bit 26 on */
#define HUGE_1G  (MFD_HUGETLB | 30u << 26)
#define LIMITING (F_SEAL_SHRINK | F_SEAL_GROW)

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif

/** A client's memfd of such pages, empty; or -1: the kernel knows none of this size. */
static int
huge_memfd(unsigned int flags, size_t bytes)
{
	const int fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING | flags);

	if (fd < 0)
		return -1;
	assert_int_equal(ftruncate(fd, (off_t)bytes), 0);
	assert_int_equal(fcntl(fd, F_ADD_SEALS, LIMITING), 0);
	return fd;
}

/** Two pages that are there; or -1: the system has none to spare. */
static int
two_pages(void)
{
	const int fd = huge_memfd(HUGE_2M, 2 * TWO_MIB);

	if (fd >= 0 && fallocate(fd, 0, 0, (off_t)(2 * TWO_MIB)) == 0)
		return fd;
	if (fd >= 0)
		close(fd);
	return -1;
}

static bool
says(const char *what, bool there)
{
	print_message("# %s: with%s hugepages of 2 MiB\n", what, there ? "" : "out");
	return there;
}

/** Nobody can take a page out of it, or map it for writing, or change its size. */
static void
assert_frozen(int fd, size_t bytes)
{
	assert_int_equal(fcntl(fd, F_GET_SEALS) & (F_SEAL_FUTURE_WRITE | LIMITING),
		F_SEAL_FUTURE_WRITE | LIMITING);
	assert_int_equal(
		fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, (off_t)TWO_MIB), -1);
	assert_int_equal(errno, EPERM);
	assert_int_equal(ftruncate(fd, 0), -1);
	assert_int_equal(ftruncate(fd, (off_t)(2 * bytes)), -1);
	assert_true(mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) == MAP_FAILED);
	assert_int_equal(errno, EPERM);
}

static void
a_client_s_hugepages_are_sealed(void **state UNUSED)
{
	const int fd = two_pages();
	struct mem_area a, again;
	uint8_t *own;

	if (!says("taken", fd >= 0))
		return; /* pages_that_are_not_there() is the other way */
	own = mmap(NULL, 2 * TWO_MIB, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_true(own != MAP_FAILED);
	assert_int_equal(mem_area_take(&a, fd, 2 * TWO_MIB), 0);
	assert_int_equal(a.page_size, TWO_MIB);
	assert_int_equal(a.len, 2 * TWO_MIB);
	assert_true(a.guard != 0);
	assert_frozen(fd, 2 * TWO_MIB);
	assert_int_equal(madvise(own, TWO_MIB, MADV_REMOVE), -1);
	own[TWO_MIB + 5] = 0x5a; /* what was mapped before is the client's still */
	assert_int_equal(a.base[TWO_MIB + 5], 0x5a);
	assert_int_equal(mem_area_take(&again, fd, 2 * TWO_MIB), -EROFS);
	mem_area_destroy(&a);
	munmap(own, 2 * TWO_MIB);
	close(fd);
}

/* One of its pages is missing: it would be the dataplane's. Nothing was changed. */
static void
holes_are_refused(void **state UNUSED)
{
	const int fd = two_pages();
	struct mem_area a;

	if (!says("holes", fd >= 0))
		return;
	assert_int_equal(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)TWO_MIB,
				 (off_t)TWO_MIB),
		0);
	assert_int_equal(mem_area_take(&a, fd, 2 * TWO_MIB), -ENODATA);
	assert_null(a.base);
	assert_int_equal(fcntl(fd, F_GET_SEALS), LIMITING);
	close(fd);
}

/* Refused with an error: no page is taken from others, and no worker gets a SIGBUS. */
static void
pages_that_are_not_there(void **state UNUSED)
{
	const int fd = huge_memfd(HUGE_1G, ONE_GIB);
	const bool none = fd >= 0 && fallocate(fd, 0, 0, (off_t)ONE_GIB) != 0;
	struct mem_area a;
	uint8_t *host;

	print_message("# none to spare: %s\n",
		none ? "with pages of 1 GiB" : "not to be had, the system has pages of 1 GiB");
	if (none) {
		assert_int_equal(mem_area_take(&a, fd, ONE_GIB), -ENODATA);
		assert_int_equal(fcntl(fd, F_GET_SEALS), LIMITING);
		assert_int_equal(mem_area_adopt(&a, fd, 0, ONE_GIB, &host), -ENOMEM);
		assert_null(a.base);
	}
	if (fd >= 0)
		close(fd);
}

/* Two files, one behind the other, in an order of their own. With small pages the same holds. */
static void
pages_are_laid_in_a_row(void **state UNUSED)
{
	int fd = two_pages();
	const bool huge = says("laid", fd >= 0);
	const size_t page = huge ? TWO_MIB : (size_t)sysconf(_SC_PAGESIZE);
	const int other = memfd_create("other", MFD_CLOEXEC | (huge ? 0 : HUGE_2M));
	struct mem_area a;
	uint8_t *own;

	if (!huge)
		fd = memfd_create("test", MFD_CLOEXEC);
	assert_true(fd >= 0 && (huge || ftruncate(fd, (off_t)(2 * page)) == 0));
	own = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_true(own != MAP_FAILED);
	own[0] = 'a';
	own[page] = 'b';
	assert_int_equal(mem_area_reserve(&a, 2 * page + page / 2, fd), -EINVAL);
	assert_int_equal(mem_area_reserve(&a, 0, fd), -EINVAL);
	assert_int_equal(mem_area_reserve(&a, 2 * page, fd), 0);
	assert_int_equal(a.page_size, page);
	assert_int_equal((uintptr_t)a.base % page, 0);
	assert_true(a.guard != 0);
	assert_int_equal(mem_area_lay(&a, 0, fd, page / 2, page), -EINVAL);
	assert_int_equal(mem_area_lay(&a, 0, fd, 0, page / 2), -EINVAL);
	assert_int_equal(mem_area_lay(&a, page, fd, 0, 2 * page), -EINVAL);
	assert_int_equal(mem_area_lay(&a, 3 * page, fd, 0, page), -EINVAL);
	assert_int_equal(mem_area_lay(&a, 0, fd, 2 * page, page), -ERANGE);
	if (other >= 0) {
		assert_int_equal(ftruncate(other, (off_t)TWO_MIB), 0);
		assert_int_equal(mem_area_lay(&a, 0, other, 0, page), -EINVAL); /* other pages */
		close(other);
	}
	assert_int_equal(mem_area_lay(&a, 0, fd, page, page), 0);
	assert_int_equal(mem_area_lay(&a, page, fd, 0, page), 0);
	assert_int_equal(a.base[0], 'b');
	assert_int_equal(a.base[page], 'a');
	a.base[2 * page - 1] = 'z';
	assert_int_equal(own[page - 1], 'z');
	mem_area_destroy(&a);
	munmap(own, 2 * page);
	close(fd);
}

/* The dataplane's own areas: sealed for good on pages of either kind. */
static void
an_area_is_sealed(void **state UNUSED)
{
	const size_t lens[] = { 100, 2 * TWO_MIB };

	for (uint32_t i = 0; i < ARRAY_LEN(lens); i++) {
		struct mem_area a;

		assert_int_equal(mem_area_create(&a, lens[i], -1, MEM_AREA_HUGE), 0);
		says("areas", a.page_size == TWO_MIB);
		assert_true(a.page_size == TWO_MIB || a.page_size == (size_t)sysconf(_SC_PAGESIZE));
		assert_int_equal(fcntl(a.fd, F_GET_SEALS), LIMITING | F_SEAL_SEAL);
		assert_int_equal(ftruncate(a.fd, 0), -1);
		assert_int_equal(ftruncate(a.fd, (off_t)(2 * a.len)), -1);
		assert_int_equal(a.base[a.len - 1], 0);
		mem_area_destroy(&a);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_client_s_hugepages_are_sealed),
		cmocka_unit_test(holes_are_refused),
		cmocka_unit_test(pages_that_are_not_there),
		cmocka_unit_test(pages_are_laid_in_a_row),
		cmocka_unit_test(an_area_is_sealed),
	};

	return cmocka_run_group_tests_name("mem_huge", tests, NULL, NULL);
}
