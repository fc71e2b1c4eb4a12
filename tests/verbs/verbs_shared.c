/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Regions in memory that a program shares with others: /dev/shm, memfds, System V, anonymous.
 *
 *   verbs-shared            data goes in and out; System V's needs a capability
 *   verbs-shared shrinks    the file becomes shorter under a region
 *   verbs-shared one        one of many files does
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ends.h"

#define BYTES   ((size_t)1 << 20)
#define MANY    10000000                  /* requests, at most, until the region's end is known */
#define HUGE_2M (MFD_HUGETLB | 21u << 26) /* log2 of the page size from bit 26 on */

static struct end e[2];

/* A new one, so that one was not there. */
static int
file_in_shm(char name[32])
{
	int fd;

	snprintf(name, 32, "/verbs-shared-%d", (int)getpid());
	fd = shm_open(name, O_CREAT | O_EXCL | O_RDWR, 0600);
	CHECK(fd >= 0 && ftruncate(fd, BYTES) == 0);
	return fd;
}

static char *
map(int fd, int flags)
{
	char *at = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | flags, fd, 0);

	CHECK(at != MAP_FAILED);
	return at;
}

static void
move_half(char *at)
{
	struct ibv_mr *mr = ibv_reg_mr(e[0].pd, at, BYTES / 2, ALL_ACCESS);

	CHECK(mr != NULL && ibv_dereg_mr(mr) == 0);
}

static void
with_descriptor(int fd)
{
	char *at = map(fd, 0), *same = map(fd, 0);

	memset(at, '-', BYTES);
	ends_move(e, ibv_reg_mr(e[0].pd, at, BYTES, ALL_ACCESS), at, same);
	munmap(at, BYTES);
	munmap(same, BYTES);
}

/* The kernel names System V's to who has a capability, else it is refused, with the reason. */
static void
without_descriptor(char *at)
{
	char path[64];
	struct ibv_mr *mr;
	int fd;

	snprintf(path, sizeof(path), "/proc/self/map_files/%lx-%lx", (unsigned long)at,
		(unsigned long)at + BYTES);
	fd = open(path, O_RDWR);
	memset(at, '-', BYTES);
	errno = 0;
	mr = ibv_reg_mr(e[0].pd, at, BYTES, ALL_ACCESS);
	if (fd >= 0) {
		ends_move(e, mr, at, at);
		close(fd);
	} else {
		CHECK(mr == NULL && errno == EOPNOTSUPP);
	}
}

/* A long name; and descriptors by which nobody can write. */
static void
by_name(void)
{
	char name[NAME_MAX + 1], *at;
	int fd, look;

	snprintf(name, sizeof(name), "/verbs-shared-%d-%0200d", (int)getpid(), 0);
	CHECK((fd = shm_open(name, O_CREAT | O_EXCL | O_RDWR, 0600)) >= 0);
	CHECK(ftruncate(fd, BYTES) == 0);
	at = map(fd, 0);
	CHECK((look = shm_open(name, O_RDONLY, 0)) >= 0);
	close(fd);
	memset(at, '-', BYTES);
	ends_move(e, ibv_reg_mr(e[0].pd, at, BYTES, ALL_ACCESS), at, at);
	close(look);
	ends_move(e, ibv_reg_mr(e[0].pd, at, BYTES, ALL_ACCESS), at, at);
	CHECK(shm_unlink(name) == 0);
	munmap(at, BYTES);
}

/* The memory of the two processes is the same, and is found where it has been moved to. */
static void
moved(void)
{
	char *at = map(-1, MAP_ANONYMOUS), *there = map(-1, MAP_ANONYMOUS);
	pid_t child = fork();
	int status;

	CHECK(child >= 0);
	if (child == 0) {
		memset(at, 'c', BYTES);
		_exit(0);
	}
	CHECK(waitpid(child, &status, 0) == child && status == 0);
	CHECK(at[0] == 'c' && at[BYTES - 1] == 'c');
	CHECK(mremap(at, BYTES, BYTES, MREMAP_MAYMOVE | MREMAP_FIXED, there) == there);
	CHECK(there[BYTES / 2] == 'c');
	ends_move(e, ibv_reg_mr(e[0].pd, there, BYTES, ALL_ACCESS), there, there);
	munmap(there, BYTES / 2); /* what is left is still known */
	move_half(there + BYTES / 2);
	munmap(there + BYTES / 2, BYTES / 2);
}

/* What was kept is no descriptor of the file, whose end would be that of the program's locks. */
static void
record_locks_stay(void)
{
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
	char name[32];
	const int fd = file_in_shm(name);
	int status;
	pid_t child;

	CHECK(fcntl(fd, F_SETLK, &lock) == 0);
	munmap(map(fd, 0), BYTES);
	child = fork();
	CHECK(child >= 0);
	if (child == 0)
		_exit(fcntl(fd, F_SETLK, &lock) == 0 ? 1 : 0);
	CHECK(waitpid(child, &status, 0) == child && status == 0);
	CHECK(shm_unlink(name) == 0 && close(fd) == 0);
}

static unsigned int
descriptors(void)
{
	DIR *d = opendir("/proc/self/fd");
	unsigned int n = 0;

	CHECK(d != NULL);
	while (readdir(d) != NULL)
		n++;
	closedir(d);
	return n;
}

/* Neither descriptors nor memory are left of what is unmapped, in whatever pieces. */
static void
all_is_given_back(void)
{
	const unsigned int before = descriptors();

	for (int i = 0; i < 1000; i++) {
		char *at = map(-1, MAP_ANONYMOUS);

		at[i] = 'x';
		munmap(at + BYTES / 4, BYTES / 4);
		if (i % 2 == 0)
			CHECK(mmap(at, BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED,
				      -1, 0) == at);
		munmap(at, BYTES);
	}
	CHECK(descriptors() == before);
}

/* As huge pages, of which each is a mapping of its own: more of them than one looks at at once. */
static void
in_many_mappings(void)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	const int fd = memfd_create("many", 0);
	char *at;

	CHECK(ftruncate(fd, BYTES) == 0);
	at = map(fd, 0);
	memset(at, '-', BYTES);
	for (size_t i = 0; i < BYTES; i += 2 * page)
		CHECK(madvise(at + i, page, MADV_DONTFORK) == 0);
	ends_move(e, ibv_reg_mr(e[0].pd, at, BYTES, ALL_ACCESS), at, at);
	ends_move(e, ibv_reg_mr(e[0].pd, at + page + 1, BYTES / 2, ALL_ACCESS), at + page + 1,
		at + page + 1);
	CHECK(mprotect(at + page * 200, page, PROT_READ) == 0);
	errno = 0;
	CHECK(ibv_reg_mr(e[0].pd, at, BYTES, ALL_ACCESS) == NULL && errno == EFAULT);
	CHECK(munmap(at + page * 200, page) == 0);
	CHECK(ibv_reg_mr(e[0].pd, at, BYTES, ALL_ACCESS) == NULL && errno == EFAULT);
	munmap(at, BYTES);
	close(fd);
}

#define FILES 300

static void
name_of(size_t i, char name[64])
{
	snprintf(name, 64, "/verbs-shared-%d-%zu", (int)getpid(), i);
}

/* As huge pages of DPDK, each a file: more of them than a message takes descriptors. */
static char *
map_files(size_t page, int fds[FILES])
{
	char *at = mmap(NULL, FILES * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char name[64];

	CHECK(at != MAP_FAILED);
	for (size_t i = 0; i < FILES; i++) {
		name_of(i, name);
		fds[i] = shm_open(name, O_CREAT | O_EXCL | O_RDWR, 0600);
		CHECK(fds[i] >= 0 && ftruncate(fds[i], (off_t)page) == 0);
		CHECK(mmap(at + i * page, page, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
			      fds[i], 0) == at + i * page);
	}
	memset(at, '-', FILES * page);
	return at;
}

static void
unlink_files(void)
{
	char name[64];

	for (size_t i = 0; i < FILES; i++) {
		name_of(i, name);
		CHECK(shm_unlink(name) == 0);
	}
}

static void
of_many_files(void)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE), all = FILES * page;
	int fds[FILES];
	char *at = map_files(page, fds);

	ends_move(e, ibv_reg_mr(e[0].pd, at, all, ALL_ACCESS), at, at);
	/* A part of it, twice, and the whole once more. */
	for (int i = 0; i < 2; i++)
		ends_move(e, ibv_reg_mr(e[0].pd, at + page + 1, 20 * page, ALL_ACCESS),
			at + page + 1, at + page + 1);
	CHECK(mprotect(at + 200 * page, page, PROT_READ) == 0);
	errno = 0;
	CHECK(ibv_reg_mr(e[0].pd, at, all, ALL_ACCESS) == NULL && errno == EFAULT);
	CHECK(mprotect(at + 200 * page, page, PROT_READ | PROT_WRITE) == 0);
	for (size_t i = 0; i < FILES; i++)
		close(fds[i]);
	ends_move(e, ibv_reg_mr(e[0].pd, at, all, ALL_ACCESS), at, at); /* found by their names */
	unlink_files();
	munmap(at, all);
}

/* Only the program's descriptors lead to them, which are in another order than the files. */
static void
of_unlinked_files(void)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE), all = FILES * page;
	int fds[FILES];
	char *at = map_files(page, fds);

	unlink_files();
	for (int i = 0; i < FILES; i++) {
		const int moved = fcntl(fds[i], F_DUPFD_CLOEXEC, 500 + (i * 7) % FILES);

		CHECK(moved >= 0 && close(fds[i]) == 0);
		fds[i] = moved;
	}
	ends_move(e, ibv_reg_mr(e[0].pd, at, all, ALL_ACCESS), at, at);
	ends_move(e, ibv_reg_mr(e[0].pd, at + 7 * page, page, ALL_ACCESS), at + 7 * page,
		at + 7 * page);
	for (size_t i = 0; i < FILES; i++)
		close(fds[i]);
	munmap(at, all);
}

/* From within a page to within the next one, each a file; where the system has some to spare. */
static void
of_huge_pages(void)
{
	const size_t page = (size_t)2 << 20;
	char *at = mmap(NULL, 3 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *base = at + (-(uintptr_t)at & (page - 1));
	int fds[2];

	CHECK(at != MAP_FAILED);
	for (size_t i = 0; i < 2; i++) {
		fds[i] = memfd_create("huge", MFD_CLOEXEC | HUGE_2M);
		if (fds[i] < 0 || ftruncate(fds[i], (off_t)page) != 0 ||
			fallocate(fds[i], 0, 0, (off_t)page) != 0) {
			fprintf(stderr, "without huge pages\n");
			return;
		}
		CHECK(mmap(base + i * page, page, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
			      fds[i], 0) == base + i * page);
	}
	ends_move(e, ibv_reg_mr(e[0].pd, base + 5000, page, ALL_ACCESS), base + 5000, base + 5000);
	ends_move(e, ibv_reg_mr(e[0].pd, base, 2 * page, ALL_ACCESS), base, base);
	munmap(at, 3 * page);
	close(fds[0]);
	close(fds[1]);
}

/* All descriptors are in use: refused for that, also in the middle; later it can be made. */
static void
without_a_descriptor_left(void)
{
	const struct rlimit few = { 512, 512 };
	const size_t page = (size_t)sysconf(_SC_PAGESIZE), all = FILES * page;
	int fds[FILES], more[512], n = 0;
	char *at = map_files(page, fds);

	CHECK(setrlimit(RLIMIT_NOFILE, &few) == 0);
	while (n < 512 && (more[n] = dup(0)) >= 0)
		n++;
	for (int left = 0; left < 3; left++) {
		errno = 0;
		CHECK(ibv_reg_mr(e[0].pd, at, page, ALL_ACCESS) == NULL || left > 0);
		CHECK(left > 0 || errno == EMFILE);
		errno = 0;
		CHECK(ibv_reg_mr(e[0].pd, at, all, ALL_ACCESS) == NULL && errno == EMFILE);
		close(more[--n]);
	}
	while (n > 0)
		close(more[--n]);
	ends_move(e, ibv_reg_mr(e[0].pd, at, all, ALL_ACCESS), at, at);
	for (size_t i = 0; i < FILES; i++)
		close(fds[i]);
	unlink_files();
	munmap(at, all);
}

/* Not in a row or of another file; beside private memory: refused. */
static void
in_disorder(void)
{
	const int fd = memfd_create("one", 0), other = memfd_create("other", 0);
	char *at;

	CHECK(ftruncate(fd, 2 * BYTES) == 0 && ftruncate(other, BYTES) == 0);
	for (int what = 0; what < 4; what++) {
		const int next = what == 2 ? other : what == 3 ? -1 : fd;
		const int flags = what == 3 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED;
		struct ibv_mr *mr;

		at = mmap(NULL, 2 * BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		CHECK(at != MAP_FAILED);
		CHECK(mmap(at, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) == at);
		CHECK(mmap(at + BYTES, BYTES, PROT_READ | PROT_WRITE, flags | MAP_FIXED, next,
			      what == 0 ? (off_t)BYTES : 0) == at + BYTES);
		memset(at, '-', 2 * BYTES);
		errno = 0;
		mr = ibv_reg_mr(e[0].pd, at, 2 * BYTES, ALL_ACCESS);
		if (what != 3)
			ends_move(e, mr, at, at);
		else
			CHECK(mr == NULL && errno == EOPNOTSUPP);
		munmap(at, 2 * BYTES);
	}
	close(fd);
	close(other);
}

static void
all_kinds(void)
{
	char name[32], *at;
	int fd = file_in_shm(name), id;

	with_descriptor(fd);
	at = map(fd, 0);
	close(fd);
	memset(at, '-', BYTES); /* it is found by its name */
	ends_move(e, ibv_reg_mr(e[0].pd, at, BYTES, ALL_ACCESS), at, at);
	CHECK(shm_unlink(name) == 0);
	ends_move(e, ibv_reg_mr(e[0].pd, at, BYTES, ALL_ACCESS), at, at);
	munmap(at, BYTES);
	fd = memfd_create("plain", 0);
	CHECK(ftruncate(fd, BYTES) == 0);
	with_descriptor(fd);
	close(fd);
	fd = memfd_create("sealable", MFD_ALLOW_SEALING);
	CHECK(ftruncate(fd, BYTES) == 0);
	with_descriptor(fd);
	close(fd);
	CHECK((id = shmget(IPC_PRIVATE, BYTES, 0600)) >= 0);
	at = shmat(id, NULL, 0);
	CHECK(at != (void *)-1 && shmctl(id, IPC_RMID, NULL) == 0);
	without_descriptor(at);
	CHECK(shmdt(at) == 0);
	by_name();
	at = map(-1, MAP_ANONYMOUS);
	ends_move(e, ibv_reg_mr(e[0].pd, at, BYTES, ALL_ACCESS), at, at);
	munmap(at, BYTES);
	in_many_mappings();
	of_many_files();
	of_unlinked_files();
	of_huge_pages();
	in_disorder();
	without_a_descriptor_left();
	moved();
	record_locks_stay();
	all_is_given_back();
}

/* The region's end is a device that is gone: what was asked for fails, and says so. */
static void
until_it_fails(char *at, size_t len, int fd, off_t left)
{
	char *peer = aligned_alloc(4096, len);
	struct ibv_mr *mine, *other;
	enum ibv_wc_status status = IBV_WC_SUCCESS;

	memset(at, '-', len);
	memset(peer, 'w', len);
	CHECK((mine = ibv_reg_mr(e[0].pd, at, len, ALL_ACCESS)) != NULL);
	CHECK((other = ibv_reg_mr(e[1].pd, peer, len, IBV_ACCESS_LOCAL_WRITE)) != NULL);
	CHECK(ftruncate(fd, left) == 0);
	for (int i = 0; i < MANY && status == IBV_WC_SUCCESS; i++)
		status = end_run(&e[1], IBV_WR_RDMA_WRITE, other, peer, (uint32_t)len, mine, at, 1)
				 .status;
	printf("%s\n", ibv_wc_status_str(status));
	CHECK(status != IBV_WC_SUCCESS);
}

static void
shrinks(void)
{
	char name[32];
	const int fd = file_in_shm(name);

	CHECK(shm_unlink(name) == 0);
	until_it_fails(map(fd, 0), BYTES, fd, 4096);
}

static void
one_shrinks(void)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	int fds[FILES];
	char *at = map_files(page, fds);

	unlink_files();
	until_it_fails(at, FILES * page, fds[FILES / 2], 0);
}

int
main(int argc, char **argv)
{
	ends_open(e, 7);
	if (argc > 1 && strcmp(argv[1], "shrinks") == 0)
		shrinks();
	else if (argc > 1 && strcmp(argv[1], "one") == 0)
		one_shrinks();
	else
		all_kinds();
	printf("shared memory\n");
	return 0;
}
