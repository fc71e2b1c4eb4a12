/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory of many files, which come with several requests. */
#include "rig.h"

#define FILES 20u

#ifdef __SANITIZE_ADDRESS__
#define SANITIZED true
#else
#define SANITIZED false
#endif

/* A file of one page, which nobody seals. @param at out: the test's mapping of it. */
static int
file_of_page(uint8_t **at)
{
	const int fd = memfd_create("test", MFD_CLOEXEC);

	assert_int_equal(ftruncate(fd, PAGE), 0);
	*at = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_ptr_not_equal(*at, MAP_FAILED);
	return fd;
}

static const struct broker_piece whole[BROKER_FDS] = {
	{ 0, PAGE },
	{ 0, PAGE },
	{ 0, PAGE },
	{ 0, PAGE },
	{ 0, PAGE },
	{ 0, PAGE },
	{ 0, PAGE },
	{ 0, PAGE },
};

/* Lay `n` files, pieces of `of`, from page `page` on, of memory of `pages` pages. */
static void
lay(const int *fds, uint32_t n, const struct broker_piece *of, uint32_t page, uint32_t pages,
	int rc)
{
	terms = (struct broker_terms){ .offset = (uint64_t)page * PAGE,
		.length = (uint64_t)pages * PAGE,
		.pieces = of,
		.pieces_n = n,
		.most = 1 << 20,
		.any = true };
	pass_all("{\"lay\":1}\n", fds, n);
	assert_null(take(rc));
}

static struct broker_memory *
laid(uint64_t offset, uint64_t length, int rc)
{
	terms = (struct broker_terms){ .offset = offset, .length = length };
	say("{\"laid\":1}\n");
	return take(rc);
}

static int fds[FILES];
static uint8_t *at[FILES];

static int
files(void **state)
{
	for (uint32_t i = 0; i < FILES; i++) {
		fds[i] = file_of_page(&at[i]);
		at[i][0] = (uint8_t)i;
	}
	return setup(state);
}

static int
no_files(void **state)
{
	for (uint32_t i = 0; i < FILES; i++) {
		close(fds[i]);
		munmap(at[i], PAGE);
	}
	return teardown(state);
}

static void
more_than_come_at_once(void **state UNUSED)
{
	struct broker_memory *m;

	for (uint32_t i = 0; i < FILES; i += 8)
		lay(fds + i, FILES - i < 8 ? FILES - i : 8, whole, i, FILES, 0);
	assert_int_equal(broker_conn_mapped(c), FILES * PAGE);
	m = laid(100, FILES * PAGE - 100, 0);
	assert_non_null(m);
	for (uint32_t i = 0; i < FILES; i++) {
		assert_int_equal(broker_memory_at(m, (uint64_t)i * PAGE)[0], i);
		broker_memory_at(m, (uint64_t)i * PAGE)[1] = (uint8_t)(i + 1);
		assert_int_equal(at[i][1], i + 1);
	}
	assert_null(laid(0, 1, -ENOENT)); /* it is a region's now */
	broker_memory_put(m);
	wait_for_mapped(0);
}

/* The page in which a file ends is laid as a whole. */
static void
ends_in_a_page(void **state UNUSED)
{
	static const struct broker_piece two[] = { { 0, 2 * PAGE } };
	struct broker_memory *m;

	assert_int_equal(ftruncate(fds[0], 100), 0);
	lay(fds, 2, whole, 0, 2, 0);
	m = laid(0, 2 * PAGE, 0);
	assert_non_null(m);
	assert_int_equal(broker_memory_at(m, PAGE)[0], 1);
	broker_memory_put(m);
	lay(fds, 1, two, 0, 2, -ERANGE);
	wait_for_mapped(0);
}

/* What fails leaves nothing mapped, and the next memory begins anew. */
static void
refused(void **state UNUSED)
{
	static const struct broker_piece half[] = { { 0, PAGE / 2 } },
					 behind[] = { { PAGE, PAGE } }, none[] = { { 0, 0 } },
					 two[] = { { 0, 2 * PAGE } };
	const int bad = open("/dev/null", O_RDWR), small = memfd_of(2 * PAGE);

	assert_null(laid(0, 1, -ENOENT));
	lay(fds, 8, whole, 8, FILES, -ENOENT);
	lay(fds, 1, half, 0, FILES, -EINVAL);
	lay(fds, 1, none, 0, FILES, -ERANGE);
	lay(fds, 1, behind, 0, FILES, -ERANGE);
	lay(&bad, 1, whole, 0, FILES, -EBADF);
	lay(&small, 1, two, 0, 1, -EINVAL); /* more than there is room for */
	lay(fds, 8, whole, 0, 256, 0);
	lay(fds, 8, whole, 0, 257, -EFBIG); /* of 256 pages in all */
	lay(fds, 8, whole, 0, FILES, 0);
	lay(fds, 8, whole, 16, FILES, -ENOENT); /* not in a row */
	wait_for_mapped(0);
	lay(fds, 8, whole, 0, FILES, 0);
	lay(fds, 8, whole, 8, FILES - 1, -ENOENT); /* of another length */
	lay(fds, 8, whole, 0, FILES, 0);
	assert_null(laid(0, 1, -ENOENT)); /* not all of it */
	wait_for_mapped(0);
	lay(fds, 8, whole, 0, 8, 0);
	assert_null(laid(1, 8 * PAGE, -ERANGE));
	wait_for_mapped(0);
	terms = (struct broker_terms){
		.length = 8 * PAGE, .pieces = whole, .pieces_n = 8, .most = 1 << 20, .any = true
	};
	pass_all("{\"lay\":1}\n", fds, 7);
	assert_null(take(-ENODEV));
	terms.any = false;
	pass_all("{\"lay\":1}\n", fds, 8);
	assert_null(take(-EPERM));
	for (uint64_t offset = 0; offset <= 8 * PAGE; offset += 8 * PAGE) {
		lay(fds, 8, whole, 0, FILES, 0);
		terms.offset = offset;
		terms.pieces_n = 0;
		say("{\"lay\":1}\n");
		assert_null(take(offset == 0 ? 0 : -ENODEV));
		wait_for_mapped(0);
	}
	close(bad);
	close(small);
}

static uint32_t
max_maps(void)
{
	FILE *f = fopen("/proc/sys/vm/max_map_count", "re");
	uint32_t maps = 0;

	assert_non_null(f);
	assert_int_equal(fscanf(f, "%u", &maps), 1);
	fclose(f);
	return maps;
}

/* What a refused request does not use is not the next one's. */
static void
descriptors_go_with_their_request(void **state UNUSED)
{
	const int both[] = { memfd_of(PAGE), memfd_of(PAGE) };
	struct broker_request *q;
	struct broker_memory *m;

	assert_int_equal(pwrite(both[0], "a", 1, 0), 1);
	assert_int_equal(pwrite(both[1], "b", 1, 0), 1);
	terms = (struct broker_terms){
		.offset = 1, .length = 10, .pieces = whole, .pieces_n = 1, .most = 1 << 20
	};
	pass_all("{\"lay\":1}\n{\"slow\":1}\n", both, 2);
	q = next();
	assert_int_equal(broker_gift_of(q, q->json)->rc, -ENOENT);
	broker_conn_done(q);
	m = take(0);
	assert_non_null(m);
	assert_int_equal(broker_memory_at(m, 0)[0], 'b');
	broker_memory_put(m);
	close(both[0]);
	close(both[1]);
}

/* Mappings are counted: a connection takes no more than all may have. */
static void
mappings_are_bounded(void **state UNUSED)
{
	static int same[BROKER_FDS];
	const uint32_t most = BROKER_JOINED + BROKER_JOINED_ALL;
	const uint32_t maps = max_maps();
	uint32_t n = 0;

	if (maps > 65530) {
		print_message("# vm.max_map_count is %u: there may be more\n", maps);
		return;
	}
	for (uint32_t i = 0; i < BROKER_FDS; i++)
		same[i] = fds[i];
	for (; n + BROKER_FDS <= most; n += BROKER_FDS) {
		terms = (struct broker_terms){ .offset = (uint64_t)n * PAGE,
			.length = (uint64_t)2 * most * PAGE,
			.pieces = whole,
			.pieces_n = BROKER_FDS,
			.most = UINT64_C(1) << 40,
			.any = true };
		pass_all("{\"lay\":1}\n", same, BROKER_FDS);
		assert_null(take(0));
	}
	terms.offset = (uint64_t)n * PAGE;
	pass_all("{\"lay\":1}\n", same, BROKER_FDS);
	assert_null(take(-ENFILE));
	wait_for_mapped(0);
	lay(fds, 8, whole, 0, 8, 0); /* they were given back */
}

/* Mappings until there may be no more. @return where. */
static uint8_t *
use_up_maps(size_t len)
{
	uint8_t *base =
		mmap(NULL, len, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	size_t i;

	assert_ptr_not_equal(base, MAP_FAILED);
	for (i = PAGE; i < len && mprotect(base + i, PAGE, PROT_READ) == 0; i += 2 * (size_t)PAGE)
		;
	assert_true(i < len);
	return base;
}

/* Bytes of addresses that are taken, and of no use. */
static size_t
reserved(void)
{
	FILE *f = fopen("/proc/self/maps", "re");
	size_t from, to, all = 0;
	char line[512], may[8];

	assert_non_null(f);
	while (fgets(line, sizeof(line), f) != NULL) {
		assert_int_equal(sscanf(line, "%zx-%zx %7s", &from, &to, may), 3);
		all += strcmp(may, "---p") == 0 ? to - from : 0;
	}
	fclose(f);
	return all;
}

/* The process runs out of mappings, wherever: the connection is charged for nothing, and nothing
 * stays. */
static void
no_mappings_are_left(void **state UNUSED)
{
	const size_t len = (size_t)1 << 30;
	unsigned int failed = 0;
	size_t before;

	if (SANITIZED || max_maps() > 100000) {
		print_message("# a sanitizer needs mappings, or there may be too many\n");
		return;
	}
	lay(fds, 1, whole, 0, FILES, 0);
	assert_null(laid(0, 1, -ENOENT));
	wait_for_mapped(0);
	before = reserved();
	for (unsigned int left = 0; left < 8; left++) {
		uint8_t *const base = use_up_maps(len);
		struct broker_gift *g;
		struct broker_request *q;

		if (left != 0)
			munmap(base, (size_t)left * PAGE);
		terms = (struct broker_terms){ .length = 2 * PAGE,
			.pieces = whole,
			.pieces_n = 1,
			.most = 1 << 20,
			.any = true };
		pass_all("{\"lay\":1}\n", fds, 1);
		q = next();
		g = broker_gift_of(q, q->json);
		munmap(base, len);
		assert_non_null(g);
		failed += g->rc != 0;
		assert_true(g->rc == 0 || g->rc == -ENOMEM);
		broker_conn_done(q);
		lay(fds, 1, whole, 1, FILES, -ENOENT);
		wait_for_mapped(0);
	}
	print_message("# %u of 8 failed\n", failed);
	assert_int_equal(reserved(), before);
	assert_true(failed != 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(more_than_come_at_once, files, no_files),
		cmocka_unit_test_setup_teardown(ends_in_a_page, files, no_files),
		cmocka_unit_test_setup_teardown(refused, files, no_files),
		cmocka_unit_test_setup_teardown(descriptors_go_with_their_request, setup, teardown),
		cmocka_unit_test_setup_teardown(mappings_are_bounded, files, no_files),
		cmocka_unit_test_setup_teardown(no_mappings_are_left, files, no_files),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
