/* SPDX-License-Identifier: BSD-3-Clause */
/* What workers have to know, and cannot be told: their queues are full. */
#include "fake.h"

#include <errno.h>

#include "admin.h"
#include "connect_priv.h"
#include "control_state.h"

extern void *__real_malloc(size_t n);
void *__wrap_malloc(size_t n);

static bool no_memory;

void *
__wrap_malloc(size_t n)
{
	return no_memory ? NULL : __real_malloc(n);
}

static const char to_1[] = "{\"qp_num\":17,\"worker\":1}";
static const char to_0[] = "{\"qp_num\":17,\"worker\":0}";

/* Its completion queue is both workers' already. */
static int
setup(void **state)
{
	fake_setup(state);
	json_decref(rpc_ok("qp_create", qp17));
	assert_int_equal(worker_of(17), 0);
	json_decref(rpc_ok("qp_create",
		"{\"qp_num\":19,\"qp_type\":\"RC\",\"port\":\"p0\",\"pd\":\"pd0\",\"send_cq\":\"cq0\","
		"\"recv_cq\":\"cq0\",\"qp_state\":\"INIT\",\"worker\":1}"));
	return 0;
}

/* No message goes there any more, and it takes none. Waits end soon. */
static void
fill(unsigned int worker)
{
	const struct mbox_msg m = { .type = MBOX_SYNC };

	while (mbox_send_down(&fake.mbox[worker], &m) == 0)
		;
	fake.deaf_one[worker] = true;
	fake.step = 10 * TIME_NS_PER_MS;
}

static void
all_hear_again(void)
{
	memset(fake.deaf_one, 0, sizeof(fake.deaf_one));
	fake_hear_again();
}

static void
post_is_accepted(const char *method)
{
	char params[128];

	snprintf(params, sizeof(params), "{\"qp_num\":17,\"wrs\":[{%s\"wr_id\":5%s}]}",
		strcmp(method, "post_send") == 0 ? "\"opcode\":\"SEND\"," : "",
		strcmp(method, "post_send") == 0 ? ",\"inline\":\"00\"" : "");
	json_decref(rpc_ok(method, params));
}

static void
a_send_that_was_posted(void **state UNUSED)
{
	post_is_accepted("post_send");
	assert_int_equal(fake.seen_by[0][MBOX_QP_POSTED], 1);
	fill(0);
	post_is_accepted("post_send");
	post_is_accepted("post_send");
	all_hear_again();
	assert_int_equal(fake.seen_by[0][MBOX_QP_POSTED], 2);
	/* Nothing is owed for ever. */
	fill(0);
	post_is_accepted("post_send");
	json_decref(rpc_ok("qp_query", "{\"qp_num\":19}"));
	all_hear_again();
	assert_int_equal(fake.seen_by[0][MBOX_QP_POSTED], 3);
}

/* QP-13: the worker completes what is posted in ERR. */
static void
a_receive_that_was_posted_in_ERR(void **state UNUSED)
{
	json_t *v;

	json_decref(rpc_ok("qp_modify", "{\"qp_num\":17,\"qp_state\":\"ERR\"}"));
	fill(0);
	post_is_accepted("post_recv");
	all_hear_again();
	v = rpc_ok("poll_cq", "{\"cq\":\"cq0\"}");
	assert_int_equal(json_array_size(v), 1);
	json_decref(v);
}

/* It is gone before there is room. */
static void
what_is_gone_is_owed_nothing(void **state UNUSED)
{
	fill(0);
	post_is_accepted("post_send");
	memset(fake.deaf_one, 0, sizeof(fake.deaf_one));
	fake.step = 1000;
	json_decref(rpc_ok("qp_destroy", "{\"qp_num\":17}"));
	all_hear_again();
	assert_int_equal(fake.seen_by[0][MBOX_QP_POSTED], 0);
}

static bool starves; /* from then on there is no memory */

static void
fill_both_before_the_adopt(void)
{
	if (fake.seen[MBOX_QP_RELEASE] == 0) {
		fake.hook = fill_both_before_the_adopt;
	} else {
		fill(0);
		fill(1);
		no_memory = starves;
	}
}

static void
fill_1_and_both_later(void)
{
	if (fake.seen[MBOX_QP_PARK] == 0) {
		fake.hook = fill_1_and_both_later;
	} else {
		fill(1);
		fake.hook = fill_both_before_the_adopt;
	}
}

static void
the_old_owner_has_it_again(void)
{
	assert_int_equal(fake.seen[MBOX_QP_ADOPT], 0);
	assert_int_equal(rpc_code("qp_modify", to_1), REFUSED(EBUSY));
	all_hear_again();
	assert_int_equal(fake.seen_by[0][MBOX_QP_ADOPT], 1);
	assert_int_equal(fake.seen_by[1][MBOX_QP_ADOPT], 0);
	assert_int_equal(fake.seen_by[1][MBOX_QP_UNPARK], 1);
	json_decref(rpc_ok("qp_modify", to_1));
	assert_int_equal(fake.seen_by[1][MBOX_QP_ADOPT], 1);
}

/* The old owner has let go of it, and nobody can be told to take it: the old one does, later. */
static void
no_owner_can_be_told(void **state UNUSED)
{
	fake.hook = fill_1_and_both_later;
	assert_int_equal(rpc_code("qp_modify", to_1), REFUSED(EBUSY));
	the_old_owner_has_it_again();
}

static void
no_owner_can_be_told_and_no_memory_is_left(void **state UNUSED)
{
	struct refusal r;
	int rc;

	fake.hook = fill_1_and_both_later;
	starves = true;
	rc = admin_move(&fake.c->admin, admin_find(&fake.c->admin, 17), 1, &r);
	starves = no_memory = false;
	assert_int_equal(rc, -EBUSY);
	the_old_owner_has_it_again();
}

/* The same, where the old owner was late. */
static void
no_owner_can_be_told_later(void **state UNUSED)
{
	fake.deaf_one[0] = true;
	fake.step = 10 * TIME_NS_PER_MS;
	assert_int_equal(rpc_code("qp_modify", to_1), REFUSED(ETIMEDOUT));
	fill(1);
	fake.hook = fill_both_before_the_adopt;
	fake.deaf_one[0] = false;
	for (unsigned int i = 0; i < 4; i++) {
		fake.env.pump(NULL);
		control_poll(fake.c, fake.now);
	}
	assert_int_equal(fake.seen_by[0][MBOX_QP_RELEASE], 1);
	assert_int_equal(fake.seen[MBOX_QP_ADOPT], 0);
	all_hear_again();
	assert_int_equal(fake.seen[MBOX_QP_ADOPT], 1);
	json_decref(rpc_ok("qp_modify", to_1));
}

static void
fill_0_behind_the_release(void)
{
	if (fake.seen[MBOX_QP_RELEASE] == 0)
		fake.hook = fill_0_behind_the_release;
	else
		fill(0);
}

/* Who keeps packets of it aside for too long loses them, and can take part in no other move. */
static void
a_worker_that_is_not_told_of_the_end(void **state UNUSED)
{
	fake.hook = fill_0_behind_the_release;
	json_decref(rpc_ok("qp_modify", to_1));
	assert_int_equal(fake.seen_by[0][MBOX_QP_UNPARK], 0);
	assert_int_equal(rpc_code("qp_modify", to_0), REFUSED(EBUSY));
	assert_int_equal(rpc_code("qp_destroy", "{\"qp_num\":17}"), REFUSED(EBUSY));
	all_hear_again();
	assert_true(fake.seen_by[0][MBOX_QP_UNPARK] != 0);
	json_decref(rpc_ok("qp_modify", to_0));
	json_decref(rpc_ok("qp_destroy", "{\"qp_num\":17}"));
}

static void
its_connection_ends(void)
{
	struct admin_qp *rec = admin_find(&fake.c->admin, 17);
	struct refusal r;

	fill(0);
	assert_int_equal(connect_qp_error(&fake.c->connect, rec, &r), 0);
	assert_int_equal(qp_lookup(fake.env.qps, 17)->state, QPS_RTS);
}

static void
an_end_of_a_connection(void **state UNUSED)
{
	its_connection_ends();
	all_hear_again();
	assert_int_equal(qp_lookup(fake.env.qps, 17)->state, QPS_ERR);
}

/* It is for another connection by then. */
static void
an_end_before_a_reset(void **state UNUSED)
{
	its_connection_ends();
	memset(fake.deaf_one, 0, sizeof(fake.deaf_one));
	fake.step = 1000;
	json_decref(rpc_ok("qp_modify", "{\"qp_num\":17,\"qp_state\":\"RESET\"}"));
	json_decref(rpc_ok("qp_modify", "{\"qp_num\":17,\"qp_state\":\"INIT\",\"port\":\"p0\","
					"\"pkey\":\"0xffff\",\"qp_access_flags\":[]}"));
	all_hear_again();
	assert_int_equal(qp_lookup(fake.env.qps, 17)->state, QPS_INIT);
}

#define WITH_QP(f) cmocka_unit_test_setup_teardown(f, setup, fake_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_QP(a_send_that_was_posted),
		WITH_QP(a_receive_that_was_posted_in_ERR),
		WITH_QP(what_is_gone_is_owed_nothing),
		WITH_QP(no_owner_can_be_told),
		WITH_QP(no_owner_can_be_told_and_no_memory_is_left),
		WITH_QP(no_owner_can_be_told_later),
		WITH_QP(a_worker_that_is_not_told_of_the_end),
		WITH_QP(an_end_of_a_connection),
		WITH_QP(an_end_before_a_reset),
	};

	return cmocka_run_group_tests(tests, fake_eal, fake_eal_end);
}
