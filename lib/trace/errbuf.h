/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ERRBUF_H
#define ERRBUF_H
/**
 * @file errbuf.h  Error buffer: syndrome and first bytes of packets dropped or refused, and why.
 *
 * Owner:   one worker produces, the control lcore consumes. Neither waits for the other: above half
 *          full one packet in 16 is kept, a full buffer keeps none, and each one left out is
 *          counted (RX-ERR-03).
 * Memory:  trace_errbuf_size(); the caller's.
 * Depends: base, mem (mem_refusal.h).
 * Spec:    RX-ERR-01..04.
 */
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "clock.h"
#include "compiler.h"
#include "mem_refusal.h"

#define ERRBUF_HEADER_BYTES 128

/** What became of the packet. */
enum errbuf_impact { ERRBUF_DROP, ERRBUF_NAK, ERRBUF_RNR, ERRBUF_FATAL };

struct errbuf_record {
	ns_t time_ns;
	uint64_t faults; /* fault mask; the low 32 bits are the syndrome */
	uint32_t qpn;
	uint32_t psn;
	uint16_t frame_len;
	uint16_t header_len; /* bytes valid in header */
	uint16_t port;
	uint16_t rule; /* rule index that decided, 0: header validation */
	uint8_t opcode;
	uint8_t charged; /* enum wire_fault the drop is counted under; 0xff: refused without one */
	uint8_t impact;  /* enum errbuf_impact */
	bool memory;     /* `refusal` is valid: else its line is not written */
	uint8_t reserved[28];
	uint8_t header[ERRBUF_HEADER_BYTES];
	struct mem_refusal refusal;
	uint8_t reserved_2[16];
};
_Static_assert(sizeof(struct errbuf_record) == 256, "four cache lines");

struct errbuf {
	_Atomic uint32_t prod CACHE_ALIGNED;
	uint32_t passed;       /* packets offered while more than half full (producer) */
	_Atomic uint64_t lost; /* records not stored: sampled out, or full */
	_Atomic uint32_t cons CACHE_ALIGNED;
	uint32_t mask;
	struct errbuf_record r[] CACHE_ALIGNED;
};

/** Bytes for `entries`, a power of two; 0: it is none. */
size_t trace_errbuf_size(uint32_t entries);
/** Empty buffer in memory of trace_errbuf_size(entries) bytes. Before the worker starts. */
void trace_errbuf_init(struct errbuf *b, uint32_t entries);
/** Worker: slot to fill (all of it: it holds an old record), or NULL: left out and counted. */
struct errbuf_record *trace_errbuf_slot(struct errbuf *b);
/** Worker: count n packets that get no record. */
static inline void
errbuf_leave_out(struct errbuf *b, uint32_t n)
{
	uint64_t lost = atomic_load_explicit(&b->lost, memory_order_relaxed);

	atomic_store_explicit(&b->lost, lost + n, memory_order_relaxed);
}
/** Worker: publish it. */
void trace_errbuf_commit(struct errbuf *b);
/** Control: copy up to n records out. @return how many. */
uint32_t trace_errbuf_take(struct errbuf *b, struct errbuf_record *out, uint32_t n);
/** Control: the time of the next one to be taken. @return false: none waits. */
bool trace_errbuf_oldest(const struct errbuf *b, ns_t *time_ns);
/** Control: how many wait to be taken. */
uint32_t trace_errbuf_waiting(const struct errbuf *b);
/** Control: copy the i-th of those that wait, 0 is the oldest; it stays. */
void trace_errbuf_look(const struct errbuf *b, uint32_t i, struct errbuf_record *out);

#endif
