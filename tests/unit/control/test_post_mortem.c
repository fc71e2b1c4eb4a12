/* SPDX-License-Identifier: BSD-3-Clause */
/* Whose failures are kept when there are more than there is room for, and what is written down. */
#include "fake.h"

#include <stdio.h>

#include "control_state.h"
#include "explain_net.h"
#include "log.h"

static unsigned int lines;
static char line[512];

static void
sink(void *ctx UNUSED, enum log_level level UNUSED, const char *text)
{
	lines++;
	snprintf(line, sizeof(line), "%s", text);
}

/* The QP fails as one of this application's. */
static void
fail_as(struct owner *cl, uint32_t psn)
{
	struct admin_qp *rec = admin_find(&fake.c->admin, 17);
	struct mbox_msg m = { .type = MBOX_FATAL,
		.ev = { .qpn = 17, .time_ns = fake.c->env.now + 1, .psn = psn, .rule = 1 } };

	rec->shared->owner = cl;
	post_mortem_add(&fake.c->diagnose, rec, &m);
	rec->shared->owner = NULL;
	rec->failed = false;
}

static struct owner
application(uint32_t id, uint32_t uid)
{
	struct owner cl = { .id = id, .process = { .pid = (int32_t)(1000 + id), .uid = uid } };

	snprintf(cl.name, sizeof(cl.name), "app%u", id);
	return cl;
}

static uint32_t
kept_of(uint32_t client)
{
	const struct post_mortem *p = &fake.c->diagnose.post_mortem;
	uint32_t n = 0;

	for (uint32_t i = 0; i < p->n; i++) {
		const struct failed_owner *o = &p->v[p->order[i]].owner;

		n += o->kind == FAILED_OF_CLIENT && o->client == client;
	}
	return n;
}

/* In the order of their failures, each once. */
static void
assert_order(void)
{
	const struct post_mortem *p = &fake.c->diagnose.post_mortem;
	bool seen[POST_MORTEM_MAX] = { false };

	for (uint32_t i = 0; i < p->n; i++) {
		assert_false(seen[p->order[i]]);
		seen[p->order[i]] = true;
		assert_true(i == 0 ||
			    p->v[p->order[i - 1]].f.error.psn < p->v[p->order[i]].f.error.psn);
	}
}

/* A client that fails thousands of times pushes out its own failures only. */
static void
one_client_has_its_share(void **state UNUSED)
{
	struct owner quiet = application(1, 100), loud = application(2, 200);
	uint32_t psn = 0;

	json_decref(rpc_ok("qp_create", qp17));
	for (uint32_t i = 0; i < 10; i++)
		fail_as(&quiet, psn++);
	for (uint32_t i = 0; i < 10; i++)
		fail_as(NULL, psn++);
	for (uint32_t i = 0; i < 5000; i++)
		fail_as(&loud, psn++);
	assert_int_equal(fake.c->diagnose.post_mortem.n, POST_MORTEM_MAX);
	assert_int_equal(fake.c->diagnose.post_mortem.total, psn);
	assert_int_equal(kept_of(1), 10);
	assert_int_equal(kept_of(2), POST_MORTEM_MAX - 20);
	assert_order();
	/* What is kept of it is the newest. */
	assert_int_equal(
		fake.c->diagnose.post_mortem.v[fake.c->diagnose.post_mortem.order[20]].f.error.psn,
		psn - 236);
}

/* ... nor does one that connects again each time: the user has the share. */
static void
one_user_has_its_share(void **state UNUSED)
{
	struct owner quiet = application(1, 100), beside = application(2, 200);
	uint32_t psn = 0;

	json_decref(rpc_ok("qp_create", qp17));
	for (uint32_t i = 0; i < 10; i++)
		fail_as(&quiet, psn++);
	for (uint32_t i = 0; i < 2000; i++) {
		struct owner again = application(10 + i, 200);

		fail_as(&again, psn++);
	}
	assert_int_equal(kept_of(1), 10);
	assert_order();
	/* Among a user's applications the one with most gives way. */
	for (uint32_t i = 0; i < 100; i++)
		fail_as(&beside, psn++);
	assert_int_equal(kept_of(1), 10);
	assert_true(kept_of(2) >= 1);
	assert_order();
}

/* Two users that both have much meet in the middle. */
static void
shares_are_equal(void **state UNUSED)
{
	struct owner a = application(1, 100), b = application(2, 200);
	uint32_t psn = 0;

	json_decref(rpc_ok("qp_create", qp17));
	for (uint32_t i = 0; i < 300; i++)
		fail_as(&a, psn++);
	assert_int_equal(kept_of(1), POST_MORTEM_MAX);
	for (uint32_t i = 0; i < 300; i++)
		fail_as(&b, psn++);
	assert_int_equal(kept_of(1), POST_MORTEM_MAX / 2);
	assert_int_equal(kept_of(2), POST_MORTEM_MAX / 2);
	assert_order();
}

/* One user's flood leaves the others their lines. */
static void
lines_have_a_limit(void **state UNUSED)
{
	struct owner loud = application(2, 200), quiet = application(3, 300);

	json_decref(rpc_ok("qp_create", qp17));
	log_set_sink(sink, NULL);
	lines = 0;
	for (uint32_t i = 0; i < 1000; i++)
		fail_as(&loud, i);
	assert_in_range(lines, 1, 20);
	lines = 0;
	fail_as(&quiet, 1000);
	assert_int_equal(lines, 1);
	assert_non_null(strstr(line, "QP 17 of client 3 (pid 1003, uid 300, app3) failed at "));
	lines = 0;
	fake.c->env.now += 2 * TIME_NS_PER_S;
	post_mortem_poll(&fake.c->diagnose);
	assert_int_equal(lines, 1);
	assert_non_null(strstr(line, "more QPs failed, the last of client 2"));
	post_mortem_poll(&fake.c->diagnose);
	assert_int_equal(lines, 1);
	log_set_sink(NULL, NULL);
}

static uint32_t more;

static void
sum_up(void *ctx UNUSED, enum log_level level UNUSED, const char *text)
{
	unsigned int n;

	if (sscanf(text, "%u more QPs failed", &n) == 1)
		more += n;
	else
		lines++;
}

/* More users than have lines of their own: each failure has a line, or is counted in one. */
static void
no_failure_is_left_out_of_the_log(void **state UNUSED)
{
	const uint32_t users = FAILED_USERS + 4, each = 40;

	json_decref(rpc_ok("qp_create", qp17));
	log_set_sink(sum_up, NULL);
	lines = more = 0;
	for (uint32_t u = 0; u < users; u++) {
		struct owner cl = application(u, 100 + u);

		for (uint32_t i = 0; i < each; i++)
			fail_as(&cl, u * each + i);
	}
	fake.c->env.now += 2 * TIME_NS_PER_S;
	post_mortem_poll(&fake.c->diagnose);
	assert_true(lines < users * each);
	assert_int_equal(lines + more, users * each);
	log_set_sink(NULL, NULL);
}

/* ... and who take turns, each as it was forgotten, write no more than those have. */
static void
many_users_in_turn(void **state UNUSED)
{
	json_decref(rpc_ok("qp_create", qp17));
	log_set_sink(sink, NULL);
	lines = 0;
	for (uint32_t i = 0; i < 640 * (FAILED_USERS + 1); i++) {
		struct owner cl = application(i % (FAILED_USERS + 1), 100 + i % (FAILED_USERS + 1));

		fail_as(&cl, i);
	}
	assert_in_range(lines, FAILED_USERS, 20 * FAILED_USERS);
	lines = 0;
	fake.c->env.now += 2 * TIME_NS_PER_S;
	post_mortem_poll(&fake.c->diagnose);
	assert_in_range(lines, 1, FAILED_USERS);
	log_set_sink(NULL, NULL);
}

/* Whose lines were left out is told, not who has the place by then. */
static void
a_place_changes_hands(void **state UNUSED)
{
	json_decref(rpc_ok("qp_create", qp17));
	for (uint32_t u = 0; u <= FAILED_USERS; u++) {
		struct owner cl = application(u, 100 + u);

		for (uint32_t i = 0; i < (u == 0 ? 100 : 1); i++)
			fail_as(&cl, i);
		fake.c->env.now += u == 0 ? 4 * TIME_NS_PER_S : 0;
	}
	log_set_sink(sink, NULL);
	lines = 0;
	post_mortem_poll(&fake.c->diagnose);
	assert_int_equal(lines, 1);
	assert_non_null(strstr(line, "84 more QPs failed, the last of client 0 "));
	log_set_sink(NULL, NULL);
}

/* The QP was reset before the message came: what the message has is kept. */
static void
from_the_message_alone(void **state UNUSED)
{
	json_t *v, *e;

	json_decref(rpc_ok("qp_create", qp17));
	fail_as(NULL, 4711);
	v = rpc_ok("qp_post_mortem", "{\"qp_num\":17}");
	assert_int_equal(json_array_size(v), 1);
	e = json_object_get(json_array_get(v, 0), "error");
	assert_int_equal(number_of(e, "psn"), 4711);
	assert_string_equal(text_of(e, "rule"), qp_rule_id(1));
	json_decref(v);
}

/* Worker 0 polls the port, which is p0; worker 1 polls none. */
static void
a_worker_that_has_no_part(void **state UNUSED)
{
	struct stats_load load[2] = { { 0 } };
	struct admin_qp *rec, *peer;
	const ns_t failed = 10 * TIME_NS_PER_S;
	const struct explain_when when = { .failed = failed };
	char text[512];

	json_decref(rpc_ok("qp_create", qp17));
	rec = admin_find(&fake.c->admin, 17);
	rec->attr.timeout = 14;
	rec->attr.retry_cnt = 3;
	for (int i = 0; i < 2; i++)
		fake.c->env.w.workers[i].load = &load[i];
	fake.c->env.now = failed + TIME_NS_PER_S;
	rec->worker = 0;
	stats_stalled(&load[1], failed - 300 * TIME_NS_PER_MS, failed - 100 * TIME_NS_PER_MS);
	assert_false(explain_inside_text(&fake.c->diagnose, rec, &when, text, sizeof(text)));
	assert_string_equal(text, "");
	/* The peer is here, and worker 1 has it. */
	json_decref(rpc_ok("qp_create",
		"{\"qp_num\":18,\"qp_type\":\"RC\",\"pd\":\"pd0\",\"send_cq\":\"cq0\","
		"\"recv_cq\":\"cq0\"}"));
	peer = admin_find(&fake.c->admin, 18);
	peer->worker = 1;
	rec->attr.dest_qp_num = 18;
	assert_false(explain_inside_text(&fake.c->diagnose, rec, &when, text, sizeof(text)));
	memcpy(rec->attr.path.dst_ip, fake.env.ports[0].addr->ipv4, 4);
	assert_true(explain_inside_text(&fake.c->diagnose, rec, &when, text, sizeof(text)));
	assert_string_equal(text, "worker 1 stood still for 200 ms");
	peer->worker = 0;
	assert_false(explain_inside_text(&fake.c->diagnose, rec, &when, text, sizeof(text)));
	/* Who takes what comes to the port had the answers. */
	stats_stalled(&load[0], failed - 260 * TIME_NS_PER_MS, failed - 100 * TIME_NS_PER_MS);
	rec->worker = 1;
	assert_true(explain_inside_text(&fake.c->diagnose, rec, &when, text, sizeof(text)));
	assert_string_equal(text, "worker 0 stood still for 160 ms");
	rec->worker = 0;
	for (int i = 0; i < 2; i++)
		fake.c->env.w.workers[i].load = NULL;
}

#define WITH_FAKE(f) cmocka_unit_test_setup_teardown(f, fake_setup, fake_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_FAKE(one_client_has_its_share),
		WITH_FAKE(one_user_has_its_share),
		WITH_FAKE(shares_are_equal),
		WITH_FAKE(lines_have_a_limit),
		WITH_FAKE(no_failure_is_left_out_of_the_log),
		WITH_FAKE(many_users_in_turn),
		WITH_FAKE(a_place_changes_hands),
		WITH_FAKE(from_the_message_alone),
		WITH_FAKE(a_worker_that_has_no_part),
	};

	return cmocka_run_group_tests(tests, fake_eal, fake_eal_end);
}
