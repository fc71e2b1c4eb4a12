/* SPDX-License-Identifier: BSD-3-Clause */
/* What qp_explain makes of what a worker says that a QP waits for. */
#include "qp17.h"

#include "control_state.h"
#include "explain_wait.h"
#include "requester.h"

/* A request of 10 packets has begun to leave, and none has asked for an acknowledgement. */
static struct qp_snapshot
begun(void)
{
	return (struct qp_snapshot){ .state = QPS_RTS,
		.resolved = true,
		.una_psn = 200,
		.next_psn = 203,
		.outstanding = 3,
		.rq_posted = 1,
		.waiting = { .stop = REQ_SEND,
			.timeout = 14,
			.has_oldest = true,
			.oldest_id = 7,
			.started = 1,
			.unstarted = 2 } };
}

/* The wait of this kind, or NULL; all of them in *list. */
static const json_t *
wait_for(const struct qp_snapshot *s, const char *kind, json_t **list)
{
	const json_t *w;
	size_t i;

	*list = explain_waits(&fake.c->diagnose, admin_find(&fake.c->admin, 17), s);
	json_array_foreach (*list, i, w) {
		if (strcmp(text_of(w, "kind"), kind) == 0)
			return w;
	}
	return NULL;
}

static void
assert_says(const struct qp_snapshot *s, const char *kind, const char *text)
{
	json_t *list;
	const json_t *w = wait_for(s, kind, &list);

	if (text == NULL)
		assert_null(w);
	else
		assert_string_equal(text_of(w, "text"), text);
	json_decref(list);
}

/* What leaves for the first time is not sent again. */
static void
sending_is_no_resend(void **state UNUSED)
{
	struct qp_snapshot s = begun();

	json_decref(rpc_ok("qp_create", qp17));
	assert_says(&s, "SENDING",
		"RDMA_WRITE wr_id 7 is being sent, from PSN 200 on: PSN 203 is next");
	assert_says(&s, "RESEND", NULL);
	assert_says(&s, "TURN", "2 requests are posted, and were not started yet");
	s.waiting.resends = true;
	assert_says(
		&s, "RESEND", "PSN 200 and what follows are to be sent again: RDMA_WRITE wr_id 7");
	assert_says(&s, "SENDING", NULL);
}

static void
a_rate_is_named(void **state UNUSED)
{
	struct qp_snapshot s = begun();
	const json_t *w;
	json_t *list;

	json_decref(rpc_ok("qp_create", qp17));
	s.waiting.rate = 2000000;
	assert_says(&s, "RATE", NULL);
	s.waiting.rate_until = fake.now + TIME_NS_PER_MS;
	assert_says(&s, "RATE",
		"its client may move 2000000 bytes a second, and has used them up; 2 requests were "
		"not started yet");
	assert_says(&s, "TURN", NULL);
	w = wait_for(&s, "RATE", &list);
	assert_non_null(w);
	assert_int_equal(number_of(w, "until_ns"), s.waiting.rate_until);
	json_decref(list);
	/* Others of its client have used them; this one has nothing to send. */
	s.waiting.unstarted = 0;
	s.waiting.stop = REQ_IDLE;
	assert_says(&s, "RATE", NULL);
}

/* It waits for its rate, not for its worker's look. */
static void
a_paced_queue_pair_waits_for_its_rate(void **state UNUSED)
{
	struct qp_snapshot s = begun();

	json_decref(rpc_ok("qp_create", qp17));
	s.rate.has = true;
	s.rate.current = 1000;
	s.rate.waits_until = fake.now + TIME_NS_PER_MS;
	assert_says(&s, "CONGESTION",
		"packets leave at 1.000 Mb/s (cc.algo dcqcn, 0 CNPs since RESET)");
	assert_says(&s, "TURN", NULL);
}

/* A send_feed's requests carry the time of posting where others have a wr_id. */
static void
feeds_have_no_wr_id(void **state UNUSED)
{
	struct qp_snapshot s = begun();
	const json_t *w;
	json_t *list;

	json_decref(create_with("{\"send_feed\":{\"opcode\":\"RDMA_WRITE\",\"size\":64,"
				"\"rkey\":\"0x1001\",\"remote_addr\":\"0x1000\"}}"));
	s.waiting.oldest_id = 2094998766;
	assert_says(&s, "SENDING",
		"RDMA_WRITE of the send_feed is being sent, from PSN 200 on: PSN 203 is next");
	s.waiting.stop = REQ_READ_LIMIT;
	s.waiting.reads = 16;
	s.waiting.read_id = 2094998766;
	s.waiting.read_psn = 200;
	w = wait_for(&s, "READ_LIMIT", &list);
	assert_non_null(strstr(text_of(w, "text"), "the oldest is of the send_feed at PSN 200"));
	assert_true(json_is_null(json_object_get(w, "wr_id")));
	json_decref(list);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_FAKE(sending_is_no_resend),
		WITH_FAKE(a_rate_is_named),
		WITH_FAKE(a_paced_queue_pair_waits_for_its_rate),
		WITH_FAKE(feeds_have_no_wr_id),
	};

	return cmocka_run_group_tests(tests, fake_eal, fake_eal_end);
}
