/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef MEM_H
#define MEM_H
/**
 * @file mem.h  Memory the dataplane shares and remote peers reach: areas, regions, keys.
 *
 * Owner:   control lcore creates and removes; workers look keys up at any time, without a lock.
 * Memory:  areas are memfds: hugepages where they exist, bound to a NUMA node with libnuma.
 *          A removed region stays readable until the control lcore has made a round trip to every
 *          worker; only then may mem_region_free() be called.
 * Depends: base, ring (struct ring_sge), libnuma.
 * Spec:    IBTA vol. 1, 10.6 (regions, keys), 9.7.5 (RESP-NAK-RAE-01..05).
 */
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "compiler.h"
#include "ring.h"
#include "verbs.h"

/* ---- areas ---------------------------------------------------------------------------------- */

struct mem_area {
	uint8_t *base;
	size_t len;       /* bytes, multiple of page_size */
	size_t page_size; /* 2 MiB with hugepages, else the system's */
	int fd;
	int node;       /* NUMA node, -1: not bound */
	uint32_t guard; /* of mem_guard.h, 0: none */
};

enum {
	MEM_AREA_HUGE = 1 << 0,    /* try hugepages first */
	MEM_AREA_PRIVATE = 1 << 1, /* shared with nobody: there is no descriptor */
	MEM_AREA_OPEN = 1 << 2,    /* it can still be mapped for writing: mem_area_seal() */
};

/**
 * Zeroed memory. @param node -1 for any. @return 0 or -errno; -ECANCELED: mem_stop_by(). Cost:
 * system calls, page faults.
 */
int mem_area_create(struct mem_area *a, size_t len, int node, unsigned int flags);
/**
 * Map a client's memfd: [offset, offset + len) of it. Every page is there on success, but its owner
 * can take them out again: workers may wait for them, and find zeros (mem_guard.h).
 * @param host out: where the byte at `offset` is. The descriptor stays the caller's.
 * @return 0; -EBADF: it is no memfd; -ERANGE: it is smaller; -EACCES: it cannot be mapped for
 * writing; -ENOMEM; -ENOSPC: too many areas.
 */
int mem_area_adopt(struct mem_area *a, int fd, uint64_t offset, uint64_t len, uint8_t **host);
/**
 * Map all of a client's memfd, and seal it: nobody can take a page out of it from then on, map it
 * for writing, or change its size. All of its pages have to be there already, so that they are
 * charged to the client; workers wait for none.
 * @param size of the file, as the caller has looked at it: what it has concluded from that must
 * hold for what is mapped, and the file is the client's until it is sealed.
 * @return as mem_area_adopt(); -ERANGE: its size is another; -EPERM: F_SEAL_SHRINK is not set;
 * -EROFS: it is sealed against writing already, by an earlier connection for example; -EOPNOTSUPP:
 * the seals cannot be set (F_SEAL_SEAL is, or Linux is older than 5.1); -ENODATA: it has holes. The
 * descriptor stays the caller's.
 * Cost: page tables, in pieces of 4 MiB.
 */
int mem_area_take(struct mem_area *a, int fd, uint64_t size);
/**
 * A second mapping of memory that was taken: sealed, it cannot be mapped by its descriptor any
 * more. Each of the two is destroyed by itself. @return as mem_area_take(); -EROFS: no more of it.
 */
int mem_area_again(struct mem_area *a, const struct mem_area *taken);
/** Whole pages of the system's size, of an area. */
struct mem_part {
	const struct mem_area *area;
	uint8_t *at; /* in it */
	size_t len;  /* bytes */
};
/**
 * Parts of areas once more, one behind the other: one range of addresses. Each of the areas is
 * destroyed by itself. @param n at least 1. @return as mem_area_again(); -EINVAL: a part is not of
 * whole pages.
 */
int mem_area_join(struct mem_area *a, const struct mem_part *parts, uint32_t n);
/**
 * Addresses for files of a client's, one behind the other. Nothing may be touched there before
 * mem_area_lay() has filled it. @param fd of the first file: all must have pages of its size.
 * @return as mem_area_adopt(); -EINVAL: not of whole pages.
 */
int mem_area_reserve(struct mem_area *a, size_t len, int fd);
/**
 * Map [offset, offset + len) of a file at byte `at` of what was reserved; as mem_area_adopt(). The
 * file may end in the last page of that. If it fails, what is there is not known: destroy the
 * area. @return as mem_area_reserve().
 */
int mem_area_lay(struct mem_area *a, size_t at, int fd, uint64_t offset, uint64_t len);
/**
 * Unmap it, in pieces, and close its descriptor. Nothing is done to one that is all zero, or
 * destroyed.
 */
void mem_area_destroy(struct mem_area *a);
/**
 * Who maps it for writing now has done so: from here on nobody else can, and nobody can take a page
 * out of it. All pages are there, again. @param fd its descriptor, which the area has not any more;
 * closed. @return 0 or -errno.
 */
int mem_area_seal(const struct mem_area *a, int fd);
/** Bytes that the system can still give; SIZE_MAX where it does not say. */
size_t mem_available_bytes(void);

/* ---- regions -------------------------------------------------------------------------------- */

enum mem_kind {
	MEM_REGION,   /* in the table for as long as it is registered */
	MEM_WINDOW_1, /* mem_window.h: any queue pair of its protection domain binds and uses it */
	MEM_WINDOW_2, /* ... of the queue pair that bound it, until it is invalidated */
	MEM_FAST,     /* a fast-register region: of all of its domain, until then; with an L_Key */
};

/* Numbers of protection domains; `pd` of what one queue pair alone may use is above. */
#define MEM_PD_MAX UINT32_C(0x7fffffff)
/* Rights that a peer uses. Nobody grants FLUSH_PERSISTENT: verbs_region_fault(). */
#define MEM_REMOTE                                                                               \
	(ACCESS_REMOTE_WRITE | ACCESS_REMOTE_READ | ACCESS_REMOTE_ATOMIC | ACCESS_FLUSH_GLOBAL | \
		ACCESS_FLUSH_PERSISTENT)

/** Who names a key: a protection domain, and the queue pair where it is one; qpn 0: nobody's. */
static inline uint64_t
mem_user(uint32_t pd, uint32_t qpn)
{
	return pd | (uint64_t)qpn << 32;
}

/** What `pd` of a region is that only this queue pair may use. */
static inline uint32_t
mem_pd_of_qp(uint32_t qpn)
{
	return qpn | (MEM_PD_MAX + 1);
}

struct mem_region {
	uint64_t va;     /* what a peer writes into a RETH */
	uint64_t length; /* bytes; va + length does not wrap */
	uint8_t *host;   /* where byte `va` is in this process */
	uint32_t key;    /* R_Key and L_Key */
	uint32_t pd;     /* number of the protection domain */
	access_t access;
	bool remote_invalidate;  /* a peer's SEND with Invalidate may revoke it */
	_Atomic bool valid;      /* cleared by invalidation; a worker may clear it */
	uint8_t kind;            /* enum mem_kind */
	_Atomic int32_t windows; /* bound to it; below 0: there will be none */
	struct mem_area area;    /* backing, owned when area.base != NULL */
};

enum mem_fault {
	MEM_OK,
	MEM_BAD_KEY, /* never issued, deregistered or invalidated */
	MEM_BAD_PD,
	MEM_BAD_RANGE, /* outside the region, or va + length wraps 2^64 */
	MEM_BAD_ACCESS,
};

/** A zeroed region on cache lines of its own, or NULL. Control lcore. */
struct mem_region *mem_region_alloc(void);
/** Gives it back, with its area when it owns one; NULL is allowed. Control lcore. */
void mem_region_free(struct mem_region *r);

struct mem_table; /* key -> region */

/** Regions that it still has room for. Control lcore. */
uint32_t mem_table_room(const struct mem_table *t);

/** @param capacity most regions at a time. @return table or NULL (ENOMEM). */
struct mem_table *mem_table_create(uint32_t capacity);
/** Free the table. Its regions stay the caller's. Control lcore, after the workers have stopped. */
void mem_table_destroy(struct mem_table *t);
/**
 * Control lcore. Makes the region valid and publishes it at once.
 * @return 0, -EEXIST (key in use), -ENOSPC, -EINVAL (wraps, or has no memory).
 */
int mem_table_add(struct mem_table *t, struct mem_region *r);
/** Control lcore: later checks fail with MEM_BAD_KEY. @return 0 or -ENOENT. */
int mem_table_remove(struct mem_table *t, uint32_t key);
/** Any lcore: region or window of a key (valid or not), or NULL. Cost: one or two cache lines. */
struct mem_region *mem_table_find(const struct mem_table *t, uint32_t key);

/**
 * Any lcore: may `user` touch [va, va + len) through `key` with all of `access`? A window is for
 * remote access alone.
 * The order of the checks is key, PD, range, access. A length of 0 is checked too (`va` may then be
 * the region's end): do not call it for a zero-length request whose key must not be checked.
 * @param host out: where `va` is; set on MEM_OK only.
 * Cost: hash, one table line, one region line.
 */
enum mem_fault mem_check(const struct mem_table *t, uint32_t key, uint64_t user, uint64_t va,
	uint64_t len, access_t access, uint8_t **host);
/**
 * Any lcore: may the peer of `user` invalidate `key`? Does not do it. A region is not revoked under
 * windows that are bound to it (MW-10).
 */
enum mem_fault mem_check_invalidate(const struct mem_table *t, uint32_t key, uint64_t user);
/** Any lcore: revoke a key that mem_check_invalidate() allowed. */
void mem_invalidate(const struct mem_table *t, uint32_t key);

/* ---- scatter and gather ---------------------------------------------------------------------- */

/** Check every SGE of a WQE (lkey, PD, range, `access`). Zero-length SGEs are not checked. */
enum mem_fault mem_check_sges(const struct mem_table *t, const struct ring_sge *sge, uint32_t n,
	uint32_t pd, access_t access);
/** Total bytes of a scatter list (64-bit: cannot overflow). */
uint64_t mem_sge_bytes(const struct ring_sge *sge, uint32_t n);
/**
 * Copy `len` bytes to the scatter list, starting `offset` bytes into it; checks each SGE it
 * touches. Bytes behind the list's end: MEM_BAD_RANGE, nothing of this call is written.
 */
enum mem_fault mem_scatter(const struct mem_table *t, const struct ring_sge *sge, uint32_t n,
	uint32_t pd, uint64_t offset, const void *data, uint32_t len);
/**
 * The other direction: copy `len` bytes of the list, from `offset` on, to `data`. Reading asks for
 * no access flag.
 */
enum mem_fault mem_gather(const struct mem_table *t, const struct ring_sge *sge, uint32_t n,
	uint32_t pd, uint64_t offset, void *data, uint32_t len);

/**
 * memcpy() of payloads: they are in the L1 cache, where they go to is not.
 * Cost: about 20 cycles for 1 KiB where both are in the L1 cache.
 */
void mem_copy(uint8_t *to, const uint8_t *from, uint32_t len);

/* ---- an end before all is made -------------------------------------------------------------- */

/** A terabyte takes minutes: once this is true, no more is made or filled. NULL: all of it is. */
void mem_stop_by(const _Atomic bool *stop);
/** Is it true? */
bool mem_is_stopped(void);

/* ---- patterns -------------------------------------------------------------------------------- */

/**
 * Byte i of pattern `seed`: x = i * 0x9E3779B1 + seed * 0x85EBCA6B (mod 2^32); x ^= x >> 15;
 * x *= 0x2C1B3C6D; x ^= x >> 12; the byte is the low eight bits of x.
 */
uint8_t mem_pattern_byte(uint32_t seed, uint32_t i);
/** Fill with pattern bytes first .. first + len - 1; with less of them once mem_is_stopped(). */
void mem_pattern_fill(uint8_t *dst, size_t len, uint32_t seed, uint32_t first);

#endif
