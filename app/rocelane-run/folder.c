/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Folders of runs. Who makes one holds a lock in it, which ends with its process however that ends.
 * So whoever comes next can tell those that nobody will remove any more, also from a container that
 * shares the folder above.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "run.h"

#define DEEPEST     16
#define PREFIX      "rocelane-run."
#define UNIQUE      "XXXXXX"
#define MAKING      "rocelane-run-" /* until it is locked */
#define MAKING_S    60
#define LOCK        "lock"
#define ENVIRON_MAX (8u << 20) /* of a process; the kernel has 6 MiB at most by default */

/* From the root, as programs change their folder. */
static bool
is_folder(const char *path)
{
	struct stat st;

	return path != NULL && path[0] == '/' && stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

const char *
folder_top(void)
{
	const char *run = getenv("XDG_RUNTIME_DIR"), *tmp = getenv("TMPDIR");

	if (is_folder(run) && access(run, W_OK) == 0)
		return run;
	return is_folder(tmp) ? tmp : "/tmp";
}

static int
take_away(const char *path, const struct stat *st, int kind, struct FTW *at)
{
	(void)st;
	(void)kind;
	(void)at;
	return remove(path);
}

void
folder_remove(char *path)
{
	if (path[0] != '\0')
		nftw(path, take_away, DEEPEST, FTW_DEPTH | FTW_PHYS);
	path[0] = '\0';
}

static int
open_folder(const char *path)
{
	return open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

/*
 * Of a file in it: the dataplane locks the folder itself (runtime.c).
 * @param make O_CREAT; 0: where there is no such file, nobody has made the folder for a run.
 * @return a descriptor that keeps the lock, or -1: somebody has it, or it is no folder of ours.
 */
static int
lock(const char *path, int make)
{
	const int dir = open_folder(path);
	struct stat st;
	int fd = -1;

	if (dir < 0)
		return -1;
	if (fstat(dir, &st) == 0 && st.st_uid == geteuid())
		fd = openat(dir, LOCK, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | make, 0600);
	close(dir);
	if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) == 0)
		return fd;
	close(fd);
	return -1;
}

/* A program may go on without the rocelane-run that started it. */
static bool
process_uses(const char *pid, const char *path, char *room)
{
	char name[300];
	ssize_t n;
	int fd;

	snprintf(name, sizeof(name), "/proc/%s/environ", pid);
	fd = open(name, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	n = read(fd, room, ENVIRON_MAX);
	close(fd);
	return n > 0 && memmem(room, (size_t)n, path, strlen(path)) != NULL;
}

static bool
is_used(const char *path)
{
	char *room = malloc(ENVIRON_MAX);
	DIR *all = opendir("/proc");
	bool used = room == NULL || all == NULL;
	const struct dirent *e;

	while (!used && (e = readdir(all)) != NULL)
		used = e->d_name[0] >= '1' && e->d_name[0] <= '9' &&
		       process_uses(e->d_name, path, room);
	if (all != NULL)
		closedir(all);
	free(room);
	return used;
}

/* What users call so has another number of characters behind it, or at least no lock. */
static bool
is_name(const char *prefix, const char *name)
{
	return strncmp(name, prefix, strlen(prefix)) == 0 &&
	       strlen(name) == strlen(prefix) + strlen(UNIQUE);
}

/* Nothing but a lock. */
static bool
is_bare(int dir)
{
	const int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
	const struct dirent *e;
	bool bare = d != NULL;

	while (bare && (e = readdir(d)) != NULL)
		bare = strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0 ||
		       strcmp(e->d_name, LOCK) == 0;
	if (d != NULL)
		closedir(d);
	else if (fd >= 0)
		close(fd);
	return bare;
}

/*
 * Its maker was killed before it had the name that others look for; that takes no minute. One that
 * is empty has no lock yet, and may be anybody's: mktemp makes such.
 */
static void
sweep_half_made(char *path)
{
	const int dir = open_folder(path);
	struct stat st;
	int fd = -1;

	if (dir < 0)
		return;
	/* A lock that is being made is left alone: its maker must not find ours there. */
	if (fstat(dir, &st) == 0 && (st.st_mode & 07777) == 0700 &&
		time(NULL) - st.st_mtime > MAKING_S && is_bare(dir))
		fd = lock(path, 0);
	if (fd >= 0) {
		folder_remove(path);
		close(fd);
	}
	close(dir);
}

void
folder_sweep(void)
{
	const char *top = folder_top();
	char path[PATH_MAX];
	DIR *all = opendir(top);
	const struct dirent *e;

	while (all != NULL && (e = readdir(all)) != NULL) {
		int fd;

		if (snprintf(path, sizeof(path), "%s/%s", top, e->d_name) >= (int)sizeof(path))
			continue;
		if (is_name(MAKING, e->d_name))
			sweep_half_made(path);
		if (!is_name(PREFIX, e->d_name))
			continue;
		fd = lock(path, 0);
		if (fd < 0)
			continue;
		if (!is_used(path))
			folder_remove(path);
		close(fd);
	}
	if (all != NULL)
		closedir(all);
}

bool
folder_make(char *path, size_t room)
{
	const char *top = folder_top();
	char made[PATH_MAX];
	size_t at;
	int rc;

	if (snprintf(path, room, "%s/" PREFIX UNIQUE, top) >= (int)room ||
		snprintf(made, sizeof(made), "%s/" MAKING UNIQUE, top) >= (int)sizeof(made)) {
		errno = ENAMETOOLONG;
		return false;
	}
	if (mkdtemp(made) == NULL)
		return false;
	/* It is locked before it has the name that others look for. */
	lock(made, O_CREAT);
	at = strlen(path) - strlen(UNIQUE);
	memcpy(path + at, made + strlen(made) - strlen(UNIQUE), strlen(UNIQUE));
	if (rename(made, path) == 0)
		return true;
	rc = errno;
	folder_remove(made);
	errno = rc;
	return false;
}
