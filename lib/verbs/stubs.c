/* SPDX-License-Identifier: BSD-3-Clause */
/* What is not there says so. Without verbs.h, whose prototypes these do not have. */
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>

/* clang-format off */
#define BODY_INT(fn)  int fn(void); int fn(void) { errno = EOPNOTSUPP; return EOPNOTSUPP; }
#define BODY_PTR(fn)  void *fn(void); void *fn(void) { errno = EOPNOTSUPP; return NULL; }
#define BODY_VOID(fn) void fn(void); void fn(void) { }
#define BODY_DATA(fn) extern bool fn; bool fn;

#define OURS(name, node)
#define STUB(name, node, kind) BODY_##kind(name)
#define OLD(name, node, kind) \
	BODY_##kind(old_##name) \
	__asm__(".symver old_" #name ", " #name "@IBVERBS_" #node);
#define NODE(name, at) __asm__(".symver priv_" #name ", " #name #at);
#define PRIV(name, kind) \
	BODY_##kind(priv_##name) \
	NODE(name, @@IBVERBS_PRIVATE_34) NODE(name, @IBVERBS_PRIVATE_57) \
	NODE(name, @IBVERBS_PRIVATE_59) NODE(name, @IBVERBS_PRIVATE_64) \
	NODE(name, @IBVERBS_PRIVATE_65)
#include "symbols.def"
/* clang-format on */
