/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CONNECT_PRIV_H
#define CONNECT_PRIV_H
/**
 * @file connect_priv.h  What the files of lib/connect share.
 *
 * Owner:   as connect.h.
 * Memory:  as connect.h.
 * Depends: connect.h.
 */
#include "connect.h"

/** Send the messages of a verdict, do what it says to the QP, tell, forget. */
void connect_carry_out(struct connect *cx, struct cm_verdict *v);
/** A new record. @return NULL: no memory. */
struct connect_conn *connect_new(struct connect *cx);
/** It is over at once, whatever the peer knows. */
void connect_end(struct connect *cx, struct connect_conn *cc);
/** It never was. */
void connect_drop(struct connect *cx, struct connect_conn *cc);

/* connect_frames.c */
/** Send one message. @param cc whose; NULL: nobody's. */
void connect_send(struct connect *cx, const struct connect_conn *cc, const struct cm_out *out);
/** The oldest frame. @return false: none waits. */
bool connect_inbox_take(struct connect *cx, struct connect_inbox *out);
/** The frame as the manager reads it. @return false: it is none. */
bool connect_parse(struct connect *cx, const struct connect_inbox *in, struct cm_packet *out);

/* connect_listen.c */
/** What stands in a REQ for a port of a port space (CM-07). */
uint64_t connect_service_id(uint32_t ps, uint16_t port);
/** As connect_listen(). @param of the application's id that listens; NULL: none. */
int connect_listen_for(struct connect *cx, const struct conf_cm_listen *conf,
	const struct cm_reach *reach, struct connect_id *of, struct refusal *r);
/** @return NULL: none has this name. */
struct connect_listener *connect_listener_named(struct connect *cx, const char *name);

/* connect_qp.c */
/** The QP of a connection that a peer asks for, in RTR. @return 0 or a refusal. */
int connect_qp_passive(
	struct connect *cx, struct connect_conn *cc, const struct cm_terms *own, struct refusal *r);
/** The QP of one that we ask for, in INIT. @return 0 or a refusal. */
int connect_qp_active(struct connect *cx, struct connect_conn *cc, struct refusal *r);
/** To RTR by what was agreed. @return 0 or a refusal. */
int connect_qp_rtr(struct connect *cx, struct connect_conn *cc, struct refusal *r);
/** To RTS by what was agreed. @return 0 or a refusal. */
int connect_qp_rts(struct connect *cx, struct connect_conn *cc, struct refusal *r);
/** A server's, before it answers: to RTR and RTS by these terms. @return 0 or a refusal. */
int connect_qp_ready(
	struct connect *cx, struct connect_conn *cc, const struct cm_terms *own, struct refusal *r);
/** To ERR, from where that is a step. @return 0 or a refusal. */
int connect_qp_error(struct connect *cx, struct admin_qp *rec, struct refusal *r);
/** The same, and a line where it fails. */
void connect_qp_down(struct connect *cx, struct connect_conn *cc);
/** Destroyed. */
void connect_qp_end(struct connect *cx, struct connect_conn *cc);
/** A datagram QP's key, where nobody has said it. */
void connect_qp_qkey(struct conf_qp *q);
/** 1..5 of a path MTU. */
uint8_t connect_mtu_code(uint32_t mtu);

/* connect_events.c */
/** Bytes as hex digits. */
json_t *connect_hex(const uint8_t *bytes, uint32_t n);
/** The program hears of it. */
void connect_event(struct connect *cx, struct connect_conn *cc, const struct cm_verdict *v);

#endif
