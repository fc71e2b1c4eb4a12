/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CROSS_H
#define CROSS_H
/**
 * @file cross.h  Inside lib/conf: relations between the objects of a whole configuration.
 *
 * Owner:   control lcore.
 * Memory:  sorted copies of names and numbers while a check runs.
 * Depends: base, jansson (through conf_json.h).
 * Spec:    RX-LNK-02 (path MTU against port MTU), RT-04, RT-09.
 *
 * Each takes configurations with faults too: a value that had one is blank and is passed over.
 */
#include "conf_json.h"

/** Names and numbers that must be there once, and references that must lead somewhere. */
int conf_cross_names(const struct conf *c, struct conf_errors *err);
/** QP numbers: ranges of templates must not overlap, and there is a limit to all together. */
int conf_cross_qp_nums(const struct conf *c, struct conf_errors *err);
/** The routes of each port, and whether one reaches each QP's peers. @return 0 or -ENOMEM. */
int conf_cross_routes(const struct conf *c, struct conf_errors *err);
/** Members of multicast groups and listeners: once each, of what is there. @return 0 or -ENOMEM. */
int conf_cross_members(const struct conf *c, struct conf_errors *err);
/** Each QP against its port: address family and frame length; each device against its frames. */
void conf_cross_frames(const struct conf *c, struct conf_errors *err);
/**
 * What there is no room for: places of QP numbers, ports with priorities, XRC SRQs, transmit queues
 * for workers. And feeds that a knob forbids. The last check: places and workers are compared where
 * nothing was wrong with /qps.
 * @return 0 or -ENOMEM.
 */
int conf_cross_limits(const struct conf *c, struct conf_errors *err);
/** The two ends of each wire in memory. */
void conf_cross_pairs(const struct conf *c, struct conf_errors *err);

#endif
