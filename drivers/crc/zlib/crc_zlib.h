/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CRC_ZLIB_H
#define CRC_ZLIB_H
/**
 * @file crc_zlib.h  CRC backend over zlib: where ISA-L is not there, and a second opinion in tests.
 *
 * Owner:   any lcore; the ops are constant.
 * Memory:  none.
 * Depends: base, wire, icrc, zlib.
 */
#include "icrc.h"

const struct crc_ops *crc_zlib(void);

#endif
