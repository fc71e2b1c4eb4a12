/* SPDX-License-Identifier: BSD-3-Clause */
/* Path migration without packets: the state machine, what software may ask, the move itself. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "../../clib/eal.h"
#include "../../clib/qp_new.h"
#include "qp.h"
#include "qp_control.h"
#include "qp_snapshot.h"

/* Typed from the specification: the peer clears MigReq once it is ready, sets it once it moved. */
static void
AE_12_what_a_packet_means(void **state)
{
	static const struct {
		const char *now;
		bool migreq;
		bool alternate;
		const char *next;
	} rows[] = {
		{ "MIGRATED", false, false, "MIGRATED" },
		{ "MIGRATED", true, false, "MIGRATED" },
		{ "REARM", false, false, "ARMED" },
		{ "REARM", true, false, "REARM" },
		{ "ARMED", false, false, "ARMED" },
		{ "ARMED", true, true, "MIGRATED" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		for (int now = 0; now < MIG_MAX; now++) {
			struct qp_migration_step got;

			if (strcmp(verbs_mig_state_name((enum mig_state)now), rows[i].now) != 0)
				continue;
			got = qp_migration_step((enum mig_state)now, rows[i].migreq);
			assert_int_equal(got.alternate, rows[i].alternate);
			assert_string_equal(
				verbs_mig_state_name((enum mig_state)got.next), rows[i].next);
		}
	}
	/* Values of ibv_mig_state. */
	assert_string_equal(verbs_mig_state_name(0), "MIGRATED");
	assert_string_equal(verbs_mig_state_name(1), "REARM");
	assert_string_equal(verbs_mig_state_name(2), "ARMED");
	assert_string_equal(verbs_mig_state_name(3), "UNKNOWN");
	assert_false(qp_migration_step((enum mig_state)7, true).alternate);
}

static void
AE_12_what_software_may_ask(void **state)
{
	enum { M = 0, R = 1, A = 2 };
	static const struct {
		int now, to;
		bool loaded;
		const char *says; /* NULL: it may */
	} rows[] = {
		{ M, M, false, NULL },
		{ M, R, false, "alt_ah_attr" },
		{ M, R, true, NULL },
		{ M, A, true, "by itself" },
		{ R, M, true, "only ARMED" },
		{ R, R, true, NULL },
		{ R, A, true, "by itself" },
		{ A, M, true, NULL },
		{ A, R, true, "only MIGRATED" },
		{ A, A, true, "by itself" },
		{ M, 3, true, "by itself" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const char *why = "";
		int rc = qp_migration_check((enum mig_state)rows[i].now, (enum mig_state)rows[i].to,
			rows[i].loaded, &why);

		assert_int_equal(rc, rows[i].says == NULL ? 0 : -EINVAL);
		if (rows[i].says == NULL)
			assert_null(why);
		else
			assert_non_null(strstr(why, rows[i].says));
	}
}

static int
setup_eal(void **state)
{
	(void)state;
	return eal_start("32");
}

#define ALL_OF_RTS                                                                               \
	(QP_ATTR_STATE | QP_ATTR_PKEY_INDEX | QP_ATTR_AV | QP_ATTR_PATH_MTU | QP_ATTR_DEST_QPN | \
		QP_ATTR_TIMEOUT | QP_ATTR_RETRY_CNT | QP_ATTR_SQ_PSN)

/* One in RTS whose alternate path differs from the first one in everything. */
static struct qp *
make_qp(struct qp_attr *a)
{
	const struct qp_alloc_params params = { .max_recv_wr = 1, .max_recv_sge = 1 };
	struct qp *qp = qp_new(&params);

	assert_non_null(qp);
	qp->port = 4;
	*a = (struct qp_attr){ .qp_state = QPS_RTS,
		.pkey = 0x8001,
		.path_mtu = 1024,
		.dest_qp_num = 0x22,
		.timeout = 14,
		.retry_cnt = 3,
		.path = { .src_ip = { 192, 0, 2, 1 },
			.dst_ip = { 192, 0, 2, 2 },
			.ttl = 64,
			.dmac = { 2, 0, 0, 0, 0, 2 },
			.sport = 0xc000 },
		.path_resolved = true,
		.alt_resolved = true,
		.alt_port = 9,
		.alt_timeout = 16,
		.alt_pkey = 0x8002,
		.alt_path = { .ipv6 = true,
			.vlan = true,
			.vlan_tci = 5,
			.src_ip = { 0x20, 1, [15] = 1 },
			.dst_ip = { 0x20, 1, [15] = 2 },
			.ttl = 64,
			.dmac = { 2, 0, 0, 0, 0, 3 },
			.sport = 0xc001 } };
	qp_apply(qp, a, ALL_OF_RTS);
	return qp;
}

static void
order(struct qp *qp, uint8_t to)
{
	const struct qp_attr a = { .path_mig_state = to };

	qp_apply(qp, &a, QP_ATTR_PATH_MIG_STATE);
}

static void
the_states_show_in_what_is_sent(void **state)
{
	struct qp_attr a;
	struct qp *qp = make_qp(&a);

	(void)state;
	qp_apply(qp, &a, QP_ATTR_ALT_PATH);
	assert_int_equal(qp->flags & QPF_MIGRATION, 0);
	assert_false(qp->req.unmigrated);
	assert_false(qp->req.armed);

	qp->flags |= QPF_ACK_CRC;
	order(qp, MIG_REARM);
	assert_int_equal(qp->flags & (QPF_MIGRATION | QPF_ACK_CRC), QPF_MIGRATION);
	assert_true(qp->req.unmigrated);
	assert_false(qp->req.armed);

	qp_migration_set(qp, MIG_ARMED);
	assert_true(qp->req.armed);
	assert_int_equal(qp->attr.path_mig_state, MIG_ARMED);
	qp_free(qp);
}

static void
REQ_RETRY_09_everything_of_the_path_changes(void **state)
{
	struct qp_snapshot s;
	struct qp_attr a;
	struct qp *qp = make_qp(&a);

	(void)state;
	qp_apply(qp, &a, QP_ATTR_ALT_PATH | QP_ATTR_PATH_MIG_STATE);
	qp_migration_set(qp, MIG_ARMED);
	qp->req.retry_left = 0;
	qp_migrate(qp);

	assert_int_equal(qp->port, 9);
	assert_int_equal(qp->pkey, 0x8002);
	assert_int_equal(qp->flags & (QPF_IPV6 | QPF_VLAN | QPF_RESOLVED | QPF_MIGRATION),
		QPF_IPV6 | QPF_VLAN | QPF_RESOLVED);
	assert_memory_equal(qp->peer_ipv4, a.alt_path.dst_ip, 4);
	assert_memory_equal(qp->peer_mac, a.alt_path.dmac, 6);
	assert_memory_equal(qp->tmpl.bytes, a.alt_path.dmac, 6);
	assert_int_equal(qp->tmpl.ipv6, 1);
	assert_int_equal(qp->tmpl.bytes[qp->tmpl.bth_off + 3], 0x02); /* P_Key */
	assert_int_equal(qp->req.timeout, 16);
	assert_int_equal(qp->req.retry_left, 3);
	assert_false(qp->req.unmigrated);
	assert_false(qp->req.armed);
	qp_snapshot(qp, 0, 0, &s);
	assert_int_equal(s.migrations, 1);
	assert_int_equal(s.attr.path_mig_state, MIG_MIGRATED);
	assert_memory_equal(s.attr.path.dst_ip, a.alt_path.dst_ip, 16);

	/* The same path is the alternate one still: another migration goes nowhere new. */
	order(qp, MIG_REARM);
	qp_migration_set(qp, MIG_ARMED);
	order(qp, MIG_MIGRATED);
	qp_snapshot(qp, 0, 0, &s);
	assert_int_equal(s.migrations, 2);
	assert_int_equal(qp->port, 9);
	qp_free(qp);
}

static void
what_the_path_does_not_say_stays(void **state)
{
	struct qp_attr a;
	struct qp *qp = make_qp(&a);

	(void)state;
	a.alt_timeout = QP_ALT_TIMEOUT_SAME;
	a.alt_pkey = 0;
	qp_apply(qp, &a, QP_ATTR_ALT_PATH);
	order(qp, MIG_MIGRATED); /* nothing: it is */
	assert_int_equal(qp->port, 4);
	qp_migration_set(qp, MIG_ARMED);
	order(qp, MIG_MIGRATED);
	assert_int_equal(qp->port, 9);
	assert_int_equal(qp->pkey, 0x8001);
	assert_int_equal(qp->req.timeout, 14);
	qp_free(qp);
}

static void
a_mac_belongs_to_a_path_and_not_to_a_place(void **state)
{
	struct qp_attr a, m;
	struct qp *qp;

	(void)state;
	qp = make_qp(&a);
	a.alt_resolved = false;
	qp_apply(qp, &a, QP_ATTR_ALT_PATH);
	qp_migration_set(qp, MIG_ARMED);
	assert_false(qp->req.armed); /* nowhere to send yet */

	m = (struct qp_attr){ .path = a.alt_path, .path_resolved = true };
	m.path.dmac[5] = 0x44;
	qp_apply(qp, &m, QP_ATTR_NEW_MAC);
	assert_true(qp->attr.alt_resolved);
	assert_true(qp->req.armed);
	assert_int_equal(qp->tmpl.bytes[5], 2); /* the path in use is another one */

	qp_migrate(qp);
	assert_int_equal(qp->tmpl.bytes[5], 0x44);
	m.path.dmac[5] = 0x55;
	qp_apply(qp, &m, QP_ATTR_NEW_MAC);
	assert_int_equal(qp->tmpl.bytes[5], 0x55);
	m.path = a.path; /* the one it came from: nobody's now */
	m.path.dmac[5] = 0x66;
	qp_apply(qp, &m, QP_ATTR_NEW_MAC);
	assert_int_equal(qp->tmpl.bytes[5], 0x55);
	m.path = a.alt_path; /* the same address behind another tag */
	m.path.vlan_tci = 6;
	m.path.dmac[5] = 0x77;
	qp_apply(qp, &m, QP_ATTR_NEW_MAC);
	assert_int_equal(qp->tmpl.bytes[5], 0x55);
	m.path = a.alt_path; /* the same addresses behind another port */
	m.path.smac[5] ^= 1;
	m.path.dmac[5] = 0x88;
	qp_apply(qp, &m, QP_ATTR_NEW_MAC);
	assert_int_equal(qp->tmpl.bytes[5], 0x55);
	qp_free(qp);
}

static void
reset_forgets(void **state)
{
	struct qp_attr a, reset = { .qp_state = QPS_RESET };
	struct qp *qp = make_qp(&a);

	(void)state;
	qp_apply(qp, &a, QP_ATTR_ALT_PATH);
	qp_migration_set(qp, MIG_ARMED);
	qp_apply(qp, &reset, QP_ATTR_STATE);
	assert_int_equal(qp->attr.path_mig_state, MIG_MIGRATED);
	assert_int_equal(qp->flags & QPF_MIGRATION, 0);
	assert_false(qp->req.unmigrated);
	assert_false(qp->req.armed);
	qp_free(qp);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(AE_12_what_a_packet_means),
		cmocka_unit_test(AE_12_what_software_may_ask),
		cmocka_unit_test(the_states_show_in_what_is_sent),
		cmocka_unit_test(REQ_RETRY_09_everything_of_the_path_changes),
		cmocka_unit_test(what_the_path_does_not_say_stays),
		cmocka_unit_test(a_mac_belongs_to_a_path_and_not_to_a_place),
		cmocka_unit_test(reset_forgets),
	};

	return cmocka_run_group_tests(tests, setup_eal, NULL);
}
