/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory that the program shares itself: /dev/shm, memfds, System V, mmap(MAP_SHARED). */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "convert.h"
#include "include/rocelane.h"
#include "kept.h"
#include "span_priv.h"

#define LINK_MAX_BYTES 80

/* A file of the program's, and a descriptor of it: sorted, as there may be thousands. */
struct own {
	dev_t dev;
	ino_t inode;
	int fd;
};

/* The files of a region, in the order of their addresses. */
struct vl_files {
	struct convert_part *of;
	uint32_t n;
	struct own *own;
	size_t own_n;
	char why[VL_WHY]; /* why one of them cannot be opened */
};

static bool
is_it(int fd, const struct convert_part *p)
{
	struct stat st;

	return fstat(fd, &st) == 0 && st.st_ino == p->inode && major(st.st_dev) == p->major &&
	       minor(st.st_dev) == p->minor;
}

/* The dataplane maps it for writing, too. */
static bool
is_writable(int fd)
{
	const int flags = fcntl(fd, F_GETFL);

	return flags >= 0 && (flags & O_ACCMODE) == O_RDWR;
}

/* Room for one more of an array. @return it, or NULL: no memory, and it is as it was. */
static void *
room(void *array, size_t n, size_t size)
{
	return (n & (n - 1)) != 0 ? array : reallocarray(array, n == 0 ? 1 : 2 * n, size);
}

static int
by_file(const void *left, const void *right)
{
	const struct own *l = left, *r = right;

	if (l->dev != r->dev)
		return l->dev < r->dev ? -1 : 1;
	return l->inode < r->inode ? -1 : l->inode > r->inode;
}

/* What cannot be had is not there: files have other ways to be found. */
static void
read_own(struct vl_files *f)
{
	DIR *d = opendir("/proc/thread-self/fd"); /* the first thread may have ended */
	const struct dirent *e;

	while (d != NULL && (e = readdir(d)) != NULL) {
		const int n = (int)strtol(e->d_name, NULL, 10);
		struct own *grown;
		struct stat st;

		if (e->d_name[0] == '.' || fstat(n, &st) != 0 || !S_ISREG(st.st_mode) ||
			!is_writable(n))
			continue;
		grown = room(f->own, f->own_n, sizeof(*grown));
		if (grown == NULL)
			break;
		f->own = grown;
		grown[f->own_n++] = (struct own){ st.st_dev, st.st_ino, n };
	}
	if (d != NULL)
		closedir(d);
	if (f->own_n != 0)
		qsort(f->own, f->own_n, sizeof(*f->own), by_file);
}

/* A descriptor of the program's, as a new one; or -1. */
static int
own_fd(const struct vl_files *f, const struct convert_part *p)
{
	const struct own key = { makedev(p->major, p->minor), p->inode, -1 };
	const struct own *found =
		f->own_n != 0 ? bsearch(&key, f->own, f->own_n, sizeof(key), by_file) : NULL;

	if (found == NULL || !is_it(found->fd, p) || !is_writable(found->fd))
		return -1;
	return fcntl(found->fd, F_DUPFD_CLOEXEC, 0);
}

static int
open_it(const char *path, const struct convert_part *p)
{
	const int fd = open(path, O_RDWR | O_CLOEXEC);

	if (fd < 0 || is_it(fd, p))
		return fd;
	close(fd);
	return -1;
}

/*
 * The kernel's link to the file. Where the first thread has ended, /proc/self has none, and
 * /proc/thread-self never has; but each thread has a folder like that of a process.
 */
static void
link_of(const struct convert_part *p, char mapping[LINK_MAX_BYTES])
{
	struct stat st;

	snprintf(mapping, LINK_MAX_BYTES, "/proc/self/map_files/%" PRIxPTR "-%" PRIxPTR, p->map_at,
		p->map_end);
	if (lstat(mapping, &st) != 0)
		snprintf(mapping, LINK_MAX_BYTES, "/proc/%d/map_files/%" PRIxPTR "-%" PRIxPTR,
			gettid(), p->map_at, p->map_end);
}

/* Its whole name: that of /proc/self/maps is cut off. */
static void
name_of(const struct convert_part *p, const char *mapping, char name[PATH_MAX])
{
	const ssize_t n = readlink(mapping, name, PATH_MAX - 1);

	if (n > 0)
		name[n] = '\0';
	else
		snprintf(name, PATH_MAX, "%s", p->path);
}

/* A descriptor for the file; or -1. The kernel gives one to CAP_SYS_ADMIN alone. */
static int
find_fd(const struct vl_files *f, const struct convert_part *p)
{
	char mapping[LINK_MAX_BYTES], name[PATH_MAX];
	int fd = own_fd(f, p);

	if (fd >= 0)
		return fd;
	link_of(p, mapping);
	name_of(p, mapping, name);
	if (name[0] == '/')
		fd = open_it(name, p);
	if (fd < 0 && vl_kept_fd != NULL)
		fd = vl_kept_fd(p->major, p->minor, p->inode);
	return fd >= 0 ? fd : open_it(mapping, p);
}

/* As find_fd(). @param why the reason of an error. @return -errno then. */
static int
get_fd(const struct vl_files *f, const struct convert_part *p, char why[VL_WHY])
{
	const char *name = p->path[0] != '\0' ? p->path : "anonymous";
	const int fd = find_fd(f, p);

	if (fd >= 0)
		return fd;
	if (errno == EMFILE || errno == ENFILE) {
		const int err = errno;

		snprintf(why, VL_WHY, "shared memory (%s): %s", name, strerror(err));
		return -err;
	}
	snprintf(why, VL_WHY,
		"shared memory (%s) for which this process has no descriptor to write by: keep it "
		"open, or have CAP_SYS_ADMIN",
		name);
	return -EOPNOTSUPP;
}

/* ---- what a range consists of ---------------------------------------------------------------- */

/*
 * A range of shared memory, of as many mappings and files as there are. The kernel does not merge
 * mappings of huge pages, and DPDK makes one for each page, which may be a file of its own.
 */
struct range {
	uintptr_t at; /* of what is not known yet */
	uintptr_t end;
	bool written;
	struct vl_files *files;
	int err; /* not 0: it cannot be */
	const char *why;
};

/* Does `p` go on where what is known of a file ends? */
static bool
is_next(const struct convert_part *last, const struct convert_part *p)
{
	return p->inode == last->inode && p->major == last->major && p->minor == last->minor &&
	       p->offset == last->offset + last->len;
}

static void
judge(struct range *r, const struct convert_part *p)
{
	r->err = EOPNOTSUPP;
	if (p->kind != CONVERT_SHARED || vl_span_of(p) != NULL) {
		r->why = r->files->n == 0 ? "it consists of too many mappings" : VL_MIXED;
	} else if (r->written && (p->prot & PROT_WRITE) == 0) {
		r->err = EFAULT;
		r->why = VL_READ_ONLY;
	} else {
		r->err = 0;
	}
}

static bool
add(void *ctx, const struct convert_part *seen)
{
	struct range *r = ctx;
	struct vl_files *f = r->files;
	struct convert_part p = *seen, *last;

	if (p.map_end <= r->at)
		return true;
	if (p.map_at > r->at)
		return false;
	p.offset += r->at - p.at;
	p.at = r->at;
	r->at = p.map_end < r->end ? p.map_end : r->end;
	p.len = r->at - p.at;
	judge(r, &p);
	last = f->n != 0 ? &f->of[f->n - 1] : NULL;
	if (r->err == 0 && last != NULL && is_next(last, &p)) {
		last->len += p.len;
	} else if (r->err == 0) {
		last = room(f->of, f->n, sizeof(*f->of));
		if (last != NULL) {
			f->of = last;
			f->of[f->n++] = p;
		} else {
			r->err = ENOMEM;
			r->why = "out of memory";
		}
	}
	return r->err == 0 && r->at < r->end;
}

/* ---- many files ------------------------------------------------------------------------------ */

static void
files_free(struct vl_files *f)
{
	if (f == NULL)
		return;
	free(f->of);
	free(f->own);
	free(f);
}

/* What a mapping of the file begins and ends with. */
static uint64_t
page_of(int fd)
{
	struct statfs fs;

	return fstatfs(fd, &fs) == 0 && fs.f_type == HUGETLBFS_MAGIC
		       ? (uint64_t)fs.f_bsize
		       : (uint64_t)sysconf(_SC_PAGESIZE);
}

/* The first and the last one from and to where their pages begin and end. */
static int
open_one(void *ctx, uint32_t i, struct rl_mr_piece *piece)
{
	struct vl_files *f = ctx;
	const struct convert_part *p = &f->of[i];
	const int fd = get_fd(f, p, f->why);
	uint64_t page, from = p->offset, to = from + p->len;

	if (fd < 0)
		return fd;
	page = page_of(fd);
	if (i == 0)
		from -= from % page;
	if (i == f->n - 1)
		to += (page - to % page) % page;
	*piece = (struct rl_mr_piece){ .fd = fd, .offset = from, .length = to - from };
	return 0;
}

/* @return 0, or an errno. */
static int
reg_files(struct rl_pd *pd, const struct vl_memory *m, void *addr, size_t len, int access,
	struct rl_mr **mr)
{
	struct rl_mr_files all = { .n = m->files->n, .open = open_one, .ctx = m->files };
	uint64_t head = 0;

	for (uint32_t i = 0; i < all.n; i += all.n - 1) {
		struct rl_mr_piece p;
		const int rc = open_one(m->files, i, &p);

		if (rc != 0)
			return -rc;
		close(p.fd);
		if (i == 0)
			head = m->files->of[0].offset - p.offset;
		all.length += p.length - m->files->of[i].len;
	}
	for (uint32_t i = 0; i < all.n; i++)
		all.length += m->files->of[i].len;
	return -rl_reg_mr_files(pd, &all, head + m->offset, addr, len, access, mr);
}

/* ---- what others use ------------------------------------------------------------------------- */

int
vl_shared_reg(struct rl_pd *pd, const struct vl_memory *m, void *addr, size_t len, int access,
	struct rl_mr **mr, char why[VL_WHY])
{
	int err;

	why[0] = '\0';
	if (m->files == NULL)
		return -rl_reg_mr_fd(pd, m->pieces[0].fd, m->offset, addr, len, access, mr);
	err = reg_files(pd, m, addr, len, access, mr);
	if (err != 0)
		memcpy(why, m->files->why, VL_WHY);
	return err;
}

void
vl_shared_put(const struct vl_memory *m)
{
	if (m->files == NULL)
		close(m->pieces[0].fd);
	files_free(m->files);
}

/* @return 0, or an errno. */
static int
get(struct vl_files *f, struct range *r, const void *addr, struct vl_memory *out, char why[VL_WHY])
{
	const uintptr_t at = r->at;
	const int rc = convert_walk(add, r);

	if (rc != 0)
		return vl_span_look_failed(rc, why);
	if (r->err == 0 && r->at < r->end)
		return vl_span_look_failed(-EFAULT, why);
	if (r->err != 0)
		return vl_span_refuse(why, r->err, r->why);
	read_own(f);
	*out = (struct vl_memory){ .offset = (uintptr_t)addr - at };
	if (f->n != 1) {
		out->files = f;
		return 0;
	}
	out->offset += f->of->offset;
	out->pieces[0].fd = get_fd(f, f->of, why);
	return out->pieces[0].fd >= 0 ? 0 : -out->pieces[0].fd;
}

int
vl_shared_get(uintptr_t at, uintptr_t end, bool written, const void *addr, struct vl_memory *out,
	char why[VL_WHY])
{
	struct vl_files *f = calloc(1, sizeof(*f));
	struct range r = { .at = at, .end = end, .written = written, .files = f };
	int err;

	if (f == NULL)
		return vl_span_refuse(why, ENOMEM, "out of memory");
	err = get(f, &r, addr, out, why);
	if (err != 0 || out->files == NULL)
		files_free(f);
	return err;
}
