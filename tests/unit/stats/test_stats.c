/* SPDX-License-Identifier: BSD-3-Clause */
/* Counters: the names users rely on, typed here once more. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "stats.h"

static const char *const public_names[] = {
	"out_of_sequence",
	"duplicate_request",
	"out_of_buffer",
	"send_rnr_err",
	"rcvd_rnr_err",
	"rnr_nak_retry_err",
	"packet_seq_err",
	"rcvd_seq_err",
	"implied_nak_seq_err",
	"local_ack_timeout_err",
	"local_ack_timeout_early",
	"retry_exceeded_err",
	"retry_rnr_exceeded_err",
	"req_transport_retries_exceeded",
	"req_rnr_retries_exceeded",
	"req_cqe_error",
	"req_cqe_flush_error",
	"resp_cqe_error",
	"resp_cqe_flush_error",
	"req_remote_invalid_request",
	"req_remote_access_errors",
	"resp_remote_access_errors",
	"resp_local_length_error",
	"rx_write_requests",
	"rx_read_requests",
	"rx_atomic_requests",
	"rx_icrc_encapsulated",
	"np_cnp_sent",
	"np_ecn_marked_roce_packets",
	"rp_cnp_handled",
	"rp_cnp_ignored",
	"sent_pkts",
	"rcvd_pkts",
	"resp_nak_invalid_sent",
};

static void
names_exist(void **state UNUSED)
{
	for (size_t i = 0; i < ARRAY_LEN(public_names); i++) {
		enum stats_counter c = stats_by_name(public_names[i]);

		if (c == STAT_MAX)
			print_message("# missing: %s\n", public_names[i]);
		assert_int_not_equal(c, STAT_MAX);
		assert_string_equal(stats_info[c].name, public_names[i]);
	}
	assert_int_equal(stats_by_name("no_such_counter"), STAT_MAX);
	assert_int_equal(stats_by_name(""), STAT_MAX);
	assert_int_equal(stats_by_name("rx_syndrome_32"), STAT_MAX);
}

static void
rows_are_complete_and_unique(void **state UNUSED)
{
	static const char *const of_another[] = { "those", "these", "the same", "above" };

	for (unsigned int i = 0; i < STAT_MAX; i++) {
		assert_non_null(stats_info[i].name);
		assert_true(strlen(stats_info[i].unit) > 0);
		assert_true(strlen(stats_info[i].help) > 0);
		for (unsigned int k = 0; k < ARRAY_LEN(of_another); k++) /* it stands alone */
			assert_null(strstr(stats_info[i].help, of_another[k]));
		assert_true(stats_info[i].drop <= 1);
		assert_int_equal(stats_by_name(stats_info[i].name), i); /* the first of its name */
	}
}

/*
 * One counter a syndrome bit; those with impact "drop" add up with the other drops. ICRC's other
 * name must not be counted twice.
 */
static void
syndrome_counters(void **state UNUSED)
{
	/* bits 16..23 are answered or fatal, all others drop the packet */
	static const uint32_t not_drop = 0x00ff0000;
	char name[32];

	for (unsigned int bit = 0; bit < 32; bit++) {
		enum stats_counter c = stats_of_syndrome(bit);

		snprintf(name, sizeof(name), "rx_syndrome_%u", bit);
		assert_string_equal(stats_info[c].name, name);
		assert_string_equal(stats_info[c].unit, "packets");
		assert_int_equal(stats_info[c].drop, (not_drop >> bit & 1) == 0);
	}
	assert_int_equal(stats_info[stats_by_name("rx_icrc_encapsulated")].drop, 0);
}

/* The good path's counters share the first line of a block. */
static void
hot_line(void **state UNUSED)
{
	static const char *const hot[] = { "rx_packets", "rx_bytes", "rcvd_pkts", "sent_pkts",
		"rx_write_requests", "rx_send_requests", "acks_sent", "duplicate_request" };

	for (size_t i = 0; i < ARRAY_LEN(hot); i++)
		assert_true(stats_by_name(hot[i]) < CACHE_LINE / sizeof(uint64_t));
}

static void
count_and_sum(void **state UNUSED)
{
	static struct stats_block a, b;

	stats_inc(&a, STAT_out_of_sequence);
	stats_inc(&a, STAT_out_of_sequence);
	stats_add(&a, STAT_rx_bytes, 1ull << 40);
	stats_add(&b, STAT_rx_bytes, 5);
	stats_inc(&b, stats_of_syndrome(31));
	stats_sum(&a, &b);
	assert_int_equal(a.c[STAT_out_of_sequence], 2);
	assert_int_equal(a.c[STAT_rx_bytes], (1ull << 40) + 5);
	assert_int_equal(a.c[STAT_rx_syndrome_31], 1);
	assert_int_equal(a.c[STAT_duplicate_request], 0);
	assert_int_equal(b.c[STAT_rx_bytes], 5);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_exist),
		cmocka_unit_test(rows_are_complete_and_unique),
		cmocka_unit_test(syndrome_counters),
		cmocka_unit_test(hot_line),
		cmocka_unit_test(count_and_sum),
	};

	return cmocka_run_group_tests_name("stats", tests, NULL, NULL);
}
