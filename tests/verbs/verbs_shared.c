/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Regions in memory that a program shares with others: /dev/shm, memfds, System V, anonymous.
 *
 *   verbs-shared            data goes in and out; what has no descriptor needs a capability
 *   verbs-shared shrinks    the file becomes shorter under a region
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <unistd.h>

#include "ends.h"

#define BYTES ((size_t)1 << 20)
#define MANY  10000000 /* requests, at most, until the region's end is known */

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

/* Written by the other device, and seen through another mapping of the same. */
static void
move(struct ibv_mr *mine, char *at, const char *same)
{
	char *peer = aligned_alloc(4096, BYTES);
	struct ibv_mr *other = ibv_reg_mr(e[1].pd, peer, BYTES, IBV_ACCESS_LOCAL_WRITE);

	CHECK(mine != NULL && other != NULL);
	memset(peer, 'w', BYTES);
	CHECK(end_run(&e[1], IBV_WR_RDMA_WRITE, other, peer, BYTES, mine, at, 1).status ==
		IBV_WC_SUCCESS);
	CHECK(memcmp(same, peer, BYTES) == 0);
	memset(at, 'r', BYTES);
	CHECK(end_run(&e[1], IBV_WR_RDMA_READ, other, peer, BYTES, mine, at, 2).status ==
		IBV_WC_SUCCESS);
	CHECK(memcmp(same, peer, BYTES) == 0);
	CHECK(ibv_dereg_mr(other) == 0);
	CHECK(ibv_dereg_mr(mine) == 0);
	free(peer);
}

static void
with_descriptor(int fd)
{
	char *at = map(fd, 0), *same = map(fd, 0);

	memset(at, '-', BYTES);
	move(ibv_reg_mr(e[0].pd, at, BYTES, ALL_ACCESS), at, same);
	munmap(at, BYTES);
	munmap(same, BYTES);
}

/* The kernel names such memory to who has a capability, and else it is refused, with the reason. */
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
		move(mr, at, at);
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
	move(ibv_reg_mr(e[0].pd, at, BYTES, ALL_ACCESS), at, at);
	close(look);
	move(ibv_reg_mr(e[0].pd, at, BYTES, ALL_ACCESS), at, at);
	CHECK(shm_unlink(name) == 0);
	munmap(at, BYTES);
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
	move(ibv_reg_mr(e[0].pd, at, BYTES, ALL_ACCESS), at, at);
	CHECK(shm_unlink(name) == 0);
	without_descriptor(at);
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
	without_descriptor(at);
	munmap(at, BYTES);
}

/* The region's end is a device that is gone: what was asked for fails, and says so. */
static void
shrinks(void)
{
	char name[32], *peer = aligned_alloc(4096, BYTES), *at;
	const int fd = file_in_shm(name);
	struct ibv_mr *mine, *other;
	enum ibv_wc_status status = IBV_WC_SUCCESS;

	CHECK(shm_unlink(name) == 0);
	at = map(fd, 0);
	memset(at, '-', BYTES);
	memset(peer, 'w', BYTES);
	CHECK((mine = ibv_reg_mr(e[0].pd, at, BYTES, ALL_ACCESS)) != NULL);
	CHECK((other = ibv_reg_mr(e[1].pd, peer, BYTES, IBV_ACCESS_LOCAL_WRITE)) != NULL);
	CHECK(ftruncate(fd, 4096) == 0);
	for (int i = 0; i < MANY && status == IBV_WC_SUCCESS; i++)
		status = end_run(&e[1], IBV_WR_RDMA_WRITE, other, peer, BYTES, mine, at, 1).status;
	printf("%s\n", ibv_wc_status_str(status));
	CHECK(status != IBV_WC_SUCCESS);
}

int
main(int argc, char **argv)
{
	ends_open(e, 7);
	if (argc > 1 && strcmp(argv[1], "shrinks") == 0)
		shrinks();
	else
		all_kinds();
	printf("shared memory\n");
	return 0;
}
