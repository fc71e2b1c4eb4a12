/* SPDX-License-Identifier: BSD-3-Clause */
/* What a range consists of, from /proc/self/maps. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "convert.h"
#include "convert_lines.h"

static int
prot_of(const char *perms)
{
	return (perms[0] == 'r' ? PROT_READ : 0) | (perms[1] == 'w' ? PROT_WRITE : 0) |
	       (perms[2] == 'x' ? PROT_EXEC : 0);
}

static bool
begins(const char *text, const char *with)
{
	return strncmp(text, with, strlen(with)) == 0;
}

static enum convert_kind
kind_of(const struct convert_part *p)
{
	/* A stack is private memory, and the other names in brackets but these are. */
	if (begins(p->path, "[v") || (p->prot & PROT_READ) == 0)
		return CONVERT_NOT;
	if (begins(p->path, "/anon_hugepage") ||
		(begins(p->path, "/dev/") && !begins(p->path, "/dev/shm/") &&
			!begins(p->path, "/dev/zero") && !begins(p->path, "/dev/hugepages/")))
		return CONVERT_NOT;
	if (p->shared)
		return CONVERT_SHARED;
	return p->inode != 0 ? CONVERT_FILE : CONVERT_PRIVATE;
}

/* @return true: the line is a mapping, with where it ends. */
static bool
parse(const char *line, struct convert_part *p, uintptr_t *end)
{
	char perms[5];
	int path = 0;

	memset(p, 0, sizeof(*p));
	if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %4s %" SCNx64 " %x:%x %" SCNu64 " %n", &p->at,
		    end, perms, &p->offset, &p->major, &p->minor, &p->inode, &path) != 7)
		return false;
	snprintf(p->path, sizeof(p->path), "%.*s", (int)strcspn(line + path, "\n"), line + path);
	p->prot = prot_of(perms);
	p->shared = perms[3] == 's';
	p->kind = kind_of(p);
	return true;
}

/* ---- the file, opened once ------------------------------------------------------------------- */

/*
 * It stays open, for a time when the program has no descriptor left, or has changed its root: who
 * does not know then which pages are shared leaves them so. It shows the memory of the process that
 * has opened it, so a child opens its own. The program may have closed it, and have another file
 * there.
 */
static int kept = -1;
static pid_t kept_by;
static struct stat kept_is;

static bool
is_there(void)
{
	struct stat st;

	return kept >= 0 && fstat(kept, &st) == 0 && st.st_dev == kept_is.st_dev &&
	       st.st_ino == kept_is.st_ino;
}

/* @return a descriptor at its begin, which stays; or -errno. */
static int
maps_open(void)
{
	const bool is_open = is_there(), is_ours = is_open && kept_by == getpid();

	if (is_open && !is_ours)
		close(kept); /* a parent's */
	if (!is_ours) {
		kept = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
		if (kept < 0 || fstat(kept, &kept_is) != 0)
			return -errno;
		kept_by = getpid();
	}
	return lseek(kept, 0, SEEK_SET) == 0 ? kept : -errno;
}

const char *
convert_next_line(struct lines *l)
{
	for (;;) {
		char *line = l->text + l->at, *end = memchr(line, '\n', l->end - l->at);
		const bool full = end == NULL && l->end - l->at == sizeof(l->text);
		ssize_t n;

		if (full)
			end = l->text + sizeof(l->text) - 1;
		if (end != NULL) {
			const bool rest = l->cut;

			*end = '\0';
			l->at = (size_t)(end - l->text) + 1;
			l->cut = full;
			if (rest)
				continue;
			return line;
		}
		memmove(l->text, line, l->end - l->at);
		l->end -= l->at;
		l->at = 0;
		do
			n = read(l->fd, l->text + l->end, sizeof(l->text) - l->end);
		while (n < 0 && errno == EINTR);
		if (n <= 0)
			return NULL;
		l->end += (size_t)n;
	}
}

/* ---- mappings -------------------------------------------------------------------------------- */

/* @return false: the file is empty. */
static bool
walk(int fd, convert_seen *seen, void *ctx)
{
	struct lines l = { .fd = fd };
	const char *line = convert_next_line(&l);
	const bool any = line != NULL;
	struct convert_part p;
	uintptr_t end;

	for (; line != NULL; line = convert_next_line(&l)) {
		if (!parse(line, &p, &end) || end <= p.at)
			continue;
		p.map_at = p.at;
		p.map_end = end;
		p.len = end - p.at;
		if (!seen(ctx, &p))
			break;
	}
	return any;
}

int
convert_walk(convert_seen *seen, void *ctx)
{
	const int first = maps_open();
	int fd;

	if (first >= 0 && walk(first, seen, ctx))
		return 0;
	/* The first thread has ended. That of another one ends with that one: it is not kept. */
	fd = open("/proc/thread-self/maps", O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return first < 0 ? first : -errno;
	walk(fd, seen, ctx);
	close(fd);
	return 0;
}

/* What [at, stop) consists of. */
struct look {
	uintptr_t at; /* of what is not known yet */
	uintptr_t stop;
	struct convert_part *parts;
	int n; /* or -E2BIG */
};

static bool
look_at(void *ctx, const struct convert_part *seen)
{
	struct look *l = ctx;
	struct convert_part *p = &l->parts[l->n];

	if (seen->map_end <= l->at)
		return true;
	if (seen->map_at > l->at)
		return false;
	if (l->n == CONVERT_PARTS) {
		l->n = -E2BIG;
		return false;
	}
	*p = *seen;
	p->offset += l->at - p->at;
	p->at = l->at;
	p->len = (p->map_end < l->stop ? p->map_end : l->stop) - l->at;
	l->at += p->len;
	l->n++;
	return l->at < l->stop;
}

int
convert_look(uintptr_t at, size_t len, struct convert_part *parts)
{
	struct look l = { .at = at, .stop = at + len, .parts = parts };
	const int rc = convert_walk(look_at, &l);

	if (rc != 0 || l.n < 0)
		return rc != 0 ? rc : l.n;
	return l.at < l.stop ? -EFAULT : l.n;
}
