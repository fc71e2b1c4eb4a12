/* SPDX-License-Identifier: BSD-3-Clause */
/* Order on the wire: the answer queue, what stands behind it, and ports that are full. */
#include <string.h>

#include <rte_ethdev.h>

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
	assert_int_equal(m.source, SOURCE_READ_RESPONSE);
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
	assert_int_equal(errbuf_take(worker_errbuf(b->w), r, 9), 5);
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
	expect_read(b, E, 1);
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
 * What a full port does not take waits in order; receiving goes on, answers pause, nothing is lost.
 */
static void
full_port(void **state)
{
	struct bed *b = *state;
	struct rte_mbuf *plug[1023];
	struct wire_fields f = read_request(E, MR_VA, 65536);
	uint32_t n, next = E;
	void *m = NULL;

	/* Fill the wire: the port's far end holds 1023 frames. */
	f = write_only(0, MR_VA, 4);
	for (n = 0; n < 1023; n++) {
		plug[n] = bed_frame(&f);
		if (rte_ring_enqueue(bed_far_end(), plug[n]) != 0) {
			rte_pktmbuf_free(plug[n]);
			break;
		}
	}
	f = read_request(E, MR_VA, 65536);
	bed_send(b, &f);
	for (int i = 0; i < 10; i++)
		worker_poll(b->w, b->now);
	f = write_only(E + 64, MR_VA, 64);
	bed_send(b, &f);
	for (int i = 0; i < 10; i++)
		worker_poll(b->w, b->now);
	assert_int_equal(bed_stat(b, STAT_rx_write_requests), 1);
	assert_int_equal(bed_stat(b, STAT_tx_packets), 0);

	for (; n != 0; n--) {
		assert_int_equal(rte_ring_dequeue(bed_far_end(), &m), 0);
		rte_pktmbuf_free(m);
	}
	while (next < E + 65) {
		bed_turn(b);
		assert_true(b->out_n > 0);
		for (uint32_t i = 0; i < b->out_n; i++, next++)
			assert_int_equal(b->pkt[i].psn.v, next);
	}
	assert_int_equal(b->pkt[b->out_n - 1].opcode, OP_RC_ACKNOWLEDGE);
	assert_int_equal(bed_stat(b, STAT_tx_backlog_drop), 0);
	assert_int_equal(bed_stat(b, STAT_tx_packets), 65);
	assert_int_equal(bed_stat(b, STAT_sent_pkts), 65);
}

/* The backlog has an end: beyond it frames are dropped and counted; stopping frees the rest. */
static void
backlog_drop(void **state)
{
	struct bed *b = *state;
	struct wire_fields f = write_only(0, MR_VA, 4);
	uint32_t n;
	void *m = NULL;

	for (n = 0; n < 1023; n++)
		assert_int_equal(rte_ring_enqueue(bed_far_end(), bed_frame(&f)), 0);
	/* An ACK a turn; the wire takes none. */
	for (uint32_t i = 0; i < 3000 && bed_stat(b, STAT_tx_backlog_drop) == 0; i++) {
		f = write_only(E + i, MR_VA, 4);
		bed_send(b, &f);
		worker_poll(b->w, b->now);
	}
	assert_int_equal(bed_stat(b, STAT_tx_packets), 0);
	assert_int_equal(bed_stat(b, STAT_tx_backlog_drop), 1);
	assert_int_equal(bed_stat(b, STAT_sent_pkts), 2049);
	assert_int_equal(b->qp->resp.epsn.v, E + 2049); /* receiving went on */
	while (rte_ring_dequeue(bed_far_end(), &m) == 0)
		rte_pktmbuf_free(m);
	bed_worker_again(b); /* the backlog of the old one is freed: teardown counts the buffers */
}

/* An unresolved peer: nothing is sent, and what was not is counted. */
static void
no_neighbor(void **state)
{
	struct bed *b = *state;
	struct qp_attr attr = b->qp->attr;
	struct wire_fields f = write_only(E, MR_VA, 64);

	attr.path_resolved = false;
	assert_int_equal(bed_modify(b, b->qp, &attr, QP_ATTR_AV), 0);
	bed_send(b, &f);
	f = read_request(E + 1, MR_VA, 4096);
	bed_send(b, &f);
	f = fetch_add(E + 5, MR_VA, 1);
	bed_send(b, &f);
	bed_turns(b);
	expect_silence(b);
	assert_int_equal(bed_stat(b, STAT_tx_no_neighbor), 3);
	assert_int_equal(b->qp->resp.unfinished, 0);
	attr.path_resolved = true;
	assert_int_equal(bed_modify(b, b->qp, &attr, QP_ATTR_AV), 0);
	f = write_only(E + 6, MR_VA, 64);
	bed_send(b, &f);
	bed_turn(b);
	expect_ack(b, 0x1f, E + 6, 4);
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
		TEST(RESP_RNR_08_one_nak_a_burst),
		TEST(RESP_DUP_10_duplicate_behind_read),
		TEST(RESP_DUP_04_read_rewinds),
		TEST(duplicate_read_ahead),
		TEST(RESP_DUP_08_duplicate_read_without_region),
		TEST(full_answer_queue),
		TEST(reads_are_fair),
		TEST(full_port),
		TEST(backlog_drop),
		TEST(no_neighbor),
	};

	return cmocka_run_group_tests(tests, bed_group_setup, NULL);
}
