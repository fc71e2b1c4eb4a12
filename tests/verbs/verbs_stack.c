/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Threads and coroutines have small stacks: what calls take of one. A region is made of memory that
 * is converted for it, of memory of another one, and of shared memory.
 */
#include <errno.h>
#include <pthread.h>
#include <sys/mman.h>

#include "ends.h"

#define STACK ((size_t)256 << 10)
#define MOST  ((size_t)20 << 10)
#define LARGE ((size_t)100 << 10) /* frames of AddressSanitizer are larger */
#define BYTES ((size_t)16 << 12)

static struct ibv_device *device;

static void *
run(void *shared)
{
	char *own = aligned_alloc(4096, BYTES);

	for (int i = 0; i < 2; i++) {
		struct ibv_mr *all, *part, *of_file;
		struct end e;

		end_open(&e, device);
		all = ibv_reg_mr(e.pd, own, BYTES, ALL_ACCESS);
		part = ibv_reg_mr(e.pd, own + 5000, 100, ALL_ACCESS);
		of_file = ibv_reg_mr(e.pd, shared, BYTES, ALL_ACCESS);
		CHECK(all != NULL && part != NULL && of_file != NULL);
		CHECK(ibv_dereg_mr(all) == 0 && ibv_dereg_mr(part) == 0);
		CHECK(ibv_dereg_mr(of_file) == 0);
		CHECK(ibv_destroy_qp(e.qp) == 0 && ibv_destroy_cq(e.cq) == 0);
		CHECK(ibv_dealloc_pd(e.pd) == 0 && ibv_close_device(e.ctx) == 0);
	}
	free(own);
	return NULL;
}

int
main(void)
{
	char *stack = mmap(NULL, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *shared = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct ibv_device **list = ibv_get_device_list(NULL);
	size_t untouched = 0;
	pthread_attr_t attr;
	pthread_t thread;

	CHECK(stack != MAP_FAILED && shared != MAP_FAILED && list != NULL);
	device = list[0];
	memset(stack, 0x5a, STACK);
	CHECK(pthread_attr_init(&attr) == 0 && pthread_attr_setstack(&attr, stack, STACK) == 0);
	CHECK(pthread_create(&thread, &attr, run, shared) == 0);
	CHECK(pthread_join(thread, NULL) == 0);
	while (untouched < STACK && stack[untouched] == 0x5a)
		untouched++;
	fprintf(stderr, "%zu bytes\n", STACK - untouched);
	CHECK(STACK - untouched <= (getenv("SANITIZER") != NULL ? LARGE : MOST));
	printf("little\n");
	return 0;
}
