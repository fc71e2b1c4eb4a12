/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A child of fork() has copies of what its parent has registered, whatever the program has done to
 * that memory and to itself: verbs_forked CASE.
 */
#include <fcntl.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ends.h"

#define PAGE  4096
#define PAGES 4
#define BYTES (PAGES * PAGE)
#define FILES 64

static struct end e[2];
static char *at;
static struct ibv_mr *mr;

static char *
mapped(size_t bytes)
{
	char *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(p != MAP_FAILED);
	return p;
}

/* What the child writes to these bytes, the parent does not see. */
static void
check_fork(char *from, size_t bytes)
{
	int status;
	pid_t pid;

	memset(from, 'p', bytes);
	pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		const bool good = from[0] == 'p' && from[bytes - 1] == 'p';

		memset(from, 'c', bytes);
		_exit(good ? 7 : 1);
	}
	CHECK(waitpid(pid, &status, 0) == pid);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 7);
	CHECK(from[0] == 'p' && from[bytes - 1] == 'p');
}

/* What a peer writes to this address of a region is there. */
static void
check_write(const struct ibv_mr *region, const char *address, const char *there)
{
	char *from = mapped(PAGE);
	struct ibv_mr *own = ibv_reg_mr(e[1].pd, from, PAGE, ALL_ACCESS);

	CHECK(own != NULL);
	memset(from, 'w', 8);
	CHECK(end_run(&e[1], IBV_WR_RDMA_WRITE, own, from, 8, region, address, 1).status ==
		IBV_WC_SUCCESS);
	CHECK(memcmp(there, "wwwwwwww", 8) == 0);
	CHECK(ibv_dereg_mr(own) == 0);
	CHECK(munmap(from, PAGE) == 0);
}

static void
check_end(void)
{
	CHECK(ibv_dereg_mr(mr) == 0);
	check_fork(at, BYTES);
	CHECK((mr = ibv_reg_mr(e[0].pd, at, BYTES, ALL_ACCESS)) != NULL);
	check_write(mr, at + PAGE, at + PAGE);
	CHECK(ibv_dereg_mr(mr) == 0);
}

/* At RLIMIT_NOFILE: for fork(), and for the region's end. */
static void
without_files(void)
{
	struct rlimit before, few;
	int n = 0, fds[FILES];

	CHECK(getrlimit(RLIMIT_NOFILE, &before) == 0);
	few = (struct rlimit){ FILES, before.rlim_max };
	CHECK(setrlimit(RLIMIT_NOFILE, &few) == 0);
	while (n < FILES && (fds[n] = open("/dev/null", O_RDONLY)) >= 0)
		n++;
	CHECK(n < FILES && errno == EMFILE);
	check_fork(at, BYTES);
	check_fork(at, BYTES);
	CHECK(ibv_dereg_mr(mr) == 0);
	check_fork(at, BYTES);
	CHECK(setrlimit(RLIMIT_NOFILE, &before) == 0);
	while (n != 0)
		close(fds[--n]);
	CHECK((mr = ibv_reg_mr(e[0].pd, at, BYTES, ALL_ACCESS)) != NULL);
	check_end();
}

/* In a root without /proc. */
static void
without_proc(void)
{
	char dir[] = "/tmp/rocelane-forked-XXXXXX";

	CHECK(mkdtemp(dir) != NULL && chdir(dir) == 0 && rmdir(dir) == 0);
	if (chroot(".") != 0) {
		CHECK(errno == EPERM);
		return;
	}
	CHECK(access("/proc", F_OK) != 0);
	check_fork(at, BYTES);
	check_end();
}

/* Pages without access, as those of a garbage collector. */
static void
without_access(void)
{
	int status;
	pid_t pid;

	for (int round = 0; round < 2; round++) {
		memset(at, 'p', BYTES);
		CHECK(mprotect(at + PAGE, PAGE, PROT_NONE) == 0);
		if (round == 1)
			CHECK(ibv_dereg_mr(mr) == 0);
		pid = fork();
		CHECK(pid >= 0);
		if (pid == 0) {
			const bool good = mprotect(at + PAGE, PAGE, PROT_READ | PROT_WRITE) == 0 &&
					  at[PAGE] == 'p';

			memset(at, 'c', BYTES);
			_exit(good ? 7 : 1);
		}
		CHECK(waitpid(pid, &status, 0) == pid);
		CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 7);
		CHECK(mprotect(at + PAGE, PAGE, PROT_READ | PROT_WRITE) == 0);
		CHECK(at[0] == 'p' && at[PAGE] == 'p' && at[BYTES - 1] == 'p');
	}
	CHECK((mr = ibv_reg_mr(e[0].pd, at, BYTES, ALL_ACCESS)) != NULL);
	check_end();
}

/* Pages that the child shall not have. */
static void
not_for_children(void)
{
	CHECK(madvise(at + PAGE, PAGE, MADV_DONTFORK) == 0);
	check_fork(at, PAGE);
	check_fork(at + 2 * PAGE, 2 * PAGE);
	CHECK(madvise(at + PAGE, PAGE, MADV_DOFORK) == 0);
	check_end();
}

/* mremap() takes the region elsewhere: it is the same memory for the program and for peers. */
static void
moved(void)
{
	struct ibv_mr *again;
	char *to = mapped(BYTES), *was = at;

	at = mremap(at, BYTES, BYTES, MREMAP_MAYMOVE | MREMAP_FIXED, to);
	CHECK(at == to);
	check_fork(at, BYTES);
	CHECK((again = ibv_reg_mr(e[0].pd, at + 100, 2 * PAGE, ALL_ACCESS)) != NULL);
	check_write(mr, was + PAGE, at + PAGE);
	check_write(again, at + PAGE + 8, at + PAGE + 8);
	CHECK(ibv_dereg_mr(again) == 0);
	check_end();
}

/* mremap() made it longer: what is behind the region's end comes with the end of the region. */
static void
longer(void)
{
	memset(at, 'p', BYTES);
	at = mremap(at, BYTES, 2 * BYTES, MREMAP_MAYMOVE);
	CHECK(at != MAP_FAILED);
	check_fork(at, BYTES);
	CHECK(ibv_reg_mr(e[0].pd, at, 2 * BYTES, ALL_ACCESS) == NULL && errno == EFAULT);
	CHECK(ibv_dereg_mr(mr) == 0);
	CHECK(at[BYTES - 1] == 'p' && at[BYTES] == '\0');
	check_fork(at, 2 * BYTES);
	CHECK((mr = ibv_reg_mr(e[0].pd, at, 2 * BYTES, ALL_ACCESS)) != NULL);
	check_write(mr, at + 2 * BYTES - PAGE, at + 2 * BYTES - PAGE);
	check_end();
}

/* A private mapping of a file that is shorter. */
static void
short_file(void)
{
	FILE *f = tmpfile();
	char *p;

	CHECK(f != NULL && ftruncate(fileno(f), 100) == 0);
	p = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, fileno(f), 0);
	CHECK(p != MAP_FAILED);
	CHECK(ibv_reg_mr(e[0].pd, p, 2 * PAGE, ALL_ACCESS) == NULL && errno == EFAULT);
	CHECK(ibv_dereg_mr(mr) == 0);
	CHECK((mr = ibv_reg_mr(e[0].pd, p, PAGE, ALL_ACCESS)) != NULL);
	check_write(mr, p, p);
	check_end();
	fclose(f);
}

int
main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} cases[] = { { "files", without_files }, { "proc", without_proc },
		{ "access", without_access }, { "dontfork", not_for_children }, { "moved", moved },
		{ "longer", longer }, { "short", short_file } };

	ends_open(e, 7);
	at = mapped(BYTES);
	CHECK((mr = ibv_reg_mr(e[0].pd, at, BYTES, ALL_ACCESS)) != NULL);
	for (size_t i = 0; argc > 1 && i < sizeof(cases) / sizeof(cases[0]); i++)
		if (strcmp(argv[1], cases[i].name) == 0)
			cases[i].run();
	printf("its own\n");
	return 0;
}
