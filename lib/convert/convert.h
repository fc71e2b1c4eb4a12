/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CONVERT_H
#define CONVERT_H
/**
 * @file convert.h  Memory of a running program becomes shared memory, in place.
 *
 * Pages of the heap, of a stack or of any private mapping are moved onto a memfd at the same
 * addresses, while other threads read and write them: no write is lost. Who touches the range
 * meanwhile sleeps until it is done. convert_to_private() is the way back.
 *
 * How: the pages are moved away in one step (mremap with MREMAP_DONTUNMAP), which leaves a range
 * where each access goes to a userfaultfd and sleeps there; they are copied into the memfd's pages
 * elsewhere, and those are moved in. A helper without a stack, errno or heap of the program does
 * it, since all of these may lie in the range; the caller sleeps in the kernel. A program with one
 * thread needs no userfaultfd. Where there is none (seccomp, as in containers), and for private
 * mappings of files, which it does not watch, the other threads are stopped (convert_stop.h).
 *
 * Limits: where only UFFD_USER_MODE_ONLY is allowed, as to an ordinary user, a system call that
 * touches the range meanwhile would give EFAULT. So threads are stopped there, too, but for those
 * that sleep for a limited time. One that wakes in the window and makes such a call at once still
 * gets EFAULT. Where all threads are stopped, one that waits for a limited time
 * (poll, nanosleep) gives EINTR. Pages that the kernel writes to by itself (O_DIRECT, AIO,
 * vmsplice) must be at rest; those that an io_uring holds stay as they are (convert_pinned.h).
 * Locks (mlock), NUMA policies and huge pages of the old pages are lost.
 *
 * Owner:   any thread; one at a time (the caller has a lock), and that one not from a signal
 *          handler.
 * Memory:  none that stays; the memfd is the caller's.
 * Depends: Linux 5.13, x86-64, libc.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CONVERT_PARTS 64

/** What a part of a range is now. */
enum convert_kind {
	CONVERT_PRIVATE, /* can be converted */
	CONVERT_FILE,    /* a private mapping of a file: can be, too */
	CONVERT_SHARED,  /* a shared mapping: of a memfd, a file, or shared memory */
	CONVERT_NOT      /* neither: a device, a hugetlb page, without access, of the kernel's */
};

/** A part of a range that lies in one mapping. */
struct convert_part {
	uintptr_t at;
	size_t len; /* bytes */
	int prot;   /* PROT_… */
	enum convert_kind kind;
	bool shared;     /* with others: MAP_SHARED */
	uint64_t offset; /* of `at` in the file, if it has one */
	uint64_t inode;
	uint32_t major; /* device of the inode */
	uint32_t minor;
	char path[96];    /* as /proc/self/maps has it, cut off */
	uintptr_t map_at; /* the whole mapping that it is a part of */
	uintptr_t map_end;
};

/** What can be done here; convert_ways() asks the kernel. */
enum convert_way {
	CONVERT_WAY_STOP,      /* no userfaultfd: threads are stopped */
	CONVERT_WAY_USER_MODE, /* see "Limits" */
	CONVERT_WAY_FULL
};

/** Told of a mapping. It may not change any. @return false: that is enough. */
typedef bool convert_seen(void *ctx, const struct convert_part *part);

/**
 * Each mapping of this process, from the lowest address up. It keeps a descriptor of
 * /proc/self/maps. Where that is empty or cannot be opened, for the first thread has ended, it
 * looks at the calling thread's. @return 0, or -errno of the first file that cannot be opened.
 */
int convert_walk(convert_seen *seen, void *ctx);

/**
 * What [at, at + len) consists of. @param len bytes, whole pages. @param parts CONVERT_PARTS of
 * them. @return how many; -EFAULT: something of the range is not mapped; -E2BIG: too many parts;
 * -errno of /proc.
 */
int convert_look(uintptr_t at, size_t len, struct convert_part *parts);

/**
 * Move one part onto [offset, offset + len) of a memfd, which must have no other pages there.
 * Costs two page tables, a copy, and the time of 20 system calls or so.
 * @return 0; or -errno, with nothing changed: -EOPNOTSUPP: CONVERT_NOT; -ETIMEDOUT: a thread could
 * not be stopped; -EFAULT: it has pages behind the end of its file; -EBUSY: an io_uring holds some
 * of them; -EMFILE, -ENFILE: no descriptor to look for one; -ENOMEM; -ENOSPC.
 */
int convert_to_shared(const struct convert_part *part, int fd, uint64_t offset);

/**
 * Move one part, which is shared, to private pages of its own. The memfd's pages stay as they are.
 * @param there bytes of the part that its file has; those behind are zero then.
 * @return 0; or -errno, with nothing changed: -EBUSY, -EMFILE and so on, as above.
 */
int convert_to_private(const struct convert_part *part, size_t there);

/**
 * The same in the child of a fork(), where one thread runs and no page of the part may be written
 * to before: the parent has it, too. Pages that the child does not have (MADV_DONTFORK) stay away.
 * No heap, no lock, nothing but system calls and a copy.
 */
int convert_to_private_in_child(uintptr_t at, size_t len, size_t there, int prot);

/** Which way a program with several threads has. */
enum convert_way convert_ways(void);

/** No better one than this, for tests. */
void convert_use(enum convert_way way);

#endif
