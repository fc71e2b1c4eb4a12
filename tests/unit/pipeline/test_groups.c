/* SPDX-License-Identifier: BSD-3-Clause */
/* Datagrams to a multicast group, between packets of other queue pairs. */
#include <string.h>

#include "bed.h"
#include "move.h"
#include "qp_mcast.h"
#include "worker.h"

enum { MEMBER_QPN = 0x40, SRQ_ENTRIES = 8, LONG = PMTU, SHORT = 8 };

/** A member that takes its receives from a shared queue. */
struct member {
	struct qp_mcast_table *table;
	struct qp_mcast_group group;
	struct qp *qp;
	struct qp_srq srq;
	struct ring producer;
};

static void
join(struct bed *b, struct member *m)
{
	const struct qp_alloc_params params = { .type = QPT_UD,
		.max_recv_wr = 1,
		.max_recv_sge = 2,
		.max_send_wr = 1,
		.max_send_sge = 1 };
	const uint32_t stride = ring_recv_stride(2);

	*m = (struct member){ .table = qp_mcast_table_create(),
		.group = { .addr = { [10] = 0xff, 0xff, 239, 1, 2, 3 }, .port = bed_port() },
		.srq = { .id = 5, .pd = PD, .max_sge = 2 } };
	assert_non_null(m->table);
	b->conf.mcasts = m->table;
	bed_worker_again(b);
	assert_int_equal(mem_area_create(&m->srq.area, ring_size(SRQ_ENTRIES, stride), -1, 0), 0);
	ring_srq_attach(&m->srq.ring, m->srq.area.base, SRQ_ENTRIES, stride);
	ring_srq_producer(&m->srq.ring, &m->producer);
	m->qp = bed_qp_with(b, MEMBER_QPN, PEER_QPN, &params);
	m->qp->srq = &m->srq;
	m->qp->flags |= QPF_SRQ;
	assert_int_equal(qp_mcast_add(m->table, &m->group, MEMBER_QPN), 0);
}

static void
leave(struct bed *b, struct member *m)
{
	assert_int_equal(qp_mcast_remove(m->table, &m->group, MEMBER_QPN), 0);
	bed_qp_gone(b, m->qp);
	mem_area_destroy(&m->srq.area);
	b->conf.mcasts = NULL;
	bed_worker_again(b);
	qp_mcast_table_destroy(m->table);
}

static void
post(struct member *m, uint64_t wr_id)
{
	struct ring_recv_wqe *w = ring_produce_slot(&m->producer, SRQ_ENTRIES);

	assert_non_null(w);
	w->wr_id = wr_id;
	w->num_sge = 1;
	w->sge[0] = (struct ring_sge){ RQ_VA, 256, RQ_KEY };
	ring_produce_commit(&m->producer);
}

static struct rte_mbuf *
datagram_of(const struct member *m)
{
	static const uint8_t mac[6] = { 0x01, 0x00, 0x5e, 0x01, 0x02, 0x03 }, bytes[SHORT] = { 7 };
	const struct wire_fields f = { .opcode = OP_UD_SEND_ONLY,
		.dest_qpn = QP_MCAST_QPN,
		.deth = { .src_qpn = PEER_QPN },
		.payload = bytes,
		.payload_len = SHORT };
	struct wire_path path = bed_path();

	memcpy(path.dmac, mac, sizeof(mac));
	memcpy(path.dst_ip, m->group.addr + 12, 4);
	return bed_frame_on(&path, &f);
}

static void
datagram(struct bed *b, const struct member *m)
{
	bed_put(b, datagram_of(m));
}

/* UD-31: a datagram to a group behind long SENDs, alone and in their burst, is none of them. */
static void
UD_31_behind_long_sends(void **state)
{
	struct bed *b = *state;
	struct ring_cqe c;
	struct member m;

	join(b, &m);
	for (uint32_t i = 0; i < 4; i++) {
		const struct wire_fields f = send_only(E + i, LONG);

		post(&m, 70 + i);
		bed_send(b, &f);
		if (i % 2 == 0)
			bed_turn(b);
		datagram(b, &m);
		bed_turn(b);
		assert_int_equal(bed_cqe(b).byte_len, LONG);
		c = bed_cqe(b);
		assert_int_equal(c.status, WC_SUCCESS);
		assert_int_equal(c.wr_id, 70 + i);
		bed_no_cqe(b);
	}
	leave(b, &m);
}

static void
move_says(struct bed *b, enum mbox_type type, struct qp *qp)
{
	struct mbox_msg m = { .type = type };

	if (type == MBOX_QP_PARK)
		m.move = (struct mbox_move){ qp, b->conf.index };
	else
		m.qp.qp = qp;
	assert_int_equal(bed_tell(b, &m), 0);
}

/*
 * UD-31: the only member is on its way here, and there is no room for more that wait for it: a
 * datagram that comes from this process is lost, as one from the port is.
 */
static void
UD_31_no_room_for_a_member_that_comes(void **state)
{
	struct mbox_msg tx = { .type = MBOX_TX, .tx.port = bed_port() | QP_OUT_LOCAL };
	struct bed *b = *state;
	struct member m;

	join(b, &m);
	qp_table_give(b->qps, m.qp, 1); /* another worker, which is not there */
	move_says(b, MBOX_QP_PARK, m.qp);
	for (uint32_t i = 0; i < MOVE_ROOM; i += PIPELINE_BURST) {
		for (uint32_t k = 0; k < PIPELINE_BURST; k++)
			datagram(b, &m);
		worker_poll(b->w, b->now);
	}
	assert_int_equal(bed_stat(b, STAT_rx_handoff_lost), 0);
	datagram(b, &m);
	worker_poll(b->w, b->now);
	assert_int_equal(bed_stat(b, STAT_rx_handoff_lost), 1);
	tx.tx.m = datagram_of(&m);
	assert_int_equal(bed_tell(b, &tx), 0);
	worker_poll(b->w, b->now);
	assert_int_equal(bed_stat(b, STAT_rx_handoff_lost), 2);
	qp_table_give(b->qps, m.qp, 0);
	move_says(b, MBOX_QP_UNPARK, m.qp);
	leave(b, &m);
}

/* UD-31: all that came meanwhile, burst by burst: none is lost for want of room between them. */
static void
UD_31_many_for_a_member_that_comes(void **state)
{
	const uint32_t n = 3 * PIPELINE_BURST;
	struct bed *b = *state;
	struct member m;

	join(b, &m);
	qp_table_give(b->qps, m.qp, 1);
	move_says(b, MBOX_QP_PARK, m.qp);
	for (uint32_t i = 0; i < n; i += PIPELINE_BURST) {
		for (uint32_t k = 0; k < PIPELINE_BURST; k++)
			datagram(b, &m);
		worker_poll(b->w, b->now);
	}
	assert_int_equal(bed_stat(b, STAT_rx_mcast), n);
	qp_table_give(b->qps, m.qp, 0);
	move_says(b, MBOX_QP_UNPARK, m.qp);
	assert_int_equal(bed_stat(b, STAT_rcvd_pkts), n);
	assert_int_equal(bed_stat(b, STAT_out_of_buffer), n); /* there is no receive */
	leave(b, &m);
}

/*
 * UD-31: the member is another worker's. A driver that says nothing of a packet's type leaves what
 * the buffer's last packet had there: a copy for members, perhaps.
 */
static void
UD_31_in_a_buffer_that_was_a_copy(void **state)
{
	struct rte_ring *ring = rte_ring_create("group", 64, 0, RING_F_SC_DEQ);
	struct bed *b = *state;
	struct rte_mbuf *frame;
	struct member m;
	void *copy = NULL;

	assert_non_null(ring);
	b->conf.workers_n = 2;
	b->conf.handoff[1] = ring;
	join(b, &m);
	qp_table_give(b->qps, m.qp, 1);
	datagram(b, &m);
	worker_poll(b->w, b->now);
	assert_int_equal(rte_ring_dequeue(ring, &copy), 0);
	frame = datagram_of(&m);
	frame->packet_type = ((struct rte_mbuf *)copy)->packet_type;
	assert_int_not_equal(frame->packet_type, 0);
	rte_pktmbuf_free(copy);
	bed_put(b, frame);
	worker_poll(b->w, b->now);
	assert_int_equal(bed_stat(b, STAT_rx_mcast), 2);
	/* The copy is for members at the worker that gets it, and counts where it came from. */
	assert_int_equal(rte_ring_count(ring), 1);
	qp_table_give(b->qps, m.qp, 0);
	post(&m, 70);
	b->w->conf.handoff_in = ring;
	worker_poll(b->w, b->now);
	assert_int_equal(bed_cqe(b).wr_id, 70);
	assert_int_equal(bed_stat(b, STAT_rx_mcast), 2);
	assert_int_equal(rte_ring_count(ring), 0);
	b->w->conf.handoff_in = NULL;
	b->conf.workers_n = 1;
	b->conf.handoff[1] = NULL;
	leave(b, &m);
	rte_ring_free(ring);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(UD_31_behind_long_sends),
		TEST(UD_31_no_room_for_a_member_that_comes),
		TEST(UD_31_many_for_a_member_that_comes),
		TEST(UD_31_in_a_buffer_that_was_a_copy),
	};

	return cmocka_run_group_tests(tests, bed_group_setup, NULL);
}
