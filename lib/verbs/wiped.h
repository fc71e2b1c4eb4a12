/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef WIPED_H
#define WIPED_H
/**
 * @file wiped.h  A page by which a copy of the process knows that it is one.
 *
 * Owner:   any thread.
 * Memory:  a page of its own, until munmap().
 * Depends: next.h.
 */
#include <stddef.h>
#include <sys/mman.h>

#include "next.h"

#define WIPED_PAGE 4096u

/** All zero, in every copy again, whoever makes it: fork(), _Fork(), clone(). @return or NULL. */
static inline void *
wiped_page(void)
{
	void *at = NEXT(mmap)(NULL, WIPED_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
		-1, 0);

	if (at == MAP_FAILED)
		return NULL;
	if (madvise(at, WIPED_PAGE, MADV_WIPEONFORK) == 0)
		return at;
	NEXT(munmap)(at, WIPED_PAGE);
	return NULL;
}

#endif
