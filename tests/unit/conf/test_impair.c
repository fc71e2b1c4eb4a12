/* SPDX-License-Identifier: BSD-3-Clause */
/* A port's "impair": what is taken, what is refused where, how it is written back. */
#include "conf_test.h"

#include <errno.h>

#define HEAD \
	"{\"version\":1,\"ports\":[{\"name\":\"p\",\"device\":\"d\",\"ipv4\":\"10.0.0.1\",\"impair\":"
#define TAIL       "}]}"
#define RULE(text) "{\"rules\":[" text "]}"
#define QUEUE(rate, buffer, more) \
	"{\"bottleneck\":{\"rate\":\"" rate "\",\"buffer\":" buffer more "}}"

static int
load(const char *impair, struct conf **out, struct conf_errors *err)
{
	char *text;
	int n = asprintf(&text, "%s%s%s", HEAD, impair, TAIL);
	int ret;

	assert_true(n > 0);
	conf_errors_init(err);
	ret = conf_load_text(text, (size_t)n, out, err);
	free(text);
	return ret;
}

static struct conf *
load_good(const char *impair)
{
	struct conf_errors err;
	struct conf *c;
	int ret = load(impair, &c, &err);

	errors_show(&err);
	assert_int_equal(ret, 0);
	assert_int_equal(err.n, 0);
	conf_errors_free(&err);
	return c;
}

/* clang-format off */
static const struct {
	const char *impair;
	const char *pointer; /* behind /ports/0/impair */
	const char *says;
} faults[] = {
	{ "1", "", "must be an object (impair), not 1" },
	{ "{\"probability\":0.1}", "/probability", "unknown key" },
	{ "{\"seed\":-1}", "/seed", "must be a number from 0 to 0xffffffffffffffff, not -1" },
	{ "{\"held_max\":0}", "/held_max", "from 1 to 65536" },
	{ "{\"held_max\":65537}", "/held_max", "from 1 to 65536" },
	{ "{\"log_size\":1000}", "/log_size", "a power of two from 1 to 65536, not 1000" },
	{ "{\"log_size\":131072}", "/log_size", "from 1 to 65536" },
	{ "{\"rules\":{}}", "/rules", "must be an array" },
	{ "{\"bottleneck\":{\"rate\":\"10G\"}}", "/bottleneck/buffer", "is missing" },
	{ QUEUE("999K", "1", ""), "/bottleneck/rate", "from \"1M\" to \"1000G\"" },
	{ QUEUE("1001G", "1", ""), "/bottleneck/rate", "(decimal), not \"1001G\"" },
	{ QUEUE("10g", "1", ""), "/bottleneck/rate", "digits and K, M or G" },
	{ QUEUE("10GB", "1", ""), "/bottleneck/rate", "digits and K, M or G" },
	{ QUEUE("1G", "0", ""), "/bottleneck/buffer", "from 1 to" },
	{ QUEUE("1G", "9", ",\"kmin\":8,\"kmax\":7"), "/bottleneck", "kmax must not be less" },
	{ QUEUE("1G", "9", ",\"pmax\":1.5"), "/bottleneck/pmax", "from 0.0 to 1.0" },
	{ RULE("5"), "/rules/0", "must be an object (rule), not 5" },
	{ RULE("{}"), "/rules/0/action", "is missing: it is required and must be \"drop\", " },
	{ RULE("{\"action\":\"loose\"}"), "/rules/0/action", "\"delay\" or \"ce\", not \"loose\"" },
	{ RULE("{\"action\":\"drop\"},{\"action\":\"drop\",\"psn\":16777216}"), "/rules/1/psn",
		"from 0 to 16777215 (0xffffff), not 16777216" },
	{ RULE("{\"action\":\"drop\",\"qp_num\":16777216}"), "/rules/0/qp_num", "to 16777215" },
	{ RULE("{\"action\":\"drop\",\"opcode\":256}"), "/rules/0/opcode", "from 0 to 255" },
	{ RULE("{\"action\":\"drop\",\"packet\":0}"), "/rules/0/packet", "from 1 to" },
	{ RULE("{\"action\":\"drop\",\"frames\":\"arp\"}"), "/rules/0/frames", "\"roce\", \"other\" or \"all\"" },
	{ RULE("{\"action\":\"drop\",\"direction\":\"in\"}"), "/rules/0/direction",
		"\"any\", \"request\" or \"response\"" },
	{ RULE("{\"action\":\"drop\",\"probability\":1.01}"), "/rules/0/probability",
		"must be a number from 0.0 to 1.0, not 1.01" },
	{ RULE("{\"action\":\"drop\",\"probability\":-0.1}"), "/rules/0/probability", "not -0.1" },
	{ RULE("{\"action\":\"drop\",\"probability\":\"1%\"}"), "/rules/0/probability", "not \"1%\"" },
	{ RULE("{\"action\":\"drop\",\"probability\":null}"), "/rules/0/probability", "not null" },
	{ RULE("{\"action\":\"drop\",\"burst\":{\"p\":0.1}}"), "/rules/0/burst/r", "is missing" },
	{ RULE("{\"action\":\"drop\",\"burst\":{\"p\":0.1,\"r\":2}}"), "/rules/0/burst/r", "to 1.0, not 2" },
	{ RULE("{\"action\":\"drop\",\"burst\":{\"p\":0.1,\"r\":1,\"loss_bad\":7}}"),
		"/rules/0/burst/loss_bad", "not 7" },
	{ RULE("{\"action\":\"drop\",\"every\":0}"), "/rules/0/every", "from 1 to" },
	{ RULE("{\"action\":\"drop\",\"every\":2,\"probability\":0.5}"), "/rules/0",
		"only one of probability, burst and every" },
	{ RULE("{\"action\":\"drop\",\"psn_last\":5}"), "/rules/0", "psn_last needs psn" },
	{ RULE("{\"action\":\"drop\",\"frames\":\"other\",\"qp_num\":5}"), "/rules/0", "of RoCE packets" },
	{ RULE("{\"action\":\"delay\"}"), "/rules/0", "delay needs delay_us or jitter_us" },
	{ RULE("{\"action\":\"delay\",\"delay_us\":10000001}"), "/rules/0/delay_us", "to 10000000" },
	{ RULE("{\"action\":\"duplicate\",\"copies\":9}"), "/rules/0/copies", "from 1 to 8" },
	{ RULE("{\"action\":\"reorder\",\"distance\":256}"), "/rules/0/distance", "from 1 to 255" },
	{ RULE("{\"action\":\"reorder\",\"hold_us\":0}"), "/rules/0/hold_us", "from 1 to 10000000" },
	{ RULE("{\"action\":\"corrupt\",\"offset\":65536}"), "/rules/0/offset", "from 0 to 65535" },
	{ RULE("{\"action\":\"corrupt\",\"bits\":9}"), "/rules/0/bits", "from 1 to 8" },
	{ RULE("{\"action\":\"corrupt\",\"xor\":1}"), "/rules/0", "xor needs offset" },
	{ RULE("{\"action\":\"corrupt\",\"xor\":256,\"offset\":1}"), "/rules/0/xor", "from 1 to 255" },
	{ RULE("{\"action\":\"drop\",\"probabilty\":0.1}"), "/rules/0/probabilty",
		"did you mean \"probability\"?" },
};
/* clang-format on */

/* One fault each, at its place: what a range refuses is not refused by a relation again. */
static void
each_fault_is_named(void **state UNUSED)
{
	for (size_t i = 0; i < ARRAY_LEN(faults); i++) {
		struct conf_errors err;
		struct conf *c = NULL;
		char pointer[128];
		int ret = load(faults[i].impair, &c, &err);

		print_message("# %s\n", faults[i].impair);
		errors_show(&err);
		assert_int_equal(ret, -EINVAL);
		assert_null(c);
		assert_int_equal(err.n_errors, 1);
		snprintf(pointer, sizeof(pointer), "/ports/0/impair%s", faults[i].pointer);
		assert_string_equal(err.v[0].pointer, pointer);
		assert_non_null(strstr(err.v[0].message, faults[i].says));
		conf_errors_free(&err);
	}
}

static void
left_out_null_and_empty(void **state UNUSED)
{
	struct conf *c = load_good("null");

	assert_int_equal(c->ports[0].given & CONF_PORT_IMPAIR, 0);
	conf_free(c);
	c = load_good("{}");
	assert_int_equal(c->ports[0].given & CONF_PORT_IMPAIR, CONF_PORT_IMPAIR);
	assert_int_equal(c->ports[0].impair.seed, 0);
	assert_int_equal(c->ports[0].impair.held_max, 2048);
	assert_int_equal(c->ports[0].impair.log_size, 4096);
	assert_int_equal(c->ports[0].impair.n_rules, 0);
	conf_free(c);
}

static void
every_key_reaches_its_member(void **state UNUSED)
{
	struct conf *c = load_good(
		"{\"seed\":\"0xffffffffffffffff\",\"held_max\":7,\"log_size\":8,\"rules\":["
		"{\"action\":\"corrupt\",\"frames\":\"all\",\"direction\":\"response\","
		"\"qp_num\":17,\"psn\":40,\"psn_last\":\"0x2a\",\"opcode\":4,\"packet\":9,"
		"\"every\":3,\"skip\":5,\"times\":6,\"delay_us\":1,\"jitter_us\":2,\"copies\":3,"
		"\"distance\":4,\"hold_us\":5,\"offset\":0,\"bits\":2,\"xor\":129},"
		"{\"action\":\"drop\",\"probability\":0.015625},"
		"{\"action\":\"ce\",\"burst\":{\"p\":0.25,\"r\":1}},"
		"{\"action\":\"ce\",\"burst\":{\"p\":0,\"r\":0.5,\"loss_good\":0.125,"
		"\"loss_bad\":0.75}}]}");
	const struct impair_conf *im = &c->ports[0].impair;
	const struct impair_rule *r = im->rules;

	assert_true(im->seed == UINT64_MAX);
	assert_int_equal(im->held_max, 7);
	assert_int_equal(im->log_size, 8);
	assert_int_equal(im->n_rules, 4);
	assert_int_equal(r->action, IMPAIR_CORRUPT);
	assert_int_equal(r->frames, IMPAIR_FRAMES_ALL);
	assert_int_equal(r->direction, IMPAIR_RESPONSE);
	assert_int_equal(r->qp_num, 17);
	assert_int_equal(r->psn, 40);
	assert_int_equal(r->psn_last, 42);
	assert_int_equal(r->opcode, 4);
	assert_int_equal(r->packet, 9);
	assert_int_equal(r->every, 3);
	assert_int_equal(r->skip, 5);
	assert_int_equal(r->times, 6);
	assert_int_equal(r->delay_us, 1);
	assert_int_equal(r->jitter_us, 2);
	assert_int_equal(r->copies, 3);
	assert_int_equal(r->distance, 4);
	assert_int_equal(r->hold_us, 5);
	assert_int_equal(r->bits, 2);
	assert_int_equal(r->xor_mask, 129);
	assert_int_equal(r->given & (IMPAIR_GIVEN_OFFSET | IMPAIR_GIVEN_PROBABILITY),
		IMPAIR_GIVEN_OFFSET); /* 0 was written */
	assert_true(r[1].given == IMPAIR_GIVEN_PROBABILITY);
	assert_true(r[1].probability == 0.015625);
	assert_true(r[2].given == IMPAIR_GIVEN_BURST);
	assert_true(r[2].burst.p == 0.25 && r[2].burst.r == 1.0);
	assert_true(r[2].burst.loss_good == 0.0 && r[2].burst.loss_bad == 1.0);
	assert_true(r[3].burst.p == 0.0 && r[3].burst.r == 0.5);
	assert_true(r[3].burst.loss_good == 0.125 && r[3].burst.loss_bad == 0.75);
	assert_int_equal(impair_conf_check(im, NULL, 0), 0);
	conf_free(c);
}

/* As it was written: no key that nobody gave, every probability to its last bit. */
static void
written_rules_load_again(void **state UNUSED)
{
	static const char text[] =
		"{\"seed\":3,\"held_max\":64,\"log_size\":16,\"rules\":["
		"{\"action\":\"drop\",\"qp_num\":17,\"psn\":42,\"times\":1},"
		"{\"action\":\"drop\",\"probability\":0.1},"
		"{\"action\":\"ce\",\"burst\":{\"p\":0.1,\"r\":0.30000000000000004,"
		"\"loss_good\":0.0,\"loss_bad\":1.0}},"
		"{\"action\":\"corrupt\",\"offset\":0,\"xor\":255}]}";
	struct conf *c = load_good(text);
	json_t *wrote = conf_encode(&conf_table_impair, &c->ports[0].impair);
	json_t *want = json_loads(text, 0, NULL);

	assert_non_null(want);
	assert_true(json_equal(wrote, want));
	json_decref(want);
	json_decref(wrote);
	conf_free(c);
}

/* Rates are decimal, lengths are not; it is written as it was, and stands on the port, too. */
static void
a_bottleneck(void **state UNUSED)
{
	static const struct {
		const char *text;
		uint64_t rate;
		const char *wrote;
	} rates[] = { { "1000G", 1000000000000, "1000G" }, { "10G", 10000000000, "10G" },
		{ "2500M", 2500000000, "2500M" }, { "1000001", 1000001, "1000001" },
		{ "3000000K", 3000000000, "3G" } };
	static const char on_port[] = "null,\"bottleneck\":{\"rate\":\"10G\",\"buffer\":\"256K\","
				      "\"kmin\":\"40K\",\"kmax\":\"160K\",\"pmax\":0.2}";
	static const char twice[] = "{\"bottleneck\":{\"rate\":\"10G\",\"buffer\":1}},"
				    "\"bottleneck\":{\"rate\":\"10G\",\"buffer\":1}";
	const struct bottleneck_conf *b;
	struct conf_errors err;
	struct conf *c;

	for (size_t i = 0; i < ARRAY_LEN(rates); i++) {
		json_t *wrote, *o;
		char *text;

		assert_true(asprintf(&text, "{\"bottleneck\":{\"rate\":\"%s\",\"buffer\":4096}}",
				    rates[i].text) > 0);
		c = load_good(text);
		free(text);
		assert_true(c->ports[0].impair.bottleneck.rate == rates[i].rate);
		wrote = conf_encode(&conf_table_impair, &c->ports[0].impair);
		o = json_object_get(wrote, "bottleneck");
		assert_string_equal(json_string_value(json_object_get(o, "rate")), rates[i].wrote);
		assert_int_equal(json_integer_value(json_object_get(o, "buffer")), 4096);
		json_decref(wrote);
		conf_free(c);
	}
	c = load_good(on_port);
	b = &c->ports[0].bottleneck;
	assert_true((c->ports[0].given & CONF_PORT_BOTTLENECK) != 0);
	assert_true(b->rate == 10000000000 && b->buffer == 256 << 10 && b->kmin == 40 << 10 &&
		    b->kmax == 160 << 10 && b->pmax == 0.2);
	conf_free(c);
	assert_int_equal(load(twice, &c, &err), -EINVAL);
	assert_string_equal(err.v[0].pointer, "/ports/0/bottleneck");
	assert_non_null(strstr(err.v[0].message, "one or the other"));
	conf_errors_free(&err);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_fault_is_named),
		cmocka_unit_test(left_out_null_and_empty),
		cmocka_unit_test(every_key_reaches_its_member),
		cmocka_unit_test(written_rules_load_again),
		cmocka_unit_test(a_bottleneck),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
