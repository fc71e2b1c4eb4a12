/* SPDX-License-Identifier: BSD-3-Clause */
/* Programs that listen for connections, and look at what came late or not at all. */
#include "cm_bed.h"

/*
 * CM-26, CM-31: requests that are over before their program reads of them are not told any more:
 * what waits for it is no more than its backlog, however long it looks away.
 */
static void
requests_that_nobody_reads(void **state UNUSED)
{
	json_int_t channel;
	const int fd = listener(&channel);
	const struct connect_client *cl = TAILQ_FIRST(&fake.c->connect.clients);

	for (uint32_t i = 1; i <= 5; i++) {
		request(i);
		assert_int_equal(fake.c->connect.cm.n, 1);
		too_long();
		assert_int_equal(fake.c->connect.cm.n, 0);
		assert_int_equal(TAILQ_FIRST(&cl->channels)->ids, 1); /* the listener */
	}
	assert_true(TAILQ_EMPTY(&TAILQ_FIRST(&cl->channels)->notices));
	request(6); /* the place is free */
	assert_int_equal(hears(fd, channel), CONNECT_CONNECT_REQUEST);
	close(fd);
}

/* CM-26: who has heard of a request and does not answer hears of its end. */
static void
a_request_that_is_not_answered(void **state UNUSED)
{
	json_int_t channel;
	const int fd = listener(&channel);

	request(1);
	assert_int_equal(hears(fd, channel), CONNECT_CONNECT_REQUEST);
	too_long();
	assert_int_equal(fake.c->connect.cm.n, 0);
	assert_int_equal(hears(fd, channel), CONNECT_CONNECT_ERROR);
	close(fd);
}

/* CM-29: a request that is taken back before it is read leaves nothing to read. */
static void
a_request_that_is_taken_back(void **state UNUSED)
{
	json_int_t channel;
	const int fd = listener(&channel);
	const struct connect_client *cl = TAILQ_FIRST(&fake.c->connect.clients);
	const struct connect_channel *ch = TAILQ_FIRST(&cl->channels);

	request(1);
	expect_told(ch, true);
	give_up(1);
	expect_told(ch, false);
	assert_true(TAILQ_EMPTY(&ch->notices));
	assert_int_equal(ch->ids, 1);
	/* Who has read of it hears that it was taken back. */
	fake.now += 2 * TIME_NS_PER_S;
	turn();
	assert_int_equal(fake.c->connect.cm.n, 0);
	request(2);
	assert_int_equal(hears(fd, channel), CONNECT_CONNECT_REQUEST);
	give_up(2);
	assert_int_equal(hears(fd, channel), CONNECT_REJECTED);
	close(fd);
}

/* CM-13: who says no to what it has not read may read it later. */
static void
a_request_that_is_answered_unread(void **state UNUSED)
{
	json_int_t channel;
	const int fd = listener(&channel);
	const struct connect_client *cl = TAILQ_FIRST(&fake.c->connect.clients);
	char params[64];

	request(1);
	snprintf(params, sizeof(params), "{\"handle\":%u}",
		TAILQ_LAST(&cl->ids, connect_ids)->handle);
	json_decref(ask(fd, "client_cm_reject", params));
	assert_int_equal(fake.c->connect.cm.n, 0);
	assert_int_equal(hears(fd, channel), CONNECT_CONNECT_REQUEST);
	close(fd);
}

/* CM-12: who has asked a listener goes with it to another channel. */
static void
a_listener_moves(void **state UNUSED)
{
	json_int_t channel, other;
	const int fd = listener(&channel);
	const struct connect_client *cl = TAILQ_FIRST(&fake.c->connect.clients);
	json_t *v = ask(fd, "client_cm_channel_create", "{}");
	char params[64];

	other = number_of(v, "handle");
	json_decref(v);
	request(1);
	snprintf(params, sizeof(params), "{\"handle\":%u,\"channel\":%d}",
		TAILQ_FIRST(&cl->ids)->handle, (int)other);
	json_decref(ask(fd, "client_cm_migrate", params));
	assert_int_equal(TAILQ_FIRST(&cl->channels)->ids, 0);
	expect_told(TAILQ_FIRST(&cl->channels), false);
	expect_told(TAILQ_NEXT(TAILQ_FIRST(&cl->channels), all), true);
	assert_int_equal(hears(fd, other), CONNECT_CONNECT_REQUEST);
	request(2); /* the place of the first one is free */
	assert_int_equal(hears(fd, other), CONNECT_CONNECT_REQUEST);
	close(fd);
}

/* CM-31: the backlog is of those of which the program has not heard. */
static void
who_is_heard_takes_no_place(void **state UNUSED)
{
	json_int_t channel;
	const int fd = listener(&channel);

	request(1);
	request(2);
	assert_int_equal(fake.c->connect.cm.n, 1);
	assert_int_equal(hears(fd, channel), CONNECT_CONNECT_REQUEST);
	request(2);
	assert_int_equal(hears(fd, channel), CONNECT_CONNECT_REQUEST);
	assert_int_equal(fake.c->connect.cm.n, 2);
	close(fd);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_SOCKET(requests_that_nobody_reads),
		WITH_SOCKET(a_request_that_is_not_answered),
		WITH_SOCKET(a_request_that_is_taken_back),
		WITH_SOCKET(a_request_that_is_answered_unread),
		WITH_SOCKET(a_listener_moves),
		WITH_SOCKET(who_is_heard_takes_no_place),
	};

	return cmocka_run_group_tests(tests, group_setup, group_teardown);
}
