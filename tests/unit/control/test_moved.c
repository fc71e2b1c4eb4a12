/* SPDX-License-Identifier: BSD-3-Clause */
/* A queue pair goes to another worker, and one of the two does not answer in time. */
#include "fake.h"

#include <errno.h>

#include "admin.h"
#include "connect_priv.h"
#include "control_state.h"

static const char qp18[] =
	"{\"qp_num\":18,\"qp_type\":\"RC\",\"port\":\"p0\",\"pd\":\"pd0\",\"send_cq\":\"cq0\","
	"\"recv_cq\":\"cq0\",\"qp_state\":\"RTS\",\"path_mtu\":1024,\"dest_qp_num\":18,"
	"\"rq_psn\":100,\"sq_psn\":200,\"worker\":0,\"ah_attr\":{\"dest_ip\":\"10.0.0.9\"}}";
static const char to_1[] = "{\"qp_num\":18,\"worker\":1}";

/* Its completion queue is both workers' already. */
static int
setup(void **state)
{
	fake_setup(state);
	json_decref(rpc_ok("qp_create", qp18));
	json_decref(rpc_ok("qp_create",
		"{\"qp_num\":19,\"qp_type\":\"RC\",\"port\":\"p0\",\"pd\":\"pd0\",\"send_cq\":\"cq0\","
		"\"recv_cq\":\"cq0\",\"qp_state\":\"INIT\",\"worker\":1}"));
	return 0;
}

/* Waits end at once: nobody looks at the clock more often than it takes. */
static void
be_deaf(unsigned int worker)
{
	fake.deaf_one[worker] = true;
	fake.step = 10 * TIME_NS_PER_MS;
}

/* It answers all that it was sent, and control hears it. */
static void
hear_again(unsigned int worker)
{
	fake.deaf_one[worker] = false;
	fake.step = 1000;
	for (unsigned int i = 0; i < 4; i++) {
		fake.env.pump(NULL);
		control_poll(fake.c, fake.now);
	}
}

static json_int_t
worker_now(void)
{
	json_t *v = rpc_ok("qp_query", "{\"qp_num\":18}");
	const json_int_t worker = number_of(v, "worker");

	json_decref(v);
	return worker;
}

/* No message goes to worker 1 any more, and it takes none. */
static void
fill_1(void)
{
	const struct mbox_msg m = { .type = MBOX_SYNC };

	while (mbox_send_down(&fake.mbox[1], &m) == 0)
		;
	be_deaf(1);
}

/* What a RELEASE was before that is answered late: then the new owner is told of the new MAC. */
static void
a_new_mac_amid_a_late_move(void **state UNUSED)
{
	uint32_t told[FAKE_WORKERS];

	be_deaf(0);
	assert_int_equal(rpc_code("qp_modify", to_1), REFUSED(ETIMEDOUT));
	fake.step = 1000;
	json_decref(rpc_ok("neighbor_add",
		"{\"port\":\"p0\",\"ipv4\":\"10.0.0.9\",\"mac\":\"02:00:00:00:00:99\"}"));
	for (unsigned int w = 0; w < FAKE_WORKERS; w++)
		told[w] = fake.seen_by[w][MBOX_QP_MODIFY];
	hear_again(0);
	assert_int_equal(worker_now(), 1);
	assert_int_equal(fake.seen_by[0][MBOX_QP_MODIFY], told[0]);
	assert_int_equal(fake.seen_by[1][MBOX_QP_MODIFY], told[1] + 1);
	assert_int_equal(fake.last.type, MBOX_QP_QUERY);
	/* Once: nothing is left to be told. */
	hear_again(0);
	assert_int_equal(fake.seen_by[1][MBOX_QP_MODIFY], told[1] + 1);
}

static void
fill_1_before_the_release(void)
{
	if (fake.seen[MBOX_QP_PARK] == 0)
		fake.hook = fill_1_before_the_release;
	else
		fill_1();
}

/* The old owner has let go of it, and the new one cannot be told: the old one has it again. */
static void
a_new_owner_that_cannot_be_told(void **state UNUSED)
{
	fake.hook = fill_1_before_the_release;
	assert_int_equal(rpc_code("qp_modify", to_1), REFUSED(EBUSY));
	assert_int_equal(fake.seen_by[0][MBOX_QP_RELEASE], 1);
	assert_int_equal(fake.seen_by[0][MBOX_QP_ADOPT], 1);
	assert_int_equal(worker_now(), 0);
	hear_again(1);
	assert_int_equal(fake.seen_by[1][MBOX_QP_ADOPT], 0);
	json_decref(rpc_ok("qp_modify", to_1));
	assert_int_equal(worker_now(), 1);
}

/* The same, where the old owner was late. */
static void
a_new_owner_that_cannot_be_told_later(void **state UNUSED)
{
	be_deaf(0);
	assert_int_equal(rpc_code("qp_modify", to_1), REFUSED(ETIMEDOUT));
	fill_1();
	fake.deaf_one[0] = false;
	for (unsigned int i = 0; i < 4; i++) {
		fake.env.pump(NULL);
		control_poll(fake.c, fake.now);
	}
	assert_int_equal(fake.seen_by[0][MBOX_QP_RELEASE], 1);
	assert_int_equal(fake.seen_by[0][MBOX_QP_ADOPT], 1);
	hear_again(1);
	assert_int_equal(worker_now(), 0);
	json_decref(rpc_ok("qp_modify", to_1));
	assert_int_equal(worker_now(), 1);
}

static uint32_t (*carry_out)(void *ctx);

/* As a DREQ that the worker has handed up. */
static uint32_t
its_connection_ends(void *ctx)
{
	struct refusal r;

	fake.c->env.drain = carry_out;
	assert_int_equal(connect_qp_error(&fake.c->connect, admin_find(&fake.c->admin, 18), &r), 0);
	return carry_out(ctx);
}

/* Nobody has the QP at that moment: its new owner is told. */
static void
a_connection_that_ends_amid_a_move(void **state UNUSED)
{
	json_t *v;

	carry_out = fake.c->env.drain;
	fake.c->env.drain = its_connection_ends;
	json_decref(rpc_ok("qp_modify", to_1));
	hear_again(1);
	v = rpc_ok("qp_query", "{\"qp_num\":18}");
	assert_int_equal(number_of(v, "worker"), 1);
	assert_string_equal(text_of(v, "qp_state"), "ERR");
	json_decref(v);
}

/* In RESET that is over: what follows is another connection's. */
static void
a_connection_that_ends_amid_a_reset(void **state UNUSED)
{
	json_t *v;

	carry_out = fake.c->env.drain;
	fake.c->env.drain = its_connection_ends;
	json_decref(rpc_ok("qp_modify", "{\"qp_num\":18,\"qp_state\":\"RESET\"}"));
	json_decref(rpc_ok("qp_modify", "{\"qp_num\":18,\"qp_state\":\"INIT\",\"port\":\"p0\","
					"\"pkey\":\"0xffff\",\"qp_access_flags\":[]}"));
	json_decref(rpc_ok("qp_modify", to_1));
	hear_again(1);
	v = rpc_ok("qp_query", "{\"qp_num\":18}");
	assert_string_equal(text_of(v, "qp_state"), "INIT");
	json_decref(v);
}

#define WITH_QP(f) cmocka_unit_test_setup_teardown(f, setup, fake_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_QP(a_new_mac_amid_a_late_move),
		WITH_QP(a_new_owner_that_cannot_be_told),
		WITH_QP(a_new_owner_that_cannot_be_told_later),
		WITH_QP(a_connection_that_ends_amid_a_move),
		WITH_QP(a_connection_that_ends_amid_a_reset),
	};

	return cmocka_run_group_tests(tests, fake_eal, fake_eal_end);
}
