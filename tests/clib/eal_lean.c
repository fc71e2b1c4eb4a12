/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file eal_lean.c  Calls of the C library that a start of DPDK without huge pages makes too dear.
 *
 * Owner:   programs of tests that have DPDK in themselves: what they define comes before libc's.
 * Memory:  static.
 * Depends: Linux.
 *
 * EAL looks for each CPU that it may ever know, at each NUMA node: 5000 calls, 15 ms. And it takes
 * its memory from a memfd, so that a vhost peer could share it: the pages of a file are small, and
 * the kernel has more to do for each. What has no descriptor may have huge pages.
 */
#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define NODES "/sys/devices/system/node/"
#define CPUS  "/sys/devices/system/cpu/"

enum { NUMBERS = 8192 }; /* the kernel has as many CPUs at most */

/* Of node/nodeN and cpu/cpuN: they are there. Without a list all may be. */
static bool nodes[NUMBERS], cpus[NUMBERS], nodes_known, cpus_known;
static pthread_once_t listed = PTHREAD_ONCE_INIT;

/* @return the number that follows `prefix` in `text`, or -1; *end is what comes behind it. */
static long
number_of(const char *text, const char *prefix, char **end)
{
	const size_t n = strlen(prefix);
	long number;

	if (strncmp(text, prefix, n) != 0)
		return -1;
	number = strtol(text + n, end, 10);
	return *end == text + n || number < 0 || number >= NUMBERS ? -1 : number;
}

static bool
list(const char *folder, const char *prefix, bool *there)
{
	DIR *dir = opendir(folder);
	struct dirent *entry;

	if (dir == NULL)
		return false;
	while ((entry = readdir(dir)) != NULL) {
		char *end;
		const long number = number_of(entry->d_name, prefix, &end);

		if (number >= 0 && *end == '\0')
			there[number] = true;
	}
	closedir(dir);
	return true;
}

static void
list_both(void)
{
	nodes_known = list(NODES, "node", nodes);
	cpus_known = list(CPUS, "cpu", cpus);
}

/* @return true: `path` lies in the folder of a CPU or a node that is not there. */
static bool
is_gone(const char *path)
{
	char *end;
	long number;

	if (strncmp(path, "/sys/devices/system/", 20) != 0)
		return false;
	pthread_once(&listed, list_both);
	number = number_of(path, CPUS "cpu", &end);
	if (number >= 0)
		return cpus_known && !cpus[number];
	number = number_of(path, NODES "node", &end);
	if (number < 0)
		return false;
	if (nodes_known && !nodes[number])
		return true;
	number = number_of(end, "/cpu", &end);
	return number >= 0 && cpus_known && !cpus[number];
}

int
access(const char *path, int mode)
{
	if (is_gone(path)) {
		errno = ENOENT;
		return -1;
	}
	return (int)syscall(SYS_access, path, mode);
}

/* EAL's memory of this name has no descriptor: then it is anonymous. */
int
memfd_create(const char *name, unsigned int flags)
{
	if (strcmp(name, "nohuge") == 0) {
		errno = ENOSYS;
		return -1;
	}
	return (int)syscall(SYS_memfd_create, name, flags);
}
