/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Another libibverbs in this process: LD_LIBRARY_PATH or an RPATH names its folder before ours. It
 * finds none of our devices and does not say why, so it is said here, when it looks for them.
 */
#include <dlfcn.h>
#include <link.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "sys_path.h"

#define NAME "libibverbs.so.1"

/* The one beside this library. */
static bool
find_ours(struct stat *ours)
{
	char path[SYS_PATH_MAX];
	Dl_info self;
	const char *end;

	if (dladdr((void *)(uintptr_t)find_ours, &self) == 0)
		return false;
	end = strrchr(self.dli_fname, '/');
	return end != NULL &&
		snprintf(path, sizeof(path), "%.*s/" NAME, (int)(end - self.dli_fname),
			self.dli_fname) < (int)sizeof(path) &&
		stat(path, ours) == 0;
}

static int
tell_of(struct dl_phdr_info *object, size_t size, void *arg)
{
	const struct stat *ours = arg;
	const char *name = strrchr(object->dlpi_name, '/');
	struct stat st;

	(void)size;
	if (name == NULL || strncmp(name + 1, NAME, strlen(NAME)) != 0 ||
		stat(object->dlpi_name, &st) != 0 ||
		(st.st_dev == ours->st_dev && st.st_ino == ours->st_ino))
		return 0;
	fprintf(stderr,
		"rocelane: it has loaded %s, not rocelane's: "
		"is there an RPATH, or was LD_LIBRARY_PATH set behind rocelane-run?\n",
		object->dlpi_name);
	return 1;
}

void
vl_tell_other(void)
{
	static atomic_bool told;
	struct stat ours;

	if (!atomic_load(&told) && find_ours(&ours) && dl_iterate_phdr(tell_of, &ours) != 0)
		atomic_store(&told, true);
}
