/* SPDX-License-Identifier: BSD-3-Clause */
/* Fixed buffers of io_uring, from /proc/thread-self/fdinfo. See convert_pinned.h. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "convert_lines.h"
#include "convert_pinned.h"

#define RING     "anon_inode:[io_uring]"
#define TRIES    1000
#define PAUSE_NS 1000000

/* Where /proc cannot be asked for other reasons it never can. */
static int
no_room(int error)
{
	return error == EMFILE || error == ENFILE || error == ENOMEM ? -error : 0;
}

/* VmPin of the process: what rings, and a few others, hold. @return as convert_pinned(). */
static int
has_pinned_pages(void)
{
	struct lines l = { .fd = open("/proc/thread-self/status", O_RDONLY | O_CLOEXEC) };
	const char *line;
	uint64_t kib = 0;

	if (l.fd < 0)
		return no_room(errno);
	while ((line = convert_next_line(&l)) != NULL && sscanf(line, "VmPin: %" SCNu64, &kib) != 1)
		;
	close(l.fd);
	return kib != 0;
}

/* @return 1 or 0; or -EAGAIN: another thread is in the ring, and the kernel leaves buffers out. */
static int
ring_says(int fd, uintptr_t at, size_t len)
{
	struct lines l = { .fd = fd };
	bool known = false;
	uint64_t left = 0; /* lines of buffers */
	const char *line;

	if (lseek(fd, 0, SEEK_SET) != 0)
		return -EAGAIN;
	while ((!known || left != 0) && (line = convert_next_line(&l)) != NULL) {
		uintptr_t buffer;
		size_t bytes;

		if (!known) {
			known = sscanf(line, "UserBufs: %" SCNu64, &left) == 1;
			continue;
		}
		if (line[0] != ' ' && line[0] != '\t')
			return -EAGAIN;
		left--;
		/* "    0: 0x7f8a22260000/1048576" */
		if (sscanf(line, "%*u: 0x%" SCNxPTR "/%zu", &buffer, &bytes) == 2 &&
			buffer < at + len && at < buffer + bytes)
			return 1;
	}
	return known && left == 0 ? 0 : -EAGAIN;
}

/* A ring that never tells may hold them. */
static int
ring_holds(int fd, uintptr_t at, size_t len)
{
	const struct timespec pause = { .tv_nsec = PAUSE_NS };
	int rc = ring_says(fd, at, len);

	for (int i = 0; i < TRIES && rc == -EAGAIN; i++) {
		nanosleep(&pause, NULL);
		rc = ring_says(fd, at, len);
	}
	return rc != 0;
}

/* What /proc says of a ring: *fd; or -1: it is none. @return 0, or as convert_pinned(). */
static int
ring_open(int fds, const char *name, int *fd)
{
	char what[sizeof(RING)], path[64];

	*fd = -1;
	if (readlinkat(fds, name, what, sizeof(what)) != (ssize_t)strlen(RING) ||
		memcmp(what, RING, strlen(RING)) != 0)
		return 0;
	snprintf(path, sizeof(path), "/proc/thread-self/fdinfo/%.16s", name);
	*fd = open(path, O_RDONLY | O_CLOEXEC);
	return *fd < 0 ? no_room(errno) : 0;
}

int
convert_pinned(uintptr_t at, size_t len)
{
	const struct dirent *e;
	int rc = has_pinned_pages(), fd;
	DIR *d;

	if (rc <= 0)
		return rc;
	d = opendir("/proc/thread-self/fd");
	if (d == NULL)
		return no_room(errno);
	rc = 0;
	while (rc == 0 && (e = readdir(d)) != NULL) {
		rc = ring_open(dirfd(d), e->d_name, &fd);
		if (fd < 0)
			continue;
		rc = ring_holds(fd, at, len);
		close(fd);
	}
	closedir(d);
	return rc;
}
