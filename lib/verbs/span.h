/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SPAN_H
#define SPAN_H
/**
 * @file span.h  Memory of the program that was converted for regions, and memory that was shared
 * already.
 *
 * A span is a range of whole pages on a memfd of its own, the n-th byte of the range at the n-th of
 * the memfd. It lives as long as a region is in it; then its pages become private again, wherever
 * they are mapped by then. Where that fails it is left: children still get copies, and it is tried
 * again. What a range is, /proc/self/maps says each time: the program may have unmapped or moved it
 * meanwhile.
 * The dataplane seals the memfd when it has mapped it, so that a span cannot grow: a region that
 * shares pages with others lies in several spans, one behind the other.
 *
 * After fork() the child gets private copies, but of pages that MADV_DONTFORK keeps from it: the
 * parent waits for that, on another stack if a region is on that of the thread that forks
 * (fork.c). A child for which it is not known what is shared ends. So what is needed to know it is
 * had before a program has used all its descriptors, or left the root that has /proc. What libc's
 * fork() writes in the child until then is written in the parent, too: to the first page of
 * another thread's heap; to a page with what libc knows of a thread (its _Thread_local data is
 * beside it), which is one that has ended then; to locks of FILEs.
 *
 * Owner:   any thread, with the lock; fork() waits for it, too.
 * Memory:  one allocation a span.
 * Depends: convert.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "include/rocelane_mw.h"

#define VL_WHY 256 /* bytes of a reason */

struct convert_part;
struct vl_files;
struct vl_span;

/** The spans that a region lies in. */
struct vl_spans {
	struct vl_span *of[RL_MR_PIECES];
	int n; /* 0: the program's own shared memory */
};

/** What a region of the range is registered with. */
struct vl_memory {
	struct rl_mr_piece pieces[RL_MR_PIECES]; /* one for each span; without a span one at most */
	uint64_t offset; /* of the range's first byte, from the first piece's first; without a span
			    from the descriptor's */
	struct vl_spans spans;
	struct vl_files *files; /* the program's own, many: there are no pieces. NULL: no */
};

/**
 * From vl_span_get() until the dataplane has the region, and from its end there until
 * vl_spans_put(): the two know of the same spans then, whatever other threads do meanwhile.
 */
void vl_spans_lock(void);
/** The other end of it. */
void vl_spans_unlock(void);
/**
 * Make [addr, addr + len) something that can be registered. @param written by the device, too: not
 * read-only. @param why out: the reason of an error, in words. @return 0, or an errno.
 */
int vl_span_get(
	const void *addr, size_t len, bool written, struct vl_memory *out, char why[VL_WHY]);
/**
 * May the device write to [addr, addr + len), which is a region? @param why as of vl_span_get().
 * @return 0, or an errno.
 */
int vl_span_may_write(const void *addr, size_t len, char why[VL_WHY]);
/** A region of the spans is gone; in a child of fork() those of its parent's stay as they are. */
void vl_spans_put(const struct vl_spans *spans);

/* ---- shared.c -------------------------------------------------------------------------------- */

/**
 * The same for [at, end), whole pages of files that the program shares. vl_shared_put() afterwards.
 * @param addr first byte, in it.
 */
int vl_shared_get(uintptr_t at, uintptr_t end, bool written, const void *addr,
	struct vl_memory *out, char why[VL_WHY]);
/**
 * Register it: without a span. @param why the reason of an error, or "": rl_last_error() has it.
 * @return 0, or an errno.
 */
int vl_shared_reg(struct rl_pd *pd, const struct vl_memory *m, void *addr, size_t len, int access,
	struct rl_mr **mr, char why[VL_WHY]);
/** What vl_shared_get() gave. */
void vl_shared_put(const struct vl_memory *m);

#endif
