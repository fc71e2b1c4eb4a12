/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Paths of RDMA devices' files. Programs such as UCX look at them beside what libibverbs says: they
 * take a device whose character device is not there for one that they may not use, and one whose
 * GIDs have no type for RoCE v1.
 */
#undef _FILE_OFFSET_BITS /* stat() is stat(), and stat64() a function of its own */
#undef _FORTIFY_SOURCE   /* no inline forms of what is defined here */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "next.h"
#include "sys_path.h"

#define CLASS     "/sys/class/infiniband"
#define DEVICES   "/dev/infiniband/uverbs"
#define MAJOR     231 /* of /dev/infiniband, as Linux numbers it */
#define MINOR     192 /* of uverbs0 */
#define MODE_MASK 07777

static bool
begins(const char *path, const char *with)
{
	return strncmp(path, with, strlen(with)) == 0;
}

/* The class itself and that of libibverbs, but for what is named like them (infiniband_mad). */
static bool
is_class(const char *path)
{
	const char *rest;

	if (!begins(path, CLASS))
		return false;
	rest = path + strlen(CLASS);
	if (begins(rest, "_verbs"))
		rest += strlen("_verbs");
	return *rest == '\0' || *rest == '/';
}

/* libc declares that there is a path, and what is compiled by that tests none. */
__attribute__((noinline)) bool
vl_path_is_ours(const char *path)
{
	/* Most are not: told by a character that few paths have there. */
	return path != NULL && path[0] == '/' && (is_class(path) || begins(path, DEVICES));
}

const char *
vl_path(const char *path, char *buf)
{
	const char *top = buf != NULL ? getenv("ROCELANE_FILES") : NULL;

	if (top == NULL || strlen(top) + strlen(path) >= SYS_PATH_MAX)
		return path;
	vl_tell_other();
	stpcpy(stpcpy(buf, top), path);
	return buf;
}

bool
vl_path_is_device(const char *path, unsigned int *minor)
{
	char *end;
	long n;

	if (path == NULL || !begins(path, DEVICES) || getenv("ROCELANE_FILES") == NULL)
		return false;
	n = strtol(path + strlen(DEVICES), &end, 10);
	*minor = MINOR + (unsigned int)n;
	return end != path + strlen(DEVICES) && *end == '\0' && n >= 0 && n < 256;
}

/* ---- libc's functions ------------------------------------------------------------------------ */

/* The file that stands for a character device looks like one. */
#define AS_DEVICE(path, st)                                                    \
	do {                                                                   \
		unsigned int minor_;                                           \
		if (vl_path_is_device(path, &minor_)) {                        \
			(st)->st_mode = S_IFCHR | ((st)->st_mode & MODE_MASK); \
			(st)->st_rdev = makedev(MAJOR, minor_);                \
		}                                                              \
	} while (0)

#define STAT(name, look)                                           \
	EXPORT int name(const char *path, struct look *st)         \
	{                                                          \
		char *buf = SYS_PATH_BUF(path);                    \
		const int rc = NEXT(name)(vl_path(path, buf), st); \
		if (rc == 0)                                       \
			AS_DEVICE(path, st);                       \
		return rc;                                         \
	}

STAT(stat, stat)
STAT(stat64, stat64)
STAT(lstat, stat)
STAT(lstat64, stat64)

#define STAT_AT(name, look)                                                    \
	EXPORT int name(int dir, const char *path, struct look *st, int flags) \
	{                                                                      \
		char *buf = SYS_PATH_BUF(path);                                \
		const int rc = NEXT(name)(dir, vl_path(path, buf), st, flags); \
		if (rc == 0)                                                   \
			AS_DEVICE(path, st);                                   \
		return rc;                                                     \
	}

STAT_AT(fstatat, stat)
STAT_AT(fstatat64, stat64)

/* Programs that were built before glibc 2.33. */
#define XSTAT(name, look)                                                   \
	int name(int version, const char *path, struct look *st);           \
	EXPORT int name(int version, const char *path, struct look *st)     \
	{                                                                   \
		char *buf = SYS_PATH_BUF(path);                             \
		const int rc = NEXT(name)(version, vl_path(path, buf), st); \
		if (rc == 0)                                                \
			AS_DEVICE(path, st);                                \
		return rc;                                                  \
	}

XSTAT(__xstat, stat)
XSTAT(__xstat64, stat64)
XSTAT(__lxstat, stat)
XSTAT(__lxstat64, stat64)

EXPORT int
access(const char *path, int mode)
{
	char *buf = SYS_PATH_BUF(path);

	return NEXT(access)(vl_path(path, buf), mode);
}

EXPORT int
faccessat(int dir, const char *path, int mode, int flags)
{
	char *buf = SYS_PATH_BUF(path);

	return NEXT(faccessat)(dir, vl_path(path, buf), mode, flags);
}

EXPORT FILE *
fopen(const char *path, const char *mode)
{
	char *buf = SYS_PATH_BUF(path);

	return NEXT(fopen)(vl_path(path, buf), mode);
}

EXPORT FILE *
fopen64(const char *path, const char *mode)
{
	char *buf = SYS_PATH_BUF(path);

	return NEXT(fopen64)(vl_path(path, buf), mode);
}

EXPORT DIR *
opendir(const char *path)
{
	char *buf = SYS_PATH_BUF(path);

	return NEXT(opendir)(vl_path(path, buf));
}

/* ls, and what is written in Rust. */
EXPORT int
statx(int dir, const char *path, int flags, unsigned int mask, struct statx *st)
{
	char *buf = SYS_PATH_BUF(path);
	unsigned int minor;
	const int rc = NEXT(statx)(dir, vl_path(path, buf), flags, mask, st);

	if (rc == 0 && vl_path_is_device(path, &minor)) {
		st->stx_mode = (uint16_t)(S_IFCHR | (st->stx_mode & MODE_MASK));
		st->stx_rdev_major = MAJOR;
		st->stx_rdev_minor = minor;
	}
	return rc;
}

/* ls -l asks for a security label. */
#define GET_XATTR(name)                                                                   \
	EXPORT ssize_t name(const char *path, const char *attr, void *value, size_t size) \
	{                                                                                 \
		char *buf = SYS_PATH_BUF(path);                                           \
		return NEXT(name)(vl_path(path, buf), attr, value, size);                 \
	}

GET_XATTR(getxattr)
GET_XATTR(lgetxattr)

/* find. */
#define OPEN_AT(name)                                                           \
	EXPORT int name(int dir, const char *path, int flags, ...)              \
	{                                                                       \
		va_list ap;                                                     \
		mode_t mode = 0;                                                \
		char *buf = SYS_PATH_BUF(path);                                 \
		va_start(ap, flags);                                            \
		if ((flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE) \
			mode = va_arg(ap, mode_t);                              \
		va_end(ap);                                                     \
		return NEXT(name)(dir, vl_path(path, buf), flags, mode);        \
	}

OPEN_AT(openat)
OPEN_AT(openat64)

/* Libraries that list folders: libc's own opendir() does not come by here. ibstat's does so. */
#define SCAN(name, entry)                                                           \
	EXPORT int name(const char *path, struct entry ***list,                     \
		int (*wanted)(const struct entry *),                                \
		int (*order)(const struct entry **, const struct entry **))         \
	{                                                                           \
		char *buf = SYS_PATH_BUF(path);                                     \
		return NEXT(name)(vl_path(path, buf), list, wanted, order);         \
	}

SCAN(scandir, dirent)
SCAN(scandir64, dirent64)

/* A shell's cd, as ibstatus does. */
EXPORT int
chdir(const char *path)
{
	char *buf = SYS_PATH_BUF(path);

	return NEXT(chdir)(vl_path(path, buf));
}

EXPORT ssize_t
readlink(const char *path, char *to, size_t size)
{
	char *buf = SYS_PATH_BUF(path);

	return NEXT(readlink)(vl_path(path, buf), to, size);
}

EXPORT char *
realpath(const char *path, char *to)
{
	char *buf = SYS_PATH_BUF(path);

	return NEXT(realpath)(vl_path(path, buf), to);
}

/* The same of programs with _FORTIFY_SOURCE, which know how much room there is. */
char *__realpath_chk(const char *path, char *to, size_t room);

EXPORT char *
__realpath_chk(const char *path, char *to, size_t room)
{
	char *buf = SYS_PATH_BUF(path);

	return NEXT(__realpath_chk)(vl_path(path, buf), to, room);
}
