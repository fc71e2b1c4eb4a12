/* SPDX-License-Identifier: BSD-3-Clause */
/* Three single-producer, single-consumer rings of 64-byte messages. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <rte_errno.h>
#include <rte_malloc.h>
#include <rte_ring.h>

#include "mbox.h"

static struct rte_ring *
make(const char *what, unsigned int id, unsigned int entries, int socket)
{
	char name[RTE_RING_NAMESIZE];

	snprintf(name, sizeof(name), "mbox_%s_%u", what, id);
	return rte_ring_create_elem(name, sizeof(struct mbox_msg), entries, socket,
		RING_F_SP_ENQ | RING_F_SC_DEQ | RING_F_EXACT_SZ);
}

int
mbox_create(struct mbox *b, unsigned int id, unsigned int entries, int socket)
{
	memset(b, 0, sizeof(*b));
	b->down = make("down", id, entries, socket);
	b->done = make("done", id, entries, socket);
	b->up = make("up", id, entries, socket);
	b->events = rte_zmalloc_socket("aeq", ring_aeq_size(MBOX_EVENTS), CACHE_LINE, socket);
	if (b->down == NULL || b->done == NULL || b->up == NULL || b->events == NULL) {
		int err = rte_errno != 0 ? rte_errno : ENOMEM;

		mbox_destroy(b);
		return -err;
	}
	ring_aeq_attach(&b->raise, b->events, MBOX_EVENTS);
	ring_aeq_attach(&b->listen, b->events, MBOX_EVENTS);
	return 0;
}

void
mbox_destroy(struct mbox *b)
{
	rte_ring_free(b->down);
	rte_ring_free(b->done);
	rte_ring_free(b->up);
	rte_free(b->events);
	memset(b, 0, sizeof(*b));
}

static int
put(struct rte_ring *r, const struct mbox_msg *m)
{
	return rte_ring_sp_enqueue_elem(r, (void *)(uintptr_t)m, sizeof(*m));
}

static unsigned int
take(struct rte_ring *r, struct mbox_msg *out, unsigned int n)
{
	return rte_ring_sc_dequeue_burst_elem(r, out, sizeof(*out), n, NULL);
}

int
mbox_send_down(struct mbox *b, const struct mbox_msg *m)
{
	return put(b->down, m);
}

int
mbox_send_done(struct mbox *b, const struct mbox_msg *m)
{
	return put(b->done, m);
}

/** Whose event it is. */
static uint16_t
code_of(uint8_t event)
{
	if (event == EVENT_CQ_ERR)
		return AEQ_CQ_OPERATION;
	if (event == EVENT_SRQ_ERR || event == EVENT_SRQ_LIMIT_REACHED)
		return AEQ_SRQ_REPORT;
	return AEQ_QP_REPORT;
}

/** An EVENT message as an entry of the event queue (AEQ-03: who says it). */
static int
raise_event(struct mbox *b, const struct mbox_msg *m)
{
	static const uint8_t from[] = { [SOURCE_RQ] = AEQ_FROM_RQ,
		[SOURCE_SQ] = AEQ_FROM_SQ,
		[SOURCE_CQ] = AEQ_FROM_CQ,
		[SOURCE_READ_RESPONSE] = AEQ_FROM_OUT_RDRSP,
		[SOURCE_PORT] = AEQ_FROM_NONE };
	const struct ring_aeq_event e = { .context = (uintptr_t)m->ev.object,
		.time_ns = m->ev.time_ns,
		.trace_at = m->ev.trace_at,
		.id = m->ev.qpn,
		.psn = m->ev.psn,
		.code = m->ev.code != 0 ? m->ev.code : code_of(m->ev.event),
		.rule = m->ev.rule,
		.source = m->ev.source < sizeof(from) ? from[m->ev.source] : AEQ_FROM_NONE,
		.event = m->ev.event,
		.fatal = m->ev.fatal,
		.opcode = m->ev.opcode,
		.state = m->ev.state,
		.syndrome = m->ev.syndrome,
		.fault = m->ev.fault };

	return ring_aeq_push(&b->raise, &e) == 0 ? 0 : -ENOBUFS;
}

int
mbox_send_up(struct mbox *b, const struct mbox_msg *m)
{
	int rc;

	if (m->type == MBOX_EVENT)
		return raise_event(b, m);
	rc = put(b->up, m);

	if (rc != 0)
		atomic_fetch_add_explicit(&b->up_lost, 1, memory_order_relaxed);
	return rc;
}

unsigned int
mbox_done_room(const struct mbox *b)
{
	return rte_ring_free_count(b->done);
}

unsigned int
mbox_recv_down(struct mbox *b, struct mbox_msg *out, unsigned int n)
{
	return take(b->down, out, n);
}

unsigned int
mbox_recv_done(struct mbox *b, struct mbox_msg *out, unsigned int n)
{
	return take(b->done, out, n);
}

unsigned int
mbox_recv_up(struct mbox *b, struct mbox_msg *out, unsigned int n)
{
	return take(b->up, out, n);
}

bool
mbox_next_event(struct mbox *b, struct ring_aeq_event *out)
{
	return ring_aeq_next(&b->listen, out);
}

uint32_t
mbox_events_done(struct mbox *b)
{
	return ring_aeq_done(&b->listen);
}

uint64_t
mbox_events_lost(const struct mbox *b)
{
	return ring_aeq_lost(&b->listen);
}
