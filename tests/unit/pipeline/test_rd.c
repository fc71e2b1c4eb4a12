/* SPDX-License-Identifier: BSD-3-Clause */
/* The reliable datagram service is not there: what comes of it draws nothing, changes nothing. */
#include "bed.h"

#include <string.h>

enum {
	RD_FIRST = 0x40,  /* RD SEND FIRST */
	RD_RESYNC = 0x55, /* behind the requests and responses of 0x40..0x54 */
	RD_LAST = 0x5f    /* of the service's range, most of it reserved */
};

/** One SEND that waits for its ACK. */
static void
send_one(struct bed *b)
{
	struct mbox_msg m = { .type = MBOX_QP_POSTED };
	struct ring_send_wqe *wqe;
	struct ring producer;

	ring_attach(&producer, b->qp->sq.ring.sh, b->qp->sq.ring.mask + 1, b->qp->sq.ring.stride,
		false);
	wqe = ring_produce_slot(&producer, 16);
	assert_non_null(wqe);
	*wqe = (struct ring_send_wqe){
		.wr_id = 77, .opcode = WR_SEND, .flags = SEND_SIGNALED, .num_sge = 1
	};
	wqe->sge[0] = (struct ring_sge){ .addr = MR_VA, .length = 8, .lkey = MR_KEY };
	ring_produce_commit(&producer);
	m.qp.qp = b->qp;
	assert_int_equal(bed_tell(b, &m), 0);
	bed_turns(b);
	expect_packet(b, OP_RC_SEND_ONLY, S, 8);
}

/** EE context 1, and what would be the AETH of a response: an ACK or a NAK. */
static void
rd_packet(struct bed *b, uint8_t opcode, uint32_t p, uint8_t syndrome)
{
	struct wire_fields f = send_only(p, 64);
	const uint8_t head[64] = { 0, 0, 0, 1, syndrome, 0, 0, 1 };
	struct rte_mbuf *m;
	uint8_t *frame;
	struct wire_pkt k;

	f.payload = head;
	m = bed_frame(&f);
	frame = rte_pktmbuf_mtod(m, uint8_t *);
	assert_int_equal(
		wire_parse(&(const struct wire_port){ .has_ipv4 = true }, frame, m->data_len, &k),
		WIRE_CLASS_ROCE);
	frame[k.bth_off] = opcode;
	bed_reseal(m);
	bed_put(b, m);
}

/*
 * RESP-CLS-E-02, RESP-CLS-F-01, RESP-CLS-H-01, RD-01: no request of RD is answered, refused or
 * reported, whatever would be wrong with it. REQ-CLS-D-01: nor does a response of RD, an Invalid RD
 * Request (0x64) or a RESYNC end a request, or repeat it.
 */
static void
RESP_CLS_E_02_RD_is_not_there(void **state)
{
	static const uint8_t syndromes[] = { 0x1f, 0x2c, 0x60, 0x61, 0x62, 0x63, 0x64 };
	static const uint32_t psns[] = { E - 1, E, E + 1, S, S + 1 };
	struct bed *b = *state;
	uint32_t sent = 0;

	send_one(b);
	for (uint32_t opcode = RD_FIRST; opcode <= RD_LAST; opcode++) {
		for (size_t i = 0; i < ARRAY_LEN(psns); i++) {
			for (size_t k = 0; k < ARRAY_LEN(syndromes); k++, sent++)
				rd_packet(b, (uint8_t)opcode, psns[i], syndromes[k]);
			bed_turn(b); /* each is accounted for */
			expect_silence(b);
		}
		assert_int_equal(atomic_load(&b->qp->state), QPS_RTS);
		assert_int_equal(b->qp->resp.epsn.v, E);
	}
	assert_int_equal(sent, (RD_LAST - RD_FIRST + 1) * 35);
	assert_true(RD_RESYNC <= RD_LAST);
	bed_no_cqe(b);
	bed_no_up(b);
	assert_int_equal(qp_stat(b->qp, STAT_rcvd_pkts), 0);
	/* Both directions go on as before. */
	bed_send(b, &(const struct wire_fields){ .opcode = OP_RC_ACKNOWLEDGE,
			    .psn = psn(S),
			    .aeth = { .syndrome = AETH_CREDIT_NONE } });
	bed_send(b, &(const struct wire_fields){ .opcode = OP_RC_READ_REQUEST,
			    .psn = psn(E),
			    .reth = { MR_VA, MR_KEY, 8 } });
	bed_turns(b);
	expect_packet(b, OP_RC_READ_RESPONSE_ONLY, E, 8);
	expect_silence(b);
	assert_int_equal(bed_cqe(b).wr_id, 77);
	bed_no_cqe(b);
}

int
main(void)
{
	const struct CMUnitTest tests[] = { TEST(RESP_CLS_E_02_RD_is_not_there) };

	return cmocka_run_group_tests(tests, bed_group_setup, NULL);
}
