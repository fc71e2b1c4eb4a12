/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Packets that leave before the responder: each is charged once, to the right fault, and has no
 * effect.
 */
#include <string.h>

#include <rte_mbuf_dyn.h>

#include "bed.h"

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

/** A change to a good SEND ONLY at ePSN. */
struct change {
	const char *name;
	uint32_t flags; /* of the QP */
	uint16_t off;
	uint8_t value;
	enum stats_counter counter;
	bool keep_icrc; /* the change is outside what the ICRC covers, or is to be wrong */
};

enum { ETH = 0, IP = 14, UDP = 34, BTH = 42 };

static const struct change changes[] = {
	{ "RX-SYN-00 destination MAC", 0, ETH + 5, 0x77, STAT_rx_syndrome_0, true },
	{ "RX-SYN-27 source address", 0, IP + 15, 99, STAT_rx_syndrome_27, false },
	{ "RX-SYN-28 source MAC", QPF_CHECK_SRC_MAC, ETH + 11, 0x77, STAT_rx_syndrome_28, true },
	{ "RX-SYN-05 DF required", QPF_REQUIRE_DF, IP + 6, 0x00, STAT_rx_syndrome_5, false },
	{ "RX-SYN-15 no such QP", 0, BTH + 7, 0x99, STAT_rx_syndrome_15, false },
	{ "RX-SYN-15 other generation (QP-20)", 0, BTH + 7, QPN + 64, STAT_rx_syndrome_15, false },
	{ "RX-SYN-13 version", 0, BTH + 1, 0x01, STAT_rx_syndrome_13, false },
	{ "RX-SYN-14 QP 0", 0, BTH + 7, 0, STAT_rx_syndrome_14, false },
	{ "RX-SYN-30 ICRC", 0, BTH + 12, 0xee, STAT_rx_syndrome_30, true },
	{ "RX-HDR-01 P_Key", 0, BTH + 2, 0x12, STAT_rx_pkey_violation, false },
	{ "RX-HDR-02 UC opcode", 0, BTH, 0x24, STAT_rx_qp_type_mismatch, false },
	{ "RX-HDR-02 UD opcode", 0, BTH, 0x64, STAT_rx_qp_type_mismatch, false },
	{ "RX-HDR-03 pad", 0, BTH + 1, 0x30, STAT_rx_truncated, false },
	{ "RX-HDR-06 UDP port", 0, UDP + 3, 0xb6, STAT_rx_not_roce, true },
};

static void
fix_ip_sum(uint8_t *ip)
{
	uint32_t sum = 0;

	ip[10] = ip[11] = 0;
	for (int i = 0; i < 20; i += 2)
		sum += be16_load(ip + i);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	be16_store(ip + 10, (uint16_t)~sum);
}

static struct rte_mbuf *
changed(const struct change *c)
{
	struct wire_fields f = send_only(E, c->counter == STAT_rx_truncated ? 0 : 8);
	struct rte_mbuf *m = bed_frame(&f);
	uint8_t *frame = rte_pktmbuf_mtod(m, uint8_t *);

	frame[c->off] = c->value;
	fix_ip_sum(frame + IP);
	if (!c->keep_icrc)
		bed_reseal(m);
	return m;
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
		expect_dropped(b, STAT_rx_syndrome_15, qp_state_name(states[i]));
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
		fix_ip_sum(frame + IP);
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
	struct rte_mbuf *m = bed_frame(&f), *other = bed_frame(&f);
	struct mbox_msg up;

	be16_store(rte_pktmbuf_mtod(m, uint8_t *) + 12, 0x0806);
	be16_store(rte_pktmbuf_mtod(other, uint8_t *) + 12, 0x88cc);
	bed_put(b, m);
	bed_put(b, other);
	bed_turn(b);
	up = bed_up(b, MBOX_PACKET);
	assert_ptr_equal(up.pkt.m, m);
	assert_int_equal(up.port, bed_port());
	assert_int_equal(up.pkt.time_ns, b->now);
	rte_pktmbuf_free(m);
	assert_int_equal(bed_stat(b, STAT_rx_control), 1);
	assert_int_equal(bed_stat(b, STAT_rx_not_roce), 1);
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

/* RX-ERR-01: a record for each refused packet: syndrome, header from Ethernet on. */
static void
RX_ERR_01_record(void **state)
{
	struct bed *b = *state;
	struct errbuf_record r[2];
	struct rte_mbuf *m = changed(&changes[9]); /* P_Key */
	uint8_t frame[128];
	uint16_t len = m->data_len;

	memcpy(frame, rte_pktmbuf_mtod(m, uint8_t *), len < 128 ? len : 128);
	bed_put(b, m);
	bed_put(b, changed(&changes[1])); /* source address */
	bed_turn(b);
	assert_int_equal(errbuf_take(worker_errbuf(b->w), r, 2), 2);
	assert_int_equal(r[0].charged, FAULT_PKEY);
	assert_true(r[0].faults == FAULT_BIT(FAULT_PKEY));
	assert_int_equal(r[0].qpn, QPN);
	assert_int_equal(r[0].psn, E);
	assert_int_equal(r[0].frame_len, len);
	assert_int_equal(r[0].header_len, len);
	assert_memory_equal(r[0].header, frame, len);
	assert_int_equal(r[0].time_ns, b->now);
	assert_int_equal((uint32_t)r[1].faults, 1u << 27);
}

/* RX-ERR-03: a full buffer loses records, counts them, and holds nothing up. RX-ERR-02: off. */
static void
RX_ERR_03_bounded(void **state)
{
	struct bed *b = *state;
	struct errbuf_record r;
	uint32_t n = 0;

	for (uint32_t i = 0; i < 100; i++) {
		bed_put(b, changed(&changes[9]));
		bed_turn(b);
	}
	assert_int_equal(bed_stat(b, STAT_rx_pkey_violation), 100);
	/* 32 fill half of the 64; of the other 68 one in 16 is kept. */
	assert_int_equal(bed_stat(b, STAT_error_buffer_lost), 64);
	while (errbuf_take(worker_errbuf(b->w), &r, 1) == 1)
		n++;
	assert_int_equal(n, 36);

	b->conf.errbuf_entries = 0;
	bed_worker_again(b);
	bed_put(b, changed(&changes[9]));
	bed_turn(b);
	assert_null(worker_errbuf(b->w));
	assert_int_equal(bed_stat(b, STAT_rx_pkey_violation), 1);
}

/** Changes that meet another one in RX_PREC_01; the IPv4 checksum is right where it says so. */
static const struct change second[] = {
	{ "RX-SYN-03 header length", 0, IP, 0x46, STAT_rx_syndrome_3, true },
	{ "RX-SYN-06 fragment", 0, IP + 7, 1, STAT_rx_syndrome_6, false },
	{ "RX-SYN-08 destination address", 0, IP + 19, 99, STAT_rx_syndrome_8, false },
	{ "RX-SYN-09 checksum", 0, IP + 10, 0xee, STAT_rx_syndrome_9, true },
};

static const struct change *
change_at(size_t i)
{
	return i < ARRAY_LEN(changes) ? &changes[i] : &second[i - ARRAY_LEN(changes)];
}

/** Three packets with both faults. @return the one counter of drops that moved. */
static enum stats_counter
charged_to(struct bed *b, const struct change *x, const struct change *y)
{
	enum stats_counter found = STAT_MAX;

	bed_worker_again(b);
	b->qp->flags |= x->flags | y->flags;
	for (uint32_t i = 0; i < 3; i++) {
		struct rte_mbuf *m = changed(x);
		uint8_t *frame = rte_pktmbuf_mtod(m, uint8_t *);

		frame[y->off] = y->value;
		if (y->off != IP + 10)
			fix_ip_sum(frame + IP);
		if (!x->keep_icrc && !y->keep_icrc)
			bed_reseal(m);
		bed_put(b, m);
	}
	bed_turn(b);
	b->qp->flags &= ~(x->flags | y->flags);
	for (uint32_t s = 0; s < STAT_MAX; s++) {
		if (stats_info[s].drop == 0 || bed_stat(b, s) == 0)
			continue;
		if (found != STAT_MAX || bed_stat(b, s) != 3)
			fail_msg("%s, %s: %s is %d", x->name, y->name, stats_info[s].name,
				(int)bed_stat(b, s));
		found = (enum stats_counter)s;
	}
	return found;
}

/* RX-PREC-01, RX-ERR-02: the charge of two faults is the same whether they are recorded or not. */
static void
RX_PREC_01_charge_without_records(void **state)
{
	struct bed *b = *state;
	const size_t n = ARRAY_LEN(changes) + ARRAY_LEN(second);
	const uint32_t entries = b->conf.errbuf_entries;

	for (size_t i = 0; i < ARRAY_LEN(changes); i++) {
		for (size_t k = i + 1; k < n; k++) {
			const struct change *x = &changes[i], *y = change_at(k);
			enum stats_counter on, off;

			if (x->off == y->off)
				continue;
			b->conf.errbuf_entries = entries;
			on = charged_to(b, x, y);
			b->conf.errbuf_entries = 0;
			off = charged_to(b, x, y);
			if (on == STAT_MAX || on != off)
				fail_msg("%s, %s: %d recorded, %d not", x->name, y->name, (int)on,
					(int)off);
		}
	}
	/* 27 (5) before 8 (8), 28 (4) before 9 (6), and 30 (2) before 0 (4). */
	assert_int_equal(charged_to(b, &changes[1], &second[2]), STAT_rx_syndrome_27);
	assert_int_equal(charged_to(b, &changes[2], &second[3]), STAT_rx_syndrome_28);
	assert_int_equal(charged_to(b, &changes[0], &changes[8]), STAT_rx_syndrome_30);
	/* 5 and 8 have the same number; 5 is the lower bit. A wrong version is 10, no QP is 11. */
	assert_int_equal(charged_to(b, &changes[3], &second[2]), STAT_rx_syndrome_5);
	assert_int_equal(charged_to(b, &changes[4], &changes[6]), STAT_rx_syndrome_13);
}

/* RX-ERR-02, QP-20: packets in a row with one fault, counted each at its QP where there is one. */
static void
RX_ERR_02_charge_by_qp(void **state)
{
	static const uint8_t to[] = { 1, 1, 0, 1, 0, 2, 2, 1, 3, 0, 0,
		1 }; /* 2, 3: there is none */
	struct bed *b = *state;
	struct qp *other = bed_qp(b, QPN + 1, 0x23);
	const uint32_t qpn[] = { QPN, QPN + 1, QPN | 0x800000, QPN + 2 };
	const uint32_t recorded[] = { 0, b->conf.errbuf_entries };

	for (size_t k = 0; k < ARRAY_LEN(recorded); k++) {
		b->conf.errbuf_entries = recorded[k];
		bed_worker_again(b);
		for (size_t i = 0; i < ARRAY_LEN(to); i++) {
			struct wire_fields f = write_only(E, MR_VA, 64);
			struct rte_mbuf *m;

			f.dest_qpn = qpn[to[i]];
			m = bed_frame(&f);
			rte_pktmbuf_mtod(m, uint8_t *)[BTH + 30] ^= 1;
			bed_put(b, m);
		}
		bed_turn(b);
		assert_int_equal(bed_stat(b, STAT_rx_syndrome_30), ARRAY_LEN(to));
		assert_int_equal(bed_stat(b, STAT_rx_icrc_encapsulated), ARRAY_LEN(to));
		assert_int_equal(qp_stat(b->qp, STAT_rx_syndrome_30), (k + 1) * 4);
		assert_int_equal(qp_stat(other, STAT_rx_syndrome_30), (k + 1) * 5);
		assert_int_equal(qp_stat(other, STAT_rx_icrc_encapsulated), (k + 1) * 5);
		expect_silence(b);
	}
	bed_qp_gone(b, other);
}

/*
 * RX-ERR-04: a fatal fault is recorded with its rule, and QPN and FATAL code go up before the rest.
 */
static void
RX_ERR_04_fatal_entry(void **state)
{
	struct bed *b = *state;
	struct wire_fields f = write_only(E, MR_VA, 64);
	struct mbox_msg m;

	f.reth.rkey = 0xbad;
	bed_send(b, &f);
	bed_turn(b);
	m = bed_up(b, MBOX_FATAL);
	assert_int_equal(m.ev.qpn, QPN);
	assert_int_equal(m.ev.fatal, 21);
	m = bed_up(b, MBOX_EVENT);
	assert_int_equal(m.ev.event, 3);
	bed_no_up(b);
}

/*
 * Accounting over a mixture: received = accepted + control + every kind of drop (bed_turn checks).
 */
static void
accounting_of_a_mixture(void **state)
{
	struct bed *b = *state;
	uint32_t sent = 0, x = 12345;

	for (uint32_t i = 0; i < 3000; i++) {
		struct wire_fields f = write_only(b->qp->resp.epsn.v, MR_VA, 64);
		struct rte_mbuf *m = bed_frame(&f);
		uint8_t *frame = rte_pktmbuf_mtod(m, uint8_t *);

		for (uint32_t k = 0; k < 2; k++) {
			x = x * 1664525 + 1013904223;
			if ((x >> 28) < 12)
				frame[(x >> 8) % m->data_len] ^= (uint8_t)(1u << (x >> 24 & 7));
		}
		if ((x >> 20 & 3) == 0)
			fix_ip_sum(frame + IP);
		if ((x >> 22 & 3) == 0 && frame[12] == 8 && frame[13] == 0)
			bed_reseal(m);
		if ((x >> 24 & 7) == 0)
			m->data_len = m->pkt_len = (x >> 8) % m->data_len;
		bed_put(b, m);
		sent++;
		if (i % 7 == 0) {
			struct mbox_msg up;

			bed_turn(b);
			while (mbox_recv_up(&b->mbox, &up, 1) == 1)
				if (up.type == MBOX_PACKET)
					rte_pktmbuf_free(up.pkt.m);
			if (atomic_load(&b->qp->state) == QPS_ERR) {
				atomic_store(&b->qp->state, QPS_RTS);
			}
		}
	}
	bed_turn(b);
	assert_int_equal(bed_stat(b, STAT_rx_packets), sent);
	assert_true(bed_stat(b, STAT_rcvd_pkts) > 100);
	assert_true(bed_stat(b, STAT_rx_syndrome_30) > 100);
	for (struct mbox_msg up; mbox_recv_up(&b->mbox, &up, 1) == 1;)
		if (up.type == MBOX_PACKET)
			rte_pktmbuf_free(up.pkt.m);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(refused_packets),
		TEST(RX_SYN_33_34_accepted_by_default),
		TEST(RX_SYN_02_other_ip_version),
		TEST(RX_SYN_31_fcs),
		TEST(RX_SYN_15_states),
		TEST(RX_HDR_05_responses),
		TEST(RX_PREC_01_pairs),
		TEST(RX_PREC_09_bad_icrc),
		TEST(not_roce),
		TEST(control_queue_full),
		TEST(chained_frame),
		TEST(RX_ERR_01_record),
		TEST(RX_ERR_03_bounded),
		TEST(RX_PREC_01_charge_without_records),
		TEST(RX_ERR_02_charge_by_qp),
		TEST(RX_ERR_04_fatal_entry),
		TEST(accounting_of_a_mixture),
	};

	return cmocka_run_group_tests(tests, bed_group_setup, NULL);
}
