/* SPDX-License-Identifier: BSD-3-Clause */
/* What a range consists of, from /proc/self/maps. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "convert.h"

#define LINE_MAX_BYTES 4352 /* a path, and what stands before it */

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
kind_of(const struct convert_part *p, bool shared)
{
	/* A stack is private memory, and the other names in brackets but these are. */
	if (begins(p->path, "[v") || (p->prot & PROT_READ) == 0)
		return CONVERT_NOT;
	if (begins(p->path, "/anon_hugepage") ||
		(begins(p->path, "/dev/") && !begins(p->path, "/dev/shm/") &&
			!begins(p->path, "/dev/zero") && !begins(p->path, "/dev/hugepages/")))
		return CONVERT_NOT;
	if (shared)
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
	p->kind = kind_of(p, perms[3] == 's');
	return true;
}

int
convert_look(uintptr_t at, size_t len, struct convert_part *parts)
{
	const uintptr_t stop = at + len;
	FILE *f = fopen("/proc/self/maps", "re");
	char line[LINE_MAX_BYTES];
	int n = 0;

	if (f == NULL)
		return -errno;
	while (at < stop && fgets(line, sizeof(line), f) != NULL) {
		struct convert_part p;
		uintptr_t end;

		if (!parse(line, &p, &end) || end <= at)
			continue;
		if (p.at > at)
			break;
		if (n == CONVERT_PARTS) {
			fclose(f);
			return -E2BIG;
		}
		p.map_at = p.at;
		p.map_end = end;
		p.offset += at - p.at;
		p.at = at;
		p.len = (end < stop ? end : stop) - at;
		at += p.len;
		parts[n++] = p;
	}
	fclose(f);
	return at < stop ? -EFAULT : n;
}
