/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef QUOTA_H
#define QUOTA_H
/**
 * @file quota.h  Something that there is only so much of, shared out among users.
 *
 * Owner:   one thread.
 * Memory:  the caller's.
 * Depends: nothing.
 *
 * Operators have a part that no user gets (`kept`). Of the rest a user has `least` in any case,
 * unless more than `users` of them are here; what he has beyond that comes out of what all have in
 * common; and nobody has more than `most`.
 */
#include <stdbool.h>
#include <stdint.h>

struct quota {
	uint64_t total;
	uint64_t kept;
	uint64_t least;
	uint64_t most;
	uint32_t users;     /* whose `least` is kept free */
	uint64_t operators; /* used by operators */
	uint64_t used;      /* by users */
	uint64_t beyond;    /* of it, what they have beyond their `least` */
};

enum quota_answer {
	QUOTA_OK,
	QUOTA_USER, /* this user has as much as a user may have */
	QUOTA_ALL,  /* what is left is others': users' least, or operators' */
};

/** Shares of `total`: nobody is kept from having `most` of it while he is the only user. */
void quota_init(struct quota *q, uint64_t total, uint64_t kept, uint64_t most);
/** May a user who has `has` get `more`? @param operator one is bound by `total` alone. */
enum quota_answer quota_ask(const struct quota *q, uint64_t has, uint64_t more, bool operator);
/** He gets it: ask before. */
void quota_take(struct quota *q, uint64_t has, uint64_t more, bool operator);
/** He gives `less` of the `has` back. */
void quota_give(struct quota *q, uint64_t has, uint64_t less, bool operator);

#endif
