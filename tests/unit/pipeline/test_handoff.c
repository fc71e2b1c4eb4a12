/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Frames that come to the wrong worker: those of other workers' QPs leave a burst, and frames that
 * others have handed over take their places. Nothing of that can be seen in what is answered.
 */
#include "bed.h"
#include "worker.h"

enum {
	ROUNDS = 3,  /* the first one finds the worker unaware of frames for others */
	FIRST = 0x40 /* QPN of another worker's QP, which nobody reads */
};

static struct rte_ring *in, *out[3];

/** The bed's worker is the first of three. */
static void
three_begin(struct bed *b)
{
	in = rte_ring_create("to_first", 64, 0, RING_F_SC_DEQ);
	out[1] = rte_ring_create("to_second", 64, 0, RING_F_SC_DEQ);
	out[2] = rte_ring_create("to_third", 64, 0, RING_F_SC_DEQ);
	assert_true(in != NULL && out[1] != NULL && out[2] != NULL);
	b->conf.workers_n = 3;
	b->conf.handoff_in = in;
	for (uint32_t i = 1; i < 3; i++) {
		b->conf.handoff[i] = out[i];
		atomic_store(&b->qps->slot[(FIRST + i) & b->qps->mask], 0x10000u * i | i);
	}
	bed_worker_again(b);
}

static void
three_end(struct bed *b)
{
	for (uint32_t i = 1; i < 3; i++) {
		atomic_store(&b->qps->slot[(FIRST + i) & b->qps->mask], 0);
		b->conf.handoff[i] = NULL;
		rte_ring_free(out[i]);
	}
	b->conf.workers_n = 1;
	b->conf.handoff_in = NULL;
	bed_worker_again(b);
	rte_ring_free(in);
}

/** A WRITE for the bed's QP (0), or for a QP of the second or third worker. */
static struct rte_mbuf *
write_for(uint32_t worker, uint32_t p)
{
	struct wire_fields f = write_only(p, MR_VA, 16);

	f.dest_qpn = worker == 0 ? 0 : FIRST + worker;
	return bed_frame(&f);
}

/** The next frame in this worker's ring is this one, and says which port it came by. */
static void
expect_handed(uint32_t worker, const struct rte_mbuf *frame)
{
	void *m = NULL;

	assert_int_equal(rte_ring_dequeue(out[worker], &m), 0);
	assert_ptr_equal(m, frame);
	assert_int_equal(((struct rte_mbuf *)m)->port, bed_port());
	rte_pktmbuf_free(m);
}

/*
 * RESP-SEQ-01: frames for three workers in one burst. Each worker's stay in their order, before
 * this worker knows that there are frames for others and after.
 */
static void
RESP_SEQ_01_for_three_workers(void **state)
{
	static const uint8_t whose[] = { 0, 1, 2, 1, 0, 0, 2, 2, 1, 0 };
	struct bed *b = *state;

	three_begin(b);
	for (uint32_t r = 0; r < ROUNDS; r++) {
		struct rte_mbuf *m[ARRAY_LEN(whose)];
		uint32_t own = 0;

		for (uint32_t i = 0; i < ARRAY_LEN(whose); i++) {
			m[i] = write_for(whose[i], whose[i] == 0 ? E + r * 4 + own++ : i);
			m[i]->port = UINT16_MAX;
			bed_put(b, m[i]);
		}
		bed_turn(b);
		expect_ack(b, 0x1f, E + r * 4 + 3, r * 4 + 4);
		expect_silence(b);
		for (uint32_t i = 0; i < ARRAY_LEN(whose); i++)
			if (whose[i] != 0)
				expect_handed(whose[i], m[i]);
		assert_int_equal(rte_ring_count(out[1]) + rte_ring_count(out[2]), 0);
		assert_int_equal(bed_stat(b, STAT_rx_handoff), 6 * (r + 1));
	}
	assert_int_equal(worker_port_stats(b->w, 0)->c[STAT_rx_handoff], 6 * ROUNDS);
	three_end(b);
}

/* All for one worker, which does not take them out: what its ring has no room for is counted. */
static void
full_ring(void **state)
{
	struct bed *b = *state;
	void *m;

	three_begin(b);
	for (uint32_t i = 0; i < 70; i++)
		bed_put(b, write_for(2, i));
	for (uint32_t i = 0; i < 3; i++)
		bed_turn(b);
	expect_silence(b);
	assert_int_equal(bed_stat(b, STAT_rx_handoff), 63);
	assert_int_equal(bed_stat(b, STAT_rx_handoff_lost), 7);
	while (rte_ring_dequeue(out[2], &m) == 0)
		rte_pktmbuf_free(m);
	three_end(b);
}

/*
 * What is not untagged IPv4 and UDP to the RoCE port stays until its headers have been read. A
 * packet with a tag leaves then; what names no QP never does (RX-PREC-01).
 */
static void
RX_PREC_01_what_is_not_plain(void **state)
{
	struct wire_fields f = write_only(0, MR_VA, 16);
	struct wire_path path = bed_path();
	struct bed *b = *state;
	struct rte_mbuf *m;

	three_begin(b);
	b->w->early_left = 1; /* as after a frame for another worker */
	path.vlan = true;
	path.vlan_tci = 5;
	f.dest_qpn = FIRST + 1;
	m = bed_frame_on(&path, &f);
	bed_put(b, m);
	bed_turn(b);
	expect_handed(1, m);
	m = write_for(1, 0);
	rte_pktmbuf_mtod(m, uint8_t *)[37] ^= 1; /* UDP to another port */
	bed_put(b, m);
	m = write_for(1, 0);
	m->data_len = m->pkt_len = 45; /* it ends where the QP number would be */
	bed_put(b, m);
	b->w->early_left = 1;
	bed_turn(b);
	expect_silence(b);
	assert_int_equal(bed_stat(b, STAT_rx_handoff), 1);
	assert_int_equal(rte_ring_count(out[1]), 0);
	three_end(b);
}

/** n frames into the worker's ring, as others hand them over. */
static void
hand_over(uint32_t first, uint32_t n, uint16_t port)
{
	for (uint32_t i = 0; i < n; i++) {
		struct rte_mbuf *m = write_for(0, first + i);

		m->port = port;
		assert_int_equal(rte_ring_enqueue(in, m), 0);
	}
}

/* Frames of the port and of other workers are one burst: one ACK answers both. */
static void
one_burst(void **state)
{
	struct bed *b = *state;

	three_begin(b);
	for (uint32_t i = 0; i < 8; i++)
		bed_put(b, write_for(0, E + i));
	hand_over(E + 8, 8, bed_port());
	bed_turn(b);
	expect_ack(b, 0x1f, E + 15, 16);
	expect_silence(b);
	assert_int_equal(bed_stat(b, STAT_rx_handoff_in), 8);
	assert_int_equal(worker_port_stats(b->w, 0)->c[STAT_rx_handoff_in], 8);
	three_end(b);
}

/* No more than a burst of what others handed over in a turn, however it is served. */
static void
one_burst_of_them_a_turn(void **state)
{
	struct bed *b = *state;

	three_begin(b);
	for (uint32_t i = 0; i < 8; i++)
		bed_put(b, write_for(0, E + i));
	hand_over(E + 8, 50, bed_port());
	bed_turn(b);
	assert_int_equal(rte_ring_count(in), 50 - PIPELINE_BURST);
	expect_ack(b, 0x1f, E + PIPELINE_BURST - 1, PIPELINE_BURST);
	expect_ack(b, 0x1f, E + 8 + PIPELINE_BURST - 1, 8 + PIPELINE_BURST);
	expect_silence(b);
	bed_turn(b);
	expect_ack(b, 0x1f, E + 57, 58);
	expect_silence(b);
	three_end(b);
}

/* Frames of another port are a burst of their own: stage 2 compares headers of one port. */
static void
of_another_port(void **state)
{
	struct bed *b = *state;

	three_begin(b);
	for (uint32_t i = 0; i < 8; i++)
		bed_put(b, write_for(0, E + i));
	hand_over(E + 8, 5, UINT16_MAX); /* nobody's: taken as the first port's */
	hand_over(E + 13, 3, bed_port());
	bed_turn(b);
	expect_ack(b, 0x1f, E + 7, 8);
	expect_ack(b, 0x1f, E + 15, 16);
	expect_silence(b);
	assert_int_equal(bed_stat(b, STAT_rx_handoff_in), 8);
	three_end(b);
}

/* Where no frame is for another worker any more, none is looked at for that. */
static void
nobody_elses(void **state)
{
	struct bed *b = *state;
	struct rte_mbuf *m;
	uint32_t bursts = 0;

	three_begin(b);
	assert_int_equal(b->w->early_left, 0);
	m = write_for(1, 0);
	bed_put(b, m);
	bed_turn(b);
	expect_handed(1, m);
	assert_true(b->w->early_left != 0);
	for (; b->w->early_left != 0; bursts++) {
		bed_put(b, write_for(0, E + bursts));
		bed_turn(b);
		expect_ack(b, 0x1f, E + bursts, bursts + 1);
	}
	assert_in_range(bursts, 16, 256);
	three_end(b);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(RESP_SEQ_01_for_three_workers),
		TEST(full_ring),
		TEST(RX_PREC_01_what_is_not_plain),
		TEST(one_burst),
		TEST(one_burst_of_them_a_turn),
		TEST(of_another_port),
		TEST(nobody_elses),
	};

	return cmocka_run_group_tests(tests, bed_group_setup, NULL);
}
