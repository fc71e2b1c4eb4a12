/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef NEXT_H
#define NEXT_H
/**
 * @file next.h  For functions of libc that are defined here in its place.
 *
 * Owner:   any thread.
 * Memory:  none.
 * Depends: nothing.
 */
#include <dlfcn.h>
#include <stdatomic.h>

#define EXPORT __attribute__((visibility("default")))

/* libc's function of that name: resolved at the first call, which may come before constructors. */
#define NEXT(name)                                                            \
	({                                                                    \
		static __typeof__(&(name)) _Atomic next_;                     \
		__typeof__(&(name)) real_ = atomic_load(&next_);              \
		if (real_ == NULL) {                                          \
			real_ = (__typeof__(&(name)))dlsym(RTLD_NEXT, #name); \
			atomic_store(&next_, real_);                          \
		}                                                             \
		real_;                                                        \
	})

#endif
