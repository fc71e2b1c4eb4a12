/* SPDX-License-Identifier: BSD-3-Clause */
/* A shared receive queue under a worker, while another one takes from it. */
#include <pthread.h>
#include <string.h>

#include "bed.h"
#include "rounds.h"

#define ENTRIES 1024
#define TAKEN   ROUNDS(100000) /* by the worker, at most */
#define IDS     (1u << 22) /* posted, at most */
#define PACE    32         /* SENDs a turn */

struct shared {
	struct qp_srq srq;
	struct ring producer;
};

static void
queue_make(struct shared *s)
{
	memset(s, 0, sizeof(*s));
	assert_int_equal(
		mem_area_create(&s->srq.area, ring_size(ENTRIES, ring_recv_stride(2)), -1, 0), 0);
	ring_srq_attach(&s->srq.ring, s->srq.area.base, ENTRIES, ring_recv_stride(2));
	ring_srq_producer(&s->srq.ring, &s->producer);
	s->srq.id = 5;
	s->srq.pd = PD;
	s->srq.max_sge = 2;
}

static struct shared *
shared_make(struct bed *b)
{
	static struct shared s;

	queue_make(&s);
	/* Its own queue is empty from the start. */
	ring_consume_done(&b->qp->rq, ring_consume_count(&b->qp->rq));
	b->qp->srq = &s.srq;
	b->qp->flags |= QPF_SRQ;
	return &s;
}

/** A WQE of eight bytes, where its wr_id says. @return false: full. */
static bool
post(struct shared *s, uint64_t wr_id)
{
	struct ring_recv_wqe *w = ring_produce_slot(&s->producer, ENTRIES);

	if (w == NULL)
		return false;
	w->wr_id = wr_id;
	w->num_sge = 1;
	w->sge[0] = (struct ring_sge){ RQ_VA + wr_id % 1024 * 8, 8, RQ_KEY };
	ring_produce_commit(&s->producer);
	return true;
}

static _Atomic uint8_t times[IDS];
static _Atomic bool stop;

/** What a QP of another worker does: look, and take. */
static void *
other_worker(void *arg)
{
	struct shared *s = arg;
	struct ring_recv_copy c;
	uint32_t spin = 0;
	cpu_set_t any;

	/* EAL has bound this program to one core. */
	memset(&any, 0xff, sizeof(any));
	pthread_setaffinity_np(pthread_self(), sizeof(any), &any);
	/* Slow enough that the queue is not always empty when the worker comes. */
	while (!atomic_load(&stop)) {
		if (ring_srq_peek(&s->srq.ring, 2, &c) == 1 && ring_srq_take(&s->srq.ring, &c))
			atomic_fetch_add(&times[c.wr_id], 1);
		for (uint32_t i = spin++ % 64; i != 0; i--)
			atomic_load(&stop);
	}
	return NULL;
}

/* SRQ-01: whoever is faster; no WQE twice, none lost, and the bytes where the WQE says. */
static void
two_workers(struct bed *b, uint8_t producer)
{
	struct shared *s = shared_make(b);
	uint32_t taken = 0, posted = 0, sum = 0;
	struct wire_fields f;
	struct ring_cqe c;
	pthread_t thread;

	atomic_store(&b->cq.producer, producer);
	for (uint32_t i = 0; i < IDS; i++)
		atomic_store(&times[i], 0);
	atomic_store(&stop, false);
	assert_int_equal(pthread_create(&thread, NULL, other_worker, s), 0);
	while (taken < TAKEN) {
		uint64_t bytes[PACE];
		uint32_t first = b->qp->resp.epsn.v, n;

		while (posted < IDS && post(s, posted))
			posted++;
		if (posted == IDS)
			break;
		for (uint32_t i = 0; i < PACE; i++) {
			bytes[i] = (uint64_t)taken << 32 | i;
			f = send_only(first + i, 8);
			f.payload = (const uint8_t *)&bytes[i];
			bed_send(b, &f);
		}
		bed_turn(b);
		n = psn_distance(b->qp->resp.epsn, psn(first));
		assert_true(n <= PACE);
		for (uint32_t i = 0; i < n; i++) {
			c = bed_cqe(b);
			assert_int_equal(c.status, 0);
			atomic_fetch_add(&times[c.wr_id], 1);
			assert_memory_equal(b->rq_memory + c.wr_id % 1024 * 8, &bytes[i], 8);
		}
		bed_no_cqe(b);
		taken += n;
	}
	atomic_store(&stop, true);
	pthread_join(thread, NULL);
	for (uint32_t i = 0; i < IDS; i++) {
		assert_true(atomic_load(&times[i]) <= 1);
		sum += atomic_load(&times[i]);
	}
	assert_int_equal(sum + ring_srq_count(&s->srq.ring), posted);
	assert_true(taken != 0);
	mem_area_destroy(&s->srq.area);
}

/** SENDs take several entries at once. */
static void
SRQ_01_two_workers(void **state)
{
	struct bed *b = *state;

	two_workers(b, (uint8_t)(1 + b->conf.index));
}

/** Others add to the completion queue, too: one entry at a time. */
static void
SRQ_01_two_workers_beside_others(void **state)
{
	two_workers(*state, CQ_PRODUCER_ANY);
}

/*
 * SRQ-01: SENDs of several queue pairs in one burst, in turn, take the entries in the order of
 * arrival; with a completion for each, and the ACKs of all.
 */
static void
SRQ_01_in_order_of_arrival(void **state)
{
	enum { QPS = 3, SENDS = 12 };
	struct bed *b = *state;
	struct shared *s = shared_make(b);
	struct qp *qps[QPS] = { b->qp };

	atomic_store(&b->cq.producer, (uint8_t)(1 + b->conf.index));
	for (uint32_t i = 1; i < QPS; i++) {
		qps[i] = bed_qp(b, QPN + i, PEER_QPN);
		qps[i]->srq = &s->srq;
		qps[i]->flags |= QPF_SRQ;
	}
	for (uint32_t i = 0; i < SENDS; i++)
		assert_true(post(s, i));
	for (uint32_t i = 0; i < SENDS; i++) {
		const uint8_t bytes[8] = { (uint8_t)(i + 1) };
		struct wire_fields f = send_only(E + i / QPS, 8);

		f.dest_qpn = qps[i % QPS]->qpn;
		f.payload = bytes;
		bed_send(b, &f);
	}
	bed_turn(b);
	for (uint32_t i = 0; i < SENDS; i++) {
		const struct ring_cqe c = bed_cqe(b);

		assert_int_equal(c.wr_id, i);
		assert_int_equal(c.qp_num, qps[i % QPS]->qpn);
		assert_int_equal(b->rq_memory[i * 8], i + 1);
	}
	bed_no_cqe(b);
	for (uint32_t i = 0; i < QPS; i++)
		expect_ack(b, 0x1f, E + SENDS / QPS - 1, SENDS / QPS);
	expect_silence(b);
	assert_int_equal(b->qp->hot[STAT_rx_send_requests], 0); /* none took the full path */
	for (uint32_t i = 1; i < QPS; i++)
		bed_qp_gone(b, qps[i]);
	mem_area_destroy(&s->srq.area);
}

/*
 * SRQ-01: in one burst a queue pair with receives of its own, two with a queue each. The buffers of
 * one of these are in another protection domain than its queue pair.
 */
static void
SRQ_01_several_queues_in_a_burst(void **state)
{
	enum { QPS = 3, SENDS = 12, OTHER_PD = PD + 1 };
	struct bed *b = *state;
	struct ring_recv_copy gone;
	struct shared two[2];
	struct qp *qps[QPS] = { b->qp };

	atomic_store(&b->cq.producer, (uint8_t)(1 + b->conf.index));
	for (uint32_t i = 1; i < QPS; i++) {
		queue_make(&two[i - 1]);
		qps[i] = bed_qp(b, QPN + i, PEER_QPN);
		qps[i]->srq = &two[i - 1].srq;
		qps[i]->flags |= QPF_SRQ;
		if (i == 2) { /* its head is where the other's second entry is */
			assert_true(post(&two[1], 999));
			assert_int_equal(ring_srq_peek(&two[1].srq.ring, 2, &gone), 1);
			assert_true(ring_srq_take(&two[1].srq.ring, &gone));
		}
		for (uint32_t k = 0; k < SENDS / QPS; k++)
			assert_true(post(&two[i - 1], i * 100 + k));
	}
	qps[2]->pd = OTHER_PD;
	for (uint32_t i = 0; i < SENDS; i++) {
		struct wire_fields f = send_only(E + i / QPS, 8);

		f.dest_qpn = qps[i % QPS]->qpn;
		bed_send(b, &f);
	}
	bed_turn(b);
	for (uint32_t i = 0; i < SENDS; i++) {
		const struct ring_cqe c = bed_cqe(b);

		assert_int_equal(c.qp_num, qps[i % QPS]->qpn);
		assert_int_equal(c.wr_id, i % QPS == 0 ? i / QPS + 1 : i % QPS * 100 + i / QPS);
		assert_int_equal(c.status, 0);
	}
	bed_no_cqe(b);
	for (uint32_t i = 0; i < QPS; i++) /* none took the full path */
		assert_int_equal(qps[i]->hot[STAT_rx_send_requests], 0);
	for (uint32_t i = 1; i < QPS; i++) {
		bed_qp_gone(b, qps[i]);
		mem_area_destroy(&two[i - 1].srq.area);
	}
}

/*
 * RESP-DUP-01, SRQ-01: a SEND that comes twice in a burst, with one of another queue pair between
 * them, takes one entry, and what follows it is not mistaken for a duplicate.
 */
static void
RESP_DUP_01_twice_in_a_burst(void **state)
{
	struct bed *b = *state;
	struct shared *s = shared_make(b);
	struct qp *other = bed_qp(b, QPN + 1, PEER_QPN);
	struct wire_fields f;

	atomic_store(&b->cq.producer, (uint8_t)(1 + b->conf.index));
	other->srq = &s->srq;
	other->flags |= QPF_SRQ;
	for (uint32_t i = 0; i < 4; i++)
		assert_true(post(s, i));
	for (uint32_t i = 0; i < 3; i++) {
		f = send_only(E, 8);
		f.dest_qpn = i == 1 ? other->qpn : QPN;
		bed_send(b, &f);
	}
	bed_turn(b);
	assert_int_equal(b->qp->resp.epsn.v, E + 1);
	for (uint32_t i = 0; i < 2; i++) {
		const struct ring_cqe c = bed_cqe(b);

		assert_int_equal(c.wr_id, i);
		assert_int_equal(c.qp_num, i == 1 ? other->qpn : QPN);
	}
	bed_no_cqe(b);
	assert_int_equal(ring_srq_count(&s->srq.ring), 2);
	expect_ack(b, 0x1f, E, 1);
	expect_ack(b, 0x1f, E, 1);
	expect_silence(b);
	assert_int_equal(qp_stat(b->qp, STAT_rx_send_requests), 1);
	assert_int_equal(qp_stat(b->qp, STAT_duplicate_request), 1);
	bed_qp_gone(b, other);
	mem_area_destroy(&s->srq.area);
}

/*
 * RESP-CLS-A-03: the producer takes back what was posted after it has been looked at. Nothing is
 * taken that is not posted. Here a WRITE of the same burst does it, to be sure of the moment.
 */
static void
RESP_CLS_A_03_taken_back(void **state)
{
	enum { KEY = 0x4004, VA = 0xa00000 };
	struct bed *b = *state;
	struct shared *s = shared_make(b);
	struct mem_region *ring = mem_region_alloc();
	const uint32_t one = 1;
	struct wire_fields f;

	assert_non_null(ring);
	ring->va = VA;
	ring->length = sizeof(*s->producer.sh);
	ring->host = (uint8_t *)s->producer.sh;
	ring->key = KEY;
	ring->pd = PD;
	ring->access = ACCESS_REMOTE_WRITE | ACCESS_LOCAL_WRITE;
	assert_int_equal(mem_table_add(b->mem, ring), 0);
	atomic_store(&b->cq.producer, (uint8_t)(1 + b->conf.index));
	for (uint32_t i = 0; i < 4; i++)
		assert_true(post(s, i));
	f = write_only(E, VA + offsetof(struct ring_shared, prod), sizeof(one));
	f.reth.rkey = KEY;
	f.payload = (const uint8_t *)&one;
	bed_send(b, &f);
	for (uint32_t i = 1; i < 4; i++) {
		f = send_only(E + i, 8);
		bed_send(b, &f);
	}
	bed_turn(b);
	assert_int_equal(bed_cqe(b).wr_id, 0);
	bed_no_cqe(b);
	assert_int_equal(b->qp->resp.epsn.v, E + 2);
	assert_int_equal(ring_srq_count(&s->srq.ring), 0);
	assert_int_equal(mem_table_remove(b->mem, KEY), 0);
	mem_region_free(ring);
	mem_area_destroy(&s->srq.area);
}

/* SRQ-02: the event once, of the SRQ, and the limit is gone. */
static void
SRQ_02_limit(void **state)
{
	struct bed *b = *state;
	struct shared *s = shared_make(b);
	struct ring_aeq_event e;
	struct wire_fields f;

	atomic_store(&b->cq.producer, (uint8_t)(1 + b->conf.index));
	atomic_store(&s->srq.limit, 2);
	for (uint32_t i = 0; i < 4; i++)
		assert_true(post(s, i));
	for (uint32_t i = 0; i < 4; i++) {
		f = send_only(E + i, 8);
		bed_send(b, &f);
		bed_turn(b);
		assert_int_equal(mbox_next_event(&b->mbox, &e), i == 2);
		if (i != 2)
			continue;
		assert_int_equal(e.code, AEQ_SRQ_REPORT);
		assert_int_equal(e.flags, AEQ_SRQ);
		assert_int_equal(e.event, 15); /* IBV_EVENT_SRQ_LIMIT_REACHED */
		assert_int_equal(e.id, 5);
		assert_int_equal(e.context, (uintptr_t)&s->srq);
		assert_int_equal(atomic_load(&s->srq.limit), 0);
	}
	for (uint32_t i = 0; i < 4; i++)
		assert_int_equal(bed_cqe(b).wr_id, i);
	mem_area_destroy(&s->srq.area);
}

/* A WQE's index in the SRQ, as an abnormal event of the receive queue names it (AEQ-11). */
static void
AEQ_11_RESP_CLS_A_02_open_message(void **state)
{
	struct bed *b = *state;
	struct shared *s = shared_make(b);
	struct mbox_msg fail = { .type = MBOX_QP_FAIL };
	struct wire_fields f = send_only(E, 8);
	struct ring_recv_wqe *second;
	struct ring_aeq_event e;
	struct ring_cqe c;

	for (uint32_t i = 0; i < 3; i++)
		assert_true(post(s, 70 + i));
	bed_send(b, &f);
	bed_turn(b);
	assert_int_equal(bed_cqe(b).wr_id, 70);
	second = (void *)(s->producer.sh->slots + s->producer.stride);
	second->sge[0].length = 2000;
	f = send_only(E + 1, PMTU);
	f.opcode = OP_RC_SEND_FIRST;
	f.flags = 0;
	bed_send(b, &f);
	bed_turn(b);
	/* LOC_PROT_ERR for the second receive */
	fail.fail = (struct mbox_fail){ .qp = b->qp, .wqe_index = 1, .queue = AEQ_RQ, .status = 4 };
	assert_int_equal(bed_tell(b, &fail), 0);
	assert_true(b->done.carried);
	c = bed_cqe(b);
	assert_int_equal(c.wr_id, 71);
	assert_int_equal(c.status, 4);
	bed_no_cqe(b);
	assert_int_equal(ring_srq_count(&s->srq.ring), 1);
	assert_true(mbox_next_event(&b->mbox, &e));
	assert_int_equal(e.event, 16); /* EVENT_QP_LAST_WQE_REACHED, AE-08 */
	assert_int_equal(e.id, QPN);
	assert_false(mbox_next_event(&b->mbox, &e));
	assert_int_equal(bed_state(b, b->qp, QPS_ERR), 0); /* it is told once */
	assert_false(mbox_next_event(&b->mbox, &e));
	mem_area_destroy(&s->srq.area);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(SRQ_01_two_workers),
		TEST(SRQ_01_two_workers_beside_others),
		TEST(SRQ_01_in_order_of_arrival),
		TEST(SRQ_01_several_queues_in_a_burst),
		TEST(RESP_DUP_01_twice_in_a_burst),
		TEST(RESP_CLS_A_03_taken_back),
		TEST(SRQ_02_limit),
		TEST(AEQ_11_RESP_CLS_A_02_open_message),
	};

	return cmocka_run_group_tests(tests, bed_group_setup, NULL);
}
