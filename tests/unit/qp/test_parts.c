/* SPDX-License-Identifier: BSD-3-Clause */
/* Compact QPs: what they hold while they are idle, and the parts that they get later. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "../../clib/eal.h"
#include "../../clib/qp_new.h"
#include "qp.h"
#include "qp_control.h"
#include "qp_parts.h"
#include "qp_snapshot.h"

/* Those of a configuration that says nothing of capacities. */
static const struct qp_alloc_params idle = { .max_recv_wr = 128,
	.max_recv_sge = 4,
	.max_send_wr = 128,
	.max_send_sge = 4,
	.max_dest_rd_atomic = 16,
	.compact = true };

static int
setup_eal(void **state)
{
	(void)state;
	return eal_start("64");
}

static void
to_rts(struct qp *qp)
{
	static const uint8_t states[] = { QPS_INIT, QPS_RTR, QPS_RTS };
	const uint32_t mask = QP_ATTR_STATE | QP_ATTR_ACCESS_FLAGS | QP_ATTR_PATH_MTU |
			      QP_ATTR_RQ_PSN | QP_ATTR_SQ_PSN | QP_ATTR_MAX_DEST_RD_ATOMIC;
	struct qp_attr a = { .path_mtu = 1024, .rq_psn = 7, .sq_psn = 9, .max_dest_rd_atomic = 16 };

	for (uint32_t i = 0; i < 3; i++) {
		a.qp_state = states[i];
		qp_apply(qp, &a, mask);
	}
}

static void
to_reset(struct qp *qp)
{
	const struct qp_attr a = { .qp_state = QPS_RESET };

	qp_apply(qp, &a, QP_ATTR_STATE);
}

/* The bound: 1 KiB with its place in the table. */
static void
an_idle_qp_has_at_most_1_kib(void **state)
{
	enum { N = 5000 };
	struct qp **qp = calloc(N, sizeof(qp[0]));
	size_t bytes;

	(void)state;
	assert_non_null(qp);
	assert_int_equal(qp_cells_bytes(), 0);
	assert_int_equal(qp_footprint(&idle, &bytes), 0);
	assert_true(bytes + sizeof(struct qp *) <= 1024);
	for (uint32_t i = 0; i < N; i++) {
		qp[i] = qp_new(&idle);
		assert_non_null(qp[i]);
		assert_int_equal((uintptr_t)qp[i] % CACHE_LINE, 0);
		to_rts(qp[i]);
	}
	/* A slab that is not full is the only one. */
	assert_true(qp_cells_bytes() / 1024 <= N + 2048);
	for (uint32_t i = 0; i < N; i++)
		qp_free(qp[i]);
	assert_int_equal(qp_cells_bytes(), 0);
	free(qp);
}

/* A cell that is used again is as good as new, whatever its QP did. */
static void
a_cell_is_used_again(void **state)
{
	struct qp *keep = qp_new(&idle), *qp = qp_new(&idle), *again;

	(void)state;
	to_rts(qp);
	qp->hot[0] = 5;
	qp_side_take(qp, qp_new_sides(1));
	qp_work_take(qp, qp_new_work(qp));
	qp_free(qp);
	again = qp_new(&idle);
	assert_ptr_equal(again, qp);
	assert_int_equal(again->hot[0], 0);
	assert_null(again->stats);
	assert_null(again->work);
	assert_int_equal(again->resp.epsn.v, 0);
	assert_int_equal(atomic_load(&again->state), QPS_RESET);
	qp_free(again);
	qp_free(keep);
}

static void
what_cannot_be_compact_is_not(void **state)
{
	struct qp_alloc_params p[3] = { idle, idle, idle };

	(void)state;
	assert_true(qp_is_compact(&idle));
	p[0].max_dest_rd_atomic = QP_SIDE_READS + 1;
	p[1].send_feed = true;
	p[2].own_area = true;
	for (uint32_t i = 0; i < 3; i++) {
		struct qp *qp = qp_new(&p[i]);

		assert_non_null(qp);
		assert_false(qp->compact);
		assert_non_null(qp->stats);
		assert_non_null(qp->copy);
		qp_free(qp);
	}
}

/* Without its parts it has no receive WQE, nothing to send, and counters of the good path. */
static void
without_parts(void **state)
{
	struct qp *qp = qp_new(&idle);
	struct qp_snapshot s;

	(void)state;
	to_rts(qp);
	assert_int_equal(ring_consume_count(&qp->rq), 0);
	assert_null(qp->sq.ring.sh);
	assert_non_null(qp->req.wr);
	assert_non_null(qp->resp.saved); /* or READs would be more than it takes */
	assert_int_equal(qp->resp.max_dest_rd_atomic, 16);
	qp->hot[STAT_rcvd_pkts] = 3;
	qp_snapshot(qp, 0, 0, &s);
	assert_int_equal(s.rq_posted, 0);
	assert_int_equal(s.outstanding, 0);
	assert_int_equal(s.stats.c[STAT_rcvd_pkts], 3);
	assert_int_equal(s.stats.c[STAT_out_of_sequence], 0);
	assert_int_equal(qp_stat(qp, STAT_out_of_sequence), 0);
	to_reset(qp);
	assert_int_equal(qp->hot[STAT_rcvd_pkts], 0);
	qp_free(qp);
}

/* The side is the QP's for good; RESET clears it (QP-05). */
static void
QP_05_side(void **state)
{
	struct qp *qp = qp_new(&idle);
	struct qp_snapshot s;

	(void)state;
	to_rts(qp);
	qp_side_take(qp, qp_new_sides(1));
	assert_int_equal(qp->answers.cap, QP_SIDE_ANSWERS);
	assert_ptr_equal(qp->resp.saved, qp->side->saved);
	qp->stats->c[STAT_out_of_sequence] = 4;
	qp->saved[3].kind = OP_RC_READ_REQUEST;
	qp_snapshot(qp, 0, 0, &s);
	assert_int_equal(s.stats.c[STAT_out_of_sequence], 4);
	to_reset(qp);
	assert_int_equal(qp_stat(qp, STAT_out_of_sequence), 0);
	assert_int_equal(qp->saved[3].kind, 0);
	to_rts(qp);
	assert_ptr_equal(qp->resp.saved, qp->side->saved);
	qp_free(qp);
}

static void
post(struct ring *view)
{
	struct ring producer;

	ring_attach(&producer, view->sh, view->mask + 1, view->stride, false);
	assert_non_null(ring_produce_slot(&producer, 128));
	ring_produce_commit(&producer);
}

/* What is posted after the QP got its work is there, and is its own. */
static void
work(void **state)
{
	struct qp *qp = qp_new(&idle), *other = qp_new(&idle);
	struct qp_work *made;

	(void)state;
	to_rts(qp);
	to_rts(other);
	assert_null(qp->copy);
	made = qp_new_work(qp);
	assert_non_null(made);
	assert_null(qp->copy); /* not before the worker takes it */
	assert_int_equal(qp->rq.mask, 0);
	qp_work_take(qp, made);
	assert_int_equal(qp->rq.mask, 127);
	assert_int_equal(qp->req.wr_mask, 127);
	post(&qp->rq);
	post(&qp->sq.ring);
	assert_int_equal(ring_consume_count(&qp->rq), 1);
	assert_int_equal(ring_consume_count(&qp->sq.ring), 1);
	qp_work_take(qp, made); /* a message that comes twice forgets nothing */
	assert_int_equal(ring_consume_count(&qp->rq), 1);
	assert_int_equal(ring_consume_count(&other->rq), 0);
	memset(qp->req.wr, 0xff, 128 * sizeof(qp->req.wr[0]));
	memset(qp_send_sges(qp, 0), 0xff, 128 * 4 * sizeof(struct ring_sge));
	memset(qp->copy, 0xff, sizeof(*qp->copy));
	assert_int_equal(ring_consume_count(&qp->rq), 1);
	qp_free(qp);
	qp_free(other);
}

/* max_send_wr 0: it receives, and never sends. */
static void
work_of_a_receiver(void **state)
{
	struct qp_alloc_params p = idle;
	struct qp *qp;

	(void)state;
	p.max_send_wr = 0;
	qp = qp_new(&p);
	qp_work_take(qp, qp_new_work(qp));
	assert_null(qp->sq.ring.sh);
	assert_int_equal(qp->rq.mask, 127);
	qp_free(qp);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_idle_qp_has_at_most_1_kib),
		cmocka_unit_test(a_cell_is_used_again),
		cmocka_unit_test(what_cannot_be_compact_is_not),
		cmocka_unit_test(without_parts),
		cmocka_unit_test(QP_05_side),
		cmocka_unit_test(work),
		cmocka_unit_test(work_of_a_receiver),
	};

	return cmocka_run_group_tests(tests, setup_eal, NULL);
}
