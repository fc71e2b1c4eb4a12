/* SPDX-License-Identifier: BSD-3-Clause */
/* The side that listens: REQs, their answers, and the end of connections. */
#include <errno.h>

#include "bed.h"

static void
expect(const uint8_t *mad, enum mad_field f, uint64_t want)
{
	if (mad_get(mad, f) != want)
		fail_msg("%s is 0x%llx", mad_fields[f].name, (unsigned long long)mad_get(mad, f));
}

/* CM_09, CM_11, CM_14, CM_15, CM_18, CM_19: the REP, and what the server's QP gets. */
static void
accepted(void **state)
{
	struct bed b;
	const uint8_t *rep;

	(void)state;
	bed_init(&b);
	bed_accept(&b);
	rep = bed_sent(&b, CM_REP);
	expect(rep, MAD_tid, PEER_TID);
	expect(rep, REP_local_comm_id, b.c->local_id);
	expect(rep, REP_remote_comm_id, PEER_ID);
	expect(rep, REP_local_qpn, OWN_QPN);
	expect(rep, REP_starting_psn, OWN_PSN);
	expect(rep, REP_responder_resources, 2); /* never more than asked */
	expect(rep, REP_initiator_depth, 3);
	expect(rep, REP_rnr_retry_count, 1);
	expect(rep, REP_local_ca_guid, OWN_GUID);
	assert_true(mad_get(rep, REP_target_ack_delay) != 0);
	assert_true(mad_get(rep, REP_failover_accepted) <= 1);
	expect(rep, REP_end_to_end_flow_control, 1);
	assert_memory_equal(mad_peek(rep, REP_private_data), "yes", 4);
	assert_int_equal(b.c->taken.retry_cnt, 5);
	assert_int_equal(b.c->taken.rnr_retry, 6);
	assert_int_equal(b.c->taken.timeout, ACK_TIMEOUT);
	assert_int_equal(b.c->taken.max_rd_atomic, 3);
	assert_int_equal(b.c->taken.max_dest_rd_atomic, 2);
	assert_int_equal(b.c->taken.rq_psn, OWN_PSN);
	assert_int_equal(b.c->taken.sq_psn, PEER_PSN);
	assert_int_equal(b.c->taken.dest_qpn, PEER_QPN);
	assert_int_equal(b.c->taken.mtu, 3);
	bed_message(&b, CM_RTU);
	bed_receive(&b);
	bed_event(&b, CM_EVENT_ESTABLISHED, 0);
	assert_int_equal(b.v.todo, CM_DO_READY);
	assert_false(bed_due(&b, 1000 * TIME_NS_PER_S));
	bed_fini(&b);
}

/* CM_13: the program's answer, and the user's private data. */
static void
asked(void **state)
{
	struct bed b;
	const uint8_t *rej;

	(void)state;
	bed_init(&b);
	bed_asked(&b);
	bed_event(&b, CM_EVENT_CONNECT_REQUEST, 0);
	assert_int_equal(b.c->private_len, 56);
	assert_memory_equal(b.c->private, "hello", 6);
	assert_int_equal(cm_reject(&b.cm, b.c, CM_REJ_CONSUMER_DEFINED, (const uint8_t *)"no", 2,
				 b.now, &b.v),
		0);
	rej = bed_sent(&b, CM_REJ);
	expect(rej, MAD_tid, PEER_TID);
	expect(rej, REJ_local_comm_id, 0);
	expect(rej, REJ_remote_comm_id, PEER_ID);
	expect(rej, REJ_message_rejected, 0);
	expect(rej, REJ_reason, 28);
	assert_memory_equal(mad_peek(rej, REJ_private_data), "no", 3);
	bed_over(&b);
	bed_fini(&b);
}

/* CM_21, CM_26: a REQ again gets an MRA before the answer, and then the same REP. */
static void
repeated_req(void **state)
{
	uint8_t rep[MAD_LEN];
	struct bed b;

	(void)state;
	bed_init(&b);
	bed_asked(&b);
	for (int i = 0; i < 2; i++) {
		bed_message(&b, CM_REQ);
		bed_receive(&b);
		assert_true(b.v.duplicate);
		bed_event(&b, CM_EVENT_NONE, 0);
		expect(bed_sent(&b, CM_MRA), MRA_message_mraed, 0);
		expect(b.v.out[0].mad, MRA_remote_comm_id, PEER_ID);
		assert_true(mad_get(b.v.out[0].mad, MRA_service_timeout) > RESPONSE);
		bed_state(&b, CM_MRA_REQ_SENT);
	}
	assert_int_equal(
		cm_accept(&b.cm, b.c, &(struct cm_terms){ .qpn = OWN_QPN }, NULL, 0, b.now, &b.v),
		0);
	memcpy(rep, bed_sent(&b, CM_REP), MAD_LEN);
	for (int i = 0; i < 3; i++) {
		bed_message(&b, CM_REQ);
		bed_receive(&b);
		assert_true(b.v.duplicate);
		assert_memory_equal(bed_sent(&b, CM_REP), rep, MAD_LEN);
		assert_ptr_equal(b.v.conn, b.c);
	}
	assert_int_equal(b.cm.n, 1);
	bed_message(&b, CM_RTU);
	bed_receive(&b);
	bed_message(&b, CM_REQ);
	bed_receive(&b);
	assert_true(b.v.duplicate);
	bed_event(&b, CM_EVENT_NONE, 0);
	bed_fini(&b);
}

/* CM_26: before half of the peer's time is over nothing, then an MRA by itself. */
static void
slow_program(void **state)
{
	struct bed b;

	(void)state;
	bed_init(&b);
	bed_asked(&b);
	assert_false(bed_due(&b, cm_time(RESPONSE) / 2 - 10 * TIME_NS_PER_MS));
	assert_true(bed_due(&b, 11 * TIME_NS_PER_MS));
	bed_sent(&b, CM_MRA);
	/* It never answers. */
	assert_false(bed_due(&b, 60 * TIME_NS_PER_S));
	assert_true(bed_due(&b, 10 * TIME_NS_PER_S));
	expect(bed_sent(&b, CM_REJ), REJ_reason, 4);
	assert_int_equal(b.v.event, CM_EVENT_CONNECT_ERROR);
	bed_over(&b);
	bed_fini(&b);
}

/* CM_28: the REP is repeated unchanged, as often as the REQ says, and then it is over. */
static void
no_rtu(void **state)
{
	uint8_t rep[MAD_LEN];
	struct bed b;

	(void)state;
	bed_init(&b);
	bed_accept(&b);
	memcpy(rep, bed_sent(&b, CM_REP), MAD_LEN);
	for (int i = 0; i < REQ_RETRIES; i++) {
		assert_false(bed_due(&b, cm_time(RESPONSE) - TIME_NS_PER_MS));
		assert_true(bed_due(&b, 2 * TIME_NS_PER_MS));
		assert_memory_equal(bed_sent(&b, CM_REP), rep, MAD_LEN);
	}
	assert_true(bed_due(&b, cm_time(RESPONSE) + TIME_NS_PER_MS));
	expect(bed_sent(&b, CM_REJ), REJ_reason, 4);
	assert_int_equal(b.v.event, CM_EVENT_CONNECT_ERROR);
	assert_int_equal(b.v.todo, CM_DO_DOWN);
	bed_over(&b);
	bed_fini(&b);
}

/* CM_36: data takes the place of the RTU. */
static void
data_first(void **state)
{
	struct bed b;

	(void)state;
	bed_init(&b);
	bed_accept(&b);
	assert_false(cm_data(&b.cm, OWN_QPN + 1, b.now, &b.v));
	assert_true(cm_data(&b.cm, OWN_QPN, b.now, &b.v));
	bed_event(&b, CM_EVENT_ESTABLISHED, 0);
	assert_int_equal(b.v.todo, CM_DO_READY);
	assert_false(cm_data(&b.cm, OWN_QPN, b.now, &b.v));
	bed_message(&b, CM_RTU);
	bed_receive(&b);
	assert_true(b.v.duplicate);
	bed_event(&b, CM_EVENT_NONE, 0);
	bed_silent(&b);
	bed_state(&b, CM_ESTABLISHED);
	bed_fini(&b);
}

/* CM_32, CM_35: DREQ, its repetitions, and the wait. */
static void
peer_ends(void **state)
{
	struct bed b;

	(void)state;
	bed_init(&b);
	bed_passive_up(&b);
	bed_message(&b, CM_DREQ);
	mad_set(b.mad, MAD_tid, 0x999);
	bed_receive(&b);
	bed_event(&b, CM_EVENT_DISCONNECTED, 0);
	assert_int_equal(b.v.todo, CM_DO_DOWN);
	expect(bed_sent(&b, CM_DREP), MAD_tid, 0x999);
	expect(b.v.out[0].mad, DREP_remote_comm_id, PEER_ID);
	bed_receive(&b);
	assert_true(b.v.duplicate);
	expect(bed_sent(&b, CM_DREP), MAD_tid, 0x999);
	bed_event(&b, CM_EVENT_NONE, 0);
	bed_state(&b, CM_TIMEWAIT);
	/* CM_24: its QP cannot be connected anew yet. */
	bed_message(&b, CM_REQ);
	mad_set(b.mad, REQ_local_comm_id, PEER_ID + 1);
	mad_set(b.mad, MAD_tid, PEER_TID + 1);
	bed_receive(&b);
	bed_dropped(&b, CM_DROP_refused);
	expect(bed_sent(&b, CM_REJ), REJ_reason, 10);
	expect(b.v.out[0].mad, REJ_remote_comm_id, PEER_ID + 1);
	assert_false(bed_due(&b, cm_time(ACK_TIMEOUT) - TIME_NS_PER_MS));
	assert_true(bed_due(&b, 2 * TIME_NS_PER_MS));
	bed_event(&b, CM_EVENT_TIMEWAIT_EXIT, 0);
	bed_silent(&b);
	bed_over(&b);
	bed_fini(&b);
}

/*
 * CM-35: the wait lasts about 2 x packet life + ACK delay, which is what the REQ's local ACK
 * timeout says (4.096 us x 2^n), so 20 are 4.3 s. Wheel and margin add little.
 */
static void
CM_35_the_wait_is_as_long_as_the_path(void **state)
{
	static const struct {
		uint8_t ack_timeout;
		ns_t ms;
	} rows[] = { { 15, 134 }, { 16, 268 }, { 19, 2147 }, { 20, 4295 } };
	struct bed b;

	(void)state;
	for (uint32_t i = 0; i < ARRAY_LEN(rows); i++) {
		const struct cm_terms own = { .qpn = OWN_QPN, .psn = OWN_PSN };
		const ns_t about = rows[i].ms * TIME_NS_PER_MS;

		bed_init(&b);
		bed_message(&b, CM_REQ);
		mad_set(b.mad, REQ_primary_local_ack_timeout, rows[i].ack_timeout);
		bed_receive(&b);
		b.c = b.v.conn;
		assert_int_equal(cm_accept(&b.cm, b.c, &own, NULL, 0, b.now, &b.v), 0);
		bed_message(&b, CM_RTU);
		bed_receive(&b);
		bed_event(&b, CM_EVENT_ESTABLISHED, 0);
		bed_message(&b, CM_DREQ);
		bed_receive(&b);
		bed_state(&b, CM_TIMEWAIT);
		assert_false(bed_due(&b, about - about / 50));
		bed_state(&b, CM_TIMEWAIT);
		assert_true(bed_due(&b, about / 25));
		bed_event(&b, CM_EVENT_TIMEWAIT_EXIT, 0);
		bed_over(&b);
		bed_fini(&b);
	}
}

/* CM_24: the peer has started anew, and says so with its old queue pair. */
static void
stale(void **state)
{
	struct bed b;

	(void)state;
	bed_init(&b);
	bed_passive_up(&b);
	bed_message(&b, CM_REQ);
	mad_set(b.mad, REQ_local_comm_id, PEER_ID + 1);
	mad_set(b.mad, MAD_tid, PEER_TID + 1);
	bed_receive(&b);
	assert_int_equal(b.v.drop, CM_DROP_refused);
	assert_int_equal(b.v.outs, 2);
	expect(b.v.out[0].mad, REJ_reason, 10);
	assert_int_equal(mad_message(b.v.out[1].mad), CM_DREQ);
	expect(b.v.out[1].mad, DREQ_remote_qpn, PEER_QPN);
	assert_int_equal(b.v.todo, CM_DO_DOWN);
	bed_state(&b, CM_DREQ_SENT);
	assert_int_equal(b.cm.n, 1);
	bed_fini(&b);
}

/* CM_33: DREQ of our own, repeated until its time is over; CM_03: with an id of its own. */
static void
own_end(void **state)
{
	uint8_t dreq[MAD_LEN];
	struct bed b;

	(void)state;
	bed_init(&b);
	bed_passive_up(&b);
	assert_int_equal(cm_disconnect(&b.cm, b.c, b.now, &b.v), 0);
	assert_int_equal(b.v.todo, CM_DO_DOWN);
	bed_event(&b, CM_EVENT_NONE, 0);
	memcpy(dreq, bed_sent(&b, CM_DREQ), MAD_LEN);
	expect(dreq, DREQ_local_comm_id, b.c->local_id);
	expect(dreq, DREQ_remote_comm_id, PEER_ID);
	expect(dreq, DREQ_remote_qpn, PEER_QPN);
	assert_true(mad_get(dreq, MAD_tid) != PEER_TID);
	for (int i = 0; i < REQ_RETRIES; i++) {
		assert_true(bed_due(&b, cm_time(RESPONSE) + TIME_NS_PER_MS));
		assert_memory_equal(bed_sent(&b, CM_DREQ), dreq, MAD_LEN);
	}
	bed_message(&b, CM_DREP);
	bed_receive(&b);
	bed_dropped(&b, CM_DROP_transaction); /* of another DREQ */
	assert_true(bed_due(&b, cm_time(RESPONSE) + TIME_NS_PER_MS));
	bed_event(&b, CM_EVENT_DISCONNECTED, ETIMEDOUT); /* nobody has answered */
	bed_state(&b, CM_TIMEWAIT);
	assert_int_equal(cm_disconnect(&b.cm, b.c, b.now, &b.v), -22);
	bed_fini(&b);
}

/* CM_29: a REJ ends the attempt, or the connection. */
static void
rejected(void **state)
{
	struct bed b;

	(void)state;
	bed_init(&b);
	bed_accept(&b);
	bed_message(&b, CM_REJ);
	mad_set(b.mad, REJ_reason, 28);
	bed_receive(&b);
	bed_event(&b, CM_EVENT_REJECTED, 28);
	assert_int_equal(b.v.todo, CM_DO_DOWN);
	bed_forgotten(&b);

	bed_passive_up(&b);
	bed_message(&b, CM_REJ);
	mad_set(b.mad, MAD_tid, PEER_TID + 5);
	bed_receive(&b);
	bed_dropped(&b, CM_DROP_transaction);
	bed_message(&b, CM_REJ);
	mad_set(b.mad, REJ_remote_comm_id, b.c->local_id + 1);
	bed_receive(&b);
	bed_dropped(&b, CM_DROP_unknown);
	bed_state(&b, CM_ESTABLISHED);
	bed_message(&b, CM_REJ);
	mad_set(b.mad, REJ_reason, 4);
	bed_receive(&b);
	bed_event(&b, CM_EVENT_DISCONNECTED, 4);
	bed_state(&b, CM_TIMEWAIT);
	bed_fini(&b);
}

/* CM_29: the client gave up before it heard of our id. */
static void
given_up(void **state)
{
	struct bed b;

	(void)state;
	bed_init(&b);
	bed_accept(&b);
	bed_message(&b, CM_REJ);
	mad_set(b.mad, REJ_remote_comm_id, 0);
	mad_set(b.mad, REJ_reason, 4);
	bed_receive(&b);
	bed_event(&b, CM_EVENT_REJECTED, 4);
	bed_forgotten(&b);
	bed_fini(&b);
}

/* CM_25: the client needs time after the REP. */
static void
mra_for_rep(void **state)
{
	struct bed b;

	(void)state;
	bed_init(&b);
	bed_accept(&b);
	bed_message(&b, CM_MRA);
	mad_set(b.mad, MRA_message_mraed, 0);
	bed_receive(&b);
	bed_dropped(&b, CM_DROP_state); /* for a REQ that was not ours */
	mad_set(b.mad, MRA_message_mraed, 1);
	mad_set(b.mad, MRA_service_timeout, 22);
	bed_receive(&b);
	bed_state(&b, CM_MRA_REP_RCVD);
	assert_false(bed_due(&b, cm_time(22)));
	assert_true(bed_due(&b, cm_time(RESPONSE) + TIME_NS_PER_MS));
	bed_sent(&b, CM_REP);
	bed_state(&b, CM_REP_SENT);
	bed_fini(&b);
}

/* CM_39 */
static void
alternate(void **state)
{
	struct bed b;

	(void)state;
	bed_init(&b);
	bed_passive_up(&b);
	bed_message(&b, CM_LAP);
	mad_set(b.mad, MAD_tid, 0x77);
	bed_receive(&b);
	assert_true(mad_get(bed_sent(&b, CM_APR), APR_status) != 0);
	assert_int_equal(mad_get(bed_sent(&b, CM_APR), MAD_tid), 0x77); /* CM_03 */
	bed_message(&b, CM_APR);
	bed_receive(&b);
	bed_dropped(&b, CM_DROP_state);
	bed_state(&b, CM_ESTABLISHED);
	bed_fini(&b);
}

/* CM_29: what comes when it is over is not why it ended. */
static void
late_rej(void **state)
{
	struct bed b;

	(void)state;
	bed_init(&b);
	bed_passive_up(&b);
	bed_message(&b, CM_DREQ);
	memcpy(mad_at(b.mad, DREQ_private_data), "bye", 3);
	bed_receive(&b);
	bed_state(&b, CM_TIMEWAIT);
	bed_message(&b, CM_REJ);
	mad_set(b.mad, REJ_reason, 28);
	bed_receive(&b);
	bed_dropped(&b, CM_DROP_state);
	assert_int_equal(b.c->reason, 0);
	assert_memory_equal(b.c->private, "bye", 3);
	bed_fini(&b);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(accepted),
		cmocka_unit_test(asked),
		cmocka_unit_test(repeated_req),
		cmocka_unit_test(slow_program),
		cmocka_unit_test(no_rtu),
		cmocka_unit_test(data_first),
		cmocka_unit_test(peer_ends),
		cmocka_unit_test(CM_35_the_wait_is_as_long_as_the_path),
		cmocka_unit_test(stale),
		cmocka_unit_test(own_end),
		cmocka_unit_test(rejected),
		cmocka_unit_test(given_up),
		cmocka_unit_test(mra_for_rep),
		cmocka_unit_test(alternate),
		cmocka_unit_test(late_rej),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
