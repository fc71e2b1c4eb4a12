/* SPDX-License-Identifier: BSD-3-Clause */
/* Order on the wire: the answer queue, and what stands behind it. */
#include "bed.h"

/** A READ of n packets at PSN p comes out whole. */
static void
expect_read(struct bed *b, uint32_t p, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		expect_packet(b,
			n == 1       ? OP_RC_READ_RESPONSE_ONLY
			: i == 0     ? OP_RC_READ_RESPONSE_FIRST
			: i == n - 1 ? OP_RC_READ_RESPONSE_LAST
				     : OP_RC_READ_RESPONSE_MIDDLE,
			p + i, PMTU);
}

/* RESP-13: 64 responses take several turns; the ACK of the SEND behind them comes last. */
static void
RESP_13_read_then_send(void **state)
{
	struct bed *b = *state;
	struct wire_fields f = read_request(E, MR_VA, 32768);

	bed_send(b, &f);
	f = send_only(E + 32, 8);
	bed_send(b, &f);
	for (uint32_t done = 0; done < 33; done++) {
		if (b->out_at == b->out_n) {
			bed_turn(b);
			assert_in_range(b->out_n, 1, 9); /* a bounded share of the turn */
		}
		if (done < 32)
			assert_int_equal(b->pkt[b->out_at++].psn.v, E + done);
		else
			expect_ack(b, 0x1f, E + 32, 2);
	}
	expect_silence(b);
	assert_int_equal(bed_cqe(b).status, 0);
}

/* RESP-13: an ACK that is owed goes out before the READ that came after it. */
static void
RESP_13_ack_before_read(void **state)
{
	struct bed *b = *state;
	struct wire_fields f = write_only(E, MR_VA, 64);

	bed_send(b, &f);
	f = read_request(E + 1, MR_VA, PMTU);
	bed_send(b, &f);
	f = write_only(E + 2, MR_VA, 64);
	bed_send(b, &f);
	f = fetch_add(E + 3, MR_VA, 1);
	bed_send(b, &f);
	f = write_only(E + 4, MR_VA, 64);
	bed_send(b, &f);
	bed_turns(b);
	expect_ack(b, 0x1f, E, 1);
	expect_read(b, E + 1, 1);
	expect_ack(b, 0x1f, E + 2, 3);
	expect_packet(b, OP_RC_ATOMIC_ACKNOWLEDGE, E + 3, 0);
	expect_ack(b, 0x1f, E + 4, 5);
	expect_silence(b);
}

/* RESP-SEQ-07: four responses, then the NAK. */
static void
RESP_SEQ_07_read_then_gap(void **state)
{
	struct bed *b = *state;
	struct wire_fields f = read_request(E, MR_VA, 4096);

	bed_send(b, &f);
	f = send_only(E + 5, 8);
	bed_send(b, &f);
	bed_turns(b);
	expect_read(b, E, 4);
	expect_ack(b, 0x60, E + 4, 1);
	expect_silence(b);
}

/* RESP-NAK-02: CQE, responses, then the fatal NAK; the QP takes nothing more meanwhile. */
static void
RESP_NAK_02_earlier_requests_first(void **state)
{
	struct bed *b = *state;
	struct wire_fields f = send_only(E, 8);

	bed_send(b, &f);
	f = read_request(E + 1, MR_VA, 16384);
	bed_send(b, &f);
	f = write_only(E + 17, MR_VA, 64);
	f.reth.rkey = 0xbad;
	bed_send(b, &f);
	bed_turn(b);
	assert_int_equal(atomic_load(&b->qp->state), QPS_ERR);
	expect_ack(b, 0x1f, E, 1);
	for (uint32_t i = 0; i < 16; i++) {
		if (b->out_at == b->out_n)
			bed_turn(b);
		expect_packet(b,
			i == 0    ? OP_RC_READ_RESPONSE_FIRST
			: i == 15 ? OP_RC_READ_RESPONSE_LAST
				  : OP_RC_READ_RESPONSE_MIDDLE,
			E + 1 + i, PMTU);
		/* QP-14: while the answers still leave, nothing is accepted. */
		f = write_only(E + 17, MR_VA, 64);
		bed_send(b, &f);
	}
	if (b->out_at == b->out_n)
		bed_turn(b);
	expect_ack(b, 0x62, E + 17, 2);
	bed_turns(b);
	expect_silence(b);
	assert_int_equal(bed_cqe(b).status, 0);
	for (int i = 0; i < 3; i++)
		assert_int_equal(bed_cqe(b).status, 5);
	bed_no_cqe(b);
	assert_true(bed_stat(b, STAT_rx_syndrome_15) > 0);
}

/* RESP-NAK-03: the region goes after some responses; the NAK stands in place of the next one. */
static void
RESP_NAK_03_region_lost(void **state)
{
	struct bed *b = *state;
	struct wire_fields f = read_request(E, MR_VA, 16384);
	struct mbox_msg m;
	uint32_t sent;

	bed_send(b, &f);
	f = send_only(E + 16, 8);
	bed_send(b, &f);
	bed_turn(b);
	sent = b->out_n;
	assert_in_range(sent, 1, 15);
	atomic_store(&b->mr->valid, false);
	bed_turns(b);
	expect_ack(b, 0x62, E + sent, 2);
	expect_silence(b); /* nor the SEND's ACK */
	assert_int_equal(atomic_load(&b->qp->state), QPS_ERR);
	m = bed_up(b, MBOX_FATAL);
	assert_int_equal(m.ev.fatal, 21);
	m = bed_up(b, MBOX_EVENT);
	assert_int_equal(m.ev.event, 3); /* IBV_EVENT_QP_ACCESS_ERR */
	assert_int_equal(m.ev.source, SOURCE_READ_RESPONSE);
	assert_int_equal(m.ev.psn, E + sent);
	assert_int_equal(m.ev.state, QPS_ERR);
	bed_no_up(b);
	assert_int_equal(bed_cqe(b).status, 0); /* the SEND was done */
	for (int i = 0; i < 3; i++)
		assert_int_equal(bed_cqe(b).status, 5);
	bed_no_cqe(b);
}

/* RESP-NAK-03 with a fatal NAK already waiting: the one for the earlier PSN is the only one. */
static void
RESP_NAK_03_after_fatal(void **state)
{
	struct bed *b = *state;
	struct wire_fields f = read_request(E, MR_VA, 16384);
	uint32_t sent;

	bed_send(b, &f);
	f = write_only(E + 16, MR_VA, 64);
	f.reth.rkey = 0xbad;
	bed_send(b, &f);
	bed_turn(b);
	sent = b->out_n;
	atomic_store(&b->mr->valid, false);
	bed_turns(b);
	expect_ack(b, 0x62, E + sent, 1);
	expect_silence(b);
	bed_up(b, MBOX_FATAL);
	assert_int_equal(bed_up(b, MBOX_EVENT).ev.psn, E + 16);
	bed_no_up(b);
}

/* RESP-RNR-10: the done request is acknowledged before the RNR NAK of the next. */
static void
RESP_RNR_10_ack_then_rnr(void **state)
{
	struct bed *b = *state;
	struct wire_fields f;

	for (uint32_t i = 0; i < 5; i++) {
		f = send_only(E + i, 8);
		bed_send(b, &f);
	}
	bed_turn(b);
	expect_ack(b, 0x1f, E + 3, 4);
	expect_ack(b, 0x2c, E + 4, 4);
	expect_silence(b);
	assert_int_equal(bed_stat(b, STAT_send_rnr_err), 1);
	assert_int_equal(bed_stat(b, STAT_out_of_buffer), 1);
	assert_int_equal(bed_stat(b, STAT_rx_syndrome_20), 1);
}

/* Two QPs with long READs share the turn. */
static void
reads_are_fair(void **state)
{
	struct bed *b = *state;
	struct qp *other = bed_qp(b, 0x12, 0x23);
	struct wire_fields f = read_request(E, MR_VA, 32768);
	uint32_t first[2] = { 0, 0 };

	bed_send(b, &f);
	f.dest_qpn = 0x12;
	bed_send(b, &f);
	bed_turn(b);
	for (uint32_t i = 0; i < b->out_n; i++)
		first[b->pkt[i].dest_qpn == 0x23]++;
	assert_true(first[0] > 0);
	assert_int_equal(first[0], first[1]);
	bed_qp_gone(b, other);
}

/*
 * RESP-NAK-02, RESP-SEQ-01: what two QPs owe after one burst, NAKs that leave together among it, is
 * in the order of their packets.
 */
static void
RESP_NAK_02_naks_of_a_burst(void **state)
{
	struct bed *b = *state;
	struct qp *other = bed_qp(b, QPN + 1, 0x23);
	static const struct {
		bool other;
		uint8_t p;
		uint32_t rkey;
	} in[] = { { false, 3, MR_KEY }, { true, 1, MR_KEY }, { false, 0, MR_KEY },
		{ false, 5, MR_KEY }, { true, 0, 0xbad } };
	static const struct {
		uint32_t to;
		uint8_t syndrome;
		uint8_t p;
		uint8_t msn;
	} out[] = { { PEER_QPN, 0x60, 0, 0 }, { 0x23, 0x60, 0, 0 }, { PEER_QPN, 0x1f, 0, 1 },
		{ PEER_QPN, 0x60, 1, 1 }, { 0x23, 0x62, 0, 0 } };

	for (size_t i = 0; i < ARRAY_LEN(in); i++) {
		struct wire_fields f = write_only(E + in[i].p, MR_VA, 8);

		f.dest_qpn = in[i].other ? QPN + 1 : 0;
		f.reth.rkey = in[i].rkey;
		bed_send(b, &f);
	}
	bed_turn(b);
	for (size_t i = 0; i < ARRAY_LEN(out); i++) {
		assert_int_equal(b->pkt[i].dest_qpn, out[i].to);
		expect_ack(b, out[i].syndrome, E + out[i].p, out[i].msn);
	}
	expect_silence(b);
	assert_int_equal(bed_stat(b, STAT_resp_nak_sequence_sent), 3);
	assert_int_equal(bed_stat(b, STAT_resp_remote_access_errors), 1);
	assert_int_equal(bed_stat(b, STAT_acks_sent), 1);
	assert_int_equal(qp_stat(other, STAT_resp_nak_sequence_sent), 1);
	assert_int_equal(bed_stat(b, STAT_out_of_sequence), 3);
	assert_int_equal(atomic_load(&other->state), QPS_ERR);
	bed_qp_gone(b, other);
}

/*
 * RESP-13, RESP-NAK-02: a READ that is answered at once, behind a NAK that is owed since an earlier
 * packet of the burst; and behind an ACK, too, if one is owed.
 */
static void
RESP_13_a_nak_before_a_read_answered_at_once(void **state)
{
	struct bed *b = *state;

	for (uint32_t asks = 0; asks < 2; asks++) {
		const uint32_t at = E + 2 * asks, msn = 2 * asks;
		struct wire_fields f = write_only(at + 1, MR_VA, 8);

		bed_send(b, &f);
		f = write_only(at, MR_VA, 8);
		f.flags = asks != 0 ? PKT_ACKREQ : 0;
		bed_send(b, &f);
		f = read_request(at + 1, MR_VA, 8);
		bed_send(b, &f);
		bed_turn(b);
		expect_ack(b, 0x60, at, msn);
		if (asks != 0)
			expect_ack(b, 0x1f, at, msn + 1);
		expect_packet(b, OP_RC_READ_RESPONSE_ONLY, at + 1, 8);
		expect_silence(b);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(RESP_13_read_then_send),
		TEST(RESP_13_ack_before_read),
		TEST(RESP_SEQ_07_read_then_gap),
		TEST(RESP_NAK_02_earlier_requests_first),
		TEST(RESP_NAK_03_region_lost),
		TEST(RESP_NAK_03_after_fatal),
		TEST(RESP_RNR_10_ack_then_rnr),
		TEST(RESP_NAK_02_naks_of_a_burst),
		TEST(RESP_13_a_nak_before_a_read_answered_at_once),
		TEST(reads_are_fair),
	};

	return cmocka_run_group_tests(tests, bed_group_setup, NULL);
}
