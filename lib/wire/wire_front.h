/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef WIRE_FRONT_H
#define WIRE_FRONT_H
/**
 * @file wire_front.h  What a port's plain packets begin with, in the form that wide registers need.
 *
 * Owner:   the control lcore fills it in; any lcore reads it.
 * Memory:  the caller's.
 * Depends: base, wire_plain.h.
 * Spec:    WIRE-01..18.
 *
 * Apart from wire_wide.h, which uses it: to read all intrinsics of x86 takes the compiler longer
 * than to compile most files that know a worker.
 */
#include "cpu.h"
#include "wire_plain.h"

/** First bytes of an untagged IPv4 packet for a port; the bits of wire_front_mask count. */
struct wire_front {
	uint8_t want[64] CACHE_ALIGNED;
};

extern const uint8_t wire_front_mask[64];

/** Fill it in. For a port without IPv4 no frame matches. Before the workers start. */
void wire_front_init(struct wire_front *f, const struct wire_port *us);

/** What an opcode adds to the lengths of a plain packet: a part of a wire_pkt. */
struct wire_row {
	opflags_t op;
	uint16_t frame_len;
	uint16_t payload_off;
	uint16_t payload_len; /* of the UDP length, less what is subtracted as a complement */
	uint16_t icrc_off;    /* of the UDP length */
	uint16_t l3_off;
	uint16_t bth_off;
} __attribute__((aligned(16)));

extern const struct wire_row wire_rows[256];

#if defined(__x86_64__)
#define WIRE_WIDE 1
#define TARGET_WIRE_WIDE \
	__attribute__((target("avx512f,avx512bw,avx512vl,avx512vbmi,avx2,avx,sse4.1")))

/** May wire_read_wide() be called on this machine? Cost: a load. */
static inline bool
wire_has_wide(void)
{
	return cpu_has(CPU_WIDE_PARSE);
}
#else
#define WIRE_WIDE 0
#endif

#endif
