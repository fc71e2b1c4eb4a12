/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TEST_PIPELINE_WAYS_H
#define TEST_PIPELINE_WAYS_H
/**
 * @file ways.h  A world whose worker takes its fast paths or leaves them, and what is seen of it.
 *
 * test_ways.c     sessions, each played in two worlds, and the comparison
 * ways_packets.c  what the peer sends
 * ways_look.c     what leaves: frames, completions, events, records, counters, states
 *
 * Owner:   tests only.
 * Memory:  static, and the bed's.
 * Depends: bed.h.
 */
#include "bed.h"

enum {
	WAYS_QPS = 6,
	OF_UC = 3,
	OF_UD = 4,
	WAYS_QKEY = 0x11111111,
	WAYS_SRQ = 64,
	WAYS_TRACE = 1024
};

struct ways_qp {
	struct qp *qp;
	struct ring rq, sq;    /* producers */
	uint32_t next;         /* the PSN that its peer uses next in this turn */
	uint32_t responses;    /* so many packets were answered in this turn */
	uint32_t asks;         /* ... so many READs and ATOMICs were sent in it */
	struct wire_path path; /* the peer's */
	bool well;             /* the QP had not failed before it */
	bool anew;             /* it was told to begin anew in it */
	uint8_t open;          /* enum responder_open, as its peer has it */
	uint32_t left;         /* bytes of an open WRITE, likewise */
	uint64_t counters[STAT_MAX];
};

struct world {
	struct bed *b;
	struct ways_qp q[WAYS_QPS];
	struct qp_srq srq;
	struct ring srq_producer;
	uint32_t handle; /* of the peer, for datagrams */
	uint32_t seed;
	uint32_t at;   /* whose packet was the last one */
	uint32_t tame; /* the larger, the fewer packets end their QP */
	uint64_t counters[STAT_MAX], port_counters[STAT_MAX];
	uint64_t traced;
	uint32_t posts; /* the larger, the fewer receives are posted */
	bool bare;      /* most receives have no SGEs, and the peers send no SENDs */
	bool keeps_records;
	/*
	 * Queue pairs, a bit each, that have failed with READs, or begun anew: whether these were
	 * answered before depends on the way that they took. They are not compared any more, nor
	 * are sums.
	 */
	uint32_t unclear;
};

/** From here on nobody writes to the region: what is read does not depend on when that happens. */
#define WAYS_STILL 50000u

/* ---- test_ways.c */

uint32_t ways_next(struct world *w);
bool ways_one_in(struct world *w, uint32_t n);

/* ---- ways_packets.c */

/** The next packet of a random queue pair's peer, or up to three copies of it. @return how many. */
uint32_t ways_packet(struct world *w);

/* ---- ways_look.c */

/** Lines of text, of the world that is played. */
void ways_log_open(uint32_t world);
const char *ways_log(uint32_t world);
/** What the turn before has sent. */
void ways_look_at_frames(const struct world *w);
/** All that has happened in a step. */
void ways_look(struct world *w, uint32_t step);
void ways_look_at_memory(const struct world *w);

#endif
