/* SPDX-License-Identifier: BSD-3-Clause */
/* Packets at a rate, woken up by a wheel of 4.096 us (CC-21). */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "cc.h"

#define US TIME_NS_PER_US
#define MS TIME_NS_PER_MS

struct wire {
	uint64_t bytes;
	uint32_t burst; /* most packets that left at once */
};

/** Wake up at ticks, two of them late, and send all that may leave. */
static struct wire
send_for(struct cc *c, uint32_t len, ns_t from, ns_t to)
{
	struct wire out = { 0 };

	for (ns_t now = from; now < to;) {
		uint32_t burst = 0, n;

		while ((n = cc_packets(c, len, now)) != 0) {
			for (uint32_t i = 0; i < n; i++)
				cc_sent(c, len);
			burst += n;
		}
		out.bytes += (uint64_t)burst * len;
		out.burst = burst > out.burst ? burst : out.burst;
		now = (tick_after(c->due) + 2) << TICK_SHIFT;
	}
	return out;
}

/* Rates of 10 Mb/s to 40 Gb/s, over a millisecond and enough packets to see a percent. */
static void
CC_21_rate(void **state UNUSED)
{
	static const uint32_t mbps[] = { 10, 100, 1000, 5000, 10000, 40000 };
	static const uint32_t lens[] = { 64, 1024, 4096 };

	for (uint32_t i = 0; i < ARRAY_LEN(mbps); i++) {
		for (uint32_t j = 0; j < ARRAY_LEN(lens); j++) {
			struct cc_params p;
			struct cc c;
			struct wire got;
			ns_t time = 1 * MS;
			uint64_t want;

			cc_preset(CC_MLX5, &p);
			p.rpg_max_rate = mbps[i];
			cc_start(&c, &p);
			assert_true(cc_is_paced(&c));
			while (time * mbps[i] / 8000 < 200 * lens[j])
				time *= 2;
			want = time * mbps[i] / 8000;
			got = send_for(&c, lens[j], 5 * MS, 5 * MS + time);
			if (got.bytes < want * 98 / 100 - lens[j] ||
				got.bytes > want * 102 / 100 + lens[j])
				fail_msg("%u Mb/s, %u bytes: %llu of %llu in %llu ns", mbps[i],
					lens[j], (unsigned long long)got.bytes,
					(unsigned long long)want, (unsigned long long)time);
			assert_true(got.burst <= 16 || got.burst * lens[j] <= 65536 + lens[j]);
		}
	}
}

/* After a second of nothing to send there is a burst, and it is a small one. */
static void
CC_21_burst_after_silence(void **state UNUSED)
{
	for (uint32_t mbps = 10; mbps <= 40000; mbps *= 4) {
		struct cc_params p;
		uint32_t n = 0, some;
		struct cc c;

		cc_preset(CC_MLX5, &p);
		p.rpg_max_rate = mbps;
		cc_start(&c, &p);
		for (; (some = cc_packets(&c, 1024, 1000 * MS)) != 0; n += some)
			for (uint32_t i = 0; i < some; i++)
				cc_sent(&c, 1024);
		assert_true(n >= 1);
		assert_true(n <= 16 || n * 1024 <= 65536 + 1024);
	}
}

/* Fractions of a nanosecond add up: a packet of 64 bytes at 99.999 Gb/s takes 5.12005 ns. */
static void
CC_21_fractions(void **state UNUSED)
{
	struct cc_params p;
	struct cc c;

	cc_preset(CC_MLX5, &p);
	p.rpg_max_rate = 99999;
	cc_start(&c, &p);
	for (uint32_t i = 0; i < 100000; i++)
		cc_sent(&c, 64);
	assert_int_equal(512005, c.due);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(CC_21_rate),
		cmocka_unit_test(CC_21_burst_after_silence),
		cmocka_unit_test(CC_21_fractions),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
