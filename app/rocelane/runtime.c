/* SPDX-License-Identifier: BSD-3-Clause */
#include "runtime.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <rte_eal.h>

#include "compiler.h"
#include "log.h"

#define MARK          "rocelane."
#define MARK_TRIES    1000 /* on a busy machine, others may have it for long */
#define MARK_PAUSE_NS 1000000

static int mark = -1; /* open and locked: we are alive */
static bool shared;   /* other processes can attach */

static int
ignore(const struct rte_mp_msg *msg UNUSED, const void *peer UNUSED)
{
	return 0;
}

bool
runtime_is_shared(void)
{
	static const char name[] = "rocelane_capture";

	if (rte_mp_action_register(name, ignore) != 0)
		return false;
	rte_mp_action_unregister(name);
	return true;
}

static bool
begins(const char *s, const char *with)
{
	return strncmp(s, with, strlen(with)) == 0;
}

/* "rocelane." and a pid. */
static bool
is_mark(const char *name)
{
	const char *pid = name + sizeof(MARK) - 1;

	return begins(name, MARK) && *pid != '\0' && pid[strspn(pid, "0123456789")] == '\0';
}

/* What EAL makes in its folder. The socket of an attached process is not among it. */
static bool
is_eals(const char *name)
{
	return begins(name, "fbarray_") || strcmp(name, "config") == 0 ||
	       strcmp(name, "hugepage_info") == 0 || strcmp(name, "mp_socket") == 0 ||
	       begins(name, "dpdk_telemetry.v2");
}

/* Is anybody on a socket, whatever its type? */
static bool
is_answered(const char *dir, const char *name)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	const int n = snprintf(sa.sun_path, sizeof(sa.sun_path), "%s/%s", dir, name);
	int fd, rc;

	if (n < 0 || (size_t)n >= sizeof(sa.sun_path))
		return true;
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return true;
	rc = connect(fd, (const struct sockaddr *)&sa, sizeof(sa)) == 0 ? 0 : errno;
	close(fd);
	return rc != ECONNREFUSED;
}

/* Does somebody hold one of EAL's locks on a file, or ours on a mark? In doubt, yes. */
static bool
is_locked(int dir, const char *name)
{
	struct flock l = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
	const int fd = openat(dir, name, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	bool locked = true;

	if (fd < 0)
		return true;
	if (flock(fd, LOCK_EX | LOCK_NB) == 0 && fcntl(fd, F_GETLK, &l) == 0)
		locked = l.l_type != F_UNLCK;
	close(fd);
	return locked;
}

static bool
is_used(const char *path, int dir, const char *name)
{
	struct stat st;

	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) != 0)
		return true;
	return S_ISSOCK(st.st_mode) ? is_answered(path, name) : is_locked(dir, name);
}

static bool
is_dot(const char *name)
{
	return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

/* Is all of a folder a dead dataplane's: at least one mark, EAL's files, and nobody at any? */
static bool
is_dead(const char *path, DIR *d)
{
	struct dirent *e;
	bool marked = false;

	while ((e = readdir(d)) != NULL) {
		if (is_dot(e->d_name))
			continue;
		if (!is_mark(e->d_name) && !is_eals(e->d_name))
			return false;
		if (is_used(path, dirfd(d), e->d_name))
			return false;
		marked = marked || is_mark(e->d_name);
	}
	return marked;
}

/*
 * Unless something is in it. The folder of all who name none stays: one who starts has nothing in
 * it for a moment, and EAL does not start if it goes away then.
 */
static void
remove_folder(const char *path)
{
	const char *slash = strrchr(path, '/');

	if (slash == NULL || strcmp(slash, "/rte") != 0)
		rmdir(path);
}

/* EAL's files and our marks, but no socket that is answered; then the folder, if that was all. */
static void
empty(const char *path, DIR *d)
{
	struct dirent *e;
	struct stat st;

	rewinddir(d);
	while ((e = readdir(d)) != NULL) {
		if (!is_eals(e->d_name) && !is_mark(e->d_name))
			continue;
		if (fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
			S_ISSOCK(st.st_mode) && is_answered(path, e->d_name))
			continue;
		unlinkat(dirfd(d), e->d_name, 0);
	}
	remove_folder(path);
}

/* A folder of our user, and no link to one. */
static DIR *
open_own(const char *path)
{
	const int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;
	DIR *d = NULL;

	if (fd < 0)
		return NULL;
	if (fstat(fd, &st) == 0 && st.st_uid == geteuid())
		d = fdopendir(fd);
	if (d == NULL)
		close(fd);
	return d;
}

/* Folders beside ours. */
static void
sweep(const char *ours)
{
	const char *slash = strrchr(ours, '/');
	char path[PATH_MAX];
	struct dirent *e;
	DIR *all, *d;

	if (slash == NULL)
		return;
	snprintf(path, sizeof(path), "%.*s", (int)(slash - ours), ours);
	all = opendir(path);
	while (all != NULL && (e = readdir(all)) != NULL) {
		if (is_dot(e->d_name) || strcmp(e->d_name, slash + 1) == 0)
			continue;
		snprintf(path, sizeof(path), "%.*s/%s", (int)(slash - ours), ours, e->d_name);
		d = open_own(path);
		if (d == NULL)
			continue;
		if (is_dead(path, d))
			empty(path, d);
		closedir(d);
	}
	if (all != NULL)
		closedir(all);
}

/* Those of dataplanes that were killed in our folder: of the same prefix, one after the other. */
static void
remove_dead_marks(const char *path)
{
	DIR *d = open_own(path);
	struct dirent *e;

	while (d != NULL && (e = readdir(d)) != NULL) {
		int fd;

		if (!is_mark(e->d_name))
			continue;
		fd = openat(dirfd(d), e->d_name, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
		/* It goes while its lock is ours: take_mark() makes another one. */
		if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0)
			unlinkat(dirfd(d), e->d_name, 0);
		if (fd >= 0)
			close(fd);
	}
	if (d != NULL)
		closedir(d);
}

static bool
is_at(int fd, const char *path)
{
	struct stat own, named;

	return fstat(fd, &own) == 0 && stat(path, &named) == 0 && own.st_ino == named.st_ino &&
	       own.st_dev == named.st_dev;
}

/* Others who start have the lock of each mark for a moment, or take it for a dead one's. */
static int
take_mark(const char *path)
{
	const struct timespec pause = { .tv_nsec = MARK_PAUSE_NS };
	int fd = -1;

	for (int i = 0; i < MARK_TRIES; i++) {
		if (fd >= 0)
			close(fd);
		fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
		if (fd < 0 || (flock(fd, LOCK_EX | LOCK_NB) == 0 && is_at(fd, path)))
			break;
		if (i == MARK_TRIES - 1)
			log_warn("%s: another process has its lock: a dataplane that starts with "
				 "this --file-prefix may take our files for a dead one's",
				path);
		nanosleep(&pause, NULL);
	}
	return fd;
}

static void
mark_path(char *buf, size_t room)
{
	snprintf(buf, room, "%s/" MARK "%d", rte_eal_get_runtime_dir(), (int)getpid());
}

void
runtime_enter(void)
{
	char path[PATH_MAX];

	shared = runtime_is_shared();
	mark_path(path, sizeof(path));
	mark = take_mark(path);
	if (mark < 0)
		log_debug("%s: %s", path, strerror(errno));
	remove_dead_marks(rte_eal_get_runtime_dir());
	sweep(rte_eal_get_runtime_dir());
}

/* Is the folder ours alone? Nobody else's mark, and no socket of a process that attached. */
static bool
is_alone(DIR *d)
{
	struct dirent *e;

	while ((e = readdir(d)) != NULL)
		if (!is_dot(e->d_name) && !is_eals(e->d_name))
			return false;
	return true;
}

static void
leave(void)
{
	const char *dir = rte_eal_get_runtime_dir();
	char path[PATH_MAX];
	DIR *d;

	if (dir == NULL || dir[0] != '/')
		return;
	if (mark < 0) {
		remove_folder(dir); /* EAL did not start: what is in it is somebody else's */
		return;
	}
	mark_path(path, sizeof(path));
	unlink(path);
	/* Where nobody can attach, EAL has no file there, and what there is belongs to others. */
	d = shared ? opendir(dir) : NULL;
	if (d != NULL && is_alone(d))
		empty(dir, d);
	if (d != NULL)
		closedir(d);
	remove_folder(dir);
	close(mark);
	mark = -1;
}

void
runtime_begin(void)
{
	atexit(leave);
}
