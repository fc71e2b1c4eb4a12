/* SPDX-License-Identifier: BSD-3-Clause */
/* The good path: requests in, memory, completions and answers out. */
#include <string.h>

#include "bed.h"

/* RESP-01: SEND ONLY fills the head WQE, completes, is acknowledged. */
static void
RESP_01_send_only(void **state)
{
	struct bed *b = *state;
	struct wire_fields f = send_only(E, 100);
	struct ring_cqe c;

	bed_send(b, &f);
	bed_turn(b);
	expect_ack(b, 0x1f, E, 1);
	expect_silence(b);
	c = bed_cqe(b);
	assert_int_equal(c.wr_id, 1);
	assert_int_equal(c.status, 0);
	assert_int_equal(c.opcode, 128);
	assert_int_equal(c.byte_len, 100);
	assert_int_equal(c.qp_num, QPN);
	assert_memory_equal(b->rq_memory + 4096, f.payload, 100);
	assert_int_equal(b->qp->resp.epsn.v, E + 1);
	assert_int_equal(bed_stat(b, STAT_rx_send_requests), 1);
	assert_int_equal(bed_stat(b, STAT_acks_sent), 1);
	bed_no_cqe(b);
	bed_no_up(b);
}

/* RESP-02: one message over three packets and three SGEs of 1000, 3 and 2000 bytes. */
static void
RESP_02_send_over_sges(void **state)
{
	struct bed *b = *state;
	struct wire_fields f = send_only(E, 1024);
	struct ring_recv_wqe *wqe;
	const uint8_t *bytes = f.payload;
	uint8_t got[2058];

	/* The four WQEs that stand there already are small SENDs' first. */
	assert_int_equal(bed_state(b, b->qp, QPS_RESET), 0);
	bed_qp_gone(b, b->qp);
	b->qp = bed_qp(b, QPN, PEER_QPN);
	ring_attach(&b->rq_producer, b->qp->rq.sh, b->qp->rq.mask + 1, b->qp->rq.stride, false);
	wqe = ring_produce_slot(&b->rq_producer, 16);
	wqe->wr_id = 77;
	wqe->num_sge = 3;
	wqe->sge[0] = (struct ring_sge){ RQ_VA, 1000, RQ_KEY };
	wqe->sge[1] = (struct ring_sge){ RQ_VA + 2000, 3, RQ_KEY };
	wqe->sge[2] = (struct ring_sge){ RQ_VA + 3000, 2000, RQ_KEY };
	ring_produce_commit(&b->rq_producer);

	f.opcode = OP_RC_SEND_FIRST;
	f.flags = 0;
	bed_send(b, &f);
	f.opcode = OP_RC_SEND_MIDDLE;
	f.psn = psn(E + 1);
	f.payload = bytes + 1024;
	bed_send(b, &f);
	bed_turn(b);
	expect_silence(b);
	bed_no_cqe(b);
	f.opcode = OP_RC_SEND_LAST;
	f.psn = psn(E + 2);
	f.payload = bytes + 2048;
	f.payload_len = 10;
	f.flags = PKT_ACKREQ;
	bed_send(b, &f);
	bed_turn(b);
	expect_ack(b, 0x1f, E + 2, 1);
	assert_int_equal(bed_cqe(b).byte_len, 2058);
	memcpy(got, b->rq_memory, 1000);
	memcpy(got + 1000, b->rq_memory + 2000, 3);
	memcpy(got + 1003, b->rq_memory + 3000, 1055);
	assert_memory_equal(got, bytes, 2058);
}

/* RESP-05: a WRITE moves bytes and completes nothing here. */
static void
RESP_05_write(void **state)
{
	struct bed *b = *state;
	struct wire_fields f = write_only(E, MR_VA + 100, 64);
	const uint8_t *bytes = f.payload;

	bed_send(b, &f);
	bed_turn(b);
	expect_ack(b, 0x1f, E, 1);
	assert_memory_equal(b->memory + 100, bytes, 64);
	assert_int_equal(b->memory[99], 0);
	assert_int_equal(b->memory[164], 0);

	f = write_only(E + 1, MR_VA + 8192, 1024);
	f.opcode = OP_RC_WRITE_FIRST;
	f.reth.dma_len = 2500;
	bed_send(b, &f);
	f.opcode = OP_RC_WRITE_MIDDLE;
	f.psn = psn(E + 2);
	f.payload = bytes + 1024;
	bed_send(b, &f);
	f.opcode = OP_RC_WRITE_LAST;
	f.psn = psn(E + 3);
	f.payload = bytes + 2048;
	f.payload_len = 452;
	bed_send(b, &f);
	bed_turn(b);
	expect_ack(b, 0x1f, E + 3, 2);
	expect_silence(b);
	assert_memory_equal(b->memory + 8192, bytes, 2500);
	assert_int_equal(bed_stat(b, STAT_rx_write_requests), 2);
	bed_no_cqe(b);
}

/* RESP-03: WRITE with immediate takes a WQE whose buffer stays as it is. */
static void
RESP_03_write_immediate(void **state)
{
	struct bed *b = *state;
	struct wire_fields f = write_only(E, MR_VA, 64);
	struct ring_cqe c;

	f.opcode = OP_RC_WRITE_ONLY_IMM;
	f.imm = 0x11223344;
	bed_send(b, &f);
	bed_turn(b);
	expect_ack(b, 0x1f, E, 1);
	c = bed_cqe(b);
	assert_int_equal(c.opcode, 129);
	assert_int_equal(c.wc_flags, WC_WITH_IMM);
	assert_int_equal(c.imm_data, 0x11223344);
	assert_int_equal(c.byte_len, 64);
	assert_int_equal(c.wr_id, 1);
	assert_int_equal(b->rq_memory[4096], 0);
	assert_memory_equal(b->memory, f.payload, 64);
}

/* RESP-04: SEND with Invalidate revokes the key; a WRITE through it then draws NAK-RAE. */
static void
RESP_04_send_invalidate(void **state)
{
	struct bed *b = *state;
	struct wire_fields f = send_only(E, 8);
	struct ring_cqe c;

	b->mr->remote_invalidate = true;
	f.opcode = OP_RC_SEND_ONLY_INV;
	f.ieth = MR_KEY;
	bed_send(b, &f);
	bed_turn(b);
	expect_ack(b, 0x1f, E, 1);
	c = bed_cqe(b);
	assert_int_equal(c.wc_flags, WC_WITH_INV);
	assert_int_equal(c.imm_data, MR_KEY);
	f = write_only(E + 1, MR_VA, 64);
	bed_send(b, &f);
	bed_turn(b);
	expect_ack(b, 0x62, E + 1, 1);
}

/* RESP-06: a READ of 2500 bytes is FIRST, MIDDLE without AETH, LAST. */
static void
RESP_06_read(void **state)
{
	struct bed *b = *state;
	struct wire_fields f = read_request(E, MR_VA + 4, 2500);
	const struct wire_pkt *p;

	mem_pattern_fill(b->memory, MR_LEN, 5, 0);
	bed_send(b, &f);
	bed_turn(b);
	p = expect_packet(b, OP_RC_READ_RESPONSE_FIRST, E, 1024);
	assert_int_equal(wire_aeth(p).syndrome, 0x1f);
	assert_int_equal(wire_aeth(p).msn, 1);
	assert_memory_equal(wire_payload(p), b->memory + 4, 1024);
	p = expect_packet(b, OP_RC_READ_RESPONSE_MIDDLE, E + 1, 1024);
	assert_memory_equal(wire_payload(p), b->memory + 1028, 1024);
	p = expect_packet(b, OP_RC_READ_RESPONSE_LAST, E + 2, 452);
	assert_int_equal(wire_aeth(p).syndrome, 0x1f);
	assert_memory_equal(wire_payload(p), b->memory + 2052, 452);
	expect_silence(b);
	assert_int_equal(b->qp->resp.epsn.v, E + 3);
	assert_int_equal(b->qp->resp.unfinished, 0);
	bed_no_cqe(b);

	/* One that fits a packet, with pad. */
	f = read_request(E + 3, MR_VA + 1, 5);
	bed_send(b, &f);
	bed_turn(b);
	p = expect_packet(b, OP_RC_READ_RESPONSE_ONLY, E + 3, 5);
	assert_int_equal(p->pad, 3);
	assert_int_equal(wire_aeth(p).msn, 2);
	assert_memory_equal(wire_payload(p), b->memory + 1, 5);
	assert_int_equal(bed_stat(b, STAT_rx_read_requests), 2);
	assert_int_equal(bed_stat(b, STAT_read_responses_sent), 4);
}

/* RESP-07: the original comes back, memory is in host byte order. */
static void
RESP_07_atomics(void **state)
{
	struct bed *b = *state;
	static const struct {
		uint8_t opcode;
		uint64_t swap_add, compare, original, after;
	} rows[] = {
		{ OP_RC_FETCH_ADD, 3, 0, 5, 8 },
		{ OP_RC_COMPARE_SWAP, 9, 8, 8, 9 },
		{ OP_RC_COMPARE_SWAP, 2, 1, 9, 9 },
		{ OP_RC_FETCH_ADD, UINT64_MAX - 1, 0, 9, 7 },
	};
	uint64_t v = 5;

	memcpy(b->memory + 8, &v, 8);
	for (uint32_t i = 0; i < 4; i++) {
		struct wire_fields f = fetch_add(E + i, MR_VA + 8, rows[i].swap_add);
		const struct wire_pkt *p;

		f.opcode = rows[i].opcode;
		f.atomiceth.compare = rows[i].compare;
		bed_send(b, &f);
		bed_turn(b);
		p = expect_packet(b, OP_RC_ATOMIC_ACKNOWLEDGE, E + i, 0);
		assert_int_equal(wire_atomicack(p), rows[i].original);
		assert_int_equal(wire_aeth(p).msn, i + 1);
		memcpy(&v, b->memory + 8, 8);
		assert_int_equal(v, rows[i].after);
	}
	assert_int_equal(bed_stat(b, STAT_rx_atomic_requests), 4);
	bed_no_cqe(b);
}

/* RESP-DUP-06: the saved result again, memory as it was. */
static void
RESP_DUP_06_atomic_replay(void **state)
{
	struct bed *b = *state;
	struct wire_fields f = fetch_add(E, MR_VA, 3);
	uint64_t v = 5;

	memcpy(b->memory, &v, 8);
	bed_send(b, &f);
	bed_turn(b);
	expect_packet(b, OP_RC_ATOMIC_ACKNOWLEDGE, E, 0);
	bed_send(b, &f);
	bed_turn(b);
	assert_int_equal(wire_atomicack(expect_packet(b, OP_RC_ATOMIC_ACKNOWLEDGE, E, 0)), 5);
	memcpy(&v, b->memory, 8);
	assert_int_equal(v, 8);
	assert_int_equal(b->qp->resp.unfinished, 0);
}

/* RESP-08: nothing to move is still a message; the key is not looked at. */
static void
RESP_08_zero_length(void **state)
{
	struct bed *b = *state;
	struct wire_fields f = send_only(E, 0);

	bed_send(b, &f);
	f = write_only(E + 1, 0xdead0000, 0);
	f.reth.rkey = 0xbad;
	bed_send(b, &f);
	f = read_request(E + 2, 0xdead0000, 0);
	f.reth.rkey = 0xbad;
	bed_send(b, &f);
	bed_turn(b);
	expect_ack(b, 0x1f, E + 1, 2);
	expect_packet(b, OP_RC_READ_RESPONSE_ONLY, E + 2, 0);
	expect_silence(b);
	assert_int_equal(bed_cqe(b).byte_len, 0);
}

/* RESP-09: a packet that asks for it is acknowledged in the same turn, also in mid-message. */
static void
RESP_09_ackreq(void **state)
{
	struct bed *b = *state;
	struct wire_fields f = write_only(E, MR_VA, 1024);

	f.opcode = OP_RC_WRITE_FIRST;
	f.reth.dma_len = 2048;
	bed_send(b, &f);
	bed_turn(b);
	expect_ack(b, 0x1f, E, 0);
}

/*
 * RESP-10, RESP-12: eight requests of one burst share one ACK, the newest. RESP-11: none unasked.
 */
static void
RESP_10_coalescing(void **state)
{
	struct bed *b = *state;
	struct wire_fields f;

	for (uint32_t i = 0; i < 8; i++) {
		f = write_only(E + i, MR_VA + 64 * i, 64);
		bed_send(b, &f);
	}
	bed_turn(b);
	expect_ack(b, 0x1f, E + 7, 8);
	expect_silence(b);
	f = write_only(E + 8, MR_VA, 4);
	f.flags = 0;
	bed_send(b, &f);
	bed_turn(b);
	expect_silence(b);
	assert_int_equal(b->qp->resp.msn, 9);
}

/* Two QPs in one burst: an ACK for each, at its own MSN. */
static void
two_qps_one_burst(void **state)
{
	struct bed *b = *state;
	struct qp *other = bed_qp(b, 0x12, 0x23);
	struct wire_fields f;

	for (uint32_t i = 0; i < 3; i++) {
		f = write_only(E + i, MR_VA, 8);
		bed_send(b, &f);
		if (i < 2) {
			f.dest_qpn = 0x12;
			bed_send(b, &f);
		}
	}
	bed_turn(b);
	assert_int_equal(b->pkt[0].dest_qpn, PEER_QPN);
	expect_ack(b, 0x1f, E + 2, 3);
	assert_int_equal(b->pkt[1].dest_qpn, 0x23);
	expect_ack(b, 0x1f, E + 1, 2);
	expect_silence(b);
	assert_int_equal(qp_stat(other, STAT_rcvd_pkts), 2);
	assert_int_equal(qp_stat(b->qp, STAT_rcvd_pkts), 3);
	bed_qp_gone(b, other);
}

/* RESP-16, AE-05: RTR serves requests; the first one accepted is told of, once. */
static void
AE_05_comm_established(void **state)
{
	struct bed *b = *state;
	struct wire_fields f = send_only(E + 1, 8);
	struct mbox_msg m;

	bed_in_rtr(b);
	bed_send(b, &f); /* refused: not at ePSN */
	bed_turn(b);
	expect_ack(b, 0x60, E, 0);
	bed_no_up(b);
	for (uint32_t i = 0; i < 2; i++) {
		f = send_only(E + i, 8);
		bed_send(b, &f);
		bed_turn(b);
		expect_ack(b, 0x1f, E + i, i + 1);
	}
	m = bed_up(b, MBOX_EVENT);
	assert_int_equal(m.ev.event, 4);
	assert_int_equal(m.ev.qpn, QPN);
	bed_no_up(b);
}

/* AE-05: not in RTS. */
static void
AE_05_not_in_RTS(void **state)
{
	struct bed *b = *state;
	struct wire_fields f = send_only(E, 8);

	bed_send(b, &f);
	bed_turn(b);
	expect_ack(b, 0x1f, E, 1);
	bed_no_up(b);
}

/* A recv_feed QP always has a WQE; its completions are counted only. */
static void
recv_feed(void **state)
{
	struct bed *b = *state;
	struct qp *qp = bed_qp(b, 0x13, 0x24);

	qp->flags |= QPF_RECV_FEED;
	qp->feed_va = RQ_VA + 32768;
	qp->feed_size = 4096;
	qp->feed_buffers = 2;
	qp->feed_lkey = RQ_KEY;
	for (uint32_t i = 0; i < 5; i++) {
		struct wire_fields f = send_only(E + i, (uint16_t)(100 + i));

		f.dest_qpn = 0x13;
		bed_send(b, &f);
		bed_turn(b);
		expect_ack(b, 0x1f, E + i, i + 1);
		assert_memory_equal(b->rq_memory + 32768 + 4096 * (i % 2), f.payload, 100);
	}
	assert_int_equal(qp_stat(qp, STAT_rx_send_requests), 5);
	bed_no_cqe(b);
	bed_qp_gone(b, qp);
}

/* The template's IPv6 and VLAN forms carry ACKs with a good ICRC too (ICRC-05). */
static void
ICRC_05_ack_over_ipv6(void **state)
{
	struct bed *b = *state;
	struct wire_path path = bed_path();
	struct qp_attr attr = b->qp->attr;
	struct wire_fields f = write_only(E, MR_VA, 64);
	struct rte_mbuf *m;
	void *out = NULL;
	struct wire_port tester = { .has_ipv6 = true };
	struct wire_pkt p;

	path.ipv6 = true;
	memset(path.src_ip, 0, 16);
	path.src_ip[0] = 0xfd;
	path.src_ip[15] = 2;
	memset(path.dst_ip, 0, 16);
	path.dst_ip[0] = 0xfd;
	path.dst_ip[15] = 1;
	attr.path.ipv6 = true;
	attr.path.vlan = path.vlan = true;
	attr.path.vlan_tci = path.vlan_tci = 100;
	attr.path.flow_label = 0x12345;
	memcpy(attr.path.src_ip, path.dst_ip, 16);
	memcpy(attr.path.dst_ip, path.src_ip, 16);
	assert_int_equal(bed_modify(b, b->qp, &attr, QP_ATTR_AV), 0);

	for (uint32_t i = 0; i < 2; i++) { /* the second one uses the saved CRC state */
		f.psn = psn(E + i);
		m = bed_frame_on(&path, &f);
		bed_put(b, m);
		worker_poll(b->w, b->now);
		assert_int_equal(rte_ring_dequeue(bed_far_end(), &out), 0);
		m = out;
		memcpy(tester.mac, bed_path().smac, 6);
		memcpy(tester.ipv6, path.src_ip, 16);
		assert_int_equal(
			wire_parse(&tester, rte_pktmbuf_mtod(m, const uint8_t *), m->data_len, &p),
			WIRE_CLASS_ROCE);
		assert_int_equal(p.faults, 0);
		assert_true((p.flags & PKT_VLAN) != 0);
		assert_true(icrc_verify(b->conf.crc, &p));
		assert_int_equal(p.opcode, OP_RC_ACKNOWLEDGE);
		assert_int_equal(p.psn.v, E + i);
		rte_pktmbuf_free(m);
	}
}

/* The flight recorder has the request and its ACK. */
static void
traced_qp(void **state)
{
	struct bed *b = *state;
	struct wire_fields f = write_only(E, MR_VA, 64);
	struct trace_entry e[8];

	b->qp->flags |= QPF_TRACE;
	bed_send(b, &f);
	bed_turn(b);
	assert_int_equal(trace_read(worker_trace(b->w), QPN, e, 8), 2);
	assert_int_equal(e[0].kind, TRACE_rx);
	assert_int_equal(e[0].opcode, OP_RC_WRITE_ONLY);
	assert_int_equal(e[0].len, 64);
	assert_int_equal(e[1].kind, TRACE_ack);
	assert_int_equal(e[1].psn, E);
	assert_int_equal(e[1].time_ns, b->now);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(RESP_01_send_only),
		TEST(RESP_02_send_over_sges),
		TEST(RESP_05_write),
		TEST(RESP_03_write_immediate),
		TEST(RESP_04_send_invalidate),
		TEST(RESP_06_read),
		TEST(RESP_07_atomics),
		TEST(RESP_DUP_06_atomic_replay),
		TEST(RESP_08_zero_length),
		TEST(RESP_09_ackreq),
		TEST(RESP_10_coalescing),
		TEST(two_qps_one_burst),
		TEST(AE_05_comm_established),
		TEST(AE_05_not_in_RTS),
		TEST(recv_feed),
		TEST(ICRC_05_ack_over_ipv6),
		TEST(traced_qp),
	};

	return cmocka_run_group_tests(tests, bed_group_setup, NULL);
}
