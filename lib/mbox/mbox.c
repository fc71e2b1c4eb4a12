/* SPDX-License-Identifier: BSD-3-Clause */
/* Three single-producer, single-consumer rings of 64-byte messages. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <rte_errno.h>
#include <rte_malloc.h>
#include <rte_ring.h>

#include "invariant.h"
#include "mbox.h"

enum {
	LEAST = 2,     /* that may wait of a client in any case: a queue pair failed, and its CQ */
	KEPT_PART = 4, /* of a queue, for these */
};

_Static_assert(MBOX_EVENTS / KEPT_PART >= LEAST * MBOX_CLIENTS, "each of them has room");

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
	ASSERT(entries != 0);
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

/** Does this message go that way? One of a type that nobody knows is its receiver's to refuse. */
static bool
goes(const struct mbox_msg *m, const char *direction)
{
	static const char *const directions[MBOX_TYPE_MAX] = {
#define MESSAGE(name, direction, payload, text) [MBOX_##name] = direction,
#include "messages.def"
#undef MESSAGE
	};

	return m->type >= MBOX_TYPE_MAX || strcmp(directions[m->type], direction) == 0;
}

/** What a worker takes for granted of a message's payload. */
static bool
is_complete(const struct mbox_msg *m)
{
	switch ((enum mbox_type)m->type) {
	case MBOX_QP_ATTACH:
		return m->attach.qp != NULL;
	case MBOX_QP_MODIFY:
		return m->modify.qp != NULL && m->modify.attr != NULL;
	case MBOX_QP_QUERY:
		return m->query.qp != NULL && m->query.snapshot != NULL;
	case MBOX_QP_FAIL:
		return m->fail.qp != NULL && (m->fail.queue & ~(AEQ_SQ | AEQ_RQ)) == 0;
	case MBOX_QP_PARK:
	case MBOX_QP_RELEASE:
		return m->move.qp != NULL;
	case MBOX_QP_RQ_LIMIT:
		return m->limit.qp != NULL;
	case MBOX_QP_WORK:
		return m->work.qp != NULL && m->work.work != NULL;
	case MBOX_QP_DETACH:
	case MBOX_QP_RECEIVES:
	case MBOX_QP_POSTED:
	case MBOX_QP_ADOPT:
	case MBOX_QP_UNPARK:
		return m->qp.qp != NULL;
	case MBOX_SIDES:
		return m->sides.list != NULL;
	case MBOX_CLIENT_ATTACH:
	case MBOX_CLIENT_SET:
	case MBOX_CLIENT_DETACH:
		return m->client.client != NULL;
	case MBOX_TX:
		return m->tx.m != NULL;
	default:
		return true;
	}
}

static int
put(struct rte_ring *r, const struct mbox_msg *m)
{
	return rte_ring_sp_enqueue_elem(r, (void *)(uintptr_t)m, sizeof(*m));
}

static unsigned int
take(struct rte_ring *r, struct mbox_msg *out, unsigned int n)
{
	const unsigned int got = rte_ring_sc_dequeue_burst_elem(r, out, sizeof(*out), n, NULL);

	ASSERT(got <= n);
	return got;
}

int
mbox_send_down(struct mbox *b, const struct mbox_msg *m)
{
	ASSERT(goes(m, "down"));
	ASSERT(is_complete(m));
	return put(b->down, m);
}

int
mbox_send_done(struct mbox *b, const struct mbox_msg *m)
{
	ASSERT(goes(m, "done"));
	ASSERT(m->done.rc <= 0);
	ASSERT(m->done.rc == 0 || !m->done.carried);
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

	ASSERT(m->ev.source < ARRAY_LEN(from));
	return ring_aeq_push(&b->raise, &e) == 0 ? 0 : -ENOBUFS;
}

/** May one more wait of this client, where so many wait, and so many more may? */
static bool
is_fair(struct mbox_fair *f, uint32_t client, uint32_t waiting, uint32_t room)
{
	struct mbox_waits *w = &f->of[client % MBOX_CLIENTS];
	const uint32_t kept = (waiting + room) / KEPT_PART;

	if (client == 0)
		return true;
	/* The newest one was taken. */
	if (waiting == 0 || (int32_t)(f->put - waiting - w->at) >= 0)
		w->n = 0;
	return w->n < LEAST || (room > kept && w->n <= (room - kept) / 2);
}

static void
note(struct mbox_fair *f, uint32_t client)
{
	struct mbox_waits *w = &f->of[client % MBOX_CLIENTS];

	f->put++;
	if (client != 0)
		*w = (struct mbox_waits){ w->n + 1, f->put };
}

static int
raise_fairly(struct mbox *b, const struct mbox_msg *m, uint32_t client)
{
	const uint32_t room = ring_aeq_room(&b->raise);
	int rc;

	if (!is_fair(&b->raised, client, MBOX_EVENTS - room, room)) {
		ring_aeq_lose(&b->raise);
		return -ENOBUFS;
	}
	rc = raise_event(b, m);
	if (rc == 0)
		note(&b->raised, client);
	return rc;
}

int
mbox_send_up_of(struct mbox *b, const struct mbox_msg *m, uint32_t client)
{
	int rc = -ENOBUFS;

	ASSERT(goes(m, "up"));
	if (m->type == MBOX_EVENT)
		return raise_fairly(b, m, client);
	if (is_fair(&b->sent, client, rte_ring_count(b->up), rte_ring_free_count(b->up)))
		rc = put(b->up, m);
	if (rc == 0)
		note(&b->sent, client);
	else
		atomic_fetch_add_explicit(&b->up_lost, 1, memory_order_relaxed);
	return rc;
}

int
mbox_send_up(struct mbox *b, const struct mbox_msg *m)
{
	return mbox_send_up_of(b, m, 0);
}

unsigned int
mbox_done_room(const struct mbox *b)
{
	return rte_ring_free_count(b->done);
}

bool
mbox_is_empty(const struct mbox *b)
{
	return rte_ring_empty(b->down) != 0;
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
	const uint32_t n = ring_aeq_done(&b->listen);

	ASSERT(n <= MBOX_EVENTS);
	return n;
}

uint64_t
mbox_events_lost(const struct mbox *b)
{
	return ring_aeq_lost(&b->listen);
}
