/* SPDX-License-Identifier: BSD-3-Clause */
/* An application has a place of its own for each peer that waits: it gets it back in each way. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "charge.h"
#include "connect_client.h"
#include "connect_priv.h"

struct bed {
	struct owner_users users;
	struct owner_user user;
	struct owner owner;
	struct connect_client client;
	struct connect_id id;
	struct connect_conn cc;
	struct cm_conn c;
	struct connect *cx;
};

/* A peer has asked, and the application's place for it is taken. */
static void
asked(struct bed *b)
{
	*b = (struct bed){ .client.owner = &b->owner };
	b->owner.user = &b->user;
	b->owner.users = &b->users;
	quota_init(&b->users.quota[OWNER_CM_PENDING], 16, 2, 8);
	quota_take(&b->users.quota[OWNER_CM_PENDING], 0, 1, false);
	b->owner.has[OWNER_CM_PENDING] = b->user.has[OWNER_CM_PENDING] = 1;
	b->id.client = &b->client;
	b->id.pending = true;
	b->cc.of = &b->id;
	b->c.user = &b->cc;
	b->cx = calloc(1, sizeof(*b->cx));
	assert_non_null(b->cx);
}

static void
given_back(struct bed *b, uint64_t left)
{
	assert_int_equal(b->owner.has[OWNER_CM_PENDING], left);
	assert_int_equal(b->id.pending, left != 0);
	free(b->cx);
}

/* CM_40: one that gives its place to another connection holds none of its application's either. */
static void
CM_40_displaced(void **state)
{
	struct cm_verdict v = { .over = false };
	struct bed b;

	(void)state;
	asked(&b);
	connect_carry_out(b.cx, &v);
	assert_true(b.id.pending); /* whatever comes for somebody else */
	v.displaced = &b.c;
	connect_carry_out(b.cx, &v);
	given_back(&b, 0);
	/* The operator's have none. */
	asked(&b);
	b.cc.of = NULL;
	v.displaced = &b.c;
	connect_carry_out(b.cx, &v);
	given_back(&b, 1);
}

/* CM_40: nor does one that is established: else a server of many peers could take no more. */
static void
CM_40_established(void **state)
{
	struct cm_verdict v = { .over = false };
	struct bed b;

	(void)state;
	asked(&b);
	b.cc.foreign = true;
	v.conn = &b.c;
	b.c.half_open = true;
	connect_carry_out(b.cx, &v);
	assert_true(b.id.pending);
	b.c.half_open = false;
	connect_carry_out(b.cx, &v);
	given_back(&b, 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(CM_40_displaced),
		cmocka_unit_test(CM_40_established),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
