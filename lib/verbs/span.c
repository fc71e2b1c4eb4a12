/* SPDX-License-Identifier: BSD-3-Clause */
/* Which spans a range of memory lies in: see span.h. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "span_priv.h"

#define WHY VL_WHY

struct vl_span_list vl_span_all = TAILQ_HEAD_INITIALIZER(vl_span_all);

int
vl_span_refuse(char why[WHY], int err, const char *text)
{
	snprintf(why, WHY, "%s", text);
	return err;
}

/* ---- what a range is ------------------------------------------------------------------------- */

bool
vl_span_has(const struct vl_span *s, const struct convert_part *p)
{
	return p->shared && s->inode == p->inode && p->major == major(s->dev) &&
	       p->minor == minor(s->dev);
}

struct vl_span *
vl_span_of(const struct convert_part *p)
{
	struct vl_span *s;

	TAILQ_FOREACH (s, &vl_span_all, all) {
		if (vl_span_has(s, p))
			return s;
	}
	return NULL;
}

size_t
vl_span_there(const struct vl_span *s, const struct convert_part *p)
{
	const size_t left = p->offset < s->len ? s->len - p->offset : 0;

	return p->len < left ? p->len : left;
}

/* The span that the part lies in, with regions in it; or NULL. */
static struct vl_span *
used_span(const struct convert_part *p)
{
	struct vl_span *s = vl_span_of(p);

	return s != NULL && s->users != 0 && vl_span_there(s, p) == p->len ? s : NULL;
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
		return vl_span_refuse(why, EOPNOTSUPP,
			"ROCELANE_MR=bounce is not built, for a completion does not name the buffers "
			"of a shared receive queue to copy back to: convert or refuse");
	snprintf(why, WHY, "ROCELANE_MR=%.64s is not known: convert or refuse", how);
	return EINVAL;
}

/* Parts of a range that are one piece of the region: in a span, or none of them in one yet. */
struct run {
	size_t len;
	uint64_t offset; /* in the span */
	const struct convert_part *parts;
	int n;
	struct vl_span *span;
};

static bool
goes_on(const struct run *r, const struct vl_span *span, const struct convert_part *p)
{
	return r->span == span && (span == NULL || r->offset + r->len == p->offset);
}

/* @return how many; or -1: too many. */
static int
cut(const struct convert_part *parts, int n, struct run *runs)
{
	int k = 0;

	for (int i = 0; i < n; i++) {
		struct vl_span *span = used_span(&parts[i]);

		if (k != 0 && goes_on(&runs[k - 1], span, &parts[i])) {
			runs[k - 1].len += parts[i].len;
			runs[k - 1].n++;
			continue;
		}
		if (k == RL_MR_PIECES)
			return -1;
		runs[k++] = (struct run){ .len = parts[i].len,
			.offset = span != NULL ? parts[i].offset : 0,
			.parts = &parts[i],
			.n = 1,
			.span = span };
	}
	return k;
}

/* @return 0, or an errno; or -1: all of it is memory that the program shares itself. */
static int
judge(const struct convert_part *parts, int n, bool written, char *why)
{
	int others = 0;

	for (int i = 0; i < n; i++) {
		if (parts[i].kind == CONVERT_NOT)
			return vl_span_refuse(why, EFAULT,
				"it has pages that nobody can share: of a device, of the kernel, "
				"huge ones, or without access");
		if (written && (parts[i].prot & PROT_WRITE) == 0)
			return vl_span_refuse(why, EFAULT, VL_READ_ONLY);
		others += parts[i].kind == CONVERT_SHARED && vl_span_of(&parts[i]) == NULL;
	}
	if (others == 0)
		return 0;
	if (others == n)
		return -1;
	return vl_span_refuse(why, EOPNOTSUPP, VL_MIXED);
}

/* Each run in a span of its own, used once more. @return 0; or an errno, and it is as before. */
static int
use_runs(struct run *runs, int n, bool only_shared, char *why)
{
	int err = 0, done = 0;

	while (done < n && err == 0) {
		struct run *r = &runs[done];

		if (r->span == NULL && only_shared)
			err = vl_span_refuse(why, EOPNOTSUPP,
				"it is private memory, and ROCELANE_MR=refuse leaves such memory "
				"as it is: use memory that is shared, of a memfd for example");
		else if (r->span == NULL)
			err = vl_span_new(r->parts, r->n, r->len, &r->span, why);
		if (err == 0) {
			r->span->users++;
			done++;
		}
	}
	while (err != 0 && done != 0)
		vl_span_put(runs[--done].span);
	return err;
}

int
vl_span_look_failed(int rc, char why[WHY])
{
	if (rc == -EFAULT)
		return vl_span_refuse(why, EFAULT, "not all of it is mapped");
	if (rc == -E2BIG)
		return vl_span_refuse(why, EOPNOTSUPP, "it consists of too many mappings");
	snprintf(why, WHY, "/proc/self/maps says what it is: %s", strerror(-rc));
	return EOPNOTSUPP;
}

/* A range, and what is wrong with it. */
struct rights {
	uintptr_t at; /* of what was not looked at yet */
	uintptr_t end;
	bool read_only;
};

static bool
see_rights(void *ctx, const struct convert_part *p)
{
	struct rights *r = ctx;

	if (p->map_end <= r->at)
		return true;
	if (p->map_at > r->at)
		return false;
	r->read_only = (p->prot & PROT_WRITE) == 0;
	r->at = p->map_end;
	return !r->read_only && r->at < r->end;
}

int
vl_span_may_write(const void *addr, size_t len, char why[WHY])
{
	struct rights r = { .at = (uintptr_t)addr, .end = (uintptr_t)addr + len };
	const int rc = convert_walk(see_rights, &r);

	if (rc != 0 || r.at < r.end)
		return vl_span_look_failed(rc != 0 ? rc : -EFAULT, why);
	return r.read_only ? vl_span_refuse(why, EFAULT, VL_READ_ONLY) : 0;
}

int
vl_span_get(const void *addr, size_t len, bool written, struct vl_memory *out, char why[WHY])
{
	const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), from = (uintptr_t)addr;
	const uintptr_t at = from & ~(page - 1), end = (from + len + page - 1) & ~(page - 1);
	static struct convert_part parts[CONVERT_PARTS]; /* of who has the lock: stacks are small */
	struct run runs[RL_MR_PIECES];
	bool only_shared;
	int n, err;

	err = read_policy(&only_shared, why);
	if (err != 0)
		return err;
	if (len == 0 || end <= from)
		return vl_span_refuse(why, EINVAL, "no bytes, or more than there are addresses");
	n = convert_look(at, end - at, parts);
	err = n == -E2BIG ? -1
	      : n < 0     ? vl_span_look_failed(n, why)
			  : judge(parts, n, written, why);
	if (err < 0)
		return vl_shared_get(at, end, written, addr, out, why);
	if (err != 0)
		return err;
	n = cut(parts, n, runs);
	if (n < 0)
		return vl_span_refuse(why, EOPNOTSUPP,
			"it shares pages with too many other regions: it would consist of more "
			"than 8 pieces");
	err = use_runs(runs, n, only_shared, why);
	if (err != 0)
		return err;
	*out = (struct vl_memory){ .offset = from - at, .spans = { .n = n } };
	for (int i = 0; i < n; i++) {
		out->spans.of[i] = runs[i].span;
		out->pieces[i] = (struct rl_mr_piece){
			.fd = runs[i].span->fd, .offset = runs[i].offset, .length = runs[i].len
		};
	}
	return 0;
}

/* A child of fork() has none of its parent's: it has forgotten them. */
static bool
is_known(const struct vl_span *span)
{
	const struct vl_span *s;

	TAILQ_FOREACH (s, &vl_span_all, all) {
		if (s == span)
			return true;
	}
	return false;
}

void
vl_spans_put(const struct vl_spans *of)
{
	for (int i = 0; i < of->n; i++) {
		if (is_known(of->of[i]))
			vl_span_put(of->of[i]);
	}
	vl_spans_retry();
}
