/* SPDX-License-Identifier: BSD-3-Clause */
/* A queue pair that nobody wants, and whose worker does not answer: it goes when that does. */
#include "fake.h"

#include <errno.h>

static const char qp20[] =
	"{\"qp_num\":20,\"qp_type\":\"RC\",\"port\":\"p0\",\"pd\":\"pd0\",\"send_cq\":\"cq0\","
	"\"recv_cq\":\"cq0\",\"qp_state\":\"INIT\",\"worker\":0,\"count\":3}";

static size_t
how_many(void)
{
	json_t *v = rpc_ok("qp_list", NULL);
	const size_t n = json_array_size(v);

	json_decref(v);
	return n;
}

/* It was refused, so it must not stay. */
static void
what_could_not_be_made(void **state UNUSED)
{
	fake_be_deaf();
	assert_int_equal(rpc_code("qp_create", qp20), REFUSED(ETIMEDOUT));
	fake_hear_again();
	assert_int_equal(how_many(), 0);
	json_decref(rpc_ok("qp_create", qp20));
	assert_int_equal(how_many(), 3);
	fake_hear_again();
	assert_int_equal(how_many(), 3);
}

/* The operator destroys it meanwhile. */
static void
what_somebody_destroys(void **state UNUSED)
{
	fake_be_deaf();
	assert_int_equal(rpc_code("qp_create", qp20), REFUSED(ETIMEDOUT));
	assert_int_equal(rpc_code("qp_destroy", "{\"qp_num\":21}"), REFUSED(EBUSY));
	fake.deaf = false;
	fake.step = 1000;
	json_decref(rpc_ok("qp_create", qp17)); /* with this answer come those before it */
	json_decref(rpc_ok("qp_destroy", "{\"qp_num\":21}"));
	fake_hear_again();
	assert_int_equal(how_many(), 1);
}

/* A connection is over, and its queue pair is the only thing left of it. */
static void
what_a_connection_leaves(void **state UNUSED)
{
	char params[64];
	json_t *v;

	json_decref(rpc_ok("neighbor_add",
		"{\"port\":\"p0\",\"ipv4\":\"10.0.0.9\",\"mac\":\"02:00:00:00:00:09\"}"));
	v = rpc_ok("cm_connect",
		"{\"port\":\"p0\",\"dest_ip\":\"10.0.0.9\",\"service_port\":7471,\"qp\":{"
		"\"qp_type\":\"RC\",\"pd\":\"pd0\",\"send_cq\":\"cq0\",\"recv_cq\":\"cq0\"}}");
	snprintf(params, sizeof(params), "{\"id\":%d}", (int)number_of(v, "id"));
	json_decref(v);
	assert_int_equal(how_many(), 1);
	fake_be_deaf();
	json_decref(rpc_ok("cm_disconnect", params));
	/* While a worker does not answer nobody waits for it again and again. */
	for (unsigned int i = 0; i < 3; i++) {
		const ns_t before = fake.now;

		control_poll(fake.c, fake.now);
		assert_in_range(fake.now - before, 0, TIME_NS_PER_S);
	}
	fake_hear_again();
	assert_int_equal(how_many(), 0);
}

#define WITH_FAKE(f) cmocka_unit_test_setup_teardown(f, fake_setup, fake_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_FAKE(what_could_not_be_made),
		WITH_FAKE(what_somebody_destroys),
		WITH_FAKE(what_a_connection_leaves),
	};

	return cmocka_run_group_tests(tests, fake_eal, fake_eal_end);
}
