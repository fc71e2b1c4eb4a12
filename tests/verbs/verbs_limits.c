/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Where RLIMIT_FSIZE allows no memfd as long as a region, that is refused, without SIGXFSZ.
 * Also built with ASan, as programs' own tests are.
 */
#include <errno.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "ends.h"

#define BYTES ((size_t)1 << 20)

static struct end e[2];

static void
allow_files_of(rlim_t bytes)
{
	struct rlimit most;

	CHECK(getrlimit(RLIMIT_FSIZE, &most) == 0);
	most.rlim_cur = bytes < most.rlim_max ? bytes : most.rlim_max;
	CHECK(setrlimit(RLIMIT_FSIZE, &most) == 0);
}

int
main(void)
{
	char *at = calloc(1, BYTES), *shared;
	struct ibv_mr *mr;

	CHECK(at != NULL);
	ends_open(e, 7);
	allow_files_of(BYTES / 2);
	errno = 0;
	CHECK(ibv_reg_mr(e[0].pd, at, BYTES, ALL_ACCESS) == NULL && errno == EFBIG);
	mr = ibv_reg_mr(e[0].pd, at, BYTES / 4, ALL_ACCESS);
	CHECK(mr != NULL && ibv_dereg_mr(mr) == 0);
	shared = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(shared != MAP_FAILED);
	shared[BYTES - 1] = 'x';
	CHECK(munmap(shared, BYTES) == 0);
	allow_files_of(RLIM_INFINITY);
	mr = ibv_reg_mr(e[0].pd, at, BYTES, ALL_ACCESS);
	CHECK(mr != NULL && ibv_dereg_mr(mr) == 0);
	free(at);
	printf("limits\n");
	fflush(stdout);
	_exit(0); /* what the ends have is not given back */
}
