/* SPDX-License-Identifier: BSD-3-Clause */
/* Converted memory: see span.h. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/queue.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "cancel.h"
#include "convert.h"
#include "fds.h"
#include "span.h"

#define WHY       VL_WHY
#define READ_ONLY "LOCAL_WRITE, and it has read-only pages"

struct vl_span {
	TAILQ_ENTRY(vl_span) all;
	uintptr_t at;
	size_t len;
	int fd;
	uint64_t inode;
	uint32_t users;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int cancel; /* of the thread that has it: cancel.h */
static TAILQ_HEAD(, vl_span) spans = TAILQ_HEAD_INITIALIZER(spans);
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

static int
refuse(char *why, int err, const char *text)
{
	snprintf(why, WHY, "%s", text);
	return err;
}

/* ---- fork ------------------------------------------------------------------------------------ */

/* What the child makes private. */
struct shared_part {
	uintptr_t at;
	size_t len;
	int prot;
};

static struct shared_part *shared;
static size_t shared_n, shared_room;
static bool shared_cut; /* no memory for the list */

static void
note_shared(const struct convert_part *p)
{
	struct shared_part *more = shared;

	if (shared_n == shared_room) {
		more = reallocarray(shared, shared_room + CONVERT_PARTS, sizeof(*more));
		if (more == NULL) {
			shared_cut = true;
			return;
		}
		shared = more;
		shared_room += CONVERT_PARTS;
	}
	shared[shared_n++] = (struct shared_part){ .at = p->at, .len = p->len, .prot = p->prot };
}

/* The parent looks: the child has no heap before its pages are its own. */
static void
before_fork(void)
{
	struct convert_part parts[CONVERT_PARTS];
	const struct vl_span *s;

	vl_spans_lock();
	forker = pthread_self();
	shared_n = 0;
	shared_cut = false;
	TAILQ_FOREACH (s, &spans, all) {
		const int n = convert_look(s->at, s->len, parts);

		for (int i = 0; i < n; i++) {
			if (parts[i].kind == CONVERT_SHARED && parts[i].inode == s->inode)
				note_shared(&parts[i]);
		}
	}
	if (shared_n == 0 || pipe2(held, O_CLOEXEC) != 0)
		held[0] = held[1] = -1;
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
	static const char words[] = "rocelane: no memory for the child of fork(): it ends\n";
	const struct vl_span *s;
	bool bad = shared_cut;

	if (forker != pthread_self())
		return;
	for (size_t i = 0; i < shared_n && !bad; i++)
		bad = convert_to_private_in_child(shared[i].at, shared[i].len, shared[i].prot) != 0;
	if (bad) { /* else it would write to its parent's memory */
		syscall(SYS_write, STDERR_FILENO, words, sizeof(words) - 1);
		syscall(SYS_kill, getpid(), SIGKILL);
	}
	TAILQ_FOREACH (s, &spans, all)
		syscall(SYS_close, s->fd);
	/* The regions are the parent's; the list is left to the child's end. */
	TAILQ_INIT(&spans);
	if (held[0] >= 0) {
		syscall(SYS_close, held[0]);
		syscall(SYS_close, held[1]);
	}
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

static void
watch_forks(void)
{
	static bool watched;

	if (!watched && ends_watched)
		watched = pthread_atfork(before_fork, NULL, NULL) == 0;
}

/* ---- a new span ------------------------------------------------------------------------------ */

/* Those that are converted already become private again. */
static void
undo(const struct vl_span *s)
{
	struct convert_part parts[CONVERT_PARTS];
	const int n = convert_look(s->at, s->len, parts);

	for (int i = 0; i < n; i++) {
		if (parts[i].kind == CONVERT_SHARED && parts[i].inode == s->inode)
			convert_to_private(&parts[i]);
	}
}

static void
span_free(struct vl_span *s)
{
	if (s->fd >= 0)
		close(s->fd);
	free(s);
}

static int
memfd_for(struct vl_span *s)
{
	struct stat st;

	s->fd = memfd_create("rocelane", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (s->fd < 0 || fds_set_length(s->fd, s->len) != 0 ||
		fcntl(s->fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) != 0 ||
		fstat(s->fd, &st) != 0)
		return errno;
	s->inode = st.st_ino;
	return 0;
}

static int
say_convert(char *why, const struct convert_part *p, int rc)
{
	if (rc == -ETIMEDOUT)
		snprintf(why, WHY,
			"the kernel gives no userfaultfd for %s, and a thread did not stop in two "
			"seconds: it sleeps in the kernel, or blocks every signal",
			p->kind == CONVERT_FILE ? p->path : "it (seccomp?)");
	else if (rc == -EFAULT)
		snprintf(why, WHY, "memory without access (PROT_NONE) is in the range");
	else
		snprintf(why, WHY, "%zu bytes at %p cannot be made shared memory: %s", p->len,
			(void *)p->at, strerror(-rc));
	return -rc;
}

static int
convert_all(struct vl_span *s, const struct convert_part *parts, int n, char *why)
{
	for (int i = 0; i < n; i++) {
		const int rc = convert_to_shared(&parts[i], s->fd, parts[i].at - s->at);

		if (rc != 0) {
			undo(s);
			return say_convert(why, &parts[i], rc);
		}
	}
	return 0;
}

static int
span_new(uintptr_t at, size_t len, const struct convert_part *parts, int n, struct vl_span **out,
	char *why)
{
	struct vl_span *s = calloc(1, sizeof(*s));
	int err;

	if (s == NULL)
		return refuse(why, ENOMEM, "out of memory");
	*s = (struct vl_span){ .at = at, .len = len, .fd = -1 };
	err = memfd_for(s);
	if (err != 0) {
		refuse(why, err, "no memfd for the pages (RLIMIT_FSIZE, too many open files?)");
		span_free(s);
		return err;
	}
	err = convert_all(s, parts, n, why);
	if (err != 0) {
		span_free(s);
		return err;
	}
	watch_forks();
	TAILQ_INSERT_TAIL(&spans, s, all);
	*out = s;
	return 0;
}

/* ---- what a range is ------------------------------------------------------------------------- */

/* The span that the part is a part of, with regions in it; or NULL. */
static struct vl_span *
span_of(const struct convert_part *p)
{
	struct vl_span *s;

	TAILQ_FOREACH (s, &spans, all) {
		if (p->kind == CONVERT_SHARED && s->inode == p->inode && p->at >= s->at &&
			p->offset == p->at - s->at)
			return s;
	}
	return NULL;
}

/* Pages of a span that is gone, which could not be made private. */
static bool
is_left_over(const struct convert_part *p)
{
	return p->kind == CONVERT_SHARED && strncmp(p->path, "/memfd:rocelane ", 16) == 0;
}

/*
 * What $ROCELANE_MR says of private memory: "convert" (as without it), or "refuse". A word that
 * means nothing asks for something that is not there.
 */
static int
read_policy(bool *only_shared, char *why)
{
	const char *how = getenv("ROCELANE_MR");

	*only_shared = how != NULL && strcmp(how, "refuse") == 0;
	if (how == NULL || *how == '\0' || *only_shared || strcmp(how, "convert") == 0)
		return 0;
	if (strcmp(how, "bounce") == 0)
		return refuse(why, EOPNOTSUPP,
			"ROCELANE_MR=bounce is not built, for a completion does not name the buffers "
			"of a shared receive queue to copy back to: convert or refuse");
	snprintf(why, WHY, "ROCELANE_MR=%.64s is not known: convert or refuse", how);
	return EINVAL;
}

/* Parts of a range that are one piece of the region: in a span, or none of them in one yet. */
struct run {
	uintptr_t at;
	size_t len;
	const struct convert_part *parts;
	int n;
	struct vl_span *span;
};

/* @return how many; or -1: too many. */
static int
cut(const struct convert_part *parts, int n, struct run *runs)
{
	int k = 0;

	for (int i = 0; i < n; i++) {
		struct vl_span *span = span_of(&parts[i]);

		if (k != 0 && runs[k - 1].span == span) {
			runs[k - 1].len += parts[i].len;
			runs[k - 1].n++;
			continue;
		}
		if (k == RL_MR_PIECES)
			return -1;
		runs[k++] = (struct run){ .at = parts[i].at,
			.len = parts[i].len,
			.parts = &parts[i],
			.n = 1,
			.span = span };
	}
	return k;
}

/* @return 0, or an errno; or -1: it is memory that the program shares itself. */
static int
judge(const struct convert_part *parts, int n, bool written, char *why)
{
	int others = 0;

	for (int i = 0; i < n; i++) {
		if (parts[i].kind == CONVERT_NOT)
			return refuse(why, EFAULT,
				"it has pages that nobody can share: of a device, of the kernel, "
				"huge ones, or without access");
		if (written && (parts[i].prot & PROT_WRITE) == 0)
			return refuse(why, EFAULT, READ_ONLY);
		others += parts[i].kind == CONVERT_SHARED && span_of(&parts[i]) == NULL &&
			  !is_left_over(&parts[i]);
	}
	if (others == 0)
		return 0;
	if (others == 1 && n == 1)
		return -1;
	return refuse(why, EOPNOTSUPP,
		"it consists of memory that the program shares itself and of other memory: "
		"register each");
}

static void
put(struct vl_span *s)
{
	if (--s->users != 0)
		return;
	undo(s);
	TAILQ_REMOVE(&spans, s, all);
	span_free(s);
}

/* Each run in a span of its own, used once more. @return 0; or an errno, and it is as before. */
static int
use_runs(struct run *runs, int n, bool only_shared, char *why)
{
	int err = 0, done = 0;

	while (done < n && err == 0) {
		struct run *r = &runs[done];

		if (r->span == NULL && only_shared)
			err = refuse(why, EOPNOTSUPP,
				"it is private memory, and ROCELANE_MR=refuse leaves such memory "
				"as it is: use memory that is shared, of a memfd for example");
		else if (r->span == NULL)
			err = span_new(r->at, r->len, r->parts, r->n, &r->span, why);
		if (err == 0) {
			r->span->users++;
			done++;
		}
	}
	while (err != 0 && done != 0)
		put(runs[--done].span);
	return err;
}

/* @return how many parts [at, end) has; or -errno, with the reason. */
static int
look(uintptr_t at, uintptr_t end, struct convert_part *parts, char *why)
{
	const int n = convert_look(at, end - at, parts);

	if (n >= 0)
		return n;
	if (n == -EFAULT)
		return -refuse(why, EFAULT, "not all of it is mapped");
	if (n == -E2BIG)
		return -refuse(why, EOPNOTSUPP, "it consists of too many mappings");
	snprintf(why, WHY, "/proc/self/maps says what it is: %s", strerror(-n));
	return -EOPNOTSUPP;
}

int
vl_span_may_write(const void *addr, size_t len, char why[WHY])
{
	const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), from = (uintptr_t)addr;
	struct convert_part parts[CONVERT_PARTS];
	const int n = look(from & ~(page - 1), (from + len + page - 1) & ~(page - 1), parts, why);

	for (int i = 0; i < n; i++) {
		if ((parts[i].prot & PROT_WRITE) == 0)
			return refuse(why, EFAULT, READ_ONLY);
	}
	return n < 0 ? -n : 0;
}

int
vl_span_get(const void *addr, size_t len, bool written, struct vl_memory *out, char why[WHY])
{
	const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), from = (uintptr_t)addr;
	const uintptr_t at = from & ~(page - 1), end = (from + len + page - 1) & ~(page - 1);
	struct convert_part parts[CONVERT_PARTS];
	struct run runs[RL_MR_PIECES];
	bool only_shared;
	int n, err;

	err = read_policy(&only_shared, why);
	if (err != 0)
		return err;
	if (len == 0 || end <= from)
		return refuse(why, EINVAL, "no bytes, or more than there are addresses");
	n = look(at, end, parts, why);
	if (n < 0)
		return -n;
	err = judge(parts, n, written, why);
	if (err != 0)
		return err < 0 ? vl_shared_get(&parts[0], addr, out, why) : err;
	n = cut(parts, n, runs);
	if (n < 0)
		return refuse(why, EOPNOTSUPP,
			"it shares pages with too many other regions: it would consist of more "
			"than 8 pieces");
	err = use_runs(runs, n, only_shared, why);
	if (err != 0)
		return err;
	*out = (struct vl_memory){ .offset = from - at, .spans = { .n = n } };
	for (int i = 0; i < n; i++) {
		out->spans.of[i] = runs[i].span;
		out->pieces[i] = (struct rl_mr_piece){ .fd = runs[i].span->fd,
			.offset = runs[i].at - runs[i].span->at,
			.length = runs[i].len };
	}
	return 0;
}

void
vl_spans_put(const struct vl_spans *of)
{
	for (int i = 0; i < of->n; i++)
		put(of->of[i]);
}
