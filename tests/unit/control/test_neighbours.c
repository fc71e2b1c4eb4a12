/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of neighbours when applications want all of it: what is left for others. */
#include "fake.h"

#include <errno.h>

#include "net.h"

enum { GREEDY = 1000, OTHER = 1001, MORE_USERS = 4, ROOM = NEIGH_MAX + 64 };

static struct net net;
static struct env env;
static struct neigh_link *links;
static uint32_t links_n;

static int
begin(void **state UNUSED)
{
	memset(&net, 0, sizeof(net));
	net.env = &env;
	neigh_init(&net.neighs);
	links = calloc(ROOM, sizeof(*links));
	links_n = 0;
	return links == NULL;
}

static int
end(void **state UNUSED)
{
	while (links_n != 0)
		neigh_leave(&net, &links[--links_n]);
	neigh_fini(&net.neighs);
	free(links);
	return 0;
}

static struct neigh_key
key_of(uint32_t number)
{
	struct neigh_key key = { .ip.family = 4 };

	memcpy(key.ip.addr, &number, sizeof(number));
	return key;
}

/* A path of this user's to that neighbour; uid 0: the operator's. */
static int
use(uint32_t uid, uint32_t number)
{
	const struct neigh_key key = key_of(number);
	struct neigh_link *l = &links[links_n];
	int rc;

	assert_true(links_n < ROOM);
	*l = (struct neigh_link){ .of_user = uid != 0, .uid = uid };
	rc = neigh_use(&net, &key, l);
	links_n += rc == 0;
	return rc;
}

/* As many as he gets, from this neighbour on. @return the refusal. */
static int
use_all(uint32_t uid, uint32_t *number)
{
	int rc;

	while ((rc = use(uid, *number)) == 0)
		++*number;
	return rc;
}

static void
one_user_cannot_fill_it(void **state UNUSED)
{
	uint32_t n = 1;

	assert_int_equal(use_all(GREEDY, &n), -EDQUOT);
	assert_int_equal(net.neighs.n, NEIGH_USER);
	/* What is there is no new one. */
	assert_int_equal(use(GREEDY, 1), 0);
	assert_int_equal(use(OTHER, n), 0);
	assert_int_equal(use(0, n + 1), 0);
}

static void
many_users_cannot(void **state UNUSED)
{
	uint32_t n = 1;
	int rc = 0;

	for (uint32_t i = 0; i < MORE_USERS; i++)
		rc = use_all(GREEDY + 10 + i, &n);
	assert_int_equal(rc, -ENOSPC);
	/* One who comes later has something, and the operator has his part. */
	for (uint32_t i = 0; i < 256; i++)
		assert_int_equal(use(OTHER, n++), 0);
	for (uint32_t i = 0; i < NEIGH_MAX / 8; i++)
		assert_int_equal(use(0, n++), 0);
	assert_in_range(net.neighs.n, 1, NEIGH_MAX);
}

static void
it_is_given_back(void **state UNUSED)
{
	uint32_t n = 1;

	for (uint32_t round = 0; round < 3; round++) {
		assert_int_equal(use_all(GREEDY, &n), -EDQUOT);
		while (links_n != 0)
			neigh_leave(&net, &links[--links_n]);
		assert_int_equal(net.neighs.n, 0);
		assert_true(TAILQ_EMPTY(&net.neighs.makers));
	}
}

/* They answered, so they are remembered when the paths are gone: some, and not for ever. */
static void
those_that_answered_are_not_kept(void **state UNUSED)
{
	static const uint8_t mac[6] = { 2, 0, 0, 0, 0, 9 };
	uint32_t n = 1, from = 1;

	for (uint32_t round = 0; round < 4; round++, from = n) {
		assert_int_equal(use_all(GREEDY, &n), -EDQUOT);
		for (uint32_t i = from; i < n; i++) {
			const struct neigh_key key = key_of(i);

			neigh_learn(&net, &key, mac, true);
		}
		while (links_n != 0)
			neigh_leave(&net, &links[--links_n]);
		assert_int_equal(net.neighs.n, NEIGH_LEARNED);
		assert_true(TAILQ_EMPTY(&net.neighs.makers)); /* nobody's share */
	}
}

/* What was learned and is forgotten makes room for others. */
static void
forgotten_ones_leave_room(void **state UNUSED)
{
	static const uint8_t mac[6] = { 2, 0, 0, 0, 0, 9 };

	for (uint32_t round = 0; round < 3; round++) {
		for (uint32_t i = 0; i <= NEIGH_LEARNED; i++) {
			const struct neigh_key key = key_of(1 + i);

			neigh_learn(&net, &key, mac, true);
		}
		assert_int_equal(net.neighs.n, NEIGH_LEARNED);
		neigh_flush(&net, -1);
		assert_int_equal(net.neighs.n, 0);
		assert_true(TAILQ_EMPTY(&net.neighs.young)); /* nobody looks at them later */
	}
}

static int new_mac_rc;
static uint32_t new_macs;

static int
new_mac(void *ctx UNUSED, struct neigh_link *link UNUSED)
{
	new_macs++;
	return new_mac_rc;
}

/* Without room for its message a path is told in a later turn, and then once. */
static void
paths_are_told_later(void **state UNUSED)
{
	static const uint8_t mac[6] = { 2, 0, 0, 0, 0, 9 };
	const struct neigh_key key = key_of(1);

	net.up.new_mac = new_mac;
	assert_int_equal(use(GREEDY, 1), 0);
	assert_int_equal(use(OTHER, 1), 0);
	neigh_learn(&net, &key, mac, true);
	new_mac_rc = -EAGAIN;
	for (new_macs = 0; new_macs < 6;)
		neigh_poll(&net);
	assert_int_equal(new_macs, 6); /* both with each turn */
	new_mac_rc = 0;
	neigh_poll(&net);
	assert_int_equal(new_macs, 6 + 2);
	neigh_poll(&net);
	assert_int_equal(new_macs, 6 + 2);
}

/* Who goes on using an entry has it from then on. */
static void
what_others_use_is_theirs(void **state UNUSED)
{
	uint32_t n = 1;

	assert_int_equal(use(GREEDY, n), 0);
	assert_int_equal(use(OTHER, n), 0);
	neigh_leave(&net, &links[0]);
	assert_int_equal(net.neighs.n, 1);
	assert_int_equal(TAILQ_FIRST(&net.neighs.makers)->uid, OTHER);
	assert_null(TAILQ_NEXT(TAILQ_FIRST(&net.neighs.makers), all));
	n++;
	assert_int_equal(use_all(GREEDY, &n), -EDQUOT);
	assert_int_equal(net.neighs.n, 1 + NEIGH_USER);
}

/* FNV-1a of an address: a function that everybody knows. */
static uint32_t
known_hash(uint32_t number)
{
	const struct neigh_key key = key_of(number);
	uint32_t h = 0x811c9dc5;

	for (unsigned int i = 0; i < sizeof(key.ip.addr); i++)
		h = (h ^ key.ip.addr[i]) * 0x01000193;
	return h ^ h >> 16;
}

static uint32_t
longest_chain(void)
{
	uint32_t longest = 0;

	for (uint32_t i = 0; i < NEIGH_BUCKETS; i++) {
		uint32_t n = 0;

		for (const struct neigh *e = net.neighs.bucket[i]; e != NULL; e = e->chain)
			n++;
		longest = n > longest ? n : longest;
	}
	return longest;
}

/* Strangers and applications choose addresses, but not so that each is in the way of all. */
static void
chosen_addresses_do_not_fall_together(void **state UNUSED)
{
	static const uint8_t mac[6] = { 2, 0, 0, 0, 0, 9 };
	enum { CHOSEN = 1024 };

	for (uint32_t number = 1, n = 0; n < CHOSEN; number++) {
		const struct neigh_key key = key_of(number);

		if (known_hash(number) % NEIGH_BUCKETS != 7)
			continue;
		if (n++ % 2 == 0)
			assert_int_equal(use(GREEDY, number), 0);
		else
			neigh_learn(&net, &key, mac, true);
	}
	assert_int_equal(net.neighs.n, CHOSEN);
	assert_in_range(longest_chain(), 1, 8); /* a quarter of an entry on average */
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(one_user_cannot_fill_it, begin, end),
		cmocka_unit_test_setup_teardown(many_users_cannot, begin, end),
		cmocka_unit_test_setup_teardown(it_is_given_back, begin, end),
		cmocka_unit_test_setup_teardown(those_that_answered_are_not_kept, begin, end),
		cmocka_unit_test_setup_teardown(forgotten_ones_leave_room, begin, end),
		cmocka_unit_test_setup_teardown(paths_are_told_later, begin, end),
		cmocka_unit_test_setup_teardown(what_others_use_is_theirs, begin, end),
		cmocka_unit_test_setup_teardown(chosen_addresses_do_not_fall_together, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
