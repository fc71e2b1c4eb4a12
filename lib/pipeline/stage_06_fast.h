/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef STAGE_06_FAST_H
#define STAGE_06_FAST_H
/**
 * @file stage_06_fast.h  The fast path of stage 6: packets that need neither facts nor a verdict.
 *
 * Owner:   stage_06_*.c; the worker's lcore.
 * Memory:  the caller's.
 * Depends: acks.h, worker.h, responder_fast.h.
 *
 * stage_06_fast_places.c  where payloads go
 * stage_06_fast.c         WRITE ONLY, duplicates of it and of SEND ONLY, gaps, SENDs without a WQE
 * stage_06_fast_parts.c   FIRST, MIDDLE and LAST of WRITEs, MIDDLE of SENDs
 * stage_06_fast_sends.c   SEND ONLY, datagrams, WRITE ONLY with an immediate
 * stage_06_fast_reads.c   READs that one packet answers
 * stage_06_fast_acks.c    positive ACKs, READ responses in order
 *
 * What the fast path does not take it leaves as it was, for the full path in stage_06_respond.c.
 * Both make the same changes to the protocol's state, by the functions of responder_step.h and
 * requester_step.h.
 */
#include "acks.h"
#include "copy.h"
#include "count.h"
#include "local.h"
#include "mem_reach.h"
#include "responder_fast.h"
#include "verdict.h"

/** Packets of a burst, counted at their QPs already, and at worker and port when it ends. */
struct fast_counts {
	uint32_t writes;
	uint32_t parts; /* of WRITEs, but the first ones; MIDDLEs of SENDs */
	uint32_t sends;
	uint32_t reads;
	uint32_t duplicates;
	uint32_t acks;      /* and READ responses */
	uint32_t unmatched; /* of these */
	uint32_t ahead;
	uint32_t kept; /* ahead as well, but wait for their turn */
	uint32_t unready;
	uint32_t left_out; /* of those ahead and unready: by the error buffer, which was told */
	uint32_t skipped;  /* ... and which is not told yet */
};

/** Where a packet's payload goes if its QP takes it. */
struct fast_place {
	uint8_t *host; /* NULL: not known; of a READ: where its data is */
	union {        /* not behind `region`: the compiler would store two words by a vector */
		const struct ring_recv_wqe *posted; /* that a SEND takes, until it is read */
		uint64_t wr_id;                     /* of that */
	};
	const struct mem_region *region;
	uint32_t room; /* bytes of it; of what a READ response is for */
	uint32_t wqe;  /* its index; of a READ response: the work request's position */
};

/** A burst on its way through stage 6. */
struct fast {
	struct fast_counts n;
	struct fast_place at[PIPELINE_BURST];
	uint32_t reused; /* packets whose buffer is their answer's now, or kept, a bit each */
	uint32_t reads;  /* READs that are answered, a bit each */
	uint32_t shared; /* SENDs that take WQEs of shared receive queues, a bit each */
	bool one_port;   /* all packets came to one port */
	bool calm;       /* so far nothing can have changed what `at` was made from */
};

/** The opcode's service left out: stage 5 has seen that it is the QP's. */
#define FAST_OPERATION(opcode) ((opcode) & ~OP_RC_END)

/**
 * May packets of the QP take the fast path at all? In RTR, too, where a QP may stay for good: so
 * does the passive end of a one-sided program.
 */
static ALWAYS_INLINE bool
fast_qp(const struct worker *w, const struct qp *qp, const struct wire_pkt *p)
{
	return LIKELY((uint8_t)(qp_state_of(qp) - QPS_RTR) <= QPS_SQE - QPS_RTR) &&
	       LIKELY((qp->flags & (QPF_ANSWERING | QPF_UNHEARD)) == 0) &&
	       LIKELY((p->flags & PKT_CE) == 0) && LIKELY(w->dirty_n != PIPELINE_BURST);
}

/** Owe an ACK of the newest request, at the end of the burst; the QP's answer queue is empty. */
static ALWAYS_INLINE void
fast_ack(struct worker *w, struct qp *qp, psn_t newest)
{
	ASSERT(psn_eq(newest, responder_newest(&qp->resp)));
	ack_owe(w, qp,
		ack_tail(responder_ack_syndrome(&qp->resp, UINT32_MAX), newest.v, qp->resp.msn));
}

/** Does what pipeline_fast_begin() saw of the packet still hold, after packets of the full path? */
static ALWAYS_INLINE bool
place_holds(const struct worker *w, const struct burst *b, uint32_t i, const struct fast *f,
	access_t access)
{
	const struct qp *qp = b->qp[i];

	return (f->one_port || b->port[i] == b->port[0]) && fast_qp(w, qp, &b->pkt[i]) &&
	       mem_is_valid(f->at[i].region) && responder_fits_fast(&qp->resp, &b->pkt[i], access);
}

/** Packet i's payload to memory, unless it is there: in a burst of local ones it may be on loan. */
static ALWAYS_INLINE void
fast_deliver(struct worker *w, const struct burst *b, uint32_t i, uint8_t *host)
{
	const struct wire_pkt *p = &b->pkt[i];

	if (UNLIKELY(w->local_burst))
		pipeline_local_deliver(w, b->m[i], p, host);
	else
		payload_copy(host, wire_payload(p), p->payload_len);
}

/** Count a packet that is no WRITE at its QP. */
static ALWAYS_INLINE void
count_taken(struct worker *w, struct qp *qp, const struct wire_pkt *p)
{
	qp_count(w, qp, STAT_rcvd_pkts, 1);
	qp_count(w, qp, STAT_rx_packets, 1);
	qp_count(w, qp, STAT_rx_bytes, p->frame_len);
}

/* ---- stage_06_fast_places.c */

/** Look up where the burst's payloads go, and fetch those places. The burst has a packet. */
void pipeline_fast_begin(const struct worker *w, const struct burst *b, struct fast *f);
/** The place of a SEND that takes the WQE so far behind the head of its shared queue. */
void pipeline_fast_place_shared(const struct worker *w, const struct qp *qp,
	const struct wire_pkt *p, const struct ring_srq_run *run, uint32_t i,
	struct fast_place *at);

/* ---- stage_06_fast.c */

/**
 * Take packets from b->pkt[i] on. Whoever gives a packet to the full path clears f->calm.
 * @return the first packet that the full path has to take, or b->n.
 */
uint32_t pipeline_fast_run(struct worker *w, struct burst *b, uint32_t i, struct fast *f);
/** The burst is over: count what the fast path took. */
void pipeline_fast_end(struct worker *w, const struct burst *b, struct fast *f);

/** What the verdict of a packet that was taken would say in the recorder. */
void pipeline_fast_trace(
	struct worker *w, struct qp *qp, const struct wire_pkt *p, enum responder_rule rule);

/* ---- stage_06_fast_sends.c */

/**
 * Take SEND ONLYs in order, datagrams, or WRITE ONLYs with an immediate, from b->pkt[i] on, which
 * is one. @return how many.
 */
uint32_t pipeline_fast_sends(struct worker *w, const struct burst *b, uint32_t i, struct fast *f);

/* ---- stage_06_fast_parts.c */

/**
 * Take packets of WRITEs of several in order, from b->pkt[i] on, which is one.
 * @param end one behind the last packet that may be looked at. @return how many.
 */
uint32_t pipeline_fast_parts(
	struct worker *w, struct burst *b, uint32_t i, uint32_t end, struct fast *f);

/**
 * Take packet i, which was kept and is next now. It was counted when it came.
 * @return false: the full path has to.
 */
bool pipeline_fast_kept(struct worker *w, struct burst *b, uint32_t i);

/** Take MIDDLEs of SENDs in order: as pipeline_fast_parts(). */
uint32_t pipeline_fast_middles(
	struct worker *w, struct burst *b, uint32_t i, uint32_t end, struct fast *f);

/* ---- stage_06_fast_reads.c */

/** Take READs that stand one behind the other: as pipeline_fast_acks(). */
uint32_t pipeline_fast_reads(
	struct worker *w, const struct burst *b, uint32_t i, uint32_t end, struct fast *f);

/* ---- stage_06_fast_acks.c */

/**
 * Take ACKs that stand one behind the other, from b->pkt[i] on, which is one. The QP of the last
 * one that was taken may have failed, no other.
 * @param end one behind the last packet that may be looked at.
 * @return how many; 0: the first has to take the full path.
 */
uint32_t pipeline_fast_acks(
	struct worker *w, const struct burst *b, uint32_t i, uint32_t end, struct fast_counts *n);

/** Take the READ response b->pkt[i]. @return 1; 0: it has to take the full path. */
uint32_t pipeline_fast_data(struct worker *w, const struct burst *b, uint32_t i, struct fast *f);

/* ---- stage_06_respond.c */

/** A request's line in the recorder. */
void pipeline_trace_request(
	struct worker *w, const struct context *c, const struct responder_verdict *v);

#endif
