/* SPDX-License-Identifier: BSD-3-Clause */
/* Ports that take nothing: what was to be sent waits, within bounds, or is counted. */
#include "bed.h"
#include "worker.h"

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

/*
 * An unresolved peer, whose packets do not tell its MAC either: nothing is sent, and what was not
 * is counted.
 */
static void
no_neighbor(void **state)
{
	struct wire_path from = bed_path();
	struct bed *b = *state;
	struct qp_attr attr = b->qp->attr;
	struct wire_fields f = write_only(E, MR_VA, 64);

	attr.path_resolved = false;
	assert_int_equal(bed_modify(b, b->qp, &attr, QP_ATTR_AV), 0);
	from.smac[0] |= 1;
	bed_put(b, bed_frame_on(&from, &f));
	f = read_request(E + 1, MR_VA, 4096);
	bed_put(b, bed_frame_on(&from, &f));
	memset(from.smac, 0, sizeof(from.smac));
	f = fetch_add(E + 5, MR_VA, 1);
	bed_put(b, bed_frame_on(&from, &f));
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

/*
 * Without the peer's MAC a QP answers where its packets come from, if their sender knows it:
 * they are the ones that it waits for.
 */
static void
whose_packets_tell_the_mac(void **state)
{
	struct bed *b = *state;
	struct qp_attr attr = b->qp->attr;
	struct wire_fields f[] = { write_only(E - 1, MR_VA, 64), write_only(E + 1, MR_VA, 64),
		read_request(E - 1, MR_VA, 64), { .opcode = OP_RC_ACKNOWLEDGE, .psn = psn(S) },
		{ .opcode = OP_RC_READ_RESPONSE_ONLY, .psn = psn(S - 1) },
		{ .opcode = OP_CNP, .psn = psn(E) }, write_only(E, MR_VA, 64) };

	attr.path_resolved = false;
	assert_int_equal(bed_modify(b, b->qp, &attr, QP_ATTR_AV), 0);
	for (size_t i = 0; i < ARRAY_LEN(f); i++) {
		const bool last = i + 1 == ARRAY_LEN(f);

		bed_send(b, &f[i]);
		bed_turns(b);
		assert_int_equal((b->qp->flags & QPF_RESOLVED) != 0, last);
		assert_int_equal(b->qp->attr.path_resolved, last);
		if (!last)
			expect_silence(b);
	}
	expect_ack(b, 0x1f, E, 1);
}

/* One SEND without a payload; its completion tells when the port has it. */
static void
post_empty(struct bed *b, struct qp *qp, struct ring *ring, uint8_t flags)
{
	struct mbox_msg m = { .type = MBOX_QP_POSTED };
	struct ring_send_wqe *wqe = ring_produce_slot(ring, ring->mask + 1);

	assert_non_null(wqe);
	memset(wqe, 0, ring->stride);
	wqe->wr_id = 77;
	wqe->opcode = WR_SEND;
	wqe->flags = flags;
	ring_produce_commit(ring);
	m.qp.qp = qp;
	assert_int_equal(bed_tell(b, &m), 0);
}

static struct qp *
unacked(struct bed *b, uint32_t qpn, struct ring *ring, bool resolved)
{
	const struct qp_alloc_params params = {
		.type = QPT_UC, .max_recv_wr = 16, .max_recv_sge = 1, .max_send_wr = 2048
	};
	struct qp *qp = bed_qp_with(b, qpn, qpn + 1, &params);
	struct qp_attr attr = qp->attr;

	qp->window = qp->req.window = 2048;
	attr.path_resolved = resolved;
	assert_int_equal(bed_modify(b, qp, &attr, QP_ATTR_AV), 0);
	ring_attach(ring, qp->sq.ring.sh, qp->sq.ring.mask + 1, qp->sq.ring.stride, false);
	return qp;
}

/*
 * UC-02: while a port takes nothing, a QP whose packets have nowhere to go takes no place that the
 * sends of another one need to complete.
 */
static void
UC_02_beside_one_that_has_nowhere_to_go(void **state)
{
	struct ring to_nowhere, to_peer;
	struct bed *b = *state;
	struct qp *nowhere = unacked(b, 0x20, &to_nowhere, false);
	struct qp *qp = unacked(b, 0x22, &to_peer, true);
	struct wire_fields f = write_only(0, MR_VA, 4);
	uint32_t n;
	void *m = NULL;

	for (n = 0; n < 1023; n++)
		assert_int_equal(rte_ring_enqueue(bed_far_end(), bed_frame(&f)), 0);
	f = write_only(E, MR_VA, 4); /* its ACK waits */
	bed_send(b, &f);
	worker_poll(b->w, b->now);
	for (uint32_t i = 0; i < TX_STARTS + 64; i++)
		post_empty(b, nowhere, &to_nowhere, 0);
	post_empty(b, qp, &to_peer, SEND_SIGNALED);
	bed_no_cqe(b);
	for (; n != 0; n--) {
		assert_int_equal(rte_ring_dequeue(bed_far_end(), &m), 0);
		rte_pktmbuf_free(m);
	}
	bed_turns(b);
	expect_ack(b, 0x1f, E, 1);
	expect_packet(b, OP_UC_SEND_ONLY, S, 0);
	expect_silence(b);
	assert_int_equal(bed_cqe(b).wr_id, 77);
	bed_no_cqe(b);
	for (uint32_t i = 0; i < 16; i++)
		worker_poll(b->w, b->now);
	assert_int_equal(nowhere->sq.taken, 0); /* its own are done, too */
	bed_qp_gone(b, nowhere);
	bed_qp_gone(b, qp);
}

/*
 * UC-02: what a send waits for may be dropped, as replies of a priority are when they are too many.
 * It is done when nothing stands in the queue any more.
 */
static void
UC_02_behind_a_frame_that_is_dropped(void **state)
{
	struct ring sends;
	struct bed *b = *state;
	struct qp *qp = unacked(b, 0x20, &sends, false);
	struct wire_fields f = write_only(0, MR_VA, 4);
	struct tx_queue *q = &b->w->tx[0];
	struct rte_mbuf *other;
	void *m = NULL;

	for (uint32_t n = 0; n < 1023; n++)
		assert_int_equal(rte_ring_enqueue(bed_far_end(), bed_frame(&f)), 0);
	f = write_only(E, MR_VA, 4); /* its ACK waits */
	bed_send(b, &f);
	worker_poll(b->w, b->now);
	assert_int_equal(q->tail - q->head, 1);
	post_empty(b, qp, &sends, SEND_SIGNALED);
	worker_poll(b->w, b->now);
	bed_no_cqe(b);
	rte_pktmbuf_free(q->m[--q->tail]);
	other = bed_frame(&f);
	rte_pktmbuf_mtod(other, uint8_t *)[37] ^=
		1; /* UDP to another port: a turn that sends nothing */
	bed_put(b, other);
	worker_poll(b->w, b->now);
	assert_int_equal(bed_cqe(b).wr_id, 77);
	while (rte_ring_dequeue(bed_far_end(), &m) == 0)
		rte_pktmbuf_free(m);
	bed_qp_gone(b, qp);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(full_port),
		TEST(backlog_drop),
		TEST(no_neighbor),
		TEST(whose_packets_tell_the_mac),
		TEST(UC_02_beside_one_that_has_nowhere_to_go),
		TEST(UC_02_behind_a_frame_that_is_dropped),
	};

	return cmocka_run_group_tests(tests, bed_group_setup, NULL);
}
