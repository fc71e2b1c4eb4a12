/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls of libc that librdmacm opens and uses its device by; those on other files go on to libc. */
#undef _FILE_OFFSET_BITS /* open() is open(), and open64() a function of its own */
#undef _FORTIFY_SOURCE   /* no inline forms of what is defined here */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/close_range.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cancel.h"
#include "next.h"
#include "sys_path.h"
#include "ucm.h"
#include "wiped.h"

#define DEVICE    "/dev/infiniband/rdma_cm"
#define FILES_MAX 65536

/* By descriptor. Pages of it that nobody writes to cost nothing. */
static struct ucm_file *_Atomic files[FILES_MAX];
static int _Atomic files_end;     /* no descriptor of one from here on */
static struct ucm_file inherited; /* in a child: it was its parent's */
static struct ucm_file unused;    /* ... which never had an id in it */
static pid_t _Atomic opened_by;   /* whose files these are: not vfork()'s child's */
static bool _Atomic *original;    /* false: in a copy of that process, which has none of them */

static pthread_mutex_t using = PTHREAD_MUTEX_INITIALIZER; /* of files' users */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* All channels are of one client, which stays. */
static struct rl_context *context;

static void in_child(void);

static bool
is_inherited(const struct ucm_file *f)
{
	return f == &inherited || f == &unused;
}

/* A copy that did not come from fork(), but from _Fork() or clone(), finds out here. */
static bool
are_ours(void)
{
	bool is_copy = false;

	if (original != NULL && atomic_compare_exchange_strong(original, &is_copy, true))
		in_child();
	return atomic_load(&opened_by) == getpid();
}

/* Might it be one? @return false: surely not, or not this process's. */
static bool
may_be_ours(int fd)
{
	return __builtin_expect((unsigned int)fd < FILES_MAX, 1) &&
	       __builtin_expect(
		       atomic_load_explicit(&files[fd], memory_order_relaxed) != NULL, 0) &&
	       are_ours();
}

/* ---- who uses a file ------------------------------------------------------------------------- */

static void close_device(struct ucm_file *f);

/* @return NULL: it is none; else for put(), unless it is inherited. */
static struct ucm_file *
get(int fd)
{
	struct ucm_file *f;

	pthread_mutex_lock(&using);
	f = atomic_load(&files[fd]);
	if (f != NULL && !is_inherited(f))
		f->users++;
	pthread_mutex_unlock(&using);
	return f;
}

/* As the kernel: who closes a file under a thread that waits takes nothing from that one. */
static void
put(void *file)
{
	struct ucm_file *f = file;
	bool last;

	pthread_mutex_lock(&using);
	last = --f->users == 0;
	pthread_mutex_unlock(&using);
	if (last)
		close_device(f);
}

/*
 * The program closes descriptors in between. A number may be another file's at once: whoever looks
 * it up meanwhile waits.
 */
static int
close_begin(void)
{
	const int cancel = cancel_hold();

	pthread_mutex_lock(&using);
	return cancel;
}

/* @param from the first, @param to the last of those that are closed now. */
static void
close_end(int cancel, unsigned int from, unsigned int to)
{
	const unsigned int end = (unsigned int)atomic_load(&files_end);
	const int err = errno;
	struct ucm_file *f, *over = NULL;

	for (unsigned int fd = from; fd < end && fd <= to; fd++) {
		f = atomic_exchange(&files[fd], NULL);
		if (f != NULL && !is_inherited(f) && --f->users == 0) {
			f->next = over;
			over = f;
		}
	}
	pthread_mutex_unlock(&using);
	while (over != NULL) {
		f = over;
		over = f->next;
		close_device(f);
	}
	cancel_go_on(cancel);
	errno = err;
}

/* None of its parent's files is this process's, and nobody holds a lock. */
static void
in_child(void)
{
	const int end = atomic_load(&files_end);

	pthread_mutex_init(&using, NULL);
	pthread_mutex_init(&lock, NULL);
	ucm_ids_inherited();
	ucm_joins_inherited();
	for (int fd = 0; fd < end; fd++) {
		const struct ucm_file *f = atomic_load(&files[fd]);

		if (f != NULL && !is_inherited(f))
			atomic_store(&files[fd], f->used ? &inherited : &unused);
	}
	context = NULL;
	if (original != NULL)
		atomic_store(original, true);
	atomic_store(&opened_by, getpid());
}

static void
watch_forks(void)
{
	original = wiped_page();
	if (original != NULL)
		atomic_store(original, true);
	atomic_store(&opened_by, getpid());
	pthread_atfork(NULL, NULL, in_child);
}

static void
begin(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, watch_forks);
}

/* ---- the device ------------------------------------------------------------------------------ */

static int
use_context(struct rl_context **out)
{
	int rc = 0;

	pthread_mutex_lock(&lock);
	if (context == NULL) {
		rc = rl_open(NULL, &context);
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
		pthread_mutex_lock(&using);
		atomic_store(&files[fd], f);
		if (fd >= atomic_load(&files_end))
			atomic_store(&files_end, fd + 1);
		pthread_mutex_unlock(&using);
		return fd;
	}
	if (fd >= 0)
		close(fd);
	return -EMFILE;
}

static int
open_uncancelled(int flags)
{
	struct rl_context *ctx;
	struct ucm_file *f;
	int rc;

	begin();
	/* What it makes would be its parent's, whose memory it has, and end with it. */
	if (!are_ours()) {
		vl_refused_because("rdma_cm open", EOPNOTSUPP, "not in a child of vfork()");
		return -1;
	}
	f = calloc(1, sizeof(*f));
	rc = f != NULL ? use_context(&ctx) : -ENOMEM;
	if (rc == 0)
		rc = rl_cm_create_event_channel(ctx, &f->channel);
	/* Else a program that polls would be told of an event that librdmacm does not see. */
	if (rc == 0) {
		rc = rl_cm_accepted_only(f->channel);
		if (rc != 0)
			rl_cm_destroy_event_channel(f->channel);
	}
	if (rc != 0) {
		ucm_open_refused(rc);
		free(f);
		return -1;
	}
	pthread_mutex_init(&f->getting, NULL);
	f->users = 1;
	rc = give_fd(f, flags);
	if (rc >= 0)
		return rc;
	close_device(f);
	errno = -rc;
	return -1;
}

static int
open_device(int flags)
{
	const int cancel = cancel_hold();
	const int fd = open_uncancelled(flags);

	cancel_go_on(cancel);
	return fd;
}

/* A command has more than its header's 8 bytes; an event's descriptor takes just 8. */
static bool
is_command(int fd, size_t len)
{
	struct stat st;

	return len > sizeof(struct rdma_ucm_cmd_hdr) && NEXT(fstat)(fd, &st) == 0 &&
	       (st.st_mode & S_IFMT) == 0;
}

/*
 * A daemon opens its channel, calls daemon(), and makes its ids then: the channel that it has
 * inherited becomes one of its own, before it waits for what is told there. @return 0 or -1.
 */
static int
take_over(int fd)
{
	const int flags = fcntl(fd, F_GETFL), of_fd = fcntl(fd, F_GETFD);
	const int own = flags >= 0 && of_fd >= 0 ? open_device(flags | O_CLOEXEC) : -1;
	CANCEL_HELD;
	bool done;

	if (own < 0)
		return -1;
	pthread_mutex_lock(&using);
	/* Another thread may have done so. */
	if (is_inherited(atomic_load(&files[fd])) &&
		NEXT(dup3)(own, fd, (of_fd & FD_CLOEXEC) != 0 ? O_CLOEXEC : 0) == fd)
		atomic_store(&files[fd], atomic_exchange(&files[own], NULL));
	done = !is_inherited(atomic_load(&files[fd]));
	pthread_mutex_unlock(&using);
	return close(own) == 0 && done ? 0 : -1;
}

/* It brings an id, or waits for events where no id can be but the child's own. */
static bool
is_first(const struct ucm_file *f, const void *buf)
{
	const uint32_t cmd = ((const struct rdma_ucm_cmd_hdr *)buf)->cmd;

	return cmd == RDMA_USER_CM_CMD_CREATE_ID || cmd == RDMA_USER_CM_CMD_MIGRATE_ID ||
	       (cmd == RDMA_USER_CM_CMD_GET_EVENT && f == &unused);
}

static ssize_t
write_device(int fd, const void *buf, size_t len)
{
	struct ucm_file *f = get(fd);
	ssize_t n;

	if (is_inherited(f) && is_command(fd, len)) {
		if (is_first(f, buf))
			return take_over(fd) == 0 ? write(fd, buf, len) : -1;
		vl_refused_because("rdma_cm", EBADF,
			"ids end with the process that made them: daemon() has to come before");
		return -1;
	}
	if (f == NULL || is_inherited(f))
		return NEXT(write)(fd, buf, len);
	pthread_cleanup_push(put, f);
	n = ucm_write(f, buf, len);
	pthread_cleanup_pop(1);
	return n;
}

/* ---- libc's functions ------------------------------------------------------------------------ */

/* dlsym() takes locks and uses the heap, which a child of fork() or a handler may not. */
#define LIBC(name)                                   \
	static __typeof__(&(name)) libc_##name(void) \
	{                                            \
		return NEXT(name);                   \
	}

LIBC(write)
LIBC(close)
LIBC(close_range)
LIBC(closefrom)
LIBC(dup2)
LIBC(dup3)
LIBC(epoll_ctl)

__attribute__((constructor)) static void
find(void)
{
	begin();
	libc_write();
	libc_close();
	libc_close_range();
	libc_closefrom();
	libc_dup2();
	libc_dup3();
	libc_epoll_ctl();
}

/* libc declares that there is a path, and what is compiled by that tests none. */
static __attribute__((noinline)) bool
is_device_path(const char *path)
{
	return path != NULL && strcmp(path, DEVICE) == 0;
}

/* The kernel judges a path, also none. */
typedef int open_function(const char *path, int flags, ...);

#define OPEN(name)                                                                     \
	EXPORT int name(const char *path, int flags, ...)                              \
	{                                                                              \
		va_list ap;                                                            \
		mode_t mode = 0;                                                       \
		char *buf = SYS_PATH_BUF(path);                                        \
		if (is_device_path(path))                                              \
			return open_device(flags);                                     \
		va_start(ap, flags);                                                   \
		if ((flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE)        \
			mode = va_arg(ap, mode_t);                                     \
		va_end(ap);                                                            \
		return ((open_function *)NEXT(name))(vl_path(path, buf), flags, mode); \
	}

OPEN(open)
OPEN(open64)

EXPORT ssize_t
write(int fd, const void *buf, size_t len)
{
	return may_be_ours(fd) ? write_device(fd, buf, len) : libc_write()(fd, buf, len);
}

EXPORT int
close(int fd)
{
	int cancel, rc;

	if (!may_be_ours(fd))
		return libc_close()(fd);
	cancel = close_begin();
	rc = libc_close()(fd);
	close_end(cancel, (unsigned int)fd, (unsigned int)fd);
	return rc;
}

static bool
some_are_ours(unsigned int from)
{
	return from < (unsigned int)atomic_load(&files_end) && are_ours();
}

EXPORT int
close_range(unsigned int from, unsigned int to, int flags)
{
	int cancel, rc;

	if ((flags & CLOSE_RANGE_CLOEXEC) != 0 || !some_are_ours(from))
		return libc_close_range()(from, to, flags);
	cancel = close_begin();
	rc = libc_close_range()(from, to, flags);
	close_end(cancel, rc == 0 ? from : UINT_MAX, to);
	return rc;
}

EXPORT void
closefrom(int from)
{
	const unsigned int first = from > 0 ? (unsigned int)from : 0;
	int cancel;

	if (!some_are_ours(first)) {
		libc_closefrom()(from);
		return;
	}
	cancel = close_begin();
	libc_closefrom()(from);
	close_end(cancel, first, UINT_MAX);
}

EXPORT int
dup3(int fd, int to, int flags)
{
	int cancel, rc;

	if (fd == to || !may_be_ours(to))
		return libc_dup3()(fd, to, flags);
	cancel = close_begin();
	rc = libc_dup3()(fd, to, flags);
	close_end(cancel, rc >= 0 ? (unsigned int)to : UINT_MAX, (unsigned int)to);
	return rc;
}

EXPORT int
dup2(int fd, int to)
{
	return fd == to || !may_be_ours(to) ? libc_dup2()(fd, to) : dup3(fd, to, 0);
}

/* What is watched is the file, not its number: it has to be the child's own by now. */
EXPORT int
epoll_ctl(int set, int op, int fd, struct epoll_event *event)
{
	if (op == EPOLL_CTL_ADD && may_be_ours(fd) && atomic_load(&files[fd]) == &unused &&
		take_over(fd) != 0)
		return -1;
	return libc_epoll_ctl()(set, op, fd, event);
}

/* librdmacm wants a character device, with the kernel's number where the kernel has one. */
static bool
is_device(int fd)
{
	return may_be_ours(fd) && !is_inherited(atomic_load(&files[fd]));
}

#define FSTAT(name, look)                                                  \
	EXPORT int name(int fd, struct look *st)                           \
	{                                                                  \
		const int rc = NEXT(name)(fd, st);                         \
		struct look real;                                          \
		if (!is_device(fd) || rc != 0)                             \
			return rc;                                         \
		st->st_mode = S_IFCHR | S_IRUSR | S_IWUSR;                 \
		st->st_rdev = look(DEVICE, &real) == 0 ? real.st_rdev : 0; \
		return 0;                                                  \
	}

FSTAT(fstat, stat)
FSTAT(fstat64, stat64)
