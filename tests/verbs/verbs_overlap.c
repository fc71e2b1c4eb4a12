/* SPDX-License-Identifier: BSD-3-Clause */
/* Regions that share pages, as buffers of the heap do: in any order, each with its own end. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <unistd.h>

#include "ends.h"

#define PAGE    4096
#define PAGES   24
#define ROUNDS  400
#define REGIONS 8

static struct end e[2];
static char *mem; /* PAGES of them, private */
static char *peer;
static struct ibv_mr *peer_mr;

static struct ibv_mr *
reg(size_t at, size_t len)
{
	struct ibv_mr *mr = ibv_reg_mr(e[0].pd, mem + at, len, ALL_ACCESS);

	CHECK(mr != NULL && mr->addr == mem + at && mr->length == len);
	return mr;
}

static void
dereg(struct ibv_mr *mr)
{
	CHECK(ibv_dereg_mr(mr) == 0);
}

/* Written by the other device, read by it, and seen by the program: the whole region. */
static void
use(const struct ibv_mr *mr, char c)
{
	memset(peer, c, mr->length);
	CHECK(end_run(&e[1], IBV_WR_RDMA_WRITE, peer_mr, peer, mr->length, mr, mr->addr, 1)
			.status == IBV_WC_SUCCESS);
	CHECK(memcmp(mr->addr, peer, mr->length) == 0);
	memset(mr->addr, c + 1, mr->length);
	CHECK(end_run(&e[1], IBV_WR_RDMA_READ, peer_mr, peer, mr->length, mr, mr->addr, 2).status ==
		IBV_WC_SUCCESS);
	CHECK(memcmp(mr->addr, peer, mr->length) == 0);
}

/* Two small buffers of the heap; the second begins in the first one's page and ends behind it. */
static void
neighbours(void)
{
	char *a = malloc(3000), *b = malloc(6000);
	struct ibv_mr *mr[2];

	CHECK((mr[0] = ibv_reg_mr(e[0].pd, a, 3000, ALL_ACCESS)) != NULL);
	CHECK((mr[1] = ibv_reg_mr(e[0].pd, b, 6000, ALL_ACCESS)) != NULL);
	use(mr[0], 'a');
	use(mr[1], 'h');
	CHECK(a[0] == 'b' && a[2999] == 'b');
	dereg(mr[0]);
	use(mr[1], 'k');
	dereg(mr[1]);
	free(a);
	free(b);
}

/* From one span over a gap into another, and a part that was only the bridge's afterwards. */
static void
bridge(void)
{
	struct ibv_mr *left = reg(100, PAGE), *right = reg(6 * PAGE, 3 * PAGE), *all, *again;

	mem[4 * PAGE] = 'k';
	all = reg(PAGE / 2, 8 * PAGE);
	CHECK(mem[4 * PAGE] == 'k');
	use(all, 'A');
	use(left, 'L');
	use(right, 'R');
	dereg(left);
	dereg(right);
	use(all, 'M');
	again = reg(7 * PAGE + 5, 10); /* in pages that the bridge alone has kept */
	use(again, 'x');
	dereg(all);
	use(again, 'y');
	dereg(again);
	CHECK(mem[7 * PAGE + 5] == 'z');
}

/* The keys stay when a region moves to where it consists of several pieces. */
static void
moves(void)
{
	struct ibv_mr *one = reg(0, 2 * PAGE), *other = reg(10 * PAGE, 100);
	const uint32_t key = other->rkey;

	CHECK(ibv_rereg_mr(other, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, mem + PAGE, 3 * PAGE, 0) ==
		0);
	CHECK(other->rkey == key && other->addr == mem + PAGE && other->length == 3 * PAGE);
	dereg(one);
	use(other, 'm');
	dereg(other);
}

static unsigned int seed = 1;

static unsigned int
any(unsigned int n)
{
	seed = seed * 1103515245u + 12345u;
	return (seed >> 16) % n;
}

/* Any regions come and go; what is written outside of a region stays as it is. */
static void
shuffle(void)
{
	struct ibv_mr *mr[REGIONS] = { NULL };
	char *want = malloc(PAGES * PAGE);

	memset(mem, '.', PAGES * PAGE);
	memset(want, '.', PAGES * PAGE);
	for (int i = 0; i < ROUNDS; i++) {
		struct ibv_mr **r = &mr[any(REGIONS)];

		if (*r != NULL) {
			const size_t at = (size_t)((char *)(*r)->addr - mem), len = (*r)->length;

			use(*r, (char)('a' + i % 20));
			memset(want + at, 'a' + i % 20 + 1, len);
			dereg(*r);
			*r = NULL;
		} else {
			const size_t at = any(PAGES * PAGE - 1);

			*r = reg(at, 1 + any((unsigned int)(PAGES * PAGE - at)) % (6 * PAGE));
		}
		CHECK(memcmp(mem, want, PAGES * PAGE) == 0);
	}
	for (int i = 0; i < REGIONS; i++) {
		if (mr[i] != NULL)
			dereg(mr[i]);
	}
	CHECK(memcmp(mem, want, PAGES * PAGE) == 0);
	free(want);
}

/* Two threads: the pages' last region may go while another one comes. */
static void *
comes_and_goes(void *arg)
{
	for (int i = 0; i < ROUNDS; i++)
		dereg(reg(arg == NULL ? 0 : PAGE / 2, 2 * PAGE));
	return arg;
}

static void
race(void)
{
	pthread_t t;

	CHECK(pthread_create(&t, NULL, comes_and_goes, mem) == 0);
	comes_and_goes(NULL);
	CHECK(pthread_join(t, NULL) == 0);
}

static atomic_bool stop;

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

static void
all(void)
{
	neighbours();
	bridge();
	moves();
	shuffle();
}

int
main(void)
{
	pthread_t t;

	ends_open(e, 7);
	mem = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	peer = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(mem != MAP_FAILED && peer != MAP_FAILED);
	CHECK((peer_mr = ibv_reg_mr(e[1].pd, peer, PAGES * PAGE, IBV_ACCESS_LOCAL_WRITE)) != NULL);
	all();
	CHECK(pthread_create(&t, NULL, busy, NULL) == 0);
	all();
	race();
	atomic_store(&stop, true);
	pthread_join(t, NULL);
	printf("regions that share pages\n");
	return 0;
}
