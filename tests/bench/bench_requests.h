/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BENCH_REQUESTS_H
#define BENCH_REQUESTS_H
/**
 * @file bench_requests.h  Rows of bench_pipeline.c for the requester, its timers, and idle workers.
 *
 * Owner:   bench_pipeline.c.
 * Memory:  static.
 * Depends: bench_req_rig.h.
 */
#include "bench_req_rig.h"
#include "bench_row.h"

extern const struct request_case request_cases[];
extern const uint32_t request_cases_n;

/** @param qps the most QPs of a row that is going to be measured. */
void requests_set_up(struct bench_rig *r, uint32_t qps);
void requests_tear_down(void);
/** Whose packets the bare loop of this row has; "own": it has none. */
const char *requests_bare(const struct request_case *c);
/** @return packets of a sample. */
uint32_t requests_begin(const struct request_case *c);
/** One round of all loops; RATIO is that to the worker next to it, where there is one. */
bool requests_round(const struct request_case *c, uint32_t n, double v[COLUMNS]);
/** @return bytes that the worker copies for each byte delivered; 0: the row delivers none. */
double requests_copied(const struct request_case *c);

#endif
