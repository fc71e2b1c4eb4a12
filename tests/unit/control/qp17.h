/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TEST_CONTROL_QP17_H
#define TEST_CONTROL_QP17_H
/**
 * @file qp17.h  QP 17 on the way through its states, for the tests of queue pairs.
 *
 * Owner:   tests/unit/control.
 * Memory:  texts are static.
 * Depends: fake.h.
 */
#include "fake.h"

#include <errno.h>
#include <stdio.h>

#define EINVAL_CODE (-32022)

#define TO_INIT "\"qp_state\":\"INIT\",\"port\":\"p0\",\"pkey\":\"0xffff\",\"qp_access_flags\":[]"
#define AH      "\"ah_attr\":{\"dest_ip\":\"10.0.0.2\",\"dest_mac\":\"02:00:00:00:00:02\"}"
#define TO_RTR                                                                          \
	"\"qp_state\":\"RTR\"," AH ",\"path_mtu\":512,\"dest_qp_num\":18,\"rq_psn\":7," \
	"\"max_dest_rd_atomic\":2,\"min_rnr_timer\":1"
#define TO_RTS                                                                              \
	"\"qp_state\":\"RTS\",\"timeout\":10,\"retry_cnt\":1,\"rnr_retry\":2,\"sq_psn\":9," \
	"\"max_rd_atomic\":1"

UNUSED static const char reset17[] =
	"{\"qp_num\":17,\"qp_type\":\"RC\",\"pd\":\"pd0\",\"send_cq\":\"cq0\","
	"\"recv_cq\":\"cq0\"}";

static UNUSED char *
with_qpn(const char *rest)
{
	static char text[1024];

	snprintf(text, sizeof(text), "{\"qp_num\":17,%s}", rest);
	return text;
}

static UNUSED void
modify(const char *rest)
{
	json_decref(rpc_ok("qp_modify", with_qpn(rest)));
}

static UNUSED void
assert_state(const char *want)
{
	json_t *v = rpc_ok("qp_query", "{\"qp_num\":17}");

	assert_string_equal(text_of(v, "qp_state"), want);
	assert_string_equal(text_of(v, "cur_qp_state"), want);
	json_decref(v);
}

/* A QP 17 in this state, made anew. */
static UNUSED void
bring_to(const char *state)
{
	static const char *const order[] = { "RESET", "INIT", "RTR", "RTS", "SQD" };
	static const char *const steps[] = { NULL, TO_INIT, TO_RTR, TO_RTS,
		"\"qp_state\":\"SQD\"" };
	static const char destroy[] =
		"{\"jsonrpc\":\"2.0\",\"method\":\"qp_destroy\",\"params\":{\"qp_num\":17}}";

	assert_null(control_rpc(fake.c, destroy, sizeof(destroy) - 1)); /* a notification */
	json_decref(rpc_ok("qp_create", reset17));
	for (unsigned int i = 1; i < ARRAY_LEN(order); i++) {
		if (strcmp(order[i - 1], state) == 0)
			break;
		modify(steps[i]);
		if (strcmp(state, "ERR") == 0 && i == 1) {
			modify("\"qp_state\":\"ERR\"");
			break;
		}
	}
	assert_state(state);
}

static UNUSED json_t *
create_with(const char *rest)
{
	json_t *o = json_loads(qp17, 0, NULL), *more = json_loads(rest, 0, NULL), *v;
	char *text;

	json_object_update(o, more);
	text = json_dumps(o, 0);
	v = rpc_ok("qp_create", text);
	free(text);
	json_decref(o);
	json_decref(more);
	return v;
}

#define WITH_FAKE(f) cmocka_unit_test_setup_teardown(f, fake_setup, fake_teardown)

#endif
