/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Whose frames are served first, when a port has more than the worker can do: peers take turns by
 * what their frames cost. One peer floods the port, with many QPs or with long frames; another one
 * sends a few WRITEs in each turn, behind all that waits. What counts is turns of the worker.
 */
#include "bed.h"

#include <string.h>

enum {
	QPS = 8,     /* of a peer */
	FEW = 4,     /* WRITEs of the small one in a turn */
	FLOOD = 900, /* frames that wait at the port */
	FIRST_QPN = 0x24,
	NOTICED = 100, /* turns, after which the worker has seen who is there */
};

struct peer {
	struct wire_path path; /* from it to us */
	struct qp *qp[QPS];
	uint32_t psn[QPS]; /* of the next request */
	uint32_t acked[QPS];
	uint32_t naks;
	uint32_t next; /* QP */
};

static struct peer peers[3];

static void
begin(struct bed *b, uint32_t i)
{
	struct peer *p = &peers[i];
	struct qp_attr attr = { .path_resolved = true, .path = bed_path() };

	*p = (struct peer){ .path = bed_path() };
	p->path.src_ip[3] = (uint8_t)(2 + i);
	memcpy(attr.path.smac, p->path.dmac, 6);
	memcpy(attr.path.dmac, p->path.smac, 6);
	memcpy(attr.path.src_ip, p->path.dst_ip, 4);
	memcpy(attr.path.dst_ip, p->path.src_ip, 4);
	for (uint32_t k = 0; k < QPS; k++) {
		const uint32_t qpn = FIRST_QPN + i * QPS + k;

		p->qp[k] = bed_qp(b, qpn, qpn);
		p->psn[k] = p->acked[k] = E;
		assert_int_equal(bed_modify(b, p->qp[k], &attr, QP_ATTR_AV), 0);
	}
}

static void
end(struct bed *b, uint32_t i)
{
	for (uint32_t k = 0; k < QPS; k++)
		bed_qp_gone(b, peers[i].qp[k]);
}

/** A WRITE of a peer arrives, if the port takes it. @param each  a QP has so many in a row. */
static bool
arrives(struct peer *p, uint16_t len, uint32_t each)
{
	const uint32_t k = p->next / each % QPS;
	struct wire_fields f = write_only(p->psn[k], MR_VA, len);
	struct rte_mbuf *m;

	f.dest_qpn = p->qp[k]->qpn;
	m = bed_frame_on(&p->path, &f);
	if (rte_ring_enqueue(bed_near_end(), m) != 0) {
		rte_pktmbuf_free(m);
		return false;
	}
	p->psn[k]++;
	p->next++;
	return true;
}

/** What was sent in this turn. */
static void
read_answers(struct bed *b)
{
	for (uint32_t i = 0; i < b->out_n; i++) {
		const uint32_t at = b->pkt[i].dest_qpn - FIRST_QPN;
		struct peer *p;

		if (b->pkt[i].dest_qpn == PEER_QPN)
			continue;
		p = &peers[at / QPS];
		if (wire_aeth(&b->pkt[i]).syndrome >> 5 != 0)
			p->naks++;
		else
			p->acked[at % QPS] = b->pkt[i].psn.v + 1;
	}
}

static void
turn(struct bed *b)
{
	bed_forget_output(b);
	worker_poll(b->w, b->now);
	bed_collect(b);
	assert_true(b->out_n < FRAMES);
	read_answers(b);
}

/** The port is never empty: what the big one sends fills it up. */
static void
flood(struct peer *p, uint16_t len, uint32_t each)
{
	while (rte_ring_count(bed_near_end()) < FLOOD)
		if (!arrives(p, len, each))
			break;
}

static uint32_t
owed(const struct peer *p)
{
	uint32_t n = 0;

	for (uint32_t k = 0; k < QPS; k++)
		n += p->psn[k] - p->acked[k];
	return n;
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
		turn(b);
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
			assert_true(arrives(small, 64, QPS));
		turn(b);
		if (t >= NOTICED)
			most = RTE_MAX(most, owed(small));
	}
	return most;
}

static void
many_QPs_bring_no_more(void **state)
{
	struct bed *b = *state;

	begin(b, 0);
	begin(b, 1);
	/* 900 frames are before its own at the port, which the worker takes 128 of in a turn. */
	assert_in_range(most_owed(b, &peers[0], &peers[1], 64, 1), FEW, FEW * 10);
	assert_int_equal(peers[0].naks, 0);
	drain(b);
	assert_int_equal(owed(&peers[0]), 0);
	end(b, 1);
	end(b, 0);
}

/* So do long frames not; and what is lost is the big one's. */
static void
long_frames_bring_no_more(void **state)
{
	struct bed *b = *state;

	begin(b, 0);
	begin(b, 1);
	assert_in_range(most_owed(b, &peers[0], &peers[1], 1024, 32), FEW, FEW * 10);
	assert_true(dropped(b) != 0);
	drain(b);
	assert_int_equal(peers[0].naks, 0);
	assert_int_equal(owed(&peers[0]), 0);
	end(b, 1);
	end(b, 0);
}

/** The WRITE before the first one arrives again: however much is lost, it is in sequence. */
static bool
arrives_again(struct peer *p)
{
	struct wire_fields f = write_only(E - 1, MR_VA, 64);
	struct rte_mbuf *m;

	f.dest_qpn = p->qp[p->next++ % QPS]->qpn;
	m = bed_frame_on(&p->path, &f);
	if (rte_ring_enqueue(bed_near_end(), m) == 0)
		return true;
	rte_pktmbuf_free(m);
	return false;
}

static uint64_t
served_of(const struct peer *p)
{
	uint64_t n = 0;

	for (uint32_t k = 0; k < QPS; k++)
		n += p->qp[k]->hot[STAT_duplicate_request];
	return n;
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
		begin(b, i);
	for (uint32_t t = 0; t < NOTICED + 200; t++) {
		/* Of the second one there come three times as many. */
		for (uint32_t i = 0; rte_ring_count(bed_near_end()) < FLOOD; i++)
			arrives_again(&peers[i % 4 == 0 ? 0 : 1]);
		for (uint32_t i = 0; i < FEW; i++)
			assert_true(arrives(&peers[2], 64, QPS));
		turn(b);
		for (uint32_t i = 0; i < 2 && t == NOTICED; i++)
			served[i] = served_of(&peers[i]);
	}
	for (uint32_t i = 0; i < 2; i++)
		served[i] = served_of(&peers[i]) - served[i];
	assert_true(served[0] >= 200);
	assert_in_range(served[1], served[0] / 2, served[0] * 11 / 10);
	assert_int_equal(peers[2].naks, 0);
	drain(b);
	assert_int_equal(owed(&peers[2]), 0);
	for (uint32_t i = 3; i-- != 0;)
		end(b, i);
}

/* The big one has filled its room, and is silent then: that stops nobody. */
static void
one_that_pauses_stops_nobody(void **state)
{
	struct bed *b = *state;

	begin(b, 0);
	begin(b, 1);
	most_owed(b, &peers[0], &peers[1], 1024, 32);
	for (uint32_t t = 0; t < 400; t++) {
		for (uint32_t i = 0; i < FEW; i++)
			assert_true(arrives(&peers[0], 64, QPS));
		turn(b);
		/* Frames of both are at the port in the first turns. */
		if (t >= FLOOD / 128 + 2)
			assert_in_range(owed(&peers[0]), 0, FEW * 10);
	}
	drain(b);
	assert_int_equal(peers[0].naks, 0);
	assert_int_equal(owed(&peers[0]), 0);
	end(b, 1);
	end(b, 0);
}

/*
 * RESP-SEQ-03 would be seen: as long as nothing is lost, frames of a QP are served in their order,
 * those of before the worker took turns, while it did, and after.
 */
static void
frames_of_a_peer_stay_in_order(void **state)
{
	struct bed *b = *state;

	begin(b, 0);
	begin(b, 1);
	for (uint32_t round = 0; round < 3; round++) {
		for (uint32_t t = 0; t < 3 * NOTICED; t++) {
			while (owed(&peers[1]) < 400)
				assert_true(arrives(&peers[1], 64, 5));
			while (owed(&peers[0]) < 100)
				assert_true(arrives(&peers[0], 256, 1));
			turn(b);
		}
		drain(b);
		assert_int_equal(owed(&peers[0]) + owed(&peers[1]), 0);
	}
	assert_int_equal(peers[0].naks + peers[1].naks, 0);
	assert_int_equal(dropped(b), 0);
	assert_int_equal(bed_stat(b, STAT_out_of_sequence), 0);
	end(b, 1);
	end(b, 0);
}

/* One peer alone: a burst a turn, nothing is taken before its time, nothing is lost. */
static void
one_peer_is_served_as_it_comes(void **state)
{
	struct bed *b = *state;

	begin(b, 0);
	for (uint32_t t = 0; t < 4 * NOTICED; t++) {
		flood(&peers[0], 64, 1);
		turn(b);
		assert_int_equal(rte_ring_count(bed_near_end()), FLOOD - PIPELINE_BURST);
	}
	assert_int_equal(dropped(b), 0);
	drain(b);
	assert_int_equal(owed(&peers[0]), 0);
	end(b, 0);
}

/* So it is again when the others have gone. */
static void
it_is_over_when_one_is_left(void **state)
{
	struct bed *b = *state;

	begin(b, 0);
	begin(b, 1);
	most_owed(b, &peers[0], &peers[1], 64, 16);
	for (uint32_t t = 0; t < 400; t++) {
		flood(&peers[1], 64, 16);
		turn(b);
	}
	for (uint32_t t = 0; t < NOTICED; t++) {
		flood(&peers[1], 64, 16);
		turn(b);
		assert_int_equal(rte_ring_count(bed_near_end()), FLOOD - PIPELINE_BURST);
	}
	drain(b);
	end(b, 1);
	end(b, 0);
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
	begin(b, 0);
	begin(b, 1);
	assert_true(
		most_owed(b, &peers[0], &peers[1], 64, 1) >= FEW * (FLOOD / PIPELINE_BURST - 1));
	assert_int_equal(dropped(b), 0);
	drain(b);
	end(b, 1);
	end(b, 0);
}

/* A frame with a VLAN tag, one of IPv6, one that is nothing: each is some peer's. */
static void
frames_of_all_kinds(void **state)
{
	struct bed *b = *state;
	struct wire_path path = bed_path();

	begin(b, 0);
	begin(b, 1);
	for (uint32_t t = 0; t < 2 * NOTICED; t++) {
		struct wire_fields f = write_only(E, MR_VA, 64);
		struct rte_mbuf *m;

		flood(&peers[1], 64, 1);
		for (uint32_t i = 0; i < FEW; i++)
			assert_true(arrives(&peers[0], 64, QPS));
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
		turn(b);
	}
	drain(b);
	assert_int_equal(peers[0].naks, 0);
	assert_int_equal(owed(&peers[0]), 0);
	end(b, 1);
	end(b, 0);
}

/* What still waits when the worker ends is given back: bed_teardown() counts buffers. */
static void
nothing_stays_behind(void **state)
{
	struct bed *b = *state;

	begin(b, 0);
	begin(b, 1);
	most_owed(b, &peers[0], &peers[1], 64, 1);
	end(b, 1);
	end(b, 0);
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
		TEST(nothing_stays_behind),
	};

	return cmocka_run_group_tests(tests, bed_group_setup, NULL);
}
