/* SPDX-License-Identifier: BSD-3-Clause */
/* Who asks for groups: in several VLANs, by several versions, again, and while they change. */
#include "members_bed.h"

/* RFC 3376, 7.2.1: each older version has a time of its own; one that is gone hides no other. */
static void
two_older_versions(void **state UNUSED)
{
	static const uint8_t igmp2[8] = { 0x11, 100 }, igmp1[8] = { 0x11, 0 };

	make_qp(40);
	ask4(igmp1, sizeof(igmp1), 0);
	turn_after(125 * TIME_NS_PER_S);
	ask4(igmp2, sizeof(igmp2), 0);
	turn_after(134 * TIME_NS_PER_S);
	call("mcast_attach", join4);
	assert_int_equal(sent(60)[IGMP_AT], 0x12);
	turn_after(TIME_NS_PER_S);
	assert_int_equal(sent(60)[IGMP_AT], 0x16);
	call("mcast_detach", join4);
	assert_int_equal(sent(60)[IGMP_AT], 0x17);
	turn_after(125 * TIME_NS_PER_S);
	assert_int_equal(sent(60)[IGMP_AT + 8], TO_IN);
}

/** How many of the frames that were sent have this tag; 0: no tag. */
static uint32_t
tagged(uint16_t tci)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < fake.frames_n; i++) {
		const uint8_t *f = fake.frames[i].data;

		n += tci == 0 ? be16_load(f + 12) != 0x8100
			      : be16_load(f + 12) == 0x8100 && be16_load(f + 14) == tci;
	}
	return n;
}

/* RFC 3376, 5.2: a switch asks in all VLANs of a trunk at once, and each of them gets answers. */
static void
vlans_are_answered(void **state UNUSED)
{
	static const uint8_t all[12] = { 0x11, 100 }, one[12] = { 0x11, 10, 0, 0, G4 };

	join_four();
	ask4(all, sizeof(all), 0);
	ask4(all, sizeof(all), 0x6005);
	turn_after(TIME_NS_PER_MS);
	ask4(all, sizeof(all), 7);
	ask4(all, sizeof(all), 7);
	for (uint32_t s = 0; s <= 10; s++)
		turn_after(TIME_NS_PER_S);
	assert_int_equal(tagged(0), 2);
	assert_int_equal(tagged(0x6005), 2);
	assert_int_equal(tagged(7), 2);
	assert_int_equal(fake.frames_n, 6);
	fake.frames_n = 0;
	/* A question for one group does not take the answer of another VLAN along. */
	ask4(all, sizeof(all), 7);
	ask4(one, sizeof(one), 0x6005);
	for (uint32_t s = 0; s <= 10; s++)
		turn_after(TIME_NS_PER_S);
	assert_int_equal(tagged(7), 2);
	assert_int_equal(tagged(0x6005), 1);
	fake.frames_n = 0;
	/* A change is told in each of them. */
	call("mcast_detach", join4);
	assert_int_equal(tagged(0), 1);
	assert_int_equal(tagged(0x6005), 1);
	assert_int_equal(tagged(7), 1);
	turn_after(TIME_NS_PER_S);
	assert_int_equal(fake.frames_n, 6);
	fake.frames_n = 0;
	/* The priority is no part of who asks; who is silent is forgotten, but for the newest. */
	turn_after(250 * TIME_NS_PER_S);
	ask4(one, sizeof(one), 5);
	call("mcast_attach", join4);
	assert_int_equal(tagged(5), 1);
	assert_int_equal(fake.frames_n, 1);
	turn_after(270 * TIME_NS_PER_S);
	assert_int_equal(tagged(5), 2);
	assert_int_equal(fake.frames_n, 2);
	fake.frames_n = 0;
	/* More than there is room for: the newest are answered. */
	for (uint16_t tci = 100; tci < 100 + 3 * MEMBER_TAGS; tci++) {
		turn_after(TIME_NS_PER_MS);
		ask4(all, sizeof(all), tci);
	}
	for (uint32_t s = 0; s <= 10; s++)
		turn_after(TIME_NS_PER_S);
	assert_int_equal(tagged(100), 0);
	assert_int_equal(tagged(100 + 3 * MEMBER_TAGS - 1), 2);
}

/* RFC 3376, 5.2: of two questions the one that gives less time counts. */
static void
the_sooner_answer(void **state UNUSED)
{
	static const uint8_t late[12] = { 0x11, 0x7f }, soon[12] = { 0x11, 2 };
	static const uint8_t one[12] = { 0x11, 1, 0, 0, G4 };

	join_four();
	ask4(late, sizeof(late), 0);
	turn_after(TIME_NS_PER_MS);
	ask4(soon, sizeof(soon), 0);
	turn_after(200 * TIME_NS_PER_MS);
	assert_int_equal(fake.frames_n, 2);
	fake.frames_n = 0;
	turn_after(20 * TIME_NS_PER_S);
	nothing_sent();
	ask4(one, sizeof(one), 0);
	ask4(late, sizeof(late), 0);
	turn_after(100 * TIME_NS_PER_MS);
	assert_in_range(fake.frames_n, 1, 2);
	turn_after(13 * TIME_NS_PER_S);
	assert_int_equal(fake.frames_n, 2);
}

/* Who has left in the time of an answer says so, and nothing else; who comes back is asked anew. */
static void
who_leaves_answers_no_more(void **state UNUSED)
{
	static const uint8_t all[12] = { 0x11, 100 };

	make_qp(40);
	call("mcast_attach", join4);
	turn_after(TIME_NS_PER_S);
	fake.frames_n = 0;
	ask4(all, sizeof(all), 0);
	call("mcast_detach", join4);
	ask4(all, sizeof(all), 0);
	assert_int_equal(sent(60)[IGMP_AT + 8], TO_IN);
	call("mcast_attach", join4);
	assert_int_equal(sent(60)[IGMP_AT + 8], TO_EX);
	turn_after(TIME_NS_PER_S);
	assert_int_equal(sent(60)[IGMP_AT + 8], TO_EX);
	turn_after(20 * TIME_NS_PER_S);
	nothing_sent();
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_FAKE(two_older_versions),
		WITH_FAKE(vlans_are_answered),
		WITH_FAKE(the_sooner_answer),
		WITH_FAKE(who_leaves_answers_no_more),
	};

	return cmocka_run_group_tests(tests, fake_eal, fake_eal_end);
}
