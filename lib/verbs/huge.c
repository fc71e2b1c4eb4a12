/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Huge pages that no dataplane can have: those of System V's segments and of anonymous memory. A
 * program that asks for them is told that there are none, as on a machine without huge pages, and
 * takes plain memory then (UCX, Ceph). If they were refused when they become a region, it would be
 * too late for that. Huge pages of a file, a memfd for example, are not touched.
 */
#include "huge.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/shm.h>

#include "cancel.h"
#include "next.h"

static void
refuse(const char *call)
{
	CANCEL_HELD;

	if (getenv("ROCELANE_WHY") != NULL)
		fprintf(stderr,
			"rocelane: %s: %s (no dataplane can have huge pages without a file)\n",
			call, strerror(ENOMEM));
	errno = ENOMEM;
}

bool
vl_huge_refused(int flags)
{
	if ((flags & (MAP_ANONYMOUS | MAP_HUGETLB)) != (MAP_ANONYMOUS | MAP_HUGETLB))
		return false;
	refuse("mmap");
	return true;
}

EXPORT int
shmget(key_t key, size_t len, int flags)
{
	if (__builtin_expect((flags & SHM_HUGETLB) == 0, 1))
		return NEXT(shmget)(key, len, flags);
	refuse("shmget");
	return -1;
}
