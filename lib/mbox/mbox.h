/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef MBOX_H
#define MBOX_H
/**
 * @file mbox.h  The contract between data and control lcores: fixed 64-byte messages.
 *
 * Owner:   `down`: control produces, worker consumes. `done`: answers to `down`, never lost because
 *          control waits for each; a TX message gets one only if its cookie is not 0. `up`:
 *          packets and status entries for control; when full the message is dropped and counted.
 *          `aeq`: EVENT messages travel here, as entries of an event queue of its own
 *          (ring_aeq.h), which a flood of packets cannot fill; losses are flagged (AEQ-14).
 * Memory:  rte_rings, and the event queue's entries, made by mbox_create().
 * Depends: base, ring; DPDK.
 */
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "clock.h"
#include "compiler.h"
#include "ring_aeq.h"
#include "verbs.h"

#define MBOX_EVENTS  1024 /* entries of an event queue */
#define MBOX_CLIENTS 128  /* that it is shared out among: by the low bits of their numbers */

struct qp;
struct qp_attr;
struct qp_client;
struct qp_settings;
struct qp_side;
struct qp_snapshot;
struct qp_work;
struct rte_mbuf;
struct rte_ring;

enum mbox_type {
#define MESSAGE(name, direction, payload, text) MBOX_##name,
#include "messages.def"
#undef MESSAGE
	MBOX_TYPE_MAX
};

enum mbox_source { SOURCE_RQ, SOURCE_SQ, SOURCE_CQ, SOURCE_READ_RESPONSE, SOURCE_PORT };

/* ---- payloads: messages.def says which message has which ------------------------------------- */

struct mbox_none {
	uint8_t reserved[48];
};

struct mbox_qp {
	struct qp *qp;
	bool drop; /* DETACH: what is not flushed yet vanishes; else -EINPROGRESS until it is */
};

struct mbox_attach {
	struct qp *qp;
	const struct qp_settings *settings; /* the sender's, until DONE; NULL: as they are */
};

struct mbox_work {
	struct qp *qp;
	struct qp_work *work; /* the QP's from now on */
};

struct mbox_modify {
	struct qp *qp;
	const struct qp_attr *attr; /* the sender's, until DONE */
	uint32_t mask;              /* QP_ATTR_*: which of them */
};

struct mbox_query {
	struct qp *qp;
	struct qp_snapshot *snapshot; /* the sender's, until DONE: filled in */
};

/** The request that failed, as an abnormal event names it. */
struct mbox_fail {
	struct qp *qp;
	uint16_t wqe_index; /* of the queue named */
	uint8_t queue;      /* AEQ_SQ, AEQ_RQ, both or 0: whose request takes the status */
	uint8_t status;     /* enum wc_status */
};

struct mbox_move {
	struct qp *qp;
	uint16_t to; /* the worker that it goes to */
};

struct mbox_limit {
	struct qp *qp;
	uint32_t limit; /* 0: none */
};

struct mbox_sides {
	struct qp_side *list; /* the worker's from now on */
};

struct mbox_client {
	struct qp_client *client; /* the worker's until the DONE of CLIENT_DETACH */
	uint64_t rate;            /* CLIENT_SET */
	uint32_t weight;          /* CLIENT_SET */
};

struct mbox_tx {
	struct rte_mbuf *m; /* the worker's from now on */
	uint32_t cnp_of;    /* the frame is the CNP of this QPN (CC-04); 0: it is none */
	uint16_t port;      /* DPDK port id */
};

struct mbox_done {
	int32_t rc;   /* 0 or -errno */
	bool carried; /* QP_FAIL: a completion reports the status */
};

/** EVENT and FATAL. */
struct mbox_event {
	ns_t time_ns;
	uint64_t trace_at; /* entries the worker's flight recorder had taken */
	void *object;      /* struct qp_cq, qp_srq, else qp; or NULL */
	uint32_t qpn;      /* or CQ id, SRQ id */
	uint32_t psn;
	uint16_t rule;
	uint16_t code;  /* EVENT: enum aeq_code; 0: a report of `event` */
	uint8_t source; /* EVENT: enum mbox_source */
	uint8_t event;  /* enum event_type */
	uint8_t fatal;
	uint8_t opcode;
	uint8_t state; /* QP state when raised */
	uint8_t syndrome;
	uint8_t fault;
};

struct mbox_cnp {
	struct qp *qp; /* only compared: the QP may be gone */
	uint32_t qpn;
};

struct mbox_packet {
	struct rte_mbuf *m; /* the control lcore's from now on */
	ns_t time_ns;       /* when it was received */
	uint16_t port;      /* DPDK port id */
};

struct mbox_msg {
	uint8_t type; /* enum mbox_type */
	uint8_t reserved[7];
	uint64_t cookie; /* DONE answers the message with the same cookie */
	union {
		struct mbox_none none;
		struct mbox_qp qp;
		struct mbox_attach attach;
		struct mbox_work work;
		struct mbox_modify modify;
		struct mbox_query query;
		struct mbox_fail fail;
		struct mbox_move move;
		struct mbox_limit limit;
		struct mbox_sides sides;
		struct mbox_client client;
		struct mbox_tx tx;
		struct mbox_done done;
		struct mbox_event ev;
		struct mbox_cnp cnp;
		struct mbox_packet pkt;
	};
};
_Static_assert(sizeof(struct mbox_msg) == 64, "one cache line");
#define MESSAGE(name, direction, payload, text)                          \
	_Static_assert(sizeof(((struct mbox_msg *)0)->payload) <= 48 &&  \
			       offsetof(struct mbox_msg, payload) == 16, \
		#name " has a payload of the union");
#include "messages.def"
#undef MESSAGE

/** What waits of a client, at most. */
struct mbox_waits {
	uint32_t n;
	uint32_t at; /* how many of all had been put with the newest of them */
};

/** How a queue to the control lcore is shared out among clients. */
struct mbox_fair {
	uint32_t put; /* by anybody, so far */
	struct mbox_waits of[MBOX_CLIENTS];
};

struct mbox {
	struct rte_ring *down;
	struct rte_ring *done;
	struct rte_ring *up;
	_Atomic uint64_t up_lost;             /* writer: worker */
	_Atomic uint64_t sides_taken;         /* writer: worker; of those that SIDES brought */
	void *events;                         /* memory of the event queue */
	struct ring_aeq raise CACHE_ALIGNED;  /* worker's view of it */
	struct mbox_fair raised, sent;        /* worker: `raise` and `up` */
	struct ring_aeq listen CACHE_ALIGNED; /* control's */
};

/** @param id makes the ring names unique. @return 0 or -errno. */
int mbox_create(struct mbox *b, unsigned int id, unsigned int entries, int socket);
/** Free the rings, with the messages in them. After the worker has stopped. */
void mbox_destroy(struct mbox *b);

/** Control: a message for the worker. @return 0 or -ENOBUFS. */
int mbox_send_down(struct mbox *b, const struct mbox_msg *m);
/** Worker: answer a message. @return 0 or -ENOBUFS; mbox_done_room() says it before. */
int mbox_send_done(struct mbox *b, const struct mbox_msg *m);
/** Worker: how many answers `done` has room for. */
unsigned int mbox_done_room(const struct mbox *b);
/** Worker: 0, or -ENOBUFS after counting the loss. EVENT goes to the event queue. */
int mbox_send_up(struct mbox *b, const struct mbox_msg *m);
/**
 * The same of what a client caused. A part of each queue is kept for clients of whom no more than
 * one waits; of the rest a client has as much as half of what is left. So whoever is quiet has
 * room, also while many others tell of all their queue pairs at once.
 * @param client its number; 0: the operator's, who has all the room.
 */
int mbox_send_up_of(struct mbox *b, const struct mbox_msg *m, uint32_t client);
/** Control: the next event. @return false: no more; then say mbox_events_done(). */
bool mbox_next_event(struct mbox *b, struct ring_aeq_event *out);
/** Control: give the entries taken back, all at once (AEQ-14). @return how many. */
uint32_t mbox_events_done(struct mbox *b);
/** Control: events that the worker could not hand over, ever. */
uint64_t mbox_events_lost(const struct mbox *b);
/** Worker: is there nothing for it? A message that is just coming may be seen by the next look. */
bool mbox_is_empty(const struct mbox *b);
/** Worker: the messages. @return number of messages copied out, at most n. */
unsigned int mbox_recv_down(struct mbox *b, struct mbox_msg *out, unsigned int n);
/** Control: the answers. @return number of messages copied out, at most n. */
unsigned int mbox_recv_done(struct mbox *b, struct mbox_msg *out, unsigned int n);
/** Control: packets and status entries. @return number of messages copied out, at most n. */
unsigned int mbox_recv_up(struct mbox *b, struct mbox_msg *out, unsigned int n);

#endif
