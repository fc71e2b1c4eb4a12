/* SPDX-License-Identifier: BSD-3-Clause */
#include "loan_bed.h"

#include <string.h>

#include "sending.h"

struct loan_bed loan;

void
loan_refill(struct bed *b)
{
	mem_pattern_fill(b->memory + FROM, FILLED, ++loan.seeds, 0);
}

int
loan_setup(void **state)
{
	struct bed *b;

	assert_int_equal(bed_setup(state), 0);
	b = *state;
	loan.sender = bed_qp(b, SENDER, QPN);
	bed_make_local(b, loan.sender, QPN);
	bed_make_local(b, b->qp, SENDER);
	b->qp->resp.epsn = psn(S);
	ring_attach(&loan.producer, loan.sender->sq.ring.sh, loan.sender->sq.ring.mask + 1,
		loan.sender->sq.ring.stride, false);
	loan_refill(b); /* buffers of the pool hold what was sent before */
	return 0;
}

int
loan_teardown(void **state)
{
	struct bed *b = *state;

	bed_qp_gone(b, loan.sender);
	return bed_teardown(state);
}

struct ring_send_wqe *
loan_post_to(struct bed *b, struct qp *qp, struct ring *r, uint8_t opcode, uint32_t from,
	uint32_t to, uint32_t len)
{
	struct ring_send_wqe *wqe = ring_produce_slot(r, 16);

	assert_non_null(wqe);
	memset(wqe, 0, r->stride);
	wqe->opcode = opcode;
	wqe->flags = SEND_SIGNALED;
	wqe->remote_addr = MR_VA + to;
	wqe->rkey = MR_KEY;
	wqe->num_sge = 1;
	wqe->sge[0] = (struct ring_sge){ .addr = MR_VA + from, .length = len, .lkey = MR_KEY };
	ring_produce_commit(r);
	pipeline_send_wake(b->w, qp);
	return wqe;
}

struct ring_send_wqe *
loan_post(struct bed *b, uint8_t opcode, uint32_t from, uint32_t to, uint32_t len)
{
	return loan_post_to(b, loan.sender, &loan.producer, opcode, from, to, len);
}

void
loan_turns(struct bed *b, uint32_t n)
{
	while (n-- != 0)
		worker_poll(b->w, b->now);
}

const struct tx_queue *
loan_queue(const struct bed *b)
{
	return &b->w->tx[b->w->wires_n];
}

void
loan_success(struct bed *b, uint8_t opcode)
{
	struct ring_cqe c = bed_cqe(b);

	assert_int_equal(c.status, WC_SUCCESS);
	assert_int_equal(c.opcode, opcode);
}
