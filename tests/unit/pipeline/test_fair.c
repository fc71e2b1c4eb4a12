/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Clients of one worker: each has its share, whatever the others ask for. The clock stands; what is
 * counted is the packets and bytes that leave in so many turns.
 */
#include "apps_rig.h"

static void
run(struct bed *b, uint32_t turns)
{
	for (uint32_t i = 0; i < CLIENTS; i++)
		apps[i].packets = apps[i].bytes = 0;
	for (uint32_t t = 0; t < turns; t++) {
		for (uint32_t i = 0; i < CLIENTS; i++) {
			post(&apps[i]);
			acknowledge(b, &apps[i]);
		}
		bed_turn(b);
		count_output(b);
	}
}

/** Two clients, so many turns after the first few. */
static void
compete(struct bed *b, uint32_t turns)
{
	run(b, 8);
	run(b, turns);
}

static void
assert_near(double a, double b, double part)
{
	if (a < b * (1 - part) || a > b * (1 + part))
		fail_msg("%g is not within %g %% of %g", a, part * 100, b);
}

/* What a client with more QPs gets beside one with one: no more. */
static void
more_QPs_bring_no_more(void **state)
{
	struct bed *b = *state;

	attach(b, VICTIM, 1, WR_RDMA_WRITE, 64);
	attach(b, OTHER, 1, WR_RDMA_WRITE, 64);
	compete(b, 64);
	assert_near((double)apps[VICTIM].packets, (double)apps[OTHER].packets, 0.02);
	detach(b, OTHER);
	attach(b, OTHER, MOST_QPS, WR_RDMA_WRITE, 64);
	compete(b, 64);
	/* A change of QPs has its price, too. */
	assert_true(apps[VICTIM].packets >= apps[OTHER].packets);
	assert_true(apps[OTHER].packets * 2 >= apps[VICTIM].packets);
	detach(b, OTHER);
	detach(b, VICTIM);
}

/** Packets of each of two QPs of a client in 64 turns, of which some lost something of late. */
static void
two_send(struct bed *b, uint32_t lossy, uint32_t sent[2])
{
	struct app *a = &apps[VICTIM];

	attach(b, VICTIM, 2, WR_RDMA_WRITE, 64);
	a->depth = SENDQ_DEEP;
	for (uint32_t i = 0; i < lossy; i++)
		a->qp[i].qp->req.open = a->qp[i].qp->req.window;
	run(b, 8);
	for (uint32_t i = 0; i < 2; i++)
		sent[i] = a->qp[i].acked;
	run(b, 64);
	for (uint32_t i = 0; i < 2; i++) {
		assert_int_equal(requester_is_free(&a->qp[i].qp->req), i >= lossy);
		sent[i] = psn_distance(psn(a->qp[i].acked), psn(sent[i]));
	}
	detach(b, VICTIM);
}

/* REQ-NAK-01: what a loss leaves of the window is its price, fewer packets in a turn are none. */
static void
a_loss_costs_no_share(void **state)
{
	uint32_t none[2], one[2], both[2];

	two_send(*state, 0, none);
	two_send(*state, 1, one);
	two_send(*state, 2, both);
	assert_int_equal(none[0], none[1]);
	assert_near(one[0], one[1], 0.02);
	assert_near(one[0], none[0], 0.02);
	assert_near(both[0], both[1], 0.02);
	assert_true(both[0] <= none[0] / 2); /* what answers them comes between them */
}

/* Bytes count: a packet of 1024 bytes is worth several of 64. */
static void
long_messages_bring_fewer_packets(void **state)
{
	struct bed *b = *state;

	attach(b, VICTIM, 1, WR_RDMA_WRITE, 64);
	attach(b, OTHER, 1, WR_RDMA_WRITE, 32768);
	compete(b, 256);
	assert_true(apps[VICTIM].packets >= 3 * apps[OTHER].packets);
	assert_true(apps[OTHER].bytes >= apps[VICTIM].bytes);
	detach(b, OTHER);
	attach(b, OTHER, MOST_QPS, WR_RDMA_WRITE, 32768);
	compete(b, 256);
	assert_true(apps[VICTIM].packets >= 3 * apps[OTHER].packets);
	assert_true(apps[OTHER].bytes * 2 >= apps[VICTIM].bytes);
	detach(b, OTHER);
	detach(b, VICTIM);
}

/* Clients of one user have no more together than the client of another one. */
static void
more_clients_bring_no_more(void **state)
{
	const struct qp_client mine = { .user = 1001 }, crowd = { .user = 1002 };
	struct bed *b = *state;
	uint64_t all;

	attach_as(b, VICTIM, mine, 1, WR_RDMA_WRITE, 64);
	attach_as(b, OTHER, crowd, 1, WR_RDMA_WRITE, 64);
	attach_as(b, THIRD, crowd, 1, WR_RDMA_WRITE, 64);
	attach_as(b, FOURTH, crowd, 1, WR_RDMA_WRITE, 64);
	compete(b, 512);
	all = apps[OTHER].packets + apps[THIRD].packets + apps[FOURTH].packets;
	assert_near((double)apps[VICTIM].packets, (double)all, 0.03);
	assert_near((double)apps[OTHER].packets, (double)all / 3, 0.03);
	assert_near((double)apps[THIRD].packets, (double)all / 3, 0.03);
	/* One of them leaves. */
	detach(b, FOURTH);
	compete(b, 512);
	assert_near((double)apps[VICTIM].packets,
		(double)(apps[OTHER].packets + apps[THIRD].packets), 0.03);
	/* The other user leaves: each has a whole turn. */
	detach(b, VICTIM);
	run(b, 1);
	run(b, 1);
	assert_int_equal(b->out_n, 64);
	assert_near((double)apps[OTHER].packets, (double)apps[THIRD].packets, 0.2);
	detach(b, OTHER);
	detach(b, THIRD);
}

/* A READ is paid for when it is asked for: by what it brings, not by the length of the request. */
static void
a_READ_costs_what_it_brings(void **state)
{
	struct bed *b = *state;
	uint64_t asked;

	attach(b, VICTIM, 1, WR_RDMA_WRITE, 64);
	attach(b, OTHER, 4, WR_RDMA_READ, 65536);
	run(b, 1);
	run(b, 200);
	/* Nobody answers: at most 4 for each QP would go out at once. */
	asked = apps[OTHER].packets;
	assert_true(apps[VICTIM].packets >= 200 * 15);
	assert_true(asked * 65536 <= apps[VICTIM].bytes * 2 + 65536);
	detach(b, OTHER);
	detach(b, VICTIM);
}

/* Nothing is kept for a client that wants nothing: soon the other one has all of the worker. */
static void
what_one_leaves_the_other_has(void **state)
{
	struct bed *b = *state;

	attach(b, VICTIM, 1, WR_RDMA_WRITE, 64);
	attach(b, OTHER, 4, WR_RDMA_WRITE, 64);
	compete(b, 32);
	assert_in_range(b->out_n, 20, 40);
	detach(b, VICTIM);
	for (uint32_t i = 0; i < 4; i++) {
		run(b, 1);
		run(b, 1);
	}
	assert_int_equal(b->out_n, 64);
	detach(b, OTHER);
}

/* A client that does nothing for a while does not save up for later. */
static void
silence_earns_nothing(void **state)
{
	struct bed *b = *state;
	struct app *victim = &apps[VICTIM];

	attach(b, VICTIM, 1, WR_RDMA_WRITE, 64);
	attach(b, OTHER, 4, WR_RDMA_WRITE, 64);
	compete(b, 16);
	victim->qps_n = 0; /* it posts no more */
	run(b, 40);
	victim->qps_n = 1;
	run(b, 1);
	assert_in_range(victim->packets, 1, 17);
	run(b, 64);
	assert_true(victim->packets <= 64 * 17);
	assert_true(apps[OTHER].packets * 2 >= victim->packets);
	detach(b, OTHER);
	detach(b, VICTIM);
}

static void
a_weight_is_so_many_shares(void **state)
{
	struct bed *b = *state;

	attach_as(b, VICTIM, (struct qp_client){ .weight = 3 }, 1, WR_RDMA_WRITE, 64);
	attach(b, OTHER, 1, WR_RDMA_WRITE, 64);
	compete(b, 256);
	assert_near((double)apps[VICTIM].packets, 3 * (double)apps[OTHER].packets, 0.03);
	detach(b, OTHER);
	detach(b, VICTIM);
}

/** CLIENT_SET, while the client is at work. */
static void
set(struct bed *b, uint32_t i, uint32_t weight, uint64_t rate)
{
	struct mbox_msg m = { .type = MBOX_CLIENT_SET,
		.client = { .client = &apps[i].client, .weight = weight, .rate = rate } };

	assert_int_equal(bed_tell(b, &m), 0);
}

static void
a_weight_may_change(void **state)
{
	struct bed *b = *state;

	attach(b, VICTIM, 1, WR_RDMA_WRITE, 64);
	attach(b, OTHER, 1, WR_RDMA_WRITE, 64);
	compete(b, 256);
	assert_near((double)apps[VICTIM].packets, (double)apps[OTHER].packets, 0.03);
	set(b, VICTIM, 4, 0);
	compete(b, 256);
	assert_near((double)apps[VICTIM].packets, 4 * (double)apps[OTHER].packets, 0.03);
	set(b, VICTIM, 1, 0);
	compete(b, 256);
	assert_near((double)apps[VICTIM].packets, (double)apps[OTHER].packets, 0.03);
	detach(b, OTHER);
	detach(b, VICTIM);
}

/* A rate for one that had none: it has saved nothing up. And none again. */
static void
a_rate_may_change(void **state)
{
	struct bed *b = *state;

	attach(b, OTHER, 1, WR_RDMA_WRITE, 64);
	apps[VICTIM].qps_n = 0;
	run(b, 8);
	assert_int_not_equal(apps[OTHER].packets, 0);
	set(b, OTHER, 1, 1000000);
	run(b, 2000);
	b->now += 100 * TIME_NS_PER_MS; /* 16 KiB is what it may save up */
	run(b, 2000);
	assert_in_range(apps[OTHER].bytes, 15000, 18000);
	set(b, OTHER, 1, 0);
	run(b, 100);
	assert_true(apps[OTHER].packets > 100 * 4);
	detach(b, OTHER);
}

/* Bytes of frames in so many turns of so many ns, to what the rate allows. */
static double
moved(struct bed *b, uint64_t rate, uint32_t turns, ns_t each)
{
	const struct qp_client limited = { .rate = rate };
	const double allowed = (double)(turns * each) * 1e-9 * (double)rate;
	uint64_t bytes = 0;

	attach_as(b, OTHER, limited, 4, WR_RDMA_WRITE, 64);
	apps[VICTIM].qps_n = 0;
	run(b, 2000); /* what it may move at once */
	for (uint32_t t = 0; t < turns; t++) {
		b->now += each;
		run(b, 1);
		bytes += apps[OTHER].bytes;
	}
	detach(b, OTHER);
	return (double)bytes / allowed;
}

/* Nobody else is there; turns are long, and so short that a turn brings no whole byte. */
static void
a_rate_bounds_a_client_alone(void **state)
{
	struct bed *b = *state;

	assert_near(moved(b, 100000000, 2000, 5000), 1, 0.02);
	assert_near(moved(b, 1500000, 20000, 500), 1, 0.1);
}

/* What it asks for counts as what it sends. */
static void
a_rate_bounds_READs(void **state)
{
	const struct qp_client limited = { .rate = 100000000 };
	struct bed *b = *state;

	attach_as(b, OTHER, limited, 4, WR_RDMA_READ, 65536);
	apps[VICTIM].qps_n = 0;
	run(b, 1);
	run(b, 100); /* the clock stands: nothing more than the first one goes out */
	assert_int_equal(apps[OTHER].packets, 0);
	detach(b, OTHER);
}

/* A client with work and without bytes does not keep the worker awake. */
static void
over_its_rate_the_worker_may_sleep(void **state)
{
	const struct qp_client limited = { .rate = 1000000 };
	struct mbox_msg m = { .type = MBOX_QP_QUERY };
	struct bed *b = *state;
	struct qp_snapshot s;

	attach_as(b, OTHER, limited, 4, WR_RDMA_WRITE, 64);
	apps[VICTIM].qps_n = 0;
	m.query = (struct mbox_query){ apps[OTHER].qp[0].qp, &s };
	run(b, 2000);
	assert_true(worker_next(b->w) > b->now);
	assert_int_equal(bed_tell(b, &m), 0); /* whoever asks is told why nothing moves */
	assert_int_equal(s.waiting.rate, 1000000);
	assert_in_range(s.waiting.rate_until, b->now + 1, b->now + 10 * TIME_NS_PER_MS);
	assert_false(s.waiting.resends);
	b->now += 10 * TIME_NS_PER_MS; /* now it has some again */
	run(b, 1);
	assert_int_not_equal(apps[OTHER].packets, 0);
	detach(b, OTHER);
}

/** A client with a rate and one QP, without a timer; one READ of 64 KiB has left. */
static void
read_beyond_its_rate(struct bed *b, uint64_t rate)
{
	const struct qp_client limited = { .rate = rate };

	attach_as(b, OTHER, limited, 1, WR_RDMA_READ, MR_LEN);
	apps[VICTIM].qps_n = 0;
	apps[OTHER].depth = 1;
	apps[OTHER].qp[0].qp->req.timeout = 0;
	run(b, 1);
	assert_int_equal(apps[OTHER].packets, 1);
	apps[OTHER].opcode = WR_RDMA_WRITE;
	apps[OTHER].len = 64;
	apps[OTHER].depth = 2;
}

/* What a READ has brought beyond the rate is paid for by time alone, whether more waits or not. */
static void
a_debt_is_paid_in_silence(void **state)
{
	struct bed *b = *state;

	read_beyond_its_rate(b, 10000); /* 48 KiB more than it may move at once: 4.9 s */
	run(b, 1);
	assert_int_equal(apps[OTHER].packets, 0);
	detach(b, OTHER);

	read_beyond_its_rate(b, 10000);
	apps[OTHER].depth = 1; /* it has nothing more to send for so long */
	b->now += 6 * TIME_NS_PER_S;
	run(b, 1);
	assert_int_equal(apps[OTHER].packets, 0);
	apps[OTHER].depth = 2;
	run(b, 1);
	assert_int_equal(apps[OTHER].packets, 1);
	detach(b, OTHER);
}

/* 64 GiB at a byte a second: more nanoseconds than time has. */
static void
a_debt_may_be_for_ever(void **state)
{
	struct bed *b = *state;

	read_beyond_its_rate(b, 1);
	apps[OTHER].client.share.tokens = -(INT64_C(1) << 36);
	run(b, 1);
	assert_int_equal(apps[OTHER].packets, 0);
	assert_true(worker_next(b->w) > b->now + 3600 * TIME_NS_PER_S);
	detach(b, OTHER);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(more_QPs_bring_no_more),
		TEST(a_loss_costs_no_share),
		TEST(long_messages_bring_fewer_packets),
		TEST(more_clients_bring_no_more),
		TEST(a_READ_costs_what_it_brings),
		TEST(what_one_leaves_the_other_has),
		TEST(silence_earns_nothing),
		TEST(a_weight_is_so_many_shares),
		TEST(a_weight_may_change),
		TEST(a_rate_may_change),
		TEST(a_rate_bounds_a_client_alone),
		TEST(a_rate_bounds_READs),
		TEST(over_its_rate_the_worker_may_sleep),
		TEST(a_debt_is_paid_in_silence),
		TEST(a_debt_may_be_for_ever),
	};

	return cmocka_run_group_tests(tests, bed_group_setup, NULL);
}
