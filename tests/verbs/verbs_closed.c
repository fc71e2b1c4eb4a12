/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A program that closes devices without having deregistered its regions, again and again: they end
 * with the device, so that nothing is left of them but what the program has not freed. And one
 * whose child closes the device.
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ends.h"

enum { TIMES = 40, WARM = 4, LEN = 1 << 16, OWN = 8 };

static int
files(void)
{
	DIR *d = opendir("/proc/self/fd");
	int n = 0;

	CHECK(d != NULL);
	while (readdir(d) != NULL)
		n++;
	closedir(d);
	return n;
}

static bool
is_shared(const void *at)
{
	FILE *f = fopen("/proc/self/maps", "r");
	unsigned long from, to;
	char line[512], rights[5];
	bool shared = false;

	CHECK(f != NULL);
	while (fgets(line, sizeof(line), f) != NULL) {
		CHECK(sscanf(line, "%lx-%lx %4s", &from, &to, rights) == 3);
		if (from <= (unsigned long)at && (unsigned long)at < to)
			shared = rights[3] == 's';
	}
	fclose(f);
	return shared;
}

/* A child that closes what it has inherited closes nothing else, and its parent's goes on. */
static void
in_a_child(struct ibv_device *device)
{
	struct ibv_context *ctx = ibv_open_device(device);
	char *at = mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct ibv_port_attr port;
	struct ibv_pd *pd;
	struct ibv_mr *mr;
	int status, own[OWN];
	pid_t pid;

	CHECK(at != MAP_FAILED && ctx != NULL && (pd = ibv_alloc_pd(ctx)) != NULL);
	mr = ibv_reg_mr(pd, at, LEN, IBV_ACCESS_LOCAL_WRITE);
	CHECK(mr != NULL && (pid = fork()) >= 0);
	if (pid == 0) {
		for (int i = 0; i < OWN; i++)
			CHECK((own[i] = open("/dev/null", O_RDONLY)) >= 0);
		CHECK(ibv_close_device(ctx) == 0);
		for (int i = 0; i < OWN; i++)
			CHECK(fcntl(own[i], F_GETFD) == 0);
		ctx = ibv_open_device(device);
		CHECK(ctx != NULL && (pd = ibv_alloc_pd(ctx)) != NULL);
		mr = ibv_reg_mr(pd, at, LEN, IBV_ACCESS_LOCAL_WRITE);
		CHECK(mr != NULL && ibv_dereg_mr(mr) == 0 && !is_shared(at));
		CHECK(ibv_dealloc_pd(pd) == 0 && ibv_close_device(ctx) == 0);
		_exit(0);
	}
	CHECK(waitpid(pid, &status, 0) == pid && status == 0);
	CHECK(ibv_query_port(ctx, 1, &port) == 0 && is_shared(at));
	CHECK(ibv_dereg_mr(mr) == 0 && ibv_dealloc_pd(pd) == 0 && ibv_close_device(ctx) == 0);
}

int
main(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	int before = 0;

	CHECK(list != NULL && list[0] != NULL);
	for (int i = 0; i < TIMES; i++) {
		struct ibv_context *ctx = ibv_open_device(list[0]);
		struct ibv_pd *pd;
		struct ibv_mr *mr;
		char *at =
			mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		CHECK(at != MAP_FAILED && ctx != NULL);
		memset(at, i, LEN);
		pd = ibv_alloc_pd(ctx);
		CHECK(pd != NULL);
		CHECK(ibv_reg_mr(pd, at, LEN, IBV_ACCESS_LOCAL_WRITE) != NULL);
		mr = ibv_reg_mr(pd, at + LEN / 2, LEN / 2, IBV_ACCESS_LOCAL_WRITE);
		CHECK(mr != NULL && ibv_dereg_mr(mr) == 0 && is_shared(at));
		CHECK(ibv_close_device(ctx) == 0);
		CHECK(!is_shared(at) && at[0] == i && at[LEN - 1] == i);
		munmap(at, LEN);
		if (i == WARM)
			before = files();
	}
	CHECK(files() == before);
	in_a_child(list[0]);
	ibv_free_device_list(list);
	puts("closed");
	return 0;
}
