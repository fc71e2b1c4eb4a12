/* SPDX-License-Identifier: BSD-3-Clause */
/* PDs, MRs, CQs and SRQs: made, listed, refused, given back. */
#include "fake.h"

#include <errno.h>
#include <stdio.h>

#include "log.h"
#include "objects.h"

static void
made_from_the_configuration(void **state UNUSED)
{
	json_t *v;

	fake_start("{\"version\":1,\"lcores\":{\"workers\":[1,2]},"
		   "\"ports\":[{\"name\":\"p0\",\"device\":\"net_ring0\",\"ipv4\":\"10.0.0.1\"}],"
		   "\"pds\":[\"a\",\"b\"],\"srqs\":[{\"name\":\"s\",\"pd\":\"b\"}],"
		   "\"mrs\":[{\"name\":\"m\",\"pd\":\"a\",\"length\":64,\"addr\":\"0x1000\","
		   "\"rkey\":\"0x77\",\"access\":[\"REMOTE_READ\"],\"fill\":\"pattern:5\"}],"
		   "\"cqs\":[{\"name\":\"c\",\"cqe\":4}],"
		   "\"qps\":[{\"qp_num\":5,\"qp_type\":\"RC\",\"pd\":\"a\",\"send_cq\":\"c\","
		   "\"recv_cq\":\"c\",\"count\":3}]}");
	v = rpc_ok("pd_list", NULL);
	assert_int_equal(json_array_size(v), 2);
	assert_string_equal(text_of(json_array_get(v, 1), "name"), "b");
	json_decref(v);
	v = rpc_ok("qp_list", NULL);
	assert_int_equal(json_array_size(v), 3);
	assert_int_equal(number_of(json_array_get(v, 2), "qp_num"), 7);
	json_decref(v);
	v = rpc_ok("mr_read", "{\"name\":\"m\",\"offset\":3,\"length\":2}");
	char want[8];

	/* Byte i of a pattern, from its definition in mem.h. */
	for (uint32_t i = 3, at = 0; i < 5; i++, at += 2) {
		uint32_t x = i * 0x9E3779B1u + 5 * 0x85EBCA6Bu;

		x ^= x >> 15;
		x *= 0x2C1B3C6Du;
		x ^= x >> 12;
		snprintf(want + at, 3, "%02x", x & 0xff);
	}
	assert_string_equal(text_of(v, "data"), want);
	json_decref(v);
	fake_stop();
}

static void
a_bad_configuration_makes_nothing(void **state UNUSED)
{
	static const char head[] =
		"{\"version\":1,\"lcores\":{\"workers\":[1,2]},"
		"\"ports\":[{\"name\":\"p0\",\"device\":\"net_ring0\",\"ipv4\":\"10.0.0.1\"}],"
		"\"pds\":[\"a\"],\"cqs\":[{\"name\":\"c\"}],\"qps\":[";
	static const char qp[] = "{\"qp_num\":%u,\"qp_type\":\"RC\",\"pd\":\"a\",\"send_cq\":\"c\","
				 "\"recv_cq\":\"c\"}%s";
	char text[1024];
	int n = snprintf(text, sizeof(text), "%s", head);

	/* 5 and 1029 need the same slot of a table of 1024. */
	n += snprintf(text + n, sizeof(text) - (size_t)n, qp, 5u, ",");
	n += snprintf(text + n, sizeof(text) - (size_t)n, qp, 1029u, "]}");
	fake_start_env(text, -EEXIST, true);
	assert_null(fake.c);
	fake_stop();
}

static uint32_t errors;

static void
count_errors(void *ctx UNUSED, enum log_level level, const char *line UNUSED)
{
	errors += level == LOG_ERROR;
}

/* A stop while the configuration is made: nobody waits for the rest, and it is no fault. */
static void
a_stop_before_all_is_made(void **state UNUSED)
{
	fake_stopped = true;
	errors = 0;
	log_set_sink(count_errors, NULL);
	fake_start_env(NULL, -ECANCELED, true);
	log_set_sink(NULL, NULL);
	fake_stopped = false;
	assert_null(fake.c);
	assert_int_equal(errors, 0);
	fake_stop();
}

static void
pd(void **state UNUSED)
{
	json_decref(rpc_ok("pd_create", "{\"name\":\"x\"}"));
	assert_int_equal(rpc_code("pd_create", "{\"name\":\"x\"}"), REFUSED(EEXIST));
	assert_non_null(strstr(rpc_message(), "\"x\""));
	json_decref(rpc_ok("mr_register", "{\"name\":\"m\",\"pd\":\"x\",\"length\":1}"));
	assert_int_equal(rpc_code("pd_dealloc", "{\"name\":\"x\"}"), REFUSED(EBUSY));
	json_decref(rpc_ok("mr_deregister", "{\"name\":\"m\"}"));
	json_decref(rpc_ok("pd_dealloc", "{\"name\":\"x\"}"));
	assert_int_equal(rpc_code("pd_dealloc", "{\"name\":\"x\"}"), REFUSED(ENOENT));
}

static void
mr_values_left_out_are_picked(void **state UNUSED)
{
	json_t *a = rpc_ok("mr_register", "{\"name\":\"a\",\"pd\":\"pd0\",\"length\":\"4K\"}");
	json_t *b = rpc_ok("mr_register", "{\"name\":\"b\",\"pd\":\"pd0\",\"length\":4096}");

	assert_string_not_equal(text_of(a, "rkey"), text_of(b, "rkey"));
	assert_string_not_equal(text_of(a, "addr"), text_of(b, "addr"));
	assert_int_equal(strncmp(text_of(a, "rkey"), "0x", 2), 0);
	assert_string_equal(text_of(a, "lkey"), text_of(a, "rkey"));
	assert_int_equal(number_of(b, "length"), 4096);
	json_decref(a);
	json_decref(b);
}

static void
mr_refusals(void **state UNUSED)
{
	static const struct {
		const char *params;
		int code;
		const char *says;
	} rows[] = {
		{ "{\"name\":\"m\",\"pd\":\"none\",\"length\":8}", REFUSED(ENOENT), "none" },
		{ "{\"name\":\"mr0\",\"pd\":\"pd0\",\"length\":8}", REFUSED(EEXIST), "mr0" },
		{ "{\"name\":\"m\",\"pd\":\"pd0\",\"length\":8,\"rkey\":\"0x1001\"}",
			REFUSED(EEXIST), "0x1001" },
		{ "{\"name\":\"m\",\"pd\":\"pd0\",\"length\":\"1024G\"}", REFUSED(ENOMEM),
			"length" },
		{ "{\"name\":\"m\",\"pd\":\"pd0\",\"length\":8,\"addr\":\"0xfffffffffffffffe\"}",
			-32602, "addr" },
		{ "{\"name\":\"m\",\"pd\":\"pd0\",\"length\":0}", -32602, "length" },
		{ "{\"name\":\"m\",\"length\":1}", -32602, "pd" },
		{ "{\"name\":\"m\",\"pd\":\"pd0\",\"length\":1,\"acces\":[]}", -32602, "acces" },
	};
	char *before, *after;

	json_decref(rpc_ok("mr_register",
		"{\"name\":\"mr0\",\"pd\":\"pd0\",\"length\":64,\"rkey\":\"0x1001\"}"));
	before = everything();
	for (unsigned int i = 0; i < ARRAY_LEN(rows); i++) {
		assert_int_equal(rpc_code("mr_register", rows[i].params), rows[i].code);
		assert_non_null(strstr(rpc_message(), rows[i].says));
	}
	after = everything();
	assert_string_equal(before, after);
	free(before);
	free(after);
}

static void
mr_bytes(void **state UNUSED)
{
	json_t *v;

	json_decref(rpc_ok("mr_register", "{\"name\":\"m\",\"pd\":\"pd0\",\"length\":16}"));
	v = rpc_ok("mr_read", "{\"name\":\"m\",\"offset\":0,\"length\":16}");
	assert_string_equal(text_of(v, "data"), "00000000000000000000000000000000");
	json_decref(v);
	json_decref(rpc_ok("mr_write", "{\"name\":\"m\",\"offset\":14,\"data\":\"aBcd\"}"));
	v = rpc_ok("mr_read", "{\"name\":\"m\",\"offset\":13,\"length\":3}");
	assert_string_equal(text_of(v, "data"), "00abcd");
	json_decref(v);
	v = rpc_ok("mr_read", "{\"name\":\"m\",\"offset\":16,\"length\":0}");
	assert_string_equal(text_of(v, "data"), "");
	json_decref(v);

	assert_int_equal(
		rpc_code("mr_write", "{\"name\":\"m\",\"offset\":15,\"data\":\"abcd\"}"), -32602);
	assert_int_equal(
		rpc_code("mr_write", "{\"name\":\"m\",\"offset\":0,\"data\":\"abc\"}"), -32602);
	assert_int_equal(
		rpc_code("mr_read", "{\"name\":\"m\",\"offset\":17,\"length\":0}"), -32602);
	assert_non_null(strstr(rpc_message(), "offset"));
	/* Sums that wrap must not look small. */
	assert_int_equal(rpc_code("mr_read",
				 "{\"name\":\"m\",\"offset\":\"0xffffffffffffffff\",\"length\":2}"),
		-32602);
	assert_int_equal(
		rpc_code("mr_read", "{\"name\":\"m\",\"offset\":0,\"length\":600000}"), -32602);
	assert_int_equal(
		rpc_code("mr_read", "{\"name\":\"n\",\"offset\":0,\"length\":1}"), REFUSED(ENOENT));
}

static void
mr_deregister_waits_for_every_worker(void **state UNUSED)
{
	uint8_t *host;

	json_decref(rpc_ok("mr_register", "{\"name\":\"m\",\"pd\":\"pd0\",\"length\":16,"
					  "\"addr\":0,\"rkey\":9,\"access\":[\"LOCAL_WRITE\"]}"));
	assert_int_equal(mem_check(fake.env.mem, 9, 1, 0, 16, ACCESS_LOCAL_WRITE, &host), MEM_OK);
	json_decref(rpc_ok("mr_deregister", "{\"name\":\"m\"}"));
	assert_int_equal(
		mem_check(fake.env.mem, 9, 1, 0, 16, ACCESS_LOCAL_WRITE, &host), MEM_BAD_KEY);
	assert_int_equal(fake.seen[MBOX_SYNC], FAKE_WORKERS);
}

static void
cq(void **state UNUSED)
{
	json_t *v = rpc_ok("cq_create", "{\"name\":\"c\",\"cqe\":7}");

	assert_int_equal(number_of(v, "cqe"), 7);
	json_decref(v);
	assert_int_equal(rpc_code("cq_create", "{\"name\":\"c\"}"), REFUSED(EEXIST));
	assert_int_equal(rpc_code("cq_create", "{\"name\":\"d\",\"cqe\":0}"), -32602);
	json_decref(rpc_ok("qp_create", qp17));
	assert_int_equal(rpc_code("cq_destroy", "{\"name\":\"cq0\"}"), REFUSED(EBUSY));
	json_decref(rpc_ok("qp_destroy", "{\"qp_num\":17}"));
	json_decref(rpc_ok("cq_destroy", "{\"name\":\"cq0\"}"));
	json_decref(rpc_ok("cq_destroy", "{\"name\":\"c\"}"));
	v = rpc_ok("cq_list", NULL);
	assert_int_equal(json_array_size(v), 0);
	json_decref(v);
}

static void
srq(void **state UNUSED)
{
	json_t *v = rpc_ok("srq_create", "{\"name\":\"s\",\"pd\":\"pd0\",\"max_wr\":8}");

	assert_int_equal(number_of(v, "max_sge"), 4);
	json_decref(v);
	assert_int_equal(rpc_code("pd_dealloc", "{\"name\":\"pd0\"}"), REFUSED(EBUSY));
	assert_int_equal(
		rpc_code("srq_create", "{\"name\":\"s\",\"pd\":\"pd0\"}"), REFUSED(EEXIST));
	assert_int_equal(rpc_code("srq_create", "{\"name\":\"t\",\"pd\":\"pd0\",\"max_wr\":1,"
						"\"srq_limit\":2}"),
		-32602);
	v = rpc_ok("srq_list", NULL);
	assert_int_equal(json_array_size(v), 1);
	json_decref(v);
	json_decref(rpc_ok("srq_destroy", "{\"name\":\"s\"}"));
	assert_int_equal(rpc_code("srq_destroy", "{\"name\":\"s\"}"), REFUSED(ENOENT));
}

/* Each is found by its name, and by its number. */
static void
many_names(void **state UNUSED)
{
	const struct names *pds = &control_objects(fake.c)->pds;
	uint32_t numbers[1000];
	char params[64];

	for (unsigned int i = 0; i < 1000; i++) {
		snprintf(params, sizeof(params), "{\"name\":\"pd-%u\"}", i);
		json_decref(rpc_ok("pd_create", params));
		numbers[i] = TAILQ_LAST(&pds->all, named_list)->number;
	}
	for (unsigned int i = 0; i < 1000; i += 2) {
		snprintf(params, sizeof(params), "{\"name\":\"pd-%u\"}", i);
		json_decref(rpc_ok("pd_dealloc", params));
	}
	for (unsigned int i = 1; i < 1000; i += 2) {
		snprintf(params, sizeof(params), "{\"name\":\"pd-%u\"}", i);
		assert_int_equal(rpc_code("pd_create", params), REFUSED(EEXIST));
		snprintf(params, sizeof(params), "pd-%u", i);
		assert_string_equal(names_numbered(pds, numbers[i])->name, params);
		assert_null(names_numbered(pds, numbers[i - 1]));
	}
}

static uint32_t
new_pd(const char *name)
{
	char params[64];
	struct refusal r;

	snprintf(params, sizeof(params), "{\"name\":\"%s\"}", name);
	json_decref(rpc_ok("pd_create", params));
	return object_pd_find(control_objects(fake.c), name, &r)->id;
}

/* Who makes and destroys objects for hours uses up no numbers, and none is somebody else's. */
static void
numbers_come_round(void **state UNUSED)
{
	struct objects *objs = control_objects(fake.c);
	uint32_t a = new_pd("a"), b, c, d;

	objs->pds.last = NAMES_NUMBER_MAX - 1;
	b = new_pd("b");
	assert_int_equal(b, MEM_PD_MAX);
	c = new_pd("c");
	assert_in_range(c, 1, MEM_PD_MAX - 1);
	assert_int_not_equal(c, a);
	/* From the last number it was one step to c: now that step leads to a. */
	objs->pds.last = (a - (c - b)) & NAMES_NUMBER_MAX;
	d = new_pd("d");
	assert_true(d != 0 && d != a && d != b && d != c);
	objs->cqs.last = objs->srqs.last = AEQ_ID_MAX;
	objs->xrcds.last = NAMES_NUMBER_MAX;
	json_decref(rpc_ok("cq_create", "{\"name\":\"last\",\"cqe\":4}"));
	assert_in_range(TAILQ_LAST(&objs->cqs.all, named_list)->number, 1, AEQ_ID_MAX);
	json_decref(rpc_ok("srq_create", "{\"name\":\"last\",\"pd\":\"a\"}"));
	assert_in_range(TAILQ_LAST(&objs->srqs.all, named_list)->number, 1, AEQ_ID_MAX);
	json_decref(rpc_ok("xrcd_create", "{\"name\":\"last\"}"));
	assert_in_range(TAILQ_LAST(&objs->xrcds.all, named_list)->number, 1, NAMES_NUMBER_MAX);
}

#define WITH_FAKE(f) cmocka_unit_test_setup_teardown(f, fake_setup, fake_teardown)

/* Who can send on a port has a queue of his own, number % queues: nothing locks it. */
static void
a_transmit_queue_has_one_worker(void **state UNUSED)
{
	for (uint32_t owner = 0; owner < 8; owner++) {
		for (uint32_t queues = 1; queues <= 8; queues++) {
			uint32_t users[8] = { 0 };

			for (uint32_t w = 0; w < 8; w++)
				users[w % queues] += env_can_send(owner, queues, w);
			for (uint32_t q = 0; q < queues; q++)
				assert_int_equal(users[q], 1);
		}
		assert_true(env_can_send(owner, 0, owner)); /* nobody else */
		assert_false(env_can_send(owner, 0, owner + 1));
	}
}

/* ---- completion queues that are resized ------------------------------------------------------ */

static struct object_cq *
cq_of_application(void **mem)
{
	const struct conf_cq conf = { .name = "of an application", .cqe = 8 };
	struct object_cq *cq;
	struct refusal r;

	for (int i = 0; i < 3; i++)
		mem[i] = aligned_alloc(64, ring_size(8u << i, sizeof(struct ring_cqe)));
	assert_int_equal(object_cq_create_in(control_objects(fake.c), &conf, mem[0], &cq, &r), 0);
	return cq;
}

static void
cq_gone(struct object_cq *cq, void **mem)
{
	struct refusal r;

	assert_int_equal(object_cq_destroy(control_objects(fake.c), cq, &r), 0);
	for (int i = 0; i < 3; i++)
		free(mem[i]);
}

static void
workers_hear_again(void)
{
	fake.deaf = false;
	fake.step = 1000;
	fake.hook = NULL;
	fake.env.pump(NULL);
	control_poll(fake.c, fake.now);
}

static void
cq_resize(void **state UNUSED)
{
	struct objects *objs = control_objects(fake.c);
	const struct ring_cqe cqe = { .wr_id = 1 };
	struct ring_cq *first;
	struct refusal r;
	void *mem[3];
	struct object_cq *cq = cq_of_application(mem);

	first = &cq->q.ring;
	assert_ptr_equal(qp_cq_ring(&cq->q), first);
	for (int i = 0; i < 5; i++)
		assert_int_equal(ring_cq_push(first, &cqe), 0);
	/* Smaller than what stands in it: refused, and as before. */
	assert_int_equal(object_cq_resize(objs, cq, mem[1], 4, &r), -EINVAL);
	assert_non_null(strstr(r.text, "5 completions"));
	assert_ptr_equal(qp_cq_ring(&cq->q), first);
	assert_int_equal(cq->cqe, 8);
	/* What stands there stays there, and nobody adds to it. */
	assert_int_equal(object_cq_resize(objs, cq, mem[1], 16, &r), 0);
	assert_int_equal(cq->cqe, 16);
	assert_int_equal(ring_cq_push(first, &cqe), -ENOSPC);
	assert_int_equal(ring_cq_end(first) - first->cons, 5);
	for (int i = 0; i < 16; i++)
		assert_int_equal(ring_cq_push(qp_cq_ring(&cq->q), &cqe), 0);
	assert_int_equal(ring_cq_push(qp_cq_ring(&cq->q), &cqe), -ENOSPC);
	/* CQ-05: it has overflowed, and no resize mends that. */
	atomic_store(&cq->q.error, true);
	assert_int_equal(object_cq_resize(objs, cq, mem[2], 32, &r), -EIO);
	cq_gone(cq, mem);
}

/* Of a worker that is known to be silent nothing is made to depend: all is as before. */
static void
cq_resize_with_a_silent_worker(void **state UNUSED)
{
	struct objects *objs = control_objects(fake.c);
	const struct ring_cqe cqe = { .wr_id = 1 };
	struct refusal r;
	void *mem[3];
	struct object_cq *cq = cq_of_application(mem);

	fake.step = 10 * TIME_NS_PER_MS;
	fake.deaf = true;
	assert_int_equal(object_cq_resize(objs, cq, mem[1], 16, &r), -ETIMEDOUT);
	assert_null(cq->leaving);
	assert_ptr_equal(qp_cq_ring(&cq->q), &cq->q.ring);
	assert_int_equal(cq->cqe, 8);
	assert_int_equal(ring_cq_push(&cq->q.ring, &cqe), 0);
	workers_hear_again();
	assert_int_equal(object_cq_resize(objs, cq, mem[1], 16, &r), 0);
	assert_null(cq->leaving);
	cq_gone(cq, mem);
}

static void
silent_from_the_second_question_on(void)
{
	fake.deaf = fake.seen[MBOX_SYNC] >= FAKE_WORKERS;
	fake.step = fake.deaf ? 10 * TIME_NS_PER_MS : 1000;
	fake.hook = silent_from_the_second_question_on;
}

/* It falls silent in between: both rings are in use until the next call has its answer. */
static void
cq_resize_and_a_worker_falls_silent(void **state UNUSED)
{
	struct objects *objs = control_objects(fake.c);
	struct ring_cq *second;
	struct refusal r;
	void *mem[3];
	struct object_cq *cq = cq_of_application(mem);

	assert_int_equal(object_cq_resize(objs, cq, mem[1], 16, &r), 0);
	second = qp_cq_ring(&cq->q);
	fake.seen[MBOX_SYNC] = 0;
	fake.hook = silent_from_the_second_question_on;
	assert_int_equal(object_cq_resize(objs, cq, mem[2], 32, &r), -ETIMEDOUT);
	assert_ptr_equal(cq->leaving, second);
	assert_int_equal(second->limit, 0); /* read: not freed yet */
	assert_ptr_equal(second->sh, mem[1]);
	assert_ptr_equal(qp_cq_ring(&cq->q)->sh, mem[2]);
	fake.hook = NULL;
	assert_int_equal(object_cq_resize_end(objs, cq, &r), -ETIMEDOUT);
	assert_ptr_equal(cq->leaving, second);
	workers_hear_again();
	assert_int_equal(object_cq_resize_end(objs, cq, &r), 0);
	assert_null(cq->leaving);
	/* Or the queue goes before that. */
	fake.seen[MBOX_SYNC] = 0;
	fake.hook = silent_from_the_second_question_on;
	assert_int_equal(object_cq_resize(objs, cq, mem[0], 8, &r), -ETIMEDOUT);
	assert_non_null(cq->leaving);
	workers_hear_again();
	cq_gone(cq, mem);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(made_from_the_configuration),
		cmocka_unit_test(a_transmit_queue_has_one_worker),
		cmocka_unit_test(a_bad_configuration_makes_nothing),
		cmocka_unit_test(a_stop_before_all_is_made),
		WITH_FAKE(pd),
		WITH_FAKE(mr_values_left_out_are_picked),
		WITH_FAKE(numbers_come_round),
		WITH_FAKE(mr_refusals),
		WITH_FAKE(mr_bytes),
		WITH_FAKE(mr_deregister_waits_for_every_worker),
		WITH_FAKE(cq),
		WITH_FAKE(cq_resize),
		WITH_FAKE(cq_resize_with_a_silent_worker),
		WITH_FAKE(cq_resize_and_a_worker_falls_silent),
		WITH_FAKE(srq),
		WITH_FAKE(many_names),
	};

	return cmocka_run_group_tests(tests, fake_eal, fake_eal_end);
}
