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

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_is_found),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
