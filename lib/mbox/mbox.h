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
#include <stdint.h>

#include "clock.h"
#include "compiler.h"
#include "ring_aeq.h"

#define MBOX_EVENTS 1024 /* entries of an event queue */

struct qp;
struct qp_attr;
struct qp_client;
struct qp_side;
struct qp_snapshot;
struct rte_mbuf;
struct rte_ring;

enum mbox_type {
#define MESSAGE(name, direction, text) MBOX_##name,
#include "messages.def"
#undef MESSAGE
	MBOX_TYPE_MAX
};

/** Values of ibv_event_type whose id is no QP's. */
enum { MBOX_EVENT_CQ_ERR = 0, MBOX_EVENT_SRQ_ERR = 14, MBOX_EVENT_SRQ_LIMIT = 15 };

enum mbox_source { SOURCE_RQ, SOURCE_SQ, SOURCE_CQ, SOURCE_READ_RESPONSE, SOURCE_PORT };

struct mbox_msg {
	uint8_t type;    /* enum mbox_type */
	uint8_t source;  /* EVENT: enum mbox_source */
	uint16_t port;   /* TX, PACKET: DPDK port id */
	int32_t rc;      /* DONE: 0 or -errno */
	uint64_t cookie; /* DONE answers the message with the same cookie */
	union {
		struct { /* QP_* */
			struct qp *qp;
			const struct qp_attr *attr;
			struct qp_snapshot *snapshot;
			uint32_t mask;
		} qp;
		struct qp_client *client; /* CLIENT_ATTACH, CLIENT_DETACH */
		struct qp_side *sides;    /* SIDES */
		struct { /* EVENT, FATAL */
			ns_t time_ns;
			uint32_t qpn; /* or CQ id, SRQ id */
			uint32_t psn;
			uint16_t rule;
			uint8_t event; /* ibv_event_type */
			uint8_t fatal;
			uint8_t opcode;
			uint8_t state; /* QP state when raised */
			uint8_t syndrome;
			uint8_t fault;
			uint16_t code; /* EVENT: enum aeq_code; 0: a report of `event` */
			void *object; /* struct qp_cq, qp_srq, else qp; or NULL */
			uint64_t trace_at; /* entries the worker's flight recorder had taken */
		} ev;
		struct { /* TX, PACKET */
			struct rte_mbuf *m;
			ns_t time_ns;
			uint32_t cnp_of; /* TX: the frame is the CNP of this QPN (CC-04); 0: it is
					    none */
		} pkt;
		uint8_t bytes[48];
	};
};
_Static_assert(sizeof(struct mbox_msg) == 64, "one cache line");

struct mbox {
	struct rte_ring *down;
	struct rte_ring *done;
	struct rte_ring *up;
	_Atomic uint64_t up_lost; /* writer: worker */
	_Atomic uint64_t sides_taken; /* writer: worker; of those that SIDES brought */
	void *events;             /* memory of the event queue */
	struct ring_aeq raise CACHE_ALIGNED;  /* worker's view of it */
	struct ring_aeq listen CACHE_ALIGNED; /* control's */
};

/** @param id makes the ring names unique. @return 0 or -errno. */
int mbox_create(struct mbox *b, unsigned int id, unsigned int entries, int socket);
void mbox_destroy(struct mbox *b);

/** @return 0 or -ENOBUFS. */
int mbox_send_down(struct mbox *b, const struct mbox_msg *m);
int mbox_send_done(struct mbox *b, const struct mbox_msg *m);
/** Worker: how many answers `done` has room for. */
unsigned int mbox_done_room(const struct mbox *b);
/** Worker: 0, or -ENOBUFS after counting the loss. EVENT goes to the event queue. */
int mbox_send_up(struct mbox *b, const struct mbox_msg *m);
/** Control: the next event. @return false: no more; then say mbox_events_done(). */
bool mbox_next_event(struct mbox *b, struct ring_aeq_event *out);
/** Control: give the entries taken back, all at once (AEQ-14). @return how many. */
uint32_t mbox_events_done(struct mbox *b);
/** Control: events that the worker could not hand over, ever. */
uint64_t mbox_events_lost(const struct mbox *b);
/** @return number of messages copied out, at most n. */
unsigned int mbox_recv_down(struct mbox *b, struct mbox_msg *out, unsigned int n);
unsigned int mbox_recv_done(struct mbox *b, struct mbox_msg *out, unsigned int n);
unsigned int mbox_recv_up(struct mbox *b, struct mbox_msg *out, unsigned int n);

#endif
