/* SPDX-License-Identifier: BSD-3-Clause */
/* The packets of one burst: what those before them have changed, their counts, and one event. */
#include <string.h>

#include "bed.h"

/* RESP-04: the place of a WRITE was looked up before a SEND of its burst revoked the key. */
static void
RESP_04_invalidated_in_a_burst(void **state)
{
	struct bed *b = *state;
	struct wire_fields f = write_only(E, MR_VA, 64);

	b->mr->remote_invalidate = true;
	bed_send(b, &f);
	f = send_only(E + 1, 8);
	f.opcode = OP_RC_SEND_ONLY_INV;
	f.ieth = MR_KEY;
	bed_send(b, &f);
	f = write_only(E + 2, MR_VA + 256, 64);
	bed_send(b, &f);
	bed_turn(b);
	expect_ack(b, 0x1f, E + 1, 2);
	expect_ack(b, 0x62, E + 2, 2);
	assert_memory_equal(b->memory, f.payload, 64);
	assert_int_equal(b->memory[256], 0);
	assert_int_equal(bed_cqe(b).wc_flags, WC_WITH_INV);
}

/* RESP-05: WRITEs of one packet, their frames, and their ACKs are counted at the QP as well. */
static void
RESP_05_writes_counted_at_qp(void **state)
{
	struct bed *b = *state;
	const uint64_t sent = qp_stat(b->qp, STAT_sent_pkts);
	struct wire_fields f;

	for (uint32_t i = 0; i < 3; i++) {
		f = write_only(E + i, MR_VA, 64);
		bed_send(b, &f);
		bed_turn(b);
		expect_ack(b, 0x1f, E + i, i + 1);
		assert_int_equal(qp_stat(b->qp, STAT_rcvd_pkts), i + 1);
		assert_int_equal(qp_stat(b->qp, STAT_rx_packets), i + 1);
		assert_int_equal(qp_stat(b->qp, STAT_rx_write_requests), i + 1);
		/* Ethernet, IPv4, UDP, BTH, RETH, payload, ICRC */
		assert_int_equal(
			qp_stat(b->qp, STAT_rx_bytes), (i + 1) * (14 + 20 + 8 + 12 + 16 + 64 + 4));
		assert_int_equal(qp_stat(b->qp, STAT_acks_sent), i + 1);
		assert_int_equal(qp_stat(b->qp, STAT_sent_pkts), sent + i + 1);
	}
	expect_silence(b);
}

/* RESP-NAK-INV-04: a message was open before what comes behind its FIRST in the burst. */
static void
RESP_NAK_INV_04_only_behind_first(void **state)
{
	static const uint8_t opcodes[] = { OP_RC_WRITE_ONLY, OP_RC_SEND_ONLY, OP_RC_READ_REQUEST,
		OP_RC_WRITE_FIRST };
	struct bed *b = *state;

	for (size_t i = 0; i < ARRAY_LEN(opcodes); i++) {
		struct wire_fields f = write_only(E, MR_VA, PMTU);

		f.opcode = OP_RC_WRITE_FIRST;
		f.reth.dma_len = 2 * PMTU;
		bed_send(b, &f);
		f = write_only(E + 1, MR_VA + 8192, 64);
		f.opcode = opcodes[i];
		f.payload_len = opcodes[i] == OP_RC_READ_REQUEST ? 0 : 64;
		bed_send(b, &f);
		bed_turn(b);
		expect_ack(b, 0x1f, E, 0);
		expect_ack(b, 0x61, E + 1, 0);
		expect_silence(b);
		assert_int_equal(b->memory[8192], 0);
		assert_int_equal(bed_teardown(state), 0);
		assert_int_equal(bed_setup(state), 0);
		b = *state;
	}
}

/* RESP-NAK-RAE-09: the key names less from the second packet on, all of it before. */
static void
RESP_NAK_RAE_09_less_behind_first(void **state)
{
	struct bed *b = *state;
	struct wire_fields f = write_only(E, MR_VA, PMTU);

	f.opcode = OP_RC_WRITE_FIRST;
	f.reth.dma_len = 2 * PMTU;
	bed_send(b, &f);
	bed_turn(b);
	expect_ack(b, 0x1f, E, 0);
	b->mr->length = 2 * PMTU - 1;
	f = write_only(E + 1, 0, PMTU);
	f.opcode = OP_RC_WRITE_LAST;
	bed_send(b, &f);
	bed_turn(b);
	b->mr->length = MR_LEN;
	expect_ack(b, 0x62, E + 1, 0);
	expect_silence(b);
	assert_memory_equal(b->memory, f.payload, PMTU);
	for (uint32_t i = PMTU; i < 2 * PMTU; i++)
		assert_int_equal(b->memory[i], 0);
}

/* RESP-05: a message ends, others of one packet and of several begin, all in one burst. */
static void
RESP_05_messages_of_all_lengths(void **state)
{
	static const struct {
		uint8_t opcode;
		uint16_t len;
		uint32_t at, message;
	} rows[] = { { OP_RC_WRITE_FIRST, PMTU, 0, 2 * PMTU + 8 },
		{ OP_RC_WRITE_MIDDLE, PMTU, PMTU, 0 }, { OP_RC_WRITE_LAST, 8, 2 * PMTU, 0 },
		{ OP_RC_WRITE_ONLY, 64, 8192, 64 }, { OP_RC_WRITE_FIRST, PMTU, 16384, PMTU + 1 },
		{ OP_RC_WRITE_LAST, 1, 16384 + PMTU, 0 }, { OP_RC_WRITE_ONLY, 8, 24576, 8 } };
	struct bed *b = *state;
	uint8_t bytes[PMTU];
	uint64_t frames = 0;

	for (uint32_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct wire_fields f = write_only(E + i, MR_VA + rows[i].at, rows[i].len);

		memset(bytes, 0x10 + (int)i, sizeof(bytes));
		f.opcode = rows[i].opcode;
		f.reth.dma_len = rows[i].message;
		f.payload = bytes;
		bed_send(b, &f);
		/* Ethernet, IPv4, UDP, BTH, RETH, payload, pad, ICRC */
		frames += 14 + 20 + 8 + 12 + (rows[i].message != 0 ? 16 : 0) + rows[i].len +
			  (-rows[i].len & 3) + 4;
	}
	bed_turn(b);
	expect_ack(b, 0x1f, E + 6, 4);
	expect_silence(b);
	for (uint32_t i = 0; i < ARRAY_LEN(rows); i++) {
		memset(bytes, 0x10 + (int)i, sizeof(bytes));
		assert_memory_equal(b->memory + rows[i].at, bytes, rows[i].len);
	}
	assert_int_equal(b->memory[16384 + PMTU + 1], 0);
	assert_int_equal(qp_stat(b->qp, STAT_rx_write_requests), 4);
	assert_int_equal(bed_stat(b, STAT_rx_write_requests), 4);
	assert_int_equal(qp_stat(b->qp, STAT_rcvd_pkts), 7);
	assert_int_equal(bed_stat(b, STAT_rcvd_pkts), 7);
	assert_int_equal(qp_stat(b->qp, STAT_rx_bytes), frames);
}

/*
 * RESP-SEQ-01: all long packets of a turn are ahead, or those behind a good one: the peer is told
 * once, in this turn.
 */
static void
RESP_SEQ_01_gap_in_long_packets(void **state)
{
	enum { PACKETS = 16, LEN = 1000 };
	struct bed *b = *state;

	for (uint32_t good = 0; good < 2; good++) {
		const uint32_t from = b->qp->resp.epsn.v;

		for (uint32_t i = 0; i < PACKETS; i++) {
			struct wire_fields f = write_only(
				from + i + (good == 0 || i >= 3), MR_VA + i * 8, LEN);

			bed_send(b, &f);
		}
		bed_turn(b);
		if (good != 0)
			expect_ack(b, 0x1f, from + 2, 3);
		expect_ack(b, 0x60, from + good * 3, good * 3);
		expect_silence(b);
		assert_int_equal(b->qp->resp.epsn.v, from + good * 3);
		assert_int_equal(qp_stat(b->qp, STAT_out_of_sequence),
			PACKETS + good * (PACKETS - 3));
		b->qp->resp.latched = false;
	}
}

/*
 * RESP-01, CQ-06: SENDs of one QP in a burst take its WQEs in order, and their completions are
 * there before the event, which is for the newest one that is solicited.
 */
static void
sends_of_a_burst(struct bed *b, uint8_t producer)
{
	enum { SENDS = 5, SOLICITED = 2 };
	const uint32_t len[SENDS] = { 8, 64, 0, 33, 1 };
	struct wire_fields f;
	uint64_t bytes = 0;
	uint32_t first;

	atomic_store(&b->cq.producer, producer);
	bed_post(b, SENDS);
	first = atomic_load(&b->cq.ring.tail);
	atomic_store(&b->cq.notify, CQ_NOTIFY_SOLICITED);
	for (uint32_t i = 0; i < SENDS; i++) {
		f = send_only(E + i, (uint16_t)len[i]);
		f.flags = i == SOLICITED ? PKT_SE | PKT_ACKREQ : PKT_ACKREQ;
		bytes += 14 + 20 + 8 + 12 + (len[i] + 3) / 4 * 4 + 4;
		bed_send(b, &f);
	}
	bed_turn(b);
	expect_ack(b, 0x1f, E + SENDS - 1, SENDS);
	expect_silence(b);
	assert_int_equal(atomic_load(&b->cq.notify), CQ_NOTIFY_FIRED);
	assert_int_equal(atomic_load(&b->cq.solicited), first + SOLICITED + 1);
	assert_int_equal(atomic_load(&b->cq.ring.tail), first + SENDS);
	for (uint32_t i = 0; i < SENDS; i++) {
		const struct ring_cqe c = bed_cqe(b);

		assert_int_equal(c.wr_id, i + 1);
		assert_int_equal(c.byte_len, len[i]);
		assert_int_equal(c.solicited, i == SOLICITED);
	}
	bed_no_cqe(b);
	assert_int_equal(qp_stat(b->qp, STAT_rx_send_requests), SENDS);
	assert_int_equal(qp_stat(b->qp, STAT_rx_write_requests), 0);
	assert_int_equal(qp_stat(b->qp, STAT_rcvd_pkts), SENDS);
	assert_int_equal(qp_stat(b->qp, STAT_rx_packets), SENDS);
	assert_int_equal(qp_stat(b->qp, STAT_rx_bytes), bytes);
	assert_int_equal(b->qp->hot[STAT_rx_send_requests], 0); /* none took the full path */
}

/** The worker is the only one that adds to the queue. */
static void
CQ_06_sends_of_a_burst(void **state)
{
	struct bed *b = *state;

	sends_of_a_burst(b, (uint8_t)(1 + b->conf.index));
}

static void
CQ_06_sends_of_a_burst_beside_others(void **state)
{
	sends_of_a_burst(*state, CQ_PRODUCER_ANY);
}

/*
 * AE-05: a QP may stay in RTR for good, as the passive end of a one-sided program does. What comes
 * behind the request that was told of takes the fast path.
 */
static void
AE_05_fast_in_RTR(void **state)
{
	struct bed *b = *state;
	struct wire_fields f;

	bed_in_rtr(b);
	bed_post(b, 4);
	for (uint32_t turn = 0; turn < 3; turn++) {
		for (uint32_t i = 0; i < 2; i++) {
			const uint32_t at = E + turn * 2 + i;

			f = i == 0 ? send_only(at, 64) : write_only(at, MR_VA + 64 * turn, 64);
			bed_send(b, &f);
		}
		bed_turn(b);
		expect_ack(b, 0x1f, E + turn * 2 + 1, turn * 2 + 2);
		assert_memory_equal(b->memory + 64 * turn, f.payload, 64);
		bed_cqe(b);
	}
	assert_int_equal(bed_up(b, MBOX_EVENT).ev.event, EVENT_COMM_EST);
	bed_no_up(b);
	assert_int_equal(qp_stat(b->qp, STAT_rx_send_requests), 3);
	assert_int_equal(qp_stat(b->qp, STAT_rx_write_requests), 3);
	assert_int_equal(b->qp->hot[STAT_rx_send_requests], 1);  /* by the full path: the first */
	assert_int_equal(b->qp->hot[STAT_rx_write_requests], 1); /* ... and the rest of its burst */
}

/* CQ-06: none of a burst is solicited, so there is no event. */
static void
CQ_06_no_event_of_a_burst(void **state)
{
	struct bed *b = *state;
	struct wire_fields f;

	atomic_store(&b->cq.producer, 1 + b->conf.index);
	bed_post(b, 2);
	atomic_store(&b->cq.notify, CQ_NOTIFY_SOLICITED);
	for (uint32_t i = 0; i < 2; i++) {
		f = send_only(E + i, 16);
		bed_send(b, &f);
	}
	bed_turn(b);
	bed_cqe(b);
	bed_cqe(b);
	assert_int_equal(atomic_load(&b->cq.notify), CQ_NOTIFY_SOLICITED);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			RESP_SEQ_01_gap_in_long_packets, bed_setup, bed_teardown),
		TEST(AE_05_fast_in_RTR),
		TEST(RESP_04_invalidated_in_a_burst),
		TEST(RESP_NAK_INV_04_only_behind_first),
		TEST(RESP_NAK_RAE_09_less_behind_first),
		TEST(RESP_05_messages_of_all_lengths),
		TEST(RESP_05_writes_counted_at_qp),
		TEST(CQ_06_sends_of_a_burst),
		TEST(CQ_06_sends_of_a_burst_beside_others),
		TEST(CQ_06_no_event_of_a_burst),
	};

	return cmocka_run_group_tests(tests, bed_group_setup, NULL);
}
