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
	/* Who is silent is forgotten, but for the newest. The priority is no part of who asks. */
	turn_after(250 * TIME_NS_PER_S);
	ask4(one, sizeof(one), 0x6005);
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
	static const uint8_t all[12] = { 0x11, 100 }, one[12] = { 0x11, 10, 0, 0, G4 };

	make_qp(40);
	call("mcast_attach", join4);
	turn_after(TIME_NS_PER_S);
	fake.frames_n = 0;
	ask4(all, sizeof(all), 0);
	call("mcast_detach", join4);
	ask4(one, sizeof(one), 0);
	assert_int_equal(sent(60)[IGMP_AT + 8], TO_IN);
	call("mcast_attach", join4);
	assert_int_equal(sent(60)[IGMP_AT + 8], TO_EX);
	turn_after(TIME_NS_PER_S);
	assert_int_equal(sent(60)[IGMP_AT + 8], TO_EX);
	turn_after(20 * TIME_NS_PER_S);
	nothing_sent();
}

/** A question is answered, and not with one bit changed. */
static void
not_with(void (*ask)(void), uint32_t at, uint8_t bits)
{
	fake.frames_n = 0;
	wrong.at = at;
	wrong.bits = bits;
	ask();
	turn_after(11 * TIME_NS_PER_S);
	nothing_sent();
	wrong.bits = 0;
	ask();
	turn_after(11 * TIME_NS_PER_S);
	assert_int_equal(fake.frames_n, 2);
	fake.frames_n = 0;
}

static void
ask_all4(void)
{
	static const uint8_t all[12] = { 0x11, 1 };

	ask4(all, sizeof(all), 0);
}

static void
ask_all6(void)
{
	static const uint8_t all[28] = { 130 };

	ask6(all, sizeof(all));
}

/* RFC 3376, 4.1 and RFC 3810, 6.2: what a question must have to be one. */
static void
what_is_no_question(void **state UNUSED)
{
	enum { IP6_AT = 14, HOPS_AT = 54 };

	join_four();
	not_with(ask_all4, IP4_AT + 10, 1);     /* checksum of the header */
	not_with(ask_all4, IGMP_AT + 3, 1);     /* ... of IGMP */
	not_with(ask_all4, IP4_AT + 3, 0x40);   /* longer than the frame */
	not_with(ask_all6, IP6_AT + 7, 2);      /* it came over a router */
	not_with(ask_all6, IP6_AT + 8, 0x20);   /* from elsewhere */
	not_with(ask_all6, IP6_AT + 9, 0x40);   /* ... */
	not_with(ask_all6, HOPS_AT + 2, 5 ^ 1); /* PadN, and no router alert */
	not_with(ask_all6, HOPS_AT + 3, 2);     /* an alert of no length */
	not_with(ask_all6, HOPS_AT + 5, 1);     /* ... for RSVP */
	not_with(ask_all6, HOPS_AT, 58 ^ 17);   /* UDP */
	not_with(ask_all6, IP6_AT + 4, 1);      /* longer than the frame */
}

/* RFC 3376, 7.2.1: a question of version 1 is for all groups, and gives ten seconds. */
static void
version_one(void **state UNUSED)
{
	static const uint8_t igmp1[8] = { 0x11, 0, 0, 0, G4 };

	join_four();
	for (uint32_t i = 0; i < 8; i++) {
		ask4(igmp1, sizeof(igmp1), 0);
		assert_int_equal(fake.frames_n, 2 * i);
		turn_after(10 * TIME_NS_PER_S);
		assert_int_equal(fake.frames_n, 2 * i + 2);
	}
}

/* Answers that are due at once do not keep the control lcore from all else. */
static void
many_groups(void **state UNUSED)
{
	enum { GROUPS = 40, TURN = 32 };
	char text[64];

	make_qp(40);
	for (uint32_t i = 0; i < GROUPS; i++) {
		snprintf(text, sizeof(text), "{\"qp_num\":40,\"group\":\"239.9.0.%u\"}", i);
		call("mcast_attach", text);
	}
	for (uint32_t i = 0; i < 3; i++)
		turn_after(TIME_NS_PER_S);
	assert_int_equal(fake.frames_n, 2 * GROUPS);
	fake.frames_n = 0;
	ask_all4();
	turn_after(100 * TIME_NS_PER_MS);
	assert_in_range(fake.frames_n, 1, TURN);
	turn_after(0);
	assert_int_equal(fake.frames_n, GROUPS);
	turn_after(20 * TIME_NS_PER_S);
	assert_int_equal(fake.frames_n, GROUPS);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_FAKE(two_older_versions),
		WITH_FAKE(vlans_are_answered),
		WITH_FAKE(the_sooner_answer),
		WITH_FAKE(who_leaves_answers_no_more),
		WITH_FAKE(what_is_no_question),
		WITH_FAKE(version_one),
		WITH_FAKE(many_groups),
	};

	return cmocka_run_group_tests(tests, fake_eal, fake_eal_end);
}
