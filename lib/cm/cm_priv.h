/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CM_PRIV_H
#define CM_PRIV_H
/**
 * @file cm_priv.h  What the files of the connection manager share.
 *
 * Owner:   as cm.h.
 * Memory:  as cm.h.
 * Depends: cm.h.
 */
#include "cm.h"

/* cm_table.c: places, chains, listeners, sources */
/** A free place with a new id, in REQ_SENT or REQ_RCVD. @return NULL: all are taken. */
struct cm_conn *cm_new(struct cm *cm, bool active);
/** Put it on a chain; its key must be set. */
void cm_link(struct cm *cm, struct cm_conn *c, uint32_t chain);
/** The connection that this peer calls by this id, with this REQ. */
struct cm_conn *cm_by_remote(struct cm *cm, const struct cm_path *path, uint32_t id, uint64_t tid);
/**
 * The connection with this queue pair of the peer (CM-24). The peer's address must be the same,
 * too: a GUID is only what a peer says of itself, and a stranger who says another's would end or
 * refuse the other's connections.
 */
struct cm_conn *cm_by_qpn(struct cm *cm, const struct cm_path *path, uint64_t guid, uint32_t qpn);
/** Who listens there; NULL: nobody. */
struct cm_listener *cm_listener_of(struct cm *cm, const struct cm_path *path, uint64_t service_id);
/** May this source send one more REQ in this second? Counts it. */
bool cm_source_may(struct cm *cm, const struct cm_path *path, ns_t now);
/** Count a connection that its peer has begun as unfinished. @return CM_DROP_NONE, or why not. */
enum cm_drop cm_half_open(struct cm *cm, struct cm_listener *l, const struct cm_path *path);
/** Place of the MAC that it came from. */
uint16_t cm_neighbour_of(const struct cm *cm, const struct cm_path *path);
/** Of its source, id and TID: not to be guessed. */
uint64_t cm_hash_req(const struct cm *cm, const struct cm_path *path, uint32_t id, uint64_t tid);
/** Does it take no more until its program has heard of those that it has? */
bool cm_is_unheard(const struct cm_listener *l);
/** It has begun. */
void cm_half_open_begin(struct cm *cm, struct cm_conn *c);
/** It is not any more: established, or over. */
void cm_half_open_end(struct cm *cm, struct cm_conn *c);

/* cm_crowd.c */
/** Are many connections unfinished, of all or of this listener's? */
bool cm_is_crowded(const struct cm *cm, const struct cm_listener *l);
/** Is one more place for a REQ given to those alone who repeat it? */
bool cm_is_scarce(const struct cm *cm, const struct cm_listener *l);
/**
 * In a crowd: an unfinished connection gives its place up when its peer has not answered once.
 * Unless a neighbour has more than half of all, and it is not that one's: then others find room.
 */
bool cm_is_in_the_way(struct cm *cm, const struct cm_conn *c);
/** Did a REQ of this hash come in one of the last seconds, before this one? Remembers it. */
bool cm_is_repeated(struct cm *cm, uint64_t hash, ns_t now);
/**
 * There is none left for a REQ that was repeated: the oldest unfinished connection of the neighbour
 * that has most of them gives its place away: if it has more than half of all, or two more than the
 * one who asks and has had time to answer. Its timer ends it; if its RTU comes before that, it is
 * established. @return it; NULL: there is none.
 */
struct cm_conn *cm_make_room(
	struct cm *cm, const struct cm_listener *l, const struct cm_path *path, ns_t now);
/** What cm->crowd.map has. */
size_t cm_crowd_bytes(void);

/* cm_message.c: what is sent */
/** One more message in the verdict, to where the connection's peer is. */
uint8_t *cm_out(struct cm_verdict *v, const struct cm_path *path);
/** c->sent becomes the REQ. */
void cm_make_req(struct cm *cm, struct cm_conn *c, const struct cm_ask *ask);
/** c->sent becomes the SIDR_REQ. */
void cm_make_sidr_req(struct cm_conn *c, const struct cm_ask *ask);
/** c->sent becomes the REP. */
void cm_make_rep(struct cm *cm, struct cm_conn *c, const uint8_t *private, uint32_t private_len);
/** c->sent becomes a DREQ. */
void cm_make_dreq(struct cm *cm, struct cm_conn *c);
/** Which message a REJ of the connection rejects: 0 REQ, 1 REP, 2 other. */
void cm_send_rej(const struct cm *cm, struct cm_verdict *v, const struct cm_conn *c,
	uint16_t reason, const uint8_t *private, uint32_t private_len);
/** A REJ for a message of no connection; `mad` is that message. */
void cm_send_stray_rej(struct cm_verdict *v, const struct cm_packet *p, uint16_t reason);
/** RTU, MRA, DREP and APR: ids alone. */
void cm_send_short(struct cm_verdict *v, const struct cm_conn *c, enum cm_message m, uint64_t tid);
/** A DREP that mirrors a DREQ of no connection (CM-34). */
void cm_send_stray_drep(struct cm_verdict *v, const struct cm_packet *p);
/** Answer a SIDR_REQ of no connection. @param l NULL: nobody listens. */
void cm_send_sidr_rep(struct cm_verdict *v, const struct cm_packet *p, const struct cm_listener *l);
/** c->sent becomes the SIDR_REP. @param status 0: with c->own's number and key. */
void cm_make_sidr_rep(
	struct cm_conn *c, uint8_t status, const uint8_t *private, uint32_t private_len);
/** Remember the user's part of a message's private data. */
void cm_keep_private(struct cm_conn *c, const uint8_t *mad);

/* cm_request.c */
/** A REQ that belongs to no connection yet. */
void cm_request(struct cm *cm, const struct cm_packet *p, ns_t now, struct cm_verdict *v);
/** May one more connection of this listener begin? Else v->drop says why not. */
bool cm_may_begin(struct cm *cm, struct cm_listener *l, const struct cm_packet *p, uint32_t id,
	ns_t now, struct cm_verdict *v);
/** Is it a service of the IP port spaces, with their header before the private data? */
bool cm_is_ip(uint64_t service_id);
/** The terms in a REQ. */
struct cm_terms cm_req_terms(const uint8_t *mad);
/** The terms in a REP to a REQ for this service (enum cm_service). */
struct cm_terms cm_rep_terms(const uint8_t *mad, uint8_t service);

/* cm_sidr.c */
/** A SIDR_REQ. */
void cm_sidr_request(struct cm *cm, const struct cm_packet *p, ns_t now, struct cm_verdict *v);

/* cm.c */
/** No verdict yet. */
void cm_verdict_init(struct cm_verdict *v);

/* cm_step.c */
struct cm_step {
	uint8_t next; /* enum cm_state */
	uint8_t send;
	uint8_t todo;
	uint8_t event;
	const char *rule; /* NULL: no row */
};

extern const struct cm_step cm_steps[CM_STATES][CM_INPUTS];

/** What the step says besides its row. */
struct cm_said {
	uint16_t reason; /* of a REJ, received or to be sent */
	uint16_t status; /* of the event */
	uint8_t timeout; /* of an MRA */
	const uint8_t *private;
	uint32_t private_len;
};

/** Carry out a row: state, timers, messages. @return false: there is none. */
bool cm_step(struct cm *cm, struct cm_conn *c, enum cm_input in, const struct cm_said *said,
	ns_t now, struct cm_verdict *v);
/** The next repetition, or the end of what the state waits for. */
void cm_arm(struct cm *cm, struct cm_conn *c, ns_t after, ns_t now);

#endif
