/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef AF_PACKET_H
#define AF_PACKET_H
/**
 * @file af_packet.h  EAL arguments of af_packet ports that would fall silent, mended.
 *
 * Owner:   main lcore, before EAL starts.
 * Memory:  what af_packet_mend() returns is the caller's to free.
 * Depends: base.
 */
#include <stdbool.h>
#include <stdint.h>

/** The framesz used for this EAL argument; 0: it makes no af_packet port, or none that works. */
uint32_t af_packet_framesz(const char *arg);

/** A copy of the argument with a framesz that divides its blocksz. @return NULL without memory. */
char *af_packet_mend(const char *arg);

#endif
