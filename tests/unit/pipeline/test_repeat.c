/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests that come again: what is sent for the second copy, and that the queue keeps its size. */
#include "bed.h"

/*
 * RESP-RNR-08, RESP-SEQ-02, REQ-CLS-E-01: what is refused or in vain, in rows that other QPs'
 * packets end, is counted at its QP, each packet once, where nothing is recorded too.
 */
static void
RESP_SEQ_02_rows_without_records(void **state)
{
	struct bed *b = *state;
	const struct wire_fields ack = {
		.opcode = OP_RC_ACKNOWLEDGE, .psn = psn(77), .aeth = { 0x1f, 1 }
	};
	struct qp *other = bed_qp(b, QPN + 1, 0x23);
	struct wire_fields f;

	b->conf.errbuf_entries = 0;
	bed_worker_again(b);
	while (ring_consume_count(&b->qp->rq) != 0)
		ring_consume_done(&b->qp->rq, 1);
	for (uint32_t i = 0; i < 18; i++) {
		f = send_only(E + (i % 3 == 2), 8); /* two at ePSN, one ahead */
		if (i >= 12)
			f = ack;
		f.dest_qpn = i == 7 || i == 15 ? QPN + 1 : 0;
		if (i == 7)
			f.psn = psn(E + 9);
		bed_send(b, &f);
	}
	bed_turn(b);
	expect_ack(b, 0x2c, E, 0);
	assert_int_equal(b->pkt[b->out_at].dest_qpn, 0x23);
	expect_ack(b, 0x60, E, 0);
	expect_silence(b);
	assert_int_equal(bed_stat(b, STAT_rcvd_pkts), 18);
	assert_int_equal(qp_stat(b->qp, STAT_rcvd_pkts), 16);
	assert_int_equal(qp_stat(b->qp, STAT_out_of_buffer), 7);
	assert_int_equal(qp_stat(b->qp, STAT_rx_syndrome_20), 7);
	assert_int_equal(qp_stat(b->qp, STAT_out_of_sequence), 4);
	assert_int_equal(qp_stat(b->qp, STAT_rx_syndrome_21), 4);
	assert_int_equal(qp_stat(b->qp, STAT_rx_responses_unmatched), 5);
	assert_int_equal(qp_stat(b->qp, STAT_rx_responses), 5);
	assert_int_equal(qp_stat(other, STAT_rcvd_pkts), 2);
	assert_int_equal(qp_stat(other, STAT_out_of_sequence), 1);
	assert_int_equal(qp_stat(other, STAT_rx_responses_unmatched), 1);
	assert_int_equal(bed_stat(b, STAT_out_of_buffer), 7);
	assert_int_equal(bed_stat(b, STAT_out_of_sequence), 5);
	assert_int_equal(bed_stat(b, STAT_rx_responses_unmatched), 6);
	assert_int_equal(bed_stat(b, STAT_error_buffer_lost), 0);

	bed_post(b, 1);
	f = send_only(E, 8);
	bed_send(b, &f);
	bed_turn(b);
	expect_ack(b, 0x1f, E, 1);
	bed_qp_gone(b, other);
}

/*
 * RESP-RNR-08, RESP-RNR-07: of SENDs in one burst the first draws the RNR NAK, the same ones after
 * it were sent too early to have heard it and are dropped; all are counted and charged. A moment
 * later the next one draws its own. What is no repetition is judged, and a WQE is found at once.
 */
static void
RESP_RNR_08_one_nak_a_burst(void **state)
{
	struct bed *b = *state;
	struct errbuf_record r[9];
	struct wire_fields f = send_only(E, 8), late = send_only(E + 1, 8), long_one;

	while (ring_consume_count(&b->qp->rq) != 0)
		ring_consume_done(&b->qp->rq, 1);
	for (uint32_t i = 0; i < 4; i++)
		bed_send(b, &f);
	bed_send(b, &late);
	bed_turn(b);
	expect_ack(b, 0x2c, E, 0);
	expect_silence(b);
	assert_int_equal(bed_stat(b, STAT_send_rnr_err), 1);
	assert_int_equal(bed_stat(b, STAT_out_of_buffer), 4);
	assert_int_equal(bed_stat(b, STAT_rx_syndrome_20), 4);
	assert_int_equal(bed_stat(b, STAT_rx_syndrome_21), 1);
	assert_int_equal(qp_stat(b->qp, STAT_out_of_buffer), 4);
	assert_int_equal(trace_errbuf_take(worker_errbuf(b->w), r, 9), 5);
	for (uint32_t i = 0; i < 4; i++) {
		assert_int_equal(r[i].charged, FAULT_RQ_EMPTY);
		assert_int_equal(r[i].impact, i == 0 ? ERRBUF_RNR : ERRBUF_DROP);
		assert_int_equal(r[i].rule, i == 0 ? RULE_RNR_SEND : RULE_RNR_EARLY);
	}

	b->now += 1000;
	bed_send(b, &f);
	bed_turn(b);
	expect_ack(b, 0x2c, E, 0);
	assert_int_equal(bed_stat(b, STAT_send_rnr_err), 2);

	bed_send(b, &f); /* the same moment, but a WQE is there now */
	bed_post(b, 1);
	bed_turn(b);
	expect_ack(b, 0x1f, E, 1);

	long_one = send_only(E + 1, 1032); /* beyond the path MTU: a NAK, whatever is posted */
	bed_send(b, &late);
	bed_send(b, &long_one);
	bed_turn(b);
	expect_ack(b, 0x2c, E + 1, 1);
	expect_ack(b, 0x61, E + 1, 1);
	assert_int_equal(atomic_load(&b->qp->state), QPS_ERR);
}

/* RESP-DUP-10: the ACK of a duplicate waits behind the responses of the READ after it. */
static void
RESP_DUP_10_duplicate_behind_read(void **state)
{
	struct bed *b = *state;
	struct wire_fields f = send_only(E, 8), read = read_request(E + 1, MR_VA, 16384);

	bed_send(b, &f);
	bed_send(b, &read);
	bed_turn(b);
	expect_ack(b, 0x1f, E, 1);
	assert_true(b->out_n < 17);
	bed_send(b, &f);
	for (uint32_t seen = b->out_n - 1; seen < 16; seen += b->out_n) {
		bed_turn(b);
		for (uint32_t i = 0; i < b->out_n && seen + i < 16; i++, b->out_at++)
			assert_int_equal(b->pkt[i].psn.v, E + 1 + seen + i);
	}
	expect_ack(b, 0x1f, E + 16, 2);
	bed_turns(b);
	expect_silence(b);
	assert_int_equal(bed_cqe(b).wr_id, 1);
	bed_no_cqe(b);
}

/* RESP-DUP-03, -04 while the answer is under way: it goes back, opens with FIRST, and ends once. */
static void
RESP_DUP_04_read_rewinds(void **state)
{
	struct bed *b = *state;
	struct wire_fields f = read_request(E, MR_VA, 16384);
	const struct wire_pkt *p;
	uint32_t sent;

	mem_pattern_fill(b->memory, MR_LEN, 9, 0);
	bed_send(b, &f);
	bed_turn(b);
	sent = b->out_n;
	assert_in_range(sent, 4, 12);
	/* From the third packet on. */
	f = read_request(E + 2, MR_VA + 2 * PMTU, 14 * PMTU);
	bed_send(b, &f);
	bed_turns(b);
	p = expect_packet(b, OP_RC_READ_RESPONSE_FIRST, E + 2, PMTU);
	assert_memory_equal(wire_payload(p), b->memory + 2 * PMTU, PMTU);
	for (uint32_t i = 3; i < 15; i++) {
		p = expect_packet(b, OP_RC_READ_RESPONSE_MIDDLE, E + i, PMTU);
		assert_memory_equal(wire_payload(p), b->memory + i * PMTU, PMTU);
	}
	expect_packet(b, OP_RC_READ_RESPONSE_LAST, E + 15, PMTU);
	expect_silence(b);
	assert_int_equal(b->qp->resp.unfinished, 0);
	assert_int_equal(b->qp->resp.epsn.v, E + 16);
}

/* A duplicate of what has not been sent yet changes nothing. */
static void
duplicate_read_ahead(void **state)
{
	struct bed *b = *state;
	struct wire_fields f = read_request(E, MR_VA, 16384);
	uint32_t n;

	bed_send(b, &f);
	bed_turn(b);
	n = b->out_n;
	f = read_request(E + 15, MR_VA + 15 * PMTU, PMTU);
	bed_send(b, &f);
	bed_turns(b);
	assert_int_equal(n + b->out_n, 16);
	assert_int_equal(b->pkt[b->out_n - 1].opcode, OP_RC_READ_RESPONSE_LAST);
}

/* RESP-DUP-08: a duplicate READ whose region has gone is silent, the QP lives on. */
static void
RESP_DUP_08_duplicate_read_without_region(void **state)
{
	struct bed *b = *state;
	struct wire_fields f = read_request(E, MR_VA, PMTU);

	bed_send(b, &f);
	bed_turns(b);
	expect_packet(b, OP_RC_READ_RESPONSE_ONLY, E, PMTU);
	atomic_store(&b->mr->valid, false);
	bed_send(b, &f);
	bed_turns(b);
	expect_silence(b);
	assert_int_equal(atomic_load(&b->qp->state), QPS_RTS);
	bed_no_up(b);
}

/*
 * Any number of duplicates and gaps behind a READ that cannot leave: the queue stays within its
 * size, what was accepted keeps its place, and the fatal NAK still comes at the end.
 */
static void
full_answer_queue(void **state)
{
	struct bed *b = *state;
	struct wire_fields f, old = fetch_add(E, MR_VA, 1);
	uint32_t n = 0;

	/*
	 * Done: an ATOMIC, to be repeated later. Then three READs and gaps, with the port blocked.
	 */
	bed_send(b, &old);
	bed_turn(b);
	expect_packet(b, OP_RC_ATOMIC_ACKNOWLEDGE, E, 0);
	for (uint32_t i = 0; i < 3; i++) {
		f = read_request(E + 1 + 16 * i, MR_VA, 16384);
		bed_send(b, &f);
	}
	for (uint32_t i = 0; i < 29; i++) {
		if (i % 2 == 0)
			f = send_only(E + 60, 8); /* a gap: NAK, once a latch */
		else
			f = write_only(E + 49 + i / 2, MR_VA, 8); /* clears the latch */
		bed_send(b, &f);
	}
	bed_turn(b);
	assert_in_range(b->qp->answers.count, 4, b->qp->answers.cap);
	f = write_only(b->qp->resp.epsn.v, MR_VA, 64);
	f.reth.rkey = 0xbad;
	bed_send(b, &f);
	bed_turn(b);
	assert_int_equal(atomic_load(&b->qp->state), QPS_ERR);
	for (int i = 0; i < 20; i++) {
		bed_turn(b);
		n += b->out_n;
		if (b->out_n == 0)
			break;
		b->out_at = b->out_n - 1;
	}
	assert_true(n > 0);
	assert_int_equal(b->qp->answers.count, 0);
	assert_int_equal(bed_stat(b, STAT_resp_remote_access_errors), 1);
	assert_int_equal(b->qp->resp.unfinished, 0);
}

/* RESP-NAK-INV-04: a message is open, so it does not matter that the next has no receive WQE. */
static void
RESP_NAK_INV_04_before_rnr(void **state)
{
	struct bed *b = *state;
	struct wire_fields first = write_only(E, MR_VA, PMTU), next = send_only(E + 1, 8);

	ring_consume_done(&b->qp->rq, ring_consume_count(&b->qp->rq));
	first.opcode = OP_RC_WRITE_FIRST;
	first.reth.dma_len = 2 * PMTU;
	bed_send(b, &first);
	bed_turn(b);
	expect_ack(b, 0x1f, E, 0);
	bed_send(b, &next);
	bed_turn(b);
	expect_ack(b, 0x61, E + 1, 0);
	expect_silence(b);
	assert_int_equal(bed_stat(b, STAT_out_of_buffer), 0);
	bed_up(b, MBOX_FATAL);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(RESP_SEQ_02_rows_without_records),
		TEST(RESP_RNR_08_one_nak_a_burst),
		TEST(RESP_NAK_INV_04_before_rnr),
		TEST(RESP_DUP_10_duplicate_behind_read),
		TEST(RESP_DUP_04_read_rewinds),
		TEST(duplicate_read_ahead),
		TEST(RESP_DUP_08_duplicate_read_without_region),
		TEST(full_answer_queue),
	};

	return cmocka_run_group_tests(tests, bed_group_setup, NULL);
}
