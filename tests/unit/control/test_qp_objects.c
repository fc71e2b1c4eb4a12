/* SPDX-License-Identifier: BSD-3-Clause */
/* Queue pairs as objects: numbers, creation, lists, destruction. */
#include "qp17.h"

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
	/* It was attached late, and is gone. */
	assert_int_equal(rpc_code("qp_destroy", "{\"qp_num\":17}"), REFUSED(ENOENT));
	after = everything();
	assert_string_equal(before, after);
	free(before);
	free(after);
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
	/* How large the table is nobody says. */
	assert_non_null(strstr(rpc_message(), "take another number, or leave it out"));
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
		{ "srq", "\"xrc\"", REFUSED(EINVAL), "is of type XRC" }, /* XRC-04 */
		{ "worker", "2", REFUSED(EINVAL), "worker" },
		{ "path_mtu", "2048", REFUSED(EINVAL), "mtu" },
		{ "timeout", "32", -32602, "timeout" },
		{ "qp_type", "\"RD\"", -32602, "qp_type" },
		{ "qp_state", "\"ERR\"", -32602, "qp_state" },
		{ "dest_qp_num", "null", -32602, "dest_qp_num" },
		{ "cap", "{\"max_recv_sge\":17}", -32602, "cap/max_recv_sge" },
		{ "ah_attr", "{\"dest_ip\":\"10.0.0\"}", -32602, "ah_attr/dest_ip" },
	};
	char *before, *after;

	json_decref(rpc_ok("xrcd_create", "{\"name\":\"x\"}"));
	json_decref(rpc_ok("srq_create", "{\"name\":\"xrc\",\"pd\":\"pd0\",\"srq_type\":\"XRC\","
					 "\"xrcd\":\"x\",\"cq\":\"cq0\"}"));
	before = everything();
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
		mem_check(fake.env.mem, key, qp->pd, qp->feed_va, 800, ACCESS_LOCAL_WRITE, &host),
		MEM_OK);
	assert_int_equal(
		mem_check(fake.env.mem, key, qp->pd, qp->feed_va, 1, ACCESS_REMOTE_READ, &host),
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
assert_workers_have(json_int_t first, json_int_t second)
{
	json_t *v = rpc_ok("worker_list", NULL);

	assert_int_equal(number_of(json_array_get(v, 0), "qps"), first);
	assert_int_equal(number_of(json_array_get(v, 1), "qps"), second);
	json_decref(v);
}

/* A QP that moves is counted where it is, and the next one goes where fewer are. */
static void
workers_count_their_qps(void **state UNUSED)
{
	json_t *v = create_with("{\"count\":4,\"qp_num\":100,\"cap\":{\"max_recv_wr\":1}}");

	json_decref(v);
	assert_workers_have(2, 2);
	for (int i = 0; i < 4; i++) {
		char text[64];

		snprintf(text, sizeof(text), "{\"qp_num\":%d,\"worker\":1}", 100 + i);
		json_decref(rpc_ok("qp_modify", text));
	}
	assert_workers_have(0, 4);
	json_decref(create_with("{\"qp_num\":200}"));
	assert_workers_have(1, 4);
	json_decref(rpc_ok("qp_modify", "{\"qp_num\":200,\"worker\":1}"));
	assert_workers_have(0, 5);
	json_decref(rpc_ok("qp_destroy", "{\"qp_num\":200}"));
	assert_workers_have(0, 4);
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
	assert_int_equal(rpc_code("qp_modify", "{\"qp_num\":32," TO_INIT "}"), REFUSED(ETIMEDOUT));
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

int
main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_FAKE(nothing_is_left_of_a_refused_creation),
		WITH_FAKE(QP_20_numbers_are_not_used_again_soon),
		WITH_FAKE(numbers_share_the_table),
		WITH_FAKE(create_refusals),
		WITH_FAKE(recv_feed_has_a_region_of_its_own),
		WITH_FAKE(list_filters_and_pages),
		WITH_FAKE(workers_count_their_qps),
		WITH_FAKE(QP_18_destroy_takes_it_from_the_worker),
		WITH_FAKE(cq_of_one_worker_or_several),
	};

	return cmocka_run_group_tests(tests, fake_eal, fake_eal_end);
}
