/* SPDX-License-Identifier: BSD-3-Clause */
/* Queue pairs: states, and what a transition needs. Names of tests begin with the rule's id. */
#include "qp17.h"

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
	assert_int_equal(rpc_code("qp_destroy", "{\"qp_num\":17}"), REFUSED(EBUSY));
	fake.deaf = false;
	fake.step = 1000;
	fake.env.pump(NULL);
	control_poll(fake.c, fake.now);
	json_decref(rpc_ok("qp_destroy", "{\"qp_num\":17}"));
	assert_int_equal(rpc_code("qp_query", "{\"qp_num\":17}"), REFUSED(ENOENT));
}

/* A QP whose ATTACH was not answered may be its worker's: neither its fields nor its place move. */
static void
what_a_silent_worker_may_have_is_left_alone(void **state UNUSED)
{
	struct qp *qp;
	uint8_t worker;

	bring_to("INIT");
	qp = qp_lookup(fake.env.qps, 17);
	assert_non_null(qp);
	worker = qp->worker;
	modify("\"qp_state\":\"RESET\"");
	fake.step = 10 * TIME_NS_PER_MS;
	fake.deaf = true;
	assert_int_equal(rpc_code("qp_modify", with_qpn(TO_INIT)), REFUSED(ETIMEDOUT));
	qp->hot[0] = 5; /* it has the QP by now, and counts */
	qp->flags |= QPF_LAST_WQE;
	assert_int_equal(rpc_code("qp_modify", with_qpn("\"qp_state\":\"RESET\"")), REFUSED(EBUSY));
	assert_non_null(strstr(rpc_message(), "has not answered"));
	assert_int_equal(rpc_code("qp_modify", with_qpn(TO_INIT)), REFUSED(EBUSY));
	assert_int_equal(rpc_code("qp_modify", with_qpn("\"worker\":1")), REFUSED(EBUSY));
	json_decref(rpc_ok("qp_query", "{\"qp_num\":17}"));
	assert_int_equal(qp->hot[0], 5);
	assert_true((qp->flags & QPF_LAST_WQE) != 0);
	assert_int_equal(qp->worker, worker);

	fake.deaf = false;
	fake.step = 1000;
	fake.env.pump(NULL);
	control_poll(fake.c, fake.now);
	modify(TO_INIT);
	assert_state("INIT");
}

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
		WITH_FAKE(what_a_silent_worker_may_have_is_left_alone),
	};

	return cmocka_run_group_tests(tests, fake_eal, fake_eal_end);
}
