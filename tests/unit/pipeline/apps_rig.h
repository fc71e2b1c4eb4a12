/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TEST_PIPELINE_APPS_RIG_H
#define TEST_PIPELINE_APPS_RIG_H
/**
 * @file apps_rig.h  Clients of one worker with queue pairs that send, and what has left of each.
 *
 * Owner:   the pipeline's unit tests that include it; one test at a time.
 * Memory:  doorbells, from attach_as() to detach().
 * Depends: bed.h.
 */
#include <stdlib.h>
#include <string.h>

#include "bed.h"
#include "compiler.h"
#include "qp_client.h"

enum {
	VICTIM,
	OTHER,
	THIRD,
	FOURTH,
	CLIENTS,
	MOST_QPS = 8,
	BELLS = 64,
	SENDQ = 64,
	SENDQ_DEEP = 128, /* more than is in flight and a turn takes: it never runs dry */
	FIRST_QPN = 0x20
};

/** One QP of a client, and how far its peer has seen it. */
struct sender {
	struct qp *qp;
	struct ring sq;
	uint32_t acked; /* PSN behind the last packet */
	uint32_t completed;
};

struct app {
	struct qp_client client;
	struct ring_bells bells; /* the client's view */
	void *memory;            /* of them */
	struct sender qp[MOST_QPS];
	uint32_t qps_n;
	uint32_t depth; /* requests in a send queue: SENDQ, as a rule */
	uint8_t opcode;
	uint32_t len;
	bool mixed; /* each second request has 8 bytes */
	uint64_t packets;
	uint64_t bytes;
};

static UNUSED struct app apps[CLIENTS];

static UNUSED void
make_qps(struct bed *b, uint32_t i, uint32_t qps)
{
	const struct qp_alloc_params params = { .max_recv_wr = 16,
		.max_recv_sge = 4,
		.max_send_wr = SENDQ_DEEP,
		.max_send_sge = 4,
		.max_dest_rd_atomic = 4,
		.client = i + 1 };
	struct app *a = &apps[i];

	for (a->qps_n = 0; a->qps_n < qps; a->qps_n++) {
		const uint32_t qpn = FIRST_QPN + i * MOST_QPS + a->qps_n;
		struct sender *s = &a->qp[a->qps_n];

		s->qp = bed_qp_with(b, qpn, qpn, &params);
		s->acked = s->completed = S;
		ring_attach(&s->sq, s->qp->sq.ring.sh, s->qp->sq.ring.mask + 1,
			s->qp->sq.ring.stride, false);
	}
}

/** @return how many they were. */
static UNUSED uint32_t
end_qps(struct bed *b, struct app *a)
{
	const uint32_t n = a->qps_n;

	for (uint32_t k = 0; k < n; k++)
		bed_qp_gone(b, a->qp[k].qp);
	a->qps_n = 0; /* it posts no more */
	return n;
}

static UNUSED void
attach_as(
	struct bed *b, uint32_t i, struct qp_client as, uint32_t qps, uint8_t opcode, uint32_t len)
{
	struct mbox_msg m = { .type = MBOX_CLIENT_ATTACH, .client.client = &apps[i].client };
	struct app *a = &apps[i];

	memset(a, 0, sizeof(*a));
	a->memory = aligned_alloc(64, ring_bells_size(BELLS));
	memset(a->memory, 0, ring_bells_size(BELLS));
	ring_bells_attach(&a->client.bells, a->memory, BELLS);
	ring_bells_attach(&a->bells, a->memory, BELLS);
	a->client.weight = as.weight;
	a->client.rate = as.rate;
	a->client.user = as.user;
	a->client.id = i + 1;
	a->opcode = opcode;
	a->len = len;
	a->depth = SENDQ;
	assert_int_equal(bed_tell(b, &m), 0);
	make_qps(b, i, qps);
}

static UNUSED void
attach(struct bed *b, uint32_t i, uint32_t qps, uint8_t opcode, uint32_t len)
{
	attach_as(b, i, (struct qp_client){ 0 }, qps, opcode, len);
}

static UNUSED void
detach(struct bed *b, uint32_t i)
{
	struct mbox_msg m = { .type = MBOX_CLIENT_DETACH, .client.client = &apps[i].client };

	end_qps(b, &apps[i]);
	assert_int_equal(bed_tell(b, &m), 0);
	free(apps[i].memory);
}

/** @return false: its send queue is full. */
static UNUSED bool
put_one(const struct app *a, struct sender *s)
{
	struct ring_send_wqe *w = ring_produce_slot(&s->sq, a->depth);

	if (w == NULL)
		return false;
	memset(w, 0, s->sq.stride);
	w->opcode = a->opcode;
	w->remote_addr = 0x700000;
	w->rkey = 0x77;
	w->num_sge = 1;
	w->sge[0] = (struct ring_sge){ MR_VA, a->len, MR_KEY };
	if (a->mixed && s->sq.prod % 2 == 0)
		w->sge[0].length = 8;
	ring_produce_commit(&s->sq);
	return true;
}

/** Fill the send queue of each QP. */
static UNUSED void
post(struct app *a)
{
	for (uint32_t k = 0; k < a->qps_n; k++) {
		struct sender *s = &a->qp[k];
		const uint32_t before = s->sq.prod;

		while (put_one(a, s))
			;
		if (s->sq.prod != before && ring_bell_is_due(&s->sq))
			assert_int_equal(ring_bells_put(&a->bells, s->qp->qpn), 0);
	}
}

/** The peers acknowledge all that has been sent. */
static UNUSED void
acknowledge(struct bed *b, struct app *a)
{
	for (uint32_t k = 0; k < a->qps_n; k++) {
		struct sender *s = &a->qp[k];
		const struct wire_fields f = { .opcode = OP_RC_ACKNOWLEDGE,
			.dest_qpn = s->qp->qpn,
			.psn = psn(s->acked - 1),
			.aeth = { .syndrome = AETH_CREDIT_NONE } };

		if (s->acked != s->completed)
			bed_send(b, &f);
		s->completed = s->acked;
	}
}

/** What was sent in the last turn, by client. */
static UNUSED void
count_output(struct bed *b)
{
	for (uint32_t i = 0; i < b->out_n; i++) {
		const struct wire_pkt *p = &b->pkt[i];
		const uint32_t at = p->dest_qpn - FIRST_QPN;
		struct app *a = &apps[at / MOST_QPS];

		if (at >= CLIENTS * MOST_QPS)
			continue;
		a->packets++;
		a->bytes += p->frame_len;
		a->qp[at % MOST_QPS].acked = psn_add(p->psn, 1).v;
	}
	b->out_at = b->out_n;
}

#endif
