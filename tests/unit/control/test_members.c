/* SPDX-License-Identifier: BSD-3-Clause */
/* What switches that snoop are told of groups, by IGMP and MLD. Frames are typed from the RFCs. */
#include "members_bed.h"

/* RFC 3376: a change is told at once, and once more within a second, and then no more. */
static void
igmp_tells_of_a_change(void **state UNUSED)
{
	static const uint8_t joins[] = { 0x01, 0, 0x5e, 0, 0, 0x16, US, 0x08, 0x00, 0x46, 0xc0, 0,
		40, 0, 0, 0x40, 0, 1, 2, 0xf9, 0xf8, 10, 0, 0, 1, 224, 0, 0, 22, 0x94, 4, 0, 0,
		0x22, 0, 0xe8, 0xf9, 0, 0, 0, 1, TO_EX, 0, 0, 0, G4, 0, 0, 0, 0, 0, 0 };

	make_qp(40);
	nothing_sent();
	call("mcast_attach", join4);
	assert_memory_equal(sent(60), joins, sizeof(joins));
	turn_after(TIME_NS_PER_S);
	assert_memory_equal(sent(60), joins, sizeof(joins));
	turn_after(100 * TIME_NS_PER_S);
	nothing_sent();
	call("mcast_detach", join4);
	assert_int_equal(sent(60)[IGMP_AT + 8], TO_IN);
	turn_after(TIME_NS_PER_S);
	assert_int_equal(sent(60)[IGMP_AT + 8], TO_IN);
	turn_after(100 * TIME_NS_PER_S);
	nothing_sent();
}

/* RFC 3810: with options for every hop, from the address of the link. */
static void
mld_tells_of_a_change(void **state UNUSED)
{
	static const uint8_t joins[] = { 0x33, 0x33, 0, 0, 0, 0x16, US, 0x86, 0xdd, 0x60, 0, 0, 0,
		0, 36, 0, 1, LL_US, 0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x16, 58, 0, 5,
		2, 0, 0, 1, 0, 143, 0 };
	static const uint8_t record[] = { 0, 0, 0, 1, TO_EX, 0, 0, 0, G6 };
	const uint8_t *f;

	make_qp(40);
	call("mcast_attach", join6);
	f = sent(90);
	assert_memory_equal(f, joins, sizeof(joins));
	assert_memory_equal(f + MLD_AT + 4, record, sizeof(record));
	assert_int_equal(sum6(f + 14, f + MLD_AT, 28), 0);
	turn_after(TIME_NS_PER_S);
	assert_memory_equal(sent(90), joins, sizeof(joins));
	json_decref(rpc_ok("qp_destroy", "{\"qp_num\":40}"));
	turn_after(0);
	assert_int_equal(sent(90)[MLD_AT + 8], TO_IN);
}

/* The port is a member while one queue pair is. */
static void
the_last_one_leaves(void **state UNUSED)
{
	make_qp(40);
	make_qp(41);
	call("mcast_attach", join4);
	call("mcast_attach", "{\"qp_num\":41,\"group\":\"239.1.2.3\"}");
	sent(60);
	turn_after(TIME_NS_PER_S);
	sent(60);
	call("mcast_detach", join4);
	nothing_sent();
	json_decref(rpc_ok("qp_destroy", "{\"qp_num\":41}"));
	turn_after(0);
	assert_int_equal(sent(60)[IGMP_AT + 8], TO_IN);
	/* Who comes back before all of it was told is told of. */
	call("mcast_attach", join4);
	assert_int_equal(sent(60)[IGMP_AT + 8], TO_EX);
	turn_after(TIME_NS_PER_S);
	assert_int_equal(sent(60)[IGMP_AT + 8], TO_EX);
	turn_after(TIME_NS_PER_S);
	nothing_sent();
}

/* A question of the newest version, for all and for one; in the time that it gives. */
static void
igmp_questions_are_answered(void **state UNUSED)
{
	static const uint8_t all[12] = { 0x11, 50 }, one[12] = { 0x11, 50, 0, 0, 239, 1, 2, 4 };
	static const uint8_t late[12] = { 0x11, 0x8f }; /* 31 << 3 tenths of a second */

	join_four();
	ask4(all, sizeof(all), 0);
	turn_after(5 * TIME_NS_PER_S);
	assert_int_equal(fake.frames_n, 2);
	for (uint32_t i = 0; i < 2; i++) {
		const uint8_t *f = fake.frames[i].data;

		assert_int_equal(f[IGMP_AT], 0x22);
		assert_int_equal(f[IGMP_AT + 8], IS_EX);
		assert_int_equal(fake_sum16(f + IGMP_AT, 16, 0), 0);
	}
	assert_int_equal(fake.frames[0].data[IGMP_AT + 15] + fake.frames[1].data[IGMP_AT + 15], 7);
	fake.frames_n = 0;
	turn_after(100 * TIME_NS_PER_S);
	nothing_sent();
	ask4(one, sizeof(one), 0x6005);
	turn_after(5 * TIME_NS_PER_S);
	assert_memory_equal(fake.frames[0].data + 12, "\x81\x00\x60\x05\x08\x00", 6);
	assert_int_equal(sent(60)[IGMP_AT + 4 + 15], 4);
	ask4(late, sizeof(late), 0);
	turn_after(248 * TIME_NS_PER_S / 10);
	assert_int_equal(fake.frames_n, 2);
}

static void
mld_questions_are_answered(void **state UNUSED)
{
	static const uint8_t all[28] = { 130, 0, 0, 0, 0x13, 0x88 }; /* 5 s */
	static const uint8_t one[28] = { 130, 7 /* Code, ignored */, 0, 0, 0x13, 0x88, 0, 0, G6 };
	static const uint8_t late[28] = { 130, 0, 0, 0, 0x80, 0x01 }; /* 0x1001 << 3 ms */

	join_four();
	ask6(all, sizeof(all));
	turn_after(5 * TIME_NS_PER_S);
	assert_int_equal(fake.frames_n, 2);
	fake.frames_n = 0;
	ask6(one, sizeof(one));
	turn_after(5 * TIME_NS_PER_S);
	assert_int_equal(sent(90)[MLD_AT + 8], IS_EX);
	ask6(late, sizeof(late));
	turn_after(32776 * TIME_NS_PER_MS);
	assert_int_equal(fake.frames_n, 2);
}

/* RFC 3376, 7.2.1 and RFC 3810, 8.2.1: who speaks an older version is spoken to in it. */
static void
older_versions(void **state UNUSED)
{
	static const uint8_t igmp2[8] = { 0x11, 100 }, igmp1[8] = { 0x11, 0 };
	static const uint8_t mld1[24] = { 130, 0, 0, 0, 0x27, 0x10 };
	const uint8_t *f;

	make_qp(40);
	ask4(igmp2, sizeof(igmp2), 0);
	ask6(mld1, sizeof(mld1));
	call("mcast_attach", join4);
	f = sent(60);
	assert_memory_equal(f, "\x01\x00\x5e\x01\x02\x03", 6);
	assert_memory_equal(f + IP4_AT + 16, ((const uint8_t[]){ G4 }), 4);
	assert_int_equal(f[IGMP_AT], 0x16);
	assert_memory_equal(f + IGMP_AT + 4, ((const uint8_t[]){ G4 }), 4);
	assert_int_equal(fake_sum16(f + IGMP_AT, 8, 0), 0);
	call("mcast_detach", join4);
	f = sent(60);
	assert_int_equal(f[IGMP_AT], 0x17);
	assert_memory_equal(f, "\x01\x00\x5e\x00\x00\x02", 6);
	turn_after(TIME_NS_PER_S);
	sent(60);
	call("mcast_attach", join6);
	f = sent(86);
	assert_int_equal(f[MLD_AT], 131);
	assert_memory_equal(f + 38, ((const uint8_t[]){ G6 }), 16);
	assert_memory_equal(f + MLD_AT + 8, ((const uint8_t[]){ G6 }), 16);
	assert_int_equal(sum6(f + 14, f + MLD_AT, 24), 0);
	call("mcast_detach", join6);
	f = sent(86);
	assert_int_equal(f[MLD_AT], 132);
	assert_memory_equal(f + 38, "\xff\x02\0\0\0\0\0\0\0\0\0\0\0\0\0\x02", 16);
	turn_after(TIME_NS_PER_S);
	sent(86);
	ask4(igmp1, sizeof(igmp1), 0);
	ask4(igmp2, sizeof(igmp2), 0); /* the oldest counts */
	call("mcast_attach", join4);
	assert_int_equal(sent(60)[IGMP_AT], 0x12);
	turn_after(TIME_NS_PER_S);
	sent(60);
	call("mcast_detach", join4); /* there is no report for it */
	turn_after(TIME_NS_PER_S);
	nothing_sent();
	turn_after(260 * TIME_NS_PER_S);
	call("mcast_attach", join4);
	assert_int_equal(sent(60)[IGMP_AT], 0x22);
}

/* Who is at the other end of a link that comes up may know nothing. */
static void
a_link_comes_up(void **state UNUSED)
{
	join_four();
	assert_int_equal(rte_eth_dev_set_link_down(0), 0);
	turn_after(TIME_NS_PER_S);
	fake.frames_n = 0; /* it may have been up */
	turn_after(TIME_NS_PER_S);
	fake.frames_n = 0;
	turn_after(TIME_NS_PER_S);
	nothing_sent();
	assert_int_equal(rte_eth_dev_set_link_up(0), 0);
	turn_after(TIME_NS_PER_S);
	turn_after(0);
	assert_int_equal(fake.frames_n, 4);
	for (uint32_t i = 0; i < 2; i++)
		assert_int_equal(fake.frames[i].data[IGMP_AT + 8], TO_EX);
	turn_after(TIME_NS_PER_S);
	assert_int_equal(fake.frames_n, 8);
	turn_after(100 * TIME_NS_PER_S);
	assert_int_equal(fake.frames_n, 8);
	assert_int_equal(rte_eth_dev_set_link_down(0), 0);
}

/* Frames that are wrong in one place, and groups that nobody is told of. */
static void
what_is_not_answered(void **state UNUSED)
{
	static const uint8_t igmp[12] = { 0x11, 1 }, report[12] = { 0x22, 1 },
			     short3[10] = { 0x11 };
	static const uint8_t mld[28] = { 130 }, short2[26] = { 130 };
	static const uint8_t other[12] = { 0x11, 1, 0, 0, 239, 9, 9, 9 };
	uint8_t raw[86] = { 0x33, 0x33, 0, 0, 0, 1, PEER, 0x86, 0xdd, 0x60, 0, 0, 0, 0, 32, 0, 1 };

	join_four();
	ask4(report, sizeof(report), 0);
	ask4(short3, sizeof(short3), 0);
	ask4(other, sizeof(other), 0);
	ask6(short2, sizeof(short2));
	feed(raw, sizeof(raw)); /* no address of the link, no options, no checksum */
	for (uint32_t len = 1; len < sizeof(raw); len++)
		feed(raw, len);
	turn_after(TIME_NS_PER_S);
	nothing_sent();
	/* Many questions are one answer. */
	for (uint32_t i = 0; i < 100; i++)
		ask4(igmp, sizeof(igmp), 0);
	turn_after(TIME_NS_PER_S);
	assert_int_equal(fake.frames_n, 2);
	fake.frames_n = 0;
	for (uint32_t i = 0; i < 50; i++) { /* each to be answered at once */
		ask6(mld, sizeof(mld));
		turn_after(TIME_NS_PER_MS);
	}
	assert_in_range(fake.frames_n, 2, 4);
	fake.frames_n = 0;
	call("mcast_attach", "{\"qp_num\":40,\"group\":\"224.0.0.1\"}");
	call("mcast_attach", "{\"qp_num\":40,\"group\":\"ff02::1\"}");
	call("mcast_attach", "{\"qp_num\":40,\"group\":\"ff01::5\"}");
	turn_after(TIME_NS_PER_S);
	turn_after(TIME_NS_PER_S);
	for (uint32_t i = 0; i < fake.frames_n; i++) /* the rest of the answers above */
		assert_int_equal(fake.frames[i].data[MLD_AT + 8], IS_EX);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_FAKE(igmp_tells_of_a_change),
		WITH_FAKE(mld_tells_of_a_change),
		WITH_FAKE(the_last_one_leaves),
		WITH_FAKE(igmp_questions_are_answered),
		WITH_FAKE(mld_questions_are_answered),
		WITH_FAKE(older_versions),
		WITH_FAKE(a_link_comes_up),
		WITH_FAKE(what_is_not_answered),
	};

	return cmocka_run_group_tests(tests, fake_eal, fake_eal_end);
}
