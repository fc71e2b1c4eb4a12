/* SPDX-License-Identifier: BSD-3-Clause */
/* The lock of all spans, and fork(), which waits for it: see span.h. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "cancel.h"
#include "span_priv.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int cancel;               /* of the thread that has it: cancel.h */
static int held[2] = { -1, -1 }; /* from fork() until the child has its copies */
static pthread_t forker;         /* who has the lock for that; 0: nobody */

void
vl_spans_lock(void)
{
	const int before = cancel_hold();

	pthread_mutex_lock(&lock);
	cancel = before;
}

void
vl_spans_unlock(void)
{
	const int before = cancel;

	pthread_mutex_unlock(&lock);
	cancel_go_on(before);
}

/* ---- descriptors for when the program has none left ------------------------------------------ */

enum { SPARE = 3 }; /* for a pipe, or a userfaultfd and its device, and one more */

static int spare[SPARE];
static int spare_n;
static struct stat spare_is; /* the program may have closed them, and have other files there */

static bool
is_spare(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && st.st_dev == spare_is.st_dev && st.st_ino == spare_is.st_ino;
}

bool
vl_spans_spare(void)
{
	const int had = spare_n;

	while (spare_n != 0) {
		if (is_spare(spare[--spare_n]))
			close(spare[spare_n]);
	}
	return had != 0;
}

static bool
are_there(void)
{
	for (int i = 0; i < spare_n; i++) {
		if (!is_spare(spare[i]))
			return false;
	}
	return spare_n == SPARE;
}

void
vl_spans_keep_spare(void)
{
	int fd;

	if (are_there())
		return;
	vl_spans_spare();
	fd = memfd_create("spare", MFD_CLOEXEC);
	if (fd < 0 || fstat(fd, &spare_is) != 0)
		return;
	while (fd >= 0 && spare_n < SPARE) {
		spare[spare_n++] = fd;
		fd = spare_n < SPARE ? fcntl(fd, F_DUPFD_CLOEXEC, 0) : -1;
	}
}

/* ---- fork ------------------------------------------------------------------------------------ */

/* What the child makes private. */
struct shared_part {
	uintptr_t at;
	size_t len;
	size_t there; /* of it, in the span */
	int prot;
};

static struct shared_part *shared;
static size_t shared_n, shared_room;
static bool shared_cut; /* it is not known what is, or there is no memory for the list */

static bool
note_shared(void *ctx, const struct convert_part *p)
{
	const struct vl_span *s = vl_span_of(p);
	struct shared_part *more = shared;

	(void)ctx;
	if (s == NULL)
		return true;
	if (shared_n == shared_room) {
		more = reallocarray(shared, shared_room + CONVERT_PARTS, sizeof(*more));
		if (more == NULL) {
			shared_cut = true;
			return false;
		}
		shared = more;
		shared_room += CONVERT_PARTS;
	}
	shared[shared_n++] = (struct shared_part){
		.at = p->at, .len = p->len, .there = vl_span_there(s, p), .prot = p->prot
	};
	return true;
}

static int
make_pipe(void)
{
	if (pipe2(held, O_CLOEXEC) == 0 || (vl_spans_spare() && pipe2(held, O_CLOEXEC) == 0))
		return 0;
	held[0] = held[1] = -1;
	return -errno;
}

/* The parent looks: the child has no heap before its pages are its own. */
static void
before_fork(void)
{
	vl_spans_lock();
	forker = pthread_self();
	shared_n = 0;
	shared_cut = false;
	if (TAILQ_EMPTY(&vl_span_all))
		return;
	shared_cut = convert_walk(note_shared, NULL) != 0 || shared_cut;
	if (shared_n != 0)
		shared_cut = make_pipe() != 0 || shared_cut;
}

/* Nobody writes to the pipe: it ends when the child has closed it, or is dead, or never was. */
static void
in_parent(void)
{
	char none;

	if (forker != pthread_self()) /* there was no region when it began */
		return;
	if (held[0] >= 0) {
		close(held[1]);
		while (read(held[0], &none, 1) < 0 && errno == EINTR)
			;
		close(held[0]);
		held[0] = -1;
		vl_spans_keep_spare();
	}
	forker = 0;
	vl_spans_unlock();
}

/*
 * The child has one thread: a copy, and the mapping is replaced. Until then its heap is the
 * parent's, too: nothing here may use it, so system calls are made as such, by no function that
 * this library or another has put in front of libc's.
 */
static void
in_child(void)
{
	static const char words[] = "rocelane: no copies of regions for the child of fork(): it "
				    "ends\n";
	const struct vl_span *s;
	bool bad = shared_cut;

	if (forker != pthread_self())
		return;
	for (size_t i = 0; i < shared_n && !bad; i++)
		bad = convert_to_private_in_child(
			      shared[i].at, shared[i].len, shared[i].there, shared[i].prot) != 0;
	if (bad) { /* else it would write to its parent's memory */
		syscall(SYS_write, STDERR_FILENO, words, sizeof(words) - 1);
		syscall(SYS_kill, getpid(), SIGKILL);
	}
	TAILQ_FOREACH (s, &vl_span_all, all)
		syscall(SYS_close, s->fd);
	/* The regions are the parent's; the list is left to the child's end. */
	TAILQ_INIT(&vl_span_all);
	if (held[0] >= 0) {
		syscall(SYS_close, held[0]);
		syscall(SYS_close, held[1]);
		held[0] = -1;
	}
	while (spare_n != 0)
		syscall(SYS_close, spare[--spare_n]);
	forker = 0;
	vl_spans_unlock();
}

static bool ends_watched;

/*
 * The program's handlers run behind these in the child, on pages of its own, and in the parent. But
 * before fork() it is the other way round: what before_fork() needs of the heap is had before a
 * handler may have locked that.
 */
__attribute__((constructor)) static void
watch_ends_of_forks(void)
{
	ends_watched = pthread_atfork(NULL, in_parent, in_child) == 0;
}

void
vl_spans_watch_forks(void)
{
	static bool watched;

	vl_spans_keep_spare();
	if (!watched && ends_watched)
		watched = pthread_atfork(before_fork, NULL, NULL) == 0;
}
