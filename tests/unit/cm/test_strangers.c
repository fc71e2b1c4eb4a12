/* SPDX-License-Identifier: BSD-3-Clause */
/* What hosts do that mean no connection: give up at once, keep places by a word, choose numbers. */
#include "bed.h"

enum { MANY = 200, CALLS = 1000 };

static void
message_of(struct bed *b, enum cm_message m, uint64_t tid)
{
	bed_message(b, m);
	mad_set(b->mad, MAD_tid, tid);
}

/* A REQ like all others but for its TID and queue pair, then its REJ, which needs no answer. */
static void
pair(struct bed *b, uint32_t n)
{
	b->c = NULL;
	message_of(b, CM_REQ, PEER_TID + n);
	mad_set(b->mad, REQ_local_qpn, 0x1000 + n);
	bed_receive(b);
	message_of(b, CM_REJ, PEER_TID + n);
	bed_receive(b);
}

/* CM-40: who takes its REQs back at once is bounded as if it had not. */
static void
CM_40_pairs(void **state)
{
	struct bed b;
	uint32_t told = 0;

	(void)state;
	bed_init(&b);
	for (uint32_t n = 0; n < MANY; n++) {
		pair(&b, n);
		told += b.v.event == CM_EVENT_REJECTED;
	}
	assert_int_equal(told, 8); /* half of 16, for one address */
	assert_int_equal(b.cm.half_open, 8);
	assert_int_equal(b.l->pending, 8);
	/* Their time is over: all is as before. */
	b.now += 2 * TIME_NS_PER_S;
	while (bed_due(&b, 0))
		cm_forget(&b.cm, b.v.conn);
	assert_int_equal(b.cm.n, 0);
	assert_int_equal(b.l->pending, 0);
	bed_passive_up(&b);
	bed_fini(&b);
}

/* CM-21, CM-24: what comes of that peer meanwhile. */
static void
CM_40_again_meanwhile(void **state)
{
	struct bed b;
	struct cm_conn *old;

	(void)state;
	bed_init(&b);
	bed_asked(&b);
	old = b.c;
	bed_message(&b, CM_REJ);
	mad_set(b.mad, REJ_remote_comm_id, 0);
	bed_receive(&b);
	bed_event(&b, CM_EVENT_REJECTED, 0);
	bed_receive(&b); /* once more */
	assert_true(b.v.duplicate);
	bed_event(&b, CM_EVENT_NONE, 0);
	bed_message(&b, CM_REQ);
	bed_receive(&b);
	assert_true(b.v.duplicate);
	bed_silent(&b);
	bed_message(&b, CM_RTU);
	bed_receive(&b);
	bed_dropped(&b, CM_DROP_state);
	/* Another attempt with the same queue pair is no stale one. */
	b.c = NULL;
	message_of(&b, CM_REQ, PEER_TID + 1);
	mad_set(b.mad, REQ_local_comm_id, PEER_ID + 1);
	bed_receive(&b);
	assert_int_equal(b.v.drop, CM_DROP_NONE);
	assert_ptr_not_equal(b.v.conn, old);
	bed_fini(&b);
}

/* @return the longest of the chains by which connections are found. */
static uint32_t
longest(const struct cm *cm, uint32_t chain)
{
	uint32_t most = 0;

	for (uint32_t i = 0; i < cm->limits.connections; i++) {
		uint32_t n = 0;

		for (uint32_t at = cm->heads[chain][i]; at != 0; at = cm->conns[at - 1].next[chain])
			n++;
		most = n > most ? n : most;
	}
	return most;
}

/* CM-40: a peer that chooses ids and queue pairs makes no chain long. */
static void
CM_40_chains(void **state)
{
	struct bed b;

	(void)state;
	bed_init_with(&b, (struct cm_limits){ 1024, 1024, CALLS });
	b.l->backlog = UINT32_MAX;
	for (uint32_t n = 0; n < 2 * MANY; n++) {
		b.c = NULL;
		message_of(&b, CM_REQ, PEER_TID + n);
		mad_set(b.mad, REQ_local_ca_guid, PEER_GUID + n);
		bed_receive(&b);
		assert_int_equal(b.v.drop, CM_DROP_NONE);
	}
	assert_int_equal(b.cm.n, 2 * MANY);
	assert_true(longest(&b.cm, CM_BY_REMOTE) < 10);
	assert_true(longest(&b.cm, CM_BY_QPN) < 10);
	bed_fini(&b);
}

/* CM-40: REQs with somebody's address do not use up what that one may send. */
static void
CM_40_a_forged_address(void **state)
{
	struct bed b;

	(void)state;
	bed_init_with(&b, (struct cm_limits){ 64, 16, 100 });
	b.path.peer_mac[5] = 0x66;
	bed_message(&b, CM_REQ);
	mad_set(b.mad, REQ_service_id, SERVICE + 1); /* nobody is there */
	for (uint32_t n = 0; n < 2 * MANY; n++)
		bed_receive(&b);
	bed_dropped(&b, CM_DROP_rate);
	b.path.peer_mac[5] = 0x77;
	bed_asked(&b);
	bed_fini(&b);
}

/* CM-25, CM-40: in a crowd an MRA brings no more time than an RTU has. */
static void
CM_40_mra_in_a_crowd(void **state)
{
	struct bed b;

	(void)state;
	for (int crowd = 0; crowd <= 1; crowd++) {
		bed_init(&b);
		bed_accept(&b);
		b.l->backlog = crowd ? 1 : 16;
		bed_message(&b, CM_MRA);
		mad_set(b.mad, MRA_message_mraed, 1);
		mad_set(b.mad, MRA_service_timeout, 24);
		bed_receive(&b);
		bed_state(&b, CM_MRA_REP_RCVD);
		assert_int_equal(
			bed_due(&b, cm_time(18) + cm_time(RESPONSE) + TIME_NS_PER_MS), crowd);
		bed_fini(&b);
	}
}

/* CM-33: an end is told within a minute or so, whatever timeout the program asked for. */
static void
CM_33_an_end_in_time(void **state)
{
	struct cm_ask ask = { .terms = { .qpn = OWN_QPN, .psn = OWN_PSN, .mtu = 4 },
		.service_id = SERVICE,
		.packet_life = 30,
		.ip = true,
		.time = TIME_NS_PER_S };
	struct bed b;
	ns_t began;

	(void)state;
	bed_init(&b);
	ask.path = b.path;
	assert_int_equal(cm_connect(&b.cm, &ask, b.now, &b.v), 0);
	b.c = b.v.conn;
	bed_message(&b, CM_REP);
	mad_set(b.mad, REP_local_qpn, PEER_QPN);
	bed_receive(&b);
	bed_state(&b, CM_ESTABLISHED);
	assert_int_equal(cm_disconnect(&b.cm, b.c, b.now, &b.v), 0);
	began = b.now;
	do
		bed_due(&b, TIME_NS_PER_S);
	while (b.v.event == CM_EVENT_NONE && b.now - began < 1000 * TIME_NS_PER_S);
	assert_int_equal(b.v.event, CM_EVENT_DISCONNECTED);
	assert_true(b.now - began < 90 * TIME_NS_PER_S);
	bed_fini(&b);
}

/* CM-12: an event has what its own message brought, and nothing of an earlier one. */
static void
CM_12_no_old_private_data(void **state)
{
	struct bed b;

	(void)state;
	bed_init(&b);
	bed_accept(&b);
	assert_true(cm_data(&b.cm, OWN_QPN, b.now, &b.v)); /* CM-36: before the RTU */
	bed_event(&b, CM_EVENT_ESTABLISHED, 0);
	assert_int_equal(b.c->private_len, 0);
	bed_message(&b, CM_DREQ);
	bed_receive(&b);
	bed_event(&b, CM_EVENT_DISCONNECTED, 0);
	assert_int_equal(b.c->private_len, 220);
	assert_true(bed_due(&b, 10 * TIME_NS_PER_S));
	bed_event(&b, CM_EVENT_TIMEWAIT_EXIT, 0);
	assert_int_equal(b.c->private_len, 0);
	bed_fini(&b);
}

/* CM-40: a listener that ends is nobody's any more. */
static void
a_listener_ends(void **state)
{
	struct bed b;
	struct cm_conn *up, *asked;

	(void)state;
	bed_init(&b);
	bed_passive_up(&b);
	up = b.c;
	b.c = NULL;
	message_of(&b, CM_REQ, PEER_TID + 1);
	mad_set(b.mad, REQ_local_qpn, PEER_QPN + 1);
	bed_receive(&b);
	asked = b.v.conn;
	assert_ptr_equal(asked->listener, b.l);
	cm_unlisten(&b.cm, b.l);
	assert_null(up->listener);
	assert_null(asked->listener);
	cm_forget(&b.cm, asked);
	assert_int_equal(b.cm.half_open, 0);
	bed_fini(&b);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(CM_40_pairs),
		cmocka_unit_test(CM_40_again_meanwhile),
		cmocka_unit_test(CM_40_chains),
		cmocka_unit_test(CM_40_a_forged_address),
		cmocka_unit_test(CM_40_mra_in_a_crowd),
		cmocka_unit_test(CM_33_an_end_in_time),
		cmocka_unit_test(CM_12_no_old_private_data),
		cmocka_unit_test(a_listener_ends),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
