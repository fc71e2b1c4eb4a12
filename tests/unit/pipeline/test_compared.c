/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A packet and the first line of its QP in one comparison: each bit of either is turned round, and
 * what the comparison says has to be what the tests say that look at one field after another. With
 * each width of registers that this machine has.
 */
#include <string.h>

#include "bed.h"
#include "stage_05_half.h"
#include "stage_06_fast.h"
#include "worker.h"

#if WIRE_WIDE

/** What one field after another says of it. */
static bool
by_fields(const struct worker *w, const struct qp *qp, const struct wire_pkt *p, uint8_t opcode)
{
	const bool send = opcode == OP_RC_SEND_ONLY;

	if (p->opcode != opcode || qp->type != QPT_RC || (qp->flags & STEER_NET) != 0 ||
		(p->flags & (PKT_CE | PKT_IPV6 | PKT_VLAN)) != 0 ||
		!is_fast(qp, p, w->steer[0]))
		return false;
	if (opcode == OP_RC_ACKNOWLEDGE)
		return qp_state_of(qp) == QPS_RTS;
	return fast_qp(w, qp, p) && psn_distance(p->psn, qp->resp.epsn) < PIPELINE_BURST &&
	       responder_fits_fast(&qp->resp, p, send ? 0 : ACCESS_REMOTE_WRITE) &&
	       (!send || (qp->flags & (QPF_SRQ | QPF_RECV_FEED)) == 0);
}

TARGET_WIRE_WIDE static uint32_t
wrong_wide(const struct worker *w, const struct qp *qp, const struct wire_pkt *p, uint8_t opcode)
{
	const struct plain c = plain_of(w->steer[0], opcode);

	return plain_wrong(&c, qp, p);
}

TARGET_WIRE_HALF static uint32_t
wrong_half(const struct worker *w, const struct qp *qp, const struct wire_pkt *p, uint8_t opcode)
{
	const struct plain_half c = plain_half_of(w->steer[0], opcode);

	return plain_half_wrong(&c, qp, p);
}

/** What one comparison says of it. All widths have the same words wrong. */
static bool
at_once(const struct worker *w, const struct qp *qp, const struct wire_pkt *p, uint8_t opcode)
{
	const uint32_t wrong = wrong_half(w, qp, p, opcode);
	const bool receives = qp_receives(qp_state_of(qp));

	if (wire_has_wide())
		assert_int_equal(wrong_wide(w, qp, p, opcode), wrong);
	if (opcode == OP_RC_ACKNOWLEDGE)
		return wrong == 0 && qp_state_of(qp) == QPS_RTS;
	if ((wrong & PLAIN_STEER) == 0 && receives)
		assert_true(is_fast(qp, p, w->steer[0]));
	return wrong == 0 && receives;
}

static void
turn(void *bytes, size_t bit)
{
	((uint8_t *)bytes)[bit / 8] ^= (uint8_t)(1 << bit % 8);
}

/** Bytes of a packet that say where it is, or that it has a fault, are not turned round. */
static bool
is_left_alone(size_t byte)
{
	return byte < offsetof(struct wire_pkt, op) ||
	       (byte >= offsetof(struct wire_pkt, l3_off) && byte < offsetof(struct wire_pkt, psn));
}

/** One bit of either, and with it none or another one. @return how many were plain. */
static uint32_t
all_bits(struct bed *b, struct wire_pkt *p, uint8_t *src_ip, uint8_t opcode)
{
	enum { QP = 512, PKT = QP + 8 * sizeof(struct wire_pkt), ALL = PKT + 32 };
	uint32_t plain = 0, seed = 1;

	for (size_t bit = 0; bit < ALL; bit++) {
		for (uint32_t again = 0; again < 20; again++) {
			size_t bits[2] = { bit, 0 };
			const uint32_t n = again == 0 ? 1 : 2;
			bool want;

			seed = seed * 1664525u + 1013904223u;
			bits[1] = (seed >> 8) % ALL;
			for (uint32_t k = 0; k < 2 * n; k++) {
				const size_t at = bits[k % n];

				if (k == n) {
					want = by_fields(b->w, b->qp, p, opcode);
					assert_int_equal(at_once(b->w, b->qp, p, opcode), want);
					plain += want;
				}
				if (at < QP)
					turn(b->qp, at);
				else if (at >= PKT)
					turn(src_ip, at - PKT);
				else if (!is_left_alone((at - QP) / 8))
					turn(p, at - QP);
			}
		}
	}
	return plain;
}

static struct wire_fields
fields_of(uint8_t opcode)
{
	struct wire_fields ack = send_only(E, 0);

	ack.opcode = OP_RC_ACKNOWLEDGE;
	ack.aeth = (struct wire_aeth){ AETH_ACK | AETH_CREDIT_NONE, 1 };
	return opcode == OP_RC_ACKNOWLEDGE ? ack
	       : opcode == OP_RC_SEND_ONLY ? send_only(E, 64)
					   : write_only(E, MR_VA, 64);
}

/* RESP-01, RESP-05, RX-PREC-01, RX-HDR-05: nothing is plain that a test would have found. */
static void
RX_PREC_01_one_comparison(void **state)
{
	static const uint8_t opcodes[] = { OP_RC_WRITE_ONLY, OP_RC_SEND_ONLY, OP_RC_ACKNOWLEDGE };
	struct bed *b = *state;

	if (!wire_has_half()) /* which all have that have the wide ones */
		return;
	for (size_t i = 0; i < ARRAY_LEN(opcodes); i++) {
		struct wire_fields f = fields_of(opcodes[i]);
		struct rte_mbuf *m = bed_frame(&f);
		uint8_t *frame = rte_pktmbuf_mtod(m, uint8_t *);
		struct wire_pkt p CACHE_ALIGNED;
		uint32_t plain;

		assert_int_equal(wire_parse_any(&b->conf.ports[0].addr, frame, m->data_len, &p),
			WIRE_CLASS_ROCE);
		assert_true(by_fields(b->w, b->qp, &p, opcodes[i]));
		for (size_t k = 0; k < ARRAY_LEN(opcodes); k++)
			assert_int_equal(at_once(b->w, b->qp, &p, opcodes[k]), k == i);
		plain = all_bits(b, &p, frame + WIRE_PLAIN_IP + 12, opcodes[i]);
		assert_in_range(plain, 1000, 20000);
		rte_pktmbuf_free(m);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(RX_PREC_01_one_comparison),
	};

	return cmocka_run_group_tests(tests, bed_group_setup, NULL);
}
#else
int
main(void)
{
	return 0;
}
#endif
