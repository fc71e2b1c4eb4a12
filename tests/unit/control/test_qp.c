/* SPDX-License-Identifier: BSD-3-Clause */
/* Queue pairs: numbers, states, attributes, queries. Names of tests begin with the rule's id. */
#include "fake.h"

#include <errno.h>
#include <stdio.h>

#define REFUSED(e)  (-32000 - (e))
#define EINVAL_CODE (-32022)

#define TO_INIT "\"qp_state\":\"INIT\",\"port\":\"p0\",\"pkey\":\"0xffff\",\"qp_access_flags\":[]"
#define AH      "\"ah_attr\":{\"dest_ip\":\"10.0.0.2\",\"dest_mac\":\"02:00:00:00:00:02\"}"
#define TO_RTR                                                                          \
	"\"qp_state\":\"RTR\"," AH ",\"path_mtu\":512,\"dest_qp_num\":18,\"rq_psn\":7," \
	"\"max_dest_rd_atomic\":2,\"min_rnr_timer\":1"
#define TO_RTS                                                                              \
	"\"qp_state\":\"RTS\",\"timeout\":10,\"retry_cnt\":1,\"rnr_retry\":2,\"sq_psn\":9," \
	"\"max_rd_atomic\":1"

static const char reset17[] =
	"{\"qp_num\":17,\"qp_type\":\"RC\",\"pd\":\"pd0\",\"send_cq\":\"cq0\","
	"\"recv_cq\":\"cq0\"}";

static char *
with_qpn(const char *rest)
{
	static char text[1024];

	snprintf(text, sizeof(text), "{\"qp_num\":17,%s}", rest);
	return text;
}

static void
modify(const char *rest)
{
	json_decref(rpc_ok("qp_modify", with_qpn(rest)));
}

static void
assert_state(const char *want)
{
	json_t *v = rpc_ok("qp_query", "{\"qp_num\":17}");

	assert_string_equal(text_of(v, "qp_state"), want);
	assert_string_equal(text_of(v, "cur_qp_state"), want);
	json_decref(v);
}

/* A QP 17 in this state, made anew. */
static void
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

/* The pairs of data.qp_transitions for RC, typed from the rules. */
static void
QP_01_legal_transitions(void **state UNUSED)
{
	static const char *const states[] = { "RESET", "INIT", "RTR", "RTS", "SQD", "ERR", "SQE" };
	static const char legal[][16] = { "RESET RESET", "RESET INIT", "INIT RESET", "INIT ERR",
		"INIT INIT", "INIT RTR", "RTR RESET", "RTR ERR", "RTR RTS", "RTS RESET", "RTS ERR",
		"RTS RTS", "RTS SQD", "SQD RESET", "SQD ERR", "SQD RTS", "SQD SQD", "ERR RESET",
		"ERR ERR" };

	for (unsigned int from = 0; from < ARRAY_LEN(states) - 1; from++) {
		for (unsigned int to = 0; to < ARRAY_LEN(states); to++) {
			char pair[16], rest[512];
			bool ok = false;

			snprintf(pair, sizeof(pair), "%s %s", states[from], states[to]);
			snprintf(rest, sizeof(rest), "\"qp_state\":\"%s\"", states[to]);
			if (strcmp(pair, "RESET INIT") == 0)
				snprintf(rest, sizeof(rest), "%s", TO_INIT);
			else if (strcmp(pair, "INIT RTR") == 0)
				snprintf(rest, sizeof(rest), "%s", TO_RTR);
			else if (strcmp(pair, "RTR RTS") == 0)
				snprintf(rest, sizeof(rest), "%s", TO_RTS);
			for (unsigned int i = 0; i < ARRAY_LEN(legal); i++)
				ok = ok || strcmp(legal[i], pair) == 0;
			bring_to(states[from]);
			if (ok) {
				modify(rest);
				assert_state(states[to]);
			} else {
				assert_int_equal(
					rpc_code("qp_modify", with_qpn(rest)), EINVAL_CODE);
				assert_non_null(strstr(rpc_message(), "qp_state"));
				assert_state(states[from]);
			}
		}
	}
}

/* Leave one attribute out in turn. */
static void
one_missing(const char *from, const char *all, const char *const *keys, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++) {
		json_t *o = json_loads(with_qpn(all), 0, NULL);
		char *text;

		bring_to(from);
		assert_int_equal(json_object_del(o, keys[i]), 0);
		text = json_dumps(o, 0);
		assert_int_equal(rpc_code("qp_modify", text), EINVAL_CODE);
		assert_non_null(strstr(rpc_message(), keys[i]));
		assert_state(from);
		free(text);
		json_decref(o);
	}
}

static void
QP_02_required_attributes(void **state UNUSED)
{
	static const char *const init[] = { "port", "pkey", "qp_access_flags" };
	static const char *const rtr[] = { "ah_attr", "path_mtu", "dest_qp_num", "rq_psn",
		"max_dest_rd_atomic", "min_rnr_timer" };
	static const char *const rts[] = { "timeout", "retry_cnt", "rnr_retry", "sq_psn",
		"max_rd_atomic" };

	one_missing("RESET", TO_INIT, init, ARRAY_LEN(init));
	one_missing("INIT", TO_RTR, rtr, ARRAY_LEN(rtr));
	one_missing("RTR", TO_RTS, rts, ARRAY_LEN(rts));
}

static void
QP_03_attributes_not_allowed(void **state UNUSED)
{
	static const struct {
		const char *from;
		const char *rest;
		const char *key;
	} rows[] = {
		{ "RESET", TO_INIT ",\"timeout\":1", "timeout" },
		{ "INIT", TO_RTR ",\"sq_psn\":1", "sq_psn" },
		{ "INIT", TO_RTR ",\"port\":\"p0\"", "port" },
		{ "RTR", TO_RTS ",\"path_mtu\":1024", "path_mtu" },
		{ "RTS", "\"rq_psn\":1", "rq_psn" },
		{ "RTS", "\"dest_qp_num\":1234", "dest_qp_num" },
		{ "RTS", "\"qp_state\":\"ERR\",\"timeout\":3", "timeout" },
		{ "RTS", "\"en_sqd_async_notify\":true", "en_sqd_async_notify" },
	};

	for (unsigned int i = 0; i < ARRAY_LEN(rows); i++) {
		bring_to(rows[i].from);
		assert_int_equal(rpc_code("qp_modify", with_qpn(rows[i].rest)), EINVAL_CODE);
		assert_non_null(strstr(rpc_message(), rows[i].key));
		assert_state(rows[i].from);
	}
}

static void
QP_04_attribute_ranges(void **state UNUSED)
{
	static const struct {
		const char *from;
		const char *rest;
		const char *key;
		int code;
	} rows[] = {
		{ "RTR", "\"timeout\":32", "timeout", EINVAL_CODE },
		{ "RTR", "\"retry_cnt\":8", "retry_cnt", EINVAL_CODE },
		{ "RTR", "\"rnr_retry\":8", "rnr_retry", EINVAL_CODE },
		{ "RTS", "\"min_rnr_timer\":32", "min_rnr_timer", EINVAL_CODE },
		{ "INIT", "\"rq_psn\":16777216", "rq_psn", EINVAL_CODE },
		{ "RTR", "\"sq_psn\":16777216", "sq_psn", EINVAL_CODE },
		{ "INIT", "\"path_mtu\":0", "path_mtu", EINVAL_CODE },
		{ "INIT", "\"path_mtu\":1000", "path_mtu", EINVAL_CODE },
		{ "RTR", "\"max_rd_atomic\":17", "max_rd_atomic", EINVAL_CODE },
		{ "INIT", "\"max_dest_rd_atomic\":129", "max_dest_rd_atomic", EINVAL_CODE },
		{ "INIT", "\"dest_qp_num\":16777216", "dest_qp_num", EINVAL_CODE },
		{ "INIT", "\"rq_psn\":-1", "rq_psn", EINVAL_CODE },
		/* These are no numbers, or no attributes. */
		{ "RTS", "\"min_rnr_timer\":\"fast\"", "min_rnr_timer", -32602 },
		{ "RTS", "\"min_rnr_timer\":1.5", "min_rnr_timer", -32602 },
		{ "RTS", "\"min_rnr_timr\":1", "min_rnr_timr", -32602 },
		{ "RTS", "\"qp_state\":\"READY\"", "qp_state", -32602 },
		{ "RTS", "\"pd\":\"pd0\"", "pd", -32602 },
	};

	for (unsigned int i = 0; i < ARRAY_LEN(rows); i++) {
		bring_to(rows[i].from);
		assert_int_equal(rpc_code("qp_modify", with_qpn(rows[i].rest)), rows[i].code);
		assert_non_null(strstr(rpc_message(), rows[i].key));
		assert_state(rows[i].from);
	}
	assert_int_equal(rpc_code("qp_modify", "{\"qp_state\":\"ERR\"}"), -32602);
	assert_int_equal(
		rpc_code("qp_modify", "{\"qp_num\":18,\"qp_state\":\"ERR\"}"), REFUSED(ENOENT));
	assert_int_equal(rpc_code("qp_query", "{\"qp_num\":16777216}"), -32602);
}

static void
QP_15_err_leaves_to_reset_only(void **state UNUSED)
{
	json_t *v;

	bring_to("ERR");
	assert_int_equal(rpc_code("qp_modify", with_qpn(TO_INIT)), EINVAL_CODE);
	assert_int_equal(rpc_code("qp_modify", with_qpn(TO_RTR)), EINVAL_CODE);
	assert_int_equal(rpc_code("qp_modify", with_qpn(TO_RTS)), EINVAL_CODE);
	modify("\"qp_state\":\"RESET\"");
	modify(TO_INIT);
	modify("\"qp_state\":\"RTR\"," AH ",\"path_mtu\":512,\"dest_qp_num\":18,\"rq_psn\":1234,"
	       "\"max_dest_rd_atomic\":2,\"min_rnr_timer\":1");
	v = rpc_ok("qp_query", "{\"qp_num\":17}");
	assert_int_equal(number_of(v, "epsn"), 1234);
	json_decref(v);
}

static void
cur_qp_state_must_be_the_present_one(void **state UNUSED)
{
	bring_to("RTS");
	assert_int_equal(
		rpc_code("qp_modify", with_qpn("\"cur_qp_state\":\"RTR\",\"min_rnr_timer\":3")),
		EINVAL_CODE);
	assert_non_null(strstr(rpc_message(), "cur_qp_state"));
	modify("\"cur_qp_state\":\"RTS\",\"min_rnr_timer\":3");
}

static void
a_worker_that_refuses_or_is_silent(void **state UNUSED)
{
	json_t *v;

	bring_to("INIT");
	fake.refuse = -EIO;
	assert_int_equal(rpc_code("qp_modify", with_qpn(TO_RTR)), REFUSED(EIO));
	assert_state("INIT");
	v = rpc_ok("qp_query", "{\"qp_num\":17}");
	assert_null(json_object_get(v, "dest_qp_num"));
	json_decref(v);

	/* A bounded wait, an error that says who, and everything works again afterwards. */
	fake.step = 10 * TIME_NS_PER_MS;
	fake.deaf = true;
	assert_int_equal(rpc_code("qp_modify", with_qpn(TO_RTR)), REFUSED(ETIMEDOUT));
	assert_non_null(strstr(rpc_message(), "worker"));
	assert_int_equal(rpc_code("qp_destroy", "{\"qp_num\":17}"), REFUSED(ETIMEDOUT));
	assert_int_equal(rpc_code("qp_destroy", "{\"qp_num\":17}"), REFUSED(EBUSY));
	fake.deaf = false;
	fake.step = 1000;
	fake.env.pump(NULL);
	control_poll(fake.c, fake.now);
	json_decref(rpc_ok("qp_destroy", "{\"qp_num\":17}"));
	assert_int_equal(rpc_code("qp_query", "{\"qp_num\":17}"), REFUSED(ENOENT));
}

static void
nothing_is_left_of_a_refused_creation(void **state UNUSED)
{
	char *before = everything(), *after;

	/* The first step of the first QP, and then the worker says nothing at all. */
	fake.refuse = -EIO;
	assert_int_equal(rpc_code("qp_create", qp17), REFUSED(EIO));
	after = everything();
	assert_string_equal(before, after);
	free(after);
	assert_null(qp_lookup(fake.env.qps, 17));

	bring_to("RESET");
	fake.refuse = -EIO;
	assert_int_equal(rpc_code("qp_modify", with_qpn(TO_INIT)), REFUSED(EIO));
	assert_state("RESET");
	assert_null(qp_lookup(fake.env.qps, 17));
	json_decref(rpc_ok("qp_destroy", "{\"qp_num\":17}"));

	fake.step = 10 * TIME_NS_PER_MS;
	fake.deaf = true;
	assert_int_equal(rpc_code("qp_create", qp17), REFUSED(ETIMEDOUT));
	fake.deaf = false;
	fake.step = 1000;
	fake.env.pump(NULL);
	control_poll(fake.c, fake.now);
	/* It was attached late: now it can be destroyed. */
	json_decref(rpc_ok("qp_destroy", "{\"qp_num\":17}"));
	after = everything();
	assert_string_equal(before, after);
	free(before);
	free(after);
}

static void
QP_19_query(void **state UNUSED)
{
	json_t *v = rpc_ok("qp_create", qp17), *ah;

	assert_string_equal(text_of(v, "qp_state"), "RTS");
	assert_int_equal(number_of(v, "timeout"), 14);
	assert_int_equal(number_of(json_object_get(v, "cap"), "max_recv_wr"), 4);
	json_decref(v);
	/* What the worker has, not what was configured. */
	qp_lookup(fake.env.qps, 17)->resp.epsn = psn(0xabc);
	qp_lookup(fake.env.qps, 17)->resp.msn = 5;
	v = rpc_ok("qp_query", "{\"qp_num\":17}");
	assert_int_equal(number_of(v, "epsn"), 0xabc);
	assert_int_equal(number_of(v, "rq_psn"), 0xabc);
	assert_int_equal(number_of(v, "msn"), 5);
	assert_int_equal(number_of(v, "sq_psn"), 200);
	assert_int_equal(number_of(v, "next_psn"), 200);
	assert_int_equal(number_of(v, "outstanding"), 0);
	assert_int_equal(number_of(v, "min_rnr_timer_us"), 640);                     /* code 12 */
	assert_true(json_real_value(json_object_get(v, "timeout_us")) == 67108.864); /* 2^14 */
	ah = json_object_get(v, "ah_attr");
	assert_string_equal(text_of(ah, "dest_ip"), "10.0.0.2");
	assert_int_equal(number_of(ah, "hop_limit"), 64);
	assert_string_equal(
		json_string_value(json_array_get(json_object_get(v, "qp_access_flags"), 0)),
		"REMOTE_READ");
	json_decref(v);
	modify("\"qp_state\":\"RESET\"");
	v = rpc_ok("qp_query", "{\"qp_num\":17}");
	assert_int_equal(number_of(v, "rq_psn"), 100);
	assert_int_equal(number_of(v, "sq_psn"), 200);
	json_decref(v);
}

static void
TMR_03_slow_timers_draw_a_warning(void **state UNUSED)
{
	json_t *v;

	bring_to("RTR");
	v = rpc_ok("qp_modify",
		with_qpn("\"qp_state\":\"RTS\",\"timeout\":0,\"retry_cnt\":1,"
			 "\"rnr_retry\":2,\"sq_psn\":9,\"max_rd_atomic\":1,\"min_rnr_timer\":0"));
	assert_int_equal(json_array_size(json_object_get(v, "warnings")), 2);
	json_decref(v);
	v = rpc_ok("qp_query", "{\"qp_num\":17}");
	assert_int_equal(number_of(v, "min_rnr_timer_us"), 655360);
	assert_true(json_is_null(json_object_get(v, "timeout_us")));
	json_decref(v);
}

static void
QP_20_numbers_are_not_used_again_soon(void **state UNUSED)
{
	static uint32_t last[FAKE_QPS];
	uint32_t previous = 0, repeats = 0;

	memset(last, 0, sizeof(last));
	for (unsigned int i = 0; i < 1000; i++) {
		json_t *v = rpc_ok("qp_create", "{\"qp_type\":\"RC\",\"pd\":\"pd0\","
						"\"send_cq\":\"cq0\",\"recv_cq\":\"cq0\"}");
		uint32_t qpn = (uint32_t)number_of(v, "qp_num");
		char text[64];

		assert_in_range(qpn, 2, 0xfffffe);
		assert_int_not_equal(last[qpn % FAKE_QPS], qpn);
		last[qpn % FAKE_QPS] = qpn;
		repeats += qpn == previous + 1;
		previous = qpn;
		json_decref(v);
		snprintf(text, sizeof(text), "{\"qp_num\":%u}", qpn);
		json_decref(rpc_ok("qp_destroy", text));
	}
	assert_true(repeats < 10); /* a counter would do it each time */
}

static void
numbers_share_the_table(void **state UNUSED)
{
	char *before, *after;
	json_t *v;

	bring_to("RESET");
	before = everything();
	assert_int_equal(rpc_code("qp_create", reset17), REFUSED(EEXIST));
	assert_int_equal(rpc_code("qp_create", "{\"qp_num\":1041,\"qp_type\":\"RC\",\"pd\":\"pd0\","
					       "\"send_cq\":\"cq0\",\"recv_cq\":\"cq0\"}"),
		REFUSED(EEXIST));
	assert_non_null(strstr(rpc_message(), "17"));
	/* 15, 16 would do, but 17 is taken: none of them is made. */
	assert_int_equal(
		rpc_code("qp_create", "{\"qp_num\":15,\"qp_type\":\"RC\",\"pd\":\"pd0\","
				      "\"send_cq\":\"cq0\",\"recv_cq\":\"cq0\",\"count\":3}"),
		REFUSED(EEXIST));
	after = everything();
	assert_string_equal(before, after);
	free(before);
	free(after);
	/* The rest of the table can be filled; then it is full. */
	v = rpc_ok("qp_create", "{\"qp_type\":\"RC\",\"pd\":\"pd0\",\"send_cq\":\"cq0\","
				"\"recv_cq\":\"cq0\",\"count\":1023,\"cap\":{\"max_recv_wr\":1,"
				"\"max_send_wr\":1}}");
	assert_int_equal(json_array_size(json_object_get(v, "qp_nums")), 1023);
	json_decref(v);
	assert_int_equal(rpc_code("qp_create", "{\"qp_type\":\"RC\",\"pd\":\"pd0\","
					       "\"send_cq\":\"cq0\",\"recv_cq\":\"cq0\"}"),
		REFUSED(ENOSPC));
}

static void
create_refusals(void **state UNUSED)
{
	static const struct {
		const char *key;
		const char *value;
		int code;
		const char *says;
	} rows[] = {
		{ "pd", "\"none\"", REFUSED(ENOENT), "pd" },
		{ "send_cq", "\"none\"", REFUSED(ENOENT), "cq" },
		{ "recv_cq", "\"none\"", REFUSED(ENOENT), "cq" },
		{ "port", "\"none\"", REFUSED(ENOENT), "port" },
		{ "srq", "\"none\"", REFUSED(ENOENT), "srq" },
		{ "worker", "2", REFUSED(EINVAL), "worker" },
		{ "path_mtu", "2048", REFUSED(EINVAL), "mtu" },
		{ "timeout", "32", -32602, "timeout" },
		{ "qp_type", "\"UD\"", -32602, "qp_type" },
		{ "qp_state", "\"ERR\"", -32602, "qp_state" },
		{ "dest_qp_num", "null", -32602, "dest_qp_num" },
		{ "cap", "{\"max_recv_sge\":17}", -32602, "cap/max_recv_sge" },
		{ "ah_attr", "{\"dest_ip\":\"10.0.0\"}", -32602, "ah_attr/dest_ip" },
	};
	char *before = everything(), *after;

	for (unsigned int i = 0; i < ARRAY_LEN(rows); i++) {
		json_t *o = json_loads(qp17, 0, NULL);
		char *text;

		json_object_set_new(
			o, rows[i].key, json_loads(rows[i].value, JSON_DECODE_ANY, NULL));
		text = json_dumps(o, 0);
		assert_int_equal(rpc_code("qp_create", text), rows[i].code);
		assert_non_null(strstr(rpc_message(), rows[i].says));
		free(text);
		json_decref(o);
	}
	after = everything();
	assert_string_equal(before, after);
	free(before);
	free(after);
}

static void
RX_LNK_02_path_mtu_against_port_mtu(void **state UNUSED)
{
	bring_to("INIT");
	assert_int_equal(
		rpc_code("qp_modify",
			with_qpn("\"qp_state\":\"RTR\"," AH ",\"path_mtu\":2048,\"dest_qp_num\":18,"
				 "\"rq_psn\":7,\"max_dest_rd_atomic\":2,\"min_rnr_timer\":1")),
		EINVAL_CODE);
	assert_non_null(strstr(rpc_message(), "path_mtu 2048"));
	assert_non_null(strstr(rpc_message(), "1500"));
	assert_state("INIT");
}

static json_t *
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

static void
WIRE_14_path_of_a_qp(void **state UNUSED)
{
	const struct qp *qp;

	/* cc.algo is not none by default: ECT(0) in place of whatever was asked for. */
	json_decref(create_with("{\"ah_attr\":{\"dest_ip\":\"10.0.0.2\",\"traffic_class\":47,"
				"\"hop_limit\":9,\"vlan\":5,\"vlan_priority\":6,"
				"\"dest_mac\":\"02:00:00:00:00:02\"}}"));
	qp = qp_lookup(fake.env.qps, 17);
	assert_int_equal(qp->attr.path.tos, 46);
	assert_int_equal(qp->attr.path.ttl, 9);
	assert_true(qp->attr.path.vlan);
	assert_int_equal(qp->attr.path.vlan_tci, 6 << 13 | 5);
	assert_memory_equal(qp->attr.path.src_ip, "\x0a\0\0\x01", 4);
	assert_memory_equal(qp->attr.path.smac, fake.addr.mac, 6);
	assert_true(qp->attr.path_resolved);
	json_decref(create_with("{\"qp_num\":19,\"knobs\":{\"cc.algo\":\"none\"},"
				"\"ah_attr\":{\"dest_ip\":\"fd00::2\",\"traffic_class\":3,"
				"\"dest_mac\":\"02:00:00:00:00:02\"}}"));
	qp = qp_lookup(fake.env.qps, 19);
	assert_int_equal(qp->attr.path.tos, 0);
	assert_true(qp->attr.path.ipv6);
	assert_memory_equal(qp->attr.path.src_ip, fake.addr.ipv6, 16);
}

static void
WIRE_15_source_ports(void **state UNUSED)
{
	json_t *v = create_with("{\"count\":200,\"qp_num\":200,\"cap\":{\"max_recv_wr\":1}}");
	uint32_t same = 0;

	json_decref(v);
	for (uint32_t qpn = 200; qpn < 400; qpn++) {
		const struct qp *qp = qp_lookup(fake.env.qps, qpn);

		assert_in_range(qp->attr.path.sport, 0xc000, 0xffff);
		assert_int_equal(qp->attr.dest_qp_num, 18 + qpn - 200);
		for (uint32_t other = 200; other < qpn; other++)
			same += qp_lookup(fake.env.qps, other)->attr.path.sport ==
				qp->attr.path.sport;
	}
	assert_true(same < 10); /* chance alone: 200 * 199 / 2 / 16384 = 1.2 */
}

static void
knobs_reach_the_qp(void **state UNUSED)
{
	const struct qp *qp;

	json_decref(
		create_with("{\"profile\":\"ernic\",\"knobs\":{\"resp.early_retry\":\"drop\","
			    "\"resp.half_window\":\"duplicate\",\"resp.class_j_ack\":\"ack\","
			    "\"resp.imm_access_status\":\"loc_access\",\"resp.credits\":\"on\","
			    "\"resp.psn_check\":\"resync\",\"ae.with_cqe\":\"on\",\"cc.cnp\":\"off\",\"cc.cnp_path\":\"control\","
			    "\"cc.cnp_interval\":7}}"));
	qp = qp_lookup(fake.env.qps, 17);
	assert_int_equal(qp->resp.knobs, RESP_KNOB_LEN_PAD_DROP | RESP_KNOB_RNR_FIRST |
						 RESP_KNOB_EARLY_DROP | RESP_KNOB_HALF_DUP |
						 RESP_KNOB_J_ACK | RESP_KNOB_IMM_LOC |
						 RESP_KNOB_CREDITS | RESP_KNOB_EVENT_WITH_CQE |
						 RESP_KNOB_RESYNC);
	assert_int_equal(qp->flags & (QPF_CHECK_SRC_MAC | QPF_REQUIRE_DF | QPF_CNP |
					     QPF_CNP_CONTROL | QPF_EVENT_WITH_CQE),
		QPF_CHECK_SRC_MAC | QPF_REQUIRE_DF | QPF_CNP_CONTROL | QPF_EVENT_WITH_CQE);
	assert_int_equal(qp->cnp_interval_ns, 7000);
	json_decref(create_with("{\"qp_num\":19}"));
	qp = qp_lookup(fake.env.qps, 19);
	assert_int_equal(qp->resp.knobs, 0);
	assert_int_equal(
		qp->flags & (QPF_CHECK_SRC_MAC | QPF_REQUIRE_DF | QPF_CNP | QPF_CNP_CONTROL),
		QPF_CNP);
	assert_int_equal(qp->cnp_interval_ns, 50000);
}

static void
recv_feed_has_a_region_of_its_own(void **state UNUSED)
{
	const struct qp *qp;
	uint8_t *host;
	uint32_t key;

	json_decref(create_with("{\"recv_feed\":{\"buffers\":8,\"size\":100}}"));
	qp = qp_lookup(fake.env.qps, 17);
	assert_true((qp->flags & QPF_RECV_FEED) != 0);
	assert_int_equal(qp->feed_buffers, 8);
	assert_int_equal(qp->feed_size, 100);
	assert_true(qp->rq.mask + 1 >= 8);
	key = qp->feed_lkey;
	assert_int_equal(
		mem_check(fake.env.mem, key, qp->pd, qp->feed_va, 800, MEM_LOCAL_WRITE, &host),
		MEM_OK);
	assert_int_equal(
		mem_check(fake.env.mem, key, qp->pd, qp->feed_va, 1, MEM_REMOTE_READ, &host),
		MEM_BAD_ACCESS);
	json_decref(rpc_ok("qp_destroy", "{\"qp_num\":17}"));
	assert_null(mem_table_find(fake.env.mem, key));
}

static void
list_filters_and_pages(void **state UNUSED)
{
	json_t *v = create_with("{\"count\":40,\"qp_num\":100,\"cap\":{\"max_recv_wr\":1}}");
	uint32_t seen = 0, after = 0;

	json_decref(v);
	json_decref(rpc_ok("qp_modify", "{\"qp_num\":105,\"qp_state\":\"ERR\"}"));
	v = rpc_ok("qp_list", "{\"qp_state\":\"ERR\"}");
	assert_int_equal(json_array_size(v), 1);
	assert_int_equal(number_of(json_array_get(v, 0), "qp_num"), 105);
	assert_int_equal(number_of(json_array_get(v, 0), "epsn"), 100);
	json_decref(v);
	for (;;) {
		char text[64];
		size_t n;

		snprintf(text, sizeof(text),
			after == 0 ? "{\"limit\":7}" : "{\"limit\":7,\"after\":%u}", after);
		v = rpc_ok("qp_list", text);
		n = json_array_size(v);
		for (size_t i = 0; i < n; i++, seen++)
			assert_int_equal(number_of(json_array_get(v, i), "qp_num"), 100 + seen);
		if (n > 0)
			after = (uint32_t)number_of(json_array_get(v, n - 1), "qp_num");
		json_decref(v);
		if (n == 0)
			break;
	}
	assert_int_equal(seen, 40);
	v = rpc_ok("qp_list", "{\"worker\":0}");
	/* Spread over the two workers. */
	assert_int_equal(json_array_size(v), 20);
	json_decref(v);
}

static void
QP_18_destroy_takes_it_from_the_worker(void **state UNUSED)
{
	json_decref(rpc_ok("qp_create", qp17));
	json_decref(rpc_ok("qp_destroy", "{\"qp_num\":17}"));
	assert_null(qp_lookup(fake.env.qps, 17));
	assert_int_equal(fake.seen[MBOX_QP_DETACH], 1);
	assert_int_equal(rpc_code("qp_destroy", "{\"qp_num\":17}"), REFUSED(ENOENT));
}

/* A completion queue knows whether all its QPs are on one worker. */
static void
cq_of_one_worker_or_several(void **state UNUSED)
{
	const char *qp = "{\"qp_num\":%d,\"qp_type\":\"RC\",\"port\":\"p0\",\"pd\":\"pd0\","
			 "\"send_cq\":\"cq0\",\"recv_cq\":\"cq0\",\"worker\":%d}";
	char text[256];
	struct qp_cq *q;

	for (int i = 0; i < 2; i++) {
		snprintf(text, sizeof(text), qp, 30 + i, 1);
		json_decref(rpc_ok("qp_create", text));
		snprintf(text, sizeof(text), "{\"qp_num\":%d," TO_INIT "}", 30 + i);
		json_decref(rpc_ok("qp_modify", text));
	}
	q = qp_lookup(fake.env.qps, 30)->recv_cq;
	assert_true(qp_cq_is_alone(q, 1));
	assert_false(qp_cq_is_alone(q, 0));
	assert_int_equal(fake.seen[MBOX_SYNC], 0);

	/* A worker does not answer: nobody may believe that it is alone, nobody is added. */
	snprintf(text, sizeof(text), qp, 32, 0);
	json_decref(rpc_ok("qp_create", text));
	fake.step = 10 * TIME_NS_PER_MS;
	fake.deaf = true;
	assert_int_equal(
		rpc_code("qp_modify", "{\"qp_num\":32," TO_INIT "}"), REFUSED(ETIMEDOUT));
	assert_false(qp_cq_is_alone(q, 1));
	assert_null(qp_lookup(fake.env.qps, 32));
	fake.deaf = false;
	fake.step = 1000;
	fake.seen[MBOX_SYNC] = 0;
	json_decref(rpc_ok("qp_modify", "{\"qp_num\":32," TO_INIT "}"));
	assert_true(fake.seen[MBOX_SYNC] >= FAKE_WORKERS);
	assert_false(qp_cq_is_alone(q, 0));
	assert_false(qp_cq_is_alone(q, 1));

	/* From then on it is as it is. */
	fake.seen[MBOX_SYNC] = 0;
	snprintf(text, sizeof(text), qp, 33, 1);
	json_decref(rpc_ok("qp_create", text));
	json_decref(rpc_ok("qp_modify", "{\"qp_num\":33," TO_INIT "}"));
	assert_int_equal(fake.seen[MBOX_SYNC], 0);
	assert_false(qp_cq_is_alone(q, 1));
}

static void
flight_recorder(void **state UNUSED)
{
	const struct trace_entry e = { .time_ns = 5,
		.qpn = 17,
		.psn = 100,
		.kind = TRACE_nak,
		.opcode = 4,
		.syndrome = 0x60,
		.rule = RULE_GAP,
		.fault = 21,
		.state = QPS_RTS };
	json_t *v;

	json_decref(rpc_ok("qp_create", qp17));
	json_decref(rpc_ok("trace_start", "{\"qp_num\":17}"));
	assert_true((qp_lookup(fake.env.qps, 17)->flags & QPF_TRACE) != 0);
	trace_put(fake.trace[1], &e);
	v = rpc_ok("trace_read", "{\"qp_num\":17}");
	assert_int_equal(json_array_size(v), 1);
	assert_string_equal(text_of(json_array_get(v, 0), "kind"), "nak");
	assert_string_equal(text_of(json_array_get(v, 0), "opcode"), "RC_SEND_ONLY");
	assert_string_equal(text_of(json_array_get(v, 0), "rule"), "RESP-SEQ-01");
	assert_string_equal(text_of(json_array_get(v, 0), "fault"), "PSN");
	json_decref(v);
	v = rpc_ok("trace_read", "{\"qp_num\":18}");
	assert_int_equal(json_array_size(v), 0);
	json_decref(v);
	json_decref(rpc_ok("trace_stop", NULL));
	assert_true((qp_lookup(fake.env.qps, 17)->flags & QPF_TRACE) == 0);
	assert_int_equal(rpc_code("trace_start", "{\"qp_num\":99}"), REFUSED(ENOENT));
}

#define WITH_FAKE(f) cmocka_unit_test_setup_teardown(f, fake_setup, fake_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_FAKE(QP_01_legal_transitions),
		WITH_FAKE(QP_02_required_attributes),
		WITH_FAKE(QP_03_attributes_not_allowed),
		WITH_FAKE(QP_04_attribute_ranges),
		WITH_FAKE(QP_15_err_leaves_to_reset_only),
		WITH_FAKE(cur_qp_state_must_be_the_present_one),
		WITH_FAKE(a_worker_that_refuses_or_is_silent),
		WITH_FAKE(nothing_is_left_of_a_refused_creation),
		WITH_FAKE(QP_19_query),
		WITH_FAKE(TMR_03_slow_timers_draw_a_warning),
		WITH_FAKE(QP_20_numbers_are_not_used_again_soon),
		WITH_FAKE(numbers_share_the_table),
		WITH_FAKE(create_refusals),
		WITH_FAKE(RX_LNK_02_path_mtu_against_port_mtu),
		WITH_FAKE(WIRE_14_path_of_a_qp),
		WITH_FAKE(WIRE_15_source_ports),
		WITH_FAKE(knobs_reach_the_qp),
		WITH_FAKE(recv_feed_has_a_region_of_its_own),
		WITH_FAKE(list_filters_and_pages),
		WITH_FAKE(QP_18_destroy_takes_it_from_the_worker),
		WITH_FAKE(cq_of_one_worker_or_several),
		WITH_FAKE(flight_recorder),
	};

	return cmocka_run_group_tests(tests, fake_eal, fake_eal_end);
}
