/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Payloads on loan (local.h): a long local request is copied once, from its sender's memory to its
 * place. Nobody can tell it from a frame that was copied as a whole: neither by the data, nor where
 * somebody else looks at the frame, nor when the sender's memory changes behind it.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "count.h"
#include "icrc.h"
#include "loan_bed.h"
#include "local.h"
#include "report.h"
#include "sending.h"
#include "stage.h"
#include "wire_head.h"
#include "worker.h"

#undef fail /* cmocka's; the pipeline has a function of that name */

/** The only frame of the queue. Its payload is on loan. */
static struct rte_mbuf *
one_lent(struct bed *b)
{
	const struct tx_queue *q = loan_queue(b);

	stage_request(b->w);
	assert_int_equal(q->tail - q->head, 1);
	assert_true(local_is_lent(b->w, q->m[q->head]));
	return q->m[q->head];
}

/** This payload stands in the frame of a WRITE, with its pad. */
static void
expect_payload(struct rte_mbuf *m, const uint8_t *payload, uint32_t len)
{
	const uint8_t *at = rte_pktmbuf_mtod(m, uint8_t *) + WIRE_HEAD_LEN + WIRE_RETH_LEN;
	const uint32_t pad = -len & 3;

	assert_int_equal(m->pkt_len, WIRE_HEAD_LEN + WIRE_RETH_LEN + len + pad + WIRE_ICRC_LEN);
	assert_memory_equal(at, payload, len);
	for (uint32_t i = 0; i < pad; i++)
		assert_int_equal(at[len + i], 0);
}

/** The ICRC of the frame is right. */
static void
expect_sealed(struct rte_mbuf *m)
{
	const uint8_t *frame = rte_pktmbuf_mtod(m, uint8_t *);
	uint8_t was[WIRE_ICRC_LEN];

	memcpy(was, frame + m->pkt_len - WIRE_ICRC_LEN, sizeof(was));
	bed_reseal(m);
	assert_memory_equal(frame + m->pkt_len - WIRE_ICRC_LEN, was, sizeof(was));
}

/* LB-01: the same data as over the wire, byte for byte, and not one more. */
static void
LB_01_data(void **state)
{
	static const uint32_t lens[] = { LOCAL_LEND_MIN - 1, LOCAL_LEND_MIN, LEN, PMTU };
	struct bed *b = *state;
	uint8_t before[PMTU];

	memcpy(before, b->memory + FROM, sizeof(before));
	for (uint32_t i = 0; i < ARRAY_LEN(lens); i++) {
		uint8_t *place = b->rq_memory + (i + 1) % 16 * 4096;

		memset(b->memory + TO, 0xee, 2048);
		memset(place, 0xee, 2048);
		loan_post(b, WR_RDMA_WRITE, FROM, TO, lens[i]);
		loan_post(b, WR_SEND, FROM, 0, lens[i]);
		loan_turns(b, 4);
		assert_memory_equal(b->memory + TO, before, lens[i]);
		assert_int_equal(b->memory[TO + lens[i]], 0xee);
		assert_memory_equal(place, before, lens[i]);
		assert_int_equal(place[lens[i]], 0xee);
		loan_success(b, WC_RECV);
		loan_success(b, WC_RDMA_WRITE);
		loan_success(b, WC_SEND);
	}
	bed_collect(b);
	expect_silence(b);
}

/*
 * Short or on loan, frames are taken in the turn that makes them, and so are their ACKs: none is on
 * loan when it ends, and the requests are completed.
 */
static void
in_one_turn(void **state)
{
	static const uint32_t lens[] = { 8, LOCAL_LEND_MIN - 1, PMTU };
	struct bed *b = *state;

	for (uint32_t k = 0; k < ARRAY_LEN(lens); k++) {
		loan_refill(b);
		for (uint32_t i = 0; i < 8; i++)
			loan_post(b, WR_RDMA_WRITE, FROM, TO + i * 1024, lens[k]);
		worker_poll(b->w, b->now);
		assert_int_equal(qp_stat(b->qp, STAT_rx_write_requests), 8 * (k + 1));
		assert_memory_equal(b->memory + TO + 7 * 1024, b->memory + FROM, lens[k]);
		assert_false(b->w->lends);
		for (uint32_t i = 0; i < 8; i++)
			loan_success(b, WC_RDMA_WRITE);
	}
}

/* A payload goes over itself as if it had been in a frame meanwhile, forwards and backwards. */
static void
over_itself(void **state)
{
	static const uint32_t places[] = { FROM, FROM + 1, FROM + 100, FROM + LEN - 1 };
	struct bed *b = *state;
	uint8_t was[LEN];

	for (uint32_t way = 0; way < 2; way++)
		for (uint32_t i = 0; i < ARRAY_LEN(places); i++) {
			const uint32_t from = way == 0 ? FROM : places[i];
			const uint32_t to = way == 0 ? places[i] : FROM;

			loan_refill(b);
			memcpy(was, b->memory + from, LEN);
			loan_post(b, WR_RDMA_WRITE, from, to, LEN);
			loan_turns(b, 4);
			assert_memory_equal(b->memory + to, was, LEN);
		}
}

/* LB-05: frames that must wait for another turn do not see what the sender's memory is then. */
static void
LB_05_waits(void **state)
{
	struct bed *b = *state;
	struct rte_ring *r = rte_ring_create("loan_owner", 64, SOCKET_ID_ANY, 0);
	uint8_t was[LEN];

	assert_non_null(r);
	b->w->conf.workers_n = 2;
	b->w->conf.handoff[1] = r;
	while (rte_ring_free_count(r) >= PIPELINE_BURST)
		assert_int_equal(rte_ring_enqueue(r, b), 0);
	memcpy(was, b->memory + FROM, LEN);
	loan_post(b, WR_RDMA_WRITE, FROM, TO, LEN);
	worker_poll(b->w, b->now);
	assert_int_equal(loan_queue(b)->tail - loan_queue(b)->head, 1);
	assert_false(local_is_lent(b->w, loan_queue(b)->m[loan_queue(b)->head]));
	loan_refill(b);
	rte_ring_reset(r);
	worker_poll(b->w, b->now);
	assert_memory_equal(b->memory + TO, was, LEN);
	b->w->conf.workers_n = 1;
	b->w->conf.handoff[1] = NULL;
	rte_ring_free(r);
}

/* LB-01: to another worker goes the whole frame. */
static void
LB_01_handed_over(void **state)
{
	struct bed *b = *state;
	struct rte_ring *r = rte_ring_create("loan_owner", 64, SOCKET_ID_ANY, 0);
	struct rte_mbuf *m = NULL;

	assert_non_null(r);
	b->w->conf.handoff[1] = r;
	b->qp->worker = 1;
	loan_post(b, WR_RDMA_WRITE, FROM, TO, LEN);
	worker_poll(b->w, b->now);
	assert_int_equal(rte_ring_dequeue(r, (void **)&m), 0);
	assert_false(local_is_lent(b->w, m));
	expect_payload(m, b->memory + FROM, LEN);
	expect_sealed(m);
	rte_pktmbuf_free(m);
	b->qp->worker = 0;
	b->w->conf.handoff[1] = NULL;
	rte_ring_free(r);
}

static struct rte_mbuf *impaired;

static bool
is_on(void *ctx)
{
	(void)ctx;
	return true;
}

static uint16_t
take_all(void *ctx, struct rte_mbuf **m, uint16_t n, uint16_t max)
{
	(void)ctx;
	(void)max;
	assert_int_equal(n, 1);
	impaired = m[0];
	return 0;
}

/* LB-03: a port's impairment sees whole frames. */
static void
LB_03_impaired(void **state)
{
	const struct pipeline_impair bad = { .is_on = is_on, .receive = take_all };
	struct bed *b = *state;

	b->w->conf.ports[0].impair = &bad;
	loan_post(b, WR_RDMA_WRITE, FROM, TO, LEN);
	worker_poll(b->w, b->now);
	assert_non_null(impaired);
	assert_false(local_is_lent(b->w, impaired));
	expect_payload(impaired, b->memory + FROM, LEN);
	expect_sealed(impaired);
	rte_pktmbuf_free(impaired);
	b->w->conf.ports[0].impair = NULL;
}

/* LB-02: so does the error buffer. */
static void
LB_02_recorded(void **state)
{
	enum { AT = WIRE_HEAD_LEN + WIRE_RETH_LEN };
	struct bed *b = *state;
	struct errbuf_record r;

	loan_post(b, WR_RDMA_WRITE, FROM, TO, LEN)->rkey = 0xbad;
	worker_poll(b->w, b->now);
	assert_int_equal(trace_errbuf_take(worker_errbuf(b->w), &r, 1), 1);
	assert_int_equal(r.header_len, ERRBUF_HEADER_BYTES);
	assert_memory_equal(r.header + AT, b->memory + FROM, ERRBUF_HEADER_BYTES - AT);
	loan_turns(b, 4);
	for (uint32_t i = 0; i < 4; i++)
		assert_int_equal(bed_cqe(b).status, WC_WR_FLUSH_ERR); /* the receives */
	assert_int_equal(bed_cqe(b).status, WC_REM_ACCESS_ERR);
}

/* What the fast path leaves is in the frame: here for a receive of two parts. */
static void
LB_01_full_path(void **state)
{
	struct bed *b = *state;
	struct ring_recv_wqe *wqe;

	while (ring_consume_count(&b->qp->rq) != 0)
		ring_consume_done(&b->qp->rq, 1);
	wqe = ring_produce_slot(&b->rq_producer, 16);
	wqe->num_sge = 2;
	wqe->sge[0] = (struct ring_sge){ RQ_VA, 100, RQ_KEY };
	wqe->sge[1] = (struct ring_sge){ RQ_VA + 4096, 2000, RQ_KEY };
	ring_produce_commit(&b->rq_producer);
	loan_post(b, WR_SEND, FROM, 0, LEN);
	loan_turns(b, 4);
	loan_success(b, WC_RECV);
	assert_memory_equal(b->rq_memory, b->memory + FROM, 100);
	assert_memory_equal(b->rq_memory + 4096, b->memory + FROM + 100, LEN - 100);
	loan_success(b, WC_SEND);
}

/* A QP that fails gives its memory back at once: what it has sent is in the frames by then. */
static void
failed(void **state)
{
	const struct report r = { .fault = VERDICT_NO_FAULT, .source = SOURCE_SQ };
	struct bed *b = *state;
	struct rte_mbuf *m;
	uint8_t was[LEN];

	loan_post(b, WR_RDMA_WRITE, FROM, TO, LEN);
	m = one_lent(b);
	memcpy(was, b->memory + FROM, LEN);
	pipeline_report_failure(b->w, loan.sender, &r, QPS_ERR);
	assert_false(local_is_lent(b->w, m));
	loan_refill(b);
	expect_payload(m, was, LEN);
	bed_up(b, MBOX_FATAL);
}

/*
 * The same where the QP fails by a packet of the burst that its own frames stand in: here its
 * flush writes its completions over what it sends.
 */
static void
failed_in_the_burst(void **state)
{
	enum { CQE = 8 };
	static struct qp_cq own;
	struct bed *b = *state;
	struct ring back;
	uint8_t was[LEN];

	assert_in_range(ring_size(CQE, sizeof(struct ring_cqe)), 0, LEN);
	ring_cq_attach(&own.ring, b->memory + FROM, CQE, CQE, true);
	b->qp->send_cq = &own;
	loan.sender->resp.epsn = psn(S);
	ring_attach(
		&back, b->qp->sq.ring.sh, b->qp->sq.ring.mask + 1, b->qp->sq.ring.stride, false);
	loan_post(b, WR_RDMA_WRITE, TO, TO, LEN)->rkey = 0xbad;
	loan_post_to(b, b->qp, &back, WR_RDMA_WRITE, FROM, TO, LEN);
	memcpy(was, b->memory + FROM, LEN);
	worker_poll(b->w, b->now);
	assert_int_equal(atomic_load(&b->qp->state), QPS_ERR);
	assert_memory_not_equal(b->memory + FROM, was, LEN);
	assert_memory_equal(b->memory + TO, was, LEN);
	loan_turns(b, 4);
	b->qp->send_cq = &b->cq;
}

/* The same by a packet that the fast path takes: the ACK of a request whose CQ is full. */
static void
failed_by_an_ack(void **state)
{
	enum { CQE = 8 };
	static struct qp_cq own, full;
	struct bed *b = *state;
	struct ring back;
	uint8_t was[LEN];

	ring_cq_attach(&own.ring, b->memory + FROM, CQE, CQE, true);
	atomic_store(&full.error, true);
	b->qp->recv_cq = &own;
	b->qp->send_cq = &full;
	loan.sender->resp.epsn = psn(S);
	ring_attach(
		&back, b->qp->sq.ring.sh, b->qp->sq.ring.mask + 1, b->qp->sq.ring.stride, false);
	loan_post_to(b, b->qp, &back, WR_RDMA_WRITE, TO, TO, 64);
	stage_request(b->w);
	pipeline_local_receive(b->w, &b->w->burst, b->w->wires_n, 1);
	pipeline_burst_run(b->w, &b->w->burst);
	local_over(b->w);
	assert_int_equal(loan_queue(b)->tail - loan_queue(b)->head, 1); /* the ACK */
	loan_post_to(b, b->qp, &back, WR_RDMA_WRITE, FROM, TO, LEN);
	memcpy(was, b->memory + FROM, LEN);
	stage_request(b->w);
	worker_poll(b->w, b->now);
	assert_int_equal(atomic_load(&b->qp->state), QPS_ERR);
	assert_memory_not_equal(b->memory + FROM, was, LEN);
	assert_memory_equal(b->memory + TO, was, LEN);
	loan_turns(b, 4);
	b->qp->recv_cq = b->qp->send_cq = &b->cq;
}

static uint8_t *page;            /* where the end of a payload goes */
static uint8_t before_page[LEN]; /* what stood before it when it was touched */
static size_t page_len;

static void
touched(int sig)
{
	(void)sig;
	memcpy(before_page, page - sizeof(before_page), sizeof(before_page));
	if (mprotect(page, page_len, PROT_READ | PROT_WRITE) != 0)
		abort();
}

/* Programs look at the last byte of a WRITE to know that all of it is there: it comes last. */
static void
the_end_comes_last(void **state)
{
	struct sigaction now = { .sa_handler = touched }, old;
	struct bed *b = *state;

	page_len = (size_t)sysconf(_SC_PAGESIZE);
	page = b->memory + TO;
	assert_int_equal((uintptr_t)page % page_len, 0);
	for (uint32_t len = LOCAL_LEND_MIN; len <= PMTU; len += LOCAL_LEND_MIN - 1) {
		const uint32_t before = len - LOCAL_END;

		loan_refill(b);
		memset(page - LEN, 0xee, LEN);
		loan_post(b, WR_RDMA_WRITE, FROM, TO - before, len);
		assert_int_equal(sigaction(SIGSEGV, &now, &old), 0);
		assert_int_equal(mprotect(page, page_len, PROT_NONE), 0);
		worker_poll(b->w, b->now);
		assert_int_equal(sigaction(SIGSEGV, &old, NULL), 0);
		assert_memory_equal(page - before, b->memory + FROM, len);
		assert_memory_equal(before_page + LEN - before, b->memory + FROM, before);
		loan_turns(b, 4);
	}
}

/* DPDK has no flag left for such frames: none is made. */
static void
without_a_flag(void **state)
{
	struct bed *b = *state;

	b->w->lent_flag = 0;
	loan_post(b, WR_RDMA_WRITE, FROM, TO, LEN);
	loan_turns(b, 4);
	assert_memory_equal(b->memory + TO, b->memory + FROM, LEN);
	loan_success(b, WC_RDMA_WRITE);
}

/* LB-03: what is dropped goes back to the pool unseen, and what is sent again has its data. */
static void
LB_03_dropped(void **state)
{
	struct bed *b = *state;

	b->qp->resp.epsn = psn(S - 1); /* the first one was lost, it seems */
	loan_post(b, WR_RDMA_WRITE, FROM, TO, LEN);
	one_lent(b);
	worker_poll(b->w, b->now);
	assert_int_equal(qp_stat(b->qp, STAT_out_of_sequence), 1);
	assert_false(b->w->lends);
	b->qp->resp.epsn = psn(S);
	b->qp->resp.latched = 0;
	loan_turns(b, 4);
	b->now += TIME_NS_PER_S;
	loan_turns(b, 4);
	assert_memory_equal(b->memory + TO, b->memory + FROM, LEN);
	loan_success(b, WC_RDMA_WRITE);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		LOAN_TEST(LB_01_data),
		LOAN_TEST(in_one_turn),
		LOAN_TEST(over_itself),
		LOAN_TEST(LB_05_waits),
		LOAN_TEST(LB_01_handed_over),
		LOAN_TEST(LB_03_impaired),
		LOAN_TEST(LB_02_recorded),
		LOAN_TEST(LB_01_full_path),
		LOAN_TEST(failed),
		LOAN_TEST(failed_in_the_burst),
		LOAN_TEST(failed_by_an_ack),
		LOAN_TEST(the_end_comes_last),
		LOAN_TEST(without_a_flag),
		LOAN_TEST(LB_03_dropped),
	};

	return cmocka_run_group_tests(tests, bed_group_setup, NULL);
}
