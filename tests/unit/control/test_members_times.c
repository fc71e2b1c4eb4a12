/* SPDX-License-Identifier: BSD-3-Clause */
/* When answers come, to the millisecond, and what of groups ends with them. */
#include "members_bed.h"

#include "control_state.h"

enum { TENTH = 100 /* ms, IGMP's */, PARTS = 1024 /* of a time that is given */ };

static struct member_table *
members(void)
{
	return &fake.c->net.members;
}

/** The factor of spread()'s numbers, and what undoes it in 32 bits. */
#define FACTOR 1664525u
#define ADDEND 1013904223u

static uint32_t
inverse(uint32_t odd)
{
	uint32_t x = odd;

	for (uint32_t i = 0; i < 5; i++)
		x *= 2 - odd * x;
	return x;
}

/** The next answer comes as late as it may. */
static void
latest(void)
{
	const uint32_t host = be32_load(fake.addr.mac + 2) * 0x9e3779b1u;

	members()->spread = (~host - ADDEND) * inverse(FACTOR);
}

/** An answer for one group is due within so many ms: there is none before, and then there is. */
static void
comes_within(uint64_t ms, uint32_t len)
{
	turn_after(ms * TIME_NS_PER_MS / PARTS * (PARTS - 1) - TIME_NS_PER_MS / 2);
	nothing_sent();
	turn_after(TIME_NS_PER_MS / 2);
	sent(len);
}

/* RFC 2236, 2.2: the time of version 2 is a number; RFC 3376, 4.1.1: of version 3, from 128 on a
 * mantissa and an exponent. */
static void
igmp_times(void **state UNUSED)
{
	static const struct {
		uint8_t code;
		uint8_t len;
		uint32_t tenths;
	} rows[] = { { 100, 12, 100 }, { 127, 12, 127 }, { 128, 12, 16 << 3 },
		{ 0x8f, 12, 31 << 3 }, { 0xff, 12, 31 << 10 }, { 0xb5, 12, 21 << 6 },
		{ 127, 8, 127 }, { 0x8f, 8, 0x8f }, { 255, 8, 255 } };

	make_qp(40);
	call("mcast_attach", join4);
	turn_after(TIME_NS_PER_S);
	for (uint32_t i = 0; i < ARRAY_LEN(rows); i++) {
		const uint8_t one[12] = { 0x11, rows[i].code, 0, 0, G4 };

		turn_after(TIME_NS_PER_S);
		fake.frames_n = 0;
		latest();
		ask4(one, rows[i].len, 0);
		comes_within(rows[i].tenths * TENTH, 60);
	}
}

/* RFC 2710, 3.4: milliseconds; RFC 3810, 5.1.3: from 32768 on a mantissa and an exponent. */
static void
mld_times(void **state UNUSED)
{
	static const struct {
		uint16_t code;
		uint8_t len;
		uint32_t ms;
	} rows[] = { { 1000, 28, 1000 }, { 0x7fff, 28, 0x7fff }, { 0x8000, 28, 0x1000 << 3 },
		{ 0x8001, 28, 0x1001 << 3 }, { 0xffff, 28, 0x1fff << 10 },
		{ 0xb123, 28, 0x1123 << 6 }, { 0x7fff, 24, 0x7fff }, { 0x8001, 24, 0x8001 },
		{ 0xffff, 24, 0xffff } };

	make_qp(40);
	call("mcast_attach", join6);
	turn_after(TIME_NS_PER_S);
	for (uint32_t i = 0; i < ARRAY_LEN(rows); i++) {
		uint8_t one[28] = { 130, 0, 0, 0, 0, 0, 0, 0, G6 };

		be16_store(one + 4, rows[i].code);
		turn_after(TIME_NS_PER_S);
		fake.frames_n = 0;
		latest();
		ask6(one, rows[i].len);
		comes_within(rows[i].ms, rows[i].len == 28 ? 90 : 86);
	}
}

/** After how many ms an answer comes that may take ten seconds, the numbers being the same. */
static uint32_t
answers_after(void)
{
	static const uint8_t one[12] = { 0x11, 100, 0, 0, G4 };
	uint32_t ms = 0;

	turn_after(TIME_NS_PER_S);
	fake.frames_n = 0;
	members()->spread = 1;
	ask4(one, sizeof(one), 0);
	for (; fake.frames_n == 0; ms++)
		turn_after(TIME_NS_PER_MS);
	return ms;
}

/* RFC 3376, 5.2: hosts that hear the same question do not answer at the same time. */
static void
other_hosts_answer_later(void **state UNUSED)
{
	uint32_t first;

	make_qp(40);
	call("mcast_attach", join4);
	turn_after(TIME_NS_PER_S);
	first = answers_after();
	assert_int_equal(answers_after(), first);
	fake.addr.mac[5]++;
	assert_int_not_equal(answers_after(), first);
	fake.addr.mac[5]--;
}

/* Who asks for all groups without end, each time with less time to answer, is heard so often. */
static void
looks_are_bounded(void **state UNUSED)
{
	uint8_t all[12] = { 0x11 };

	join_four();
	for (uint32_t i = 0; i < MEMBER_TAGS; i++) {
		all[1] = (uint8_t)(0xff - i); /* an hour and less */
		ask4(all, sizeof(all), 0);
	}
	all[1] = 1;
	ask4(all, sizeof(all), 0);
	turn_after(TENTH * TIME_NS_PER_MS);
	nothing_sent();
	ask4(all, sizeof(all), 0);
	turn_after(TENTH * TIME_NS_PER_MS);
	assert_int_equal(fake.frames_n, 2);
}

/** The port's record of this group; NULL: there is none. */
static const struct member *
record_of(const uint8_t group[4])
{
	const struct member *m;

	TAILQ_FOREACH (m, &members()->all, all)
		if (m->group.family == 4 && memcmp(m->group.addr, group, 4) == 0)
			return m;
	return NULL;
}

/** How many there are, by either way to find them. */
static uint32_t
records(void)
{
	const struct member *m;
	uint32_t all = 0, found = 0;

	TAILQ_FOREACH (m, &members()->all, all)
		all++;
	for (uint32_t i = 0; i < MEMBER_CHAINS; i++)
		LIST_FOREACH (m, &members()->chain[i], chain)
			found++;
	assert_int_equal(found, all);
	return all;
}

/** Down, and up again, within some milliseconds. @return frames that were sent. */
static uint32_t
link_bounces(void)
{
	assert_int_equal(rte_eth_dev_set_link_down(0), 0);
	turn_after(TENTH * TIME_NS_PER_MS);
	assert_int_equal(rte_eth_dev_set_link_up(0), 0);
	turn_after(TENTH * TIME_NS_PER_MS);
	turn_after(0);
	return fake.frames_n;
}

/* A group that was left is told of twice, and then forgotten; a link that comes up changes nothing
 * of that. */
static void
what_was_left_is_forgotten(void **state UNUSED)
{
	static const uint8_t group[4] = { G4 };
	uint32_t own;

	make_qp(40);
	own = records();
	call("mcast_attach", join4);
	turn_after(TIME_NS_PER_S);
	turn_after(TIME_NS_PER_S);
	assert_non_null(record_of(group));
	assert_int_equal(records(), own + 1);
	latest();
	latest();
	fake.frames_n = 0;
	call("mcast_detach", join4);
	assert_int_equal(fake.frames_n, 1);
	assert_int_equal(record_of(group)->tells, 1);
	assert_int_equal(link_bounces(), 1); /* it is not time for the second one */
	for (uint32_t s = 0; s < 5; s++)
		turn_after(TIME_NS_PER_S);
	assert_int_equal(fake.frames_n, 2);
	assert_null(record_of(group));
	assert_int_equal(records(), own);
	for (uint32_t s = 0; s < 5; s++)
		turn_after(TIME_NS_PER_S);
	call("mcast_attach", join4);
	assert_int_equal(fake.frames_n, 3);
	assert_int_equal(record_of(group)->users, 1);
	assert_int_equal(rte_eth_dev_set_link_down(0), 0);
}

/* RFC 3810, 6.2: MLD with a wrong checksum, or too short to name a group. */
static void
what_is_no_mld(void **state UNUSED)
{
	static const uint8_t all[28] = { 130 };
	uint8_t longer[29] = { 130 };

	join_four();
	ask6(all, 20); /* no room for the group */
	ask6(all, 23);
	ask6(all, 25);
	ask6(all, 27);
	turn_after(TIME_NS_PER_S);
	nothing_sent();
	spoil.at = MLD_AT + 2; /* behind its checksum */
	spoil.bits = 1;
	ask6(all, sizeof(all));
	spoil.bits = 0;
	turn_after(TIME_NS_PER_S);
	nothing_sent();
	ask6(longer, sizeof(longer));
	turn_after(TIME_NS_PER_S);
	assert_int_equal(fake.frames_n, 2);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_FAKE(igmp_times),
		WITH_FAKE(mld_times),
		WITH_FAKE(other_hosts_answer_later),
		WITH_FAKE(looks_are_bounded),
		WITH_FAKE(what_was_left_is_forgotten),
		WITH_FAKE(what_is_no_mld),
	};

	return cmocka_run_group_tests(tests, fake_eal, fake_eal_end);
}
