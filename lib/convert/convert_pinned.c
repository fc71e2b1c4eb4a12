/* SPDX-License-Identifier: BSD-3-Clause */
/* Fixed buffers of io_uring, from /proc/self/fdinfo. See convert_pinned.h. */
#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "convert_lines.h"
#include "convert_pinned.h"

#define RING "anon_inode:[io_uring]"

/* VmPin of the process: what rings, and a few others, hold. */
static bool
has_pinned_pages(void)
{
	struct lines l = { .fd = open("/proc/self/status", O_RDONLY | O_CLOEXEC) };
	const char *line;
	uint64_t kib = 0;

	if (l.fd < 0)
		return false;
	while ((line = convert_next_line(&l)) != NULL && sscanf(line, "VmPin: %" SCNu64, &kib) != 1)
		;
	close(l.fd);
	return kib != 0;
}

/* "    0: 0x7f8a22260000/1048576", in the lines behind "UserBufs:". */
static bool
ring_holds(int fd, uintptr_t at, size_t len)
{
	struct lines l = { .fd = fd };
	bool in_buffers = false, holds = false;
	const char *line;

	while ((line = convert_next_line(&l)) != NULL && !holds) {
		uintptr_t buffer;
		size_t bytes;

		if (strchr("\t ", line[0]) == NULL)
			in_buffers = strncmp(line, "UserBufs:", 9) == 0;
		else if (in_buffers &&
			 sscanf(line, "%*u: 0x%" SCNxPTR "/%zu", &buffer, &bytes) == 2)
			holds = buffer < at + len && at < buffer + bytes;
	}
	return holds;
}

/* @return the descriptor of what /proc says of a ring; or -1: it is none. */
static int
ring_open(int fds, const char *name)
{
	char what[sizeof(RING)], path[64];

	if (readlinkat(fds, name, what, sizeof(what)) != (ssize_t)strlen(RING) ||
		memcmp(what, RING, strlen(RING)) != 0)
		return -1;
	snprintf(path, sizeof(path), "/proc/self/fdinfo/%.16s", name);
	return open(path, O_RDONLY | O_CLOEXEC);
}

bool
convert_pinned(uintptr_t at, size_t len)
{
	DIR *d = has_pinned_pages() ? opendir("/proc/self/fd") : NULL;
	const struct dirent *e;
	bool pinned = false;

	while (d != NULL && !pinned && (e = readdir(d)) != NULL) {
		const int fd = ring_open(dirfd(d), e->d_name);

		if (fd >= 0) {
			pinned = ring_holds(fd, at, len);
			close(fd);
		}
	}
	if (d != NULL)
		closedir(d);
	return pinned;
}
