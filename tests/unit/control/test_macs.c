/* SPDX-License-Identifier: BSD-3-Clause */
/* New MACs of neighbours, while one of the workers takes no messages. */
#include "fake.h"

#include <stdio.h>

static void
make(unsigned int qpn, unsigned int worker, const char *peer)
{
	char params[512];

	snprintf(params, sizeof(params),
		"{\"qp_num\":%u,\"worker\":%u,\"qp_type\":\"RC\",\"port\":\"p0\",\"pd\":\"pd0\","
		"\"send_cq\":\"cq0\",\"recv_cq\":\"cq0\",\"qp_state\":\"RTR\",\"dest_qp_num\":5,"
		"\"rq_psn\":0,\"ah_attr\":{\"dest_ip\":\"%s\"}}",
		qpn, worker, peer);
	json_decref(rpc_ok("qp_create", params));
}

static void
learn(const char *peer)
{
	char params[128];

	snprintf(params, sizeof(params),
		"{\"port\":\"p0\",\"ipv4\":\"%s\",\"mac\":\"02:00:00:00:00:77\"}", peer);
	json_decref(rpc_ok("neighbor_add", params));
}

/* Its queue pairs hear of it later, and the others' now: nobody waits. */
static void
a_worker_that_takes_nothing_keeps_none_from_others(void **state UNUSED)
{
	const struct mbox_msg m = { .type = MBOX_SYNC };
	uint32_t had[FAKE_WORKERS];
	ns_t before;

	make(21, 0, "10.0.0.77");
	make(22, 1, "10.0.0.77");
	make(23, 0, "10.0.0.78");
	make(24, 1, "10.0.0.79");
	for (unsigned int w = 0; w < FAKE_WORKERS; w++)
		had[w] = fake.seen_by[w][MBOX_QP_MODIFY];
	while (mbox_send_down(&fake.mbox[0], &m) == 0)
		;
	fake.deaf_one[0] = true;
	learn("10.0.0.77");
	learn("10.0.0.78");
	learn("10.0.0.79");
	before = fake.now;
	for (int i = 0; i < 4; i++)
		control_poll(fake.c, fake.now);
	assert_true(fake.now - before < TIME_NS_PER_S);
	json_decref(rpc_ok("qp_query", "{\"qp_num\":22}")); /* behind what worker 1 was told */
	assert_int_equal(fake.seen_by[1][MBOX_QP_MODIFY] - had[1], 2);
	assert_int_equal(fake.seen_by[0][MBOX_QP_MODIFY] - had[0], 0);
	fake.deaf_one[0] = false;
	fake_hear_again();
	assert_int_equal(fake.seen_by[0][MBOX_QP_MODIFY] - had[0], 2);
	assert_int_equal(fake.seen_by[1][MBOX_QP_MODIFY] - had[1], 2);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_worker_that_takes_nothing_keeps_none_from_others,
			fake_setup, fake_teardown),
	};

	return cmocka_run_group_tests_name("macs", tests, fake_eal, fake_eal_end);
}
