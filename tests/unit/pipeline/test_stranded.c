/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests wait for a port that takes nothing, and meanwhile the QP has another path. */
#include "bed.h"
#include "full_port.h"
#include "worker.h"

#include <errno.h>
#include <string.h>

#define TTR  (UINT64_C(4096) << 14) /* timeout 14, ns */
#define STEP (TTR / 16)

/* The bed looks closely at what is for its own tester's QP. */
enum { OTHER_HOST = 77, OTHER_QPN = 0x12, OTHER_PEER = PEER_QPN + 1 };

/** One SEND, made while the port is full. */
static void
post_send(struct bed *b, struct qp *qp)
{
	struct mbox_msg m = { .type = MBOX_QP_POSTED };
	struct ring_send_wqe *wqe;
	struct ring sq;

	ring_attach(&sq, qp->sq.ring.sh, qp->sq.ring.mask + 1, qp->sq.ring.stride, false);
	wqe = ring_produce_slot(&sq, 16);
	assert_non_null(wqe);
	memset(wqe, 0, sq.stride);
	wqe->opcode = WR_SEND;
	wqe->flags = SEND_SIGNALED;
	wqe->num_sge = 1;
	wqe->sge[0] = (struct ring_sge){ .addr = MR_VA, .length = 16, .lkey = MR_KEY };
	ring_produce_commit(&sq);
	m.qp.qp = qp;
	assert_int_equal(bed_tell(b, &m), 0);
}

/** Turns without looking at what comes out. */
static void
turns(struct bed *b, ns_t most)
{
	for (const ns_t end = b->now + most; b->now < end; b->now += STEP)
		worker_poll(b->w, b->now);
}

/** The QP is ARMED: its other path leads to another address by the same port. */
static struct qp_attr
arm(struct bed *b, struct qp *qp)
{
	struct qp_attr attr = qp->attr;

	attr.alt_path = attr.path;
	attr.alt_path.dst_ip[3] = OTHER_HOST;
	attr.alt_resolved = true;
	attr.alt_port = qp->port;
	attr.alt_timeout = QP_ALT_TIMEOUT_SAME;
	attr.path_mig_state = MIG_REARM;
	assert_int_equal(bed_modify(b, qp, &attr, QP_ATTR_ALT_PATH | QP_ATTR_PATH_MIG_STATE), 0);
	qp_migration_set(qp, MIG_ARMED);
	attr.path_mig_state = MIG_MIGRATED;
	return attr;
}

/** The next frame is the SEND, to this host, which need not be the tester. */
static void
expect_send_to(struct bed *b, uint8_t host)
{
	const struct wire_pkt *p = &b->pkt[b->out_at];

	assert_true(b->out_at < b->out_n);
	assert_int_equal(p->opcode, OP_RC_SEND_ONLY);
	assert_int_equal(p->psn.v, S);
	assert_int_equal(p->frame[p->l3_off + 19], host);
	b->out_at++;
}

static void
migrated(struct bed *b, const struct qp *qp)
{
	assert_int_equal(bed_up(b, MBOX_EVENT).ev.event, 6); /* IBV_EVENT_PATH_MIG */
	turns(b, 3 * TTR);
	assert_int_equal(bed_stat(b, STAT_local_ack_timeout_err), 0);
	empty_port();
	bed_turn(b);
	expect_send_to(b, 2);
	expect_send_to(b, OTHER_HOST);
	expect_silence(b);
	assert_int_equal(bed_stat(b, STAT_local_ack_timeout_err), 0);
	assert_int_equal(qp->req.retry_left, qp->req.retry_cnt);
}

/* AE-12: nobody takes what waits for the first path. It leaves on the other one at once. */
static void
AE_12_by_order(void **state)
{
	struct bed *b = *state;
	struct qp *qp = bed_qp(b, OTHER_QPN, OTHER_PEER);
	const struct qp_attr attr = arm(b, qp);

	fill_port(b);
	post_send(b, qp);
	turns(b, STEP);
	assert_int_equal(bed_modify(b, qp, &attr, QP_ATTR_PATH_MIG_STATE), 0);
	migrated(b, qp);
	bed_qp_gone(b, qp);
}

/* ... and where the peer has migrated. */
static void
AE_12_by_the_peer(void **state)
{
	struct bed *b = *state;
	struct qp *qp = bed_qp(b, OTHER_QPN, OTHER_PEER);
	struct wire_fields f = write_only(E, MR_VA, 8);
	struct wire_path path = bed_path();

	arm(b, qp);
	fill_port(b);
	post_send(b, qp);
	turns(b, STEP);
	path.src_ip[3] = OTHER_HOST;
	f.dest_qpn = OTHER_QPN;
	f.flags = PKT_MIGREQ; /* no ACK of it is asked for */
	bed_put(b, bed_frame_on(&path, &f));
	turns(b, STEP);
	assert_int_equal(qp->resp.epsn.v, E + 1);
	migrated(b, qp);
	bed_qp_gone(b, qp);
}

/* TMR-02: a path of SQD's may have another queue. What waits in the first one is not lost. */
static void
TMR_02_another_queue(void **state)
{
	struct bed *b = *state;
	struct qp *qp = bed_qp(b, OTHER_QPN, OTHER_PEER);
	struct qp_attr attr = qp->attr;

	fill_port(b);
	post_send(b, qp);
	turns(b, STEP);
	assert_int_equal(bed_state(b, qp, QPS_SQD), 0);
	attr.path.local = true;
	assert_int_equal(bed_modify(b, qp, &attr, QP_ATTR_AV), 0);
	assert_int_equal(qp->out, qp->port | QP_OUT_LOCAL);
	turns(b, 3 * TTR);
	assert_int_equal(bed_stat(b, STAT_local_ack_timeout_err), 0);
	empty_port();
	bed_turn(b);
	expect_send_to(b, 2);
	expect_silence(b);
	bed_qp_gone(b, qp);
}

/*
 * UC-02: who moves to another worker has no request that waits for a port, whatever path it
 * was made for: its completion would never come.
 */
static void
UC_02_another_queue_and_worker(void **state)
{
	struct bed *b = *state;
	struct qp *qp = bed_qp(b, OTHER_QPN, OTHER_PEER);
	struct qp_attr attr = qp->attr;
	struct mbox_msg release = { .type = MBOX_QP_RELEASE, .move = { qp, 0 } };
	struct mbox_msg adopt = { .type = MBOX_QP_ADOPT };

	qp->type = qp->req.qp_type = QPT_UC;
	qp_service_set(qp, WIRE_UC);
	qp->req.timeout = 0;
	fill_port(b);
	post_send(b, qp);
	turns(b, STEP);
	assert_int_equal(bed_state(b, qp, QPS_SQD), 0);
	attr.path.local = true;
	assert_int_equal(bed_modify(b, qp, &attr, QP_ATTR_AV), 0);
	assert_int_equal(bed_tell(b, &release), -EAGAIN);
	bed_no_cqe(b);
	empty_port();
	bed_turn(b);
	bed_forget_output(b);
	assert_int_equal(bed_cqe(b).status, 0);
	assert_int_equal(bed_tell(b, &release), 0);
	adopt.qp.qp = qp;
	assert_int_equal(bed_tell(b, &adopt), 0);
	while (mbox_recv_up(&b->mbox, &(struct mbox_msg){ 0 }, 1) != 0)
		;
	bed_qp_gone(b, qp);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(AE_12_by_order),
		TEST(AE_12_by_the_peer),
		TEST(TMR_02_another_queue),
		TEST(UC_02_another_queue_and_worker),
	};

	return cmocka_run_group_tests(tests, bed_group_setup, NULL);
}
