/* SPDX-License-Identifier: BSD-3-Clause */
#include "trace.h"
#include "invariant.h"

#include <string.h>

static const char *const kind_names[TRACE_KIND_MAX] = {
#define TRACE_EVENT(name, text) [TRACE_##name] = #name,
#include "events.def"
#undef TRACE_EVENT
};

size_t
trace_size(uint32_t entries)
{
	if (entries == 0 || (entries & (entries - 1)) != 0)
		return 0;
	return sizeof(struct trace) + (size_t)entries * sizeof(struct trace_entry);
}

void
trace_init(struct trace *t, uint32_t entries)
{
	ASSERT(trace_size(entries) != 0);
	memset(t, 0, trace_size(entries));
	t->mask = entries - 1;
}

void
trace_put_memory(struct trace *t, const struct trace_entry *e)
{
	uint64_t h = atomic_load_explicit(&t->head, memory_order_relaxed);

	ASSERT(e->kind < TRACE_KIND_MAX);
	atomic_thread_fence(memory_order_release);
	t->e[h & t->mask] = *e;
	atomic_store_explicit(&t->head, h + 1, memory_order_release);
}

/* Is entry number i out of the writer's reach, which may be filling entry `head` right now? */
static bool
is_safe(const struct trace *t, uint64_t i, uint64_t head)
{
	ASSERT((t->mask & (t->mask + 1)) == 0);
	return i + t->mask + 1 > head;
}

static bool
is_of(const struct trace_entry *e, uint32_t qpn)
{
	return qpn == UINT32_MAX || e->qpn == qpn;
}

/* Entries first .. end - 1 of the QP; what was overwritten meanwhile is left out. */
static uint32_t
copy(const struct trace *t, uint32_t qpn, uint64_t first, uint64_t end, struct trace_entry *out,
	uint32_t max)
{
	uint32_t n = 0;

	for (uint64_t i = first; i < end && n < max; i++) {
		out[n] = t->e[i & t->mask];
		atomic_thread_fence(memory_order_acquire);
		if (!is_safe(t, i, atomic_load_explicit(&t->head, memory_order_relaxed)))
			n = 0; /* overwritten while it was copied: nothing with a hole in it */
		else if (is_of(&out[n], qpn))
			n++;
	}
	ASSERT(n <= max);
	return n;
}

uint32_t
trace_before(
	const struct trace *t, uint32_t qpn, uint64_t end, struct trace_entry *out, uint32_t max)
{
	uint64_t head = trace_head(t);
	uint64_t first = end < head ? end : head;
	uint32_t n = 0;

	end = first;
	/* Where the newest `max` entries begin. */
	while (n < max && first > 0 && is_safe(t, first - 1, head)) {
		first--;
		if (is_of(&t->e[first & t->mask], qpn))
			n++;
	}
	return copy(t, qpn, first, end, out, max);
}

uint32_t
trace_after(
	const struct trace *t, uint32_t qpn, uint64_t begin, struct trace_entry *out, uint32_t max)
{
	uint64_t head = trace_head(t);

	if (begin >= head || !is_safe(t, begin, head))
		return 0;
	return copy(t, qpn, begin, head, out, max);
}

uint32_t
trace_read(const struct trace *t, uint32_t qpn, struct trace_entry *out, uint32_t max)
{
	return trace_before(t, qpn, UINT64_MAX, out, max);
}

const char *
trace_kind_name(enum trace_kind k)
{
	if ((unsigned int)k >= TRACE_KIND_MAX)
		return "unknown";
	return kind_names[k];
}
