/* SPDX-License-Identifier: BSD-3-Clause */
/* What clients are told: events of CQs on their channels, asynchronous events on async_fd. */
#include <errno.h>
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "ask.h"
#include "client.h"
#include "conf_json_value.h"
#include "diagnose.h"

/* ---- eventfds -------------------------------------------------------------------------------- */

/*
 * A client shares the eventfd's open file: it can clear O_NONBLOCK and fill the counter up, and a
 * write() would wait for ever. The kernel adds without waiting when an asynchronous read ends, so
 * one is made to end: a read of /dev/null, which it does at once.
 */

int
client_signal_init(struct clients *cs)
{
	aio_context_t aio = 0;

	if (cs->aio != 0)
		return 0;
	cs->null_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	if (cs->null_fd < 0 || syscall(SYS_io_setup, 8, &aio) != 0) {
		const int rc = -errno;

		client_signal_fini(cs);
		return rc;
	}
	cs->aio = aio;
	return 0;
}

void
client_signal_fini(struct clients *cs)
{
	if (cs->aio != 0)
		syscall(SYS_io_destroy, (aio_context_t)cs->aio);
	if (cs->null_fd >= 0)
		close(cs->null_fd);
	cs->aio = 0;
	cs->null_fd = -1;
}

void
client_signal(struct clients *cs, int fd)
{
	static char nowhere;
	struct iocb cb = { .aio_fildes = (uint32_t)cs->null_fd,
		.aio_lio_opcode = IOCB_CMD_PREAD,
		.aio_buf = (uintptr_t)&nowhere,
		.aio_nbytes = 1,
		.aio_flags = IOCB_FLAG_RESFD,
		.aio_resfd = (uint32_t)fd };
	struct iocb *one = &cb;
	struct io_event done[8];
	struct timespec none = { 0, 0 };

	syscall(SYS_io_submit, (aio_context_t)cs->aio, 1, &one);
	syscall(SYS_io_getevents, (aio_context_t)cs->aio, 0, 8, done, &none);
}

/* ---- completion events ----------------------------------------------------------------------- */

uint32_t
client_notify_poll(struct clients *apps)
{
	struct clients *cs = apps;
	struct client_cq *cq;
	uint32_t fired = 0;

	cs->waiting = 0;
	TAILQ_FOREACH (cq, &cs->watched, watched) {
		struct qp_cq *q = &cq->cq->q;
		const uint64_t arm = atomic_load_explicit(&q->ring.sh->arm, memory_order_acquire);

		if (arm == cq->arm_seen)
			continue;
		if (!ring_cq_is_due(&q->ring, arm,
			    atomic_load_explicit(&q->solicited, memory_order_relaxed))) {
			cs->waiting++;
			continue;
		}
		cq->arm_seen = arm;
		atomic_fetch_add_explicit(&q->ring.sh->fired, 1, memory_order_release);
		client_signal(cs, cq->channel->fd);
		fired++;
	}
	return fired;
}

/* ---- asynchronous events --------------------------------------------------------------------- */

void
client_event(struct clients *apps, struct client *cl, const struct event *e)
{
	if (cl->conn == NULL)
		return;
	if (cl->events_n == CLIENT_EVENTS) {
		cl->events_lost++;
		return;
	}
	cl->events[(cl->events_head + cl->events_n++) % CLIENT_EVENTS] = *e;
	client_signal(apps, cl->async_fd);
}

void
clients_event(struct clients *apps, const struct event *e)
{
	const struct object_cq *cq;
	const struct object_srq *srq;
	const struct admin_qp *rec;
	struct client *cl;

	if (apps->n == 0)
		return;
	switch ((enum object_kind)e->of) {
	case OBJECT_QP:
		rec = admin_find(apps->admin, e->number);
		if (rec != NULL && rec->shared->owner != NULL)
			client_event(apps, client_of(rec->shared->owner), e);
		break;
	case OBJECT_CQ:
		cq = object_cq_by_id(apps->objects, e->number);
		if (cq != NULL && cq->client != NULL)
			client_event(apps, cq->client->client, e);
		break;
	case OBJECT_PORT:
		TAILQ_FOREACH (cl, &apps->all, all)
			client_event(apps, cl, e);
		break;
	case OBJECT_SRQ:
		srq = object_srq_by_id(apps->objects, e->number);
		if (srq != NULL && srq->client != NULL)
			client_event(apps, srq->client->client, e);
		break;
	case OBJECT_NONE:
		break;
	}
}

static json_t *
event_json(struct clients *apps, const struct client *cl, const struct event *e)
{
	const struct object_cq *cq;
	const struct object_srq *srq;
	const char *key = "port_num";
	uint32_t number = e->number + 1;

	if (e->of == OBJECT_QP) {
		key = "qp_num";
		number = e->number;
	} else if (e->of == OBJECT_CQ) {
		key = "cq";
		cq = object_cq_by_id(apps->objects, e->number);
		number = cq != NULL && cq->client != NULL ? cq->client->handle : 0;
	} else if (e->of == OBJECT_SRQ) {
		key = "srq";
		srq = object_srq_by_id(apps->objects, e->number);
		number = srq != NULL && srq->client != NULL ? srq->client->handle : 0;
	}
	return json_pack("{s:i, s:I, s:i, s:I, s:o, s:o}", "event_type", e->event, key,
		(json_int_t)number, "fatal_code", e->fatal, "psn", (json_int_t)e->psn, "lost",
		conf_json_u64(cl->events_lost), "detail", events_detail(apps->diagnose, &cl->o, e));
}

json_t *
client_event_take(struct clients *apps, struct client *cl)
{
	json_t *o;

	if (cl->events_n == 0)
		return NULL;
	o = event_json(apps, cl, &cl->events[cl->events_head % CLIENT_EVENTS]);
	if (o != NULL) {
		cl->events_head = (cl->events_head + 1) % CLIENT_EVENTS;
		cl->events_n--;
		cl->events_lost = 0;
	}
	return o;
}

static void
forget(struct client *cl, enum object_kind of, uint32_t number)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < cl->events_n; i++) {
		const struct event e = cl->events[(cl->events_head + i) % CLIENT_EVENTS];

		if (e.of != of || e.number != number)
			cl->events[(cl->events_head + kept++) % CLIENT_EVENTS] = e;
	}
	cl->events_n = kept;
}

void
clients_event_forget(struct clients *apps, enum object_kind of, uint32_t number)
{
	struct client *cl;

	TAILQ_FOREACH (cl, &apps->all, all)
		forget(cl, of, number);
}
