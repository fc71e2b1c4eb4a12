/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The first thread of a program has ended, and the others go on: /proc/self shows of such a process
 * no memory, no descriptor and no pinned page. argv[1]: "before": there was a region already.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <infiniband/verbs.h>

#include "../clib/uring.h"

#define LEN ((size_t)1 << 20)

static struct ibv_pd *pd;
static pthread_t first;
static void *unseen;
static int may_open; /* a file by its mapping: who has CAP_SYS_ADMIN */

static void
check(int good, const char *what)
{
	if (good)
		return;
	fprintf(stderr, "%s: %s\n", what, strerror(errno));
	exit(1);
}

static void *
shared(void)
{
	const int fd = memfd_create("first", MFD_CLOEXEC);
	void *p;

	check(fd >= 0 && ftruncate(fd, (off_t)LEN) == 0, "memfd");
	p = mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	check(p != MAP_FAILED, "mmap");
	return p;
}

static void
region(void *p, const char *what)
{
	struct ibv_mr *mr = ibv_reg_mr(pd, p, LEN, IBV_ACCESS_LOCAL_WRITE);

	check(mr != NULL, what);
	memset(p, 1, LEN);
	check(ibv_dereg_mr(mr) == 0, "ibv_dereg_mr");
}

/* Its pages would be the ring's alone once they were moved. */
static void
buffers_of_a_ring(void)
{
	void *p = aligned_alloc(4096, LEN);
	struct uring u;

	if (uring_open(&u) != 0)
		return;
	check(p != NULL && uring_fix(&u, p, LEN) == 0, "buffers of a ring");
	errno = 0;
	check(ibv_reg_mr(pd, p, LEN, 0) == NULL && errno == EBUSY, "a ring's, and a region's");
	uring_close(&u);
	region(p, "when the ring is gone");
}

/* A child of fork() has a stack of its own, also where that is a region. */
static void
stack(void)
{
	char room[3 * 4096];
	struct ibv_mr *mr = ibv_reg_mr(pd, room, sizeof(room), IBV_ACCESS_LOCAL_WRITE);
	int status;
	pid_t pid;

	check(mr != NULL, "the stack");
	memset(room, 1, sizeof(room));
	pid = fork();
	if (pid == 0) {
		memset(room, 2, sizeof(room));
		_exit(0);
	}
	check(pid > 0 && waitpid(pid, &status, 0) == pid && status == 0, "a child");
	check(room[0] == 1 && memcmp(room, room + 1, sizeof(room) - 1) == 0, "the child's stack");
	check(ibv_dereg_mr(mr) == 0, "ibv_dereg_mr");
}

/* Before the library, as by an allocator of its own: no call of the program's shows it. */
static void
map_unseen(void)
{
	char link[80];
	int fd;

	unseen = (void *)syscall(
		SYS_mmap, NULL, LEN, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	check(unseen != MAP_FAILED, "mmap");
	snprintf(link, sizeof(link), "/proc/self/map_files/%lx-%lx", (unsigned long)unseen,
		(unsigned long)unseen + LEN);
	fd = open(link, O_RDWR | O_CLOEXEC);
	may_open = fd >= 0;
	if (fd >= 0)
		close(fd);
}

static void *
second(void *unused)
{
	(void)unused;
	check(pthread_join(first, NULL) == 0, "pthread_join");
	region(malloc(LEN), "memory of the heap");
	region(shared(), "shared memory");
	if (may_open)
		region(unseen, "shared memory without a descriptor");
	buffers_of_a_ring();
	stack();
	puts("without the first");
	exit(0);
}

int
main(int argc, char **argv)
{
	struct ibv_device **all = ibv_get_device_list(NULL);
	struct ibv_context *ctx;
	pthread_t t;

	check(all != NULL && all[0] != NULL, "ibv_get_device_list");
	ctx = ibv_open_device(all[0]);
	check(ctx != NULL && (pd = ibv_alloc_pd(ctx)) != NULL, "ibv_alloc_pd");
	if (argc > 1 && strcmp(argv[1], "before") == 0)
		region(malloc(LEN), "a first region");
	first = pthread_self();
	map_unseen();
	check(pthread_create(&t, NULL, second, NULL) == 0, "pthread_create");
	pthread_exit(NULL);
}
