/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the thread makes before a request is looked at: for whom, and of a memfd that its client
 * changes meanwhile. The linker leads the call that seals it here.
 */
#include "rig.h"

#include "mem.h"

#define BIG (16 * PAGE)

int __real_mem_area_take(struct mem_area *a, int fd, uint64_t size);
int __wrap_mem_area_take(struct mem_area *a, int fd, uint64_t size);

static void (*meanwhile)(int fd);

int
__wrap_mem_area_take(struct mem_area *a, int fd, uint64_t size)
{
	void (*change)(int) = meanwhile;

	meanwhile = NULL;
	if (change != NULL)
		change(fd);
	return __real_mem_area_take(a, fd, size);
}

static int
unsealed(void)
{
	const int fd = memfd_create("test", MFD_ALLOW_SEALING);

	assert_int_equal(ftruncate(fd, BIG), 0);
	assert_int_equal(fallocate(fd, 0, 0, BIG), 0);
	return fd;
}

static void
seal(int fd)
{
	assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK), 0);
}

static void
gets_shorter(int fd)
{
	assert_int_equal(ftruncate(fd, PAGE), 0);
	seal(fd);
}

static void
gets_longer(int fd)
{
	assert_int_equal(ftruncate(fd, 2 * BIG), 0);
	assert_int_equal(fallocate(fd, 0, 0, 2 * BIG), 0);
	seal(fd);
}

/* Its length was looked at: a region of that length would reach into what is mapped behind it. */
static void
it_gets_shorter(void **state UNUSED)
{
	const int fd = unsealed();

	terms.length = BIG;
	meanwhile = gets_shorter;
	pass("{\"slow\":1}\n", fd);
	assert_null(take(-ERANGE));
	assert_int_equal(broker_conn_mapped(c), 0);
	/* What it is now is had. */
	terms.length = PAGE;
	pass("{\"slow\":1}\n", fd);
	broker_memory_put(take(0));
	wait_for_mapped(PAGE);
	close(fd);
}

/* Its length was compared with what the client may have. */
static void
it_gets_longer(void **state UNUSED)
{
	const int fd = unsealed();

	terms.most = BIG;
	meanwhile = gets_longer;
	pass("{\"slow\":1}\n", fd);
	assert_null(take(-ERANGE));
	pass("{\"slow\":1}\n", fd);
	assert_null(take(-EFBIG));
	assert_int_equal(broker_conn_mapped(c), 0);
	close(fd);
}

/* Only its seal comes meanwhile. */
static void
it_stays(void **state UNUSED)
{
	const int fd = unsealed();

	terms.length = BIG;
	meanwhile = seal;
	pass("{\"slow\":1}\n", fd);
	broker_memory_put(take(0));
	wait_for_mapped(BIG);
	close(fd);
}

static uint32_t
gifts(const struct broker_request *q)
{
	uint32_t n = 0;

	for (const struct broker_gift *g = q->gifts; g != NULL; g = g->next)
		n++;
	return n;
}

/* A line of `n` such requests; how many got something. */
static uint32_t
gifts_of(const char *one, uint32_t n)
{
	char line[2048] = "[";
	struct broker_request *q;
	uint32_t got;

	for (uint32_t i = 0; i < n; i++) {
		strcat(line, one);
		strcat(line, i + 1 < n ? "," : "]\n");
	}
	say(line);
	q = next();
	assert_int_equal(q->kind, BROKER_LINE);
	got = gifts(q);
	broker_conn_done(q);
	return got;
}

/* Nothing is made for who will be refused. */
static void
for_whom_and_how_many(void **state UNUSED)
{
	struct broker_limits limits = { 4096, 1000, RIG_MAY_NOT };

	broker_conn_limit(c, &limits);
	assert_int_equal(gifts_of("{\"slow\":1}", 1), 0);
	assert_int_equal(gifts_of("{\"once\":1}", 3), 0);
	limits.may |= RIG_MAY;
	broker_conn_limit(c, &limits);
	assert_int_equal(gifts_of("{\"slow\":1}", 3), 3);
	assert_int_equal(gifts_of("{\"once\":1}", 3), 1);
	assert_int_equal(gifts_of("{\"slow\":1}", BROKER_BATCH), BROKER_BATCH);
	assert_int_equal(gifts_of("{\"slow\":1}", BROKER_BATCH + 1), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(for_whom_and_how_many, setup, teardown),
		cmocka_unit_test_setup_teardown(it_gets_shorter, setup, teardown),
		cmocka_unit_test_setup_teardown(it_gets_longer, setup, teardown),
		cmocka_unit_test_setup_teardown(it_stays, setup, teardown),
	};

	return cmocka_run_group_tests_name("broker_change", tests, NULL, NULL);
}
