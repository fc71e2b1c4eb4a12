/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PCAPNG_H
#define PCAPNG_H
/**
 * @file pcapng.h  Blocks of a capture file, in this machine's byte order, made in memory.
 *
 * Owner:   any lcore; the functions are pure.
 * Memory:  the caller's; each says how much room it needs.
 * Depends: nothing.
 * Spec:    pcapng: draft-ietf-opsawg-pcapng. Times are nanoseconds (if_tsresol 9).
 *
 * A file is one section, an interface for each port in the order of their indices, then packets.
 */
#include <stdint.h>

#define PCAPNG_COMMENT_MAX   512 /* with its end */
#define PCAPNG_INTERFACE_MAX 128 /* with a name of at most 64 bytes */
#define PCAPNG_SECTION_BYTES 28
#define PCAPNG_LOST_BYTES    40
/** The most that a packet of `captured` bytes takes. */
#define PCAPNG_PACKET_MAX(captured) ((captured) + PCAPNG_COMMENT_MAX + 48)

struct pcapng_packet {
	uint32_t interface;
	uint32_t captured; /* bytes at `data` */
	uint32_t length;   /* of the frame */
	uint64_t time_ns;
	const void *data;
	const char *comment; /* NULL: none */
};

/** Each returns how many bytes it has put: a multiple of 4. */
uint32_t trace_pcapng_section(uint8_t *to);
/** Ethernet. @param snap the most that is captured of a frame; 0: all. */
uint32_t trace_pcapng_interface(uint8_t *to, const char *name, uint32_t snap);
/** With its comment, if it has one. */
uint32_t trace_pcapng_packet(uint8_t *to, const struct pcapng_packet *p);
/** At the end: so many packets of the interface are not in the file. */
uint32_t trace_pcapng_lost(uint8_t *to, uint32_t interface, uint64_t time_ns, uint64_t lost);

#endif
