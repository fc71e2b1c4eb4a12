/* SPDX-License-Identifier: BSD-3-Clause */
/* A queue pair goes to another worker, and one of the two does not answer in time. */
#include "fake.h"

#include <errno.h>
#include <stdio.h>

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
/* ---- to a port that is another worker's ------------------------------------------------------ */

/* Worker 0 alone sends at p0, where QP 20 is in INIT, and worker 1 at p1, where QP 21 is. */
static int
two_ports(void **state UNUSED)
{
	fake_start("{\"version\":1,\"lcores\":{\"control\":0,\"workers\":[1,2]},"
		   "\"ports\":[{\"name\":\"p0\",\"device\":\"d0\",\"ipv4\":\"10.0.0.1\"},"
		   "{\"name\":\"p1\",\"device\":\"d1\",\"ipv4\":\"10.0.1.1\"}],"
		   "\"pds\":[\"pd0\"],\"cqs\":[{\"name\":\"cq0\"}]}");
	fake.c->env.w.ports[0].tx_queues = 0;
	json_decref(rpc_ok("qp_create",
		"{\"qp_num\":20,\"qp_type\":\"RC\",\"port\":\"p0\",\"pd\":\"pd0\","
		"\"send_cq\":\"cq0\",\"recv_cq\":\"cq0\",\"qp_state\":\"INIT\"}"));
	json_decref(rpc_ok("qp_create",
		"{\"qp_num\":21,\"qp_type\":\"RC\",\"port\":\"p1\",\"pd\":\"pd0\","
		"\"send_cq\":\"cq0\",\"recv_cq\":\"cq0\",\"qp_state\":\"INIT\"}"));
	return 0;
}

static int
to_p1(void)
{
	return rpc_code("qp_modify", "{\"qp_num\":20,\"qp_state\":\"INIT\",\"port\":\"p1\"}");
}

static void
assert_place(const char *port, uint8_t worker)
{
	const struct admin_qp *rec = admin_find(&fake.c->admin, 20);
	json_t *v = rpc_ok("qp_query", "{\"qp_num\":20}");

	assert_string_equal(text_of(v, "port"), port);
	assert_int_equal(number_of(v, "worker"), worker);
	assert_true(env_worker_sends(&fake.c->env, rec->port, rec->worker));
	assert_int_equal(fake.c->admin.worker_qps[0], 1 - worker);
	assert_int_equal(fake.c->admin.worker_qps[1], 1 + worker);
	json_decref(v);
}

static void
go_to(const char *port)
{
	char text[128];

	snprintf(text, sizeof(text), "{\"qp_num\":20,\"qp_state\":\"INIT\",\"port\":\"%s\"}", port);
	json_decref(rpc_ok("qp_modify", text));
}

static void
be_deaf_behind_the_detach(void)
{
	if (fake.seen[MBOX_QP_DETACH] == 0)
		fake.hook = be_deaf_behind_the_detach;
	else
		be_deaf(1);
}

/* The new worker is late: it has the QP then, at the port for which it was given the QP. */
static void
the_worker_of_the_new_port_is_late(void **state UNUSED)
{
	fake.hook = be_deaf_behind_the_detach;
	assert_int_equal(to_p1(), REFUSED(ETIMEDOUT));
	hear_again(1);
	assert_place("p1", 1);
	go_to("p1");
	assert_place("p1", 1);
	go_to("p0");
	assert_place("p0", 0);
}

/* It takes no messages: the old one has the QP again. */
static void
the_worker_of_the_new_port_cannot_be_told(void **state UNUSED)
{
	fill_1();
	fake.step = 100 * TIME_NS_PER_US; /* the other one answers in time */
	assert_int_equal(to_p1(), REFUSED(EBUSY));
	assert_place("p0", 0);
	hear_again(1);
	assert_true(admin_find(&fake.c->admin, 20)->attached);
	go_to("p1");
	assert_place("p1", 1);
}

/* The old one is late, and has let go of it: then it may go to the new one's port. */
static void
the_worker_of_the_old_port_is_late(void **state UNUSED)
{
	be_deaf(0);
	assert_int_equal(to_p1(), REFUSED(ETIMEDOUT));
	hear_again(0);
	assert_place("p0", 0);
	go_to("p1");
	assert_place("p1", 1);
}

#define WITH_PORTS(f) cmocka_unit_test_setup_teardown(f, two_ports, fake_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_QP(a_new_mac_amid_a_late_move),
		WITH_QP(a_new_owner_that_cannot_be_told),
		WITH_QP(a_new_owner_that_cannot_be_told_later),
		WITH_QP(a_connection_that_ends_amid_a_move),
		WITH_QP(a_connection_that_ends_amid_a_reset),
		WITH_PORTS(the_worker_of_the_new_port_is_late),
		WITH_PORTS(the_worker_of_the_new_port_cannot_be_told),
		WITH_PORTS(the_worker_of_the_old_port_is_late),
	};

	return cmocka_run_group_tests(tests, fake_eal, fake_eal_end);
}
