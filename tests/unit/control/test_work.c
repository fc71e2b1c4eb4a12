/* SPDX-License-Identifier: BSD-3-Clause */
/* Receive work and completions. */
#include "fake.h"

#include <errno.h>
#include <stdio.h>

#include "admin_ah.h"
#include "control_state.h"

#define WR(id) "{\"wr_id\":" #id ",\"sg_list\":[{\"mr\":\"m\",\"offset\":8,\"length\":16}]}"

static int
setup(void **state)
{
	fake_setup(state);
	json_decref(rpc_ok("mr_register",
		"{\"name\":\"m\",\"pd\":\"pd0\",\"length\":64,"
		"\"addr\":\"0x1000\",\"rkey\":\"0x77\",\"access\":[\"LOCAL_WRITE\"]}"));
	json_decref(rpc_ok("qp_create", qp17));
	return 0;
}

static json_t *
post(const char *wrs)
{
	char text[2048];

	snprintf(text, sizeof(text), "{\"qp_num\":17,\"wrs\":[%s]}", wrs);
	return rpc_ok("post_recv", text);
}

static void
posted_requests_reach_the_queue(void **state UNUSED)
{
	struct qp *qp = qp_lookup(fake.env.qps, 17);
	const struct ring_recv_wqe *w;
	json_t *v = post(WR(5) ",{\"wr_id\":\"0xffffffffffffffff\",\"sg_list\":["
			       "{\"lkey\":\"0x9\",\"addr\":\"0x20\",\"length\":1},"
			       "{\"mr\":\"m\",\"length\":2}]},{}");

	assert_int_equal(number_of(v, "posted"), 3);
	assert_true(json_is_null(json_object_get(v, "refused")));
	json_decref(v);
	assert_int_equal(ring_consume_count(&qp->rq), 3);
	w = ring_consume_peek(&qp->rq, 0);
	assert_int_equal(w->wr_id, 5);
	assert_int_equal(w->num_sge, 1);
	assert_int_equal(w->sge[0].addr, 0x1008);
	assert_int_equal(w->sge[0].lkey, 0x77);
	assert_int_equal(w->sge[0].length, 16);
	w = ring_consume_peek(&qp->rq, 1);
	assert_true(w->wr_id == UINT64_MAX);
	assert_int_equal(w->num_sge, 2);
	assert_int_equal(w->sge[0].addr, 0x20);
	assert_int_equal(w->sge[0].lkey, 9);
	assert_int_equal(w->sge[1].addr, 0x1000);
	w = ring_consume_peek(&qp->rq, 2);
	assert_int_equal(w->num_sge, 0);
}

/* CQ-09: the call refuses at once what it can see; the good prefix stays posted. */
static void
CQ_09_the_first_bad_request_is_refused(void **state UNUSED)
{
	static const struct {
		const char *wrs;
		int posted;
		int err;
		int index;
		int wr_id;
		const char *says;
	} rows[] = {
		{ WR(1) "," WR(2) ",{\"wr_id\":3,\"sg_list\":[{\"mr\":\"x\",\"length\":1}]}," WR(4),
			2, ENOENT, 2, 3, "x" },
		{ WR(5) ",{\"wr_id\":6,\"sg_list\":[{\"mr\":\"m\",\"length\":1},"
			"{\"mr\":\"m\",\"length\":1},{\"mr\":\"m\",\"length\":1}]}",
			1, EINVAL, 1, 6, "max_recv_sge" },
		{ WR(7) "," WR(8), 1, ENOMEM, 1, 8, "max_recv_wr" },
	};

	for (unsigned int i = 0; i < ARRAY_LEN(rows); i++) {
		json_t *v = post(rows[i].wrs), *refused = json_object_get(v, "refused");

		assert_int_equal(number_of(v, "posted"), rows[i].posted);
		assert_int_equal(number_of(refused, "index"), rows[i].index);
		assert_int_equal(number_of(refused, "errno"), rows[i].err);
		assert_int_equal(number_of(refused, "wr_id"), rows[i].wr_id);
		assert_non_null(strstr(text_of(refused, "reason"), rows[i].says));
		json_decref(v);
	}
	assert_int_equal(ring_consume_count(&qp_lookup(fake.env.qps, 17)->rq), 4);
}

static void
malformed_requests_post_nothing(void **state UNUSED)
{
	static const char *const bad[] = {
		"{\"qp_num\":17}",
		"{\"qp_num\":17,\"wrs\":5}",
		"{\"qp_num\":17,\"wrs\":[" WR(1) ",7]}",
		"{\"qp_num\":17,\"wrs\":[" WR(1) ",{\"wr_id\":-1}]}",
		"{\"qp_num\":17,\"wrs\":[" WR(1) ",{\"sg_list\":[{\"mr\":\"m\"}]}]}",
		"{\"qp_num\":17,\"wrs\":[" WR(1) ",{\"sg_list\":[{\"length\":1}]}]}",
		"{\"qp_num\":17,\"wrs\":[" WR(1) ",{\"sg_list\":[{\"lkey\":1,\"length\":1}]}]}",
		"{\"qp_num\":17,\"wrs\":[" WR(
			1) ",{\"sg_list\":[{\"mr\":\"m\",\"addr\":1,\"length\":1}]}]}",
		"{\"qp_num\":17,\"wrs\":[" WR(1) ",{\"wrid\":1}]}",
		"{\"wrs\":[" WR(1) "]}",
	};

	for (unsigned int i = 0; i < ARRAY_LEN(bad); i++)
		assert_int_equal(rpc_code("post_recv", bad[i]), -32602);
	assert_int_equal(rpc_code("post_recv", "{\"qp_num\":18,\"wrs\":[]}"), REFUSED(ENOENT));
	assert_int_equal(ring_consume_count(&qp_lookup(fake.env.qps, 17)->rq), 0);
	for (unsigned int i = 0; i < ARRAY_LEN(bad); i++)
		assert_int_equal(rpc_code("post_send", bad[i]), -32602);
	assert_int_equal(rpc_code("post_send", "{\"qp_num\":18,\"wrs\":[]}"), REFUSED(ENOENT));
	assert_int_equal(ring_consume_count(&qp_lookup(fake.env.qps, 17)->sq.ring), 0);
}

static void
to_init(void)
{
	json_decref(rpc_ok("qp_modify", "{\"qp_num\":17,\"qp_state\":\"INIT\",\"port\":\"p0\","
					"\"pkey\":\"0xffff\",\"qp_access_flags\":[]}"));
}

static void
QP_05_reset_forgets_posted_work(void **state UNUSED)
{
	json_t *v = post(WR(1) "," WR(2));

	json_decref(v);
	json_decref(rpc_ok("qp_modify", "{\"qp_num\":17,\"qp_state\":\"RESET\"}"));
	v = post(WR(3));
	assert_int_equal(number_of(v, "posted"), 0);
	assert_int_equal(number_of(json_object_get(v, "refused"), "errno"), EINVAL);
	json_decref(v);
	v = rpc_ok("poll_cq", "{\"cq\":\"cq0\"}");
	assert_int_equal(json_array_size(v), 0);
	json_decref(v);

	/* QP-06: from INIT on receives are accepted, and the ring is whole again. */
	to_init();
	v = post(WR(4) "," WR(5) "," WR(6) "," WR(7) "," WR(8));
	assert_int_equal(number_of(v, "posted"), 4);
	json_decref(v);
	v = rpc_ok("qp_query", "{\"qp_num\":17}");
	assert_int_equal(number_of(v, "rq_posted"), 4);
	json_decref(v);
}

static void
QP_12_QP_13_error_flushes_old_and_new_work(void **state UNUSED)
{
	static const int ids[] = { 1, 2, 3 };
	json_t *v = post(WR(1) "," WR(2));

	json_decref(v);
	json_decref(rpc_ok("qp_modify", "{\"qp_num\":17,\"qp_state\":\"ERR\"}"));
	v = post(WR(3));
	assert_int_equal(number_of(v, "posted"), 1);
	json_decref(v);
	assert_int_equal(fake.seen[MBOX_QP_RECEIVES], 1);
	v = rpc_ok("poll_cq", "{\"cq\":\"cq0\"}");
	assert_int_equal(json_array_size(v), 3);
	for (unsigned int i = 0; i < 3; i++) {
		assert_int_equal(number_of(json_array_get(v, i), "wr_id"), ids[i]);
		assert_string_equal(text_of(json_array_get(v, i), "status"), "WR_FLUSH_ERR");
		assert_int_equal(number_of(json_array_get(v, i), "qp_num"), 17);
	}
	json_decref(v);
}

static void
fed_queues_take_no_posts(void **state UNUSED)
{
	json_t *o = json_loads(qp17, 0, NULL), *v;
	char *text;

	json_object_set_new(o, "qp_num", json_integer(19));
	json_object_set_new(o, "recv_feed", json_object());
	text = json_dumps(o, 0);
	json_decref(rpc_ok("qp_create", text));
	v = rpc_ok("post_recv", "{\"qp_num\":19,\"wrs\":[" WR(1) "]}");
	assert_int_equal(number_of(json_object_get(v, "refused"), "errno"), EINVAL);
	json_decref(v);
	free(text);
	json_decref(o);
}

static void
push(struct ring_cqe e)
{
	e.qp_num = 17;
	assert_int_equal(ring_cq_push(&qp_lookup(fake.env.qps, 17)->recv_cq->ring, &e), 0);
}

static bool
has_flag(const json_t *cqe, const char *flag)
{
	json_t *flags = json_object_get(cqe, "wc_flags");

	for (size_t i = 0; i < json_array_size(flags); i++) {
		if (strcmp(json_string_value(json_array_get(flags, i)), flag) == 0)
			return true;
	}
	return false;
}

static void
CQ_08_completions_have_names(void **state UNUSED)
{
	json_t *v, *e;

	push((struct ring_cqe){ .wr_id = 1, .opcode = 128, .byte_len = 99 });
	push((struct ring_cqe){
		.wr_id = 2, .opcode = 129, .wc_flags = WC_WITH_IMM, .imm_data = 0xdeadbeef });
	push((struct ring_cqe){
		.wr_id = 3, .opcode = 128, .wc_flags = WC_WITH_INV, .imm_data = 0x1234 });
	/* CQ-03: an error has wr_id, status, qp_num, vendor_err; here its cause as well. */
	push((struct ring_cqe){ .wr_id = 4,
		.opcode = 128,
		.status = 9,
		.vendor_err = 1,
		.psn = 77,
		.cause = RULE_GAP,
		.peer_opcode = OP_RC_SEND_MIDDLE });
	v = rpc_ok("poll_cq", "{\"cq\":\"cq0\",\"max\":3}");
	assert_int_equal(json_array_size(v), 3);
	e = json_array_get(v, 0);
	assert_string_equal(text_of(e, "status"), "SUCCESS");
	assert_string_equal(text_of(e, "opcode"), "RECV");
	assert_int_equal(number_of(e, "byte_len"), 99);
	assert_true(json_is_null(json_object_get(e, "imm_data")));
	assert_int_equal(json_array_size(json_object_get(e, "wc_flags")), 0);
	e = json_array_get(v, 1);
	assert_string_equal(text_of(e, "opcode"), "RECV_RDMA_WITH_IMM");
	assert_int_equal(number_of(e, "imm_data"), 0xdeadbeef);
	assert_true(has_flag(e, "WITH_IMM"));
	e = json_array_get(v, 2);
	assert_string_equal(text_of(e, "invalidated_rkey"), "0x1234");
	assert_true(has_flag(e, "WITH_INV"));
	assert_true(json_is_null(json_object_get(e, "imm_data")));
	json_decref(v);

	v = rpc_ok("poll_cq", "{\"cq\":\"cq0\"}");
	assert_int_equal(json_array_size(v), 1); /* each once */
	e = json_array_get(v, 0);
	assert_string_equal(text_of(e, "status"), "REM_INV_REQ_ERR");
	assert_int_equal(number_of(e, "vendor_err"), 1);
	e = json_object_get(e, "cause");
	assert_string_equal(text_of(e, "rule"), "RESP-SEQ-01");
	assert_string_equal(text_of(e, "opcode"), "RC_SEND_MIDDLE");
	assert_int_equal(number_of(e, "psn"), 77);
	json_decref(v);
	assert_int_equal(rpc_code("poll_cq", "{\"cq\":\"none\"}"), REFUSED(ENOENT));
	assert_int_equal(rpc_code("poll_cq", "{\"cq\":\"cq0\",\"max\":0}"), -32602);
}

/* CQ-01: the numeric values are ibv_wc_status'. */
static void
CQ_01_status_names(void **state UNUSED)
{
	static const struct {
		uint8_t value;
		const char *name;
	} rows[] = { { 0, "SUCCESS" }, { 1, "LOC_LEN_ERR" }, { 2, "LOC_QP_OP_ERR" },
		{ 4, "LOC_PROT_ERR" }, { 5, "WR_FLUSH_ERR" }, { 6, "MW_BIND_ERR" },
		{ 7, "BAD_RESP_ERR" }, { 8, "LOC_ACCESS_ERR" }, { 9, "REM_INV_REQ_ERR" },
		{ 10, "REM_ACCESS_ERR" }, { 11, "REM_OP_ERR" }, { 12, "RETRY_EXC_ERR" },
		{ 13, "RNR_RETRY_EXC_ERR" }, { 19, "FATAL_ERR" }, { 21, "GENERAL_ERR" } };

	for (unsigned int i = 0; i < ARRAY_LEN(rows); i++) {
		json_t *v;

		push((struct ring_cqe){ .status = rows[i].value, .opcode = 128 });
		v = rpc_ok("poll_cq", "{\"cq\":\"cq0\"}");
		assert_string_equal(text_of(json_array_get(v, 0), "status"), rows[i].name);
		json_decref(v);
	}
}

#define WITH_FAKE(f) cmocka_unit_test_setup_teardown(f, setup, fake_teardown)

static json_t *
send_to(const char *ip)
{
	char text[256];

	snprintf(text, sizeof(text),
		"{\"qp_num\":30,\"wrs\":[{\"opcode\":\"SEND\",\"inline\":\"\",\"ud\":{"
		"\"ah_attr\":{\"dest_ip\":\"%s\"},\"remote_qpn\":9,\"remote_qkey\":1}}]}",
		ip);
	return rpc_ok("post_send", text);
}

/* UD-05: requests that wait keep their handles, however many destinations are tried meanwhile. */
static void
UD_05_what_waits_keeps_its_handle(void **state UNUSED)
{
	static const char *const silent[] = { "10.0.0.50", "10.0.0.51", "10.0.0.52", "10.0.0.53" };
	const struct admin_ah *a, *used;
	uint32_t handle, n = 0;
	json_t *v;

	json_decref(rpc_ok("qp_create",
		"{\"qp_num\":30,\"qp_type\":\"UD\",\"port\":\"p0\",\"pd\":\"pd0\","
		"\"send_cq\":\"cq0\",\"recv_cq\":\"cq0\",\"qp_state\":\"RTS\",\"qkey\":1,"
		"\"sq_psn\":0,\"cap\":{\"max_send_wr\":2}}"));
	v = send_to("10.0.0.9");
	assert_int_equal(number_of(v, "posted"), 1);
	json_decref(v);
	used = TAILQ_FIRST(&admin_find(&fake.c->admin, 30)->ahs->list);
	handle = used->handle;
	for (unsigned int i = 0; i < ARRAY_LEN(silent); i++) {
		v = send_to(silent[i]);
		assert_int_equal(number_of(v, "posted"), 0); /* nobody has answered yet */
		json_decref(v);
	}
	TAILQ_FOREACH (a, &admin_find(&fake.c->admin, 30)->ahs->list, of_qp)
		n += a == used && a->handle == handle;
	assert_int_equal(n, 1);
	assert_in_range(admin_find(&fake.c->admin, 30)->ahs->n, 2, 3);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_FAKE(posted_requests_reach_the_queue),
		WITH_FAKE(CQ_09_the_first_bad_request_is_refused),
		WITH_FAKE(malformed_requests_post_nothing),
		WITH_FAKE(QP_05_reset_forgets_posted_work),
		WITH_FAKE(QP_12_QP_13_error_flushes_old_and_new_work),
		WITH_FAKE(fed_queues_take_no_posts),
		WITH_FAKE(CQ_08_completions_have_names),
		WITH_FAKE(CQ_01_status_names),
		WITH_FAKE(UD_05_what_waits_keeps_its_handle),
	};

	return cmocka_run_group_tests(tests, fake_eal, fake_eal_end);
}
