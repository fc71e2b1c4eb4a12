/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef INTAKE_H
#define INTAKE_H
/**
 * @file intake.h  Whose frames are served first, when there are more than the worker can do.
 *
 * Frames are served in the order of their arrival, as long as a port has less than a burst now and
 * then. When it has full bursts again and again, and of more than one peer, the worker takes more
 * frames than it serves and keeps them here. Then peers take turns, by what their frames cost (as
 * shares.h has it); those of one peer stay in order. A peer is an address: of IP, or of Ethernet.
 * Who has more waiting than four times what is free loses what comes next. So the one with
 * the longest queue pays, and there is always room for others. What other workers hand over counts
 * as what a port has: whichever worker its frames come to, a peer has one share.
 *
 * Owner:   the worker's lcore, for all functions here.
 * Memory:  pipeline_intake_create(): about 20 KiB; up to 1024 mbufs of the ports.
 * Depends: worker.h.
 */
#include "worker.h"

#define INTAKE_FULL  32 /* turns in a row with a full burst, before the worker looks whose it is */
#define INTAKE_LOOKS 4  /* ... in each of so many turns: a look costs a cycle a frame */

struct intake;

/** @return NULL: no memory. */
struct intake *pipeline_intake_create(int socket);
/** With the frames that it has. */
void pipeline_intake_destroy(struct intake *in);

/**
 * So many turns have had full bursts: has this burst frames of several peers? Then begin.
 * @param anew  false: it counts with the one that was looked at before.
 */
void pipeline_intake_look(struct worker *w, const struct burst *b, bool anew);
/** A packet that is served leaves the fast path: its peer pays for that. */
void pipeline_intake_charge(struct worker *w, const struct burst *b, uint32_t i);
/**
 * Take what a port has, up to four bursts. @return how many frames.
 */
uint32_t pipeline_intake_fill(struct worker *w, struct burst *b, uint32_t port);
/** The same of the worker's hand-off ring. */
uint32_t pipeline_intake_fill_handed(struct worker *w, struct burst *b);
/** The next burst to be served. @return false: there is none. */
bool pipeline_intake_take(struct worker *w, struct burst *b);
/** The turn is over. @param more  somebody has more. @return how many frames wait here. */
uint32_t pipeline_intake_settle(struct worker *w, bool more);

#endif
