/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SPAN_H
#define SPAN_H
/**
 * @file span.h  Memory of the program that was converted for regions, and memory that was shared
 * already.
 *
 * A span is a range of whole pages on a memfd of its own, the n-th byte of the range at the n-th of
 * the memfd. It lives as long as a region is in it; then its pages become private again. What a
 * range is, /proc/self/maps says each time: the program may have unmapped it meanwhile.
 * The dataplane seals the memfd when it has mapped it, so that a span cannot grow.
 *
 * After fork() the child gets private copies: the parent waits for that.
 *
 * Owner:   any thread; a lock of this file.
 * Memory:  one allocation a span.
 * Depends: convert.
 */
#include <stddef.h>
#include <stdint.h>

struct vl_span;

/** What a region of the range is registered with. */
struct vl_memory {
	int fd;
	uint64_t offset;      /* of the range's first byte */
	struct vl_span *span; /* NULL: the program's own shared memory; the caller closes fd */
};

/**
 * Make [addr, addr + len) something that can be registered. @param why out: the reason of an error,
 * in words. @return 0, or an errno.
 */
int vl_span_get(const void *addr, size_t len, struct vl_memory *out, char why[256]);
/** A region of the span is gone. NULL: none was. */
void vl_span_put(struct vl_span *span);

#endif
