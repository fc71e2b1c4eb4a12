/* SPDX-License-Identifier: BSD-3-Clause */
/* Queue pairs: what their attributes become, and what a query tells. */
#include "qp17.h"

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

#define V4      "\"dest_ip\":\"10.0.0.2\""
#define V6      "\"dest_ip\":\"fd00::2\""
#define IN_VLAN ",\"vlan\":5"

static void
start_with_mtu(uint32_t mtu)
{
	char text[512];

	snprintf(text, sizeof(text),
		"{\"version\":1,\"lcores\":{\"control\":0,\"workers\":[1,2]},"
		"\"ports\":[{\"name\":\"p0\",\"device\":\"net_ring0\","
		"\"ipv4\":\"10.0.0.1\",\"ipv6\":\"fd00::1\",\"mtu\":%u}],"
		"\"pds\":[\"pd0\"],\"cqs\":[{\"name\":\"cq0\",\"cqe\":16}]}",
		mtu);
	fake_start(text);
}

/*
 * RX-LNK-02 at the edge. The longest packet of a path MTU of 1024 is a WRITE ONLY with immediate:
 * IP header, UDP 8, BTH 12, RETH 16, immediate 4, 1024, ICRC 4. That is 1088 with IPv4, 1108 with
 * IPv6; a frame is 14 longer, and 4 more with a VLAN tag, which the port's mtu does not count.
 */
static void
RX_LNK_02_what_just_fits(void **state UNUSED)
{
	static const struct {
		uint32_t mtu, max_frame;
		const char *ah, *says; /* NULL: it fits */
	} rows[] = {
		{ 1088, 1102, V4, NULL }, { 1087, 1102, V4, "has mtu 1087" },
		{ 1088, 1101, V4, "carries 1101" }, { 1088, 1106, V4 IN_VLAN, NULL },
		{ 1087, 1106, V4 IN_VLAN, "has mtu 1087" },
		{ 1088, 1105, V4 IN_VLAN, "carries 1105" }, { 1108, 1122, V6, NULL },
		{ 1107, 1122, V6, "has mtu 1107" }, { 1108, 1121, V6, "carries 1121" },
		{ 1108, 1126, V6 IN_VLAN, NULL }, { 1107, 1126, V6 IN_VLAN, "has mtu 1107" },
		{ 1108, 1125, V6 IN_VLAN, "carries 1125" },
		{ 1088, 0, V4, NULL }, /* the device does not say */
	};
	const uint32_t usual = fake_max_frame;

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		char text[512];

		print_message("# mtu %u frame %u %s\n", rows[i].mtu, rows[i].max_frame, rows[i].ah);
		fake_max_frame = rows[i].max_frame;
		start_with_mtu(rows[i].mtu);
		fake_max_frame = usual;
		bring_to("INIT");
		snprintf(text, sizeof(text),
			"{\"qp_num\":17,\"qp_state\":\"RTR\",\"path_mtu\":1024,"
			"\"ah_attr\":{%s,\"dest_mac\":\"02:00:00:00:00:02\"},\"dest_qp_num\":18,"
			"\"rq_psn\":7,\"max_dest_rd_atomic\":2,\"min_rnr_timer\":1}",
			rows[i].ah);
		if (rows[i].says == NULL) {
			json_decref(rpc_ok("qp_modify", text));
			assert_state("RTR");
		} else {
			assert_int_equal(rpc_code("qp_modify", text), EINVAL_CODE);
			assert_non_null(strstr(rpc_message(), rows[i].says));
			assert_state("INIT");
		}
		fake_stop();
	}
}

/* RX-LNK-02: a path that comes in SQD must fit, too; the path MTU is the one of RTR. */
static void
RX_LNK_02_another_path_in_sqd(void **state UNUSED)
{
	static const struct {
		uint32_t mtu, max_frame;
		const char *ah, *says; /* NULL: it fits */
	} rows[] = {
		{ 1088, 1102, V4, NULL },
		{ 1088, 1102, V4 IN_VLAN, "carries 1102" },
		{ 1088, 1106, V4 IN_VLAN, NULL },
		{ 1107, 1200, V6, "has mtu 1107" },
		{ 1108, 1122, V6, NULL },
		{ 1108, 1122, V6 IN_VLAN, "carries 1122" },
	};
	const uint32_t usual = fake_max_frame;

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const struct qp *qp;
		char text[512];

		print_message("# mtu %u frame %u %s\n", rows[i].mtu, rows[i].max_frame, rows[i].ah);
		fake_max_frame = rows[i].max_frame;
		start_with_mtu(rows[i].mtu);
		fake_max_frame = usual;
		json_decref(create_with("{\"path_mtu\":1024,\"ah_attr\":{" V4
					",\"dest_mac\":\"02:00:00:00:00:02\"}}"));
		modify("\"qp_state\":\"SQD\"");
		snprintf(text, sizeof(text),
			"{\"qp_num\":17,\"qp_state\":\"SQD\","
			"\"ah_attr\":{%s,\"dest_mac\":\"02:00:00:00:00:03\"}}",
			rows[i].ah);
		qp = qp_lookup(fake.env.qps, 17);
		if (rows[i].says == NULL) {
			json_decref(rpc_ok("qp_modify", text));
			assert_int_equal(qp->attr.path.dmac[5], 3);
		} else {
			assert_int_equal(rpc_code("qp_modify", text), EINVAL_CODE);
			assert_non_null(strstr(rpc_message(), rows[i].says));
			assert_int_equal(qp->attr.path.dmac[5], 2);
			assert_false(qp->attr.path.ipv6 || qp->attr.path.vlan);
		}
		assert_state("SQD");
		fake_stop();
	}
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

	json_decref(create_with(
		"{\"profile\":\"ernic\",\"knobs\":{\"resp.early_retry\":\"drop\","
		"\"resp.half_window\":\"duplicate\",\"resp.class_j_ack\":\"ack\","
		"\"resp.imm_access_status\":\"loc_access\",\"resp.credits\":\"on\","
		"\"resp.psn_check\":\"resync\",\"ae.with_cqe\":\"on\",\"cc.cnp\":\"off\",\"cc.cnp_path\":\"control\","
		"\"cc.cnp_interval\":7}}"));
	qp = qp_lookup(fake.env.qps, 17);
	assert_int_equal(qp->resp.knobs,
		RESP_KNOB_LEN_PAD_DROP | RESP_KNOB_RNR_FIRST | RESP_KNOB_EARLY_DROP |
			RESP_KNOB_HALF_DUP | RESP_KNOB_J_ACK | RESP_KNOB_IMM_LOC |
			RESP_KNOB_CREDITS | RESP_KNOB_EVENT_WITH_CQE | RESP_KNOB_RESYNC);
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
	v = rpc_ok("trace_start", NULL); /* all of them */
	assert_int_equal(json_integer_value(json_object_get(v, "qps")), 1);
	json_decref(v);
	assert_true((qp_lookup(fake.env.qps, 17)->flags & QPF_TRACE) != 0);
	assert_int_equal(rpc_code("trace_start", "{\"qp_num\":99}"), REFUSED(ENOENT));
}

/*
 * RX-ERR-04: an entry is QPN and FATAL code. data.ernic_fatal_codes has none for a SEND that is
 * longer than its receive WQE (RESP-NAK-INV-06): such a failure is no entry. The next one is.
 */
static void
RX_ERR_04_failure_without_a_code(void **state UNUSED)
{
	struct mbox_msg m = { .type = MBOX_FATAL,
		.ev = { .qpn = 17,
			.psn = 9,
			.time_ns = 8,
			.rule = RULE_INV_TOO_LONG,
			.opcode = OP_RC_SEND_LAST,
			.syndrome = 0x61 } };
	json_t *v, *f;

	json_decref(rpc_ok("qp_create", qp17));
	assert_int_equal(mbox_send_up(&fake.mbox[worker_of(17)], &m), 0);
	v = rpc_ok("qp_query", "{\"qp_num\":17}");
	f = json_object_get(v, "fatal");
	assert_non_null(f);
	assert_true(json_is_null(f));
	json_decref(v);
	m.ev.fatal = 21;
	assert_int_equal(mbox_send_up(&fake.mbox[worker_of(17)], &m), 0);
	v = rpc_ok("qp_query", "{\"qp_num\":17}");
	assert_int_equal(number_of(json_object_get(v, "fatal"), "fatal_code"), 21);
	json_decref(v);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_FAKE(QP_19_query),
		WITH_FAKE(TMR_03_slow_timers_draw_a_warning),
		WITH_FAKE(RX_LNK_02_path_mtu_against_port_mtu),
		cmocka_unit_test(RX_LNK_02_what_just_fits),
		cmocka_unit_test(RX_LNK_02_another_path_in_sqd),
		WITH_FAKE(WIRE_14_path_of_a_qp),
		WITH_FAKE(WIRE_15_source_ports),
		WITH_FAKE(knobs_reach_the_qp),
		WITH_FAKE(flight_recorder),
		WITH_FAKE(RX_ERR_04_failure_without_a_code),
	};

	return cmocka_run_group_tests(tests, fake_eal, fake_eal_end);
}
