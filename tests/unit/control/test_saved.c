/* SPDX-License-Identifier: BSD-3-Clause */
/* What save_config prints starts a dataplane, whatever was done to this one before. */
#include "fake.h"

#include <stdio.h>

#define TWO_PORTS                                                                         \
	"{\"version\":1,\"lcores\":{\"control\":0,\"workers\":[1,2]},\"ports\":["         \
	"{\"name\":\"p0\",\"device\":\"net_ring0\",\"ipv4\":\"10.0.0.1\",\"mtu\":1500},"  \
	"{\"name\":\"p1\",\"device\":\"net_ring1\",\"ipv4\":\"10.0.1.1\",\"mtu\":1500}]," \
	"\"pds\":[\"pd0\"],\"cqs\":[{\"name\":\"cq0\",\"cqe\":16}]}"

/* Load it as rocelane does. @return the text's objects (release them). */
static json_t *
saved(void)
{
	json_t *v = rpc_ok("save_config", NULL);
	char *text = json_dumps(v, JSON_COMPACT);
	struct conf_errors err;
	struct conf *conf;

	conf_errors_init(&err);
	if (conf_load_text(text, strlen(text), &conf, &err) != 0)
		fail_msg("%s: %s", err.v[conf_errors_first(&err)].pointer,
			err.v[conf_errors_first(&err)].message);
	conf_free(conf);
	conf_errors_free(&err);
	free(text);
	return v;
}

static const json_t *
qp_of(const json_t *v, uint32_t number)
{
	const json_t *list = json_object_get(v, "qps");

	for (size_t i = 0; i < json_array_size(list); i++) {
		const json_t *q = json_array_get(list, i);

		if (number_of(q, "qp_num") == number)
			return q;
	}
	fail_msg("QP %u is not saved", number);
	return NULL;
}

/* A listener's queue pair has another number each time: what it is a member of goes with it. */
static void
a_group_of_a_listener(void **state UNUSED)
{
	json_t *v;
	char params[128];
	uint32_t qpn;

	fake_start(NULL);
	v = rpc_ok("cm_listen",
		"{\"name\":\"l0\",\"port\":\"p0\",\"service_port\":7471,\"ps\":\"UDP\",\"qp\":{"
		"\"qp_type\":\"UD\",\"pd\":\"pd0\",\"send_cq\":\"cq0\",\"recv_cq\":\"cq0\"}}");
	qpn = (uint32_t)number_of(v, "qp_num");
	json_decref(v);
	snprintf(params, sizeof(params), "{\"qp_num\":%u,\"group\":\"239.1.2.3\"}", qpn);
	json_decref(rpc_ok("mcast_attach", params));
	json_decref(rpc_ok("qp_create",
		"{\"qp_num\":77,\"qp_type\":\"UD\",\"port\":\"p0\",\"pd\":\"pd0\",\"send_cq\":\"cq0\","
		"\"recv_cq\":\"cq0\",\"qkey\":1,\"sq_psn\":0,\"qp_state\":\"RTS\"}"));
	json_decref(rpc_ok("mcast_attach", "{\"qp_num\":77,\"group\":\"239.1.2.4\"}"));
	v = saved();
	assert_int_equal(json_array_size(json_object_get(v, "qps")), 1);
	assert_int_equal(json_array_size(json_object_get(v, "mcasts")), 1);
	json_decref(v);
	fake_stop();
}

/* No route leads to the peer any more, and the queue pair has not asked for its MAC yet. */
static void
a_path_that_was_not_used_yet(void **state UNUSED)
{
	static const char *const states[] = { "RESET", "INIT" };
	char params[512];
	json_t *v;

	fake_start(NULL);
	json_decref(rpc_ok(
		"route_add", "{\"port\":\"p0\",\"to\":\"10.80.0.0/16\",\"via\":\"10.0.0.9\"}"));
	for (unsigned int i = 0; i < ARRAY_LEN(states); i++) {
		snprintf(params, sizeof(params),
			"{\"qp_num\":%u,\"qp_type\":\"RC\",\"port\":\"p0\",\"pd\":\"pd0\","
			"\"send_cq\":\"cq0\",\"recv_cq\":\"cq0\",\"qp_state\":\"%s\",\"path_mtu\":256,"
			"\"ah_attr\":{\"dest_ip\":\"10.80.0.5\"},"
			"\"alt_ah_attr\":{\"dest_ip\":\"10.80.0.6\"}}",
			20 + i, states[i]);
		json_decref(rpc_ok("qp_create", params));
	}
	json_decref(saved());
	json_decref(rpc_ok("route_del", "{\"port\":\"p0\",\"to\":\"10.80.0.0/16\"}"));
	v = saved();
	for (unsigned int i = 0; i < ARRAY_LEN(states); i++) {
		const json_t *q = qp_of(v, 20 + i);

		assert_string_equal(text_of(q, "qp_state"), states[i]);
		assert_false(json_is_object(json_object_get(q, "ah_attr")));
		assert_false(json_is_object(json_object_get(q, "alt_ah_attr")));
	}
	json_decref(v);
	fake_stop();
}

/* What stands ready for a later state does not say that the queue pair has been in it. */
static void
a_failed_one_that_had_no_peer(void **state UNUSED)
{
	json_t *v;

	fake_start(NULL);
	json_decref(rpc_ok("qp_create",
		"{\"qp_num\":20,\"qp_type\":\"RC\",\"port\":\"p0\",\"pd\":\"pd0\",\"send_cq\":\"cq0\","
		"\"recv_cq\":\"cq0\",\"qp_state\":\"INIT\",\"rq_psn\":7,\"sq_psn\":7}"));
	json_decref(rpc_ok("qp_create",
		"{\"qp_num\":21,\"qp_type\":\"UD\",\"port\":\"p0\",\"pd\":\"pd0\",\"send_cq\":\"cq0\","
		"\"recv_cq\":\"cq0\",\"qp_state\":\"INIT\",\"qkey\":1}"));
	json_decref(rpc_ok("qp_create", qp17));
	for (unsigned int i = 0; i < 3; i++) {
		static const char *const err[] = { "{\"qp_num\":17,\"qp_state\":\"ERR\"}",
			"{\"qp_num\":20,\"qp_state\":\"ERR\"}",
			"{\"qp_num\":21,\"qp_state\":\"ERR\"}" };

		json_decref(rpc_ok("qp_modify", err[i]));
	}
	v = saved();
	assert_string_equal(text_of(qp_of(v, 17), "qp_state"), "RTS");
	assert_string_equal(text_of(qp_of(v, 20), "qp_state"), "INIT");
	assert_string_equal(text_of(qp_of(v, 21), "qp_state"), "INIT");
	json_decref(v);
	fake_stop();
}

/* The worker that was asked for is not the one that has it any more. */
static void
a_queue_pair_that_has_moved(void **state UNUSED)
{
	static const char at_0[] =
		"{\"qp_num\":%u,\"qp_type\":\"RC\",\"port\":\"p0\",\"pd\":\"pd0\",\"send_cq\":\"cq0\","
		"\"recv_cq\":\"cq0\",\"qp_state\":\"INIT\",\"worker\":0}";
	char params[512];
	json_t *v;

	fake_start(TWO_PORTS);
	for (uint32_t n = 20; n < 22; n++) {
		snprintf(params, sizeof(params), at_0, n);
		json_decref(rpc_ok("qp_create", params));
	}
	json_decref(rpc_ok("qp_modify", "{\"qp_num\":20,\"worker\":1}"));
	json_decref(rpc_ok("qp_modify", "{\"qp_num\":21,\"qp_state\":\"RESET\"}"));
	json_decref(rpc_ok("qp_modify", "{\"qp_num\":21,\"worker\":1}"));
	/* Worker 0 does not send at that port: with it the dataplane would not start. */
	json_decref(rpc_ok("qp_modify", "{\"qp_num\":21,\"qp_state\":\"INIT\",\"port\":\"p1\","
					"\"pkey\":65535,\"qp_access_flags\":[]}"));
	v = saved();
	assert_int_equal(number_of(qp_of(v, 20), "worker"), 1);
	assert_string_equal(text_of(qp_of(v, 21), "port"), "p1");
	assert_int_equal(number_of(qp_of(v, 21), "worker"), 1);
	json_decref(v);
	fake_stop();
}

/* What stood ready for RTR was not taken then, and its port may be none of its worker's now. */
static void
an_alternate_path_that_was_not_taken(void **state UNUSED)
{
	json_t *v;

	fake_start(TWO_PORTS);
	json_decref(rpc_ok("qp_create",
		"{\"qp_num\":20,\"qp_type\":\"RC\",\"port\":\"p0\",\"pd\":\"pd0\",\"send_cq\":\"cq0\","
		"\"recv_cq\":\"cq0\",\"qp_state\":\"INIT\",\"worker\":1,\"alt_port\":\"p1\","
		"\"alt_ah_attr\":{\"dest_ip\":\"10.0.1.2\"}}"));
	v = saved();
	assert_true(json_is_object(json_object_get(qp_of(v, 20), "alt_ah_attr")));
	json_decref(v);
	json_decref(rpc_ok("qp_modify", "{\"qp_num\":20,\"worker\":0}"));
	json_decref(rpc_ok("qp_modify",
		"{\"qp_num\":20,\"qp_state\":\"RTR\",\"ah_attr\":{\"dest_ip\":\"10.0.0.2\"},"
		"\"path_mtu\":256,\"dest_qp_num\":9,\"rq_psn\":3,\"max_dest_rd_atomic\":1,"
		"\"min_rnr_timer\":12}"));
	v = saved();
	assert_int_equal(number_of(qp_of(v, 20), "worker"), 0);
	assert_false(json_is_object(json_object_get(qp_of(v, 20), "alt_ah_attr")));
	json_decref(v);
	fake_stop();
}

/* Peers know the address at which it begins without ZERO_BASED. */
static void
a_region_that_is_zero_based_for_now(void **state UNUSED)
{
	char *text;
	json_t *v;

	fake_start(TWO_PORTS);
	json_decref(rpc_ok("mr_register",
		"{\"name\":\"mr0\",\"pd\":\"pd0\",\"length\":4096,\"addr\":1048576}"));
	json_decref(rpc_ok("mr_rereg", "{\"name\":\"mr0\",\"access\":[\"ZERO_BASED\"]}"));
	v = saved();
	text = json_dumps(v, 0);
	json_decref(v);
	fake_stop();
	fake_start(text);
	free(text);
	v = rpc_ok("mr_list", NULL);
	assert_string_equal(text_of(json_array_get(v, 0), "addr"), "0x0");
	json_decref(v);
	v = rpc_ok("mr_rereg", "{\"name\":\"mr0\",\"access\":[]}");
	assert_string_equal(text_of(v, "addr"), "0x100000");
	json_decref(v);
	fake_stop();
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_group_of_a_listener),
		cmocka_unit_test(a_path_that_was_not_used_yet),
		cmocka_unit_test(a_failed_one_that_had_no_peer),
		cmocka_unit_test(a_queue_pair_that_has_moved),
		cmocka_unit_test(an_alternate_path_that_was_not_taken),
		cmocka_unit_test(a_region_that_is_zero_based_for_now),
	};

	return cmocka_run_group_tests(tests, fake_eal, fake_eal_end);
}
