/* SPDX-License-Identifier: BSD-3-Clause */
/* The alternate path as the control lcore has it; p1 is a port that worker 1 alone sends on. */
#include "fake.h"

#include <errno.h>
#include <stdio.h>

static const char two_ports[] =
	"{\"version\":1,\"lcores\":{\"control\":0,\"workers\":[1,2]},"
	"\"ports\":[{\"name\":\"p0\",\"device\":\"d0\",\"ipv4\":\"10.0.0.1\"},"
	"{\"name\":\"p1\",\"device\":\"d1\",\"ipv4\":\"10.0.1.1\"}],"
	"\"pds\":[\"pd0\"],\"cqs\":[{\"name\":\"cq0\"}]}";

#define QP17                                                                           \
	"{\"qp_num\":17,\"qp_type\":\"RC\",\"pd\":\"pd0\",\"send_cq\":\"cq0\","        \
	"\"recv_cq\":\"cq0\",\"qp_state\":\"RTS\",\"port\":\"p0\",\"dest_qp_num\":18," \
	"\"rq_psn\":7,\"sq_psn\":9,\"ah_attr\":{\"dest_ip\":\"10.0.0.2\","             \
	"\"dest_mac\":\"02:00:00:00:00:22\"}"
#define ALT                                                              \
	"\"alt_port\":\"p1\",\"alt_ah_attr\":{\"dest_ip\":\"10.0.1.2\"," \
	"\"dest_mac\":\"02:00:00:00:00:33\"}"

static int
setup(void **state UNUSED)
{
	fake_start(two_ports);
	return 0;
}

static struct qp *
the_qp(void)
{
	struct qp *qp = qp_lookup(fake.env.qps, 17);

	assert_non_null(qp);
	return qp;
}

static void
assert_path(const char *port, const char *ip, const char *mac)
{
	json_t *v = rpc_ok("qp_query", "{\"qp_num\":17}");
	json_t *ah = json_object_get(v, "ah_attr");

	assert_string_equal(text_of(v, "port"), port);
	assert_string_equal(text_of(ah, "dest_ip"), ip);
	assert_string_equal(text_of(ah, "dest_mac"), mac);
	json_decref(v);
}

/* A QP keeps its worker, so that is asked before anything is changed. */
static void
a_port_of_another_worker(void **state UNUSED)
{
	json_decref(rpc_ok("qp_create", QP17 ",\"worker\":0}"));
	assert_int_equal(
		rpc_code("qp_modify", "{\"qp_num\":17," ALT ",\"path_mig_state\":\"REARM\"}"),
		-32000 - EINVAL);
	assert_non_null(strstr(rpc_message(), "alt_port: worker 0, which has QP 17"));
	assert_non_null(strstr(rpc_message(), "make the QP on worker 1"));
	assert_int_equal(the_qp()->attr.path_mig_state, MIG_MIGRATED);
	assert_int_equal(the_qp()->flags & QPF_MIGRATION, 0);
	assert_path("p0", "10.0.0.2", "02:00:00:00:00:22");
	assert_int_equal(rpc_code("qp_create", "{\"qp_num\":19,\"worker\":0,"
					       "\"qp_type\":\"RC\",\"pd\":\"pd0\","
					       "\"send_cq\":\"cq0\",\"recv_cq\":\"cq0\","
					       "\"qp_state\":\"RTS\",\"port\":\"p0\","
					       "\"dest_qp_num\":18,\"rq_psn\":7,\"sq_psn\":9,"
					       "\"ah_attr\":{\"dest_ip\":\"10.0.0.2\"}," ALT "}"),
		-32000 - EINVAL);
	assert_null(qp_lookup(fake.env.qps, 19));
}

/* Where nobody names the worker, it is one that can do both. */
static void
a_worker_for_both_ports(void **state UNUSED)
{
	json_decref(rpc_ok("qp_create", QP17 "," ALT ",\"path_mig_state\":\"REARM\"}"));
	assert_int_equal(the_qp()->worker, 1);
	assert_int_equal(the_qp()->attr.alt_port, 1);
	assert_int_equal(the_qp()->attr.path_mig_state, MIG_REARM);
	assert_memory_equal(the_qp()->attr.alt_path.src_ip, "\x0a\0\x01\x01", 4);
	assert_memory_equal(the_qp()->attr.alt_path.smac, fake.addr2.mac, 6);
}

/* The record follows the worker, whether or not it hears of the event. */
static void
AE_12_a_migration_that_nobody_told_of(void **state UNUSED)
{
	json_decref(rpc_ok("qp_create", QP17 "," ALT ",\"alt_timeout\":3,"
					     "\"path_mig_state\":\"REARM\"}"));
	qp_migration_set(the_qp(), MIG_ARMED);
	assert_path("p0", "10.0.0.2", "02:00:00:00:00:22");
	qp_migrate(the_qp());
	assert_path("p1", "10.0.1.2", "02:00:00:00:00:33");
	/* What is changed next was said of the path that is in use. */
	json_decref(
		rpc_ok("qp_modify", "{\"qp_num\":17,\"path_mig_state\":\"REARM\",\"alt_ah_attr\":"
				    "{\"dest_ip\":\"10.0.1.3\"}}"));
	assert_int_equal(fake.last.modify.attr->migrations, 1);
	assert_int_equal(fake.last.modify.attr->timeout, 3);
	assert_int_equal(the_qp()->attr.alt_port, 1); /* left out: where the QP is now */
	assert_memory_equal(the_qp()->attr.alt_path.src_ip, "\x0a\0\x01\x01", 4);
	assert_path("p1", "10.0.1.2", "02:00:00:00:00:33");
}

/* The only neighbour that is asked for; NULL: nobody. */
static void
assert_asked_for(const char *ip)
{
	json_t *v = rpc_ok("neighbor_list", "{}");

	assert_int_equal(json_array_size(v), ip != NULL ? 1 : 0);
	if (ip != NULL)
		assert_string_equal(text_of(json_array_get(v, 0), "ipv4"), ip);
	json_decref(v);
}

/* What waited for its MAC before waits for it again. */
static void
a_refused_path_gives_its_place_back(void **state UNUSED)
{
	json_decref(rpc_ok("qp_create", QP17 ",\"alt_ah_attr\":{\"dest_ip\":\"10.0.0.8\"}}"));
	assert_asked_for("10.0.0.8");
	fake.refuse = -EAGAIN;
	assert_int_equal(rpc_code("qp_modify", "{\"qp_num\":17,\"alt_ah_attr\":"
					       "{\"dest_ip\":\"10.0.0.9\"}}"),
		-32000 - EAGAIN);
	assert_asked_for("10.0.0.8");
	json_decref(rpc_ok("qp_modify", "{\"qp_num\":17,\"qp_state\":\"RESET\"}"));
	assert_asked_for(NULL);
}

/* The worker saw that the order was given for another path. */
static void
a_migration_while_an_order_is_under_way(void **state UNUSED)
{
	json_decref(rpc_ok("qp_create", QP17 "," ALT ",\"path_mig_state\":\"REARM\"}"));
	fake.refuse = -EAGAIN;
	assert_int_equal(rpc_code("qp_modify", "{\"qp_num\":17,\"alt_ah_attr\":"
					       "{\"dest_ip\":\"10.0.0.9\"}}"),
		-32000 - EAGAIN);
	assert_non_null(strstr(rpc_message(), "migrated meanwhile"));
	assert_asked_for(NULL); /* as before, the MAC was given */
	qp_migration_set(the_qp(), MIG_ARMED);
	qp_migrate(the_qp());
	assert_path("p1", "10.0.1.2", "02:00:00:00:00:33");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_port_of_another_worker, setup, fake_teardown),
		cmocka_unit_test_setup_teardown(a_worker_for_both_ports, setup, fake_teardown),
		cmocka_unit_test_setup_teardown(
			AE_12_a_migration_that_nobody_told_of, setup, fake_teardown),
		cmocka_unit_test_setup_teardown(
			a_refused_path_gives_its_place_back, setup, fake_teardown),
		cmocka_unit_test_setup_teardown(
			a_migration_while_an_order_is_under_way, setup, fake_teardown),
	};

	return cmocka_run_group_tests(tests, fake_eal, fake_eal_end);
}
