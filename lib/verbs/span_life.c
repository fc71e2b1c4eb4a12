/* SPDX-License-Identifier: BSD-3-Clause */
/* A span's life: pages are moved onto its memfd, and back. See span.h. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fds.h"
#include "span_priv.h"

/* Mappings of a span, wherever they are now. */
struct parts {
	const struct vl_span *of;
	int n;
	struct convert_part part[CONVERT_PARTS];
};

static bool
collect(void *ctx, const struct convert_part *p)
{
	struct parts *all = ctx;

	if (vl_span_has(all->of, p))
		all->part[all->n++] = *p;
	return all->n < CONVERT_PARTS;
}

/* Most are all where they were: then no mapping behind them has to be looked at. */
static bool
are_at_home(const struct vl_span *s, struct parts *all)
{
	size_t len = 0;

	all->n = convert_look(s->at, s->len, all->part);
	for (int i = 0; i < all->n && vl_span_has(s, &all->part[i]); i++) {
		if (all->part[i].offset == len)
			len += all->part[i].len;
	}
	return len == s->len;
}

/* @return 0, and it has no mapping any more; or -errno. */
static int
undo_once(const struct vl_span *s)
{
	static struct parts all; /* of who has the lock: threads may have small stacks */
	int rc = 0;

	all.of = s;
	all.n = 0;
	do {
		if (!are_at_home(s, &all)) {
			all.n = 0;
			rc = convert_walk(collect, &all);
		}
		for (int i = 0; i < all.n && rc == 0; i++)
			rc = convert_to_private(&all.part[i], vl_span_there(s, &all.part[i]));
	} while (rc == 0 && all.n == CONVERT_PARTS);
	return rc;
}

/* What is converted becomes private again. @return 0, or -errno: not all of it. */
static int
undo(const struct vl_span *s)
{
	int rc = undo_once(s);

	if (rc == -EMFILE && vl_spans_spare()) {
		rc = undo_once(s);
		vl_spans_keep_spare();
	}
	return rc;
}

static void
span_free(struct vl_span *s)
{
	if (s->fd >= 0)
		close(s->fd);
	free(s);
}

static void
forget(struct vl_span *s)
{
	TAILQ_REMOVE(&vl_span_all, s, all);
	span_free(s);
}

/* Nobody uses it. Where its pages cannot be made private, it stays: children need copies. */
static void
end(struct vl_span *s)
{
	const int rc = undo(s);

	s->stuck = rc == -ETIMEDOUT;
	if (rc == 0)
		forget(s);
}

static bool
is_mapped(const struct vl_span *s)
{
	static struct parts all; /* as above */

	all.of = s;
	all.n = 0;
	return convert_walk(collect, &all) != 0 || all.n != 0;
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
	s->dev = st.st_dev;
	s->inode = st.st_ino;
	return 0;
}

static int
say_convert(char *why, const struct convert_part *p, int rc)
{
	if (rc == -ETIMEDOUT)
		snprintf(why, VL_WHY,
			"the kernel gives no userfaultfd for %s, and a thread did not stop in two "
			"seconds: it sleeps in the kernel, or blocks every signal",
			p->kind == CONVERT_FILE ? p->path : "it (seccomp?)");
	else if (rc == -EFAULT)
		snprintf(why, VL_WHY, "%zu bytes at %p: there are pages behind the end of %s",
			p->len, (void *)p->at,
			p->kind == CONVERT_FILE ? "their file"
						: "a region that mremap() has made longer");
	else if (rc == -EBUSY)
		snprintf(why, VL_WHY,
			"an io_uring has buffers in it, and would go on to use the old pages: "
			"register the region first, then the ring's buffers");
	else
		snprintf(why, VL_WHY, "%zu bytes at %p cannot be made shared memory: %s", p->len,
			(void *)p->at, strerror(-rc));
	return -rc;
}

static int
convert_all(struct vl_span *s, const struct convert_part *parts, int n, char *why)
{
	for (int i = 0; i < n; i++) {
		const int rc = convert_to_shared(&parts[i], s->fd, parts[i].at - parts[0].at);

		if (rc != 0)
			return say_convert(why, &parts[i], rc);
	}
	return 0;
}

int
vl_span_new(
	const struct convert_part *parts, int n, size_t len, struct vl_span **out, char why[VL_WHY])
{
	struct vl_span *s = calloc(1, sizeof(*s));
	int err;

	if (s == NULL)
		return vl_span_refuse(why, ENOMEM, "out of memory");
	*s = (struct vl_span){ .at = parts->at, .len = len, .fd = -1 };
	err = memfd_for(s);
	if (err != 0) {
		vl_span_refuse(
			why, err, "no memfd for the pages (RLIMIT_FSIZE, too many open files?)");
		span_free(s);
		return err;
	}
	vl_spans_watch_forks();
	TAILQ_INSERT_TAIL(&vl_span_all, s, all);
	err = convert_all(s, parts, n, why);
	if (err != 0) {
		end(s);
		return err;
	}
	*out = s;
	return 0;
}

void
vl_span_put(struct vl_span *s)
{
	if (--s->users == 0)
		end(s);
}

void
vl_spans_retry(void)
{
	struct vl_span *s, *next;

	for (s = TAILQ_FIRST(&vl_span_all); s != NULL; s = next) {
		next = TAILQ_NEXT(s, all);
		if (s->users == 0 && !s->stuck)
			end(s);
		else if (s->users == 0 && !is_mapped(s))
			forget(s);
	}
}
