/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ONTO_MEMFD_H
#define ONTO_MEMFD_H
/**
 * @file onto_memfd.h  A range of memory onto a memfd, and back: for tests of convert.
 *
 * Owner:   one thread.
 * Memory:  the caller's.
 * Depends: convert; cmocka.h before it.
 */
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#include "convert.h"

#define PAGE ((size_t)4096)

/** A memfd of so many bytes. */
static inline int
memfd_of(size_t bytes)
{
	const int fd = memfd_create("rocelane", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	assert_true(fd >= 0);
	assert_int_equal(0, ftruncate(fd, (off_t)bytes));
	return fd;
}

/** Private memory. */
static inline uint8_t *
map(size_t bytes)
{
	uint8_t *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_true(p != MAP_FAILED);
	return p;
}

/** All parts of a range onto a memfd. @return the memfd, or -errno of the first that failed. */
static inline int
convert(void *at, size_t bytes)
{
	struct convert_part parts[CONVERT_PARTS];
	const int n = convert_look((uintptr_t)at, bytes, parts), fd = memfd_of(bytes);

	assert_true(n > 0);
	for (int i = 0; i < n; i++) {
		const int rc = convert_to_shared(&parts[i], fd, parts[i].at - (uintptr_t)at);

		if (rc != 0) {
			close(fd);
			return rc;
		}
	}
	return fd;
}

/** All of its parts are on a memfd, and become private. */
static inline void
convert_back(void *at, size_t bytes)
{
	struct convert_part parts[CONVERT_PARTS];
	const int n = convert_look((uintptr_t)at, bytes, parts);

	assert_true(n > 0);
	for (int i = 0; i < n; i++) {
		assert_int_equal(CONVERT_SHARED, parts[i].kind);
		assert_int_equal(0, convert_to_private(&parts[i], parts[i].len));
	}
}

#endif
