/* SPDX-License-Identifier: BSD-3-Clause */
/* Connections whose application is gone: peers are told, but only so many are kept for that. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "charge.h"
#include "connect_client.h"
#include "connect_priv.h"

enum { CONNECTIONS = 64, ORPHANS = CONNECTIONS / 8, HAS = ORPHANS + 3 };

static struct {
	struct env env;
	struct wire_port addr;
	struct owner_users users;
	struct owner_user user;
	struct owner owner;
	struct connect *cx;
} bed;

/** An application with so many connections, of which it has ended the ids. */
static void
connections(uint32_t n)
{
	struct connect_client *cl = connect_client_of(bed.cx, &bed.owner);
	const struct cm_ask ask = { .terms = { .mtu = 4 }, .time = TIME_NS_PER_S };

	assert_non_null(cl);
	for (uint32_t i = 0; i < n; i++) {
		struct connect_conn *cc = connect_new(bed.cx);
		struct connect_id *id = calloc(1, sizeof(*id));
		struct cm_verdict v;

		assert_true(cc != NULL && id != NULL);
		assert_int_equal(cm_connect(&bed.cx->cm, &ask, bed.env.now, &v), 0);
		v.conn->user = cc;
		cc->c = v.conn;
		cc->foreign = true;
		cc->of = id;
		id->client = cl;
		id->cc = cc;
		TAILQ_INSERT_TAIL(&cl->ids, id, all);
	}
	quota_take(&bed.users.quota[OWNER_CM_IDS], 0, n, false);
	bed.owner.has[OWNER_CM_IDS] = bed.user.has[OWNER_CM_IDS] = n;
}

static void
start(void)
{
	const struct cm_limits limits = { CONNECTIONS, CONNECTIONS, 1000 };

	bed.owner = (struct owner){ .user = &bed.user, .users = &bed.users };
	bed.user = (struct owner_user){ .uid = 0 };
	quota_init(&bed.users.quota[OWNER_CM_IDS], CONNECTIONS, 2, CONNECTIONS);
	bed.env.w.ports[0].addr = &bed.addr;
	bed.env.now = TIME_NS_PER_S;
	bed.cx = calloc(1, sizeof(*bed.cx));
	assert_non_null(bed.cx);
	bed.cx->env = &bed.env;
	TAILQ_INIT(&bed.cx->conns);
	TAILQ_INIT(&bed.cx->ended);
	TAILQ_INIT(&bed.cx->clients);
	TAILQ_INIT(&bed.cx->resolving);
	assert_int_equal(cm_init(&bed.cx->cm, &limits, 42, 1, bed.env.now), 0);
}

/* CM-40: an eighth of all that there may be, whoever dies with how many. */
static void
CM_40_so_many_orphans(void **state)
{
	struct connect_conn *cc;

	(void)state;
	start();
	connections(HAS);
	connect_client_gone(bed.cx, &bed.owner);
	assert_int_equal(bed.cx->cm.n, ORPHANS);
	assert_int_equal(bed.cx->orphans, ORPHANS);
	assert_int_equal(bed.cx->ended_n, HAS - ORPHANS);
	assert_int_equal(bed.owner.has[OWNER_CM_IDS], 0);
	/* One that comes to its end makes room for one more. */
	cc = TAILQ_FIRST(&bed.cx->conns);
	assert_true(cc->orphan);
	connect_end(bed.cx, cc);
	assert_int_equal(bed.cx->orphans, ORPHANS - 1);
	connections(2);
	connect_client_gone(bed.cx, &bed.owner);
	assert_int_equal(bed.cx->cm.n, ORPHANS);
	assert_int_equal(bed.cx->orphans, ORPHANS);
	connect_fini(bed.cx);
	free(bed.cx);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(CM_40_so_many_orphans),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
