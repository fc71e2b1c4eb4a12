/* SPDX-License-Identifier: BSD-3-Clause */
/* MIDDLEs of SENDs: where their bytes go, and what their receive has become since the FIRST. */
#include <string.h>

#include "bed.h"

enum { LAST_LEN = 10, SRQ_ENTRIES = 8 };

/** The next packet of a message. @param at of its bytes. */
static void
part(struct bed *b, uint8_t opcode, uint32_t p, uint32_t at, uint16_t len)
{
	struct wire_fields f = send_only(p, len);

	f.opcode = opcode;
	f.payload += at;
	bed_send(b, &f);
	bed_turn(b);
}

static void
wqe_put(struct ring *to, uint32_t limit, uint32_t n, const struct ring_sge *sges)
{
	struct ring_recv_wqe *wqe = ring_produce_slot(to, limit);

	assert_non_null(wqe);
	wqe->wr_id = 77;
	wqe->num_sge = n;
	memcpy(wqe->sge, sges, n * sizeof(*sges));
	ring_produce_commit(to);
}

/** A QP that has this WQE alone. */
static void
receive(struct bed *b, uint32_t n, const struct ring_sge *sges)
{
	assert_int_equal(bed_state(b, b->qp, QPS_RESET), 0);
	bed_qp_gone(b, b->qp);
	b->qp = bed_qp(b, QPN, PEER_QPN);
	ring_attach(&b->rq_producer, b->qp->rq.sh, b->qp->rq.mask + 1, b->qp->rq.stride, false);
	wqe_put(&b->rq_producer, 16, n, sges);
}

/** FIRST and one MIDDLE arrive. */
static void
begin(struct bed *b)
{
	part(b, OP_RC_SEND_FIRST, E, 0, PMTU);
	expect_ack(b, 0x1f, E, 0);
	part(b, OP_RC_SEND_MIDDLE, E + 1, PMTU, PMTU);
	expect_ack(b, 0x1f, E + 1, 0);
}

/** The MIDDLE at E + 2 fails its receive, and its peer is told so. */
static void
fails(struct bed *b, uint8_t syndrome, uint32_t status)
{
	part(b, OP_RC_SEND_MIDDLE, E + 2, 0, PMTU);
	expect_ack(b, syndrome, E + 2, 0);
	assert_int_equal(bed_cqe(b).status, status);
	bed_up(b, MBOX_FATAL);
}

/* RESP-02: each byte behind those before it, and no other is touched. */
static void
RESP_02_bytes(void **state)
{
	const struct ring_sge sge = { RQ_VA + 3, 3 * PMTU + LAST_LEN, RQ_KEY };
	struct bed *b = *state;
	const uint8_t *bytes = send_only(0, 0).payload;

	receive(b, 1, &sge);
	memset(b->rq_memory, 0xa5, 4 * PMTU);
	begin(b);
	part(b, OP_RC_SEND_MIDDLE, E + 2, 2 * PMTU, PMTU);
	expect_ack(b, 0x1f, E + 2, 0);
	bed_no_cqe(b);
	part(b, OP_RC_SEND_LAST, E + 3, 3 * PMTU, LAST_LEN);
	expect_ack(b, 0x1f, E + 3, 1);
	assert_int_equal(bed_cqe(b).byte_len, 3 * PMTU + LAST_LEN);
	assert_memory_equal(b->rq_memory + 3, bytes, 3 * PMTU + LAST_LEN);
	assert_int_equal(b->rq_memory[2], 0xa5);
	assert_int_equal(b->rq_memory[3 + 3 * PMTU + LAST_LEN], 0xa5);
	assert_int_equal(qp_stat(b->qp, STAT_rx_send_requests), 1);
	assert_int_equal(qp_stat(b->qp, STAT_rcvd_pkts), 4);
}

/* RESP-NAK-INV-06: more than the receive has room for, by a byte. */
static void
RESP_NAK_INV_06_too_long(void **state)
{
	const struct ring_sge sge = { RQ_VA, 3 * PMTU - 1, RQ_KEY };
	struct bed *b = *state;

	receive(b, 1, &sge);
	b->rq_memory[3 * PMTU - 1] = 0xa5;
	begin(b);
	fails(b, 0x61, 1); /* IBV_WC_LOC_LEN_ERR */
	assert_int_equal(b->rq_memory[3 * PMTU - 1], 0xa5);
}

/* RESP-NAK-ROE-01: the receive's memory is no longer to be written to. */
static void
RESP_NAK_ROE_01_access_has_gone(void **state)
{
	const struct ring_sge sge = { RQ_VA, 4 * PMTU, RQ_KEY };
	struct bed *b = *state;
	access_t before = b->rq_mr->access;

	receive(b, 1, &sge);
	begin(b);
	b->rq_mr->access &= (access_t)~ACCESS_LOCAL_WRITE;
	fails(b, 0x63, 4); /* IBV_WC_LOC_PROT_ERR */
	b->rq_mr->access = before;
}

/* RESP-NAK-ROE-01: nor is another of its pieces, though this packet is not for that. */
static void
RESP_NAK_ROE_01_a_later_piece(void **state)
{
	const struct ring_sge sges[] = { { RQ_VA, 4 * PMTU, RQ_KEY }, { MR_VA, PMTU, MR_KEY } };
	struct bed *b = *state;
	access_t before = b->mr->access;

	receive(b, 2, sges);
	begin(b);
	b->mr->access &= (access_t)~ACCESS_LOCAL_WRITE;
	fails(b, 0x63, 4);
	b->mr->access = before;
}

/* SRQ-01: what is taken from a shared queue is of that queue's protection domain. */
static void
SRQ_01_protection_domain(void **state)
{
	const struct ring_sge sge = { RQ_VA, 4 * PMTU, RQ_KEY };
	struct bed *b = *state;
	struct qp_srq srq = { .id = 5, .pd = PD + 1, .max_sge = 2 };
	const uint32_t stride = ring_recv_stride(2), before = b->rq_mr->pd;
	struct ring producer;

	assert_int_equal(mem_area_create(&srq.area, ring_size(SRQ_ENTRIES, stride), -1, 0), 0);
	ring_srq_attach(&srq.ring, srq.area.base, SRQ_ENTRIES, stride);
	ring_srq_producer(&srq.ring, &producer);
	ring_consume_done(&b->qp->rq, ring_consume_count(&b->qp->rq));
	b->qp->srq = &srq;
	b->qp->flags |= QPF_SRQ;
	b->rq_mr->pd = PD + 1;
	wqe_put(&producer, SRQ_ENTRIES, 1, &sge);
	begin(b);
	assert_memory_equal(b->rq_memory + PMTU, send_only(0, 0).payload + PMTU, PMTU);
	b->rq_mr->pd = PD; /* the QP's own */
	fails(b, 0x63, 4);
	b->rq_mr->pd = before;
	mem_area_destroy(&srq.area);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(RESP_02_bytes),
		TEST(RESP_NAK_INV_06_too_long),
		TEST(RESP_NAK_ROE_01_access_has_gone),
		TEST(RESP_NAK_ROE_01_a_later_piece),
		TEST(SRQ_01_protection_domain),
	};

	return cmocka_run_group_tests(tests, bed_group_setup, NULL);
}
