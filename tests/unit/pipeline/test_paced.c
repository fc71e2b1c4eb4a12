/* SPDX-License-Identifier: BSD-3-Clause */
/* A responder whose QP has a rate: what waits for it, and what does not. */
#include "bed.h"
#include "qp_cc.h"
#include "worker.h"

enum { RATED_QPN = 0x12, RATED_PEER = PEER_QPN + 1 };

/** In RTR or RTS, with so many Mb/s after its first CNP (CC-10). */
static struct qp *
rated_qp(struct bed *b, enum qp_state state, uint32_t rate)
{
	struct qp *qp = bed_qp_with_rate(b, RATED_QPN, RATED_PEER, rate);

	atomic_store(&qp->state, state);
	return qp;
}

static void
cnp(struct bed *b)
{
	static const uint8_t zeros[16];
	const struct wire_fields f = { .opcode = OP_CNP,
		.flags = PKT_BECN,
		.dest_qpn = RATED_QPN,
		.payload = zeros,
		.payload_len = sizeof(zeros) };

	bed_send(b, &f);
	bed_turn(b);
	expect_silence(b);
}

static void
ask(struct bed *b, struct wire_fields f)
{
	f.dest_qpn = RATED_QPN;
	bed_send(b, &f);
}

/*
 * CC-22, CC-10, RESP-16: a responder in RTR slows down, too. 1082 bytes and more at 100 Mb/s are
 * 86.6 us, and the wheel's ticks are 4.1 us.
 */
static void
CC_22_cnp_in_rtr(void **state)
{
	static const enum qp_state states[] = { QPS_RTR, QPS_RTS };
	struct bed *b = *state;

	for (uint32_t i = 0; i < ARRAY_LEN(states); i++) {
		struct qp *qp = rated_qp(b, states[i], 100);

		ask(b, read_request(E, MR_VA, 2 * PMTU)); /* at its full rate: both at once */
		bed_turns(b);
		expect_packet(b, OP_RC_READ_RESPONSE_FIRST, E, PMTU);
		expect_packet(b, OP_RC_READ_RESPONSE_LAST, E + 1, PMTU);
		cnp(b);
		assert_int_equal(bed_stat(b, STAT_rp_cnp_handled), i + 1);
		assert_int_equal(bed_stat(b, STAT_rp_cnp_ignored), 0);
		b->now += TIME_NS_PER_MS / 8;
		ask(b, read_request(E + 2, MR_VA, 3 * PMTU));
		bed_turns(b);
		expect_packet(b, OP_RC_READ_RESPONSE_FIRST, E + 2, PMTU);
		for (uint32_t k = 1; k < 3; k++) {
			expect_silence(b);
			b->now += 60 * TIME_NS_PER_US;
			bed_turns(b);
			expect_silence(b);
			b->now += 40 * TIME_NS_PER_US;
			bed_turns(b);
			expect_packet(b,
				k == 1 ? OP_RC_READ_RESPONSE_MIDDLE : OP_RC_READ_RESPONSE_LAST,
				E + 2 + k, PMTU);
		}
		expect_silence(b);
		bed_qp_gone(b, qp);
	}
}

/*
 * CC-22, CC-23: behind the last READ response nothing waits for the rate, neither the ACK of a
 * WRITE, nor an ATOMIC's result, nor a NAK. Before it everything waits, in the order of requests.
 */
static void
CC_22_answers_behind_a_read(void **state)
{
	struct bed *b = *state;
	struct qp *qp = rated_qp(b, QPS_RTS, 1);

	cnp(b);
	for (uint32_t i = 0; i < 3; i++) {
		const uint32_t p = E + 4 * i;

		ask(b, read_request(p, MR_VA, PMTU));
		ask(b, write_only(p + 1, MR_VA, 8));
		ask(b, fetch_add(p + 2, MR_VA, 1));
		ask(b, write_only(p + 3, MR_VA, 8));
		ask(b, write_only(p + 5, MR_VA, 8)); /* one is missing */
		bed_turns(b);
		if (i != 0) { /* 1090 bytes at 1 Mb/s: 8.7 ms */
			expect_silence(b);
			b->now += 10 * TIME_NS_PER_MS;
			bed_turns(b);
		}
		expect_packet(b, OP_RC_READ_RESPONSE_ONLY, p, PMTU);
		assert_true(b->now < qp_cc(qp)->cc.due); /* the next response would wait */
		expect_ack(b, 0x1f, p + 1, 4 * i + 2);
		expect_packet(b, OP_RC_ATOMIC_ACKNOWLEDGE, p + 2, 0);
		expect_ack(b, 0x1f, p + 3, 4 * i + 4);
		expect_ack(b, 0x60, p + 4, 4 * i + 4);
		expect_silence(b);
	}
	bed_qp_gone(b, qp);
}

/*
 * RESP-NAK-02, CC-22: a request is refused while the answer to one before it waits for its turn.
 * The QP is in ERR and its requester has no timer any more, but what was owed leaves, and the NAK.
 */
static void
CC_22_the_QP_fails_behind_a_read(void **state)
{
	struct bed *b = *state;
	struct qp *qp = rated_qp(b, QPS_RTS, 100);

	cnp(b);
	ask(b, read_request(E, MR_VA, 3 * PMTU));
	bed_turns(b);
	expect_packet(b, OP_RC_READ_RESPONSE_FIRST, E, PMTU);
	ask(b, write_only(E + 3, MR_VA + MR_LEN, 8)); /* outside of the region */
	bed_turns(b);
	expect_silence(b);
	assert_int_equal(atomic_load(&qp->state), QPS_ERR);
	for (uint32_t k = 1; k < 3; k++) {
		b->now += 60 * TIME_NS_PER_US;
		bed_turns(b);
		expect_silence(b);
		b->now += 40 * TIME_NS_PER_US;
		bed_turns(b);
		expect_packet(b, k == 1 ? OP_RC_READ_RESPONSE_MIDDLE : OP_RC_READ_RESPONSE_LAST,
			E + k, PMTU);
	}
	expect_ack(b, AETH_NAK | NAK_REM_ACCESS, E + 3, 1);
	expect_silence(b);
	bed_qp_gone(b, qp);
}

/* CC-11: it is cut from the rate that the link of its port has now, as after another start. */
static void
CC_11_the_link_has_another_rate(void **state)
{
	struct bed *b = *state;
	struct qp *qp = rated_qp(b, QPS_RTS, 0);
	const uint8_t port = b->w->port_of[qp->out];
	_Atomic uint32_t mbps = 0;

	b->w->conf.ports[port].mbps = &mbps;
	cnp(b);
	assert_int_equal(qp_cc(qp)->cc.target, 10000000); /* not known: as it was attached */
	bed_qp_gone(b, qp);
	atomic_store(&mbps, 1000);
	qp = rated_qp(b, QPS_RTS, 0);
	cnp(b);
	assert_int_equal(qp_cc(qp)->cc.target, 1000000);
	assert_true(qp_cc(qp)->cc.rate < 1000000);
	bed_qp_gone(b, qp);
	b->w->conf.ports[port].mbps = NULL;
}

static struct qp_rate
look(struct bed *b, struct qp *qp)
{
	struct qp_snapshot s;
	struct mbox_msg m = { .type = MBOX_QP_QUERY, .query = { qp, &s } };

	assert_int_equal(bed_tell(b, &m), 0);
	return s.rate;
}

/*
 * CC-20: a QP that was cut comes back to what its link carries by then. Who looks at it sees that,
 * and changes nothing.
 */
static void
CC_20_the_link_is_faster_by_now(void **state)
{
	struct bed *b = *state;
	struct qp *qp = rated_qp(b, QPS_RTS, 0);
	const uint8_t port = b->w->port_of[qp->out];
	_Atomic uint32_t mbps = 1000;
	struct cc before;

	b->w->conf.ports[port].mbps = &mbps;
	assert_int_equal(look(b, qp).current, 1000000);
	assert_int_equal(qp_cc(qp)->cc.rate, 10000000);
	cnp(b);
	atomic_store(&mbps, 25000);
	before = qp_cc(qp)->cc;
	b->now += 10 * TIME_NS_PER_S;
	assert_int_equal(look(b, qp).current, 25000000);
	assert_memory_equal(&before, &qp_cc(qp)->cc, sizeof(before));
	ask(b, read_request(E, MR_VA, 8)); /* its answer is paced */
	bed_turns(b);
	expect_packet(b, OP_RC_READ_RESPONSE_ONLY, E, 8);
	assert_int_equal(qp_cc(qp)->cc.rate, 25000000);
	bed_qp_gone(b, qp);
	b->w->conf.ports[port].mbps = NULL;
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(CC_22_cnp_in_rtr),
		TEST(CC_22_answers_behind_a_read),
		TEST(CC_22_the_QP_fails_behind_a_read),
		TEST(CC_11_the_link_has_another_rate),
		TEST(CC_20_the_link_is_faster_by_now),
	};

	return cmocka_run_group_tests(tests, bed_group_setup, NULL);
}
