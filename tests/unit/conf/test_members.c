/* SPDX-License-Identifier: BSD-3-Clause */
/* Members of multicast groups, and listeners: what the start would refuse, --check finds. */
#include "conf_test.h"

#include <errno.h>

#define UD(more)                                                                  \
	"{ \"qp_num\": 200, \"count\": 2, \"qp_type\": \"UD\", \"pd\": \"pd0\", " \
	"\"send_cq\": \"cq0\", \"recv_cq\": \"cq0\", \"qkey\": 1" more " } ], "
#define IN_P0     ", \"port\": \"p0\", \"qp_state\": \"INIT\""
#define GROUP(qp) "{ \"qp_num\": " qp ", \"group\": \"239.1.2.3\" }"
#define WARNED                                                      \
	"{ \"qp_num\": 300, \"qp_type\": \"RC\", \"pd\": \"pd0\", " \
	"\"send_cq\": \"cq0\", \"recv_cq\": \"cq0\", \"timeout\": 0 }, "
#define LISTEN(name, more)                                                         \
	"{ \"name\": \"" name "\", \"port\": \"p0\", \"service_port\": 7471" more  \
	", \"qp\": { \"qp_type\": \"RC\", \"pd\": \"pd0\", \"send_cq\": \"cq0\", " \
	"\"recv_cq\": \"cq0\" } }"
#define LISTEN_WARNED                                                            \
	"{ \"name\": \"w\", \"port\": \"p0\", \"service_port\": 7471, "          \
	"\"qp\": { \"qp_type\": \"RC\", \"pd\": \"pd0\", \"send_cq\": \"cq0\", " \
	"\"recv_cq\": \"cq0\", \"timeout\": 0 } }"
#define LISTEN_QP(qp)                                                   \
	"\"cm\": { \"listen\": [ { \"name\": \"l\", \"port\": \"p0\", " \
	"\"service_port\": 7471, \"qp\": { \"qp_type\": \"RC\", " qp " } } ] }"

static const struct {
	const char *text; /* in the place of the last queue pair */
	const char *pointer;
	const char *says;
} rows[] = {
	{ UD(IN_P0) "\"mcasts\": [ " GROUP("201") " ]", NULL, NULL },
	{ UD(IN_P0) "\"mcasts\": [ " GROUP("202") " ]", "/mcasts/0/qp_num", "no entry of /qps" },
	{ UD(IN_P0) "\"mcasts\": [ " GROUP("199") " ]", "/mcasts/0/qp_num", "no entry of /qps" },
	{ UD(IN_P0) "\"mcasts\": [ " GROUP("17") " ]", "/mcasts/0/qp_num", "of type RC" },
	{ UD("") "\"mcasts\": [ " GROUP("200") " ]", "/mcasts/0/qp_num", "has no port" },
	{ UD(IN_P0) "\"mcasts\": [ { \"qp_num\": 200, \"group\": \"ff02::5\" } ]",
		"/mcasts/0/group", "has no IPv6 address" },
	{ UD(IN_P0) "\"mcasts\": [ " GROUP("200") ", " GROUP("201") ", " GROUP("200") " ]",
		"/mcasts/2", "is /mcasts/0 once more" },
	/* What is only warned of has been read. */
	{ WARNED UD(IN_P0) "\"mcasts\": [ " GROUP("199") " ]", "/mcasts/0/qp_num",
		"no entry of /qps" },
	{ UD("") "\"cm\": { \"listen\": [ " LISTEN("a", "") " ] }", NULL, NULL },
	{ UD("") "\"cm\": { \"listen\": [ " LISTEN("a", "") ", " LISTEN(
		  "b", ", \"ps\": \"UDP\"") " ] }",
		NULL, NULL },
	{ UD("") "\"cm\": { \"listen\": [ " LISTEN("a", "") ", " LISTEN("b", "") " ] }",
		"/cm/listen/1/service_port", "that of /cm/listen/0" },
	{ UD("") "\"cm\": { \"listen\": [ " LISTEN("a", "") ", " LISTEN(
		  "a", ", \"ps\": \"IB\"") " ] }",
		"/cm/listen/1/name", "taken by /cm/listen/0" },
	{ UD("") "\"cm\": { \"listen\": [ " LISTEN(
		  "a", ", \"ps\": \"IB\"") ", " LISTEN_WARNED ", " LISTEN("b", "") " ] }",
		"/cm/listen/2/service_port", "that of /cm/listen/1" },
	{ UD("") LISTEN_QP("\"pd\": \"pd0\", \"send_cq\": \"cq0\", \"recv_cq\": \"cq0\", "
			   "\"port\": \"p0\""),
		NULL, NULL },
	{ UD("") LISTEN_QP("\"pd\": \"pd0\", \"send_cq\": \"cq0\", \"recv_cq\": \"cq0\", "
			   "\"port\": \"p9\""),
		"/cm/listen/0/qp/port", "is the listener's, \"p0\"" },
	{ UD("") LISTEN_QP("\"pd\": \"x\", \"send_cq\": \"cq0\", \"recv_cq\": \"cq0\""),
		"/cm/listen/0/qp/pd", "does not exist" },
	{ UD("") LISTEN_QP("\"pd\": \"pd0\", \"send_cq\": \"cq0\", \"recv_cq\": \"cq0\", "
			   "\"worker\": 63"),
		"/cm/listen/0/qp/worker", "does not exist" },
	{ UD("") LISTEN_QP("\"pd\": \"pd0\", \"send_cq\": \"x\", \"recv_cq\": \"cq0\""),
		"/cm/listen/0/qp/send_cq", "does not exist" },
	{ UD("") LISTEN_QP("\"pd\": \"pd0\", \"send_cq\": \"cq0\", \"recv_cq\": \"x\""),
		"/cm/listen/0/qp/recv_cq", "does not exist" },
	{ UD("") "\"cm\": { \"listen\": [ { \"name\": \"l\", \"port\": \"p9\", \"service_port\": 1, "
		 "\"qp\": { \"qp_type\": \"RC\", \"pd\": \"pd0\", \"send_cq\": \"cq0\", "
		 "\"recv_cq\": \"cq0\" } } ] }",
		"/cm/listen/0/port", "does not exist" },
};

static void
each_is_found(void **state UNUSED)
{
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const struct swap swap = { L_QP2, rows[i].text };
		const struct conf_error *first;
		struct conf_errors err;
		struct conf *c = NULL;
		const int rc = base_load(&swap, 1, &c, &err);

		print_message("# %s\n", rows[i].text);
		errors_show(&err);
		if (rows[i].pointer == NULL) {
			assert_int_equal(rc, 0);
			conf_free(c);
		} else {
			assert_int_equal(rc, -EINVAL);
			assert_int_equal(err.n_errors, 1);
			first = &err.v[conf_errors_first(&err)];
			assert_string_equal(first->pointer, rows[i].pointer);
			assert_non_null(strstr(first->message, rows[i].says));
		}
		conf_errors_free(&err);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_is_found),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
