/* SPDX-License-Identifier: BSD-3-Clause */
/* Error buffer: bounded, in order, losses counted. */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../clib/rounds.h"
#include "errbuf.h"

static struct errbuf *
errbuf_new(uint32_t entries)
{
	struct errbuf *b = aligned_alloc(CACHE_LINE, trace_errbuf_size(entries));

	assert_non_null(b);
	memset(b, 0xff, trace_errbuf_size(entries));
	trace_errbuf_init(b, entries);
	return b;
}

static bool
put(struct errbuf *b, uint32_t i)
{
	struct errbuf_record *r = trace_errbuf_slot(b);

	if (r == NULL)
		return false;
	memset(r, 0, sizeof(*r));
	r->faults = BIT64(30);
	r->qpn = i;
	r->header_len = ERRBUF_HEADER_BYTES;
	memset(r->header, (int)(i & 0xff), sizeof(r->header));
	trace_errbuf_commit(b);
	return true;
}

static void
sizes(void **state UNUSED)
{
	assert_int_equal(trace_errbuf_size(0), 0);
	assert_int_equal(trace_errbuf_size(65), 0);
	assert_int_equal(trace_errbuf_size(64), 128 + 64 * 256);
}

/* What is looked at stays, over the ring's end too. */
static void
RX_ERR_01_look(void **state UNUSED)
{
	struct errbuf *b = errbuf_new(8);
	struct errbuf_record out[4], r;

	for (uint32_t i = 0; i < 4; i++)
		assert_true(put(b, i));
	assert_int_equal(trace_errbuf_take(b, out, 3), 3);
	for (uint32_t i = 4; i < 7; i++)
		assert_true(put(b, i));
	assert_int_equal(trace_errbuf_waiting(b), 4);
	for (uint32_t turn = 0; turn < 2; turn++) {
		for (uint32_t i = 0; i < 4; i++) {
			trace_errbuf_look(b, i, &r);
			assert_int_equal(r.qpn, 3 + i);
		}
	}
	assert_int_equal(trace_errbuf_take(b, out, 4), 4);
	assert_int_equal(out[0].qpn, 3);
	assert_int_equal(trace_errbuf_waiting(b), 0);
	free(b);
}

/* RX-ERR-03: ring of 64, 10000 bad packets, nobody reads. */
static void
RX_ERR_03_bounded(void **state UNUSED)
{
	struct errbuf *b = errbuf_new(64);
	struct errbuf_record *out = calloc(65, sizeof(*out));
	uint32_t stored = 0;

	assert_non_null(out);
	for (uint32_t i = 0; i < 10000; i++)
		stored += put(b, i);
	assert_int_equal(stored, 64);
	assert_int_equal(atomic_load(&b->lost), 10000 - 64);
	assert_int_equal(trace_errbuf_take(b, out, 65), 64);
	for (uint32_t i = 0; i < 64; i++) { /* all up to half full, then one in 16 */
		uint32_t want = i < 32 ? i : 32 + 16 * (i - 32) + 15;

		assert_int_equal(out[i].qpn, want);
		assert_int_equal(out[i].header[ERRBUF_HEADER_BYTES - 1], want & 0xff);
	}
	assert_int_equal(trace_errbuf_take(b, out, 65), 0);

	assert_true(put(b, 7)); /* and it goes on afterwards */
	assert_int_equal(trace_errbuf_take(b, out, 65), 1);
	assert_int_equal(out[0].qpn, 7);
	assert_int_equal(atomic_load(&b->lost), 10000 - 64);
	free(out);
	free(b);
}

/* RX-ERR-01: one record a drop, in order, each delivered once. */
static void
RX_ERR_01_in_order_once(void **state UNUSED)
{
	struct errbuf *b = errbuf_new(16); /* never more than half full here */
	struct errbuf_record out[8];
	uint32_t in = 0, next = 0;

	for (uint32_t round = 0; round < 50; round++) {
		for (uint32_t i = 0; i < 5; i++)
			assert_true(put(b, in++));
		for (uint32_t left = 5; left != 0;) {
			uint32_t n = trace_errbuf_take(b, out, 2);

			assert_int_equal(n, left < 2 ? left : 2);
			for (uint32_t i = 0; i < n; i++) {
				assert_int_equal(out[i].qpn, next++);
				assert_int_equal(out[i].faults, 0x40000000);
			}
			left -= n;
		}
	}
	assert_int_equal(atomic_load(&b->lost), 0);
	free(b);
}

/* A slot that was asked for but not committed is no record. */
static void
uncommitted(void **state UNUSED)
{
	struct errbuf *b = errbuf_new(2);
	struct errbuf_record out[2];

	assert_non_null(trace_errbuf_slot(b));
	assert_int_equal(trace_errbuf_take(b, out, 2), 0);
	assert_true(put(b, 3));
	assert_int_equal(trace_errbuf_take(b, out, 2), 1);
	assert_int_equal(out[0].qpn, 3);
	free(b);
}

#define ITEMS ROUNDS(300000)

static void *
writer_main(void *arg)
{
	for (uint32_t i = 0; i < ITEMS; i++) {
		put(arg, i);
		if (i % 64 == 0)
			sched_yield();
	}
	return NULL;
}

static void
RX_ERR_03_two_threads(void **state UNUSED)
{
	struct errbuf *b = errbuf_new(64);
	uint64_t got = 0, wrong = 0;
	struct errbuf_record out[16];
	uint32_t last = UINT32_MAX;
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, writer_main, b), 0);
	while (last != ITEMS - 1 && got + atomic_load(&b->lost) < ITEMS) {
		uint32_t n = trace_errbuf_take(b, out, 16);

		for (uint32_t i = 0; i < n; i++) {
			wrong += last != UINT32_MAX && out[i].qpn <= last;
			wrong += out[i].header[0] != (out[i].qpn & 0xff) ||
				 out[i].header[127] != (out[i].qpn & 0xff);
			last = out[i].qpn;
		}
		got += n;
		if (n == 0)
			sched_yield();
	}
	pthread_join(thread, NULL);
	for (uint32_t n; (n = trace_errbuf_take(b, out, 16)) != 0;)
		got += n;
	assert_int_equal(wrong, 0);
	assert_int_equal(got + atomic_load(&b->lost), ITEMS);
	free(b);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sizes),
		cmocka_unit_test(RX_ERR_01_in_order_once),
		cmocka_unit_test(RX_ERR_01_look),
		cmocka_unit_test(RX_ERR_03_bounded),
		cmocka_unit_test(uncommitted),
		cmocka_unit_test(RX_ERR_03_two_threads),
	};

	return cmocka_run_group_tests_name("errbuf", tests, NULL, NULL);
}
