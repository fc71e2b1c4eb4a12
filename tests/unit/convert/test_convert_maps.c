/* SPDX-License-Identifier: BSD-3-Clause */
/* How /proc is read: what stands in lines of any length, and in a file that cannot be opened. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "convert.h"
#include "convert_lines.h"

int __real_open(const char *path, int flags, ...);
int __real_open64(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...);
int __wrap_open64(const char *path, int flags, ...);

static const char *refused = ""; /* a path */

int
__wrap_open(const char *path, int flags, ...)
{
	if (strcmp(path, refused) != 0)
		return __real_open(path, flags);
	errno = ESRCH;
	return -1;
}

int
__wrap_open64(const char *path, int flags, ...)
{
	return strcmp(path, refused) == 0 ? __wrap_open(path, flags) : __real_open64(path, flags);
}

/* As in a program whose first thread has ended. */
static void
maps_that_cannot_be_opened(void **state)
{
	uint8_t *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct convert_part parts[CONVERT_PARTS];

	(void)state;
	assert_ptr_not_equal(p, MAP_FAILED);
	refused = "/proc/self/maps";
	assert_int_equal(convert_look((uintptr_t)p, 4096, parts), 1);
	assert_int_equal(parts[0].kind, CONVERT_PRIVATE);
	refused = "";
	assert_int_equal(convert_look((uintptr_t)p, 4096, parts), 1);
	munmap(p, 4096);
}

static struct lines
lines_of(const char *before, size_t long_one, const char *behind)
{
	struct lines l = { .fd = memfd_create("lines", MFD_CLOEXEC) };

	assert_true(l.fd >= 0);
	assert_int_equal(write(l.fd, before, strlen(before)), strlen(before));
	for (size_t i = 0; i < long_one; i++)
		assert_int_equal(write(l.fd, "x", 1), 1);
	assert_int_equal(write(l.fd, behind, strlen(behind)), strlen(behind));
	lseek(l.fd, 0, SEEK_SET);
	return l;
}

/* Its rest is no line: it might look like one. */
static void
a_line_that_is_too_long(void **state)
{
	static const size_t lens[] = { LINE_MAX_BYTES - 1, LINE_MAX_BYTES, LINE_MAX_BYTES + 1,
		2 * LINE_MAX_BYTES - 1, 2 * LINE_MAX_BYTES, 3 * LINE_MAX_BYTES + 7 };

	(void)state;
	for (size_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
		struct lines l = lines_of("one\n", lens[i], "7000-8000 rw-p\nthree\n\nfive\n");
		const char *line;

		assert_string_equal(convert_next_line(&l), "one");
		line = convert_next_line(&l);
		assert_non_null(line);
		assert_int_equal(strspn(line, "x"), LINE_MAX_BYTES - 1);
		assert_int_equal(strlen(line), LINE_MAX_BYTES - 1);
		assert_string_equal(convert_next_line(&l), "three");
		assert_string_equal(convert_next_line(&l), "");
		assert_string_equal(convert_next_line(&l), "five");
		assert_null(convert_next_line(&l));
		close(l.fd);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(maps_that_cannot_be_opened),
		cmocka_unit_test(a_line_that_is_too_long),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
