/* SPDX-License-Identifier: BSD-3-Clause */
/* The consumer of the workers' event queues: what it does with each kind of entry. */
#include "fake.h"

#include <errno.h>
#include <stdio.h>

#include "control_state.h"

/* An entry as it stands in a worker's queue. */
static void
entry(uint32_t worker, struct ring_aeq_event e)
{
	assert_int_equal(ring_aeq_push(&fake.mbox[worker].raise, &e), 0);
}

static void
post(unsigned int n)
{
	for (unsigned int i = 0; i < n; i++) {
		char text[100];

		snprintf(text, sizeof(text), "{\"qp_num\":17,\"wrs\":[{\"wr_id\":%u}]}", i);
		json_decref(rpc_ok("post_recv", text));
	}
}

static json_t *
last_event(void)
{
	json_t *v = rpc_ok("qp_query", "{\"qp_num\":17}");
	json_t *last = json_incref(json_object_get(v, "last_event"));

	json_decref(v);
	return last;
}

static enum qp_state
state_of(void)
{
	return atomic_load(&qp_lookup(fake.env.qps, 17)->state);
}

static unsigned int quiet;

static void
all_quiet(void *ctx)
{
	assert_ptr_equal(ctx, &quiet);
	quiet++;
}

static void
AEQ_05_unknown_qp(void **state UNUSED)
{
	struct mbox *b = &fake.mbox[0];

	quiet = 0;
	fake.c->admin.on_quiet = all_quiet;
	fake.c->admin.on_quiet_ctx = &quiet;
	admin_quiet_begin(&fake.c->admin);
	admin_quiet_begin(&fake.c->admin);
	entry(0, (struct ring_aeq_event){ .id = 4711, .code = AEQ_INVALID_KEY, .source = 1 });
	entry(0, (struct ring_aeq_event){ .id = 4711, .code = AEQ_SUSPEND_COMPLETE });
	control_poll(fake.c, fake.now);
	assert_int_equal(fake.c->admin.suspended, 1);
	assert_int_equal(quiet, 0);
	entry(0, (struct ring_aeq_event){ .id = 4712, .code = AEQ_SUSPEND_COMPLETE });
	control_poll(fake.c, fake.now);
	assert_int_equal(quiet, 1);
	/* One too many does no harm. */
	entry(0, (struct ring_aeq_event){ .id = 4712, .code = AEQ_SUSPEND_COMPLETE });
	control_poll(fake.c, fake.now);
	assert_int_equal(fake.c->admin.suspended, 0);
	assert_int_equal(quiet, 1);
	assert_int_equal(count_events(), 0);
	assert_int_equal(fake.seen[MBOX_QP_FAIL], 0);
	assert_int_equal(atomic_load(&b->raise.sh->returned), 4);
}

static void
destroy_17(void)
{
	json_decref(rpc_ok("qp_destroy", "{\"qp_num\":17}"));
}

/* The QP is destroyed while its event is being handled: what the handler uses stays. */
static void
AEQ_06_destroyed_in_the_handler(void **state UNUSED)
{
	uint32_t worker;

	json_decref(rpc_ok("qp_create", qp17));
	worker = worker_of(17);
	entry(worker, (struct ring_aeq_event){ .id = 17, .code = AEQ_INVALID_KEY, .source = 5 });
	fake.hook = destroy_17;
	control_poll(fake.c, fake.now);
	assert_null(fake.hook);
	assert_int_equal(rpc_code("qp_query", "{\"qp_num\":17}"), REFUSED(ENOENT));
	json_decref(rpc_ok("qp_create", qp17));
}

static void
AEQ_07_events_of_no_qp(void **state UNUSED)
{
	json_decref(rpc_ok("qp_create", qp17));
	for (uint32_t code = 0; code < 4096; code++) {
		static const uint8_t none[] = { 0, 2, 4, 6, 8, 10, 12, 14 };

		if (code == AEQ_CQ_OPERATION || ring_aeq_code_class(code) == AEQ_CLASS_REPORT ||
			ring_aeq_code_class(code) == AEQ_CLASS_SUSPEND)
			continue;
		entry(worker_of(17),
			(struct ring_aeq_event){
				.id = 17, .code = (uint16_t)code, .source = none[code % 8] });
		control_poll(fake.c, fake.now);
	}
	assert_int_equal(count_events(), 0);
	assert_int_equal(fake.seen[MBOX_QP_FAIL], 0);
	assert_int_equal(state_of(), QPS_RTS);
}

static void
AEQ_08_cq_operation_error(void **state UNUSED)
{
	struct object_cq *cq;
	struct refusal r;
	uint32_t users;
	json_t *v;

	json_decref(rpc_ok("qp_create", qp17));
	cq = object_cq_find(&fake.c->objects, "cq0", &r);
	users = atomic_load(&cq->q.users);
	for (uint8_t source = 0; source < 16; source++) {
		entry(1, (struct ring_aeq_event){ .id = cq->q.id,
				 .context = (uintptr_t)&cq->q,
				 .code = AEQ_CQ_OPERATION,
				 .source = source });
		v = events();
		assert_int_equal(json_array_size(v), 1);
		assert_string_equal(text_of(json_array_get(v, 0), "event_type"), "CQ_ERR");
		assert_string_equal(text_of(json_array_get(v, 0), "cq"), "cq0");
		json_decref(v);
	}
	/* Nobody listens. */
	cq->quiet = true;
	entry(1, (struct ring_aeq_event){ .id = cq->q.id, .code = AEQ_CQ_OPERATION, .source = 2 });
	assert_int_equal(count_events(), 0);
	assert_int_equal(atomic_load(&cq->q.users), users);
	/* Freed: what is queued of it goes, what comes late is passed over. */
	json_decref(rpc_ok("cq_create", "{\"name\":\"cq9\",\"cqe\":4}"));
	cq = object_cq_find(&fake.c->objects, "cq9", &r);
	entry(1, (struct ring_aeq_event){ .id = cq->q.id, .code = AEQ_CQ_OPERATION, .source = 2 });
	control_poll(fake.c, fake.now);
	entry(1, (struct ring_aeq_event){ .id = cq->q.id, .code = AEQ_CQ_OPERATION, .source = 2 });
	json_decref(rpc_ok("cq_destroy", "{\"name\":\"cq9\"}"));
	assert_int_equal(count_events(), 0);
}

static void
AEQ_09_informational(void **state UNUSED)
{
	static const uint16_t codes[] = { AEQ_DOUBT_REACHABILITY, AEQ_RESOURCE_EXHAUSTION };

	json_decref(rpc_ok("qp_create", qp17));
	for (unsigned int i = 0; i < ARRAY_LEN(codes); i++)
		entry(worker_of(17),
			(struct ring_aeq_event){ .id = 17, .code = codes[i], .source = 1 });
	assert_int_equal(count_events(), 0);
	assert_int_equal(state_of(), QPS_RTS);
}

/* Every row of the flush map, with each kind of source. */
static void
AEQ_10_AEQ_11_abnormal(void **state UNUSED)
{
	static const struct {
		uint16_t code;
		const char *status;
		const char *event;
	} rows[] = { { AEQ_INVALID_KEY, "LOC_PROT_ERR", "QP_ACCESS_ERR" },
		{ AEQ_WQE_OPCODE, "LOC_QP_OP_ERR", "QP_FATAL" },
		{ AEQ_MESSAGE_TOO_LONG, "LOC_LEN_ERR", "QP_FATAL" },
		{ AEQ_REMOTE_ACCESS, "REM_ACCESS_ERR", "QP_ACCESS_ERR" },
		{ AEQ_RETRIES, "RETRY_EXC_ERR", "QP_FATAL" },
		{ AEQ_RNRS, "RNR_RETRY_EXC_ERR", "QP_FATAL" },
		{ AEQ_INVALID_REQUEST, "REM_INV_REQ_ERR", "QP_REQ_ERR" },
		{ AEQ_RESPONSE_LENGTH, "REM_OP_ERR", "QP_FATAL" },
		{ AEQ_LOCAL_CATASTROPHIC, "FATAL_ERR", "QP_FATAL" },
		{ 0x7ff, "WR_FLUSH_ERR", "QP_FATAL" } };
	static const uint8_t sources[] = { 1, 3, 9, 13 };

	for (unsigned int i = 0; i < ARRAY_LEN(rows) * ARRAY_LEN(sources); i++) {
		const unsigned int row = i / ARRAY_LEN(sources);
		const uint8_t source = sources[i % ARRAY_LEN(sources)];
		const bool rq = source < 4;
		json_t *v;

		json_decref(rpc_ok("qp_create", qp17));
		post(3);
		entry(worker_of(17), (struct ring_aeq_event){ .id = 17,
					     .code = rows[row].code,
					     .source = source,
					     .wqe_index = 1 });
		v = events();
		assert_int_equal(json_array_size(v), rq ? 0 : 1);
		if (!rq)
			assert_string_equal(
				text_of(json_array_get(v, 0), "event_type"), rows[row].event);
		json_decref(v);
		assert_int_equal(state_of(), QPS_ERR);
		v = rpc_ok("poll_cq", "{\"cq\":\"cq0\"}");
		assert_int_equal(json_array_size(v), 3);
		for (unsigned int k = 0; k < 3; k++)
			assert_string_equal(text_of(json_array_get(v, k), "status"),
				rq && k == 1 ? rows[row].status : "WR_FLUSH_ERR");
		json_decref(v);
		v = last_event();
		assert_int_equal(number_of(v, "code"), rows[row].code);
		assert_int_equal(number_of(v, "wqe_index"), rq ? 1 : 0);
		json_decref(v);
		/* In ERR already: nothing is told twice. */
		entry(worker_of(17),
			(struct ring_aeq_event){ .id = 17, .code = AEQ_INVALID_KEY, .source = 9 });
		assert_int_equal(count_events(), 0);
		json_decref(rpc_ok("qp_destroy", "{\"qp_num\":17}"));
	}
}

/* ae.with_cqe: the event comes although a completion carries the error. */
static void
AEQ_11_knob_event_with_completion(void **state UNUSED)
{
	json_t *v;

	json_decref(rpc_ok("qp_create", qp17));
	admin_find(&fake.c->admin, 17)->shared->knobs.ae_with_cqe = 1;
	post(1);
	entry(worker_of(17),
		(struct ring_aeq_event){ .id = 17, .code = AEQ_INVALID_KEY, .source = 1 });
	v = events();
	assert_int_equal(json_array_size(v), 1);
	assert_string_equal(text_of(json_array_get(v, 0), "event_type"), "QP_ACCESS_ERR");
	assert_string_equal(text_of(json_array_get(v, 0), "detail"), "invalid key");
	json_decref(v);
}

static void
AEQ_12_last_event(void **state UNUSED)
{
	json_t *v;

	json_decref(rpc_ok("qp_create", qp17));
	v = last_event();
	assert_true(json_is_null(v));
	json_decref(v);
	entry(worker_of(17),
		(struct ring_aeq_event){ .id = 17, .code = AEQ_DOUBT_REACHABILITY, .source = 5 });
	entry(worker_of(17),
		(struct ring_aeq_event){
			.id = 17, .code = AEQ_QP_REPORT, .source = 1, .event = 4, .time_ns = 99 });
	entry(worker_of(17), (struct ring_aeq_event){ .id = 17, .code = AEQ_SUSPEND_COMPLETE });
	control_poll(fake.c, fake.now);
	v = last_event();
	assert_int_equal(number_of(v, "code"), AEQ_QP_REPORT);
	assert_string_equal(text_of(v, "event_type"), "COMM_EST");
	assert_string_equal(text_of(v, "source"), "RQ");
	assert_int_equal(number_of(v, "time_ns"), 99);
	json_decref(v);
}

#define WITH_FAKE(f) cmocka_unit_test_setup_teardown(f, fake_setup, fake_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_FAKE(AEQ_05_unknown_qp),
		WITH_FAKE(AEQ_06_destroyed_in_the_handler),
		WITH_FAKE(AEQ_07_events_of_no_qp),
		WITH_FAKE(AEQ_08_cq_operation_error),
		WITH_FAKE(AEQ_09_informational),
		WITH_FAKE(AEQ_10_AEQ_11_abnormal),
		WITH_FAKE(AEQ_11_knob_event_with_completion),
		WITH_FAKE(AEQ_12_last_event),
	};

	return cmocka_run_group_tests(tests, fake_eal, fake_eal_end);
}
