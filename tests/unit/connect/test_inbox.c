/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "be.h"
#include "connect_priv.h"

enum { HOSTILE = 1, HONEST, OTHER, LEN = 350, NUMBER_AT = 20 };

static void
frame(struct connect *cx, uint8_t mac, uint32_t number)
{
	uint8_t bytes[LEN] = { [11] = mac };

	be32_store(bytes + NUMBER_AT, number);
	connect_frame(cx, 0, bytes, LEN);
}

static void
take(struct connect *cx, uint8_t mac, uint32_t number)
{
	struct connect_inbox in;

	assert_true(connect_inbox_take(cx, &in));
	assert_int_equal(in.len, LEN);
	assert_int_equal(in.frame[11], mac);
	assert_int_equal(be32_load(in.frame + NUMBER_AT), number);
}

static void
is_empty(struct connect *cx)
{
	struct connect_inbox in;

	assert_false(connect_inbox_take(cx, &in));
	for (uint32_t i = 0; i < CONNECT_MACS; i++)
		assert_int_equal(cx->inbox.of[i], 0);
}

/* CM-40: one host has half of it at most, however much it sends; the order stays. */
static void
CM_40_half(void **state)
{
	struct connect *cx = *state;

	for (int round = 0; round < 3; round++) {
		cx->inbox.lost = 0;
		for (uint32_t i = 0; i < 3 * CONNECT_INBOX; i++)
			frame(cx, HOSTILE, i);
		assert_int_equal(cx->inbox.n, CONNECT_INBOX / 2);
		assert_int_equal(cx->inbox.lost, 3 * CONNECT_INBOX - CONNECT_INBOX / 2);
		frame(cx, HONEST, 1);
		frame(cx, HOSTILE, 0);
		frame(cx, HONEST, 2);
		for (uint32_t i = 0; i < CONNECT_INBOX / 2; i++)
			take(cx, HOSTILE, i);
		take(cx, HONEST, 1);
		take(cx, HONEST, 2);
		is_empty(cx);
	}
}

/* It is full, whoever sends. */
static void
full(void **state)
{
	struct connect *cx = *state;

	for (uint32_t i = 0; i < CONNECT_INBOX / 2; i++) {
		frame(cx, HONEST, i);
		frame(cx, OTHER, i);
	}
	frame(cx, HOSTILE, 0);
	assert_int_equal(cx->inbox.n, CONNECT_INBOX);
	assert_int_equal(cx->inbox.lost, 1);
	for (uint32_t i = 0; i < CONNECT_INBOX / 2; i++) {
		take(cx, HONEST, i);
		take(cx, OTHER, i);
	}
	is_empty(cx);
}

/* Shorter than an Ethernet header, longer than any MAD's. */
static void
lengths(void **state)
{
	static const uint8_t bytes[CONNECT_FRAME + 1];
	struct connect *cx = *state;

	connect_frame(cx, 0, bytes, 13);
	connect_frame(cx, 0, bytes, CONNECT_FRAME + 1);
	is_empty(cx);
	connect_frame(cx, 0, bytes, CONNECT_FRAME);
	assert_int_equal(cx->inbox.n, 1);
}

static int
make(void **state)
{
	static struct env env;
	struct connect *cx = calloc(1, sizeof(*cx));

	if (cx == NULL)
		return -1;
	cx->env = &env;
	*state = cx;
	return 0;
}

static int
drop(void **state)
{
	free(*state);
	return 0;
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(CM_40_half, make, drop),
		cmocka_unit_test_setup_teardown(full, make, drop),
		cmocka_unit_test_setup_teardown(lengths, make, drop),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
