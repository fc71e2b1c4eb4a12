/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What keeping the files of shared mappings (lib/verbs/kept.c) must not do to a program:
 *
 *   mapper handlers   a fork() handler waits for another thread, which unmaps
 *   mapper threads    fork() while another thread maps, and the child maps
 *   mapper few        descriptors of a program that may have few
 *   mapper many       descriptors that other programs of the user have under way
 *   mapper refused    what the kernel does not map is not mapped
 *   mapper unseen     what is unmapped by a system call of the program's own is given back
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define CHECK(x)                                                                     \
	do {                                                                         \
		if (!(x)) {                                                          \
			fprintf(stderr, "line %d: %s\n", __LINE__, strerror(errno)); \
			_exit(1);                                                    \
		}                                                                    \
	} while (0)

#define BYTES    ((size_t)4096)
#define FORKS    300
#define FEW      64
#define PROGRAMS 20
#define MAPPINGS 64 /* of each */
#define NOBODY   65534

static void *
map_shared(void)
{
	void *at = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	CHECK(at != MAP_FAILED);
	return at;
}

static struct timespec
in_a_while(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	t.tv_sec += 20;
	return t;
}

/* ---- handlers -------------------------------------------------------------------------------- */

static sem_t go, gone;
static bool waits;

static void *
unmap_when_told(void *at)
{
	sem_wait(&go);
	munmap(at, BYTES);
	sem_post(&gone);
	return NULL;
}

static void
meet(void)
{
	const struct timespec end = in_a_while();

	if (!waits)
		return;
	sem_post(&go);
	CHECK(sem_timedwait(&gone, &end) == 0);
}

static void
begin(void)
{
	pthread_atfork(meet, NULL, NULL);
}

/* Before the handlers of libraries, as those of a library that this program needs: it runs last. */
__attribute__((section(".preinit_array"), used)) static void (*const first)(void) = begin;

static void
wait_for(pid_t child)
{
	const struct timespec most = { .tv_sec = 20 };
	sigset_t ended;
	int status;

	CHECK(child > 0);
	sigemptyset(&ended);
	sigaddset(&ended, SIGCHLD);
	CHECK(sigtimedwait(&ended, NULL, &most) == SIGCHLD);
	CHECK(waitpid(child, &status, 0) == child && status == 0);
}

static void
handlers(void)
{
	pthread_t t;
	pid_t child;

	sem_init(&go, 0, 0);
	sem_init(&gone, 0, 0);
	CHECK(pthread_create(&t, NULL, unmap_when_told, map_shared()) == 0);
	waits = true;
	child = fork();
	if (child == 0)
		_exit(0);
	wait_for(child);
	CHECK(pthread_join(t, NULL) == 0);
}

/* ---- threads --------------------------------------------------------------------------------- */

static _Atomic bool over;

static void *
map_on(void *arg)
{
	while (!over)
		munmap(map_shared(), BYTES);
	return arg;
}

/* One in two children has no handlers run for it. */
static void
threads(void)
{
	char *before = map_shared();
	pthread_t t;

	CHECK(pthread_create(&t, NULL, map_on, NULL) == 0);
	for (int i = 0; i < FORKS; i++) {
		const pid_t child = i % 2 == 0 ? fork() : _Fork();

		if (child == 0) {
			before[0] = (char)i;
			munmap(map_shared(), BYTES);
			munmap(before, BYTES);
			_exit(0);
		}
		wait_for(child);
		CHECK(before[0] == (char)i);
	}
	over = true;
	CHECK(pthread_join(t, NULL) == 0);
}

/* ---- descriptors ----------------------------------------------------------------------------- */

static void
limit(rlim_t n)
{
	const struct rlimit r = { n, n };

	CHECK(setrlimit(RLIMIT_NOFILE, &r) == 0);
}

/* Anonymous ones, and files without a name. */
static void
map_many(void)
{
	for (int i = 0; i < MAPPINGS; i++) {
		const int fd = i % 2 == 0 ? -1 : memfd_create("mapper", 0);

		if (i % 2 == 0) {
			map_shared();
			continue;
		}
		CHECK(fd >= 0 && ftruncate(fd, BYTES) == 0);
		CHECK(mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) != MAP_FAILED);
		close(fd);
	}
}

/* Seven in eight are the program's. */
static void
few(void)
{
	int mine = 0;

	limit(FEW);
	map_many();
	while (open("/dev/null", O_RDONLY) >= 0)
		mine++;
	printf("%d of %d\n", mine, FEW);
	CHECK(mine >= FEW * 7 / 8 - 8);
	for (int fd = STDERR_FILENO + 1; fd < FEW; fd++) /* LeakSanitizer opens some */
		close(fd);
}

static void
pass_one(void)
{
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(sizeof(int))];
	} c = { .head = { CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS } };
	struct iovec byte = { "", 1 };
	struct msghdr m = {
		.msg_iov = &byte, .msg_iovlen = 1, .msg_control = &c, .msg_controllen = sizeof(c)
	};
	int ends[2];

	CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
	memcpy(CMSG_DATA(&c.head), &ends[1], sizeof(int));
	CHECK(sendmsg(ends[0], &m, 0) == 1);
}

/* As many descriptors of a user may be in messages as a process may have. */
static void
many(void)
{
	pid_t child[PROGRAMS];
	int told[2];
	char c;

	if (getuid() == 0)
		CHECK(setgroups(0, NULL) == 0 && setgid(NOBODY) == 0 && setuid(NOBODY) == 0);
	limit(256);
	CHECK(pipe(told) == 0);
	for (int i = 0; i < PROGRAMS; i++) {
		child[i] = fork();
		if (child[i] == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			map_many();
			CHECK(write(told[1], "", 1) == 1);
			pause();
		}
		CHECK(child[i] > 0 && read(told[0], &c, 1) == 1);
	}
	pass_one();
	for (int i = 0; i < PROGRAMS; i++)
		kill(child[i], SIGKILL);
}

/* ---- refused --------------------------------------------------------------------------------- */

/* As the system call has it: more than there is memory, and no multiple of a page. */
static void
refused(void)
{
	static const struct {
		size_t len;
		off_t offset;
	} one[] = { { (size_t)1 << 46, 0 }, { SIZE_MAX - BYTES + 1, 0 }, { 0, 0 }, { BYTES, 1 } };
	const int prot = PROT_READ | PROT_WRITE, flags = MAP_SHARED | MAP_ANONYMOUS;

	for (size_t i = 0; i < sizeof(one) / sizeof(one[0]); i++) {
		int err;

		errno = 0;
		CHECK(syscall(SYS_mmap, NULL, one[i].len, prot, flags, -1, one[i].offset) == -1);
		err = errno;
		errno = 0;
		CHECK(mmap(NULL, one[i].len, prot, flags, -1, one[i].offset) == MAP_FAILED);
		CHECK(errno == err);
	}
}

/* ---- unseen ---------------------------------------------------------------------------------- */

static unsigned int
descriptors(void)
{
	unsigned int n = 0;

	for (int fd = 0; fd < 1024; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

/* As who writes over munmap() does it, or has no libc. */
static void
unseen(void)
{
	const unsigned int before = descriptors();
	void *at[MAPPINGS];

	limit(1024);
	for (int i = 0; i < 2 * MAPPINGS; i++)
		CHECK(syscall(SYS_munmap, map_shared(), BYTES) == 0);
	CHECK(descriptors() <= before + 1);
	for (int i = 0; i < MAPPINGS; i++)
		at[i] = map_shared();
	for (int i = 0; i < MAPPINGS; i++)
		CHECK(syscall(SYS_munmap, at[i], BYTES) == 0);
	for (int i = 0; i < 2 * MAPPINGS; i++)
		munmap(map_shared(), BYTES);
	CHECK(descriptors() <= before + 1);
}

int
main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} all[] = { { "handlers", handlers }, { "threads", threads }, { "few", few },
		{ "many", many }, { "refused", refused }, { "unseen", unseen } };
	sigset_t ended;

	sigemptyset(&ended);
	sigaddset(&ended, SIGCHLD);
	sigprocmask(SIG_BLOCK, &ended, NULL);
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		if (argc == 2 && strcmp(argv[1], all[i].name) == 0) {
			all[i].run();
			return 0;
		}
	}
	return 2;
}
