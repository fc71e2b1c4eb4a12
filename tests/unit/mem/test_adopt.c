/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory of clients: which descriptors are taken, and what a page that went away does. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <unistd.h>

#include <cmocka.h>

#include "mem_guard.h"

static int
memfd(size_t bytes, int seals)
{
	const int fd = memfd_create("test", MFD_ALLOW_SEALING);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, (off_t)bytes), 0);
	if (seals != 0)
		assert_int_equal(fcntl(fd, F_ADD_SEALS, seals), 0);
	return fd;
}

static void
what_is_taken(void **state UNUSED)
{
	const struct {
		int fd;
		uint64_t offset;
		uint64_t len;
		int rc;
	} rows[] = {
		{ memfd(8192, F_SEAL_SHRINK), 0, 8192, 0 },
		{ memfd(8192, F_SEAL_SHRINK), 5000, 3192, 0 },
		{ memfd(8192, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL), 8191, 1, 0 },
		{ memfd(5000, F_SEAL_SHRINK), 0, 5000, 0 },
		{ memfd(8192, 0), 0, 8192, 0 },
		{ memfd(8192, F_SEAL_SEAL), 4096, 4096, 0 },
		{ memfd(8192, F_SEAL_SHRINK | F_SEAL_WRITE), 0, 8192, -EACCES },
		{ memfd(8191, F_SEAL_SHRINK), 0, 8192, -ERANGE },
		{ memfd(8192, F_SEAL_SHRINK), 5000, 3193, -ERANGE },
		{ memfd(8192, F_SEAL_SHRINK), 8193, 0, -ERANGE },
		{ memfd(8192, F_SEAL_SHRINK), UINT64_MAX, 2, -ERANGE },
		{ memfd(0, F_SEAL_SHRINK), 0, 0, -ERANGE },
		{ open("/dev/zero", O_RDWR), 0, 4096, -EBADF },
		{ open("/dev/null", O_RDWR), 0, 4096, -EBADF },
		{ -1, 0, 4096, -EBADF },
	};

	for (unsigned int i = 0; i < ARRAY_LEN(rows); i++) {
		uint8_t *host = NULL;
		struct mem_area a;

		assert_int_equal(mem_area_adopt(&a, rows[i].fd, rows[i].offset, rows[i].len, &host),
			rows[i].rc);
		if (rows[i].rc == 0) {
			uint8_t byte = 0;

			host[rows[i].len - 1] = 0x5a; /* the last byte is the file's */
			assert_int_equal(pread(rows[i].fd, &byte, 1,
						 (off_t)(rows[i].offset + rows[i].len - 1)),
				1);
			assert_int_equal(byte, 0x5a);
			assert_true(a.guard != 0);
			mem_area_destroy(&a);
			assert_int_equal(a.guard, 0);
		}
		if (rows[i].fd >= 0)
			close(rows[i].fd);
	}
}

/* One look at a page ends with it there. If the next fault is in the same place, it is not. */
static void
on_bus_error(int sig, siginfo_t *info, void *ctx UNUSED)
{
	static void *last;

	if (info->si_addr == last || !mem_guard_fault(info->si_addr))
		signal(sig, SIG_DFL);
	last = info->si_addr;
}

/*
 * Pages go away under a guarded area: zeros are read, and that area is marked. A piece of 4 MiB is
 * replaced at a time: whoever makes a file shorter must not cost a mapping for each page.
 */
static void
pages_go_away(void **state UNUSED)
{
	const struct sigaction sa = { .sa_sigaction = on_bus_error, .sa_flags = SA_SIGINFO };
	const size_t page = (size_t)sysconf(_SC_PAGESIZE), piece = 4 << 20, end = 2 * piece + page;
	const int fd = memfd(end, 0);
	struct mem_area a = { .len = end, .page_size = page, .fd = -1 }, b;
	const unsigned int before = mem_guard_faults();
	struct sigaction old;

	a.base = mmap(NULL, a.len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_true(a.base != MAP_FAILED);
	assert_int_equal(mem_area_create(&b, page, -1, 0), 0);
	assert_int_equal(mem_guard_add(&a), 0);
	assert_int_equal(mem_guard_add(&b), 0);
	memset(a.base, 0xff, a.len);
	assert_int_equal(sigaction(SIGBUS, &sa, &old), 0);
	assert_int_equal(ftruncate(fd, (off_t)(piece + page)), 0);

	assert_int_equal(a.base[0], 0xff);
	assert_int_equal(a.base[piece], 0xff);
	assert_int_equal(mem_guard_faults(), before);
	assert_int_equal(*(_Atomic uint8_t *)&a.base[piece + page + 17], 0);
	assert_int_equal(mem_guard_faults(), before + 1);
	assert_int_equal(*(_Atomic uint8_t *)&a.base[piece], 0);
	assert_int_equal(a.base[piece - 1], 0xff);
	a.base[2 * piece - 1] = 1;
	assert_int_equal(mem_guard_faults(), before + 1); /* the pages are there now */
	*(_Atomic uint8_t *)&a.base[end - 1] = 2;
	assert_int_equal(mem_guard_faults(), before + 2);
	assert_true(mem_guard_is_hit(&a));
	assert_false(mem_guard_is_hit(&b));

	assert_int_equal(sigaction(SIGBUS, &old, NULL), 0);
	assert_false(mem_guard_fault(&old)); /* none of ours */
	mem_area_destroy(&a);
	mem_area_destroy(&b);
	assert_false(mem_guard_is_hit(&a));
	close(fd);
}

/* As many mappings as the kernel gives a process. @return where, to be unmapped. */
static uint8_t *
use_up_mappings(size_t page, size_t bytes)
{
	uint8_t *at = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	size_t i = page;

	assert_true(at != MAP_FAILED);
	while (i < bytes && mprotect(at + i, page, PROT_READ) == 0)
		i += 2 * page;
	print_message("# with%s room for more mappings\n", i < bytes ? "out" : "");
	return at;
}

/* A piece in the middle would be a mapping more, and one behind it: then all of the area goes. */
static void
no_mapping_is_left(void **state UNUSED)
{
	const struct sigaction sa = { .sa_sigaction = on_bus_error, .sa_flags = SA_SIGINFO };
	const size_t page = (size_t)sysconf(_SC_PAGESIZE), piece = 4 << 20;
	const size_t much = (size_t)200000 * page;
	const int fd = memfd(3 * piece, 0);
	struct sigaction old;
	struct mem_area a;
	uint8_t *host, *full;

	assert_int_equal(mem_area_adopt(&a, fd, 0, 3 * piece, &host), 0);
	assert_int_equal(sigaction(SIGBUS, &sa, &old), 0);
	assert_int_equal(ftruncate(fd, 0), 0);
	full = use_up_mappings(page, much);
	*(_Atomic uint8_t *)&a.base[piece] = 1;
	munmap(full, much);
	assert_true(mem_guard_is_hit(&a));
	assert_int_equal(sigaction(SIGBUS, &old, NULL), 0);
	mem_area_destroy(&a);
	close(fd);
}

struct neighbours {
	struct mem_area large;
	struct mem_area small; /* behind it */
	_Atomic bool stop;
};

static void *
come_and_go(void *arg)
{
	struct neighbours *n = arg;

	while (!atomic_load_explicit(&n->stop, memory_order_relaxed)) {
		struct mem_area one = n->large, other = n->small;

		if (mem_guard_add(&one) != 0)
			break;
		mem_guard_remove(&one);
		if (mem_guard_add(&other) != 0)
			break;
		mem_guard_remove(&other);
	}
	return NULL;
}

/*
 * Areas come and go in the same place of the table while somebody looks: what lies behind a small
 * one is not in it, though a large one was there before. It would be overwritten with zeros.
 */
static void
areas_change_meanwhile(void **state UNUSED)
{
	enum { LOOKS = 20000000 };
	const size_t page = (size_t)sysconf(_SC_PAGESIZE), large = 8 << 20, all = 2 * large;
	uint8_t *base = mmap(NULL, all, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct neighbours n = { .large = { .base = base, .len = large, .page_size = page },
		.small = { .base = base + large, .len = page, .page_size = page } };
	pthread_t other;
	uint32_t found = 0;

	assert_true(base != MAP_FAILED);
	assert_int_equal(pthread_create(&other, NULL, come_and_go, &n), 0);
	for (uint32_t i = 0; i < LOOKS && found == 0; i++)
		found += mem_guard_fault(base + large + page);
	atomic_store(&n.stop, true);
	assert_int_equal(pthread_join(other, NULL), 0);
	assert_int_equal(found, 0);
	munmap(base, all);
}

/* A tmpfs that gives huge pages where a file is large enough; or -1: we may mount none. */
static int
file_where_pages_may_be_huge(void)
{
	if (unshare(CLONE_NEWNS) != 0 && unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0)
		return -1;
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
		mount("none", "/mnt", "tmpfs", 0, "huge=within_size") != 0)
		return -1;
	return open("/mnt/file", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
}

/* Its stat() speaks of huge pages, whatever pages the file has: it ends where it says. */
static void
a_file_without_its_huge_pages(void **state UNUSED)
{
	int fd = file_where_pages_may_be_huge();
	uint8_t *host = NULL;
	struct mem_area a;

	print_message("# with%s a tmpfs of huge pages\n", fd < 0 ? "out" : "");
	if (fd < 0)
		fd = memfd(0, 0);
	assert_int_equal(ftruncate(fd, 1 << 20), 0);
	assert_int_equal(mem_area_adopt(&a, fd, 0, 1 << 20, &host), 0);
	host[(1 << 20) - 1] = 1;
	assert_int_equal(a.len, 1 << 20);
	mem_area_destroy(&a);
	assert_int_equal(mem_area_adopt(&a, fd, 8192, 4096, &host), 0);
	assert_int_equal(a.len, 4096);
	mem_area_destroy(&a);
	close(fd);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_taken),
		cmocka_unit_test(pages_go_away),
		cmocka_unit_test(no_mapping_is_left),
		cmocka_unit_test(areas_change_meanwhile),
		cmocka_unit_test(a_file_without_its_huge_pages),
	};

	return cmocka_run_group_tests_name("mem_adopt", tests, NULL, NULL);
}
