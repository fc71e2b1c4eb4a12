/* SPDX-License-Identifier: BSD-3-Clause */
/* Turn the loop, and see what came of it: frames, completions, messages, counters. */
#include "bed.h"

#include <string.h>

#include "crc_isal.h"

uint64_t
bed_stat(const struct bed *b, enum stats_counter s)
{
	return worker_stats(b->w)->c[s];
}

/** Every packet received is explained by exactly one counter. */
static void
check_accounts(const struct stats_block *s, const char *who)
{
	uint64_t out = s->c[STAT_rcvd_pkts] + s->c[STAT_rx_control] + s->c[STAT_rx_handoff];

	for (uint32_t i = 0; i < STAT_MAX; i++)
		if (stats_info[i].drop != 0)
			out += s->c[i];
	if (s->c[STAT_rx_packets] + s->c[STAT_rx_handoff_in] != out)
		fail_msg("%s: received and explained packets differ", who);
}

void
bed_forget_output(struct bed *b)
{
	for (uint32_t i = 0; i < b->out_n; i++)
		rte_pktmbuf_free(b->out[i]);
	b->out_n = 0;
	b->out_at = 0;
}

void
bed_collect(struct bed *b)
{
	const struct wire_path path = bed_path();
	struct wire_port tester = { .has_ipv4 = true };
	void *m;

	memcpy(tester.mac, path.smac, 6);
	memcpy(tester.ipv4, path.src_ip, 4);
	while (b->out_n < FRAMES && rte_ring_dequeue(bed_far_end(), &m) == 0) {
		struct wire_pkt *p = &b->pkt[b->out_n];

		b->out[b->out_n++] = m;
		assert_int_equal(
			wire_parse(&tester, rte_pktmbuf_mtod(b->out[b->out_n - 1], const uint8_t *),
				b->out[b->out_n - 1]->data_len, p),
			WIRE_CLASS_ROCE);
		if (p->dest_qpn == PEER_QPN && (p->flags & PKT_IPV6) == 0)
			assert_true(p->faults == 0);
		/* ICRC-05: on every packet that leaves. */
		assert_int_not_equal(p->icrc_off, 0);
		assert_true(icrc_verify(crc_isal(), p));
	}
}

void
bed_turn(struct bed *b)
{
	bed_forget_output(b);
	worker_poll(b->w, b->now);
	check_accounts(worker_stats(b->w), "worker");
	check_accounts(worker_port_stats(b->w, 0), "port");
	bed_collect(b);
}

void
bed_turns(struct bed *b)
{
	bed_forget_output(b);
	for (int i = 0; i < 100 && b->out_n < FRAMES; i++) {
		uint32_t before = b->out_n;

		worker_poll(b->w, b->now);
		bed_collect(b);
		if (b->out_n == before && i > 1)
			break;
	}
	check_accounts(worker_stats(b->w), "worker");
}

static const struct wire_pkt *
next(struct bed *b, int line)
{
	if (b->out_at == b->out_n)
		fail_msg("line %d: nothing was sent", line);
	return &b->pkt[b->out_at++];
}

void
bed_expect_ack(struct bed *b, uint8_t syndrome, uint32_t p, uint32_t msn, int line)
{
	const struct wire_pkt *k = next(b, line);

	if (k->opcode != OP_RC_ACKNOWLEDGE || k->psn.v != p || k->payload_len != 0 ||
		wire_aeth(k).syndrome != syndrome || wire_aeth(k).msn != msn)
		fail_msg("line %d: opcode 0x%02x PSN 0x%x syndrome 0x%02x MSN %u", line, k->opcode,
			k->psn.v, wire_aeth(k).syndrome, wire_aeth(k).msn);
}

const struct wire_pkt *
bed_expect_packet(struct bed *b, uint8_t opcode, uint32_t p, uint32_t len, int line)
{
	const struct wire_pkt *k = next(b, line);

	if (k->opcode != opcode || k->psn.v != p || k->payload_len != len)
		fail_msg("line %d: opcode 0x%02x PSN 0x%x length %u", line, k->opcode, k->psn.v,
			k->payload_len);
	return k;
}

void
bed_expect_silence(struct bed *b, int line)
{
	if (b->out_at != b->out_n)
		fail_msg("line %d: opcode 0x%02x PSN 0x%x was sent", line, b->pkt[b->out_at].opcode,
			b->pkt[b->out_at].psn.v);
}

struct ring_cqe
bed_cqe(struct bed *b)
{
	struct ring_cqe c;

	assert_int_equal(ring_cq_poll(&b->cq.ring, &c, 1), 1);
	return c;
}

void
bed_no_cqe(struct bed *b)
{
	struct ring_cqe c;

	assert_int_equal(ring_cq_poll(&b->cq.ring, &c, 1), 0);
}

struct mbox_msg
bed_up(struct bed *b, enum mbox_type type)
{
	static const uint64_t stopped[] = { QPS_ERR, QPS_SQE };
	struct ring_aeq_event e;
	struct mbox_msg m = { .type = (uint8_t)type };

	if (type != MBOX_EVENT) {
		assert_int_equal(mbox_recv_up(&b->mbox, &m, 1), 1);
		assert_int_equal(m.type, type);
		if (type == MBOX_FATAL) /* QP-16: the QP stands still before anybody hears of it */
			assert_in_set(m.ev.state, stopped, ARRAY_LEN(stopped));
		return m;
	}
	assert_true(mbox_next_event(&b->mbox, &e));
	mbox_events_done(&b->mbox);
	m.ev.source = e.source == AEQ_FROM_RQ   ? SOURCE_RQ
		      : e.source == AEQ_FROM_SQ ? SOURCE_SQ
		      : e.source == AEQ_FROM_CQ ? SOURCE_CQ
						: SOURCE_READ_RESPONSE;
	m.ev.time_ns = e.time_ns;
	m.ev.qpn = e.id;
	m.ev.psn = e.psn;
	m.ev.rule = e.rule;
	m.ev.code = e.code;
	m.ev.event = e.event;
	m.ev.fatal = e.fatal;
	m.ev.opcode = e.opcode;
	m.ev.state = e.state;
	m.ev.syndrome = e.syndrome;
	m.ev.fault = e.fault;
	m.ev.object = (void *)(uintptr_t)e.context;
	return m;
}

void
bed_no_up(struct bed *b)
{
	struct ring_aeq_event e;
	struct mbox_msg m;

	assert_int_equal(mbox_recv_up(&b->mbox, &m, 1), 0);
	assert_false(mbox_next_event(&b->mbox, &e));
}
