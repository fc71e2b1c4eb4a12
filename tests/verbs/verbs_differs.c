/* SPDX-License-Identifier: BSD-3-Clause */
/* What rocelane-run(1) says can be told from memory on a NIC: just so, and no more. */
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "../clib/uring.h"
#include "ends.h"

#define FILES 256
#define PAGE  4096u
#define LEN   (2 * PAGE)
#define MORE  (16 * PAGE)

static struct end e[2];
static sigjmp_buf back;

static void
on_bus(int sig)
{
	siglongjmp(back, sig);
}

static bool
is_there(volatile char *at)
{
	if (sigsetjmp(back, 1) != 0)
		return false;
	*at = 1;
	return true;
}

static char *
private_memory(void)
{
	char *p = mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(p != MAP_FAILED);
	memset(p, 'B', LEN);
	return p;
}

static struct ibv_mr *
region(char *p)
{
	struct ibv_mr *mr = ibv_reg_mr(e[0].pd, p, LEN, ALL_ACCESS);

	CHECK(mr != NULL);
	return mr;
}

/* mremap() moves a region, and what it adds is not there until the region is deregistered. */
static void
made_longer(void)
{
	char *p = private_memory();
	struct ibv_mr *mr = region(p);

	p = mremap(p, LEN, MORE, MREMAP_MAYMOVE);
	CHECK(p != MAP_FAILED && p[0] == 'B' && p[LEN - 1] == 'B');
	CHECK(is_there(&p[LEN - 1]) && !is_there(&p[LEN]) && !is_there(&p[MORE - 1]));
	CHECK(ibv_dereg_mr(mr) == 0);
	CHECK(p[0] == 'B' && is_there(&p[LEN]) && is_there(&p[MORE - 1]));
	CHECK(munmap(p, MORE) == 0);
}

/* realloc() of a large block is mremap(). */
static void
reallocated(void)
{
	char *p = malloc(MORE * 64), *q;
	struct ibv_mr *mr;

	CHECK(p != NULL);
	memset(p, 'B', LEN);
	mr = region(p);
	CHECK(ibv_dereg_mr(mr) == 0);
	CHECK((q = realloc(p, MORE * 256)) != NULL);
	CHECK(q[0] == 'B' && q[LEN - 1] == 'B' && is_there(&q[MORE * 256 - 1]));
	free(q);
}

static void
advised(void)
{
	char *p = private_memory();
	struct ibv_mr *mr = region(p);

	CHECK(madvise(p, LEN, MADV_DONTNEED) == 0 && p[0] == 'B' && p[LEN - 1] == 'B');
	CHECK(madvise(p, LEN, MADV_FREE) == -1 && errno == EINVAL);
	CHECK(madvise(p, LEN, MADV_WIPEONFORK) == -1 && errno == EINVAL);
	CHECK(ibv_dereg_mr(mr) == 0);
	CHECK(madvise(p, LEN, MADV_FREE) == 0);
	CHECK(madvise(p, LEN, MADV_DONTNEED) == 0 && p[0] == 0 && p[LEN - 1] == 0);
	CHECK(munmap(p, LEN) == 0);
}

/* The ring puts it where the program and the device see it. */
static void
read_by(struct uring *u, char *p, char byte)
{
	static char from[LEN];
	FILE *f = tmpfile();

	memset(from, byte, LEN);
	CHECK(f != NULL && fwrite(from, 1, LEN, f) == LEN && fflush(f) == 0);
	CHECK(uring_read_fixed(u, fileno(f), p, LEN) == (int)LEN);
	CHECK(memcmp(p, from, LEN) == 0);
	fclose(f);
}

static void
not_while_fixed(char *p)
{
	errno = 0;
	CHECK(ibv_reg_mr(e[0].pd, p, LEN, ALL_ACCESS) == NULL && errno == EBUSY);
}

/* The end of a region looks for rings also where the program has no descriptor left. */
static void
ends_without_files(struct ibv_mr *mr)
{
	struct rlimit before, few;
	int n = 0, fds[FILES];

	CHECK(getrlimit(RLIMIT_NOFILE, &before) == 0);
	few = (struct rlimit){ FILES, before.rlim_max };
	CHECK(setrlimit(RLIMIT_NOFILE, &few) == 0);
	while (n < FILES && (fds[n] = open("/dev/null", O_RDONLY)) >= 0)
		n++;
	CHECK(n < FILES && errno == EMFILE);
	CHECK(ibv_dereg_mr(mr) == 0);
	while (n != 0)
		close(fds[--n]);
	CHECK(setrlimit(RLIMIT_NOFILE, &before) == 0);
}

/* Fixed buffers of an io_uring before a region, and in one. Where there are no rings: neither. */
static void
fixed_buffers(void)
{
	char *p = private_memory();
	struct ibv_mr *mr;
	struct uring u;

	if (uring_open(&u) != 0)
		return;
	CHECK(uring_fix(&u, p, LEN) == 0);
	not_while_fixed(p);
	read_by(&u, p, '1');
	CHECK(uring_unfix(&u) == 0);
	ends_move(e, region(p), p, p);
	mr = region(p);
	CHECK(uring_fix(&u, p, LEN) == 0);
	read_by(&u, p, '2');
	ends_move(e, mr, p, p); /* its end leaves the pages shared: */
	read_by(&u, p, '3');
	not_while_fixed(p);
	CHECK(uring_unfix(&u) == 0);
	mr = region(p);
	CHECK(uring_fix(&u, p, LEN) == 0);
	ends_without_files(mr);
	read_by(&u, p, '4');
	CHECK(uring_unfix(&u) == 0);
	CHECK(ibv_dereg_mr(region(p)) == 0);
	CHECK(madvise(p, LEN, MADV_FREE) == 0); /* so they are private again */
	uring_close(&u);
	CHECK(munmap(p, LEN) == 0);
}

int
main(void)
{
	CHECK(signal(SIGBUS, on_bus) != SIG_ERR);
	ends_open(e, 7);
	made_longer();
	reallocated();
	advised();
	fixed_buffers();
	puts("as the page says");
	return 0;
}
