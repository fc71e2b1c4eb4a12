/* SPDX-License-Identifier: BSD-3-Clause */
/* READs that one packet answers: their bytes, their counts, and what they stand behind. */
#include "bed.h"

#include <string.h>

/** A response of `len` bytes from `offset` on. */
static void
expect_bytes(struct bed *b, uint32_t p, uint32_t msn, uint32_t offset, uint32_t len)
{
	const struct wire_pkt *k = expect_packet(b, OP_RC_READ_RESPONSE_ONLY, p, len);
	const struct wire_aeth a = wire_aeth(k);

	assert_int_equal(a.syndrome, 0x1f);
	assert_int_equal(a.msn, msn);
	assert_memory_equal(wire_payload(k), b->memory + offset, len);
}

enum { DEPTH = 4 }; /* max_dest_rd_atomic of the bed's QP */

static void
fill(struct bed *b)
{
	for (uint32_t i = 0; i < MR_LEN; i++)
		b->memory[i] = (uint8_t)(i * 31 + (i >> 8));
}

/* RESP-06: each byte of each length, as many in a burst as may be; all is counted once. */
static void
RESP_06_reads_of_one_packet(void **state)
{
	static const uint32_t len[] = { 1, 2, 3, 4, 15, 16, 17, 33, 63, 64, 65, 127, 1000, PMTU };
	const uint32_t n = ARRAY_LEN(len);
	struct bed *b = *state;

	fill(b);
	for (uint32_t i = 0; i < n; i++) {
		struct wire_fields f = read_request(E + i, MR_VA + i * 3, len[i]);

		bed_send(b, &f);
		if (i % DEPTH != DEPTH - 1 && i != n - 1)
			continue;
		bed_turns(b);
		for (uint32_t k = i - i % DEPTH; k <= i; k++)
			expect_bytes(b, E + k, k + 1, k * 3, len[k]);
		expect_silence(b);
	}
	assert_int_equal(bed_stat(b, STAT_rx_read_requests), n);
	assert_int_equal(qp_stat(b->qp, STAT_rx_read_requests), n);
	assert_int_equal(bed_stat(b, STAT_read_responses_sent), n);
	assert_int_equal(qp_stat(b->qp, STAT_read_responses_sent), n);
	assert_int_equal(qp_stat(b->qp, STAT_rcvd_pkts), n);
	assert_int_equal(qp_stat(b->qp, STAT_rx_packets), n);
	assert_int_equal(qp_stat(b->qp, STAT_sent_pkts), n);
	assert_int_equal(bed_stat(b, STAT_sent_pkts), n);
}

/* RESP-DUP-03: what was answered at once is answered again, with the bytes that are there now. */
static void
RESP_DUP_03_answered_before(void **state)
{
	struct bed *b = *state;
	struct wire_fields f = read_request(E, MR_VA, 64);

	fill(b);
	bed_send(b, &f);
	bed_turns(b);
	expect_bytes(b, E, 1, 0, 64);
	b->memory[5] ^= 0xff;
	bed_send(b, &f);
	f = read_request(E + 1, MR_VA + 64, 64);
	bed_send(b, &f);
	bed_turns(b);
	expect_bytes(b, E, 1, 0, 64);
	expect_bytes(b, E + 1, 2, 64, 64);
	expect_silence(b);
	assert_int_equal(bed_stat(b, STAT_duplicate_request), 1);
}

/* RESP-13, RESP-14: a READ sees what the WRITE before it has written, and not what comes later. */
static void
RESP_13_between_writes(void **state)
{
	struct bed *b = *state;
	struct wire_fields f = write_only(E, MR_VA, 64);
	uint8_t first[64];

	memset(b->memory, 0, 64);
	bed_send(b, &f);
	memcpy(first, f.payload, sizeof(first));
	f = read_request(E + 1, MR_VA, 64);
	bed_send(b, &f);
	f = write_only(E + 2, MR_VA + 4096, 64);
	bed_send(b, &f);
	bed_turns(b);
	expect_ack(b, 0x1f, E, 1);
	assert_memory_equal(
		wire_payload(expect_packet(b, OP_RC_READ_RESPONSE_ONLY, E + 1, 64)), first, 64);
	expect_ack(b, 0x1f, E + 2, 3);
	expect_silence(b);
}

/* RESP-13: a short READ behind a long one of the same QP waits for it. */
static void
RESP_13_behind_a_long_one(void **state)
{
	struct bed *b = *state;
	struct wire_fields f = read_request(E, MR_VA, 4 * PMTU);

	fill(b);
	bed_send(b, &f);
	for (uint32_t i = 0; i < 2; i++) {
		f = read_request(E + 4 + i, MR_VA + i, 64);
		bed_send(b, &f);
	}
	bed_turns(b);
	for (uint32_t i = 0; i < 4; i++)
		expect_packet(b,
			i == 0   ? OP_RC_READ_RESPONSE_FIRST
			: i == 3 ? OP_RC_READ_RESPONSE_LAST
				 : OP_RC_READ_RESPONSE_MIDDLE,
			E + i, PMTU);
	expect_bytes(b, E + 4, 2, 0, 64);
	expect_bytes(b, E + 5, 3, 1, 64);
	expect_silence(b);
}

/* RESP-NAK-RAE, RESP-08: what cannot be answered so is judged as ever. */
static void
RESP_08_others_are_judged(void **state)
{
	struct bed *b = *state;
	struct wire_fields f = read_request(E, MR_VA, 64);

	fill(b);
	bed_send(b, &f);
	f = read_request(E + 1, 0, 0); /* no key is looked at */
	f.reth.rkey = 0xbad;
	bed_send(b, &f);
	f = read_request(E + 2, MR_VA + 7, 64);
	bed_send(b, &f);
	f = read_request(E + 3, MR_VA + MR_LEN - 63, 64);
	bed_send(b, &f);
	bed_turns(b);
	expect_bytes(b, E, 1, 0, 64);
	expect_packet(b, OP_RC_READ_RESPONSE_ONLY, E + 1, 0);
	expect_bytes(b, E + 2, 3, 7, 64);
	expect_ack(b, 0x62, E + 3, 3);
	expect_silence(b);
	assert_int_equal(atomic_load(&b->qp->state), QPS_ERR);
}

/*
 * RESP-NAK-INV-10: the peer has no response yet when it sends the fifth, so it does not keep to the
 * depth; that the four before are answered with their burst is not its merit.
 */
static void
RESP_NAK_INV_10_too_many_at_a_time(void **state)
{
	struct bed *b = *state;

	fill(b);
	for (uint32_t i = 0; i <= DEPTH; i++) {
		struct wire_fields f = read_request(E + i, MR_VA + i, 64);

		bed_send(b, &f);
	}
	bed_turns(b);
	for (uint32_t i = 0; i < DEPTH; i++)
		expect_bytes(b, E + i, i + 1, i, 64);
	expect_ack(b, 0x61, E + DEPTH, DEPTH);
	expect_silence(b);
	assert_int_equal(atomic_load(&b->qp->state), QPS_ERR);
}

/* RESP-SEQ-01: after a gap the NAK leaves before what answers the request that was missing. */
static void
RESP_SEQ_01_nak_first(void **state)
{
	struct bed *b = *state;
	struct wire_fields f = read_request(E + 1, MR_VA, 64);

	fill(b);
	bed_send(b, &f);
	f = read_request(E, MR_VA, 64);
	bed_send(b, &f);
	f = read_request(E + 1, MR_VA, 64);
	bed_send(b, &f);
	bed_turns(b);
	expect_ack(b, 0x60, E, 0);
	expect_bytes(b, E, 1, 0, 64);
	expect_bytes(b, E + 1, 2, 0, 64);
	expect_silence(b);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(RESP_06_reads_of_one_packet),
		TEST(RESP_DUP_03_answered_before),
		TEST(RESP_13_between_writes),
		TEST(RESP_13_behind_a_long_one),
		TEST(RESP_08_others_are_judged),
		TEST(RESP_NAK_INV_10_too_many_at_a_time),
		TEST(RESP_SEQ_01_nak_first),
	};

	return cmocka_run_group_tests(tests, bed_group_setup, NULL);
}
