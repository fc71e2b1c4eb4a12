/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TRACE_H
#define TRACE_H
/**
 * @file trace.h  Flight recorder: the last packets and decisions of a worker, 32 bytes each.
 *
 * Owner:   one worker writes; the control lcore reads at any time and may see the oldest entries
 *          being overwritten (trace_read() leaves those out by checking the write index twice).
 * Memory:  trace_size(); the caller's.
 * Depends: base.
 */
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "clock.h"
#include "compiler.h"
#include "invariant.h"

enum trace_kind {
#define TRACE_EVENT(name, text) TRACE_##name,
#include "events.def"
#undef TRACE_EVENT
	TRACE_KIND_MAX
};

struct trace_entry {
	ns_t time_ns;
	uint32_t qpn;
	union {
		uint32_t psn; /* of the packet, or of the reply */
		uint32_t key; /* memory */
	};
	union {
		struct {
			uint32_t msn;
			uint16_t len;  /* payload bytes */
			uint16_t rule; /* rule index that decided (responder_rule_id) */
		};
		uint64_t va; /* memory */
	};
	uint8_t kind;   /* enum trace_kind */
	uint8_t opcode; /* BTH of the packet that it is about, or TRACE_NO_PACKET */
	uint8_t state;  /* QP state after it */
	uint8_t detail; /* by kind: completion status, event type, enum mem_why */
	union {
		struct {
			uint8_t syndrome; /* AETH */
			uint8_t fault;    /* enum wire_fault, 0xff none */
			uint8_t reserved[2];
		};
		uint32_t length; /* memory */
	};
};
_Static_assert(sizeof(struct trace_entry) == 32, "half a cache line");

#define TRACE_NO_PACKET 0xff /* an opcode that no packet has */

struct trace {
	_Atomic uint64_t head; /* entries ever written */
	uint32_t mask;
	uint32_t reserved;
	struct trace_entry e[] CACHE_ALIGNED;
};

/** Bytes for `entries`, a power of two. */
size_t trace_size(uint32_t entries);
/** Empty recorder in memory of trace_size(entries) bytes. Before the worker starts. */
void trace_init(struct trace *t, uint32_t entries);

/** Worker: store one entry. Cost: one 32-byte store and an index. */
static inline void
trace_put(struct trace *t, const struct trace_entry *e)
{
	uint64_t h = atomic_load_explicit(&t->head, memory_order_relaxed);
	struct trace_entry *slot;

	ASSERT(e->kind < TRACE_KIND_MAX);
	/* A reader that sees part of this entry also sees an index that says so. */
	atomic_thread_fence(memory_order_release);
	/* Field by field: a copy as a whole would read wide what was just written narrow. */
	slot = &t->e[h & t->mask];
	slot->time_ns = e->time_ns;
	slot->qpn = e->qpn;
	slot->psn = e->psn;
	slot->msn = e->msn;
	slot->len = e->len;
	slot->rule = e->rule;
	slot->kind = e->kind;
	slot->opcode = e->opcode;
	slot->syndrome = e->syndrome;
	slot->fault = e->fault;
	slot->state = e->state;
	slot->detail = e->detail;
	atomic_store_explicit(&t->head, h + 1, memory_order_release);
}

/** The same of an entry of kind `memory`, as a whole. */
void trace_put_memory(struct trace *t, const struct trace_entry *e);

/** Entries ever written: the place of the next one. */
static inline uint64_t
trace_head(const struct trace *t)
{
	return atomic_load_explicit(&t->head, memory_order_acquire);
}

/**
 * Any lcore: the newest `max` entries of one QP among those before place `end`, oldest first.
 * @return how many; fewer where they were overwritten.
 */
uint32_t trace_before(
	const struct trace *t, uint32_t qpn, uint64_t end, struct trace_entry *out, uint32_t max);
/** The oldest `max` entries of one QP from place `begin` on; none if that was overwritten. */
uint32_t trace_after(
	const struct trace *t, uint32_t qpn, uint64_t begin, struct trace_entry *out, uint32_t max);

/**
 * Any lcore: copy the newest entries of one QP (qpn UINT32_MAX: all), oldest first.
 * @return how many were copied, at most `max`.
 */
uint32_t trace_read(const struct trace *t, uint32_t qpn, struct trace_entry *out, uint32_t max);

/** "rx", "nak" ...: as in events.def. */
const char *trace_kind_name(enum trace_kind k);

#endif
