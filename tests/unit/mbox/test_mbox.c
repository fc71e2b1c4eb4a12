/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages keep their order and their bytes; a full ring refuses, and only `up` may lose. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "../../clib/eal.h"
#include "mbox.h"

static int
setup_eal(void **state)
{
	(void)state;
	return eal_start("16");
}

typedef int (*send_fn)(struct mbox *, const struct mbox_msg *);
typedef unsigned int (*recv_fn)(struct mbox *, struct mbox_msg *, unsigned int);

static const struct {
	const char *name;
	uint8_t type;
	send_fn send;
	recv_fn recv;
	bool counts;
} ways[] = {
	{ "down", MBOX_SYNC, mbox_send_down, mbox_recv_down, false },
	{ "done", MBOX_DONE, mbox_send_done, mbox_recv_done, false },
	{ "up", MBOX_PACKET, mbox_send_up, mbox_recv_up, true },
};

/* AEQ-14: in order, exactly `entries` of them, the rest refused and (up) counted; wraps. */
static void
AEQ_14_order_and_bounds(void **state)
{
	struct mbox b;
	struct mbox_msg in, out[40];

	(void)state;
	assert_int_equal(mbox_create(&b, 3, 20, 0), 0); /* not a power of two */
	for (size_t w = 0; w < ARRAY_LEN(ways); w++) {
		uint64_t next = 0, want = 0;

		for (int round = 0; round < 5; round++) {
			unsigned int n = 0;

			for (int i = 0; i < 25; i++) {
				memset(&in, (int)next, sizeof(in));
				in.cookie = next;
				in.type = ways[w].type;
				in.done = (struct mbox_done){ -(int32_t)(next % 100), false };
				if (ways[w].send(&b, &in) == 0) {
					next++;
					n++;
				} else {
					assert_int_equal(ways[w].send(&b, &in), -ENOBUFS);
				}
			}
			assert_int_equal(n, 20);
			n = ways[w].recv(&b, out, 7);
			assert_int_equal(n, 7);
			n += ways[w].recv(&b, out + n, 33);
			assert_int_equal(n, 20);
			assert_int_equal(ways[w].recv(&b, out, 0), 0);
			for (unsigned int i = 0; i < n; i++, want++) {
				memset(&in, (int)want, sizeof(in));
				in.cookie = want;
				in.type = ways[w].type;
				in.done = (struct mbox_done){ -(int32_t)(want % 100), false };
				assert_memory_equal(&out[i], &in, sizeof(in));
			}
		}
	}
	assert_int_equal(atomic_load(&b.up_lost), 5 * 5 * 2);
	mbox_destroy(&b);
}

/** As many as there is room for. @return how many. */
static uint32_t
tell_all(struct mbox *b, uint8_t type, uint32_t client)
{
	const struct mbox_msg m = { .type = type, .ev = { .qpn = 17, .event = EVENT_QP_FATAL } };
	uint32_t n = 0;

	while (mbox_send_up_of(b, &m, client) == 0)
		n++;
	return n;
}

static void
take_all(struct mbox *b)
{
	struct ring_aeq_event e;
	struct mbox_msg m;

	while (mbox_next_event(b, &e) || mbox_recv_up(b, &m, 1) != 0)
		;
	mbox_events_done(b);
}

/** Whoever tells of all that he has at once leaves room for others, however many do so. */
static void
AEQ_14_each_client_has_room(void **state)
{
	static const uint8_t types[] = { MBOX_EVENT, MBOX_FATAL };
	struct mbox b;

	(void)state;
	assert_int_equal(mbox_create(&b, 6, MBOX_EVENTS, 0), 0);
	for (uint32_t round = 0; round < 20; round++) {
		const uint8_t type = types[round % 2];
		const uint64_t lost = mbox_events_lost(&b), up = atomic_load(&b.up_lost);
		uint32_t sum = tell_all(&b, type, 1 + round % 3);

		/* A client fetches 256 at most. */
		assert_in_range(sum, 256, MBOX_EVENTS / 2);
		for (uint32_t client = 4; client <= 112; client++) {
			const uint32_t n = tell_all(&b, type, client);

			assert_in_range(n, 2, MBOX_EVENTS / 2);
			sum += n;
		}
		assert_int_equal(sum + tell_all(&b, type, 0), MBOX_EVENTS); /* the operator's */
		assert_int_equal(mbox_events_lost(&b) - lost, type == MBOX_EVENT ? 111 : 0);
		assert_int_equal(atomic_load(&b.up_lost) - up, type == MBOX_FATAL ? 111 : 0);
		take_all(&b);
	}
	mbox_destroy(&b);
}

/** A worker at rest asks this in each turn, and nothing else. */
static void
empty_until_told(void **state)
{
	struct mbox b;
	struct mbox_msg m = { .type = MBOX_SYNC };

	(void)state;
	assert_int_equal(mbox_create(&b, 5, 2, 0), 0);
	for (int i = 0; i < 5; i++) { /* round the ring's end, too */
		assert_true(mbox_is_empty(&b));
		assert_int_equal(mbox_send_down(&b, &m), 0);
		assert_false(mbox_is_empty(&b));
		assert_int_equal(mbox_send_down(&b, &m), 0);
		assert_int_equal(mbox_send_done(&b, &(struct mbox_msg){ .type = MBOX_DONE }), 0);
		assert_false(mbox_is_empty(&b)); /* full */
		assert_int_equal(mbox_recv_down(&b, &m, 1), 1);
		assert_false(mbox_is_empty(&b));
		assert_int_equal(mbox_recv_down(&b, &m, 1), 1);
		assert_int_equal(mbox_recv_done(&b, &(struct mbox_msg){ 0 }, 1), 1);
	}
	assert_true(mbox_is_empty(&b));
	mbox_destroy(&b);
}

static void
room_for_answers(void **state)
{
	struct mbox b;
	struct mbox_msg m = { .type = MBOX_DONE };

	(void)state;
	assert_int_equal(mbox_create(&b, 4, 8, 0), 0);
	assert_int_equal(mbox_done_room(&b), 8);
	mbox_send_done(&b, &m);
	assert_int_equal(mbox_done_room(&b), 7);
	assert_int_equal(
		mbox_create(&(struct mbox){ 0 }, 4, 8, 0), -EEXIST); /* the name is taken */
	mbox_destroy(&b);
	mbox_destroy(&b);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(AEQ_14_order_and_bounds),
		cmocka_unit_test(AEQ_14_each_client_has_room),
		cmocka_unit_test(empty_until_told),
		cmocka_unit_test(room_for_answers),
	};

	return cmocka_run_group_tests(tests, setup_eal, NULL);
}
