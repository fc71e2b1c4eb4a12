/* SPDX-License-Identifier: BSD-3-Clause */
/* Regions in all kinds of memory of a program, with plain verbs; what cannot be is refused. */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ends.h"

#define BYTES      10000
#define PEER_BYTES 12288

static struct end e[2];
static char zeroed[3 * BYTES]; /* .bss */

static void
move(char *at)
{
	ends_move(e, ibv_reg_mr(e[0].pd, at, BYTES, ALL_ACCESS), at, at);
}

static void
on_the_stack(void)
{
	char mine[2 * BYTES];

	move(mine + 123);
}

/* Something that needs frames, and tells what it was given. */
static __attribute__((noinline)) int
deep(int n)
{
	volatile char frame[512];

	frame[n] = (char)n;
	return n == 0 ? 0 : frame[n] - n + deep(n - 1);
}

static char *handled;

/* Of pthread_atfork(). */
static void
in_child(void)
{
	sigset_t one;

	sigemptyset(&one);
	sigaddset(&one, SIGUSR1);
	sigprocmask(SIG_BLOCK, &one, NULL);
	if (handled != NULL)
		memset(handled, 'c', BYTES);
}

/* The child's frames are its own, and so are the parent's, although a region lies among them. */
static void
fork_on_the_stack(void)
{
	char mine[BYTES];
	struct ibv_mr *mr;
	sigset_t blocked;
	int status;
	pid_t pid;

	memset(mine, 's', BYTES);
	CHECK((mr = ibv_reg_mr(e[0].pd, mine, BYTES, ALL_ACCESS)) != NULL);
	for (int i = 0; i < 20; i++) {
		pid = fork();
		CHECK(pid >= 0);
		if (pid == 0) {
			const int good = mine[0] == 's' && mine[BYTES - 1] == 's' && deep(100) == 0;

			memset(mine, 'c', BYTES);
			sigprocmask(SIG_BLOCK, NULL, &blocked);
			_exit(good && sigismember(&blocked, SIGUSR1) == 1 ? i : 255);
		}
		CHECK(deep(100) == 0);
		CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status));
		CHECK(WEXITSTATUS(status) == i);
		CHECK(mine[0] == 's' && mine[BYTES - 1] == 's');
	}
	CHECK(ibv_dereg_mr(mr) == 0);
}

/* A memfd of the program's own. */
static void
own_memfd(void)
{
	const int fd = memfd_create("mine", MFD_ALLOW_SEALING);
	char *at;

	CHECK(ftruncate(fd, 16384) == 0 && fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK) == 0);
	at = mmap(NULL, 16384, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	CHECK(at != MAP_FAILED);
	memset(at, 1, 16384);
	move(at + 5);
	munmap(at, 16384);
	close(fd);
}

/* One region in another, and the same twice: the pages stay until the last is gone. */
static void
nested(void)
{
	char *at = malloc(100000);
	struct ibv_mr *mr[3];

	memset(at, 'n', 100000);
	CHECK((mr[0] = ibv_reg_mr(e[0].pd, at, 100000, ALL_ACCESS)) != NULL);
	CHECK((mr[1] = ibv_reg_mr(e[0].pd, at + 50000, 10, ALL_ACCESS)) != NULL);
	CHECK((mr[2] = ibv_reg_mr(e[0].pd, at, 100000, ALL_ACCESS)) != NULL);
	CHECK(ibv_dereg_mr(mr[0]) == 0);
	move(at + 20000);
	CHECK(ibv_dereg_mr(mr[2]) == 0);
	CHECK(ibv_dereg_mr(mr[1]) == 0);
	CHECK(at[99999] == 'n');
	free(at);
}

/* The same pages are regions of both devices, in any order of their ends, again and again. */
static void
on_two_devices(void)
{
	char *at = aligned_alloc(4096, PEER_BYTES);
	struct ibv_mr *mr[2];

	for (int round = 0; round < 6; round++) {
		const int first = round & 1, last = round >> 1 & 1;

		memset(at, 'a' + round, PEER_BYTES);
		CHECK((mr[first] = ibv_reg_mr(e[first].pd, at, PEER_BYTES, ALL_ACCESS)) != NULL);
		CHECK((mr[!first] = ibv_reg_mr(e[!first].pd, at, PEER_BYTES, ALL_ACCESS)) != NULL);
		memset(at, 'A' + round, 100);
		CHECK(end_run(&e[1], IBV_WR_RDMA_WRITE, mr[1], at, 100, mr[0], at + 8000, 1)
				.status == IBV_WC_SUCCESS);
		CHECK(memcmp(at, at + 8000, 100) == 0 && at[8100] == 'a' + round);
		CHECK(ibv_dereg_mr(mr[last]) == 0);
		/* It comes back while the other device has the pages. */
		CHECK((mr[last] = ibv_reg_mr(e[last].pd, at, 5000, ALL_ACCESS)) != NULL);
		CHECK(ibv_dereg_mr(mr[!last]) == 0);
		CHECK(ibv_dereg_mr(mr[last]) == 0);
		CHECK(at[8050] == 'A' + round);
	}
	free(at);
}

/*
 * The child has what was there, and what it writes is not the parent's.
 * @param by_handler the program's handler writes, which was there before the first region
 */
static void
fork_copies(bool by_handler)
{
	const char there = by_handler ? 'c' : 'p';
	char *at = malloc(BYTES);
	struct ibv_mr *mr;
	int status;
	pid_t pid;

	memset(at, 'p', BYTES);
	CHECK((mr = ibv_reg_mr(e[0].pd, at, BYTES, ALL_ACCESS)) != NULL);
	CHECK(ibv_is_fork_initialized() == IBV_FORK_UNNEEDED);
	handled = by_handler ? at : NULL;
	pid = fork();
	handled = NULL;
	CHECK(pid >= 0);
	if (pid == 0) {
		const int good = at[0] == there && at[BYTES - 1] == there;

		memset(at, 'c', BYTES);
		_exit(good ? 0 : 1);
	}
	CHECK(waitpid(pid, &status, 0) == pid && status == 0);
	CHECK(at[0] == 'p' && at[BYTES - 1] == 'p');
	CHECK(ibv_dereg_mr(mr) == 0);
	move(at);
	free(at);
}

/*
 * Small buffers that are free lie in the region's pages: what the child's side of fork() does with
 * its heap must not be seen in the parent's.
 */
static void
fork_leaves_the_heap(void)
{
	char *small[200];
	struct ibv_mr *mr;
	int status;
	pid_t pid;

	for (int i = 0; i < 200; i++)
		CHECK((small[i] = malloc(24)) != NULL);
	CHECK((mr = ibv_reg_mr(e[0].pd, small[20], 24, ALL_ACCESS)) != NULL);
	for (int i = 0; i < 200; i++) {
		if (i != 20)
			free(small[i]);
	}
	pid = fork();
	CHECK(pid >= 0);
	if (pid == 0)
		_exit(0);
	CHECK(waitpid(pid, &status, 0) == pid && status == 0);
	free(malloc(40000)); /* glibc looks at each of them now */
	CHECK(ibv_dereg_mr(mr) == 0);
	free(small[20]);
	free(malloc(40000));
}

static void
refused(void *at, size_t length, int access, int err)
{
	errno = 0;
	CHECK(ibv_reg_mr(e[0].pd, at, length, access) == NULL && errno == err);
}

static void
what_cannot_be(void)
{
	char *p = mmap(NULL, 3 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(mprotect(p + 4096, 4096, PROT_READ) == 0);
	refused(p, 3 * 4096, ALL_ACCESS, EFAULT);
	refused(p, 3 * 4096, IBV_ACCESS_LOCAL_WRITE, EFAULT);
	CHECK(mprotect(p + 4096, 4096, PROT_NONE) == 0);
	refused(p, 3 * 4096, ALL_ACCESS, EFAULT);
	CHECK(munmap(p + 4096, 4096) == 0);
	refused(p, 3 * 4096, ALL_ACCESS, EFAULT);
	refused(p, 0, ALL_ACCESS, EINVAL);
	refused(p, 4096, IBV_ACCESS_REMOTE_WRITE, EINVAL);
	refused(p, 4096, IBV_ACCESS_ON_DEMAND, EOPNOTSUPP);
	refused(p, 4096, IBV_ACCESS_LOCAL_WRITE | 1 << 15, EINVAL); /* as the kernel */
	munmap(p, 3 * 4096);
}

/* A region gets no more by ibv_rereg_mr() than by ibv_reg_mr(): its pages are not written to. */
static void
read_only_for_good(void)
{
	const int moves = IBV_REREG_MR_CHANGE_TRANSLATION, may = IBV_REREG_MR_CHANGE_ACCESS;
	char *p = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct ibv_mr *mr;

	CHECK(mprotect(p, 4096, PROT_READ) == 0);
	CHECK((mr = ibv_reg_mr(e[0].pd, p, 4096, IBV_ACCESS_REMOTE_READ)) != NULL);
	CHECK(ibv_rereg_mr(mr, may, NULL, NULL, 0, ALL_ACCESS) == IBV_REREG_MR_ERR_INPUT);
	CHECK(errno == EFAULT);
	CHECK(ibv_rereg_mr(mr, may, NULL, NULL, 0, 0) == 0);
	CHECK(mprotect(p, 4096, PROT_READ | PROT_WRITE) == 0);
	CHECK(ibv_rereg_mr(mr, may, NULL, NULL, 0, ALL_ACCESS) == 0);
	CHECK(mprotect(p + 4096, 4096, PROT_READ) == 0);
	CHECK(ibv_rereg_mr(mr, moves, NULL, p + 4096, 4096, 0) == IBV_REREG_MR_ERR_INPUT);
	CHECK(errno == EFAULT);
	CHECK(ibv_rereg_mr(mr, moves | may, NULL, p + 4096, 4096, IBV_ACCESS_REMOTE_READ) == 0);
	CHECK(ibv_rereg_mr(mr, moves, NULL, p + 4096, 4096, 0) == 0);
	CHECK(ibv_dereg_mr(mr) == 0);
	munmap(p, 8192);
}

static atomic_bool stop;

/* Another thread allocates and writes all the time. */
static void *
busy(void *arg)
{
	while (!atomic_load(&stop)) {
		char *p = malloc(5000);

		memset(p, 1, 5000);
		free(p);
	}
	return arg;
}

int
main(void)
{
	char *heap = malloc(4 * BYTES);
	pthread_t t;

	/* Before the first region. */
	CHECK(pthread_atfork(NULL, NULL, in_child) == 0);
	ends_open(e, 7);
	move(heap + 77);
	move(zeroed + BYTES);
	on_the_stack();
	fork_on_the_stack();
	own_memfd();
	nested();
	on_two_devices();
	fork_copies(false);
	fork_copies(true);
	fork_leaves_the_heap();
	what_cannot_be();
	read_only_for_good();
	CHECK(pthread_create(&t, NULL, busy, NULL) == 0);
	for (int i = 0; i < 20; i++)
		move(heap + 77 * i);
	nested();
	on_two_devices();
	fork_copies(true);
	fork_leaves_the_heap();
	atomic_store(&stop, true);
	pthread_join(t, NULL);
	printf("all kinds of memory\n");
	return 0;
}
