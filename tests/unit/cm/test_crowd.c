/* SPDX-License-Identifier: BSD-3-Clause */
/* Many connections are unfinished (CM-40): who gets a place, and who gives his away. */
#include <errno.h>

#include "bed.h"

/* CM_40: unfinished connections are bounded, in all and for one source; then all is as before. */
static void
flood(void **state)
{
	struct bed b;
	struct cm_conn *c;
	uint32_t taken = 0, dropped = 0, source = 1;

	(void)state;
	bed_init(&b);
	for (uint32_t i = 1; i <= 12; i++) {
		bed_from(&b, 1, i);
		taken += b.v.drop == CM_DROP_NONE;
	}
	assert_int_equal(taken, 8); /* half of 16 */
	assert_int_equal(b.v.drop, CM_DROP_half_open);
	for (uint32_t i = 1; i <= 10000; i++) {
		bed_from(&b, ++source, 100 + i);
		taken += b.v.drop == CM_DROP_NONE;
		/* half_open: of those that share their place with the source above */
		dropped += b.v.drop == CM_DROP_crowded || b.v.drop == CM_DROP_half_open;
	}
	assert_int_equal(taken, 12); /* three quarters: the others are for REQs that are repeated */
	assert_int_equal(dropped, 10000 - 4);
	assert_int_equal(b.cm.n, 12);
	assert_int_equal(b.l->pending, 12);
	for (uint32_t i = 0; i < 10; i++) {
		bed_from(&b, source - i, 100 + 10000 - i);
		bed_dropped(&b, CM_DROP_crowded); /* repeated, but at once */
	}
	b.now += TIME_NS_PER_S;
	for (uint32_t i = 0; i < 10; i++) {
		bed_from(&b, source - i, 100 + 10000 - i);
		assert_int_equal(b.v.drop, i < 4 ? CM_DROP_NONE : CM_DROP_half_open);
	}
	assert_int_equal(b.cm.n, 16);
	/* They answer nothing, and go. */
	for (int i = 0; i < 100; i++)
		while (bed_due(&b, TIME_NS_PER_S))
			if (b.v.over)
				cm_forget(&b.cm, b.v.conn);
	assert_int_equal(b.cm.n, 0);
	assert_int_equal(b.cm.half_open, 0);
	assert_int_equal(b.l->pending, 0);
	memcpy(b.path.peer_gid, peer_gid, 16);
	bed_passive_up(&b);
	assert_int_equal(b.cm.half_open, 0);
	for (uint32_t at = 0; (c = cm_each(&b.cm, &at)) != NULL;)
		assert_ptr_equal(c, b.c);
	bed_fini(&b);
}

static void
from_mac(struct bed *b, uint8_t mac, uint32_t source, uint32_t id)
{
	b->path.peer_mac[5] = mac;
	bed_from(b, source, id);
}

/* A program that says yes at once. */
static bool
answered(struct bed *b)
{
	const struct cm_terms own = { .qpn = 0x100 + b->path.peer_gid[14], .psn = 1 };

	if (b->v.drop != CM_DROP_NONE || b->v.todo != CM_DO_ASK)
		return false;
	assert_int_equal(cm_accept(&b->cm, b->v.conn, &own, NULL, 0, b->now, &b->v), 0);
	return true;
}

/*
 * CM_40: a host that repeats the REQs that it forges, and takes all places: another one gets its
 * place when it repeats, each time, and what it takes is of the flood's.
 */
static void
repeated_flood(void **state)
{
	enum { HOSTILE = 1, HONEST = 2, FORGED = 100 };
	struct bed b;
	uint32_t ended = 0, again = 0;

	(void)state;
	bed_init(&b);
	for (int second = 0; second < 3; second++, b.now += TIME_NS_PER_S) {
		for (uint32_t i = 1; i <= FORGED; i++) {
			from_mac(&b, HOSTILE, i, i);
			answered(&b);
		}
		while (bed_due(&b, 0))
			if (b.v.over)
				cm_forget(&b.cm, b.v.conn);
	}
	assert_int_equal(b.cm.half_open, 16);
	for (uint32_t n = 1; n <= 6; n++) {
		from_mac(&b, HONEST, 200 + n, 1000 + n);
		assert_true(b.v.drop == CM_DROP_crowded || b.v.drop == CM_DROP_half_open);
	}
	b.now += TIME_NS_PER_S / 2;
	for (uint32_t i = 1; i <= FORGED; i++)
		from_mac(&b, HOSTILE, i, i);
	b.now += TIME_NS_PER_S / 2;
	for (uint32_t n = 1; n <= 6; n++) {
		from_mac(&b, HONEST, 200 + n, 1000 + n);
		assert_true(answered(&b));
		assert_in_range(b.cm.half_open, 1, 16);
		from_mac(&b, HOSTILE, FORGED, FORGED); /* it wants one, too */
		assert_false(answered(&b));
	}
	b.now += TIME_NS_PER_MS;
	while (bed_due(&b, 0))
		if (b.v.over) {
			assert_true(b.v.conn->path.peer_mac[5] == HOSTILE);
			assert_int_equal(mad_get(b.v.out[0].mad, REJ_reason), CM_REJ_TIMEOUT);
			cm_forget(&b.cm, b.v.conn);
			ended++;
		}
	assert_true(ended >= 6);
	/* RTUs are lost in the flood: who has no part in it is sent his REP again. */
	for (int i = 0; i < 40; i++, b.now += TIME_NS_PER_S / 10) {
		for (uint32_t k = 1; k <= FORGED; k++) {
			from_mac(&b, HOSTILE, k, k);
			answered(&b);
		}
		while (bed_due(&b, 0)) {
			const bool honest = b.v.conn->path.peer_mac[5] == HONEST;

			if (b.v.over) {
				assert_false(honest);
				cm_forget(&b.cm, b.v.conn);
			} else if (honest && b.v.outs != 0) {
				assert_int_equal(mad_message(b.v.out[0].mad), CM_REP);
				again++;
			}
		}
	}
	assert_int_equal(again, 6 * REQ_RETRIES);
	bed_fini(&b);
}

/* An MRA of the host that `c` belongs to. @return false: dropped. */
static bool
wait_longer(struct bed *b, const struct cm_conn *c, uint8_t timeout)
{
	mad_init(b->mad, CM_MRA, c->tid);
	mad_set(b->mad, MRA_local_comm_id, c->remote_id);
	mad_set(b->mad, MRA_remote_comm_id, c->local_id);
	mad_set(b->mad, MRA_message_mraed, 1);
	mad_set(b->mad, MRA_service_timeout, timeout);
	b->path = c->path;
	bed_receive(b);
	return b->v.drop == CM_DROP_NONE;
}

/* What is due now. @return how many are over. */
static uint32_t
ended(struct bed *b)
{
	uint32_t n = 0;

	while (bed_due(b, 0))
		if (b->v.over) {
			cm_forget(&b->cm, b->v.conn);
			n++;
		}
	return n;
}

/*
 * CM_40, CM_25: a host with several addresses takes all places, and asks for more time with an MRA
 * for each. Another one gets a place of it all the same, and an MRA that comes then is in vain.
 */
static void
patient_flood(void **state)
{
	enum { HOSTILE = 1, HONEST = 2 };
	struct cm_conn *c;
	struct bed b;
	uint32_t at;

	(void)state;
	bed_init(&b);
	for (int second = 0; second < 3; second++, b.now += TIME_NS_PER_S)
		for (uint32_t i = 1; i <= 24; i++) {
			from_mac(&b, HOSTILE, i, i);
			if (answered(&b))
				assert_true(wait_longer(&b, b.v.conn, 31));
		}
	assert_int_equal(b.cm.half_open, 16);
	for (int second = 0; second < 2; second++, b.now += TIME_NS_PER_S) {
		from_mac(&b, HONEST, 200, 1000);
		assert_int_equal(answered(&b), second == 1);
	}
	assert_in_range(b.cm.half_open, 1, 16);
	for (at = 0; (c = cm_each(&b.cm, &at)) != NULL;)
		if (c->path.peer_mac[5] == HOSTILE)
			wait_longer(&b, c, 31);
	b.now += TIME_NS_PER_MS;
	assert_int_equal(ended(&b), 1);
	assert_int_equal(b.cm.n, 16);
	bed_fini(&b);
}

/*
 * CM_40: only what a program has answered may end for another host: the first such of the flood
 * does, whatever stands before it.
 */
static void
room_behind_the_undecided(void **state)
{
	enum { HOSTILE = 1, HONEST = 2, UNDECIDED = 5, ALL = 16 };
	struct bed b;
	uint32_t ended = 0;

	(void)state;
	bed_init(&b);
	/* Half of the places go to whoever comes, the others to those who come again. */
	for (int again = 0; again < 2; again++, b.now += TIME_NS_PER_S)
		for (uint32_t i = 1; i <= ALL; i++) {
			from_mac(&b, HOSTILE, i, i);
			if (i > UNDECIDED)
				answered(&b);
		}
	assert_int_equal(b.cm.half_open, ALL);
	from_mac(&b, HONEST, 200, 1000);
	b.now += TIME_NS_PER_S;
	from_mac(&b, HONEST, 200, 1000);
	assert_true(answered(&b));
	while (bed_due(&b, 0))
		if (b.v.over) {
			/* Those that came when half was taken get less time than the others. */
			if (b.v.conn->remote_id <= ALL / 2) {
				assert_int_equal(b.v.conn->remote_id, UNDECIDED + 1);
				ended++;
			}
			cm_forget(&b.cm, b.v.conn);
		}
	assert_int_equal(ended, 1);
	bed_fini(&b);
}

/*
 * CM_40: a host that finishes what it begins, and ends none of it, leaves an eighth of all to
 * others: to those who ask, and to programs here.
 */
static void
those_that_stay(void **state)
{
	enum { HOSTILE = 1, HONEST = 2, ALL = 64, OTHERS = ALL / 8 };
	struct cm_ask ask = { .terms = { .qpn = 9 }, .time = TIME_NS_PER_S };
	struct cm_conn *c;
	struct bed b;
	uint32_t up = 0, at;

	(void)state;
	bed_init(&b);
	for (uint32_t i = 1; i <= 2 * ALL; i++) {
		from_mac(&b, HOSTILE, i, i);
		if (!answered(&b))
			continue;
		mad_init(b.mad, CM_RTU, b.v.conn->tid);
		mad_set(b.mad, RTU_local_comm_id, b.v.conn->remote_id);
		mad_set(b.mad, RTU_remote_comm_id, b.v.conn->local_id);
		bed_receive(&b);
		up += b.v.event == CM_EVENT_ESTABLISHED;
	}
	assert_int_equal(up, ALL - OTHERS);
	from_mac(&b, HOSTILE, 1, 2 * ALL + 1);
	bed_dropped(&b, CM_DROP_connections);
	for (uint32_t i = 1; i < OTHERS; i++) {
		from_mac(&b, HONEST, 200 + i, 1000 + i);
		assert_true(answered(&b));
	}
	assert_int_equal(cm_connect(&b.cm, &ask, b.now, &b.v), 0);
	assert_int_equal(cm_connect(&b.cm, &ask, b.now, &b.v), -ENOSPC);
	/* When one has ended it may begin another. */
	for (at = 0; (c = cm_each(&b.cm, &at)) != NULL;)
		cm_forget(&b.cm, c);
	from_mac(&b, HOSTILE, 1, 2 * ALL + 2);
	assert_true(answered(&b));
	bed_fini(&b);
}

/* CM_25: a peer that asks for more time again and again does not get it without end. */
static void
endless_mra(void **state)
{
	struct bed b;
	uint32_t minutes = 0;

	(void)state;
	bed_init(&b);
	bed_accept(&b);
	while (b.cm.n != 0 && minutes < 60) {
		wait_longer(&b, b.c, 31);
		b.now += 60 * TIME_NS_PER_S;
		minutes++;
		ended(&b);
	}
	assert_in_range(minutes, 2, (REQ_RETRIES + 1) * 2);
	assert_int_equal(b.cm.half_open, 0);
	bed_fini(&b);
}

/*
 * CM_40: what the same host has begun elsewhere, and what cannot be taken from it, does not hide
 * the places that can: a bounded look begins where the last one ended.
 */
static void
hidden(void **state)
{
	enum { HOSTILE = 1, HONEST = 2, ELSEWHERE = 100, BACKLOG = 8 };
	struct cm_listener *other;
	struct bed b;
	bool served = false;
	int rc;

	(void)state;
	bed_init_with(&b, (struct cm_limits){ 1024, 512, 1000 });
	other = cm_listen(&b.cm, 0, SERVICE + 1, NULL, &rc);
	assert_non_null(other);
	other->backlog = 512;
	for (uint32_t i = 1; i <= ELSEWHERE; i++) {
		b.path.peer_mac[5] = HOSTILE;
		bed_message(&b, CM_REQ);
		mad_set(b.mad, REQ_service_id, SERVICE + 1);
		mad_set(b.mad, REQ_local_comm_id, 0x5000 + i);
		mad_set(b.mad, REQ_local_qpn, 0x5000 + i);
		bed_receive(&b); /* that program does not answer */
		assert_int_equal(b.v.drop, CM_DROP_NONE);
	}
	b.l->backlog = BACKLOG;
	for (int second = 0; second < 2; second++, b.now += TIME_NS_PER_S) {
		for (uint32_t i = 1; i <= 2 * BACKLOG; i++) {
			from_mac(&b, HOSTILE, i, i);
			answered(&b);
		}
		from_mac(&b, HONEST, 200, 1000);
		assert_int_not_equal(b.v.drop, CM_DROP_NONE);
	}
	assert_int_equal(b.l->pending, BACKLOG);
	for (int tries = 0; tries < 3 && !served; tries++) {
		from_mac(&b, HONEST, 200, 1000);
		served = answered(&b);
	}
	assert_true(served);
	bed_fini(&b);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(flood),
		cmocka_unit_test(repeated_flood),
		cmocka_unit_test(hidden),
		cmocka_unit_test(patient_flood),
		cmocka_unit_test(room_behind_the_undecided),
		cmocka_unit_test(endless_mra),
		cmocka_unit_test(those_that_stay),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
