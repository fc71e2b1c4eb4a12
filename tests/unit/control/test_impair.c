/* SPDX-License-Identifier: BSD-3-Clause */
/* impair_set, impair_get, impair_log: what goes to the port, what comes back, what is refused. */
#include "fake.h"

#include <errno.h>

/* A port that keeps what it was given and decides what the test says. */
static struct {
	struct impair_conf conf;
	struct impair_rule rules[8];
	struct impair_counters counters;
	uint32_t sets;
	int rc;
	uint64_t decided;
	uint32_t kept; /* of them, the newest */
	bool any;
} impaired;

static int
impaired_set(void *ctx, const struct impair_conf *conf)
{
	assert_ptr_equal(ctx, &impaired);
	impaired.sets++;
	if (impaired.rc != 0)
		return impaired.rc;
	assert_true(conf->n_rules <= ARRAY_LEN(impaired.rules));
	impaired.any = true;
	impaired.conf = *conf;
	impaired.conf.rules = impaired.rules;
	if (conf->n_rules != 0)
		memcpy(impaired.rules, conf->rules, conf->n_rules * sizeof(*conf->rules));
	return 0;
}

static const struct impair_conf *
impaired_get(void *ctx, struct impair_counters *out)
{
	assert_ptr_equal(ctx, &impaired);
	*out = impaired.counters;
	return impaired.any ? &impaired.conf : NULL;
}

static uint32_t
impaired_log(void *ctx, uint64_t *from, struct impair_rule *out, uint32_t max)
{
	uint64_t first = *from;
	uint32_t n = 0;

	assert_ptr_equal(ctx, &impaired);
	if (first > impaired.decided)
		first = impaired.decided;
	if (first + impaired.kept < impaired.decided)
		first = impaired.decided - impaired.kept;
	for (; first + n < impaired.decided && n < max; n++)
		out[n] = (struct impair_rule){ .action = IMPAIR_DROP,
			.given = IMPAIR_GIVEN_QP_NUM | IMPAIR_GIVEN_PSN | IMPAIR_GIVEN_OPCODE,
			.qp_num = 17,
			.psn = (uint32_t)(first + n),
			.opcode = 4,
			.times = 1 };
	*from = first + n;
	return n;
}

static const struct impair_ops ops = {
	.set = impaired_set, .get = impaired_get, .log = impaired_log
};

static int
setup(void **state)
{
	memset(&impaired, 0, sizeof(impaired));
	fake_port_impair = &ops;
	fake_port_impair_ctx = &impaired;
	return fake_setup(state);
}

static int
teardown(void **state)
{
	fake_port_impair = NULL;
	return fake_teardown(state);
}

static void
rules_go_to_the_port_and_are_told(void **state UNUSED)
{
	json_t *o = rpc_ok("impair_get", NULL);
	json_t *want;

	assert_int_equal(json_array_size(o), 1);
	assert_string_equal(text_of(json_array_get(o, 0), "port"), "p0");
	assert_true(json_is_null(json_object_get(json_array_get(o, 0), "impair")));
	json_decref(o);

	impaired.counters.dropped = 5;
	o = rpc_ok("impair_set", "{\"port\":\"p0\",\"impair\":{\"seed\":9,\"rules\":["
				 "{\"action\":\"drop\",\"qp_num\":17,\"psn\":42,\"times\":1},"
				 "{\"action\":\"delay\",\"delay_us\":5}]}}");
	assert_int_equal(impaired.conf.seed, 9);
	assert_int_equal(impaired.conf.held_max, IMPAIR_HELD_DEFAULT);
	assert_int_equal(impaired.conf.n_rules, 2);
	assert_int_equal(impaired.rules[0].psn, 42);
	assert_int_equal(impaired.rules[1].delay_us, 5);
	want = json_loads("{\"seed\":9,\"held_max\":2048,\"log_size\":4096,\"rules\":["
			  "{\"action\":\"drop\",\"qp_num\":17,\"psn\":42,\"times\":1},"
			  "{\"action\":\"delay\",\"delay_us\":5}]}",
		0, NULL);
	assert_true(json_equal(json_object_get(o, "impair"), want));
	assert_int_equal(number_of(json_object_get(o, "counters"), "dropped"), 5);
	json_decref(o);

	o = rpc_ok("impair_get", "{\"port\":\"p0\"}");
	assert_true(json_equal(json_object_get(o, "impair"), want));
	json_decref(want);
	json_decref(o);
}

static void
null_takes_the_rules_away(void **state UNUSED)
{
	json_decref(rpc_ok(
		"impair_set", "{\"port\":\"p0\",\"impair\":{\"rules\":[{\"action\":\"drop\"}]}}"));
	assert_int_equal(impaired.conf.n_rules, 1);
	json_decref(rpc_ok("impair_set", "{\"port\":\"p0\",\"impair\":null}"));
	assert_int_equal(impaired.sets, 2);
	assert_int_equal(impaired.conf.n_rules, 0);
}

/* What impair_log tells can be given to impair_set as it stands, and decides the same. */
static void
the_log_is_a_script(void **state UNUSED)
{
	json_t *o, *params;
	char *text;

	impaired.decided = impaired.kept = 3;
	o = rpc_ok("impair_log", "{\"port\":\"p0\"}");
	assert_int_equal(number_of(o, "next"), 3);
	assert_int_equal(number_of(o, "lost"), 0);
	params = json_pack("{s:s, s:O}", "port", "p0", "impair", json_object_get(o, "impair"));
	text = json_dumps(params, JSON_COMPACT);
	json_decref(o);
	json_decref(params);
	json_decref(rpc_ok("impair_set", text));
	free(text);
	assert_int_equal(impaired.conf.n_rules, 3);
	for (uint32_t i = 0; i < 3; i++) {
		assert_int_equal(impaired.rules[i].action, IMPAIR_DROP);
		assert_int_equal(impaired.rules[i].qp_num, 17);
		assert_int_equal(impaired.rules[i].psn, i);
		assert_int_equal(impaired.rules[i].opcode, 4);
		assert_int_equal(impaired.rules[i].times, 1);
	}
}

static void
the_log_goes_on_and_says_what_is_gone(void **state UNUSED)
{
	static const struct {
		const char *params;
		json_int_t next, lost, first;
		size_t n;
	} rows[] = {
		{ "{\"port\":\"p0\"}", 100, 60, 60, 40 },
		{ "{\"port\":\"p0\",\"max\":10}", 70, 60, 60, 10 },
		{ "{\"port\":\"p0\",\"from\":70,\"max\":10}", 80, 0, 70, 10 },
		{ "{\"port\":\"p0\",\"from\":50,\"max\":1}", 61, 10, 60, 1 },
		{ "{\"port\":\"p0\",\"from\":100}", 100, 0, 0, 0 },
	};

	impaired.decided = 100;
	impaired.kept = 40;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		json_t *o = rpc_ok("impair_log", rows[i].params);
		json_t *rules = json_object_get(json_object_get(o, "impair"), "rules");

		print_message("# %s\n", rows[i].params);
		assert_int_equal(number_of(o, "next"), rows[i].next);
		assert_int_equal(number_of(o, "lost"), rows[i].lost);
		assert_int_equal(json_array_size(rules), rows[i].n);
		if (rows[i].n != 0)
			assert_int_equal(number_of(json_array_get(rules, 0), "psn"), rows[i].first);
		json_decref(o);
	}
}

static void
what_is_wrong_changes_nothing(void **state UNUSED)
{
	static const struct {
		const char *method, *params, *says;
	} rows[] = {
		{ "impair_set", "{\"port\":\"p0\"}", "impair: is missing" },
		{ "impair_set", "{\"impair\":null}", "port: is missing" },
		{ "impair_set", "{\"port\":\"p9\",\"impair\":null}", "no port \"p9\"" },
		{ "impair_set",
			"{\"port\":\"p0\",\"impair\":{\"rules\":[{\"action\":\"drop\","
			"\"probability\":2}]}}",
			"impair/rules/0/probability: must be a number from 0.0 to 1.0, not 2" },
		{ "impair_set", "{\"port\":\"p0\",\"impair\":{\"rules\":[{\"action\":\"delay\"}]}}",
			"impair/rules/0: delay needs" },
		{ "impair_get", "{\"port\":\"p9\"}", "no port \"p9\"" },
		{ "impair_log", "{}", "port: is missing" },
		{ "impair_log", "{\"port\":\"p0\",\"max\":0}", "max: must be" },
		{ "impair_log", "{\"port\":\"p9\"}", "no port \"p9\"" },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		print_message("# %s %s\n", rows[i].method, rows[i].params);
		assert_int_equal(rpc_code(rows[i].method, rows[i].params), -32602);
		assert_non_null(strstr(rpc_message(), rows[i].says));
	}
	assert_int_equal(impaired.sets, 0);

	impaired.rc = -ENOMEM;
	assert_int_equal(
		rpc_code("impair_set", "{\"port\":\"p0\",\"impair\":null}"), -32000 - ENOMEM);
}

static void
a_port_without_it_says_so(void **state UNUSED)
{
	json_t *o = rpc_ok("impair_get", NULL);

	assert_true(json_is_null(json_object_get(json_array_get(o, 0), "impair")));
	json_decref(o);
	assert_int_equal(
		rpc_code("impair_set", "{\"port\":\"p0\",\"impair\":null}"), -32000 - ENOTSUP);
	assert_int_equal(rpc_code("impair_log", "{\"port\":\"p0\"}"), -32000 - ENOTSUP);
}

#define WITH_WIRE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_WIRE(rules_go_to_the_port_and_are_told),
		WITH_WIRE(null_takes_the_rules_away),
		WITH_WIRE(the_log_is_a_script),
		WITH_WIRE(the_log_goes_on_and_says_what_is_gone),
		WITH_WIRE(what_is_wrong_changes_nothing),
		cmocka_unit_test_setup_teardown(
			a_port_without_it_says_so, fake_setup, fake_teardown),
	};

	return cmocka_run_group_tests(tests, fake_eal, fake_eal_end);
}
