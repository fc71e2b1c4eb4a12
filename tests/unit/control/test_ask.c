/* SPDX-License-Identifier: BSD-3-Clause */
/* Questions to workers that nobody waits for, and requests that are put off. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <rte_memory.h>

#include "ask.h"
#include "compiler.h"
#include "env.h"
#include "fake.h"

static struct env env;
static struct mbox mbox;
static ns_t now;
static uint32_t pumped;

static ns_t
clock_now(void)
{
	return now;
}

/* Whoever waits lets time pass. */
static void
pump(void *ctx UNUSED)
{
	pumped++;
	now += ASK_TIMEOUT_NS;
}

/** A worker that takes nothing, with a queue of so many messages. */
static void
begin(uint32_t entries)
{
	memset(&env, 0, sizeof(env));
	now = TIME_NS_PER_S;
	pumped = 0;
	assert_int_equal(mbox_create(&mbox, 0, entries, SOCKET_ID_ANY), 0);
	env.w.workers_n = 1;
	env.w.workers[0].mbox = &mbox;
	env.w.clock = clock_now;
	env.w.pump = pump;
}

static const struct ask_request sync_request = { .msg = { .type = MBOX_SYNC } };

/* Slots are kept for those who wait, and for them alone. */
static void
a_try_leaves_slots_for_others(void **state UNUSED)
{
	uint32_t n = 0, more = 0;

	begin(1024);
	while (ask_try(&env, &sync_request) != NULL)
		n++;
	assert_int_equal(n, ASK_SLOTS - ASK_KEPT);
	assert_int_equal(env.asks.busy, n);
	while (more < ASK_KEPT && ask_send(&env, &sync_request) != NULL)
		more++;
	assert_int_equal(more, ASK_KEPT);
	assert_int_equal(pumped, 0);
	mbox_destroy(&mbox);
}

/* A worker that does not take its messages costs nobody time, and no slot. */
static void
a_try_waits_for_nobody(void **state UNUSED)
{
	uint32_t n = 0;

	begin(16);
	while (ask_try(&env, &sync_request) != NULL)
		n++;
	assert_in_range(n, 1, 16);
	for (uint32_t i = 0; i < 2 * ASK_SLOTS; i++)
		assert_null(ask_try(&env, &sync_request));
	assert_int_equal(env.asks.busy, n);
	assert_int_equal(pumped, 0);
	assert_int_equal(now, TIME_NS_PER_S);
	/* One that waits does: the worker has not taken any meanwhile. */
	assert_null(ask_send(&env, &sync_request));
	assert_true(pumped != 0);
	assert_int_equal(env.asks.busy, n);
	mbox_destroy(&mbox);
}

/* The machine stands still, or is full of others, for longer than a wait may take. */
static void
stand_still(void *ctx UNUSED)
{
	struct mbox_msg m;

	now += 2 * ASK_TIMEOUT_NS;
	if (++pumped != 3) /* the worker gets a CPU after us */
		return;
	assert_int_equal(mbox_recv_down(&mbox, &m, 1), 1);
	m.type = MBOX_DONE;
	m.done = (struct mbox_done){ .rc = 0 };
	assert_int_equal(mbox_send_done(&mbox, &m), 0);
}

/* What counts is the time in which the worker could have answered. */
static void
a_machine_that_stands_still(void **state UNUSED)
{
	struct ask *a;

	begin(16);
	env.w.pump = stand_still;
	a = ask_send(&env, &sync_request);
	assert_non_null(a);
	assert_int_equal(ask_wait(&env, a), 0);
	assert_int_equal(pumped, 3);
	/* It never answers: the wait ends all the same. */
	a = ask_send(&env, &sync_request);
	assert_non_null(a);
	pumped = 4;
	assert_int_equal(ask_wait(&env, a), -ETIMEDOUT);
	assert_in_range(pumped - 4, ASK_TIMEOUT_NS / ASK_GAP_NS, ASK_TIMEOUT_NS / ASK_GAP_NS + 1);
	mbox_destroy(&mbox);
}

static uint32_t rested;

static void
pump_a_little(void *ctx UNUSED)
{
	pumped++;
	now += ASK_BRIEF_NS / 20;
}

static void
rest(void)
{
	rested++;
	now += ASK_BRIEF_NS;
}

/* Whoever waits for long leaves the CPU to others: the worker may need it. */
static void
a_long_wait_rests(void **state UNUSED)
{
	struct ask *a;

	begin(16);
	env.w.pump = pump_a_little;
	env.w.rest = rest;
	a = ask_send(&env, &sync_request);
	assert_non_null(a);
	assert_int_equal(rested, 0);
	assert_int_equal(ask_wait(&env, a), -ETIMEDOUT);
	assert_in_range(pumped, 20, 21);
	assert_in_range(rested, ASK_TIMEOUT_NS / ASK_BRIEF_NS - 1, ASK_TIMEOUT_NS / ASK_BRIEF_NS);
	mbox_destroy(&mbox);
}

static uint32_t told;

static void
late(void *ctx, struct ask *a)
{
	assert_ptr_equal(ctx, &told);
	assert_int_equal(a->done.rc, -7);
	told++;
}

/* The answer comes some time, is told once, and frees the slot. */
static void
what_is_forgotten_frees_itself(void **state UNUSED)
{
	struct mbox_msg m;
	struct ask *a;

	begin(16);
	told = 0;
	for (uint32_t i = 0; i < 3 * ASK_SLOTS; i++) {
		a = ask_try(&env, &sync_request);
		assert_non_null(a);
		ask_forget(a, late, &told, NULL);
		assert_int_equal(ask_drain(&env), 0);
		assert_int_equal(mbox_recv_down(&mbox, &m, 1), 1);
		m.type = MBOX_DONE;
		m.done = (struct mbox_done){ .rc = -7 };
		assert_int_equal(mbox_send_done(&mbox, &m), 0);
		assert_int_equal(ask_drain(&env), 1);
		assert_int_equal(told, i + 1);
		assert_int_equal(env.asks.busy, 0);
	}
	mbox_destroy(&mbox);
}

/* Of a worker that stands still others hear nothing, however often it is asked. */
static void
who_does_not_answer_leaves_slots_for_others(void **state UNUSED)
{
	const struct ask_request second = { .worker = 1, .msg = { .type = MBOX_SYNC } };
	uint32_t asked = 0, refused = 0;
	struct refusal r;
	struct mbox other;
	struct mbox_msg m;

	begin(1024);
	assert_int_equal(mbox_create(&other, 1, 1024, SOCKET_ID_ANY), 0);
	env.w.workers_n = 2;
	env.w.workers[1].mbox = &other;
	for (uint32_t i = 0; i < 2 * ASK_SLOTS; i++) {
		const int rc = ask_and_wait(&env, &sync_request);

		asked += rc == -ETIMEDOUT;
		refused += rc == -EBUSY;
	}
	assert_int_equal(asked, ASK_SILENT);
	assert_int_equal(asked + refused, 2 * ASK_SLOTS);
	assert_null(ask_try(&env, &sync_request));
	ask_refuse(&env, 0, -EBUSY, &r);
	assert_non_null(strstr(r.text, "does not answer"));
	pumped = 0;
	assert_non_null(ask_send(&env, &second));
	assert_non_null(ask_try(&env, &second));
	assert_int_equal(pumped, 0);
	/* When it goes on it is asked again. */
	while (mbox_recv_down(&mbox, &m, 1) == 1) {
		m.type = MBOX_DONE;
		m.done = (struct mbox_done){ .rc = 0 };
		assert_int_equal(mbox_send_done(&mbox, &m), 0);
	}
	assert_non_null(ask_send(&env, &sync_request));
	assert_int_equal(env.asks.busy, 3);
	mbox_destroy(&other);
	mbox_destroy(&mbox);
}

static struct ask *between;
static bool asked_between;

/* A message leaves the full queue, and whoever runs meanwhile has a question, too. */
static void
ask_between(void *ctx UNUSED)
{
	struct mbox_msg m;

	now += ASK_TIMEOUT_NS;
	if (asked_between)
		return;
	asked_between = true;
	assert_int_equal(mbox_recv_down(&mbox, &m, 1), 1);
	between = ask_send(&env, &sync_request);
}

/* The last slot is that of who waits for room in the queue, and nobody else's. */
static void
a_slot_has_one_owner(void **state UNUSED)
{
	struct ask *a;

	begin(ASK_SLOTS - 1);
	asked_between = false;
	env.w.pump = ask_between;
	for (uint32_t i = 0; i < ASK_SLOTS - 1; i++)
		assert_non_null(ask_send(&env, &sync_request));
	assert_false(asked_between);
	a = ask_send(&env, &sync_request);
	assert_true(asked_between);
	assert_null(between); /* there was none left */
	assert_non_null(a);
	assert_int_equal(env.asks.busy, ASK_SLOTS);
	mbox_destroy(&mbox);
}

static void
late_asks(void *ctx UNUSED, struct ask *a UNUSED)
{
	between = ask_send(&env, &sync_request);
}

/* An answer that comes late may lead to a question: the slot that it had is free for that. */
static void
a_late_answer_leaves_its_slot(void **state UNUSED)
{
	struct mbox_msg m;
	struct ask *a;

	begin(1024);
	a = ask_send(&env, &sync_request);
	assert_non_null(a);
	ask_forget(a, late_asks, NULL, NULL);
	for (uint32_t i = 1; i < ASK_SLOTS; i++)
		assert_non_null(ask_send(&env, &sync_request));
	between = NULL;
	assert_int_equal(mbox_recv_down(&mbox, &m, 1), 1);
	m.type = MBOX_DONE;
	m.done = (struct mbox_done){ .rc = 0 };
	assert_int_equal(mbox_send_done(&mbox, &m), 0);
	assert_int_equal(ask_drain(&env), 1);
	assert_non_null(between);
	assert_int_equal(pumped, 0);
	assert_int_equal(env.asks.busy, ASK_SLOTS);
	assert_int_equal(between->state, ASK_SENT);
	mbox_destroy(&mbox);
}

/* Only a request that may be tried again is put off; what is not one has to wait, or is refused. */
static void
only_a_request_is_put_off(void **state UNUSED)
{
	memset(&env, 0, sizeof(env));
	assert_false(env_put_off(&env));
	assert_false(env.put_off);
	env.may_put_off = true;
	assert_true(env_put_off(&env));
	assert_true(env.put_off);
	assert_true(env_put_off(&env)); /* a second thing that it needs: the same */
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_try_leaves_slots_for_others),
		cmocka_unit_test(a_try_waits_for_nobody),
		cmocka_unit_test(a_machine_that_stands_still),
		cmocka_unit_test(a_long_wait_rests),
		cmocka_unit_test(what_is_forgotten_frees_itself),
		cmocka_unit_test(who_does_not_answer_leaves_slots_for_others),
		cmocka_unit_test(a_slot_has_one_owner),
		cmocka_unit_test(a_late_answer_leaves_its_slot),
		cmocka_unit_test(only_a_request_is_put_off),
	};

	return cmocka_run_group_tests(tests, fake_eal, NULL);
}
