/* SPDX-License-Identifier: BSD-3-Clause */
/* A modify changes the attributes that its mask names, and no others; and where they act. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "../../clib/eal.h"
#include "../../clib/qp_new.h"
#include "qp.h"

static const struct qp_alloc_params params = { .max_send_wr = 8,
	.max_send_sge = 1,
	.max_recv_wr = 8,
	.max_recv_sge = 2,
	.max_dest_rd_atomic = 4 };

#define ROW(bit, field)                                               \
	{                                                             \
		QP_ATTR_##bit, offsetof(struct qp_attr, field),       \
			sizeof(((struct qp_attr *)NULL)->field), #bit \
	}

static const struct {
	uint32_t mask;
	size_t at, bytes;
	const char *name;
} rows[] = {
	ROW(EN_SQD_ASYNC_NOTIFY, en_sqd_async_notify),
	ROW(ACCESS_FLAGS, qp_access_flags),
	ROW(PKEY_INDEX, pkey),
	ROW(QKEY, qkey),
	ROW(AV, path),
	ROW(PATH_MTU, path_mtu),
	ROW(TIMEOUT, timeout),
	ROW(RETRY_CNT, retry_cnt),
	ROW(RNR_RETRY, rnr_retry),
	ROW(RQ_PSN, rq_psn),
	ROW(MAX_QP_RD_ATOMIC, max_rd_atomic),
	ROW(MIN_RNR_TIMER, min_rnr_timer),
	ROW(SQ_PSN, sq_psn),
	ROW(MAX_DEST_RD_ATOMIC, max_dest_rd_atomic),
	ROW(DEST_QPN, dest_qp_num),
};

static const struct qp_attr first = { .timeout = 14,
	.retry_cnt = 3,
	.rnr_retry = 2,
	.min_rnr_timer = 12,
	.max_rd_atomic = 4,
	.max_dest_rd_atomic = 4,
	.qp_access_flags = ACCESS_REMOTE_WRITE,
	.path_mtu = 1024,
	.pkey = 0x8001,
	.dest_qp_num = 0x22,
	.rq_psn = 0x100,
	.sq_psn = 0x200,
	.qkey = 0x1111,
	.path = { .src_ip = { 192, 0, 2, 1 }, .dst_ip = { 192, 0, 2, 2 }, .ttl = 64 } };

static const struct qp_attr second = { .timeout = 15,
	.retry_cnt = 5,
	.rnr_retry = 6,
	.min_rnr_timer = 13,
	.max_rd_atomic = 1,
	.max_dest_rd_atomic = 2,
	.en_sqd_async_notify = true,
	.qp_access_flags = ACCESS_REMOTE_READ,
	.path_mtu = 512,
	.pkey = 0x8002,
	.dest_qp_num = 0x33,
	.rq_psn = 0x101,
	.sq_psn = 0x201,
	.qkey = 0x2222,
	.path = { .src_ip = { 192, 0, 2, 1 }, .dst_ip = { 192, 0, 2, 3 }, .ttl = 64 } };

/** A queue pair in SQD with the first set. */
static struct qp *
made(void)
{
	struct qp *qp = qp_new(&params);
	struct qp_attr a = first;
	uint32_t mask = QP_ATTR_STATE;

	assert_non_null(qp);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		mask |= rows[i].mask;
	for (uint8_t state = QPS_INIT; state <= QPS_SQD; state++) {
		a.qp_state = state;
		qp_apply(qp, &a, mask);
	}
	return qp;
}

/* QP-03: what the mask does not name stays. */
static void
QP_03_each_alone(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct qp *qp = made();
		struct qp_attr want = qp->attr;

		print_message("# %s\n", rows[i].name);
		assert_memory_not_equal((const char *)&want + rows[i].at,
			(const char *)&second + rows[i].at, rows[i].bytes);
		memcpy((char *)&want + rows[i].at, (const char *)&second + rows[i].at,
			rows[i].bytes);
		qp_apply(qp, &second, rows[i].mask);
		for (size_t k = 0; k < ARRAY_LEN(rows); k++)
			assert_memory_equal((const char *)&qp->attr + rows[k].at,
				(const char *)&want + rows[k].at, rows[k].bytes);
		assert_int_equal(qp->attr.qp_state, QPS_SQD);
		qp_free(qp);
	}
}

/* REQ-10, QP-10: in SQD, what the two engines go by changes with the attribute. */
static void
QP_10_they_act(void **state)
{
	struct qp *qp = made();

	(void)state;
	assert_int_equal(qp->req.max_rd_atomic, 4);
	qp_apply(qp, &second, QP_ATTR_MAX_QP_RD_ATOMIC);
	assert_int_equal(qp->req.max_rd_atomic, 1);
	assert_int_equal(qp->req.retry_cnt, 3);
	qp_apply(qp, &second, QP_ATTR_RETRY_CNT);
	assert_int_equal(qp->req.retry_cnt, 5);
	assert_int_equal(qp->req.retry_left, 5); /* REQ-RETRY-02 */
	assert_int_equal(qp->req.rnr_retry, 2);
	qp_apply(qp, &second, QP_ATTR_RNR_RETRY);
	assert_int_equal(qp->req.rnr_retry, 6);
	assert_int_equal(qp->req.rnr_left, 6); /* REQ-RNR-04 */
	assert_int_equal(qp->req.timeout, 14);
	qp_apply(qp, &second, QP_ATTR_TIMEOUT);
	assert_int_equal(qp->req.timeout, 15);
	assert_int_equal(qp->req.pmtu, 1024);
	assert_int_equal(qp->resp.pmtu, 1024);
	assert_int_equal(qp->pkey, 0x8001);
	qp_apply(qp, &second, QP_ATTR_PKEY_INDEX);
	assert_int_equal(qp->pkey, 0x8002);
	assert_int_equal(qp->resp.access, ACCESS_REMOTE_WRITE);
	qp_apply(qp, &second, QP_ATTR_ACCESS_FLAGS);
	assert_int_equal(qp->resp.access, ACCESS_REMOTE_READ);
	assert_int_equal(qp->peer_ipv4[3], 2);
	qp_apply(qp, &second, QP_ATTR_AV);
	assert_int_equal(qp->peer_ipv4[3], 3);
	qp_free(qp);
}

/* QP-07: in RTR, where the peer sends already, a modify does not begin again with rq_psn. */
static void
QP_07_no_new_beginning_in_RTR(void **state)
{
	struct qp *qp = qp_new(&params);
	struct qp_attr a = first;

	(void)state;
	assert_non_null(qp);
	for (a.qp_state = QPS_INIT; a.qp_state <= QPS_RTR; a.qp_state++)
		qp_apply(qp, &a, QP_ATTR_STATE | QP_ATTR_RQ_PSN | QP_ATTR_AV);
	assert_int_equal(qp->resp.epsn.v, 0x100);
	qp->resp.epsn = psn(0x105);
	qp_apply(qp, &a, QP_ATTR_TRACE);
	qp_apply(qp, &a, QP_ATTR_NEW_MAC);
	assert_int_equal(qp->resp.epsn.v, 0x105);
	qp_free(qp);
}

/* REQ-RETRY-09: an alternate path whose neighbour is not known any more is none. */
static void
REQ_RETRY_09_neighbour_of_the_alternate_path(void **state)
{
	struct qp *qp = made();
	struct qp_attr a = first;

	(void)state;
	a.alt_path = second.path;
	a.alt_resolved = true;
	qp_apply(qp, &a, QP_ATTR_ALT_PATH);
	qp_migration_set(qp, MIG_ARMED);
	assert_true(qp->req.armed);
	a.path = second.path;
	a.path_resolved = false;
	qp_apply(qp, &a, QP_ATTR_NEW_MAC);
	assert_false(qp->req.armed);
	a.path_resolved = true;
	qp_apply(qp, &a, QP_ATTR_NEW_MAC);
	assert_true(qp->req.armed);
	assert_int_equal(qp->attr.path.dst_ip[3], 2);
	qp_free(qp);
}

static int
setup_eal(void **state)
{
	(void)state;
	return eal_start("32");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(QP_03_each_alone),
		cmocka_unit_test(QP_10_they_act),
		cmocka_unit_test(QP_07_no_new_beginning_in_RTR),
		cmocka_unit_test(REQ_RETRY_09_neighbour_of_the_alternate_path),
	};

	return cmocka_run_group_tests(tests, setup_eal, NULL);
}
