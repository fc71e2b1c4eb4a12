/* SPDX-License-Identifier: BSD-3-Clause */
/* Who gives its place away in a crowd (CM-40), and what that brings to whom. */
#include "bed.h"

enum { HOSTILE = 1, HONEST = 2 };

static void
from_mac(struct bed *b, uint8_t mac, uint32_t source, uint32_t id)
{
	b->path.peer_mac[5] = mac;
	bed_from(b, source, id);
}

static struct cm_conn *
say_yes(struct bed *b)
{
	const struct cm_terms own = { .qpn = 0x100 + b->path.peer_gid[14], .psn = 1 };
	struct cm_conn *c = b->v.conn;

	assert_int_equal(b->v.drop, CM_DROP_NONE);
	assert_int_equal(b->v.todo, CM_DO_ASK);
	assert_int_equal(cm_accept(&b->cm, c, &own, NULL, 0, b->now, &b->v), 0);
	return c;
}

/** A message of the peer that has this connection. */
static void
from_peer_of(struct bed *b, const struct cm_conn *c, enum cm_message m)
{
	b->path = c->path;
	mad_init(b->mad, m, c->tid);
	mad_set(b->mad, RTU_local_comm_id, c->remote_id);
	mad_set(b->mad, RTU_remote_comm_id, c->local_id);
}

/* CM_40: a place for one listener is given by who has one of that listener's, not by others. */
static void
CM_40_of_that_listener(void **state)
{
	struct cm_listener *other;
	struct cm_conn *theirs;
	struct bed b;
	int rc;

	(void)state;
	bed_init_with(&b, (struct cm_limits){ 256, 128, 1000 });
	other = cm_listen(&b.cm, 0, SERVICE + 1, NULL, &rc);
	assert_non_null(other);
	b.l->backlog = 4;
	b.path.peer_mac[5] = HOSTILE;
	bed_message(&b, CM_REQ);
	mad_set(b.mad, REQ_service_id, SERVICE + 1);
	mad_set(b.mad, REQ_local_qpn, 0x9999);
	mad_set(b.mad, REQ_local_comm_id, 0x9999);
	bed_receive(&b);
	theirs = say_yes(&b); /* the oldest of all */
	for (uint32_t i = 1; i <= 4; i++) {
		from_mac(&b, HOSTILE, i, i);
		if (i == 4) {
			b.now += TIME_NS_PER_S;
			from_mac(&b, HOSTILE, i, i);
		}
		say_yes(&b);
	}
	from_mac(&b, HONEST, 100, 100);
	bed_dropped(&b, CM_DROP_backlog);
	b.now += TIME_NS_PER_S;
	from_mac(&b, HONEST, 100, 100);
	assert_int_equal(b.v.drop, CM_DROP_NONE);
	assert_non_null(b.v.displaced);
	assert_ptr_not_equal(b.v.displaced, theirs);
	assert_true(theirs->half_open);
	assert_int_equal(b.l->pending, 4);
	bed_fini(&b);
}

/*
 * CM_40: a flood of several MACs, of which none has more than half of the places. Who has fewer
 * gets places until all have as many, and no more: those of the flood take none from each other.
 */
static void
CM_40_shares_among_macs(void **state)
{
	enum { MACS = 3, FORGED = 60, FIRST = 10 };
	uint32_t got = 0, all;
	struct bed b;

	(void)state;
	bed_init(&b);
	for (uint32_t second = 0; second < 2; second++, b.now += TIME_NS_PER_S) {
		for (uint32_t i = 0; i < FORGED; i++) {
			from_mac(&b, (uint8_t)(FIRST + i % MACS), 1 + i, 1 + i);
			if (b.v.drop == CM_DROP_NONE && b.v.todo == CM_DO_ASK)
				say_yes(&b);
		}
	}
	all = b.cm.half_open;
	assert_int_equal(all, 16);
	for (uint32_t second = 0; second < 2; second++, b.now += TIME_NS_PER_S) {
		for (uint32_t n = 1; n <= 8; n++) {
			from_mac(&b, HONEST, 200 + n, 1000 + n);
			if (b.v.drop == CM_DROP_NONE && b.v.todo == CM_DO_ASK) {
				assert_non_null(b.v.displaced);
				assert_in_range(
					b.v.displaced->path.peer_mac[5], FIRST, FIRST + MACS - 1);
				say_yes(&b);
				got++;
			}
			assert_int_equal(b.cm.half_open, all);
		}
	}
	assert_int_equal(got, 4); /* of 16, as each of the four */
	for (uint32_t i = 0; i < FORGED; i++) {
		from_mac(&b, (uint8_t)(FIRST + i % MACS), 1 + i, 1 + i);
		assert_null(b.v.displaced);
	}
	bed_fini(&b);
}

/* CM_40: many hosts at once are no flood: none gives its place away before it could answer. */
static void
CM_40_time_for_an_answer(void **state)
{
	enum { MACS = 3, ALL = 16, FIRST = 10 };
	struct cm_conn *c;
	struct bed b;

	(void)state;
	bed_init(&b);
	for (uint32_t second = 0; second < 2; second++, b.now += TIME_NS_PER_S)
		for (uint32_t i = 0; i < ALL; i++)
			from_mac(&b, (uint8_t)(FIRST + i % MACS), 1 + i, 1 + i);
	assert_int_equal(b.cm.half_open, ALL);
	from_mac(&b, HONEST, 200, 1000);
	bed_dropped(&b, CM_DROP_half_open);
	b.now += TIME_NS_PER_S;
	for (uint32_t at = 0; (c = cm_each(&b.cm, &at)) != NULL;) {
		const struct cm_terms own = { .qpn = 0x100 + at, .psn = 1 };

		assert_int_equal(cm_accept(&b.cm, c, &own, NULL, 0, b.now, &b.v), 0);
	}
	b.now += TIME_NS_PER_S / 2;
	from_mac(&b, HONEST, 200, 1000);
	bed_dropped(&b, CM_DROP_half_open);
	b.now += TIME_NS_PER_S / 10;
	from_mac(&b, HONEST, 200, 1000);
	assert_int_equal(b.v.drop, CM_DROP_NONE);
	assert_non_null(b.v.displaced);
	bed_fini(&b);
}

/* CM_25, CM_40: who has given its place away gets no more time for its MRA. */
static void
CM_40_no_time_without_a_place(void **state)
{
	struct cm_conn *gone;
	struct bed b;

	(void)state;
	bed_init_with(&b, (struct cm_limits){ 256, 128, 1000 });
	b.l->backlog = 1;
	from_mac(&b, HOSTILE, 1, 1);
	say_yes(&b);
	from_mac(&b, HONEST, 100, 100);
	bed_dropped(&b, CM_DROP_backlog);
	b.now += TIME_NS_PER_S;
	from_mac(&b, HONEST, 100, 100);
	assert_int_equal(b.v.drop, CM_DROP_NONE);
	gone = b.v.displaced;
	assert_non_null(gone);
	from_peer_of(&b, gone, CM_MRA);
	mad_set(b.mad, MRA_message_mraed, 1);
	mad_set(b.mad, MRA_service_timeout, 20);
	bed_receive(&b);
	assert_int_equal(b.v.drop, CM_DROP_NONE);
	assert_true(bed_due(&b, TIME_NS_PER_MS));
	assert_ptr_equal(b.v.conn, gone);
	assert_true(b.v.over);
	bed_fini(&b);
}

/* CM_31, CM_40: no place is given away for one that the program would not hear of. */
static void
CM_40_nothing_for_the_unheard(void **state)
{
	struct bed b;

	(void)state;
	bed_init_with(&b, (struct cm_limits){ 256, 128, 1000 });
	b.l->backlog = 64;
	b.l->unheard_max = 1;
	for (uint32_t i = 1; i <= 4; i++) {
		from_mac(&b, HOSTILE, i, i);
		cm_heard(say_yes(&b));
	}
	from_mac(&b, HOSTILE, 5, 5);
	assert_int_equal(b.v.drop, CM_DROP_NONE);
	for (uint32_t i = 0; i < 3; i++) {
		from_mac(&b, HONEST, 100, 100);
		bed_dropped(&b, CM_DROP_backlog);
		assert_null(b.v.displaced);
		b.now += TIME_NS_PER_S;
	}
	assert_int_equal(b.l->pending, 5);
	bed_fini(&b);
}

/* CM_40: a place whose peer gave up is the first to go, before its moment is over. */
static void
CM_40_of_who_gave_up(void **state)
{
	struct bed b;

	(void)state;
	bed_init_with(&b, (struct cm_limits){ 256, 128, 1000 });
	b.l->backlog = 1;
	from_mac(&b, HONEST, 100, 100);
	cm_forget(&b.cm, b.v.conn);
	from_mac(&b, HOSTILE, 1, 1);
	from_peer_of(&b, b.v.conn, CM_REJ);
	bed_receive(&b);
	bed_event(&b, CM_EVENT_REJECTED, 0);
	from_mac(&b, HONEST, 100, 101);
	bed_dropped(&b, CM_DROP_backlog);
	b.now += TIME_NS_PER_S;
	from_mac(&b, HONEST, 100, 101);
	assert_int_equal(b.v.drop, CM_DROP_NONE);
	assert_int_equal(b.l->pending, 1);
	bed_fini(&b);
}

/* CM_40: in a crowd of many hosts each REP is sent once; none of them is spared. */
static void
CM_40_nobody_in_front(void **state)
{
	struct cm_conn *early;
	struct bed b;

	(void)state;
	bed_init(&b); /* 16 places */
	for (uint32_t i = 1; i <= 12; i++) {
		from_mac(&b, (uint8_t)(1 + i % 3), i, i);
		say_yes(&b);
	}
	for (uint32_t i = 13; i <= 15; i++) {
		from_mac(&b, i == 13 ? 2 : 3, i, i);
		bed_dropped(&b, CM_DROP_crowded);
	}
	b.now += TIME_NS_PER_S;
	from_mac(&b, 2, 13, 13);
	early = say_yes(&b); /* 5 are of this MAC, and 6 of the next one */
	b.now += 100 * TIME_NS_PER_MS;
	for (uint32_t i = 14; i <= 15; i++) {
		from_mac(&b, 3, i, i);
		say_yes(&b);
	}
	assert_true(bed_due(&b, cm_time(CM_CROWDED_TIMEOUT) - 90 * TIME_NS_PER_MS));
	assert_ptr_equal(b.v.conn, early);
	assert_true(b.v.over);
	assert_int_equal(mad_get(b.v.out[0].mad, REJ_reason), CM_REJ_TIMEOUT);
	bed_fini(&b);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(CM_40_of_that_listener),
		cmocka_unit_test(CM_40_shares_among_macs),
		cmocka_unit_test(CM_40_time_for_an_answer),
		cmocka_unit_test(CM_40_no_time_without_a_place),
		cmocka_unit_test(CM_40_nothing_for_the_unheard),
		cmocka_unit_test(CM_40_of_who_gave_up),
		cmocka_unit_test(CM_40_nobody_in_front),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
