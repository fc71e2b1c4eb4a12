/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CONF_PAIR_H
#define CONF_PAIR_H
/**
 * @file conf_pair.h  Devices net_pair0a and net_pair0b, and so on: both ends of a wire in memory.
 *
 * Owner:   control lcore.
 * Memory:  none.
 * Depends: base.
 * Spec:    -
 */
#include <stdbool.h>
#include <stdint.h>

struct conf;

#define CONF_PAIR "net_pair"

/** "net_pair12b": 12, and 1 for b. @return false: another kind of device. */
bool conf_pair_parse(const char *device, uint32_t *number, uint32_t *end);
/** The port at the other end of this port's wire; -1: there is none, or it is no such port. */
int conf_pair_far(const struct conf *c, uint32_t port);

#endif
