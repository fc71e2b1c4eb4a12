/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Peers of one worker: what one asks for does not keep the other waiting. Both read, or one writes;
 * what is counted is the packets that answer them in so many turns.
 */
#include "record.h"

#include <stdlib.h>

enum { MOST = 8, DEEP = 4, FIRST_QPN = 0x20 };

/** The peer's end of a QP. */
struct reader {
	struct qp *qp;
	uint32_t psn;  /* of the next request */
	uint32_t owed; /* packets that are still to come */
};

struct peer {
	struct wire_path path; /* from it to us */
	struct reader reader[MOST];
	uint32_t readers_n;
	uint32_t len; /* of a READ */
	uint64_t answered;
};

static struct peer peers[2];

/** Clients 1 .. n of the worker: the first one is of one user, the others of another one. */
static struct {
	struct qp_client client;
	void *bells;
} apps[3];

static void
attach(struct bed *b)
{
	for (uint32_t i = 0; i < ARRAY_LEN(apps); i++) {
		struct qp_client *c = &apps[i].client;
		struct mbox_msg m = { .type = MBOX_CLIENT_ATTACH, .client.client = c };

		*c = (struct qp_client){ .id = i + 1, .user = i == 0 ? 1001 : 1002 };
		apps[i].bells = aligned_alloc(64, ring_bells_size(64));
		memset(apps[i].bells, 0, ring_bells_size(64));
		ring_bells_attach(&c->bells, apps[i].bells, 64);
		assert_int_equal(bed_tell(b, &m), 0);
	}
}

static void
detach(struct bed *b)
{
	for (uint32_t i = 0; i < ARRAY_LEN(apps); i++) {
		struct mbox_msg m = { .type = MBOX_CLIENT_DETACH,
			.client.client = &apps[i].client };

		assert_int_equal(bed_tell(b, &m), 0);
		free(apps[i].bells);
	}
}

/** @param client of its first QP, the next one's are the next ones; 0: of none. */
static void
begin_of(struct bed *b, uint32_t i, uint8_t address, uint32_t readers, uint32_t len,
	uint32_t client, uint32_t clients)
{
	struct peer *p = &peers[i];
	struct qp_attr attr = { .path_resolved = true, .path = bed_path() };

	*p = (struct peer){ .path = bed_path(), .readers_n = readers, .len = len };
	p->path.src_ip[3] = address;
	memcpy(attr.path.smac, p->path.dmac, 6);
	memcpy(attr.path.dmac, p->path.smac, 6);
	memcpy(attr.path.src_ip, p->path.dst_ip, 4);
	memcpy(attr.path.dst_ip, p->path.src_ip, 4);
	for (uint32_t k = 0; k < readers; k++) {
		const uint32_t qpn = FIRST_QPN + i * MOST + k;
		const struct qp_alloc_params params = { .max_recv_wr = 16,
			.max_recv_sge = 4,
			.max_dest_rd_atomic = DEEP,
			.client = client + k % clients };

		p->reader[k] = (struct reader){ .qp = bed_qp_with(b, qpn, qpn, &params), .psn = E };
		assert_int_equal(bed_modify(b, p->reader[k].qp, &attr, QP_ATTR_AV), 0);
	}
}

static void
begin(struct bed *b, uint32_t i, uint8_t address, uint32_t readers, uint32_t len)
{
	begin_of(b, i, address, readers, len, 0, 1);
}

static void
end(struct bed *b, uint32_t i)
{
	for (uint32_t k = 0; k < peers[i].readers_n; k++)
		bed_qp_gone(b, peers[i].reader[k].qp);
}

/** Each reader has as many READs under way as it may. */
static void
ask(struct bed *b, struct peer *p)
{
	const uint32_t packets = (p->len + PMTU - 1) / PMTU;

	for (uint32_t k = 0; k < p->readers_n; k++) {
		struct reader *r = &p->reader[k];

		while (r->owed + packets <= DEEP * packets) {
			struct wire_fields f = read_request(r->psn, MR_VA, p->len);

			f.dest_qpn = r->qp->qpn;
			bed_put(b, bed_frame_on(&p->path, &f));
			r->psn += packets;
			r->owed += packets;
		}
	}
}

static void
run(struct bed *b, uint32_t turns)
{
	peers[0].answered = peers[1].answered = 0;
	for (uint32_t t = 0; t < turns; t++) {
		ask(b, &peers[0]);
		ask(b, &peers[1]);
		bed_turn(b);
		assert_true(b->out_n < FRAMES);
		for (uint32_t i = 0; i < b->out_n; i++) {
			const uint32_t at = b->pkt[i].dest_qpn - FIRST_QPN;

			peers[at / MOST].answered++;
			peers[at / MOST].reader[at % MOST].owed--;
		}
	}
}

static void
more_QPs_and_longer_READs_bring_no_more(void **state)
{
	struct bed *b = *state;

	begin(b, 0, 2, 1, 1024);
	begin(b, 1, 3, MOST, 65536);
	run(b, 8);
	run(b, 200);
	assert_true(peers[0].answered * 100 >= peers[1].answered * 95);
	assert_true(peers[1].answered >= 200 * 2);
	end(b, 1);
	end(b, 0);
}

/* All at one address. What two clients of a user are asked for has the turns of one. */
static void
a_user_has_turns(void **state)
{
	struct bed *b = *state;

	attach(b);
	begin_of(b, 0, 2, 1, 65536, 1, 1);
	begin_of(b, 1, 2, MOST, 65536, 2, 2);
	run(b, 8);
	run(b, 200);
	assert_true(peers[0].answered * 100 >= peers[1].answered * 95);
	assert_true(peers[1].answered * 2 >= peers[0].answered);
	end(b, 1);
	end(b, 0);
	detach(b);
}

/* QPs of one peer share what it has. */
static void
a_peer_is_an_address(void **state)
{
	struct bed *b = *state;

	begin(b, 0, 2, 1, 4096);
	begin(b, 1, 2, 3, 4096);
	run(b, 8);
	run(b, 200);
	assert_in_range(
		peers[1].answered, peers[0].answered * 29 / 10, peers[0].answered * 31 / 10);
	end(b, 1);
	end(b, 0);
}

/* A peer that asks for nothing any more leaves all of the turn to the other one. */
static void
what_one_leaves_the_other_has(void **state)
{
	struct bed *b = *state;

	begin(b, 0, 2, 1, 1024);
	begin(b, 1, 3, 4, 65536);
	run(b, 8);
	run(b, 1);
	assert_in_range(peers[1].answered, 1, 8);
	peers[0].readers_n = 0;
	run(b, 100);
	run(b, 1);
	assert_int_equal(peers[1].answered, 4 * 8); /* each QP of it, in a turn */
	peers[0].readers_n = 1;
	end(b, 1);
	end(b, 0);
}

/** So many WRITEs of the first reader of a peer arrive. */
static void
write_some(struct bed *b, struct peer *p, uint32_t n, uint16_t len)
{
	struct reader *r = &p->reader[0];

	for (uint32_t i = 0; i < n; i++) {
		struct wire_fields f = write_only(r->psn++, MR_VA, len);

		f.dest_qpn = r->qp->qpn;
		bed_put(b, bed_frame_on(&p->path, &f));
	}
}

/** A turn; only what answers the second peer is counted. */
static uint32_t
answered_in_turn(struct bed *b)
{
	uint32_t n = 0;

	ask(b, &peers[1]);
	bed_turn(b);
	for (uint32_t i = 0; i < b->out_n; i++) {
		const uint32_t at = b->pkt[i].dest_qpn - FIRST_QPN;

		if (at < MOST)
			continue;
		peers[1].reader[at % MOST].owed--;
		n++;
	}
	return n;
}

/*
 * A peer that asks for nothing that is answered later, but writes: beside it the other one has a
 * quantum in each turn as well, and not all of it that 64 answers take. A packet of 1024 bytes
 * costs somewhat less than a third of the quantum, and to go over to another QP as much.
 */
static void
WRITEs_do_not_wait_for_answers(void **state)
{
	struct bed *b = *state;
	uint32_t n = 0;

	begin(b, 0, 2, 1, 0);
	begin(b, 1, 3, 4, 65536);
	for (uint32_t t = 0; t < 8; t++)
		answered_in_turn(b);
	assert_int_equal(answered_in_turn(b), 4 * 8);
	for (uint32_t t = 0; t < 100; t++) {
		write_some(b, &peers[0], 8, 64);
		n += answered_in_turn(b);
	}
	assert_in_range(n, 100 * 2, 100 * 3);
	/* It writes again when the ACKs have come to it, some turns later. */
	for (uint32_t t = 0; t < 16; t++)
		assert_in_range(answered_in_turn(b), 1, 4);
	for (uint32_t t = 0; t < 200; t++)
		n = answered_in_turn(b);
	assert_int_equal(n, 4 * 8);
	end(b, 1);
	end(b, 0);
}

/** So many turns. @return answers to the second peer in the last one. */
static uint32_t
answered_after(struct bed *b, uint32_t turns)
{
	uint32_t n = 0;

	for (uint32_t t = 0; t < turns; t++)
		n = answered_in_turn(b);
	return n;
}

/*
 * A turn with 16 WRITEs of 1024 bytes is long for all: as much of it is for answers, whoever it is.
 * An answer costs somewhat more than a WRITE, for it comes with a request.
 */
static void
a_long_turn_is_long_for_answers(void **state)
{
	struct bed *b = *state;

	begin(b, 0, 2, 1, 0);
	begin(b, 1, 3, 4, 65536);
	answered_after(b, 8);
	for (uint32_t who = 0; who < 2; who++) {
		uint32_t n = 0;

		for (uint32_t t = 0; t < 100; t++) {
			write_some(b, &peers[0], 16, 1024);
			n += answered_in_turn(b);
		}
		assert_in_range(n, 100 * 16 / 2, 100 * 16);
		/* Short ones do not make it long. */
		write_some(b, &peers[0], 8, 64);
		assert_in_range(answered_in_turn(b), 0, 3);
		end(b, 0);
		begin(b, 0, 3, 1, 0); /* the one that reads */
	}
	end(b, 1);
	end(b, 0);
}

/** Requests of ours: WRITEs of 1024 bytes, so many. */
static void
post_writes(struct bed *b, struct ring *sq, uint32_t n)
{
	struct mbox_msg m = { .type = MBOX_QP_POSTED };

	for (uint32_t i = 0; i < n; i++) {
		struct ring_send_wqe *wqe = ring_produce_slot(sq, 16);

		assert_non_null(wqe);
		memset(wqe, 0, sq->stride);
		wqe->opcode = WR_RDMA_WRITE;
		wqe->num_sge = 1;
		wqe->sge[0] = (struct ring_sge){ MR_VA, 1024, MR_KEY };
		ring_produce_commit(sq);
	}
	m.qp.qp = b->qp;
	assert_int_equal(mbox_send_down(&b->mbox, &m), 0);
}

/** A response to a request of the bed's QP. */
static void
respond(struct bed *b, uint8_t opcode, uint32_t p)
{
	const struct wire_fields f = {
		.opcode = opcode, .psn = psn(p), .aeth = { .syndrome = AETH_CREDIT_NONE }
	};

	bed_put(b, bed_frame(&f));
}

/* So it is with what we send ourselves: answers neither wait for it nor hold it up. */
static void
a_turn_that_sends_is_long_for_answers(void **state)
{
	struct bed *b = *state;
	struct ring sq;
	uint32_t sent = 0, n = 0, told = 0;
	struct mbox_msg done;

	ring_attach(&sq, b->qp->sq.ring.sh, b->qp->sq.ring.mask + 1, b->qp->sq.ring.stride, false);
	begin(b, 1, 3, 4, 65536);
	answered_after(b, 8);
	for (uint32_t t = 0; t < 400; t++) {
		if (sq.prod - b->qp->sq.ring.cons <= 8) {
			post_writes(b, &sq, 8);
			told++;
		}
		told -= mbox_recv_done(&b->mbox, &done, 1);
		n += answered_in_turn(b);
		if (b->qp->req.next.v - S == sent)
			continue;
		sent = b->qp->req.next.v - S;
		respond(b, OP_RC_ACKNOWLEDGE, S + sent - 1);
	}
	while (told != 0) {
		bed_turn(b);
		told -= mbox_recv_done(&b->mbox, &done, 1);
	}
	assert_true(sent >= 400);
	assert_in_range(n, sent, sent + 400 * 3); /* quanta alone: two or three a turn */
	end(b, 1);
}

/* An ACK tells of somebody who waits, so there are quanta. A part of a long READ does not. */
static void
long_READs_of_ours_do_not_delay_answers(void **state)
{
	struct bed *b = *state;

	begin(b, 1, 3, 4, 65536);
	assert_int_equal(answered_after(b, 9), 4 * 8);
	for (uint32_t t = 0; t < 100; t++) {
		respond(b, OP_RC_READ_RESPONSE_MIDDLE, S - 1);
		assert_int_equal(answered_in_turn(b), 4 * 8);
	}
	respond(b, OP_RC_ACKNOWLEDGE, S - 1);
	answered_in_turn(b);
	assert_in_range(answered_in_turn(b), 2, 3);
	assert_int_equal(answered_after(b, 200), 4 * 8);
	end(b, 1);
}

/** Both ask, until all is answered. @return answers of the first turn to the second peer. */
static uint32_t
answered_first(struct bed *b)
{
	uint32_t first = 0;

	ask(b, &peers[0]);
	ask(b, &peers[1]);
	bed_turn(b);
	for (uint32_t i = 0; i < b->out_n; i++)
		first += b->pkt[i].dest_qpn >= FIRST_QPN + MOST;
	do {
		bed_turn(b);
	} while (b->out_n != 0);
	for (uint32_t i = 0; i < 2; i++)
		for (uint32_t k = 0; k < peers[i].readers_n; k++)
			peers[i].reader[k].owed = 0;
	return first;
}

/*
 * What a peer was answered beyond its turn is forgotten once nobody waits any more: the same
 * requests of new QPs are answered in the same way again.
 */
static void
a_debt_ends_with_the_line(void **state)
{
	struct bed *b = *state;

	for (uint32_t n = 0; n < 64; n++) {
		uint32_t first = 0;

		for (uint32_t i = 0; i < 4; i++) {
			uint32_t now;

			begin(b, 0, 2, 1, 65536);
			begin(b, 1, 3, 1 + n % 4, (1 + n / 4) * PMTU);
			now = answered_first(b);
			first = i == 0 ? now : first;
			assert_int_equal(now, first);
			end(b, 1);
			end(b, 0);
		}
	}
}

/** Peers ask once, in the order of the bits of `who`, until all is answered. */
static void
ask_once(struct bed *b, uint32_t who)
{
	do {
		if (who != 0)
			ask(b, &peers[who & 1]);
		who >>= 1;
		bed_turn(b);
		record_note(b);
	} while (b->out_n != 0 || who > 1);
	for (uint32_t i = 0; i < 2; i++)
		for (uint32_t k = 0; k < peers[i].readers_n; k++)
			peers[i].reader[k].owed = 0;
}

/* After a pause the same requests are answered in the same order, whatever was asked before. */
static void
the_same_again_after_a_pause(void **state)
{
	/* The highest bit is none: it ends them. */
	static const uint32_t between[] = { 0, 2, 3, 4 + 1, 4 + 2, 8 + 5, 8 + 2 };
	struct bed *b = *state;

	begin(b, 0, 2, 2, 3000);
	begin(b, 1, 3, 3, 1024);
	for (uint32_t i = 0; i < 2 * ARRAY_LEN(between); i++) {
		if (i % 2 != 0)
			write_some(b, &peers[0], 8, 64);
		ask_once(b, between[i / 2]);
		record_pause(b);
		record_now.n = 0;
		ask_once(b, 2);     /* one of them alone */
		ask_once(b, 4 + 1); /* the other one, and then this one */
		record_compare(i);
		record_pause(b);
	}
	end(b, 1);
	end(b, 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(more_QPs_and_longer_READs_bring_no_more),
		TEST(a_user_has_turns),
		TEST(a_peer_is_an_address),
		TEST(what_one_leaves_the_other_has),
		TEST(WRITEs_do_not_wait_for_answers),
		TEST(a_long_turn_is_long_for_answers),
		TEST(a_turn_that_sends_is_long_for_answers),
		TEST(long_READs_of_ours_do_not_delay_answers),
		TEST(a_debt_ends_with_the_line),
		TEST(the_same_again_after_a_pause),
	};

	return cmocka_run_group_tests(tests, bed_group_setup, NULL);
}
