/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef QP_CQ_H
#define QP_CQ_H
/**
 * @file qp_cq.h  Completion queues and shared receive queues: what workers and control share.
 *
 * Owner:   the control lcore makes and frees them; workers add completions and take receives.
 *          Words that both write are atomic, and say here who writes them.
 * Memory:  the control lcore's records embed them; their rings have memory areas.
 * Depends: base ring mem.
 * Spec:    CQ-*, SRQ-*.
 */
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "compiler.h"
#include "mem.h"
#include "ring.h"
#include "ring_srq.h"

struct qp_cq {
	struct ring_cq ring; /* producers: workers; consumer: control (or a client) */
	uint32_t id;
	uint32_t client;        /* whose; 0: the operator's (constant) */
	_Atomic bool error;     /* overflowed: EVENT_CQ_ERR was raised, nothing is added any more */
	_Atomic uint8_t notify; /* enum qp_cq_notify */
	_Atomic uint8_t producer;   /* 1 + the worker that alone adds to it; or enum (control) */
	_Atomic uint32_t users;     /* QPs (control) */
	_Atomic uint32_t solicited; /* index behind the last solicited one, or error */
	/*
	 * Resized: where completions go since then; or NULL. Then ring.limit is 0, so that who
	 * does not know of it yet finds the old one full, and looks here. (control)
	 */
	_Atomic(struct ring_cq *) moved;
	struct mem_area area;
	char name[64];
};

/** Where completions are added now. */
static inline struct ring_cq *
qp_cq_ring(struct qp_cq *cq)
{
	struct ring_cq *moved = atomic_load_explicit(&cq->moved, memory_order_acquire);

	return moved != NULL ? moved : &cq->ring;
}

enum { CQ_PRODUCER_NONE = 0, CQ_PRODUCER_CHANGING = 0xfe, CQ_PRODUCER_ANY = 0xff };

/**
 * May this worker use ring_cq_reserve_alone()? Worker of a QP of this queue.
 * The control lcore sets `producer` before it attaches the first QP of the queue. Before it
 * attaches one to a second worker it clears the word and waits until the first worker has answered
 * a message. That answer proves that the worker has left the burst in which it may have used the
 * old value. It also orders its last `tail` before the second worker's first look at the queue.
 */
static inline bool
qp_cq_is_alone(const struct qp_cq *cq, uint16_t worker)
{
	return atomic_load_explicit(&cq->producer, memory_order_relaxed) == worker + 1;
}

/** Completion notification (CQ-06). The control lcore arms; whoever adds a completion fires. */
enum qp_cq_notify { CQ_NOTIFY_NONE, CQ_NOTIFY_SOLICITED, CQ_NOTIFY_NEXT, CQ_NOTIFY_FIRED };

/**
 * Worker: a completion was published. @param index its own. @param solicited the peer asked for an
 * event, or an error.
 */
static inline void
qp_cq_notify(struct qp_cq *cq, uint32_t index, bool solicited)
{
	uint8_t armed = atomic_load_explicit(&cq->notify, memory_order_relaxed);

	if (UNLIKELY(solicited)) {
		uint32_t last = atomic_load_explicit(&cq->solicited, memory_order_relaxed);

		/* Another worker may have told of a later one of the ring meanwhile. */
		while (last - (index + 1) > qp_cq_ring(cq)->mask &&
			!atomic_compare_exchange_weak_explicit(&cq->solicited, &last, index + 1,
				memory_order_relaxed, memory_order_relaxed))
			;
	}
	if (LIKELY(armed == CQ_NOTIFY_NONE) || armed == CQ_NOTIFY_FIRED ||
		(armed == CQ_NOTIFY_SOLICITED && !solicited))
		return;
	atomic_store_explicit(&cq->notify, CQ_NOTIFY_FIRED, memory_order_release);
}

/* ---- shared receive queue -------------------------------------------------------------------- */

struct qp_srq {
	struct ring_srq ring;   /* consumers: workers; producer: control */
	_Atomic uint32_t limit; /* armed: event when fewer are posted; 0: not armed (SRQ-02) */
	_Atomic bool error;     /* SRQ_ERR was raised: it gives no more WQEs (RESP-CLS-A-04) */
	uint32_t client;        /* whose; 0: the operator's (constant) */
	uint32_t id;            /* (control) from here on */
	uint32_t pd;
	uint32_t max_sge;
	uint32_t users; /* QPs */
	struct mem_area area;
	/* of type XRC; constant while it is in the table */
	uint32_t num;     /* that requests name; 0: it is not of type XRC */
	uint32_t xrcd;    /* its domain */
	struct qp_cq *cq; /* of its completions */
};

/**
 * XRC SRQs by their number, any domain's: the low bits are the place. Who is in it is the control
 * lcore's to say: one that is taken out is nobody's once every worker has answered a message.
 */
#define QP_SRQ_TABLE 4096

struct qp_srq_table {
	struct qp_srq *_Atomic slot[QP_SRQ_TABLE];
};

/** Any worker: the SRQ of this number in this domain, or NULL. */
static inline struct qp_srq *
qp_srq_lookup(const struct qp_srq_table *t, uint32_t num, uint32_t xrcd)
{
	struct qp_srq *srq =
		atomic_load_explicit(&t->slot[num % QP_SRQ_TABLE], memory_order_acquire);

	return srq != NULL && srq->num == num && srq->xrcd == xrcd ? srq : NULL;
}

#endif
