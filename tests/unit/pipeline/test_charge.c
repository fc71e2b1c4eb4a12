/* SPDX-License-Identifier: BSD-3-Clause */
/* Packets that are refused: which fault is charged, where it is counted, and what is recorded. */
#include <string.h>

#include "bed.h"
#include "mad.h"
#include "spoil.h"

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
	assert_int_equal(trace_errbuf_take(worker_errbuf(b->w), r, 2), 2);
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
	while (trace_errbuf_take(worker_errbuf(b->w), &r, 1) == 1)
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
			ipv4_fix_sum(frame + IP);
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

/* CM-37: each datagram to QP 1 is looked at, also behind one that was dropped for its Q_Key. */
static void
CM_37_management_among_dropped(void **state)
{
	static const bool good[] = { false, false, true, false, true, true, false };
	static const uint8_t mad[256];
	struct bed *b = *state;

	b->conf.errbuf_entries = 0; /* so that dropped ones are only counted */
	bed_worker_again(b);
	for (size_t i = 0; i < ARRAY_LEN(good); i++) {
		struct wire_fields f = { .opcode = OP_UD_SEND_ONLY,
			.pkey = 0xffff,
			.dest_qpn = MAD_QPN,
			.deth = { .qkey = good[i] ? MAD_QKEY : 1, .src_qpn = 1 },
			.payload = mad,
			.payload_len = sizeof(mad) };

		bed_send(b, &f);
	}
	bed_turn(b);
	for (size_t i = 0; i < 3; i++)
		rte_pktmbuf_free(bed_up(b, MBOX_PACKET).pkt.m);
	bed_no_up(b);
	assert_int_equal(bed_stat(b, STAT_rx_control), 3);
	assert_int_equal(bed_stat(b, STAT_rx_qkey_violation), 4);
	expect_silence(b);
}

/*
 * RX-ERR-04: a fatal fault is recorded with its rule, and QPN and FATAL code go up before the rest.
 */
static void
RX_ERR_04_fatal_entry(void **state)
{
	struct bed *b = *state;
	struct wire_fields f = write_only(E, MR_VA, 64);
	struct errbuf_record r;
	struct mbox_msg m;

	/* Only fatal faults make entries: not what is dropped, refused for now, or repeated. */
	for (size_t i = 0; i < ARRAY_LEN(changes); i++) {
		if (changes[i].flags == 0)
			bed_put(b, changed(&changes[i]));
	}
	f.psn = psn(E + 1);
	bed_send(b, &f); /* NAK, sequence */
	f.psn = psn(E - 1);
	bed_send(b, &f); /* duplicate */
	bed_turn(b);
	while (mbox_recv_up(&b->mbox, &m, 1) == 1) {
		assert_int_equal(m.type, MBOX_PACKET); /* of another protocol */
		rte_pktmbuf_free(m.pkt.m);
	}
	bed_no_up(b);
	bed_forget_output(b);
	while (trace_errbuf_take(worker_errbuf(b->w), &r, 1) == 1)
		assert_int_not_equal(r.impact, ERRBUF_FATAL);

	f.psn = psn(E);
	f.reth.rkey = 0xbad;
	bed_send(b, &f);
	bed_turn(b);
	m = bed_up(b, MBOX_FATAL);
	assert_int_equal(m.ev.qpn, QPN);
	assert_int_equal(m.ev.fatal, 21);
	assert_int_equal(m.ev.psn, E);
	assert_string_equal(responder_rule_id((enum responder_rule)m.ev.rule), "RESP-NAK-RAE-01");
	m = bed_up(b, MBOX_EVENT);
	assert_int_equal(m.ev.event, 3);
	assert_int_equal(m.ev.fatal, 21);
	bed_no_up(b);
}

/* RX-ERR-04: the entry is there when the completion is: of a SEND that does not fit. */
static void
RX_ERR_04_entry_before_the_completion(void **state)
{
	struct bed *b = *state;
	struct wire_fields f = send_only(E, 8);
	struct mbox_msg m;

	f.opcode = OP_RC_SEND_FIRST;
	f.payload_len = PMTU;
	bed_send(b, &f);
	f.opcode = OP_RC_SEND_LAST;
	f.psn = psn(E + 1);
	f.payload_len = 0;
	bed_send(b, &f);
	bed_turn(b);
	m = bed_up(b, MBOX_FATAL);
	assert_int_equal(m.ev.qpn, QPN);
	assert_int_not_equal(m.ev.fatal, 0);
	assert_int_equal(m.ev.psn, E + 1);
	bed_no_up(b);
	assert_int_equal(bed_cqe(b).vendor_err, m.ev.fatal);
}

/*
 * RX-FATAL-22: a READ or WRITE of more than 2^31 bytes is code 22 with a good R_Key. Where R_Key,
 * range or access (RX-PREC-03, step 8) would fail at its first byte already, it is 23. The NAK is
 * that of the length, which comes first.
 */
static void
RX_FATAL_22_and_a_bad_key(void **state)
{
	static const struct {
		uint64_t va;
		uint32_t rkey;
		uint8_t fatal;
	} rows[] = {
		{ MR_VA, MR_KEY, 22 }, { MR_VA + MR_LEN - 1, MR_KEY, 22 }, { MR_VA, 0xbad, 23 },
		{ MR_VA + MR_LEN, MR_KEY, 23 }, { MR_VA - 1, MR_KEY, 23 },
		{ RQ_VA, RQ_KEY, 23 }, /* local access only */
	};
	struct bed *b = *state;

	for (size_t i = 0; i < 2 * ARRAY_LEN(rows); i++) {
		const uint64_t va = rows[i / 2].va;
		struct wire_fields f = write_only(E, va, PMTU);
		struct mbox_msg m;

		print_message("# %s 0x%x key 0x%x\n", i % 2 != 0 ? "WRITE" : "READ",
			(unsigned int)va, rows[i / 2].rkey);
		if (i % 2 != 0)
			f.opcode = OP_RC_WRITE_FIRST;
		else
			f = read_request(E, va, 0);
		f.reth = (struct wire_reth){ va, rows[i / 2].rkey, 0x80000001 };
		bed_send(b, &f);
		bed_turn(b);
		expect_ack(b, 0x61, E, 0);
		expect_silence(b);
		m = bed_up(b, MBOX_FATAL);
		assert_int_equal(m.ev.qpn, QPN);
		assert_int_equal(m.ev.fatal, rows[i / 2].fatal);
		m = bed_up(b, MBOX_EVENT);
		assert_int_equal(m.ev.event, 2); /* EVENT_QP_REQ_ERR */
		bed_no_up(b);
		assert_int_equal(bed_teardown(state), 0);
		assert_int_equal(bed_setup(state), 0);
		b = *state;
	}
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
			ipv4_fix_sum(frame + IP);
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
		TEST(RX_ERR_01_record),
		TEST(RX_ERR_03_bounded),
		TEST(RX_PREC_01_charge_without_records),
		TEST(RX_ERR_02_charge_by_qp),
		TEST(CM_37_management_among_dropped),
		TEST(RX_ERR_04_fatal_entry),
		TEST(RX_ERR_04_entry_before_the_completion),
		TEST(RX_FATAL_22_and_a_bad_key),
		TEST(accounting_of_a_mixture),
	};

	return cmocka_run_group_tests(tests, bed_group_setup, NULL);
}
