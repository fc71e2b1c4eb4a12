/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BENCH_LOCAL_H
#define BENCH_LOCAL_H
/**
 * @file bench_local.h  Rows of bench_pipeline.c for local destinations: both ends on one worker.
 *
 * Owner:   bench_requests.c; one thread.
 * Memory:  static; huge pages by advice, as bench_rig.h.
 * Depends: bench_req_rig.h (cases), net_pair.
 */
#include "bench_req_rig.h"
#include "bench_row.h"

/** Two ports that are joined, and two pairs of QPs on them: one uses the wire, one does not. */
void local_set_up(struct bench_rig *r);
void local_tear_down(void);
/** Bring the QPs up. @return requests of a sample. */
uint32_t local_begin(const struct request_case *c);
/** TOTAL: cycles of a request inside of the process; RATIO: to the same over the two ports. */
bool local_round(const struct request_case *c, uint32_t n, double v[COLUMNS]);
/** One request inside of the process. @return bytes that were copied for each byte delivered. */
double local_copied(struct bench_rig *r, const struct request_case *c);

#endif
