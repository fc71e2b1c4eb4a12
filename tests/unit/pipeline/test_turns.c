/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Whose frames are served first, when a port has more than the worker can do: peers take turns by
 * what their frames cost. One peer floods the port, with many QPs or with long frames; another one
 * sends a few WRITEs in each turn, behind all that waits. What counts is turns of the worker.
 */
#include "peers_rig.h"
#include "record.h"

enum {
	FEW = 4,       /* WRITEs of the small one in a turn */
	FLOOD = 900,   /* frames that wait at the port */
	NOTICED = 100, /* turns, after which the worker has seen who is there */
};

/** The port is never empty: what the big one sends fills it up. */
static void
flood(struct peer *p, uint16_t len, uint32_t each)
{
	while (rte_ring_count(bed_near_end()) < FLOOD)
		if (!peer_sends(p, len, each))
			break;
}

static uint64_t
dropped(const struct bed *b)
{
	return bed_stat(b, STAT_rx_backlog_drop);
}

/** All that is there is served, and explained by counters. */
static void
drain(struct bed *b)
{
	for (uint32_t i = 0; i < 2000; i++)
		peers_turn(b);
	assert_int_equal(rte_ring_count(bed_near_end()), 0);
	bed_turn(b);
}

/**
 * The small one has FEW more under way in each turn. @return the most that it waited for after the
 * worker had noticed.
 */
static uint32_t
most_owed(struct bed *b, struct peer *small, struct peer *big, uint16_t len, uint32_t each)
{
	uint32_t most = 0;

	for (uint32_t t = 0; t < NOTICED + 200; t++) {
		flood(big, len, each);
		for (uint32_t i = 0; i < FEW; i++)
			assert_true(peer_sends(small, 64, QPS));
		peers_turn(b);
		if (t >= NOTICED)
			most = RTE_MAX(most, peer_owed(small));
	}
	return most;
}

static void
many_QPs_bring_no_more(void **state)
{
	struct bed *b = *state;

	peer_begin(b, 0);
	peer_begin(b, 1);
	/* 900 frames are before its own at the port, which the worker takes 128 of in a turn. */
	assert_in_range(most_owed(b, &peers[0], &peers[1], 64, 1), FEW, FEW * 10);
	assert_int_equal(peers[0].naks, 0);
	drain(b);
	assert_int_equal(peer_owed(&peers[0]), 0);
	peer_end(b, 1);
	peer_end(b, 0);
}

/* So do long frames not; and what is lost is the big one's. */
static void
long_frames_bring_no_more(void **state)
{
	struct bed *b = *state;

	peer_begin(b, 0);
	peer_begin(b, 1);
	assert_in_range(most_owed(b, &peers[0], &peers[1], 1024, 32), FEW, FEW * 10);
	assert_true(dropped(b) != 0);
	drain(b);
	assert_int_equal(peers[0].naks, 0);
	assert_int_equal(peer_owed(&peers[0]), 0);
	peer_end(b, 1);
	peer_end(b, 0);
}

/*
 * Of two that flood the one that sends three times as much has no more, and not nothing; a third
 * that asks for little has that.
 */
static void
those_that_flood_share(void **state)
{
	struct bed *b = *state;
	uint64_t served[2] = { 0, 0 };

	for (uint32_t i = 0; i < 3; i++)
		peer_begin(b, i);
	for (uint32_t t = 0; t < NOTICED + 200; t++) {
		/* Of the second one there come three times as many. */
		for (uint32_t i = 0; rte_ring_count(bed_near_end()) < FLOOD; i++)
			peer_repeats(&peers[i % 4 == 0 ? 0 : 1]);
		for (uint32_t i = 0; i < FEW; i++)
			assert_true(peer_sends(&peers[2], 64, QPS));
		peers_turn(b);
		for (uint32_t i = 0; i < 2 && t == NOTICED; i++)
			served[i] = peer_served(&peers[i]);
	}
	for (uint32_t i = 0; i < 2; i++)
		served[i] = peer_served(&peers[i]) - served[i];
	assert_true(served[0] >= 200);
	assert_in_range(served[1], served[0] / 2, served[0] * 11 / 10);
	assert_int_equal(peers[2].naks, 0);
	drain(b);
	assert_int_equal(peer_owed(&peers[2]), 0);
	for (uint32_t i = 3; i-- != 0;)
		peer_end(b, i);
}

/* The big one has filled its room, and is silent then: that stops nobody. */
static void
one_that_pauses_stops_nobody(void **state)
{
	struct bed *b = *state;

	peer_begin(b, 0);
	peer_begin(b, 1);
	most_owed(b, &peers[0], &peers[1], 1024, 32);
	for (uint32_t t = 0; t < 400; t++) {
		for (uint32_t i = 0; i < FEW; i++)
			assert_true(peer_sends(&peers[0], 64, QPS));
		peers_turn(b);
		/* Frames of both are at the port in the first turns. */
		if (t >= FLOOD / 128 + 2)
			assert_in_range(peer_owed(&peers[0]), 0, FEW * 10);
	}
	drain(b);
	assert_int_equal(peers[0].naks, 0);
	assert_int_equal(peer_owed(&peers[0]), 0);
	peer_end(b, 1);
	peer_end(b, 0);
}

/*
 * RESP-SEQ-03 would be seen: as long as nothing is lost, frames of a QP are served in their order,
 * those of before the worker took turns, while it did, and after.
 */
static void
frames_of_a_peer_stay_in_order(void **state)
{
	struct bed *b = *state;

	peer_begin(b, 0);
	peer_begin(b, 1);
	for (uint32_t round = 0; round < 3; round++) {
		for (uint32_t t = 0; t < 3 * NOTICED; t++) {
			while (peer_owed(&peers[1]) < 400)
				assert_true(peer_sends(&peers[1], 64, 5));
			while (peer_owed(&peers[0]) < 100)
				assert_true(peer_sends(&peers[0], 256, 1));
			peers_turn(b);
		}
		drain(b);
		assert_int_equal(peer_owed(&peers[0]) + peer_owed(&peers[1]), 0);
	}
	assert_int_equal(peers[0].naks + peers[1].naks, 0);
	assert_int_equal(dropped(b), 0);
	assert_int_equal(bed_stat(b, STAT_out_of_sequence), 0);
	peer_end(b, 1);
	peer_end(b, 0);
}

/* One peer alone: a burst a turn, nothing is taken before its time, nothing is lost. */
static void
one_peer_is_served_as_it_comes(void **state)
{
	struct bed *b = *state;

	peer_begin(b, 0);
	for (uint32_t t = 0; t < 4 * NOTICED; t++) {
		flood(&peers[0], 64, 1);
		peers_turn(b);
		assert_int_equal(rte_ring_count(bed_near_end()), FLOOD - PIPELINE_BURST);
	}
	assert_int_equal(dropped(b), 0);
	drain(b);
	assert_int_equal(peer_owed(&peers[0]), 0);
	peer_end(b, 0);
}

/* So it is again when the others have gone. */
static void
it_is_over_when_one_is_left(void **state)
{
	struct bed *b = *state;

	peer_begin(b, 0);
	peer_begin(b, 1);
	most_owed(b, &peers[0], &peers[1], 64, 16);
	for (uint32_t t = 0; t < 400; t++) {
		flood(&peers[1], 64, 16);
		peers_turn(b);
	}
	for (uint32_t t = 0; t < NOTICED; t++) {
		flood(&peers[1], 64, 16);
		peers_turn(b);
		assert_int_equal(rte_ring_count(bed_near_end()), FLOOD - PIPELINE_BURST);
	}
	drain(b);
	peer_end(b, 1);
	peer_end(b, 0);
}

/* rx.turns=arrival: the small one waits behind all that has come before. */
static void
in_the_order_of_arrival(void **state)
{
	struct bed *b = *state;

	bed_qp_gone(b, b->qp);
	b->conf.by_arrival = true;
	bed_worker_again(b);
	b->qp = bed_qp(b, QPN, PEER_QPN);
	peer_begin(b, 0);
	peer_begin(b, 1);
	assert_true(
		most_owed(b, &peers[0], &peers[1], 64, 1) >= FEW * (FLOOD / PIPELINE_BURST - 1));
	assert_int_equal(dropped(b), 0);
	drain(b);
	peer_end(b, 1);
	peer_end(b, 0);
}

/* A frame with a VLAN tag, one of IPv6, one that is nothing: each is some peer's. */
static void
frames_of_all_kinds(void **state)
{
	struct bed *b = *state;
	struct wire_path path = bed_path();

	peer_begin(b, 0);
	peer_begin(b, 1);
	for (uint32_t t = 0; t < 2 * NOTICED; t++) {
		struct wire_fields f = write_only(E, MR_VA, 64);
		struct rte_mbuf *m;

		flood(&peers[1], 64, 1);
		for (uint32_t i = 0; i < FEW; i++)
			assert_true(peer_sends(&peers[0], 64, QPS));
		path.vlan = true;
		bed_put(b, bed_frame_on(&path, &f));
		path.vlan = false;
		path.ipv6 = true;
		bed_put(b, bed_frame_on(&path, &f));
		path.ipv6 = false;
		m = bed_frame_on(&path, &f);
		m->data_len = 20;
		m->pkt_len = 20;
		bed_put(b, m);
		m = bed_frame_on(&path, &f);
		memset(rte_pktmbuf_mtod_offset(m, void *, 12), 0x88, 20);
		bed_put(b, m);
		peers_turn(b);
	}
	drain(b);
	assert_int_equal(peers[0].naks, 0);
	assert_int_equal(peer_owed(&peers[0]), 0);
	peer_end(b, 1);
	peer_end(b, 0);
}

/* Packets as short as an ACK, behind a tag: their sender is told from one that floods with less. */
static void
short_frames_have_their_sender(void **state)
{
	struct bed *b = *state;
	struct wire_path path = bed_path();
	const struct wire_fields f = { OP_RC_SEND_ONLY, .pkey = 0xffff, .dest_qpn = 0xbad };
	uint64_t owed = 0, sent = 0;

	peer_begin(b, 0);
	path.vlan = true;
	path.vlan_tci = 5;
	for (uint32_t t = 0; t < NOTICED + 200; t++) {
		assert_true(peer_sends(&peers[0], 64, QPS)); /* there are several */
		while (rte_ring_count(bed_near_end()) < FLOOD) {
			struct rte_mbuf *m = bed_frame_on(&path, &f);

			memset(rte_pktmbuf_mtod_offset(m, void *, 12), 0x88, 2);
			m->data_len = 20;
			m->pkt_len = 20;
			bed_put(b, m);
		}
		for (uint32_t i = 0; i < FEW; i++, sent++)
			bed_put(b, bed_frame_on(&path, &f));
		peers_turn(b);
		if (t >= NOTICED)
			owed = RTE_MAX(owed, sent - bed_stat(b, STAT_rx_syndrome_15));
	}
	/* 900 frames are before them at the port, and a peer's part is 74 of the short ones. */
	assert_in_range(owed, FEW, FEW * 16);
	drain(b);
	peer_end(b, 0);
}

/* What still waits when the worker ends is given back: bed_teardown() counts buffers. */
static void
nothing_stays_behind(void **state)
{
	struct bed *b = *state;

	peer_begin(b, 0);
	peer_begin(b, 1);
	most_owed(b, &peers[0], &peers[1], 64, 1);
	peer_end(b, 1);
	peer_end(b, 0);
}

/** Two of them flood for so many turns, each with what is its own, until all is served. */
static void
flood_for(struct bed *b, uint32_t turns)
{
	for (uint32_t t = 0; t < turns; t++) {
		for (uint32_t i = 0; i < 28; i++)
			peer_sends(&peers[0], 64, 16);
		for (uint32_t i = 0; i < 6; i++)
			peer_sends(&peers[1], 500, 16);
		peers_turn(b);
		record_note(b);
	}
	for (uint32_t t = 0; t < 2 * NOTICED; t++) {
		peers_turn(b);
		record_note(b);
	}
	assert_int_equal(peer_owed(&peers[0]) + peer_owed(&peers[1]), 0);
}

/* When it is over, and there was a pause, the same frames are served in the same order. */
static void
the_same_again_after_a_pause(void **state)
{
	struct bed *b = *state;

	peer_begin(b, 0);
	peer_begin(b, 1);
	for (uint32_t round = 0; round < 16; round++) {
		flood_for(b, round == 0 ? 0 : NOTICED + round);
		record_pause(b);
		peers[0].next = peers[1].next = 0;
		record_now.n = 0;
		flood_for(b, NOTICED);
		record_compare(round);
		record_pause(b);
	}
	assert_int_equal(dropped(b), 0);
	peer_end(b, 1);
	peer_end(b, 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(many_QPs_bring_no_more),
		TEST(long_frames_bring_no_more),
		TEST(those_that_flood_share),
		TEST(one_that_pauses_stops_nobody),
		TEST(frames_of_a_peer_stay_in_order),
		TEST(one_peer_is_served_as_it_comes),
		TEST(it_is_over_when_one_is_left),
		TEST(in_the_order_of_arrival),
		TEST(frames_of_all_kinds),
		TEST(short_frames_have_their_sender),
		TEST(nothing_stays_behind),
		TEST(the_same_again_after_a_pause),
	};

	return cmocka_run_group_tests(tests, bed_group_setup, NULL);
}
