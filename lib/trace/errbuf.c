/* SPDX-License-Identifier: BSD-3-Clause */
#include "errbuf.h"
#include "invariant.h"

#include <string.h>

#define SAMPLE 16

size_t
trace_errbuf_size(uint32_t entries)
{
	if (entries == 0 || (entries & (entries - 1)) != 0)
		return 0;
	return sizeof(struct errbuf) + (size_t)entries * sizeof(struct errbuf_record);
}

void
trace_errbuf_init(struct errbuf *b, uint32_t entries)
{
	ASSERT(trace_errbuf_size(entries) != 0);
	memset(b, 0, trace_errbuf_size(entries));
	b->mask = entries - 1;
}

/**
 * Is this packet left out? A buffer that is half full is filled faster than it is read. From there
 * on one packet in SAMPLE is kept: a flood costs little, and its later part is recorded too.
 */
static bool
leave_out(struct errbuf *b, uint32_t used)
{
	ASSERT(used <= b->mask + 1);
	return used > b->mask || (used > b->mask / 2 && ++b->passed % SAMPLE != 0);
}

struct errbuf_record *
trace_errbuf_slot(struct errbuf *b)
{
	uint32_t prod = atomic_load_explicit(&b->prod, memory_order_relaxed);
	uint32_t cons = atomic_load_explicit(&b->cons, memory_order_acquire);

	if (leave_out(b, prod - cons)) {
		errbuf_leave_out(b, 1);
		return NULL;
	}
	return &b->r[prod & b->mask];
}

void
trace_errbuf_commit(struct errbuf *b)
{
	uint32_t prod = atomic_load_explicit(&b->prod, memory_order_relaxed);

	/* trace_errbuf_slot() has found a free record. */
	ASSERT(prod - atomic_load_explicit(&b->cons, memory_order_acquire) <= b->mask);
	atomic_store_explicit(&b->prod, prod + 1, memory_order_release);
}

uint32_t
trace_errbuf_take(struct errbuf *b, struct errbuf_record *out, uint32_t n)
{
	uint32_t cons = atomic_load_explicit(&b->cons, memory_order_relaxed);
	uint32_t count = atomic_load_explicit(&b->prod, memory_order_acquire) - cons;

	ASSERT(count <= b->mask + 1);
	if (count > n)
		count = n;
	for (uint32_t i = 0; i < count; i++)
		out[i] = b->r[(cons + i) & b->mask];
	atomic_store_explicit(&b->cons, cons + count, memory_order_release);
	return count;
}

uint32_t
trace_errbuf_waiting(const struct errbuf *b)
{
	return atomic_load_explicit(&b->prod, memory_order_acquire) -
	       atomic_load_explicit(&b->cons, memory_order_relaxed);
}

bool
trace_errbuf_oldest(const struct errbuf *b, ns_t *time_ns)
{
	if (trace_errbuf_waiting(b) == 0)
		return false;
	*time_ns = b->r[atomic_load_explicit(&b->cons, memory_order_relaxed) & b->mask].time_ns;
	return true;
}

void
trace_errbuf_look(const struct errbuf *b, uint32_t i, struct errbuf_record *out)
{
	const uint32_t cons = atomic_load_explicit(&b->cons, memory_order_relaxed);

	ASSERT(i < trace_errbuf_waiting(b));
	*out = b->r[(cons + i) & b->mask];
}
