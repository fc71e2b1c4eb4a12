/* SPDX-License-Identifier: BSD-3-Clause */
#include "ring_aeq.h"
#include "invariant.h"

#include <errno.h>
#include <string.h>

#define PHASE    (UINT64_C(1) << 63)
#define OVERFLOW (UINT64_C(1) << 56)

enum { OBJECT_SOURCE, OBJECT_QP, OBJECT_CQ, OBJECT_SRQ };

/* ---- tables ---------------------------------------------------------------------------------- */

static const struct {
	const char *name;
	uint8_t flags;
} sources[16] = {
#define EVENT_SOURCE(code, flags, name, text) [code] = { name, flags },
#include "tables/event_sources.def"
#undef EVENT_SOURCE
};

static const struct code_row {
	const char *text;
	uint16_t code;
	uint8_t class;
	uint8_t object;
} codes[] = {
#define EVENT_CODE(code, name, class, object, text) \
	{ text, code, AEQ_CLASS_##class, OBJECT_##object },
#include "tables/event_codes.def"
#undef EVENT_CODE
};

static const struct {
	uint16_t code;
	struct aeq_flush flush;
} flushes[] = {
#define EVENT_FLUSH(code, flush, status, event) \
	{ AEQ_##code, { #flush, WC_##status, EVENT_##event } },
#include "tables/event_flush_map.def"
#undef EVENT_FLUSH
};

static const struct code_row *
code_find(uint16_t code)
{
	for (unsigned int i = 0; i < ARRAY_LEN(codes); i++) {
		if (codes[i].code == code)
			return &codes[i];
	}
	return NULL;
}

const char *
ring_aeq_source_name(uint8_t source)
{
	const char *name = source < ARRAY_LEN(sources) ? sources[source].name : NULL;

	return name != NULL ? name : "NONE";
}

uint8_t
ring_aeq_source_flags(uint8_t source)
{
	return source < ARRAY_LEN(sources) ? sources[source].flags : 0;
}

const char *
ring_aeq_code_text(uint16_t code)
{
	const struct code_row *row = code_find(code);

	return row != NULL ? row->text : "unknown event";
}

enum aeq_class
ring_aeq_code_class(uint16_t code)
{
	const struct code_row *row = code_find(code);

	return row != NULL ? row->class : AEQ_CLASS_ABNORMAL;
}

struct aeq_flush
ring_aeq_flush_of(uint16_t code)
{
	for (unsigned int i = 0; i < ARRAY_LEN(flushes); i++) {
		if (flushes[i].code == code)
			return flushes[i].flush;
	}
	return (struct aeq_flush){ "GENERAL", WC_WR_FLUSH_ERR, EVENT_QP_FATAL };
}

/* ---- entries --------------------------------------------------------------------------------- */

void
ring_aeq_decode(uint64_t word, struct ring_aeq_event *out)
{
	const struct code_row *row;

	out->id = (uint32_t)(word & AEQ_ID_MAX);
	out->wqe_index = (uint16_t)(word >> 24);
	out->code = (uint16_t)(word >> 40 & 0xfff);
	out->source = (uint8_t)(word >> 52 & 0xf);
	out->overflow = (word & OVERFLOW) != 0;
	out->flags = ring_aeq_source_flags(out->source);
	/* AEQ-04: for these codes the code, not the source, says whose event it is. */
	row = code_find(out->code);
	if (row == NULL || row->object == OBJECT_SOURCE)
		return;
	if (row->object == OBJECT_CQ) {
		out->flags = AEQ_CQ;
		return;
	}
	if (row->object == OBJECT_SRQ) {
		out->flags = AEQ_SRQ;
		return;
	}
	out->flags = (uint8_t)((out->flags & ~AEQ_CQ) | AEQ_QP);
}

uint64_t
ring_aeq_encode(const struct ring_aeq_event *e, bool phase)
{
	return (uint64_t)(e->id & AEQ_ID_MAX) | (uint64_t)e->wqe_index << 24 |
	       (uint64_t)(e->code & 0xfff) << 40 | (uint64_t)(e->source & 0xf) << 52 |
	       (e->overflow ? OVERFLOW : 0) | (phase ? PHASE : 0);
}

size_t
ring_aeq_size(uint32_t entries)
{
	if (entries == 0 || entries > UINT32_C(1) << 30 || (entries & (entries - 1)) != 0)
		return 0;
	return sizeof(struct ring_aeq_shared) + entries * sizeof(struct ring_aeq_entry);
}

void
ring_aeq_attach(struct ring_aeq *q, void *mem, uint32_t entries)
{
	ASSERT(ring_aeq_size(entries) != 0);
	ASSERT((uintptr_t)mem % CACHE_LINE == 0);
	*q = (struct ring_aeq){ .sh = mem, .mask = entries - 1 };
}

/** Fresh memory is all zeros, so the first turn's entries are valid with a 1. */
static bool
phase_of(const struct ring_aeq *q)
{
	return (q->index & (q->mask + 1)) == 0;
}

/** The part of ring_aeq_decode() that a push needs (AEQ-04), as a switch: it is faster. */
static bool
is_cq(const struct ring_aeq_event *e)
{
	switch (e->code & 0xfff) {
#define EVENT_CODE(code, name, class, object, text)          \
	case code:                                           \
		if (OBJECT_##object != OBJECT_SOURCE)        \
			return OBJECT_##object == OBJECT_CQ; \
		break;
#include "tables/event_codes.def"
#undef EVENT_CODE
	default:
		break;
	}
	return (ring_aeq_source_flags(e->source & 0xf) & AEQ_CQ) != 0;
}

void
ring_aeq_lose(struct ring_aeq *q)
{
	const uint64_t lost = atomic_load_explicit(&q->sh->lost, memory_order_relaxed);

	atomic_store_explicit(&q->sh->lost, lost + 1, memory_order_relaxed);
	q->lost = true;
}

uint32_t
ring_aeq_room(const struct ring_aeq *q)
{
	const uint32_t returned = atomic_load_explicit(&q->sh->returned, memory_order_acquire);

	ASSERT(q->index - returned <= q->mask + 1);
	return q->mask + 1 - (q->index - returned);
}

int
ring_aeq_push(struct ring_aeq *q, const struct ring_aeq_event *e)
{
	struct ring_aeq_entry *slot = &q->sh->e[q->index & q->mask];
	uint64_t word;

	ASSERT(e->id <= AEQ_ID_MAX && e->code <= 0xfff && e->source < ARRAY_LEN(sources));
	if (ring_aeq_room(q) == 0) {
		ring_aeq_lose(q);
		return -ENOSPC;
	}
	slot->context = is_cq(e) ? e->context >> 1 : e->context;
	slot->time_ns = e->time_ns;
	slot->trace_at = e->trace_at;
	slot->psn = e->psn;
	slot->rule = e->rule;
	slot->event = e->event;
	slot->fatal = e->fatal;
	slot->opcode = e->opcode;
	slot->state = e->state;
	slot->syndrome = e->syndrome;
	slot->fault = e->fault;
	word = (ring_aeq_encode(e, phase_of(q)) & ~OVERFLOW) | (q->lost ? OVERFLOW : 0);
	q->lost = false;
	atomic_store_explicit(&slot->word, word, memory_order_release);
	q->index++;
	return 0;
}

bool
ring_aeq_next(struct ring_aeq *q, struct ring_aeq_event *out)
{
	const struct ring_aeq_entry *slot = &q->sh->e[q->index & q->mask];
	const uint64_t word = atomic_load_explicit(&slot->word, memory_order_acquire);

	if (((word & PHASE) != 0) != phase_of(q))
		return false;
	ASSERT(q->index - q->returned <= q->mask); /* not overwritten before it was given back */
	ring_aeq_decode(word, out);
	out->context = (out->flags & AEQ_CQ) != 0 ? slot->context << 1 : slot->context;
	out->time_ns = slot->time_ns;
	out->trace_at = slot->trace_at;
	out->psn = slot->psn;
	out->rule = slot->rule;
	out->event = slot->event;
	out->fatal = slot->fatal;
	out->opcode = slot->opcode;
	out->state = slot->state;
	out->syndrome = slot->syndrome;
	out->fault = slot->fault;
	q->index++;
	return true;
}

uint32_t
ring_aeq_done(struct ring_aeq *q)
{
	const uint32_t n = q->index - q->returned;

	ASSERT(n <= q->mask + 1);
	if (n != 0) {
		q->returned = q->index;
		atomic_store_explicit(&q->sh->returned, q->returned, memory_order_release);
	}
	return n;
}

uint64_t
ring_aeq_lost(const struct ring_aeq *q)
{
	return atomic_load_explicit(&q->sh->lost, memory_order_relaxed);
}
