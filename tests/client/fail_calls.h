/* SPDX-License-Identifier: BSD-3-Clause */
/* Which calls fail in a dataplane: fail_calls.c decides, fail_calls_more.c has more of them. */
#ifndef TEST_FAIL_CALLS_H
#define TEST_FAIL_CALLS_H

#include <dlfcn.h>
#include <stdbool.h>

#define EXPORT  __attribute__((visibility("default")))
#define NEXT(f) ((__typeof__(&f))dlsym(RTLD_NEXT, #f))
#define CALLER  __builtin_return_address(0)

enum kind { MEMORY, MAPPING, DESCRIPTOR, THREAD, SOCKET, SEAL, FILES, PORTS };

bool fails(const void *caller, enum kind k);
/** @return -1, errno is `error`. */
int refused(int error);

#endif
