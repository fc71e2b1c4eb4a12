/* SPDX-License-Identifier: BSD-3-Clause */
/* JSON-RPC 2.0: lines that are wrong change nothing; methods, batches, notifications. */
#include "fake.h"

#include <stdio.h>

#define R(rest) "{\"jsonrpc\":\"2.0\",\"id\":1," rest "}"

static const struct {
	const char *line;
	int code;
} bad_lines[] = {
	{ "", -32700 },
	{ "{", -32700 },
	{ "nonsense", -32700 },
	{ "{\"jsonrpc\":\"2.0\",\"method\":\"version\",\"id\":1} x", -32700 },
	{ "{\"jsonrpc\":\"2.0\",\"id\":1,\"id\":2,\"method\":\"version\"}", -32700 },
	{ "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xff\xfe\"}", -32700 },
	{ "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"a\\u0000b\"}", -32700 },
	{ "{\"jsonrpc\":\"2.0\",\"id\":99999999999999999999,\"method\":\"version\"}", -32700 },
	{ "1", -32600 },
	{ "null", -32600 },
	{ "\"version\"", -32600 },
	{ "[]", -32600 },
	{ "{}", -32600 },
	{ "{\"id\":1,\"method\":\"version\"}", -32600 },
	{ "{\"jsonrpc\":\"1.0\",\"id\":1,\"method\":\"version\"}", -32600 },
	{ "{\"jsonrpc\":2,\"id\":1,\"method\":\"version\"}", -32600 },
	{ "{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":\"version\"}", -32600 },
	{ "{\"jsonrpc\":\"2.0\",\"id\":[1],\"method\":\"version\"}", -32600 },
	{ "{\"jsonrpc\":\"2.0\",\"id\":true,\"method\":\"version\"}", -32600 },
	{ R("\"method\":7"), -32600 },
	{ R("\"method\":null"), -32600 },
	{ R("\"method\":\"version\",\"params\":7"), -32600 },
	{ R("\"method\":\"version\",\"params\":\"x\""), -32600 },
	{ R("\"method\":\"nothing\""), -32601 },
	{ R("\"method\":\"\""), -32601 },
	{ R("\"method\":\"version \""), -32601 },
	{ R("\"method\":\"version\",\"params\":{\"x\":1}"), -32602 },
	{ R("\"method\":\"version\",\"params\":[1]"), -32602 },
	{ R("\"method\":\"qp_create\""), -32602 },
	{ R("\"method\":\"qp_create\",\"params\":{}"), -32602 },
	{ R("\"method\":\"qp_create\",\"params\":[]"), -32602 },
	{ R("\"method\":\"qp_modify\",\"params\":{}"), -32602 },
	{ R("\"method\":\"qp_modify\",\"params\":{\"qp_num\":[]}"), -32602 },
	{ R("\"method\":\"qp_query\",\"params\":{\"qp_num\":\"seventeen\"}"), -32602 },
	{ R("\"method\":\"qp_query\",\"params\":{\"qp_num\":-17}"), -32602 },
	{ R("\"method\":\"qp_query\",\"params\":{\"qp_num\":17.0}"), -32602 },
	{ R("\"method\":\"qp_query\",\"params\":{\"qp_num\":null}"), -32602 },
	{ R("\"method\":\"qp_query\",\"params\":{\"qp_num\":4294967313}"), -32602 },
	{ R("\"method\":\"qp_destroy\",\"params\":{}"), -32602 },
	{ R("\"method\":\"qp_list\",\"params\":{\"limit\":0}"), -32602 },
	{ R("\"method\":\"qp_list\",\"params\":{\"qp_state\":3}"), -32602 },
	{ R("\"method\":\"pd_create\",\"params\":{\"name\":\"\"}"), -32602 },
	{ R("\"method\":\"pd_create\",\"params\":{\"name\":\"a b\"}"), -32602 },
	{ R("\"method\":\"pd_create\",\"params\":{\"name\":5}"), -32602 },
	{ R("\"method\":\"cq_create\",\"params\":{\"name\":\"c\",\"cqe\":\"many\"}"), -32602 },
	{ R("\"method\":\"cq_create\",\"params\":{\"name\":\"c\",\"cqe\":4294967297}"), -32602 },
	{ R("\"method\":\"cq_destroy\",\"params\":{\"name\":[\"cq0\"]}"), -32602 },
	{ R("\"method\":\"mr_register\",\"params\":{\"name\":\"m\",\"pd\":\"pd0\",\"length\":-1}"),
		-32602 },
	{ R("\"method\":\"mr_read\",\"params\":{\"name\":\"m\"}"), -32602 },
	{ R("\"method\":\"poll_cq\",\"params\":{}"), -32602 },
	{ R("\"method\":\"async_events\",\"params\":{\"max\":\"all\"}"), -32602 },
	{ R("\"method\":\"async_events\",\"params\":{\"follow\":true}"), -32602 },
	{ R("\"method\":\"rx_errors\",\"params\":{\"max\":100000}"), -32602 },
	{ R("\"method\":\"trace_read\",\"params\":{\"max\":0}"), -32602 },
	{ R("\"method\":\"shutdown\",\"params\":{\"now\":true}"), -32602 },
};

static void
lines_that_are_wrong_change_nothing(void **state UNUSED)
{
	char *before, *after;

	json_decref(rpc_ok("qp_create", qp17));
	before = everything();
	for (unsigned int i = 0; i < ARRAY_LEN(bad_lines); i++) {
		json_t *v = rpc_raw(bad_lines[i].line, strlen(bad_lines[i].line));
		json_t *error = json_object_get(v, "error");

		if (error == NULL || number_of(error, "code") != bad_lines[i].code)
			fail_msg("%s: code %d", bad_lines[i].line, (int)number_of(error, "code"));
		assert_true(strlen(text_of(error, "message")) > 8);
		assert_non_null(json_object_get(v, "id"));
		json_decref(v);
	}
	after = everything();
	assert_string_equal(before, after);
	assert_false(fake.stop);
	free(before);
	free(after);
}

static void
lines_with_any_bytes(void **state UNUSED)
{
	static const char good[] = R("\"method\":\"qp_query\",\"params\":{\"qp_num\":17}");
	char line[sizeof(good)];
	uint32_t x = 12345;

	json_decref(rpc_ok("qp_create", qp17));
	for (unsigned int round = 0; round < 3000; round++) {
		memcpy(line, good, sizeof(good));
		for (unsigned int k = 0; k <= round % 3; k++) {
			x = x * 1664525 + 1013904223;
			line[(x >> 8) % (sizeof(good) - 1)] = (char)(x >> 24);
		}
		/* Whatever it is, the answer is one line of JSON, or none. */
		json_decref(rpc_raw(line, sizeof(good) - 1));
		json_decref(rpc_raw(good, round % sizeof(good)));
	}
}

static void
deep_nesting(void **state UNUSED)
{
	enum { DEEP = 100000 };
	char *line = malloc(DEEP);
	json_t *v;

	memset(line, '[', DEEP);
	v = rpc_raw(line, DEEP);
	assert_int_equal(number_of(json_object_get(v, "error"), "code"), -32700);
	json_decref(v);
	free(line);
}

static void
ids_come_back_as_they_were(void **state UNUSED)
{
	static const char *const ids[] = { "1", "-5", "\"abc\"", "1.5", "null",
		"9007199254740993" };

	for (unsigned int i = 0; i < ARRAY_LEN(ids); i++) {
		char line[128];
		json_t *v, *want = json_loads(ids[i], JSON_DECODE_ANY, NULL);

		snprintf(line, sizeof(line),
			"{\"jsonrpc\":\"2.0\",\"method\":\"version\",\"id\":%s}", ids[i]);
		v = rpc_raw(line, strlen(line));
		assert_true(json_equal(json_object_get(v, "id"), want));
		json_decref(v);
		json_decref(want);
	}
}

static void
notifications_get_no_answer(void **state UNUSED)
{
	static const char create[] =
		"{\"jsonrpc\":\"2.0\",\"method\":\"pd_create\",\"params\":{\"name\":\"quiet\"}}";
	static const char wrong[] = "{\"jsonrpc\":\"2.0\",\"method\":\"nothing\"}";

	assert_null(rpc_raw(create, sizeof(create) - 1));
	assert_null(rpc_raw(wrong, sizeof(wrong) - 1));
	json_decref(rpc_ok("pd_dealloc", "{\"name\":\"quiet\"}"));
}

static void
batches(void **state UNUSED)
{
	/* clang-format off */
	static const char line[] =
		"[" R("\"method\":\"pd_create\",\"params\":{\"name\":\"b\"}") ","
		"{\"jsonrpc\":\"2.0\",\"method\":\"pd_dealloc\",\"params\":{\"name\":\"b\"}},"
		"5," R("\"method\":\"nothing\"") "]";
	/* clang-format on */
	static const char quiet[] = "[{\"jsonrpc\":\"2.0\",\"method\":\"version\"}]";
	json_t *v = rpc_raw(line, sizeof(line) - 1);

	assert_int_equal(json_array_size(v), 3);
	assert_non_null(json_object_get(json_array_get(v, 0), "result"));
	assert_int_equal(number_of(json_object_get(json_array_get(v, 1), "error"), "code"), -32600);
	assert_int_equal(number_of(json_object_get(json_array_get(v, 2), "error"), "code"), -32601);
	json_decref(v);
	assert_null(rpc_raw(quiet, sizeof(quiet) - 1));
}

static void
all_faults_of_a_call_are_told(void **state UNUSED)
{
	static const char line[] =
		R("\"method\":\"qp_create\",\"params\":{\"qp_type\":\"RC\",\"timeout\":99,\"pd\":7,"
		  "\"send_cq\":\"cq0\",\"recv_cq\":\"cq0\",\"what\":1}");
	json_t *v = rpc_raw(line, sizeof(line) - 1);
	json_t *data = json_object_get(json_object_get(v, "error"), "data");

	assert_int_equal(json_array_size(data), 3);
	json_decref(v);
}

static bool
has(const json_t *list, const char *name)
{
	for (size_t k = 0; k < json_array_size(list); k++)
		if (strcmp(name, json_string_value(json_array_get(list, k))) == 0)
			return true;
	return false;
}

static void
the_methods(void **state UNUSED)
{
	static const char *const features[] = { "RC", "UC", "UD", "XRC", "SRQ", "MW", "APM",
		"multicast", "CM", "requester", "responder", "async_events", "clients" };
	static const char *const names[] = { "rpc_get_methods", "version", "qp_create",
		"mr_register", "cq_create", "srq_create", "pd_create", "srq_query", "srq_modify",
		"post_srq_recv", "qp_modify", "qp_query", "qp_list", "qp_destroy", "mr_deregister",
		"cq_destroy", "srq_destroy", "pd_dealloc", "mr_list", "cq_list", "srq_list",
		"port_list", "worker_list", "neighbor_list", "mr_read", "mr_write", "post_recv",
		"poll_cq", "async_events", "rx_errors", "stats", "trace_start", "trace_stop",
		"trace_read", "shutdown" };
	json_t *v = rpc_ok("rpc_get_methods", NULL);

	for (unsigned int i = 0; i < ARRAY_LEN(names); i++)
		if (!has(v, names[i]))
			fail_msg("no method %s", names[i]);
	json_decref(v);
	v = rpc_ok("version", "{}");
	for (unsigned int i = 0; i < ARRAY_LEN(features); i++)
		assert_true(has(json_object_get(v, "features"), features[i]));
	assert_string_equal(text_of(v, "name"), "rocelane");
	assert_int_equal(rpc_code("version", "{\"x\":1}"), -32602);
	assert_non_null(strstr(rpc_message(), "nothing is allowed here"));
	assert_non_null(strstr(text_of(v, "dpdk_version"), "DPDK"));
	json_decref(v);
	v = rpc_ok("worker_list", "[]");
	assert_int_equal(json_array_size(v), FAKE_WORKERS);
	assert_int_equal(number_of(json_array_get(v, 1), "lcore"), 2);
	json_decref(v);
	json_decref(rpc_ok("shutdown", NULL));
	assert_true(fake.stop);
}

#define WITH_FAKE(f) cmocka_unit_test_setup_teardown(f, fake_setup, fake_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_FAKE(lines_that_are_wrong_change_nothing),
		WITH_FAKE(lines_with_any_bytes),
		WITH_FAKE(deep_nesting),
		WITH_FAKE(ids_come_back_as_they_were),
		WITH_FAKE(notifications_get_no_answer),
		WITH_FAKE(batches),
		WITH_FAKE(all_faults_of_a_call_are_told),
		WITH_FAKE(the_methods),
	};

	return cmocka_run_group_tests(tests, fake_eal, fake_eal_end);
}
