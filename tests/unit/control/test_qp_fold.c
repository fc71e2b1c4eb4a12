/* SPDX-License-Identifier: BSD-3-Clause */
/* Records of compact QPs: not kept while their template says it all, the same when made again. */
#include "fake.h"

#include <errno.h>
#include <stdio.h>

#include "control_state.h"

enum { FIRST = 300, COUNT = 300, PEER = 5000, TURNS = FAKE_QPS / 64 + 1 };

#define QPS(ah)                                                                                \
	"{\"version\":1,\"lcores\":{\"control\":0,\"workers\":[1,2]},"                         \
	"\"ports\":[{\"name\":\"p0\",\"device\":\"net_ring0\",\"mac\":\"02:00:00:00:00:01\","  \
	"\"ipv4\":\"10.0.0.1\",\"mtu\":1500}],\"pds\":[\"pd0\"],\"cqs\":[{\"name\":\"cq0\"}]," \
	"\"qps\":[{\"qp_num\":300,\"count\":300,\"qp_type\":\"RC\",\"port\":\"p0\","           \
	"\"pd\":\"pd0\",\"send_cq\":\"cq0\",\"recv_cq\":\"cq0\",\"qp_state\":\"RTS\","         \
	"\"path_mtu\":512,\"dest_qp_num\":5000,\"rq_psn\":7,\"sq_psn\":9,"                     \
	"\"min_rnr_timer\":1,\"ah_attr\":{\"dest_ip\":\"10.0.0.2\"" ah "}}]}"

static const char with_mac[] = QPS(",\"dest_mac\":\"02:00:00:00:00:02\"");
static const char without_mac[] = QPS("");

/** QPs of the template that have a record. */
static uint32_t
records(void)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < COUNT; i++) {
		const struct admin_slot *slot = &fake.c->admin.slots[(FIRST + i) % FAKE_QPS];

		assert_int_equal(admin_slot_qpn(slot), FIRST + i);
		n += (slot->at & 1) == 0;
	}
	return n;
}

static void
turns(void)
{
	for (uint32_t i = 0; i < TURNS; i++)
		control_poll(fake.c, fake.now);
}

static json_t *
query(uint32_t qpn)
{
	char text[64];

	snprintf(text, sizeof(text), "{\"qp_num\":%u}", qpn);
	return rpc_ok("qp_query", text);
}

/* QP-19: each has its own numbers, however often its record is made. */
static void
QP_19_made_again(void **state UNUSED)
{
	fake_start(with_mac);
	assert_int_equal(records(), 0);
	for (uint32_t round = 0; round < 2; round++) {
		for (uint32_t i = 0; i < COUNT; i += 7) {
			json_t *v = query(FIRST + i);

			assert_int_equal(number_of(v, "dest_qp_num"), PEER + i);
			assert_int_equal(number_of(v, "path_mtu"), 512);
			assert_int_equal(number_of(v, "min_rnr_timer"), 1);
			assert_string_equal(text_of(v, "qp_state"), "RTS");
			assert_string_equal(text_of(v, "cur_qp_state"), "RTS");
			assert_string_equal(
				text_of(json_object_get(v, "ah_attr"), "dest_ip"), "10.0.0.2");
			json_decref(v);
		}
		assert_int_equal(records(), (COUNT + 6) / 7);
		turns();
		assert_int_equal(records(), 0);
	}
	fake_stop();
}

/* QP-02: what was changed stays, and so does a QP that failed, or one that is traced. */
static void
QP_02_changed_ones_stay(void **state UNUSED)
{
	json_t *v;

	fake_start(with_mac);
	json_decref(rpc_ok("qp_modify", "{\"qp_num\":310,\"min_rnr_timer\":5}"));
	json_decref(rpc_ok("qp_modify", "{\"qp_num\":311,\"qp_state\":\"ERR\"}"));
	json_decref(rpc_ok("trace_start", "{\"qp_num\":312}"));
	json_decref(rpc_ok("qp_modify", "{\"qp_num\":313,\"min_rnr_timer\":1}"));
	turns();
	assert_in_range(records(), 3, 4);
	v = query(310);
	assert_int_equal(number_of(v, "min_rnr_timer"), 5);
	json_decref(v);
	v = query(311);
	assert_string_equal(text_of(v, "qp_state"), "ERR");
	json_decref(v);

	/* A number is taken whether its record is there or not. */
	assert_int_equal(rpc_code("qp_create", "{\"qp_num\":450,\"qp_type\":\"RC\",\"pd\":\"pd0\","
					       "\"send_cq\":\"cq0\",\"recv_cq\":\"cq0\"}"),
		REFUSED(EEXIST));
	json_decref(rpc_ok("qp_destroy", "{\"qp_num\":450}"));
	assert_int_equal(rpc_code("qp_query", "{\"qp_num\":450}"), REFUSED(ENOENT));
	assert_int_equal(rpc_code("qp_query", "{\"qp_num\":1474}"), REFUSED(ENOENT));
	fake_stop();
}

/* A neighbour has to find all QPs that go there. */
static void
those_with_neighbours_stay(void **state UNUSED)
{
	fake_start(without_mac);
	assert_int_equal(records(), COUNT);
	turns();
	assert_int_equal(records(), COUNT);
	fake_stop();
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(QP_19_made_again),
		cmocka_unit_test(QP_02_changed_ones_stay),
		cmocka_unit_test(those_with_neighbours_stay),
	};

	return cmocka_run_group_tests_name("control_qp_fold", tests, fake_eal, fake_eal_end);
}
