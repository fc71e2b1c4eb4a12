/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef COMPILER_H
#define COMPILER_H
/**
 * @file compiler.h  Hints and small macros shared by all modules.
 *
 * Owner:   any lcore.
 * Memory:  none.
 * Depends: nothing.
 */
#define CACHE_LINE 64

#define LIKELY(x)   __builtin_expect(!!(x), 1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))
#define BIT32(n)     (UINT32_C(1) << (n))
#define BIT64(n)     (UINT64_C(1) << (n))

#define CACHE_ALIGNED __attribute__((aligned(CACHE_LINE)))
#define UNUSED        __attribute__((unused))
#define PRINTF(f, a)  __attribute__((format(printf, f, a)))
#define ALWAYS_INLINE inline __attribute__((always_inline))

/**
 * Fetch a line that another core has used, to write to it. With __builtin_prefetch(at, 1)
 * that is a fetch for reading, unless the build is for newer processors; older ones do nothing.
 */
static inline void
prefetch_write(const void *at)
{
#if defined(__x86_64__)
	__asm__ volatile("prefetchw %0" : : "m"(*(const char *)at));
#else
	__builtin_prefetch(at, 1);
#endif
}

#endif
