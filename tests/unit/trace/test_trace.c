/* SPDX-License-Identifier: BSD-3-Clause */
/* Flight recorder: the newest entries, oldest first, never a torn one. */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../clib/rounds.h"
#include "trace.h"

#define ALL UINT32_MAX

static struct trace *
trace_new(uint32_t entries)
{
	struct trace *t = aligned_alloc(CACHE_LINE, trace_size(entries));

	assert_non_null(t);
	memset(t, 0xff, trace_size(entries));
	trace_init(t, entries);
	return t;
}

static void
put(struct trace *t, uint32_t qpn, uint32_t psn)
{
	struct trace_entry e = { .time_ns = psn * 10ull, .qpn = qpn, .psn = psn, .kind = TRACE_rx };

	trace_put(t, &e);
}

static void
sizes(void **state UNUSED)
{
	assert_int_equal(trace_size(0), 0);
	assert_int_equal(trace_size(6), 0);
	assert_int_equal(trace_size(2), 64 + 2 * 32);
	assert_int_equal(trace_size(1024), 64 + 1024 * 32);
}

static void
oldest_first(void **state UNUSED)
{
	struct trace *t = trace_new(16);
	struct trace_entry out[32];

	assert_int_equal(trace_read(t, ALL, out, 32), 0);
	for (uint32_t i = 0; i < 10; i++)
		put(t, 17 + i % 2, i);
	assert_int_equal(trace_read(t, ALL, out, 32), 10);
	for (uint32_t i = 0; i < 10; i++)
		assert_int_equal(out[i].psn, i);
	assert_int_equal(trace_read(t, ALL, out, 0), 0);
	assert_int_equal(trace_read(t, ALL, out, 3), 3);
	assert_int_equal(out[0].psn, 7);
	assert_int_equal(out[2].psn, 9);
	assert_int_equal(trace_read(t, 18, out, 32), 5);
	for (uint32_t i = 0; i < 5; i++)
		assert_int_equal(out[i].psn, 2 * i + 1);
	assert_int_equal(trace_read(t, 18, out, 2), 2);
	assert_int_equal(out[0].psn, 7);
	assert_int_equal(out[1].psn, 9);
	assert_int_equal(trace_read(t, 99, out, 32), 0);
	free(t);
}

/* After a wrap the oldest slot is left out: the writer may be in it. */
static void
wraps(void **state UNUSED)
{
	struct trace *t = trace_new(16);
	struct trace_entry out[32];

	for (uint32_t i = 0; i < 1000; i++)
		put(t, 17, i);
	assert_int_equal(trace_read(t, ALL, out, 32), 15);
	assert_int_equal(out[0].psn, 985);
	assert_int_equal(out[14].psn, 999);
	assert_int_equal(out[14].time_ns, 9990);
	free(t);
}

/* What came before a place and what came behind it, of one QP; nothing where it was overwritten. */
static void
around_a_place(void **state UNUSED)
{
	struct trace *t = aligned_alloc(64, (trace_size(16) + 63) & ~(size_t)63);
	struct trace_entry e[16];

	trace_init(t, 16);
	for (uint32_t i = 0; i < 12; i++)
		trace_put(t, &(struct trace_entry){ .qpn = 1 + i % 2, .psn = i });
	assert_int_equal(trace_head(t), 12);
	assert_int_equal(trace_before(t, 1, 7, e, 3), 3); /* 2, 4, 6 */
	assert_int_equal(e[0].psn, 2);
	assert_int_equal(e[2].psn, 6);
	assert_int_equal(trace_after(t, 2, 7, e, 16), 3); /* 7, 9, 11 */
	assert_int_equal(e[0].psn, 7);
	assert_int_equal(e[2].psn, 11);
	assert_int_equal(trace_after(t, 2, 12, e, 16), 0);
	assert_int_equal(trace_before(t, 2, 99, e, 16), 6);
	for (uint32_t i = 12; i < 40; i++)
		trace_put(t, &(struct trace_entry){ .qpn = 3, .psn = i });
	assert_int_equal(trace_before(t, 1, 7, e, 3), 0);
	assert_int_equal(trace_after(t, 2, 7, e, 16), 0);
	free(t);
}

static void
kind_names(void **state UNUSED)
{
	assert_string_equal(trace_kind_name(TRACE_rx), "rx");
	assert_string_equal(trace_kind_name(TRACE_drop), "drop");
	assert_string_equal(trace_kind_name(TRACE_nak), "nak");
	assert_string_equal(trace_kind_name(TRACE_timer), "timer");
	assert_string_equal(trace_kind_name(TRACE_KIND_MAX), "unknown");
	for (unsigned int k = 0; k < TRACE_KIND_MAX; k++)
		assert_true(strlen(trace_kind_name((enum trace_kind)k)) > 0);
}

static atomic_bool stop_flag;

static void *
writer_main(void *arg)
{
	for (uint32_t i = 0; !atomic_load_explicit(&stop_flag, memory_order_relaxed); i++) {
		struct trace_entry e = { .time_ns = ~(uint64_t)i, .qpn = i, .psn = ~i, .msn = i };

		trace_put(arg, &e);
	}
	return NULL;
}

static void
reading_a_busy_recorder(void **state UNUSED)
{
	struct trace *t = trace_new(64);
	uint64_t torn = 0, disorder = 0, seen = 0;
	struct trace_entry out[64];
	pthread_t thread;

	atomic_store(&stop_flag, false);
	assert_int_equal(pthread_create(&thread, NULL, writer_main, t), 0);
	for (unsigned int round = 0; round < ROUNDS(20000) || seen == 0; round++) {
		uint32_t n = trace_read(t, ALL, out, 64);

		for (uint32_t i = 0; i < n; i++) {
			uint32_t id = out[i].qpn;

			torn += out[i].psn != ~id || out[i].msn != id ||
				out[i].time_ns != ~(uint64_t)id;
			disorder += i > 0 && out[i].qpn - out[i - 1].qpn != 1;
		}
		seen += n;
		if (n == 0)
			sched_yield();
	}
	atomic_store(&stop_flag, true);
	pthread_join(thread, NULL);
	assert_int_equal(torn, 0);
	assert_int_equal(disorder, 0);
	free(t);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sizes),
		cmocka_unit_test(oldest_first),
		cmocka_unit_test(wraps),
		cmocka_unit_test(around_a_place),
		cmocka_unit_test(kind_names),
		cmocka_unit_test(reading_a_busy_recorder),
	};

	return cmocka_run_group_tests_name("trace", tests, NULL, NULL);
}
