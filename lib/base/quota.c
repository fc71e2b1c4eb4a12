/* SPDX-License-Identifier: BSD-3-Clause */
#include "quota.h"

#include "invariant.h"

#define USERS       8  /* whose least is kept */
#define LEAST_PART  32 /* of the total: what one has in any case */
#define LEASTS_PART 4  /* of the total: no more than that is kept for those who are not here */

void
quota_init(struct quota *q, uint64_t total, uint64_t kept, uint64_t most)
{
	const uint64_t open = total > kept ? total - kept : 0;

	*q = (struct quota){ .total = total, .kept = total - open, .most = most };
	q->least = open / LEAST_PART != 0 ? open / LEAST_PART : 1;
	q->users = USERS;
	while (q->users > 2 && q->users * q->least > open / LEASTS_PART)
		q->users--;
	if (open < LEASTS_PART)
		q->users = 0; /* too few to share */
}

static uint64_t
beyond(const struct quota *q, uint64_t has)
{
	return has > q->least ? has - q->least : 0;
}

enum quota_answer
quota_ask(const struct quota *q, uint64_t has, uint64_t more, bool operator)
{
	const uint64_t used = q->used + q->operators;
	uint64_t open, further;

	ASSERT(used <= q->total);
	if (operator)
		return more <= q->total - used ? QUOTA_OK : QUOTA_ALL;
	ASSERT(has <= q->used);
	if (more > q->most || has > q->most - more)
		return QUOTA_USER;
	open = q->total - (q->kept > q->operators ? q->kept : q->operators);
	if (q->used > open || more > open - q->used)
		return QUOTA_ALL;
	further = beyond(q, has + more) - beyond(q, has);
	if (further != 0 && q->beyond + further > q->total - q->kept - q->users * q->least)
		return QUOTA_ALL;
	return QUOTA_OK;
}

void
quota_take(struct quota *q, uint64_t has, uint64_t more, bool operator)
{
	if (operator) {
		q->operators += more;
	} else {
		q->used += more;
		q->beyond += beyond(q, has + more) - beyond(q, has);
	}
	ASSERT(q->used + q->operators <= q->total);
}

void
quota_give(struct quota *q, uint64_t has, uint64_t less, bool operator)
{
	ASSERT(less <= has && less <= (operator? q->operators : q->used));
	if (operator) {
		q->operators -= less;
	} else {
		q->used -= less;
		q->beyond -= beyond(q, has) - beyond(q, has - less);
	}
}
