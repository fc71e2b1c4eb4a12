/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef KEPT_H
#define KEPT_H
/**
 * @file kept.h  Frames of requests that came before one below them (resp.gap=keep).
 *
 * A queue pair that misses a request gets one of the worker's few places, and keeps there what the
 * responder says: frames that have passed stages 1 to 5. Each of them is a request again when its
 * turn has come (stage_06_respond.c). Without a place, or with a place whose owner is silent for so
 * long that another one takes it, the peer sends again what it would send again anyway.
 *
 * Owner:   the worker's lcore, for all functions here.
 * Memory:  pipeline_kept_create(): about 180 KiB; up to 512 mbufs of the ports.
 * Depends: worker.h.
 * Spec:    RESP-SEQ-14, RESP-SEQ-15.
 */
#include "qp_flags.h"
#include "worker.h"

struct kept;

/** @return NULL: no memory. */
struct kept *pipeline_kept_create(int socket);
/** With the frames that it has. */
void pipeline_kept_destroy(struct kept *k);

/** Is there a place for a frame of this QP? It is the QP's from now on. */
bool pipeline_kept_room(struct worker *w, struct qp *qp);
/** Packet i of the burst is kept, and its frame is not the burst's any more: b->m[i] is NULL. */
void pipeline_kept_put(struct worker *w, struct burst *b, uint32_t i);
/**
 * The request at ePSN, if it is here. It is the burst's packet i, behind those that the caller had
 * before; its frame is the caller's.
 * @return NULL: it is not.
 */
struct burst *pipeline_kept_next(struct worker *w, struct qp *qp, uint32_t i);
/** Are any left? */
bool pipeline_kept_any(const struct worker *w, const struct qp *qp);
/** The QP keeps nothing any more. */
void pipeline_kept_forget(struct worker *w, struct qp *qp);

#endif
