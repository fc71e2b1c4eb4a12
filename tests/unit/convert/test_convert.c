/* SPDX-License-Identifier: BSD-3-Clause */
/* Private memory becomes shared memory at the same addresses, and private again. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "onto_memfd.h"

static uint8_t initialized[4 * 4096] __attribute__((aligned(4096))) = { 1, 2, 3 };

/* The same bytes through the memfd and at the old address, in both directions. */
static void
assert_shared(uint8_t *at, int fd, size_t offset)
{
	uint8_t seen;

	at[offset] ^= 0x5a;
	assert_int_equal(1, pread(fd, &seen, 1, (off_t)offset));
	assert_int_equal(at[offset], seen);
	seen = 0x77;
	assert_int_equal(1, pwrite(fd, &seen, 1, (off_t)offset));
	assert_int_equal(0x77, at[offset]);
}

static void
bytes_stay(void **state)
{
	uint8_t *p = map(8 * PAGE);
	int fd;

	(void)state;
	for (size_t i = 0; i < 4 * PAGE; i++) /* the rest was never touched */
		p[i] = (uint8_t)(i * 7);
	fd = convert(p, 8 * PAGE);
	assert_true(fd >= 0);
	for (size_t i = 0; i < 8 * PAGE; i++)
		assert_int_equal(i < 4 * PAGE ? (uint8_t)(i * 7) : 0, p[i]);
	assert_shared(p, fd, 1);
	assert_shared(p, fd, 8 * PAGE - 1);
	convert_back(p, 8 * PAGE);
	assert_int_equal(0x77, p[1]);
	assert_int_equal(0x77, p[8 * PAGE - 1]);
	p[1] = 1;
	uint8_t seen;
	assert_int_equal(1, pread(fd, &seen, 1, 1));
	assert_int_equal(0x77, seen); /* the memfd has no part in it any more */
	close(fd);
	munmap(p, 8 * PAGE);
}

/* The heap goes on working while a part of it is shared. */
static void
heap(void **state)
{
	uint8_t *p = malloc(100000), *more;
	const uintptr_t at = (uintptr_t)p & ~(PAGE - 1);
	const size_t bytes = ((uintptr_t)p + 100000 - at + PAGE - 1) & ~(PAGE - 1);
	int fd;

	(void)state;
	memset(p, 0x11, 100000);
	fd = convert((void *)at, bytes);
	assert_true(fd >= 0);
	more = malloc(3000);
	memset(more, 0x22, 3000);
	p = realloc(p, 90000);
	assert_non_null(p);
	assert_int_equal(0x11, p[89999]);
	free(more);
	convert_back((void *)at, bytes);
	assert_int_equal(0x11, p[0]);
	free(p);
	close(fd);
}

/* The caller's own frames lie in the range. */
static void
own_stack(void **state)
{
	uint8_t mine[3 * PAGE];
	const uintptr_t at = (uintptr_t)mine & ~(PAGE - 1);
	int fd;

	(void)state;
	memset(mine, 0x33, sizeof(mine));
	/* A page below: the frames of the calls. */
	fd = convert((void *)(at - PAGE), 4 * PAGE);
	assert_true(fd >= 0);
	for (size_t i = 0; i < sizeof(mine); i++)
		assert_int_equal(0x33, mine[i]);
	convert_back((void *)(at - PAGE), 4 * PAGE);
	assert_int_equal(0x33, mine[sizeof(mine) - 1]);
	close(fd);
}

/* .data is a private mapping of the program's file: with one thread it can be converted. */
static void
data_segment(void **state)
{
	int fd;

	(void)state;
	fd = convert(initialized, sizeof(initialized));
	assert_true(fd >= 0);
	assert_int_equal(3, initialized[2]);
	assert_shared(initialized, fd, 0);
	convert_back(initialized, sizeof(initialized));
	assert_int_equal(3, initialized[2]);
	close(fd);
}

/* /proc/self/maps writes a newline in a name as four characters: 1250 of them are 5000. */
static void
a_name_that_is_longer_than_a_line(void **state)
{
	char dir[] = "/tmp/rlconvertXXXXXX", name[251];
	struct convert_part parts[CONVERT_PARTS];
	uint8_t *p = map(2 * PAGE);
	int at[6], file;

	(void)state;
	memset(name, '\n', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	assert_non_null(mkdtemp(dir));
	at[0] = open(dir, O_RDONLY | O_DIRECTORY);
	for (int i = 1; i < 6; i++) {
		assert_int_equal(0, mkdirat(at[i - 1], name, 0700));
		at[i] = openat(at[i - 1], name, O_RDONLY | O_DIRECTORY);
		assert_true(at[i] >= 0);
	}
	file = openat(at[5], "file", O_RDWR | O_CREAT, 0600);
	assert_true(file >= 0);
	assert_int_equal(0, ftruncate(file, PAGE));
	assert_ptr_equal(p, mmap(p, PAGE, PROT_READ, MAP_SHARED | MAP_FIXED, file, 0));
	assert_int_equal(2, convert_look((uintptr_t)p, 2 * PAGE, parts));
	assert_int_equal(CONVERT_SHARED, parts[0].kind);
	assert_int_equal(CONVERT_PRIVATE, parts[1].kind);
	munmap(p, 2 * PAGE);
	close(file);
	unlinkat(at[5], "file", 0);
	for (int i = 5; i > 0; i--) {
		close(at[i]);
		unlinkat(at[i - 1], name, AT_REMOVEDIR);
	}
	close(at[0]);
	rmdir(dir);
}

/* Read-only stays read-only, and a range of two mappings has two parts. */
static void
protection(void **state)
{
	struct convert_part parts[CONVERT_PARTS];
	uint8_t *p = map(4 * PAGE);
	int fd;

	(void)state;
	memset(p, 0x44, 4 * PAGE);
	assert_int_equal(0, mprotect(p, 2 * PAGE, PROT_READ));
	assert_int_equal(2, convert_look((uintptr_t)p, 4 * PAGE, parts));
	assert_int_equal(PROT_READ, parts[0].prot);
	assert_int_equal(PROT_READ | PROT_WRITE, parts[1].prot);
	fd = convert(p, 4 * PAGE);
	assert_true(fd >= 0);
	assert_int_equal(2, convert_look((uintptr_t)p, 4 * PAGE, parts));
	assert_int_equal(PROT_READ, parts[0].prot);
	assert_int_equal(CONVERT_SHARED, parts[0].kind);
	assert_int_equal(2 * PAGE, parts[1].offset);
	assert_int_equal(0x44, p[4 * PAGE - 1]);
	close(fd);
	munmap(p, 4 * PAGE);
}

static void
what_cannot_be(void **state)
{
	struct convert_part parts[CONVERT_PARTS];
	uint8_t *p = map(4 * PAGE);
	const int fd = memfd_of(PAGE);

	(void)state;
	assert_int_equal(0, mprotect(p + PAGE, PAGE, PROT_NONE));
	assert_int_equal(3, convert_look((uintptr_t)p, 4 * PAGE, parts));
	assert_int_equal(CONVERT_NOT, parts[1].kind);
	assert_int_equal(-EFAULT, convert_to_shared(&parts[1], fd, 0));
	assert_int_equal(0, munmap(p + 2 * PAGE, PAGE));
	assert_int_equal(-EFAULT, convert_look((uintptr_t)p, 4 * PAGE, parts));
	munmap(p, 4 * PAGE);
	close(fd);
}

static int
open_files(void)
{
	DIR *d = opendir("/proc/self/fd");
	int n = 0;

	assert_non_null(d);
	while (readdir(d) != NULL)
		n++;
	closedir(d);
	return n;
}

/* /proc/self/maps stays open: a child's own shows what the child has mapped, in place of that. */
static void
a_child_looks_at_its_own(void **state)
{
	struct convert_part parts[CONVERT_PARTS];
	uint8_t *p = map(PAGE);
	int status;
	pid_t pid;

	(void)state;
	assert_int_equal(1, convert_look((uintptr_t)p, PAGE, parts));
	assert_int_equal(0, munmap(p, PAGE));
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		const int files = open_files();

		p = map(PAGE);
		if (convert_look((uintptr_t)p, PAGE, parts) != 1)
			_exit(1);
		_exit(open_files() == files ? 0 : 2);
	}
	assert_int_equal(pid, waitpid(pid, &status, 0));
	assert_int_equal(0, status);
}

static atomic_bool stop;
static uint64_t turns;
static uint8_t *shared_page;

static void *
write_on(void *arg)
{
	(void)arg;
	while (!atomic_load(&stop)) {
		++*(volatile uint64_t *)(void *)shared_page;
		turns++;
	}
	return NULL;
}

/* A second thread writes all the time. The large one is tests/verbs/convert_writers.c. */
static void
write_while_converted(enum convert_way way)
{
	const int exe = open("/proc/self/exe", O_RDONLY);
	char *of_file = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, exe, 0);
	pthread_t t;
	int fd;

	assert_true(of_file != MAP_FAILED);
	close(exe);
	convert_use(way);
	shared_page = map(PAGE);
	turns = 0;
	atomic_store(&stop, false);
	assert_int_equal(0, pthread_create(&t, NULL, write_on, NULL));
	for (int i = 0; i < 100; i++) {
		fd = convert(shared_page, PAGE);
		assert_true(fd >= 0);
		convert_back(shared_page, PAGE);
		close(fd);
	}
	/* A userfaultfd does not watch the pages of a file: threads are stopped. */
	fd = convert(of_file, PAGE);
	assert_true(fd >= 0);
	assert_memory_equal("\x7f"
			    "ELF",
		of_file, 4);
	close(fd);
	atomic_store(&stop, true);
	pthread_join(t, NULL);
	assert_int_equal(turns, *(uint64_t *)(void *)shared_page);
	munmap(of_file, PAGE);
	munmap(shared_page, PAGE);
	convert_use(CONVERT_WAY_FULL);
}

static void
no_write_is_lost(void **state)
{
	(void)state;
	if (convert_ways() == CONVERT_WAY_STOP)
		fail_msg("this kernel gives no userfaultfd, not even for user mode");
	write_while_converted(CONVERT_WAY_FULL);
}

static void
no_write_is_lost_by_stopping(void **state)
{
	(void)state;
	write_while_converted(CONVERT_WAY_STOP);
}

/* One that blocks every signal, which libc does not let it: nothing is changed, and it is said. */
static void *
block_on(void *arg)
{
	const unsigned long all = ~0ul;

	(void)arg;
	syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, NULL, sizeof(all));
	return write_on(NULL);
}

static void
a_thread_that_cannot_be_stopped(void **state)
{
	uint8_t *p = map(PAGE);
	pthread_t t;

	(void)state;
	shared_page = map(PAGE);
	convert_use(CONVERT_WAY_STOP);
	atomic_store(&stop, false);
	turns = 0;
	assert_int_equal(0, pthread_create(&t, NULL, block_on, NULL));
	while (*(volatile uint64_t *)(void *)shared_page == 0)
		sched_yield();
	p[0] = 7;
	assert_int_equal(-ETIMEDOUT, convert(p, PAGE));
	assert_int_equal(7, p[0]);
	atomic_store(&stop, true);
	pthread_join(t, NULL);
	assert_true(convert(p, PAGE) >= 0);
	convert_use(CONVERT_WAY_FULL);
	munmap(p, PAGE);
	munmap(shared_page, PAGE);
}

/* Threads that begin and end meanwhile, some of which change the user id in all of them: glibc's
 * own use of the signal goes on. */
static void *
be_brief(void *arg)
{
	if (arg != NULL)
		assert_int_equal(0, setuid(getuid()));
	return NULL;
}

static void *
make_threads(void *arg)
{
	for (int i = 0; !atomic_load(&stop); i++) {
		pthread_t t;

		if (pthread_create(&t, NULL, be_brief, i % 2 ? arg : NULL) == 0)
			pthread_join(t, NULL);
	}
	return NULL;
}

static void
threads_come_and_go(void **state)
{
	uint8_t *p = map(PAGE);
	pthread_t t[2];

	(void)state;
	convert_use(CONVERT_WAY_STOP);
	atomic_store(&stop, false);
	for (int i = 0; i < 2; i++)
		assert_int_equal(0, pthread_create(&t[i], NULL, make_threads, p));
	for (int i = 0; i < 100; i++) {
		const int fd = convert(p, PAGE);

		assert_true(fd >= 0);
		convert_back(p, PAGE);
		close(fd);
	}
	atomic_store(&stop, true);
	for (int i = 0; i < 2; i++)
		pthread_join(t[i], NULL);
	convert_use(CONVERT_WAY_FULL);
	munmap(p, PAGE);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bytes_stay),
		cmocka_unit_test(heap),
		cmocka_unit_test(own_stack),
		cmocka_unit_test(data_segment),
		cmocka_unit_test(protection),
		cmocka_unit_test(a_name_that_is_longer_than_a_line),
		cmocka_unit_test(what_cannot_be),
		cmocka_unit_test(a_child_looks_at_its_own),
		cmocka_unit_test(no_write_is_lost),
		cmocka_unit_test(no_write_is_lost_by_stopping),
		cmocka_unit_test(a_thread_that_cannot_be_stopped),
		cmocka_unit_test(threads_come_and_go),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
