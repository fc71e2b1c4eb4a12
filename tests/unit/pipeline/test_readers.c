/* SPDX-License-Identifier: BSD-3-Clause */
/* A peer that reads beside what we ask for ourselves: how much of a turn its answers have. */
#include "apps_rig.h"

enum {
	READER = FIRST_QPN + CLIENTS * MOST_QPS, /* the number of its first QP */
	READERS = 4,
	READ = 65536,
	WHOLE_TURN = READERS * 8, /* while nobody waits for a turn: so many of each QP */
	BEFORE = 16,              /* turns, until all are on their lists */
	TURNS = 200,
};

static struct {
	struct qp *qp;
	uint32_t psn;  /* of the next request */
	uint32_t left; /* packets that are still to come */
} readers[READERS];

/** Clients send nothing before the first turn. */
static void
begin(struct bed *b)
{
	for (uint32_t k = 0; k < READERS; k++) {
		readers[k].qp = bed_qp(b, READER + k, READER + k);
		readers[k].psn = E;
		readers[k].left = 0;
	}
}

static void
end(struct bed *b)
{
	for (uint32_t k = 0; k < READERS; k++)
		bed_qp_gone(b, readers[k].qp);
	do { /* what they were sent meanwhile */
		bed_forget_output(b);
		bed_collect(b);
	} while (b->out_n != 0);
}

/** Answers among the frames that have come. */
static uint32_t
to_readers(struct bed *b)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < b->out_n; i++) {
		const uint32_t k = b->pkt[i].dest_qpn - READER;

		if (k >= READERS)
			continue;
		assert_true(readers[k].left != 0);
		readers[k].left--;
		n++;
	}
	return n;
}

/** A turn, in which each QP of the reader has a READ under way. @return answers to it. */
static uint32_t
answered(struct bed *b)
{
	uint32_t n = 0;

	for (uint32_t k = 0; k < READERS; k++) {
		struct wire_fields f = read_request(readers[k].psn, MR_VA, READ);

		if (readers[k].left != 0)
			continue;
		f.dest_qpn = READER + k;
		bed_send(b, &f);
		readers[k].psn += READ / PMTU;
		readers[k].left = READ / PMTU;
	}
	bed_turn(b);
	for (;; bed_forget_output(b), bed_collect(b)) {
		n += to_readers(b);
		count_output(b);
		if (b->out_n != FRAMES)
			return n;
	}
}

/** A response to the first client's QP. */
static void
respond(struct bed *b, uint8_t opcode, uint32_t p, uint8_t syndrome, uint16_t len)
{
	struct wire_fields f = send_only(p, len);

	f.opcode = opcode;
	f.flags = 0;
	f.dest_qpn = apps[VICTIM].qp[0].qp->qpn;
	f.aeth.syndrome = syndrome;
	bed_send(b, &f);
}

/** The first client asks for so many bytes. */
static void
asks(uint32_t len)
{
	struct app *a = &apps[VICTIM];

	a->len = len;
	assert_true(put_one(a, &a->qp[0]));
	if (ring_bell_is_due(&a->qp[0].sq))
		assert_int_equal(ring_bells_put(&a->bells, a->qp[0].qp->qpn), 0);
}

/*
 * Who waits for a turn is told by an answer that is whole. What comes again after a loss is a part
 * of a READ, though it looks whole (REQ-IMPL-04), and so do copies; a NAK answers nothing.
 */
static void
what_a_loss_leads_to_does_not_delay_answers(void **state)
{
	struct bed *b = *state;

	attach(b, VICTIM, 1, WR_RDMA_READ, 0);
	begin(b);
	asks(2 * PMTU);
	for (uint32_t t = 0; t < 8; t++)
		answered(b);
	assert_int_equal(answered(b), WHOLE_TURN);
	respond(b, OP_RC_READ_RESPONSE_FIRST, S, AETH_CREDIT_NONE, PMTU);
	assert_int_equal(answered(b), WHOLE_TURN);
	respond(b, OP_RC_ACKNOWLEDGE, S + 1, AETH_NAK | NAK_PSN_SEQ_ERR, 0);
	assert_int_equal(answered(b), WHOLE_TURN);
	assert_int_equal(answered(b), WHOLE_TURN);
	for (uint32_t copy = 0; copy < 2; copy++) {
		respond(b, OP_RC_READ_RESPONSE_ONLY, S + 1, AETH_CREDIT_NONE, PMTU);
		assert_int_equal(answered(b), WHOLE_TURN);
		assert_int_equal(answered(b), WHOLE_TURN);
	}
	assert_int_equal(bed_stat(b, STAT_req_resent_pkts), 1);
	assert_int_equal(apps[VICTIM].qp[0].qp->req.head, 1);
	asks(PMTU);
	assert_int_equal(answered(b), WHOLE_TURN);
	respond(b, OP_RC_READ_RESPONSE_ONLY, S + 2, AETH_CREDIT_NONE, PMTU);
	answered(b);
	assert_in_range(answered(b), 2, 3);
	end(b);
	detach(b, VICTIM);
}

/** @return answers in TURNS turns beside clients of these users that send all the time. */
static uint32_t
answered_beside(struct bed *b, const uint64_t *users, uint32_t n)
{
	uint32_t all = 0;

	for (uint32_t i = 0; i < n; i++)
		attach_as(b, i, (struct qp_client){ .user = users[i] }, 1, WR_RDMA_WRITE, PMTU);
	begin(b);
	for (uint32_t t = 0; t < BEFORE + TURNS; t++) {
		for (uint32_t i = 0; i < n; i++) {
			post(&apps[i]);
			if (t == BEFORE)
				apps[i].packets = 0;
		}
		all = t == BEFORE ? 0 : all;
		all += answered(b);
		for (uint32_t i = 0; i < n; i++)
			acknowledge(b, &apps[i]);
	}
	end(b);
	for (uint32_t i = 0; i < n; i++)
		detach(b, i);
	return all;
}

/** An answer costs somewhat more than a WRITE of that length, for it comes with a request. */
static void
is_as_much(uint32_t answers, uint64_t sent)
{
	assert_true(sent >= TURNS);
	assert_in_range(answers, sent / 2, sent);
}

/* Who reads keeps up with the fastest of those who send, and not with their number. */
static void
a_reader_has_as_much_as_each_who_sends(void **state)
{
	static const uint64_t users[] = { 1001, 1002, 1003 };

	for (uint32_t n = 1; n <= ARRAY_LEN(users); n++) {
		const uint32_t answers = answered_beside(*state, users, n);

		for (uint32_t i = 0; i < n; i++)
			is_as_much(answers, apps[i].packets);
	}
}

/* Clients of one user have the turn of one, all together. */
static void
a_reader_has_as_much_as_a_user_who_sends(void **state)
{
	static const uint64_t users[] = { 1001, 1001, 1001 };

	for (uint32_t n = 1; n <= ARRAY_LEN(users); n++) {
		const uint32_t answers = answered_beside(*state, users, n);
		uint64_t sent = 0;

		for (uint32_t i = 0; i < n; i++)
			sent += apps[i].packets;
		is_as_much(answers, sent);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(what_a_loss_leads_to_does_not_delay_answers),
		TEST(a_reader_has_as_much_as_each_who_sends),
		TEST(a_reader_has_as_much_as_a_user_who_sends),
	};

	return cmocka_run_group_tests(tests, bed_group_setup, NULL);
}
