/* SPDX-License-Identifier: BSD-3-Clause */
/* Where rocelane-perf's messages lie: as perftest has them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "perf.h"

static void
lie(const struct perf_places *at, uint64_t second, uint64_t last, uint32_t n)
{
	assert_int_equal(place_of(at, 0), 0);
	assert_int_equal(place_of(at, 1), second);
	assert_int_equal(place_of(at, n - 1), last);
	assert_int_equal(place_of(at, n), 0);
}

/* What is short goes through a page by cache lines; what is more than half of it does not. */
static void
bandwidth(void **state)
{
	struct perf p = { .cycle_buffer = 4096, .line = 64, .slots = 1 };

	(void)state;
	places_set(&p, 8);
	lie(&p.sent_at, 64, 4032, 64);
	lie(&p.received_at, 64, 4032, 64);
	places_set(&p, 65);
	lie(&p.sent_at, 128, 3968, 32);
	places_set(&p, 1500); /* twice 1536, and no third */
	lie(&p.sent_at, 1536, 1536, 2);
	places_set(&p, 2048);
	lie(&p.sent_at, 2048, 2048, 2);
	places_set(&p, 2049);
	lie(&p.sent_at, 0, 0, 2);
	places_set(&p, 8 << 20);
	lie(&p.sent_at, 0, 0, 2);
}

/* The IP header ahead of a datagram is received, and not sent. */
static void
datagrams(void **state)
{
	struct perf p = { .cycle_buffer = 4096, .line = 64, .slots = 1, .head = PERF_GRH };

	(void)state;
	places_set(&p, 64);
	lie(&p.sent_at, 64, 4032, 64);
	lie(&p.received_at, 128, 3968, 32);
}

/* What the peer said of its memory is no reason to leave ours. */
static void
odd_peers(void **state)
{
	struct perf p = { .cycle_buffer = 4096, .line = UINT32_MAX, .slots = 1 };

	(void)state;
	places_set(&p, 8);
	lie(&p.sent_at, 0, 0, 2);
	p.line = 4096;
	places_set(&p, 8);
	lie(&p.sent_at, 0, 0, 2);
}

static void
latency_and_validated(void **state)
{
	struct perf p = { .cycle_buffer = 4096, .line = 64, .slots = 1, .o.lat = true };

	(void)state;
	places_set(&p, 8);
	lie(&p.sent_at, 0, 0, 2);
	p.o.lat = false;
	p.o.validate = true;
	p.slots = 128;
	places_set(&p, 8);
	lie(&p.sent_at, 8, 1016, 128);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bandwidth),
		cmocka_unit_test(datagrams),
		cmocka_unit_test(odd_peers),
		cmocka_unit_test(latency_and_validated),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
