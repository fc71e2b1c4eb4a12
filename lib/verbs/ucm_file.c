/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls of libc that librdmacm opens and uses its device by; those on other files go on to libc. */
#undef _FILE_OFFSET_BITS /* open() is open(), and open64() a function of its own */
#undef _FORTIFY_SOURCE   /* no inline forms of what is defined here */
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "next.h"
#include "sys_path.h"
#include "ucm.h"

#define DEVICE    "/dev/infiniband/rdma_cm"
#define FILES_MAX 65536

/* By descriptor. Pages of it that nobody writes to cost nothing. */
static struct ucm_file *_Atomic files[FILES_MAX];

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* All channels are of one client, which stays. */
static struct rl_context *context;
static pid_t opened_by;

static struct ucm_file *
file_of(int fd)
{
	if (__builtin_expect((unsigned int)fd >= FILES_MAX, 0))
		return NULL;
	return atomic_load_explicit(&files[fd], memory_order_acquire);
}

/* ---- the device ------------------------------------------------------------------------------ */

static int
use_context(struct rl_context **out)
{
	int rc = 0;

	pthread_mutex_lock(&lock);
	/* A child has no part in its parent's connection. */
	if (context == NULL || opened_by != getpid()) {
		rc = rl_open(NULL, &context);
		opened_by = getpid();
		if (rc != 0)
			context = NULL;
	}
	*out = context;
	pthread_mutex_unlock(&lock);
	return rc;
}

static void
close_device(struct ucm_file *f)
{
	ucm_end_ids(f);
	rl_cm_destroy_event_channel(f->channel);
	pthread_mutex_destroy(&f->getting);
	free(f);
}

/* The program has a descriptor of its own: the library writes to its one, too. */
static int
give_fd(struct ucm_file *f, int flags)
{
	const int fd =
		fcntl(f->channel->fd, (flags & O_CLOEXEC) != 0 ? F_DUPFD_CLOEXEC : F_DUPFD, 0);

	if (fd >= 0 && fd < FILES_MAX) {
		if ((flags & O_NONBLOCK) != 0)
			fcntl(fd, F_SETFL, O_RDWR | O_NONBLOCK);
		atomic_store_explicit(&files[fd], f, memory_order_release);
		return fd;
	}
	if (fd >= 0)
		close(fd);
	return -EMFILE;
}

static int
open_device(int flags)
{
	struct ucm_file *f = calloc(1, sizeof(*f));
	struct rl_context *ctx;
	int rc = f != NULL ? use_context(&ctx) : -ENOMEM;

	if (rc == 0)
		rc = rl_cm_create_event_channel(ctx, &f->channel);
	/* Else a program that polls would be told of an event that librdmacm does not see. */
	if (rc == 0) {
		rc = rl_cm_accepted_only(f->channel);
		if (rc != 0)
			rl_cm_destroy_event_channel(f->channel);
	}
	if (rc != 0) {
		vl_refused("rdma_cm open", -rc);
		free(f);
		return -1;
	}
	pthread_mutex_init(&f->getting, NULL);
	rc = give_fd(f, flags);
	if (rc >= 0)
		return rc;
	close_device(f);
	errno = -rc;
	return -1;
}

/* ---- libc's functions ------------------------------------------------------------------------ */

#define OPEN(name)                                                              \
	EXPORT int name(const char *path, int flags, ...)                       \
	{                                                                       \
		va_list ap;                                                     \
		mode_t mode = 0;                                                \
		char buf[SYS_PATH_MAX];                                         \
		if (strcmp(path, DEVICE) == 0)                                  \
			return open_device(flags);                              \
		va_start(ap, flags);                                            \
		if ((flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE) \
			mode = va_arg(ap, mode_t);                              \
		va_end(ap);                                                     \
		return NEXT(name)(vl_path(path, buf), flags, mode);             \
	}

OPEN(open)
OPEN(open64)

EXPORT ssize_t
write(int fd, const void *buf, size_t len)
{
	struct ucm_file *f = file_of(fd);

	if (__builtin_expect(f == NULL, 1))
		return NEXT(write)(fd, buf, len);
	return ucm_write(f, buf, len);
}

EXPORT int
close(int fd)
{
	struct ucm_file *f = file_of(fd);

	if (__builtin_expect(f != NULL, 0) && atomic_compare_exchange_strong(&files[fd], &f, NULL))
		close_device(f);
	return NEXT(close)(fd);
}

/* librdmacm wants a character device, with the kernel's number where the kernel has one. */
#define FSTAT(name, look)                                                  \
	EXPORT int name(int fd, struct look *st)                           \
	{                                                                  \
		const int rc = NEXT(name)(fd, st);                         \
		struct look real;                                          \
		if (__builtin_expect(file_of(fd) == NULL, 1) || rc != 0)   \
			return rc;                                         \
		st->st_mode = S_IFCHR | S_IRUSR | S_IWUSR;                 \
		st->st_rdev = look(DEVICE, &real) == 0 ? real.st_rdev : 0; \
		return 0;                                                  \
	}

FSTAT(fstat, stat)
FSTAT(fstat64, stat64)
