/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * More doorbells than a turn takes: the worker looks ahead at numbers that nothing is known of yet,
 * and each is answered in its turn all the same. Few of them: their queues are watched.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

#include "bed.h"
#include "ring_bell.h"
#include "ring_send.h"
#include "worker.h"

enum { BELLS = 64, QPS = 36, FIRST = 0x52, NOBODY = 0x3f0000 };

static struct qp_client client;
static struct ring_bells bells; /* the client's view */
static struct qp *qps[QPS];

static int
setup(void **state)
{
	static uint32_t memory[BELLS] __attribute__((aligned(64)));
	struct mbox_msg m = { .type = MBOX_CLIENT_ATTACH };
	struct bed *b;

	assert_int_equal(bed_setup(state), 0);
	b = *state;
	memset(memory, 0, sizeof(memory));
	client = (struct qp_client){ .id = 1 };
	ring_bells_attach(&client.bells, memory, BELLS);
	ring_bells_attach(&bells, memory, BELLS);
	m.client.client = &client;
	assert_int_equal(bed_tell(b, &m), 0);
	for (uint32_t i = 0; i < QPS; i++) {
		qps[i] = bed_qp(b, FIRST + i, 0x100 + i);
		qps[i]->sq.share = &client.share;
	}
	return 0;
}

static int
teardown(void **state)
{
	struct bed *b = *state;
	struct mbox_msg m = { .type = MBOX_CLIENT_DETACH };

	for (uint32_t i = 0; i < QPS; i++)
		bed_qp_gone(b, qps[i]);
	m.client.client = &client;
	assert_int_equal(bed_tell(b, &m), 0);
	return bed_teardown(state);
}

#define BELLS_TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

/** A request. @return does its doorbell have to be rung? */
static bool
put(uint32_t i, uint32_t len)
{
	struct ring *r = &qps[i]->sq.ring;
	struct ring_send_wqe *wqe;
	struct ring producer;

	ring_attach(&producer, r->sh, r->mask + 1, r->stride, false);
	wqe = ring_produce_slot(&producer, 16);
	assert_non_null(wqe);
	memset(wqe, 0, producer.stride);
	wqe->opcode = WR_RDMA_WRITE;
	wqe->num_sge = len != 0;
	wqe->sge[0] = (struct ring_sge){ .addr = MR_VA, .length = len, .lkey = MR_KEY };
	ring_produce_commit(&producer);
	return ring_bell_is_due(&producer);
}

static void
ring_for(uint32_t i)
{
	assert_int_equal(ring_bells_put(&bells, FIRST + i), 0);
}

/** As lib/client/post.c does it: a request, and its doorbell. */
static void
post_long(uint32_t i, uint32_t len)
{
	assert_true(put(i, len));
	ring_for(i);
}

static void
post(uint32_t i)
{
	post_long(i, 0);
}

/** Turns until no number waits; a doorbell that is answered sends one packet. */
static uint32_t
turns(struct bed *b)
{
	uint32_t sent = 0;

	for (uint32_t i = 0; i < 20; i++) {
		bed_turn(b);
		sent += b->out_n;
		bed_forget_output(b);
	}
	return sent;
}

static void
each_is_answered(void **state)
{
	struct bed *b = *state;

	for (uint32_t i = 0; i < QPS; i++)
		post(i);
	assert_int_equal(turns(b), QPS);
	assert_int_equal(bed_stat(b, STAT_doorbells), QPS);
	for (uint32_t i = 0; i < QPS; i++)
		assert_int_equal(qp_stat(qps[i], STAT_sent_pkts), 1);
}

/* Numbers of no QP, of another worker's, of one that goes before its turn. */
static void
those_of_nobody(void **state)
{
	struct bed *b = *state;

	for (uint32_t i = 0; i < 16; i++)
		post(i);
	for (uint32_t i = 0; i < 8; i++)
		assert_int_equal(ring_bells_put(&bells, NOBODY + i * 7), 0);
	for (uint32_t i = 16; i < 32; i++)
		post(i);
	qp_table_give(b->qps, qps[20], 1);
	qps[20]->worker = 1;
	bed_turn(b); /* the next numbers were looked at */
	assert_int_equal(b->out_n, 16);
	bed_forget_output(b);
	qp_table_remove(b->qps, qps[18]); /* it is one of them */
	assert_int_equal(turns(b), 14);
	assert_int_equal(bed_stat(b, STAT_doorbells), 30);
	assert_int_equal(bed_stat(b, STAT_doorbell_garbage), 10);
	qp_table_give(b->qps, qps[20], 0);
	qps[20]->worker = 0;
	assert_int_equal(qp_table_insert(b->qps, qps[18]), 0);
}

/* A QP that nobody is beside has all packets of a turn, while they are short: a turn is brief. */
static void
alone_has_the_turn(void **state)
{
	struct bed *b = *state;

	qps[0]->req.window = qps[1]->req.window = 1000;
	qps[0]->req.pmtu = 256;
	post_long(0, 60 * 256);
	bed_turn(b);
	assert_int_equal(b->out_n, 60);
	assert_int_equal(qps[1]->req.pmtu, 1024);
	post_long(1, 60 * 1024);
	bed_turn(b);
	assert_int_equal(b->out_n, 16);
}

/** One turn. @return how many packets it sent. */
static uint32_t
turn(struct bed *b)
{
	uint32_t n;

	bed_turn(b);
	n = b->out_n;
	bed_forget_output(b);
	return n;
}

/* The worker looks at the queue by itself for a while, and then the bell rings again. */
static void
a_few_are_watched(void **state)
{
	struct bed *b = *state;

	post(0);
	assert_int_equal(turn(b), 1);
	for (uint32_t i = 0; i < 3; i++) {
		for (uint32_t vain = 1; vain < WATCHED_VAIN; vain++)
			assert_int_equal(turn(b), 0);
		assert_true(worker_is_rung(b->w)); /* it must not sleep: nobody would wake it */
		assert_false(put(0, 0));
		assert_int_equal(turn(b), 1);
	}
	assert_int_equal(bed_stat(b, STAT_doorbells), 1);
	for (uint32_t vain = 0; vain < WATCHED_VAIN; vain++)
		assert_int_equal(turn(b), 0);
	assert_false(worker_is_rung(b->w));
	post(0);
	assert_true(worker_is_rung(b->w));
	assert_int_equal(turn(b), 1);
	assert_int_equal(bed_stat(b, STAT_doorbells), 2);
}

enum { TIMES = 2000, SECONDS = 1, LOST_TURNS = 20000 };

static _Atomic uint32_t turns_run, posted;
static _Atomic bool over;

static bool
has_completed(void)
{
	const struct ring_shared *sh = qps[0]->sq.ring.sh;

	return atomic_load(&sh->cons) == atomic_load(&sh->prod);
}

/** Post again and again about when the worker stops looking, a little later each time. */
static void *
poster(void *unused)
{
	cpu_set_t any;

	/* EAL has bound this program to one core. */
	memset(&any, 0xff, sizeof(any));
	pthread_setaffinity_np(pthread_self(), sizeof(any), &any);
	for (uint32_t i = 0; i < TIMES; i++) {
		uint32_t from;

		while (!has_completed() && !atomic_load(&over))
			sched_yield();
		from = atomic_load(&turns_run);
		while (atomic_load(&turns_run) - from < WATCHED_VAIN - 2 && !atomic_load(&over))
			sched_yield(); /* the worker may be on this CPU, too */
		if (atomic_load(&over))
			break;
		for (volatile uint32_t late = 0; late < i; late = late + 1)
			;
		if (put(0, 0))
			ring_for(0);
		atomic_store(&posted, i + 1);
	}
	return unused;
}

/* Either the worker sees what is posted while it stops looking, or the bell has to be rung. */
static void
none_is_lost_at_the_end(void **state)
{
	struct wire_fields ack = { .opcode = OP_RC_ACKNOWLEDGE,
		.dest_qpn = FIRST,
		.aeth = { .syndrome = AETH_CREDIT_NONE } };
	struct bed *b = *state;
	uint32_t sent = 0, vain = 0;
	time_t until = time(NULL) + SECONDS;
	bool ends = false;
	pthread_t t;

	atomic_store(&turns_run, 0);
	atomic_store(&posted, 0);
	atomic_store(&over, false);
	assert_int_equal(pthread_create(&t, NULL, poster, NULL), 0);
	while (vain < LOST_TURNS && (!ends || atomic_load(&posted) != sent)) {
		bed_turn(b);
		if (b->out_n != 0) {
			ack.psn = b->pkt[b->out_n - 1].psn;
			sent += b->out_n;
			bed_forget_output(b);
			bed_send(b, &ack);
		}
		vain = atomic_load(&posted) > sent ? vain + 1 : 0;
		atomic_fetch_add(&turns_run, 1);
		if (!ends && (sent == TIMES || (sent != 0 && time(NULL) >= until))) {
			atomic_store(&over, true);
			assert_int_equal(pthread_join(t, NULL), 0);
			ends = true;
		}
	}
	if (!ends) {
		atomic_store(&over, true);
		assert_int_equal(pthread_join(t, NULL), 0);
	}
	assert_int_equal(
		sent, atomic_load(&posted)); /* or it waits for a worker that does not look */
	assert_in_range(bed_stat(b, STAT_doorbells), 1, sent);
}

/* No more than WATCHED_MAX, and none where many bells ring. */
static void
many_are_not_watched(void **state)
{
	struct bed *b = *state;

	for (uint32_t i = 0; i <= WATCHED_BELLS; i++)
		post(i);
	assert_int_equal(turn(b), WATCHED_BELLS + 1);
	for (uint32_t i = 0; i <= WATCHED_BELLS; i++)
		post(i);
	assert_int_equal(turn(b), WATCHED_BELLS + 1);
	assert_false(worker_is_rung(b->w));
	for (uint32_t i = 0; i <= WATCHED_MAX; i++) {
		post(i);
		assert_int_equal(turn(b), 1);
	}
	for (uint32_t i = 0; i < WATCHED_MAX; i++)
		assert_false(put(i, 0));
	assert_int_equal(turn(b), WATCHED_MAX);
	post(WATCHED_MAX); /* there was no place left for it */
	assert_int_equal(turn(b), 1);
}

/* A queue pair that goes, or gets another worker, and a client that goes, leave nothing behind. */
static void
who_goes_is_not_watched(void **state)
{
	struct mbox_msg m = { .type = MBOX_CLIENT_DETACH, .client.client = &client };
	struct bed *b = *state;

	post(0);
	assert_int_equal(turn(b), 1);
	qp_table_remove(b->qps, qps[0]);
	assert_int_equal(turn(b), 0);
	assert_false(worker_is_rung(b->w));
	assert_int_equal(qp_table_insert(b->qps, qps[0]), 0);

	post(1);
	assert_int_equal(turn(b), 1);
	qp_table_give(b->qps, qps[1], 1);
	assert_false(put(1, 0));
	assert_int_equal(turn(b), 0);
	assert_false(worker_is_rung(b->w));
	qp_table_give(b->qps, qps[1], 0);

	post(2);
	assert_int_equal(turn(b), 1);
	assert_true(worker_is_rung(b->w));
	assert_int_equal(bed_tell(b, &m), 0);
	assert_int_equal(b->w->watched_n, 0);
	m.type = MBOX_CLIENT_ATTACH;
	assert_int_equal(bed_tell(b, &m), 0);
	assert_false(worker_is_rung(b->w));
	assert_int_equal(bed_stat(b, STAT_doorbell_garbage), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		BELLS_TEST(each_is_answered),
		BELLS_TEST(those_of_nobody),
		BELLS_TEST(alone_has_the_turn),
		BELLS_TEST(a_few_are_watched),
		BELLS_TEST(none_is_lost_at_the_end),
		BELLS_TEST(many_are_not_watched),
		BELLS_TEST(who_goes_is_not_watched),
	};

	return cmocka_run_group_tests(tests, bed_group_setup, NULL);
}
