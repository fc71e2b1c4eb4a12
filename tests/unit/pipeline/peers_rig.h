/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PEERS_RIG_H
#define PEERS_RIG_H
/** @file peers_rig.h  Peers of the bed's worker, each with some QPs, that send it WRITEs. */
#include "bed.h"

enum {
	PEERS = 3,
	QPS = 8, /* of a peer */
	FIRST_QPN = 0x24,
};

struct peer {
	struct wire_path path; /* from it to us */
	struct qp *qp[QPS];
	uint32_t psn[QPS]; /* of the next request */
	uint32_t acked[QPS];
	uint32_t naks;
	uint32_t next;        /* QP */
	struct rte_ring *way; /* by which its frames come: the port, or a hand-off ring */
	uint16_t port;        /* that received them, as they say */
};

extern struct peer peers[PEERS];

void peer_begin(struct bed *b, uint32_t i);
void peer_end(struct bed *b, uint32_t i);
/** A WRITE of a peer arrives, if there is room. @param each  a QP has so many in a row. */
bool peer_sends(struct peer *p, uint16_t len, uint32_t each);
/** The WRITE before the first one arrives again: however much is lost, it is in sequence. */
bool peer_repeats(struct peer *p);
/** WRITEs that are not acknowledged. */
uint32_t peer_owed(const struct peer *p);
/** Of those that arrived again: how many have been served. */
uint64_t peer_served(const struct peer *p);
/** A turn of the worker, and its answers. */
void peers_turn(struct bed *b);

#endif
