/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages that come again, or for another connection: what they do not change. */
#include <errno.h>

#include "active.h"

enum { SIDR_ID = 0x99, SIDR_TID = 0x44, SIDR_SERVICE = 0x1111d2f };

static void
again(struct bed *b, enum cm_message m)
{
	bed_message(b, m);
	bed_receive(b);
	assert_int_equal(b->v.drop, CM_DROP_NONE);
	assert_true(b->v.duplicate);
	bed_event(b, CM_EVENT_NONE, 0);
}

/** The state ends after `time`, whatever is repeated until then. */
static void
ends_after(struct bed *b, ns_t time, enum cm_message m)
{
	const ns_t part = time / 4;

	for (uint32_t i = 0; i < 3; i++) {
		assert_false(bed_due(b, part));
		again(b, m);
	}
	assert_true(bed_due(b, time - 3 * part + TIME_NS_PER_MS));
	assert_true(b->v.over);
}

/* CM_35: a peer that repeats its DREQ keeps no place for longer. */
static void
CM_35_timewait(void **state)
{
	struct bed b;

	(void)state;
	bed_init(&b);
	bed_passive_up(&b);
	bed_message(&b, CM_DREQ);
	bed_receive(&b);
	bed_state(&b, CM_TIMEWAIT);
	ends_after(&b, cm_time(14), CM_DREQ);
	bed_event(&b, CM_EVENT_TIMEWAIT_EXIT, 0);
	bed_over(&b);
	bed_fini(&b);
}

/* CM_26: nor does its REQ give the program more time. */
static void
CM_26_unanswered(void **state)
{
	struct bed b;

	(void)state;
	bed_init(&b);
	bed_asked(&b);
	again(&b, CM_REQ);
	bed_state(&b, CM_MRA_REQ_SENT);
	ends_after(&b, cm_time(CM_MRA_TIMEOUT), CM_REQ);
	bed_event(&b, CM_EVENT_CONNECT_ERROR, ETIMEDOUT);
	bed_over(&b);
	bed_fini(&b);
}

/* CM_40: nor does its REJ keep its place among the unfinished ones. */
static void
CM_40_gave_up(void **state)
{
	struct bed b;

	(void)state;
	bed_init(&b);
	bed_accept(&b);
	bed_message(&b, CM_REJ);
	mad_set(b.mad, REJ_local_comm_id, 0); /* it has forgotten its own id */
	bed_receive(&b);
	bed_event(&b, CM_EVENT_REJECTED, 0);
	bed_state(&b, CM_REJ_RCVD);
	ends_after(&b, cm_time(CM_CROWDED_TIMEOUT), CM_REJ);
	bed_over(&b);
	bed_fini(&b);
}

/* CM_23: only a REJ may leave out our id; and who asked one address is not answered at another. */
static void
CM_23_ids(void **state)
{
	struct bed b;

	(void)state;
	bed_init(&b);
	bed_accept(&b);
	bed_message(&b, CM_RTU);
	mad_set(b.mad, RTU_remote_comm_id, 0);
	bed_receive(&b);
	bed_dropped(&b, CM_DROP_unknown);
	bed_message(&b, CM_RTU);
	b.path.own_gid[15] ^= 1;
	bed_receive(&b);
	bed_dropped(&b, CM_DROP_unknown);
	b.path.own_gid[15] ^= 1;
	b.path.port = 1;
	bed_receive(&b);
	bed_dropped(&b, CM_DROP_unknown);
	b.path.port = 0;
	bed_state(&b, CM_REP_SENT);
	bed_receive(&b);
	bed_state(&b, CM_ESTABLISHED);
	bed_fini(&b);
}

/* CM_22, CM_23: what came first counts: private data, and the time. */
static void
CM_22_first(void **state)
{
	struct bed b;
	ns_t at;

	(void)state;
	bed_init(&b);
	connect_bed(&b);
	rep(&b);
	bed_receive(&b);
	bed_state(&b, CM_ESTABLISHED);
	assert_memory_equal(b.c->private, "well", 4);
	b.now += TIME_NS_PER_MS;
	memcpy(mad_at(b.mad, REP_private_data), "evil", 4);
	mad_set(b.mad, REP_starting_psn, 1);
	bed_receive(&b);
	bed_sent(&b, CM_RTU);
	assert_memory_equal(b.c->private, "well", 4);
	assert_int_equal(b.c->taken.sq_psn, PEER_PSN);
	bed_message(&b, CM_RTU); /* that is for servers */
	bed_receive(&b);
	bed_dropped(&b, CM_DROP_state);
	bed_fini(&b);

	bed_init(&b);
	bed_passive_up(&b);
	at = b.c->time_rtu;
	b.now += TIME_NS_PER_MS;
	again(&b, CM_RTU);
	assert_true(b.c->time_rtu == at);
	bed_fini(&b);
}

/* CM_32: an answer goes where its message came from: a host may have moved, and its VLAN, too. */
static void
CM_32_newest_way(void **state)
{
	struct bed b;

	(void)state;
	bed_init(&b);
	bed_passive_up(&b);
	b.path.peer_mac[5] = 9;
	b.path.tci = 0x6007;
	bed_message(&b, CM_DREQ);
	bed_receive(&b);
	bed_sent(&b, CM_DREP);
	assert_int_equal(b.v.out[0].path.peer_mac[5], 9);
	assert_int_equal(b.v.out[0].path.tci, 0x6007);
	bed_fini(&b);
}

/** A SIDR_REQ to a listener whose program answers. */
static void
sidr_asks(struct bed *b, uint32_t id, uint64_t tid)
{
	mad_init(b->mad, CM_SIDR_REQ, tid);
	mad_set(b->mad, SIDR_REQ_request_id, id);
	mad_set(b->mad, SIDR_REQ_service_id, SIDR_SERVICE);
	bed_receive(b);
}

static struct cm_listener *
sidr_listener(struct bed *b)
{
	int rc;
	struct cm_listener *l = cm_listen(&b->cm, 0, SIDR_SERVICE, NULL, &rc);

	assert_non_null(l);
	l->service = CM_UD;
	l->asks = true;
	return l;
}

/* CM_31, CM_41: requests of datagram services are heard of as others are. */
static void
CM_31_sidr_unheard(void **state)
{
	struct bed b;
	struct cm_listener *l;

	(void)state;
	bed_init(&b);
	l = sidr_listener(&b);
	l->unheard_max = 1;
	sidr_asks(&b, 1, 1);
	assert_int_equal(b.v.event, CM_EVENT_CONNECT_REQUEST);
	b.c = b.v.conn;
	sidr_asks(&b, 2, 2);
	bed_dropped(&b, CM_DROP_backlog);
	sidr_asks(&b, 1, 1); /* that one again */
	assert_true(b.v.duplicate);
	cm_heard(b.c);
	b.now += TIME_NS_PER_S;
	sidr_asks(&b, 2, 2);
	assert_int_equal(b.v.event, CM_EVENT_CONNECT_REQUEST);
	assert_int_equal(
		cm_reject(&b.cm, b.v.conn, CM_REJ_CONSUMER_DEFINED, NULL, 0, b.now, &b.v), 0);
	assert_true(b.v.over);
	cm_forget(&b.cm, b.v.conn);
	assert_int_equal(l->unheard, 0);
	assert_int_equal(l->pending, 1);
	bed_fini(&b);
}

/* CM_41: the answer is repeated for a while, and no longer for who asks again and again. */
static void
CM_41_answer_kept(void **state)
{
	const struct cm_terms own = { .qpn = OWN_QPN, .qkey = 5, .service = CM_UD };
	const ns_t part = cm_time(CM_SIDR_KEPT) / 4;
	struct bed b;

	(void)state;
	bed_init(&b);
	sidr_listener(&b);
	sidr_asks(&b, SIDR_ID, SIDR_TID);
	b.c = b.v.conn;
	assert_int_equal(cm_accept(&b.cm, b.c, &own, NULL, 0, b.now, &b.v), 0);
	for (uint32_t i = 0; i < 3; i++) {
		assert_false(bed_due(&b, part));
		sidr_asks(&b, SIDR_ID, SIDR_TID);
		assert_int_equal(mad_get(bed_sent(&b, CM_SIDR_REP), SIDR_REP_qpn), OWN_QPN);
	}
	assert_true(bed_due(&b, part + TIME_NS_PER_MS));
	bed_over(&b);
	bed_fini(&b);
}

/* CM_21, CM_41: a REQ and a SIDR_REQ are two requests, though their ids are the same. */
static void
CM_41_same_ids(void **state)
{
	struct cm_conn *sidr;
	struct bed b;

	(void)state;
	bed_init(&b);
	sidr_listener(&b);
	sidr_asks(&b, PEER_ID, PEER_TID);
	sidr = b.v.conn;
	bed_message(&b, CM_REQ);
	bed_receive(&b);
	bed_dropped(&b, CM_DROP_state);
	assert_int_equal(sidr->state, CM_SIDR_REQ_RCVD);
	bed_fini(&b);

	bed_init(&b);
	sidr_listener(&b);
	bed_accept(&b);
	sidr_asks(&b, PEER_ID, PEER_TID);
	assert_int_equal(b.v.event, CM_EVENT_CONNECT_REQUEST);
	assert_ptr_not_equal(b.v.conn, b.c);
	bed_state(&b, CM_REP_SENT);
	bed_fini(&b);
}

/* CM_41: why there is no queue pair for datagrams is remembered. */
static void
CM_41_reason(void **state)
{
	struct cm_ask ask;
	struct bed b;

	(void)state;
	bed_init(&b);
	ask = ask_of(&b);
	ask.terms.service = CM_UD;
	assert_int_equal(cm_connect(&b.cm, &ask, b.now, &b.v), 0);
	b.c = b.v.conn;
	mad_init(b.mad, CM_SIDR_REP, b.c->tid);
	mad_set(b.mad, SIDR_REP_request_id, b.c->local_id);
	mad_set(b.mad, SIDR_REP_status, CM_SIDR_REFUSED);
	bed_receive(&b);
	bed_event(&b, CM_EVENT_UNREACHABLE, CM_SIDR_REFUSED);
	assert_int_equal(b.c->reason, CM_SIDR_REFUSED);
	bed_over(&b);
	bed_fini(&b);
}

/* CM_40: where few more may wait unheard, a REQ is heard when it is repeated. */
static void
CM_40_scarce(void **state)
{
	struct bed b;

	(void)state;
	bed_init_with(&b, (struct cm_limits){ 64, 32, 100 });
	b.l->backlog = 32;
	b.l->unheard_max = 4;
	for (uint32_t i = 1; i <= 3; i++) {
		bed_from(&b, 1, i);
		assert_int_equal(b.v.drop, CM_DROP_NONE);
	}
	bed_from(&b, 2, 4);
	bed_dropped(&b, CM_DROP_crowded);
	b.now += TIME_NS_PER_S;
	bed_from(&b, 3, 5);
	bed_dropped(&b, CM_DROP_crowded);
	bed_from(&b, 2, 4);
	assert_int_equal(b.v.drop, CM_DROP_NONE);
	/* What came years ago is no first time, and looking for it takes none. */
	cm_heard(b.v.conn);
	b.now += 20ull * 365 * 86400 * TIME_NS_PER_S;
	bed_from(&b, 3, 5);
	bed_dropped(&b, CM_DROP_crowded);
	bed_fini(&b);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(CM_35_timewait),
		cmocka_unit_test(CM_26_unanswered),
		cmocka_unit_test(CM_40_gave_up),
		cmocka_unit_test(CM_23_ids),
		cmocka_unit_test(CM_22_first),
		cmocka_unit_test(CM_32_newest_way),
		cmocka_unit_test(CM_31_sidr_unheard),
		cmocka_unit_test(CM_41_answer_kept),
		cmocka_unit_test(CM_41_same_ids),
		cmocka_unit_test(CM_41_reason),
		cmocka_unit_test(CM_40_scarce),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
