/* SPDX-License-Identifier: BSD-3-Clause */
#include "conf_test.h"

#include <errno.h>

static json_t *
parse(const char *text)
{
	json_t *v = json_loads(text, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, NULL);

	assert_non_null(v);
	return v;
}

#define QP_HEAD "\"qp_type\":\"RC\",\"pd\":\"a\",\"send_cq\":\"c\",\"recv_cq\":\"c\""

/* clang-format off */
#define ALT_AH "\"alt_ah_attr\":{\"dest_ip\":\"10.0.0.3\"}"

static const struct row {
	const char *params;
	const char *pointer, *says; /* NULL: good */
} create_rows[] = {
	{ "{" QP_HEAD "}", NULL, NULL },
	{ "{" QP_HEAD ",\"qp_state\":\"RTR\",\"port\":\"p\",\"dest_qp_num\":5,\"rq_psn\":9,"
	  "\"ah_attr\":{\"dest_ip\":\"fd77::2\"}}", NULL, NULL },
	{ "{" QP_HEAD ",\"qp_state\":\"RTR\",\"port\":\"p\",\"rq_psn\":9,"
	  "\"ah_attr\":{\"dest_ip\":\"fd77::2\"}}", "/dest_qp_num", "qp_state RTR requires" },
	{ "{" QP_HEAD ",\"timeout\":32}", "/timeout", "from 0 to 31" }, /* QP-04 */
	{ "{" QP_HEAD ",\"en_sqd_async_notify\":true}", "/en_sqd_async_notify", "in a modify only" },
	{ "{" QP_HEAD ",\"alt_port\":\"p\"}", "/alt_port", "goes with alt_ah_attr" },
	{ "{" QP_HEAD ",\"alt_timeout\":3}", "/alt_timeout", "goes with alt_ah_attr" },
	{ "{" QP_HEAD ",\"alt_pkey\":3}", "/alt_pkey", "goes with alt_ah_attr" },
	{ "{" QP_HEAD "," ALT_AH ",\"path_mig_state\":\"REARM\"}", "/path_mig_state", "qp_state is RESET" },
	{ "{" QP_HEAD "," ALT_AH ",\"path_mig_state\":\"ARMED\"}", "/path_mig_state", "\"MIGRATED\" or \"REARM\"" },
	{ "{" QP_HEAD "," ALT_AH ",\"alt_port\":\"p\",\"alt_timeout\":0,\"alt_pkey\":1}", NULL, NULL },
	{ "[]", "", "must be an object (qp), not an array" },
	{ "null", "", "must be an object (qp), not null" },
}, modify_rows[] = {
	{ "{\"qp_num\":17,\"qp_state\":\"ERR\"}", NULL, NULL },
	{ "{\"qp_num\":17,\"qp_state\":\"SQD\",\"cur_qp_state\":\"RTS\",\"en_sqd_async_notify\":true}",
	  NULL, NULL },
	{ "{\"qp_state\":\"ERR\"}", "/qp_num", "is required" },
	{ "{\"qp_num\":17,\"qp_state\":\"DEAD\"}", "/qp_state", "\"SQD\", \"SQE\" or \"ERR\"" },
	{ "{\"qp_num\":17,\"pd\":\"b\"}", "/pd", "cannot be changed by a modify" },
	{ "{\"qp_num\":17,\"cap\":{}}", "/cap", "cannot be changed by a modify" },
	/* QP-04: the ranges hold for a modify as well */
	{ "{\"qp_num\":17,\"timeout\":32}", "/timeout", "from 0 to 31" },
	{ "{\"qp_num\":17,\"retry_cnt\":8}", "/retry_cnt", "from 0 to 7" },
	{ "{\"qp_num\":17,\"rnr_retry\":8}", "/rnr_retry", "from 0 to 7" },
	{ "{\"qp_num\":17,\"min_rnr_timer\":32}", "/min_rnr_timer", "from 0 to 31" },
	{ "{\"qp_num\":17,\"rq_psn\":16777216}", "/rq_psn", "16777215" },
	{ "{\"qp_num\":17,\"sq_psn\":16777216}", "/sq_psn", "16777215" },
	{ "{\"qp_num\":17,\"path_mtu\":0}", "/path_mtu", "256, 512, 1024, 2048 or 4096" },
	{ "{\"qp_num\":17,\"max_rd_atomic\":17}", "/max_rd_atomic", "from 0 to 16" },
	{ "{\"qp_num\":17,\"max_dest_rd_atomic\":17}", "/max_dest_rd_atomic", "from 0 to 16" },
	{ "{\"qp_num\":17,\"dest_qp_num\":16777216}", "/dest_qp_num", "to 16777214" },
	{ "{\"qp_num\":17,\"pkey\":\"0x8000\"}", "/pkey", "low 15 bits" },
	{ "{\"qp_num\":17," ALT_AH ",\"alt_pkey\":\"0x8000\"}", "/alt_pkey", "low 15 bits" },
	{ "{\"qp_num\":17," ALT_AH ",\"path_mig_state\":\"REARM\"}", NULL, NULL },
	{ "{\"qp_num\":17," ALT_AH ",\"alt_timeout\":32}", "/alt_timeout", "from 0 to 31" },
	{ "{\"qp_num\":17,\"ah_attr\":{\"hop_limit\":1}}", "/ah_attr/dest_ip", "is missing" },
};
/* clang-format on */

static void
check_rows(const struct row *rows, size_t n,
	int (*decode)(const json_t *, struct conf_qp *, struct conf_errors *))
{
	for (size_t i = 0; i < n; i++) {
		json_t *v = parse(rows[i].params);
		struct conf_errors err;
		struct conf_qp qp;
		char line[512];

		conf_errors_init(&err);
		print_message("# %s\n", rows[i].params);
		assert_int_equal(decode(v, &qp, &err), rows[i].pointer == NULL ? 0 : -EINVAL);
		errors_show(&err);
		assert_int_equal(err.n_errors, rows[i].pointer == NULL ? 0 : 1);
		if (rows[i].pointer != NULL) {
			assert_int_equal(conf_errors_first(&err), 0);
			assert_string_equal(err.v[0].pointer, rows[i].pointer);
			assert_non_null(strstr(err.v[0].message, rows[i].says));
			conf_error_print(&err, 0, line, sizeof(line)); /* no file, no line number */
			assert_memory_equal(line, rows[i].pointer, strlen(rows[i].pointer));
		}
		json_decref(v);
		conf_errors_free(&err);
	}
}

/* QP-04: values out of range are refused in qp_create. */
static void
qp_create_params(void **state UNUSED)
{
	check_rows(create_rows, ARRAY_LEN(create_rows), conf_decode_qp);
}

/* QP-04: and in qp_modify. */
static void
qp_modify_params(void **state UNUSED)
{
	check_rows(modify_rows, ARRAY_LEN(modify_rows), conf_decode_qp_modify);
}

/* A modify has no defaults: what is not given stays out of the mask, and is 0. */
static void
qp_modify_mask(void **state UNUSED)
{
	json_t *v = parse("{\"qp_num\":17,\"qp_state\":\"RTS\",\"sq_psn\":\"0x10\",\"timeout\":1,"
			  "\"ah_attr\":{\"dest_ip\":\"10.0.0.2\",\"dest_mac\":null}}");
	struct conf_errors err;
	struct conf_qp qp;

	conf_errors_init(&err);
	assert_int_equal(conf_decode_qp_modify(v, &qp, &err), 0);
	assert_int_equal(qp.given & CONF_QP_ATTR_MASK, 1 << 0 | 1 << 7 | 1 << 9 | 1 << 16);
	assert_int_equal(qp.qp_num, 17);
	assert_int_equal(qp.sq_psn, 16);
	assert_int_equal(qp.path_mtu, 0);
	assert_int_equal(qp.retry_cnt, 0);
	assert_int_equal(qp.ah_attr.hop_limit, 64); /* an address handle is always whole */
	assert_int_equal(qp.ah_attr.given, 0);
	json_decref(v);
	conf_errors_free(&err);
}

static void
replies_have_every_value(void **state UNUSED)
{
	json_t *v = parse(
		"{" QP_HEAD ",\"qp_state\":\"RTR\",\"port\":\"p\",\"dest_qp_num\":5,\"rq_psn\":9,"
		"\"ah_attr\":{\"dest_ip\":\"fd77::2\"},\"qp_access_flags\":[\"REMOTE_READ\"]}");
	json_t *want = parse(
		"{\"qp_num\":null," QP_HEAD ",\"qp_state\":\"RTR\",\"port\":\"p\","
		"\"srq\":null,\"sq_sig_all\":false,\"path_mtu\":1024,\"dest_qp_num\":5,\"rq_psn\":9,"
		"\"ah_attr\":{\"dest_ip\":\"fd77::2\",\"dest_mac\":null,\"traffic_class\":0,\"hop_limit\":64,"
		"\"flow_label\":0,"
		"\"vlan\":null,\"vlan_priority\":0},\"path_mig_state\":\"MIGRATED\","
		"\"timeout\":14,\"retry_cnt\":7,\"rnr_retry\":7,"
		"\"min_rnr_timer\":12,\"max_rd_atomic\":16,\"max_dest_rd_atomic\":16,\"pkey\":\"0xffff\","
		"\"qp_access_flags\":[\"REMOTE_READ\"],\"cap\":{\"max_send_wr\":128,\"max_recv_wr\":128,"
		"\"max_send_sge\":4,\"max_recv_sge\":4,\"max_inline_data\":256},\"rq_limit\":0,"
		"\"worker\":null,\"count\":1,\"recv_feed\":null,\"send_feed\":null,\"profile\":null,"
		"\"knobs\":null}");
	struct conf_errors err;
	struct conf_qp qp;
	struct conf_mr mr;
	json_t *got;

	conf_errors_init(&err);
	assert_int_equal(conf_decode_qp(v, &qp, &err), 0);
	got = conf_encode_qp(&qp);
	assert_true(json_equal(got, want));
	json_decref(got);
	json_decref(want);
	json_decref(v);

	v = parse("{\"name\":\"m\",\"pd\":\"a\",\"length\":\"64K\"}");
	assert_int_equal(conf_decode_mr(v, &mr, &err), 0);
	json_decref(v);
	mr.addr = 0xfedcba9876543210; /* what the dataplane picked */
	mr.rkey = 0x1001;
	mr.given |= CONF_MR_ADDR | CONF_MR_RKEY;
	got = conf_encode_mr(&mr);
	want = parse(
		"{\"name\":\"m\",\"pd\":\"a\",\"length\":65536,\"addr\":\"0xfedcba9876543210\","
		"\"rkey\":\"0x1001\",\"access\":[],\"fill\":\"zero\",\"remote_invalidate\":false}");
	assert_true(json_equal(got, want));
	json_decref(got);
	json_decref(want);
	conf_errors_free(&err);
}

static void
other_objects(void **state UNUSED)
{
	json_t *name = parse("{\"name\":\"x\"}"), *pd_text = parse("\"y\"");
	json_t *srq_text = parse("{\"name\":\"s\",\"pd\":\"x\",\"max_wr\":4,\"srq_limit\":5}");
	struct conf_errors err;
	struct conf_pd pd;
	struct conf_cq cq;
	struct conf_srq srq;
	json_t *got;

	conf_errors_init(&err);
	assert_int_equal(conf_decode_pd(name, &pd, &err), 0);
	assert_string_equal(pd.name, "x");
	assert_int_equal(conf_decode_pd(pd_text, &pd, &err), 0);
	assert_string_equal(pd.name, "y");
	assert_int_equal(conf_decode_cq(name, &cq, &err), 0);
	assert_int_equal(cq.cqe, 1024);
	assert_int_equal(conf_decode_srq(srq_text, &srq, &err), -EINVAL);
	assert_string_equal(err.v[0].pointer, "/srq_limit");
	got = conf_encode_pd(&pd);
	assert_string_equal(json_string_value(json_object_get(got, "name")), "y");
	json_decref(got);
	json_decref(name);
	json_decref(pd_text);
	json_decref(srq_text);
	conf_errors_free(&err);
}

/* A table of a caller's own: allocated bytes, arrays, strings, a borrowed value. */
struct mine {
	struct conf_bytes data;
	struct conf_cq *list;
	uint32_t n_list;
	char **texts;
	uint32_t n_texts;
	const json_t *any;
};

static const struct conf_field mine_rows[] = {
	{ .name = "data",
		.type = CONF_T_HEX,
		.offset = offsetof(struct mine, data),
		.max = 4,
		.flags = CONF_F_REQUIRED },
	{ .name = "list",
		.type = CONF_T_ARRAY,
		.offset = offsetof(struct mine, list),
		.n_offset = offsetof(struct mine, n_list),
		.n_max = 2,
		.sub = &conf_table_cq },
	{ .name = "texts",
		.type = CONF_T_STRINGS,
		.offset = offsetof(struct mine, texts),
		.n_offset = offsetof(struct mine, n_texts),
		.n_max = 2,
		.max = 5 },
	{ .name = "any", .type = CONF_T_JSON, .offset = offsetof(struct mine, any) },
};
static const struct conf_table mine_table = { .name = "mine",
	.fields = mine_rows,
	.n_fields = ARRAY_LEN(mine_rows),
	.size = sizeof(struct mine),
	.given_offset = CONF_NO_GIVEN };

static void
tables_of_callers(void **state UNUSED)
{
	static const struct row rows[] = {
		{ "{\"data\":\"00fFa5\",\"list\":[{\"name\":\"c\"}],\"texts\":[\"a\",\"\"],\"any\":[1]}",
			NULL, NULL },
		{ "{\"data\":\"\"}", NULL, NULL },
		{ "{\"data\":\"0\"}", "/data", "hex digits, two for each of 0 to 4 bytes" },
		{ "{\"data\":\"0g\"}", "/data", "hex digits" },
		{ "{\"data\":\"0001020304\"}", "/data", "0 to 4 bytes" },
		{ "{\"data\":7,\"texts\":[\"a\"],\"list\":[{\"name\":\"c\"}]}", "/data",
			"hex digits" },
		{ "{\"data\":\"00\",\"list\":[{\"name\":\"c\"},{\"nme\":\"c\",\"name\":\"d\"}]}",
			"/list/1/nme", "did you mean \"name\"" },
		{ "{\"data\":\"00\",\"texts\":[\"a\",\"bbbbbb\"]}", "/texts/1", "0 to 5 bytes" },
		{ "{\"data\":\"00\",\"texts\":[\"a\",\"b\",\"c\"]}", "/texts",
			"0 to 2 elements, not 3" },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		json_t *v = parse(rows[i].params);
		struct conf_errors err;
		struct mine m;
		int ret;

		conf_errors_init(&err);
		print_message("# %s\n", rows[i].params);
		ret = conf_decode(&mine_table, v, CONF_CREATE, &m, &err);
		errors_show(&err);
		assert_int_equal(ret, rows[i].pointer == NULL ? 0 : -EINVAL);
		if (rows[i].pointer != NULL) {
			assert_int_equal(err.n, 1);
			assert_string_equal(err.v[0].pointer, rows[i].pointer);
			assert_non_null(strstr(err.v[0].message, rows[i].says));
		} else if (i == 0) {
			static const uint8_t bytes[] = { 0, 0xff, 0xa5 };
			json_t *back = conf_encode(&mine_table, &m);

			assert_int_equal(m.data.len, 3);
			assert_memory_equal(m.data.data, bytes, 3);
			assert_int_equal(m.n_list, 1);
			assert_int_equal(m.list[0].cqe, 1024);
			assert_int_equal(m.n_texts, 2);
			assert_string_equal(m.texts[0], "a");
			assert_string_equal(
				json_string_value(json_object_get(back, "data")), "00ffa5");
			assert_true(json_equal(
				json_object_get(back, "any"), json_object_get(v, "any")));
			json_decref(back);
		}
		if (ret == 0)
			conf_release(&mine_table, &m);
		json_decref(v);
		conf_errors_free(&err);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(qp_create_params),
		cmocka_unit_test(qp_modify_params),
		cmocka_unit_test(qp_modify_mask),
		cmocka_unit_test(replies_have_every_value),
		cmocka_unit_test(other_objects),
		cmocka_unit_test(tables_of_callers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
