/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef STAGE_H
#define STAGE_H
/**
 * @file stage.h  The stages of a worker's turn, in the order in which worker_poll() runs them.
 *
 * Owner:   the worker's lcore, for all functions here.
 * Memory:  none.
 * Depends: worker.h.
 */
#include "worker.h"

/* ---- once for each burst: packets that leave a stage are counted there ----------------------- */

/** 1: take a burst from the port with this index into the worker's ports; b->n may become 0. */
void stage_rx(struct worker *w, struct burst *b, uint32_t port);
/** The rest of 1 for b->n frames that came to the port in another way. */
void stage_rx_taken(struct worker *w, struct burst *b, uint32_t port);
/** 2: read the headers. ARP and ICMP go to the control lcore; what is not RoCE is dropped. */
void stage_parse(struct worker *w, struct burst *b);
/**
 * 3: fetch what the table has for each packet's QP number; stage_steer() compares the number.
 * Packets for QPs of other workers leave.
 */
void stage_lookup(struct worker *w, struct burst *b);
/** 4: verify ICRCs; a wrong one is a fault of the packet. */
void stage_icrc(struct worker *w, struct burst *b);
/** 5: compare each packet with its QP; those with a fault are dropped. b->qp[] is exact then. */
void stage_steer(struct worker *w, struct burst *b);
/**
 * How many packets from the first on stage_steer() would let pass and find plain; it sets the same
 * of them. The burst has a packet. 0 on a CPU without AVX2.
 */
uint32_t stage_steer_plain(const struct worker *w, struct burst *b);
/** 6: give requests to responders and responses to requesters. ACKs wait: pipeline_acks_send(). */
void stage_respond(struct worker *w, struct burst *b);
/** Part of 6: packet i of the burst, a response that the fast path did not take. */
void stage_complete(struct worker *w, struct burst *b, uint32_t i);
/** 2 to 6 for frames that were kept aside: the loop's own order. */
void pipeline_burst_run(struct worker *w, struct burst *b);

/* ---- once in a turn -------------------------------------------------------------------------- */

/** 7: a turn's share of the answer queues: READ responses, results of ATOMICs. */
void stage_answers(struct worker *w);
/** 8: transport timers and RNR waits. @return timers that fired. */
uint32_t stage_timers(struct worker *w);
/** 9: read each client's doorbell ring. @return numbers taken. Cost: a line for each client. */
uint32_t stage_doorbells(struct worker *w);
/** 10: requests of QPs that have something to send. @return request packets made. */
uint32_t stage_request(struct worker *w);
/** A turn of worker.lossy is over: is the next one to have fewer packets of it, or more? */
void pipeline_lossy_turn(struct worker *w);
/** 11: hand frames to the ports. @return frames that ports took. */
uint32_t stage_tx(struct worker *w);
/** 12: commands of the control lcore. @return messages carried out. */
uint32_t stage_mailbox(struct worker *w);

/** CLIENT_ATTACH: stage 9 reads the client's doorbells from now on. */
void pipeline_client_attach(struct worker *w, struct qp_client *c);
/** CLIENT_DETACH: no longer. */
void pipeline_client_detach(struct worker *w, struct qp_client *c);

#endif
