/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TEST_QP_NEW_H
#define TEST_QP_NEW_H
/**
 * @file qp_new.h  QPs and their parts for tests that expect to get them.
 *
 * Owner:   tests only.
 * Memory:  that of qp_control.h; NULL instead of an error.
 * Depends: qp.
 */
#include "qp_control.h"

/** A QP of these parameters, or NULL. */
static inline struct qp *
qp_new(const struct qp_alloc_params *p)
{
	struct qp *qp = NULL;

	return qp_alloc(p, &qp) == 0 ? qp : NULL;
}

/** `n` sides in a list, or NULL. */
static inline struct qp_side *
qp_new_sides(uint32_t n)
{
	struct qp_side *list = NULL;

	return qp_sides_alloc(&n, -1, &list) == 0 ? list : NULL;
}

/** What a compact QP posts with, or NULL. */
static inline struct qp_work *
qp_new_work(const struct qp *qp)
{
	struct qp_work *work = NULL;

	return qp_work_alloc(qp, -1, &work) == 0 ? work : NULL;
}

#endif
