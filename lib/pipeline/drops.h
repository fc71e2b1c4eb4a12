/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DROPS_H
#define DROPS_H
/**
 * @file drops.h  Packets that are dropped or refused: counted, recorded, traced.
 *
 * Owner:   the worker's lcore, for all functions here.
 * Memory:  none.
 * Depends: count.h.
 * Spec:    RX-ERR-01.
 */
#include "count.h"

/**
 * Is a packet that is dropped now recorded? A worker records RECORDS_DEPTH of them as they come,
 * and one more every RECORDS_TURNS turns: a few bad packets are all seen, and what a flood costs is
 * not its records.
 */
static inline bool
record_wanted(const struct worker *w)
{
	return w->records_left != 0;
}

/** A turn begins. */
static inline void
records_allow(struct worker *w)
{
	if (w->errbuf != NULL && w->records_left < RECORDS_DEPTH && w->turns % RECORDS_TURNS == 0)
		w->records_left++;
}

/** Dropped packets in a row of one port and fault: they are counted together. */
struct drop_run {
	struct qp *qp;       /* of the last one; NULL, or of this worker */
	fault_mask_t faults; /* of that one */
	uint32_t qp_n;       /* in a row of that QP */
	uint32_t n;          /* before them */
	uint32_t recorded;
	uint32_t left_out; /* by the error buffer, which had no room */
	uint16_t stat;     /* counter of the fault */
	uint16_t also;     /* what else they are counted as; STAT_MAX: nothing */
	uint8_t fault;     /* what they are charged to */
	uint8_t port;
	bool silent; /* those that follow are neither recorded nor traced */
};

/** Those of the QP are counted at it; from here on the run is about this one. */
static ALWAYS_INLINE void
drop_next_qp(struct worker *w, struct drop_run *run, struct qp *qp)
{
	const uint32_t n = run->qp_n;
	struct qp *was = run->qp;

	run->n += n;
	run->qp_n = 0;
	run->qp = qp;
	if (was == NULL || UNLIKELY(n == 0))
		return;
	qp_count(w, was, (enum stats_counter)run->stat, n);
	if (run->also != STAT_MAX)
		qp_count(w, was, (enum stats_counter)run->also, n);
}

/** One more with the same faults that nothing is to be said about. @return false: it is not. */
static ALWAYS_INLINE bool
drop_again(struct worker *w, struct drop_run *run, struct qp *qp, fault_mask_t faults, uint8_t port)
{
	if (UNLIKELY(!run->silent) || run->faults != faults || UNLIKELY(run->port != port))
		return false;
	if (run->qp != qp) {
		if (qp != NULL && traced(w, qp))
			return false;
		drop_next_qp(w, run, qp);
	}
	run->qp_n++;
	return true;
}

/**
 * Header validation failed: charge the packet to the first of its faults, record it.
 * b->qp[i] is NULL or a QP of this worker.
 */
void pipeline_drop_add(struct worker *w, struct drop_run *run, struct burst *b, uint32_t i);
/** Count them. */
void pipeline_drop_flush(struct worker *w, struct drop_run *run);
/** One of them. */
void pipeline_drop_faulty(struct worker *w, struct burst *b, uint32_t i);
/** A fault of an accepted packet, and what it led to. */
struct charge {
	uint16_t rule;
	uint8_t fault;  /* enum wire_fault */
	uint8_t impact; /* enum errbuf_impact */
};

/** Where the error buffer is on: write a record. @return false: the packet was left out. */
bool pipeline_drop_recorded(struct worker *w, const struct burst *b, uint32_t i, struct charge c);
/** The responder or the requester found a fault: count and record that. */
void pipeline_fault_charge(struct worker *w, struct burst *b, uint32_t i, struct charge c);

#endif
