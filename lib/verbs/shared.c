/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory that the program shares itself: /dev/shm, memfds, System V, mmap(MAP_SHARED). */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "convert.h"
#include "kept.h"
#include "span_priv.h"

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

/* A descriptor of the program's, as a new one; or -1. */
static int
own_fd(const struct convert_part *p)
{
	DIR *d = opendir("/proc/self/fd");
	const struct dirent *e;
	int fd = -1;

	if (d == NULL)
		return -1;
	while (fd < 0 && (e = readdir(d)) != NULL) {
		const int n = (int)strtol(e->d_name, NULL, 10);

		if (e->d_name[0] != '.' && is_it(n, p) && is_writable(n))
			fd = fcntl(n, F_DUPFD_CLOEXEC, 0);
	}
	closedir(d);
	return fd;
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
find_fd(const struct convert_part *p)
{
	char mapping[64], name[PATH_MAX];
	int fd = own_fd(p);

	if (fd >= 0)
		return fd;
	snprintf(mapping, sizeof(mapping), "/proc/self/map_files/%" PRIxPTR "-%" PRIxPTR, p->map_at,
		p->map_end);
	name_of(p, mapping, name);
	if (name[0] == '/')
		fd = open_it(name, p);
	if (fd < 0 && vl_kept_fd != NULL)
		fd = vl_kept_fd(p->major, p->minor, p->inode);
	return fd >= 0 ? fd : open_it(mapping, p);
}

/*
 * A range of shared memory: of one file, in a row, in as many mappings as there are. The kernel
 * does not merge mappings of huge pages, and DPDK makes one for each page.
 */
struct range {
	uintptr_t at; /* of what is not known yet */
	uintptr_t end;
	struct convert_part file; /* the first mapping, from the range's begin on */
	size_t len;               /* known */
	bool written;
	int err; /* not 0: it cannot be */
	const char *why;
};

/* Does `p` go on where what is known ends? */
static bool
is_next(const struct range *r, const struct convert_part *p)
{
	return p->inode == r->file.inode && p->major == r->file.major &&
	       p->minor == r->file.minor && p->offset == r->file.offset + r->len;
}

static void
judge(struct range *r, const struct convert_part *p)
{
	r->err = EOPNOTSUPP;
	if (p->kind != CONVERT_SHARED || vl_span_of(p) != NULL) {
		r->why = r->len == 0 ? "it consists of too many mappings" : VL_MIXED;
	} else if (r->written && (p->prot & PROT_WRITE) == 0) {
		r->err = EFAULT;
		r->why = VL_READ_ONLY;
	} else if (r->len != 0 && !is_next(r, p)) {
		r->why = "it is not of one file, in a row: register each. (Huge pages of DPDK: "
			 "--single-file-segments; of SPDK: -g)";
	} else {
		r->err = 0;
	}
}

static bool
add(void *ctx, const struct convert_part *seen)
{
	struct range *r = ctx;
	struct convert_part p = *seen;

	if (p.map_end <= r->at)
		return true;
	if (p.map_at > r->at)
		return false;
	p.offset += r->at - p.at;
	p.at = r->at;
	judge(r, &p);
	if (r->err != 0)
		return false;
	if (r->len == 0)
		r->file = p;
	r->at = p.map_end < r->end ? p.map_end : r->end;
	r->len = r->at - r->file.at;
	return r->at < r->end;
}

int
vl_shared_get(uintptr_t at, uintptr_t end, bool written, const void *addr, struct vl_memory *out,
	char why[VL_WHY])
{
	struct range r = { .at = at, .end = end, .written = written };
	const int rc = convert_walk(add, &r);
	int fd;

	if (rc != 0)
		return vl_span_look_failed(rc, why);
	if (r.err == 0 && r.at < end)
		return vl_span_look_failed(-EFAULT, why);
	if (r.err != 0)
		return vl_span_refuse(why, r.err, r.why);
	fd = find_fd(&r.file);
	if (fd < 0) {
		snprintf(why, VL_WHY,
			"shared memory (%s) for which this process has no descriptor to write by: "
			"keep it open, or have CAP_SYS_ADMIN",
			r.file.path[0] != '\0' ? r.file.path : "anonymous");
		return EOPNOTSUPP;
	}
	*out = (struct vl_memory){ .pieces = { { .fd = fd } },
		.offset = r.file.offset + ((uintptr_t)addr - at) };
	return 0;
}
