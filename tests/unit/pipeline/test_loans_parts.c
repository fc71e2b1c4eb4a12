/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Payloads on loan (local.h) of messages of several packets, and of READ responses: whichever path
 * they take, they go from one memory to the other in one copy.
 */
#include <string.h>

#include "loan_bed.h"
#include "local.h"
#include "mem_window.h"
#include "sending.h"
#include "stage.h"

enum {
	PARTS = 3,
	MSG = 2 * PMTU + 700, /* the last part is long enough for a loan, and has no pad */
	SHORT = 2 * PMTU + 99 /* here it is not */
};

/** How many frames wait, and how many of them have their payload somewhere else. */
static void
expect_waiting(const struct bed *b, uint32_t frames, uint32_t lent)
{
	const struct tx_queue *q = loan_queue(b);
	uint32_t n = 0;

	assert_int_equal(q->tail - q->head, frames);
	for (uint32_t i = q->head; i != q->tail; i++)
		n += local_is_lent(b->w, q->m[i]);
	assert_int_equal(n, lent);
}

/* LB-01: a WRITE of several packets: the same data, and not one byte more. */
static void
LB_01_write(void **state)
{
	static const uint32_t lens[] = { MSG, SHORT, 2 * PMTU };
	struct bed *b = *state;

	for (uint32_t i = 0; i < ARRAY_LEN(lens); i++) {
		memset(b->memory + TO, 0xee, FILLED);
		loan_refill(b);
		loan_post(b, WR_RDMA_WRITE, FROM, TO, lens[i]);
		stage_request(b->w);
		expect_waiting(b, (lens[i] + PMTU - 1) / PMTU, lens[i] == MSG ? PARTS : 2);
		worker_poll(b->w, b->now); /* in one turn */
		assert_memory_equal(b->memory + TO, b->memory + FROM, lens[i]);
		assert_int_equal(b->memory[TO + lens[i]], 0xee);
		assert_int_equal(b->w->lends, 0);
		loan_turns(b, 4);
		loan_success(b, WC_RDMA_WRITE);
	}
	bed_collect(b);
	expect_silence(b);
}

/* LB-01: SENDs of several packets, for one buffer and for several. */
static void
LB_01_send(void **state)
{
	struct bed *b = *state;
	struct ring_recv_wqe *wqe;

	while (ring_consume_count(&b->qp->rq) != 0)
		ring_consume_done(&b->qp->rq, 1);
	for (uint32_t n = 1; n <= 2; n++) {
		wqe = ring_produce_slot(&b->rq_producer, 16);
		wqe->num_sge = n;
		wqe->sge[0] = (struct ring_sge){ RQ_VA, n == 1 ? FILLED : 1500, RQ_KEY };
		wqe->sge[1] = (struct ring_sge){ RQ_VA + 16384, FILLED, RQ_KEY };
		ring_produce_commit(&b->rq_producer);
		loan_refill(b);
		memset(b->rq_memory, 0xee, 32768);
		loan_post(b, WR_SEND, FROM, 0, MSG);
		worker_poll(b->w, b->now);
		assert_int_equal(b->w->lends, 0);
		loan_turns(b, 4);
		loan_success(b, WC_RECV);
		loan_success(b, WC_SEND);
		if (n == 1) {
			assert_memory_equal(b->rq_memory, b->memory + FROM, MSG);
			assert_int_equal(b->rq_memory[MSG], 0xee);
			continue;
		}
		assert_memory_equal(b->rq_memory, b->memory + FROM, 1500);
		assert_int_equal(b->rq_memory[1500], 0xee);
		assert_memory_equal(b->rq_memory + 16384, b->memory + FROM + 1500, MSG - 1500);
		assert_int_equal(b->rq_memory[16384 + MSG - 1500], 0xee);
	}
}

/* LB-01, RESP-06: responses of a READ, of one packet and of several. */
static void
LB_01_read(void **state)
{
	static const uint32_t lens[] = { LOCAL_LEND_MIN - 1, LOCAL_LEND_MIN, PMTU, MSG, SHORT };
	struct bed *b = *state;

	for (uint32_t i = 0; i < ARRAY_LEN(lens); i++) {
		memset(b->memory + TO, 0xee, FILLED);
		loan_refill(b);
		loan_post(b, WR_RDMA_READ, TO, FROM, lens[i]);
		loan_turns(b, 5);
		assert_memory_equal(b->memory + TO, b->memory + FROM, lens[i]);
		assert_int_equal(b->memory[TO + lens[i]], 0xee);
		assert_int_equal(b->w->lends, 0);
		loan_success(b, WC_RDMA_READ);
	}
	bed_collect(b);
	expect_silence(b);
}

/* They are taken in the turn that makes them. */
static void
read_in_one_turn(void **state)
{
	struct bed *b = *state;

	for (uint32_t len = PMTU; len <= MSG; len += MSG - PMTU) {
		loan_post(b, WR_RDMA_READ, TO, FROM, len);
		stage_request(b->w);
		expect_waiting(b, 1, 0);
		worker_poll(b->w, b->now);
		assert_int_equal(b->w->lends, 0);
		assert_memory_equal(b->memory + TO, b->memory + FROM, len);
		loan_success(b, WC_RDMA_READ);
	}
}

/* LB-01: READ data for several buffers. */
static void
LB_01_read_list(void **state)
{
	struct bed *b = *state;
	struct ring_send_wqe *wqe;

	memset(b->memory + TO, 0xee, 16384);
	wqe = loan_post(b, WR_RDMA_READ, TO, FROM, 1500);
	wqe->num_sge = 2;
	wqe->sge[1] = (struct ring_sge){ MR_VA + TO + 8192, MSG - 1500, MR_KEY };
	loan_turns(b, 5);
	loan_success(b, WC_RDMA_READ);
	assert_memory_equal(b->memory + TO, b->memory + FROM, 1500);
	assert_int_equal(b->memory[TO + 1500], 0xee);
	assert_memory_equal(b->memory + TO + 8192, b->memory + FROM + 1500, MSG - 1500);
}

/* Parts go over themselves by way of their frames; each of them moves before the next one. */
static void
over_itself(void **state)
{
	static const uint32_t places[] = { 0, 1, 100, PMTU - 1 };
	struct bed *b = *state;
	uint8_t was[PMTU + 700];

	for (uint32_t i = 0; i < ARRAY_LEN(places); i++) {
		/* To a lower address, a part's place is never that of a later part. */
		for (uint32_t read = 0; read < 2; read++) {
			const uint32_t from = 4096 + places[i], to = 4096;

			loan_refill(b);
			memcpy(was, b->memory + from, sizeof(was));
			if (read)
				loan_post(b, WR_RDMA_READ, to, from, sizeof(was));
			else
				loan_post(b, WR_RDMA_WRITE, from, to, sizeof(was));
			loan_turns(b, 5);
			assert_memory_equal(b->memory + to, was, sizeof(was));
			loan_success(b, read ? WC_RDMA_READ : WC_RDMA_WRITE);
		}
	}
}

/*
 * What a key has allowed is read while it is good: a READ response that waits is made whole before
 * the key ends, here by a SEND with Invalidate behind the READ in the same burst.
 */
static void
the_key_ends(void **state)
{
	struct bed *b = *state;
	struct mem_region *r = mem_table_find(b->mem, MR_KEY);
	const struct tx_queue *q = loan_queue(b);

	assert_non_null(r);
	r->remote_invalidate = true;
	loan_post(b, WR_RDMA_READ, TO, FROM, PMTU);
	loan_post(b, WR_SEND_WITH_INV, FROM, 0, 8)->imm = MR_KEY;
	stage_request(b->w);
	assert_int_equal(q->tail - q->head, 2);
	/* Of the burst the READ is answered first, then the key ends. */
	pipeline_local_receive(b->w, &b->w->burst, b->w->wires_n, 2);
	assert_int_equal(b->w->burst.n, 2);
	pipeline_burst_run(b->w, &b->w->burst);
	local_over(b->w);
	assert_false(mem_is_valid(r));
	for (uint32_t i = q->head; i != q->tail; i++)
		assert_false(local_is_lent(b->w, q->m[i]));
	assert_int_equal(b->w->lends, 0);
}

/* The same by a local invalidate of the QP that answers: of a window, as the READ's key is. */
static void
the_window_ends(void **state)
{
	enum { MADE = 0x60000, KEY = 0x60001 };
	struct bed *b = *state;
	const struct mem_bind bind = { .window = MADE,
		.key = KEY,
		.lkey = MR_KEY,
		.pd = b->qp->pd,
		.qpn = QPN,
		.access = ACCESS_REMOTE_READ,
		.addr = MR_VA,
		.length = MR_LEN };
	struct mem_window *w = mem_window_alloc();
	struct ring_send_wqe *wqe;
	enum mem_why why;
	struct ring own;

	assert_non_null(w);
	w->r.kind = MEM_WINDOW_2;
	w->home_pd = b->qp->pd;
	assert_int_equal(mem_window_add(b->mem, w, MADE), 0);
	mem_table_find(b->mem, MR_KEY)->access |= ACCESS_MW_BIND;
	assert_int_equal(mem_window_bind(b->mem, 0, &bind, &why), MEM_TURN_DONE);
	ring_attach(&own, b->qp->sq.ring.sh, b->qp->sq.ring.mask + 1, b->qp->sq.ring.stride, false);
	loan_post(b, WR_RDMA_READ, TO, FROM, PMTU)->rkey = KEY;
	stage_request(b->w);
	pipeline_local_receive(b->w, &b->w->burst, b->w->wires_n, 1);
	pipeline_burst_run(b->w, &b->w->burst);
	local_over(b->w);
	expect_waiting(b, 1, 1);
	wqe = loan_post_to(b, b->qp, &own, WR_LOCAL_INV, 0, 0, 0);
	wqe->imm = KEY;
	wqe->num_sge = 0;
	stage_request(b->w);
	expect_waiting(b, 1, 0);
	loan_turns(b, 3);
	assert_false(mem_is_valid(&w->r));
	loan_success(b, WC_LOCAL_INV);
	loan_success(b, WC_RDMA_READ);
	mem_window_remove(b->mem, w);
	mem_window_free(w);
}

/* What a message of the control lcore releases is served behind all else: still in that turn. */
static void
the_mailbox_comes_last(void **state)
{
	struct bed *b = *state;
	struct mbox_msg park = { .type = MBOX_QP_PARK, .move = { b->qp, 0 } };
	struct mbox_msg adopt = { .type = MBOX_QP_ADOPT, .qp = { .qp = b->qp } };

	b->qp->worker = 1; /* whose QP it was */
	assert_int_equal(bed_tell(b, &park), 0);
	loan_post(b, WR_RDMA_READ, TO, FROM, PMTU);
	loan_turns(b, 2); /* the READ is kept for the QP's new owner */
	assert_int_equal(qp_stat(b->qp, STAT_rx_read_requests), 0);
	assert_int_equal(bed_tell(b, &adopt), 0);
	assert_int_equal(qp_stat(b->qp, STAT_rx_read_requests), 1);
	expect_waiting(b, 1, 0);
	assert_int_equal(b->w->lends, 0);
	loan_turns(b, 1);
	assert_memory_equal(b->memory + TO, b->memory + FROM, PMTU);
	loan_success(b, WC_RDMA_READ);
}

/* RESP-SEQ-14: what is kept behind a gap outlives the turn, so it has its payload with it. */
static void
RESP_SEQ_14_kept(void **state)
{
	struct bed *b = *state;
	const struct tx_queue *q = loan_queue(b);
	uint8_t was[MSG];

	b->qp->resp.knobs |= RESP_KNOB_KEEP;
	b->qp->resp.epsn = psn(S);
	loan_post(b, WR_RDMA_WRITE, TO, TO, 64); /* it is going to be lost */
	loan_post(b, WR_RDMA_WRITE, FROM, TO, MSG);
	memcpy(was, b->memory + FROM, MSG);
	stage_request(b->w);
	rte_pktmbuf_free(q->m[b->w->tx[b->w->wires_n].head++]);
	worker_poll(b->w, b->now);
	assert_int_equal(qp_stat(b->qp, STAT_kept_requests), PARTS);
	assert_int_equal(b->w->lends, 0);
	loan_refill(b);
	loan_turns(b, 3); /* a NAK, the lost one again, and what was kept */
	assert_memory_equal(b->memory + TO, was, MSG);
	loan_success(b, WC_RDMA_WRITE);
	loan_success(b, WC_RDMA_WRITE);
}

/* RESP-SEQ-14: more than a burst is kept, and no frame of it is lost: see bed_teardown(). */
static void
RESP_SEQ_14_more_than_a_burst(void **state)
{
	enum { MESSAGES = PIPELINE_BURST / PARTS + 2 };
	struct bed *b = *state;
	const struct tx_queue *q = loan_queue(b);

	b->qp->resp.knobs |= RESP_KNOB_KEEP;
	b->qp->resp.epsn = psn(S);
	loan_post(b, WR_RDMA_WRITE, FROM, TO, 64);
	for (uint32_t i = 0; i < MESSAGES; i++)
		loan_post(b, WR_RDMA_WRITE, FROM, TO, MSG);
	for (uint32_t i = 0; i < 3; i++) /* 16 packets of a queue pair each */
		stage_request(b->w);
	assert_int_equal(q->tail - q->head, 1 + MESSAGES * PARTS);
	rte_pktmbuf_free(q->m[b->w->tx[b->w->wires_n].head++]);
	worker_poll(b->w, b->now);
	assert_int_equal(qp_stat(b->qp, STAT_kept_requests), MESSAGES * PARTS);
	loan_turns(b, 4);
	assert_memory_equal(b->memory + TO, b->memory + FROM, MSG);
	for (uint32_t i = 0; i <= MESSAGES; i++)
		loan_success(b, WC_RDMA_WRITE);
}

/* A READ that fails at its place, and one whose place is partly none: nothing on loan is left. */
static void
no_place(void **state)
{
	struct bed *b = *state;
	struct ring_send_wqe *wqe = loan_post(b, WR_RDMA_READ, TO, FROM, MSG);

	wqe->sge[0].lkey = 0xbad;
	loan_turns(b, 5);
	assert_int_equal(bed_cqe(b).status, WC_LOC_PROT_ERR);
	assert_int_equal(b->w->lends, 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		LOAN_TEST(LB_01_write),
		LOAN_TEST(LB_01_send),
		LOAN_TEST(LB_01_read),
		LOAN_TEST(read_in_one_turn),
		LOAN_TEST(LB_01_read_list),
		LOAN_TEST(over_itself),
		LOAN_TEST(the_key_ends),
		LOAN_TEST(the_window_ends),
		LOAN_TEST(the_mailbox_comes_last),
		LOAN_TEST(RESP_SEQ_14_kept),
		LOAN_TEST(RESP_SEQ_14_more_than_a_burst),
		LOAN_TEST(no_place),
	};

	return cmocka_run_group_tests(tests, bed_group_setup, NULL);
}
