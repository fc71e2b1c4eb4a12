/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CONF_QPS_H
#define CONF_QPS_H
/**
 * @file conf_qps.h  Places of queue pairs: the low bits of their numbers.
 *
 * Owner:   control lcore.
 * Memory:  none.
 * Depends: base.
 * Spec:    -
 */
#include <stdint.h>

struct conf;

/** Entries of the table of all queue pairs, a power of two: as many low bits are a place in it. */
uint32_t conf_qp_places(const struct conf *c);

#endif
