/* SPDX-License-Identifier: BSD-3-Clause */
/* REQs that cannot be served, SIDR, limits, and the tables themselves. */
#include <errno.h>

#include "bed.h"

/* CM_20, CM_30, CM_31: the REJ says why; no place is taken. */
static void
refused(void **state)
{
	static const struct {
		enum mad_field field;
		uint64_t value;
		uint16_t reason;
	} rows[] = {
		{ REQ_service_id, 0x106270f, 8 }, /* another port */
		{ REQ_service_id, 0x13f1d2f, 8 }, /* another port space */
		{ REQ_service_id, 0x1234567800, 8 },
		{ REQ_transport_service_type, 1, 9 },
		{ REQ_transport_service_type, 2, 9 },
		{ REQ_transport_service_type, 3, 9 },
		{ REQ_path_mtu, 0, 26 },
		{ REQ_path_mtu, 5, 26 }, /* larger than the port's */
		{ REQ_path_mtu, 6, 26 },
		{ REQ_local_qpn, 1, 5 },
		{ REQ_pkey, 0x1234, 5 },
	};
	struct bed b;
	const uint8_t *rej;

	(void)state;
	bed_init(&b);
	b.l->mtu = 4;
	for (unsigned int i = 0; i < ARRAY_LEN(rows); i++) {
		bed_message(&b, CM_REQ);
		mad_set(b.mad, rows[i].field, rows[i].value);
		bed_receive(&b);
		bed_dropped(&b, CM_DROP_refused);
		rej = bed_sent(&b, CM_REJ);
		assert_int_equal(mad_get(rej, REJ_reason), rows[i].reason);
		assert_int_equal(mad_get(rej, REJ_local_comm_id), 0);
		assert_int_equal(mad_get(rej, REJ_remote_comm_id), PEER_ID);
		assert_int_equal(mad_get(rej, REJ_message_rejected), 0);
		assert_int_equal(mad_get(rej, MAD_tid), PEER_TID);
	}
	bed_message(&b, CM_REQ);
	mad_at(b.mad, REQ_primary_remote_gid)[15] = 9;
	bed_receive(&b);
	assert_int_equal(mad_get(bed_sent(&b, CM_REJ), REJ_reason), 12);
	bed_message(&b, CM_REQ);
	mad_at(b.mad, REQ_primary_local_gid)[15] = 9;
	bed_receive(&b);
	assert_int_equal(mad_get(bed_sent(&b, CM_REJ), REJ_reason), 12);
	for (unsigned int i = 0; i < 2; i++) {
		bed_message(&b, CM_REQ);
		mad_set(mad_at(b.mad, REQ_private_data), i == 0 ? IP_version : IP_ip_version,
			i == 0 ? 1 : 5);
		bed_receive(&b);
		assert_int_equal(mad_get(bed_sent(&b, CM_REJ), REJ_reason), 28);
	}
	assert_int_equal(b.cm.n, 0);
	for (uint8_t mtu = 1; mtu <= 4; mtu++) {
		bed_message(&b, CM_REQ);
		mad_set(b.mad, REQ_path_mtu, mtu);
		bed_receive(&b);
		assert_int_equal(b.v.todo, CM_DO_ASK);
		cm_forget(&b.cm, b.v.conn);
	}
	bed_fini(&b);
}

/* CM_38: dropped by name; reserved fields and the modifier do not matter. */
static void
bad_mads(void **state)
{
	static const struct {
		enum mad_field field;
		uint64_t value;
		enum cm_drop drop;
	} rows[] = {
		{ MAD_base_version, 2, CM_DROP_base_version },
		{ MAD_mgmt_class, 3, CM_DROP_class },
		{ MAD_class_version, 1, CM_DROP_class_version },
		{ MAD_method, 1, CM_DROP_method },
		{ MAD_attr_id, 0x0f, CM_DROP_attribute },
		{ MAD_attr_id, 0xff, CM_DROP_attribute },
	};
	struct bed b;

	(void)state;
	bed_init(&b);
	for (unsigned int i = 0; i < ARRAY_LEN(rows); i++) {
		bed_message(&b, CM_REQ);
		mad_set(b.mad, rows[i].field, rows[i].value);
		bed_receive(&b);
		bed_dropped(&b, rows[i].drop);
		bed_silent(&b);
	}
	bed_message(&b, CM_REQ);
	cm_receive(&b.cm, &(struct cm_packet){ b.mad, 255, b.path }, b.now, &b.v);
	bed_dropped(&b, CM_DROP_length);
	bed_message(&b, CM_REQ);
	mad_set(b.mad, MAD_attr_mod, 1);
	mad_set(b.mad, MAD_reserved, 1);
	b.mad[MAD_HEADER_LEN + 4] = 0xff;
	bed_receive(&b);
	assert_int_equal(b.v.todo, CM_DO_ASK);
	bed_fini(&b);
}

/* CM_40: REQs of one source in a second. CM_31: the listener's backlog. */
static void
rates(void **state)
{
	struct bed b;

	(void)state;
	bed_init_with(&b, (struct cm_limits){ 64, 32, 5 });
	b.l->backlog = 2;
	for (uint32_t i = 1; i <= 5; i++) {
		bed_from(&b, 1, i);
		assert_int_equal(b.v.drop, i <= 2 ? CM_DROP_NONE : CM_DROP_backlog);
	}
	bed_from(&b, 1, 6);
	bed_dropped(&b, CM_DROP_rate);
	bed_silent(&b);
	b.now += TIME_NS_PER_S;
	bed_from(&b, 1, 7);
	bed_dropped(&b, CM_DROP_backlog);
	cm_unlisten(&b.cm, b.l);
	bed_from(&b, 1, 8);
	bed_dropped(&b, CM_DROP_refused);
	assert_int_equal(b.cm.n, 2); /* those that it had can still be answered */
	bed_fini(&b);
}

/* CM_31: a listener that has heard of a request has room for the next one. */
static void
unheard(void **state)
{
	struct cm_conn *first;
	struct bed b;

	(void)state;
	bed_init_with(&b, (struct cm_limits){ 64, 32, 100 });
	b.l->backlog = 16;
	b.l->unheard_max = 2;
	bed_from(&b, 1, 1);
	first = b.v.conn;
	bed_from(&b, 1, 2);
	bed_from(&b, 1, 3);
	bed_dropped(&b, CM_DROP_backlog);
	/* Also where others could give their places. */
	bed_from(&b, 2, 3);
	bed_dropped(&b, CM_DROP_backlog);
	assert_null(b.v.displaced);
	cm_heard(first);
	cm_heard(first);
	bed_from(&b, 1, 4);
	assert_int_equal(b.v.drop, CM_DROP_NONE);
	assert_int_equal(b.l->pending, 3);
	bed_from(&b, 1, 5);
	bed_dropped(&b, CM_DROP_backlog);
	/* One that is over was heard of, too. */
	b.c = cm_find(&b.cm, first->local_id);
	assert_ptr_equal(b.c, first);
	assert_int_equal(cm_reject(&b.cm, first, CM_REJ_CONSUMER_DEFINED, NULL, 0, b.now, &b.v), 0);
	assert_int_equal(b.l->unheard, 2);
	while (b.l->pending != 0) {
		uint32_t at = 0;
		struct cm_conn *c = cm_each(&b.cm, &at);

		cm_forget(&b.cm, c);
	}
	assert_int_equal(b.l->unheard, 0);
	/* Nor does one count whose listener is gone. */
	bed_from(&b, 1, 6);
	first = b.v.conn;
	cm_unlisten(&b.cm, b.l);
	cm_heard(first);
	assert_int_equal(b.l->unheard, 0);
	bed_fini(&b);
}

/* CM_28: a REP is repeated though requests wait that no program reads: it is in nobody's way. */
static void
unheard_behind(void **state)
{
	const struct cm_terms own = { .qpn = OWN_QPN };
	struct bed b;
	uint32_t sent = 0;

	(void)state;
	bed_init(&b);
	b.l->unheard_max = 1;
	bed_from(&b, 1, 1);
	b.c = b.v.conn;
	cm_heard(b.c);
	assert_int_equal(cm_accept(&b.cm, b.c, &own, NULL, 0, b.now, &b.v), 0);
	bed_from(&b, 2, 2);
	assert_int_equal(b.v.drop, CM_DROP_NONE);
	assert_int_equal(b.l->unheard, 1);
	for (uint32_t i = 0; i < 50 && sent < REQ_RETRIES; i++)
		if (bed_due(&b, TIME_NS_PER_S / 2) && b.v.conn == b.c) {
			assert_false(b.v.over);
			assert_int_equal(b.v.outs, 1);
			assert_int_equal(mad_message(b.v.out[0].mad), CM_REP);
			sent++;
		}
	assert_int_equal(sent, REQ_RETRIES);
	bed_fini(&b);
}

/* CM_40: a table that is full takes nothing, and says so. */
static void
full(void **state)
{
	struct cm_ask ask = { .terms = { .qpn = 9 }, .time = TIME_NS_PER_S };
	struct bed b;

	(void)state;
	bed_init_with(&b, (struct cm_limits){ 4, 4, 1000 });
	for (int round = 0; round < 3; round++) {
		struct cm_conn *c[4];

		for (int i = 0; i < 4; i++) {
			assert_int_equal(cm_connect(&b.cm, &ask, b.now, &b.v), 0);
			c[i] = b.v.conn;
			assert_ptr_equal(cm_find(&b.cm, c[i]->local_id), c[i]);
		}
		assert_int_equal(cm_connect(&b.cm, &ask, b.now, &b.v), -ENOSPC);
		bed_from(&b, 1, 1);
		bed_dropped(&b, CM_DROP_connections);
		for (int i = 0; i < 4; i++) {
			const uint32_t id = c[i]->local_id;

			cm_forget(&b.cm, c[i]);
			assert_null(cm_find(&b.cm, id));
		}
	}
	assert_null(cm_find(&b.cm, 0));
	bed_fini(&b);
}

static const uint8_t ipv6_gid[16] = { 0xfd, 0x77, [15] = 1 };

/* Does a REQ to one of the addresses reach `l`? */
static bool
reaches(struct bed *b, bool ipv6, const struct cm_listener *l)
{
	const struct cm_path was = b->path;
	bool found;

	bed_message(b, CM_REQ);
	if (ipv6) {
		memcpy(b->path.own_gid, ipv6_gid, 16);
		memcpy(mad_at(b->mad, REQ_primary_remote_gid), ipv6_gid, 16);
		mad_set(mad_at(b->mad, REQ_private_data), IP_ip_version, 6);
	}
	bed_receive(b);
	found = b->v.todo == CM_DO_ASK && b->v.conn->listener == l;
	if (l == NULL)
		found = b->v.todo == CM_DO_NONE && mad_get(bed_sent(b, CM_REJ), REJ_reason) == 8;
	if (b->v.todo == CM_DO_ASK)
		cm_forget(&b->cm, b->v.conn);
	b->path = was;
	return found;
}

/* CM_45 */
static void
reach(void **state)
{
	struct cm_reach four = { .ip = 4 }, six = { .ip = 6 };
	struct cm_reach own4 = { .ip = 4, .is_one = true }, own6 = { .ip = 6, .is_one = true };
	struct cm_listener *l4, *l6;
	struct bed b;
	int rc;

	(void)state;
	memcpy(own4.gid, own_gid, 16);
	memcpy(own6.gid, ipv6_gid, 16);
	bed_init(&b);
	/* One that hears all leaves room for nobody. */
	assert_true(reaches(&b, false, b.l) && reaches(&b, true, b.l));
	assert_null(cm_listen(&b.cm, 0, SERVICE, &six, &rc));
	assert_int_equal(rc, -EADDRINUSE);
	assert_null(cm_listen(&b.cm, 0, SERVICE, &own4, &rc));
	assert_int_equal(rc, -EADDRINUSE);
	cm_unlisten(&b.cm, b.l);
	/* Families apart. */
	l6 = cm_listen(&b.cm, 0, SERVICE, &six, &rc);
	assert_true(reaches(&b, true, l6) && reaches(&b, false, NULL));
	assert_null(cm_listen(&b.cm, 0, SERVICE, &own6, &rc));
	assert_null(cm_listen(&b.cm, 0, SERVICE, NULL, &rc));
	assert_int_equal(rc, -EADDRINUSE);
	l4 = cm_listen(&b.cm, 0, SERVICE, &four, &rc);
	assert_true(reaches(&b, true, l6) && reaches(&b, false, l4));
	cm_unlisten(&b.cm, l4);
	cm_unlisten(&b.cm, l6);
	/* Addresses apart. */
	l4 = cm_listen(&b.cm, 0, SERVICE, &own4, &rc);
	assert_true(reaches(&b, false, l4) && reaches(&b, true, NULL));
	l6 = cm_listen(&b.cm, 0, SERVICE, &own6, &rc);
	assert_true(reaches(&b, false, l4) && reaches(&b, true, l6));
	/* Of one family, too. */
	cm_unlisten(&b.cm, l4);
	own4.gid[15]++;
	l6 = cm_listen(&b.cm, 0, SERVICE, &own4, &rc);
	assert_true(reaches(&b, false, NULL));
	own4.gid[15]--;
	l4 = cm_listen(&b.cm, 0, SERVICE, &own4, &rc);
	assert_true(l6 != NULL && l4 != NULL && reaches(&b, false, l4));
	bed_fini(&b);
}

/* CM_41 */
static void
sidr(void **state)
{
	struct bed b;
	struct cm_listener *l;
	const uint8_t *m;
	int rc;

	(void)state;
	bed_init(&b);
	l = cm_listen(&b.cm, 0, 0x1111d2f, NULL, &rc);
	assert_non_null(l);
	l->service = CM_UD;
	l->ud = (struct cm_terms){ .qpn = 0x55, .qkey = 0x11223344 };
	assert_null(cm_listen(&b.cm, 0, 0x1111d2f, NULL, &rc));
	assert_int_equal(rc, -EADDRINUSE);
	for (int i = 0; i < 3; i++) {
		mad_init(b.mad, CM_SIDR_REQ, 0x44);
		mad_set(b.mad, SIDR_REQ_request_id, 0x99);
		mad_set(b.mad, SIDR_REQ_service_id, i < 2 ? 0x1111d2f : SERVICE);
		bed_receive(&b);
		m = bed_sent(&b, CM_SIDR_REP);
		assert_int_equal(mad_get(m, MAD_tid), 0x44);
		assert_int_equal(mad_get(m, SIDR_REP_request_id), 0x99);
		assert_int_equal(mad_get(m, SIDR_REP_service_id), i < 2 ? 0x1111d2f : SERVICE);
		assert_int_equal(mad_get(m, SIDR_REP_status), i < 2 ? 0 : 1);
		assert_int_equal(mad_get(m, SIDR_REP_qpn), i < 2 ? 0x55 : 0);
		assert_int_equal(mad_get(m, SIDR_REP_qkey), i < 2 ? 0x11223344 : 0);
	}
	bed_message(&b, CM_REQ);
	mad_set(b.mad, REQ_service_id, 0x1111d2f);
	bed_receive(&b);
	assert_int_equal(mad_get(bed_sent(&b, CM_REJ), REJ_reason), 8);
	bed_fini(&b);
}

/* Each event, state and drop has its name. */
static void
words(void **state)
{
	(void)state;
	for (int s = 0; s < CM_STATES; s++)
		assert_non_null(cm_state_name((enum cm_state)s));
	for (int e = 1; e < CM_EVENTS; e++)
		assert_non_null(cm_event_name((enum cm_event)e));
	for (int d = 1; d < CM_DROPS; d++)
		assert_true(strlen(cm_drop_text((enum cm_drop)d)) > 5);
	assert_int_equal(cm_response_timeout(TIME_NS_PER_S, 15), 13);
	assert_int_equal(cm_response_timeout(0, 15), CM_TIMEOUT_MIN);
	assert_int_equal(cm_response_timeout(UINT64_MAX, 15), CM_TIMEOUT_MAX);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(refused),
		cmocka_unit_test(bad_mads),
		cmocka_unit_test(rates),
		cmocka_unit_test(unheard),
		cmocka_unit_test(unheard_behind),
		cmocka_unit_test(full),
		cmocka_unit_test(reach),
		cmocka_unit_test(sidr),
		cmocka_unit_test(words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
