/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Packets that leave before the responder: each is charged once, to the right fault, and has no
 * effect.
 */
#include <string.h>

#include <rte_mbuf_dyn.h>

#include "bed.h"
#include "spare.h"
#include "stage.h"
#include "spoil.h"

/** What a refused packet may have left behind: one count, and nothing else. */
static void
expect_dropped(struct bed *b, enum stats_counter s, const char *name)
{
	expect_silence(b);
	bed_no_cqe(b);
	bed_no_up(b);
	if (bed_stat(b, s) != 1)
		fail_msg("%s: %s is %d", name, stats_info[s].name, (int)bed_stat(b, s));
	assert_int_equal(bed_stat(b, STAT_rcvd_pkts), 0);
	assert_int_equal(b->qp->resp.epsn.v, E);
	assert_false(b->qp->resp.latched);
}

/* RX-SYN-*, RX-HDR-*: one packet, one counter, at every scope that applies; then the good one. */
static void
refused_packets(void **state)
{
	struct bed *b = *state;

	for (size_t i = 0; i < ARRAY_LEN(changes); i++) {
		const struct change *c = &changes[i];
		struct wire_fields f = send_only(E, 8);

		bed_worker_again(b);
		b->qp->flags |= c->flags;
		bed_put(b, changed(c));
		bed_turn(b);
		expect_dropped(b, c->counter, c->name);
		assert_int_equal(worker_port_stats(b->w, 0)->c[c->counter], 1);
		b->qp->flags &= ~c->flags;
		(void)f;
	}
	assert_int_equal(qp_stat(b->qp, STAT_rx_pkey_violation), 1);
	assert_int_equal(qp_stat(b->qp, STAT_rx_syndrome_15), 0);
}

/* RX-SYN-33, RX-SYN-34: neither DF nor the source MAC matters by default. */
static void
RX_SYN_33_34_accepted_by_default(void **state)
{
	struct bed *b = *state;
	static const struct change rows[] = {
		{ "no DF", 0, IP + 6, 0, STAT_rcvd_pkts, false },
		{ "source MAC", 0, ETH + 11, 0x77, STAT_rcvd_pkts, true },
	};

	for (uint32_t i = 0; i < 2; i++) {
		struct rte_mbuf *m = changed(&rows[i]);

		be32_store(rte_pktmbuf_mtod(m, uint8_t *) + BTH + 8, 0x80000000u | (E + i));
		bed_reseal(m);
		bed_put(b, m);
		bed_turn(b);
		expect_ack(b, 0x1f, E + i, i + 1);
	}
}

/* RX-SYN-02, RX-SYN-27 over IPv6: a QP of the other family takes nothing. */
static void
RX_SYN_02_other_ip_version(void **state)
{
	struct bed *b = *state;
	struct wire_path path = bed_path();
	struct wire_fields f = send_only(E, 8);

	path.ipv6 = true;
	memset(path.src_ip, 0, 16);
	memset(path.dst_ip, 0, 16);
	path.dst_ip[0] = 0xfd;
	path.dst_ip[15] = 1;
	bed_put(b, bed_frame_on(&path, &f));
	bed_turn(b);
	expect_dropped(b, STAT_rx_syndrome_2, "RX-SYN-02");
	assert_int_equal(bed_stat(b, STAT_rx_syndrome_27), 0);
}

/* WIRE-01: a QP whose path has a VLAN takes what comes with it, at any priority, and no more. */
static void
WIRE_01_vlan_of_the_path(void **state)
{
	static const struct {
		bool tagged;
		uint16_t tci;
		bool good;
	} rows[] = { { true, 100, true }, { true, 101, false }, { false, 0, false },
		{ true, 0, false }, { true, 5 << 13, false }, { true, 5 << 13 | 100, true },
		{ true, 0xfff, false }, { true, 100, true } };
	struct bed *b = *state;

	for (uint32_t records = 0; records < 2; records++) {
		struct qp_attr attr = b->qp->attr;
		uint32_t taken = 0, refused = 0;

		b->conf.errbuf_entries = records != 0 ? b->conf.errbuf_entries : 0;
		bed_worker_again(b);
		attr.path.vlan = true;
		attr.path.vlan_tci = 2 << 13 | 100;
		assert_int_equal(bed_modify(b, b->qp, &attr, QP_ATTR_AV), 0);
		for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
			struct wire_path path = bed_path();
			struct wire_fields f = write_only(b->qp->resp.epsn.v, MR_VA, 8);
			uint32_t before = b->qp->resp.epsn.v;

			path.vlan = rows[i].tagged;
			path.vlan_tci = rows[i].tci;
			bed_put(b, bed_frame_on(&path, &f));
			bed_turn(b);
			taken += rows[i].good;
			refused += !rows[i].good;
			assert_int_equal(b->out_n, rows[i].good);
			assert_int_equal(b->qp->resp.epsn.v, before + rows[i].good);
			assert_int_equal(bed_stat(b, STAT_rx_vlan_mismatch), refused);
			assert_int_equal(bed_stat(b, STAT_rx_write_requests), taken);
		}
		assert_int_equal(bed_teardown(state), 0);
		assert_int_equal(bed_setup(state), 0);
		b = *state;
	}
}

/* RX-SYN-31: whoever knows that the FCS was wrong marks the mbuf. It wins over everything. */
static void
RX_SYN_31_fcs(void **state)
{
	struct bed *b = *state;
	struct change c = { "ICRC", 0, BTH + 12, 0xee, STAT_rx_syndrome_30, true };
	struct rte_mbuf *m = changed(&c);
	int bit = rte_mbuf_dynflag_lookup(PIPELINE_FCS_FLAG, NULL);

	assert_true(bit >= 0);
	m->ol_flags |= UINT64_C(1) << bit;
	bed_put(b, m);
	bed_turn(b);
	expect_dropped(b, STAT_rx_syndrome_31, "RX-SYN-31");
	assert_int_equal(bed_stat(b, STAT_rx_syndrome_30), 0);
}

/*
 * RX-SYN-15, RX-HDR-04, QP-06, QP-14: states that do not receive; the same PSN is good afterwards.
 */
static void
RX_SYN_15_states(void **state)
{
	struct bed *b = *state;
	static const uint8_t states[] = { QPS_RESET, QPS_INIT, QPS_ERR };
	struct wire_fields f = send_only(E, 8);

	for (size_t i = 0; i < ARRAY_LEN(states); i++) {
		bed_worker_again(b);
		atomic_store(&b->qp->state, states[i]);
		bed_send(b, &f);
		bed_turn(b);
		expect_dropped(b, STAT_rx_syndrome_15, verbs_qp_state_name(states[i]));
		assert_int_equal(qp_stat(b->qp, STAT_rx_syndrome_15), i + 1);
	}
	atomic_store(&b->qp->state, QPS_RTS);
	bed_send(b, &f);
	bed_turn(b);
	expect_ack(b, 0x1f, E, 1);
}

/* RX-HDR-05: an ACK for a QP in RTR is dropped; in RTS nothing waits for it. */
static void
RX_HDR_05_responses(void **state)
{
	struct bed *b = *state;
	struct wire_fields f = { .opcode = OP_RC_ACKNOWLEDGE, .psn = psn(5), .aeth = { 0x1f, 1 } };

	atomic_store(&b->qp->state, QPS_RTR);
	bed_send(b, &f);
	bed_turn(b);
	expect_dropped(b, STAT_rx_response_state, "RX-HDR-05");
	atomic_store(&b->qp->state, QPS_RTS);
	bed_send(b, &f);
	bed_turn(b);
	expect_silence(b);
	assert_int_equal(bed_stat(b, STAT_rx_responses_unmatched), 1);
	assert_int_equal(bed_stat(b, STAT_rcvd_pkts), 1);
}

/* RX-PREC-01: two faults, the one of the smaller precedence number counts, once. */
static void
RX_PREC_01_pairs(void **state)
{
	struct bed *b = *state;
	static const struct {
		uint16_t off1, off2;
		uint8_t value1, value2;
		bool bad_icrc;
		enum stats_counter winner, loser;
	} rows[] = {
		{ ETH + 5, ETH + 5, 0x77, 0x77, true, STAT_rx_syndrome_30, STAT_rx_syndrome_0 },
		{ ETH + 5, IP + 15, 0x77, 99, false, STAT_rx_syndrome_0, STAT_rx_syndrome_27 },
		{ IP + 15, IP + 7, 99, 1, false, STAT_rx_syndrome_27, STAT_rx_syndrome_6 },
		{ IP + 7, BTH + 1, 1, 1, false, STAT_rx_syndrome_6, STAT_rx_syndrome_13 },
		{ BTH + 1, BTH + 7, 1, 0x99, false, STAT_rx_syndrome_13, STAT_rx_syndrome_15 },
		{ BTH + 1, BTH + 2, 1, 0x12, false, STAT_rx_syndrome_13, STAT_rx_pkey_violation },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct wire_fields f = send_only(E, 8);
		struct rte_mbuf *m = bed_frame(&f);
		uint8_t *frame = rte_pktmbuf_mtod(m, uint8_t *);

		bed_worker_again(b);
		frame[rows[i].off1] = rows[i].value1;
		frame[rows[i].off2] = rows[i].value2;
		ipv4_fix_sum(frame + IP);
		bed_reseal(m);
		if (rows[i].bad_icrc)
			frame[m->data_len - 1] ^= 1;
		bed_put(b, m);
		bed_turn(b);
		expect_dropped(b, rows[i].winner, "RX-PREC-01");
		assert_int_equal(bed_stat(b, rows[i].loser), 0);
	}
}

/* RX-PREC-09, ICRC-04: whatever a packet would provoke, a wrong ICRC leaves only a counter. */
static void
RX_PREC_09_bad_icrc(void **state)
{
	struct bed *b = *state;
	struct wire_fields rows[] = { send_only(E, 8), send_only(E + 1, 8), write_only(E, MR_VA, 8),
		write_only(E, 1, 8), read_request(E, MR_VA, 64), fetch_add(E, MR_VA, 1),
		send_only(E, 8), send_only(E, 1024), { .opcode = OP_CNP, .flags = PKT_BECN },
		{ .opcode = OP_RC_ACKNOWLEDGE, .aeth = { 0x62, 0 } } };

	rows[6].opcode = 0x1f;
	rows[7].opcode = OP_RC_SEND_MIDDLE;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct rte_mbuf *m = bed_frame(&rows[i]);

		bed_worker_again(b);
		rte_pktmbuf_mtod(m, uint8_t *)[m->data_len - 2] ^= 0x10;
		bed_put(b, m);
		bed_turns(b);
		expect_dropped(b, STAT_rx_syndrome_30, "RX-PREC-09");
		assert_int_equal(bed_stat(b, STAT_rx_icrc_encapsulated), 1);
		assert_int_equal(b->qp->answers.count, 0);
		assert_int_equal(b->memory[0], 0);
		assert_int_equal(b->qp->resp.open, OPEN_NONE);
		assert_int_equal(ring_consume_count(&b->qp->rq), 4);
	}
}

/* Frames for the control lcore leave with their mbuf; others are counted and gone. */
static void
not_roce(void **state)
{
	struct bed *b = *state;
	struct wire_fields f = send_only(E, 8);
	struct rte_mbuf *m = bed_frame(&f), *other = bed_frame(&f), *udp = bed_frame(&f);
	struct mbox_msg up;

	be16_store(rte_pktmbuf_mtod(m, uint8_t *) + 12, 0x0806);
	be16_store(rte_pktmbuf_mtod(other, uint8_t *) + 12, 0x88cc);
	be16_store(rte_pktmbuf_mtod(udp, uint8_t *) + 36, 4790); /* its destination port */
	bed_put(b, m);
	bed_put(b, other);
	bed_put(b, udp);
	bed_turn(b);
	up = bed_up(b, MBOX_PACKET);
	assert_ptr_equal(up.pkt.m, m);
	assert_int_equal(up.pkt.port, bed_port());
	assert_int_equal(up.pkt.time_ns, b->now);
	rte_pktmbuf_free(m);
	assert_int_equal(bed_stat(b, STAT_rx_control), 1);
	assert_int_equal(bed_stat(b, STAT_rx_not_roce), 2);
}

/* A burst of several ports, as peers' turns make them: what is no RoCE is counted at its own. */
static void
not_roce_of_two_ports(void **state)
{
	static const uint8_t port[] = { 0, 1, 1, 0, 1 };
	struct bed *b = *state;
	struct wire_fields f = send_only(E, 8);
	struct burst *burst = &b->w->burst;

	for (uint32_t i = 0; i < ARRAY_LEN(port); i++) {
		burst->m[i] = bed_frame(&f);
		burst->port[i] = port[i];
		be16_store(rte_pktmbuf_mtod(burst->m[i], uint8_t *) + 36, 4790);
	}
	burst->n = ARRAY_LEN(port);
	stage_parse(b->w, burst);
	assert_int_equal(burst->n, 0);
	pipeline_mbufs_free_spare(b->w);
	assert_int_equal(b->w->stats.c[STAT_rx_not_roce], 5);
	assert_int_equal(b->w->port_stats[0].c[STAT_rx_not_roce], 2);
	assert_int_equal(b->w->port_stats[1].c[STAT_rx_not_roce], 3);
}

/*
 * RX-SYN-00: frames that another worker hands over may be of several ports. Each is for the address
 * of its own, whatever the frames before it were for.
 */
static void
RX_SYN_00_each_by_its_own_port(void **state)
{
	enum { ALL = 6, TO_OTHER = 3 };
	struct bed *b = *state;
	struct wire_fields f = write_only(E, MR_VA, 64);
	struct burst *burst = &b->w->burst;
	struct wire_port *other = &b->w->conf.ports[1].addr;
	const struct wire_port was = *other;

	*other = b->w->conf.ports[0].addr;
	other->mac[5] ^= 1;
	wire_front_init(&b->w->front[1], other);
	for (uint32_t i = 0; i < ALL; i++) {
		burst->m[i] = bed_frame(&f);
		burst->port[i] = i & 1;
	}
	rte_pktmbuf_mtod(burst->m[TO_OTHER], uint8_t *)[5] ^= 1;
	burst->n = ALL;
	stage_parse(b->w, burst);
	assert_int_equal(burst->n, ALL);
	for (uint32_t i = 0; i < ALL; i++) {
		const bool is_wrong = (i & 1) != 0 && i != TO_OTHER;

		assert_true(burst->pkt[i].faults == (is_wrong ? FAULT_BIT(FAULT_DST_MAC) : 0));
		rte_pktmbuf_free(burst->m[i]);
	}
	*other = was;
	wire_front_init(&b->w->front[1], other);
}

/* AEQ-14: a control lcore that does not look loses frames, and they are counted. */
static void
control_queue_full(void **state)
{
	struct bed *b = *state;
	struct wire_fields f = send_only(E, 8);
	struct mbox_msg up;
	uint32_t n = 0;

	for (uint32_t i = 0; i < 70; i++) {
		struct rte_mbuf *m = bed_frame(&f);

		be16_store(rte_pktmbuf_mtod(m, uint8_t *) + 12, 0x0806);
		rte_pktmbuf_mtod(m, uint8_t *)[11] += i % 2; /* of two sources */
		bed_put(b, m);
	}
	for (int i = 0; i < 3; i++)
		bed_turn(b);
	assert_int_equal(bed_stat(b, STAT_rx_control), 64);
	assert_int_equal(bed_stat(b, STAT_rx_control_lost), 6);
	while (mbox_recv_up(&b->mbox, &up, 1) == 1) {
		rte_pktmbuf_free(up.pkt.m);
		n++;
	}
	assert_int_equal(n, 64);
}

/** Frames for the control lcore, of one source, which it takes. @return how many it got. */
static uint32_t
control_frames(struct bed *b, uint8_t source, uint32_t n)
{
	struct wire_fields f = send_only(E, 8);
	struct mbox_msg up;
	uint32_t got = 0;

	for (uint32_t i = 0; i < n; i++) {
		struct rte_mbuf *m = bed_frame(&f);

		be16_store(rte_pktmbuf_mtod(m, uint8_t *) + 12, 0x0806);
		rte_pktmbuf_mtod(m, uint8_t *)[11] = source;
		bed_put(b, m);
		bed_turn(b);
		for (; mbox_recv_up(&b->mbox, &up, 1) == 1; got++)
			rte_pktmbuf_free(up.pkt.m);
	}
	return got;
}

/* One source does not keep the control lcore from all others. */
static void
control_source_limited(void **state)
{
	struct bed *b = *state;

	assert_int_equal(control_frames(b, 7, 100), 64);
	assert_int_equal(bed_stat(b, STAT_rx_control_limited), 36);
	assert_int_equal(control_frames(b, 8, 10), 10);
	b->now += TIME_NS_PER_MS - 1;
	assert_int_equal(control_frames(b, 7, 1), 0);
	b->now += 1;
	assert_int_equal(control_frames(b, 7, 1), 1);
	assert_int_equal(bed_stat(b, STAT_rx_control_limited), 37);
}

/* A chained frame is made one; the payload arrives (mbuf segments). */
static void
chained_frame(void **state)
{
	struct bed *b = *state;
	struct wire_fields f = write_only(E, MR_VA, 200);

	for (uint32_t cut = 10; cut <= 200; cut += 95) {
		struct rte_mbuf *head = bed_frame(&f), *tail = bed_frame(&f);
		uint32_t len = head->data_len, psn_off = BTH + 8;

		be32_store(rte_pktmbuf_mtod(head, uint8_t *) + psn_off,
			0x80000000u | b->qp->resp.epsn.v);
		bed_reseal(head);
		memcpy(rte_pktmbuf_mtod(tail, uint8_t *), rte_pktmbuf_mtod(head, uint8_t *) + cut,
			len - cut);
		tail->data_len = (uint16_t)(len - cut);
		head->data_len = (uint16_t)cut;
		head->next = tail;
		head->nb_segs = 2;
		bed_put(b, head);
		bed_turn(b);
		assert_int_equal(b->out_n, 1);
	}
	assert_int_equal(bed_stat(b, STAT_rx_write_requests), 3);
	assert_memory_equal(b->memory, f.payload, 200);
}

/* A driver that counts more bytes than it hands over, as net_pcap does above 64 KiB; or fewer. */
static void
chained_frame_of_another_length(void **state)
{
	static const int32_t off[] = { 1, -1, 66000, INT32_MAX / 2 };
	struct bed *b = *state;
	struct wire_fields f = write_only(E, MR_VA, 200);

	for (uint32_t i = 0; i < ARRAY_LEN(off); i++) {
		struct rte_mbuf *head = bed_frame(&f), *tail = bed_frame(&f);

		head->next = tail;
		head->nb_segs = 2;
		bed_put(b, head);
		head->pkt_len = (uint32_t)(head->data_len + tail->data_len + off[i]);
		bed_turn(b);
		expect_silence(b);
	}
	assert_int_equal(bed_stat(b, STAT_rx_segments), ARRAY_LEN(off));
	assert_int_equal(b->qp->resp.epsn.v, E);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(refused_packets),
		TEST(RX_SYN_33_34_accepted_by_default),
		TEST(RX_SYN_02_other_ip_version),
		TEST(WIRE_01_vlan_of_the_path),
		TEST(RX_SYN_31_fcs),
		TEST(RX_SYN_15_states),
		TEST(RX_HDR_05_responses),
		TEST(RX_PREC_01_pairs),
		TEST(RX_PREC_09_bad_icrc),
		TEST(not_roce),
		TEST(not_roce_of_two_ports),
		TEST(RX_SYN_00_each_by_its_own_port),
		TEST(control_queue_full),
		TEST(control_source_limited),
		TEST(chained_frame),
		TEST(chained_frame_of_another_length),
	};

	return cmocka_run_group_tests(tests, bed_group_setup, NULL);
}
