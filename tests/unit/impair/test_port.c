/* SPDX-License-Identifier: BSD-3-Clause */
/* Each action on a port, with a clock that the test steps. */
#include "impair_bed.h"

#include <errno.h>

#include "be.h"

#define US TIME_NS_PER_US

static void
no_rules_nothing_happens(void **state)
{
	struct impair_counters c;

	(void)state;
	bed_start(&(struct impair_conf){ 0 });
	bed_poll(32);
	assert_int_equal(bed.n, 0);
	for (uint32_t i = 0; i < 5; i++)
		bed_send(17, i);
	bed_poll(3);
	bed_expect(0, 1, 2);
	bed_poll(32);
	bed_expect(3, 4);
	assert_true(impair_next(bed.im) == UINT64_MAX);
	c = bed_counters();
	assert_int_equal(c.in, 5);
	assert_int_equal(c.dropped + c.duplicated + c.reordered + c.corrupted + c.delayed +
				 c.ce_marked + c.limited + c.no_mbuf,
		0);
	bed_stop();
}

static void
drops_the_packet_that_is_named(void **state)
{
	struct impair_rule r = { .action = IMPAIR_DROP,
		.times = 1,
		.given = IMPAIR_GIVEN_QP_NUM | IMPAIR_GIVEN_PSN,
		.qp_num = 17,
		.psn = 42 };

	(void)state;
	bed_start_rules(0, &r, 1);
	bed_send(17, 41);
	bed_send(18, 42);
	bed_send(17, 42);
	bed_send(17, 43);
	bed_send(17, 42);
	bed_poll(32);
	bed_expect(41, 42, 43, 42);
	assert_int_equal(bed_counters().dropped, 1);
	bed_stop();
}

static void
duplicates_follow_the_packet_or_come_later(void **state)
{
	struct impair_rule r[] = {
		{ .action = IMPAIR_DUPLICATE, .copies = 2, .given = IMPAIR_GIVEN_PSN, .psn = 1 },
		{ .action = IMPAIR_DUPLICATE, .delay_us = 5, .given = IMPAIR_GIVEN_PSN, .psn = 2 },
	};

	(void)state;
	bed_start_rules(0, r, 2);
	for (uint32_t i = 0; i < 4; i++)
		bed_send(17, i);
	bed_poll(32);
	bed_expect(0, 1, 1, 1, 2, 3);
	assert_ptr_not_equal(bed.m[1], bed.m[2]);
	assert_int_equal(bed.m[1]->pkt_len, FRAME_LEN);
	assert_int_equal(bed.m[2]->pkt_len, FRAME_LEN);
	assert_memory_equal(
		rte_pktmbuf_mtod(bed.m[1], void *), rte_pktmbuf_mtod(bed.m[2], void *), FRAME_LEN);
	assert_int_equal(bed_counters().duplicated, 3);
	assert_int_equal(bed_counters().held, 1);
	assert_int_equal(impair_next(bed.im), TIME_NS_PER_S + 5 * US);
	bed.now += 5 * US;
	bed_poll(32);
	bed_expect(2);
	bed_stop();
}

static void
copies_wait_when_the_burst_is_full(void **state)
{
	struct impair_rule r = { .action = IMPAIR_DUPLICATE };

	(void)state;
	bed_start_rules(0, &r, 1);
	for (uint32_t i = 0; i < 4; i++)
		bed_send(17, i);
	bed_poll(4);
	bed_expect(0, 0, 1, 1);
	assert_int_equal(impair_next(bed.im), 0);
	bed_send(17, 4);
	bed_poll(4); /* the new one queues up behind */
	bed_expect(2, 2, 3, 3);
	bed_poll(4);
	bed_expect(4, 4);
	bed_stop();
}

static void
corrupts_as_told_and_forgets_what_the_port_had_verified(void **state)
{
	struct impair_rule r = { .action = IMPAIR_CORRUPT,
		.given = IMPAIR_GIVEN_OFFSET,
		.offset = 60,
		.xor_mask = 0x5a,
		.every = 2 };
	struct rte_mbuf *m;
	uint8_t want[FRAME_LEN];

	(void)state;
	bed_start_rules(0, &r, 1);
	for (uint32_t i = 1; i <= 2; i++) {
		m = bed_frame(17, i, SEND_ONLY, false);
		m->ol_flags |= RTE_MBUF_F_RX_IP_CKSUM_GOOD | RTE_MBUF_F_RX_L4_CKSUM_GOOD;
		memcpy(want, rte_pktmbuf_mtod(m, void *), FRAME_LEN);
		bed_put(m);
	}
	bed_poll(32);
	bed_expect(1, 2);
	want[60] ^= 0x5a;
	assert_memory_equal(rte_pktmbuf_mtod(bed.m[1], void *), want, FRAME_LEN);
	assert_true((bed.m[0]->ol_flags & RTE_MBUF_F_RX_IP_CKSUM_GOOD) != 0);
	assert_true((bed.m[1]->ol_flags & RTE_MBUF_F_RX_IP_CKSUM_MASK) == 0);
	assert_true((bed.m[1]->ol_flags & RTE_MBUF_F_RX_L4_CKSUM_MASK) == 0);
	assert_int_equal(bed_counters().corrupted, 1);
	bed_stop();
}

/* Somebody else's reference, a clone, and a frame in pieces. */
static void
a_shared_frame_is_changed_in_a_copy_only(void **state)
{
	struct impair_rule r = { .action = IMPAIR_CORRUPT,
		.given = IMPAIR_GIVEN_OFFSET,
		.offset = 60,
		.xor_mask = 0xff };
	struct rte_mbuf *shared, *original, *clone;
	uint8_t before;

	(void)state;
	bed_start_rules(0, &r, 1);
	shared = bed_frame(17, 1, SEND_ONLY, false);
	before = *rte_pktmbuf_mtod_offset(shared, uint8_t *, 60);
	rte_mbuf_refcnt_update(shared, 1);
	bed_put(shared);
	original = bed_frame(17, 1, SEND_ONLY, false);
	clone = rte_pktmbuf_clone(original, bed.pool);
	assert_non_null(clone);
	bed_put(clone);
	bed_poll(32);
	bed_expect(1, 1);
	assert_int_equal(*rte_pktmbuf_mtod_offset(shared, uint8_t *, 60), before);
	assert_int_equal(*rte_pktmbuf_mtod_offset(original, uint8_t *, 60), before);
	for (uint32_t i = 0; i < 2; i++) {
		assert_int_equal(
			*rte_pktmbuf_mtod_offset(bed.m[i], uint8_t *, 60), (uint8_t)~before);
		assert_int_equal(bed.m[i]->port, shared->port);
		assert_int_equal(bed.m[i]->pkt_len, FRAME_LEN);
	}
	rte_pktmbuf_free(shared);
	rte_pktmbuf_free(original);
	bed_stop();
}

/* Cut a frame in two at `at`. */
static struct rte_mbuf *
chained(struct rte_mbuf *m, uint16_t at)
{
	struct rte_mbuf *tail = rte_pktmbuf_alloc(bed.pool);
	uint16_t rest = (uint16_t)(m->data_len - at);
	char *to;

	assert_non_null(tail);
	to = rte_pktmbuf_append(tail, rest);
	assert_non_null(to);
	memcpy(to, rte_pktmbuf_mtod_offset(m, char *, at), rest);
	assert_int_equal(rte_pktmbuf_trim(m, rest), 0);
	assert_int_equal(rte_pktmbuf_chain(m, tail), 0);
	return m;
}

static void
a_chained_frame_is_read_and_changed_across_its_pieces(void **state)
{
	static const uint16_t cuts[] = { 13, 15, 25, 40, 50, 60, 61 };
	struct impair_rule r[] = {
		{ .action = IMPAIR_CORRUPT,
			.given = IMPAIR_GIVEN_OFFSET | IMPAIR_GIVEN_PSN,
			.psn = 7,
			.offset = 60,
			.xor_mask = 0xff },
		{ .action = IMPAIR_CE, .given = IMPAIR_GIVEN_PSN, .psn = 7 },
	};

	(void)state;
	bed_start_rules(0, r, 2);
	for (size_t i = 0; i < ARRAY_LEN(cuts); i++) {
		uint8_t want[FRAME_LEN], got[FRAME_LEN];
		struct rte_mbuf *m = bed_frame(17, 7, SEND_ONLY, false);
		uint16_t sum;

		memcpy(want, rte_pktmbuf_mtod(m, void *), FRAME_LEN);
		bed_put(chained(m, cuts[i]));
		bed_poll(32);
		assert_int_equal(bed.n, 1);
		want[60] ^= 0xff;
		want[15] = 0x03; /* ECT(0) to CE: one more */
		sum = (uint16_t)(be16_load(want + 24) - 1);
		be16_store(want + 24, sum);
		assert_int_equal(bed.m[0]->pkt_len, FRAME_LEN);
		assert_memory_equal(rte_pktmbuf_read(bed.m[0], 0, FRAME_LEN, got), want, FRAME_LEN);
	}
	bed_stop();
}

static uint32_t
ipv4_sum(const uint8_t *h)
{
	uint32_t sum = 0;

	for (uint32_t i = 0; i < 20; i += 2)
		sum += be16_load(h + i);
	return (sum & 0xffff) + (sum >> 16);
}

/* Every ToS byte, with checksums around the carry. */
static void
marks_ce_and_keeps_the_header_checksum_right(void **state)
{
	struct impair_rule r = { .action = IMPAIR_CE };

	(void)state;
	bed_start_rules(0, &r, 1);
	for (uint32_t i = 0; i < 4096; i++) {
		struct rte_mbuf *m = bed_frame(17, i, SEND_ONLY, false);
		uint8_t *ip = rte_pktmbuf_mtod_offset(m, uint8_t *, 14);

		ip[1] = (uint8_t)i;
		be16_store(ip + 4, 0);
		be16_store(ip + 10, 0);
		/* An identification that makes the checksum 0 .. 15. */
		be16_store(ip + 4, (uint16_t)(~ipv4_sum(ip) - (i >> 8)));
		assert_int_equal((uint16_t)~ipv4_sum(ip), i >> 8);
		be16_store(ip + 10, (uint16_t)~ipv4_sum(ip));
		bed_put(m);
		bed_poll(1);
		assert_int_equal(bed.n, 1);
		ip = rte_pktmbuf_mtod_offset(bed.m[0], uint8_t *, 14);
		assert_int_equal(ip[1], (uint8_t)(i | 3));
		assert_int_equal(ipv4_sum(ip), 0xffff);
	}
	assert_int_equal(bed_counters().ce_marked, 4096);
	bed_stop();
}

static void
marks_ce_in_the_traffic_class_of_ipv6(void **state)
{
	struct impair_rule r = { .action = IMPAIR_CE };
	struct rte_mbuf *m;
	uint8_t want[128];

	(void)state;
	bed_start_rules(0, &r, 1);
	m = bed_frame(17, 1, SEND_ONLY, true);
	memcpy(want, rte_pktmbuf_mtod(m, void *), m->pkt_len);
	assert_int_equal(want[15], 0x20); /* ECT(0) */
	want[15] = 0x30;
	bed_put(m);
	bed_poll(32);
	bed_expect(1);
	assert_memory_equal(rte_pktmbuf_mtod(bed.m[0], void *), want, bed.m[0]->pkt_len);
	bed_stop();
}

static void
rules_change_while_packets_are_held(void **state)
{
	struct impair_rule late = { .action = IMPAIR_DELAY, .delay_us = 10 };
	struct impair_rule drop = { .action = IMPAIR_DROP, .packet = 2 };
	struct impair_rule bad = { .action = IMPAIR_ACTIONS };
	const struct impair_conf drops = { .seed = 5, .held_max = 9, .n_rules = 1, .rules = &drop };
	const struct impair_conf bads = { .n_rules = 1, .rules = &bad };
	struct impair_record rec[4];
	uint64_t from = 0;

	(void)state;
	bed_start_rules(0, &late, 1);
	bed_send(17, 1);
	bed_poll(32);
	assert_int_equal(bed.n, 0);
	assert_int_equal(impair_set(bed.im, &bads), -EINVAL);
	assert_int_equal(impair_get(bed.im)->rules[0].action, IMPAIR_DELAY);
	assert_int_equal(impair_log(bed.im, &from, rec, 4), 1);

	/* Twice before the poller looks: the last one counts. */
	assert_int_equal(impair_set(bed.im, &(struct impair_conf){ 0 }), 0);
	assert_int_equal(impair_set(bed.im, &drops), 0);
	assert_int_equal(impair_get(bed.im)->seed, 5);
	assert_int_equal(impair_get(bed.im)->rules[0].packet, 2);
	assert_int_equal(impair_get(bed.im)->held_max, 9);
	bed_poll(32); /* takes over */
	from = 0;
	assert_int_equal(impair_log(bed.im, &from, rec, 4), 0);
	bed_send(17, 2);
	bed_send(17, 3);
	bed_send(17, 4);
	bed_poll(32);
	bed_expect(2, 4);
	assert_int_equal(impair_log(bed.im, &from, rec, 4), 1);
	assert_int_equal(rec[0].psn, 3);
	assert_int_equal(impair_set(bed.im, &drops), 0);
	bed_poll(32);
	assert_int_equal(impair_set(bed.im, &drops), 0); /* frees what was retired */
	bed.now += 10 * US;
	bed_poll(32);
	bed_expect(1);
	bed_stop();
}

static void
detaching_gives_back_what_is_held(void **state)
{
	struct impair_rule r[] = {
		{ .action = IMPAIR_DELAY,
			.delay_us = 10,
			.given = IMPAIR_GIVEN_QP_NUM,
			.qp_num = 17 },
		{ .action = IMPAIR_REORDER, .given = IMPAIR_GIVEN_QP_NUM, .qp_num = 18 },
		{ .action = IMPAIR_DUPLICATE,
			.copies = 8,
			.given = IMPAIR_GIVEN_QP_NUM,
			.qp_num = 19 },
	};

	(void)state;
	bed_start_rules(0, r, 3);
	bed_send(17, 1);
	bed_send(18, 2);
	bed_send(19, 3);
	bed_poll(3);
	bed_expect(3, 3, 3);
	assert_int_equal(bed_counters().held, 8);
	bed_stop();
	impair_detach(NULL);
}

static void
a_bad_place_is_refused(void **state)
{
	struct impair_rule r = { .action = IMPAIR_ACTIONS };
	const struct impair_conf good = { 0 }, bad = { .n_rules = 1, .rules = &r };
	const struct impair_port nowhere = { .port_id = 31 };
	struct impair_port at;
	struct impair *im = NULL;

	(void)state;
	bed_start(&good);
	at = (struct impair_port){ .pool = bed.pool };
	assert_int_equal(impair_attach(&nowhere, &good, &im), -EINVAL);
	assert_int_equal(impair_attach(&at, &good, &im), -EINVAL); /* no clock */
	bed_stop();
	bed_start(&good);
	assert_int_equal(impair_set(bed.im, &bad), -EINVAL);
	bed_stop();
	assert_null(im);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_rules_nothing_happens),
		cmocka_unit_test(drops_the_packet_that_is_named),
		cmocka_unit_test(duplicates_follow_the_packet_or_come_later),
		cmocka_unit_test(copies_wait_when_the_burst_is_full),
		cmocka_unit_test(corrupts_as_told_and_forgets_what_the_port_had_verified),
		cmocka_unit_test(a_shared_frame_is_changed_in_a_copy_only),
		cmocka_unit_test(a_chained_frame_is_read_and_changed_across_its_pieces),
		cmocka_unit_test(marks_ce_and_keeps_the_header_checksum_right),
		cmocka_unit_test(marks_ce_in_the_traffic_class_of_ipv6),
		cmocka_unit_test(rules_change_while_packets_are_held),
		cmocka_unit_test(detaching_gives_back_what_is_held),
		cmocka_unit_test(a_bad_place_is_refused),
	};

	return cmocka_run_group_tests(tests, bed_group_setup, NULL);
}
