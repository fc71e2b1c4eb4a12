/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CRC_ISAL_H
#define CRC_ISAL_H
/**
 * @file crc_isal.h  CRC backend over ISA-L: the fast one.
 *
 * Owner:   any lcore; the ops are constant.
 * Memory:  none.
 * Depends: base, wire, icrc, ISA-L.
 */
#include "icrc.h"

const struct crc_ops *crc_isal(void);

#endif
