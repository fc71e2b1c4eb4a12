/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SPAN_PRIV_H
#define SPAN_PRIV_H
/**
 * @file span_priv.h  What shared.c, span.c, span_life.c and span_fork.c know of a span: see span.h.
 *
 * Owner:   any thread, with the lock of vl_spans_lock().
 * Memory:  one allocation a span, until its pages are private again.
 * Depends: convert.
 */
#include <sys/queue.h>
#include <sys/types.h>

#include "convert.h"
#include "span.h"

struct vl_span {
	TAILQ_ENTRY(vl_span) all;
	uintptr_t at; /* where its pages were when it was made */
	size_t len;
	int fd;
	dev_t dev;
	ino_t inode;
	uint32_t users; /* 0: left, its pages could not be made private yet */
	bool stuck;     /* ... and to try it takes long */
};

TAILQ_HEAD(vl_span_list, vl_span);

/** All of them. */
extern struct vl_span_list vl_span_all;

/** Why a range is refused that only its owner may read. */
#define VL_READ_ONLY "LOCAL_WRITE, and it has read-only pages"
/** ... that is partly the program's own shared memory. */
#define VL_MIXED                                                                     \
	"it consists of memory that the program shares itself and of other memory: " \
	"register each"

/** @return err, and the reason is this text. */
int vl_span_refuse(char why[VL_WHY], int err, const char *text);
/** @param rc of convert_look() or convert_walk(). @return an errno, and the reason. */
int vl_span_look_failed(int rc, char why[VL_WHY]);
/** Is the mapping one of it? */
bool vl_span_has(const struct vl_span *s, const struct convert_part *p);
/** The span that a mapping is of; NULL: of none. */
struct vl_span *vl_span_of(const struct convert_part *p);
/** How many bytes of it lie in the span: mremap() may have made it longer. */
size_t vl_span_there(const struct vl_span *s, const struct convert_part *p);

/* ---- span_life.c ----------------------------------------------------------------------------- */

/**
 * A new one, without a user, of parts that lie one behind the other.
 * @param why the reason of an error. @return 0, or an errno.
 */
int vl_span_new(const struct convert_part *parts, int n, size_t len, struct vl_span **out,
	char why[VL_WHY]);
/** One user less. */
void vl_span_put(struct vl_span *s);
/** Those that were left: perhaps their pages can be made private now. */
void vl_spans_retry(void);

/* ---- span_fork.c ----------------------------------------------------------------------------- */

/** There is one: from now on forks are watched. */
void vl_spans_watch_forks(void);
/** The program has no descriptor left. @return true: now it has some, which were kept for this. */
bool vl_spans_spare(void);
/** Keep some for the next time. */
void vl_spans_keep_spare(void);

#endif
