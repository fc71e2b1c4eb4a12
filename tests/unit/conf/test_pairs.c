/* SPDX-License-Identifier: BSD-3-Clause */
/* Two ports on one wire in memory: what the start would refuse, --check finds. */
#include "conf_test.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "conf_pair.h"

#define TEXT                                                          \
	"{\"version\":1,\"lcores\":{\"workers\":[1,2]},\"ports\":["   \
	"{\"name\":\"p0\",\"device\":\"%s\",\"ipv4\":\"10.0.0.1\"%s}" \
	",{\"name\":\"p1\",\"device\":\"%s\",\"ipv4\":\"10.0.0.2\"%s}]}"

static const struct {
	const char *device[2];
	const char *more[2];
	const char *pointer; /* NULL: all is well */
	const char *says;
} rows[] = {
	{ { "net_pair0a", "net_pair0b" }, { "", "" }, NULL, NULL },
	{ { "net_pair999b", "net_pair999a" }, { "", "" }, NULL, NULL },
	{ { "net_pair1000a", "net_pairs" }, { "", "" }, NULL, NULL }, /* not ours */
	{ { "net_pair0a", "net_tap0" }, { "", "" }, "/ports/0/device", "net_pair0b, is no port" },
	{ { "net_tap0", "net_pair7b" }, { "", "" }, "/ports/1/device", "net_pair7a, is no port" },
	{ { "net_pair0a", "net_pair0b" }, { "", ",\"rx_queues\":2" }, "/ports/1/rx_queues",
		"2, but p0, the other end of the wire, has 1" },
	/* What a fault hides is not missing. */
	{ { "net_pair0a", "a b" }, { "", "" }, "/ports/1/device", "must be" },
};

static void
each_is_found(void **state UNUSED)
{
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct conf_errors err;
		struct conf *c = NULL;
		char text[512];
		int rc;

		snprintf(text, sizeof(text), TEXT, rows[i].device[0], rows[i].more[0],
			rows[i].device[1], rows[i].more[1]);
		conf_errors_init(&err);
		rc = conf_load_text(text, strlen(text), &c, &err);
		errors_show(&err);
		if (rows[i].pointer == NULL) {
			assert_int_equal(rc, 0);
			assert_int_equal(conf_pair_far(c, 0), i < 2 ? 1 : -1);
			assert_int_equal(conf_pair_far(c, 1), i < 2 ? 0 : -1);
			conf_free(c);
		} else {
			assert_int_equal(rc, -EINVAL);
			assert_int_equal(err.n_errors, 1);
			assert_string_equal(err.v[0].pointer, rows[i].pointer);
			assert_non_null(strstr(err.v[0].message, rows[i].says));
		}
		conf_errors_free(&err);
	}
}

/* Two workers. Without a second queue port 0 is worker 0's alone, and port 1 worker 1's. */
#define PORT_0 "{\"name\":\"p0\",\"device\":\"%s0a\",\"ipv4\":\"10.0.0.1\",\"rx_queues\":%d},"
#define PORT_1 "{\"name\":\"p1\",\"device\":\"%s0b\",\"ipv4\":\"10.0.0.2\",\"rx_queues\":%d}"
#define QPS                                                                 \
	"{\"version\":1,\"lcores\":{\"workers\":[1,2]},\"pds\":[\"pd0\"],"  \
	"\"cqs\":[{\"name\":\"cq0\"}],\"ports\":[" PORT_0 PORT_1 "],"       \
	"\"qps\":[{\"qp_type\":\"RC\",\"pd\":\"pd0\",\"send_cq\":\"cq0\","  \
	"\"recv_cq\":\"cq0\",\"dest_qp_num\":18,\"rq_psn\":0,\"sq_psn\":0," \
	"\"ah_attr\":{\"dest_ip\":\"10.0.0.9\"},%s}]}"
#define ALT "\"alt_ah_attr\":{\"dest_ip\":\"10.0.0.9\"},\"alt_port\":\"p0\""

static void
a_worker_sends_where_its_qps_are(void **state UNUSED)
{
	static const struct {
		const char *device;
		int queues;
		const char *more;
		const char *pointer;
		const char *says;
	} cases[] = {
		{ "net_pair", 1, "\"port\":\"p1\",\"worker\":1", NULL, NULL },
		{ "net_pair", 1, "\"port\":\"p1\",\"worker\":0", "/qps/0/worker",
			"0 cannot send on port \"p1\", which has 1 rx_queues: give it more, or use "
			"worker 1" },
		{ "net_tap", 1, "\"port\":\"p0\",\"worker\":1", "/qps/0/worker",
			"or use worker 0" },
		{ "net_pair", 2, "\"port\":\"p1\",\"worker\":1", NULL, NULL },
		{ "net_pair", 2, "\"port\":\"p1\",\"worker\":0", NULL, NULL },
		/* The driver knows. */
		{ "0000:01:00.", 1, "\"port\":\"p1\",\"worker\":0", NULL, NULL },
		{ "net_pair", 1, "\"port\":\"p1\",\"qp_state\":\"RTS\"," ALT, "/qps/0/alt_port",
			"no worker can send on both port \"p1\" and port \"p0\"" },
		{ "net_pair", 1, "\"port\":\"p1\",\"worker\":1,\"qp_state\":\"RTR\"," ALT,
			"/qps/0/alt_port",
			"worker 1, which has the QP, cannot send on port \"p0\"" },
		/* It has the path later, or never. */
		{ "net_pair", 1, "\"port\":\"p1\",\"qp_state\":\"INIT\"," ALT, NULL, NULL },
		{ "net_pair", 1, "\"port\":\"p0\",\"qp_state\":\"RTS\"," ALT, NULL, NULL },
		{ "net_pair", 2, "\"port\":\"p1\",\"worker\":1,\"qp_state\":\"RTS\"," ALT, NULL,
			NULL },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct conf_errors err;
		struct conf *c = NULL;
		char text[1024];
		int rc;

		snprintf(text, sizeof(text), QPS, cases[i].device, cases[i].queues, cases[i].device,
			cases[i].queues, cases[i].more);
		print_message("# %s\n", text);
		conf_errors_init(&err);
		rc = conf_load_text(text, strlen(text), &c, &err);
		errors_show(&err);
		assert_int_equal(rc, cases[i].pointer == NULL ? 0 : -EINVAL);
		if (cases[i].pointer != NULL) {
			assert_int_equal(err.n_errors, 1);
			assert_string_equal(err.v[0].pointer, cases[i].pointer);
			assert_non_null(strstr(err.v[0].message, cases[i].says));
		}
		conf_free(c);
		conf_errors_free(&err);
	}
}

/* Before, such a file was good, and each connection was refused. */
static void
a_worker_sends_where_its_listener_is(void **state UNUSED)
{
	static const char file[] =
		"{\"version\":1,\"lcores\":{\"workers\":[1,2]},\"pds\":[\"pd0\"],"
		"\"cqs\":[{\"name\":\"cq0\"}],\"ports\":[" PORT_0 PORT_1 "],"
		"\"cm\":{\"listen\":[{\"name\":\"l\",\"port\":\"p1\",\"service_port\":1,"
		"\"qp\":{\"qp_type\":\"RC\",\"pd\":\"pd0\",\"send_cq\":\"cq0\","
		"\"recv_cq\":\"cq0\",\"worker\":%d}}]}}";

	for (int worker = 0; worker < 2; worker++) {
		struct conf_errors err;
		struct conf *c = NULL;
		char text[1024];
		int rc;

		snprintf(text, sizeof(text), file, "net_pair", 1, "net_pair", 1, worker);
		conf_errors_init(&err);
		rc = conf_load_text(text, strlen(text), &c, &err);
		errors_show(&err);
		assert_int_equal(rc, worker == 1 ? 0 : -EINVAL); /* p1 is the second one's */
		if (worker == 0) {
			assert_int_equal(err.n_errors, 1);
			assert_string_equal(err.v[0].pointer, "/cm/listen/0/qp/worker");
			assert_non_null(strstr(err.v[0].message, "or use worker 1"));
		}
		conf_free(c);
		conf_errors_free(&err);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_is_found),
		cmocka_unit_test(a_worker_sends_where_its_qps_are),
		cmocka_unit_test(a_worker_sends_where_its_listener_is),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
