/* SPDX-License-Identifier: BSD-3-Clause */
/* Multicast groups: who is a member, and what is found while groups come and go (UD-31). */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "qp_mcast.h"
#include "wire_group.h"

static struct qp_mcast_group
group(uint32_t n, uint32_t port)
{
	struct qp_mcast_group g = { .port = port };
	const uint8_t ip[4] = { 239, (uint8_t)(n >> 16), (uint8_t)(n >> 8), (uint8_t)n };

	wire_group_gid(false, ip, g.addr);
	return g;
}

/* RFC 1112, 6.4; RFC 2464, 7. */
static void
UD_31_macs(void **state UNUSED)
{
	static const uint8_t v4[4] = { 239, 129, 2, 3 };
	static const uint8_t v6[16] = { 0xff, 0x0e, [12] = 0xab, 0xcd, 0xef, 0x01 };
	uint8_t mac[6], gid[16];

	wire_group_mac(false, v4, mac);
	assert_memory_equal(mac, ((uint8_t[]){ 0x01, 0x00, 0x5e, 0x01, 0x02, 0x03 }), 6);
	wire_group_mac(true, v6, mac);
	assert_memory_equal(mac, ((uint8_t[]){ 0x33, 0x33, 0xab, 0xcd, 0xef, 0x01 }), 6);
	wire_group_gid(true, v6, gid);
	assert_memory_equal(gid, v6, 16);
	assert_true(wire_is_group(false, v4) && wire_is_group(true, v6));
	assert_false(wire_is_group(false, (const uint8_t[]){ 240, 0, 0, 1 }));
	assert_false(wire_is_group(false, (const uint8_t[]){ 223, 255, 255, 255 }));
}

static void
UD_31_members(void **state UNUSED)
{
	struct qp_mcast_table *t = qp_mcast_table_create();
	const struct qp_mcast_group a = group(1, 0), b = group(1, 1), c = group(2, 0);
	uint32_t qpn[QP_MCAST_QPS];

	assert_int_equal(qp_mcast_members(t, &a, qpn), 0);
	assert_int_equal(qp_mcast_remove(t, &a, 7), -ENOENT);
	assert_int_equal(qp_mcast_add(t, &a, 7), 0);
	assert_int_equal(qp_mcast_add(t, &a, 7), -EEXIST);
	assert_int_equal(qp_mcast_add(t, &b, 8), 0);
	assert_int_equal(qp_mcast_members(t, &c, qpn), 0);
	assert_int_equal(qp_mcast_members(t, &a, qpn), 1);
	assert_int_equal(qpn[0], 7);
	assert_int_equal(qp_mcast_members(t, &b, qpn), 1);
	assert_int_equal(qpn[0], 8);
	for (uint32_t n = 1; n < QP_MCAST_QPS; n++)
		assert_int_equal(qp_mcast_add(t, &a, 100 + n), 0);
	assert_int_equal(qp_mcast_add(t, &a, 99), -ENOSPC);
	assert_int_equal(qp_mcast_members(t, &a, qpn), QP_MCAST_QPS);
	assert_int_equal(qp_mcast_remove(t, &a, 103), 0);
	assert_int_equal(qp_mcast_members(t, &a, qpn), QP_MCAST_QPS - 1);
	assert_int_equal(qp_mcast_add(t, &a, 99), 0);
	assert_int_equal(qp_mcast_members(t, &a, qpn), QP_MCAST_QPS);
	qp_mcast_table_destroy(t);
}

/* All groups that there may be, several times: every place goes from hand to hand. */
static void
UD_31_as_many_groups_as_there_may_be(void **state UNUSED)
{
	struct qp_mcast_table *t = qp_mcast_table_create();
	uint32_t qpn[QP_MCAST_QPS];

	for (uint32_t round = 0; round < 3; round++) {
		const uint32_t first = round * 1000;

		for (uint32_t n = 0; n < QP_MCAST_GROUPS; n++) {
			const struct qp_mcast_group g = group(first + n, 3);

			assert_int_equal(qp_mcast_add(t, &g, n + 1), 0);
		}
		assert_int_equal(
			qp_mcast_add(t, &(struct qp_mcast_group){ .port = 9 }, 1), -ENOMEM);
		for (uint32_t n = 0; n < QP_MCAST_GROUPS; n++) {
			const struct qp_mcast_group g = group(first + n, 3);

			assert_int_equal(qp_mcast_members(t, &g, qpn), 1);
			assert_int_equal(qpn[0], n + 1);
		}
		for (uint32_t n = 0; n < QP_MCAST_GROUPS; n++) {
			const struct qp_mcast_group g = group(first + n, 3);

			assert_int_equal(qp_mcast_remove(t, &g, n + 1), 0);
			assert_int_equal(qp_mcast_members(t, &g, qpn), 0);
		}
	}
	qp_mcast_table_destroy(t);
}

struct looker {
	const struct qp_mcast_table *t;
	_Atomic bool stop;
	uint64_t found;
	bool wrong;
};

/* Members of group n have numbers n * 256 and on. */
static void *
look(void *arg)
{
	struct looker *l = arg;
	uint32_t qpn[QP_MCAST_QPS];

	while (!atomic_load(&l->stop)) {
		for (uint32_t n = 1; n < 64; n++) {
			const struct qp_mcast_group g = group(n, 0);
			const uint32_t m = qp_mcast_members(l->t, &g, qpn);

			for (uint32_t i = 0; i < m; i++)
				l->wrong |= qpn[i] >> 8 != n;
			l->found += m;
		}
	}
	return NULL;
}

/* Whoever asks meanwhile finds members of the group that it asks for, or nobody. */
static void
UD_31_nobody_elses_members(void **state UNUSED)
{
	struct qp_mcast_table *t = qp_mcast_table_create();
	struct looker l = { .t = t };
	pthread_t thread;
	uint32_t rounds = 0;

	assert_int_equal(pthread_create(&thread, NULL, look, &l), 0);
	do {
		for (uint32_t n = 1; n < 64; n++) {
			const struct qp_mcast_group g = group(n, 0);

			assert_int_equal(qp_mcast_add(t, &g, n << 8 | (rounds & 0xff)), 0);
			assert_int_equal(qp_mcast_add(t, &g, n << 8 | ((rounds + 1) & 0xff)), 0);
			assert_int_equal(qp_mcast_remove(t, &g, n << 8 | (rounds & 0xff)), 0);
			if (n > 2) {
				const struct qp_mcast_group old = group(n - 2, 0);

				assert_int_equal(qp_mcast_remove(t, &old,
							 (n - 2) << 8 | ((rounds + 1) & 0xff)),
					0);
			}
		}
		for (uint32_t n = 62; n < 64; n++) {
			const struct qp_mcast_group g = group(n, 0);

			assert_int_equal(qp_mcast_remove(t, &g, n << 8 | ((rounds + 1) & 0xff)), 0);
		}
	} while (++rounds < 5000);
	atomic_store(&l.stop, true);
	pthread_join(thread, NULL);
	assert_false(l.wrong);
	assert_int_equal(t->groups, 0);
	qp_mcast_table_destroy(t);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(UD_31_macs),
		cmocka_unit_test(UD_31_members),
		cmocka_unit_test(UD_31_as_many_groups_as_there_may_be),
		cmocka_unit_test(UD_31_nobody_elses_members),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
